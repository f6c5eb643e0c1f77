#!/usr/bin/env bash
# The same on a stock kernel: boots one of Debian's own kernel images in QEMU, with this machine's
# files as its root (what is written there stays in its memory), and starts a program that runs the
# same there and in the guest here, and prints both side by side.
#
#   benchmarks/outside/stock_kernel.sh [FLAG …]                 fetches: stock_kernel.py (--help)
#   benchmarks/outside/stock_kernel.sh side_by_side [FLAG …]    scripts: side_by_side.py (--help)
#   benchmarks/outside/stock_kernel.sh held_back [FLAG …]       netem and a rate: held_back.py
#   benchmarks/outside/stock_kernel.sh browser_stock [FLAG …]   pages in Chromium: browser_stock.py
#
# It needs qemu-system-x86 installed. The kernel (linux-image-amd64; for scripts and netem the one
# of Debian's backports, whose source the guest is built from) and busybox-static are taken with
# apt-get download and unpacked in the cache: nothing of them is installed. No root, no KVM.
set -euo pipefail
export LC_ALL=C
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly project
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/first-flight/stock
# What the kernel needs to mount this machine's files, and what the programs ask it for.
readonly MODULES=(virtio_pci 9pnet_virtio 9p overlay veth ifb bridge sch_netem
    sch_htb sch_tbf sch_cake sch_fq sch_fq_codel sch_sfq sch_codel sch_pie sch_red sch_hfsc sch_prio
    sch_ingress cls_u32 cls_fw cls_matchall act_mirred act_police tcp_bbr tcp_diag openvswitch
    nft_compat nft_chain_nat xt_MASQUERADE xt_nat xt_conntrack xt_tcpudp iptable_nat iptable_filter)
# Folders of modules in which those are, and what they need.
readonly FOLDERS=(net fs/9p fs/netfs fs/overlayfs drivers/net/veth.ko.xz drivers/net/ifb.ko.xz
    drivers/virtio lib crypto)

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

# That package, and since Linux 7 those with the image and the modules, on which it depends.
packages_of() {         # PACKAGE
    echo "$1"
    apt-cache depends "$1" | sed -n 's/^ *Depends: \(linux-\(binary\|modules\)-.*\)/\1/p'
}

# Debian's backports, in an apt state of their own; the machine's lists stay as they are.
use_backports() {
    local place=$cache/apt mirror
    # shellcheck disable=SC2016  # apt-get expands these
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' \
        'Created-By: Packages' |
        awk '$1 == "Debian" && $2 == "main" && $3 !~ /security|^cdrom/ && !found++ { print $3 }')
    [[ -n $mirror ]] || die 4 "this machine's apt knows no mirror of Debian"
    mkdir -p "$place/lists/partial" "$place/archives/partial"
    echo "deb [target=Packages signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror" \
        "stable-backports main" >"$place/sources.list"
    printf '%s;\n' "Dir::State::Lists \"$place/lists\"" "Dir::Cache \"$place\"" \
        "Dir::Etc::SourceList \"$place/sources.list\"" 'Dir::Etc::SourceParts "/dev/null"' \
        'Dir::Etc::Preferences "/dev/null"' 'Dir::Etc::PreferencesParts "/dev/null"' \
        'Acquire::Languages "none"' 'APT::Sandbox::User "root"' >"$place/apt.conf"
    export APT_CONFIG=$place/apt.conf
    [[ -n $(kernel_package) ]] || apt-get -q --error-on=any update >"$place/log" 2>&1 ||
        die 4 "Debian's backports cannot be read: $(tail -n 1 "$place/log")"
}

# The modules and those they need, in the order in which they can be inserted.
modules_in_order() {    # MODULES.DEP
    awk -v wanted="${MODULES[*]}" '
        { file = $1; sub(/:$/, "", file); name = file; sub(/.*\//, "", name); sub(/\..*/, "", name)
          $1 = ""; of[name] = file; needs[file] = $0 }
        function add(file,  list, count, i) {
            if (file == "" || file in done) return  # "": it is built in
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
# PID 1: this machine's files as the root, what is written there in memory, one folder that is
# shared; then what that folder's file "start" says.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
while read -r module; do insmod "/modules/${module##*/}"; done </modules/order
options=trans=virtio,version=9p2000.L,msize=262144
mkdir /below /above
mount -t 9p -o "$options,ro,cache=loose" machine /below
mount -t tmpfs memory /above
mkdir /above/upper /above/work
mount -t overlay -o lowerdir=/below,upperdir=/above/upper,workdir=/above/work overlay /root
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
    . /run/first-flight/start
    sync
    echo o >/proc/sysrq-trigger
    sleep 60'
INIT
    chmod +x "$work/image/init"
}

write_image() {
    local release folder place
    place=$(find "$work/files" -path '*lib/modules/*/kernel' -prune -print -quit)
    folder=${place%/kernel}
    release=${folder##*/}
    for place in "${FOLDERS[@]}"; do
        find "$folder/kernel/$place" -name '*.ko.xz' -exec xz -d {} + 2>>"$work/log" || true
    done
    [[ -e $work/files/lib ]] || ln -s usr/lib "$work/files/lib"
    "$work/files/bin/busybox" depmod -b "$work/files" "$release" 2>>"$work/log"
    mkdir -p "$work/image"/{bin,proc,root,modules}
    cp "$work/files/bin/busybox" "$work/image/bin/"
    modules_in_order "$folder/modules.dep" >"$work/image/modules/order"
    while read -r module; do
        cp "$folder/$module" "$work/image/modules/"
    done <"$work/image/modules/order"
    write_init
    cp "$(find "$folder/vmlinuz" "$work/files/boot/vmlinuz-$release" -print -quit 2>/dev/null)" \
        "$work/made/kernel"
    (cd "$work/image" && find . | ./bin/busybox cpio -o -H newc 2>>"$work/log" | gzip -1) \
        >"$work/made/initrd"
}

main() {
    command -v qemu-system-x86_64 >/dev/null ||
        die 4 "no QEMU: apt-get install --no-install-recommends qemu-system-x86"
    local program=stock_kernel package key folder
    if [[ ${1-} == side_by_side || ${1-} == held_back ]]; then
        program=$1
        shift
        use_backports
    elif [[ ${1-} == browser_stock ]]; then
        program=$1
        shift
    fi
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
        # shellcheck disable=SC2046  # a word for each package
        unpack_packages $(packages_of "$package")
        APT_CONFIG='' unpack_packages busybox-static
        write_image
        rm -rf "$folder"
        mv "$work/made" "$folder"
        rm -rf "$work"
        trap - EXIT
    fi
    cd "$project"
    unset APT_CONFIG
    exec /usr/bin/python3 -m "benchmarks.outside.$program" --kernel "$folder/kernel" \
        --initrd "$folder/initrd" "$@"
}

main "$@"
