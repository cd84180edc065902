# Every configuration that an upstrand block or dynamic_upstrand refuses: one line, with its place.

use Test::Nginx::Socket 'no_plan';

our $Upstreams = <<'_EOC_';
    upstream u1 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
    upstream u2 { server 127.0.0.1:$TEST_NGINX_PORT_1; }
_EOC_

add_block_preprocessor(sub {
    my $block = shift;

    if (defined(my $lines = $block->upstrand)) {
        $block->set_value(http_config => "$Upstreams upstrand us { $lines }");
    }
    elsif (defined(my $http = $block->http)) {
        $block->set_value(http_config => "$Upstreams $http");
    }

    $block->set_value(config => 'location /t { return 204; }') unless defined $block->config;
    $block->set_value(must_die => '') unless defined $block->lives;
    $block->set_value(request => 'GET /t') if defined $block->lives;

    # The message stands in a line of its own, which tells the place, and is the only one.
    if (defined(my $message = $block->emerg)) {
        chomp $message;
        $block->set_value(grep_error_log => qr/\[emerg\].*/);
        $block->set_value(grep_error_log_out =>
            qr/\A\[emerg\] \d+#\d+: \Q$message\E in \S+nginx\.conf:\d+\n\z/);
    }
});

no_shuffle();
run_tests();

__DATA__

=== TEST 1: an unknown directive
--- upstrand
upstream u1; foo bar;
--- emerg
bad upstrand directive "foo"



=== TEST 2: a directive without arguments
--- upstrand
upstream u1; order;
--- emerg
bad upstrand directive "order"



=== TEST 3: upstream with too many arguments
--- upstrand
upstream u1 backup blacklist_interval=1s down;
--- emerg
bad upstrand directive "upstream"



=== TEST 4: next_upstream_timeout with two arguments
--- upstrand
upstream u1; next_upstream_timeout 1s 2s;
--- emerg
bad upstrand directive "next_upstream_timeout"



=== TEST 5: intercept_statuses without a URI
--- upstrand
upstream u1; intercept_statuses 5xx;
--- emerg
bad upstrand directive "intercept_statuses"



=== TEST 6: a wrong parameter of upstream
--- upstrand
upstream u1 down;
--- emerg
bad upstrand directive "upstream" content



=== TEST 7: a parameter twice
--- upstrand
upstream u1 backup backup;
--- emerg
bad upstrand directive "upstream" content



=== TEST 8: a wrong order
--- upstrand
upstream u1; order random;
--- emerg
bad upstrand directive "order" content



=== TEST 9: an order that repeats a value
--- upstrand
upstream u1; order per_request per_request;
--- emerg
bad upstrand directive "order" content



=== TEST 10: tries that are no number
--- upstrand
upstream u1; next_upstream_tries -1;
--- emerg
bad upstrand directive "next_upstream_tries" content



=== TEST 11: a switch that is neither on nor off
--- upstrand
upstream u1; intercept_errors yes;
--- emerg
bad upstrand directive "intercept_errors" content



=== TEST 12: order twice
--- upstrand
upstream u1; order per_request; order per_request;
--- emerg
duplicate upstrand directive "order"



=== TEST 13: next_upstream_timeout twice
--- upstrand
upstream u1; next_upstream_timeout 0; next_upstream_timeout 1s;
--- emerg
duplicate upstrand directive "next_upstream_timeout"



=== TEST 14: next_upstream_tries twice
--- upstrand
upstream u1; next_upstream_tries 0; next_upstream_tries 1;
--- emerg
duplicate upstrand directive "next_upstream_tries"



=== TEST 15: intercept_errors twice
--- upstrand
upstream u1; intercept_errors off; intercept_errors on;
--- emerg
duplicate upstrand directive "intercept_errors"



=== TEST 16: an interception to what is no URI
--- upstrand
upstream u1; intercept_statuses 5xx foo;
--- emerg
invalid uri "foo"



=== TEST 17: an unknown upstream
--- upstrand
upstream zz;
--- emerg
upstream "zz" is not found



=== TEST 18: an upstream that is only implied by a URL
--- http
server { listen 127.0.0.1:$TEST_NGINX_PORT_2; location / { proxy_pass http://127.0.0.9:80; } }
upstrand us { upstream 127.0.0.9; }
--- emerg
upstream "127.0.0.9" is not found



=== TEST 19: an upstream that is declared later
--- http
upstrand us { upstream late; }
upstream late { server 127.0.0.1:$TEST_NGINX_PORT_1; }
--- emerg
upstream "late" is not found



=== TEST 20: a regular expression that matches none is worth a warning
--- upstrand
upstream u1; upstream ~^zz;
--- lives
--- error_code: 204
--- error_log
upstrand "us": no upstream matches "~^zz" in



=== TEST 21: a bad regular expression
--- upstrand
upstream ~^(u;
--- emerg
invalid regex "^(u": unclosed group



=== TEST 22: no member at all
--- upstrand
order per_request;
--- emerg
no upstream registered in upstrand "us"



=== TEST 23: a regular expression that matches none, and no other member
--- upstrand
upstream ~^zz;
--- emerg
no upstream registered in upstrand "us"



=== TEST 24: a status that is none
--- upstrand
upstream u1; next_upstream_statuses 5xx 2x;
--- emerg
invalid status "2x"



=== TEST 25: 0 is none
--- upstrand
upstream u1; next_upstream_statuses 0;
--- emerg
invalid status "0"



=== TEST 26: 101 is none here
--- upstrand
upstream u1; next_upstream_statuses 101;
--- emerg
invalid status "101"



=== TEST 27: nor is 600
--- upstrand
upstream u1; next_upstream_statuses 600;
--- emerg
invalid status "600"



=== TEST 28: nor is 05
--- upstrand
upstream u1; next_upstream_statuses 05;
--- emerg
invalid status "05"



=== TEST 29: non_idempotent is no status to intercept
--- upstrand
upstream u1; intercept_statuses non_idempotent /foo;
--- emerg
invalid status "non_idempotent"



=== TEST 30: a bad time
--- upstrand
upstream u1; next_upstream_timeout 1x;
--- emerg
bad timeout value: "1x"



=== TEST 31: a time that does not fit nginx's milliseconds
--- upstrand
upstream u1; next_upstream_timeout 99999999999y;
--- emerg
bad timeout value: "99999999999y"



=== TEST 32: a bad interval
--- upstrand
upstream u1 blacklist_interval=x;
--- emerg
bad blacklist interval: "x"



=== TEST 33: an interval that is empty
--- upstrand
upstream u1 blacklist_interval=;
--- emerg
bad blacklist interval: ""



=== TEST 34: an upstrand twice
--- http
upstrand us { upstream u1; }
upstrand us { upstream u1; }
--- emerg
duplicate upstrand "us"



=== TEST 35: in other case too
--- http
upstrand us { upstream u1; }
upstrand US { upstream u1; }
--- emerg
duplicate upstrand "US"



=== TEST 36: a name that is empty
--- http
upstrand "" { upstream u1; }
--- emerg
invalid upstrand name ""



=== TEST 37: a name with a blank
--- http
upstrand "a b" { upstream u1; }
--- emerg
invalid upstrand name "a b"



=== TEST 38: a name with a dollar sign
--- http
upstrand "a$b" { upstream u1; }
--- emerg
invalid upstrand name "a$b"



=== TEST 39: a name with a control character
--- http eval
"upstrand \"a\x01b\" { upstream u1; }"
--- emerg eval
"invalid upstrand name \"a\x01b\""



=== TEST 40: the name of a status variable
--- http
upstrand Path { upstream u1; }
--- emerg
invalid upstrand name "Path"



=== TEST 41: of another one
--- http
upstrand response_length { upstream u1; }
--- emerg
invalid upstrand name "response_length"



=== TEST 42: a variable of an upstrand that there is not is nginx's own error
--- upstrand
upstream u1;
--- config
location /t { proxy_pass http://$upstrand_zz; }
--- error_log
unknown "upstrand_zz" variable



=== TEST 43: an unclosed block
--- http
upstrand us { upstream u1;
--- error_log
unexpected "{" in



=== TEST 44: a block inside the block
--- upstrand
upstream u1 { }
--- error_log
unexpected "{"



=== TEST 45: upstrand outside of http
--- main_config
upstrand us { }
--- emerg
"upstrand" directive is not allowed here



=== TEST 46: upstrand in a server
--- config
upstrand us { upstream u1; }
location /t { return 204; }
--- emerg
"upstrand" directive is not allowed here



=== TEST 47: dynamic_upstrand: no variable
--- upstrand
upstream u1;
--- config
dynamic_upstrand x us;
location /t { return 204; }
--- emerg
invalid variable name "x"



=== TEST 48: a dollar sign alone
--- upstrand
upstream u1;
--- config
dynamic_upstrand $ us;
location /t { return 204; }
--- emerg
invalid variable name "$"



=== TEST 49: an argument after the literal
--- upstrand
upstream u1;
--- config
dynamic_upstrand $x us $arg_a;
location /t { return 204; }
--- emerg
invalid parameter "$arg_a"



=== TEST 50: a literal that names no upstrand
--- upstrand
upstream u1;
--- config
dynamic_upstrand $x $arg_a u1;
location /t { return 204; }
--- emerg
upstrand "u1" not found



=== TEST 51: the same variable twice in one scope
--- upstrand
upstream u1;
--- config
dynamic_upstrand $x us;
dynamic_upstrand $X us;
location /t { return 204; }
--- emerg
duplicate dynamic upstrand variable "$X"



=== TEST 52: without a candidate
--- config
dynamic_upstrand $x;
location /t { return 204; }
--- emerg
invalid number of arguments in "dynamic_upstrand" directive



=== TEST 53: a variable that somebody else has
--- upstrand
upstream u1;
--- config
dynamic_upstrand $args us;
location /t { return 204; }
--- emerg
the duplicate "args" variable



=== TEST 54: an upstrand without a name
--- http
upstrand { upstream u1; }
--- emerg
invalid number of arguments in "upstrand" directive



=== TEST 55: memcached_pass takes no variables
--- upstrand
upstream u1;
--- config
location /t { memcached_pass $upstrand_us; }
--- emerg
no port in upstream "$upstrand_us"
