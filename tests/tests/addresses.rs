//! Names of several addresses that nginx looks up when it reads the configuration: spec 1 to 3.

use std::net::{IpAddr, Ipv4Addr};

use harness::{Backend, Call, Config, Nginx, Reply, balancers};

const FIRST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

const LOCATION: &str = "location ~ ^/(?<upstream>\\w+) {
proxy_http_version 1.0;
add_header X-Tries $upstream_addr always;
proxy_pass http://$upstream;
}";

fn config() -> Config {
    Config::new()
        .host("two.test", FIRST)
        .host("two.test", SECOND)
        .server(LOCATION)
}

/// Whom nginx asked, in which order.
async fn tries(nginx: &Nginx, upstream: &str) -> Vec<String> {
    let answer = nginx.call(Call::get(&format!("/{upstream}"))).await;
    let tries = answer.header("x-tries").unwrap_or_default();
    tries.split(", ").map(str::to_owned).collect()
}

#[tokio::test]
async fn hosts_and_singlets_have_all_addresses_of_an_added_name() {
    let bad = Backend::answering(Reply::nothing()).await;
    let port = bad.address().port();
    let good = Backend::answering(Reply::ok("good")).await;
    let other = good.address();
    let nginx = Nginx::start(config().http(&format!(
        "upstream source {{ server two.test:{port} max_fails=0; }}
         upstream host {{ add_upstream source; server {other} backup; combine_server_singlets; }}"
    )))
    .await;

    let (first, second) = (format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}"));
    for upstream in ["host", "host1"] {
        let mut tried = tries(&nginx, upstream).await;
        assert_eq!(tried.pop(), Some(other.to_string()), "{upstream}");
        tried.sort_unstable();
        assert_eq!(tried, [first.as_str(), &second], "{upstream}");
    }

    // The singlet of the other server has the name behind it.
    let tried = tries(&nginx, "host2").await;
    assert_eq!(tried, [other.to_string()]);
    nginx.stop().await;
}

/// nginx itself ejects those: the directive has nothing to add, and takes nothing away.
#[tokio::test]
async fn a_name_of_two_addresses_is_no_lone_server() {
    let bad = Backend::answering(Reply::nothing()).await;
    let port = bad.address().port();

    let balancers = balancers().await;
    let mut config = config();
    for (number, balancer) in balancers.iter().enumerate() {
        for (name, extend) in [("plain", ""), ("extended", "extend_single_peers;")] {
            config = config.http(&format!(
                "upstream {name}{number} {{
                 server two.test:{port} fail_timeout=60s; {balancer} {extend}
                 }}"
            ));
        }
    }
    let nginx = Nginx::start(config).await;

    let both = [FIRST, SECOND].map(|address| format!("{address}:{port}"));
    for (number, balancer) in balancers.iter().enumerate() {
        for upstream in ["plain", "extended"].map(|name| format!("{name}{number}")) {
            let mut tried = tries(&nginx, &upstream).await;
            tried.sort_unstable();
            assert_eq!(tried, both, "{balancer}");

            let tried = tries(&nginx, &upstream).await;
            assert_eq!(tried, [upstream], "ejected: {balancer}");
        }
    }
    nginx.stop().await;
}
