//! Configuration time: the arguments of a directive, its errors, memory of the configuration.

use core::ffi::{CStr, c_char, c_void};
use core::fmt::{self, Write};
use core::ptr::{self, NonNull};

use ngx::core::NGX_CONF_ERROR;
use ngx::ffi::{
    NGX_LOG_EMERG, NGX_LOG_WARN, ngx_array_push, ngx_atoi, ngx_conf_include, ngx_conf_t,
    ngx_http_core_main_conf_t, ngx_http_core_module, ngx_http_handler_pt, ngx_http_request_t,
    ngx_int_t, ngx_log_t, ngx_module_t, ngx_parse_time, ngx_pcalloc, ngx_pool_cleanup_add,
    ngx_pool_t, ngx_str_t,
};
use ngx::ngx_conf_log_error;

use super::module;

/// Why a directive is refused.
#[derive(Debug)]
pub enum ConfError {
    /// The text of nginx's error line; nginx appends the file and the line.
    Message(String),
    /// nginx has already said it.
    Logged,
}

impl<E: core::error::Error> From<E> for ConfError {
    fn from(error: E) -> Self {
        Self::Message(error.to_string())
    }
}

impl ConfError {
    /// An error line.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::Message(message.to_string())
    }

    /// nginx's own words for memory that is not there are in its allocator's log line.
    pub fn no_memory() -> Self {
        Self::Logged
    }
}

/// A line of a configuration file. The `Display` is nginx's form, `file:line`.
#[derive(Debug, Default)]
pub struct Place {
    file: String,
    line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What a directive's function answers.
pub type ConfResult<T = ()> = Result<T, ConfError>;

/// The configuration that nginx is reading.
#[derive(Clone, Copy)]
pub struct Conf(NonNull<ngx_conf_t>);

impl Conf {
    /// # Safety
    ///
    /// `cf` is what nginx handed to the callback that is running.
    pub unsafe fn new(cf: *mut ngx_conf_t) -> Self {
        // SAFETY: nginx passes no null `cf`.
        Self(unsafe { NonNull::new_unchecked(cf) })
    }

    /// For calls of nginx.
    pub fn as_ptr(self) -> *mut ngx_conf_t {
        self.0.as_ptr()
    }

    /// The directive's name and its arguments.
    pub fn args<'a>(self) -> &'a [ngx_str_t] {
        // SAFETY: while nginx runs a directive's function, `args` holds at least its name.
        unsafe { (*(*self.as_ptr()).args).as_slice() }
    }

    /// The pool of the configuration: it lives as long as the cycle.
    pub fn pool(self) -> *mut ngx_pool_t {
        // SAFETY: `cf` has a pool throughout.
        unsafe { (*self.as_ptr()).pool }
    }

    /// A configuration structure of a module, in the block that is being read.
    ///
    /// # Safety
    ///
    /// The block has http contexts, and `T` is what the module of that place keeps in main_conf.
    pub unsafe fn main_conf<'a, T>(self, ctx_index: usize) -> Option<&'a T> {
        let ctx = self.http_ctx();

        // SAFETY: within http {}, `ctx` is an http context with a slot for each http module.
        let conf = unsafe { *(*ctx).main_conf.add(ctx_index) };

        // SAFETY: the caller vouches for the type.
        unsafe { conf.cast::<T>().as_ref() }
    }

    /// The http context of the block that is being read.
    pub fn http_ctx(self) -> *mut ngx::ffi::ngx_http_conf_ctx_t {
        // SAFETY: `cf` is valid; within http {} its `ctx` is an http context.
        unsafe { (*self.as_ptr()).ctx.cast() }
    }

    /// A module that may be absent from this nginx.
    pub fn module<'a>(self, name: &CStr) -> Option<&'a ngx_module_t> {
        // SAFETY: `cf` has a cycle throughout, and that an array of modules.
        unsafe { module::by_name((*(*self.as_ptr()).cycle).modules, name) }
    }

    /// Where messages about the configuration go.
    pub fn log(self) -> *mut ngx_log_t {
        // SAFETY: `cf` has a log throughout.
        unsafe { (*self.as_ptr()).log }
    }

    /// The line that is being read, for a message that comes later.
    pub fn place(self) -> Place {
        // SAFETY: while a directive's function runs there is a file, or the command line in its
        // place, and its name is a string of the configuration.
        unsafe {
            match (*self.as_ptr()).conf_file.as_ref() {
                Some(file) => Place {
                    file: lossy(file.file.name.as_bytes()).to_string(),
                    line: file.line,
                },
                None => Place::default(),
            }
        }
    }

    /// Says what is worth a look in a configuration.
    pub fn warn(self, message: impl fmt::Display) {
        ngx_conf_log_error!(NGX_LOG_WARN, self.as_ptr(), "{message}");
    }

    /// The result of a directive's function in nginx's terms.
    pub fn finish(self, result: ConfResult) -> *mut c_char {
        match result {
            Ok(()) => ptr::null_mut(),
            Err(ConfError::Logged) => NGX_CONF_ERROR as *mut c_char,
            Err(ConfError::Message(message)) => {
                ngx_conf_log_error!(NGX_LOG_EMERG, self.as_ptr(), "{message}");
                NGX_CONF_ERROR as *mut c_char
            }
        }
    }

