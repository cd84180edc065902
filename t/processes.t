# A single process (master_process off, as in all the other suites), or a master process with its worker.

use Test::Nginx::Socket 'no_plan';

add_block_preprocessor(sub {
    my $block = shift;

    master_process_enabled($block->master);
    $block->set_value(http_config => <<'_EOC_');
    upstream u1 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u2 { server 127.0.0.1:$TEST_NGINX_PORT_2; }

    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 503; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; return 200 "good\n"; }

    upstrand us {
        upstream u1;
        upstream u2;
        next_upstream_statuses 5xx;
    }
_EOC_
    $block->set_value(config => <<'_EOC_');
    location /t {
        proxy_pass http://$upstrand_us;
        add_header X-Path $upstrand_path always;
    }
_EOC_
    $block->set_value(request => 'GET /t');
    $block->set_value(response_headers => 'X-Path: u1 -> u2');
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: master_process off
--- master eval: 0
--- no_error_log
start worker process



=== TEST 2: master_process on
--- master eval: 1
--- error_log
start worker process
