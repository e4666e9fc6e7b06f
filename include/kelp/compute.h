/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/compute.h: runs models through a uniform interface.
 *
 * A compute provider (kelp_compute_backend) loads models from artifacts and runs them. Every
 * provider (`cpu`, `null`, `onnxruntime`, …) implements this interface; the server and embedding
 * applications use it.
 *
 * Life cycle of a model: load → init → infer … → drain → reset → … → destroy. Kelp checks each call
 * (element types, limits, memory placement) before it calls the provider, copies inputs that are
 * not compact, and joins the items of a batch. After a model has run with tensors of given sizes, a
 * call with the same sizes does not allocate.
 *
 * Unless stated otherwise:
 *   - Several threads may look up a runtime's providers at once; register providers before use.
 *   - A model is used by one thread at a time. For another thread, create a fork, which shares the
 *     weights (kelp_compute_fork). A provider need not support forks; its models then run on one
 *     thread at a time, and a server serves them with one instance.
 *   - Returned pointers are borrowed and valid as long as the object that returned them.
 *
 * Errors:
 *   INVALID_ARGUMENT      the artifact is malformed, or an input has the wrong type or shape
 *   OUT_OF_RANGE          a limit or the capacity of an output is exceeded
 *   RESOURCE_EXHAUSTED    memory or a stream's queue is exhausted
 *   FAILED_PRECONDITION   the model is not initialized, or a stream owns it
 *   UNIMPLEMENTED         an operator, type or memory location is not supported
 *   INTERNAL, UNAVAILABLE the inference itself failed
 *   CANCELLED             the interrupt callback returned true
 *
 * Source: traits ComputeBackend and ComputeModel of limen-core 0.1.
 */
#ifndef KELP_COMPUTE_H_
#define KELP_COMPUTE_H_

#include <kelp/engine.h>
#include <kelp/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Memory placement ---- */

/* Set of memory locations, one bit each. */
typedef uint32_t kelp_placements;

/* Host memory. */
#define KELP_PLACED_HOST ((kelp_placements)1)

/* Page-locked host memory. */
#define KELP_PLACED_PINNED ((kelp_placements)2)

/* Memory of device `n`, 0 to 15. */
#define KELP_PLACED_DEVICE(n) ((kelp_placements)4 << (n))

/* Memory that host and device both address. */
#define KELP_PLACED_SHARED ((kelp_placements)1 << 18)

/* How a tensor can be passed to a model. */
typedef enum kelp_placing {
    KELP_PLACING_ZERO_COPY = 0, /* used in place */
    KELP_PLACING_ADAPT = 1,     /* copied to compact host memory first */
    KELP_PLACING_IMPOSSIBLE = 2 /* rejected with UNIMPLEMENTED */
} kelp_placing;

/* Returns the bit of a DLPack device, or 0 for a device without one. A zeroed device is host
 * memory. Thread-safe. */
KELP_API kelp_placements kelp_placement_of(DLDevice device);

/* Returns how a tensor can be passed to a model that accepts `accepted` (0 means host memory). A
 * model that accepts host memory also uses pinned and shared memory in place, and accepts a copy of
 * a tensor there that is not compact, unless its elements are smaller than a byte. Other tensors
 * are rejected. Thread-safe. */
KELP_API kelp_placing kelp_compute_decide_placement(kelp_placements accepted,
                                                    const kelp_tensor *tensor);

/* ---- Provider interface ---- */

/* Capabilities of a provider. */
typedef struct kelp_compute_capabilities {
    bool device_streams; /* models may implement `submit` */
    size_t max_batch;    /* maximum number of items per call; 0: unlimited */
    /* bit n: kelp_dtype n is supported; models whose inputs or outputs have others fail to load */
    uint64_t dtype_mask;
} kelp_compute_capabilities;

/* Description of a model. */
typedef struct kelp_compute_metadata {
    /* Preferred memory of inputs and outputs. A server requests its buffers there, if it can. */
    kelp_memory_class preferred_input;
    kelp_memory_class preferred_output; /* see preferred_input */
    size_t max_input_bytes; /* maximum total size of the inputs of an item; 0: unlimited */
    /* maximum total size of the outputs of an item; 0: unlimited */
    size_t max_output_bytes;
    size_t input_count;               /* number of inputs */
    const kelp_io_info *inputs;       /* descriptions of the inputs */
    size_t output_count;              /* number of outputs */
    const kelp_io_info *outputs;      /* descriptions of the outputs */
    kelp_placements input_placements; /* accepted locations of inputs; 0: host memory */
    /* accepted locations of outputs that the caller provides; 0: host memory */
    kelp_placements output_placements;
} kelp_compute_metadata;