    /// Zeroed memory of the configuration.
    pub fn alloc<T>(self) -> ConfResult<NonNull<T>> {
        // SAFETY: the pool is valid; nginx aligns the memory for any type.
        NonNull::new(unsafe { ngx_pcalloc(self.pool(), size_of::<T>()) }.cast())
            .ok_or_else(ConfError::no_memory)
    }

    /// Gives a value to the configuration, which drops it when its memory goes.
    pub fn keep<'a, T>(self, value: T) -> Option<&'a mut T> {
        // SAFETY: the pool is valid; no memory is asked for.
        let cleanup = unsafe { ngx_pool_cleanup_add(self.pool(), 0).as_mut() }?;
        let value = Box::into_raw(Box::new(value));

        cleanup.handler = Some(drop_kept::<T>);
        cleanup.data = value.cast();

        // SAFETY: just made from a box, and dropped only together with the pool.
        Some(unsafe { &mut *value })
    }

    /// Reads the files that the line `include` names, as part of the block that is being read.
    pub fn include(self) -> ConfResult {
        // SAFETY: nginx's own directive, on its own arguments; it looks at nothing else.
        let rv = unsafe { ngx_conf_include(self.as_ptr(), ptr::null_mut(), ptr::null_mut()) };

        if rv.is_null() {
            Ok(())
        } else {
            Err(ConfError::Logged)
        }
    }

    /// Adds a handler to a phase of the processing of requests.
    pub fn add_phase_handler(
        self,
        phase: usize,
        handler: unsafe extern "C" fn(*mut ngx_http_request_t) -> ngx_int_t,
    ) -> ConfResult {
        // SAFETY: the index of a module that every nginx with http has.
        let index = unsafe { ngx_http_core_module.ctx_index };

        // SAFETY: postconfiguration runs with the context of http {}; this is the type of the core
        // module's main configuration, whose phases hold arrays of handlers.
        unsafe {
            let cmcf = *(*self.http_ctx()).main_conf.add(index);
            let handlers =
                &raw mut (*cmcf.cast::<ngx_http_core_main_conf_t>()).phases[phase].handlers;

            let slot: *mut ngx_http_handler_pt = ngx_array_push(handlers).cast();
            *slot.as_mut().ok_or_else(ConfError::no_memory)? = Some(handler);
        }

        Ok(())
    }

    /// A string in the memory of the configuration.
    pub fn string(self, bytes: &[u8]) -> ConfResult<ngx_str_t> {
        // SAFETY: the pool is valid.
        unsafe { ngx_str_t::from_bytes(self.pool(), bytes) }.ok_or_else(ConfError::no_memory)
    }
}

/// Pool cleanup of [`Conf::keep`].
unsafe extern "C" fn drop_kept<T>(data: *mut c_void) {
    // SAFETY: `data` is the box that `keep` leaked; nginx runs a cleanup once.
    drop(unsafe { Box::from_raw(data.cast::<T>()) });
}

/// A number as nginx's directives take it.
pub fn number(text: &[u8]) -> Option<usize> {
    // SAFETY: nginx reads `len` bytes from `data` and writes none.
    let number = unsafe { ngx_atoi(text.as_ptr().cast_mut(), text.len()) };

    usize::try_from(number).ok()
}

/// The unit in which a directive takes a time that names none.
#[derive(Clone, Copy)]
pub enum Unit {
    /// The result is in seconds.
    Seconds,
    /// The result is in milliseconds; a number alone still means seconds.
    Milliseconds,
}

/// A time in nginx's notation, in the given unit. None: it is none, or does not fit nginx's type.
pub fn time(text: &[u8], unit: Unit) -> Option<u64> {
    match unit {
        Unit::Seconds => parse_time(text, true),
        Unit::Milliseconds => parse_time(text, false).or_else(|| {
            // Months and years nginx knows only of seconds.
            let msec = parse_time(text, true)?.checked_mul(1000)?;
            isize::try_from(msec).ok().map(|_| msec)
        }),
    }
}

fn parse_time(text: &[u8], is_sec: bool) -> Option<u64> {
    let mut line = ngx_str_t {
        len: text.len(),
        data: text.as_ptr().cast_mut(),
    };

    // SAFETY: nginx reads `len` bytes from `data` and writes none.
    let time = unsafe { ngx_parse_time(&mut line, usize::from(is_sec)) };

    u64::try_from(time).ok()
}

/// Text of nginx's for a log line, written without memory of its own: lines are logged where that may be out.
pub fn lossy(text: &[u8]) -> impl fmt::Display + '_ {
    struct Lossy<'a>(&'a [u8]);

    impl fmt::Display for Lossy<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            for chunk in self.0.utf8_chunks() {
                f.write_str(chunk.valid())?;
                if !chunk.invalid().is_empty() {
                    f.write_char(char::REPLACEMENT_CHARACTER)?;
                }
            }
            Ok(())
        }
    }

    Lossy(text)
}
