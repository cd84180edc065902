//! Long walks and many of them.

use std::collections::HashMap;

use harness::{Backend, Call, Config, Failure, Http1, Nginx, Reply, all};

#[tokio::test]
async fn two_hundred_failing_upstreams_give_the_last_response() {
    let bad = Backend::each(|request| {
        Reply::status(503).body(request.header("host").unwrap().to_owned())
    })
    .await;
    let nginx = Nginx::start(Config::upstrand(std::iter::repeat_n(&bad, 200))).await;

    let answer = nginx.get("/").await;
    assert_eq!((answer.status, answer.text().as_str()), (503, "u200"));

    let asked: Vec<_> = bad
        .requests()
        .iter()
        .map(|request| request.header("host").unwrap().to_owned())
        .collect();
    let expected: Vec<_> = (1..=200).map(|number| format!("u{number}")).collect();
    assert_eq!(asked, expected);
    assert!(
        nginx
            .logged()
            .await
            .starts_with(&format!("GET / 503 [{}] [(u1) 503 ", expected.join(" -> ")))
    );
    nginx.stop().await;
}

#[tokio::test]
async fn two_hundred_refusing_upstreams_are_no_recursion() {
    let (refusing, good) = (
        Backend::refusing(),
        Backend::answering(Reply::ok("good")).await,
    );
    let members = std::iter::repeat_n(&refusing, 200).chain([&good]);
    let nginx = Nginx::start(Config::upstrand(members)).await;

    assert_eq!(nginx.get("/").await.text(), "good");
    nginx.stop().await;
}

/// How much the memory of a worker may grow over 10,000 requests: less than 10 bytes in each.
const GROWTH: usize = 100_000;

#[tokio::test]
async fn ten_thousand_failing_over_requests_leave_the_memory_flat() {
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::answering(Reply::ok("good")).await,
    );
    let config = Config::upstrand([&bad, &good])
        .upstream("keepalive 8;")
        .http("keepalive_requests 100000;")
        .location("proxy_http_version 1.1; proxy_set_header Connection '';");
    let nginx = Nginx::start(config).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(nginx.http1().await);
    }

    clients = ask(clients, 500).await;
    let before = nginx.worker_memory();
    clients = ask(clients, 2_500).await;
    let after = nginx.worker_memory();

    println!("resident memory of the worker: {before} bytes, after 10,000 more requests {after}");
    // AddressSanitizer keeps for a while what has been freed.
    if !Nginx::has_sanitizer() {
        assert!(after < before + GROWTH, "{before} bytes, then {after}");
    }
    assert_eq!(good.requests().len(), 12_000);
    drop(clients);
    nginx.stop().await;
}

/// Sends so many requests, one after the other, on each of the connections.
async fn ask(clients: Vec<Http1>, count: usize) -> Vec<Http1> {
    let call = Call::get("/").bytes();
    all(clients.into_iter().map(|mut client| {
        let call = call.clone();
        async move {
            for _ in 0..count {
                client.send(&call).await;
                assert_eq!(client.receive("GET").await.body, b"good");
            }
            client
        }
    }))
    .await
}

/// How much memory a failed hop may keep until its request ends, in bytes.
const HOP: usize = 4096;

#[tokio::test]
async fn a_failed_hop_keeps_less_than_four_kilobytes() {
    let few = most_memory(1).await;
    let many = most_memory(201).await;

    match many.checked_sub(few) {
        None | Some(0) => println!("this nginx does not log what it allocates"),
        Some(more) => {
            println!("a failed hop keeps {} bytes", more / 200);
            assert!(more / 200 < HOP, "{few} bytes, then {many}");
        }
    }
}

/// The most bytes that a worker has allocated at a time for a request with so many failed hops, by nginx's debug log.
async fn most_memory(failed: usize) -> usize {
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::answering(Reply::ok("good")).await,
    );
    let members = std::iter::repeat_n(&bad, failed).chain([&good]);
    let config = Config::upstrand(members).http("error_log alloc.log debug_alloc;");
    let nginx = Nginx::start(config).await;
    assert_eq!(nginx.get("/").await.text(), "good");

    let log = std::fs::read_to_string(nginx.prefix().join("alloc.log")).expect("a log");
    nginx.stop().await;

    let mut allocated = HashMap::new();
    let (mut bytes, mut most) = (0, 0);
    for line in log.lines() {
        if let Some((_, place)) = line.split_once(" free: ") {
            let place = place.split(',').next().unwrap_or_default();
            bytes -= allocated.remove(place).unwrap_or(0);
        } else if let Some((place, size)) = allocation(line) {
            bytes += size;
            most = most.max(bytes);
            allocated.insert(place.to_owned(), size);
        }
    }

    most
}

/// `malloc: 55D0C8E8A2B0:1024`, `posix_memalign: 55D0C8E8A2B0:512 @16`
fn allocation(line: &str) -> Option<(&str, usize)> {
    let (_, what) = line
        .split_once(" malloc: ")
        .or_else(|| line.split_once(" posix_memalign: "))?;
    let (place, size) = what.split_once(':')?;
    let size = size.split(' ').next()?.parse().ok()?;

    Some((place, size))
}
