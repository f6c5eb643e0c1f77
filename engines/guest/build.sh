#!/usr/bin/env bash
# Builds the guest kernel (draft: only --path works yet).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
RECIPE=1
key=$(cd "$here" && shopt -s nullglob && { echo "recipe $RECIPE"; sha256sum kernel.config tcp_*.c; } | sha256sum)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/first-flight/kernel/${key:0:16}
echo "$dir/linux"
[[ -x $dir/linux ]]
