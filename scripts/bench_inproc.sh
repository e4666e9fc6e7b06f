#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cost of a request in process, through the C API, with Kelp's library and NVIDIA's (2.51.0), interleaved in one run: see bench/inproc.c.
# Without NVIDIA's library, which scripts/nvidia.sh downloads, only Kelp's is measured.
#   scripts/bench_inproc.sh [--check] [--on-instance] [REQUESTS]     needs build/release
# --check: fails if Kelp allocates memory, takes more than a third of NVIDIA's CPU time, more than 1 µs for a batched request, or 5 µs more for
# a step of an ensemble than for a direct call. Exits 77 without NVIDIA's library.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=() check=
if [ "${1:-}" = --check ]; then
    check=1
    shift
fi
if [ "${1:-}" = --on-instance ]; then
    mode=("$1")
    shift
fi
ninja -C build/release --quiet bench_inproc >/dev/null
libraries=("$PWD/build/release/src/server/libtritonserver.so")
theirs=$PWD/build/nvidia/nvidia_pytriton.libs
if scripts/nvidia.sh; then
    # Backends need a libtritonserver.so: theirs under that name, for the process in which it is loaded.
    links=$(mktemp -d)
    trap 'rm -rf "$links"' EXIT
    ln -s "$theirs"/libtritonserver-*.so "$links/libtritonserver.so"
    libraries+=("$theirs"/libtritonserver-*.so)
    export LD_LIBRARY_PATH=$links:$theirs
fi
table=$(build/release/bench/bench_inproc ${mode[@]+"${mode[@]}"} build/release/backends "${1:-50000}" "${libraries[@]}")
echo "$table"
[ -n "$check" ] || exit 0
[ ${#libraries[@]} -eq 2 ] || {
    echo "skipped: pip cannot bring the wheel nvidia-pytriton 0.7.0"
    exit 77
}
awk -v on_instance=${#mode[@]} '/ ns CPU / {
    for (i = 1; i <= NF; i++) {
        if ($i == "ns" && $(i + 1) == "CPU") cpu = $(i - 1)
        if ($i == "allocations") allocations = $(i - 1)
    }
    way = $1 == "one" ? "one by one" : $1
    if (way in ours) {
        printf "%s: %.2f of NVIDIA'"'"'s CPU time\n", way, ours[way] / cpu
        bad += ours[way] * 3 > cpu
        pairs++
    } else {
        ours[way] = cpu
        bad += allocations > 0
        if (way == "batched" && !on_instance) bad += cpu > 1000
    }
}
/ a step$/ {
    if (!steps++) bad += $1 > 5000
}
END { exit bad > 0 || pairs != 4 }' <<<"$table" || {
    echo "FAILED: expected no allocation, at most a third of the CPU time, at most 1000 ns for a batched request, and at most 5000 ns a step"
    exit 1
}
