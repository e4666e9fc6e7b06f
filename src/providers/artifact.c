/* SPDX-License-Identifier: Apache-2.0 */
/* From an artifact to a graph. */
#include "providers/artifact.h"

kelp_status *kelp_artifact_load_graph(kelp_runtime *runtime, const kelp_artifact *artifact,
                                      kelp_graph **out) {
    kelp_allocator allocator = kelp_runtime_allocator(runtime);
    if (artifact->data != NULL)
        return kelp_graph_load_bytes(allocator, artifact->data, artifact->size_bytes,
                                     artifact->label ? artifact->label : "(bytes)", NULL,
                                     artifact->release, artifact->userp, NULL, out);
    kelp_status *status = kelp_graph_load_file(allocator, artifact->path, NULL, out);
    if (artifact->release != NULL)
        artifact->release(artifact->userp);
    return status;
}
