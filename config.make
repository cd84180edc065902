# nginx's own tables of modules take the place of those that cargo builds by default. cargo looks for what
# has changed; it is asked only if a source file has, so that `make install` needs no Rust.
#
# It runs in the module's folder, so that a .cargo/config.toml there is obeyed, as a packager may add one.
#
# The folders that lie on the machine that builds are called by other names in what is compiled, so that any
# machine makes the same file: of two names that fit a path, rustc takes the last one given.

ngx_combined_upstreams_deps=`find $ngx_addon_dir/src $ngx_addon_dir/core/src $ngx_addon_dir/build.rs \
    $ngx_addon_dir/Cargo.toml $ngx_addon_dir/Cargo.lock -type f | tr '\n' ' '`

cat << END                                                    >> $NGX_MAKEFILE

$ngx_combined_upstreams_lib:	$ngx_combined_upstreams_deps $NGX_AUTO_CONFIG_H
	+nginx=\$\$PWD; objs=\`cd $NGX_OBJS && pwd\`; cd $ngx_addon_dir; addon=\$\$PWD; \\
	for pair in "\$\${CARGO_HOME:-\$\$HOME/.cargo}=/cargo" "\$\$nginx=/nginx" \\
		"\$\$addon=/combined-upstreams" "\$\$objs=/objs"; do \\
		RUSTFLAGS="\$\$RUSTFLAGS --remap-path-prefix=\$\$pair"; \\
		CFLAGS="\$\$CFLAGS -fdebug-prefix-map=\$\$pair"; \\
	done; \\
	export RUSTFLAGS CFLAGS; \\
	NGINX_SOURCE_DIR="\$\$nginx" NGINX_BUILD_DIR="\$\$objs" \\
	${CARGO:-cargo} rustc --locked --release --lib --crate-type staticlib \\
		--no-default-features --target-dir "\$\$objs/combined-upstreams"
	touch \$@

END
