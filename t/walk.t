# In which order the requests of a worker visit the members of an upstrand.

use Test::Nginx::Socket 'no_plan';

our $Backends = <<'_EOC_';
    upstream u1 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u2 { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream u3 { server 127.0.0.1:$TEST_NGINX_PORT_3; }
    upstream b1 { server 127.0.0.1:$TEST_NGINX_PORT_4; }
    upstream b2 { server 127.0.0.1:$TEST_NGINX_PORT_5; }

    # Each server fails with 503, b2 with 500.
    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; return 503; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_3; return 503; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_4; return 503; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_5; return 500; }
_EOC_

our $Location = <<'_EOC_';
    location /t {
        proxy_pass http://$upstrand_us;
        add_header X-Path $upstrand_path always;
    }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;
    my ($upstrand) = $block->upstrand;

    $block->set_value(http_config => "$Backends upstrand us { $upstrand }") if defined $upstrand;
    $block->set_value(config => $Location) unless defined $block->config;
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: a cursor moves on with each walk, and another one each time a walk enters the backups
--- upstrand
    upstream u1;
    upstream u2;
    upstream u3;
    upstream b1 backup;
    upstream b2 backup;
    next_upstream_statuses 5xx;
--- request eval
["GET /t", "GET /t", "GET /t", "GET /t"]
--- response_headers eval
[
    "X-Path: u1 -> u2 -> u3 -> b1 -> b2",
    "X-Path: u2 -> u3 -> u1 -> b2 -> b1",
    "X-Path: u3 -> u1 -> u2 -> b1 -> b2",
    "X-Path: u1 -> u2 -> u3 -> b2 -> b1",
]
--- error_code eval
[500, 503, 500, 503]



=== TEST 2: per_request starts at the first member
--- upstrand
    upstream u1;
    upstream u2;
    upstream b1 backup;
    upstream b2 backup;
    order per_request;
    next_upstream_statuses 5xx;
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2 -> b1 -> b2", "X-Path: u1 -> u2 -> b1 -> b2"]
--- error_code eval
[500, 500]



=== TEST 3: start_random draws the first start, and goes on in a cycle
--- upstrand
    upstream u1;
    upstream u2;
    upstream u3;
    order start_random;
    next_upstream_statuses 5xx;
--- request eval
["GET /t", "GET /t"]
--- response_headers_like eval
["X-Path: (u1 -> u2 -> u3|u2 -> u3 -> u1|u3 -> u1 -> u2)",
 "X-Path: (u1 -> u2 -> u3|u2 -> u3 -> u1|u3 -> u1 -> u2)"]
--- error_code eval
[503, 503]



=== TEST 4: only backups
--- upstrand
    upstream b1 backup;
    upstream b2 backup;
    next_upstream_statuses 5xx;
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: b1 -> b2", "X-Path: b2 -> b1"]
--- error_code eval
[500, 503]



=== TEST 5: the first response that does not fail ends a walk
--- upstrand
    upstream u1;
    upstream b2;
    upstream u2;
    order per_request;
    next_upstream_statuses 503;
--- request
GET /t
--- response_headers
X-Path: u1 -> b2
--- error_code: 500



=== TEST 6: without next_upstream_statuses nothing fails over
--- upstrand
    upstream u1;
    upstream u2;
--- request eval
["GET /t", "GET /t"]
--- response_headers eval
["X-Path: u1", "X-Path: u2"]
--- error_code eval
[503, 503]



=== TEST 7: a member listed twice in the same part counts once, in both parts twice
--- upstrand
    upstream u1;
    upstream U1;
    upstream ~^u[12];
    upstream u1 backup;
    order per_request;
    next_upstream_statuses 5xx;
--- request
GET /t
--- response_headers
X-Path: u1 -> u2 -> u1
--- error_code: 503



=== TEST 8: the variable names the current member wherever it is evaluated, and moves nothing
--- upstrand
    upstream u1;
    upstream u2;
    next_upstream_statuses 5xx;
--- config
    location /t {
        proxy_pass http://$upstrand_us;
        proxy_set_header X-Member $upstrand_us;
        add_header X-Path $upstrand_path always;
        add_header X-Member "$upstrand_us $upstrand_us" always;
    }
    location /plain {
        add_header X-Member $upstrand_us always;
        add_header X-Path "[$upstrand_path]" always;
        proxy_pass http://b2;
    }
--- request eval
["GET /t", "GET /plain", "GET /t"]
--- response_headers eval
["X-Path: u1 -> u2\r\nX-Member: u2 u2", "X-Path: []\r\nX-Member: u2", "X-Path: u1 -> u2\r\nX-Member: u2 u2"]
--- error_code eval
[503, 500, 503]



=== TEST 9: names compare without regard to case, in upstrands as in upstreams
--- http_config eval
"$::Backends upstrand US { upstream U1; upstream u2; next_upstream_statuses 5xx; }"
--- request
GET /t
--- response_headers
X-Path: u1 -> u2
--- error_code: 503
