# add_upstream: the servers of other upstreams, appended to this one.

use Test::Nginx::Socket 'no_plan';

# The servers a to d answer with their names; nothing listens for e.
our $Servers = <<'_EOC_';
    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 200 a; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; return 200 b; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_3; return 200 c; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_4; return 200 d; }

    upstream a  { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream b  { server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream cd { server 127.0.0.1:$TEST_NGINX_PORT_3; server 127.0.0.1:$TEST_NGINX_PORT_4; }
    upstream e  { server 127.0.0.1:$TEST_NGINX_PORT_5; }
_EOC_

# `answers` are those to as many requests, one after the other; `tries` the statuses of the servers tried in
# each of them.
add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config => $Servers . $block->upstreams);
    $block->set_value(config => <<'_EOC_');
    location /t {
        proxy_pass http://host;
        add_header X-Tries "$upstream_status";
    }
_EOC_

    my @answers = split ' ', $block->answers;
    $block->set_value(pipelined_requests => [map { "GET /t$_" } 1 .. @answers]);
    $block->set_value(response_body => \@answers);

    if (defined(my $tries = $block->tries)) {
        $block->set_value(response_headers => [map { "X-Tries: $_" } split /; */, $tries]);
    }
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: servers come in the order of the lines, and of the source's own
--- upstreams
    upstream host { add_upstream cd; server 127.0.0.1:$TEST_NGINX_PORT_1; add_upstream b; }
--- answers: c d a b c d a b


=== TEST 2: names compare in any case
--- upstreams
    upstream host { add_upstream A; add_upstream Cd; }
--- answers: a c d a c d


=== TEST 3: a server keeps its weight
--- upstreams
    upstream source { server 127.0.0.1:$TEST_NGINX_PORT_1 weight=2; server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream host { add_upstream source; }
--- answers: a b a a b a


=== TEST 4: weight multiplies it
--- upstreams
    upstream source { server 127.0.0.1:$TEST_NGINX_PORT_1 weight=2; }
    upstream host { add_upstream source weight=2; add_upstream b; }
--- answers: a a b a a a a b a a


=== TEST 5: backup servers serve when no main one does
--- upstreams
    upstream host { add_upstream cd backup; add_upstream e; }
--- answers: c d c d
--- tries: 502, 200; 200; 200; 200


=== TEST 6: while a main one serves they wait
--- upstreams
    upstream host { add_upstream cd backup; add_upstream a; }
--- answers: a a a


=== TEST 7: backup servers of the source stay what they are
--- upstreams
    upstream source { server 127.0.0.1:$TEST_NGINX_PORT_1; server 127.0.0.1:$TEST_NGINX_PORT_2 backup; }
    upstream host { add_upstream source; }
--- answers: a a a


=== TEST 8: also where the balancer of the host would refuse them on a line of its own
--- upstreams
    upstream source { server 127.0.0.1:$TEST_NGINX_PORT_5; server 127.0.0.1:$TEST_NGINX_PORT_2 backup; }
    upstream host { ip_hash; add_upstream source; }
--- answers: b b b


=== TEST 9: down takes all of them out
--- upstreams
    upstream host { add_upstream cd down; add_upstream a; add_upstream b; }
--- answers: a b a b


=== TEST 10: max_fails=0: a server that fails is tried again in each round
--- upstreams
    upstream host { add_upstream e max_fails=0; add_upstream a; }
--- answers: a a a a
--- tries: 502, 200; 200; 502, 200; 200


=== TEST 11: max_fails and fail_timeout say when it is left alone
--- upstreams
    upstream host { add_upstream e max_fails=2 fail_timeout=1h; add_upstream a; }
--- answers: a a a a a a a a
--- tries: 502, 200; 200; 502, 200; 200; 200; 200; 200; 200


=== TEST 12: max_conns: a server with as many requests as it may have is passed over (this one asks again)
--- upstreams
    server { listen 127.0.0.1:$TEST_NGINX_PORT_6; location / { proxy_pass http://host; } }
    upstream self { server 127.0.0.1:$TEST_NGINX_PORT_6; }
    upstream host { add_upstream self max_conns=1; add_upstream a backup; }
--- answers: a a




=== TEST 13: an upstream with servers of its own from another one can be a source
--- upstreams
    upstream middle { add_upstream a; add_upstream b; }
    upstream host { add_upstream middle; add_upstream cd; }
--- answers: a b c d


=== TEST 14: so can a singlet
--- upstreams
    upstream middle { add_upstream cd; combine_server_singlets; }
    upstream host { add_upstream middle2 weight=2; add_upstream a; }
--- answers: d a d


=== TEST 15: host and source may have any balancer, zone and keepalive, in any order
--- upstreams
    upstream s1 { least_conn; zone s1 64k; server 127.0.0.1:$TEST_NGINX_PORT_1; keepalive 2; }
    upstream s2 { server 127.0.0.1:$TEST_NGINX_PORT_2; ip_hash; zone s2 64k; }
    upstream s3 { hash $uri consistent; server 127.0.0.1:$TEST_NGINX_PORT_3; }
    upstream host { keepalive 2; add_upstream s1; zone host 64k; add_upstream s2; add_upstream s3; }
--- answers: a b c a b c


=== TEST 16: backup before the line of a balancer that knows none
--- upstreams
    upstream host { add_upstream e; add_upstream a backup; hash $uri; }
--- answers: a a


=== TEST 17: the same upstream twice, once as a backup
--- upstreams
    upstream host { add_upstream e; add_upstream a; add_upstream a backup weight=2; }
--- answers: a a


=== TEST 18: the largest weights of ip_hash
--- upstreams
    upstream host { ip_hash; add_upstream a weight=2147483646; add_upstream a; }
--- answers: a a


=== TEST 19: large weights of a consistent hash
--- upstreams
    upstream host { hash $uri consistent; add_upstream a weight=5000; add_upstream a weight=5000; }
--- answers: a a


=== TEST 20: sockets in the file system
--- upstreams
    server { listen unix:$TEST_NGINX_SERVROOT/html/s.sock; return 200 s; }
    upstream source { server unix:$TEST_NGINX_SERVROOT/html/s.sock; }
    upstream host { add_upstream source; add_upstream a; }
--- answers: s a s a


=== TEST 21: the directives of an upstream in any order
--- upstreams
    upstream host {
        extend_single_peers;
        add_upstream b;
        combine_server_singlets _s_ 2;
        least_conn;
        add_upstream cd;
        combine_server_singlets _t_ byname nobackup;
    }
--- answers: b c d b c d
