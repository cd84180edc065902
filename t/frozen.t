# A variable whose value was kept cannot follow a walk; the log says so, once in a request.

use Test::Nginx::Socket 'no_plan';

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config => <<'_EOC_');
    upstream u01 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u02 { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; location / { return 503 "failed\n"; } location /ok { return 200 "ok\n"; } }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; return 200 "good\n"; }
    upstrand a { upstream u01; upstream u02; order per_request; next_upstream_statuses 5xx; }
    map $uri $kept { default $upstrand_a; }
    map $uri $followed { volatile; default $upstrand_a; }
_EOC_
    $block->set_value(config => <<'_EOC_');
    location /set      { set $z $upstrand_a; proxy_pass http://$z; }
    location /ok       { set $z $upstrand_a; proxy_pass http://$z; }
    location /map      { proxy_pass http://$kept; }
    location /label    { proxy_pass http://$upstrand_a; proxy_set_header X-Label $kept; }
    location /looked   { set $z $kept; proxy_pass http://$kept; }
    location /followed { proxy_pass http://$followed; }
    location /beside   { proxy_set_header X-Member $upstrand_a; proxy_pass http://u01; }
_EOC_
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: set
--- request
GET /set
--- response_body
failed
--- error_code: 503
--- grep_error_log: upstrand "a": no failover from "u01", its variable is kept by "set" or "map"
--- grep_error_log_out
upstrand "a": no failover from "u01", its variable is kept by "set" or "map"
--- error_log
[warn]



=== TEST 2: map, evaluated before
--- request
GET /looked
--- response_body
failed
--- error_code: 503
--- error_log
upstrand "a": no failover from "u01", its variable is kept by "set" or "map"



=== TEST 3: a good response is no reason to complain
--- request
GET /ok
--- response_body
ok
--- no_error_log
no failover



=== TEST 4: a volatile map follows the walk
--- request
GET /followed
--- response_body
good
--- no_error_log
no failover



=== TEST 5: a look at the variable beside a plain proxy_pass does no harm
--- request
GET /beside
--- response_body
failed
--- error_code: 503
--- no_error_log
no failover



=== TEST 6: map, evaluated by the pass directive: the request is not sent again
--- request
GET /map
--- response_body
failed
--- error_code: 503
--- grep_error_log: upstrand "a": no failover from "u01", its variable is kept by "set" or "map"
--- grep_error_log_out
upstrand "a": no failover from "u01", its variable is kept by "set" or "map"
--- no_error_log
trying



=== TEST 7: a map that is evaluated beside the pass directive stops no walk
--- request
GET /label
--- response_body
good
--- no_error_log
no failover
