/* SPDX-License-Identifier: Apache-2.0 */
/* Models of the provider `cpu`: an ONNX model on Kelp's engine, or an engine image of any provider.
 * A model is one context; forks are further contexts of the same engine. A model has the tensor
 * outputs of its engine: sequences, optionals and maps are left out. */
#include "base/alloc.h"
#include "base/log.h"
#include "engine/artifact.h"
#include "engine/engine.h"
#include "cpu/provider.h"
#include "runtime/runtime.h"

typedef struct cpu_model {
    kelp_compute_model base;
    kelp_allocator allocator;
    kelp_engine *engine;
    kelp_context *context; /* created by init */
    kelp_compute_metadata metadata;
    kelp_io_info *outputs; /* those that are tensors */
    size_t *output_index;  /* their indices in the engine */
    size_t engine_output_count;
    kelp_interrupt_fn interrupt; /* polled by the context */
    void *interrupt_userp;
} cpu_model;

static const kelp_compute_model_vtbl model_vtbl;

static void free_model(cpu_model *model) {
    kelp_allocator allocator = model->allocator;
    kelp_context_destroy(model->context);
    kelp_engine_release(model->engine);
    kelp_free(allocator, model->outputs, model->engine_output_count * sizeof *model->outputs);
    kelp_free(allocator, model->output_index,
              model->engine_output_count * sizeof *model->output_index);
    kelp_free(allocator, model, sizeof *model);
}

/* Collects the outputs that are tensors. */
static kelp_status *collect_outputs(cpu_model *model) {
    size_t count = kelp_engine_output_count(model->engine), kept = 0;
    KELP_TRY(
        kelp_alloc_zero(model->allocator, count, sizeof *model->outputs, (void **)&model->outputs));
    kelp_status *status = kelp_alloc_zero(model->allocator, count, sizeof *model->output_index,
                                          (void **)&model->output_index);
    if (status != NULL) {
        kelp_free(model->allocator, model->outputs, count * sizeof *model->outputs);
        model->outputs = NULL;
        return status;
    }
    model->engine_output_count = count;
    for (size_t i = 0; i < count; i++) {
        const kelp_io_info *info = kelp_engine_output(model->engine, i);
        if (info->dtype == KELP_LIST)
            continue;
        model->outputs[kept] = *info;
        model->output_index[kept++] = i;
    }
    model->metadata.outputs = model->outputs;
    model->metadata.output_count = kept;
    if (kept == 0 && count > 0)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "no output of the model is a tensor: '%s' is a sequence, an optional or "
                          "a map",
                          kelp_engine_output(model->engine, 0)->name);
    return NULL;
}

static kelp_status *new_model(kelp_allocator allocator, kelp_engine *engine, cpu_model **out) {
    cpu_model *model = NULL;
    KELP_TRY(KELP_NEW(allocator, cpu_model, &model));
    model->base.vtbl = &model_vtbl;
    model->allocator = allocator;
    model->engine = kelp_engine_retain(engine);
    model->metadata = (kelp_compute_metadata){
        .preferred_input = KELP_MEMORY_HOST,
        .preferred_output = KELP_MEMORY_HOST,
        .input_count = kelp_engine_input_count(engine),
        .inputs = kelp_engine_input(engine, 0),
    };
    kelp_status *status = collect_outputs(model);
    if (status != NULL) {
        free_model(model);
        return status;
    }
    *out = model;
    return NULL;
}

/* Logs the outputs that are left out. */
static void log_left_out(const kelp_logger *logger, const char *label, const kelp_engine *engine) {
    for (size_t i = 0; i < kelp_engine_output_count(engine); i++) {
        const kelp_io_info *info = kelp_engine_output(engine, i);
        if (info->dtype == KELP_LIST)
            KELP_LOGF(logger, KELP_LOG_WARNING,
                      "%s: output '%s' is left out: it is a sequence, an optional or a map, and "
                      "only tensors are served",
                      label, info->name);
    }
}

static kelp_status *new_context(cpu_model *model, kelp_context **out) {
    KELP_TRY(kelp_context_create(model->engine, out));
    kelp_context_warm_up(*out); /* here, not in the first inference */
    kelp_context_set_interrupt(*out, model->interrupt, model->interrupt_userp);
    return NULL;
}

static kelp_status *cpu_init(kelp_compute_model *base) {
    cpu_model *model = (cpu_model *)base;
    return model->context != NULL ? NULL : new_context(model, &model->context);
}

