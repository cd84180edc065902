# X-Accel-Redirect: ignored from a member of an upstrand, followed from any other upstream.

use Test::Nginx::Socket 'no_plan';

our $Http = <<'_EOC_';
    proxy_cache_path cache keys_zone=cache:1m;
    upstream good { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream bad { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstrand us { upstream bad; upstream good; order per_request; next_upstream_statuses 5xx; }

    server {
        listen 127.0.0.1:$TEST_NGINX_PORT_1;
        add_header X-Accel-Redirect /target;
        add_header X-Accel-Expires 3600;
        return 200 "good\n";
    }
    server {
        listen 127.0.0.1:$TEST_NGINX_PORT_2;
        add_header X-Accel-Redirect /target always;
        return 503 "bad\n";
    }

    # One location, which a variable sends through the upstrand or past it.
    map $arg_walk $where { volatile; 1 $upstrand_us; default good; }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config => $Http);
    $block->set_value(config => <<'_EOC_');
    location /target { return 200 "target\n"; }
    location /one { proxy_pass http://$where; }
    location /cached {
        proxy_pass http://$where;
        proxy_cache cache;
        proxy_cache_key one;
        proxy_cache_valid 1h;
    }
_EOC_
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: through the upstrand, then not, then through it
--- request eval
["GET /one?walk=1", "GET /one", "GET /one?walk=1"]
--- response_body eval
["good\n", "target\n", "good\n"]



=== TEST 2: the other way round
--- request eval
["GET /one", "GET /one?walk=1", "GET /one"]
--- response_body eval
["target\n", "good\n", "target\n"]



=== TEST 3: what was ignored is not put into the cache, where others might follow it
--- request eval
["GET /cached?walk=1", "GET /cached", "GET /cached?walk=1"]
--- response_body eval
["good\n", "target\n", "good\n"]



=== TEST 4: the other way round
--- request eval
["GET /cached", "GET /cached?walk=1", "GET /cached"]
--- response_body eval
["target\n", "good\n", "target\n"]
