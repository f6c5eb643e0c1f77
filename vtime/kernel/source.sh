# shellcheck shell=bash
# Part of build.sh: finds the kernel's source, and unpacks of it what kernel.config can need.
# What it reads is set by build.sh, and what it sets is read there: work, log, source, origin, …
# shellcheck disable=SC2034,SC2154

readonly KNOWN_GOOD=7.2       # taken in preference to a newer one
readonly KERNEL_ORG_URL=https://cdn.kernel.org/pub/linux/kernel/v6.x/linux-6.18.21.tar.xz
readonly KERNEL_ORG_SHA256=1c38214fb137bae85b82b82537b5987358621b915ab2a8e4f09e60697c19474f

# Sources that may also be named by the user, by their SHA-256: where they come from.
known_source() {    # DIGEST
    case $1 in
    "$KERNEL_ORG_SHA256") echo "${KERNEL_ORG_URL##*/} of kernel.org" ;;
    97a3aac3a9eeb8f18e8b0511af9261c54605fd23b712f1a48144360a123738a2) echo "linux-source-7.2 7.2.11-1~bpo13+1" ;;
    *) return 1 ;;
    esac
}

# ---------------------------------------------------------------- finding a source
# Each of these leaves a file in $work/source, or a path in $source, and says in $origin what it is.

is_before() {       # VERSION VERSION
    [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]
}

is_new_enough() { ! is_before "$1" "$MIN_VERSION"; }    # VERSION

