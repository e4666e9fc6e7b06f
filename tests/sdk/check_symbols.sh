#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A backend on the kit exports its entry points and nothing else, needs nothing but Triton's functions and the C library, and
# names no folder of the machine that built it.
#   check_symbols.sh BACKENDS_FOLDER
set -euo pipefail
bad=0
for library in "$1"/*/libtriton_*.so; do
    for wrong in $(nm -D --defined-only "$library" | awk '{print $3}' | grep -Ev '^TRITONBACKEND_(Initialize|Finalize|GetBackendAttribute|ModelInitialize|ModelFinalize|ModelInstance(Initialize|Finalize|Ready|Execute))$|^KELP_BACKEND_MayBlock$|^__(asan|odr)'); do
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
