#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the examples of the builder, of operators and of providers against an installed Kelp with pkg-config, with the commands in
# their first comment, runs them and compares what they print.
#   test_examples.sh PREFIX EXAMPLES
set -euo pipefail
prefix=$(cd "$1" && pwd)
examples=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { echo "examples: $*"; }
fail() { echo "examples: FAILED: $*" >&2; exit 1; }
export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib

# Runs the commands of an example in a copy of its directory; its output is in $work/out.
follow() {
    local directory=$1 file=$2
    [ -d "$work/$directory" ] || cp -r "$examples/$directory" "$work/$directory"
    sed -n 's/^ \*     //p' "$examples/$directory/$file" | sed 's/^cc -std=c17/& -Wall -Wextra -Werror/' >"$work/commands"
    [ -s "$work/commands" ] || fail "$file has no commands"
    (cd "$work/$directory" && bash -euo pipefail "$work/commands") >"$work/out" 2>&1 || { cat "$work/out"; fail "$file"; }
}
# expect FILE: the output equals standard input.
expect() {
    diff - "$work/out" || fail "$1 prints something else"
}

say "builder"
follow builder distance.c
head -3 "$work/out" >"$work/first"
grep -q "provider cpu: .* layers" "$work/out" || fail "kelp inspect does not read the plan"
mv "$work/first" "$work/out"
expect distance.c <<'END'
|5 - 3| = 2
|-1 - 4| = 5
|2 - 2| = 0
END

say "opset"
follow opset running_mean.c
expect running_mean.c <<'END'
y  float32 [4]
 [  1 0.5 1.5   4]
END
cd "$work/opset"
if kelp run running_mean.onnx --input x=1 >"$work/out" 2>&1; then fail "the model runs without the plug-in"; fi
grep -q "com.example" "$work/out" || { cat "$work/out"; fail "the failure does not name the operator"; }

say "compute"
follow compute polynomial.c
follow compute host.c
expect host.c <<'END'
single: p(1) = 3
batch:  p(1) = 3
batch:  input 'x' has the wrong type: expected float32, found int32
batch:  p(3) = 19
stream: p(1) = 3
stream: p(2) = 9
stream: p(3) = 19
END
cd "$work/compute"
for wrong in "1 two" "" "$(seq -s' ' 17)"; do
    if ./host ./libpolynomial.so "$wrong" >"$work/out" 2>&1; then fail "the model '$wrong' is loaded"; fi
    grep -qE "expected a number|no coefficients|more than 16" "$work/out" || { cat "$work/out"; fail "model '$wrong'"; }
done
say "passed"
