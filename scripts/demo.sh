#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Serves examples/models, sends each model the request in examples/requests, and prints the responses.
#   scripts/demo.sh [stay]     stay: keeps serving in the foreground until Ctrl-C
# HTTP_PORT: port to listen on (8000; a free one when that is taken). KELP: the program (build/release/bin/kelp).
set -euo pipefail
cd "$(dirname "$0")/.."
kelp=${KELP:-build/release/bin/kelp}
port=${HTTP_PORT:-8000}
output=$(mktemp)
server=
finish() {
    trap - EXIT INT TERM
    if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then
        kill -TERM "$server"
        wait "$server" || true
    fi
    rm -f "$output"
}
trap finish EXIT
trap 'exit 0' INT TERM

# A port that somebody listens on already is left alone.
if [ -z "${HTTP_PORT:-}" ] && (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null; then
    echo "port $port is taken; taking a free one"
    port=0
fi
"$kelp" serve --model-repository examples/models --http-port "$port" >"$output" &
server=$!

url=
for _ in $(seq 1 300); do
    url=$(sed -n 's/^HTTP  \(http:[^ ]*\).*/\1/p' "$output")
    [ -n "$url" ] && curl -sf -o /dev/null "$url/v2/health/ready" && break
    kill -0 "$server" 2>/dev/null || { echo "kelp serve ended before it was ready" >&2; exit 1; }
    sleep 0.1
done
[ -n "$url" ] || { echo "kelp serve is not ready after 30 s" >&2; exit 1; }
cat "$output"

for request in examples/requests/*.json; do
    case "$request" in *.expected.json) continue ;; esac
    model=$(basename "$request" .json)
    echo
    echo "\$ curl -s $url/v2/models/$model/infer -d @$request"
    if ! curl -sS --fail-with-body "$url/v2/models/$model/infer" -d "@$request"; then
        echo
        echo "model '$model' did not answer" >&2
        exit 1
    fi
    echo
done

if [ "${1:-}" = stay ]; then
    echo
    echo "Serving examples/models at $url; Ctrl-C stops it."
    wait "$server"
fi
