#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Creates a backend with `kelp new` for an installed Kelp: the project builds, passes its own test, and is served, also if it
# is built with pkg-config or with the address sanitizer, and without a configuration. Wrong arguments are rejected.
#   test_new_backend.sh BUILD_DIRECTORY SOURCE_DIRECTORY
set -euo pipefail
build=$1
source=$2
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill -TERM "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
say() { echo "new: $*"; }
fail() { echo "new: FAILED: $*" >&2; exit 1; }

prefix=$work/kelp
cmake --install "$build" --prefix "$prefix" --strip >"$work/log" || { cat "$work/log"; fail "cmake --install"; }
export PATH=$prefix/bin:$PATH
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
cd "$work"

say "the project is made, builds and passes its own test"
kelp new backend my_scale >out
grep -q "kelp serve --with-backend build/libtriton_my_scale.so" out || fail "it does not say what is next"
grep -q "CMAKE_PREFIX_PATH=$prefix\$" out || fail "it does not say where Kelp is"
grep -rq "@NAME@" my_scale && fail "a name was not filled in"
grep -rqE "SPDX|Apache" my_scale && fail "the project has Kelp's licence"
# The prefix is found by PATH.
cmake -G Ninja -S my_scale -B my_scale/build >log 2>&1 && cmake --build my_scale/build >>log 2>&1 || { cat log; fail "build"; }
ctest --test-dir my_scale/build --output-on-failure >log 2>&1 || { cat log; fail "its test"; }
[ -z "$(ls "$TMPDIR")" ] || fail "the server left $(ls "$TMPDIR")"

# Prints the response of the served backend to 21, once it is ready; its log is in the file.
serve_and_ask() {
    local words=$1 url=
    for _ in $(seq 1 600); do
        url=$(sed -n 's/^HTTP  \(http:[^ ]*\).*/\1/p' "$words")
        [ -n "$url" ] && break
        kill -0 "$server" 2>/dev/null || { cat "$words"; fail "kelp serve ended"; }
        sleep 0.1
    done
    curl -sS -m 60 "$url/v2/models/my_scale/infer" -d '{"inputs":[{"name":"INPUT","datatype":"FP32","shape":[1,1],"data":[21]}]}'
}
cmake -G Ninja -S my_scale -B my_scale/debug -DCMAKE_BUILD_TYPE=Debug >log 2>&1 && cmake --build my_scale/debug >>log 2>&1 ||
    { cat log; fail "build for debugging"; }
serve=(kelp serve --with-backend my_scale/debug/libtriton_my_scale.so --http-address 127.0.0.1 --http-port 0)

if command -v gdb >/dev/null && gdb -q -batch -ex run -ex "info inferiors" --args true >log 2>&1 && ! grep -qi "ptrace" log; then
    say "in gdb"
    cat >steps <<'END'
