# shellcheck shell=bash
# Part of build.sh: the folders of builds, and the sources that kernels are made from.
#
# The cache has, besides kernels:
#
#     sources/DIGEST   a source as it was unpacked, by what was asked for; builds share it
#     trees/NAME       what a build has written. Objects know the path where they were made: so it is
#                      .build while it is used, and is parked under its name when it ends
#     .build/tree      the source as it is compiled: links to the files of that source
#     .build/built     objects and all that make writes, behind the wall
#     .build/changed   the files that patches and the guest change
#
# A stranger's patch or source may have make write anything into its tree. No other kernel is made of
# that: a tree is of one version of Linux that a distribution or kernel.org gave, or of one name, and
# begun anew where what was built in it before is not asked for any more.
# What it reads is set by build.sh, and what it sets is read there: work, log, source, origin, …
# shellcheck disable=SC2034,SC2154

readonly KEPT_DAYS=30       # what an interrupted build has left

# ---------------------------------------------------------------- what strangers leave

# Whatever it is: they may have made folders that not even their owner may look into.
discard() {     # PATH...
    rm -rf "$@" 2>/dev/null || {
        find "$@" -type d ! -perm -u=rwx -exec chmod u+rwx {} \; 2>/dev/null
        rm -rf "$@"
    }
}

# Whether what make has written is of folders that can be looked into, and no links in their place.
is_sound() {    # BUILT
    [[ -d $1/objects && ! -L $1/objects && ! -L $1/tmp &&
        -z $(find "$1" -type d ! -perm -u=rwx -print -quit 2>/dev/null) ]]
}

strangers() {   # the paths of their sources and patches that are asked for, a line each
    [[ -z $is_foreign ]] || echo "$named_source"
    local file
    for file in "${patches[@]}" "${controls[@]}"; do realpath "$file"; done
}

# Whether nothing was built in a tree but what is asked for.
is_of_nobody_else() {   # TREE
    [[ -e $1/strangers ]] && ! grep -qvxF -f <(strangers) "$1/strangers"
}

# ---------------------------------------------------------------- behind the wall

# A step of inside.sh behind the wall; PATHs are those that wall.py takes.
inside() {      # LABEL DETAIL PATH… -- STEP…
    local label=$1 detail=$2 paths=()
    shift 2
    while [[ $1 != -- ]]; do
        paths+=("$1")
        shift
    done
    step "$label" "$detail" python3 -IB "$here/wall.py" "$around" "${paths[@]}" -- \
        env work="$work" pristine="$pristine" version="$version" origin="$origin" \
        for_commands="$for_commands" "$BASH" "$here/inside.sh" "${@:2}"
}

# What the last step said to the user, or why it refused to go on.
lines_of_step() {       # said | refused
    tail -n +"$(( began_at + 1 ))" "$log" | sed -n "s/^$1: //p"
}

version_of() {      # SOURCE: that of Linux; fails where it is no kernel's source
    python3 -IB "$here/wall.py" "$around" --read "$1" -- "$BASH" "$here/inside.sh" version "$1" |
        grep -xE '[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,4}'
}

# ---------------------------------------------------------------- sources

# Has `pristine` be the folder of the source that is asked for: what it is, whole, in source/.
obtain_source() {
    pristine=$root/sources/$(sha256sum <<<"$spec" | cut -c 1-16)
    { mkdir -p "$pristine" && touch "$pristine/wanted"; } 2>/dev/null || no_room
    if [[ ! -s $pristine/whole ]] || is_outdated; then
        discard "$pristine"/{whole,source}
        fetch_source
    fi
    [[ -z $awaits_tools ]] || have_tools
    [[ -s $pristine/whole ]] || unpack_source
    version=$(<"$pristine/version") origin=$(<"$pristine/origin") source_hash=$(<"$pristine/digest")
}

# A tree of the user's may have changed; the default kernel follows the distribution.
is_outdated() {
    [[ $spec == "tree "* ]] && return
    [[ -z $kernel_name && $spec == default && -n $(find "$pristine/whole" -mtime +0) ]]
}

fetch_source() {
    if [[ -s $pristine/fetched ]] && { read -r source && read -r origin; } <"$pristine/fetched" &&
        [[ -e $source && $source == "$pristine"/* ]]; then
        return
    fi
    rm -rf "$pristine/download"
    mkdir "$pristine/download" 2>/dev/null || no_room
    find_source
    note "$pristine/fetched" "$source" "$origin" 2>/dev/null || no_room
}

unpack_source() {
    local why status=0
    mkdir "$pristine/source" 2>/dev/null || no_room
    inside "unpacking ${source##*/}" elapsed --write "$pristine/source" --read "$source" -- unpack "$source" || {
        why="${source##*/} could not be unpacked ($(unpack_reason | head -n 1 || true))"
        (check_room_left "$why") || status=$?   # before there is room again
        discard "$pristine/source"      # it may have filled the disk
        (( status == 0 )) || exit "$status"
        fail "$why"
    }
    { version=$(version_of "$pristine/source") && [[ -d $pristine/source/arch/um ]]; } || fail "$origin is no kernel source"
    is_new_enough "$version" || die 2 "$origin is Linux $version; the guest needs $MIN_VERSION or newer"
    [[ ! -d $source ]] || source=$pristine/source   # what the guest has no part of makes no other kernel
    source_hash=${named_digest:-$(hash_source "$source" 2>>"$log")} || no_room
    [[ $source_hash =~ ^[0-9a-f]{64}$ ]] || no_room
    { note "$pristine/version" "$version" && note "$pristine/origin" "$origin" &&
        note "$pristine/digest" "$source_hash" && note "$pristine/whole" "$spec"; } 2>/dev/null || no_room
    rm -rf "$pristine"/{download,fetched}
}

