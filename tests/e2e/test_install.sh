#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build in a temporary prefix and uses it from outside: the program serves, a C program is compiled against it with
# pkg-config and with find_package, no file refers to the build directory, and the installed size is limited.
#   test_install.sh BUILD_DIRECTORY SOURCE_DIRECTORY
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
say() { echo "install: $*"; }
fail() { echo "install: FAILED: $*" >&2; exit 1; }

say "DESTDIR is put in front of the prefix"
DESTDIR="$work/stage" cmake --install "$build" --prefix /opt/kelp --strip >"$work/install.log" ||
    { cat "$work/install.log"; fail "cmake --install"; }
# A prefix may be moved: files installed for /opt/kelp are used in their staging directory.
prefix=$work/moved
mv "$work/stage/opt/kelp" "$prefix"

for file in bin/kelp lib/libkelp.so lib/libtritonserver.so include/kelp/engine.h include/triton/core/tritonserver.h \
    backends/addsub/libtriton_addsub.so lib/pkgconfig/kelp.pc lib/pkgconfig/tritonserver.pc lib/cmake/kelp/kelp-config.cmake \
    share/man/man1/kelp.1 share/bash-completion/completions/kelp share/doc/kelp/LICENSE share/doc/kelp/THIRD-PARTY-NOTICES.txt; do
    [ -e "$prefix/$file" ] || fail "$file is not installed"
done

size=$(($(du -sb --apparent-size "$prefix" | cut -f1) - $(stat -c %s "$prefix/lib/libkelp.a")))
say "everything but the static library takes $size bytes"
[ "$size" -lt 12582912 ] || fail "more than 12 MB are installed: $(du -ab "$prefix" | sort -n | tail -n 15)"

say "code of other projects that is compiled in has its notice"
compiled_in=$(sed -n 's/^| \[\([^]]*\)\].*| header only |.*/\1/p' "$prefix/share/doc/kelp/dependencies.md")
[ -n "$compiled_in" ] || fail "dependencies.md names no such project"
for project in $compiled_in; do
    grep -q "^$project " "$prefix/share/doc/kelp/THIRD-PARTY-NOTICES.txt" || fail "there is no notice of $project"
done

