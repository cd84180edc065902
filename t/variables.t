# The variables that show the walks of a request. Times are tested with the module's pure code.

use Test::Nginx::Socket 'no_plan';

our $Backends = <<'_EOC_';
    upstream u1 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u2 { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream two { server 127.0.0.1:$TEST_NGINX_PORT_9 max_fails=0; server 127.0.0.1:$TEST_NGINX_PORT_1; }

    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503 "failed\n"; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; return 200 "good\n"; }

    upstrand us { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; }
    upstrand ok { upstream u2; }
    upstrand more { upstream two; upstream u2; order per_request; next_upstream_statuses 5xx; }
    upstrand caught { upstream u1; next_upstream_statuses 5xx; intercept_statuses 5xx /done; }
    upstrand proxied { upstream u1; next_upstream_statuses 5xx; intercept_statuses 5xx /plain; }
    upstrand tiers { upstream u1; next_upstream_statuses 5xx; intercept_statuses 5xx /us; }

    proxy_cache_path cache keys_zone=cache:1m;
_EOC_

our $Locations = <<'_EOC_';
    add_header X-Path            "$upstrand_path" always;
    add_header X-Status          "[$upstrand_status]" always;
    add_header X-Addr            "[$upstrand_addr]" always;
    add_header X-Cache           "[$upstrand_cache_status]" always;
    add_header X-Length          "[$upstrand_response_length]" always;
    add_header X-Header-Time     "[$upstrand_header_time]" always;
    add_header X-Connect-Time    "[$upstrand_connect_time]" always;
    add_header X-Response-Time   "[$upstrand_response_time]" always;
    add_header X-Upstream-Status "[$upstream_status]" always;

    location /us      { proxy_pass http://$upstrand_us; }
    location /ok      { proxy_pass http://$upstrand_ok; }
    location /more    { proxy_pass http://$upstrand_more; }
    location /caught  { proxy_pass http://$upstrand_caught; }
    location /proxied { proxy_pass http://$upstrand_proxied; }
    location /tiers   { proxy_pass http://$upstrand_tiers; }
    location /plain   { proxy_pass http://u2; }
    location /done    { return 200 "done\n"; }
    location /cached  {
        proxy_pass http://$upstrand_us;
        proxy_cache cache;
        proxy_cache_key $uri;
        proxy_cache_valid 200 1h;
    }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config => $Backends);
    $block->set_value(config => $Locations);
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: each hop with its name
--- request
GET /us
--- response_headers eval
"X-Path: u1 -> u2
X-Status: [(u1) 503 (u2) 200]
X-Addr: [(u1) 127.0.0.1:$ENV{TEST_NGINX_PORT_1} (u2) 127.0.0.1:$ENV{TEST_NGINX_PORT_2}]
X-Cache: [(u1)  (u2) ]
X-Upstream-Status: [503 : 200]"
--- response_headers_like
X-Length: \[\(u1\) 0 \(u2\) 0\]
X-Header-Time: \[\(u1\) 0\.\d\d\d \(u2\) 0\.\d\d\d\]
X-Connect-Time: \[\(u1\) 0\.\d\d\d \(u2\) 0\.\d\d\d\]
X-Response-Time: \[\(u1\) 0\.\d\d\d \(u2\) -\]



=== TEST 2: one hop
--- request
GET /ok
--- response_headers
X-Path: u2
X-Status: [(u2) 200]



=== TEST 3: several servers of a hop, in nginx's own form
--- request
GET /more
--- response_headers
X-Path: two -> u2
X-Status: [(two) 502, 503 (u2) 200]
X-Upstream-Status: [502, 503 : 200]
--- response_headers_like
X-Connect-Time: \[\(two\) -, 0\.\d\d\d \(u2\) 0\.\d\d\d\]



=== TEST 4: no hop, no value
--- request
GET /plain
--- response_headers
X-Path: 
X-Status: []
X-Upstream-Status: [200]



=== TEST 5: an intercepted response
--- request
GET /caught
--- response_headers
X-Path: u1 -> <intercepted>
X-Status: [(u1) 503 (<intercepted>) ]
X-Cache: [(u1)  (<intercepted>) ]
X-Upstream-Status: [503]



=== TEST 6: a failover location that proxies plainly
--- request
GET /proxied
--- response_headers
X-Path: u1 -> <intercepted>
X-Status: [(u1) 503 (<intercepted>) 200]
X-Upstream-Status: [503 : 200]



=== TEST 7: a failover location that enters another upstrand
--- request
GET /tiers
--- response_headers
X-Path: u1 -> <intercepted> -> u1 -> u2
X-Status: [(u1) 503 (<intercepted>)  (u1) 503 (u2) 200]
X-Upstream-Status: [503 : 503 : 200]



=== TEST 8: a hop that the cache answers
--- request eval
["GET /cached", "GET /cached"]
--- response_headers eval
[
    "X-Path: u1 -> u2\r\nX-Status: [(u1) 503 (u2) 200]\r\nX-Cache: [(u1) MISS (u2) MISS]",
    "X-Path: u1\r\nX-Status: [(u1) ]\r\nX-Cache: [(u1) HIT]",
]
