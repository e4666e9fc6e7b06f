#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Brings NVIDIA's TensorRT-RTX by pip into build/tensorrt (its wheels are NVIDIA's: they are never committed or bundled), and runs
# the tests that need it, on a machine with or without a GPU. Exits 77, with the reason in words, when it cannot be brought.
#   scripts/tensorrt.sh [BUILD]     BUILD: build/release unless given
set -uo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build/release}")
home=build/tensorrt
versions="1.7.1.116 1.6.1.120 1.5.0.114"
unknown="1.4.0.76" # of another layout: it must be refused
bring() {
    local version=$1 into=$home/$1
    [ -e "$into/tensorrt_rtx_libs/libtensorrt_rtx.so.1" ] && return 0
    mkdir -p "$home"
    [ -x "$home/venv/bin/pip" ] || python3 -m venv "$home/venv" || return 1
    "$home/venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --no-deps \
        --target "$into" "tensorrt-rtx-cu12-libs==$version"
}
passed=0 failed=0 skipped=0
for version in $versions; do
    if ! bring "$version"; then
        echo "skipped: pip cannot bring tensorrt-rtx-cu12-libs $version"
        skipped=$((skipped + 1))
        continue
    fi
    mkdir -p "$home/work"
    echo "== TensorRT-RTX $version"
    if (cd "$home/work" && env -u KELP_TENSORRT_LIBRARY -u KELP_TENSORRT_TABLE \
        KELP_TENSORRT_PATH="$PWD/../$version" "$build/tests/providers/test_tensorrt_ahead"); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
if bring "$unknown"; then
    echo "== TensorRT-RTX $unknown, which is refused"
    said=$(env -u KELP_TENSORRT_LIBRARY -u KELP_TENSORRT_TABLE KELP_TENSORRT_PATH="$home/$unknown" \
        "$build/tests/providers/test_tensorrt_ahead")
    echo "$said"
    if [[ $said == *"it is TensorRT-RTX 1.4.0, and Kelp knows how to call"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
else
    echo "skipped: pip cannot bring tensorrt-rtx-cu12-libs $unknown"
    skipped=$((skipped + 1))
fi
echo "tensorrt: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
