/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/opset.h: how a provider implements operators.
 *
 * An operator provider (kelp_opset_backend) declares the operators that it supports and runs them
 * in one or more of these ways, from the fastest to the simplest:
 *
 *   kernels         kelp_op_kernel: create → reshape → invoke, planned by the engine
 *   dispatch        one node at a time
 *   execute_graph   a whole block; a single node is passed as a block of one node
 *
 * A provider may also take whole subgraphs of a model, see "Subgraphs".
 *
 * Nested blocks (branches of If, bodies of Loop): in an engine's graph, values that a block reads
 * from the enclosing graph are passed explicitly. They follow the inputs of the node, from the
 * index in its attribute "kelp.captures" on, and are the last inputs of each of its blocks.
 *
 * Before an engine runs, every node of every block, subgraph and function must be supported by a
 * provider.
 *
 * Thread safety: providers are called by several threads at once, for different contexts. Functions
 * of this header that take a kelp_op_env may only be called with the environment of the current
 * call, and unless stated otherwise on the thread that made the call.
 *
 * Errors: callbacks return NULL or a failure that the engine passes on with the node's name added.
 */
#ifndef KELP_OPSET_H_
#define KELP_OPSET_H_

#include <kelp/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Environment of a call ---- */

/* Services that an operator may use during a call. Valid until the call returns. */
typedef struct kelp_op_env kelp_op_env;

/* Splits [0, count) into chunks, runs `fn` on the threads of the runtime and returns when all
 * chunks are done. Does not allocate. `grain` is the number of items whose work (about 16 µs)
 * justifies waking a thread: a chunk has at least that many, smaller ranges run inline or on
 * threads that are already awake. `worker` is less than kelp_op_env_threads and unique among the
 * chunks of this call that run at the same time. If the threads are busy (another context, or a
 * nested call), everything runs inline as worker 0.
 *
 * Cancellation: long ranges run in chunks of a few milliseconds, even with one thread. After the
 * run has been cancelled, remaining chunks are skipped and the run returns CANCELLED whatever the
 * kernel returns. A kernel therefore calls kelp_op_env_cancelled only before it uses a partial
 * result as an index or size, or stores something that outlives the run. While memory is being
 * planned, reshape is never cut short. */
KELP_API void kelp_op_parallel(const kelp_op_env *env, int64_t count, int64_t grain,
                               void (*fn)(void *userp, int64_t begin, int64_t end, int worker),
                               void *userp);

/* Returns the number of threads that kelp_op_parallel uses, the calling thread included. */
KELP_API int kelp_op_env_threads(const kelp_op_env *env);

/* Returns true once the run has been cancelled. On the invoking thread it also polls the interrupt
 * callback; on worker threads it only reads the flag. Thread-safe. Call it in loops that run for
 * more than a few milliseconds outside of kelp_op_parallel. */
KELP_API bool kelp_op_env_cancelled(const kelp_op_env *env);

/* Returns the allocator for state that the operator keeps. Thread-safe. */
KELP_API kelp_allocator kelp_op_env_allocator(const kelp_op_env *env);

/* Allocates memory, aligned to 64 bytes, that stays valid until the context's next inference: for
 * strings and for results whose size depends on data. Makes no heap call once warm. Returns NULL
 * if memory is exhausted or, while memory is being planned, not available. The memory is not freed
 * by the caller. */
KELP_API void *kelp_op_env_alloc(const kelp_op_env *env, size_t size_bytes);

/* ---- Packed weights ----
 *
 * A kernel may rearrange constants once, when the engine is created. If the engine was loaded from
 * an engine image that contains the packed bytes, they are used in place instead. */

/* Maximum length of kelp_op_packing.layout, without the NUL. */
#define KELP_OP_LAYOUT_MAX 23

/* Description of packed bytes. */
typedef struct kelp_op_packing {
    /* Identifies the format of the bytes: everything that they depend on besides the constants and
     * the node. By convention a name, a version and the relevant property of the instruction set,
     * such as "gemm/1/32". At most KELP_OP_LAYOUT_MAX characters. */
    const char *layout;
    size_t size_bytes; /* size of the packed bytes */
    uint32_t inputs;   /* bit i: the bytes depend on constant input i; at least one bit */
    uint32_t replaces; /* bit i: the kernel no longer reads constant input i once packed */
} kelp_op_packing;

