#!/usr/bin/env bash
# The test command: installs what the tests need, then runs them all.
#   ./test.sh                    everything
#   ./test.sh -k verdict         flags go to pytest
#   ./test.sh --with-pq          also tests that need Debian 13's programs, which it fetches (install.sh)
#   ./test.sh --try-pq           the same, and where they cannot be had their tests are skipped
[ -n "${BASH_VERSION-}" ] || exec /bin/bash "$0" "$@"  # as sh test.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# Debian 12's version. Other versions, with the types of other libraries, find other errors.
readonly MYPY=1.0

if [[ ${1-} == --help || ${1-} == -h ]]; then
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]##*/}"
    exit
fi
with_pq=() try_pq=''
case ${1-} in
--with-pq) with_pq=(--with-pq); shift ;;
--try-pq) with_pq=(--with-pq) try_pq=yes; shift ;;
esac

# Tests wait for guests and servers, so twice as many run at once as there are processors. Starting
# workers does not pay off for a few tests, since each worker imports the project.
workers=$(( 2 * $(nproc) ))
side_by_side=(-n $(( workers < 8 ? workers : 8 )))
for word; do
    case $word in
    *.py | *.py::* | -k* | -n* | -s | --pdb | --lf | --collect-only | no:xdist) side_by_side=() ;;
    esac
done

declare -A checks=()     # processes by name; their output is shown after the tests
said=$(mktemp -d)
# shellcheck disable=SC2317  # a trap calls this
end() {
    [[ -z ${checks[*]} ]] || kill "${checks[@]}" 2>/dev/null || true
    rm -rf "$said"
}
trap end EXIT
trap 'exit 130' INT

check() {   # NAME COMMAND...
    "${@:2}" >"$said/$1" 2>&1 &
    checks[$1]=$!
}

# Wait for a check. Its status counts if nothing failed before it.
finish() {  # NAME
    local failed=0
    wait "${checks[$1]}" || failed=$?
    unset "checks[$1]"
    [[ $1 != install ]] || (( ! failed )) || ! is_enough || failed=0
    (( status )) || status=$failed
    return "$failed"
}

run_pytest() {
    /usr/bin/python3 -m pytest "${side_by_side[@]}" "$@" || (( status )) || status=$?
}

# Whether only Debian 13's programs could not be had, and need not be.
is_enough() { [[ -n $try_pq ]] && ./install.sh --test --check 2>/dev/null; }

# Kernels take minutes. Where all tests run, those that start no guest begin while kernels are built.
live=''
if (( $# == 0 )) && ! ./install.sh --test "${with_pq[@]}" --check 2>/dev/null; then
    ./install.sh --test --no-kernel
    echo "== what guests need is built beside the tests that start none" >&2
    check install ./install.sh --test "${with_pq[@]}"
    live=tests/live
    set -- tests/unit tests/golden tests/programs
else
    ./install.sh --test "${with_pq[@]}" || { status=$?; is_enough || exit "$status"; }
fi
check shellcheck shellcheck ./*.sh benchmarks/outside/*.sh vtime/kernel/*.sh vtime/command/{sudo,cgroups,controller,modprobe,telnet,ovs-vsctl} docs/completion.bash .ci/run
# What needs no check again lies next to the kernels, and is keyed by file digests: a new clone checks what changed.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/first-flight
check pyflakes /usr/bin/python3 -m tests.flakes "$cache/pyflakes" ./*.py benchmarks docs firstflight paper tests vtime vtime/command/packetdrill
version=$(/usr/bin/python3 -m mypy --version)
if [[ $version == "mypy $MYPY."* ]]; then
    check mypy /usr/bin/python3 -m mypy --cache-dir "$cache/mypy"
else
    echo "skipped mypy: the project is checked with mypy $MYPY, this is $version" >&2
fi

echo "== pytest" >&2
status=0
run_pytest "$@"
not_built=''
if [[ -n $live ]]; then
    if finish install; then
        echo "== pytest $live" >&2
        run_pytest "$live"
    else
        not_built=yes
    fi
fi
for name in "${!checks[@]}"; do
    word=''
    finish "$name" || word=': failed'
    echo "== $name$word" >&2
    cat "$said/$name"
done
if [[ -n $not_built ]]; then
    echo "== install: failed" >&2
    tail -n 2 "$said/install" >&2   # what failed, and what to do; before it stands its progress
fi
exit "$status"
