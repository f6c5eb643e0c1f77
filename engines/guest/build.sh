#!/usr/bin/env bash
# Builds the guest kernel: Linux for User-Mode Linux, with time travel.
#
# The source is the distribution's own package where that is new enough, taken without root and without
# changing the machine. Only the parts that kernel.config can need are unpacked. The kernel goes into the
# cache under a hash of all that it is made from, and only after it has booted once.
set -euo pipefail
export LC_ALL=C
unset CDPATH MAKEFLAGS ARCH CROSS_COMPILE CFLAGS KCFLAGS LDFLAGS KBUILD_OUTPUT

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly RECIPE=3             # part of the cache's key: raise it when this script builds differently
readonly MIN_VERSION=6.13     # before it UML's floating-point state has a fixed size: no boot on CPUs with AMX
readonly KNOWN_GOOD=7.2       # taken in preference to a newer one
readonly NEEDED_MB=600        # free disk: the package, the sources unpacked from it, the objects
readonly OBJECTS=645          # about how many files are compiled; only for the progress line
readonly KERNEL_ORG_URL=https://cdn.kernel.org/pub/linux/kernel/v6.x/linux-6.18.21.tar.xz
readonly KERNEL_ORG_SHA256=1c38214fb137bae85b82b82537b5987358621b915ab2a8e4f09e60697c19474f