/* Packed bytes. */
typedef struct kelp_op_packed {
    const void *data;  /* first byte, aligned to 64 bytes */
    size_t size_bytes; /* size in bytes */
    bool borrowed;     /* true if the bytes belong to an engine image */
} kelp_op_packed;

/* Identifies the node that packs. A kernel that packs after create keeps a copy in its state. The
 * fields are private to Kelp. */
typedef struct kelp_op_pack_site {
    struct kelp_packs *packs; /* packed weights of the engine */
    const kelp_node *node;    /* node that packs */
    uint32_t index;           /* number of the node */
} kelp_op_pack_site;

/* Returns the site of the node that is being created. */
KELP_API kelp_op_pack_site kelp_op_env_pack_site(const kelp_op_env *env);

/* Gets memory for packed bytes. If `*out_room` is not NULL, it equals `out->data` and the kernel
 * must fill it before use; if it is NULL, `out->data` already holds the bytes, in an engine image.
 * `allocator` is the one later passed to kelp_op_unpack. Thread-safe. Fails with INVALID_ARGUMENT
 * if the bytes of the image were modified. */
KELP_API kelp_status *kelp_op_pack(const kelp_op_pack_site *site, kelp_allocator allocator,
                                   const kelp_op_packing *packing, kelp_op_packed *out,
                                   void **out_room) KELP_MUST_USE;

/* Frees packed bytes unless they belong to an engine image, and zeroes `*packed`. Accepts a zeroed
 * struct. */
KELP_API void kelp_op_unpack(kelp_op_packed *packed, kelp_allocator allocator);

/* ---- Kernels ----
 *
 * Phases of a kernel: create (once per engine) → reshape (once per input shape) → invoke (once per
 * inference). */

/* Arguments of reshape and invoke. */
typedef struct kelp_op_args {
    const kelp_node *node; /* node that runs */
    int32_t input_count;   /* number of inputs, omitted ones included */
    int32_t output_count;  /* number of outputs, omitted ones included */
    /* Inputs; NULL for omitted ones. In reshape, types and shapes are known, and `data` is NULL
     * unless the values are known already. In invoke, `data` is always set. */
    const kelp_tensor *const *inputs;
    /* Outputs; NULL for those that nothing reads. Reshape sets type and shape (kelp_tensor_init
     * with NULL data); invoke writes the elements. */
    kelp_tensor *const *outputs;
    /* Memory of `plan_bytes` bytes that carries results of reshape to invoke. Zeroed before
     * reshape, private to one context. */
    void *plan;
    void *scratch;        /* in invoke: `scratch_bytes` bytes, aligned to 64, contents undefined */
    size_t scratch_bytes; /* set by reshape: workspace that invoke needs */
    const kelp_op_env *env; /* environment of this call */
    /* Set by reshape if it needs the data of an input that is not known yet. Reshape is then
     * called again with data, during the inference, right before invoke. */
    bool deferred;
    /* Set by a deferred reshape that has computed its outputs: their `data` points to memory of
     * kelp_op_env_alloc or of the operator (valid until its next call), and invoke is skipped. */
    bool placed;
    /* May be set by reshape: name of the algorithm that the kernel chose for these shapes, a string
     * that lives as long as the kernel. Profilers report it (kelp_profile_fn). NULL before. */
    const char *algorithm;
} kelp_op_args;

/* Flag: output 0 is input 0 with another shape. Invoke may be skipped; if it is called, it must
 * copy. */
#define KELP_OP_VIEW 1u

/* Flag: output 0 may overwrite input 0 if both have the same size in bytes. */
#define KELP_OP_INPLACE_0 2u

/* Flag: output 0 may overwrite input 1 if both have the same size in bytes. */
#define KELP_OP_INPLACE_1 4u

/* Flag: outputs depend only on the shapes of inputs (Shape, Size) and are evaluated while
 * planning. */
#define KELP_OP_SHAPE_ONLY 8u

/* Flag: the result is not a function of the inputs (random numbers): never folded, never merged
 * with an equal node. */
#define KELP_OP_IMPURE 16u

/* Flag: a second thread is never profitable. */
#define KELP_OP_SERIAL 32u

