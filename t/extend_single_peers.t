# extend_single_peers: the lone server of an upstream fails like any other. (What needs a server that comes
# back, and how long that takes, stands in tests/.)

use Test::Nginx::Socket 'no_plan';

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config =>
        'server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503; }'
        . 'upstream host {' . $block->upstream . '}');
    $block->set_value(config => <<'_EOC_');
    location /t {
        proxy_pass http://host;
        proxy_next_upstream error timeout http_503;
        add_header X-Tries "$upstream_addr" always;
    }
_EOC_
    $block->set_value(pipelined_requests => ['GET /t1', 'GET /t2', 'GET /t3']);
    $block->set_value(error_code => [split ' ', $block->statuses]);

    # Whom the requests tried; nginx names the upstream when it finds none to try.
    $block->set_value(response_headers => [map { "X-Tries: $_" } split /; */, $block->tries]);
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: without it, the server is tried again each time
--- upstream
    server 127.0.0.1:$TEST_NGINX_PORT_5;
--- statuses: 502 502 502
--- tries eval
join ';', ("127.0.0.1:$ENV{TEST_NGINX_PORT_5}") x 3



=== TEST 2: with it, one failure is enough
--- upstream
    extend_single_peers;
    server 127.0.0.1:$TEST_NGINX_PORT_5;
--- statuses: 502 502 502
--- tries eval
"127.0.0.1:$ENV{TEST_NGINX_PORT_5};host;host"



=== TEST 3: or as many as max_fails says
--- upstream
    server 127.0.0.1:$TEST_NGINX_PORT_5 max_fails=2;
    extend_single_peers;
--- statuses: 502 502 502
--- tries eval
join ';', ("127.0.0.1:$ENV{TEST_NGINX_PORT_5}") x 2, 'host'



=== TEST 4: none with max_fails=0
--- upstream
    server 127.0.0.1:$TEST_NGINX_PORT_5 max_fails=0;
    extend_single_peers;
--- statuses: 502 502 502
--- tries eval
join ';', ("127.0.0.1:$ENV{TEST_NGINX_PORT_5}") x 3



=== TEST 5: the last server left is never counted out on a status, whatever proxy_next_upstream says
--- upstream
    server 127.0.0.1:$TEST_NGINX_PORT_1;
    extend_single_peers;
--- statuses: 503 503 503
--- tries eval
join ';', ("127.0.0.1:$ENV{TEST_NGINX_PORT_1}") x 3



=== TEST 6: any balancer may come before or after it
--- upstream
    least_conn;
    extend_single_peers;
    keepalive 4;
    server 127.0.0.1:$TEST_NGINX_PORT_5;
    zone host 64k;
--- statuses: 502 502 502
--- tries eval
"127.0.0.1:$ENV{TEST_NGINX_PORT_5};host;host"



=== TEST 7: so may the other directives of the module
--- upstream
    server 127.0.0.1:$TEST_NGINX_PORT_5;
    combine_server_singlets;
    extend_single_peers;
    hash $uri consistent;
--- statuses: 502 502 502
--- tries eval
"127.0.0.1:$ENV{TEST_NGINX_PORT_5};host;host"



=== TEST 8: with a backup server it is as without the directive
--- upstream
    server 127.0.0.1:$TEST_NGINX_PORT_5;
    server 127.0.0.1:$TEST_NGINX_PORT_6 backup;
    extend_single_peers;
--- statuses: 502 502 502
--- tries eval
"127.0.0.1:$ENV{TEST_NGINX_PORT_5}, 127.0.0.1:$ENV{TEST_NGINX_PORT_6};host;host"
