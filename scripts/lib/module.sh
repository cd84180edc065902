# Builds the module with cargo for the nginx that `prepare_nginx` has prepared.
# shellcheck shell=bash disable=SC2034 # variables set for the scripts

MODULE_NAME=ngx_http_combined_upstreams_module

# Sets MODULE to the path of the module's file.
build_module() {
    local dir=$TARGET/module/$NGINX_KEY
    MODULE=$dir/$MODULE_NAME.so

    [ -f "$MODULE" ] || say "building the module for nginx $NGINX_KEY"
    NGINX_SOURCE_DIR=$NGINX_SOURCE_DIR NGINX_BUILD_DIR=$NGINX_BUILD_DIR \
        cargo build --quiet --release --locked --manifest-path "$ROOT/Cargo.toml" --target-dir "$dir" >&2

    # Replaced in one step: an nginx that runs with the old file keeps it.
    if ! cmp -s "$dir/release/lib$MODULE_NAME.so" "$MODULE"; then
        cp "$dir/release/lib$MODULE_NAME.so" "$MODULE.new"
        mv "$MODULE.new" "$MODULE"
    fi
}
