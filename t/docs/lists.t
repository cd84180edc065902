# What the documentation says of itself and of the tests: links lead somewhere, the tests that it names exist, and the
# files for editors list what docs/directives.md describes.
#
# Run by scripts/test.sh docs.

use v5.32;
use warnings;

use File::Basename qw(dirname);
use JSON::PP;
use Test::More;

my @files = (glob('*.md docs/*.md examples/*/README.md contrib/README.md'));

check_links($_) for @files;
check_tests('docs/migrate.md');
check_editors(directives_of('docs/directives.md'));

done_testing();

sub read_file {
    my ($path) = @_;
    open my $file, '<', $path or die "$path: $!";
    local $/;
    return scalar <$file>;
}

# A file's text without its fenced and its indented blocks.
sub prose {
    my ($file) = @_;
    return read_file($file) =~ s/^```.*?^```$//smgr =~ s/^    .*$//mgr;
}

sub check_links {
    my ($file) = @_;
    my $text = prose($file);
    my @broken;

    while ($text =~ /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g) {
        my ($path, $anchor) = ($1, $2);
        my $target = $path eq '' ? $file : dirname($file) . "/$path";

        push @broken, "$path#" . ($anchor // '')
            unless -e $target && (!defined $anchor || grep { $_ eq $anchor } anchors($target));
    }

    is("@broken", '', "links of $file");
}

# The anchors that a Markdown file's headings get.
sub anchors {
    my ($file) = @_;
    my @headings = prose($file) =~ /^#+ (.*)$/mg;

    return map { lc =~ s/[^\w\- ]//gr =~ s/ /-/gr } @headings;
}

# `name.t` 3 and 7, `name.t` 6 to 16, `name.rs`: `function`, `function`
sub check_tests {
    my ($file) = @_;
    my $text = prose($file);

    while ($text =~ /`(\w+\.t)` (\d+)(?: (?:and|to) (\d+))?/g) {
        my ($suite, @numbers) = ($1, grep { defined } $2, $3);
        my $tests = read_file("t/$suite");
        ok($tests =~ /^=== TEST $_:/m, "$file: $suite $_") for @numbers;
    }

    while ($text =~ /`(\w+\.rs)`: ((?:`\w+`(?:, )?)+)/g) {
        my ($source, $functions) = (read_file("tests/tests/$1"), $2);
        ok($source =~ /fn $_\(/, "$file: $_") for $functions =~ /`(\w+)`/g;
    }
}

# name => [syntax, default, contexts], of each block with these lines.
sub directives_of {
    my ($file) = @_;
    my $text = read_file($file);
    my %directives;

    while ($text =~ /^Syntax:\s+(\w+) *(.*)\nDefault:\s+(.*)\nContext:\s+(.*)\n/mg) {
        $directives{$1} = [$2, $3, $4];
    }

    return %directives;
}

sub check_editors {
    my (%directives) = @_;
    my $reference = decode_json(read_file('contrib/directives.json'))->{modules}[0];
    my $vim = read_file('contrib/vim/after/syntax/nginx.vim');
    my $text = read_file('docs/directives.md');
    my %listed = map { $_->{name} => $_ } @{$reference->{directives}};

    is_deeply([sort keys %listed], [sort keys %directives], 'directives of contrib/directives.json');

    for my $name (sort keys %directives) {
        my ($syntax, $default, $contexts) = @{$directives{$name}};
        my $entry = $listed{$name} // {};

        is($entry->{default}, $default eq '-' ? '' : $default, "default of $name");
        is(join(', ', @{$entry->{contexts}}), $contexts, "contexts of $name");
        is($entry->{isBlock} ? 1 : 0, $syntax =~ /\{/ ? 1 : 0, "$name is a block or none");
        ok($vim =~ /\b$name\b/, "vim knows $name") unless $name eq 'include';
    }

    for my $variable (map { $_->{name} } @{$reference->{variables}}) {
        ok($text =~ /\Q`$variable`\E|^### \Q$variable\E$/m, "$variable is described");
    }
}