say "a minor version before 1.0 has its own soname"
version=$("$prefix/bin/kelp" --version | sed 's/^kelp //')
soname=$(readelf -d "$prefix/lib/libkelp.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
[ "$soname" = "libkelp.so.$(echo "$version" | sed 's/^\(0\.[0-9]*\).*/\1/; s/^\([1-9][0-9]*\)\..*/\1/')" ] || fail "the soname is $soname"
[ -e "$prefix/lib/$soname" ] || fail "$soname is not installed"

say "all symbols have the version of the library"
readelf -W --dyn-syms "$prefix/lib/libkelp.so" | grep " kelp_version@@KELP_${soname#libkelp.so.}$" >/dev/null || fail "kelp_version has no version"
unversioned=$(nm -D --defined-only "$prefix/lib/libkelp.so" | awk '{ print $3 }' | grep -vE '^kelp_.*@@KELP_|^KELP_' || true)
[ -z "$unversioned" ] || fail "libkelp.so exports $unversioned"

"$source/scripts/deb_symbols.sh" --check "$prefix/lib/libkelp.so" || fail "debian/libkelp0.1.symbols"

if grep -rlF "$build" "$prefix"; then fail "these files name the build directory"; fi

say "each installed header compiles alone, as C17 and as C++17"
for header in "$prefix"/include/kelp/*.h "$prefix"/include/triton/core/*.h; do
    printf '#include "%s"\n' "$header" >"$work/header.c"
    gcc -std=c17 -Wall -Wextra -Werror -I "$prefix/include" -fsyntax-only "$work/header.c" || fail "$header is not C17"
    g++ -std=c++17 -Wall -Wextra -Werror -I "$prefix/include" -fsyntax-only -x c++ "$work/header.c" || fail "$header is not C++17"
done

for header in "$prefix"/include/kelp/*.hpp "$prefix"/include/triton/runtime/*.h; do
    printf '#include "%s"\nextern "C" triton::runtime::Backend *triton_backend_init() { return nullptr; }\n' "$header" >"$work/header.cpp"
    g++ -std=c++17 -Wall -Wextra -Werror -I "$prefix/include" -fsyntax-only "$work/header.cpp" || fail "$header is not C++17"
done
printf '#include <triton/runtime/backend.h>\n#include <triton/runtime/triton.h>\nint none;\n' >"$work/header.c"
gcc -std=c17 -Wall -Wextra -Werror -I "$prefix/include" -fsyntax-only "$work/header.c" || fail "triton/runtime is not C17"

cat >"$work/use.c" <<'C'
#include <kelp/engine.h>
#include <stdio.h>
#include <triton/core/tritonserver.h>

int main(int argc, char **argv) {
    uint32_t major = 0, minor = 0;
    TRITONSERVER_Error *error = TRITONSERVER_ApiVersion(&major, &minor);
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    float image[64] = {0};
    const int64_t shape[4] = {1, 1, 8, 8};
    kelp_tensor input;
    kelp_status *status = kelp_runtime_create(&options, &runtime);
    if (!status)
        status = kelp_graph_load_file(kelp_allocator_system(), argc > 1 ? argv[1] : "", NULL, &graph);
    if (!status)
        status = kelp_engine_create(runtime, graph, NULL, &engine);
    if (!status)
        status = kelp_context_create(engine, &context);
    if (!status)
        status = kelp_tensor_init(&input, KELP_F32, 4, shape, image);
    if (!status)
        status = kelp_context_set_input(context, 0, &input);
    if (!status)
        status = kelp_context_invoke(context);
    if (status || error) {
        printf("failed: %s\n", status ? kelp_status_message(status) : TRITONSERVER_ErrorMessage(error));
        return 1;
    }
    const kelp_tensor *digit = kelp_context_output(context, kelp_engine_find_output(engine, "digit"));
    printf("kelp %s, Triton API %u.%u, digit %lld\n", kelp_version(), major, minor, (long long)*(int64_t *)digit->data);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    kelp_runtime_release(runtime);
    return 0;
}
C
model=$source/examples/models/digits/1/model.onnx

say "a C program with pkg-config"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
# shellcheck disable=SC2046
gcc -std=c17 -Wall -Wextra -Werror $(pkg-config --cflags kelp tritonserver) "$work/use.c" -o "$work/use" \
    $(pkg-config --libs kelp tritonserver) || fail "pkg-config"
LD_LIBRARY_PATH=$prefix/lib "$work/use" "$model"

say "a C program with the static library"
sed '/triton/d; s/TRITONSERVER_Error \*error = .*/void *error = NULL;/; s/TRITONSERVER_ErrorMessage(error)/"none"/' "$work/use.c" >"$work/alone.c"
# shellcheck disable=SC2046
gcc -std=c17 -Wall -Wextra -Werror $(pkg-config --cflags kelp) "$work/alone.c" -o "$work/alone" -Wl,-Bstatic $(pkg-config --libs kelp) \
    -Wl,-Bdynamic $(pkg-config --static --libs kelp | sed 's/-lkelp//') || fail "pkg-config --static"
if readelf -d "$work/alone" | grep libkelp >/dev/null; then fail "the program needs libkelp.so"; fi
"$work/alone" "$model"

say "a C program with find_package"
mkdir "$work/cmake"
cat >"$work/cmake/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(use C)
find_package(kelp 0.1 REQUIRED)
add_executable(use ../use.c)
target_link_libraries(use kelp::kelp kelp::tritonserver)
add_executable(alone ../alone.c)
target_link_libraries(alone kelp::kelp_static)
CMAKE
cmake -G Ninja -S "$work/cmake" -B "$work/cmake/build" "-DCMAKE_PREFIX_PATH=$prefix" >"$work/cmake.log" 2>&1 &&
    ninja -C "$work/cmake/build" >>"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; fail "find_package"; }
"$work/cmake/build/use" "$model"
"$work/cmake/build/alone" "$model"

# Starts the installed server with the given arguments and sets `url`.
serve() {
    env -u LD_LIBRARY_PATH "$prefix/bin/kelp" serve --http-address 127.0.0.1 --http-port 0 "$@" \
        >"$work/serve.out" 2>"$work/serve.err" &
    server=$!
    url=
    for _ in $(seq 1 300); do
        url=$(sed -n 's/^HTTP  \(http:[^ ]*\).*/\1/p' "$work/serve.out")
        [ -z "$url" ] || return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/serve.err"
    fail "kelp serve $*"
}
stop() {
    kill -TERM "$server"
    wait "$server" || fail "kelp serve ended with $?"
    server=
}
# infer MODEL REQUEST PATTERN: the response contains the pattern.
infer() {
    curl -sS --fail-with-body -o "$work/answer" "$url/v2/models/$1/infer" -d "$2" || { cat "$work/answer"; fail "$1"; }
    grep -qE "$3" "$work/answer" || { cat "$work/answer"; fail "the response of $1 lacks $3"; }
}

say "the installed program serves with the installed backends"
serve --model-repository "$source/examples/models"
for name in digits addsub; do
    curl -sS --fail-with-body -o "$work/answer" "$url/v2/models/$name/infer" -d "@$source/examples/requests/$name.json" ||
        { cat "$work/answer"; fail "$name"; }
done
grep -q "$prefix/backends/addsub/libtriton_addsub.so" "/proc/$server/maps" || fail "the backend is not the installed one"
stop

say "each installed backend serves with its installed configuration"
arguments=()
for library in "$prefix"/backends/*/libtriton_*.so; do
    arguments+=(--with-backend "$library")
done
serve "${arguments[@]}"
numbers=$(seq -s, 0 15)
addends='{"name":"INPUT0","shape":[1,16],"datatype":"FP32","data":['$numbers']},{"name":"INPUT1","shape":[1,16],"datatype":"FP32","data":['$numbers']}'
infer addsub "{\"inputs\":[$addends]}" '"name":"OUTPUT0".*"data":\[0(\.0)?,2(\.0)?,4(\.0)?,6'
infer pipeline "{\"inputs\":[$addends]}" '"name":"OUTPUT","datatype":"FP32","shape":\[1,16\]'
infer identity '{"inputs":[{"name":"INPUT0","shape":[2],"datatype":"FP32","data":[3,4]}]}' '"name":"OUTPUT0".*"data":\[3(\.0)?,4(\.0)?\]'
for sum in 5 10; do
    infer accumulator '{"parameters":{"sequence_id":7},"inputs":[{"name":"INPUT","shape":[1],"datatype":"FP32","data":[5]}]}' \
        "\"name\":\"OUTPUT\".*\"data\":\\[$sum(\\.0)?\\]"
done
infer budget '{"inputs":[{"name":"INPUT","shape":[1,2],"datatype":"FP32","data":[3,4]}]}' '"name":"OUTPUT".*"data":\[3(\.0)?,4(\.0)?\]'
curl -sS "$url/metrics" | grep '^budget_requests_total{model="budget",version="1"} 1$' >/dev/null || fail "the metrics of budget"
infer repeat '{"inputs":[{"name":"IN","shape":[1],"datatype":"INT32","data":[9]}]}' '"name":"OUT".*"data":\[9\]'
stop
say "make uninstall removes what was installed, and nothing else"
echo mine >"$prefix/share/doc/kelp/mine"
"$source/scripts/uninstall.sh" "$prefix"
left=$(cd "$prefix" && find . ! -type d)
[ "$left" = ./share/doc/kelp/mine ] || fail "files are left: $left"
if "$source/scripts/uninstall.sh" "$prefix" 2>"$work/uninstall.err"; then fail "a second uninstall"; fi
grep -q "is not installed there by 'make install'" "$work/uninstall.err" || fail "the message: $(cat "$work/uninstall.err")"
say "passed"
