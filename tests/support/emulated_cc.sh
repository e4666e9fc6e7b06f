#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A compiler for another architecture that can be used like the native one: a linked program is replaced by a script that passes the
# program to the emulator.
#   emulated_cc.sh EMULATOR COMPILER arguments…
set -euo pipefail
emulator=$1
compiler=$2
shift 2
"$compiler" "$@"
out=a.out
program=yes
before=
for word in "$@"; do
    [ "$before" != -o ] || out=$word
    case "$word" in -c | -S | -E | -shared | -fsyntax-only) program= ;; esac
    before=$word
done
[ -n "$program" ] || exit 0
mv "$out" "$out.emulated"
printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$emulator" "$(realpath "$out.emulated")" >"$out"
chmod +x "$out"
