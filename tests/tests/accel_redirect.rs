//! X-Accel-Redirect from gateways: ignored from a member of an upstrand, followed from any other
//! upstream, in one location and whatever came before. Spec 4.3; for HTTP/1 see t/accel_redirect.t.

use harness::{Backend, Config, Nginx, Protocol, Reply};

/// What a request gets that asks for a walk, and one that does not.
const WALK: (&str, &str) = ("?walk=1", "good");
const PLAIN: (&str, &str) = ("", "target");

/// An nginx whose location `/one` a variable sends through the upstrand or past it; what stands in
/// `cached` holds for `/cached`, which else does the same.
async fn check(protocol: Protocol, directives: &str, cached: Option<&str>) {
    let redirect = |reply: Reply| {
        move |_: &_| {
            let reply = reply.clone().header("X-Accel-Redirect", "/target");
            reply.header("X-Accel-Expires", "3600")
        }
    };
    let bad = Backend::speaking(protocol, redirect(Reply::status(503).body("bad"))).await;
    let good = Backend::speaking(protocol, redirect(Reply::ok("good"))).await;
    let config = Config::upstrand([&bad, &good])
        .http("map $arg_walk $where { volatile; 1 $upstrand_us; default u2; }")
        .server("location /target { return 200 target; }")
        .server(&format!("location /one {{ {directives} }}"));
    let config = match cached {
        Some(cached) => config
            .http(&format!("{cached}_path cache keys_zone=c:1m;"))
            .server(&format!(
                "location /cached {{ {directives} {cached} c; {cached}_key one; {cached}_valid 1h; }}"
            )),
        None => config,
    };
    let paths = match cached {
        Some(_) => &["/one", "/cached"][..],
        None => &["/one"][..],
    };

    for path in paths {
        for order in [[WALK, PLAIN, WALK], [PLAIN, WALK, PLAIN]] {
            let nginx = Nginx::start(config.clone()).await;
            for (arguments, expected) in order {
                let answer = nginx.get(&format!("{path}{arguments}")).await;
                assert_eq!(answer.text(), expected, "{path}{arguments} in {order:?}");
            }
            nginx.stop().await;
        }
    }
}

#[tokio::test]
async fn fastcgi() {
    let directives = "fastcgi_param REQUEST_METHOD $request_method; fastcgi_pass $where;";
    check(Protocol::Fastcgi, directives, Some("fastcgi_cache")).await;
}

#[tokio::test]
async fn uwsgi() {
    let directives = "uwsgi_param REQUEST_METHOD $request_method; uwsgi_pass $where;";
    check(Protocol::Uwsgi, directives, Some("uwsgi_cache")).await;
}

#[tokio::test]
async fn scgi() {
    let directives = "scgi_param REQUEST_METHOD $request_method; scgi_pass $where;";
    check(Protocol::Scgi, directives, Some("scgi_cache")).await;
}

#[tokio::test]
async fn grpc() {
    check(Protocol::Http2, "grpc_pass grpc://$where;", None).await;
}
