#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the source package and the Debian packages in build/deb, and checks them with lintian. docs/packaging.md describes them.
#   scripts/deb.sh [--unchecked]    --unchecked: without lintian
# JOBS: how many compilers at once (all CPUs). KELP_DEB_DIR: another directory than build/deb.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${KELP_DEB_DIR:-$PWD/build/deb}
version=$(sed -n '1s/^kelp (\(.*\)-[^-]*) .*/\1/p' debian/changelog)
declared=$(sed -n 's/^project(kelp VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ "$version" = "$declared" ] || { echo "scripts/deb.sh: debian/changelog has version $version, and CMakeLists.txt $declared" >&2; exit 1; }
tree=$out/kelp-$version
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(date -d "$(dpkg-parsechangelog -S Date)" +%s)

# The source is what git tracks; its archive depends on nothing else.
rm -rf "$out"
mkdir -p "$tree"
git ls-files -z | while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done |
    tar --null --no-recursion -T - -cf - | tar -xf - -C "$tree"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go=rX --exclude="kelp-$version/debian" \
    -C "$out" -cf - "kelp-$version" | xz -T1 -6 >"$out/kelp_$version.orig.tar.xz"

log=$out/build.log
(cd "$tree" && DEB_BUILD_OPTIONS="parallel=${JOBS:-$(nproc)} ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -us -uc) >"$log" 2>&1 || {
    tail -n 60 "$log" >&2
    exit 1
}
rm -rf "$tree"
(cd "$out" && ls -l -- *.deb) | awk '{ printf "%s  %.2f MB\n", $NF, $5 / 1e6 }'
[ "${1:-}" != --unchecked ] || exit 0
# --fail-on would also count tags that lintian itself masks.
lintian --display-info --pedantic --fail-on none "$out"/*.changes | tee "$out/lintian.log"
if grep -q '^[EWIP]: ' "$out/lintian.log"; then
    exit 1
fi
