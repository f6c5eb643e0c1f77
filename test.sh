#!/usr/bin/env bash
# The test command: installs what the tests need, then runs them all.
#   ./test.sh                    everything
#   ./test.sh -k verdict         flags go to pytest
#   ./test.sh --with-pq          also what needs Debian 13's programs: fetches them (install.sh)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# Of Debian 12. Other versions, with other libraries' types, find other things.
readonly MYPY=1.0

with_pq=()
[[ ${1-} != --with-pq ]] || { with_pq=(--with-pq); shift; }
./install.sh --test "${with_pq[@]}"
./install.sh --with-mininet

echo "== shellcheck" >&2
shellcheck ./*.sh benchmarks/outside/*.sh engines/guest/*.sh engines/command/{sudo,cgroups,controller,modprobe,telnet,ovs-vsctl} docs/completion.bash .ci/run
echo "== pyflakes" >&2
/usr/bin/python3 -m pyflakes ./*.py benchmarks commands drawing engines hosts lab paper probe tests
echo "== mypy" >&2
version=$(/usr/bin/python3 -m mypy --version)
if [[ $version == "mypy $MYPY."* ]]; then
    /usr/bin/python3 -m mypy
else
    echo "left out: the project's types are held to mypy $MYPY, this is $version" >&2
fi
echo "== pytest" >&2
exec /usr/bin/python3 -m pytest "$@"