note() {    # FILE LINE...: the file is whole or not there
    printf '%s\n' "${@:2}" >"$1.part" && mv "$1.part" "$1"
}

# ---------------------------------------------------------------- trees

# Has $work be the folder of this build. Where it was begun before, it is continued.
take_tree() {       # NAME
    work=$root/.build continued=''
    if [[ -d $root/trees/$1/built ]] && is_of_nobody_else "$root/trees/$1"; then
        mv -T "$root/trees/$1" "$work" && continued=yes
    else
        discard "${root:?}/trees/$1"
        mkdir "$work" 2>/dev/null || no_room
    fi
    { note "$work/name" "$1" && strangers >"$work/strangers"; } 2>/dev/null || no_room
    [[ -e $work/tree ]] || begin_tree "$1"
    # cc.sh is in the command of each object, and in the key.
    if ! cmp -s "$here/cc.sh" "$work/cc.sh" || ! cmp -s "$here/headers.h" "$work/headers.h"; then
        discard "$work/built"
        { mkdir -p "$work/built/objects" && cp "$here/cc.sh" "$here/headers.h" "$work/built" &&
            cp "$here/cc.sh" "$here/headers.h" "$work"; } 2>/dev/null || no_room
    fi
    discard "${work:?}"/{changed,patches,kernel,boot,replaced,built/tmp}
    { mkdir -p "$work"/{changed/tree,patches,kernel,boot,built/tmp} && cp "$pristine"/{version,digest} "$work/"; } 2>/dev/null || no_room
}

# A kernel under a name begins with what a build of that version has compiled, if it is nobody's in
# particular, or with that of the default kernel, if it was made from the same stranger's source.
begin_tree() {      # NAME
    local base
    discard "$work"/{built,tree.part}
    base=$root/trees/$(kind)-of-default
    [[ -n $is_foreign ]] && is_of_nobody_else "$base" || base=$root/trees/$(tree_of_version)
    if [[ -n $kernel_name && -d $base/tree && ${base##*/} != "$1" ]] && is_of_nobody_else "$base"; then
        { cp -a "$base"/{built,cc.sh,headers.h} "$work/" && cp -al "$base/tree" "$work/tree.part"; } 2>>"$log" || no_room
    else
        cp -al "$pristine/source" "$work/tree.part" 2>>"$log" || no_room
    fi
    mv -T "$work/tree.part" "$work/tree"
}

tree_of_version() { echo "$(kind)-$(cut -d . -f 1-2 <<<"$version")"; }

# Back to its place.
park() {
    local name work=$root/.build
    name=$(cat "$work/name" 2>/dev/null) || true
    if [[ -n ${1-$name} ]] && is_sound "$work/built"; then
        discard "${work:?}"/{kernel,changed,patches,boot,replaced,built/tmp}
        note "$work/name" "${1-$name}"
        mkdir -p "$root/trees" && discard "$root/trees/${1-$name}" && mv -T "$work" "$root/trees/${1-$name}"
    else
        discard "$work"
    fi
}

# What nobody will ask for any more.
tidy() {
    local folder
    for folder in "$root"/trees/*; do
        if [[ ! -s $folder/name || ! -s $folder/digest ]] || is_forgotten "$folder"; then discard "$folder"; fi
    done
    for folder in "$root"/sources/*; do
        [[ -n $(find "$folder/wanted" -mtime -$KEPT_DAYS 2>/dev/null) ]] ||
            grep -qsxF "$(cat "$folder/digest" 2>/dev/null)" "$root"/trees/*/digest ||
            discard "$folder"
    done
    rmdir "$root/trees" "$root/sources" 2>/dev/null || true
}

# What is left of builds that were interrupted long ago; of a default kernel, also with another
# configuration.
is_forgotten() {    # TREE
    local name=${1##*/}
    case $name in
    *-of-default) return 1 ;;
    *-of-*) [[ ! -e $root/named/${name#*-of-}/${name%%-*} ]] || return ;;
    *-default-*) [[ $name != "$(kind)"-* || $(cat "$1/begun" 2>/dev/null) == "$key" ]] || return 0 ;;
    *) return 1 ;;
    esac
    [[ -z $(find "$1/name" -mtime -$KEPT_DAYS) ]]
}
