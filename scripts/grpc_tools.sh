#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs grpcurl, grpc-health-probe and ghz against `kelp serve`, without .proto files: they use server reflection. Exits 77 and
# prints the reason if Go cannot download them.
#   scripts/grpc_tools.sh       needs build/release
# KELP_BUILD: the build to use (build/release).
set -uo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${KELP_BUILD:-build/release}")
tools=$PWD/build/grpc_tools
modules=(github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4 github.com/grpc-ecosystem/grpc-health-probe@v0.4.61
    github.com/bojand/ghz/cmd/ghz@v0.93.0)

skip() {
    echo "skipped: $1"
    exit 77
}

command -v go >/dev/null || skip "there is no Go"
mkdir -p "$tools"
for module in "${modules[@]}"; do
    name=$(basename "${module%@*}")
    [ -x "$tools/$name" ] || GOBIN=$tools go install "$module" >"$tools/$name.log" 2>&1 ||
        skip "Go cannot bring $name: $(tail -n 1 "$tools/$name.log")"
done

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
"$build/bin/kelp" serve examples/models --backend-directory "$build/backends" --http-port 0 </dev/null >"$work/server" 2>&1 &
server=$!
address=
for _ in $(seq 200); do
    address=$(sed -nE 's/^HTTP +http:\/\/(127\.0\.0\.1:[0-9]+).*/\1/p' "$work/server" | head -n 1)
    [ -n "$address" ] && break
    sleep 0.1
done

failed=0
# run PATTERN COMMAND…: the output must contain a line that matches.
run() {
    local pattern=$1
    shift
    if "$@" >"$work/out" 2>&1 </dev/null && grep -Eq "$pattern" "$work/out"; then
        echo "passed: ${*##*/}"
    else
        cat "$work/out"
        echo "FAILED: ${*##*/}"
        failed=$((failed + 1))
    fi
}

service=inference.GRPCInferenceService
zeros=$(printf '0,%.0s' $(seq 63))0
request='{"model_name":"digits","inputs":[{"name":"image","datatype":"FP32","shape":[1,1,8,8],"contents":{"fp32_contents":['$zeros']}}]}'
run "$service" "$tools/grpcurl" -plaintext "$address" list
run "rpc ModelStreamInfer \( stream" "$tools/grpcurl" -plaintext "$address" describe $service
run "raw_input_contents = 7" "$tools/grpcurl" -plaintext "$address" describe inference.ModelInferRequest
run '"live": true' "$tools/grpcurl" -plaintext "$address" $service/ServerLive
run '"dims"' "$tools/grpcurl" -plaintext -d '{"name":"digits"}' "$address" $service/ModelConfig
run '"rawOutputContents"' "$tools/grpcurl" -plaintext -d "$request" "$address" $service/ModelInfer
run '"inferResponse"' "$tools/grpcurl" -plaintext -d "$request" "$address" $service/ModelStreamInfer
run "SERVING" "$tools/grpc-health-probe" -addr "$address"
run '\[OK\] +5000 responses' "$tools/ghz" --insecure --call $service.ModelInfer -n 5000 -c 16 --connections 4 -d "$request" "$address"
kill "$server" && wait "$server" || { echo "FAILED: kelp serve ended with an error"; failed=$((failed + 1)); }
server=
[ $failed -eq 0 ]
