#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the packages that are missing for a purpose, and installs them with apt. Does nothing if none is missing.
#   scripts/deps.sh [run|test|check|bench|arm64|wheel|wheel-arm64|fuzz|page|site|prometheus|deb|roots|image|containers|balancing|stores|kubernetes]    arm64: a cross compiler and an emulator
# KELP_VENV names the Python environment of the tests (build/venv).
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-run}

# Debian's package, and what shows that it is installed: a command, a file, a Python module, or clang's libFuzzer.
run_needs="gcc:command:gcc libc6-dev:file:/usr/include/stdio.h cmake:command:cmake
    ninja-build:command:ninja python3:command:python3 pkg-config:command:pkg-config
    curl:command:curl zlib1g-dev:file:/usr/include/zlib.h
    libnghttp2-dev:file:/usr/include/nghttp2/nghttp2.h
    libxxhash-dev:file:/usr/include/xxhash.h
    libffi-dev:file:/usr/include/$(uname -m)-linux-gnu/ffi.h"
# The first six are libraries that image operators and regular expressions find when they are needed.
test_needs="libturbojpeg0:file:/usr/lib/libturbojpeg.so.0 libpng16-16:file:/usr/lib/libpng16.so.16
    libwebp7:file:/usr/lib/libwebp.so.7 libtiff6:file:/usr/lib/libtiff.so.6
    libopenjp2-7:file:/usr/lib/libopenjp2.so.7 libpcre2-8-0:file:/usr/lib/libpcre2-8.so.0
    g++:command:g++ tmux:command:tmux
    libcurl4:file:/usr/lib/libcurl.so.4 nghttp2-client:command:h2load openssl:command:openssl libssl3:file:/usr/lib/libssl.so.3
    libcmocka-dev:file:/usr/include/cmocka.h python3-venv:module:ensurepip
    python3-dev:header:Python.h"
check_needs="clang:command:clang clang-format:command:clang-format
    gdb:command:gdb valgrind:command:valgrind gcc-aarch64-linux-gnu:command:aarch64-linux-gnu-gcc
    libc6-dev-arm64-cross:file:/usr/aarch64-linux-gnu/include/stdio.h qemu-user:command:qemu-aarch64"
clang_version=$( (clang -dumpversion 2>/dev/null || echo 14) | cut -d. -f1)
fuzz_needs="clang:command:clang libclang-rt-$clang_version-dev:fuzzer:libFuzzer"
# libxsmm is built for x86-64 only.
bench_needs="libdnnl-dev:file:/usr/include/dnnl.h"
[ "$(uname -m)" != x86_64 ] || bench_needs="$bench_needs libxsmm-dev:file:/usr/include/libxsmm.h"
# The libraries' headers are those of run_needs and test_needs, but for what depends on the machine.
arm64_needs="gcc-aarch64-linux-gnu:command:aarch64-linux-gnu-gcc
    g++-aarch64-linux-gnu:command:aarch64-linux-gnu-g++ qemu-user:command:qemu-aarch64
    libc6-dev%arm64:file:/usr/lib/aarch64-linux-gnu/libc.so
    libstdc++6%arm64:file:/usr/lib/aarch64-linux-gnu/libstdc++.so.6
    libcmocka-dev%arm64:file:/usr/lib/aarch64-linux-gnu/libcmocka.so
    libffi-dev%arm64:file:/usr/include/aarch64-linux-gnu/ffi.h
    zlib1g-dev%arm64:file:/usr/lib/aarch64-linux-gnu/libz.so
    libnghttp2-dev%arm64:file:/usr/lib/aarch64-linux-gnu/libnghttp2.so
    libssl3%arm64:file:/usr/lib/aarch64-linux-gnu/libssl.so.3
    libcurl4%arm64:file:/usr/lib/aarch64-linux-gnu/libcurl.so.4
    libturbojpeg0%arm64:file:/usr/lib/aarch64-linux-gnu/libturbojpeg.so.0
    libpng16-16%arm64:file:/usr/lib/aarch64-linux-gnu/libpng16.so.16
    libwebp7%arm64:file:/usr/lib/aarch64-linux-gnu/libwebp.so.7
    libtiff6%arm64:file:/usr/lib/aarch64-linux-gnu/libtiff.so.6
    libopenjp2-7%arm64:file:/usr/lib/aarch64-linux-gnu/libopenjp2.so.7
    libpcre2-8-0%arm64:file:/usr/lib/aarch64-linux-gnu/libpcre2-8.so.0"
wheel_needs="python3-venv:module:ensurepip python3-dev:header:Python.h"
wheel_arm64_needs="gcc-aarch64-linux-gnu:command:aarch64-linux-gnu-gcc
    libffi-dev%arm64:file:/usr/lib/aarch64-linux-gnu/libffi_pic.a
    zlib1g-dev%arm64:file:/usr/lib/aarch64-linux-gnu/libz.a
    libnghttp2-dev%arm64:file:/usr/lib/aarch64-linux-gnu/libnghttp2.a"
