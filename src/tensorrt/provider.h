/* SPDX-License-Identifier: Apache-2.0 */
/* The provider `tensorrt`: engines on NVIDIA's TensorRT, if its library is installed. */
#ifndef KELP_TENSORRT_PROVIDER_H_
#define KELP_TENSORRT_PROVIDER_H_

#include "runtime/provider.h"
#include "runtime/runtime.h"
#include "tensorrt/call.h"

/* The row of the registry. */
extern const kelp_provider kelp_tensorrt_provider;

/* Returns NVIDIA's library, which is opened once and never closed. Fails with UNAVAILABLE and a
 * list of the tried paths. Thread-safe. */
kelp_status *trt_shared_library(const trt_library **out) KELP_MUST_USE;
/* Creates a log that also forwards messages to the runtime's logger. */
kelp_status *trt_runtime_log(kelp_runtime *runtime, trt_log **out) KELP_MUST_USE;

/* See kelp_engine_provider: load (engine.c). */
kelp_status *trt_engine_load(void *self, kelp_runtime *runtime, const void *data, size_t size_bytes,
                             const char *label, void (*release)(void *userp), void *userp,
                             kelp_engine **out) KELP_MUST_USE;
/* build and supports (build.c) */
kelp_status *trt_engine_build(void *self, kelp_runtime *runtime, const kelp_network *network,
                              kelp_builder_config *config, kelp_blob **out_plan) KELP_MUST_USE;
kelp_status *trt_engine_supports(void *self, kelp_runtime *runtime,
                                 const kelp_network *network) KELP_MUST_USE;

#endif
