#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes debian/libkelp0.1.symbols: each symbol that build/release/libkelp.so exports, with the version that introduced it.
#   scripts/deb_symbols.sh [--check LIBRARY]    --check: compares the file with the symbols of a library instead
set -euo pipefail
cd "$(dirname "$0")/.."
file=debian/libkelp0.1.symbols
version=$(sed -n '1s/^kelp (\(.*\)-[^-]*) .*/\1/p' debian/changelog)
library=build/release/libkelp.so
[ "${1:-}" != --check ] || library=$2

exported() {
    # Every symbol has one version; that of the version itself is a symbol too.
    nm -D --defined-only "$library" | awk '{ sub(/@@/, "@", $3); if ($3 !~ /@/) $3 = $3 "@" $3; print $3 }' | LC_ALL=C sort -u
}
listed() { sed -n 's/^ \(.*\) [^ ]*$/\1/p' "$file" 2>/dev/null | LC_ALL=C sort -u; }

difference=$(LC_ALL=C comm -3 <(listed) <(exported))
if [ "${1:-}" = --check ]; then
    [ -n "$difference" ] || exit 0
    echo "$file and $library differ in these symbols; run make deb-symbols:" >&2
    echo "$difference" >&2
    exit 1
fi
gone=$(LC_ALL=C comm -23 <(listed) <(exported))
[ -z "$gone" ] || echo "scripts/deb_symbols.sh: removed, which needs a new soname after a release: $gone" >&2
{
    echo 'libkelp.so.0.1 libkelp0.1 #MINVER#'
    echo '* Build-Depends-Package: libkelp-dev'
    exported | while IFS= read -r symbol; do
        line=$(grep -F " $symbol " "$file" 2>/dev/null || true)
        echo "${line:- $symbol $version}"
    done
} >"$file.new"
mv "$file.new" "$file"
