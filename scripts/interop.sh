#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests/interop: servers, backends and clients of other projects, downloaded into build/interop and build/nvidia, with Kelp's library.
# Exits 77 and prints the reason if they cannot be downloaded.
#   scripts/interop.sh [test_NAME.py…]     all without a name; needs build/release
set -uo pipefail
cd "$(dirname "$0")/.."
venv=build/interop/venv
python=$venv/bin/python
if ! "$python" -c 'import numpy, tritonclient.grpc, tritonclient.http, opentelemetry.proto' 2>/dev/null; then
    python3 -m venv "$venv" &&
        "$python" -m pip install -q --disable-pip-version-check --no-input 'numpy==1.26.*' 'tritonclient[grpc,http]' opentelemetry-proto || {
        echo "skipped: pip cannot bring numpy 1.26, tritonclient and opentelemetry-proto"
        exit 77
    }
fi
KELP_VENV=$venv scripts/nvidia.sh || {
    echo "skipped: pip cannot bring the wheel nvidia-pytriton 0.7.0"
    exit 77
}
given=$#
[ $# -gt 0 ] || set -- tests/interop/test_*.py
failed=0 skipped=0 passed=0
for test in "$@"; do
    echo "== $test"
    "$python" "$test"
    case $? in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
done
if [ "$given" -eq 0 ]; then
    echo "== tests/e2e/test_backends.py, our example backends in NVIDIA's executable with NVIDIA's library"
    if KELP_NVIDIA_WHEEL=$PWD/build/nvidia "$python" tests/e2e/test_backends.py --kelp build/release/bin/kelp; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
fi
echo "interop: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
