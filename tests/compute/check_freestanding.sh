#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the embedded model without a hosted C library, and checks that it needs no symbol of any library.
#
#     check_freestanding.sh CC SOURCE-DIRECTORY BUILD-DIRECTORY
set -eu
object=$3/freestanding.o
"$1" -std=c17 -O2 -Wall -Wextra -Wpedantic -Werror -ffreestanding -nostdlib -fno-stack-protector -I"$2/include" -I"$2/examples/embedded" \
    -c "$2/tests/compute/freestanding.c" -o "$object"
if [ -n "$(nm -u "$object")" ]; then
    echo "the embedded model needs symbols of a library:"
    nm -u "$object"
    exit 1
fi
