#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation site in build/site. Warnings are errors. Exits with 77 if the generator cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/venv-site
mermaid=mermaid@11.17.2

if ! cmp -s tools/requirements-site.txt "$venv/requirements-site.txt"; then
    if ! python3 -m venv "$venv" || ! "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input \
        -r tools/requirements-site.txt; then
        echo "the generator of the site comes from a package registry, which cannot be reached"
        exit 77
    fi
    cp tools/requirements-site.txt "$venv/"
fi

# The script that draws diagrams is part of the site: a reader needs no other host.
script=build/site-assets/$mermaid/mermaid.min.js
if [ ! -e "$script" ]; then
    mkdir -p "$(dirname "$script")"
    if ! archive=$(cd build/site-assets && npm pack --silent "$mermaid"); then
        echo "Mermaid comes from a package registry, which cannot be reached"
        exit 77
    fi
    tar -xzf "build/site-assets/$archive" -C build/site-assets package/dist/mermaid.min.js package/LICENSE
    mv build/site-assets/package/dist/mermaid.min.js "$script"
    mv build/site-assets/package/LICENSE "$(dirname "$script")/LICENSE"
    rm -r "build/site-assets/$archive" build/site-assets/package
fi

KELP_MERMAID=$script NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true "$venv/bin/mkdocs" build --quiet --strict
echo "kelp: build/site/index.html"
