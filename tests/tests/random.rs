//! nginx's `random` above a lone main server: from 1.27.3 on plain nginx reads beyond its table once
//! that server and then a backup one have failed in a request. Spec 1: the host starts and serves.

use harness::{Backend, Call, Config, Nginx, Reply};

const LOCATION: &str = "location ~ ^/(?<upstream>\\w+) { proxy_pass http://$upstream; }";

#[tokio::test]
async fn a_lone_main_server_hands_over_to_added_backups() {
    let bad = Backend::answering(Reply::nothing()).await;
    let good = Backend::answering(Reply::ok("good")).await;
    let (main, dead, live) = (bad.address(), bad.address(), good.address());

    let mut config = Config::new()
        .http(&format!(
            "upstream backups {{ server {dead} max_fails=0; server {dead} max_fails=0; server {live}; }}"
        ))
        .server(LOCATION);
    let mut names = Vec::new();
    for (number, balancer) in ["random;", "random two;"].iter().enumerate() {
        for (place, zone) in ["", "zone NAME 64k;"].iter().enumerate() {
            for (kept, keepalive) in ["", "keepalive 4;"].iter().enumerate() {
                let name = format!("u{number}{place}{kept}");
                let zone = zone.replace("NAME", &name);
                let lines = format!(
                    "server {main} max_fails=0; add_upstream backups backup; {balancer} {keepalive}"
                );
                config = config.http(&format!("upstream {name} {{ {zone} {lines} }}"));
                names.push(name);
            }
        }
    }

    let nginx = Nginx::start(config).await;
    let mut client = nginx.http1().await;
    for name in &names {
        for _ in 0..30 {
            let answer = client.call(&Call::get(&format!("/{name}"))).await;
            assert_eq!(answer.text(), "good", "{name}");
        }
    }
    drop(client);
    nginx.stop().await;
}
