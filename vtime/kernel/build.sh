#!/usr/bin/env bash
# Builds the guest kernel: Linux for User-Mode Linux, with time travel.
#
# The source is the distribution's own package where that is new enough, taken without root and
# without changing the machine. Only the parts that kernel.config can need are unpacked. The kernel
# goes into the cache under two hashes, of our part of what it is made from (cache_key) and of its
# source, and only after it has booted once. A link of the first hash alone names the one that runs
# use. A build that was interrupted is continued by the next one that would build the same.
# shellcheck disable=SC2317  # main ends in an exit, traps and steps call the rest
set -euo pipefail
export LC_ALL=C
# What is built begins without environment. These change what is looked at before.
unset CDPATH BASH_ENV ENV TAR_OPTIONS GCC_EXEC_PREFIX COMPILER_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly RECIPE=8             # part of the cache's key: raise it when a kernel is built otherwise
readonly MIN_VERSION=6.12     # of a source that is named: see widen_registers
readonly MIN_UNNAMED=6.13     # where nobody names one: before it guests know ptrace only
readonly NEEDED_MB=600        # free disk: the package, the sources unpacked from it, the objects
readonly NEEDED_FILES=26000   # how many they are
readonly IMPORT_MB=50         # the same for a kernel that somebody else has built
readonly IMPORT_FILES=100

# shellcheck source=vtime/kernel/steps.sh
source "$here/steps.sh"
# shellcheck source=vtime/kernel/source.sh
source "$here/source.sh"
# shellcheck source=vtime/kernel/folders.sh
source "$here/folders.sh"
# shellcheck source=vtime/kernel/compile.sh
source "$here/compile.sh"
# shellcheck source=vtime/kernel/named.sh
source "$here/named.sh"

usage() {
    cat <<EOF
usage: build.sh [--mininet] [--path | --force | --export FILE | --import FILE] [--source PATH] [--keep-objects] [--trust-source]
       build.sh [--mininet] --name NAME [--path] [--source SOURCE] [--patch FILE]… [--config OPTION=VALUE]… [--check-words]
                [--congestion-control FILE.c]… [--trust-source]
       build.sh --list | --remove NAME

Builds the guest kernel if the cache has none for this configuration, and prints its path.

  --mininet       the kernel for commands (./run.sh -- COMMAND) in place of that for trials:
                  also IPv6, Open vSwitch, NAT, more queues (mininet.config)
  --path          only print the path of the kernel that runs use; exit 1 if there is none yet, or
                  with --keep-objects no objects of it
  --source PATH   kernel source to build from: a tree, a tarball or a linux-source package of
                  Linux $MIN_VERSION or newer (default: FIRST_FLIGHT_KERNEL_SOURCE, else the kernel
                  that is there, else the distribution's packages, else kernel.org). Runs use its
                  kernel from then on. The word "default" instead of a path: the distribution's
                  packages or kernel.org, also where the kernel of another source is used
  --force         build even if the cache has it
  --await-tools   fetch the source at once, and begin with the rest when a line on standard input says that
                  what compiles is installed
  --keep-objects  keep the source and what is compiled of it: a kernel under a name is then built
                  of them in seconds (360 MB)
  --trust-source  build a source or patches of somebody's also where this machine cannot confine what
                  they have make run
  --name NAME     a kernel beside that one, under a name: its SOURCE may be a version, too, as 6.18.21
                  or 7.2; FILE is applied to it as by patch -p1, OPTION added to its configuration;
                  --congestion-control FILE.c adds one, in a file of C
  --check-words   only look whether these are a name, patches and options
  --list          the default kernels and those under names, a line each
  --remove NAME   remove one of them, both for trials and for commands
  --export FILE   write the cache's kernel to a file, for another machine
  --import FILE   take the kernel from such a file instead of building it, if it is what this
                  machine would build: the same configuration, the compiler where there is one,
                  and the source where one is named
  -h, --help      this text

The cache is \${XDG_CACHE_HOME:-~/.cache}/first-flight/kernel. A build takes about two minutes on
two cores and ${NEEDED_MB} MB of disk while it runs; the kernel itself has 6 MB. If it is
interrupted, the same command continues it.
Exit status: 0 built or there already, 1 failed, 2 usage, 4 this machine cannot run it.
EOF
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
        [[ -n $for_commands ]] || sha256sum trial.sed trial_random.c
        [[ -z $for_commands ]] || sha256sum mininet.config command{.sed,.c,_os.c,_restart.c} capture{.c,.h,_qdiscs.c,_commands.c} link_time.{c,h}
    } | sha256sum | cut -c 1-16
}

