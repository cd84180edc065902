#![no_main]

use combined_upstreams_core_fuzz::{Input, targets};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::statuses(&mut Input::new(bytes)));