# The packages of a set of apt lists that hold a kernel source, best first. Debian:
# linux-source-7.2; Ubuntu: linux-source-6.14.0 and linux-hwe-6.14-source-6.14.0.
source_packages() {     # APT-OPTION...
    local package version
    apt-cache "$@" pkgnames linux- |
        grep -E '^linux(-hwe-[0-9.]+)?-source-[0-9]+\.[0-9.]+$' |
        while read -r package; do
            version=${package##*-}
            is_new_enough "$version" || continue
            [[ -n $wanted_version ]] || ! is_before "$version" "$MIN_UNNAMED" || continue
            [[ -z $wanted_version || $version == "$wanted_version" || $wanted_version == "$version".* ]] || continue
            [[ $version == "$KNOWN_GOOD" || $version == "$KNOWN_GOOD".* ]] &&
                echo "1 $version $package" || echo "0 $version $package"
        done | sort -k 1,1nr -k 2,2Vr | cut -d ' ' -f 3
}

# PACKAGE, or PACKAGE=VERSION where a version was named to the last digit: linux-source-7.2 may be
# 7.2.13, and 7.2.12 be there, too. Fails where these lists lack it.
exact_package() {       # PACKAGE APT-OPTION...
    local package=$1 found
    shift
    [[ $wanted_version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "$package"; return; }
    found=$(apt-cache "$@" madison "$package" | cut -d '|' -f 2 | tr -d ' ' | sort -Vru |
        grep -m 1 "^${wanted_version//./\\.}[-+~.]") && echo "$package=$found"
}

download_package() {    # APT-OPTION...
    local package uri
    for package in $(source_packages "$@"); do
        package=$(exact_package "$package" "$@") || continue
        uri=$(apt-get "$@" --print-uris download "$package" 2>>"$log" | grep "^'") || continue
        download_mb=$(( $(cut -d ' ' -f 3 <<<"$uri") / 1000000 ))
        step "downloading $package:" downloaded \
            env --chdir="$work/source" \
            apt-get "$@" -o APT::Sandbox::User=root download "$package" || {
            tried+=("the download of $package failed: $(step_reason)")
            continue
        }
        source=$(find "$work/source" -name '*.deb')
        origin="${package%=*} $(dpkg-deb --field "$source" Version)"
        return 0
    done
    return 1
}

from_own_lists() {
    command -v apt-cache >/dev/null || return 1
    download_package || {
        tried+=("no package of Linux ${wanted_version:-$MIN_UNNAMED or newer} in this machine's apt lists")
        return 1
    }
}

# The address that the machine itself uses for Debian; the second way is for apt lists that were
# never read.
debian_mirror() {
    local mirror
    # shellcheck disable=SC2016  # apt's own placeholders
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' \
        'Created-By: Packages' |
        awk '$1 == "Debian" && $2 == "main" && $3 !~ /security|^cdrom/ && !found++ { print $3 }')
    [[ -n $mirror ]] || mirror=$(apt-get --print-uris update |
        sed -n "s|^'\([^']*/debian/\)dists/.*|\1|p" | awk '!found++')
    echo "$mirror"
}

# A newer suite of the machine's own mirror, in an apt state that lives in the work folder.
# Signatures are checked against the distribution's keyring as always.
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

read_suite() {      # MIRROR SUITE
    rm -rf "$work/apt"      # a suite's lists hide those of the one before
    write_apt_state "$1" "$2"
    step "reading the package list of $2" elapsed \
        apt-get --config-file "$work/apt/apt.conf" -o APT::Sandbox::User=root --error-on=any \
        update && return
    tried+=("Debian's $2 could not be read: $(step_reason)")
    return 1
}

# The suites that may have what is wanted, best first. A version that was named is looked for under
# code names, too: a mirror may serve an older list as stable-backports than as trixie-backports.
newer_suites() {    # MIRROR
    local backports
    if [[ -n $wanted_version ]] && read_suite "$1" stable-backports; then
        backports=$(sed -n 's/^Codename: \([a-z-]*\)$/\1/p' "$work"/apt/lists/*InRelease)
        suites+=("$backports" "${backports%-backports}")
    fi
    suites+=(stable-backports testing sid)
    [[ -z $wanted_version ]] || suites+=(experimental)
}

from_newer_suites() {
    local mirror suite suites=()
    grep -qx 'ID=debian' /etc/os-release || return 1
    mirror=$(debian_mirror)
    [[ -n $mirror ]] || {
        tried+=("apt names no Debian mirror")
        return 1
    }
    newer_suites "$mirror"
    for suite in "${suites[@]}"; do
        read_suite "$mirror" "$suite" || continue
        download_package --config-file "$work/apt/apt.conf" && return 0
        tried+=("Debian's $suite has none")
    done
    return 1
}

# The address and the SHA-256 of the archive of a version that was named.
name_archive() {    # VERSION
    local address=https://cdn.kernel.org/pub/linux/kernel/v${1%%.*}.x
    archive_url=$address/linux-$1.tar.xz
    archive_sha256=$(curl --fail --location --silent --show-error --connect-timeout 15 \
        "$address/sha256sums.asc" 2>>"$log" | sed -n "s/^\([0-9a-f]\{64\}\)  linux-$1\.tar\.xz$/\1/p")
    [[ -n $archive_sha256 ]] || {
        tried+=("kernel.org does not answer, or has no linux-$1.tar.xz")
        return 1
    }
}

from_kernel_org() {
    local archive_url=$KERNEL_ORG_URL archive_sha256=$KERNEL_ORG_SHA256
    [[ -z $wanted_version ]] || name_archive "$wanted_version" || return
    source=$work/source/${archive_url##*/}
    download_mb=
    step "downloading ${archive_url##*/}:" downloaded \
        curl --fail --location --silent --show-error --connect-timeout 15 --retry 2 \
        --output "$source" "$archive_url" || {
        tried+=("the download from kernel.org failed: $(step_reason)")
        return 1
    }
    sha256sum --check --status <<<"$archive_sha256  $source" ||
        fail "what kernel.org sent is not ${archive_url##*/}: its SHA-256 differs"
    origin="${archive_url##*/} of kernel.org"
}

find_source() {
    if [[ -n $named_source ]]; then
        source=$named_source origin=$(known_source "$named_digest") || origin=$named_source
        return
    fi
    from_own_lists || from_newer_suites || from_kernel_org || {
        printf 'tried: %s\n' "${tried[@]}" >>"$log"
        die 4 "no kernel source${wanted_version:+ of Linux $wanted_version} to be had ($(printf '%s, ' "${tried[@]}")no more to try);" \
            "name a tree or tarball of Linux $MIN_VERSION or newer with --source; the log is $log"
    }
}

# ---------------------------------------------------------------- unpacking

tar_stream() {      # SOURCE: the tarball, tree or package as an uncompressed tar
    local inner
    case $1 in
    *.deb)
        # The tarball inside goes straight through: nothing of the package is written to the disk.
        inner=$(dpkg-deb --contents "$1" |
            awk '/^-.*\/usr\/src\/.*\.tar\.[a-z0-9]+$/ && !found++ { print $NF }')
        [[ -n $inner ]] || { echo "no tarball in $1" >&2; return 1; }
        dpkg-deb --fsys-tarfile "$1" | tar -xOf - "$inner" | decompress "$inner"
        ;;
    *)
        if [[ -d $1 ]]; then
            tar -C "$(dirname "$1")" --exclude=.git --exclude='*.o' --exclude='*.a' \
                -cf - "$(basename "$1")"
        else
            # shellcheck disable=SC2094  # its name tells the compression; it is only read
            decompress "$1" <"$1"
        fi
        ;;
    esac
}

