/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu opset backend: kernels of ai.onnx and of the fused operators that the engine's passes
 * make. */
#ifndef KELP_CPU_OPS_OPS_H_
#define KELP_CPU_OPS_OPS_H_

#include <kelp/opset.h>

/* The backend's table. Register it with `self` = the kelp_opset_registry it is registered with: If
 * and Loop look up the operators of their subgraphs there. */
const kelp_opset_backend *kelp_cpu_opset_backend(void);

#endif
