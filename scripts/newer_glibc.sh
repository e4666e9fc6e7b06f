#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian 13's C and C++ libraries (glibc 2.41) into build/newer_glibc and prints their directory, for programs that need a
# newer glibc than the system's: DIRECTORY/ld-linux-x86-64.so.2 --library-path DIRECTORY:… PROGRAM. Nothing is installed.
# Exits 77 and prints the reason if they cannot be downloaded.
set -uo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build/newer_glibc
libraries=$folder/usr/lib/x86_64-linux-gnu
log=$PWD/build/newer_glibc.log

# From the mirror of this system's packages.
bring() {
    local apt=$folder.apt uri package
    command -v apt-get >/dev/null || { echo "there is no apt-get"; return 1; }
    uri=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
    [ -n "$uri" ] || { echo "the packages of this system are not Debian's"; return 1; }
    rm -rf "$apt" "$folder"
    mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,sources,packages}
    printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' "$uri" \
        /usr/share/keyrings/debian-archive-keyring.gpg >"$apt/sources/trixie.sources"
    local options=(-q -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$apt/sources"
        -o "Dir::State=$apt/state" -o "Dir::State::status=/dev/null" -o "Dir::Cache=$apt/cache")
    apt-get "${options[@]}" update || return 1
    (cd "$apt/packages" && apt-get "${options[@]}" download libc6 libstdc++6 libgcc-s1) || return 1
    for package in "$apt"/packages/*.deb; do
        dpkg-deb -x "$package" "$folder.new" || return 1
    done
    mv "$folder.new" "$folder"
    rm -rf "$apt"
}

mkdir -p build
if [ ! -d "$libraries" ]; then
    rm -rf "$folder.new"
    bring >"$log" 2>&1 || {
        echo "apt cannot bring Debian 13's: $(tail -n 1 "$log")"
        exit 77
    }
fi
echo "$libraries"
