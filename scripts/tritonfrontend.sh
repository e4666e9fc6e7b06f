#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the Python wheels tritonserver and tritonfrontend 2.73.0 (NVIDIA's in-process API, and NVIDIA's HTTP, gRPC and metrics
# front-ends) unmodified on our libtritonserver.so: tests/interop/wheels. Exits 77 and prints the reason if it cannot.
# The wheels need CPython 3.12 (of PATH or pyenv) and glibc 2.39: where the system's is older, scripts/newer_glibc.sh unpacks one.
#   scripts/tritonfrontend.sh [test_NAME.py [ARGUMENT…]]     all tests without a name; needs build/release
#   scripts/tritonfrontend.sh --nvidia CORE SERVER           NVIDIA's own tests of the packages, unmodified, in namespaces of their own:
#                                                            CORE and SERVER are copies of NVIDIA's repositories of that name
# KELP_BUILD: the build to use (build/release).
set -uo pipefail
cd "$(dirname "$0")/.."
KELP_BUILD=$(realpath "${KELP_BUILD:-build/release}")
export KELP_BUILD
venv=$PWD/build/tritonfrontend/venv

skip() {
    echo "skipped: $1"
    exit 77
}

find_python() {
    local candidate
    for candidate in "$(command -v python3.12)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3; do
        if [ -x "$candidate" ] && "$candidate" -c 'import ensurepip, sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# pip checks the tag of a wheel against the system's glibc, so that the wheels are downloaded for a platform and unpacked.
bring_packages() {
    local python=$1 wheel
    rm -rf "$venv" && "$python" -m venv "$venv" || return 1
    local pip=("$venv/bin/python" -m pip -q --disable-pip-version-check --no-input)
    "${pip[@]}" install 'numpy==1.26.*' pydantic==2.10.6 'tritonclient[grpc,http]==2.73.0' || return 1
    "${pip[@]}" download --no-deps --only-binary :all: --platform manylinux_2_39_x86_64 --dest "$venv/wheels" \
        tritonserver==2.73.0 tritonfrontend==2.73.0 || return 1
    for wheel in "$venv"/wheels/*.whl; do
        "$python" -m zipfile -e "$wheel" "$venv/lib/python3.12/site-packages" || return 1
    done
    touch "$venv/complete"
}

[ "$(uname -m)" = x86_64 ] || skip "the wheels are run on x86-64 only"
if [ ! -e "$venv/complete" ]; then
    python=$(find_python) || skip "CPython 3.12 is not installed"
    bring_packages "$python" || skip "pip cannot bring tritonserver and tritonfrontend 2.73.0"
fi
libraries=$KELP_BUILD/src/server
python_libraries=$(dirname "$(dirname "$(realpath "$venv/bin/python")")")/lib
nvidia=/opt/tritonserver/lib:$PWD/build/nvidia/nvidia_pytriton.libs # of the python backend, which --nvidia uses
export LD_LIBRARY_PATH="$nvidia:$python_libraries"                  # of its processes
if printf '2.39\n%s\n' "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" | sort -CV; then
    run=(env "LD_LIBRARY_PATH=$libraries:$LD_LIBRARY_PATH" "$venv/bin/python")
else
    newer=$(scripts/newer_glibc.sh) || skip "this system's C library is older than 2.39, and $newer"
    run=("$newer/ld-linux-x86-64.so.2" --library-path
        "$newer:$libraries:$LD_LIBRARY_PATH:/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu" "$venv/bin/python")
fi

# NVIDIA's tests have models for the python backend, in /opt/tritonserver, and use the default ports.
nvidia_tests() {
    local wheel=$PWD/build/nvidia copy
    "$venv/bin/python" -c 'import pytest, pytest_asyncio, requests' 2>/dev/null ||
        "$venv/bin/python" -m pip -q --disable-pip-version-check --no-input install pytest pytest-asyncio requests ||
        skip "pip cannot bring pytest, pytest-asyncio and requests"
    KELP_VENV= scripts/nvidia.sh || skip "pip cannot bring the wheel nvidia-pytriton 0.7.0"
    copy=$(mktemp -d)
    cp -r "$1/python/test" "$copy/core" && cp -r "$2/qa/L0_python_api" "$copy/server" || exit 1
    # shellcheck disable=SC2016
    unshare -mn bash -c '
        copy=$1 wheel=$2 libraries=$3 site=$4 tests=0
        shift 4
        ip link set lo up
        mount -t tmpfs none /opt
        mkdir -p /opt/tritonserver/backends /opt/tritonserver/lib
        cp -r "$wheel/pytriton/tritonserver/backends/python" /opt/tritonserver/backends/
        cp "$wheel/pytriton/tritonserver/python_backend_stubs/3.12/triton_python_backend_stub" "$site"/numpy* -t /opt/tritonserver/backends/python -r
        chmod +x /opt/tritonserver/backends/python/triton_python_backend_stub
        for name in "$wheel"/nvidia_pytriton.libs/libtritonserver-*.so; do
            ln -s "$libraries/libtritonserver.so" "/opt/tritonserver/lib/${name##*/}"
        done
        cd "$copy/core" && timeout 1800 "$@" -m pytest -q test_binding.py test_api.py || tests=1
        cd "$copy/server" && timeout 1800 "$@" -m pytest -q --runxfail test_kserve.py || tests=1
        exit $tests' - "$copy" "$wheel" "$libraries" "$venv/lib/python3.12/site-packages" "${run[@]}"
}

if [ "${1:-}" = --nvidia ]; then
    [ $# -eq 3 ] || { echo "usage: scripts/tritonfrontend.sh --nvidia CORE SERVER" >&2; exit 2; }
    nvidia_tests "$2" "$3"
    exit
fi
if [ $# -gt 0 ]; then
    name=$1
    shift
    exec "${run[@]}" "tests/interop/wheels/$name" "$@"
fi
failed=0
for test in tests/interop/wheels/test_*.py; do
    echo "== $test"
    timeout 600 "${run[@]}" "$test" || failed=$((failed + 1))
done
[ $failed -eq 0 ]