/* Flag: accepts inputs of KELP_LIST. Without it, a node with such an input fails with
 * INVALID_ARGUMENT before reshape. */
#define KELP_OP_LISTS 64u

/* Flag: create only prepares constants; reshape and invoke also work with a NULL state. A node
 * that runs once is not prepared. */
#define KELP_OP_STATE_OPTIONAL 128u

/* Implementation of an operator. The table must outlive the registry. */
typedef struct kelp_op_kernel {
    uint32_t struct_size; /* sizeof(kelp_op_kernel) */
    uint32_t flags;       /* bits of KELP_OP_* */
    uint32_t plan_bytes;  /* size of kelp_op_args.plan */
    /* Bit i: constant input i may have any address. Otherwise a constant that is not aligned to
     * its element type is copied first. */
    uint32_t unaligned_inputs;
    /* Checks attributes and constants and packs weights. `*out_state` (may stay NULL) is shared by
     * all contexts and not modified afterwards. If it is set, destroy is called, even if create
     * fails. May be NULL. */
    kelp_status *(*create)(const kelp_node *node, const kelp_op_env *env, void **out_state);
    /* Frees the state with the allocator of the environment that create got. May be NULL. */
    void (*destroy)(void *state, kelp_allocator allocator);
    /* Computes types and shapes of outputs, the size of the workspace and the plan. Called again
     * when a shape changes. */
    kelp_status *(*reshape)(const void *state, kelp_op_args *args);
    /* Computes the outputs. Must not allocate from the heap. */
    kelp_status *(*invoke)(const void *state, kelp_op_args *args);
} kelp_op_kernel;

/* ---- Declaring operators ---- */

/* An operator that a provider supports. */
typedef struct kelp_opset_op {
    const char *name;      /* operator name, such as "Conv" */
    int32_t since_version; /* first supported version of the domain */
    /* Last supported version. 0: that of the opset, and also newer declared versions of the domain
     * that do not list the operator again. */
    int32_t until_version;
    /* implementation; NULL: runs through dispatch or execute_graph */
    const kelp_op_kernel *kernel;
} kelp_opset_op;

/* Operators of one domain. */
typedef struct kelp_opset {
    const char *domain;       /* "" is ai.onnx */
    int32_t version;          /* highest version of the domain that the provider knows */
    const kelp_opset_op *ops; /* operators */
    size_t op_count;          /* number of operators */
} kelp_opset;

/* Number of operators that every atomic opset must contain. */
#define KELP_OPSET_FLOOR_COUNT 30

/* Returns the KELP_OPSET_FLOOR_COUNT operators of ai.onnx that every atomic opset must contain, in
 * any version. Static, thread-safe. */
KELP_API const char *const *kelp_opset_floor(void);

/* ---- Asynchronous results ---- */

/* Handle of a result that will be available later. */
typedef struct kelp_completion kelp_completion;

/* Completes an asynchronous dispatch. Outputs must be set as for a synchronous one. `take_error`
 * is NULL for success. Must be called exactly once per dispatch that returned KELP_DISPATCH_LATER,
 * from any thread; the handle is invalid afterwards. */
KELP_API void kelp_completion_done(kelp_completion *completion, kelp_status *take_error);

/* State of a dispatch that succeeded. */
typedef enum kelp_dispatch_result {
    KELP_DISPATCH_IMMEDIATE = 0, /* outputs are set */
    KELP_DISPATCH_LATER = 1      /* kelp_completion_done will be called */
} kelp_dispatch_result;

/* ---- Subgraphs ----
 *
 * While an engine is created, its main block is partitioned. A region, which is a connected,
 * convex set of nodes (no path leaves it and comes back) that a provider supports, is replaced by
 * one node kelp::BackendSubgraph if this is profitable. Its attribute `body` holds the nodes; its
 * inputs and outputs have the names of the values in the model. The provider alone is responsible
 * for the nodes inside: the engine neither folds, fuses nor dispatches them. Nodes with nested
 * blocks are never part of a region. */

/* Operator name of a subgraph node. */
#define KELP_SUBGRAPH_OP "BackendSubgraph"

/* Domain of a subgraph node. */
#define KELP_SUBGRAPH_DOMAIN "kelp"

/* A set of nodes that may become a subgraph. Sizes and costs are estimates from the shapes that
 * are known. */
