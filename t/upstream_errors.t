# Every configuration that a directive of an upstream block refuses: exit code 1 and one line, which names
# the file and the line. In each test that is the line with the comment "refused".

use Test::Nginx::Socket 'no_plan';

our $Sources = <<'_EOC_';
upstream one { server 127.0.0.1:$TEST_NGINX_PORT_1; }
upstream two { server 127.0.0.1:$TEST_NGINX_PORT_1; server 127.0.0.1:$TEST_NGINX_PORT_2; }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;

    # An upstream of this one block, or all that stands in http.
    my $text = $block->http;
    $text = "upstream host {\n" . $block->upstream . "}\n" unless defined $text;
    $text = "$Sources$text";

    my ($before) = $text =~ /\A(.*)# refused/s;
    my $line = 1 + ($before =~ tr/\n//);

    # Test::Nginx fills in the ports of its own sections only.
    $text =~ s/\$(TEST_NGINX_PORT_\d)/$ENV{$1}/g;

    $block->set_value(user_files => ">>> upstreams.conf\n$text");
    $block->set_value(http_config => 'include ../html/upstreams.conf;');
    $block->set_value(config => 'location /t { return 204; }');
    $block->set_value(must_die => '1');

    my $place = qr/ in \S+upstreams\.conf:$line\n/;
    my $lines = join '', map { qr/\[emerg\] \d+#\d+: \Q$_\E$place/ } split /\n/, $block->emerg;
    $block->set_value(grep_error_log => qr/\[(?:emerg|warn)\].*/);
    $block->set_value(grep_error_log_out => qr/\A$lines\z/);
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: add_upstream: the host itself
--- http
upstream host {
    server 127.0.0.1:$TEST_NGINX_PORT_1;
    add_upstream host;  # refused
}
--- emerg
upstream "host" makes recursion



=== TEST 2: add_upstream: the host itself, in other case
--- http
upstream host {
    server 127.0.0.1:$TEST_NGINX_PORT_1;
    add_upstream Host backup;  # refused
}
--- emerg
upstream "Host" makes recursion



=== TEST 3: add_upstream: an upstream that is not declared
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream zz;  # refused
--- emerg
upstream "zz" not found



=== TEST 4: add_upstream: one that is declared only later
--- http
upstream host {
    add_upstream later;  # refused
}
upstream later { server 127.0.0.1:$TEST_NGINX_PORT_1; }
--- emerg
upstream "later" not found



=== TEST 5: add_upstream: one that only a URL implies
--- http
server {
    location / { proxy_pass http://implied; }
}
upstream host {
    add_upstream implied;  # refused
}
--- emerg
upstream "implied" not found



=== TEST 6: add_upstream: one that is implied with a port
--- http
server {
    location / { proxy_pass http://127.0.0.1:8080; }
}
upstream host {
    add_upstream 127.0.0.1;  # refused
}
--- emerg
upstream "127.0.0.1" not found



=== TEST 7: add_upstream: backup twice
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two backup backup;  # refused
--- emerg
parameter "backup" has been already declared



=== TEST 8: add_upstream: backup twice
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two backup weight=2 backup;  # refused
--- emerg
parameter "backup" has been already declared



=== TEST 9: add_upstream: weight twice
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two weight=2 weight=2;  # refused
--- emerg
parameter "weight" has been already declared



=== TEST 10: add_upstream: max_fails twice
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two max_fails=1 max_fails=2;  # refused
--- emerg
parameter "max_fails" has been already declared



=== TEST 11: add_upstream: fail_timeout twice
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two fail_timeout=1s fail_timeout=1s;  # refused
--- emerg
parameter "fail_timeout" has been already declared



=== TEST 12: add_upstream: max_conns twice
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two max_conns=1 max_conns=1;  # refused
--- emerg
parameter "max_conns" has been already declared



=== TEST 13: add_upstream: down twice
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two down down;  # refused
--- emerg
parameter "down" has been already declared



=== TEST 14: add_upstream: weight=0
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two weight=0;  # refused
--- emerg
parameter "weight" must be a positive integer value



=== TEST 15: add_upstream: weight=-1
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two weight=-1;  # refused
--- emerg
parameter "weight" must be a positive integer value



=== TEST 16: add_upstream: weight=x
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two weight=x;  # refused
--- emerg
parameter "weight" must be a positive integer value



=== TEST 17: add_upstream: weight=
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two weight=;  # refused
--- emerg
parameter "weight" must be a positive integer value



=== TEST 18: add_upstream: weight=1.5
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two weight=1.5;  # refused
--- emerg
parameter "weight" must be a positive integer value



=== TEST 19: add_upstream: weight=2x
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two weight=2x;  # refused
--- emerg
parameter "weight" must be a positive integer value



=== TEST 20: add_upstream: weight=99999999999999999999
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two weight=99999999999999999999;  # refused
--- emerg
parameter "weight" must be a positive integer value



=== TEST 21: add_upstream: a weight that no server may have
--- upstream
add_upstream one weight=2147483648;  # refused
--- emerg
weight of upstream "host" is too big



=== TEST 22: add_upstream: weights that add up to too much
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1 weight=2147483647;
add_upstream one;  # refused
--- emerg
weight of upstream "host" is too big



=== TEST 23: add_upstream: those of the backup servers
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream one backup weight=2147483647;
add_upstream one backup;  # refused
--- emerg
weight of upstream "host" is too big



=== TEST 24: add_upstream: invalid parameter foo
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two foo;  # refused
--- emerg
invalid parameter "foo"



=== TEST 25: add_upstream: invalid parameter backupfoo
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two backupfoo;  # refused
--- emerg
invalid parameter "backupfoo"



=== TEST 26: add_upstream: invalid parameter down=1
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two down=1;  # refused
--- emerg
invalid parameter "down=1"



=== TEST 27: add_upstream: invalid parameter backup=
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two backup=;  # refused
--- emerg
invalid parameter "backup="



=== TEST 28: add_upstream: invalid parameter weight
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two weight;  # refused
--- emerg
invalid parameter "weight"



=== TEST 29: add_upstream: invalid parameter max_fails=x
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two max_fails=x;  # refused
--- emerg
invalid parameter "max_fails=x"



=== TEST 30: add_upstream: invalid parameter max_fails=-1
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two max_fails=-1;  # refused
--- emerg
invalid parameter "max_fails=-1"



=== TEST 31: add_upstream: invalid parameter fail_timeout=x
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two fail_timeout=x;  # refused
--- emerg
invalid parameter "fail_timeout=x"



=== TEST 32: add_upstream: invalid parameter fail_timeout=
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two fail_timeout=;  # refused
--- emerg
invalid parameter "fail_timeout="



=== TEST 33: add_upstream: invalid parameter max_conns=-1
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two max_conns=-1;  # refused
--- emerg
invalid parameter "max_conns=-1"



=== TEST 34: add_upstream: invalid parameter slow_start=1s
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two slow_start=1s;  # refused
--- emerg
invalid parameter "slow_start=1s"



=== TEST 35: add_upstream: invalid parameter resolve
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two resolve;  # refused
--- emerg
invalid parameter "resolve"



=== TEST 36: add_upstream: invalid parameter ""
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream two "";  # refused
--- emerg
invalid parameter ""



=== TEST 37: add_upstream: backup after hash $uri
--- upstream
hash $uri;
add_upstream one;
add_upstream two backup;  # refused
--- emerg
balancing method does not support parameter "backup"



=== TEST 38: add_upstream: backup after hash $uri consistent
--- upstream
hash $uri consistent;
add_upstream one;
add_upstream two backup;  # refused
--- emerg
balancing method does not support parameter "backup"



=== TEST 39: add_upstream: backup after ip_hash
--- upstream
ip_hash;
add_upstream one;
add_upstream two backup;  # refused
--- emerg
balancing method does not support parameter "backup"



=== TEST 40: add_upstream: backup after random
--- upstream
random;
add_upstream one;
add_upstream two backup;  # refused
--- emerg
balancing method does not support parameter "backup"



=== TEST 41: add_upstream: no arguments
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
add_upstream;  # refused
--- emerg
invalid number of arguments in "add_upstream" directive



=== TEST 42: combine_server_singlets: no server yet
--- upstream
combine_server_singlets;  # refused
server 127.0.0.1:$TEST_NGINX_PORT_1;
--- emerg
no server so far declared to build singlets



=== TEST 43: combine_server_singlets: a name that is taken
--- http
upstream host1 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
upstream host {
    server 127.0.0.1:$TEST_NGINX_PORT_1;
    combine_server_singlets;  # refused
}
--- emerg
duplicate upstream "host1"
failed to add upstream "host1"



=== TEST 44: combine_server_singlets: a name that is taken, in other case
--- http
upstream HOST_B_2 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
upstream host {
    server 127.0.0.1:$TEST_NGINX_PORT_1;
    server 127.0.0.1:$TEST_NGINX_PORT_2;
    combine_server_singlets _b_;  # refused
}
--- emerg
duplicate upstream "host_b_2"
failed to add upstream "host_b_2"



=== TEST 45: combine_server_singlets: the same names again
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets;
combine_server_singlets;  # refused
--- emerg
duplicate upstream "host1"
failed to add upstream "host1"



=== TEST 46: combine_server_singlets: two servers of one name
--- http
upstream host {
    server 127.0.0.1;
    server 127.0.0.1;
    combine_server_singlets byname;  # refused
}
--- emerg
duplicate upstream "host127.0.0.1"
failed to add upstream "host127.0.0.1"



=== TEST 47: combine_server_singlets: width -1
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ -1;  # refused
--- emerg
field width "-1" must be an integer value



=== TEST 48: combine_server_singlets: width +1
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ +1;  # refused
--- emerg
field width "+1" must be an integer value



=== TEST 49: combine_server_singlets: width x
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ x;  # refused
--- emerg
field width "x" must be an integer value



=== TEST 50: combine_server_singlets: width 2x
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ 2x;  # refused
--- emerg
field width "2x" must be an integer value



=== TEST 51: combine_server_singlets: width 33
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ 33;  # refused
--- emerg
field width "33" must be an integer value



=== TEST 52: combine_server_singlets: width ""
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ "";  # refused
--- emerg
field width "" must be an integer value



=== TEST 53: combine_server_singlets: width 99999999999999999999
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ 99999999999999999999;  # refused
--- emerg
field width "99999999999999999999" must be an integer value



=== TEST 54: combine_server_singlets: byname 2
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets byname 2;  # refused
--- emerg
setting field width is not permitted when using "byname" value



=== TEST 55: combine_server_singlets: byname _s_
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets byname _s_;  # refused
--- emerg
setting field width is not permitted when using "byname" value



=== TEST 56: combine_server_singlets: byname byname
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets byname byname;  # refused
--- emerg
setting field width is not permitted when using "byname" value



=== TEST 57: combine_server_singlets: _s_ byname 2
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ byname 2;  # refused
--- emerg
setting field width is not permitted when using "byname" value



=== TEST 58: combine_server_singlets: byname 2 nobackup
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets byname 2 nobackup;  # refused
--- emerg
setting field width is not permitted when using "byname" value



=== TEST 59: combine_server_singlets: nobackup 2
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets nobackup 2;  # refused
--- emerg
invalid parameters



=== TEST 60: combine_server_singlets: nobackup byname
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets nobackup byname;  # refused
--- emerg
invalid parameters



=== TEST 61: combine_server_singlets: _s_ nobackup 2
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ nobackup 2;  # refused
--- emerg
invalid parameters



=== TEST 62: combine_server_singlets: nobackup nobackup
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets nobackup nobackup;  # refused
--- emerg
invalid parameters



=== TEST 63: combine_server_singlets: _s_ 2 3
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ 2 3;  # refused
--- emerg
invalid parameters



=== TEST 64: combine_server_singlets: _s_ 2 byname
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ 2 byname;  # refused
--- emerg
invalid parameters



=== TEST 65: combine_server_singlets: _s_ 2 3 nobackup
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets _s_ 2 3 nobackup;  # refused
--- emerg
invalid parameters



=== TEST 66: combine_server_singlets: a b c d e f g h
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
combine_server_singlets a b c d e f g h;  # refused
--- emerg
invalid parameters



=== TEST 67: extend_single_peers: twice
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
extend_single_peers;
least_conn;
extend_single_peers;  # refused
--- emerg
"extend_single_peers" directive is duplicate



=== TEST 68: extend_single_peers: with an argument
--- upstream
server 127.0.0.1:$TEST_NGINX_PORT_1;
extend_single_peers on;  # refused
--- emerg
invalid number of arguments in "extend_single_peers" directive



=== TEST 69: add_upstream in http
--- http
add_upstream one;  # refused
--- emerg
"add_upstream" directive is not allowed here



=== TEST 70: add_upstream in server
--- http
server {
add_upstream one;  # refused
}
--- emerg
"add_upstream" directive is not allowed here



=== TEST 71: add_upstream in location
--- http
server {
location / {
add_upstream one;  # refused
}
}
--- emerg
"add_upstream" directive is not allowed here



=== TEST 72: combine_server_singlets in http
--- http
combine_server_singlets;  # refused
--- emerg
"combine_server_singlets" directive is not allowed here



=== TEST 73: combine_server_singlets in server
--- http
server {
combine_server_singlets;  # refused
}
--- emerg
"combine_server_singlets" directive is not allowed here



=== TEST 74: combine_server_singlets in location
--- http
server {
location / {
combine_server_singlets;  # refused
}
}
--- emerg
"combine_server_singlets" directive is not allowed here



=== TEST 75: extend_single_peers in http
--- http
extend_single_peers;  # refused
--- emerg
"extend_single_peers" directive is not allowed here



=== TEST 76: extend_single_peers in server
--- http
server {
extend_single_peers;  # refused
}
--- emerg
"extend_single_peers" directive is not allowed here



=== TEST 77: extend_single_peers in location
--- http
server {
location / {
extend_single_peers;  # refused
}
}
--- emerg
"extend_single_peers" directive is not allowed here



=== TEST 78: an upstream with no server beside our directives
--- http
upstream host {
    extend_single_peers;
}  # refused
--- emerg
no servers are inside upstream