usage() {
    cat <<EOF
usage: build.sh [--path | --force] [--source PATH]

Builds the guest kernel if the cache has none for this configuration, and prints its path.

  --path          only print the path; exit 1 if there is no kernel yet
  --source PATH   kernel source to build from: a tree, a tarball or a linux-source package of
                  Linux $MIN_VERSION or newer (default: FIRST_FLIGHT_KERNEL_SOURCE, else the
                  distribution's packages, else kernel.org)
  --force         build even if the cache has it
  -h, --help      this text

The cache is \${XDG_CACHE_HOME:-~/.cache}/first-flight/kernel. A build takes about two minutes on two
cores and ${NEEDED_MB} MB of disk while it runs; the kernel itself has 6 MB.
Exit status: 0 built or there already, 1 failed, 2 usage, 4 this machine cannot run it.
EOF
}

# ---------------------------------------------------------------- messages

say() { printf '%sguest kernel: %s\n' "${clear_line-}" "$*" >&2; }

die() {     # STATUS MESSAGE
    local status=$1
    shift
    say "$*"
    exit "$status"
}

fail() {    # MESSAGE: a failed step, whose log the user may want to see
    die 1 "$*; the log is $log"
}

show_progress() {   # TEXT: one line that rewrites itself on a terminal, else a line every 10 s
    if [[ -n $clear_line ]]; then
        printf '%sguest kernel: %s' "$clear_line" "$1" >&2
    elif (( SECONDS >= next_line )); then
        say "$1"
        next_line=$(( SECONDS + 10 ))
    fi
}

# ---------------------------------------------------------------- where things are

cache_key() {
    local -a modules
    shopt -s nullglob
    modules=("$here"/tcp_*.c)
    shopt -u nullglob
    {
        echo "recipe $RECIPE"
        cd "$here" && sha256sum kernel.config clock.sed "${modules[@]##*/}"
    } | sha256sum | cut -c 1-16
}

cache_root() {
    local home=${HOME-}
    # Under sudo the kernel belongs into the cache of the user who will run it.
    if (( EUID == 0 )) && [[ -n ${SUDO_USER-} || -z $home ]]; then
        home=$(getent passwd "${SUDO_USER:-root}" | cut -d : -f 6)
    fi
    echo "${XDG_CACHE_HOME:-$home/.cache}/first-flight/kernel"
}

# Compiling needs no root, and files made by the user need not be given back.
become_the_invoking_user() {
    (( EUID == 0 )) && [[ -n ${SUDO_USER-} && $SUDO_USER != root ]] || return 0
    exec runuser -u "$SUDO_USER" -- env HOME="$(getent passwd "$SUDO_USER" | cut -d : -f 6)" \
        "$BASH" "$here/build.sh" "$@"
}

# ---------------------------------------------------------------- running the long steps

# Each long step is a session of its own, so that it can be ended whole; it ends by itself if this script is
# killed (pdeathsig), and does not inherit the lock (9), which must end with this script.
step() {    # LABEL DETAIL COMMAND...: DETAIL is a function that prints how far it is
    local label=$1 detail=$2 began=$SECONDS
    shift 2
    next_line=$(( SECONDS + 10 ))
    setsid "${with_parent[@]}" "$@" </dev/null >>"$log" 2>&1 9>&- &
    job=$!
    while kill -0 "$job" 2>/dev/null; do
        show_progress "$label$("$detail"), $(( SECONDS - began )) s"
        sleep 0.2
    done
    local status=0
    wait "$job" || status=$?
    job=
    return "$status"
}

nothing() { :; }
compiled() { echo " $(grep -cE '^  (CC|AS) ' "$log") of about $OBJECTS objects"; }
downloaded() {
    local bytes
    bytes=$(find "$work/source" -type f -printf '%s\n' 2>/dev/null | sort -n | tail -n 1)
    echo " $(( ${bytes:-0} / 1000000 ))${download_mb:+ of $download_mb} MB"
}

clean_up() {
    local status=$?
    trap - EXIT INT TERM HUP
    if [[ -n ${job-} ]]; then
        kill -TERM -- "-$job" 2>/dev/null || true
        wait "$job" 2>/dev/null || true
    fi
    [[ -z ${work-} ]] || rm -rf "$work" 2>/dev/null || rm -rf "$work" || true
    exit "$status"
}

interrupted() { say "interrupted"; exit "$1"; }

# ---------------------------------------------------------------- what the machine must have

check_machine() {
    [[ $(uname -sm) == "Linux x86_64" ]] ||
        die 4 "the guest kernel needs Linux on x86-64, this is $(uname -sm); use the engine host"
    local tool missing=()
    for tool in gcc make flex bison bc ld xz tar flock setsid; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    (( ${#missing[@]} == 0 )) || die 1 "missing: ${missing[*]}; ./install.sh installs what is needed"
    gcc -fsyntax-only -include stdio.h -x c /dev/null 2>/dev/null ||
        die 1 "gcc finds no C library headers; ./install.sh installs them (libc6-dev)"
}

check_disk() {
    local free_mb
    free_mb=$(( $(df --output=avail -B 1M "$root" | tail -n 1) ))
    (( free_mb >= NEEDED_MB )) ||
        die 1 "$root has $free_mb MB free, the build needs $NEEDED_MB; free some, or set XDG_CACHE_HOME"
}

prepare_cache() {
    mkdir -p "$root" 2>/dev/null || true
    [[ -w $root ]] ||
        die 1 "cannot write to the cache $root; set XDG_CACHE_HOME to a folder that you can write to"
    exec 9>"$root/lock"
    if ! flock --nonblock 9; then
        say "another build is running, waiting for it"
        flock 9
    fi
    # Holding the lock, so what is left of builds belongs to dead ones.
    rm -rf "$root"/.build-*
    check_disk
    work=$(mktemp -d "$root/.build-XXXXXX")
    mkdir "$work/source" "$work/tree" "$work/objects" "$work/kernel"
    # Asked now, not after two minutes of compiling.
    printf '#!/bin/sh\n' >"$work/probe"
    chmod +x "$work/probe"
    "$work/probe" 2>/dev/null ||
        die 4 "$root is mounted noexec; set XDG_CACHE_HOME to a folder that is not"
    : >"$log"
}

# ---------------------------------------------------------------- finding a source
# Each of these leaves a file in $work/source, or a path in $source, and says in $origin what it is.

is_new_enough() {   # VERSION
    [[ $(printf '%s\n' "$MIN_VERSION" "$1" | sort -V | head -n 1) == "$MIN_VERSION" ]]
}

# The packages of a set of apt lists that hold a kernel source, best first. Debian: linux-source-7.2;
# Ubuntu: linux-source-6.14.0 and linux-hwe-6.14-source-6.14.0.
source_packages() {     # APT-OPTION...
    local package version
    apt-cache "$@" pkgnames linux- |
        grep -E '^linux(-hwe-[0-9.]+)?-source-[0-9]+\.[0-9.]+$' |
        while read -r package; do
            version=${package##*-}
            is_new_enough "$version" || continue
            [[ $version == "$KNOWN_GOOD" || $version == "$KNOWN_GOOD".* ]] && echo "1 $version $package" ||
                echo "0 $version $package"
        done | sort -k 1,1nr -k 2,2Vr | cut -d ' ' -f 3
}

download_package() {    # APT-OPTION...
    local package uri
    for package in $(source_packages "$@"); do
        uri=$(apt-get "$@" --print-uris download "$package" 2>>"$log" | grep "^'") || continue
        download_mb=$(( $(cut -d ' ' -f 3 <<<"$uri") / 1000000 ))
        step "downloading $package:" downloaded \
            env --chdir="$work/source" apt-get "$@" -o APT::Sandbox::User=root download "$package" || {
            tried+=("the download of $package failed")
            continue
        }
        source=$(find "$work/source" -name '*.deb')
        origin="$package $(dpkg-deb --field "$source" Version)"
        return 0
    done
    return 1
}

from_own_lists() {
    command -v apt-cache >/dev/null || return 1
    download_package || {
        tried+=("no package of Linux $MIN_VERSION or newer in this machine's apt lists")
        return 1
    }
}

# The address that the machine itself uses for Debian; the second way is for apt lists that were never read.
debian_mirror() {
    local mirror
    # shellcheck disable=SC2016  # apt's own placeholders
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "Debian" && $2 == "main" && $3 !~ /security|^cdrom/ && !found++ { print $3 }')
    [[ -n $mirror ]] || mirror=$(apt-get --print-uris update |
        sed -n "s|^'\([^']*/debian/\)dists/.*|\1|p" | awk '!found++')
    echo "$mirror"
}

# A newer suite of the machine's own mirror, in an apt state that lives in the work folder. Signatures are
# checked against the distribution's keyring as always.
write_apt_state() {     # MIRROR SUITE
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg options="target=Packages"
    [[ -r $keyring ]] && options+=" signed-by=$keyring"
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    echo "deb [$options] $1 $2 main" >"$work/apt/sources.list"
    cat >"$work/apt/apt.conf" <<EOF
Dir::State::Lists "$work/apt/lists";
Dir::Cache "$work/apt/cache";
Dir::Etc::SourceList "$work/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Acquire::Languages "none";
Acquire::Retries "2";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
EOF
}

from_newer_suites() {
    local mirror suite
    grep -qx 'ID=debian' /etc/os-release || return 1
    mirror=$(debian_mirror)
    [[ -n $mirror ]] || {
        tried+=("apt names no Debian mirror")
        return 1
    }
    for suite in stable-backports testing sid; do
        write_apt_state "$mirror" "$suite"
        step "reading the package list of $suite" nothing \
            apt-get --config-file "$work/apt/apt.conf" -o APT::Sandbox::User=root --error-on=any update || {
            tried+=("Debian's $suite could not be read")
            continue
        }
        download_package --config-file "$work/apt/apt.conf" && return 0
        tried+=("Debian's $suite has none")
    done
    return 1
}

from_kernel_org() {
    source=$work/source/${KERNEL_ORG_URL##*/}
    download_mb=
    step "downloading ${KERNEL_ORG_URL##*/}:" downloaded \
        curl --fail --location --silent --show-error --connect-timeout 15 --retry 2 \
        --output "$source" "$KERNEL_ORG_URL" || {
        tried+=("the download from kernel.org failed")
        return 1
    }
    sha256sum --check --status <<<"$KERNEL_ORG_SHA256  $source" ||
        fail "what kernel.org sent is not ${KERNEL_ORG_URL##*/}: its SHA-256 differs"
    origin="${KERNEL_ORG_URL##*/} of kernel.org"
}

find_source() {
    if [[ -n $named_source ]]; then
        source=$named_source origin=$named_source
        return
    fi
    from_own_lists || from_newer_suites || from_kernel_org || {
        printf 'tried: %s\n' "${tried[@]}" >>"$log"
        fail "no kernel source to be had ($(printf '%s, ' "${tried[@]}")no more to try); name a tree or tarball of" \
            "Linux $MIN_VERSION or newer with --source"
    }
}

# ---------------------------------------------------------------- unpacking

tar_stream() {      # SOURCE: the tarball, tree or package as an uncompressed tar
    local inner
    case $1 in
    *.deb)
        # The tarball inside goes straight through: nothing of the package is written to the disk.
        inner=$(dpkg-deb --contents "$1" | awk '/^-.*\/usr\/src\/.*\.tar\.[a-z0-9]+$/ && !found++ { print $NF }')
        [[ -n $inner ]] || { echo "no tarball in $1" >&2; return 1; }
        dpkg-deb --fsys-tarfile "$1" | tar -xOf - "$inner" | decompress "$inner"
        ;;
    *)
        if [[ -d $1 ]]; then
            tar -C "$(dirname "$1")" --exclude=.git --exclude='*.o' --exclude='*.a' -cf - "$(basename "$1")"
        else
            # shellcheck disable=SC2094  # its name tells the compression; it is only read
            decompress "$1" <"$1"
        fi
        ;;
    esac
}

decompress() {      # NAME
    case $1 in
    *.xz) xz -dc -T0 ;;
    *.bz2) bzip2 -dc ;;
    *.gz | *.tgz) gzip -dc ;;
    *.zst) zstd -dc ;;
    *) cat ;;
    esac
}