cache_root() {
    local home=${HOME-}
    # Under sudo the kernel belongs into the cache of the user who will run it.
    if (( EUID == 0 )) && [[ -n ${SUDO_USER-} ]]; then
        home=$(getent passwd "$SUDO_USER" | cut -d : -f 6)
    elif [[ -z $home ]]; then
        home=$(getent passwd "$EUID" | cut -d : -f 6)
    fi
    echo "${XDG_CACHE_HOME:-$home/.cache}/first-flight/kernel"
}

# The folder in the cache of the kernel that runs use. Fails where there is none.
chosen() {
    local name
    name=$(readlink "$root/$key") && [[ $name == "$key"-* && $name != */* && -x $root/$name/linux ]] &&
        echo "$root/$name"
}

choose() {  # FOLDER: runs use its kernel from now on
    ln -s "${1##*/}" "$root/.chosen-$$" && mv -T "$root/.chosen-$$" "$root/$key"
}

folder_of() {   # DIGEST: of a source
    echo "$root/$key-${1:0:16}"
}

# Earlier versions had one kernel of each recipe, under a name that did not tell its source.
take_over() {
    local digest folder
    [[ -d $root/$key && ! -L $root/$key ]] || return 0
    digest=$(sed -n 's/^source \([0-9a-f]\{64\}\)$/\1/p' "$root/$key/inputs" 2>/dev/null) || true
    if [[ -n $digest ]]; then
        folder=$(folder_of "$digest")
        mv -T "$root/$key" "$folder" && choose "$folder"
    else
        rm -rf "${root:?}/$key"     # nobody knows what it was made from
    fi
}

# Compiling needs no root, and files made by the user need not be given back. Without a process in
# between: it ends with whoever started it.
become_the_invoking_user() {
    (( EUID == 0 )) && [[ -n ${SUDO_USER-} && $SUDO_USER != root ]] || return 0
    exec setpriv --reuid "$SUDO_USER" --regid "$(id -g "$SUDO_USER")" --init-groups \
        --pdeathsig TERM env --default-signal=TERM HOME="$(getent passwd "$SUDO_USER" | cut -d : -f 6)" \
        "$BASH" "$here/build.sh" "$@"
}

# ---------------------------------------------------------------- how it ends

clean_up() {
    local status=$?
    trap - EXIT INT TERM HUP
    if [[ -n ${job-} ]]; then
        kill -TERM -- "-$job" 2>/dev/null || true
        wait "$job" 2>/dev/null || true
    fi
    rm -rf "$root"/.import-*
    park
    exit "$status"
}

interrupted() {     # STATUS
    if [[ -n $pristine && -z $imported ]]; then
        say "interrupted; the same command continues the build ($(kept_mb) MB are kept in $root)"
    else
        say "interrupted"
    fi
    exit "$1"
}

# ---------------------------------------------------------------- what the machine must have

check_machine() {
    [[ $(uname -sm) == "Linux x86_64" ]] ||
        die 4 "the guest kernel needs Linux on x86-64, this is $(uname -sm); use the engine host"
}

# With --await-tools they are being installed, until there is a line on standard input, or its end.
have_tools() {
    local tool missing=()
    if [[ -n $awaits_tools ]]; then
        until read -r -t 0.2 || (( $? < 128 )); do :; done      # a trap runs between two of these
        awaits_tools=''
    fi
    for tool in gcc make flex bison bc ld xz tar flock setsid setpriv python3; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    (( ${#missing[@]} == 0 )) ||
        die 4 "missing: ${missing[*]}; ./install.sh installs what is needed"
    gcc -fsyntax-only -include stdio.h -x c /dev/null 2>/dev/null ||
        die 4 "gcc finds no C library headers; ./install.sh installs them (libc6-dev)"
    find_wall
}

free_mb() { df --output=avail -B 1M "$root" | tail -n 1; }

kept_mb() { du -scm "$root/.build" "$pristine" 2>/dev/null | tail -n 1 | cut -f 1; }

# What a build still needs: what an interrupted one has written is there already.
needed_mb() {
    local needed=$NEEDED_MB kept
    kept=$(kept_mb)
    (( kept > 1 )) || kept=0
    [[ -z $imported ]] || needed=$IMPORT_MB kept=0
    (( needed > kept + IMPORT_MB )) && echo $(( needed - kept )) || echo $IMPORT_MB
}

check_disk() {
    local free needed
    free=$(( $(free_mb) )) needed=$(needed_mb)
    if (( free < needed )); then
        discard "$root"/trees/*-default-*    # of interrupted builds
        free=$(( $(free_mb) ))
    fi
    (( free >= needed )) ||
        die 4 "$root has $free MB free, the build needs $needed; free some," \
            "or set XDG_CACHE_HOME"
    free=$(df --output=iavail "$root" | tail -n 1) needed=$NEEDED_FILES
    [[ -z $imported && ! -e $pristine/whole ]] || needed=$IMPORT_FILES
    # Some file systems have no such limit and no number, and say 0 or -.
    (( ${free//[^0-9]/} + 0 >= needed )) || (( $(df --output=itotal "$root" | tr -dc 0-9) + 0 == 0 )) ||
        no_room "$root has room for ${free// /} more files, the build needs $needed"
}

no_room() {     # [WHAT]
    die 4 "${1:-no file can be made in $root, as on a full disk}; free some, or set XDG_CACHE_HOME"
}

lock_cache() {
    mkdir -p "$root" 2>/dev/null || true
    [[ -w $root ]] ||
        die 4 "cannot write to the cache $root;" \
            "set XDG_CACHE_HOME to a folder that you can write to"
    { exec 9>"$root/lock"; } 2>/dev/null || no_room
    flock --nonblock 9 && return
    say "another build is running, waiting for it"
    until flock --nonblock 9; do sleep 0.2; done    # a trap runs between two of these
}

# Takes the lock, and puts away what killed builds have left.
begin_build() {
    lock_cache
    rm -rf "$root"/.import-*
    find "$root" -maxdepth 1 -name '.chosen-*' -mmin +1 -delete
    trap clean_up EXIT
    park
    tidy
    { : >"$log" && printf '#!/bin/sh\n' >"$root/.probe" && chmod +x "$root/.probe"; } 2>/dev/null || no_room
    check_noexec
    check_disk
}

# What a stranger wrote is built behind a whole wall, or where the user trusts him.
find_wall() {
    local lacking
    around=$(python3 -IB "$here/wall.py" --around) || die 1 "the wall around a build could not be tried; see above"
    lacking=$(tail -n +2 <<<"$around")
    around=$(head -n 1 <<<"$around")
    [[ -n $lacking ]] || return 0
    [[ -z $is_foreign && -z ${patches[*]}${controls[*]} || -n $trusted ]] ||
        die 4 "a build is not confined here: $lacking; if you trust whoever wrote its source and patches," \
            "add --trust-source"
    say "this build is not confined: $lacking"
}

# Asked before anything is fetched and compiled, which takes minutes.
check_noexec() {
    "$root/.probe" 2>/dev/null ||
        die 4 "$root is mounted noexec; set XDG_CACHE_HOME to a folder that is not"
    rm -f "$root/.probe"
}

# What is left of an interrupted build may be damaged, as by a power failure.
begin_anew() {
    say "what is left of an interrupted build cannot be used, building anew"
    discard "$root/.build"
    [[ -n $kernel_name ]] || discard "${pristine:?}"
    exec "$BASH" "$here/build.sh" "${arguments[@]}"
}

# ---------------------------------------------------------------- the whole

build() {
    # Looked at again, since another build may have ended while this one waited for the lock.
    ! is_cached || return 0
    obtain_source
    take_tree "$(kind)-default-$({ echo "$key"; compiler; echo "$spec"; } | sha256sum | cut -c 1-16)"
    [[ -z $continued ]] || say "continuing an interrupted build of Linux $version"
    note "$work/begun" "$key"
    make_kernel
    publish 2>>"$log" || fail "Linux $version could not be moved into the cache"
    rm -f "$pristine/wanted"
    if [[ -z $keep_objects ]]; then
        discard "$work"
    else
        touch "$work/kept"      # also when no kernel under a name is left
        if [[ -n $is_foreign ]]; then park "$(kind)-of-default"; else park "$(tree_of_version)"; fi
    fi
    tidy
    say "Linux $version built in $SECONDS s"
}

# ---------------------------------------------------------------- a kernel as a file

export_kernel() {
    local folder
    folder=$(chosen) || die 1 "no kernel of this configuration is in the cache: ./install.sh${for_commands:+ --with-mininet} builds it"
    python3 "$here/exchange.py" export "$folder" "$1" || die 1 "no $1 could be written; see above"
    say "wrote Linux $(<"$folder/version") to $1"
}

# What this machine would build from, as far as it is known before a source is fetched.
asked_inputs() {
    echo "configuration $key"
    [[ -z $(compiler) ]] || echo "compiler $(compiler)"
    [[ -z $named_digest ]] || echo "source $named_digest"
}

import_kernel() {
    local asked refused
    { work=$(mktemp -d "$root/.import-XXXXXX") && mkdir "$work"/{kernel,boot}; } 2>/dev/null || no_room
    can_confine || die 4 "a kernel that was made elsewhere runs only confined, and this machine has no Landlock"
    readarray -t asked < <(asked_inputs)
    refused=$(python3 "$here/exchange.py" import "$1" "$work/kernel" "${asked[@]}" 2>&1) ||
        die $(( $? == 2 ? 2 : 1 )) "$1 is not taken: $refused"
    version=$(<"$work/kernel/version")
    source_hash=$(sed -n 's/^source //p' "$work/kernel/inputs")
    try_kernel
    publish 2>>"$log" || fail "Linux $version could not be moved into the cache"
    discard "$root"/trees/"$(kind)"-default-*     # nobody needs to continue it
    tidy
    say "took Linux $version from $1"
}

# Whether what was compiled of the kernel that runs use is kept, if that is asked for. An earlier build
# may not have kept it.
has_objects() {
    local folder version
    [[ -n $keep_objects ]] || return 0
    folder=$(chosen) && version=$(<"$folder/version") &&
        [[ -d $root/trees/$(tree_of_version) || -d $root/trees/$(kind)-of-default ]]
}

# Whether the kernel that is wanted is there; runs use it then.
is_cached() {
    local folder
    [[ -z $force ]] || return
    has_objects || return
    if [[ -n $named_digest ]]; then
        folder=$(chosen) && grep -qx "source $named_digest" "$folder/inputs" 2>/dev/null && return
        folder=$(folder_of "$named_digest")
        [[ -x $folder/linux ]] || return
    elif [[ -n $wants_default ]]; then
        folder=$(default_kernel) || return
    else
        chosen >/dev/null
        return
    fi
    [[ $(chosen) == "$folder" ]] || choose "$folder"
}

# The newest kernel of a source that nobody named. Fails where there is none.
default_kernel() {
    local folder newest=''
    for folder in "$root/$key"-*; do
        if [[ -x $folder/linux && -s $folder/source && $(<"$folder/source") != /* ]]; then
            [[ -n $newest && $newest -nt $folder ]] || newest=$folder
        fi
    done
    [[ -n $newest ]] && echo "$newest"
}

parse_arguments() {
    only_path='' force='' for_commands='' exported='' imported='' named_source=${FIRST_FLIGHT_KERNEL_SOURCE-}
    trusted='' awaits_tools='' kernel_name='' removed='' only_list='' only_words='' keep_objects='' patches=() controls=() options=() wanted_version=''
    arguments=()    # of a build that begins anew
    while (( $# )); do
        [[ $1 == --await-tools ]] || arguments+=("$1")
        case $1 in
        --path) only_path=yes ;;
        --mininet) for_commands=yes ;;
        --force) force=yes ;;
        --keep-objects) keep_objects=yes ;;
        --await-tools) awaits_tools=yes ;;
        --trust-source) trusted=yes ;;
        --list) only_list=yes ;;
        --check-words) only_words=yes ;;
        --source | --export | --import | --name | --patch | --congestion-control | --config | --remove)
            [[ $1 == --name || $1 == --remove || -n ${2-} ]] || die 2 "$1 needs a value"
            [[ $# -gt 1 ]] || die 2 "$1 needs a value"
            arguments+=("$2")
            case $1 in
            --source) named_source=$2 ;;
            --name) check_name "$2"; kernel_name=$2 ;;
            --remove) check_name "$2"; removed=$2 ;;
            --patch) patches+=("$2") ;;
            --congestion-control) controls+=("$2") ;;
            --config) options+=("$(checked_option "$2")") || exit 2 ;;
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
    [[ -n $kernel_name || -z ${patches[*]}${controls[*]}${options[*]} ]] ||
        die 2 "--patch, --congestion-control and --config are of a kernel under a name: give --name NAME"
}

main() {
    clear_line=''
    parse_arguments "$@"
    key=$(cache_key)
    root=$(cache_root)
    if [[ -n $only_words ]]; then
        check_patches
        exit
    elif [[ -n $only_list ]]; then
        list_kernels
        exit
    elif [[ -n $removed ]]; then
        become_the_invoking_user "$@"
        remove_named "$removed"
        exit
    elif [[ -n $kernel_name && -n $only_path ]]; then
        named_path
        exit
    elif [[ -n $only_path ]]; then
        local folder
        if [[ -d $root/$key && ! -L $root/$key ]]; then     # of an earlier version
            become_the_invoking_user "$@"
            take_over || true
        fi
        folder=$(chosen) || { echo "$root/$key/linux"; exit 1; }
        echo "$folder/linux"
        has_objects || exit 1
        exit
    fi
    become_the_invoking_user "$@"
    [[ ! -t 2 ]] || clear_line=$'\r\033[K'
    log=$root/$key.log version='' origin='' source_hash='' pristine='' work='' job='' next_line=0 began_at=0
    download_mb='' compiled_before=0 tried=() continued='' around=none
    trap 'interrupted 130' INT
    trap 'interrupted 143' TERM HUP
    take_over
    check_patches
    name_source
    if [[ -n $exported ]]; then
        export_kernel "$exported"
    elif [[ -n $kernel_name || -n $imported ]] || ! is_cached; then
        if [[ -z $imported ]]; then
            check_machine
            [[ -n $awaits_tools && -z $named_source ]] || have_tools
        fi
        [[ -z $named_source ]] || check_named_source
        if [[ -n $kernel_name ]]; then
            build_named
            exit 0
        fi
        begin_build
        if [[ -n $imported ]]; then
            import_kernel "$imported"
        else
            build
        fi
    fi
    echo "$(chosen)/linux"
    exit 0  # here: this file may have been changed meanwhile, and bash would read on in it
}

main "$@"
