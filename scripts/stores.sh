#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs `kelp pull` against versitygw (S3) and the CNCF's distribution (an OCI registry), which Go builds. Exits 77 and prints the reason
# if Go cannot download them.
#   scripts/stores.sh       needs build/release
# KELP_BUILD: the build to use (build/release).
set -uo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${KELP_BUILD:-build/release}")
tools=$PWD/build/stores

skip() {
    echo "skipped: $1"
    exit 77
}

command -v go >/dev/null || skip "there is no Go"
scripts/deps.sh stores || exit
mkdir -p "$tools"
for program in github.com/distribution/distribution/v3/cmd/registry@v3.0.0 github.com/versity/versitygw/cmd/versitygw@v1.8.0; do
    name=$(basename "${program%@*}")
    [ -x "$tools/$name" ] || GOBIN=$tools go install "$program" >"$tools/$name.log" 2>&1 ||
        skip "Go cannot build $name: $(tail -n 1 "$tools/$name.log")"
done
exec python3 tests/packaging/test_stores.py --kelp "$build/bin/kelp" --tools "$tools"
