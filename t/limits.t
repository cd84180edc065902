# How long and how far a walk goes, and which members it leaves out.

use Test::Nginx::Socket 'no_plan';

our $Backends = <<'_EOC_';
    upstream u1 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u2 { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream u3 { server 127.0.0.1:$TEST_NGINX_PORT_3; }

    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; return 503; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_3; return 200 "good\n"; }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;
    my $lines = $block->upstrand;

    $block->set_value(http_config =>
        "$Backends upstrand us { $lines next_upstream_statuses error timeout 5xx; }");
    $block->set_value(config => <<'_EOC_');
    location /t {
        proxy_pass http://$upstrand_us;
        add_header X-Path $upstrand_path always;
    }
_EOC_
    $block->set_value(request => 'GET /t') unless defined $block->request;
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: no more hops than next_upstream_tries
--- upstrand
    upstream u1;
    upstream u2;
    upstream u3;
    next_upstream_tries 2;
--- response_headers
X-Path: u1 -> u2
--- error_code: 503
--- error_log
upstrand "us": upstream "u1" failed with 503, trying "u2"
upstrand "us": upstream "u2" failed with 503, tries exhausted



=== TEST 2: 0 is no limit
--- upstrand
    upstream u1;
    upstream u2;
    upstream u3;
    next_upstream_tries 0;
    next_upstream_timeout 0;
--- response_headers
X-Path: u1 -> u2 -> u3



=== TEST 3: a member that failed is left out for its interval
--- upstrand
    upstream u1 blacklist_interval=1h;
    upstream u2 blacklist_interval=1h;
    upstream u3;
    order per_request;
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2 -> u3", "X-Path: u3"]



=== TEST 4: a member without an interval stays
--- upstrand
    upstream u1;
    upstream u2 blacklist_interval=1h;
    upstream u3;
    order per_request;
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2 -> u3", "X-Path: u1 -> u3"]



=== TEST 5: the member that fails last is blacklisted like any other
--- upstrand
    upstream u1 blacklist_interval=1h;
    upstream u2 blacklist_interval=1h;
    upstream u3 backup;
    next_upstream_tries 2;
    order per_request;
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u3"]
--- error_code eval
[503, 200]



=== TEST 6: a failed hop blacklists its member also where its response is final
--- upstrand
    upstream u1 blacklist_interval=1h;
    upstream u3;
    order per_request;
--- request eval
["POST /t\r\nbody", "POST /t\r\nbody"]
--- response_headers eval
["X-Path: u1", "X-Path: u3"]
--- error_code eval
[503, 200]



=== TEST 7: when all are blacklisted, all come back, and the walk goes through all of them
--- upstrand
    upstream u1 blacklist_interval=1h;
    upstream u2 blacklist_interval=1h;
    order per_request;
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2", "X-Path: u1 -> u2"]
--- error_code eval
[503, 503]



=== TEST 8: include
--- upstrand
    include $TEST_NGINX_SERVER_ROOT/html/members.conf;
    order per_request;
--- user_files
>>> members.conf
upstream u2;
upstream u3;
--- response_headers
X-Path: u2 -> u3
