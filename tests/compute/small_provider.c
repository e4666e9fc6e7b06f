/* SPDX-License-Identifier: Apache-2.0 */
/* See small_provider.h. */
#include "compute/small_provider.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct small_model {
    kelp_compute_model base;
    const char *name;
    kelp_compute_metadata metadata;
    kelp_io_info io[2];
    float buffer[64]; /* for outputs that the caller does not bind */
    kelp_string strings[64];
} small_model;

test_small_counts test_small;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static bool open_gate;

static void set_gate(bool open) {
    pthread_mutex_lock(&gate);
    open_gate = open;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&gate);
}

void test_small_open(void) {
    set_gate(true);
}

void test_small_close(void) {
    set_gate(false);
}

static kelp_status *run_strings(small_model *model, kelp_infer_item *item) {
    static char text[64]; /* overwritten by the next inference */
    kelp_tensor *out = &item->outputs[0];
    int64_t count = kelp_tensor_elements(&item->inputs[0]);
    void *to = out->data ? out->data : model->strings;
    KELP_TRY(kelp_tensor_init(out, KELP_STRING, 1, item->inputs[0].shape, to));
    for (int64_t i = 0; i < count; i++) {
        text[i] = ((const kelp_string *)item->inputs[0].data)[i].data[0];
        ((kelp_string *)to)[i] = (kelp_string){&text[i], 1};
    }
    return NULL;
}

static void wait_at_gate(void) {
    pthread_mutex_lock(&gate);
    while (!open_gate)
        pthread_cond_wait(&opened, &gate);
    pthread_mutex_unlock(&gate);
}

static kelp_status *run(small_model *model, kelp_infer_item *item) {
    const kelp_tensor *in = &item->inputs[0];
    kelp_tensor *out = &item->outputs[0];
    const float *from = in->data;
    int64_t count = kelp_tensor_elements(in);
    if (strcmp(model->name, "gate") == 0)
        wait_at_gate();
    test_small.last_input = from;
    if (in->dtype == KELP_STRING)
        return run_strings(model, item);
    for (int64_t i = 0; i < count; i++)
        if (from[i] == -1)
            return KELP_ERROR(KELP_UNAVAILABLE, "an element is -1");
    void *to = out->data ? out->data : model->buffer;
    if (strcmp(model->name, "sum") == 0) {
        KELP_TRY(kelp_tensor_init(out, KELP_F32, 1, (const int64_t[]){1}, to));
        *(float *)to = 0;
        for (int64_t i = 0; i < count; i++)
            *(float *)to += from[i];
        return NULL;
    }
    KELP_TRY(kelp_tensor_init(out, KELP_F32, in->rank, in->shape, to));
    for (int64_t i = 0; i < count; i++)
        ((float *)to)[i] = 2 * from[i];
    return NULL;
}

static kelp_status *small_init(kelp_compute_model *base) {
    (void)base;
    test_small.inits++;
    return NULL;
}

static kelp_status *small_one(kelp_compute_model *base, kelp_infer_item *item) {
    test_small.ones++;
    return run((small_model *)base, item);
}

static kelp_status *small_batch(kelp_compute_model *base, kelp_infer_item *items, size_t count,
                                kelp_batch_mode mode) {
    test_small.batches++;
    test_small.longest = count > test_small.longest ? count : test_small.longest;
    for (size_t i = 0; i < count; i++) {
        test_small.items++;
        kelp_status *status = run((small_model *)base, &items[i]);
        if (status != NULL && mode == KELP_BATCH_STOP_AT_FIRST)
            return status;
        items[i].status = status;
    }
    return NULL;
}

static kelp_status *small_submit(kelp_compute_model *base, kelp_infer_item *item,
                                 void (*done)(void *userp, kelp_status *take_status), void *userp) {
    done(userp, run((small_model *)base, item));
    return NULL;
}

static kelp_status *small_drain(kelp_compute_model *base) {
    (void)base;
    test_small.drains++;
    return NULL;
}

