/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/opset.h: how a provider implements operators.
 *
 * An operator provider (kelp_opset_backend) declares the operators that it supports and runs them
 * in one or more of these ways, from the fastest to the simplest:
 *
 *   kernels         kelp_op_kernel: create → reshape → invoke; the engine plans their memory
 *   dispatch        one node at a time
 *   execute_graph   a whole block (a graph's list of nodes); a single node is passed as a block
 *
 * A provider may also execute whole subgraphs of a model, see "Subgraphs".
 *
 * Nested blocks (branches of If, bodies of Loop): in an engine's graph, values that a block reads
 * from the enclosing graph (captures) are passed explicitly. They are the last inputs of the node,
 * starting at the index in its attribute "kelp.captures", and the last inputs of each of its
 * blocks.
 *
 * When an engine is created, a provider must support each node of each block, subgraph and
 * function.
 *
 * Thread safety: several threads may call a provider at once, for different execution contexts. A
 * callback may pass only its own kelp_op_env (kelp/op_env.h) to functions of this header and,
 * unless stated otherwise, may call them only on the thread that called it.
 *
 * Errors: callbacks return NULL or a failure. The engine adds the node's name to the failure and
 * returns it.
 */
#ifndef KELP_OPSET_H_
#define KELP_OPSET_H_

#include <kelp/graph.h>
#include <kelp/op_env.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Packed weights ----
 *
 * A kernel may rearrange (prepack) constants once, when the engine is created. If the engine was
 * loaded from an engine image (plan file) that contains the packed bytes, the kernel uses them in
 * place. */

/* Maximum length of kelp_op_packing.layout, without the NUL. */
#define KELP_OP_LAYOUT_MAX 23

/* Description of packed bytes. */
typedef struct kelp_op_packing {
    /* Identifies the format of the bytes: all that determines them apart from the constants and
     * the node. By convention a name, a version and the relevant property of the instruction set,
     * such as "gemm/1/32". At most KELP_OP_LAYOUT_MAX characters. */
    const char *layout;
    size_t size_bytes; /* size of the packed bytes */
    uint32_t inputs;   /* bit i: the bytes depend on constant input i; not 0 */
    uint32_t replaces; /* bit i: the kernel no longer reads constant input i once packed */
} kelp_op_packing;

/* Packed bytes. */
typedef struct kelp_op_packed {
    const void *data;              /* first byte, aligned to 64 bytes */
    size_t size_bytes;             /* size in bytes */
    bool borrowed;                 /* true if the bytes belong to an engine image */
    struct kelp_pack_share *share; /* private to Kelp */
} kelp_op_packed;

/* Identifies the node that packs. A kernel that calls kelp_op_pack after create returns keeps a
 * copy in its state. The fields are private to Kelp. */
typedef struct kelp_op_pack_site {
    struct kelp_packs *packs;        /* packed weights of the engine */
    const kelp_node *node;           /* node that packs */
    uint32_t index;                  /* number of the node */
    struct kelp_pack_shares *shares; /* blocks that several nodes may use */
} kelp_op_pack_site;

/* Returns the site of the node that is being created. */
KELP_API kelp_op_pack_site kelp_op_env_pack_site(const kelp_op_env *env);

/* Returns memory for packed bytes in `*out`. If `*out_room` is not NULL, it equals `out->data`, and
 * the kernel must write the packed bytes there. If it is NULL, `out->data` points to packed bytes
 * in an engine image, or to those of another node of the same operator with the same attributes and
 * constants. Pass the same `allocator` to kelp_op_unpack. Thread-safe. Fails with
 * INVALID_ARGUMENT if the bytes of the image do not match their hash. */
KELP_API kelp_status *kelp_op_pack(const kelp_op_pack_site *site, kelp_allocator allocator,
                                   const kelp_op_packing *packing, kelp_op_packed *out,
                                   void **out_room) KELP_MUST_USE;

/* Declares that the bytes are written, so that other nodes may use them. Only kernels that pack
 * after create has returned need to call it. Thread-safe. */
KELP_API void kelp_op_pack_done(const kelp_op_packed *packed);

/* Frees packed bytes unless they belong to an engine image or other nodes use them, and zeroes
 * `*packed`. Accepts a zeroed struct. Thread-safe. */
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
    /* Memory of kelp_op_kernel.plan_bytes bytes, in which reshape stores results for invoke. Zeroed
     * before reshape. Each context has its own. */
    void *plan;
    void *scratch;        /* in invoke: `scratch_bytes` bytes, aligned to 64, contents undefined */
    size_t scratch_bytes; /* set by reshape: workspace that invoke needs */
    const kelp_op_env *env; /* environment of this call */
    /* Set to true by a reshape that needs the data of an input while its `data` is NULL. During the
     * inference, reshape is called again with data, right before invoke. */
    bool deferred;
    /* Set to true by a deferred reshape that has also computed its outputs. Their `data` then
     * points to memory of kelp_op_env_alloc, or to memory of the operator that stays valid until
     * its next call. Invoke is not called. */
    bool placed;
    /* May be set by reshape: name of the algorithm that the kernel chose for these shapes, a string
     * that lives as long as the kernel. Initially NULL. Profilers report it (kelp_profile_fn). */
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

/* Flag: the result does not only depend on the inputs (random numbers). The node is never folded
 * into a constant and never merged with an equal node. */
#define KELP_OP_IMPURE 16u

/* Flag: a second thread is never profitable. */
#define KELP_OP_SERIAL 32u

/* Flag: accepts inputs of KELP_LIST. Without it, a node with such an input fails with
 * INVALID_ARGUMENT before reshape. */
#define KELP_OP_LISTS 64u

/* Flag: create only prepares constants; reshape and invoke also work with a NULL state. For a node
 * that runs only once, create is not called. */
#define KELP_OP_STATE_OPTIONAL 128u

/* Implementation of an operator. The table must outlive the registry. */
typedef struct kelp_op_kernel {
    uint32_t struct_size; /* sizeof(kelp_op_kernel) */
    uint32_t flags;       /* bits of KELP_OP_* */
    uint32_t plan_bytes;  /* size of kelp_op_args.plan */
    /* Bit i: the kernel accepts constant input i without alignment. Other constants that are not
     * aligned to their element type are copied first. */
    uint32_t unaligned_inputs;
    /* Checks attributes and constants and packs weights. `*out_state` (may stay NULL) is shared by
     * all contexts and not modified afterwards. If it is set, destroy is called, even if create
     * fails. May be NULL. */
    kelp_status *(*create)(const kelp_node *node, const kelp_op_env *env, void **out_state);
    /* Frees the state with the allocator of the environment that create received. May be NULL. */
    void (*destroy)(void *state, kelp_allocator allocator);
    /* Computes the types and shapes of the outputs, `scratch_bytes`, and the contents of `plan`.
     * Called again when a shape changes. */
    kelp_status *(*reshape)(const void *state, kelp_op_args *args);
    /* Computes the outputs. Must not allocate from the heap. */
    kelp_status *(*invoke)(const void *state, kelp_op_args *args);
} kelp_op_kernel;

/* ---- Declaring operators ---- */

/* An operator that a provider supports. */
typedef struct kelp_opset_op {
    const char *name;      /* operator name, such as "Conv" */
    int32_t since_version; /* first supported version of the domain */
    /* Last supported version. 0: the version of the opset, and newer versions of the domain that a
     * provider declares without this operator. */
    int32_t until_version;
    /* implementation; NULL: runs through dispatch or execute_graph */
    const kelp_op_kernel *kernel;
    /* Inputs, outputs and attributes in the language of kelp/kernel.h, or NULL. In their order, the
     * tensors that are read are the inputs, the tensors that are written are the outputs, and all
     * other parameters are attributes. `inout` is an input and an output of the same type and
     * shape; `strided` has no effect. If a signature is given, the provider supports only nodes
     * that match it, and is called only with matching tensors; types and shapes of outputs are
     * inferred from it. If it is NULL, Kelp checks neither nodes nor tensors. */
    const char *signature;
} kelp_opset_op;

/* Operators of one domain. */
typedef struct kelp_opset {
    const char *domain;       /* "" is ai.onnx */
    int32_t version;          /* highest version of the domain that the provider knows */
    const kelp_opset_op *ops; /* operators */
    size_t op_count;          /* number of operators */
} kelp_opset;

/* Number of operators that every atomic opset (kelp_opset_backend.atomic_opset) must contain. */
#define KELP_OPSET_FLOOR_COUNT 30

/* Returns the KELP_OPSET_FLOOR_COUNT operators of ai.onnx that every atomic opset must contain, in
 * any version. Static, thread-safe. */
KELP_API const char *const *kelp_opset_floor(void);

/* ---- Asynchronous results ---- */

/* Handle of a result that will be available later. */
typedef struct kelp_completion kelp_completion;

/* Completes an asynchronous dispatch. Before the call, the provider sets the outputs as in a
 * synchronous dispatch. `take_error` is NULL for success. Call this function exactly once for each
 * dispatch that set KELP_DISPATCH_LATER, on any thread; the handle is invalid afterwards. */
KELP_API void kelp_completion_done(kelp_completion *completion, kelp_status *take_error);

/* State of a dispatch that succeeded. */
typedef enum kelp_dispatch_result {
    KELP_DISPATCH_IMMEDIATE = 0, /* outputs are set */
    KELP_DISPATCH_LATER = 1      /* kelp_completion_done will be called */
} kelp_dispatch_result;

/* ---- Subgraphs ----
 *
 * When an engine is created, its main block is partitioned among the providers. A region is a
 * connected, convex set of nodes (no path leaves it and returns) that a provider supports. If
 * `cost_ns` permits, one node kelp::BackendSubgraph replaces the region. The attribute `body` of
 * this node contains the nodes of the region; its inputs and outputs have the names of the values
 * in the model. The engine neither folds, fuses nor dispatches the nodes in the body. Nodes with
 * nested blocks are never part of a region. */

/* Operator name of a subgraph node. */
#define KELP_SUBGRAPH_OP "BackendSubgraph"

/* Domain of a subgraph node. */
#define KELP_SUBGRAPH_DOMAIN "kelp"

/* A set of nodes that may become a subgraph. Sizes and costs are estimates from the shapes that
 * are known. */
typedef struct kelp_opset_region {
    uint32_t struct_size;          /* sizeof(kelp_opset_region) */
    uint32_t required;             /* number of required nodes, see `cost_ns` */
    const kelp_node *const *nodes; /* nodes in topological order */
    size_t node_count;             /* number of nodes */
    /* number of values that enter (input_count) and leave (output_count) the region, without
     * constants */
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
#define KELP_OPSET_ABI_VERSION 2

/* An operator provider. `self` is the pointer given at registration. The table, and everything
 * that its functions return, must outlive the registry. The table may end before any field from
 * `flags` on, according to `struct_size`; fields beyond it count as 0. */
typedef struct kelp_opset_backend {
    uint32_t abi_version; /* KELP_OPSET_ABI_VERSION */
    uint32_t struct_size; /* sizeof(kelp_opset_backend) */
    const char *name;     /* name of the provider, used in kelp_engine_options.providers */
    /* Returns the atomic opset: the operators of ai.onnx that the provider supports, which must
     * include those of kelp_opset_floor. NULL for a provider that supports only some operators of
     * ai.onnx or only other domains. */
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
    /* Returns true if the provider supports this node, for a provider that cannot list its
     * operators in opsets. Such nodes run only in subgraphs. May be NULL. */
    bool (*covers)(void *self, const kelp_node *node);
    /* Returns the estimated time of the region on this provider in nanoseconds, transfers
     * included, or a negative number to decline the region. The provider takes the region if the
     * time is less than `region->elsewhere_ns`. Otherwise, it takes only the required nodes,
     * regardless of their cost. A node is required if no other provider supports it or, if the
     * engine's options name providers, none that they name after this one. NULL: if the engine's
     * options name providers, takes every region; otherwise takes only required nodes. */
    double (*cost_ns)(void *self, const kelp_opset_region *region);
    /* Prepares a subgraph, once per engine. The body is the main block of `graph`, which stays
     * valid until release_subgraph and may be retained; its constants belong to the engine.
     * `*out_state` (may stay NULL) is shared by all contexts. Returns UNIMPLEMENTED to leave the
     * nodes to the other providers; any other error makes the creation of the engine fail. May be
     * NULL. */
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
    /* Frees a tensor that materialize created, or a result on a device, see `placements`. Called on
     * any thread. */
    void (*release_tensor)(void *self, kelp_tensor *tensor);
    /* Locations of tensors that the provider accepts as inputs besides host memory: a
     * kelp_placements (kelp/compute.h). 0: none. `dispatch`, `execute_graph` and `run_subgraph` may
     * set outputs on a device (kelp_tensor.device). If only nodes that run on this provider without
     * a kernel read such an output, it stays there. Otherwise, and for outputs of graphs, `to_host`
     * copies it. A result on a device belongs to the provider: it must stay valid until
     * release_tensor, which is called once for each, at the latest when the next run of the context
     * begins or the context is destroyed. Without release_tensor, it must stay valid as long as the
     * provider. A function that fails releases its results itself. */
    uint32_t placements;
    /* Copies the elements of a result on a device to host memory of kelp_tensor_bytes bytes. NULL:
     * not supported; a run then fails with UNIMPLEMENTED if other providers or the application
     * would read such a result. */
    kelp_status *(*to_host)(void *self, const kelp_op_env *env, const kelp_tensor *tensor,
                            void *out_data);
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
 * - the table has neither atomic_opset, extension_opsets nor covers;
 * - an operator has no kernel, and the table has neither dispatch nor execute_graph (the error
 *   names the operator);
 * - its atomic opset lacks operators of kelp_opset_floor (the error lists them);
 * - the signature of an operator is malformed (the error names the operator and the position);
 * - it has `covers` but cannot run subgraphs, materialize without release_tensor, or release_tensor
 *   without materialize and `placements`. */
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

/* Checks that every node of every block, subgraph and function has a provider. Fails with one line
 * per node: operator, domain, version, node name and location. The code is UNIMPLEMENTED if no
 * provider declares some operator. It is INVALID_ARGUMENT if all are declared and some nodes do not
 * match the signatures of their operators; the line then names the input, output or attribute, what
 * was expected and what was found. Types and shapes are checked as far as they can be inferred. */
KELP_API kelp_status *kelp_opset_check_ready(const kelp_opset_registry *registry,
                                             const kelp_graph *graph) KELP_MUST_USE;

/* Runs one node to completion, with its kernel, dispatch or execute_graph. A host obtains the node
 * from a graph (kelp_graph_create_node), `match` from kelp_opset_find and `env` from
 * kelp_op_env_create. `inputs` has one item per input of the node, NULL for omitted ones, and
 * `outputs` one per output; both are arrays of the caller. Output data comes from
 * kelp_op_env_alloc, is borrowed from an input, or is on a device, as the provider set it, until
 * the environment is reset. Inputs may be on devices that the provider accepts (`placements`). The
 * tensors are checked against the signature of the operator. Fails with UNIMPLEMENTED for a node of
 * the provider `cpu` with nested blocks, which needs an engine. */
KELP_API kelp_status *kelp_opset_dispatch(const kelp_opset_match *match, const kelp_op_env *env,
                                          const kelp_node *node, const kelp_tensor *const *inputs,
                                          kelp_tensor *outputs) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
