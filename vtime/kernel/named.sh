# shellcheck shell=bash
# Part of build.sh: kernels under names, beside the one that runs use by default.
#
# The cache has a folder named/NAME/trials or named/NAME/commands for each, with what any kernel of the
# cache has, and `recipe`: the digest of source, patches and options, and what they were. Objects are
# kept in trees/, one tree for each version of Linux and kind of kernel: only what differs from the
# kernel that was built of it before is compiled. The tree is $root/.build while it is used, since
# objects know the path where they were made.
# What it reads is set by build.sh, and what it sets is read there: work, log, source, origin, …
# shellcheck disable=SC2034,SC2154

readonly NAME_PATTERN='^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$'
readonly MOST_NAME=40
readonly RESERVED=default     # the kernel that runs use where none is named

check_name() {      # NAME
    [[ $1 =~ $NAME_PATTERN && ${#1} -le $MOST_NAME ]] ||
        die 2 "--kernel ${1@Q} is no name of a kernel: letters, digits, . _ and - only," \
            "at most $MOST_NAME, as cubic-0.5"
    [[ $1 != "$RESERVED" ]] || die 2 "--kernel $RESERVED is the kernel that runs use where none is named:" \
        "give yours another name, as mine"
}

# The line of a configuration for OPTION=VALUE.
checked_option() {      # OPTION=VALUE
    local option=${1%%=*} value=${1#*=}
    option=CONFIG_${option#CONFIG_}
    [[ $1 == *=* && $option =~ ^CONFIG_[A-Z0-9_]+$ && $value =~ ^([yn]|-?[0-9]+|0x[0-9a-fA-F]+|[A-Za-z0-9_./-]+)$ ]] ||
        die 2 "--config ${1@Q} is no OPTION=VALUE, as TCP_CONG_CDG=y or LOG_BUF_SHIFT=18"
    case $value in
    n) echo "# $option is not set" ;;
    y | *[0-9]) echo "$option=$value" ;;
    *) echo "$option=\"$value\"" ;;
    esac
}

kind() { [[ -n $for_commands ]] && echo commands || echo trials; }

named_folder() { echo "$root/named/$kernel_name/$(kind)"; }

tree_of() {     # VERSION: where what was compiled of it is kept
    echo "$root/trees/$(kind)-$(cut -d . -f 1-2 <<<"$1")"
}

# ---------------------------------------------------------------- list, remove, find

named_path() {
    local folder words
    folder=$(named_folder)
    words="./install.sh${for_commands:+ --with-mininet} --kernel $kernel_name"
    echo "$folder/linux"
    [[ -x $folder/linux ]] || die 1 "there is no kernel $kernel_name for $(kind): $words … builds it," \
        "./install.sh --list-kernels lists those that there are"
    grep -qx "configuration $key" "$folder/inputs" ||
        die 1 "the kernel $kernel_name for $(kind) was built by another version of this project:" \
            "build it again with the same options ($words …)"
}

list_named() {
    local folder name shown
    printf '%s\n' "$root"/named/*/*/linux | sort | while read -r folder; do
        folder=${folder%/linux}
        [[ -x $folder/linux ]] || continue
        name=${folder%/*}
        shown=$(sed -n -e 's/^patch [0-9a-f]* /, patch /p' -e 's/^option /, /p' "$folder/recipe" | tr -d '\n')
        printf '%s\tfor %s\tLinux %s\t%s%s\tdigest %.16s\n' "${name##*/}" "${folder##*/}" "$(<"$folder/version")" \
            "$(<"$folder/source")" "$shown" "$(sed -n 's/^digest //p' "$folder/recipe")"
    done
}

remove_named() {    # NAME
    local folder=$root/named/$1 kept
    log=/dev/null work='' for_commands=''
    [[ -d $folder ]] || die 1 "there is no kernel $1; ./install.sh --list-kernels lists those that there are"
    lock_cache
    rm -rf "${folder:?}" "$root/named-$1"-*.log
    # Objects stay as long as a kernel under a name is of their version.
    for kept in "$root"/trees/*; do
        for_commands=''
        [[ ${kept##*/} != commands-* ]] || for_commands=yes
        [[ ! -e $kept/kept ]] || continue
        cat "$root"/named/*/"$(kind)"/version 2>/dev/null | cut -d . -f 1-2 | grep -qxF "${kept##*-}" ||
            rm -rf "$kept"
    done
    say "removed the kernel $1"
}

# ---------------------------------------------------------------- building

build_named() {
    local folder
    folder=$(named_folder)
    log=$root/named-$kernel_name-$(kind).log keep_work=yes continued='' source='' named_digest=''
    check_patches
    check_given_source
    check_machine
    command -v patch >/dev/null || die 4 "missing: patch; ./install.sh installs what is needed"
    trap clean_up EXIT
    lock_cache
    work=$root/.build
    [[ ! -s $work/parked ]] || park "$root/trees/$(<"$work/parked")"     # of a build that was killed
    discard_work
    check_disk
    : >"$log"
    export work
    export -f unpack tar_stream decompress kernel_make precompile
    take_tree
    change_tree
    source_hash=$(<"$work/source-digest") origin=$(<"$work/origin")
    configure
    compile
    try_kernel
    write_recipe >"$work/kernel/recipe"
    publish_named 2>>"$log" || fail "the kernel $kernel_name could not be moved into the cache"
    say "the kernel $kernel_name for $(kind), Linux $version, built in $SECONDS s"
    echo "$folder/linux"
}

check_patches() {
    local file
    for file in "${patches[@]}"; do
        [[ -f $file && -r $file ]] || die 2 "there is no patch $file"
    done
}

# What --source names: nothing, a version, a file, or a tree. Sets `spec`, by which a tree that has it
# already is found; "" for a tree of the user's, which may have changed.
check_given_source() {
    wanted_version=''
    if [[ -z $named_source || $named_source == default ]]; then
        named_source='' spec=default
    elif [[ $named_source =~ ^[0-9]+\.[0-9]+(\.[0-9]+)?$ && ! -e $named_source ]]; then
        is_new_enough "$named_source" || die 2 "Linux $named_source is too old; the guest needs $MIN_VERSION or newer"
        wanted_version=$named_source spec="version $named_source" named_source=''
    elif [[ -d $named_source ]]; then
        name_tree
    else
        name_source
        check_named_source
        spec="digest $named_digest"
    fi
}

name_tree() {
    named_source=$(realpath "$named_source") spec=''
    [[ -d $named_source/arch/um ]] || die 2 "$named_source is no kernel source tree: it has no arch/um"
    check_named_source
}

has_source() {  # TREE: whether it is that of what was named
    [[ -n $spec && "$(cat "$1/spec" 2>/dev/null)" == "$spec" ]] ||
        [[ -n $named_digest && "$(cat "$1/source-digest" 2>/dev/null)" == "$named_digest" ]]
}

# The tree that has this source, or that of the same version with this source in place of another,
# as $work. It has then: source, as it was unpacked; tree, as it was compiled; objects.
take_tree() {
    local candidate other
    for candidate in "$root/trees/$(kind)"-*; do
        if has_source "$candidate"; then
            version=$(<"$candidate/version") kept_tree=$candidate
            begin_tree
            return
        fi
    done
    fresh=$root/.unpacked       # clean_up removes it where the rest fails
    rm -rf "$fresh"
    mkdir -p "$fresh/source" "$fresh/download" || no_room
    # Another kind of kernel may have unpacked it already.
    for other in "$root"/trees/*; do
        has_source "$other" || continue
        rm -rf "$fresh/source"
        cp -al "$other/source" "$fresh/source" && cp "$other/source-digest" "$other/origin" "$fresh/"
        break
    done
    [[ -s $fresh/origin ]] || unpack_source "$fresh"
    version=$(makefile_version <"$fresh/source/Makefile")
    [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "$(<"$fresh/origin") is no kernel source"
    is_new_enough "$version" ||
        die 2 "$(<"$fresh/origin") is Linux $version; the guest needs $MIN_VERSION or newer"
    kept_tree=$(tree_of "$version")
    begin_tree
    rm -rf "$work/source"
    mv "$fresh/source" "$fresh/source-digest" "$fresh/origin" "$work/"
    echo "$version" >"$work/version"
    [[ -z $spec ]] || echo "$spec" >"$work/spec"
    rm -rf "$fresh"
    fresh=''
}

unpack_source() {   # FOLDER
    local work=$1
    mv "$work/source" "$work/tree"
    mkdir "$work/source"
    find_source
    echo "$origin" >"$work/origin"
    step "unpacking ${source##*/}" elapsed \
        env work="$work" "$BASH" -c 'set -o pipefail; unpack "$@"' unpack "$source" "$work/tree" ||
        fail "${source##*/} could not be unpacked ($(unpack_reason | head -n 1))"
    [[ ! -d $source ]] || source=$work/tree     # what the guest has no part of makes no other kernel
    { hash_source "$source" >"$work/source-digest"; } 2>>"$log" || no_room
    rm -rf "$work/source" "$work/apt"
    mv "$work/tree" "$work/source"
}