/* Source of a model: a file or bytes. Zero the struct before setting fields, because later versions
 * may add some. */
typedef struct kelp_artifact {
    const char *path;  /* file name, or NULL if `data` is set */
    const void *data;  /* bytes, borrowed and shared by forks; NULL if `path` is set */
    size_t size_bytes; /* size of `data` */
    const char *label; /* name in error messages; may be NULL */
    /* called once when `data` is no longer needed, also if loading fails; may be NULL */
    void (*release)(void *userp);
    void *userp; /* passed to `release` */
    /* for the provider `cpu`: see kelp_engine_options.providers; may be NULL */
    const char *providers;
    kelp_precision precision; /* for the provider `cpu`; an engine image has its own precision */
    /* True if the files at `path`, with external data, may be modified in place while the model
     * exists: the model keeps their contents. A process that opens such a file for writing waits
     * until Kelp has copied it to memory. If the file system grants no leases or the file belongs
     * to another user, it is copied when it is loaded. False: the files are mapped and must not be
     * modified, only replaced. Implemented by `cpu` and `null`. */
    bool keep_contents;
    /* The first dimension of every input and output is a batch dimension, and the rows of a batch
     * are independent of each other. Then kelp_compute_infer_batch joins items. Forks inherit it.
     */
    bool batched;
} kelp_artifact;

/* A loaded model. */
typedef struct kelp_compute_model kelp_compute_model;

/* One inference. Inputs and outputs are in the order of the metadata. If the caller passes an
 * output with NULL `data`, the call sets `data` to memory of the model that stays valid until the
 * model's next call. Otherwise, the call writes the elements to `data`; the shape that the caller
 * passes gives the capacity. The call sets the types and shapes of all outputs. */
typedef struct kelp_infer_item {
    const kelp_tensor *inputs; /* inputs, borrowed during the call */
    kelp_tensor *outputs;      /* outputs, read and written by the call */
    /* Result of this item with KELP_BATCH_EACH and in streams; the caller frees it. */
    kelp_status *status;
} kelp_infer_item;

/* Behaviour of a batch after a failed item. */
typedef enum kelp_batch_mode {
    /* Stops. The call returns the first failure; outputs of earlier items are valid, later items
     * are not run. */
    KELP_BATCH_STOP_AT_FIRST = 0,
    KELP_BATCH_EACH = 1 /* Runs every item and sets its `status`. The call returns NULL. */
} kelp_batch_mode;

/* Functions of a model. Arguments have passed the checks of this header. */
typedef struct kelp_compute_model_vtbl {
    uint32_t struct_size; /* sizeof(kelp_compute_model_vtbl) */
    /* Makes the model ready to run. Called once, before any inference. */
    kelp_status *(*init)(kelp_compute_model *model);
    /* Runs one item. */
    kelp_status *(*infer_one)(kelp_compute_model *model, kelp_infer_item *item);
    /* Runs several items. NULL: Kelp calls infer_one, with joined items if the artifact is
     * `batched`. An own function keeps outputs in memory of the model valid for all items. */
    kelp_status *(*infer_batch)(kelp_compute_model *model, kelp_infer_item *items, size_t count,
                                kelp_batch_mode mode);
    /* Sets the types and shapes that the outputs will have, without running; rank -1 for a shape
     * that depends on the results. May be NULL. */
    kelp_status *(*infer_shapes)(kelp_compute_model *model, kelp_infer_item *item);
    /* Finishes work in flight. */
    kelp_status *(*drain)(kelp_compute_model *model);
    /* Returns to the state after init. */
    kelp_status *(*reset)(kelp_compute_model *model);
    /* Returns the description of the model, valid as long as the model. */
    const kelp_compute_metadata *(*metadata)(const kelp_compute_model *model);
    /* Creates a model that shares weights and can be used by another thread. NULL: not supported;
     * a server can then serve the model with one instance only. */
    kelp_status *(*fork)(kelp_compute_model *model, kelp_compute_model **out);
    /* Frees the model. */
    void (*destroy)(kelp_compute_model *model);
    /* Starts an inference and returns. `done` is called once per successful submission, from any
     * thread, possibly before submit returns, in order of submission. Several inferences may be in
     * flight. NULL: a stream calls infer_one on a thread of its own. Must be NULL if the provider
     * does not declare `device_streams`. */
    kelp_status *(*submit)(kelp_compute_model *model, kelp_infer_item *item,
                           void (*done)(void *userp, kelp_status *take_status), void *userp);
    /* Sets the callback that is polled during an inference; `fn` NULL removes it. This field may
     * be NULL if the provider cannot interrupt inferences. */
    void (*set_interrupt)(kelp_compute_model *model, kelp_interrupt_fn fn, void *userp);
} kelp_compute_model_vtbl;

