# Which upstreams a line of an upstrand block stands for.

use Test::Nginx::Socket 'no_plan';

our $Upstreams = <<'_EOC_';
    upstream u2  { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u1  { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream b1  { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream U3  { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream "~" { server 127.0.0.1:$TEST_NGINX_PORT_1; }

    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503; }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(config => <<'_EOC_');
    location /t {
        proxy_pass http://$upstrand_us;
        add_header X-Path $upstrand_path always;
    }
_EOC_
    $block->set_value(request => 'GET /t');

    if (defined(my $members = $block->members)) {
        $block->set_value(http_config =>
            "$Upstreams upstrand us { $members order per_request; next_upstream_statuses 5xx; }");
    }
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: a regular expression stands for all that match, in the order of their declaration
--- members
    upstream ~^u\d;
--- response_headers
X-Path: u2 -> u1
--- error_code: 503



=== TEST 2: it minds case, unless it begins with ~*
--- members
    upstream ~*^u\d$;
--- response_headers
X-Path: u2 -> u1 -> U3
--- error_code: 503



=== TEST 3: a bare tilde is a name like any other
--- members
    upstream u1;
    upstream ~;
--- response_headers
X-Path: u1 -> ~
--- error_code: 503



=== TEST 4: look-around goes to nginx's own regular expressions
--- members
    upstream ~^u(?!2);
--- response_headers
X-Path: u1
--- error_code: 503



=== TEST 5: back-references too
--- http_config
    upstream x11 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream x12 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503; }
    upstrand us { upstream ~^x(\d)\1$; next_upstream_statuses 5xx; }
--- response_headers
X-Path: x11
--- error_code: 503



=== TEST 6: upstreams that a URL implies, and those declared later, are no members
--- http_config
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; location / { proxy_pass http://127.0.0.1:$TEST_NGINX_PORT_1; } }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503; }
    upstream u1 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstrand us { upstream ~.; next_upstream_statuses 5xx; }
    upstream u2 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
--- response_headers
X-Path: u1
--- error_code: 503



=== TEST 7: a URL that comes before the block of its upstream does not count
--- http_config
    server {
        listen 127.0.0.1:$TEST_NGINX_PORT_2;
        location /last { proxy_pass http://u3; }
        location /singlet { proxy_pass http://u12; }
        location /first { proxy_pass http://u1; }
    }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503; }
    upstream u1 {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        combine_server_singlets;
    }
    upstream u2 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u3 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstrand us { upstream ~.; order per_request; next_upstream_statuses 5xx; }
--- response_headers
X-Path: u1 -> u11 -> u12 -> u2 -> u3
--- error_code: 503
