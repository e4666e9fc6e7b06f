/* SPDX-License-Identifier: Apache-2.0 */
/* The provider `onnxruntime`: runs models and subgraphs on ONNX Runtime, if its library is
 * installed. */
#ifndef KELP_ONNXRUNTIME_PROVIDER_H_
#define KELP_ONNXRUNTIME_PROVIDER_H_

#include "runtime/provider.h"

/* The row of the registry. */
extern const kelp_provider kelp_onnxruntime_provider;

/* The tables of the provider. */
extern const kelp_opset_backend kelp_onnxruntime_operators; /* opset.c */
extern const kelp_compute_backend kelp_onnxruntime_models;  /* compute.c */

/* Loads ONNX Runtime's library, which stays loaded. Fails if the library is missing or too old. */
kelp_status *kelp_onnxruntime_check_library(void) KELP_MUST_USE;

#endif
