#!/usr/bin/env bash
# The driver: install what is missing, measure, draw. Flags go to experiment.py (--help).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# These need nothing that would have to be installed first.
for flag in "$@"; do
    case $flag in
        -h | --help | --list) exec /usr/bin/python3 experiment.py "$@" ;;
    esac
done

./install.sh
# After sudo, Python's cache would stay behind in the user's folder as root's.
[[ -z ${SUDO_UID-} ]] || export PYTHONDONTWRITEBYTECODE=1
# Mininet lives with the system's Python; another one may come first on the PATH.
exec /usr/bin/python3 experiment.py "$@"
