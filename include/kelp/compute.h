/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/compute.h: the interface between whoever runs models and whoever asks for them to be run.
 *
 * A compute backend reports capabilities and loads models from artifacts. A model is initialised,
 * infers one item or a batch, is drained and reset, and reports its inputs, outputs and
 * preferences. Every provider (`cpu`, `null`, …) implements it, and the server serves it. Life
 * cycle: load → init → infer … → drain → reset → … → destroy. Threads: a backend from any thread; a
 * model from one thread at a time; fork a model for another thread: forks share weights.
 *
 * Every call passes one set of checks (counts, dtypes, limits, placement) before a provider sees
 * it, and none of them allocates once a model has run with tensors of the sizes at hand.
 *
 * Errors keep the kind that a provider gave:
 *   INVALID_ARGUMENT     the artifact is malformed; an input's dtype, shape or count is wrong
 *   OUT_OF_RANGE         a limit of the provider or model, or the room for an output, is exceeded
 *   RESOURCE_EXHAUSTED   memory, or a stream's queue, is full
 *   FAILED_PRECONDITION  before init, or beside a stream that owns the model
 *   UNIMPLEMENTED        an operator, dtype or memory that the provider does not have
 *   INTERNAL, UNAVAILABLE  the run itself failed
 * The sources of the design: the traits ComputeBackend and ComputeModel of limen-core 0.1.
 */
#ifndef KELP_COMPUTE_H_
#define KELP_COMPUTE_H_

#include <kelp/engine.h>
#include <kelp/event.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kelp_memory_class {
    KELP_MEMORY_HOST = 0,
    KELP_MEMORY_PINNED = 1,
    KELP_MEMORY_DEVICE = 2,
    KELP_MEMORY_SHARED = 3
} kelp_memory_class;

/* ---- placement: where tensors lie, and whether a model can use them there ---- */
/* One bit for each place. */
typedef uint32_t kelp_placements;
#define KELP_PLACED_HOST ((kelp_placements)1)
#define KELP_PLACED_PINNED ((kelp_placements)2)
#define KELP_PLACED_DEVICE(n) ((kelp_placements)4 << (n)) /* n from 0 to 15 */
#define KELP_PLACED_SHARED ((kelp_placements)1 << 18)

typedef enum kelp_placing {
    KELP_PLACING_ZERO_COPY = 0, /* used where it lies */
    KELP_PLACING_ADAPT = 1,     /* copied to compact host memory first, by Kelp */
    KELP_PLACING_IMPOSSIBLE = 2 /* refused with UNIMPLEMENTED */
} kelp_placing;

/* The bit of a DLPack device; 0 for one that has none. A zeroed device is the host. */
KELP_API kelp_placements kelp_placement_of(DLDevice device);
/* The one place where it is decided. `accepted` 0 means the host. What the CPU can read (host,
 * pinned, shared) is used where it lies by a model that accepts the host. Gaps between elements
 * need a copy. */
KELP_API kelp_placing kelp_compute_decide_placement(kelp_placements accepted,
                                                    const kelp_tensor *tensor);

typedef struct kelp_compute_capabilities {
    bool device_streams; /* models have `submit` */
    size_t max_batch;    /* items a call; 0: no limit */
    uint64_t dtype_mask; /* bit n: kelp_dtype n; a model with other inputs or outputs is refused */
} kelp_compute_capabilities;

typedef struct kelp_compute_metadata {
    kelp_memory_class preferred_input;
    kelp_memory_class preferred_output;
    size_t max_input_bytes;  /* of an item; 0: no limit */
    size_t max_output_bytes; /* of an item; 0: no limit */
    size_t input_count;
    const kelp_io_info *inputs;
    size_t output_count;
    const kelp_io_info *outputs;
    kelp_placements input_placements; /* accepted; 0: the host */
    kelp_placements
        output_placements; /* accepted for outputs that the caller places; 0: the host */
} kelp_compute_metadata;

/* What a model is made of: a file, or bytes that are shared, not copied. Its user zeroes it: fields
 * that are left so take the defaults, and it may grow before 1.0. */
typedef struct kelp_artifact {
    const char *path; /* or NULL */
    const void *data; /* or NULL */
    size_t size_bytes;
    const char *label;            /* for messages; may be NULL */
    void (*release)(void *userp); /* called once when nobody needs `data` any more; may be NULL */
    void *userp;
    /* Who runs its parts, as kelp_engine_options.providers; for the provider `cpu`. NULL: Kelp. */
    const char *providers;
    kelp_precision precision; /* of a model that the provider `cpu` runs; a plan has its own */
} kelp_artifact;

