#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of a call of a native kernel on 4 floats from Python: Kelp, ctypes, cffi, apache-tvm-ffi and a numpy ufunc, interleaved in one process. Prints
medians. Peers that are not installed are left out.

    python_calls.py --kernels FOLDER [--rounds N] [--calls N] [--check]

FOLDER contains libtoolbox.so and libcustom_add_backend.so (build/release/tests/kernel/libraries). The kernel adds two arrays into a third. All peers
receive numpy arrays, except those named `address`, which receive addresses that were computed before. --check: exits with 1 unless Kelp takes less
time than ctypes, and at most 1.25 times the time of tvm-ffi.
"""
import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

import kelp.runtime as rt
import numpy as np

SOURCE = r"""
#include <stdint.h>
void add(float *y, const float *a, const float *b, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i]; }
"""
TVM_SOURCE = r"""
#include <stdint.h>
#include <tvm/ffi/c_api.h>
int __tvm_ffi_add(void *self, const TVMFFIAny *args, int32_t count, TVMFFIAny *result) {
    DLTensor *t[3];
    for (int i = 0; i < 3; i++)
        t[i] = args[i].type_index == kTVMFFITensor ? (DLTensor *)((char *)args[i].v_obj + sizeof(TVMFFIObject)) : (DLTensor *)args[i].v_ptr;
    float *y = (float *)t[0]->data; const float *a = (const float *)t[1]->data, *b = (const float *)t[2]->data;
    for (int64_t i = 0; i < t[0]->shape[0]; i++) y[i] = a[i] + b[i];
    (void)self; (void)count; (void)result;
    return 0;
}
"""


def compiled(folder, name, source, *flags):
    path = os.path.join(folder, name)
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write(source)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path + ".so", path + ".c", *flags], check=True)
    return path + ".so"


def ways(folder, kernels, a, b, y):
    """Name to a function without arguments that makes one call."""
    runtime = rt.Runtime(kernels)
    add, plain = runtime.get_backend("toolbox").add, runtime.get_backend("custom_add").add
    found = {"kelp, checked": lambda: add(y, a, b), "kelp, untyped": lambda: plain(y, a, b, 4), "numpy ufunc": lambda: np.add(a, b, y)}
    given = [rt.DLTensor(x) for x in (y, a, b)]
    found["kelp, DLTensors"] = lambda: add(*given)
    library = compiled(folder, "peer", SOURCE)
    function = ctypes.CDLL(library).add
    pointer = np.ctypeslib.ndpointer(np.float32)
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
    addresses = [x.ctypes.data for x in (y, a, b)]
    found["ctypes, addresses"] = lambda: function(*addresses, 4)
    checked = ctypes.CDLL(library).add
    checked = type(function)(("add", ctypes.CDLL(library)))
    checked.argtypes = [pointer] * 3 + [ctypes.c_int64]
    found["ctypes"] = lambda: checked(y, a, b, 4)
    found["ctypes, .ctypes.data"] = lambda: function(y.ctypes.data, a.ctypes.data, b.ctypes.data, 4)
    try:
        import cffi
        ffi = cffi.FFI()
        ffi.cdef("void add(float *y, const float *a, const float *b, int64_t n);")
        peer = ffi.dlopen(library).add
        pointers = [ffi.cast("float *", address) for address in addresses]
        found["cffi, addresses"] = lambda: peer(*pointers, 4)
        found["cffi"] = lambda: peer(ffi.from_buffer("float[]", y), ffi.from_buffer("float[]", a), ffi.from_buffer("float[]", b), 4)
    except ImportError:
        print("cffi is not installed")
    try:
        import tvm_ffi
        include = tvm_ffi.libinfo.find_include_path()
        dlpack = tvm_ffi.libinfo.find_dlpack_include_path()
        library = compiled(folder, "tvm", TVM_SOURCE, "-I" + include, "-I" + dlpack, tvm_ffi.libinfo.find_libtvm_ffi())
        module = tvm_ffi.load_module(library)
        theirs = module["add"] if hasattr(module, "__getitem__") else module.add
        tensors = [tvm_ffi.from_dlpack(x) for x in (y, a, b)]
        found["tvm-ffi"] = lambda: theirs(y, a, b)
        found["tvm-ffi, its tensors"] = lambda: theirs(*tensors)
    except ImportError:
        print("apache-tvm-ffi is not installed")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    a, b, y = np.arange(4, dtype="f4"), np.ones(4, "f4"), np.zeros(4, "f4")
    with tempfile.TemporaryDirectory() as folder:
        found = ways(folder, options.kernels, a, b, y)
        for name, call in found.items():
            y[:] = -1
            call()
            assert y.tolist() == [1, 2, 3, 4], name
        times = {name: [] for name in found}
        for _ in range(options.rounds):
            for name, call in found.items():
                begin = time.perf_counter_ns()
                for _ in range(options.calls):
                    call()
                times[name].append((time.perf_counter_ns() - begin) / options.calls)
    medians = {name: statistics.median(kept) for name, kept in times.items()}
    print(f"Python {sys.version.split()[0]}, numpy {np.__version__}; 4 floats, median of {options.rounds} rounds of {options.calls} calls, "
          "a Python function around each")
    for name, ns in sorted(medians.items(), key=lambda item: item[1]):
        print(f"{name:<24}{ns:>8.0f} ns")
    ours = medians["kelp, checked"]
    ratios = {peer: ours / min(ns for name, ns in medians.items() if name.startswith(peer))
              for peer in ("ctypes", "cffi", "tvm-ffi", "numpy") if any(name.startswith(peer) for name in medians)}
    print("kelp, checked, beside the fastest of each: " + ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in ratios.items()))
    return 1 if options.check and (ratios["ctypes"] >= 1 or ratios.get("tvm-ffi", 1) > 1.25) else 0


if __name__ == "__main__":
    sys.exit(main())
