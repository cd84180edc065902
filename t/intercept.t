# intercept_statuses: the final response of a walk is replaced by what a failover location produces.

use Test::Nginx::Socket 'no_plan';

our $Backends = <<'_EOC_';
    upstream u1 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u2 { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream good { server 127.0.0.1:$TEST_NGINX_PORT_3; }

    server {
        listen 127.0.0.1:$TEST_NGINX_PORT_1;
        add_header X-Failed u1 always;
        return 503 "failed\n";
    }
    server {
        listen 127.0.0.1:$TEST_NGINX_PORT_2;
        add_header X-Failed u2 always;
        return 404 "not here\n";
    }
    server {
        listen 127.0.0.1:$TEST_NGINX_PORT_3;
        location / { return 200 "good $request_method $request_uri\n"; }
        location /accel { add_header X-Accel-Redirect /plain; return 200 "accel\n"; }
    }
    upstrand v { upstream good; }
_EOC_

our $Locations = <<'_EOC_';
    log_subrequest on;
    location /t { proxy_pass http://$upstrand_us; }
    location /plain { return 200 "plain $request_method $args\n"; }
    location /teapot { return 418; }
    location = /proxied { proxy_pass http://good; }
    location = /walks { proxy_pass http://$upstrand_v; }
    location = /again { proxy_pass http://$upstrand_us; }
    location /accel { proxy_pass http://good; }
    location /errors { error_page 418 =200 /plain; return 418; }
    location /files { try_files /none.txt /file.txt =404; }
    location /rewritten { rewrite ^ /plain?rewritten last; }
    location @named { return 200 "named $request_method\n"; }
    location @proxied { proxy_pass http://good; }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;
    my $upstrand = $block->upstrand // 'upstream u1;';

    $block->set_value(http_config =>
        "$Backends upstrand us { $upstrand order per_request; next_upstream_statuses 5xx; }
         log_format path '[\$upstrand_path] [\$upstrand_status]';");
    $block->set_value(config => "access_log logs/path.log path; $Locations");
    $block->set_value(user_files => ">>> file.txt\nfile\n");
    $block->set_value(request => 'GET /t?a=b') unless defined $block->request;
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: a path; nothing of the failed response is left
--- upstrand
    upstream u1;
    intercept_statuses 5xx /plain;
--- response_body
plain GET 
--- response_headers
X-Failed:
--- error_log
upstrand "us": upstream "u1" failed with 503, no more upstreams
upstrand "us": intercepted by "/plain"



=== TEST 2: a path with arguments
--- upstrand
    upstream u1;
    intercept_statuses 5xx /plain?x=y;
--- response_body
plain GET x=y



=== TEST 3: variables
--- upstrand
    upstream u1;
    intercept_statuses 5xx /pl$arg_z?$args;
--- request
GET /t?z=ain
--- response_body
plain GET z=ain



=== TEST 4: a variable alone
--- upstrand
    upstream u1;
    intercept_statuses 5xx $arg_to;
--- request
GET /t?to=/plain
--- response_body
plain GET 



=== TEST 5: a variable that is no URI leaves the response as it is
--- upstrand
    upstream u1;
    intercept_statuses 5xx $arg_to;
--- request
GET /t?to=plain
--- error_code: 503
--- response_body
failed
--- error_log
upstrand "us": invalid uri "plain" to intercept a response



=== TEST 6: a named location
--- upstrand
    upstream u1;
    intercept_statuses 5xx @named;
--- response_body
named GET



=== TEST 7: a named location keeps the method
--- upstrand
    upstream u1;
    next_upstream_statuses non_idempotent;
    intercept_statuses 5xx @proxied;
--- request
POST /t
body
--- response_body
good POST /t



=== TEST 8: for a path the method becomes GET
--- upstrand
    upstream u1;
    intercept_statuses 5xx /plain;
--- request
POST /t
body
--- response_body
plain GET 



=== TEST 9: a static file, also for a POST
--- upstrand
    upstream u1;
    intercept_statuses 5xx /file.txt;
--- request
POST /t
body
--- response_body
file



=== TEST 10: try_files
--- upstrand
    upstream u1;
    intercept_statuses 5xx /files;
--- response_body
file



=== TEST 11: a rewrite
--- upstrand
    upstream u1;
    intercept_statuses 5xx /rewritten;
--- response_body
plain GET rewritten



=== TEST 12: error_page inside
--- upstrand
    upstream u1;
    intercept_statuses 5xx /errors;
--- response_body
plain GET 



=== TEST 13: the location's own status is the client's
--- upstrand
    upstream u1;
    intercept_statuses 5xx /teapot;
--- error_code: 418
--- response_body_unlike: failed



=== TEST 14: a plain proxy_pass
--- upstrand
    upstream u1;
    intercept_statuses 5xx /proxied;
--- response_body
good GET /proxied



=== TEST 15: X-Accel-Redirect from there is followed
--- upstrand
    upstream u1;
    intercept_statuses 5xx /accel?x;
--- response_body
plain GET 



=== TEST 16: another upstrand
--- upstrand
    upstream u1;
    intercept_statuses 5xx /walks;
--- response_body
good GET /walks



=== TEST 17: a location that comes back to the same upstrand gets its response as it is
--- upstrand
    upstream u1;
    intercept_statuses 5xx /again;
--- error_code: 503
--- response_body
failed
--- grep_error_log: intercepted by
--- grep_error_log_out
intercepted by



=== TEST 18: a HEAD stays a HEAD
--- upstrand
    upstream u1;
    intercept_statuses 5xx /plain;
--- request
HEAD /t
--- response_headers
Content-Length: 12
--- response_body



=== TEST 19: a response that is no failure of a hop
--- upstrand
    upstream u2;
    intercept_statuses 404 /plain;
--- response_body
plain GET 
--- no_error_log
failed with



=== TEST 20: the first line that matches wins
--- upstrand
    upstream u1;
    intercept_statuses 404 /plain?404;
    intercept_statuses 503 /plain?503;
    intercept_statuses 5xx /plain?5xx;
--- response_body
plain GET 503



=== TEST 21: other statuses are left alone
--- upstrand
    upstream u1;
    intercept_statuses 404 500 /plain;
--- error_code: 503
--- response_body
failed



=== TEST 22: error, which is only what nginx made
--- upstrand
    upstream u1;
    intercept_statuses error timeout /plain;
--- error_code: 503
--- response_body
failed



=== TEST 23: after as many tries as are allowed
--- upstrand
    upstream u1;
    upstream good;
    next_upstream_tries 1;
    intercept_statuses 5xx /plain;
--- response_body
plain GET 
--- error_log
upstrand "us": upstream "u1" failed with 503, tries exhausted
upstrand "us": intercepted by "/plain"



=== TEST 24: after a request that may not be repeated
--- upstrand
    upstream u1;
    upstream good;
    intercept_statuses 5xx /plain;
--- request
POST /t
body
--- response_body
plain GET 
--- error_log
upstrand "us": upstream "u1" failed with 503, not idempotent
upstrand "us": intercepted by "/plain"
