#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the container image in build/image/oci, an OCI layout with an index of the architectures. Needs buildah and no daemon.
# docs/deployment.md describes the image.
#   scripts/image.sh [x86_64|aarch64…]    this machine's architecture by default; the files are those of build/release and build/arm64
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/image
version=$(sed -n 's/^project(kelp VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
store=(--root "$out/storage" --runroot "$out/run" --storage-driver vfs)
# Without a daemon, and without namespaces of its own if the machine does not permit them.
builder() { BUILDAH_ISOLATION=chroot buildah "${store[@]}" "$@"; }

# What is loaded at run time: TLS, downloads, image formats and regular expressions. Those that are missing here are left out. TIFF is not
# there: libtiff needs as much as all others together.
optional="libssl.so.3 libcurl.so.4 libpcre2-8.so.0 libturbojpeg.so.0 libpng16.so.16 libwebp.so.7 libopenjp2.so.7"

# The path of a library of an architecture.
find_library() {
    local directory
    for directory in "$2" /usr/lib/"$3" /lib/"$3"; do
        if [ -e "$directory/$1" ]; then
            echo "$directory/$1"
            return
        fi
    done
    return 1
}

# Copies the copyright file of the package that has installed a file.
add_copyright() {
    local path package
    path=$(realpath "$1")
    package=$(dpkg-query -S "$path" "${path#/usr}" 2>/dev/null | head -n 1 | cut -d: -f1) || true
    [ -n "$package" ] || { echo "scripts/image.sh: no package of Debian has installed $path, so that its licence is unknown" >&2; return 1; }
    mkdir -p "$2/usr/share/doc/$package"
    cp -L "/usr/share/doc/$package/copyright" "$2/usr/share/doc/$package/"
}

# Copies a library and what it needs into the root.
add_library() {
    local name=$1 root=$2 triplet=$3 path needed
    [ ! -e "$root/usr/lib/$triplet/$name" ] || return 0
    [ ! -e "$root/usr/lib/$name" ] || return 0
    path=$(find_library "$name" "$root/usr/lib" "$triplet") || { echo "scripts/image.sh: $name is not installed for $triplet" >&2; return 1; }
    cp -L "$path" "$root/usr/lib/$triplet/$name"
    add_copyright "$path" "$root"
    for needed in $(readelf -d "$path" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        add_library "$needed" "$root" "$triplet"
    done
}

# The root file system of an architecture.
fill_root() {
    local arch=$1 root=$2 build=$3 triplet=$1-linux-gnu file needed name
    rm -rf "$root"
    mkdir -p "$root"/usr/{bin,lib/"$triplet"} "$root"/{etc/ssl/certs,models,tmp,run}
    ln -s usr/bin usr/lib "$root/"
    DESTDIR=$out/stage-$arch cmake --install "$build" --prefix /usr --component kelp >/dev/null
    local strip=strip
    [ "$arch" = "$(uname -m)" ] || strip=$triplet-strip
    cp -P "$out/stage-$arch"/usr/bin/{kelp,tritonserver} "$root/usr/bin/"
    cp "$out/stage-$arch"/usr/lib/libkelp.so.?.? "$out/stage-$arch"/usr/lib/libtritonserver.so "$root/usr/lib/"
    cp LICENSE THIRD-PARTY-NOTICES.txt "$root/"
    "$strip" "$root/usr/bin/kelp" "$root"/usr/lib/lib*.so*
    rm -rf "$out/stage-$arch"
    for file in "$root/usr/bin/kelp" "$root"/usr/lib/lib*.so*; do
        for needed in $(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
            add_library "$needed" "$root" "$triplet"
        done
    done
    for name in $optional; do
        if find_library "$name" "$root/usr/lib" "$triplet" >/dev/null; then
            add_library "$name" "$root" "$triplet"
        else
            echo "scripts/image.sh: without $name, which is not installed for $triplet"
        fi
    done
    file=$(readelf -l "$root/usr/bin/kelp" | sed -n 's/.*interpreter: \(.*\)]/\1/p')
    mkdir -p "$root/usr/${file%/*}"
    [ "${file%/*}" = /lib ] || ln -s "usr${file%/*}" "$root${file%/*}"
    [ -e "$root$file" ] || ln -s "/usr/lib/$triplet/${file##*/}" "$root/usr$file"
    echo 'kelp:x:65532:65532:kelp:/:/usr/bin/kelp' >"$root/etc/passwd"
    echo 'kelp:x:65532:' >"$root/etc/group"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || echo "scripts/image.sh: without certificates, which are not installed"
    find "$root" -exec touch -h -d "@$epoch" {} +
    chmod -R u+rwX,go=rX "$root"
    chmod 1777 "$root/tmp"
}

# Makes the image of an architecture and prints its name.
make_image() {
    local arch=$1 platform=amd64 build=build/release container
    [ "$arch" = x86_64 ] || { platform=arm64; build=build/arm64; }
    [ -e "$build/bin/kelp" ] || { echo "scripts/image.sh: $build is not built" >&2; return 1; }
    fill_root "$arch" "$out/root-$arch" "$build" >&2
    container=$(builder from --arch "$platform" scratch)
    builder copy --quiet "$container" "$out/root-$arch" / >&2
    builder config --arch "$platform" --os linux --user 65532:65532 --entrypoint '["/usr/bin/kelp"]' \
        --cmd '["serve","--model-repository","/models","--http-address","0.0.0.0","--log-format","json"]' \
        --port 8000/tcp --stop-signal SIGTERM --workingdir / --env PATH=/usr/bin \
        --label org.opencontainers.image.title=kelp --label "org.opencontainers.image.version=$version" \
        --label org.opencontainers.image.licenses=Apache-2.0 \
        --label "org.opencontainers.image.description=Inference server for ONNX models" "$container"
    builder commit --quiet --format oci --timestamp "$epoch" "$container" "kelp-$platform:$version" >/dev/null
    builder rm "$container" >/dev/null
    echo "kelp-$platform:$version"
}

mkdir -p "$out"
rm -rf "$out/oci" "$out/storage" "$out/run"
[ $# -gt 0 ] || set -- "$(uname -m)"
builder manifest create kelp:index >/dev/null
for arch; do
    builder manifest add kelp:index "containers-storage:[vfs@$out/storage+$out/run]localhost/$(make_image "$arch")" >/dev/null
done
builder manifest push --quiet --all kelp:index "oci:$out/oci:$version"
rm -rf "$out"/root-* "$out/run"
chmod -R u+w "$out/storage" && rm -rf "$out/storage"
du -cb "$out"/oci/blobs/sha256/* | awk 'END { printf "build/image/oci  %.1f MB\n", $1 / 1e6 }'
