#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that a backend built on the SDK exports only its entry points, imports only Triton's functions and the C library, and
# contains no library path of the machine that built it.
#   check_symbols.sh BACKENDS_DIRECTORY
set -euo pipefail
bad=0
for library in "$1"/*/libtriton_*.so; do
    for wrong in $(nm -D --defined-only "$library" | awk '{print $3}' | grep -Ev '^TRITONBACKEND_(Initialize|Finalize|GetBackendAttribute|ModelInitialize|ModelFinalize|ModelInstance(Initialize|Finalize|Ready|Execute))$|^KELP_BACKEND_MayBlock$|^TRITONBACKEND_ModelBatch|^__(asan|odr)'); do
        echo "$library exports $wrong"
        bad=1
    done
    for wrong in $(nm -D --undefined-only "$library" | awk '$1 == "U" {print $2}' | grep -Ev '^TRITON(BACKEND|SERVER)_|@GLIBC|^__(asan|ubsan|tsan)'); do
        echo "$library needs $wrong"
        bad=1
    done
    if readelf -d "$library" | grep -E 'R(UN)?PATH'; then
        echo "$library has a path to libraries"
        bad=1
    fi
done
exit $bad