hash_source() {     # SOURCE: its SHA-256; of a tree that of its files' hashes and its links
    if [[ -d $1 ]]; then
        (cd "$1" && {
            find . -name .git -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum
            find . -name .git -prune -o -type l -printf '%p -> %l\n' | sort
        }) | sha256sum
    else
        sha256sum <"$1"
    fi | cut -c 1-64
}

# The same, remembered: a tree of 1.6 GB takes 5 to 20 s to read, and 0.5 s to see that none of its
# files has changed since. Nobody sets the time of a file's last change (ctime) back.
digest_of() {   # SOURCE
    local now before='' digest='' memo=$root/source-digest
    now=$(realpath "$1"; find "$1" -name .git -prune -o -printf '%y %P %i %s %C@\n' | sort | sha256sum)
    now=${now//[$'\n ']/_}
    { read -r before digest <"$memo"; } 2>/dev/null || true
    if [[ $before != "$now" || ! $digest =~ ^[0-9a-f]{64}$ ]]; then
        digest=$(hash_source "$1")
        { mkdir -p "$root" && printf '%s %s\n' "$now" "$digest" >"$memo.$$" &&
            mv "$memo.$$" "$memo"; } 2>/dev/null || rm -f "$memo.$$"
    fi
    echo "$digest"
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

# What kernel.config can need, 0.2 of 1.6 GB: whole folders where the list is likely to change from
# one version to the next. Makefiles and Kconfigs are read even of parts that are switched off. And
# the kernel's own tests of TCP, for vtime/MININET.md.
unpack() {      # SOURCE TREE
    tar_stream "$1" | tar -xf - -C "$2" --strip-components=1 \
        --anchored --wildcards --no-wildcards-match-slash \
        --exclude='*/Documentation/*/*' --exclude='*/arch/x86/kvm' \
        --exclude='*/.config' --exclude='*/include/config' --exclude='*/include/generated' \
        --exclude='*/arch/*/include/generated' \
        '*/arch/um' '*/arch/x86' '*/block/*.h' '*/certs' \
        '*/crypto' '*/drivers/base' '*/drivers/char/*.[ch]' '*/drivers/net/*.[ch]' '*/drivers/tty/*.[ch]' \
        '*/drivers/net/bonding' '*/drivers/net/ipvlan' '*/drivers/net/vxlan' '*/drivers/net/wireguard' \
        '*/fs/*.[ch]' '*/fs/devpts' '*/fs/exportfs' '*/fs/hostfs' '*/fs/kernfs' '*/fs/notify' \
        '*/fs/overlayfs' '*/fs/proc' '*/fs/ramfs' '*/fs/sysfs' '*/fs/tracefs' '*/include' '*/init' '*/io_uring' '*/ipc' \
        '*/kernel' '*/lib' '*/mm' '*/net' '*/scripts' '*/security/*.[ch]' \
        '*/tools/build' '*/tools/include' '*/tools/lib/bpf/*.[ch]' '*/drivers/pci/*.[ch]' '*/tools/scripts' '*/usr' '*/virt' \
        '*/tools/testing/selftests/net/packetdrill' \
        --wildcards-match-slash '*/Makefile*' '*/Kbuild*' '*/Kconfig*'
}

makefile_version() {    # < Makefile
    awk -F ' *= *' '
        $1 == "VERSION" { v = $2 } $1 == "PATCHLEVEL" { p = $2 } $1 == "SUBLEVEL" { s = $2 }
        NR > 20 { exit } END { if (v) print v "." p "." s }'
}

# The version of a named source, without unpacking it: GNU tar stops at the Makefile of the top
# folder.
named_version() {
    if [[ -d $named_source ]]; then
        makefile_version <"$named_source/Makefile"
    else
        { tar_stream "$named_source" 2>/dev/null |
            tar -xOf - --anchored --wildcards --no-wildcards-match-slash --occurrence=1 \
                '*/Makefile' 2>/dev/null ||
            true; } | makefile_version
    fi
}

# Reads named_source: sets its digest, or wants_default.
name_source() {
    if [[ $named_source == default ]]; then
        named_source='' wants_default=yes
    elif [[ -n $named_source ]]; then
        [[ -e $named_source ]] || die 2 "there is no $named_source"
        named_source=$(realpath "$named_source")
        [[ ! -d $named_source || -d $named_source/arch/um ]] ||
            die 2 "$named_source is no kernel source tree: it has no arch/um"
        named_digest=$(digest_of "$named_source")
    fi
}

check_named_source() {
    version=$(named_version 2>/dev/null || true)
    [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] ||
        die 2 "$named_source holds no kernel source: it has no top folder with a kernel's Makefile"
    is_new_enough "$version" ||
        die 2 "$named_source is Linux $version; the guest needs $MIN_VERSION or newer"
}
