/* SPDX-License-Identifier: Apache-2.0 */
/* The provider `cpu`: Kelp's own kernels and engine. */
#ifndef KELP_CPU_PROVIDER_H_
#define KELP_CPU_PROVIDER_H_

#include "runtime/provider.h"

/* The row of the registry. */
extern const kelp_provider kelp_cpu_provider;

/* The interfaces that it implements. */
extern const kelp_opset_backend kelp_cpu_operators; /* operators.c */
extern const kelp_compute_backend kelp_cpu_models;  /* compute.c */
extern const kelp_engine_provider kelp_cpu_engines; /* engine_provider.c */

#endif
