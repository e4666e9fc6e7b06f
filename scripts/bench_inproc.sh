#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a request costs in process, from C, on our library and on NVIDIA's (2.51.0), interleaved in one run: see bench/inproc.c.
# Without NVIDIA's, which scripts/nvidia.sh fetches, ours alone.
#   scripts/bench_inproc.sh [--on-instance] [REQUESTS]     needs build/release
set -euo pipefail
cd "$(dirname "$0")/.."
mode=()
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
build/release/bench/bench_inproc ${mode[@]+"${mode[@]}"} build/release/backends "${1:-50000}" "${libraries[@]}"
