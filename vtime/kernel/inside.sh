#!/usr/bin/env bash
# What a build does behind the wall (wall.py): it unpacks, patches, configures and compiles. A
# stranger's source and patches are read and run here, and nowhere else.
#
#     inside.sh version SOURCE     prints the version of Linux that it is
#     inside.sh unpack SOURCE      has $pristine/source be what kernel.config can need of it
#     inside.sh change             has $work/changed be the files of it that patches and we change
#     inside.sh sync               has $work/tree be that source with these files
#     inside.sh configure, linux      work in $work/built
#
# folders.sh and compile.sh start it, with their variables in the environment: work, pristine, version,
# origin, for_commands. A line "said: …" is a message for the user, a line "refused: …" says why it ends.
# shellcheck disable=SC2154,SC2317  # set in the environment; its words name what is called
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here

readonly MOST_S=300     # of a processor's time, for a patch: the largest takes 10
readonly MOST_READ_S=100    # the same, for finding a source's version

say() { printf 'said: %s\n' "$*"; }

refuse() {      # STATUS MESSAGE
    printf 'refused: %s\n' "${*:2}"
    exit "$1"
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
        dpkg-deb --fsys-tarfile "$1" | tar -xOf - -- "$inner" | decompress "$inner"
        ;;
    *)
        if [[ -d $1 ]]; then
            tar -C "$1" --exclude=.git --exclude='*.o' --exclude='*.a' -cf - .
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

# What kernel.config can need, 0.2 of 1.6 GB: whole folders where the list is likely to change from
# one version to the next. Makefiles and Kconfigs are read even of parts that are switched off. And
# the kernel's own tests of TCP, for vtime/MININET.md.
unpack() {      # SOURCE
    tar_stream "$1" | tar -xf - -C "$pristine/source" --strip-components=1 \
        --no-same-owner --no-same-permissions \
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
    # A source has files, folders and links; whoever reads a pipe waits. All of it can be read.
    find "$pristine/source" -type d ! -perm -u=rwx -exec chmod u+rwx {} \;
    find "$pristine/source" -type f ! -perm -u=rw -exec chmod u+rw {} +
    find "$pristine/source" ! -type f ! -type d ! -type l -delete
}

makefile_version() {    # < Makefile
    # awk reads to the end: had it left, head would end by SIGPIPE, and so would this.
    head -c 10000 | awk -F ' *= *' '
        NR > 20 { next }
        $1 == "VERSION" { v = $2 } $1 == "PATCHLEVEL" { p = $2 } $1 == "SUBLEVEL" { s = $2 }
        END { if (v) print v "." p "." s }'
}

# Without unpacking it: GNU tar stops at the Makefile of the top folder.
version() {     # SOURCE
    ulimit -t "$MOST_READ_S"
    if [[ -d $1 ]]; then
        [[ ! -f $1/Makefile ]] || makefile_version <"$1/Makefile"
    else
        { tar_stream "$1" 2>/dev/null |
            tar -xOf - --anchored --wildcards --no-wildcards-match-slash --occurrence=1 \
                '*/Makefile' 2>/dev/null ||
            true; } | makefile_version
    fi
}

# ---------------------------------------------------------------- changing

# Applies the patches and our changes to copies of the files that they change, in $work/changed/tree.
# It cannot write to $work/tree, whose files are those of the source, which other builds share.
change() {
    local part said changed=$work/changed ours drawing
    readarray -t ours <<<"$(cut -d ' ' -f 1 <<<"$CLOCK_FILES"$'\n'"$COMMAND_FILES"$'\n'"$TRIAL_FILES" | sort -u)"
    readarray -t drawing <<<"$(drawing_files "$pristine/source")"
    said=$(python3 "$here/trees.py" copy "$pristine/source" "$tree" arch/um/Kconfig net/sched/sch_netem.c \
        arch/um/os-Linux/skas/process.c arch/um/os-Linux/mem.c arch/x86/um/user-offsets.c net/ipv4/Makefile net/core/Makefile \
        net/sched/Makefile drivers/Makefile Makefile "${ours[@]}" "${drawing[@]}") || refuse 1 "$origin will not do: $said"
    : >"$changed/options"
    find "$work/patches" -name '*.patch' -o -name '*.c' | sort -V >"$changed/parts"
    while read -r part; do
        case $part in
        *.c) add_control "$part" "$(<"${part%.c}.name")" ;;
        *) apply "$part" "$(<"${part%.patch}.name")" ;;
        esac
    done <"$changed/parts"
    mkdir -p "$tree"/{arch/um/kernel,arch/x86/um/vdso,include/net,drivers/char}
    prepare_tree
}

