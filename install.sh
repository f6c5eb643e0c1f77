#!/bin/bash
# Installs everything the project needs: packages, then the guest kernel. Safe to run twice, and quick then.
# shellcheck disable=SC2317  # main ends in an exit, traps and steps call the rest
[ -n "${BASH_VERSION-}" ] || exec /bin/bash "$0" "$@"  # as sh install.sh
set -euo pipefail
[[ -n $(type -P env) ]] || export PATH=${PATH:+$PATH:}/usr/sbin:/usr/bin:/sbin:/bin
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
export LC_ALL=C

# Recommended packages are not installed: Mininet's would bring Open vSwitch and its services, and the project's
# networks use Linux bridges. None of these packages starts a service.
readonly TO_RUN=(
    mininet iproute2 net-tools procps                             # the network
    curl wget ca-certificates                                     # the clients
    python3 python3-cryptography python3-dpkt python3-jinja2 python3-matplotlib python3-numpy python3-pil python3-pycurl python3-scipy python3-tqdm
)
readonly TO_BUILD=(gcc libc6-dev make flex bison bc xz-utils bzip2 python3  # the guest kernel
    curl ca-certificates)                                      # and its source, where apt has none
readonly TO_PATCH=(patch)     # for --kernel NAME --patch
readonly TO_CLUSTER=(python3-distributed openssl)    # for run.sh --cluster, and its machines
readonly TO_PQ=(debian-archive-keyring python3)    # fetches Debian 13's packages for guests
readonly TO_SERVE=(nginx-light)                       # for run.sh --server nginx: the program, not the service
readonly TO_BROWSE=(chromium-headless-shell fonts-liberation "${TO_SERVE[@]}")   # for run.sh --page --client chromium
readonly TO_SHOW=(python3-doc debian-edu-doc-en mkdocs-doc)    # the pages of the scenario browser2026
readonly TO_MININET=(bridge-utils iperf iperf3 iputils-ping netcat-openbsd openvswitch-switch openvswitch-testcontroller psmisc tcpdump telnet)  # for users' Mininet scripts
readonly TO_TEST=("${TO_CLUSTER[@]}" "${TO_BROWSE[@]}" "${TO_PQ[@]}" python3-pytest python3-pytest-xdist python3-hypothesis python3-pandas mypy pyflakes3 shellcheck tshark)
readonly MIN_PYTHON=3.10
readonly TOMLI_BEFORE=3.11      # where Python's own tomllib begins

usage() {
    cat <<EOF
usage: install.sh [--check] [--test] [--with-cluster] [--with-nginx] [--with-browser] [--with-mininet] [--with-pq]
                  [--no-kernel | --import-kernel FILE]
       install.sh [--with-mininet] --export-kernel FILE | --remove-pq | --only-python
       install.sh [--with-mininet] --kernel NAME [--source DIR|TAR|VERSION] [--patch FILE]… [--config OPTION=VALUE]…
                  [--congestion-control FILE.c]… [--trust-source]
       install.sh --list-kernels | --remove-kernel NAME

Installs what is missing: Debian's or Ubuntu's packages (as root, or by sudo) and the guest kernel,
which is built from source once (two minutes on two cores) while packages are installed. It prints
first what it is going to do. If it is interrupted or killed, run it again: it continues.

  --check       install nothing; print what is missing, and exit 1 if anything is
  --test        also what ./test.sh needs: both kernels, and the programs that Mininet scripts start
  --with-cluster    also Dask, for run.sh --cluster (docs/INSTALL.md)
  --with-nginx  also nginx, for run.sh --server nginx (docs/STUDIES.md); it is not started as a service
  --with-browser  also Chromium without a window (290 MB), a font and nginx, for run.sh --page --client chromium
                (docs/QUESTIONS.md), and the pages of the scenario browser2026 (110 MB of documents)
  --with-mininet  for ./run.sh -- COMMAND (vtime/MININET.md): the kernel for commands in place of the one for
                trials, and programs that Mininet scripts start: Open vSwitch, its controller, brctl, iperf,
                iperf3, ping, killall, nc, tcpdump, telnet; none of their services is started
  --for-commands  only that kernel, and Mininet
  --with-pq     also Debian 13's programs for guests: OpenSSL 3.5 with ML-DSA, SLH-DSA and ML-KEM
                (docs/STUDIES.md). apt fetches 50 MB and checks the signatures. Unpacked in the
                cache they take 120 MB; the machine's own packages do not change. Where they are
                installed already they are checked, and fetched again if they were changed
  --remove-pq   remove Debian 13's programs
  --no-kernel   without the guest kernel and the compiler for it (then only the engine host works)
  --only-python    Python only: run.sh reads its flags with it before it installs the rest
  --export-kernel FILE   write the guest kernel to a file, for machines that should not build it again
  --import-kernel FILE   take the guest kernel from such a file, if it is the one that this machine would
                build; with --with-mininet both flags are about the kernel for commands
  --kernel NAME a kernel beside the default one, under a name for run.sh --kernel (vtime/KERNELS.md); with
                --with-mininet one for commands. --source: a tree, an archive, or a version such as 7.2 or
                6.18.21 (default: as the default kernel). --patch: applied to it as by patch -p1.
                --config: added to its configuration. --congestion-control: one in a file of C, as my.c, for
                run.sh --kernel NAME --cc. The same NAME again builds what changed, in seconds
  --trust-source   a source or a patch has a build run programs of its author's. They are confined; where
                this machine cannot confine them, they may do with this flag whatever you may
  --list-kernels   list the default kernels and the named ones
  --remove-kernel NAME   remove a named kernel
  -h, --help    this text

FIRST_FLIGHT_KERNEL_SOURCE may name a kernel source to build from. Runs then use that kernel, until the
variable names another source, or "default" for the distribution's: see vtime/kernel/build.sh --help.
FIRST_FLIGHT_DEBIAN_MIRROR names a mirror of Debian for --with-pq, where this machine's apt has none.
Exit status: 0 everything is installed, 1 failed, 2 wrong usage, 4 this machine cannot, 130 interrupted.
EOF
}

