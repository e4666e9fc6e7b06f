# SPDX-License-Identifier: Apache-2.0
# One command for each task. CMake and Ninja build in build/.
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
export JOBS
PYTHON_TEST = $(or $(KELP_VENV),build/venv)/bin/python

.DEFAULT_GOAL := help
.PHONY: help run demo build debug test check check-full asan ubsan tsan nvidia fuzz bench format install uninstall deb deb-symbols image release wheel \
	mutate example-minilm site notebooks architecture-docs cli-docs python-enums operator-docs clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name text; do \
		printf '  make %-18s %s\n' "$$name" "$$text"; done

build: ## build a release in build/release
	@scripts/deps.sh run
	@scripts/build.sh release $(if $(wildcard build/release/CMakeCache.txt),,-DKELP_TESTS=OFF)

debug: ## build for debuggers in build/debug
	@scripts/deps.sh run
	@scripts/build.sh debug $(if $(wildcard build/debug/CMakeCache.txt),,-DKELP_TESTS=OFF)

run: build ## serve examples/models and send a request to each model; Ctrl-C stops the server
	@scripts/demo.sh stay

demo: build ## do the same and exit
	@scripts/demo.sh

test: ## build and run all tests
	@scripts/deps.sh test
	@scripts/build.sh release -DKELP_TESTS=ON
	@python3 scripts/run_tests.py build/release $(if $(KELP_TALLY),--tally $(KELP_TALLY))

check: ## run everything that CI runs: tests, sanitizers, headers, format, includes
	@scripts/deps.sh check
	@scripts/check.sh

check-full: ## run check, clang, arm64 in an emulator, valgrind, MiniLM, one minute of each fuzzer
	@scripts/deps.sh check
	@scripts/check.sh full

asan: ## run the tests with AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/deps.sh test
	@scripts/build.sh asan -DKELP_TESTS=ON
	@python3 scripts/run_tests.py build/asan -LE release

ubsan: asan ## the same as asan

tsan: ## run the tests with ThreadSanitizer
	@scripts/deps.sh test
	@scripts/build.sh tsan -DKELP_TESTS=ON
	@python3 scripts/run_tests.py build/tsan -LE 'release'

nvidia: ## install NVIDIA's server in build/nvidia; `make test` then also runs the backends in it
	@scripts/deps.sh test
	@scripts/nvidia.sh

fuzz: ## run every fuzzer for FUZZ_SECONDS (30)
	@scripts/deps.sh fuzz
	@scripts/fuzz.sh $(FUZZ_SECONDS)

mutate: ## measure how many seeded faults in src/DIR (DIR="graph onnx") the tests catch
	@[ -n "$(DIR)" ] || { echo 'make: usage: make mutate DIR="graph onnx"' >&2; exit 2; }
	@scripts/deps.sh check
	@cmp -s tools/requirements-mutate.txt build/venv-mutate/requirements-mutate.txt || { \
		python3 -m venv build/venv-mutate && \
		build/venv-mutate/bin/python -m pip install -q --disable-pip-version-check --no-input \
			-r tools/requirements-mutate.txt && \
		cp tools/requirements-mutate.txt build/venv-mutate/; }
	@tools/mutate --jobs $(JOBS) $(DIR)

bench: build ## measure latency, load time and memory next to ONNX Runtime, libxsmm and oneDNN
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

format: ## run clang-format on all C sources
	@git ls-files '*.c' '*.h' '*.inc' | xargs clang-format -i

install: build ## install in PREFIX (/usr/local), below DESTDIR
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)" --strip

uninstall: ## remove what `make install` installed in PREFIX, below DESTDIR
	@scripts/uninstall.sh "$(DESTDIR)$(PREFIX)"

deb: ## build the Debian packages in build/deb
	@scripts/deps.sh deb
	@scripts/deb.sh

deb-symbols: build ## add new symbols of libkelp.so to debian/libkelp0.1.symbols
	@scripts/deb_symbols.sh

image: build ## build the container image in build/image/oci
	@scripts/deps.sh image
	@scripts/image.sh

wheel: ## build the sdist and the wheel for this architecture, or ARCH="x86_64 aarch64", in build/wheel
	@scripts/deps.sh wheel
	@[ -z "$(filter-out $(shell uname -m),$(ARCH))" ] || scripts/deps.sh wheel-arm64
	@scripts/wheel.sh $(or $(ARCH),$(shell uname -m)) sdist

release: build ## make the files of a release in build/release-VERSION
	@scripts/deps.sh wheel
	@scripts/deps.sh deb
	@scripts/deps.sh image
	@scripts/release.sh

example-minilm: build ## create the sentence-embedding model in examples-extra/models
	@scripts/deps.sh test
	@$(PYTHON_TEST) tools/make_minilm.py --out examples-extra/models/minilm/1/model.onnx
	@echo "build/release/bin/kelp serve --model-repository examples-extra/models"

cli-docs: build ## generate docs/cli.md, docs/man/ and completions/ from the program
	@python3 scripts/gen_cli_docs.py build/release/bin/kelp

site: ## build the documentation site in build/site
	@scripts/deps.sh site
	@scripts/site.sh

notebooks: ## execute the notebooks of examples/notebooks
	@scripts/deps.sh test
	@scripts/build.sh release -DKELP_TESTS=ON
	@scripts/notebooks.sh

architecture-docs: ## generate the diagrams of docs/architecture.md from the #include directives
	@python3 scripts/gen_architecture.py

python-enums: ## generate the enumerations of the Python package from the public headers
	@python3 scripts/gen_python_enums.py

operator-docs: build ## generate docs/operators.md from the list of operators and their test cases
	@scripts/deps.sh test
	@$(PYTHON_TEST) -W ignore tests/ops/gen_cases.py build/release/tests/ops/cases all
	@$(PYTHON_TEST) scripts/gen_operator_docs.py build/release/bin/kelp build/release/tests/ops/cases

clean: ## remove build/
	@rm -rf build