# What kernel.config can need, 0.2 of 1.6 GB: whole folders where the list is likely to change from one version
# to the next. Makefiles and Kconfigs are read even of parts that are switched off.
unpack() {      # SOURCE TREE
    tar_stream "$1" | tar -xf - -C "$2" --strip-components=1 --anchored --wildcards --no-wildcards-match-slash \
        --exclude='*/Documentation/*/*' --exclude='*/tools/testing' --exclude='*/arch/x86/kvm' \
        --exclude='*/.config' --exclude='*/include/config' --exclude='*/include/generated' \
        --exclude='*/arch/*/include/generated' \
        '*/arch/um' '*/arch/x86' '*/block/*.h' '*/certs' \
        '*/drivers/base' '*/drivers/char/*.[ch]' '*/drivers/net/*.[ch]' '*/drivers/tty/*.[ch]' \
        '*/fs/*.[ch]' '*/fs/devpts' '*/fs/exportfs' '*/fs/hostfs' '*/fs/kernfs' '*/fs/notify' '*/fs/proc' \
        '*/fs/ramfs' '*/fs/sysfs' '*/include' '*/init' '*/io_uring' '*/ipc' '*/kernel' '*/lib' '*/mm' '*/net' \
        '*/scripts' '*/security/*.[ch]' '*/tools/build' '*/tools/include' '*/tools/scripts' '*/usr' '*/virt' \
        --wildcards-match-slash '*/Makefile*' '*/Kbuild*' '*/Kconfig*'
}

