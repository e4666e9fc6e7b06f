/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plug-in library with the compute provider `tally`, which counts calls in `tally_counted`. Its
 * models double float32 [-1, 2] and cannot be forked. The file of a model contains the kind of
 * memory that the model prefers: "host", "pinned" or "device". Devices are simulated: their memory
 * is host memory.
 */
#include "server/provider_plugin.h"

#include <kelp/compute.h>
#include <kelp/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

KELP_API extern tally_counts tally_counted;
tally_counts tally_counted;

typedef struct tally {
    kelp_compute_model base;
    bool undrained;
    float memory[64];
    kelp_io_info io[2];
    kelp_compute_metadata metadata;
} tally;

static kelp_status *tally_init(kelp_compute_model *base) {
    ((tally *)base)->undrained = true;
    tally_counted.inits++;
    return NULL;
}

static kelp_status *tally_shapes(kelp_compute_model *base, kelp_infer_item *item) {
    const kelp_tensor *x = &item->inputs[0];
    (void)base;
    return kelp_tensor_init(&item->outputs[0], KELP_F32, 2, x->shape, NULL);
}

static kelp_status *tally_infer(kelp_compute_model *base, kelp_infer_item *item) {
    const kelp_tensor *x = &item->inputs[0];
    kelp_tensor y, *out = &item->outputs[0];
    KELP_TRY(kelp_tensor_init(&y, KELP_F32, 2, x->shape, out->data));
    if (y.data == NULL)
        y.data = ((tally *)base)->memory;
    else
        y.device = out->device;
    for (int64_t i = 0; i < kelp_tensor_elements(x); i++)
        ((float *)y.data)[i] = 2 * ((const float *)x->data)[i];
    tally_counted.runs++;
    tally_counted.rows = x->shape[0];
    tally_counted.input_device = (int)x->device.device_type;
    tally_counted.output_device = (int)y.device.device_type;
    *out = y;
    return NULL;
}

static kelp_status *tally_drain(kelp_compute_model *base) {
    ((tally *)base)->undrained = false;
    tally_counted.drains++;
    return NULL;
}

static kelp_status *tally_reset(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

static const kelp_compute_metadata *tally_metadata(const kelp_compute_model *base) {
    return &((const tally *)base)->metadata;
}

static void tally_destroy(kelp_compute_model *base) {
    tally_counted.destroys++;
    tally_counted.undrained += ((tally *)base)->undrained;
    free(base);
}

static const kelp_compute_model_vtbl vtbl = {.struct_size = sizeof vtbl,
                                             .init = tally_init,
                                             .infer_one = tally_infer,
                                             .infer_shapes = tally_shapes,
                                             .drain = tally_drain,
                                             .reset = tally_reset,
                                             .metadata = tally_metadata,
                                             .destroy = tally_destroy};

static void prefer(kelp_compute_metadata *metadata, const char *kind) {
    kelp_memory_class preferred = KELP_MEMORY_HOST;
    if (strcmp(kind, "pinned") == 0) {
        preferred = KELP_MEMORY_PINNED;
    } else if (strcmp(kind, "device") == 0) {
        preferred = KELP_MEMORY_DEVICE;
        metadata->input_placements = KELP_PLACED_DEVICE(1) | KELP_PLACED_HOST;
        metadata->output_placements = metadata->input_placements;
    }
    metadata->preferred_input = metadata->preferred_output = preferred;
}

static kelp_status *tally_load(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                               kelp_compute_model **out) {
    char kind[16] = "";
    (void)self, (void)runtime;
    FILE *file = fopen(artifact->path, "r");
    if (file == NULL)
        return KELP_ERROR(KELP_NOT_FOUND, "cannot open '%s'", artifact->path);
    kind[fread(kind, 1, sizeof kind - 1, file)] = '\0';
    fclose(file);
    tally *model = calloc(1, sizeof *model);
    if (model == NULL)
        return kelp_status_oom();
    model->base.vtbl = &vtbl;
    for (int i = 0; i < 2; i++)
        model->io[i] = (kelp_io_info){
            .name = i == 0 ? "x" : "y", .dtype = KELP_F32, .rank = 2, .shape = {-1, 2}};
    model->metadata = (kelp_compute_metadata){
        .input_count = 1, .inputs = &model->io[0], .output_count = 1, .outputs = &model->io[1]};
    prefer(&model->metadata, kind);
    tally_counted.loads++;
    *out = &model->base;
    return NULL;
}

static kelp_compute_capabilities tally_capabilities(void *self) {
    (void)self;
    return (kelp_compute_capabilities){.dtype_mask = (uint64_t)1 << KELP_F32};
}

const kelp_plugin *kelp_plugin_query(uint32_t host_abi_version) {
    static const kelp_compute_backend backend = {.abi_version = KELP_COMPUTE_ABI_VERSION,
                                                 .struct_size = sizeof backend,
                                                 .name = "tally",
                                                 .capabilities = tally_capabilities,
                                                 .load_model = tally_load};
    static const kelp_plugin plugin = {.magic = KELP_PLUGIN_MAGIC,
                                       .abi_version = KELP_PLUGIN_ABI_VERSION,
                                       .struct_size = sizeof plugin,
                                       .name = "tally",
                                       .compute = &backend};
    return host_abi_version == KELP_PLUGIN_ABI_VERSION ? &plugin : NULL;
}
