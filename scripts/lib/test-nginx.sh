# Test::Nginx, the framework of the suites in t/.
# shellcheck shell=bash

TEST_NGINX_DIR=$TARGET/test-nginx

# Unpacks it under target/test-nginx. Its own dependencies come from scripts/setup.sh. Where Debian's packages
# are out of reach, one that is installed serves as well.
prepare_test_nginx() {
    local stamp file sha256

    if ! is_debian; then
        has_perl_module Test::Nginx::Socket || die "Test::Nginx is needed here; Perl's own installer has it: cpan Test::Nginx"
        return
    fi

    stamp=$(pinned_table test-nginx.sha256)

    if is_stamped "$TEST_NGINX_DIR" "$stamp"; then
        return
    fi

    say "fetching Test::Nginx"
    prepare_apt_lists "$(pinned test-nginx suite)" deb
    mkdir "$WORKDIR/test-nginx"

    while read -r file sha256; do
        fetch_deb "$WORKDIR" "$file"
        check_sha256 "$WORKDIR/$file" "$sha256"
        dpkg -x "$WORKDIR/$file" "$WORKDIR/test-nginx"
    done <<<"$stamp"

    write_stamp "$WORKDIR/test-nginx" "$stamp"
    rm -rf "$TEST_NGINX_DIR"
    mv "$WORKDIR/test-nginx" "$TEST_NGINX_DIR"
}

test_nginx_perl5lib() {
    printf '%s\n' "$TEST_NGINX_DIR/usr/share/perl5${PERL5LIB:+:$PERL5LIB}"
}