deb_needs="debhelper:command:dh dpkg-dev:command:dpkg-buildpackage fakeroot:command:fakeroot lintian:command:lintian
    dh-python:command:dh_python3 python3-dev:header:Python.h"
# To test packages in fresh systems.
roots_needs="mmdebstrap:command:mmdebstrap systemd-container:command:systemd-nspawn"
image_needs="buildah:command:buildah ca-certificates:file:/etc/ssl/certs/ca-certificates.crt libcurl4:file:/usr/lib/libcurl.so.4
    libssl3:file:/usr/lib/libssl.so.3 libpcre2-8-0:file:/usr/lib/libpcre2-8.so.0 libturbojpeg0:file:/usr/lib/libturbojpeg.so.0
    libpng16-16:file:/usr/lib/libpng16.so.16 libwebp7:file:/usr/lib/libwebp.so.7 libopenjp2-7:file:/usr/lib/libopenjp2.so.7"
# To run it.
containers_needs="podman:command:podman runc:command:runc skopeo:command:skopeo umoci:command:umoci"
balancing_needs="haproxy:command:haproxy nghttp2-client:command:h2load"
stores_needs="libcurl4:file:/usr/lib/libcurl.so.4 apache2-utils:command:htpasswd"
prometheus_needs="prometheus:command:prometheus"
kubernetes_needs="prometheus:command:promtool etcd-server:command:etcd openssl:command:openssl"
site_needs="git:command:git npm:command:npm python3-venv:module:ensurepip"
page_needs="chromium:command:chromium chromium-driver:command:chromedriver"
case "$purpose" in
run) needs=$run_needs ;;
test) needs="$run_needs $test_needs" ;;
check) needs="$run_needs $test_needs $check_needs $bench_needs" ;;
bench) needs="$run_needs $test_needs $bench_needs" ;;
arm64) needs="$run_needs $test_needs $arm64_needs" ;;
wheel) needs="$run_needs $wheel_needs" ;;
wheel-arm64) needs="$run_needs $wheel_needs $wheel_arm64_needs" ;;
fuzz) needs="$run_needs $test_needs $fuzz_needs" ;;
page) needs="$run_needs $page_needs" ;;
site) needs="$run_needs $site_needs" ;;
deb) needs="$run_needs $deb_needs" ;;
image) needs="$run_needs $image_needs" ;;
containers) needs="$run_needs $image_needs $containers_needs" ;;
balancing) needs="$run_needs $balancing_needs" ;;
stores) needs="$run_needs $stores_needs" ;;
kubernetes) needs="$run_needs $kubernetes_needs" ;;
roots) needs="$run_needs $deb_needs $roots_needs" ;;
prometheus) needs="$run_needs $prometheus_needs" ;;
*)
    echo "usage: scripts/deps.sh [run|test|check|bench|arm64|wheel|wheel-arm64|fuzz|page|site|prometheus|deb|roots|image|containers|balancing|stores|kubernetes]" >&2
    exit 2
    ;;
esac

there() {
    case "$1" in
    command) command -v "$2" >/dev/null ;;
    file) [ -e "$2" ] || dpkg-query -W -f '${Status}' "$3" 2>/dev/null | grep -q '^install ok' ;;
    header) command -v python3 >/dev/null && python3 -c \
        "import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path('include') + '/$2'))" ;;
    fuzzer) [ -e "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a" 2>/dev/null)" ] ;;
    module) command -v python3 >/dev/null && python3 -c "import $2" 2>/dev/null ;;
    esac
}

missing=()
for need in $needs; do
    IFS=: read -r package kind what <<<"$need"
    package=${package/\%/:} # Debian's package:architecture
    there "$kind" "$what" "$package" || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
    echo "kelp: to $purpose, this machine lacks: ${missing[*]}"
    if ! command -v apt-get >/dev/null; then
        echo "kelp: there is no apt here; install them (Debian's names) by other means" >&2
        exit 1
    fi
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "kelp: run as root: apt-get install ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    if [[ "${missing[*]}" == *:arm64* ]] && ! dpkg --print-foreign-architectures | grep -qx arm64; then
        echo "kelp: ${as_root[*]:-} dpkg --add-architecture arm64"
        "${as_root[@]}" dpkg --add-architecture arm64
    fi
    echo "kelp: ${as_root[*]:-} apt-get install ${missing[*]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null
fi

# The Python environment of the tests, made again when its requirements change.
if [[ ! $purpose =~ ^(run|site|wheel.*|deb|roots|image|containers|balancing|stores|kubernetes)$ ]] && [ -z "${KELP_VENV:-}" ]; then
    if ! cmp -s tools/requirements-test.txt build/venv/requirements-test.txt; then
        echo "kelp: making build/venv with $(grep -vc '^#' tools/requirements-test.txt) packages of tools/requirements-test.txt"
        python3 -m venv build/venv
        build/venv/bin/python -m pip install -q --disable-pip-version-check --no-input \
            -r tools/requirements-test.txt
        cp tools/requirements-test.txt build/venv/requirements-test.txt
    fi
fi
