#!/usr/bin/env bash
# The test command: installs what the tests need, then runs them all.
#   ./test.sh                    everything
#   ./test.sh -k verdict         flags go to pytest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

./install.sh --test

echo "== shellcheck" >&2
shellcheck ./*.sh benchmarks/*.sh engines/guest/*.sh docs/completion.bash .ci/run
echo "== pyflakes" >&2
/usr/bin/python3 -m pyflakes ./*.py drawing engines hosts lab tests benchmarks
echo "== mypy" >&2
/usr/bin/python3 -m mypy
echo "== pytest" >&2
exec /usr/bin/python3 -m pytest "$@"
