#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Check docs/notify.pml, the model of the wake-up protocol, in all its variants; TAP on stdout.
set -eu

usage() {
    cat <<END
usage: notify-model.sh MODEL

Verify the Promela MODEL with spin, exhaustively, in each variant; variants called BROKEN must be found wrong.
END
}

case "${1:---help}" in
--help | -h)
    usage
    exit 0
    ;;
esac

model=$(realpath "$1")
cases="edge: level:-DLEVEL edge-spurious:-DSPURIOUS level-spurious:-DLEVEL,-DSPURIOUS
broken-check-is-found:-DBROKEN_CHECK broken-close-is-found:-DBROKEN_CLOSE,-DSPURIOUS"

if ! command -v spin >/dev/null || ! command -v gcc >/dev/null; then
    echo "1..0 # SKIP spin or gcc is not installed"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
# shellcheck disable=SC2086 # a list of words
set -- $cases
echo "1..$#"
n=0
for c in "$@"; do
    n=$((n + 1))
    name=${c%%:*}
    options=$(echo "${c#*:}" | tr ',' ' ')
    # shellcheck disable=SC2086
    spin -a $options "$model" >spin.out 2>&1 && gcc -O1 -w -DSAFETY -o pan pan.c 2>>spin.out
    ./pan -m100000 >pan.out 2>&1 || true
    want="errors: 0"
    case $name in
    broken*) want="errors: 1" ;;
    esac
    # A search that was cut short proves nothing, unless it found what it was to find.
    if grep -q "$want" pan.out && { [ "$want" = "errors: 1" ] || ! grep -q "not completed\|too small" pan.out; }; then
        echo "ok $n /loop/notify-model/$name"
    else
        echo "not ok $n /loop/notify-model/$name"
        sed 's/^/# /' spin.out pan.out
    fi
done
