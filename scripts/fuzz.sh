#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzer for some seconds from its committed corpus; what it finds is kept in build/fuzz/corpus.
#   scripts/fuzz.sh [SECONDS] [FUZZER…]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}
shift || true
scripts/build.sh fuzz
failed=0
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for program in $(find build/fuzz -type f -perm -u+x -name 'fuzz_*' | sort); do
        names+=("$(basename "$program" | sed 's/^fuzz_//')")
    done
fi
for name in "${names[@]}"; do
    program=$(find build/fuzz -type f -perm -u+x -name "fuzz_$name" | head -n 1)
    [ -n "$program" ] || { echo "there is no fuzzer '$name'" >&2; exit 2; }
    found=build/fuzz/corpus/$name
    mkdir -p "$found" "build/fuzz/crashes"
    seeds=()
    [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
    echo "fuzz_$name for $seconds s"
    if ! "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/crashes/$name-" "$found" "${seeds[@]}" \
        >"build/fuzz/$name.log" 2>&1 </dev/null; then
        failed=$((failed + 1))
        tail -n 40 "build/fuzz/$name.log"
        echo "FAILED fuzz_$name: the input is in build/fuzz/crashes"
    else
        grep -E 'number_of_executed_units|new_units_added' "build/fuzz/$name.log" || true
    fi
done
exit $((failed > 0))