begin_tree() {
    if [[ -d $kept_tree ]]; then
        mv -T "$kept_tree" "$work"
    else
        mkdir -p "$work"
    fi
    echo "${kept_tree##*/}" >"$work/parked"
    rm -rf "$work/tmp" "$work/kernel" "$work/changed"
    { mkdir -p "$work/tree" "$work/objects" "$work/kernel" "$work/tmp" "$work/changed/tree" &&
        printf '#!/bin/sh\n' >"$work/probe" && chmod +x "$work/probe"; } 2>/dev/null || no_room
    check_noexec
    # cc.sh is in the command of each object, and in the key.
    if ! cmp -s "$here/cc.sh" "$work/cc.sh" || ! cmp -s "$here/headers.h" "$work/headers.h"; then
        rm -rf "$work/objects" "$work/headers.h.gch"
        mkdir "$work/objects"
        cp "$here/cc.sh" "$here/headers.h" "$work/"
    fi
}

# The source as it was unpacked, while the default kernel is built, and its tree for those under names.
keep_source() {
    cp -a "$work/tree" "$work/pristine" 2>>"$log" || no_room
}

become_tree() {
    rm -rf "$work/source" "$work/apt"
    mv "$work/pristine" "$work/source"
    echo "$version" >"$work/version"
    echo "$origin" >"$work/origin"
    echo "$source_hash" >"$work/source-digest"
    if [[ -n $named_digest ]]; then echo "digest $named_digest"; else echo default; fi >"$work/spec"
    touch "$work/kept"      # also when no kernel under a name is left
    kept_tree=$(tree_of "$version")
}

