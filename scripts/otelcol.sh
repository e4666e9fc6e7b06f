#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exports traces of `kelp serve` to a collector of OpenTelemetry, whose modules Go downloads. Exits 77 and prints the reason
# if Go cannot download them.
#   scripts/otelcol.sh       needs build/release
# KELP_BUILD: the build to use (build/release). KELP_VENV: Python of the tests (build/venv).
set -uo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${KELP_BUILD:-build/release}")
python=${KELP_VENV:-$PWD/build/venv}/bin/python
tools=$PWD/build/otelcol
version=v0.160.0

skip() {
    echo "skipped: $1"
    exit 77
}

command -v go >/dev/null || skip "there is no Go"
mkdir -p "$tools"
if [ ! -x "$tools/otelcol/otelcol" ]; then
    GOBIN=$tools go install "go.opentelemetry.io/collector/cmd/builder@$version" >"$tools/builder.log" 2>&1 ||
        skip "Go cannot bring the collector's builder: $(tail -n 1 "$tools/builder.log")"
    cat >"$tools/manifest.yaml" <<END
dist:
  name: otelcol
  output_path: $tools/otelcol
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $version
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter $version
END
    "$tools/builder" --config "$tools/manifest.yaml" >"$tools/otelcol.log" 2>&1 ||
        skip "Go cannot build the collector: $(grep -v '^$' "$tools/otelcol.log" | tail -n 1)"
fi
exec "$python" tests/frontends/test_otelcol.py --kelp "$build/bin/kelp" --collector "$tools/otelcol/otelcol"