/* Contents of a loaded model. A provider makes this struct the first member of its own model
 * struct, sets `vtbl` and zeroes `state`. */
struct kelp_compute_model {
    const kelp_compute_model_vtbl *vtbl; /* functions of the model */
    struct kelp_compute_state *state;    /* private to Kelp */
};

/* Version of kelp_compute_backend. */
#define KELP_COMPUTE_ABI_VERSION 1

/* A compute provider. The table must outlive the runtime. Several threads may call its functions at
 * once. */
typedef struct kelp_compute_backend {
    uint32_t abi_version; /* KELP_COMPUTE_ABI_VERSION */
    uint32_t struct_size; /* sizeof(kelp_compute_backend) */
    const char *name;     /* name of the provider */
    /* Returns the capabilities. */
    kelp_compute_capabilities (*capabilities)(void *self);
    /* Loads a model. Takes ownership of the artifact's bytes: the provider calls
     * `artifact->release` when they are no longer needed, also on failure. */
    kelp_status *(*load_model)(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                               kelp_compute_model **out);
    void *self; /* passed to the functions */
} kelp_compute_backend;

/* ---- Providers of a runtime ---- */

/* Finds a provider by name. Fails with NOT_FOUND and the list of registered names. */
KELP_API kelp_status *kelp_compute_find(kelp_runtime *runtime, const char *name,
                                        const kelp_compute_backend **out) KELP_MUST_USE;

/* Registers a provider. Not thread-safe: register before use. Fails with INVALID_ARGUMENT if the
 * table has the wrong version or lacks functions, and ALREADY_EXISTS if the name is taken. */
KELP_API kelp_status *kelp_compute_register(kelp_runtime *runtime,
                                            const kelp_compute_backend *backend) KELP_MUST_USE;

/* Returns the number of providers. */
KELP_API size_t kelp_compute_count(const kelp_runtime *runtime);

/* Returns a provider, or NULL if `index` is out of range. */
KELP_API const kelp_compute_backend *kelp_compute_at(const kelp_runtime *runtime, size_t index);

/* ---- Models ---- */

/* Loads a model. The caller destroys it. `artifact->release` is called in every case. Fails with
 * NOT_FOUND if there is no such provider or file, INVALID_ARGUMENT if the artifact is malformed or
 * has neither path nor bytes, or if it is `batched` and the first dimension of an input or output
 * is not dynamic, and UNIMPLEMENTED if the model uses a type or operator that the provider does not
 * support. */
KELP_API kelp_status *kelp_compute_load(kelp_runtime *runtime, const char *backend_name,
                                        const kelp_artifact *artifact,
                                        kelp_compute_model **out) KELP_MUST_USE;

/* Makes the model ready to run. Succeeds without effect if it is ready. */
KELP_API kelp_status *kelp_compute_init(kelp_compute_model *model) KELP_MUST_USE;

/* Runs one item. `item->status` is not used. */
KELP_API kelp_status *kelp_compute_infer_one(kelp_compute_model *model,
                                             kelp_infer_item *item) KELP_MUST_USE;

/* Runs several items. Items that fail the checks are not passed to the provider; with
 * KELP_BATCH_STOP_AT_FIRST, the items before the first such item still run. Outputs in memory of
 * the model are valid for all items until the model's next call.
 *
 * If the artifact is `batched`, items in host memory run as one inference if their inputs have the
 * same types and the same dimensions except for the first, which may differ. Inputs that are
 * adjacent in memory are not copied; others are copied to a buffer that is kept for the next call.
 * Other items run in further inferences; KELP_BATCH_STOP_AT_FIRST joins only neighbors. If a joined
 * inference fails, its items run one by one, so that each has its own result. If an output has
 * another first dimension than the inputs, the model is not joined again.
 *
 * Fails with OUT_OF_RANGE, before it runs any item, if `count` exceeds `max_batch`, and with
 * RESOURCE_EXHAUSTED if memory is exhausted. */
