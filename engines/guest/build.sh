#!/usr/bin/env bash
# Builds the guest kernel: Linux for User-Mode Linux, with time travel.
#
# The source is the distribution's own package where that is new enough, taken without root and
# without changing the machine. Only the parts that kernel.config can need are unpacked. The kernel
# goes into the cache under a hash of all that it is made from, and only after it has booted once.
set -euo pipefail
export LC_ALL=C
unset CDPATH MAKEFLAGS ARCH CROSS_COMPILE CFLAGS KCFLAGS LDFLAGS KBUILD_OUTPUT

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly RECIPE=7             # part of the cache's key: raise it when a kernel is built otherwise
# Before it UML's floating-point state has a fixed size: no boot on CPUs with AMX.
readonly MIN_VERSION=6.13
readonly NEEDED_MB=600        # free disk: the package, the sources unpacked from it, the objects
readonly IMPORT_MB=50         # the same for a kernel that somebody else has built
readonly OBJECTS=620          # about how many files are compiled; only for the progress line

# shellcheck source=engines/guest/source.sh
source "$here/source.sh"
# shellcheck source=engines/guest/compile.sh
source "$here/compile.sh"

usage() {
    cat <<EOF
usage: build.sh [--path | --force | --export FILE | --import FILE] [--source PATH]

Builds the guest kernel if the cache has none for this configuration, and prints its path.

  --path          only print the path; exit 1 if there is no kernel yet
  --source PATH   kernel source to build from: a tree, a tarball or a linux-source package of
                  Linux $MIN_VERSION or newer (default: FIRST_FLIGHT_KERNEL_SOURCE, else the
                  distribution's packages, else kernel.org)
  --force         build even if the cache has it
  --export FILE   write the cache's kernel to a file, for another machine
  --import FILE   take the kernel from such a file instead of building it, if it is what this
                  machine would build: the same configuration, the compiler where there is one,
                  and the source where one is named
  -h, --help      this text

The cache is \${XDG_CACHE_HOME:-~/.cache}/first-flight/kernel. A build takes about two minutes on
two cores and ${NEEDED_MB} MB of disk while it runs; the kernel itself has 6 MB.
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
    # A full disk may have cut off the log as well.
    if grep -qE 'No space left on device|Disk quota exceeded' "$log" || (( $(free_mb) == 0 )); then
        die 4 "$*: no space left for $root; free $NEEDED_MB MB there, or set XDG_CACHE_HOME"
    fi
    die 1 "$*; the log is $log"
}

# Why the last step failed, in the words of apt or curl.
step_reason() {
    tail -n +"$(( began_at + 1 ))" "$log" | grep -m 1 -E '^(E: |curl: )' ||
        tail -n +"$(( began_at + 1 ))" "$log" | tail -n 1
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
        cd "$here" && sha256sum kernel.config clock.{sed,c,h} vdso.c headers.h cc.sh "${modules[@]##*/}"
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

# Each long step is a session of its own, so that it can be ended whole; it ends by itself if this
# script is killed (pdeathsig), and does not inherit the lock (9), which must end with this script.
step() {    # LABEL DETAIL COMMAND...: DETAIL is a function that prints how far it is
    local label=$1 detail=$2 began=$SECONDS
    shift 2
    began_at=$(wc -l <"$log")
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
    for tool in gcc make flex bison bc ld xz tar flock setsid python3; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    (( ${#missing[@]} == 0 )) ||
        die 4 "missing: ${missing[*]}; ./install.sh installs what is needed"
    gcc -fsyntax-only -include stdio.h -x c /dev/null 2>/dev/null ||
        die 4 "gcc finds no C library headers; ./install.sh installs them (libc6-dev)"
}

free_mb() { df --output=avail -B 1M "$root" | tail -n 1; }

check_disk() {
    local free needed=$NEEDED_MB
    [[ -z $imported ]] || needed=$IMPORT_MB
    free=$(( $(free_mb) ))
    (( free >= needed )) ||
        die 4 "$root has $free MB free, the build needs $needed; free some," \
            "or set XDG_CACHE_HOME"
}

prepare_cache() {
    mkdir -p "$root" 2>/dev/null || true
    [[ -w $root ]] ||
        die 4 "cannot write to the cache $root;" \
            "set XDG_CACHE_HOME to a folder that you can write to"
    exec 9>"$root/lock"
    if ! flock --nonblock 9; then
        say "another build is running, waiting for it"
        flock 9
    fi
    # Holding the lock, so what is left of builds belongs to dead ones.
    rm -rf "$root"/.build-*
    check_disk
    work=$(mktemp -d "$root/.build-XXXXXX") || die 4 "no folder can be made in $root; see above"
    mkdir "$work/source" "$work/tree" "$work/objects" "$work/kernel"
    cp "$here/cc.sh" "$here/headers.h" "$work/"
    # Asked now, not after two minutes of compiling.
    printf '#!/bin/sh\n' >"$work/probe"
    chmod +x "$work/probe"
    "$work/probe" 2>/dev/null ||
        die 4 "$root is mounted noexec; set XDG_CACHE_HOME to a folder that is not"
    : >"$log"
}

# ---------------------------------------------------------------- the whole

build() {
    # Looked at again, since another build may have ended while this one waited for the lock.
    is_cached && return
    find_source
    source_hash=$(hash_source "$source")
    step "unpacking ${source##*/}" nothing \
        "$BASH" -c 'set -o pipefail; unpack "$@"' unpack "$source" "$work/tree" ||
        fail "${source##*/} could not be unpacked ($(tail -n 1 "$log"))"
    prepare_tree
    configure
    compile
    try_kernel
    publish 2>>"$log" || fail "Linux $version could not be moved into the cache"
    say "Linux $version built in $SECONDS s"
}

# ---------------------------------------------------------------- a kernel as a file

export_kernel() {
    is_cached || die 1 "no kernel of this configuration is in the cache: ./install.sh builds it"
    [[ -e $root/$key/inputs ]] ||
        die 1 "the kernel in the cache does not say what it was made from: build it with --force"
    python3 "$here/exchange.py" export "$root/$key" "$1" || die 1 "no $1 could be written; see above"
    say "wrote Linux $(<"$root/$key/version") to $1"
}

# What this machine would build from, as far as it is known before a source is fetched.
asked_inputs() {
    echo "configuration $key"
    [[ -z $(compiler) ]] || echo "compiler $(compiler)"
    [[ -z $named_source ]] || echo "source $(hash_source "$named_source")"
}

import_kernel() {
    local asked refused
    can_confine || die 4 "a kernel that was made elsewhere runs only confined, and this machine has no Landlock"
    readarray -t asked < <(asked_inputs)
    refused=$(python3 "$here/exchange.py" import "$1" "$work/kernel" "${asked[@]}" 2>&1) ||
        die 1 "$1 is not taken: $refused"
    version=$(<"$work/kernel/version")
    try_kernel
    publish 2>>"$log" || fail "Linux $version could not be moved into the cache"
    say "took Linux $version from $1"
}

is_cached() {
    [[ -x $root/$key/linux && -z $force ]] &&
        { [[ -z $named_source ]] || [[ $(cat "$root/$key/version") == "$version" ]]; }
}

parse_arguments() {
    only_path='' force='' exported='' imported='' named_source=${FIRST_FLIGHT_KERNEL_SOURCE-}
    while (( $# )); do
        case $1 in
        --path) only_path=yes ;;
        --force) force=yes ;;
        --source | --export | --import)
            [[ -n ${2-} ]] || die 2 "$1 needs a path"
            case $1 in
            --source) named_source=$2 ;;
            --export) exported=$(realpath -m "$2") ;;
            --import) imported=$(realpath -m "$2") ;;
            esac
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
    log=$root/$key.log version='' source_hash='' work='' job='' next_line=0 began_at=0 download_mb='' tried=() with_parent=()
    [[ -z $named_source ]] || check_named_source
    if [[ -n $exported ]]; then
        export_kernel "$exported"
    elif [[ -n $imported ]] || ! is_cached; then
        [[ -n $imported ]] || check_machine
        setpriv --pdeathsig TERM true 2>/dev/null && with_parent=(setpriv --pdeathsig TERM)
        trap clean_up EXIT
        trap 'interrupted 130' INT
        trap 'interrupted 143' TERM HUP
        prepare_cache
        export work
        export -f unpack tar_stream decompress kernel_make precompile
        if [[ -n $imported ]]; then
            import_kernel "$imported"
        else
            build
        fi
    fi
    echo "$root/$key/linux"
}

main "$@"