# Lets $work/tree have what came of it: only those files get a new time.
sync() {        # [again]: something was compiled in it before
    local files
    files=$(python3 "$here/trees.py" sync "$pristine/source" "$tree" "$work/tree") ||
        refuse 1 "$origin will not do: ${files##*$'\n'}"
    [[ -z ${1-} ]] || say "$(printf '%s' "$files" | grep -c '') files differ from what was compiled before"
}

apply() {       # PATCH NAME
    local lines changed=$work/changed
    lines=$(python3 "$here/trees.py" split "$1" "$pristine/source" "$tree" "$changed/patch" 2>&1) ||
        refuse 2 "$2 does not apply: $lines"
    [[ -z $lines ]] || say "$2: $lines"
    # A hunk may be looked for in all of a file: hostile ones take for ever.
    (ulimit -t "$MOST_S" && exec patch -d "$tree" -p1 --batch --forward --no-backup-if-mismatch --reject-file=-) \
        <"$changed/patch" >"$changed/said" 2>&1 || {
        cat "$changed/said"
        refuse 1 "$2 does not apply to Linux $version: $(python3 "$here/trees.py" why "$changed/said")"
    }
    cat "$changed/said"
    ! grep -q ' with fuzz ' "$changed/said" ||
        say "$2: other lines stand around some of its parts; the log has which"
}

