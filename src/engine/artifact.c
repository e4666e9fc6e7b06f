/* SPDX-License-Identifier: Apache-2.0 */
/* Loading an artifact as a graph or an engine. */
#include "engine/artifact.h"

#include "engine/engine.h"
#include "graph/load.h"
#include "runtime/runtime.h"

#include <string.h>

/* Returns the guard of the artifact's files, or NULL if they are only mapped. */
static kelp_file_guard *guard_of(const kelp_runtime *runtime, const kelp_artifact *artifact) {
    return artifact->keep_contents ? runtime->files : NULL;
}

kelp_status *kelp_artifact_load_graph(kelp_runtime *runtime, const kelp_artifact *artifact,
                                      kelp_graph **out) {
    kelp_allocator allocator = kelp_runtime_allocator(runtime);
    kelp_graph_limits limits = kelp_runtime_graph_limits(runtime);
    if (artifact->data != NULL)
        return kelp_graph_load_bytes(allocator, artifact->data, artifact->size_bytes,
                                     artifact->label != NULL ? artifact->label : "(bytes)", NULL,
                                     artifact->release, artifact->userp, &limits, out);
    kelp_status *status = kelp_graph_load_guarded(allocator, guard_of(runtime, artifact),
                                                  artifact->path, &limits, out);
    if (artifact->release != NULL)
        artifact->release(artifact->userp);
    return status;
}

/* Returns true for an engine image, and for files named .plan, so that their errors are reported.
 */
static bool is_plan(const kelp_runtime *runtime, const kelp_artifact *artifact) {
    size_t length = artifact->data == NULL ? strlen(artifact->path) : 0;
    if (length > 5 && strcmp(artifact->path + length - 5, ".plan") == 0)
        return true;
    return artifact->data != NULL
               ? kelp_plan_is_known(runtime, artifact->data, artifact->size_bytes)
               : kelp_plan_is_file(runtime, artifact->path);
}

static kelp_status *load_plan(kelp_runtime *runtime, const kelp_artifact *artifact,
                              kelp_engine **out) {
    if (artifact->data != NULL)
        return kelp_engine_load(runtime, artifact->data, artifact->size_bytes, artifact->label,
                                artifact->release, artifact->userp, out);
    kelp_status *status =
        kelp_engine_load_guarded(runtime, guard_of(runtime, artifact), artifact->path, out);
    if (artifact->release != NULL)
        artifact->release(artifact->userp);
    return status;
}

kelp_status *kelp_artifact_load_engine(kelp_runtime *runtime, const kelp_artifact *artifact,
                                       kelp_engine **out) {
    kelp_graph *graph = NULL;
    if (is_plan(runtime, artifact))
        return load_plan(runtime, artifact, out);
    kelp_engine_options options = {.struct_size = sizeof options,
                                   .providers = artifact->providers,
                                   .precision = artifact->precision};
    KELP_TRY(kelp_artifact_load_graph(runtime, artifact, &graph));
    kelp_status *status = kelp_engine_create(runtime, graph, &options, out);
    kelp_graph_release(graph);
    return status;
}
