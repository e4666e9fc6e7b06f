#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds backends with the crate triton-rs 0.2.0 of crates.io (tests/rust/triton_rs) and runs them in `kelp serve`. Its bindings are made
# by bindgen, which needs a libclang of its time: that of the Python wheel libclang 16.0.6. All of it lies in build/triton-rs. Then, where
# scripts/nvidia.sh has brought it, runs backends of our own crate in NVIDIA's server; `make test` runs them in ours.
# Before that, checks the crates in bindings/rust with clippy, and runs the tests of kelp-engine with an installed Kelp.
# Exits 77 and prints the reason if cargo is missing or the parts cannot be downloaded.
#   scripts/rust.sh     needs build/release; KELP_VENV: Python of the tests (build/venv)
set -uo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
version=$(cargo --version 2>/dev/null)
[[ $version =~ ^cargo\ 1\.([0-9]+) && ${BASH_REMATCH[1]} -ge 82 ]] || {
    echo "skipped: cargo 1.82 is needed, found ${version:-none}"
    exit 77
}
python=${KELP_VENV:-build/venv}/bin/python
[ -x "$python" ] || python=python3
prefix=$PWD/build/release/prefix
cmake --install build/release --prefix "$prefix" >/dev/null || exit 1
if cargo clippy --version >/dev/null 2>&1; then
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig CARGO_TARGET_DIR=$PWD/build/release/rust/clippy \
        cargo clippy --locked --workspace --all-targets --all-features --manifest-path bindings/rust/Cargo.toml -- -D warnings || exit 1
else
    echo "cargo clippy is missing: the crates are not checked with it"
fi
"$python" tests/rust/test_engine.py --prefix "$prefix" --work build/release/rust || exit 1
folder=build/triton-rs
library=$folder/libclang/libclang-16.0.6.data/platlib/clang/native
if [ ! -e "$library/libclang.so" ]; then
    mkdir -p "$folder" && "$python" -m pip download -q --disable-pip-version-check --no-input --no-deps --only-binary :all: \
        --dest "$folder" libclang==16.0.6 && "$python" -m zipfile -e "$folder"/libclang-16.0.6-*.whl "$folder/libclang" || {
        echo "skipped: pip cannot bring the wheel libclang 16.0.6"
        exit 77
    }
fi
manifest=tests/rust/triton_rs/Cargo.toml
export CARGO_TARGET_DIR=$folder/target
cargo fetch --locked --manifest-path "$manifest" || {
    echo "skipped: cargo cannot bring the crate triton-rs 0.2.0"
    exit 77
}
LIBCLANG_PATH=$PWD/$library BINDGEN_EXTRA_CLANG_ARGS="-I$(gcc -print-file-name=include)" \
    cargo build --release --locked --manifest-path "$manifest" || exit 1
kelp=${KELP_BIN:-build/release/bin/kelp}
"$python" tests/rust/test_triton_rs.py --kelp "$kelp" --libraries "$CARGO_TARGET_DIR/release" || exit 1
[ -x build/nvidia/pytriton/tritonserver/bin/tritonserver ] || exit 0
KELP_NVIDIA_WHEEL=build/nvidia "$python" tests/rust/test_rust.py --kelp "$kelp" --work build/rust
