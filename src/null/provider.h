/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider `null`: real names, types and shapes, outputs of zeros. It computes nothing, and is
 * the one to copy when writing a provider:
 *
 *   provider.h, provider.c   the row of the registry: what the provider is called and offers
 *   opset.c                  operators and subgraphs inside of engines    (kelp/opset.h)
 *   compute.c                whole models                                 (kelp/compute.h)
 *   engine_provider.c        engine images and engines            (kelp/engine_provider.h)
 *   shape.h, shape.c         what the three share
 *
 * A new provider is a directory like this one with the files for what it offers, its module in
 * CMakeLists.txt, and its row in the list of root.c. Outside of Kelp's sources it is a
 * plug-in library with the same tables (kelp/plugin.h).
 */
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
