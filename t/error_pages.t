# error_page and proxy_intercept_errors do not act on a walk; with intercept_errors they act on its
# final response as if there were no upstrand.

use Test::Nginx::Socket 'no_plan';

our $Http = <<'_EOC_';
    upstream u1 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u2 { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream dead { server 127.0.0.1:$TEST_NGINX_PORT_9; }
    upstream locked { server 127.0.0.1:$TEST_NGINX_PORT_3; }

    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503 "failed\n"; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; return 404 "not here\n"; }
    server {
        listen 127.0.0.1:$TEST_NGINX_PORT_3;
        add_header WWW-Authenticate 'Basic realm="r"' always;
        return 401 "locked\n";
    }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config =>
        "$Http upstrand us { " . $block->upstrand . " order per_request; next_upstream_statuses 5xx; }");
    $block->set_value(config => <<'_EOC_');
    location /page { return 200 "page $uri\n"; }

    location /t {
        error_page 404 502 503 =200 /page;
        proxy_pass http://$upstrand_us;
    }
    location /intercept {
        proxy_intercept_errors on;
        error_page 404 502 503 =200 /page;
        proxy_pass http://$upstrand_us;
    }
    location /locked {
        proxy_intercept_errors on;
        error_page 401 /page;
        proxy_pass http://$upstrand_us;
    }
    location /again {
        error_page 502 = @walk;
        proxy_pass http://dead;
    }
    location @walk { proxy_pass http://$upstrand_us; }
_EOC_
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: by default the final response comes as it is
--- upstrand
    upstream u1;
    upstream u2;
--- request
GET /t
--- response_body
not here
--- error_code: 404



=== TEST 2: also one that nginx made
--- upstrand
    upstream u1;
    upstream dead;
--- request
GET /t
--- response_body_like: 502 Bad Gateway
--- error_code: 502



=== TEST 3: where proxy_intercept_errors and error_page match, it is nginx's stock page
--- upstrand
    upstream u1;
    upstream u2;
--- request
GET /intercept
--- response_body_like: 404 Not Found
--- error_code: 404



=== TEST 4: intercept_errors: an error page for what nginx made
--- upstrand
    upstream u1;
    upstream dead;
    intercept_errors on;
--- request
GET /t
--- response_body
page /page



=== TEST 5: but not for a backend's answer, as anywhere
--- upstrand
    upstream dead;
    upstream u2;
    intercept_errors on;
--- request
GET /t
--- response_body
not here
--- error_code: 404



=== TEST 6: unless proxy_intercept_errors is on
--- upstrand
    upstream u1;
    upstream u2;
    intercept_errors on;
--- request
GET /intercept
--- response_body
page /page



=== TEST 7: the challenge of a 401 survives
--- upstrand
    upstream u1;
    upstream locked;
    intercept_errors on;
--- request
GET /locked
--- response_headers
WWW-Authenticate: Basic realm="r"
--- response_body
page /page
--- error_code: 401



=== TEST 8: none acts before the walk has ended
--- upstrand
    upstream dead;
    upstream u1;
    upstream u2;
    intercept_errors on;
--- request
GET /t
--- response_body
not here
--- error_code: 404



=== TEST 9: a walk in a location that an error page leads to keeps the status of the error page
--- upstrand
    upstream u1;
    upstream u2;
--- request
GET /again
--- response_body
not here
--- error_code: 404
