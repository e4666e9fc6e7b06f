#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Extracts NVIDIA's server (2.51.0) from the Python wheel nvidia-pytriton 0.7.0 into build/nvidia, for tests that compare Kelp with it.
# Nothing is installed. x86-64 with glibc 2.35 or newer; downloads about 55 MB.
#   scripts/nvidia.sh     KELP_VENV: Python of the tests (build/venv)
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/nvidia
[ -x "$folder/pytriton/tritonserver/bin/tritonserver" ] && exit 0
python=${KELP_VENV:-build/venv}/bin/python
[ -x "$python" ] || python=python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip download -q --disable-pip-version-check --no-input --no-deps --only-binary :all: --dest "$work" nvidia-pytriton==0.7.0
mkdir -p "$folder"
"$python" -m zipfile -e "$work"/nvidia_pytriton-0.7.0-*.whl "$folder"
chmod +x "$folder/pytriton/tritonserver/bin/tritonserver"
echo "NVIDIA's server is in $folder"
