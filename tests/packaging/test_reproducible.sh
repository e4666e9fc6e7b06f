#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages again, in another directory, time zone, locale and umask, and compares them with those of build/deb byte by
# byte; builds the container image twice and compares its digests.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d /tmp/kelp-reproducible-with-a-longer-path.XXXXXX)
trap 'rm -rf "$work"' EXIT
ls build/deb/*.deb >/dev/null || { echo "run make deb first" >&2; exit 1; }

(
    umask 0077
    export TZ=Asia/Tokyo LC_ALL=C LANG=C KELP_DEB_DIR=$work/deb
    CCACHE_DISABLE=1 scripts/deb.sh --unchecked
)
differ=0
for path in build/deb/*.deb build/deb/*.orig.tar.xz; do
    cmp "$path" "$work/deb/${path##*/}" || differ=1
done
[ $differ = 0 ] || { echo "packages differ" >&2; exit 1; }
echo "$(ls build/deb/*.deb | wc -l) packages and the archive of the source are equal"

export SOURCE_DATE_EPOCH=1700000000
scripts/image.sh
first=$(sha256sum <build/image/oci/index.json)
rm -rf build/image
(umask 0077 && TZ=Asia/Tokyo scripts/image.sh)
[ "$first" = "$(sha256sum <build/image/oci/index.json)" ] || { echo "images differ" >&2; exit 1; }
echo "the images are equal"
