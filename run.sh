#!/usr/bin/env bash
# The driver: install what is missing, measure, draw. Flags go to experiment.py (--help).
set -euo pipefail
# Whoever calls it stays in their folder: paths among the flags begin there.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Mininet lives with the system's Python; another one may come first on the PATH. Ctrl-C waits
# until experiment.py is read: an interpreter that it interrupts while it starts says so at length.
python=/usr/bin/python3
start=(env --block-signal=INT "$python" "$here/experiment.py")
# After sudo, Python's cache would stay behind in the user's folder as root's.
[[ -z ${SUDO_UID-} ]] || export PYTHONDONTWRITEBYTECODE=1

# These need nothing that would have to be installed first, but Python itself, which a small Debian lacks.
for flag in "$@"; do
    case $flag in
        -h | --help | --list | --probe | --probe=*)
            [[ -x $python ]] || {
                echo "run.sh: ${flag%%=*} needs $python, and there is none; ./install.sh installs it" >&2
                exit 4
            }
            exec "${start[@]}" "$@" ;;
    esac
done

"$here/install.sh"
exec "${start[@]}" "$@"
