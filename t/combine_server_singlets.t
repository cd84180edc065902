# combine_server_singlets: an upstream for each server, in which the others are backups.

use Test::Nginx::Socket 'no_plan';

# The servers a to c answer with their names; nothing listens for e.
our $Servers = <<'_EOC_';
    server { listen 127.0.0.1:$TEST_NGINX_PORT_1; return 200 a; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_2; return 200 b; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_3; return 200 c; }
_EOC_

# A question is the name of an upstream, and after an equal sign who answers, or a status.
add_block_preprocessor(sub {
    my $block = shift;

    $block->set_value(http_config => $Servers . $block->upstreams);
    $block->set_value(config => 'location /t { proxy_pass http://$arg_u; proxy_set_header Host test; }')
        unless defined $block->config;

    my (@requests, @answers, @statuses);
    foreach (split ' ', $block->questions // '') {
        my ($upstream, $answer) = split /=/;
        push @requests, "GET /t?u=$upstream";
        push @answers, $answer =~ /\d/ ? qr/\Q$answer\E/ : qr/\A$answer\z/;
        push @statuses, $answer =~ /\d/ ? $answer : 200;
    }

    if (@requests) {
        $block->set_value(request => \@requests);
        $block->set_value(response_body_like => \@answers);
        $block->set_value(error_code => \@statuses);
    }
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: names are numbers
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        server 127.0.0.1:$TEST_NGINX_PORT_2;
        combine_server_singlets;
    }
--- questions: h1=a h1=a h2=b h2=b h3=502



=== TEST 2: with a suffix and a width
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        server 127.0.0.1:$TEST_NGINX_PORT_2;
        combine_server_singlets _single_ 3;
    }
--- questions: h_single_001=a h_single_002=b h_single_2=502



=== TEST 3: width 0 pads nothing, and an empty suffix is none
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        combine_server_singlets _s_ 0;
        combine_server_singlets "" 2;
    }
--- questions: h_s_1=a h01=a



=== TEST 4: or the servers' own names, with "_" for ":"
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        server localhost:$TEST_NGINX_PORT_2;
        server [::1]:80 max_fails=0;
        combine_server_singlets byname;
        combine_server_singlets _single_ byname;
    }
--- questions eval
join ' ', map { my ($n, $a) = @$_; ("h$n=$a", "h_single_$n=$a") }
    ["127.0.0.1_$ENV{TEST_NGINX_PORT_1}", 'a'], ["localhost_$ENV{TEST_NGINX_PORT_2}", 'b'], ['[__1]_80', 'a']



=== TEST 5: the directive looks at the servers declared so far, and can be repeated
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        combine_server_singlets _first_;
        server 127.0.0.1:$TEST_NGINX_PORT_2;
        combine_server_singlets _both_;
        server 127.0.0.1:$TEST_NGINX_PORT_3;
    }
--- questions: h_first_1=a h_first_2=502 h_both_1=a h_both_2=b h_both_3=502



=== TEST 6: when the active server fails, the others serve in turn
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_5;
        server 127.0.0.1:$TEST_NGINX_PORT_2;
        server 127.0.0.1:$TEST_NGINX_PORT_3;
        combine_server_singlets;
    }
--- questions: h1=b h1=c h1=b h1=c h2=b h3=c



=== TEST 7: with nobackup none does
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_5;
        server 127.0.0.1:$TEST_NGINX_PORT_2;
        combine_server_singlets nobackup;
        combine_server_singlets _s_ nobackup;
        combine_server_singlets _s_ 2 nobackup;
        combine_server_singlets _n_ byname nobackup;
    }
--- questions: h1=502 h2=b h_s_1=502 h_s_2=b h_s_01=502 h_s_02=b



=== TEST 8: a backup server has a number too, and is active in its own singlet
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        server 127.0.0.1:$TEST_NGINX_PORT_2 backup;
        combine_server_singlets;
    }
--- questions: h=a h=a h1=a h2=b h2=b



=== TEST 9: a server that is down stays so
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1 down;
        server 127.0.0.1:$TEST_NGINX_PORT_2;
        combine_server_singlets;
        combine_server_singlets _s_ nobackup;
    }
--- questions: h1=b h2=b h_s_1=502 h_s_2=b



=== TEST 10: servers of another upstream count one by one
--- upstreams
    upstream ab { server 127.0.0.1:$TEST_NGINX_PORT_1; server 127.0.0.1:$TEST_NGINX_PORT_2; }
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_3;
        add_upstream ab backup;
        combine_server_singlets;
    }
--- questions: h1=c h2=a h3=b



=== TEST 11: a name that a URL used before
--- upstreams
    upstream unused { server 127.0.0.1:$TEST_NGINX_PORT_3; }
    server { listen 127.0.0.1:$TEST_NGINX_PORT_6; location / { proxy_pass http://h2; } }
    upstream by_url { server 127.0.0.1:$TEST_NGINX_PORT_6; }
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        server 127.0.0.1:$TEST_NGINX_PORT_2;
        keepalive 4;
        combine_server_singlets;
    }
--- questions: by_url=b h1=a h2=b h=a h=b



=== TEST 12: a name of 4,000 characters
--- upstreams eval
'upstream h { server 127.0.0.1:$TEST_NGINX_PORT_1; combine_server_singlets ' . 's' x 3998 . '; }'
--- questions eval
'h' . 's' x 3998 . '1=a'



=== TEST 13: the members of an upstrand
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_5;
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        combine_server_singlets _ byname nobackup;
    }
    upstrand us { upstream ~^h_; order per_request; next_upstream_statuses error; }
--- config
    location /t { proxy_pass http://$upstrand_us; }
--- questions: us=a



=== TEST 14: sticky sessions: a client without a cookie goes anywhere
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        server 127.0.0.1:$TEST_NGINX_PORT_2;
        combine_server_singlets;
    }
--- config
    location /t { proxy_pass http://h$cookie_rt; }
--- request eval
["GET /t", "GET /t"]
--- response_body eval
["a", "b"]



=== TEST 15: one with a cookie to the server it names
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        server 127.0.0.1:$TEST_NGINX_PORT_2;
        combine_server_singlets;
    }
--- config
    location /t { proxy_pass http://h$cookie_rt; }
--- request eval
["GET /t", "GET /t", "GET /t"]
--- more_headers
Cookie: rt=2
--- response_body eval
["b", "b", "b"]



=== TEST 16: and if that one is down, to another one
--- upstreams
    upstream h {
        server 127.0.0.1:$TEST_NGINX_PORT_1;
        server 127.0.0.1:$TEST_NGINX_PORT_5;
        combine_server_singlets;
    }
--- config
    location /t { proxy_pass http://h$cookie_rt; }
--- request eval
["GET /t", "GET /t"]
--- more_headers
Cookie: rt=2
--- response_body eval
["a", "a"]
