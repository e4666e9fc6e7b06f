/* SPDX-License-Identifier: Apache-2.0 */
/* The provider `null`, the one to copy when writing a provider: real names, types and shapes,
 * outputs of zeros. It computes nothing. */
#ifndef KELP_NULL_PROVIDER_H_
#define KELP_NULL_PROVIDER_H_

#include "runtime/provider.h"

/* The row of the registry. */
extern const kelp_provider kelp_null_provider;

/* What it offers. A provider may offer any of the three. */
extern const kelp_opset_backend kelp_null_operators; /* opset.c */
extern const kelp_compute_backend kelp_null_models;  /* compute.c */
extern const kelp_engine_provider kelp_null_engines; /* engine_provider.c */

#endif