# A congestion control of one file, with the lines of Kconfig and Makefile that the kernel's own have.
# One that is called as a file of the kernel's takes its place.
add_control() {     # FILE PATH
    local file=${2##*/} name option other
    [[ $file =~ ^[A-Za-z0-9_-]+\.c$ ]] || refuse 2 "$2: its name may have letters, digits, _ and - and ends in .c"
    name=$(sed -n '/struct tcp_congestion_ops [^;]*=/,/};/ s/.*\.name[[:space:]]*=[[:space:]]*"\([A-Za-z0-9_.-]*\)".*/\1/p' "$1" | head -n 1)
    (( ${#name} > 0 && ${#name} < 16 )) ||
        refuse 2 "$2 is no congestion control: it has no struct tcp_congestion_ops with a .name of 1 to 15 characters"
    python3 "$here/trees.py" copy "$pristine/source" "$tree" net/ipv4/Kconfig "net/ipv4/$file" ||
        refuse 1 "$origin lacks net/ipv4/Kconfig"
    option=$(sed -n "s/^obj-\$(\(CONFIG_[A-Z0-9_]*\)) *+= *${file%.c}\.o$/\1/p" "$tree/net/ipv4/Makefile" | head -n 1)
    other=$(cd "$pristine/source" && grep -D skip -lE "\.name[[:space:]]*=[[:space:]]*\"$name\"" net/ipv4/tcp_*.c | grep -vxF "net/ipv4/$file" | head -n 1) || true
    [[ -z $other ]] || refuse 2 "$2: $other of this Linux is called \"$name\", too: give yours another .name," \
        "or call the file ${other##*/}, which takes its place"
    if [[ -z $option ]]; then
        [[ ! -e $tree/net/ipv4/$file ]] || refuse 2 "$file is a file of the kernel's own; give yours another name"
        option=CONFIG_TCP_CONG_OWN_$(tr 'a-z.-' 'A-Z__' <<<"$name")
        printf '\nconfig %s\n\tbool "%s, of %s"\n' "${option#CONFIG_}" "$name" "$file" >>"$tree/net/ipv4/Kconfig"
        echo "obj-\$($option) += ${file%.c}.o" >>"$tree/net/ipv4/Makefile"
    else
        say "$2 takes the place of the kernel's own net/ipv4/$file"
    fi
    cp "$1" "$tree/net/ipv4/$file"
    echo "$option=y" >>"$work/changed/options"
    say "$file has the congestion control $name: --cc $name uses it"
}

prepare_tree() {
    local module name
    # HZ has no prompt in UML, and its 100 is coarse for TCP's timers: 1000, as distributions have.
    sed -i '/^config HZ$/,/^config/ s/default 100$/default 1000/' "$tree/arch/um/Kconfig"
    widen_registers
    [[ -s $work/options ]] || skip_empty_drivers
    change_clock || say "Linux $version has another clock than clock.sed knows: every reading of" \
        "it is slow, and times will repeat to 0.5 us only"
    if [[ -n $for_commands ]]; then
        change_for_commands
    else
        change_for_trials
        release_senders
    fi
    # The machine's own Linux may be older than 6.3, which added this flag: without it such a kernel
    # gives memory that can be executed, and with it none. Else the guest writes a file in its place
    # and makes it executable, which a confined one may not.
    sed -i '/^[[:space:]]*MFD_EXEC | MFD_CLOEXEC | MFD_ALLOW_SEALING);$/a \
\tif (stub_exe_fd < 0 \&\& errno == EINVAL)\
\t\tstub_exe_fd = memfd_create("uml-userspace", MFD_CLOEXEC | MFD_ALLOW_SEALING);' \
        "$tree/arch/um/os-Linux/skas/process.c"
    # Before Linux 6.13 they are started without such a file.
    ! grep -q stub_exe_fd "$tree/arch/um/os-Linux/skas/process.c" ||
        grep -q '"uml-userspace", MFD_CLOEXEC' "$tree/arch/um/os-Linux/skas/process.c" ||
        say "Linux $version starts its processes in another way than is known:" \
            "on machines with a Linux older than 6.3 it will not run confined"
    # A guest's memory is a file without a name, which in a container's /dev/shm often has no room
    # (64 MB), or may not be executed. Memory that belongs to no folder (memfd) has neither limit.
    sed -i 's/^\tfd = make_tempfile(TEMPNAME_TEMPLATE);$/\
\tfd = memfd_create("vm_file", MFD_CLOEXEC | 0x10);\t\/* MFD_EXEC, of Linux 6.3 *\/\
\tif (fd < 0 \&\& errno == EINVAL)\
\t\tfd = memfd_create("vm_file", MFD_CLOEXEC);\
\tif (fd < 0)\
\t\tos_warn("no memory that may be executed: %s\\n", strerror(errno));\
\tif (fd < 0)\
\t&/' "$tree/arch/um/os-Linux/mem.c"
    grep -q 'memfd_create("vm_file", MFD_CLOEXEC)' "$tree/arch/um/os-Linux/mem.c" ||
        say "Linux $version keeps its memory in another way than is known: it needs a /dev/shm" \
            "that has room and may be executed, and does not run confined"
    for module in "$here"/tcp_*.c; do
        [[ -e $module ]] || continue
        name=${module##*/}
        [[ ! -e $tree/net/ipv4/$name && ! -e $pristine/source/net/ipv4/$name ]] ||
            refuse 1 "$name is a file of the kernel's own; give yours another name"
        cp "$module" "$tree/net/ipv4/"
        echo "obj-y += ${name%.c}.o" >>"$tree/net/ipv4/Makefile"
    done
}

# Of most folders of drivers/ only Makefiles are unpacked: make would read 300 of them, one after another,
# and compile nothing. What --config requests may be in such a folder: then make has to report that it
# lacks files, and so it keeps them.
skip_empty_drivers() {
    local folder empty=() makefile=$tree/drivers/Makefile
    [[ -f $makefile ]] || return 0
    while read -r folder; do
        [[ -n $(find {"$pristine/source","$tree"}/drivers/"$folder" -name '*.[cS]' -print -quit 2>/dev/null) ]] ||
            empty+=(-e "/^obj-y/ s,\([[:space:]]\)$folder\([[:space:]]\|\$\),\1\2,")
    done < <(sed -n 's/^obj-y[[:space:]]*+=//p' "$makefile" | grep -oE '[A-Za-z0-9_/-]+/')
    (( ${#empty[@]} == 0 )) || sed -i "${empty[@]}" "$makefile"
}

# Before Linux 6.13 UML had room for 2,696 bytes of a process's floating-point registers. With AMX
# they have 11,008, and the host takes all or none (EFAULT). Some lie on the stack of the kernel.
widen_registers() {
    local registers=$tree/arch/x86/um/user-offsets.c
    grep -qs 'HOST_FP_SIZE, 2696' "$registers" || return 0
    sed -i 's/HOST_FP_SIZE, 2696/HOST_FP_SIZE, 16384/' "$registers"
    sed -i '/^config KERNEL_STACK_ORDER$/,/^config/ s/default 2 if 64BIT$/default 4 if 64BIT/' \
        "$tree/arch/um/Kconfig"
}

# The kernel's files that clock.sed changes, and what each has in it then.
readonly CLOCK_FILES='arch/um/include/linux/time-internal.h TIMER_MULTIPLIER 1
arch/um/kernel/time.c clock_read();
arch/um/kernel/process.c clock_tell();
arch/x86/um/vdso/vma.c clock_map(mm, um_vdso_addr);'

# Two guests then time the same transfer alike, to the nanosecond, and reading the clock is no
# system call: see clock.c. All of it or nothing.
change_clock() {
    local file mark clocks=$work/changed/clock
    mkdir "$clocks"
    while read -r file mark; do
        sed -f "$here/clock.sed" "$tree/$file" >"$clocks/${file##*/}" &&
            grep -qF "$mark" "$clocks/${file##*/}" || return
    done <<<"$CLOCK_FILES"
    while read -r file mark; do
        cp "$clocks/${file##*/}" "$tree/$file"
    done <<<"$CLOCK_FILES"
    cp "$here/clock.c" "$here/clock.h" "$tree/arch/um/kernel/"
    cp "$here/clock.h" "$tree/arch/x86/um/vdso/"
    cp "$here/vdso.c" "$tree/arch/x86/um/vdso/um_vdso.c"
}

# The kernel's files that command.sed changes, and what each has in it then.
readonly COMMAND_FILES='arch/um/kernel/time.c command_idle()
arch/um/kernel/process.c command_spin();
arch/um/os-Linux/skas/process.c command_alarm();
arch/um/os-Linux/util.c command_random(buf
arch/um/kernel/um_arch.c core id
drivers/char/random.c (void)command_line;
drivers/char/random.c if (command_is_seeded)
drivers/char/random.c #include "command_restart.c"
net/bridge/br_netfilter_hooks.c call_iptables = 0;
fs/hostfs/hostfs_kern.c st->uid == 65534 ? 0
fs/hostfs/hostfs_kern.c st->gid == 65534 ? 0
fs/binfmt_elf.c command_stack(STACK_ROUND
kernel/bpf/arena.c min_t(long, page_cnt
include/linux/skbuff.h u64 capture_ns;
include/linux/netdevice.h u32 capture_id;
net/core/dev.c capture_queued(skb, dev);
net/core/dev.c capture_accepted(skb);
net/core/dev.c capture_sent(skb, dev);
net/core/skbuff.c capture_dropped(skb, reason);
net/core/rtnetlink.c capture_requested(net, nlh);
net/core/rtnetlink.c capture_answered(net, nlh, err, extack);
net/sched/sch_api.c capture_qdiscs(qdisc_dev(new ?: old));
net/sched/sch_api.c #include "capture_qdiscs.c"
net/sched/sch_api.c expires += link_noise();
net/sched/sch_netem.c u64			busy_until;
net/sched/sch_netem.c now = link_time(skb, now
kernel/exit.c capture_exits(code);
fs/read_write.c capture_said(fd, buf, count);
net/ipv4/tcp_input.c capture_opened(sk);'

# A packet in the emulated pipe is still known to its sender, and the sender's timers send nothing
# again while it is (tcp_skb_still_in_host_queue): a SYN would wait 2 s instead of 1 at an RTT of 3 s.
# On a network of machines it has left the sender's. For trials alone: see command.sed.
release_senders() {
    sed -i 's/skb_orphan_partial(skb)/skb_orphan(skb)/' "$tree/net/sched/sch_netem.c"
    grep -q 'skb_orphan(skb)' "$tree/net/sched/sch_netem.c" ||
        say "Linux $version has another netem than is known:" \
            "at RTTs above 1 s SYNs will be sent again late"
}

# What spins gets on, a seed decides all that is random, root's files are root's, and packets can be
# captured: see command.c, command.sed and capture.c.
change_for_commands() {
    local file mark
    cut -d ' ' -f 1 <<<"$COMMAND_FILES" | sort -u |
        while read -r file; do sed -i -f "$here/command.sed" "$tree/$file"; done
    while read -r file mark; do
        grep -qF "$mark" "$tree/$file" ||
            refuse 1 "Linux $version has another $file than command.sed knows: no kernel for commands"
    done <<<"$COMMAND_FILES"
    cp "$here/command.c" "$tree/arch/um/kernel/"
    cp "$here/command_os.c" "$tree/arch/um/os-Linux/"
    cp "$here/command_restart.c" "$tree/drivers/char/"
    cp "$here/capture.h" "$here/link_time.h" "$tree/include/net/"
    cp "$here/capture.c" "$here/capture_commands.c" "$tree/net/core/"
    cp "$here/link_time.c" "$tree/net/sched/"
    cp "$here/capture_qdiscs.c" "$tree/net/sched/"
    echo 'obj-y += capture.o' >>"$tree/net/core/Makefile"
    echo 'obj-y += link_time.o' >>"$tree/net/sched/Makefile"
}

# The kernel's files that trial.sed changes, and what each has in it then.
readonly TRIAL_FILES='drivers/char/random.c !trial_key(key
drivers/char/random.c #include "trial_random.c"
include/linux/random.h u32 trial_random(
include/linux/once.h trial_once,'

# Those that draw what decides on packets: congestion controls, queues and two more.
drawing_files() {       # TREE
    [[ -n $for_commands ]] ||
        (cd "$1" && grep -D skip -ls get_random_u include/net/sock.h net/core/neighbour.c net/{ipv4/tcp_,sched/sch_}*.c) || true
}

# A trial's seed decides all that is random in it: see trial_random.c. All of it or nothing.
change_for_trials() {
    local file mark
    while read -r file mark; do
        [[ $(sed -f "$here/trial.sed" "$tree/$file") == *"$mark"* ]] || {
            say "Linux $version has another $file than trial.sed knows: what the kernel draws at random" \
                "will differ between runs"
            return
        }
    done <<<"$TRIAL_FILES"
    cut -d ' ' -f 1 <<<"$TRIAL_FILES" | sort -u |
        while read -r file; do sed -i -f "$here/trial.sed" "$tree/$file"; done
    cp "$here/trial_random.c" "$tree/drivers/char/"
    # Those of patches, too.
    drawing_files "$tree" | while read -r file; do name_random_numbers "$tree/$file"; done
}

# Each file has a stream of random numbers of its own.
name_random_numbers() {     # FILE
    local name=${1##*/}
    name=${name%.*}
    sed -i -e "s/\bget_random_u32_below(/trial_random_below(\"$name\", /g" \
        -e "s/\bget_random_u16()/(u16)trial_random(\"$name\")/g" \
        -e "s/\bget_random_u32()/trial_random(\"$name\")/g" "$1"
}

# ---------------------------------------------------------------- compiling

# Options that a newer Linux calls otherwise: where it has the new name, the old one, and the new.
readonly NEW_NAMES='fs/proc/Kconfig PROC_SYSCTL SYSCTL'      # of Linux 7.3

take_new_names() {
    local file old new
    while read -r file old new; do
        ! grep -qxs "config $new" "$work/tree/$file" ||
            sed -i "s/\bCONFIG_$old\b/CONFIG_$new/" "$built/kernel.config"
    done <<<"$NEW_NAMES"
}

# What --config gave, in place of what the guest's own configuration has for the same.
add_options() {
    local line option
    while read -r line; do
        [[ -n $line ]] || continue
        option=$(grep -o 'CONFIG_[A-Z0-9_]*' <<<"$line")
        sed -i -e "/^$option=/d" -e "/^# $option is not set/d" "$built/kernel.config"
        echo "$line" >>"$built/kernel.config"
    done <<<"$(cat "$work/changed/options" "$work/options")"
}

configure() {
    local line dropped=()
    cp "$here/kernel.config" "$built/kernel.config"
    [[ -z $for_commands ]] || cat "$here/mininet.config" >>"$built/kernel.config"
    take_new_names
    add_options
    kernel_make KCONFIG_ALLCONFIG="$built/kernel.config" allnoconfig
    echo CONFIG_HZ=1000 >>"$built/kernel.config"
    while read -r line; do
        case $line in
        '# '*' is not set') ! grep -q "^$(cut -d ' ' -f 2 <<<"$line")=" "$objects/.config" || dropped+=("${line#\# }") ;;
        CONFIG_*) grep -qxF "$line" "$objects/.config" || dropped+=("$line") ;;
        esac
    done <"$built/kernel.config"
    (( ${#dropped[@]} == 0 )) || refuse 1 "Linux $version does not take ${dropped[*]}"
}

# make with what is the same for every step. The build's user, host and date are fixed, and no
# path is in it: the same source, configuration and compiler give the same kernel. Without tracking
# macro expansions gcc's messages are coarser (and two warnings wrong), and the build is an eighth
# shorter; -O1 instead of -Os saves a sixth. A compiler that is killed leaves its files in TMPDIR.
kernel_make() {
    TMPDIR=$built/tmp make -C "$work/tree" ARCH=um O="$objects" CC="$built/cc.sh" -j"$(nproc)" \
        KCFLAGS="-O1 -ftrack-macro-expansion=0 -Wno-tautological-compare -Wno-attribute-alias \
-ffile-prefix-map=$work/tree/= -ffile-prefix-map=$work/=" \
        KBUILD_BUILD_USER=first-flight KBUILD_BUILD_HOST=guest \
        KBUILD_BUILD_TIMESTAMP='1970-01-01 00:00 UTC' "$@"
}

# Whether headers.h is read already, as the source and the configuration are now.
are_headers_read() {
    [[ -e $built/headers.h.gch ]] && cmp -s "$objects/.config" "$built/headers.config" &&
        [[ -z $(find "$work/tree" -name '*.h' -newer "$built/headers.h.gch" -print -quit) ]]
}

# Reads headers.h for cc.sh, with the very options of one of the kernel's files. Without it the
# build takes longer, and no more.
read_headers() {
    local options
    rm -f "$built/headers.h.gch"
    kernel_make kernel/range.o || return
    options=$(sed -n '1 s/^savedcmd_[^=]*= [^ ]*//p' "$objects/kernel/.range.o.cmd" |
        sed 's/-Wp,-MMD,[^ ]*//; s/-include [^ ]*//g; s/-DKBUILD_MODFILE=.*//')
    (cd "$objects" && eval "TMPDIR=$built/tmp gcc $options -x c-header -o '$built/headers.part' '$built/headers.h'") &&
        cp "$objects/.config" "$built/headers.config" && mv "$built/headers.part" "$built/headers.h.gch"
}

# What cc.sh defines comes on standard input, which make would take for a file that has just changed:
# all would be compiled again.
forget_standard_input() {
    find "$objects" -name '.*.o.cmd' -exec sed -i '\|^  /dev/stdin \\$|d' {} +
}

linux() {
    forget_standard_input
    rm -f "$objects/.version"       # which counts how often it was linked
    are_headers_read || read_headers || true
    kernel_make linux
}

readonly tree=${work-}/changed/tree built=${work-}/built
readonly objects=$built/objects
"$@"; exit      # on one line: this file may be changed meanwhile, and bash would read on in it
