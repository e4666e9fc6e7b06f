#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the distributions of the Python package in build/wheel: kelp_runtime-VERSION.tar.gz, and for each architecture a wheel for
# glibc 2.27 or later and every CPython from 3.10 on. docs/packaging.md describes it.
#   scripts/wheel.sh [x86_64|aarch64|sdist…]    this machine's architecture and the sdist by default
# JOBS: how many compilers at once (all CPUs).
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/wheel
venv=$PWD/build/venv-wheel
python=$venv/bin/python
glibc=2.27 # the oldest version with memfd_create

# The Python environment of the build, made again when its requirements change.
if ! cmp -s tools/requirements-wheel.txt "$venv/requirements-wheel.txt"; then
    python3 -m venv "$venv"
    # zig takes 100 MB, which clones of one user download once.
    cache=${XDG_CACHE_HOME:-${HOME:-$out}/.cache}/kelp/wheel
    pip=("$python" -m pip --disable-pip-version-check --no-input -q)
    "${pip[@]}" download --dest "$cache" -r tools/requirements-wheel.txt
    "${pip[@]}" install --no-index --find-links "$cache" -r tools/requirements-wheel.txt
    cp tools/requirements-wheel.txt "$venv/"
fi
zig=$("$python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')
mkdir -p "$out"

# Collects the libraries that are linked statically, and no other header of this machine.
collect() {
    local arch=$1 deps=$2 triplet=$1-linux-gnu header
    rm -rf "$deps"
    mkdir -p "$deps/include" "$deps/lib"
    cp /usr/include/{xxhash,xxh3,zlib}.h "/usr/include/$triplet"/{ffi,ffitarget}.h "$deps/include/"
    for header in "/usr/include/$triplet/zconf.h" /usr/include/zconf.h; do
        [ ! -e "$header" ] || cp "$header" "$deps/include/"
    done
    cp -r /usr/include/nghttp2 "$deps/include/"
    cp "/usr/lib/$triplet/libz.a" "/usr/lib/$triplet/libnghttp2.a" "$deps/lib/"
    cp "/usr/lib/$triplet/libffi_pic.a" "$deps/lib/libffi.a"
    # Debian's pyconfig.h includes one of the architecture; those of 64-bit Linux say the same of what the limited API uses.
    for header in "/usr/include/$(uname -m)-linux-gnu"/python3.*; do
        [ ! -e "$header" ] || { mkdir -p "$deps/include/$triplet" && cp -r "$header" "$deps/include/$triplet/"; }
    done
}

build_wheel() {
    local arch=$1 work=$out/$1 tag=manylinux_${glibc/./_}
    collect "$arch" "$work/deps"
    rm -rf "$work/dist"
    _PYTHON_HOST_PLATFORM=$tag-$arch CMAKE_GENERATOR=Ninja CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} \
        "$python" -m pip wheel . --no-build-isolation --no-deps --no-index --disable-pip-version-check -q -w "$work/dist" \
        "--config-settings=build-dir=$work/build" \
        "--config-settings=cmake.define.CMAKE_TOOLCHAIN_FILE=$PWD/cmake/manylinux.cmake" \
        "--config-settings=cmake.define.KELP_WHEEL_ARCH=$arch" \
        "--config-settings=cmake.define.KELP_WHEEL_GLIBC=$glibc" \
        "--config-settings=cmake.define.KELP_WHEEL_ZIG=$zig" \
        "--config-settings=cmake.define.KELP_WHEEL_DEPS=$work/deps"
    audit "$work" "${tag}_$arch"
    rm -f "$out"/*_"$arch".whl
    mv "$work"/dist/*.whl "$out/"
}

# The libraries in the wheel decide about its tag. Backends need the libtritonserver.so of the process that loads them.
audit() {
    "$venv/bin/auditwheel" show --json "$1"/dist/*.whl >"$1/audit.json"
    "$python" - "$1/audit.json" "$2" <<'END'
import json, sys
audit = json.load(open(sys.argv[1]))
needed = set(audit["external_libs"]) - {"libtritonserver.so"}
if needed or audit["sym_tag"] != sys.argv[2]:
    sys.exit(f"scripts/wheel.sh: the wheel is not {sys.argv[2]}: its symbols are {audit['sym_tag']}, and it needs {sorted(needed)}")
END
}

build_sdist() {
    rm -f "$out"/*.tar.gz
    "$python" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$out" >"$out/sdist.log" ||
        { cat "$out/sdist.log" >&2; return 1; }
}

[ $# -gt 0 ] || set -- "$(uname -m)" sdist
for what; do
    case "$what" in
    x86_64 | aarch64) build_wheel "$what" ;;
    sdist) build_sdist ;;
    *)
        echo "usage: scripts/wheel.sh [x86_64|aarch64|sdist…]" >&2
        exit 2
        ;;
    esac
done
(cd "$out" && ls -l -- *.whl *.tar.gz 2>/dev/null || true) | awk '{ printf "build/wheel/%s  %.1f MB\n", $NF, $5 / 1e6 }'
