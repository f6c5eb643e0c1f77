# shellcheck shell=bash
# Part of build.sh: kernels under names, beside the one that runs use by default.
#
# The cache has a folder named/NAME/trials or named/NAME/commands for each, with what any kernel of the
# cache has, and `recipe`: the digest of source, patches and options, and what they were. Their trees
# are kept (folders.sh): only what differs from the kernel that was built of it before is compiled.
# What it reads is set by build.sh, and what it sets is read there: work, log, source, origin, …
# shellcheck disable=SC2034,SC2154

readonly NAME_PATTERN='^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$'
readonly MOST_NAME=40
readonly MOST_PATCH_MB=256     # as in trees.py
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

# The default kernels and those under names; what has one digest is one kernel.
list_kernels() {
    local folder
    for for_commands in '' yes; do
        key=$(cache_key)
        folder=$(chosen) || continue
        list_kernel default "$folder" "$(sed -n 's/^source \(.*\)/source \1\n/p' "$folder/inputs" | sha256sum)"
    done
    printf '%s\n' "$root"/named/*/*/linux | sort | while read -r folder; do
        folder=${folder%/linux}
        [[ -x $folder/linux ]] || continue
        for_commands=''
        [[ $folder != */commands ]] || for_commands=yes
        list_kernel "$(basename "${folder%/*}")" "$folder" "$(sed -n 's/^digest //p' "$folder/recipe")"
    done
}

list_kernel() {     # NAME FOLDER DIGEST
    local made=''
    [[ ! -e $2/recipe ]] ||
        made=$(sed -n -e 's/^patch [0-9a-f]* /, patch /p' -e 's/^option /, /p' "$2/recipe" | tr -d '\n')
    printf '%s\tfor %s\tLinux %s\t%s%s\tdigest %.16s\n' "$1" "$(kind)" "$(<"$2/version")" "$(<"$2/source")" "$made" "$3"
}

remove_named() {    # NAME
    local folder=$root/named/$1 tree series
    log=/dev/null
    [[ -d $folder || -n $(compgen -G "$root/trees/*-of-$1") ]] ||
        die 1 "there is no kernel $1; ./install.sh --list-kernels lists those that there are"
    lock_cache
    park
    discard "${folder:?}" "$root/named-$1"-*.log "$root/trees"/{trials,commands}-of-"$1"
    # Objects stay as long as a kernel under a name is of their version.
    for tree in "$root"/trees/{trials,commands}-[0-9]*; do
        for_commands=''
        [[ ${tree##*/} != commands-* ]] || for_commands=yes
        [[ ! -e $tree/kept ]] || continue
        series=${tree##*-}
        grep -qsE "^${series//./[.]}([.]|\$)" "$root"/named/*/"$(kind)"/version || discard "$tree"
    done
    tidy
    say "removed the kernel $1"
}

# ---------------------------------------------------------------- building

build_named() {
    local name
    log=$root/named-$kernel_name-$(kind).log
    command -v patch >/dev/null || die 4 "missing: patch; ./install.sh installs what is needed"
    begin_build
    obtain_source
    name=$(tree_of_version)
    if [[ -n $is_foreign || -n ${patches[*]}${controls[*]} ]]; then name=$(kind)-of-$kernel_name; fi
    take_tree "$name"
    make_kernel
    write_recipe >"$work/kernel/recipe"
    publish_named 2>>"$log" || fail "the kernel $kernel_name could not be moved into the cache"
    rm -f "$pristine/wanted"
    say "the kernel $kernel_name for $(kind), Linux $version, built in $SECONDS s"
    named_path
}

check_patches() {
    local file
    for file in "${patches[@]}"; do
        [[ -f $file && -r $file ]] || die 2 "there is no patch $file"
    done
    for file in "${controls[@]}"; do
        [[ -f $file && -r $file ]] || die 2 "there is no congestion control $file"
    done
    for file in "${patches[@]}" "${controls[@]}"; do
        (( $(stat -Lc %s -- "$file") <= MOST_PATCH_MB << 20 )) ||
            die 2 "$file is larger than any patch of a kernel: at most $MOST_PATCH_MB MB"
    done
}

what_stays() {
    [[ -x $root/named/$kernel_name/$(kind)/linux ]] && echo "$kernel_name stays what it was" ||
        echo "there is no kernel $kernel_name"
}

# The recipe's lines: whatever makes another kernel of the same Linux.
ingredients() {
    local file
    echo "source $source_hash"
    while read -r file; do
        echo "patch $(sha256sum <"$file" | cut -c 1-64)" \
            "$(basename "$(<"${file%.*}.name")" | tr -c 'A-Za-z0-9._+\n-' '_')"
    done < <(find "$work/patches" -name '*.patch' -o -name '*.c' | sort -V)
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
    mkdir -p "${folder%/*}" && rm -rf "$work/replaced" || return
    [[ ! -e $folder ]] || mv -T "$folder" "$work/replaced" || return
    mv -T "$work/kernel" "$folder"
}
