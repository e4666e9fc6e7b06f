/* SPDX-License-Identifier: Apache-2.0 */
/* The provider `onnxruntime`: models and subgraphs on ONNX Runtime, where its library is installed.
 */
#ifndef KELP_ONNXRUNTIME_PROVIDER_H_
#define KELP_ONNXRUNTIME_PROVIDER_H_

#include "runtime/provider.h"

/* The row of the registry. */
extern const kelp_provider kelp_onnxruntime_provider;

/* What it offers. */
extern const kelp_opset_backend kelp_onnxruntime_operators; /* opset.c */
extern const kelp_compute_backend kelp_onnxruntime_models;  /* compute.c */

/* Loads ONNX Runtime's library, which stays loaded. Fails if it is missing or too old. */
kelp_status *kelp_onnxruntime_check_library(void) KELP_MUST_USE;

#endif
