# Shared by the scripts in Tools. Works with the bash 3.2 that macOS has.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\033[1m' red=$'\033[31m' green=$'\033[32m' plain=$'\033[0m'
else
  bold='' red='' green='' plain=''
fi

say() { printf '%s\n' "$*"; }
headline() { printf '%s%s%s\n' "$bold" "$*" "$plain"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
  warn "${red}${0##*/}:${plain} $*"
  exit 1
}

is_macos() { [ "$(uname -s)" = Darwin ]; }

# Runs a command as root; fails where neither root nor sudo is to be had.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    warn "This needs root, and there is no sudo. As root: $*"
    return 1
  fi
}

need_swift() {
  command -v swift >/dev/null 2>&1 \
    || die "swift is not installed; get Swift 6.2 or later from https://www.swift.org/install and start this again."
}
