//! Servers that nginx looks up while it runs (`resolve`, nginx 1.27.3 and later), in upstreams with
//! our directives.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::{Backend, Config, Dns, Nginx, Reply, balancers, has_upstream_line, until};

const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

const LOCATION: &str = "location ~ ^/(?<upstream>\\w+) {
add_header X-Tries $upstream_addr always;
proxy_pass http://$upstream;
}";

async fn has_resolve() -> bool {
    let has = has_upstream_line("resolver 127.0.0.1; server localhost:1 resolve;").await;
    if !has {
        println!("this nginx has no resolve");
    }
    has
}

async fn until_answered(nginx: &Nginx, upstream: &str, expected: &str) {
    until(&format!("{expected} from {upstream}"), async || {
        let answer = nginx.get(&format!("/{upstream}")).await.text();
        (answer == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn hosts_and_singlets_follow_the_addresses_of_a_name() {
    if !has_resolve().await {
        return;
    }
    let (named, other) = (
        Backend::answering(Reply::ok("named")).await,
        Backend::answering(Reply::ok("other")).await,
    );
    let dns = Dns::answering(&[]).await;
    let port = named.address().port();
    let other = other.address();

    // In the blocks themselves: a singlet asks whom its host asks.
    let resolver = format!("resolver {} valid=1s ipv6=off;", dns.address());
    let mut config = Config::new()
        .http(&format!(
            "upstream source {{ {resolver} zone source 64k; server name.test:{port} resolve; }}"
        ))
        .server(LOCATION);
    let balancers = balancers().await;
    for (number, balancer) in balancers.iter().enumerate() {
        config = config.http(&format!(
            "upstream h{number}_ {{
             {resolver}
             zone z{number} 64k;
             add_upstream source;
             server {other};
             server {other} weight=2;
             {balancer}
             combine_server_singlets;
             combine_server_singlets alone nobackup;
             }}"
        ));
    }
    let nginx = Nginx::start(config).await;

    // No address: the others serve in its singlet, and nobody without backups.
    for number in 0..balancers.len() {
        for _ in 0..10 {
            assert_eq!(nginx.get(&format!("/h{number}_1")).await.text(), "other");
            assert_eq!(nginx.get(&format!("/h{number}_2")).await.text(), "other");
        }
        assert_eq!(nginx.get(&format!("/h{number}_alone1")).await.status, 502);
    }

    dns.answer(&[FIRST]);
    for number in 0..balancers.len() {
        for singlet in ["1", "alone1"] {
            let upstream = format!("h{number}_{singlet}");
            until_answered(&nginx, &upstream, "named").await;
            for _ in 0..10 {
                assert_eq!(nginx.get(&format!("/{upstream}")).await.text(), "named");
            }
        }
    }

    // Nobody listens at the second address.
    dns.answer(&[SECOND]);
    for number in 0..balancers.len() {
        until_answered(&nginx, &format!("h{number}_1"), "other").await;
    }
    nginx.reload().await;
    dns.answer(&[FIRST]);
    for number in 0..balancers.len() {
        until_answered(&nginx, &format!("h{number}_1"), "named").await;
    }
    nginx.stop().await;
}

#[tokio::test]
async fn a_name_of_one_address_is_a_lone_server_and_one_of_two_is_not() {
    if !has_resolve().await {
        return;
    }
    let works = Arc::new(AtomicBool::new(false));
    let state = works.clone();
    let backend = Backend::each(move |_| match state.load(Ordering::SeqCst) {
        true => Reply::ok("good"),
        false => Reply::nothing(),
    })
    .await;
    let dns = Dns::answering(&[FIRST]).await;
    let address = backend.address();

    let mut config = Config::new()
        .http(&format!("resolver {} valid=1s ipv6=off;", dns.address()))
        .server(LOCATION);
    let balancers = balancers().await;
    for (number, balancer) in balancers.iter().enumerate() {
        config = config.http(&format!(
            "upstream lone{number} {{
             zone z{number} 64k;
             server name.test:{} resolve fail_timeout=2s;
             {balancer}
             extend_single_peers;
             }}",
            address.port()
        ));
    }
    let nginx = Nginx::start(config).await;
    let tried = async |number: usize| {
        let answer = nginx.get(&format!("/lone{number}")).await;
        answer.header("x-tries").unwrap_or_default().to_owned()
    };

    for number in 0..balancers.len() {
        let what = format!("lone{number} looked up and tried");
        until(&what, async || {
            (tried(number).await == address.to_string()).then_some(())
        })
        .await;
        assert_eq!(tried(number).await, format!("lone{number}"), "ejected");
    }

    works.store(true, Ordering::SeqCst);
    for number in 0..balancers.len() {
        until_answered(&nginx, &format!("lone{number}"), "good").await;
    }

    // nginx computes anew who is single: the bit does not come back for good.
    dns.answer(&[FIRST, SECOND]);
    for (number, balancer) in balancers.iter().enumerate() {
        // A hash sends all of these requests to one of them.
        if !balancer.contains("hash") {
            let what = format!("two addresses in lone{number}");
            until(&what, async || {
                tried(number).await.contains("127.0.0.2").then_some(())
            })
            .await;
        }
        until_answered(&nginx, &format!("lone{number}"), "good").await;
    }
    dns.answer(&[FIRST]);
    // nginx asks once for all upstreams. When it has asked twice more, all know the first answer.
    let before = dns.queries();
    until("names looked up again", async || {
        (dns.queries() >= before + 3).then_some(())
    })
    .await;
    works.store(false, Ordering::SeqCst);
    for number in 0..balancers.len() {
        // Where nginx keeps connections by default: once over a kept one, once over a new one.
        let tried_last = tried(number).await;
        assert!(
            tried_last
                .split(", ")
                .all(|tried| tried == address.to_string()),
            "{tried_last}"
        );
        assert_eq!(tried(number).await, format!("lone{number}"), "ejected");
    }
    nginx.stop().await;
}
