# shellcheck shell=bash
# Part of build.sh: what it says, and how it runs what takes long.
# What it reads is set by build.sh, and what it sets is read there: work, log, …
# shellcheck disable=SC2034,SC2154

readonly MOST_TEXT=600        # characters of a message
readonly OBJECTS=620          # about how many files are compiled; only for the progress line
readonly MORE_OBJECTS=640     # for commands
readonly FULL_BAR='####################' EMPTY_BAR='....................' BAR=20

# ---------------------------------------------------------------- messages

# A path, a patch or a compiler may print what moves a terminal's cursor, or hides text.
say() {
    local text=${*//[$'\001'-$'\037\177']/?}
    text=${text//$'\302'[$'\200'-$'\237']/?}
    text=${text//$'\342\200'[$'\213'-$'\217'$'\250'-$'\256']/?}
    (( ${#text} <= MOST_TEXT )) || text="${text:0:MOST_TEXT / 2} … ${text: -MOST_TEXT / 2}"
    printf '%sguest kernel: %s\n' "${clear_line-}" "$text" >&2
}

die() {     # STATUS MESSAGE
    local status=$1
    shift
    say "$*"
    exit "$status"
}

fail() {    # MESSAGE: a failed step, whose log the user may want to see
    check_room_left "$*"
    [[ -z $continued || -n $kernel_name ]] || begin_anew
    die 1 "$*; the log is $log"
}

check_room_left() {     # MESSAGE
    # A full disk may have cut off the log as well.
    if grep -qE 'No space left on device|Disk quota exceeded' "$log" || (( $(free_mb) == 0 )); then
        die 4 "$*: no space left for $root; free $(needed_mb) MB there, or set XDG_CACHE_HOME"
    fi
    ! log_says 'File size limit exceeded|SIGXFSZ|File too large' ||
        die 4 "$*: files may not be that large here; raise the limit (ulimit -f unlimited)"
    ! log_says 'Cannot allocate memory|[Oo]ut of memory|memory exhausted|MemoryError' ||
        die 4 "$*: no memory left; raise the limit (ulimit -v unlimited), or free some"
    ! log_says 'Resource temporarily unavailable|cannot fork' ||
        die 4 "$*: no more processes may be started; raise the limit (ulimit -u), or end some"
}

# Whether a line of the log has one of these; lines of the source that a compiler quotes have a bar.
log_says() {    # PATTERN
    LC_ALL=C grep -qE "^[^|]*($1)[^|]*\$" "$log"
}

# Why the last step failed, in the words of apt or curl.
step_reason() {
    tail -n +"$(( began_at + 1 ))" "$log" | grep -m 1 -E '^(E: |curl: )' ||
        tail -n +"$(( began_at + 1 ))" "$log" | tail -n 1
}

# The first line of tar that says what is wrong: the last one never does.
unpack_reason() {
    tail -n +"$(( began_at + 1 ))" "$log" | grep -vE '^tar: (Removing leading|Exiting with|.*: Not found in archive$)' |
        grep . || tail -n +"$(( began_at + 1 ))" "$log" | grep -v 'Exiting with'
}

show_progress() {   # TEXT: one line that rewrites itself on a terminal, else a line every 10 s
    if [[ -n $clear_line ]]; then
        printf '%sguest kernel: %s' "$clear_line" "$1" >&2
    elif (( SECONDS >= next_line )); then
        say "$1"
        next_line=$(( SECONDS + 10 ))
    fi
}

# ---------------------------------------------------------------- running the long steps

# Each long step is a session of its own, so that it can be ended whole, and does not inherit the
# lock (9), which must end with this script. If this script is killed, the shell at the head of the
# step gets a TERM and kills all of it: make alone would leave its compilers running. The shell sees
# whether this script was killed even earlier. A caller may have had TERM ignored, which is inherited.
# shellcheck disable=SC2016  # of that shell
readonly WITH_PARENT=(env --default-signal=TERM setpriv --pdeathsig TERM "$BASH" -c
    'trap "kill -KILL 0" TERM; [[ $PPID == "$0" ]] || exit; "$@" & wait "$!"')
step() {    # LABEL DETAIL COMMAND...: DETAIL prints how far it is after SECONDS
    local label=$1 detail=$2 began=$SECONDS
    shift 2
    began_at=$(wc -l <"$log")
    next_line=$(( SECONDS + 10 ))
    setsid "${WITH_PARENT[@]}" "$$" "$@" </dev/null >>"$log" 2>&1 9>&- &
    job=$!
    while kill -0 "$job" 2>/dev/null; do
        show_progress "$label$("$detail" $(( SECONDS - began )))"
        sleep 0.2
    done
    local status=0
    wait "$job" || status=$?
    kill -KILL -- "-$job" 2>/dev/null || true   # what it may have left
    job=
    return "$status"
}

elapsed() { printf ', %s s' "$1"; }     # SECONDS
compiled() {    # SECONDS
    local now count all=$OBJECTS filled
    [[ -z $for_commands ]] || all=$(( OBJECTS + MORE_OBJECTS ))
    now=$(grep -cE '^  (CC|AS) ' "$log") || true
    count=$(( compiled_before + now < all ? compiled_before + now : all ))
    filled=$(( BAR * count / all ))
    printf ' [%s%s] %s of about %s objects, %s s' "${FULL_BAR:0:filled}" "${EMPTY_BAR:filled}" "$count" "$all" "$1"
    # The first few are far smaller than the rest.
    (( now * 20 < all || count == all )) || printf ', about %s s left' $(( $1 * (all - count) / now ))
}
downloaded() {  # SECONDS
    local bytes
    bytes=$(find "$pristine/download" -type f -printf '%s\n' 2>/dev/null | sort -n | tail -n 1)
    printf ' %s MB, %s s' "$(( ${bytes:-0} / 1000000 ))${download_mb:+ of $download_mb}" "$1"
}

