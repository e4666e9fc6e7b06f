#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Creates a kernel library, a plug-in and a provider with `kelp new` of an installed Kelp: each project builds without warnings with
# CMake and with pkg-config, passes its own test, and is used by the program. Wrong arguments are rejected.
#   test_new_projects.sh PREFIX
set -euo pipefail
prefix=$(cd "$1" && pwd)
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill -TERM "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
say() { echo "new: $*"; }
fail() { echo "new: FAILED: $*" >&2; exit 1; }
export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig
cd "$work"

for kind in kernels plugin provider; do
    say "kelp new $kind"
    project=made/by/new/my_$kind # the parents do not exist
    kelp new $kind my_$kind --dir $project >out
    grep -q "cd $project" out || fail "it does not say what is next"
    grep -q "CMAKE_PREFIX_PATH=$prefix\$" out || fail "it does not say where Kelp is"
    grep -rqE "@NAME@|SPDX|Apache" $project && fail "a name is missing, or the project has Kelp's licence"
    cmake -S $project -B $project/build -DCMAKE_C_FLAGS=-Werror -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 &&
        cmake --build $project/build >>log 2>&1 || { cat log; fail "build"; }
    ctest --test-dir $project/build --output-on-failure >log 2>&1 || { cat log; fail "its test"; }
    grep -q "100% tests passed, 0 tests failed out of 1" log || { cat log; fail "it has no test"; }
    mkdir plain_$kind
    # shellcheck disable=SC2046
    cc -std=c17 -Wall -Wextra -Werror -O2 -shared -fPIC -o plain_$kind/libmy_$kind.so $project/my_$kind.c $(pkg-config --cflags kelp) ||
        fail "pkg-config"
    # A test fails if the library is not there.
    if $project/build/my_${kind}_test nowhere absent >log 2>&1; then fail "its test passes without a library"; fi
    if kelp new $kind my_$kind --dir $project >out 2>&1; then fail "files are overwritten"; fi
    grep -q "already exists and is not overwritten" out || { cat out; fail "it does not say that the files exist"; }
done

say "the program uses the libraries"
kelp kernels --library plain_kernels/libmy_kernels.so >out
grep -q "scale  out y: float32\[n\]" out || { cat out; fail "kelp kernels"; }
kelp doctor >/dev/null

say "the provider serves its model"
kelp serve --model-repository made/by/new/my_provider/models --plugin plain_provider/libmy_provider.so --http-address 127.0.0.1 \
    --http-port 0 >out 2>err &
server=$!
url=
for _ in $(seq 1 600); do
    url=$(sed -n 's/^HTTP  \(http:[^ ]*\).*/\1/p' out)
    [ -n "$url" ] && break
    kill -0 "$server" 2>/dev/null || { cat out err; fail "kelp serve ended"; }
    sleep 0.1
done
answer=$(curl -sS -m 60 "$url/v2/models/scaled/infer" -d '{"inputs":[{"name":"x","datatype":"FP32","shape":[3],"data":[1,2,3]}]}')
grep -q '"data":\[2.5,5.0,7.5\]' <<<"$answer" || fail "the provider answers $answer"
kill -TERM "$server"
wait "$server" || { cat err; fail "kelp serve ended with $?"; }
server=

say "wrong arguments"
rejected() {
    local code=$1 text=$2
    shift 2
    set +e
    "$@" >out 2>&1
    local found=$?
    set -e
    { [ "$found" -eq "$code" ] && grep -qF "$text" out; } || { cat out; fail "$*: ended with $found, expected $code and '$text'"; }
}
rejected 2 "invalid kernel library name 'My-scale'" kelp new kernels My-scale
rejected 2 "invalid provider name 'cpu': the name is reserved" kelp new provider cpu
rejected 2 "expected backend, kernels, plugin or provider" kelp new model x
rejected 2 "missing argument backend|kernels|plugin|provider, or NAME" kelp new plugin
touch file
rejected 1 "cannot create directory 'file': " kelp new plugin x --dir file/x
say "passed"
