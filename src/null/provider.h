/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider `null`: the names, types and shapes are those of the model, the results are zeros.
 * It is the template for new providers:
 *
 *   provider.h, provider.c   the row of the registry: the provider's name and tables
 *   opset.c                  operators and subgraphs inside engines       (kelp/opset.h)
 *   compute.c                whole models                                 (kelp/compute.h)
 *   engine_provider.c        engine images and engines            (kelp/engine_provider.h)
 *   shape.h, shape.c         shapes of outputs, used by these three
 *
 * A new provider needs a directory like this one with some of these files, a module in
 * CMakeLists.txt, and a row in the list of root.c. Outside Kelp's sources it is a plug-in library
 * with the same tables (kelp/plugin.h).
 */
#ifndef KELP_NULL_PROVIDER_H_
#define KELP_NULL_PROVIDER_H_

#include "runtime/provider.h"

/* The row of the registry. */
extern const kelp_provider kelp_null_provider;

/* The tables of the provider. A provider may omit up to two of them. */
extern const kelp_opset_backend kelp_null_operators; /* opset.c */
extern const kelp_compute_backend kelp_null_models;  /* compute.c */
extern const kelp_engine_provider kelp_null_engines; /* engine_provider.c */

#endif
