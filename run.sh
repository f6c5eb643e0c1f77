#!/bin/bash
# The driver: read the flags, install what is missing, measure, draw. Flags go to experiment.py (--help).
[ -n "${BASH_VERSION-}" ] || exec /bin/bash "$0" "$@"  # as sh run.sh
set -euo pipefail
trap 'exit 130' INT     # whatever it was at has said so
[[ -n $(type -P env) ]] || export PATH=${PATH:+$PATH:}/usr/sbin:/usr/bin:/sbin:/bin
# Whoever calls it stays in their folder: paths among the flags begin there.
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)

# Mininet lives with the system's Python; another one may come first on the PATH. Ctrl-C waits
# until experiment.py is read: an interpreter that it interrupts while it starts says so at length.
python=/usr/bin/python3
start=(env --block-signal=INT "$python" "$here/experiment.py")
# After sudo, the caches of Python and matplotlib would stay behind in the user's folders as root's.
[[ -z ${SUDO_UID-} ]] || export PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=~root/.cache/matplotlib

# These need nothing that would have to be installed first, but Python itself, which a small Debian lacks.
needed=() before=''
for flag in "$@"; do
    case $flag in
        --) needed=(--for-commands); break ;;   # what stands behind it is somebody's command
        -h | --help | --version | --list | --new | --new=* | --check | --check=* | --probe | --probe=* | --dry-run)
            [[ -x $python ]] || {
                echo "run.sh: ${flag%%=*} needs $python, and there is none; ./install.sh installs it" >&2
                exit 4
            }
            exec "${start[@]}" "$@" ;;
    esac
    case "$before $flag" in
        "--engine host" | *" --engine=host") needed=(--no-kernel) ;;
    esac
    before=$flag
done

# If this script is killed, install.sh gets a TERM, and ends once apt has ended.
install() { env --default-signal=TERM setpriv --pdeathsig TERM "$here/install.sh" "$@"; }

# Wrong flags are reported before anything is installed; experiment.py reads them anyway.
status=0
"$here/install.sh" --check "${needed[@]}" 2>/dev/null || status=$?
if (( status == 4 )); then  # this machine cannot: it says why
    "$here/install.sh" "${needed[@]}"
elif (( status != 0 )); then
    [[ -x $python ]] || install --only-python
    "${start[@]}" --only-read-flags "$@" || exit
    install "${needed[@]}"
fi
exec "${start[@]}" "$@"
