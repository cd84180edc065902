//! What singlets share with their host, and what the host keeps: spec 2.

use std::collections::BTreeMap;

use harness::{Backend, Call, Config, Http1, Nginx, Reply, balancers, has_upstream_line};

/// What `proxy_pass` needs to keep connections to servers.
const LOCATION: &str = "keepalive_requests 1000000;
location / {
proxy_http_version 1.1;
proxy_set_header Connection '';
proxy_pass http://$arg_u;
}";

async fn named(name: &'static str) -> Backend {
    Backend::answering(Reply::ok(name)).await
}

async fn three() -> [Backend; 3] {
    [named("a").await, named("b").await, named("c").await]
}

fn servers(backends: &[Backend]) -> String {
    backends
        .iter()
        .map(|backend| format!("server {};\n", backend.address()))
        .collect()
}

/// Who answers so many requests to an upstream, one after the other on one connection.
async fn ask(client: &mut Http1, upstream: &str, count: usize) -> Vec<String> {
    let mut answers = Vec::new();
    for number in 0..count {
        let call = Call::get(&format!("/{number}?u={upstream}"));
        answers.push(client.call(&call).await.text());
    }
    answers
}

fn connections(backends: &[Backend]) -> usize {
    backends.iter().map(Backend::connections).sum()
}

/// The variants of a host for one balancer: `keepalive` above and below the directive, with and
/// without `zone`.
fn variants(balancer: &str, name: &str, servers: &str) -> Vec<(String, String)> {
    let orders = [
        format!("{balancer} keepalive 8; COMBINE"),
        format!("{balancer} COMBINE keepalive 8;"),
        format!("COMBINE {balancer} keepalive 8;"),
    ];

    let mut variants = Vec::new();
    for (order, lines) in orders.iter().enumerate() {
        for zone in [false, true] {
            let name = format!("{name}_{order}_{zone}_");
            let zone = if zone {
                format!("zone {name} 64k;")
            } else {
                String::new()
            };
            let lines = lines.replace("COMBINE", "combine_server_singlets;");
            let text = format!(
                "upstream {name} {{\n{zone}\nkeepalive_requests 100000;\n{servers}{lines}\n}}\n"
            );
            variants.push((name, text));
        }
    }
    variants
}