say() { printf 'install: %s\n' "$*" >&2; }

die() {     # STATUS MESSAGE
    local status=$1
    shift
    say "$*"
    exit "$status"
}

is_before() {   # VERSION VERSION
    [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]
}

# ---------------------------------------------------------------- what is missing

check_distribution() {
    [[ -e /proc/self/fd ]] || die 4 "/proc is not mounted: mount it (mount -t proc proc /proc)"
    local name=other version=0
    if [[ -r /etc/os-release ]]; then
        name=$(sed -n 's/^ID="\{0,1\}\([^"]*\).*/\1/p' /etc/os-release)
        version=$(sed -n 's/^VERSION_ID="\{0,1\}\([^"]*\).*/\1/p' /etc/os-release)
    fi
    case $name in
    debian) [[ -z $version ]] || ! is_before "$version" 12 || die 4 "Debian $version is too old, 12 or newer is needed" ;;
    ubuntu) ! is_before "$version" 22.04 || die 4 "Ubuntu $version is too old, 22.04 or newer is needed" ;;
    esac
    [[ -n $(type -P apt-get) && -n $(type -P dpkg-query) ]] ||
        die 4 "made for Debian 12+ and Ubuntu 22.04+, and there is no apt here; elsewhere install what provides:" \
            "${wanted[*]}"
}

is_kernel_there() {     # FLAG: of build.sh, or none
    # The user's source may have another version than the cached kernel: then build.sh compares.
    [[ -z ${FIRST_FLIGHT_KERNEL_SOURCE-} ]] && "$here/vtime/kernel/build.sh" ${1:+"$1"} "${keep[@]}" --path >/dev/null
}

# make, check or remove: Debian 13's programs, as the user who will run guests.
newer_debian() {
    local -a as=()
    if (( EUID == 0 )) && [[ -n ${SUDO_USER-} && $SUDO_USER != root ]]; then
        as=(--reuid "$SUDO_USER" --regid "$(id -g "$SUDO_USER")" --init-groups
            env "HOME=$(getent passwd "$SUDO_USER" | cut -d : -f 6)")
    fi
    setpriv --pdeathsig TERM "${as[@]}" /usr/bin/python3 "$here/vtime/kernel/debian.py" "$1"
}

# The wanted packages that are not installed, one a line.
missing_packages() {
    comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) \
        <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2>/dev/null |
            sed -n 's/^.i  *//p' | sort -u)
}

python_version() {
    local version
    version=$(dpkg-query -W -f '${Version}' python3 2>/dev/null) || true
    # Not installed yet: the version that apt would install.
    [[ -n $version ]] || version=$(apt-cache policy python3 | sed -n 's/^  Candidate: \([0-9].*\)/\1/p')
    echo "$version"
}

