# shellcheck shell=bash
# Part of build.sh: prepares the source, configures and compiles it, and boots the kernel once.
# What it reads is set by build.sh and source.sh: work, log, version, origin, …
# shellcheck disable=SC2034,SC2154

# ---------------------------------------------------------------- building

prepare_tree() {
    local tree=$work/tree module name
    [[ -f $tree/Makefile && -d $tree/arch/um ]] || fail "$origin is no kernel source"
    version=$(makefile_version <"$tree/Makefile")
    is_new_enough "$version" ||
        fail "$origin is Linux $version; the guest needs $MIN_VERSION or newer"
    # HZ has no prompt in UML, and its 100 is coarse for TCP's timers: 1000, as distributions have.
    sed -i '/^config HZ$/,/^config/ s/default 100$/default 1000/' "$tree/arch/um/Kconfig"
    widen_registers
    change_clock || say "Linux $version has another clock than clock.sed knows: every reading of" \
        "it is slow, and times will repeat to 0.5 us only"
    if [[ -n $for_commands ]]; then change_for_commands; else change_for_trials; fi
    # A packet in the emulated pipe is still known to its sender, and the sender's timers send
    # nothing again while it is (tcp_skb_still_in_host_queue): a SYN would wait 2 s instead of 1 at
    # an RTT of 3 s. On a real network it has left the machine.
    sed -i 's/skb_orphan_partial(skb)/skb_orphan(skb)/' "$tree/net/sched/sch_netem.c"
    grep -q 'skb_orphan(skb)' "$tree/net/sched/sch_netem.c" ||
        say "Linux $version has another netem than is known:" \
            "at RTTs above 1 s SYNs will be sent again late"
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
        [[ ! -e $tree/net/ipv4/$name ]] ||
            die 1 "$name is a file of the kernel's own; give yours another name"
        cp "$module" "$tree/net/ipv4/"
        echo "obj-y += ${name%.c}.o" >>"$tree/net/ipv4/Makefile"
    done
}

# Before Linux 6.13 UML had room for 2,696 bytes of a process's floating-point registers. With AMX
# they have 11,008, and the host takes all or none (EFAULT). Some lie on the stack of the kernel.
widen_registers() {
    local registers=$work/tree/arch/x86/um/user-offsets.c
    grep -qs 'HOST_FP_SIZE, 2696' "$registers" || return 0
    sed -i 's/HOST_FP_SIZE, 2696/HOST_FP_SIZE, 16384/' "$registers"
    sed -i '/^config KERNEL_STACK_ORDER$/,/^config/ s/default 2 if 64BIT$/default 4 if 64BIT/' \
        "$work/tree/arch/um/Kconfig"
}

# The kernel's files that clock.sed changes, and what each has in it then.
readonly CLOCK_FILES='arch/um/include/linux/time-internal.h TIMER_MULTIPLIER 1
arch/um/kernel/time.c clock_read();
arch/um/kernel/process.c clock_tell();
arch/x86/um/vdso/vma.c clock_map(mm, um_vdso_addr);'