makefile_version() {    # < Makefile
    awk -F ' *= *' '$1 == "VERSION" { v = $2 } $1 == "PATCHLEVEL" { p = $2 } $1 == "SUBLEVEL" { s = $2 }
        NR > 20 { exit } END { if (v) print v "." p "." s }'
}

# The version of a named source, without unpacking it: GNU tar stops at the Makefile of the top folder.
named_version() {
    if [[ -d $named_source ]]; then
        makefile_version <"$named_source/Makefile"
    else
        { tar_stream "$named_source" 2>/dev/null |
            tar -xOf - --anchored --wildcards --no-wildcards-match-slash --occurrence=1 '*/Makefile' 2>/dev/null ||
            true; } | makefile_version
    fi
}

check_named_source() {
    [[ -e $named_source ]] || die 2 "there is no $named_source"
    named_source=$(realpath "$named_source")
    [[ ! -d $named_source || -d $named_source/arch/um ]] ||
        die 2 "$named_source is no kernel source tree: it has no arch/um"
    version=$(named_version 2>/dev/null || true)
    [[ -n $version ]] || die 2 "$named_source holds no kernel source: it has no top folder with a kernel's Makefile"
    is_new_enough "$version" ||
        die 2 "$named_source is Linux $version; the guest needs $MIN_VERSION or newer"
}

# ---------------------------------------------------------------- building

