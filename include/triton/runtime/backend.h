/* SPDX-License-Identifier: Apache-2.0 */
/*
 * triton/runtime/backend.h: triton::runtime::Backend, the base class of libraries of kernels in
 * C++. The class is declared in kelp/kernel.hpp. In C, this header declares nothing.
 */
#ifndef TRITON_RUNTIME_BACKEND_H_
#define TRITON_RUNTIME_BACKEND_H_

#ifdef __cplusplus
#include <kelp/kernel.hpp>
#endif

#endif
