#!/usr/bin/env bash
# The same trials on a stock kernel: boots the distribution's own kernel image in QEMU, with this
# machine's files as its root, read-only; runs the host engine there, and the guest here; prints
# both side by side.
#
#   benchmarks/outside/stock_kernel.sh [FLAG …]       flags go to stock_kernel.py (--help)
#
# It needs qemu-system-x86 installed. The kernel (linux-image-amd64) and busybox-static are taken
# with apt-get download and unpacked in the cache: nothing of them is installed. No root, no KVM.
set -euo pipefail
export LC_ALL=C
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly project
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/first-flight/stock
# What the kernel needs to mount this machine's files, and what the host engine asks it for.
readonly MODULES=(virtio_pci 9pnet_virtio 9p veth bridge sch_netem)

die() {     # STATUS MESSAGE
    printf 'stock kernel: %s\n' "$2" >&2
    exit "$1"
}

unpack_packages() {     # PACKAGE...: into $work/files
    local package
    for package in "$@"; do
        (cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$package") \
            >>"$work/log" 2>&1 ||
            die 4 "apt-get cannot download $package: $(tail -n 1 "$work/log")"
    done
    for package in "$work"/*.deb; do
        dpkg-deb -x "$package" "$work/files"
        rm "$package"
    done
}

kernel_package() {      # the package that linux-image-amd64 stands for
    apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image.*\)/\1/p'
}

# The modules and those they need, in the order in which they can be inserted.
modules_in_order() {    # MODULES.DEP
    awk -v wanted="${MODULES[*]}" '
        { file = $1; sub(/:$/, "", file); name = file; sub(/.*\//, "", name); sub(/\..*/, "", name)
          $1 = ""; of[name] = file; needs[file] = $0 }
        function add(file,  list, count, i) {
            if (file in done) return
            done[file] = 1
            count = split(needs[file], list, " ")
            for (i = count; i > 0; i--) add(list[i])
            print file
        }
        END { count = split(wanted, list, " "); for (i = 1; i <= count; i++) add(of[list[i]]) }' "$1"
}

write_init() {
    cat >"$work/image/init" <<'INIT'
#!/bin/busybox sh
# PID 1: this machine's files as the root, read-only, one folder to write to, then the trials.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
while read -r module; do insmod "/modules/${module##*/}"; done </modules/order
options=trans=virtio,version=9p2000.L,msize=262144
mount -t 9p -o "$options,ro,cache=loose" machine /root
mount -t devtmpfs devtmpfs /root/dev
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts devpts /root/dev/pts
mount -t tmpfs tmpfs /root/dev/shm
mount -t proc proc /root/proc
mount -t sysfs sysfs /root/sys
mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
mount -t tmpfs tmpfs /root/run
mkdir /root/run/first-flight
mount -t 9p -o "$options" exchange /root/run/first-flight
umount /proc
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/run PYTHONDONTWRITEBYTECODE=1
# No chroot: what enters a mount namespace would be back in the first root.
exec /bin/switch_root /root /bin/sh -c '
    cd "$(cat /run/first-flight/project)" || exit
    /usr/bin/python3 -m benchmarks.outside.stock_kernel --inside
    sync
    echo o >/proc/sysrq-trigger
    sleep 60'
INIT
    chmod +x "$work/image/init"
}

write_image() {
    local release folder
    release=$(basename "$work"/files/lib/modules/*)
    folder=$work/files/lib/modules/$release
    "$work/files/bin/busybox" depmod -b "$work/files" "$release" 2>>"$work/log"
    mkdir -p "$work/image"/{bin,proc,root,modules}
    cp "$work/files/bin/busybox" "$work/image/bin/"
    modules_in_order "$folder/modules.dep" >"$work/image/modules/order"
    while read -r module; do
        cp "$folder/$module" "$work/image/modules/"
    done <"$work/image/modules/order"
    write_init
    cp "$work/files/boot/vmlinuz-$release" "$work/made/kernel"
    (cd "$work/image" && find . | ./bin/busybox cpio -o -H newc 2>>"$work/log" | gzip -1) \
        >"$work/made/initrd"
}

main() {
    command -v qemu-system-x86_64 >/dev/null ||
        die 4 "no QEMU: apt-get install --no-install-recommends qemu-system-x86"
    local package key folder
    package=$(kernel_package)
    [[ -n $package ]] || die 4 "apt's lists have no linux-image-amd64: apt-get update"
    key=$(apt-cache policy "$package" | sed -n 's/^  Candidate: //p')-$(
        sha256sum "${BASH_SOURCE[0]}" | cut -c 1-8)
    folder=$cache/$package-$key
    if [[ ! -e $folder/initrd ]]; then
        mkdir -p "$cache"
        work=$(mktemp -d "$cache/.build-XXXXXX")
        trap 'rm -rf "$work"' EXIT
        mkdir "$work/files" "$work/made"
        printf 'stock kernel: unpacking %s\n' "$package" >&2
        unpack_packages "$package" busybox-static
        write_image
        rm -rf "$folder"
        mv "$work/made" "$folder"
        rm -rf "$work"
        trap - EXIT
    fi
    cd "$project"
    exec /usr/bin/python3 -m benchmarks.outside.stock_kernel --kernel "$folder/kernel" \
        --initrd "$folder/initrd" "$@"
}

main "$@"
