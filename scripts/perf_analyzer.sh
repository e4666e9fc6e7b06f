#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs NVIDIA's perf_analyzer 2.60.0 on our library in its own process (--service-kind=triton_c_api), and against `kelp serve` over
# HTTP and gRPC, and checks that every request has a response. Exits 77 and prints the reason if it cannot be downloaded.
# It needs glibc 2.38: where the system's is older, scripts/newer_glibc.sh unpacks one.
# pip has to be told the platform: on an older glibc it picks the 0.1.0 of another project of that name.
#   scripts/perf_analyzer.sh [ARGUMENT…]     more arguments for perf_analyzer; needs build/release
# KELP_BUILD: the build to use (build/release).
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
build=$(realpath "${KELP_BUILD:-build/release}")
folder=$root/build/perf_analyzer
program=$folder/perf_analyzer/bin/perf_analyzer

skip() {
    echo "skipped: $1"
    exit 77
}

[ "$(uname -m)" = x86_64 ] || skip "perf_analyzer 2.60.0 is brought for x86-64 only"
mkdir -p "$folder"

python=${KELP_VENV:-build/venv}/bin/python
[ -x "$python" ] || python=python3
if [ ! -x "$program" ]; then
    "$python" -m pip download -q --disable-pip-version-check --no-input --no-deps --only-binary :all: \
        --platform manylinux_2_38_x86_64 --dest "$folder" perf-analyzer==2.60.0 ||
        skip "pip cannot bring perf-analyzer 2.60.0"
    python3 -m zipfile -e "$folder"/perf_analyzer-2.60.0-*.whl "$folder" || exit 1
    chmod +x "$program"
fi

# With shared memory, perf_analyzer opens libcudart.so, also where there is no GPU.
if [ ! -e "$folder/cudart/libcudart.so" ]; then
    "$python" -m pip download -q --disable-pip-version-check --no-input --no-deps --only-binary :all: --dest "$folder" \
        nvidia-cuda-runtime-cu12==12.9.79 || skip "pip cannot bring nvidia-cuda-runtime-cu12 12.9.79"
    "$python" -m zipfile -e "$folder"/nvidia_cuda_runtime_cu12-*.whl "$folder/cudart" || exit 1
    ln -s nvidia/cuda_runtime/lib/libcudart.so.12 "$folder/cudart/libcudart.so"
fi

run=(env "LD_LIBRARY_PATH=$folder/cudart" "$program")
if ! "$program" --version >/dev/null 2>&1; then
    newer=$(scripts/newer_glibc.sh) || skip "this system's C library is older than 2.38, and $newer"
    run=("$newer/ld-linux-x86-64.so.2" --library-path "$newer:$folder/cudart:/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu" "$program")
    "${run[@]}" --version >/dev/null || skip "perf_analyzer does not start"
fi

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
mkdir -p "$work/triton/lib" "$work/triton/repoagents" "$work/models/identity/1" "$work/models/strings/1" "$work/models/repeat/1"
ln -s "$build/src/server/libtritonserver.so" "$work/triton/lib/"
ln -s "$build/backends" "$work/triton/backends"
cat >"$work/models/identity/config.pbtxt" <<END
backend: "identity"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
END
cat >"$work/models/repeat/config.pbtxt" <<END
backend: "repeat"
model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]
END
cat >"$work/models/strings/config.pbtxt" <<END
backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]
END

failed=0 passed=0
# measure NAME ARGUMENT…: a fixed number of requests; the table that it writes must tell of a throughput, and of a server that counted.
measure() {
    local name=$1
    shift
    echo "== $name"
    if timeout 120 "${run[@]}" "$@" --request-count 5000 -f "$work/table.csv" </dev/null >"$work/out" 2>&1 &&
        ! grep -Eiq '\berror|fail' "$work/out" &&
        awk -F, 'NR > 1 && $2 > 0 { n++ } END { exit n < 1 }' "$work/table.csv"; then
        grep -E '^Request concurrency|Throughput|Avg latency|Execution count|Successful request' "$work/out"
        passed=$((passed + 1))
    else
        cat "$work/out"
        echo "FAILED: $name"
        failed=$((failed + 1))
    fi
    rm -f "$work/table.csv"
}

in_process=(--service-kind=triton_c_api "--triton-server-directory=$work/triton" "--model-repository=$work/models")
measure "in process" -m identity "${in_process[@]}" --concurrency-range 2 "$@"
measure "in process, batches" -m identity -b 8 "${in_process[@]}" "$@"
measure "in process, shared memory" -m identity "${in_process[@]}" --shared-memory system "$@"
measure "in process, strings" -m strings --shape INPUT0:4 --string-length 20 "${in_process[@]}" "$@"

"$build/bin/kelp" serve --model-repository "$work/models" --backend-directory "$build/backends" \
    --http-address 127.0.0.1 --http-port 0 --allow-client-shm true </dev/null >"$work/server" 2>&1 &
server=$!
port=
for _ in $(seq 100); do
    port=$(sed -nE 's/.*127\.0\.0\.1:([0-9]+).*/\1/p' "$work/server" | head -n 1)
    [ -n "$port" ] && break
    sleep 0.1
done
measure "kelp serve over HTTP" -m identity -u "127.0.0.1:$port" -i http --concurrency-range 4 "$@"
measure "kelp serve over gRPC" -m identity -u "127.0.0.1:$port" -i grpc --concurrency-range 4 "$@"
measure "kelp serve over gRPC, streams" -m identity -u "127.0.0.1:$port" -i grpc --streaming --concurrency-range 4 "$@"
measure "kelp serve over gRPC, compressed" -m identity -u "127.0.0.1:$port" -i grpc --grpc-compression-algorithm gzip "$@"
measure "kelp serve over HTTP, shared memory" -m identity -u "127.0.0.1:$port" -i http --shared-memory system "$@"
measure "kelp serve over gRPC, shared memory" -m identity -u "127.0.0.1:$port" -i grpc --shared-memory system --concurrency-range 4 "$@"
measure "kelp serve over gRPC, streams and shared memory" -m identity -u "127.0.0.1:$port" -i grpc --streaming --shared-memory system "$@"
measure "kelp serve over gRPC, a decoupled model" -m repeat -u "127.0.0.1:$port" -i grpc --streaming --async --shape IN:3 "$@"
kill "$server" && wait "$server"
code=$?
server=
[ $code -eq 0 ] || { echo "FAILED: kelp serve ended with $code"; failed=$((failed + 1)); }

echo "perf_analyzer: $passed passed, $failed failed"
[ $failed -eq 0 ]