#[tokio::test]
async fn a_thousand_requests_open_no_more_connections_than_through_the_host() {
    let backends = three().await;
    let servers = servers(&backends);

    let mut upstreams = String::new();
    let mut cases = Vec::new();
    for (number, balancer) in balancers().await.into_iter().enumerate() {
        for role in ["host", "singlet"] {
            // The host does the same in all of them.
            let count = if role == "host" { 1 } else { usize::MAX };
            let variants = variants(balancer, &format!("{role}{number}"), &servers);
            for (name, text) in variants.into_iter().take(count) {
                upstreams += &text;
                cases.push((balancer, role, name));
            }
        }
    }
    let config = Config::new()
        .http(&upstreams)
        .http("access_log off;")
        .server(LOCATION);
    let nginx = Nginx::start(config).await;
    let mut client = nginx.http1().await;

    for (balancer, role, name) in cases {
        let before = connections(&backends);
        // A host's servers share its kept connections; each of them may have opened one.
        let (upstream, most) = match role {
            "host" => (name.clone(), 3),
            _ => (format!("{name}2"), 1),
        };
        let answers = ask(&mut client, &upstream, 1_000).await;
        let opened = connections(&backends) - before;
        assert!(
            opened <= most,
            "{upstream} ({balancer}): {opened} connections"
        );

        if role == "singlet" {
            assert!(
                answers.iter().all(|answer| answer == "b"),
                "{upstream} ({balancer})"
            );

            // What the singlet opened, the host uses, and the other way round.
            ask(&mut client, &name, 300).await;
            for singlet in 1..=3 {
                ask(&mut client, &format!("{name}{singlet}"), 10).await;
            }
            let opened = connections(&backends) - before;
            assert!(opened <= 3, "{name} ({balancer}): {opened} connections");
        }
    }
    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn without_the_keepalive_line_singlets_do_what_the_host_does() {
    let backends = three().await;
    let servers = servers(&backends);
    let config = Config::new()
        .http(&format!(
            "upstream first {{ {servers} combine_server_singlets; }}"
        ))
        .http(&format!(
            "upstream second {{ {servers} combine_server_singlets; }}"
        ))
        .server(LOCATION);
    let nginx = Nginx::start(config).await;
    let mut client = nginx.http1().await;

    ask(&mut client, "first", 100).await;
    let through_host = connections(&backends);
    ask(&mut client, "second1", 100).await;
    let through_singlet = connections(&backends) - through_host;

    // nginx keeps connections by default from 1.29.7 on.
    println!(
        "100 requests: {through_host} connections by the host, {through_singlet} by a singlet"
    );
    assert!(matches!(through_host, 3 | 100));
    assert_eq!(through_singlet, if through_host == 3 { 1 } else { 100 });

    if through_host == 3 {
        ask(&mut client, "second", 100).await;
        assert_eq!(connections(&backends) - through_host, 3);
    }
    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn the_host_serves_as_if_it_had_no_singlets() {
    let backends = three().await;
    let [a, b, c] = backends.each_ref().map(Backend::address);
    let servers = format!("server {a} weight=3;\nserver {b} weight=2;\nserver {c};\n");
    let balancers = balancers().await;

    let mut config = Config::new().server(LOCATION);
    for (number, balancer) in balancers.iter().enumerate() {
        config = config
            .http(&format!(
                "upstream plain{number} {{ {servers} {balancer} }}"
            ))
            .http(&format!(
                "upstream host{number}_ {{ {servers} {balancer} combine_server_singlets; }}"
            ));
    }
    let nginx = Nginx::start(config).await;
    let mut client = nginx.http1().await;

    for (number, balancer) in balancers.iter().enumerate() {
        let (plain, host) = (format!("plain{number}"), format!("host{number}_"));
        // Singlets in between change nothing.
        let mut answers = Vec::new();
        for round in 0..60 {
            for upstream in [&plain, &host, &format!("{host}1"), &format!("{host}3")] {
                let call = Call::get(&format!("/{round}?u={upstream}"));
                answers.push((upstream.clone(), client.call(&call).await.text()));
            }
        }
        let of = |upstream: &str| -> Vec<_> {
            answers
                .iter()
                .filter(|(asked, _)| asked == upstream)
                .map(|(_, answer)| answer.clone())
                .collect()
        };

        if balancer.starts_with("random") || balancer.starts_with("least_time") {
            assert_eq!(shares(&of(&host)).len(), 3, "{balancer}");
        } else {
            assert_eq!(of(&host), of(&plain), "{balancer}");
        }
        assert_eq!(of(&format!("{host}1")), vec!["a"; 60], "{balancer}");
        assert_eq!(of(&format!("{host}3")), vec!["c"; 60], "{balancer}");
    }
    drop(client);
    nginx.stop().await;
}

fn shares(answers: &[String]) -> BTreeMap<&str, usize> {
    let mut shares = BTreeMap::new();
    for answer in answers {
        *shares.entry(answer.as_str()).or_default() += 1;
    }
    shares
}

#[tokio::test]
async fn when_the_active_server_fails_the_others_serve_and_without_backup_none() {
    let backends = [
        Backend::refusing(),
        named("b").await,
        Backend::refusing(),
        named("d").await,
    ];
    let servers = servers(&backends);
    let balancers = balancers().await;

    let mut config = Config::new().server(LOCATION);
    for (number, balancer) in balancers.iter().enumerate() {
        for zone in [String::new(), format!("zone z{number} 64k;")] {
            let name = format!("h{number}{}_", if zone.is_empty() { "" } else { "z" });
            let always_tried = servers.replace(';', " max_fails=0;");
            config = config.http(&format!(
                "upstream tried_{name} {{ {} {always_tried} {balancer} combine_server_singlets; }}",
                zone.replace("zone z", "zone tried"),
            ));
            config = config.http(&format!(
                "upstream {name} {{ {zone} {servers} {balancer}
                 combine_server_singlets; combine_server_singlets down nobackup; }}"
            ));
        }
    }
    let nginx = Nginx::start(config).await;
    let mut client = nginx.http1().await;

    for (number, balancer) in balancers.iter().enumerate() {
        for name in [format!("h{number}_"), format!("h{number}z_")] {
            let mut answers =
                async |singlet: &str| ask(&mut client, &format!("{name}{singlet}"), 40).await;
            for singlet in ["1", "3"] {
                // In turn, but for the requests that find out which servers fail.
                let answers = answers(singlet).await;
                let shares = shares(&answers);
                assert!(
                    shares.len() == 2 && shares["b"].abs_diff(shares["d"]) <= 4,
                    "{name}{singlet} {balancer}: {shares:?}"
                );
            }
            for (singlet, server) in [("2", "b"), ("4", "d"), ("down2", "b"), ("down4", "d")] {
                assert_eq!(
                    answers(singlet).await,
                    vec![server; 40],
                    "{name}{singlet} {balancer}"
                );
            }
            let tried = ask(&mut client, &format!("tried_{name}1"), 40).await;
            assert_eq!(
                shares(&tried).into_keys().collect::<Vec<_>>(),
                ["b", "d"],
                "{name} {balancer}"
            );

            let down = client.call(&Call::get(&format!("/?u={name}down1"))).await;
            assert_eq!(down.status, 502, "{name} {balancer}");
        }
    }
    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn zones_survive_reloads_under_several_workers() {
    let backends = three().await;
    let servers = servers(&backends);

    let mut config = Config::new().workers(2).server(LOCATION);
    let balancers = balancers().await;
    for (number, balancer) in balancers.iter().enumerate() {
        config = config.http(&format!(
            "upstream h{number}_ {{ zone z{number} 64k; {servers} {balancer} combine_server_singlets; keepalive 2; }}"
        ));
    }
    let nginx = Nginx::start(config).await;

    for _ in 0..3 {
        for number in 0..balancers.len() {
            let mut client = nginx.http1().await;
            ask(&mut client, &format!("h{number}_"), 6).await;
            assert_eq!(
                ask(&mut client, &format!("h{number}_3"), 6).await,
                vec!["c"; 6]
            );
        }
        nginx.reload().await;
    }
    nginx.stop().await;
}

#[tokio::test]
async fn zones_as_small_as_may_be_hold_singlets_too() {
    // As many servers as fit into the host's own zone.
    let mut fits = 0;
    for count in (1..).map(|step| step * 4) {
        let servers: String = (1..=count)
            .map(|port| format!("server 127.0.0.1:{port};\n"))
            .collect();
        let config = Config::new().http(&format!("upstream h {{ zone z 32k; {servers} }}"));
        if Nginx::test(&config).await.code != Some(0) {
            break;
        }
        fits = count;
    }
    println!("{fits} servers fit into 32k");

    let suffix = "s".repeat(500);
    let servers: String = (1..=fits)
        .map(|port| format!("server 127.0.0.1:{port};\n"))
        .collect();
    let config = Config::new().http(&format!(
        "upstream h {{ zone z 32k; {servers} combine_server_singlets; combine_server_singlets {suffix} nobackup; }}"
    ));
    let verdict = Nginx::test(&config).await;
    assert_eq!(verdict.code, Some(0), "{}", verdict.stderr);
}

#[tokio::test]
async fn singlets_are_sticky_where_their_host_is() {
    if !has_upstream_line("sticky cookie id;").await {
        println!("this nginx has no sticky");
        return;
    }
    let backends = three().await;
    let servers = servers(&backends);
    let config = Config::new()
        .http(&format!("upstream h {{ zone z 64k; {servers} sticky cookie id; combine_server_singlets; keepalive 4; }}"))
        .server(LOCATION);
    let nginx = Nginx::start(config).await;

    let mut cookies = Vec::new();
    for (number, server) in [(1, "a"), (2, "b"), (3, "c")] {
        let answer = nginx.get(&format!("/?u=h{number}")).await;
        assert_eq!(answer.text(), server);
        let cookie = answer
            .header("set-cookie")
            .expect("a sticky answer")
            .to_owned();
        cookies.push((cookie, server));
    }
    for (cookie, server) in cookies {
        let call = Call::get("/?u=h").header("Cookie", &cookie);
        for _ in 0..5 {
            assert_eq!(nginx.call(call.clone()).await.text(), server);
        }
    }
    nginx.stop().await;
}

#[tokio::test]
async fn upstrands_walk_through_singlets() {
    let (bad, good) = (
        Backend::answering(Reply::status(503)).await,
        named("good").await,
    );
    let config = Config::new()
        .http(&format!(
            "upstream h {{ server {}; server {}; combine_server_singlets _s_ nobackup; keepalive 4; }}",
            bad.address(),
            good.address()
        ))
        .http("upstrand us { upstream ~^h_s_ blacklist_interval=60s; order per_request; next_upstream_statuses 5xx; }")
        .server(
            "location / { proxy_http_version 1.1; proxy_set_header Connection '';
             add_header X-Path $upstrand_path; proxy_pass http://$upstrand_us; }",
        );
    let nginx = Nginx::start(config).await;

    let first = nginx.get("/").await;
    assert_eq!(
        (first.text().as_str(), first.header("x-path")),
        ("good", Some("h_s_1 -> h_s_2"))
    );
    for _ in 0..20 {
        assert_eq!(nginx.get("/").await.header("x-path"), Some("h_s_2"));
    }
    assert_eq!((bad.connections(), good.connections()), (1, 1));
    nginx.stop().await;
}
