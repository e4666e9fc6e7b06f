/* SPDX-License-Identifier: Apache-2.0 */
/* Loading an artifact as a graph or an engine, for providers of ONNX models. */
#ifndef KELP_ENGINE_ARTIFACT_H_
#define KELP_ENGINE_ARTIFACT_H_

#include <kelp/compute.h>

/* Loads a graph and takes ownership of the artifact's bytes, even on failure: `release` is called
 * when the graph is destroyed. */
kelp_status *kelp_artifact_load_graph(kelp_runtime *runtime, const kelp_artifact *artifact,
                                      kelp_graph **out) KELP_MUST_USE;

/* Loads an engine from an ONNX model or an engine image of any provider. Ownership is as above. */
kelp_status *kelp_artifact_load_engine(kelp_runtime *runtime, const kelp_artifact *artifact,
                                       kelp_engine **out) KELP_MUST_USE;

#endif