static kelp_status *small_reset(kelp_compute_model *base) {
    (void)base;
    test_small.resets++;
    return NULL;
}

static const kelp_compute_metadata *small_metadata(const kelp_compute_model *base) {
    return &((const small_model *)base)->metadata;
}

static kelp_status *new_model(const char *name, kelp_compute_model **out);

static kelp_status *small_fork(kelp_compute_model *base, kelp_compute_model **out) {
    test_small.forks++;
    return new_model(((small_model *)base)->name, out);
}

static void small_destroy(kelp_compute_model *base) {
    test_small.models--;
    free(base);
}

#define SMALL_MODEL                                                                             \
    .struct_size = sizeof(kelp_compute_model_vtbl), .init = small_init, .infer_one = small_one, \
    .drain = small_drain, .reset = small_reset, .metadata = small_metadata, .fork = small_fork, \
    .destroy = small_destroy
static const kelp_compute_model_vtbl plain = {SMALL_MODEL};
static const kelp_compute_model_vtbl batch = {SMALL_MODEL, .infer_batch = small_batch};
static const kelp_compute_model_vtbl submit = {SMALL_MODEL, .submit = small_submit};

static const kelp_compute_model_vtbl *vtbl_of(const char *name) {
    if (strcmp(name, "batch") == 0 || strcmp(name, "narrow") == 0)
        return &batch;
    return strcmp(name, "submit") == 0 ? &submit : &plain;
}

static kelp_status *new_model(const char *name, kelp_compute_model **out) {
    small_model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return kelp_status_oom();
    model->name = name;
    model->base.vtbl = vtbl_of(name);
    model->io[0] = (kelp_io_info){.name = "x", .dtype = KELP_F32, .rank = 1, .shape = {-1}};
    model->io[1] = (kelp_io_info){.name = "y", .dtype = KELP_F32, .rank = 1, .shape = {-1}};
    if (strcmp(name, "types") == 0)
        model->io[1].dtype = KELP_F64;
    for (int i = 0; i < 2; i++) {
        if (strcmp(name, "rows") == 0)
            model->io[i].rank = 2, model->io[i].shape[1] = -1;
        if (strcmp(name, "strings") == 0)
            model->io[i].dtype = KELP_STRING;
    }
    if (strcmp(name, "fixed") == 0)
        model->io[1].shape[0] = 3;
    model->metadata = (kelp_compute_metadata){
        .input_count = 1, .inputs = &model->io[0], .output_count = 1, .outputs = &model->io[1]};
    if (strcmp(name, "narrow") == 0)
        model->metadata.max_input_bytes = 16;
    test_small.models++;
    *out = &model->base;
    return NULL;
}

static kelp_status *small_load(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                               kelp_compute_model **out) {
    (void)runtime;
    if (artifact->release != NULL)
        artifact->release(artifact->userp);
    return new_model(self, out);
}

static kelp_compute_capabilities small_capabilities(void *self) {
    return (kelp_compute_capabilities){.device_streams = strcmp(self, "submit") == 0,
                                       .max_batch = strcmp(self, "narrow") == 0 ? 2 : 0,
                                       .dtype_mask = (uint64_t)1 << KELP_F32 | (uint64_t)1
                                                                                   << KELP_STRING};
}

const kelp_compute_backend *test_small_backend(const char *name) {
    static kelp_compute_backend backends[8];
    for (size_t i = 0; i < 8; i++) {
        if (backends[i].name != NULL && strcmp(backends[i].name, name) != 0)
            continue;
        backends[i] = (kelp_compute_backend){.abi_version = KELP_COMPUTE_ABI_VERSION,
                                             .struct_size = sizeof(kelp_compute_backend),
                                             .name = name,
                                             .capabilities = small_capabilities,
                                             .load_model = small_load,
                                             .self = (void *)(uintptr_t)name};
        return &backends[i];
    }
    return NULL;
}
