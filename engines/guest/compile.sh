# shellcheck shell=bash
# Part of build.sh: prepares the source, configures and compiles it, and boots the kernel once.
# What it reads is set by build.sh and source.sh: work, log, version, origin, …
# shellcheck disable=SC2154

# ---------------------------------------------------------------- building

prepare_tree() {
    local tree=$work/tree module name
    [[ -f $tree/Makefile && -d $tree/arch/um ]] || fail "$origin is no kernel source"
    version=$(makefile_version <"$tree/Makefile")
    is_new_enough "$version" ||
        fail "$origin is Linux $version; the guest needs $MIN_VERSION or newer"
    # HZ has no prompt in UML, and its 100 is coarse for TCP's timers: 1000, as distributions have.
    sed -i '/^config HZ$/,/^config/ s/default 100$/default 1000/' "$tree/arch/um/Kconfig"
    # Two guests then time the same transfer alike, to the nanosecond: see clock.sed.
    sed -i 's/^#define TIMER_MULTIPLIER 256$/#define TIMER_MULTIPLIER 1/' \
        "$tree/arch/um/include/linux/time-internal.h"
    sed -i -f "$here/clock.sed" "$tree/arch/um/kernel/time.c"
    if ! grep -q 'in_a_row = 0' "$tree/arch/um/kernel/time.c" ||
        ! grep -q 'TIMER_MULTIPLIER 1$' "$tree/arch/um/include/linux/time-internal.h"; then
        say "Linux $version has another clock than clock.sed knows:" \
            "times will repeat to 0.5 us only"
    fi
    # A packet in the emulated pipe is still known to its sender, and the sender's timers send
    # nothing again while it is (tcp_skb_still_in_host_queue): a SYN would wait 2 s instead of 1 at
    # an RTT of 3 s. On a real network it has left the machine.
    sed -i 's/skb_orphan_partial(skb)/skb_orphan(skb)/' "$tree/net/sched/sch_netem.c"
    grep -q 'skb_orphan(skb)' "$tree/net/sched/sch_netem.c" ||
        say "Linux $version has another netem than is known:" \
            "at RTTs above 1 s SYNs will be sent again late"
    for module in "$here"/tcp_*.c; do
        [[ -e $module ]] || continue
        name=${module##*/}
        [[ ! -e $tree/net/ipv4/$name ]] ||
            die 1 "$name is a file of the kernel's own; give yours another name"
        cp "$module" "$tree/net/ipv4/"
        echo "obj-y += ${name%.c}.o" >>"$tree/net/ipv4/Makefile"
    done
    # A tree of the user's was never to be changed, and is a copy by now.
    [[ -n $named_source ]] || rm -rf "$work/source" "$work/apt"
}

configure() {
    local objects=$work/objects line dropped=()
    cp "$here/kernel.config" "$work/kernel.config"
    step "configuring Linux $version" nothing \
        make -C "$work/tree" ARCH=um O="$objects" KCONFIG_ALLCONFIG="$work/kernel.config" \
        allnoconfig ||
        fail "Linux $version could not be configured"
    while read -r line; do
        grep -qxF "$line" "$objects/.config" || dropped+=("$line")
    done < <(grep '^CONFIG_' "$work/kernel.config"; echo CONFIG_HZ=1000)
    (( ${#dropped[@]} == 0 )) || fail "Linux $version does not take ${dropped[*]}"
}

# Without tracking macro expansions gcc's messages are coarser (and two warnings wrong), and the
# build is an eighth shorter. The build's user, host and date are fixed: the same source gives the
# same kernel.
compile() {
    step "compiling Linux $version:" compiled \
        make -C "$work/tree" ARCH=um O="$work/objects" -j"$(nproc)" \
        KCFLAGS='-ftrack-macro-expansion=0 -Wno-tautological-compare -Wno-attribute-alias' \
        KBUILD_BUILD_USER=first-flight KBUILD_BUILD_HOST=guest \
        KBUILD_BUILD_TIMESTAMP='1970-01-01 00:00 UTC' \
        linux || fail "Linux $version could not be compiled ($(failure_line))"
    cp "$work/objects/linux" "$work/objects/.config" "$work/kernel/" 2>>"$log" ||
        fail "Linux $version could not be kept"
    mv "$work/kernel/.config" "$work/kernel/config"
    # The kernel's own tests of TCP stay beside it; older sources have none.
    cp -r "$work/tree/tools/testing/selftests/net/packetdrill" "$work/kernel/" 2>/dev/null || true
    echo "$version" >"$work/kernel/version"
    echo "$origin" >"$work/kernel/source"
}

failure_line() {
    grep -m 1 -E 'error:|Error [0-9]|No space left|Killed' "$log" || echo "no error message"
}

# ---------------------------------------------------------------- trying it

# The first process of the trial: sleeps 100 s, says what its clock saw, ends the machine.
write_trial_init() {
    cat >"$work/trial.c" <<'EOF'
#include <stdio.h>
#include <sys/reboot.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    struct timespec before, after;
    struct utsname name;

    uname(&name);
    clock_gettime(CLOCK_MONOTONIC, &before);
    sleep(100);
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("trial: Linux %s slept %ld s\n", name.release, (long)(after.tv_sec - before.tv_sec));
    fflush(stdout);
    return reboot(RB_POWER_OFF);
}
EOF
    gcc -O1 -o "$work/trial" "$work/trial.c" 2>>"$log"
}

try_kernel() {
    local began=$SECONDS
    write_trial_init || fail "the trial program could not be compiled"
    # Not pinned here, but a guest that works should be (taskset): its kernel and its programs take
    # turns, and on one core they do so 4 times faster (60 fetches and 60 MB over a network: 8 s,
    # 32 s on two cores).
    step "booting Linux $version" nothing \
        timeout --kill-after=1 60 "$work/kernel/linux" mem=64M \
        root=none rootfstype=hostfs hostfs=/ rootflags=/ ro "init=$work/trial" \
        con=null con0=fd:0,fd:1 quiet uml_dir="$work/" seccomp=auto time-travel=inf-cpu || true
    grep -q "^trial: Linux $version.* slept 100 s" "$log" && (( SECONDS - began < 50 )) && return
    die 4 "the kernel was built but does not run here: $(boot_failure); the log is $log"
}

boot_failure() {
    local output folder
    output=$(tail -n 15 "$log")
    case $output in
    *noexec*)
        folder=$(sed -n 's/ must be not mounted noexec.*//p' <<<"$output")
        echo "its memory is a file in $folder, which is mounted noexec;" \
            "set TMPDIR to a folder that is not"
        ;;
    *ptrace* | *seccomp*)
        echo "ptrace and seccomp are both forbidden (by a container's security profile?)"
        ;;
    *) tail -n 1 <<<"$output" ;;
    esac
}

publish() {
    local folder=$root/$key
    cp "$log" "$work/kernel/build.log" || return
    if [[ -e $folder ]]; then
        mv -T "$folder" "$work/replaced" || return
    fi
    mv -T "$work/kernel" "$folder"
}
