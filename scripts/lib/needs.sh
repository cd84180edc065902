# What has to be on the machine, told by looking for the thing itself, with the package that brings it.
# shellcheck shell=bash

RUST_NEEDED=1.85

# Prints the package for a need that is not met: need DEBIAN-PACKAGE RHEL-PACKAGE COMMAND...
need() {
    local debian=$1 rhel=$2
    shift 2

    if "$@" >/dev/null 2>&1; then
        return
    fi

    if is_debian; then
        printf '%s\n' "$debian"
    else
        printf '%s\n' "$rhel"
    fi
}

missing_build_packages() {
    need gcc gcc has_command cc
    need libc6-dev glibc-devel compiles '#include <stdio.h>'
    need make make has_command make
    need pkg-config pkgconf-pkg-config has_command pkg-config
    need libpcre2-dev pcre2-devel compiles '#define PCRE2_CODE_UNIT_WIDTH 8
        #include <pcre2.h>'
    need zlib1g-dev zlib-devel compiles '#include <zlib.h>'
    need libssl-dev openssl-devel compiles '#include <openssl/ssl.h>'
    need libclang-dev clang-devel has_libclang
    need curl curl has_command curl
    need util-linux util-linux has_command flock
}

# The perl modules are those that Test::Nginx depends on.
missing_test_packages() {
    missing_build_packages
    need nginx nginx has_nginx
    need nginx-dev nginx-mod-devel has_nginx_headers
    need libnginx-mod-http-echo nginx-mod-echo has_nginx_module ngx_http_echo_module
    need libtest-base-perl perl-Test-Base has_perl_module Test::Base
    need libtest-longstring-perl perl-Test-LongString has_perl_module Test::LongString
    need liblist-moreutils-perl perl-List-MoreUtils has_perl_module List::MoreUtils
    need libtext-diff-perl perl-Text-Diff has_perl_module Text::Diff
    need libwww-perl perl-libwww-perl has_perl_module LWP::UserAgent
    need libipc-run-perl perl-IPC-Run has_perl_module IPC::Run
    need procps procps-ng has_command ps
    need libnss-wrapper nss_wrapper has_library libnss_wrapper.so
    need uwsgi-core uwsgi has_command uwsgi
    need uwsgi-plugin-python3 uwsgi-plugin-python3 has_library uwsgi/plugins/python3_plugin.so
    need python3-grpcio python3-grpcio /usr/bin/python3 -c 'import grpc'
    need dpkg-dev dpkg-dev has_command dpkg-buildflags
    need shellcheck ShellCheck has_command shellcheck
    need g++ gcc-c++ has_command c++
}

# Beyond those that the tests need, whose nginx is the one that a package is for.
missing_package_packages() {
    need nginx nginx has_nginx
    need nginx-dev nginx-mod-devel has_nginx_headers
    need rpm rpm-build has_command rpmbuild
    need rpmlint rpmlint has_command rpmlint
    need debugedit debugedit has_command find-debuginfo
    need elfutils elfutils has_command eu-strip
    need cpio cpio has_command cpio
    need file file has_command file

    if is_debian; then
        need dpkg-dev dpkg-dev has_command dpkg-buildpackage
        need debhelper debhelper has_command dh
        need fakeroot fakeroot has_command fakeroot
        need lintian lintian has_command lintian
    fi
}

# What a benchmark compares with besides comes from packages that are not installed: see bench-tools.sh.
missing_bench_packages() {
    need valgrind valgrind has_command valgrind
    need nginx nginx has_nginx
    need nginx-dev nginx-mod-devel has_nginx_headers
}

is_debian() {
    has_command apt-get
}

compiles() {
    printf '%s\n' "$1" | cc -E -x c -
}

# What bindgen loads, with the compiler's own headers. libclang-cpp, which comes with LLVM, is another library.
has_libclang() {
    if [ -n "${LIBCLANG_PATH:-}" ]; then return; fi
    { has_clang_file 'libclang.so*' || has_clang_file 'libclang-[0-9]*.so*'; } &&
        has_clang_file 'clang/*/include/stddef.h'
}

has_clang_file() {
    compgen -G "/usr/lib/llvm*/lib/$1" || has_library "$1"
}

has_nginx() {
    PATH=$PATH:/usr/sbin has_command nginx
}

has_nginx_headers() {
    [ -n "$(stock_headers)" ]
}

has_nginx_module() {
    [ -f "/usr/lib/nginx/modules/$1.so" ] || [ -f "/usr/lib64/nginx/modules/$1.so" ]
}

has_library() {
    compgen -G "/usr/lib*/$1" || compgen -G "/usr/lib/*/$1"
}

has_perl_module() {
    perl -M"$1" -e 1
}

# Fails with one line if Rust is missing or too old.
require_rust() {
    local found

    has_command cargo || die "Rust is needed, $RUST_NEEDED or later: install it with rustup (https://rustup.rs)"

    found=$(cargo --version | cut -d ' ' -f 2)
    if [ "$(printf '%s\n' "$RUST_NEEDED" "$found" | sort -V | head -n 1)" != "$RUST_NEEDED" ]; then
        die "Rust $RUST_NEEDED or later is needed, this is $found: run 'rustup update'"
    fi
}

# Fails with one line if something to build with is missing.
require_build_tools() {
    local missing
    require_rust
    missing=$(missing_build_packages | xargs)

    [ -z "$missing" ] || die "missing: $missing; run scripts/setup.sh, or: $(install_command) $missing"
}

install_command() {
    if is_debian; then
        echo "apt-get install"
    elif has_command dnf; then
        echo "dnf install"
    else
        echo "yum install"
    fi
}