# Python before 3.11 needs a package for TOML. Called again once the package lists are read.
want_tomli() {
    local version
    version=$(python_version)
    [[ -n $version ]] || return 0
    ! is_before "$version" "$MIN_PYTHON" || die 4 "Python $version is too old, $MIN_PYTHON or newer is needed"
    ! is_before "$version" "$TOMLI_BEFORE" || wanted+=(python3-tomli)
}

# ---------------------------------------------------------------- installing

as_root() {
    if (( EUID == 0 )); then
        "$@"
    else
        sudo "$@"
    fi
}

check_rights() {
    (( EUID != 0 )) || return 0
    local advice="run as root: apt-get install --no-install-recommends ${missing[*]}"
    command -v sudo >/dev/null || die 4 "packages are missing and there is no sudo; $advice"
    # Where nobody can type a password, this message says more than sudo's.
    sudo -n true 2>/dev/null || [[ -t 0 ]] ||
        die 4 "packages are missing and sudo wants a password that no one can type here; $advice"
}

# noninteractive: no questions. Ubuntu's needrestart would restart services that use a replaced library.
apt() {
    began_at=$(wc -l <"$log")
    as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >>"$log" 2>&1
}

# Why the last apt-get failed: its first error, else the last line of its output (as of sudo).
apt_reason() {
    tail -n +"$(( began_at + 1 ))" "$log" | grep -m 1 -E '^(E: |dpkg: error )' ||
        tail -n +"$(( began_at + 1 ))" "$log" | tail -n 1
}

# Packages of `missing` that apt's lists do not offer.
not_offered() {
    comm -23 <(printf '%s\n' "${missing[@]}" | sort -u) \
        <(apt-cache policy "${missing[@]}" 2>/dev/null |
            awk '/^[^ ]/ { name = $1; sub(/:.*/, "", name) } /^  Candidate: [^(]/ { print name }' | sort -u)
}

read_lists() {
    local began=$SECONDS
    if apt update; then
        say "read the package lists, $(( SECONDS - began )) s"
    else
        # Often only one of several sources cannot be reached, and the others are enough.
        keep_log=yes
        update_failed="; apt-get update failed: $(apt_reason)"
        say "continuing with the old package lists$update_failed (its log is $log)"
    fi
}

check_offered() {
    local absent hint=''
    absent=$(not_offered)
    [[ -n $absent ]] || return 0
    grep -qx 'ID=ubuntu' /etc/os-release && hint='; on Ubuntu they are in universe: sudo add-apt-repository universe'
    keep_log=yes
    # shellcheck disable=SC2086  # one line of it
    die 4 "no package source offers" $absent"$hint$update_failed (apt's log is $log)"
}

# Global, since the trap runs after main has ended.
log='' keep_log='' update_failed='' builds=()

clean_up() {
    [[ -n $keep_log ]] || rm -f "$log"
    [[ -z ${builds[*]} ]] || ! kill "${builds[@]}" 2>/dev/null || wait "${builds[@]}" || true
}

interrupted() {     # STATUS
    say "interrupted; the same command continues"
    exit "$1"
}

