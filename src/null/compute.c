/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null provider for models: the inputs and outputs are those of the model, the results are
 * zeros. It logs this when a model is loaded. To write a provider of models, copy this file and
 * replace null_infer_one.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "runtime/runtime.h"
#include "engine/artifact.h"
#include "null/provider.h"
#include "null/shape.h"

#include <string.h>

typedef struct null_model {
    kelp_compute_model base;
    kelp_runtime *runtime;
    kelp_graph *graph; /* owns the names */
    kelp_io_info *io;  /* inputs, then outputs */
    void **memory;     /* by output: used if the caller binds no memory */
    size_t *memory_bytes;
    kelp_compute_metadata metadata;
} null_model;

static const kelp_compute_model_vtbl model_vtbl;

static kelp_status *new_model(kelp_runtime *runtime, kelp_graph *graph, kelp_compute_model **out) {
    kelp_allocator allocator = kelp_runtime_allocator(runtime);
    const kelp_block *main = kelp_graph_main(graph);
    size_t inputs = kelp_block_input_count(main), outputs = kelp_block_output_count(main);
    null_model *model = NULL;
    KELP_TRY(KELP_NEW(allocator, null_model, &model));
    model->base.vtbl = &model_vtbl;
    model->runtime = kelp_runtime_retain(runtime);
    model->graph = kelp_graph_retain(graph);
    model->metadata.input_count = inputs;
    model->metadata.output_count = outputs;
    kelp_status *status =
        kelp_alloc_zero(allocator, inputs + outputs, sizeof *model->io, (void **)&model->io);
    if (status == NULL)
        status =
            kelp_alloc_zero(allocator, outputs, sizeof *model->memory, (void **)&model->memory);
    if (status == NULL)
        status = kelp_alloc_zero(allocator, outputs, sizeof *model->memory_bytes,
                                 (void **)&model->memory_bytes);
    if (status != NULL) {
        model_vtbl.destroy(&model->base);
        return status;
    }
    KELP_ASSERT(model->metadata.input_count + model->metadata.output_count == inputs + outputs);
    for (size_t i = 0; i < inputs; i++)
        kelp_null_describe(kelp_block_input(main, i), &model->io[i]);
    for (size_t i = 0; i < outputs; i++)
        kelp_null_describe(kelp_block_output(main, i), &model->io[inputs + i]);
    model->metadata.inputs = model->io;
    model->metadata.outputs = model->io + inputs;
    *out = &model->base;
    return NULL;
}

static kelp_status *null_init(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

static kelp_status *output_shape(const null_model *model, const kelp_infer_item *item, size_t index,
                                 kelp_tensor *out) {
    const kelp_compute_metadata *m = &model->metadata;
    return kelp_null_output(&m->outputs[index], m->inputs, item->inputs, m->input_count, out);
}

static kelp_status *null_infer_shapes(kelp_compute_model *base, kelp_infer_item *item) {
    const null_model *model = (const null_model *)base;
    for (size_t i = 0; i < model->metadata.output_count; i++)
        KELP_TRY(output_shape(model, item, i, &item->outputs[i]));
    return NULL;
}

static kelp_status *null_infer_one(kelp_compute_model *base, kelp_infer_item *item) {
    null_model *model = (null_model *)base;
    kelp_allocator allocator = kelp_runtime_allocator(model->runtime);
    for (size_t i = 0; i < model->metadata.output_count; i++) {
        kelp_tensor result;
        KELP_TRY(output_shape(model, item, i, &result));
        size_t bytes = kelp_tensor_bytes(&result);
        result.data = item->outputs[i].data;
        if (result.data != NULL && kelp_tensor_bytes(&item->outputs[i]) < bytes)
            return KELP_ERROR(KELP_OUT_OF_RANGE,
                              "the memory for output '%s' is too small: expected %zu bytes, found "
                              "%zu",
                              model->metadata.outputs[i].name, bytes,
                              kelp_tensor_bytes(&item->outputs[i]));
        if (result.data == NULL && model->memory_bytes[i] < bytes) {
            kelp_free(allocator, model->memory[i], model->memory_bytes[i]);
            model->memory[i] = NULL;
            model->memory_bytes[i] = 0;
            KELP_TRY(kelp_alloc(allocator, bytes, &model->memory[i]));
            model->memory_bytes[i] = bytes;
        }
        if (result.data == NULL)
            result.data = model->memory[i];
        if (bytes > 0)
            memset(result.data, 0, bytes); /* strings become empty */
        item->outputs[i] = result;
    }
    return NULL;
}

static kelp_status *null_drain(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

static kelp_status *null_reset(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

static const kelp_compute_metadata *null_metadata(const kelp_compute_model *base) {
    return &((const null_model *)base)->metadata;
}

static kelp_status *null_fork(kelp_compute_model *base, kelp_compute_model **out) {
    const null_model *model = (const null_model *)base;
    return new_model(model->runtime, model->graph, out);
}

static void null_destroy(kelp_compute_model *base) {
    null_model *model = (null_model *)base;
    kelp_runtime *runtime = model->runtime;
    kelp_allocator allocator = kelp_runtime_allocator(runtime);
    size_t inputs = model->metadata.input_count, outputs = model->metadata.output_count;
    for (size_t i = 0; model->memory != NULL && model->memory_bytes != NULL && i < outputs; i++)
        kelp_free(allocator, model->memory[i], model->memory_bytes[i]);
    kelp_free(allocator, model->memory, outputs * sizeof *model->memory);
    kelp_free(allocator, model->memory_bytes, outputs * sizeof *model->memory_bytes);
    kelp_free(allocator, model->io, (inputs + outputs) * sizeof *model->io);
    kelp_graph_release(model->graph);
    kelp_free(allocator, model, sizeof *model);
    kelp_runtime_release(runtime);
}

static const kelp_compute_model_vtbl model_vtbl = {
    .struct_size = sizeof(kelp_compute_model_vtbl),
    .init = null_init,
    .infer_one = null_infer_one,
    .infer_shapes = null_infer_shapes,
    .drain = null_drain,
    .reset = null_reset,
    .metadata = null_metadata,
    .fork = null_fork,
    .destroy = null_destroy,
};

static kelp_compute_capabilities null_capabilities(void *self) {
    (void)self;
    return (kelp_compute_capabilities){.dtype_mask = ~(uint64_t)1};
}

static kelp_status *null_load(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                              kelp_compute_model **out) {
    (void)self;
    kelp_graph *graph = NULL;
    KELP_TRY(kelp_artifact_load_graph(runtime, artifact, &graph));
    kelp_status *status = new_model(runtime, graph, out);
    if (status == NULL)
        KELP_LOGF(&runtime->logger, KELP_LOG_WARNING,
                  "model '%s' is loaded by the null provider: it computes nothing, every output "
                  "is zeros",
                  kelp_graph_get_info(graph).label);
    kelp_graph_release(graph);
    return status;
}

const kelp_compute_backend kelp_null_models = {
    .abi_version = KELP_COMPUTE_ABI_VERSION,
    .struct_size = sizeof(kelp_compute_backend),
    .name = "null",
    .capabilities = null_capabilities,
    .load_model = null_load,
};