# Two guests then time the same transfer alike, to the nanosecond, and reading the clock is no
# system call: see clock.c. All of it or nothing.
change_clock() {
    local file mark changed=$work/clock
    mkdir "$changed"
    while read -r file mark; do
        sed -f "$here/clock.sed" "$work/tree/$file" >"$changed/${file##*/}" &&
            grep -qF "$mark" "$changed/${file##*/}" || return
    done <<<"$CLOCK_FILES"
    while read -r file mark; do
        cp "$changed/${file##*/}" "$work/tree/$file"
    done <<<"$CLOCK_FILES"
    cp "$here/clock.c" "$here/clock.h" "$work/tree/arch/um/kernel/"
    cp "$here/clock.h" "$work/tree/arch/x86/um/vdso/"
    cp "$here/vdso.c" "$work/tree/arch/x86/um/vdso/um_vdso.c"
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

# What spins gets on, a seed decides all that is random, root's files are root's, and packets can be
# captured: see command.c, command.sed and capture.c.
change_for_commands() {
    local file mark
    cut -d ' ' -f 1 <<<"$COMMAND_FILES" | sort -u |
        while read -r file; do sed -i -f "$here/command.sed" "$work/tree/$file"; done
    while read -r file mark; do
        grep -qF "$mark" "$work/tree/$file" ||
            fail "Linux $version has another $file than command.sed knows: no kernel for commands"
    done <<<"$COMMAND_FILES"
    cp "$here/command.c" "$work/tree/arch/um/kernel/"
    cp "$here/command_os.c" "$work/tree/arch/um/os-Linux/"
    cp "$here/command_restart.c" "$work/tree/drivers/char/"
    cp "$here/capture.h" "$here/link_time.h" "$work/tree/include/net/"
    cp "$here/capture.c" "$here/capture_commands.c" "$work/tree/net/core/"
    cp "$here/link_time.c" "$work/tree/net/sched/"
    cp "$here/capture_qdiscs.c" "$work/tree/net/sched/"
    echo 'obj-y += capture.o' >>"$work/tree/net/core/Makefile"
    echo 'obj-y += link_time.o' >>"$work/tree/net/sched/Makefile"
}

# The kernel's files that trial.sed changes, and what each has in it then.
readonly TRIAL_FILES='drivers/char/random.c !trial_key(key
drivers/char/random.c #include "trial_random.c"
include/linux/random.h u32 trial_random(
include/linux/once.h trial_once,'
# Those that draw what decides on packets, beside congestion controls and queues.
readonly DRAWING_FILES=(include/net/sock.h net/core/neighbour.c)

# A trial's seed decides all that is random in it: see trial_random.c. All of it or nothing.
change_for_trials() {
    local file mark
    while read -r file mark; do
        [[ $(sed -f "$here/trial.sed" "$work/tree/$file") == *"$mark"* ]] || {
            say "Linux $version has another $file than trial.sed knows: what the kernel draws at random" \
                "will differ between runs"
            return
        }
    done <<<"$TRIAL_FILES"
    cut -d ' ' -f 1 <<<"$TRIAL_FILES" | sort -u |
        while read -r file; do sed -i -f "$here/trial.sed" "$work/tree/$file"; done
    cp "$here/trial_random.c" "$work/tree/drivers/char/"
    # Those of patches, too.
    for file in "${DRAWING_FILES[@]/#/$work/tree/}" "$work"/tree/net/{ipv4/tcp_,sched/sch_}*.c; do
        ! grep -qs 'get_random_u' "$file" || name_random_numbers "$file"
    done
}

# Each file has a stream of random numbers of its own.
name_random_numbers() {     # FILE
    local name=${1##*/}
    name=${name%.*}
    sed -i -e "s/\bget_random_u32_below(/trial_random_below(\"$name\", /g" \
        -e "s/\bget_random_u16()/(u16)trial_random(\"$name\")/g" \
        -e "s/\bget_random_u32()/trial_random(\"$name\")/g" "$1"
}

# Options that a newer Linux calls otherwise: where it has the new name, the old one, and the new.
readonly NEW_NAMES='fs/proc/Kconfig PROC_SYSCTL SYSCTL'      # of Linux 7.3

take_new_names() {
    local file old new
    while read -r file old new; do
        ! grep -qxs "config $new" "$work/tree/$file" ||
            sed -i "s/\bCONFIG_$old\b/CONFIG_$new/" "$work/kernel.config"
    done <<<"$NEW_NAMES"
}

configure() {
    local objects=$work/objects line dropped=()
    cp "$here/kernel.config" "$work/kernel.config"
    [[ -z $for_commands ]] || cat "$here/mininet.config" >>"$work/kernel.config"
    take_new_names
    add_options
    step "configuring Linux $version" elapsed \
        "$BASH" -c 'kernel_make "$@"' make KCONFIG_ALLCONFIG="$work/kernel.config" allnoconfig ||
        fail "Linux $version could not be configured"
    while read -r line; do
        case $line in
        '# '*) ! grep -q "^$(cut -d ' ' -f 2 <<<"$line")=" "$objects/.config" || dropped+=("${line#\# }") ;;
        *) grep -qxF "$line" "$objects/.config" || dropped+=("$line") ;;
        esac
    done < <(grep -E '^(CONFIG_|# CONFIG_.* is not set)' "$work/kernel.config"; echo CONFIG_HZ=1000)
    (( ${#dropped[@]} == 0 )) ||
        fail "Linux $version does not take ${dropped[*]}${kernel_name:+; $(what_stays)}"
}

# make with what is the same for every step. The build's user, host and date are fixed, and no
# path is in it: the same source, configuration and compiler give the same kernel. Without tracking
# macro expansions gcc's messages are coarser (and two warnings wrong), and the build is an eighth
# shorter; -O1 instead of -Os saves a sixth. A compiler that is killed leaves its files in TMPDIR.
kernel_make() {
    TMPDIR=$work/tmp make -C "$work/tree" ARCH=um O="$work/objects" CC="$work/cc.sh" -j"$(nproc)" \
        KCFLAGS="-O1 -ftrack-macro-expansion=0 -Wno-tautological-compare -Wno-attribute-alias \
-ffile-prefix-map=$work/tree/= -ffile-prefix-map=$work/=" \
        KBUILD_BUILD_USER=first-flight KBUILD_BUILD_HOST=guest \
        KBUILD_BUILD_TIMESTAMP='1970-01-01 00:00 UTC' "$@"
}

# Reads headers.h for cc.sh, with the very options of one of the kernel's files. Without it the
# build takes longer, and no more.
precompile() {
    local options
    kernel_make kernel/range.o || return
    options=$(sed -n '1 s/^savedcmd_[^=]*= [^ ]*//p' "$work/objects/kernel/.range.o.cmd" |
        sed 's/-Wp,-MMD,[^ ]*//; s/-include [^ ]*//g; s/-DKBUILD_MODFILE=.*//')
    cd "$work/objects" && eval "TMPDIR=$work/tmp gcc $options -x c-header -o '$work/headers.part' '$work/headers.h'" &&
        mv "$work/headers.part" "$work/headers.h.gch"
}

# What cc.sh defines comes on standard input, which make would take for a file that has just changed:
# all would be compiled again.
forget_standard_input() {
    find "$work/objects" -name '.*.o.cmd' -exec sed -i '\|^  /dev/stdin \\$|d' {} +
}

compile() {
    forget_standard_input
    rm -f "$work/objects/.version"      # which counts how often it was linked
    [[ -e $work/headers.h.gch ]] ||
        step "reading the headers of Linux $version" elapsed "$BASH" -c precompile || true
    [[ -z $continued ]] || compiled_before=$(find "$work/objects" -name '*.o' | wc -l)
    step "compiling Linux $version:" compiled \
        "$BASH" -c 'kernel_make "$@"' make linux ||
        fail "Linux $version could not be compiled ($(failure_line))${kernel_name:+; $(what_stays)}"
    cp "$work/objects/linux" "$work/objects/.config" "$work/kernel/" 2>>"$log" ||
        fail "Linux $version could not be kept"
    mv "$work/kernel/.config" "$work/kernel/config"
    # The kernel's own tests of TCP stay beside it; older sources have none.
    cp -r "$work/tree/tools/testing/selftests/net/packetdrill" "$work/kernel/" 2>/dev/null || true
    echo "$version" >"$work/kernel/version"
    echo "$origin" >"$work/kernel/source"
    write_inputs
}

# What the kernel was made from, a line each: see exchange.py.
write_inputs() {
    echo "configuration $key"
    echo "source $source_hash"
    echo "compiler $(compiler)"
    (cd "$work/kernel" && sha256sum linux config) | sed 's/^\([^ ]*\)  \(.*\)/\2 \1/'
} >"$work/kernel/inputs"

compiler() { gcc --version 2>/dev/null | head -n 1; }

failure_line() {
    tail -n +"$(( began_at + 1 ))" "$log" |
        grep -m 1 -E 'error:|ERROR:|undefined reference|Error [0-9]|No space left|Killed' | sed "s|$work/tree/||; s|^\(\.\./\)*tree/||" |
        grep . || echo "no error message"
}

# ---------------------------------------------------------------- trying it

# The first process of the trial: sleeps 100 s, says what its clock saw, ends the machine.
write_trial_init() {
    cat >"$work/boot/trial.py" <<'EOF'
import ctypes, os, time
before = time.monotonic()
time.sleep(100)
slept_s = int(time.monotonic() - before)
print(f"trial: Linux {os.uname().release} slept {slept_s} s", flush=True)
ctypes.CDLL(None).reboot(0x4321FEDC)  # LINUX_REBOOT_CMD_POWER_OFF
EOF
}

# Behind the walls that every guest has (vtime/uml.py), where the machine can.
try_kernel() {
    local confined=()
    mkdir -p "$work/boot"
    write_trial_init
    ! can_confine || mapfile -t confined < <(PYTHONPATH=$here/../.. python3 -c \
        'from vtime import uml; print(*uml.confining(), sep="\n")')
    # Not pinned here, but a guest that works should be (taskset): its kernel and its programs take
    # turns, and on one core they do so 4 times faster (60 fetches and 60 MB over a network: 8 s,
    # 32 s on two cores). Twice: a machine may have been stopped or asleep meanwhile.
    for _ in 1 2; do
        step "booting Linux $version" elapsed \
            env --chdir="$work/boot" timeout --foreground --kill-after=1 50 "${confined[@]}" "$work/kernel/linux" \
            mem=64M root=none rootfstype=hostfs hostfs=/ rootflags=/ ro init=/usr/bin/python3 \
            con=null con0=fd:0,fd:1 quiet uml_dir=./ seccomp=auto time-travel=inf-cpu \
            -- -S -E "\"$work/boot/trial.py\"" || true
        grep -F "trial: Linux $version" "$log" | grep -q ' slept 100 s' && return
    done
    [[ -z $continued ]] || begin_anew
    [[ -n $imported ]] || keep_work=yes     # it may be for the machine, and soon be repaired
    die 4 "the kernel is there but does not run here: $(boot_failure); the log is $log"
}

can_confine() {
    PYTHONPATH=$here/../.. python3 -c \
        'import sys; from vtime import confine; sys.exit(confine.lacking() != "")'
}

boot_failure() {
    local output folder
    output=$(tail -n 15 "$log")
    case $output in
    *'no memory that may be executed'*)
        echo "this machine lets no memory be executed (sysctl -w vm.memfd_noexec=0 lets it)"
        ;;
    *ptrace* | *seccomp*)
        echo "ptrace and seccomp are both forbidden (by a container's security profile?)"
        ;;
    *) tail -n 1 <<<"$output" ;;
    esac
}

publish() {
    local folder
    folder=$(folder_of "$source_hash")
    # What it was made from is here its maker's word: another kernel of the same word is another one.
    [[ -z $imported ]] || folder+=-$(sha256sum <"$work/kernel/linux" | cut -c 1-8)
    cp "$log" "$work/kernel/build.log" || return
    if [[ -e $folder ]]; then
        rm -rf "$work/replaced"
        mv -T "$folder" "$work/replaced" || return
    fi
    mv -T "$work/kernel" "$folder" && choose "$folder"
}