typedef struct kelp_compute_model kelp_compute_model;

/* One item: tensors in the order of metadata's inputs and outputs. An output whose `data` is NULL
 * is placed in the model's own memory, valid until its next call; one that has data receives it
 * there (its shape's bytes are the capacity). Shapes of outputs are set. */
typedef struct kelp_infer_item {
    const kelp_tensor *inputs;
    kelp_tensor *outputs;
    kelp_status *status; /* out, in KELP_BATCH_EACH mode and of a stream; the caller frees it */
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
    /* Begins an inference and returns; `done` is called once, from any thread, with the item's
     * result, in the order of submission. With capability device_streams; else NULL, and a stream
     * has a thread that calls infer_one. */
    kelp_status *(*submit)(kelp_compute_model *model, kelp_infer_item *item,
                           void (*done)(void *userp, kelp_status *take_status), void *userp);
    /* From now on `fn` (NULL: nobody) is asked now and then during an inference, as
     * kelp_context_set_interrupt says. May be NULL: an inference runs to its end. */
    void (*set_interrupt)(kelp_compute_model *model, kelp_interrupt_fn fn, void *userp);
} kelp_compute_model_vtbl;

/* Implementers put this first in their model, zeroed but for vtbl. */
struct kelp_compute_model {
    const kelp_compute_model_vtbl *vtbl;
    struct kelp_compute_state *state; /* Kelp's own */
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
/* The provider's own infer_batch where it has one, else a loop over infer_one. Items that fail the
 * checks are kept from the provider: in KELP_BATCH_STOP_AT_FIRST mode those before the first such
 * item still run. */
KELP_API kelp_status *kelp_compute_infer_batch(kelp_compute_model *model, kelp_infer_item *items,
                                               size_t count, kelp_batch_mode mode) KELP_MUST_USE;
/* The same for a model of one input and one output, over two arrays; INVALID_ARGUMENT when they are
 * of unequal length. Stops at the first error. */
KELP_API kelp_status *kelp_compute_infer_arrays(kelp_compute_model *model,
                                                const kelp_tensor *inputs, size_t input_count,
                                                kelp_tensor *outputs,
                                                size_t output_count) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_infer_shapes(kelp_compute_model *model,
                                                kelp_infer_item *item) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_drain(kelp_compute_model *model) KELP_MUST_USE;
KELP_API kelp_status *kelp_compute_reset(kelp_compute_model *model) KELP_MUST_USE;
KELP_API const kelp_compute_metadata *kelp_compute_metadata_of(const kelp_compute_model *model);
/* Who is asked during an inference whether to give it up: true ends it with CANCELLED, where the
 * provider can (`cpu`: kelp/engine.h, kelp_context_cancel); else it runs to its end. Forks have
 * none. */
KELP_API void kelp_compute_set_interrupt(kelp_compute_model *model, kelp_interrupt_fn fn,
                                         void *userp);
KELP_API kelp_status *kelp_compute_fork(kelp_compute_model *model,
                                        kelp_compute_model **out) KELP_MUST_USE;
KELP_API void kelp_compute_destroy(kelp_compute_model *model);

/* ---- asynchronous: streams and events ---- */

/* Runs what is submitted, in that order, beside the caller. A stream owns its model until it is
 * destroyed: infer on the model is refused, drain waits for the stream. Fork the model for a second
 * stream. */
typedef struct kelp_compute_stream kelp_compute_stream;
/* `capacity`: submissions that may wait; their room is made here. */
KELP_API kelp_status *kelp_compute_stream_create(kelp_compute_model *model, size_t capacity,
                                                 kelp_compute_stream **out) KELP_MUST_USE;
/* Waits until all is done. The model is its owner's again. */
KELP_API void kelp_compute_stream_destroy(kelp_compute_stream *stream);
/* `item`, its tensors and `event` (may be NULL) stay valid until it is done; then item->status says
 * how it went. Outputs placed by the model are valid until its next inference. An item that fails
 * the checks is refused here. RESOURCE_EXHAUSTED when `capacity` submissions wait. One thread at a
 * time. */
KELP_API kelp_status *kelp_compute_submit(kelp_compute_stream *stream, kelp_infer_item *item,
                                          kelp_event *event) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