prepare_tree() {
    local tree=$work/tree module name
    [[ -f $tree/Makefile && -d $tree/arch/um ]] || fail "$origin is no kernel source"
    version=$(makefile_version <"$tree/Makefile")
    is_new_enough "$version" || fail "$origin is Linux $version; the guest needs $MIN_VERSION or newer"
    # HZ has no prompt in UML, and its 100 is coarse for TCP's timers: 1000, as distributions have it.
    sed -i '/^config HZ$/,/^config/ s/default 100$/default 1000/' "$tree/arch/um/Kconfig"
    # Two guests then time the same transfer alike, to the nanosecond: see clock.sed.
    sed -i 's/^#define TIMER_MULTIPLIER 256$/#define TIMER_MULTIPLIER 1/' \
        "$tree/arch/um/include/linux/time-internal.h"
    sed -i -f "$here/clock.sed" "$tree/arch/um/kernel/time.c"
    if ! grep -q 'reads = 0' "$tree/arch/um/kernel/time.c" ||
        ! grep -q 'TIMER_MULTIPLIER 1$' "$tree/arch/um/include/linux/time-internal.h"; then
        say "Linux $version has another clock than clock.sed knows: times will repeat to 0.5 us only"
    fi
    # A packet in the emulated pipe is still known to its sender, and the sender's timers send nothing again
    # while it is (tcp_skb_still_in_host_queue): a SYN would wait 2 s instead of 1 at an RTT of 3 s. On a real
    # network it has left the machine.
    sed -i 's/skb_orphan_partial(skb)/skb_orphan(skb)/' "$tree/net/sched/sch_netem.c"
    grep -q 'skb_orphan(skb)' "$tree/net/sched/sch_netem.c" ||
        say "Linux $version has another netem than is known: at RTTs above 1 s SYNs will be sent again late"
    for module in "$here"/tcp_*.c; do
        [[ -e $module ]] || continue
        name=${module##*/}
        [[ ! -e $tree/net/ipv4/$name ]] || die 1 "$name is a file of the kernel's own; give yours another name"
        cp "$module" "$tree/net/ipv4/"
        echo "obj-y += ${name%.c}.o" >>"$tree/net/ipv4/Makefile"
    done
    # A tree of the user's was never to be changed, and is a copy by now.
    [[ -n $named_source ]] || rm -rf "$work/source" "$work/apt"
}

configure() {
    local objects=$work/objects line dropped=()
    cp "$here/kernel.config" "$work/kernel.config"
    step "configuring Linux $version" nothing \
        make -C "$work/tree" ARCH=um O="$objects" KCONFIG_ALLCONFIG="$work/kernel.config" allnoconfig ||
        fail "Linux $version could not be configured"
    while read -r line; do
        grep -qxF "$line" "$objects/.config" || dropped+=("$line")
    done < <(grep '^CONFIG_' "$work/kernel.config"; echo CONFIG_HZ=1000)
    (( ${#dropped[@]} == 0 )) || fail "Linux $version does not take ${dropped[*]}"
}

# Without tracking macro expansions gcc's messages are coarser (and two warnings wrong), and the build is an
# eighth shorter. The build's user, host and date are fixed: the same source gives the same kernel.
compile() {
    step "compiling Linux $version:" compiled \
        make -C "$work/tree" ARCH=um O="$work/objects" -j"$(nproc)" \
        KCFLAGS='-ftrack-macro-expansion=0 -Wno-tautological-compare -Wno-attribute-alias' \
        KBUILD_BUILD_USER=first-flight KBUILD_BUILD_HOST=guest KBUILD_BUILD_TIMESTAMP='1970-01-01 00:00 UTC' \
        linux || fail "Linux $version could not be compiled ($(failure_line))"
    cp "$work/objects/linux" "$work/objects/.config" "$work/kernel/"
    mv "$work/kernel/.config" "$work/kernel/config"
    echo "$version" >"$work/kernel/version"
    echo "$origin" >"$work/kernel/source"
}

failure_line() { grep -m 1 -E 'error:|Error [0-9]|No space left|Killed' "$log" || echo "no error message"; }

# ---------------------------------------------------------------- trying it

# The first process of the trial: sleeps 100 s, says what its clock saw, ends the machine.
write_trial_init() {
    cat >"$work/trial.c" <<'EOF'
#include <stdio.h>
#include <sys/reboot.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    struct timespec before, after;
    struct utsname name;

    uname(&name);
    clock_gettime(CLOCK_MONOTONIC, &before);
    sleep(100);
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("trial: Linux %s slept %ld s\n", name.release, (long)(after.tv_sec - before.tv_sec));
    fflush(stdout);
    return reboot(RB_POWER_OFF);
}
EOF
    gcc -O1 -o "$work/trial" "$work/trial.c" 2>>"$log"
}

try_kernel() {
    local began=$SECONDS
    write_trial_init || fail "the trial program could not be compiled"
    # Not pinned here, but a guest that works should be (taskset): its kernel and its programs take turns, and
    # on one core they do so 4 times faster (60 fetches and 60 MB over a network: 8 s, 32 s on two cores).
    step "booting Linux $version" nothing \
        timeout --kill-after=1 60 "$work/kernel/linux" mem=64M root=none rootfstype=hostfs hostfs=/ rootflags=/ ro \
        "init=$work/trial" con=null con0=fd:0,fd:1 quiet uml_dir="$work/" seccomp=auto time-travel=inf-cpu || true
    grep -q "^trial: Linux $version.* slept 100 s" "$log" && (( SECONDS - began < 50 )) && return
    die 4 "the kernel was built but does not run here: $(boot_failure); the log is $log"
}

boot_failure() {
    local output
    output=$(tail -n 15 "$log")
    case $output in
    *noexec*) echo "its memory is a file in $(sed -n 's/ must be not mounted noexec.*//p' <<<"$output")," \
        "which is mounted noexec; set TMPDIR to a folder that is not" ;;
    *ptrace* | *seccomp*) echo "ptrace and seccomp are both forbidden (by a container's security profile?)" ;;
    *) tail -n 1 <<<"$output" ;;
    esac
}