static void cpu_set_interrupt(kelp_compute_model *base, kelp_interrupt_fn fn, void *userp) {
    cpu_model *model = (cpu_model *)base;
    model->interrupt = fn;
    model->interrupt_userp = userp;
    if (model->context != NULL)
        kelp_context_set_interrupt(model->context, fn, userp);
}

static kelp_status *bind_inputs(cpu_model *model, const kelp_infer_item *item) {
    if (model->context == NULL)
        return KELP_ERROR(KELP_FAILED_PRECONDITION, "the model is used before init");
    for (size_t i = 0; i < model->metadata.input_count; i++)
        KELP_TRY(kelp_context_set_input(model->context, i, &item->inputs[i]));
    return NULL;
}

static kelp_status *cpu_infer_one(kelp_compute_model *base, kelp_infer_item *item) {
    cpu_model *model = (cpu_model *)base;
    KELP_TRY(bind_inputs(model, item));
    for (size_t i = 0; i < model->metadata.output_count; i++) {
        kelp_tensor *output = &item->outputs[i];
        size_t capacity = output->data ? kelp_tensor_bytes(output) : 0;
        KELP_TRY(kelp_context_set_output(model->context, model->output_index[i], output->data,
                                         capacity));
    }
    KELP_TRY(kelp_context_invoke(model->context));
    for (size_t i = 0; i < model->metadata.output_count; i++)
        item->outputs[i] = *kelp_context_output(model->context, model->output_index[i]);
    return NULL;
}

static kelp_status *cpu_infer_shapes(kelp_compute_model *base, kelp_infer_item *item) {
    cpu_model *model = (cpu_model *)base;
    KELP_TRY(bind_inputs(model, item));
    KELP_TRY(kelp_context_prepare(model->context));
    for (size_t i = 0; i < model->metadata.output_count; i++) {
        item->outputs[i] = *kelp_context_output(model->context, model->output_index[i]);
        item->outputs[i].data = NULL;
    }
    return NULL;
}

/* Runs are synchronous: nothing is in flight. */
static kelp_status *cpu_drain(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

/* Frees schedules and workspace; the next inference schedules again. */
static kelp_status *cpu_reset(kelp_compute_model *base) {
    cpu_model *model = (cpu_model *)base;
    kelp_context *fresh = NULL;
    KELP_TRY(new_context(model, &fresh));
    kelp_context_destroy(model->context);
    model->context = fresh;
    return NULL;
}

static const kelp_compute_metadata *cpu_metadata(const kelp_compute_model *base) {
    return &((const cpu_model *)base)->metadata;
}

static kelp_status *cpu_fork(kelp_compute_model *base, kelp_compute_model **out) {
    cpu_model *model = (cpu_model *)base, *fork = NULL;
    KELP_TRY(new_model(model->allocator, model->engine, &fork));
    *out = &fork->base;
    return NULL;
}

static void cpu_destroy(kelp_compute_model *base) {
    free_model((cpu_model *)base);
}

static const kelp_compute_model_vtbl model_vtbl = {
    .struct_size = sizeof(kelp_compute_model_vtbl),
    .init = cpu_init,
    .infer_one = cpu_infer_one,
    .infer_shapes = cpu_infer_shapes,
    .drain = cpu_drain,
    .reset = cpu_reset,
    .metadata = cpu_metadata,
    .fork = cpu_fork,
    .destroy = cpu_destroy,
    .set_interrupt = cpu_set_interrupt,
};

static kelp_compute_capabilities cpu_capabilities(void *self) {
    (void)self;
    uint64_t every_type = 0;
    for (int dtype = KELP_F32; dtype < KELP_DTYPE_COUNT; dtype++)
        every_type |= (uint64_t)1 << dtype;
    return (kelp_compute_capabilities){.dtype_mask = every_type};
}

static kelp_status *cpu_load(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                             kelp_compute_model **out) {
    (void)self;
    kelp_engine *engine = NULL;
    cpu_model *model = NULL;
    KELP_TRY(kelp_artifact_load_engine(runtime, artifact, &engine));
    kelp_status *status = new_model(kelp_runtime_allocator(runtime), engine, &model);
    if (status == NULL) {
        log_left_out(&runtime->logger, artifact->label != NULL ? artifact->label : "the model",
                     engine);
        *out = &model->base;
    }
    kelp_engine_release(engine);
    return status;
}

const kelp_compute_backend kelp_cpu_models = {
    .abi_version = KELP_COMPUTE_ABI_VERSION,
    .struct_size = sizeof(kelp_compute_backend),
    .name = "cpu",
    .capabilities = cpu_capabilities,
    .load_model = cpu_load,
};