typedef struct kelp_opset_region {
    uint32_t struct_size;          /* sizeof(kelp_opset_region) */
    uint32_t required;             /* number of nodes that no later provider supports */
    const kelp_node *const *nodes; /* nodes in topological order */
    size_t node_count;             /* number of nodes */
    /* number of values that enter (input_count) and leave (output_count) the region */
    size_t input_count, output_count;
    size_t border_bytes;   /* bytes of those values, as far as their shapes are known */
    size_t constant_bytes; /* bytes of weights, which are transferred once */
    double operations;     /* arithmetic operations; a multiply-add counts as two */
    /* estimated time of Kelp's own kernels on one thread, in nanoseconds */
    double elsewhere_ns;
} kelp_opset_region;

/* The operator providers of a runtime. */
typedef struct kelp_opset_registry kelp_opset_registry;

/* ---- Provider table ---- */

/* Version of kelp_opset_backend. */
#define KELP_OPSET_ABI_VERSION 1

/* An operator provider. `self` is the pointer given at registration. The table, and everything
 * that it returns, must outlive the registry. It may be shorter than the current struct:
 * `struct_size` tells which of the fields from `flags` on exist. */
typedef struct kelp_opset_backend {
    uint32_t abi_version; /* KELP_OPSET_ABI_VERSION */
    uint32_t struct_size; /* sizeof(kelp_opset_backend) */
    const char *name;     /* name of the provider, used in kelp_engine_options.providers */
    /* Returns the opset of ai.onnx that the provider supports, at least the operators of
     * kelp_opset_floor. NULL for a provider that only extends others. */
    const kelp_opset *(*atomic_opset)(void *self);
    /* Returns further opsets: newer versions of ai.onnx or other domains. May be NULL. */
    const kelp_opset *(*extension_opsets)(void *self, size_t *out_count);
    /* Runs a block. `inputs` and `outputs` are in the order of the block. The data of an output
     * comes from kelp_op_env_alloc or is borrowed from an input. May be NULL. */
    kelp_status *(*execute_graph)(void *self, const kelp_op_env *env, const kelp_block *block,
                                  const kelp_tensor *const *inputs, kelp_tensor *outputs);
    /* Runs one node; otherwise like execute_graph. May set `*out_result` to KELP_DISPATCH_LATER
     * only if `completion` is not NULL. May be NULL. */
    kelp_status *(*dispatch)(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result);
    /* Creates a tensor from bytes that another process sent (kelp/wire.h). Takes ownership of
     * `take_bytes`, which was allocated with `owner`. `type_hash` is kelp_type_hash of the
     * declared type. NULL together with release_tensor: not supported. */
    kelp_status *(*materialize)(void *self, uint64_t type_hash, kelp_allocator owner,
                                void *take_bytes, size_t size_bytes, kelp_tensor *out);
    /* Called when the registry is destroyed. May be NULL. */
    void (*destroy)(void *self);
    uint32_t flags; /* bits of KELP_OPSET_* */
    /* Returns true if the provider supports this node beyond its opsets, for a provider whose
     * coverage cannot be enumerated. Such nodes run only in subgraphs. May be NULL. */
    bool (*covers)(void *self, const kelp_node *node);
    /* Returns the estimated time of the region on this provider in nanoseconds, transfers
     * included; negative to decline. The region is taken if this is less than
     * `region->elsewhere_ns` or if it has required nodes; in the latter case, a region that is too
     * expensive is reduced to those nodes. NULL: a provider that the engine's options name takes
     * every region, any other takes only required nodes. */
    double (*cost_ns)(void *self, const kelp_opset_region *region);
    /* Prepares a subgraph, once per engine. The body is the main block of `graph`, which stays
     * valid until release_subgraph and may be retained; its constants belong to the engine.
     * `*out_state` (may stay NULL) is shared by all contexts. UNIMPLEMENTED returns the nodes to
     * the other providers; any other error makes the creation of the engine fail. May be NULL. */
    kelp_status *(*prepare_subgraph)(void *self, const kelp_op_env *env, kelp_graph *graph,
                                     void **out_state);
    /* Runs a subgraph; otherwise like dispatch. NULL: execute_graph is used. A provider with
     * neither gets no subgraphs. */
    kelp_status *(*run_subgraph)(void *self, void *state, const kelp_op_env *env,
                                 const kelp_block *body, const kelp_tensor *const *inputs,
                                 kelp_tensor *outputs, kelp_completion *completion,
                                 kelp_dispatch_result *out_result);
    /* Frees the state of prepare_subgraph. May be NULL. */
    void (*release_subgraph)(void *self, void *state);
    /* Frees a tensor that materialize created. */
    void (*release_tensor)(void *self, kelp_tensor *tensor);
} kelp_opset_backend;

