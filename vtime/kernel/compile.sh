# shellcheck shell=bash
# Part of build.sh: changes, configures and compiles a source behind the wall, and boots the kernel
# once.
# What it reads is set by build.sh and folders.sh, and what it sets is read there: work, log, …
# shellcheck disable=SC2034,SC2154

# ---------------------------------------------------------------- building

make_kernel() {
    change_tree
    configure
    compile
    try_kernel
}

change_tree() {
    local file again=()
    printf '%s' "${options[@]/%/$'\n'}" >"$work/options"
    for file in "${patches[@]}"; do add_part "$file" patch; done
    for file in "${controls[@]}"; do add_part "$file" c; done
    [[ -z $(find "$work/built/objects" -mindepth 1 -print -quit) ]] || again=(again)
    changing --write "$work/changed" --read "$pristine/source" --read "$work/patches" --read "$work/options" -- change
    changing --write "$work/tree" --read "$pristine/source" --read "$work/changed" -- sync "${again[@]}"
}

changing() {    # PATH… -- STEP
    local status line
    inside "preparing the source of Linux $version" elapsed "$@" || {
        status=$?
        end_step "the source of Linux $version could not be changed ($(step_reason))" "$status"
    }
    while read -r line; do say "$line"; done < <(lines_of_step said)
}

add_part() {    # FILE KIND: what is built is this copy, whatever becomes of the file meanwhile
    local place
    place=$work/patches/$(find "$work/patches" -name '*.name' | wc -l)
    { cp "$1" "$place.$2" && printf '%s\n' "$1" >"$place.name"; } 2>>"$log" || no_room
}

configure() {
    local status
    inside "configuring Linux $version" elapsed --write "$work/built" --read "$work/tree" --read "$work/options" --read "$work/changed/options" -- configure || {
        status=$?
        [[ -z $continued || -n $(lines_of_step refused) ]] || begin_anew
        end_step "Linux $version could not be configured" "$status"
    }
}

compile() {
    [[ -z $continued ]] || compiled_before=$(find "$work/built/objects" -name '*.o' | wc -l)
    inside "compiling Linux $version:" compiled --write "$work/built" --read "$work/tree" -- linux ||
        end_step "Linux $version could not be compiled ($(failure_line))" 1
    # The kernel, and its own tests of TCP, which stay beside it; older sources have none.
    python3 "$here/exchange.py" collect "$work/built" "$work/kernel" "$work/tree" 2>>"$log" || fail "Linux $version could not be kept ($(tail -n 1 "$log"))"
    echo "$version" >"$work/kernel/version"
    echo "$origin" >"$work/kernel/source"
    write_inputs
}

# Ends with what the last step said of its end.
end_step() {    # MESSAGE STATUS
    local status=$2 reason
    reason=$(lines_of_step refused | tail -n 1)
    check_room_left "$1"
    [[ -n $reason ]] || fail "$1${kernel_name:+; $(what_stays)}"
    [[ -z $continued || -n $kernel_name ]] || begin_anew
    (( status <= 4 )) || status=1     # it was killed
    die "$status" "$reason${kernel_name:+; $(what_stays)}"
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
    write_trial_init
    ! can_confine || mapfile -t confined < <(project_python 'from vtime import uml; print(*uml.confining(), sep="\n")')
    # Not pinned here, but a guest that works should be (taskset): its kernel and its programs take
    # turns, and on one core they do so 4 times faster (60 fetches and 60 MB over a network: 8 s,
    # 32 s on two cores). Twice: a machine may have been stopped or asleep meanwhile.
    for _ in 1 2; do
        step "booting Linux $version" elapsed \
            python3 -IB "$here/wall.py" --print -- env --chdir="$work/boot" timeout --foreground --kill-after=1 50 "${confined[@]}" "$work/kernel/linux" \
            mem=64M root=none rootfstype=hostfs hostfs=/ rootflags=/ ro init=/usr/bin/python3 \
            con=null con0=fd:0,fd:1 quiet uml_dir=./ seccomp=auto time-travel=inf-cpu \
            -- -S -E "\"$work/boot/trial.py\"" || true
        tail -n +"$(( began_at + 1 ))" "$log" | grep -F "trial: Linux $version" | grep -q ' slept 100 s' && return
    done
    [[ -z $continued ]] || begin_anew
    [[ -n $imported ]] || keep_work=yes     # it may be for the machine, and soon be repaired
    die 4 "the kernel is there but does not run here: $(boot_failure); the log is $log"
}

can_confine() { project_python 'from vtime import confine; sys.exit(confine.lacking() != "")'; }

# Of the project and the system alone: the folder where somebody has started this may be a stranger's.
project_python() {      # STATEMENTS
    python3 -IB -c "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); sys.path.insert(0, sys.argv[1]); $1" \
        "$here/../.."
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
