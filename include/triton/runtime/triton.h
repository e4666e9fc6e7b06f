/* SPDX-License-Identifier: Apache-2.0 */
/*
 * triton/runtime/triton.h: DLTensor, TritonContext and DeviceConfig of kernels in C++.
 * The types are declared in kelp/kernel.hpp. In C, this header declares nothing.
 */
#ifndef TRITON_RUNTIME_TRITON_H_
#define TRITON_RUNTIME_TRITON_H_

#ifdef __cplusplus
#include <kelp/kernel.hpp>
#endif

#endif
