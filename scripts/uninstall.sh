#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Removes what `make install` installed in a prefix: the files of share/doc/kelp/installed-files.txt, and the directories that are empty
# then. Other files stay.
#   scripts/uninstall.sh PREFIX
set -euo pipefail
prefix=${1%/}
list=$prefix/share/doc/kelp/installed-files.txt
if [ ! -f "$list" ]; then
    echo "make uninstall: '$prefix' has no share/doc/kelp/installed-files.txt: Kelp is not installed there by 'make install'" >&2
    exit 1
fi
directories=()
count=0
while IFS= read -r file; do
    case "/$file/" in
    *//* | */../*)
        echo "make uninstall: '$list' is damaged: expected paths inside the prefix, found '$file'" >&2
        exit 1
        ;;
    esac
    rm -f -- "$prefix/$file"
    count=$((count + 1))
    while file=$(dirname "$file") && [ "$file" != . ]; do
        directories+=("$file")
    done
done < <(cat "$list")
# The deepest first; those with other files stay.
printf '%s\n' "${directories[@]}" | sort -ru | while IFS= read -r directory; do
    rmdir -- "$prefix/$directory" 2>/dev/null || true
done
echo "removed $count files from $prefix"
