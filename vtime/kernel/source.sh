# shellcheck shell=bash
# Part of build.sh: finds the kernel's source, and reads what the user names.
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
# Each of these leaves a file in $pristine/download, or a path in $source, and says in $origin what it is.

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
            env --chdir="$pristine/download" \
            apt-get "$@" -o APT::Sandbox::User=root download "$package" || {
            tried+=("the download of $package failed: $(step_reason)")
            continue
        }
        source=$(find "$pristine/download" -name '*.deb')
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
    mkdir -p "$pristine/download/apt/lists/partial" "$pristine/download/apt/cache/archives/partial"
    echo "deb [$options] $1 $2 main" >"$pristine/download/apt/sources.list"
    cat >"$pristine/download/apt/apt.conf" <<EOF
Dir::State::Lists "$pristine/download/apt/lists";
Dir::Cache "$pristine/download/apt/cache";
Dir::Etc::SourceList "$pristine/download/apt/sources.list";
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
    rm -rf "$pristine/download/apt"      # a suite's lists hide those of the one before
    write_apt_state "$1" "$2"
    step "reading the package list of $2" elapsed \
        apt-get --config-file "$pristine/download/apt/apt.conf" -o APT::Sandbox::User=root --error-on=any \
        update && return
    tried+=("Debian's $2 could not be read: $(step_reason)")
    return 1
}

# The suites that may have what is wanted, best first. A version that was named is looked for under
# code names, too: a mirror may serve an older list as stable-backports than as trixie-backports.
newer_suites() {    # MIRROR
    local backports
    if [[ -n $wanted_version ]] && read_suite "$1" stable-backports; then
        backports=$(sed -n 's/^Codename: \([a-z-]*\)$/\1/p' "$pristine"/download/apt/lists/*InRelease)
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
        download_package --config-file "$pristine/download/apt/apt.conf" && return 0
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
    [[ -z $awaits_tools ]] || have_tools    # curl is among them
    local archive_url=$KERNEL_ORG_URL archive_sha256=$KERNEL_ORG_SHA256
    [[ -z $wanted_version ]] || name_archive "$wanted_version" || return
    source=$pristine/download/${archive_url##*/}
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

# What is asked for: sets `spec`, and whether it is_foreign, not a distribution's or kernel.org's.
name_source() {
    is_foreign='' wants_default='' wanted_version='' named_digest=''
    if [[ -z $named_source || $named_source == default ]]; then
        [[ -z $named_source ]] || wants_default=yes
        named_source='' spec=default
    elif [[ -n $kernel_name && $named_source =~ ^[0-9]+\.[0-9]+(\.[0-9]+)?$ && ! -e $named_source ]]; then
        is_new_enough "$named_source" || die 2 "Linux $named_source is too old; the guest needs $MIN_VERSION or newer"
        wanted_version=$named_source spec="version $named_source" named_source=''
    else
        [[ -e $named_source ]] || die 2 "there is no $named_source"
        named_source=$(realpath "$named_source")
        [[ $named_source != *[[:cntrl:]]* ]] || die 2 "$named_source: there is a line break in its path; rename it"
        [[ -r $named_source ]] || die 2 "$named_source cannot be read by $(id -un)"
        if [[ -d $named_source ]]; then
            [[ -d $named_source/arch/um ]] || die 2 "$named_source is no kernel source tree: it has no arch/um"
        else
            # A pipe or a device would be read for ever.
            [[ -f $named_source ]] || die 2 "$named_source is no source of a kernel: it is neither a file nor a folder"
        fi
        # A tree that is built again and again under a name is compared when it is unpacked.
        if [[ -d $named_source && -n $kernel_name ]]; then
            spec="tree $named_source"
        else
            named_digest=$(digest_of "$named_source")
            spec="digest $named_digest"
        fi
        known_source "${named_digest:-none}" >/dev/null || is_foreign=yes
    fi
}

check_named_source() {
    version=$(version_of "$named_source") ||
        die 2 "$named_source holds no kernel source: it has no top folder with a kernel's Makefile"
    is_new_enough "$version" ||
        die 2 "$named_source is Linux $version; the guest needs $MIN_VERSION or newer"
}