/* Flag: used only by engines whose options name the provider. */
#define KELP_OPSET_BY_NAME 1u

/* ---- Registry ----
 *
 * Create and register first, then read from any number of threads. Registration is not
 * thread-safe. */

/* Creates an empty registry. Applications use the registry of a runtime instead
 * (kelp_runtime_register_opset). */
KELP_API kelp_status *kelp_opset_registry_create(kelp_allocator allocator,
                                                 kelp_opset_registry **out) KELP_MUST_USE;

/* Calls `destroy` of each provider, the most recently registered first, and frees the registry.
 * NULL is allowed. */
KELP_API void kelp_opset_registry_destroy(kelp_opset_registry *registry);

/* Registers a provider. Providers registered later have priority. `backend` must outlive the
 * registry. Fails with INVALID_ARGUMENT if
 * - the ABI version or the size of the table is wrong;
 * - the provider has no way to execute one of its operators (names it);
 * - its atomic opset lacks operators of kelp_opset_floor (lists them);
 * - it has `covers` but cannot run subgraphs, or only one of materialize and release_tensor. */
KELP_API kelp_status *kelp_opset_register(kelp_opset_registry *registry,
                                          const kelp_opset_backend *backend,
                                          void *self) KELP_MUST_USE;

/* Result of kelp_opset_find. */
typedef struct kelp_opset_match {
    const kelp_opset_backend *backend; /* provider */
    void *self;                        /* passed to its functions */
    const kelp_opset_op *op;           /* declaration that matched */
    kelp_opset_registry *registry;     /* registry that was searched */
} kelp_opset_match;

/* Finds the provider of a node. Returns false if no provider supports it. Skips providers with
 * KELP_OPSET_BY_NAME. */
KELP_API bool kelp_opset_find(const kelp_opset_registry *registry, const kelp_node *node,
                              kelp_opset_match *out);

/* An opset and its provider. */
typedef struct kelp_opset_declared {
    const kelp_opset_backend *backend; /* provider */
    const kelp_opset *opset;           /* opset that it declares */
} kelp_opset_declared;

/* Enumerates the opsets of all providers in order of registration. Returns false if `index` is out
 * of range. */
KELP_API bool kelp_opset_registry_at(const kelp_opset_registry *registry, size_t index,
                                     kelp_opset_declared *out);

/* Default of kelp_opset_set_max_pending. */
#define KELP_OPSET_MAX_PENDING 10000

/* Limits the number of asynchronous results in flight, over all providers. A dispatch beyond the
 * limit fails with RESOURCE_EXHAUSTED before the provider is called. 0 restores the default. Not
 * thread-safe. */
KELP_API void kelp_opset_set_max_pending(kelp_opset_registry *registry, uint32_t max_pending);

/* Returns the provider of this name, the most recently registered one if there are several, or
 * NULL. `out_self` may be NULL. */
KELP_API const kelp_opset_backend *kelp_opset_by_name(const kelp_opset_registry *registry,
                                                      const char *name, void **out_self);

/* Checks that every node of every block, subgraph and function has a provider. Fails with
 * UNIMPLEMENTED and one line per unsupported node: operator, domain, version, node name and
 * location. */
KELP_API kelp_status *kelp_opset_check_ready(const kelp_opset_registry *registry,
                                             const kelp_graph *graph) KELP_MUST_USE;

/* Runs one node to completion, by whatever means its provider offers. Output data comes from
 * kelp_op_env_alloc. Fails with UNIMPLEMENTED for a node of the provider `cpu` with nested blocks,
 * which needs an engine. */
KELP_API kelp_status *kelp_opset_dispatch(const kelp_opset_match *match, const kelp_op_env *env,
                                          const kelp_node *node, const kelp_tensor *const *inputs,
                                          kelp_tensor *outputs) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
