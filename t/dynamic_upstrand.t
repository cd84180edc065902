# dynamic_upstrand: which upstrand a request goes through is chosen by variables.

use Test::Nginx::Socket 'no_plan';

our $Upstrands = <<'_EOC_';
    upstream u01 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u02 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream b01 { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream b02 { server 127.0.0.1:$TEST_NGINX_PORT_2; }

    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; return 200; }

    upstrand us1 {
        upstream ~^u0;
        upstream b01 backup;
        order start_random;
        next_upstream_statuses 5xx;
    }
    upstrand us2 {
        upstream ~^u0;
        upstream b02 backup;
        order start_random;
        next_upstream_statuses 5xx;
    }
    upstrand us-3 {
        upstream b01;
    }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config => $Upstrands);
    $block->set_value(config => 'add_header X-Path "[$upstrand_path]" always;' . $block->server);
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: the example of the documentation
--- server
    dynamic_upstrand $dus1 $arg_a us2;

    location /t {
        dynamic_upstrand $dus2 $arg_b;
        if ($arg_b) {
            proxy_pass http://$dus2;
            break;
        }
        proxy_pass http://$dus1;
    }
--- request eval
["GET /t?a=us1", "GET /t?a=us2", "GET /t", "GET /t?a=", "GET /t?b=us1", "GET /t?b=US2&a=us1", "GET /t?b=zz", "GET /t?a=zz"]
--- response_headers_like eval
[
    'X-Path: \[u0\d -> u0\d -> b01\]',
    'X-Path: \[u0\d -> u0\d -> b02\]',
    'X-Path: \[u0\d -> u0\d -> b02\]',
    'X-Path: \[u0\d -> u0\d -> b02\]',
    'X-Path: \[u0\d -> u0\d -> b01\]',
    'X-Path: \[u0\d -> u0\d -> b02\]',
    'X-Path: \[\]',
    'X-Path: \[\]',
]
--- error_code eval
[200, 200, 200, 200, 200, 200, 500, 500]



=== TEST 2: candidates in their order; only the first that has a value counts
--- server
    location /t {
        dynamic_upstrand $d $arg_x $arg_y us-3;
        proxy_pass http://$d;
    }
--- request eval
["GET /t?y=us2", "GET /t?x=us1&y=us2", "GET /t?x=zz&y=us2", "GET /t"]
--- response_headers_like eval
['X-Path: .* b02\]', 'X-Path: .* b01\]', 'X-Path: \[\]', 'X-Path: \[b01\]']
--- error_code eval
[200, 200, 500, 200]



=== TEST 3: only upstrands can be named, never other variables
--- server
    location /t {
        dynamic_upstrand $d $arg_x;
        proxy_pass http://$d;
    }
--- request eval
["GET /t?x=path", "GET /t?x=b01", "GET /t?x=us1%20", "GET /t?x=us-3"]
--- error_code eval
[500, 500, 500, 200]



=== TEST 4: an inner definition overrides an outer one
--- server
    dynamic_upstrand $d us1;

    location /outer { proxy_pass http://$d; }
    location /inner {
        dynamic_upstrand $d us2;
        proxy_pass http://$d;

        location /inner/most { proxy_pass http://$d; }
    }
    location /if {
        if ($arg_i) {
            dynamic_upstrand $d us-3;
            proxy_pass http://$d;
            break;
        }
        proxy_pass http://$d;
    }
--- request eval
["GET /outer", "GET /inner", "GET /inner/most", "GET /if", "GET /if?i=1"]
--- response_headers_like eval
['X-Path: .* b01\]', 'X-Path: .* b02\]', 'X-Path: .* b02\]', 'X-Path: .* b01\]', 'X-Path: \[b01\]']



=== TEST 5: where no definition is in force, the variable is empty
--- server
    location /here { dynamic_upstrand $d us1; proxy_pass http://$d; }
    location /there { add_header X-Value "[$d]"; return 204; }
--- request
GET /there
--- response_headers
X-Value: []
--- error_code: 204



=== TEST 6: a definition that refers to itself is empty
--- server
    location /t {
        dynamic_upstrand $d $d us1;
        add_header X-Value "[$d]";
        return 204;
    }
--- request
GET /t
--- response_headers
X-Value: []
--- error_code: 204
--- error_log
dynamic upstrand variable "$d" refers to itself



=== TEST 7: so are definitions that refer to each other
--- server
    dynamic_upstrand $d $e;
    dynamic_upstrand $e $f;
    dynamic_upstrand $f $d;
    location /t {
        add_header X-Value "[$d] [$e] [$f]";
        return 204;
    }
--- request
GET /t
--- response_headers
X-Value: [] [] []
--- error_code: 204
--- error_log
dynamic upstrand variable "$d" refers to itself



=== TEST 8: the variable follows its candidates, it is not kept
--- server
    location /t {
        dynamic_upstrand $d $chosen;
        set $chosen us1;
        set $before "$d";
        set $chosen us-3;
        proxy_pass http://$d;
    }
--- request
GET /t
--- response_headers
X-Path: [b01]
