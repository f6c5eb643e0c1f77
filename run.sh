#!/bin/bash
# The driver: read the flags, install what is missing, measure, draw. Flags go to experiment.py (--help).
[ -n "${BASH_VERSION-}" ] || exec /bin/bash "$0" "$@"  # as sh run.sh
set -euo pipefail
trap 'exit 130' INT     # the program that was interrupted has printed a line
[[ -n $(type -P env) ]] || export PATH=${PATH:+$PATH:}/usr/sbin:/usr/bin:/sbin:/bin
# Whoever calls it stays in their folder: paths among the flags begin there.
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)

# Mininet needs the system's Python; another one may come first in PATH. Ctrl-C is blocked until
# experiment.py is read: Python prints a long traceback if it is interrupted while it starts.
python=/usr/bin/python3
start=(env --block-signal=INT "$python" "$here/experiment.py")
# After sudo, caches of Python and matplotlib in the user's folders would belong to root.
[[ -z ${SUDO_UID-} ]] || export PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=~root/.cache/matplotlib

# These flags need nothing to be installed first, except Python, which a minimal Debian lacks.
needed=() before='' kernels=''
for flag in "$@"; do
    case $flag in
        --) needed=(--for-commands); break ;;   # a command of the user's follows, with its own flags
        -h | --help | --version | --list | --new | --new=* | --check | --check=* | --probe | --probe=* | --dry-run)
            [[ -x $python ]] || {
                echo "run.sh: ${flag%%=*} needs $python, and there is none; ./install.sh installs it" >&2
                exit 4
            }
            exec "${start[@]}" "$@" ;;
    esac
    case "$before $flag" in
        "--engine host" | *" --engine=host") needed=(--no-kernel) ;;
        "--kernel "*) kernels=$flag ;;
        *" --kernel="*) kernels=${flag#*=} ;;
    esac
    before=$flag
done

# A command on kernels under names needs no other one; experiment.py says how they are built.
[[ ${needed[*]} != --for-commands || -z $kernels || ,$kernels, == *,default,* ]] || needed=(--no-kernel)

# If this script is killed, install.sh gets SIGTERM, and ends once apt has ended.
install() { env --default-signal=TERM setpriv --pdeathsig TERM "$here/install.sh" "$@"; }

# Wrong flags are reported before anything is installed: experiment.py reads them first.
status=0
"$here/install.sh" --check "${needed[@]}" 2>/dev/null || status=$?
if (( status == 4 )); then  # this machine cannot run it; install.sh prints why
    "$here/install.sh" "${needed[@]}"
elif (( status != 0 )); then
    [[ -x $python ]] || install --only-python
    "${start[@]}" --only-read-flags "$@" || exit
    (( $# > 0 )) || echo "run.sh: once that is installed, the grid's figures are there within seconds, and those of" \
        "the paper's users some minutes later" >&2
    install "${needed[@]}"
fi
exec "${start[@]}" "$@"
