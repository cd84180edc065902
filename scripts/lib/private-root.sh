# A copy of this machine's system that can be changed at will: what is done in it is forgotten with its last
# process, and its network has no one else in it. Nothing is copied really (overlayfs).
# shellcheck shell=bash

# in_private_root COMMAND...: runs it with / as it is here and writable, in namespaces of its own. All processes that
# it leaves are ended. The repository is the real one, wherever it is mounted.
in_private_root() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --net --pid --fork --kill-child --mount-proc bash -euo pipefail -c '
        mount -t tmpfs -o mode=755 tmpfs /mnt
        mkdir /mnt/upper /mnt/work /mnt/root
        mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
        mount --rbind /proc /mnt/root/proc
        mount --rbind /dev /mnt/root/dev
        mkdir -p "/mnt/root$1"
        mount --bind "$1" "/mnt/root$1"
        ip link set lo up
        shift
        exec chroot /mnt/root "$@"
    ' private-root "$ROOT" "$@"
}

can_have_private_root() {
    [ "$(id -u)" -eq 0 ] && in_private_root true 2>/dev/null
}