set breakpoint pending on
handle SIGTERM nostop pass
break my_scale.c:execute
run
backtrace 2
next
print state->scale
delete
continue
END
    gdb -q -batch -x steps --args "${serve[@]}" >out 2>&1 </dev/null &
    server=$!
    answer=$(serve_and_ask out) || { cat out; fail "in gdb"; }
    grep -q '"data":\[42.0\]' <<<"$answer" || { cat out; fail "in gdb: $answer"; }
    # The program is gdb's child; if that is unknown, gdb itself is stopped.
    # shellcheck disable=SC2046
    kill -TERM $(cat /proc/"$server"/task/*/children 2>/dev/null) 2>/dev/null || kill "$server"
    wait "$server" || true
    server=
    grep -q "^#0  execute (instance=0x.* at .*my_scale.c:" out && grep -q '^\$1 = 2$' out || { cat out; fail "gdb does not stop there"; }
fi

if command -v valgrind >/dev/null; then
    say "under valgrind"
    valgrind --leak-check=full --error-exitcode=9 --errors-for-leak-kinds=definite,indirect "${serve[@]}" >out 2>err </dev/null &
    server=$!
    answer=$(serve_and_ask out) || { cat out err; fail "under valgrind"; }
    grep -q '"data":\[42.0\]' <<<"$answer" || { cat out err; fail "under valgrind: $answer"; }
    kill -TERM "$server"
    wait "$server" || { cat err; fail "valgrind finds something"; }
    server=
fi

say "with pkg-config alone"
mkdir plain
# shellcheck disable=SC2046
gcc -std=c17 -Wall -Wextra -Werror -shared -fPIC -o plain/libtriton_my_scale.so my_scale/my_scale.c \
    $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs kelp-backend) || fail "pkg-config"
cp my_scale/config.pbtxt plain
KELP=kelp my_scale/test.sh plain/libtriton_my_scale.so >log 2>&1 || { cat log; fail "plain"; }

say "as C++, and with clang"
if command -v g++ >/dev/null; then
    mkdir cpp
    cat >cpp/my_scale.cpp <<'CPP'
#include <kelp/backend.h>
static kelp_status *execute(kelp_backend_instance *, kelp_backend_request *request) {
    kelp_tensor x;
    kelp_backend_response *response;
    float *y;
    KELP_TRY(kelp_backend_input(request, "INPUT", KELP_F32, KELP_ANY_RANK, &x));
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(kelp_backend_output(response, "OUTPUT", KELP_F32, x.rank, x.shape, &y));
    for (int64_t i = 0; i < kelp_tensor_elements(&x); i++)
        y[i] = 2 * static_cast<const float *>(x.data)[i];
    return nullptr;
}
static const kelp_backend_definition my_scale = [] {
    kelp_backend_definition definition{};
    definition.struct_size = sizeof definition;
    definition.name = "my_scale";
    definition.execute_one = execute;
    return definition;
}();
KELP_TRITON_BACKEND(my_scale)
CPP
    # shellcheck disable=SC2046
    g++ -std=c++17 -Wall -Wextra -Werror -shared -fPIC -o cpp/libtriton_my_scale.so cpp/my_scale.cpp \
        $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs kelp-backend) || fail "g++"
    cp my_scale/config.pbtxt cpp
    KELP=kelp my_scale/test.sh cpp/libtriton_my_scale.so >log 2>&1 || { cat log; fail "C++"; }
fi
if command -v clang >/dev/null; then
    clang -std=c17 -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" my_scale/my_scale.c || fail "clang"
fi

say "without a configuration, a backend that completes none is reported"
mkdir bare
cp plain/libtriton_my_scale.so bare
if kelp serve --with-backend bare/libtriton_my_scale.so --http-port 0 >out 2>&1; then fail "a model without inputs is served"; fi
grep -q "no config.pbtxt in the directory of '.*libtriton_my_scale.so'" out || { cat out; fail "it does not say what is missing"; }
grep -q "model 'my_scale'" out || { cat out; fail "the failure does not name the model"; }

say "several libraries at once, beside a repository"
mkdir -p repository
cp -r "$prefix/backends/addsub/libtriton_addsub.so" plain/
kelp new backend other --dir very/deep >/dev/null # creates both
gcc -std=c17 -shared -fPIC -o very/deep/libtriton_other.so very/deep/other.c -I"$prefix/include" -L"$prefix/lib" -lkelp_backend -ltritonserver
kelp serve --with-backend plain/libtriton_my_scale.so --with-backend very/deep/libtriton_other.so --model-repository repository \
    --http-address 127.0.0.1 --http-port 0 >out 2>err &
server=$!
url=
for _ in $(seq 1 300); do
    url=$(sed -n 's/^HTTP  \(http:[^ ]*\).*/\1/p' out)
    [ -n "$url" ] && break
    kill -0 "$server" 2>/dev/null || { cat out err; fail "kelp serve ended"; }
    sleep 0.1
done
for name in my_scale other; do
    answer=$(curl -sS "$url/v2/models/$name/infer" -d '{"inputs":[{"name":"INPUT","datatype":"FP32","shape":[1,1],"data":[21]}]}')
    grep -q '"data":\[42.0\]' <<<"$answer" || fail "$name: $answer"
done
kill -TERM "$server"
wait "$server" || fail "kelp serve ended with $?"
server=
[ -z "$(ls "$TMPDIR")" ] || fail "the server left $(ls "$TMPDIR")"

say "under explicit control the backends are there too, and others only when they are asked for"
cp -r "$source/examples/models/digits" repository/
kelp serve --with-backend plain/libtriton_my_scale.so --model-repository repository --model-control-mode explicit \
    --http-address 127.0.0.1 --http-port 0 >out 2>err &
server=$!
for _ in $(seq 1 300); do
    grep -q "^HTTP" out && break
    kill -0 "$server" 2>/dev/null || { cat out err; fail "kelp serve ended"; }
    sleep 0.1
done
grep -qE "my_scale +\| 1 +\| READY" out || { cat out; fail "my_scale is not ready"; }
grep -qE "digits +\| . +\| READY" out && fail "digits was loaded"
kill -TERM "$server"
wait "$server" || fail "kelp serve ended with $?"
server=

say "refusals"
rejected() {
    local code=$1 text=$2
    shift 2
    set +e
    "$@" >out 2>&1
    local found=$?
    set -e
    { [ "$found" -eq "$code" ] && grep -qF "$text" out; } || { cat out; fail "$*: ended with $found, expected $code and '$text'"; }
}
rejected 1 "already exists" kelp new backend my_scale
rejected 2 "invalid backend name 'My-scale'" kelp new backend My-scale
rejected 2 "is reserved" kelp new backend python
rejected 2 "unknown kind of project 'model'" kelp new model x
touch file
rejected 1 "cannot create directory 'file'" kelp new backend x --dir file/x
rejected 1 "nowhere/libtriton_x.so" kelp serve --with-backend nowhere/libtriton_x.so --http-port 0
rejected 1 "libtriton_NAME.so" kelp serve --with-backend my_scale/my_scale.c --http-port 0
rejected 1 "two libraries" kelp serve --with-backend plain/libtriton_my_scale.so --with-backend bare/libtriton_my_scale.so --http-port 0
[ -z "$(ls "$TMPDIR")" ] || fail "the server left $(ls "$TMPDIR")"
say "passed"
