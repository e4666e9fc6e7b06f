#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures (once) and builds a folder under build/.
#   scripts/build.sh NAME [cmake options…]     NAME: release, debug, asan, tsan, clang, fuzz, arm64
# JOBS: how many compilers at once (all CPUs). KELP_VENV: Python of the tests (build/venv).
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1
shift
options=()
targets=()
case "$name" in
# gcc's -Wformat-truncation depends on how long the path of the sources is and on what sanitizers insert.
release) options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS=-Wno-format-truncation") ;;
debug) options=(-DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS=-Wno-format-truncation") ;;
asan) options=(-DCMAKE_BUILD_TYPE=Debug -DKELP_SANITIZE=address,undefined
    "-DCMAKE_C_FLAGS=-O1 -Wno-format-truncation") ;;
tsan) options=(-DCMAKE_BUILD_TYPE=Debug -DKELP_SANITIZE=thread
    "-DCMAKE_C_FLAGS=-O1 -Wno-format-truncation") ;;
clang) options=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang) ;;
fuzz) options=(-DCMAKE_BUILD_TYPE=Debug -DKELP_FUZZ=ON -DKELP_SANITIZE=address,undefined
    -DCMAKE_C_COMPILER=clang "-DCMAKE_C_FLAGS=-O1"
    # clang's sanitizers live in the program, so that shared libraries have symbols left open.
    "-DCMAKE_C_STANDARD_LIBRARIES=-Wl,-z,undefs")
    targets=(fuzzers) ;;
arm64) options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS=-Wno-format-truncation"
    -DCMAKE_TOOLCHAIN_FILE=cmake/arm64.cmake) ;;
*)
    echo "scripts/build.sh: unknown build '$name'" >&2
    exit 2
    ;;
esac
python=${KELP_VENV:-$PWD/build/venv}/bin/python
[ -x "$python" ] && options+=("-DKELP_PYTHON=$python")
mkdir -p build
log=build/$name.log
# The output of CMake is shown only if it fails.
if ! cmake -G Ninja -S . -B "build/$name" "${options[@]}" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
ninja -C "build/$name" -j "${JOBS:-$(nproc)}" --quiet "${targets[@]}"
