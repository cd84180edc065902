# nginx's own tables of modules take the place of those that cargo builds by default. cargo looks for what
# has changed; it is asked only if a source file has, so that `make install` needs no Rust.

ngx_combined_upstreams_deps=`find $ngx_addon_dir/src $ngx_addon_dir/core/src $ngx_addon_dir/build.rs \
    $ngx_addon_dir/Cargo.toml $ngx_addon_dir/Cargo.lock -type f | tr '\n' ' '`

cat << END                                                    >> $NGX_MAKEFILE

$ngx_combined_upstreams_lib:	$ngx_combined_upstreams_deps $NGX_AUTO_CONFIG_H
	+NGINX_SOURCE_DIR="\$\$PWD" NGINX_BUILD_DIR="\`cd $NGX_OBJS && pwd\`" \\
	${CARGO:-cargo} rustc --locked --release --lib --crate-type staticlib \\
		--no-default-features --manifest-path $ngx_addon_dir/Cargo.toml \\
		--target-dir $NGX_OBJS/combined-upstreams
	touch \$@

END
