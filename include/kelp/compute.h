/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/compute.h: the interface between whoever runs models and whoever asks for them to be run.
 *
 * A compute backend reports capabilities and loads models from artifacts. A model is initialised,
 * infers one item or a batch, is drained and reset, and reports its inputs, outputs and
 * preferences. Every provider (`cpu`, `null`, …) implements it, and the server serves it. Life
 * cycle: load → init → infer … → drain → reset → … → destroy. Threads: a backend from any thread; a
 * model from one thread at a time; fork a model for another thread: forks share weights.
 */
#ifndef KELP_COMPUTE_H_
#define KELP_COMPUTE_H_

#include <kelp/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kelp_memory_class {
    KELP_MEMORY_HOST = 0,
    KELP_MEMORY_PINNED = 1,
    KELP_MEMORY_DEVICE = 2,
    KELP_MEMORY_SHARED = 3
} kelp_memory_class;

typedef struct kelp_compute_capabilities {
    bool device_streams;
    size_t max_batch;    /* 0: no limit */
    uint64_t dtype_mask; /* bit n: kelp_dtype n */
} kelp_compute_capabilities;

typedef struct kelp_compute_metadata {
    kelp_memory_class preferred_input;
    kelp_memory_class preferred_output;
    size_t max_input_bytes;  /* 0: no limit */
    size_t max_output_bytes; /* 0: no limit */
    size_t input_count;
    const kelp_io_info *inputs;
    size_t output_count;
    const kelp_io_info *outputs;
} kelp_compute_metadata;

/* What a model is made of: a file, or bytes that are shared, not copied. */
typedef struct kelp_artifact {
    const char *path; /* or NULL */
    const void *data; /* or NULL */
    size_t size_bytes;
    const char *label;            /* for messages; may be NULL */
    void (*release)(void *userp); /* called once when nobody needs `data` any more; may be NULL */
    void *userp;
} kelp_artifact;

typedef struct kelp_compute_model kelp_compute_model;

/* One item: tensors in the order of metadata's inputs and outputs. An output whose `data` is NULL
 * is placed in the model's own memory, valid until its next call; one that has data receives it
 * there (its shape's bytes are the capacity). Shapes of outputs are set. */
typedef struct kelp_infer_item {
    const kelp_tensor *inputs;
    kelp_tensor *outputs;
    kelp_status *status; /* out, in KELP_BATCH_EACH mode; the caller frees it */
} kelp_infer_item;

typedef enum kelp_batch_mode {
    KELP_BATCH_STOP_AT_FIRST = 0, /* the call's result is the first error; earlier outputs stay
                                     written, later items are untouched */
    KELP_BATCH_EACH = 1 /* every item runs and has a status of its own; the call's result is NULL */
} kelp_batch_mode;

typedef struct kelp_compute_model_vtbl {
    uint32_t struct_size;
    kelp_status *(*init)(kelp_compute_model *model);
    kelp_status *(*infer_one)(kelp_compute_model *model, kelp_infer_item *item);
    kelp_status *(*infer_batch)(kelp_compute_model *model, kelp_infer_item *items, size_t count,
                                kelp_batch_mode mode); /* NULL: loops over infer_one */
    /* Shapes that the outputs will have for these inputs, without running: rank -1 where only
     * running tells. */
    kelp_status *(*infer_shapes)(kelp_compute_model *model, kelp_infer_item *item);
    kelp_status *(*drain)(kelp_compute_model *model);
    kelp_status *(*reset)(kelp_compute_model *model);
    const kelp_compute_metadata *(*metadata)(const kelp_compute_model *model);
    kelp_status *(*fork)(kelp_compute_model *model, kelp_compute_model **out);
    void (*destroy)(kelp_compute_model *model);
} kelp_compute_model_vtbl;

/* Implementers put this first in their model. */
struct kelp_compute_model {
    const kelp_compute_model_vtbl *vtbl;
};

#define KELP_COMPUTE_ABI_VERSION 1
typedef struct kelp_compute_backend {
    uint32_t abi_version; /* KELP_COMPUTE_ABI_VERSION */
    uint32_t struct_size;
    const char *name;
    kelp_compute_capabilities (*capabilities)(void *self);
    kelp_status *(*load_model)(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                               kelp_compute_model **out);
    void *self;
} kelp_compute_backend;

/* Names in the runtime's table; NOT_FOUND lists what there is. */
KELP_API kelp_status *kelp_compute_find(kelp_runtime *runtime, const char *name,
                                        const kelp_compute_backend **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_register(kelp_runtime *runtime,
                                            const kelp_compute_backend *backend) KELP_MUST_USE;
KELP_API size_t kelp_compute_count(const kelp_runtime *runtime);
KELP_API const kelp_compute_backend *kelp_compute_at(const kelp_runtime *runtime, size_t index);

/* Calls through the table, with its checks (dtypes, counts, limits, default batch loop). */
KELP_API kelp_status *kelp_compute_load(kelp_runtime *runtime, const char *backend_name,
                                        const kelp_artifact *artifact,
                                        kelp_compute_model **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_init(kelp_compute_model *model) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_infer_one(kelp_compute_model *model,
                                             kelp_infer_item *item) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_infer_batch(kelp_compute_model *model, kelp_infer_item *items,
                                               size_t count, kelp_batch_mode mode) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_infer_shapes(kelp_compute_model *model,
                                                kelp_infer_item *item) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_drain(kelp_compute_model *model) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_reset(kelp_compute_model *model) KELP_MUST_USE;
KELP_API const kelp_compute_metadata *kelp_compute_metadata_of(const kelp_compute_model *model);
KELP_API kelp_status *kelp_compute_fork(kelp_compute_model *model,
                                        kelp_compute_model **out) KELP_MUST_USE;
KELP_API void kelp_compute_destroy(kelp_compute_model *model);

#ifdef __cplusplus
}
#endif
#endif
