#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads NVIDIA's TensorRT-RTX with pip into build/tensorrt (its licence does not allow bundling), and runs the tests that need it,
# on a machine with or without a GPU. Exits 77 and prints the reason if it cannot be downloaded.
#   scripts/tensorrt.sh [BUILD]     BUILD: build/release unless given
set -uo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build/release}")
home=build/tensorrt
mkdir -p "$home/run"
versions="1.7.1.116 1.6.1.120 1.5.0.114"
unknown="1.4.0.76" # of another layout: it must be refused
enterprise="11.4.0.106"  # its runtime; the whole of it is not on the usual package index

# bring PACKAGE VERSION FILE [pip's options…]: into build/tensorrt/PACKAGE-VERSION, unless FILE is there already.
bring() {
    local into=$home/$1-$2
    [ -e "$into/$3" ] && return 0
    [ -x "$home/venv/bin/pip" ] || python3 -m venv "$home/venv" || return 1
    "$home/venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --no-deps \
        --target "$into" "${@:4}" "$1==$2" && [ -e "$into/$3" ] && return 0
    echo "skipped: pip cannot bring $1 $2"
    skipped=$((skipped + 1))
    return 1
}

# count COMMAND…: whether it succeeded.
count() {
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
}

with() {
    (cd "$home/run" && env -u KELP_TENSORRT_LIBRARY -u KELP_TENSORRT_PATH -u KELP_TENSORRT_TABLE "$@" \
        "$build/tests/providers/test_tensorrt_ahead")
}

# The provider through the public interface.
provider() {
    (cd "$home/run" && env -u KELP_TENSORRT_LIBRARY -u KELP_TENSORRT_TABLE "KELP_TENSORRT_PATH=$1" \
        "$build/tests/providers/test_providers_tensorrt_provider")
}

# The command line: a plan of a model, and what `kelp doctor` reports about the library.
command_line() {
    local env=(env -u KELP_TENSORRT_LIBRARY -u KELP_TENSORRT_TABLE "KELP_TENSORRT_PATH=$1") plan=$home/run/mlp.plan
    "${env[@]}" "$build/bin/kelp" build tests/data/models/mlp_f32.onnx --provider tensorrt --compute-capability 86,89 \
        --min x:1x6 --opt x:8x6 --max x:64x6 -o "$plan" && [ "$(head -c 4 "$plan")" = vtrt ] || return 1
    "${env[@]}" "$build/bin/kelp" doctor | tee "$home/run/doctor" | sed -n '/tensorrt/,/^$/p'
    grep -q "library    TensorRT-RTX $newest" "$home/run/doctor" && grep -q "driver " "$home/run/doctor"
}

refused() {
    local said
    said=$(with "$1")
    echo "$said"
    [[ $said == *"$2"* ]]
}

passed=0 failed=0 skipped=0
for version in $versions; do
    bring tensorrt-rtx-cu12-libs "$version" tensorrt_rtx_libs/libtensorrt_rtx.so.1 || continue
    echo "== TensorRT-RTX $version"
    count with "KELP_TENSORRT_PATH=$PWD/$home/tensorrt-rtx-cu12-libs-$version"
done
if bring tensorrt-rtx-cu12-libs $unknown tensorrt_rtx_libs/libtensorrt_rtx.so.1; then
    echo "== TensorRT-RTX $unknown, which is rejected"
    count refused "KELP_TENSORRT_PATH=$PWD/$home/tensorrt-rtx-cu12-libs-$unknown" \
        "unsupported version: TensorRT-RTX 1.4.0, expected"
fi
library=tensorrt_lean_libs/libnvinfer_lean.so.11
if bring tensorrt-lean-cu12-libs $enterprise $library; then
    echo "== TensorRT $enterprise, the runtime"
    count with "KELP_TENSORRT_LIBRARY=$PWD/$home/tensorrt-lean-cu12-libs-$enterprise/$library"
fi
# An emulator on a busy machine may be too slow to wait for.
arm64_seconds=${KELP_ARM64_SECONDS:-600}
# The same tables serve arm64: a short walk through NVIDIA's library for it, under qemu-user.
arm64() {
    local program=$home/run/smoke-arm64
    aarch64-linux-gnu-gcc -std=c17 -O2 -D_GNU_SOURCE -Iinclude -Isrc -o "$program" tests/providers/tensorrt/smoke.c \
        src/cuda/cuda.c src/tensorrt/{call,callbacks,library,log,tables/methods}.c src/tensor/*.c src/base/*.c src/base/*/*.c -lm -lpthread -ldl &&
        env -u KELP_TENSORRT_LIBRARY -u KELP_TENSORRT_TABLE KELP_TENSORRT_PATH="$1" \
            timeout "$arm64_seconds" qemu-aarch64 -L /usr/aarch64-linux-gnu "$program" tests/data/models/mlp_f32.onnx
}
newest=${versions%% *}
if [ -e "$home/tensorrt-rtx-cu12-libs-$newest" ]; then
    echo "== the provider on TensorRT-RTX $newest"
    count provider "$PWD/$home/tensorrt-rtx-cu12-libs-$newest"
    count command_line "$PWD/$home/tensorrt-rtx-cu12-libs-$newest"
fi
if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
    echo "skipped: arm64 needs aarch64-linux-gnu-gcc and qemu-aarch64"
    skipped=$((skipped + 1))
elif bring tensorrt-rtx-cu13-libs "$newest" tensorrt_rtx_libs/libtensorrt_rtx.so.1 \
    --platform manylinux_2_35_aarch64 --only-binary=:all:; then
    echo "== TensorRT-RTX $newest on arm64"
    code=0
    arm64 "$PWD/$home/tensorrt-rtx-cu13-libs-$newest" || code=$?
    case $code in
    0) passed=$((passed + 1)) ;;
    124)
        echo "skipped: the walk on arm64 did not end in $arm64_seconds s under qemu (KELP_ARM64_SECONDS)"
        skipped=$((skipped + 1))
        ;;
    *) failed=$((failed + 1)) ;;
    esac
fi
echo "tensorrt: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
