#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Executes the notebooks of examples/notebooks. Exits with 77 if their packages cannot be installed.
#   scripts/notebooks.sh [--write] [NAME …]      --write: keeps the outputs in the notebooks
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/venv-notebooks
requirements=tools/requirements-notebooks.txt
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
    if ! python3 -m venv "$venv" || ! "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input \
        -r "$requirements"; then
        echo "the packages of the notebooks come from a package registry, which cannot be reached"
        exit 77
    fi
    cp "$requirements" "$venv/requirements.txt"
fi
if [ "${KELP_TORCH:-}" = 1 ]; then
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input torch==2.15.0
fi
exec "$venv/bin/python" tests/notebooks/run.py "$@"