park() {    # TREE: back to its place
    local work=$root/.build
    rm -rf "${work:?}"/{tmp,kernel,changed,boot,clock}
    rm -f "$work"/{begun,fetched,unpacked,configured,parked}
    mkdir -p "$root/trees" && rm -rf "${1:?}" && mv -T "$work" "$1"
    kept_tree=''
}

# Applies the patches and our changes to copies of the files that they change, in $work/changed/tree,
# and lets $work/tree have what came of it: only those files get a new time.
change_tree() {
    local file lines patched=$work/changed ours
    readarray -t ours < <(cut -d ' ' -f 1 <<<"$CLOCK_FILES"$'\n'"$COMMAND_FILES"$'\n'"$TRIAL_FILES" | sort -u)
    python3 "$here/trees.py" copy "$work/source" "$patched/tree" arch/um/Kconfig net/sched/sch_netem.c \
        arch/um/os-Linux/skas/process.c arch/um/os-Linux/mem.c arch/x86/um/user-offsets.c net/ipv4/Makefile net/core/Makefile \
        net/sched/Makefile Makefile net/ipv4/tcp_bbr.c net/sched/sch_cake.c "${DRAWING_FILES[@]}" "${ours[@]}" ||
        fail "$(<"$work/origin") lacks a file that the guest needs"
    for file in "${patches[@]}"; do
        lines=$(python3 "$here/trees.py" split "$file" "$work/source" "$patched/tree" "$patched/patch" 2>&1) ||
            die 2 "$file does not apply: $lines"
        [[ -z $lines ]] || say "$lines"
        patch -d "$patched/tree" -p1 --batch --forward --no-backup-if-mismatch --reject-file=- \
            <"$patched/patch" >"$patched/said" 2>&1 || {
            cat "$patched/said" >>"$log"
            die 1 "$file does not apply to Linux $version: $(python3 "$here/trees.py" why "$patched/said");" \
                "$(what_stays)"
        }
        cat "$patched/said" >>"$log"
        ! grep -q ' with fuzz ' "$patched/said" ||
            say "$file: other lines stand around some of its parts; the log has which: $log"
    done
    mkdir -p "$patched/tree/arch/um/kernel" "$patched/tree/arch/x86/um/vdso" "$patched/tree/include/net" \
        "$patched/tree/drivers/char"
    prepare_patched
    python3 "$here/trees.py" sync "$work/source" "$patched/tree" "$work/tree" >"$patched/files" 2>>"$log" ||
        fail "the source of $kernel_name could not be written"
    say "$(wc -l <"$patched/files") files differ from what was compiled before"
    # gcc looks at no header again that it has read already.
    ! grep -q '\.h$' "$patched/files" || rm -f "$work/headers.h.gch"
}

prepare_patched() {
    local origin work=$work/changed
    origin=$(<"$root/.build/origin")
    prepare_tree
}

what_stays() {
    [[ -x $root/named/$kernel_name/$(kind)/linux ]] && echo "$kernel_name stays what it was" ||
        echo "there is no kernel $kernel_name"
}

# What --config gave, in place of what the guest's own configuration has for the same.
add_options() {
    local line option
    for line in "${options[@]}"; do
        option=$(grep -o 'CONFIG_[A-Z0-9_]*' <<<"$line")
        sed -i -e "/^$option=/d" -e "/^# $option is not set/d" "$work/kernel.config"
        echo "$line" >>"$work/kernel.config"
    done
}

# The recipe's lines: whatever makes another kernel of the same Linux.
ingredients() {
    local file
    echo "source $source_hash"
    for file in "${patches[@]}"; do
        echo "patch $(sha256sum <"$file" | cut -c 1-64) $(printf '%s' "${file##*/}" | tr -c 'A-Za-z0-9._+-' '_')"
    done
    for file in "${options[@]}"; do echo "option $file"; done
}

write_recipe() {
    # A patch is what it holds, whatever its file is called.
    echo "digest $( (ingredients | cut -d ' ' -f 1,2; printf '%s\n' "${options[@]}") | sha256sum | cut -c 1-64)"
    ingredients
}

publish_named() {
    local folder
    folder=$(named_folder)
    cp "$log" "$work/kernel/build.log" || return
    mkdir -p "${folder%/*}" && rm -rf "$work/changed/replaced" || return
    [[ ! -e $folder ]] || mv -T "$folder" "$work/changed/replaced" || return
    mv -T "$work/kernel" "$folder"
}
