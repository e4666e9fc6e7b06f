/* SPDX-License-Identifier: Apache-2.0 */
/* The compute backends that are built in, and the engine provider that is NVIDIA's. */
#ifndef KELP_RUNTIME_PROVIDERS_H_
#define KELP_RUNTIME_PROVIDERS_H_

#include <kelp/compute.h>
#include <kelp/engine_provider.h>

/* ONNX models on Kelp's own engine. */
const kelp_compute_backend *kelp_cpu_compute_backend(void);
/* Real names, types and shapes, outputs of zeros: the provider to clone when writing one. */
const kelp_compute_backend *kelp_null_compute_backend(void);
/* Parts of models, which it answers with zeros. */
const kelp_opset_backend *kelp_null_opset_backend(void);
/* ONNX models on ONNX Runtime, where its library is there. */
const kelp_compute_backend *kelp_onnxruntime_compute_backend(void);
/* Parts of models there; registered with the runtime as `self`. */
const kelp_opset_backend *kelp_onnxruntime_opset_backend(void);
/* One kernel of a library as a model. */
const kelp_compute_backend *kelp_kernels_compute_backend(void);

/* Engines on NVIDIA's TensorRT, where its library is there. */
const kelp_engine_provider *kelp_tensorrt_engine_provider(void);

#endif