KELP_API kelp_status *kelp_compute_infer_batch(kelp_compute_model *model, kelp_infer_item *items,
                                               size_t count, kelp_batch_mode mode) KELP_MUST_USE;

/* Runs a model with one input and one output on two arrays, one tensor per item. Stops at the
 * first failure. Fails with INVALID_ARGUMENT if the lengths differ or the model has another number
 * of inputs or outputs, and OUT_OF_RANGE if the length exceeds `max_batch`. */
KELP_API kelp_status *kelp_compute_infer_arrays(kelp_compute_model *model,
                                                const kelp_tensor *inputs, size_t input_count,
                                                kelp_tensor *outputs,
                                                size_t output_count) KELP_MUST_USE;

/* Sets the types and shapes that the outputs of `item` will have, without running. The rank is -1
 * for a shape that depends on the results, and if the provider lacks infer_shapes. */
KELP_API kelp_status *kelp_compute_infer_shapes(kelp_compute_model *model,
                                                kelp_infer_item *item) KELP_MUST_USE;

/* Waits for the model's stream, if any, and finishes work in flight. */
KELP_API kelp_status *kelp_compute_drain(kelp_compute_model *model) KELP_MUST_USE;

/* Waits for the model's stream, if any, and returns the model to the state after init. */
KELP_API kelp_status *kelp_compute_reset(kelp_compute_model *model) KELP_MUST_USE;

/* Copies of tensors around a provider. Each field counts since the model was loaded or forked. */
typedef struct kelp_compute_copies {
    uint64_t inputs;       /* inputs that were not compact, or were joined in a batch */
    uint64_t input_bytes;  /* size of these inputs */
    uint64_t outputs;      /* outputs of joined or repeated inferences that were copied */
    uint64_t output_bytes; /* size of these outputs */
} kelp_compute_copies;

/* Returns the copies that Kelp has made for this model. Call it while no inference runs. */
KELP_API kelp_compute_copies kelp_compute_copies_of(const kelp_compute_model *model);

/* Returns the description of the model. */
KELP_API const kelp_compute_metadata *kelp_compute_metadata_of(const kelp_compute_model *model);

/* Sets a callback that is polled during inferences; NULL removes it. If it returns true, the
 * inference ends with CANCELLED. Has no effect for a provider that cannot be interrupted. Forks do
 * not inherit it. */
KELP_API void kelp_compute_set_interrupt(kelp_compute_model *model, kelp_interrupt_fn fn,
                                         void *userp);

/* Creates a model that shares weights with `model` and can be used by another thread. The caller
 * passes it to kelp_compute_init and destroys it. Fails with UNIMPLEMENTED if the provider has no
 * `fork`. */
KELP_API kelp_status *kelp_compute_fork(kelp_compute_model *model,
                                        kelp_compute_model **out) KELP_MUST_USE;

/* Waits for the model's stream, if any, and destroys the stream and the model. NULL is allowed. */
KELP_API void kelp_compute_destroy(kelp_compute_model *model);

/* ---- Streams ---- */

/* A queue of inferences that run asynchronously, in order of submission. The stream owns its model
 * until the stream is destroyed; until then, kelp_compute_infer_* fail with FAILED_PRECONDITION.
 * For a second stream, fork the model. */
typedef struct kelp_compute_stream kelp_compute_stream;

/* Creates a stream that holds up to `capacity` submissions. Fails with FAILED_PRECONDITION if the
 * model has a stream and INVALID_ARGUMENT if `capacity` is 0. */
KELP_API kelp_status *kelp_compute_stream_create(kelp_compute_model *model, size_t capacity,
                                                 kelp_compute_stream **out) KELP_MUST_USE;

/* Waits for all submissions and returns the model to its owner. NULL is allowed. */
KELP_API void kelp_compute_stream_destroy(kelp_compute_stream *stream);

/* Submits an inference. Does not allocate. `item`, its tensors and `event` (may be NULL) must stay
 * valid until the inference is done; `item->status` then contains the result, which the caller
 * frees. Outputs in memory of the model are valid until its next inference. Only one thread at a
 * time may submit. Fails, without running, with the error of the check that the item fails, with
 * RESOURCE_EXHAUSTED if the stream is full, with FAILED_PRECONDITION if `event` is in use, and with
 * UNIMPLEMENTED if an input must be copied and the provider has `device_streams`. */
KELP_API kelp_status *kelp_compute_submit(kelp_compute_stream *stream, kelp_infer_item *item,
                                          kelp_event *event) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
