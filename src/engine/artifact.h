/* SPDX-License-Identifier: Apache-2.0 */
/* What providers of ONNX models share: from an artifact to a graph or an engine. */
#ifndef KELP_ENGINE_ARTIFACT_H_
#define KELP_ENGINE_ARTIFACT_H_

#include <kelp/compute.h>

/* Takes the artifact's bytes over: `release` is called when the graph goes, also when this fails.
 */
kelp_status *kelp_artifact_load_graph(kelp_runtime *runtime, const kelp_artifact *artifact,
                                      kelp_graph **out) KELP_MUST_USE;

/* The same for an engine: of an ONNX model, or a plan of any engine provider. */
kelp_status *kelp_artifact_load_engine(kelp_runtime *runtime, const kelp_artifact *artifact,
                                       kelp_engine **out) KELP_MUST_USE;

#endif
