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

    # Leads to a walk, and says of which type the answer is; the member that gives the answer does not.
    upstream entry { server 127.0.0.1:$TEST_NGINX_PORT_3; }
    upstream untyped { server 127.0.0.1:$TEST_NGINX_PORT_4; }
    upstrand typed { upstream bad; upstream untyped; order per_request; next_upstream_statuses 5xx; }

    server {
        listen 127.0.0.1:$TEST_NGINX_PORT_3;
        default_type text/entry;
        add_header X-Accel-Redirect /walk;
        return 200 "entry\n";
    }
    server {
        listen 127.0.0.1:$TEST_NGINX_PORT_4;
        default_type "";
        return 200 "untyped\n";
    }

    # One location, which a variable sends through the upstrand or past it.
    map $arg_walk $where { volatile; 1 $upstrand_us; default good; }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config => $Http);
    $block->set_value(config => <<'_EOC_');
    location /target { return 200 "target\n"; }
    location /entry { proxy_pass http://entry; }
    location /walk { proxy_pass http://$upstrand_typed; }
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



=== TEST 5: what was set before a walk is there after a failed hop
--- request
GET /entry
--- response_headers
Content-Type: text/entry
--- response_body
untyped



=== TEST 6: and nothing of the failed hop is there where nothing was set
--- request
GET /walk
--- response_headers
! Content-Type
--- response_body
untyped
