# SPDX-License-Identifier: Apache-2.0
# Kelp's front door: one command for each thing people do here. CMake and Ninja do the building, in build/.
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
export JOBS
PYTHON_TEST = $(or $(KELP_VENV),build/venv)/bin/python

.DEFAULT_GOAL := help
.PHONY: help run demo build debug test check check-full asan ubsan tsan nvidia fuzz bench format install \
	example-minilm cli-docs operator-docs clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name text; do \
		printf '  make %-16s %s\n' "$$name" "$$text"; done

build: ## the release build, in build/release
	@scripts/deps.sh run
	@scripts/build.sh release $(if $(wildcard build/release/CMakeCache.txt),,-DKELP_TESTS=OFF)

debug: ## a build for debuggers, in build/debug
	@scripts/deps.sh run
	@scripts/build.sh debug $(if $(wildcard build/debug/CMakeCache.txt),,-DKELP_TESTS=OFF)

run: build ## serve examples/models, ask each model something, and go on serving
	@scripts/demo.sh stay

demo: build ## the same, and stop
	@scripts/demo.sh

test: ## build and run all tests
	@scripts/deps.sh test
	@scripts/build.sh release -DKELP_TESTS=ON
	@python3 scripts/run_tests.py build/release $(if $(KELP_TALLY),--tally $(KELP_TALLY))

check: ## all that CI does: tests, sanitizers, headers, format, includes
	@scripts/deps.sh check
	@scripts/check.sh

check-full: ## check, and clang, arm64 under an emulator, valgrind, the sentence embedding, a minute of each fuzzer
	@scripts/deps.sh check
	@scripts/check.sh full

asan: ## tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/deps.sh test
	@scripts/build.sh asan -DKELP_TESTS=ON
	@python3 scripts/run_tests.py build/asan -LE release

ubsan: asan ## the same build finds both

tsan: ## tests under ThreadSanitizer
	@scripts/deps.sh test
	@scripts/build.sh tsan -DKELP_TESTS=ON
	@python3 scripts/run_tests.py build/tsan -LE 'release'

nvidia: ## fetch NVIDIA's server into build/nvidia; `make test` then runs our backends in it as well
	@scripts/deps.sh test
	@scripts/nvidia.sh

fuzz: ## every fuzzer for FUZZ_SECONDS (30)
	@scripts/deps.sh check
	@scripts/fuzz.sh $(FUZZ_SECONDS)

bench: build ## latency, load time and memory beside ONNX Runtime, products beside libxsmm, convolutions beside oneDNN
	@scripts/deps.sh bench
	@scripts/build.sh release && ninja -C build/release --quiet benchmarks
	@[ ! -x build/release/bench/bench_gemm ] || build/release/bench/bench_gemm
	@[ ! -x build/release/bench/bench_convolutions ] || build/release/bench/bench_convolutions
	@build/release/bench/bench_compute
	@build/release/bench/bench_kernel build/release/tests/plugins/libraries
	@scripts/bench_inproc.sh
	@$(PYTHON_TEST) tools/make_add.py build/add.onnx
	@$(PYTHON_TEST) tests/compute/with_onnxruntime.py build/release/bench/bench_session build/add.onnx
	@$(PYTHON_TEST) bench/models.py --kelp build/release/bin/kelp
	@$(PYTHON_TEST) bench/serve.py --kelp build/release/bin/kelp
	@scripts/build.sh release -DKELP_TESTS=ON
	@PYTHONPATH=build/release/python $(PYTHON_TEST) bench/python_overhead.py
	@PYTHONPATH=build/release/python $(PYTHON_TEST) bench/python_calls.py --kernels build/release/tests/plugins/libraries
	@PYTHONPATH=build/release/python $(PYTHON_TEST) bench/trees.py
	@ctest --test-dir build/release -R '^ops.make_cases$$' >/dev/null && $(PYTHON_TEST) bench/operators.py

format: ## clang-format over all C sources
	@git ls-files '*.c' '*.h' '*.inc' | xargs clang-format -i

install: build ## install under PREFIX (/usr/local), with DESTDIR in front
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)" --strip

example-minilm: build ## make the sentence-embedding model, in examples-extra/models
	@scripts/deps.sh test
	@$(PYTHON_TEST) tools/make_minilm.py --out examples-extra/models/minilm/1/model.onnx
	@echo "build/release/bin/kelp serve --model-repository examples-extra/models"

cli-docs: build ## write docs/cli.md, docs/man/ and completions/ anew from the program's tables
	@python3 scripts/gen_cli_docs.py build/release/bin/kelp

operator-docs: build ## write docs/operators.md anew from the list of operators and their test cases
	@scripts/deps.sh test
	@$(PYTHON_TEST) -W ignore tests/ops/gen_cases.py build/release/tests/ops/cases all
	@$(PYTHON_TEST) scripts/gen_operator_docs.py build/release/bin/kelp build/release/tests/ops/cases

clean: ## remove build/
	@rm -rf build