publish() {
    local folder=$root/$key
    cp "$log" "$work/kernel/build.log"
    if [[ -e $folder ]]; then
        mv -T "$folder" "$work/replaced"
    fi
    mv -T "$work/kernel" "$folder"
}

# ---------------------------------------------------------------- the whole

build() {
    # Looked at again, since another build may have ended while this one waited for the lock.
    is_cached && return
    find_source
    step "unpacking ${source##*/}" nothing "$BASH" -c 'set -o pipefail; unpack "$@"' unpack "$source" "$work/tree" ||
        fail "${source##*/} could not be unpacked ($(tail -n 1 "$log"))"
    prepare_tree
    configure
    compile
    try_kernel
    publish
    say "Linux $version built in $SECONDS s"
}

is_cached() {
    [[ -x $root/$key/linux && -z $force ]] &&
        { [[ -z $named_source ]] || [[ $(cat "$root/$key/version") == "$version" ]]; }
}

parse_arguments() {
    only_path='' force='' named_source=${FIRST_FLIGHT_KERNEL_SOURCE-}
    while (( $# )); do
        case $1 in
        --path) only_path=yes ;;
        --force) force=yes ;;
        --source)
            [[ -n ${2-} ]] || die 2 "--source needs a path"
            named_source=$2
            shift
            ;;
        --source=*) named_source=${1#*=} ;;
        -h | --help) usage; exit 0 ;;
        *) die 2 "what is $1? See build.sh --help" ;;
        esac
        shift
    done
}

main() {
    clear_line=''
    parse_arguments "$@"
    key=$(cache_key)
    root=$(cache_root)
    if [[ -n $only_path ]]; then
        echo "$root/$key/linux"
        [[ -x $root/$key/linux ]]
        exit
    fi
    become_the_invoking_user "$@"
    [[ ! -t 2 ]] || clear_line=$'\r\033[K'
    log=$root/$key.log version='' work='' job='' next_line=0 download_mb='' tried=() with_parent=()
    [[ -z $named_source ]] || check_named_source
    if ! is_cached; then
        check_machine
        setpriv --pdeathsig TERM true 2>/dev/null && with_parent=(setpriv --pdeathsig TERM)
        trap clean_up EXIT
        trap 'interrupted 130' INT
        trap 'interrupted 143' TERM HUP
        prepare_cache
        export -f unpack tar_stream decompress
        build
    fi
    echo "$root/$key/linux"
}

main "$@"
