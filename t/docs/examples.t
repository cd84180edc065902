# Every example of the documentation: nginx takes (or refuses) each fenced block of configuration, and the
# commands below one show what is printed there.
#
#     ```nginx CONTEXT [name=NAME] [with=NAME[,NAME...]] [refused='TEXT']
#
# CONTEXT  what the lines stand in: main (they are a whole file), http, upstream, upstrand, server, location
# name     others may build on this block, which is of http
# with     the blocks that this one builds on
# refused  nginx -t fails, with one line that holds TEXT
#
# A block ```console after it holds commands, each after "$ ", with their output; "..." in a line stands for
# anything. They are run in nginx's prefix, while nginx serves the block above. Ports 8010 to 8029 of 127.0.0.1 are
# moved to TEST_NGINX_SERVER_PORT and up.
#
# Run by scripts/test.sh docs.

use v5.32;
use warnings;

use Cwd qw(abs_path);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(sleep time);

my $FIRST_PORT = 8010;
my $PORTS = 20;
my $PATIENCE = 20;    # seconds

my ($binary, $module, $port) = map { $ENV{$_} // die "$_ is not set\n" }
    qw(NGINX_BINARY NGINX_MODULE TEST_NGINX_SERVER_PORT);
my $nginx;            # the process that serves the block above

END {
    local $?;
    stop_nginx();
}

for my $file (glob('README.md docs/*.md examples/*/README.md')) {
    check_file($file);
}

done_testing();

sub check_file {
    my ($file) = @_;
    my (%named, $above);

    for my $block (blocks_of($file)) {
        if ($block->{language} eq 'nginx') {
            stop_nginx();
            $named{$block->{name}} = $block if $block->{name};
            $above = $block;
            check_configuration($block, \%named);
        } elsif ($block->{language} eq 'console' && $above) {
            start_nginx($above) unless $nginx;
            check_commands($block, $above);
        }
    }

    stop_nginx();
}

# The fenced blocks of a file: language, context, name, with, refused, text, label.
sub blocks_of {
    my ($file) = @_;
    my (@blocks, $block);
    open my $lines, '<', $file or die "$file: $!";

    while (my $line = <$lines>) {
        if ($block && $line =~ /^```\s*$/) {
            push @blocks, $block;
            undef $block;
        } elsif ($block) {
            $block->{text} .= $line;
        } elsif ($line =~ /^```(\w+)\s*(\w*)(.*)/) {
            my ($language, $context, $options) = ($1, $2, $3);
            $block = { language => $language, context => $context, text => '', label => "$file:$.",
                       $options =~ /(\w+)=(?|'([^']*)'|(\S+))/g };
        }
    }

    return @blocks;
}

sub check_configuration {
    my ($block, $named) = @_;
    my $prefix = tempdir(CLEANUP => 1);
    make_path("$prefix/logs", "$prefix/modules", "$prefix/html", "$prefix/cache");
    chmod 0755, $prefix;
    chmod 0777, "$prefix/cache";
    symlink abs_path($module), "$prefix/modules/ngx_http_combined_upstreams_module.so";
    write_file("$prefix/nginx.conf", configuration($block, $named, $prefix));
    $block->{prefix} = $prefix;

    my $output = `'$binary' -t -e stderr -p '$prefix' -c nginx.conf 2>&1`;
    my $ended = $?;
    my @complaints = grep { /\[(warn|error|crit|alert|emerg)\]/ } split /^/, $output;

    if (defined $block->{refused}) {
        my $as_told = $ended && @complaints == 1 && index($complaints[0], $block->{refused}) >= 0;
        ok($as_told, "$block->{label} is refused") or diag($output);
    } else {
        ok(!$ended && !@complaints, "$block->{label} is taken") or diag($output);
    }
}

sub configuration {
    my ($block, $named, $prefix) = @_;
    my $text = $block->{text};
    my $used = '';

    for my $name (split /,/, $block->{with} // '') {
        my $other = $named->{$name} or die "$block->{label}: no block is named $name";
        $used .= $other->{text};
    }

    my %lines = (
        http     => $text,
        upstream => "upstream app {\n$text}\n",
        upstrand => "upstrand us {\n$text}\n",
        server   => "server {\n$text}\n",
        location => "server {\nlocation / {\n$text}\n}\n",
    );

    if ($block->{context} ne 'main') {
        my $lines = $lines{$block->{context}} // die "$block->{label}: unknown context '$block->{context}'";
        $text = <<"_EOC_";
load_module modules/ngx_http_combined_upstreams_module.so;
worker_processes 1;
error_log logs/error.log info;
events {
}
http {
access_log logs/all.log;
$used$lines}
_EOC_
    }

    $text =~ s{/var/cache/nginx}{$prefix/cache}g;
    return move_ports(add_sockets($text, $prefix));
}

# A server that listens nowhere gets a socket of its own: nginx would choose port 80.
sub add_sockets {
    my ($text, $prefix) = @_;
    my ($first, @servers) = split /\bserver\s*\{/, $text;
    my $number = 0;

    for my $server (@servers) {
        my $socket = "listen unix:$prefix/" . $number++ . ';';
        $server = "server {" . ($server =~ /\blisten\b/ ? '' : $socket) . $server;
    }

    return join '', $first, @servers;
}

sub move_ports {
    my ($text) = @_;
    $text =~ s/(127\.0\.0\.1:)(\d+)/$1 . moved($2, $FIRST_PORT, $port)/ge;
    return $text;
}

sub move_ports_back {
    my ($text) = @_;
    $text =~ s/(127\.0\.0\.1:)(\d+)/$1 . moved($2, $port, $FIRST_PORT)/ge;
    return $text;
}

sub moved {
    my ($number, $from, $to) = @_;
    return $number >= $from && $number < $from + $PORTS ? $number - $from + $to : $number;
}

sub check_commands {
    my ($block, $above) = @_;
    my (undef, @calls) = split /^\$ /m, $block->{text};
    my $line = 0;

    for my $call (@calls) {
        my ($command, $expected) = split /\n/, $call, 2;
        my $pattern = join '.*', map { quotemeta } split /\.\.\./, $expected, -1;
        my $deadline = time + $PATIENCE;
        my $output;

        # nginx writes its logs when the client has got its answer: a look at one may come too early.
        do {
            $output = run($command, $above->{prefix});
        } until $output =~ /\A$pattern\z/ || $command =~ /\bcurl\b/ || time > $deadline || !sleep 0.05;

        ok($output =~ /\A$pattern\z/, "$block->{label}: $command") or diag("expected:\n${expected}got:\n$output");
    }
}

sub run {
    my ($command, $folder) = @_;
    my $moved = move_ports($command);
    local $ENV{NO_PROXY} = '*';

    open my $pipe, '-|', 'sh', '-c', "cd '$folder' && $moved 2>&1" or die "sh: $!";
    local $/;
    my $output = <$pipe> // '';
    close $pipe;

    $output =~ s/\r//g;
    return move_ports_back($output);
}

sub start_nginx {
    my ($block) = @_;
    my $deadline = time + $PATIENCE;

    $nginx = fork // die "fork: $!";
    if ($nginx == 0) {
        open STDOUT, '>', "$block->{prefix}/logs/stdout";
        open STDERR, '>', "$block->{prefix}/logs/stderr";
        exec $binary, '-p', $block->{prefix}, '-c', 'nginx.conf', '-g', 'daemon off;' or die "$binary: $!";
    }

    until (IO::Socket::INET->new("127.0.0.1:$port")) {
        die "$block->{label}: nginx does not listen\n" if time > $deadline || waitpid($nginx, 1);
        sleep 0.02;
    }
}

sub stop_nginx {
    return unless $nginx;

    kill QUIT => $nginx;
    waitpid $nginx, 0;
    undef $nginx;
}

sub write_file {
    my ($path, $text) = @_;
    open my $file, '>', $path or die "$path: $!";
    print $file $text;
    close $file;
}