# Some of Debian's packages start a service, at once and at every boot: a web server on port 80, a switch,
# its controller. A service that is installed already is left alone.
readonly SERVICES='nginx-light nginx /usr/sbin/nginx
openvswitch-switch openvswitch-switch /usr/sbin/ovs-vswitchd
openvswitch-switch ovsdb-server /usr/sbin/ovs-vswitchd
openvswitch-switch ovs-vswitchd /usr/sbin/ovs-vswitchd
openvswitch-testcontroller openvswitch-testcontroller /usr/bin/ovs-testcontroller'
keep_services_from_starting() {
    local package name program unit
    while read -r package name program; do
        unit=/etc/systemd/system/$name.service
        if [[ " ${missing[*]} " == *" $package "* && -d ${unit%/*} && ! -e $unit && ! -x $program ]]; then
            as_root ln -s /dev/null "$unit" &&
                say "$name.service is masked: systemctl unmask $name makes a service of it"
        fi
    done <<<"$SERVICES"
}

install_packages() {    # [FUNCTION]: the wanted ones that are missing; it is called before they are
    local began
    readarray -t missing < <(missing_packages)
    (( ${#missing[@]} > 0 )) || return 0
    check_rights
    [[ -n $log ]] || log=$(mktemp -t first-flight-install.XXXXXX.log) ||
        die 4 "cannot create a file in ${TMPDIR:-/tmp}; see above"
    if [[ -n $(not_offered) ]]; then
        read_lists
        want_tomli
        readarray -t missing < <(missing_packages)
        check_offered
    fi
    "${1-:}"
    began=$SECONDS
    say "installing ${missing[*]}"
    keep_services_from_starting
    if ! apt install --no-install-recommends "${missing[@]}"; then
        # Most often the lists are old, and name files that the mirror does not have any more.
        read_lists
        apt install --no-install-recommends "${missing[@]}" || {
            keep_log=yes
            die 4 "apt-get install failed: $(apt_reason); repair that and run ./install.sh again (its log is $log)"
        }
    fi
    say "installed packages: ${#missing[@]}, $(( SECONDS - began )) s"
}

# Each build gets SIGTERM if this script is killed; the shell notices if that happened even earlier.
start_builds() {        # [--await-tools]
    local kernel
    for kernel in "${missing_kernels[@]}"; do
        # shellcheck disable=SC2016  # that shell expands it
        env --default-signal=TERM setpriv --pdeathsig TERM "$BASH" -c '[ "$PPID" = "$0" ] && exec "$@"' "$$" \
            "$here/vtime/kernel/build.sh" ${kernel:+"$kernel"} "$@" "${keep[@]}" "${trusted[@]}" >/dev/null <&"$ready" &
        builds+=("$!")
    done
}

# The source of a kernel is fetched while what compiles is installed. sudo asks for a password before
# that, since the build's progress would hide its question.
fetch_meanwhile() {
    as_root true || true
    start_builds --await-tools
}

# What compiles is installed first; kernels are built, one after another, while the rest is installed.
install_all() {
    local every=("${wanted[@]}") status=0 pq_status=0 ready
    if (( ${#missing_kernels[@]} > 0 )) && [[ -z $imported ]]; then
        wanted=("${TO_BUILD[@]}")
        exec {ready}<> <(:)     # a pipe: a line for each build, once it may go on
        install_packages fetch_meanwhile
        (( ${#builds[@]} > 0 )) || start_builds
        printf '%s\n' "${builds[@]}" >&"$ready"
    fi
    wanted=("${every[@]}")
    install_packages
    [[ -z $with_pq ]] || newer_debian make || pq_status=$?
    if [[ -n $imported ]]; then
        "$here/vtime/kernel/build.sh" ${kernels[0]:+"${kernels[0]}"} --import "$imported" >/dev/null || status=$?
    fi
    while (( ${#builds[@]} > 0 )); do
        wait "${builds[0]}" || { status=$?; break; }
        builds=("${builds[@]:1}")
    done
    (( status != 2 )) || exit 2     # the named file or source is wrong, and build.sh has printed why
    (( status == 0 )) || die "$status" "no guest kernel; ./install.sh --no-kernel does without (the engine host works then)"
    (( pq_status == 0 )) || exit "$pq_status"
}

# ---------------------------------------------------------------- the whole

# Print what is going to be done and how long it takes (measured on two cores; 165 MB are fetched). The
# kernel for commands has twice as many files.
announce() {
    local packages='' kernel='' minutes parts count=${#missing_kernels[@]}
    (( ${#missing[@]} == 0 )) || packages="${#missing[@]} packages by apt (a minute or two)"
    if (( count > 0 )) && [[ -z $imported && -z ${FIRST_FLIGHT_KERNEL_SOURCE-} ]]; then
        parts=$count kernel="the guest kernel"
        [[ ${missing_kernels[*]} != *--mininet* ]] || parts=$(( parts + 1 ))
        minutes=$(( (parts * (120 / $(nproc) + 60) + 59) / 60 ))
        (( count == 1 )) || kernel="both guest kernels"
        kernel+=" from source (about $minutes minutes, 600 MB of disk until it is built, 6 MB then)"
    fi
    [[ -z $packages$kernel ]] ||
        say "going to install $packages${packages:+${kernel:+, and }}$kernel; it can be interrupted and continues then"
}

report_missing() {
    (( ${#missing[@]} == 0 )) || say "missing packages: ${missing[*]}"
    (( ${#missing_kernels[@]} == 0 )) || say "missing: the guest kernel${keep[*]:+, or what was compiled of it}"
    local pq_missing=''
    [[ -z $with_pq ]] || newer_debian check || pq_missing=yes
    [[ ${#missing[@]} == 0 && ${#missing_kernels[@]} == 0 && -z $pq_missing ]] || exit 1
    say "nothing is missing"
}

main() {
    local named=() only_named='' alone=() words=$# without_kernel=''
    keep=() trusted=()
    local only_check='' kernels=('') missing_kernels=() imported='' exported='' with_pq='' kernel    # '': that for trials
    wanted=("${TO_RUN[@]}")
    while (( $# )); do
        case $1 in
        --check) only_check=yes ;;
        --test) keep=(--keep-objects) kernels=('' --mininet); wanted+=("${TO_TEST[@]}" "${TO_MININET[@]}") ;;
        --with-cluster) wanted+=("${TO_CLUSTER[@]}") ;;
        --with-nginx) wanted+=("${TO_SERVE[@]}") ;;
        --with-browser) wanted+=("${TO_BROWSE[@]}" "${TO_SHOW[@]}") ;;
        --with-mininet) (( ${#kernels[@]} == 2 )) || kernels=(--mininet); wanted+=("${TO_MININET[@]}") ;;
        --for-commands) kernels=(--mininet) ;;
        --with-pq) with_pq=yes; wanted+=("${TO_PQ[@]}") ;;
        --remove-pq) newer_debian remove; exit ;;
        --no-kernel) kernels=() without_kernel=yes ;;
        --only-python) kernels=() wanted=(python3) ;;
        --export-kernel | --import-kernel)
            [[ -n ${2-} ]] || die 2 "$1 needs the name of a file"
            if [[ $1 == --import-kernel ]]; then imported=$2; else exported=$2; fi
            shift
            ;;
        --kernel)
            [[ -z $only_named ]] || die 2 "--kernel is given twice, and one kernel is built at a time"
            only_named=yes named+=(--name "${2-}")
            shift $(( $# > 1 ))
            ;;
        --source | --patch | --congestion-control | --config) named+=("$1" "${2-}"); shift $(( $# > 1 )) ;;
        --trust-source) trusted=(--trust-source) ;;
        --list-kernels) alone=(--list) ;;
        --remove-kernel) alone=(--remove "${2-}"); shift $(( $# > 1 )) ;;
        -h | --help) usage; exit 0 ;;
        *) die 2 "unknown flag $1; see install.sh --help" ;;
        esac
        shift
    done
    if (( ${#alone[@]} > 0 )); then
        (( words <= ${#alone[@]} )) || die 2 "--list-kernels and --remove-kernel NAME are used alone, without other flags"
        exec "$here/vtime/kernel/build.sh" "${alone[@]}"
    fi
    [[ -z ${named[*]} || -n $only_named ]] || die 2 "--source, --patch, --congestion-control and --config need" \
        "--kernel NAME, which they build"
    if [[ -n $only_named ]]; then
        [[ -z $exported$imported$without_kernel ]] || die 2 "--export-kernel, --import-kernel and --no-kernel are about" \
            "the default kernel; --kernel NAME builds one from its source and patches, on each machine"
        # Wrong names, patches and options are refused before anything is installed.
        "$here/vtime/kernel/build.sh" "${named[@]}" --check-words || exit
        [[ -z ${kernels[0]-} ]] || named+=("${kernels[0]}")
        named+=("${trusted[@]}")
        kernels=() wanted+=("${TO_BUILD[@]}" "${TO_PATCH[@]}")
    fi
    [[ -z $exported ]] || exec "$here/vtime/kernel/build.sh" ${kernels[0]:+"${kernels[0]}"} --export "$exported"
    check_distribution
    for kernel in "${kernels[@]}"; do
        if [[ -n $imported ]] || is_kernel_there "$kernel"; then continue; fi
        [[ $(uname -sm) == "Linux x86_64" ]] ||
            die 4 "the guest kernel needs Linux on x86-64, this is $(uname -sm); ./install.sh --no-kernel does without" \
                "(the engine host works then)"
        missing_kernels+=("$kernel")
        wanted+=("${TO_BUILD[@]}")
    done
    want_tomli
    readarray -t missing < <(missing_packages)
    if [[ -n $only_check ]]; then
        [[ -z $only_named ]] || "$here/vtime/kernel/build.sh" "${named[@]}" --path >/dev/null || exit
        report_missing
        exit 0
    fi
    announce
    trap clean_up EXIT
    trap 'interrupted 130' INT
    trap 'interrupted 143' TERM HUP
    install_all
    if [[ -n $only_named ]]; then
        trap - EXIT INT TERM HUP
        exec "$here/vtime/kernel/build.sh" "${named[@]}"
    fi
    exit 0  # not at the end of the file: bash would read on in it, and it may have changed meanwhile
}

main "$@"
