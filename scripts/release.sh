#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files of a release in build/release-VERSION: the source, wheels, Debian packages, the container image, its bill of materials,
# notices and checksums. docs/packaging.md describes them.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(kelp VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
out=$PWD/build/release-$version
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(date -d "$(dpkg-parsechangelog -S Date)" +%s)
[ -z "$(git status --porcelain)" ] || { echo "scripts/release.sh: there are changes that are not committed: $(git status --short | head)" >&2; exit 1; }

rm -rf "$out"
mkdir -p "$out"
scripts/wheel.sh
scripts/deb.sh
scripts/image.sh
venv=build/venv-sbom
if ! cmp -s tools/requirements-sbom.txt "$venv/requirements-sbom.txt"; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check --no-input -r tools/requirements-sbom.txt
    cp tools/requirements-sbom.txt "$venv/"
fi
"$venv/bin/python" scripts/sbom.py build/image/oci "$out/kelp-$version-image.cdx.json"
cp build/deb/kelp_"$version".orig.tar.xz "$out/kelp-$version.tar.xz"
cp build/wheel/kelp_runtime-"$version"* "$out/"
find build/deb -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*' -exec cp {} "$out/" \;
cp THIRD-PARTY-NOTICES.txt "$out/"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C build/image/oci -cf "$out/kelp-$version-image.oci.tar" .
(cd "$out" && sha256sum -- * >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
ls -l "$out" | awk 'NR > 1 { printf "%s  %.2f MB\n", $NF, $5 / 1e6 }'
