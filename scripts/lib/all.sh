# All parts of the scripts; each script loads this file.
# shellcheck shell=bash

LIB=$(dirname "${BASH_SOURCE[0]}")

# shellcheck source=common.sh
. "$LIB/common.sh"
# shellcheck source=needs.sh
. "$LIB/needs.sh"
# shellcheck source=versions.sh
. "$LIB/versions.sh"
# shellcheck source=apt.sh
. "$LIB/apt.sh"
# shellcheck source=nginx.sh
. "$LIB/nginx.sh"
# shellcheck source=module.sh
. "$LIB/module.sh"
# shellcheck source=packaging.sh
. "$LIB/packaging.sh"
# shellcheck source=test-nginx.sh
. "$LIB/test-nginx.sh"
# shellcheck source=ports.sh
. "$LIB/ports.sh"
# shellcheck source=processes.sh
. "$LIB/processes.sh"
# shellcheck source=private-root.sh
. "$LIB/private-root.sh"
# shellcheck source=steps.sh
. "$LIB/steps.sh"
