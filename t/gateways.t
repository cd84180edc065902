# Walks by each of the directives that pass a request on: fastcgi_pass, uwsgi_pass, scgi_pass, grpc_pass.

use Test::Nginx::Socket 'no_plan';

our $Dead = 'upstream dead { server 127.0.0.1:$TEST_NGINX_PORT_9; }';

# What a CGI-like server answers, of which the first is good, and the second tries to redirect.
our $Good = "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\ngood\n";
our $Accel = "Status: 200 OK\r\nContent-Type: text/plain\r\nX-Accel-Redirect: /elsewhere\r\n\r\nhere\n";
our $Bad = "Status: 503 Sorry\r\nContent-Type: text/plain\r\n\r\nbad\n";

# The same in FastCGI's records: standard output, its end, the end of the request.
sub fastcgi {
    my ($answer) = @_;
    my $record = sub { pack('CCnnCC', 1, $_[0], 1, length $_[1], 0, 0) . $_[1] };

    return $record->(6, $answer) . $record->(6, '') . $record->(3, pack('NCxxx', 0, 0));
}

add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config => $Dead . <<'_EOC_');
    upstream app { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream h2 { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream h2_bad { server 127.0.0.1:$TEST_NGINX_PORT_3; }

    upstrand us { upstream dead; upstream app; order per_request; next_upstream_statuses error 5xx; }
    upstrand only { upstream app; next_upstream_statuses 5xx; intercept_statuses 503 /elsewhere; }
    upstrand grpc { upstream dead; upstream h2_bad; upstream h2; order per_request; next_upstream_statuses error 5xx; }

    server { listen 127.0.0.1:$TEST_NGINX_PORT_2 http2; return 200 "good\n"; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_3 http2; return 503 "bad\n"; }
_EOC_
    $block->set_value(config => 'add_header X-Path $upstrand_path always;
        location /elsewhere { return 200 "elsewhere\n"; }
        location /t {' . $block->pass . '}');
    $block->set_value(tcp_listen => '$TEST_NGINX_PORT_1') if defined $block->tcp_reply;
    $block->set_value(request => 'GET /t');
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: FastCGI
--- pass
fastcgi_pass $upstrand_us;
--- tcp_reply eval: main::fastcgi($main::Good)
--- response_headers
X-Path: dead -> app
--- response_body
good



=== TEST 2: uwsgi
--- pass
uwsgi_pass $upstrand_us;
--- tcp_reply eval: $main::Good
--- response_headers
X-Path: dead -> app
--- response_body
good



=== TEST 3: SCGI
--- pass
scgi_pass $upstrand_us;
--- tcp_reply eval: $main::Good
--- response_headers
X-Path: dead -> app
--- response_body
good



=== TEST 4: gRPC
--- pass
grpc_pass grpc://$upstrand_grpc;
--- response_headers
X-Path: dead -> h2_bad -> h2
--- response_body
good



=== TEST 5: FastCGI: a failed response is dropped
--- pass
fastcgi_pass $upstrand_only;
--- tcp_reply eval: main::fastcgi($main::Bad)
--- response_headers
X-Path: app -> <intercepted>
--- response_body
elsewhere



=== TEST 6: uwsgi: a failed response is dropped
--- pass
uwsgi_pass $upstrand_only;
--- tcp_reply eval: $main::Bad
--- response_headers
X-Path: app -> <intercepted>
--- response_body
elsewhere



=== TEST 7: SCGI: a failed response is dropped
--- pass
scgi_pass $upstrand_only;
--- tcp_reply eval: $main::Bad
--- response_headers
X-Path: app -> <intercepted>
--- response_body
elsewhere



=== TEST 8: FastCGI: a redirect by a member is ignored
--- pass
fastcgi_pass $upstrand_us;
--- tcp_reply eval: main::fastcgi($main::Accel)
--- response_body
here



=== TEST 9: uwsgi: a redirect by a member is ignored
--- pass
uwsgi_pass $upstrand_us;
--- tcp_reply eval: $main::Accel
--- response_body
here



=== TEST 10: SCGI: a redirect by a member is ignored
--- pass
scgi_pass $upstrand_us;
--- tcp_reply eval: $main::Accel
--- response_body
here
