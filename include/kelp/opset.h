/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/opset.h: what a backend of operators implements.
 *
 * An opset backend declares which operators it covers and carries them out: one by one
 * (`dispatch`), as whole graphs (`execute_graph`), or, fastest, as kernels with phases
 * (`kelp_op_kernel`). It may offer any of the three; what is missing is bridged: an operator
 * becomes a one-node graph. A table that offers none, or whose atomic opset does not cover the
 * floor below, is refused at registration.
 *
 * In an engine's graph the blocks of a node (branches, bodies) stand for themselves: what they read
 * from outside comes as further inputs of the node, from index "kelp.captures" (an attribute) on,
 * and as the last inputs of each of its blocks.
 *
 * Before an engine is ready, every node of every block, subgraph and function must be covered by a
 * registered backend.
 *
 * Threads: backends are called from several threads at once, for different contexts.
 */
#ifndef KELP_OPSET_H_
#define KELP_OPSET_H_

#include <kelp/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what an operator may use while it runs ---- */
typedef struct kelp_op_env kelp_op_env;
/* Splits [0, count) over the context's threads; returns when all are done. `grain` is the count
 * whose work, some 16 µs, is worth waking a thread for; chunks are of that many or more, smaller
 * ones go only to threads that are awake already. `worker` is unique among those that run at once
 * and less than kelp_op_env_threads. Small counts run inline.
 *
 * Long ranges go by parts of some ms, with one thread as well; once the run is cancelled, parts
 * that have not begun are left out, here and in what follows. The run then ends with CANCELLED
 * whatever the kernel answers, so that a kernel has to look (kelp_op_env_cancelled) only where it
 * would use what is missing as an index or a size, and where it makes what outlasts the run. No
 * part of reshape is left out while a plan is made. */
KELP_API void kelp_op_parallel(const kelp_op_env *env, int64_t count, int64_t grain,
                               void (*fn)(void *userp, int64_t begin, int64_t end, int worker),
                               void *userp);
KELP_API int kelp_op_env_threads(const kelp_op_env *env);
/* true once the run was cancelled; whoever may interrupt it is asked, but by threads that help. For
 * units of work that take more than some ms. Any thread. */
KELP_API bool kelp_op_env_cancelled(const kelp_op_env *env);
KELP_API kelp_allocator kelp_op_env_allocator(const kelp_op_env *env);
/* Memory that lives until the context's next invoke; 64-byte aligned; no heap call once warm. For
 * strings and data-dependent results. NULL when there is none. */
KELP_API void *kelp_op_env_alloc(const kelp_op_env *env, size_t size_bytes);

/* ---- packed weights ----
 * What a kernel lays out of constants may lie in a plan, laid out when that was built: the kernel
 * describes what it is about to make, and gets room to fill, or the plan's bytes to use where they
 * lie. */
#define KELP_OP_LAYOUT_MAX 23
typedef struct kelp_op_packing {
    /* What the bytes hang on besides the constants and the node: a name, its version, and what of
     * the instruction set shows in them: "gemm/1/32". At most KELP_OP_LAYOUT_MAX characters. */
    const char *layout;
    size_t size_bytes;
    uint32_t inputs;   /* bit i: of constant input i; one at least */
    uint32_t replaces; /* bit i: the kernel reads that constant no more once this is there */
} kelp_op_packing;
typedef struct kelp_op_packed {
    const void *data; /* 64-byte aligned */
    size_t size_bytes;
    bool borrowed; /* a plan's */
} kelp_op_packed;
/* For which node of which engine; a kernel that packs later than in create keeps it in its state.
 */
typedef struct kelp_op_pack_site {
    struct kelp_packs *packs;
    const kelp_node *node;
    uint32_t index;
} kelp_op_pack_site;
KELP_API kelp_op_pack_site kelp_op_env_pack_site(const kelp_op_env *env);
/* `*out_room` is `out->data`, to be filled before it is used, or NULL when the plan had it. Any
 * thread. INVALID_ARGUMENT when the plan's bytes were altered. */
KELP_API kelp_status *kelp_op_pack(const kelp_op_pack_site *site, kelp_allocator allocator,
                                   const kelp_op_packing *packing, kelp_op_packed *out,
                                   void **out_room) KELP_MUST_USE;
/* Frees what is not a plan's. Zeroed ones are fine. */
KELP_API void kelp_op_unpack(kelp_op_packed *packed, kelp_allocator allocator);

/* ---- kernels: create → reshape → (setup) → invoke ---- */

/* One use of an operator. In reshape, inputs[i]->data is NULL unless the value is known already;
 * shapes and dtypes are always known. In invoke all data is there. Inputs left out are NULL, and so
 * are outputs that nobody wants. */
typedef struct kelp_op_args {
    const kelp_node *node;
    int32_t input_count;
    int32_t output_count;
    const kelp_tensor *const *inputs;
    kelp_tensor *const *outputs; /* reshape sets dtype, rank, shape, strides (kelp_tensor_init with
                                    NULL data); invoke writes data */
    void *plan; /* kernel->plan_bytes, zeroed before reshape, the same in invoke; this context's own
                 */
    void *scratch;        /* invoke: args->scratch_bytes, 64-byte aligned */
    size_t scratch_bytes; /* reshape sets it */
    const kelp_op_env *env;
    bool deferred; /* reshape sets it when it needs the data of an input that is not known yet: it
                      is then called again, with data, right before invoke */
    bool placed;   /* reshape sets it when, called again with data, it made the results already:
                      outputs have data (env memory, or the operator's own until it is called
                      again), and invoke is left out */
    const char *algorithm; /* NULL before reshape, which may set it: the name of the algorithm that
                              it chose for these shapes, a string that lives as long as the kernel.
                              Profilers show it. */
} kelp_op_args;

#define KELP_OP_VIEW                                                                            \
    1u /* output 0 is input 0's bytes under another shape; invoke may be skipped, and must copy \
          when called */
#define KELP_OP_INPLACE_0 2u /* output 0 may be written over input 0 when byte sizes are equal */
#define KELP_OP_INPLACE_1 4u /* … over input 1 */
#define KELP_OP_SHAPE_ONLY \
    8u /* outputs depend on the inputs' shapes alone (Shape, Size): known at plan time */
#define KELP_OP_IMPURE \
    16u /* random or otherwise not a function of its inputs: never folded or merged */
#define KELP_OP_SERIAL 32u /* never worth a second thread */
#define KELP_OP_LISTS \
    64u /* takes inputs of KELP_LIST; without it such a node is refused before its reshape */
#define KELP_OP_STATE_OPTIONAL                                                                    \
    128u /* create only prepares constants: reshape and invoke do without its state, and one that \
           runs a single time is not prepared */

typedef struct kelp_op_kernel {
    uint32_t struct_size; /* sizeof(kelp_op_kernel) */
    uint32_t flags;       /* KELP_OP_* */
    uint32_t plan_bytes;
    uint32_t unaligned_inputs; /* bit i: a constant input i may lie at any address (else it is
                                  copied to an aligned place) */
    /* Checks attributes and constants, packs weights. `*out_state` (may stay NULL) is shared by all
     * contexts, read-only from then on; one that is set is destroyed, also when this fails. May be
     * NULL. */
    kelp_status *(*create)(const kelp_node *node, const kelp_op_env *env, void **out_state);
    void (*destroy)(void *state, kelp_allocator allocator); /* may be NULL */
    kelp_status *(*reshape)(const void *state, kelp_op_args *args);
    kelp_status *(*invoke)(const void *state, kelp_op_args *args);
} kelp_op_kernel;

/* ---- declaration ---- */
typedef struct kelp_opset_op {
    const char *name;
    int32_t since_version; /* first opset version of the domain that it covers */
    int32_t until_version; /* last one; 0: that of the opset, and newer ones of the domain that
                              anybody declares and that do not list the operator anew */
    const kelp_op_kernel *kernel; /* NULL: through dispatch or execute_graph */
} kelp_opset_op;

typedef struct kelp_opset {
    const char *domain; /* "" is ai.onnx */
    int32_t version;    /* highest opset version of the domain that it knows */
    const kelp_opset_op *ops;
    size_t op_count;
} kelp_opset;

/* The operators of ai.onnx that every atomic opset covers. */
#define KELP_OPSET_FLOOR_COUNT 30
KELP_API const char *const *kelp_opset_floor(void);

/* ---- results of dispatch ---- */
typedef struct kelp_completion
    kelp_completion; /* the engine's handle for a result that comes later */
/* Called once, from any thread, when an asynchronous dispatch ends; outputs as in dispatch;
 * take_error NULL for success. */
KELP_API void kelp_completion_done(kelp_completion *completion, kelp_status *take_error);

typedef enum kelp_dispatch_result {
    KELP_DISPATCH_IMMEDIATE = 0, /* outputs are set */
    KELP_DISPATCH_LATER = 1      /* outputs will be set when kelp_completion_done is called */
} kelp_dispatch_result;

/* ---- whole subgraphs ----
 * While an engine is made, its main block is parted: a connected, convex set of nodes (no path
 * leaves it and comes back) that a backend covers, and whose cost is worth it, becomes one node
 * kelp::BackendSubgraph whose attribute `body` is the graph of those nodes; inputs and outputs have
 * the names that the values have in the model. The nodes inside are the backend's alone: they are
 * neither folded, fused nor dispatched. Nodes that own subgraphs themselves stay outside. */
#define KELP_SUBGRAPH_OP "BackendSubgraph"
#define KELP_SUBGRAPH_DOMAIN "kelp"

/* A set of nodes that may become a subgraph. Estimates are of what shapes are known. */
typedef struct kelp_opset_region {
    uint32_t struct_size; /* sizeof(kelp_opset_region) */
    uint32_t required; /* nodes that no later provider covers: without them the model cannot run */
    const kelp_node *const *nodes; /* in an order in which every value is made before it is used */
    size_t node_count;
    size_t input_count, output_count; /* values that cross its border */
    size_t border_bytes;              /* of those values, as far as their shapes are fixed */
    size_t constant_bytes;            /* of weights, which cross once */
    double operations;                /* arithmetic, a multiply-add counted as two */
    double elsewhere_ns;              /* what Kelp's own kernels would take for it, on one thread */
} kelp_opset_region;

typedef struct kelp_opset_registry kelp_opset_registry;

/* ---- the table ---- */
#define KELP_OPSET_ABI_VERSION 1
typedef struct kelp_opset_backend {
    uint32_t abi_version; /* KELP_OPSET_ABI_VERSION */
    uint32_t struct_size; /* sizeof(kelp_opset_backend) where its author compiled it */
    const char *name;
    /* At least the floor of ai.onnx. The declaration lives as long as the backend. NULL: a backend
     * of extension opsets alone, which another backend's floor stands under. */
    const kelp_opset *(*atomic_opset)(void *self);
    /* Further opsets: newer versions of ai.onnx, own domains. May be NULL: none. */
    const kelp_opset *(*extension_opsets)(void *self, size_t *out_count);
    /* Runs a whole block. inputs/outputs in the block's order; outputs' data comes from
     * kelp_op_env_alloc or is borrowed from inputs. May be NULL. */
    kelp_status *(*execute_graph)(void *self, const kelp_op_env *env, const kelp_block *block,
                                  const kelp_tensor *const *inputs, kelp_tensor *outputs);
    /* Runs one node; otherwise as execute_graph. LATER only when `completion` is not NULL. May be
     * NULL. */
    kelp_status *(*dispatch)(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result);
    /* Makes a tensor of bytes that came from elsewhere; they are the backend's from then on and
     * freed with kelp_allocator `owner`. `type_hash`: kelp_hash of the declared type string. May be
     * NULL: UNIMPLEMENTED. */
    kelp_status *(*materialize)(void *self, uint64_t type_hash, kelp_allocator owner,
                                void *take_bytes, size_t size_bytes, kelp_tensor *out);
    void (*destroy)(void *self); /* may be NULL */

    /* ---- appended: read when struct_size reaches them; all may be NULL ---- */
    uint32_t flags; /* KELP_OPSET_* */
    /* true for a node that it covers besides those of its opsets, which is how a backend says so
     * whose coverage is no list. Such nodes reach it in subgraphs only. */
    bool (*covers)(void *self, const kelp_node *node);
    /* What the region would take here, transfers included, in nanoseconds; negative: not wanted.
     * It is taken when that is less than region->elsewhere_ns, or when it has required nodes; in
     * the latter case a region that costs too much is cut down to those. NULL: a backend that the
     * engine's options name takes all it covers, any other takes the required nodes. */
    double (*cost_ns)(void *self, const kelp_opset_region *region);
    /* Makes a subgraph ready, once an engine. `graph` has the body as its main block, may be
     * retained, and stands until release_subgraph; constants are borrowed from the engine.
     * `*out_state` (may stay NULL) is shared by contexts. UNIMPLEMENTED gives the nodes back, to
     * whom else covers them; any other error is the engine's. */
    kelp_status *(*prepare_subgraph)(void *self, const kelp_op_env *env, kelp_graph *graph,
                                     void **out_state);
    /* Runs it; otherwise as dispatch. NULL: execute_graph. A backend with neither is never given a
     * subgraph: its nodes are dispatched one by one. */
    kelp_status *(*run_subgraph)(void *self, void *state, const kelp_op_env *env,
                                 const kelp_block *body, const kelp_tensor *const *inputs,
                                 kelp_tensor *outputs, kelp_completion *completion,
                                 kelp_dispatch_result *out_result);
    void (*release_subgraph)(void *self, void *state);
    /* Frees what `materialize` made. A backend that has one has both. */
    void (*release_tensor)(void *self, kelp_tensor *tensor);
} kelp_opset_backend;
/* Its operators and subgraphs are asked for only by engines whose options name it. */
#define KELP_OPSET_BY_NAME 1u

/* ---- the registry ---- made first, then read by many threads; registering is not safe beside use.
 */
KELP_API kelp_status *kelp_opset_registry_create(kelp_allocator allocator,
                                                 kelp_opset_registry **out) KELP_MUST_USE;
KELP_API void kelp_opset_registry_destroy(kelp_opset_registry *registry);
/* A backend registered later is asked before those registered earlier. Refusals (INVALID_ARGUMENT):
 * unknown ABI version, no way to execute
 * ("backend 'x' overrides neither execute_graph nor dispatch and has operators without a kernel:
 * …"), floor not covered (lists the missing, in the floor's order). `backend` outlives the
 * registry. */
KELP_API kelp_status *kelp_opset_register(kelp_opset_registry *registry,
                                          const kelp_opset_backend *backend,
                                          void *self) KELP_MUST_USE;

/* Who covers a node: true with backend, self and the declaration, or false. */
typedef struct kelp_opset_match {
    const kelp_opset_backend *backend;
    void *self;
    const kelp_opset_op *op;
    kelp_opset_registry *registry; /* that it was found in */
} kelp_opset_match;
KELP_API bool kelp_opset_find(const kelp_opset_registry *registry, const kelp_node *node,
                              kelp_opset_match *out);

/* What was declared: the opsets of all backends, one after another; false past the last. */
typedef struct kelp_opset_declared {
    const kelp_opset_backend *backend;
    const kelp_opset *opset;
} kelp_opset_declared;
KELP_API bool kelp_opset_registry_at(const kelp_opset_registry *registry, size_t index,
                                     kelp_opset_declared *out);

/* Results that may be under way at once, of all backends together: one more is refused with
 * RESOURCE_EXHAUSTED before it is dispatched. 0: the default. Not beside use. */
#define KELP_OPSET_MAX_PENDING 10000
KELP_API void kelp_opset_set_max_pending(kelp_opset_registry *registry, uint32_t max_pending);
/* Registered under this name, or NULL. Several of one name: the last. */
KELP_API const kelp_opset_backend *kelp_opset_by_name(const kelp_opset_registry *registry,
                                                      const char *name, void **out_self);

/* NULL when every node of every block, subgraph and function of the graph is covered; else
 * UNIMPLEMENTED with one line for each uncovered (domain, operator, version, node name, where it
 * stands). */
KELP_API kelp_status *kelp_opset_check_ready(const kelp_opset_registry *registry,
                                             const kelp_graph *graph) KELP_MUST_USE;

/* Runs one node now, whatever its backend offers (kernel, dispatch or one-node graph); outputs'
 * data lives in the env. Branches and bodies are planned by an engine: a node of the cpu backend
 * that owns some is UNIMPLEMENTED here. */
KELP_API kelp_status *kelp_opset_dispatch(const kelp_opset_match *match, const kelp_op_env *env,
                                          const kelp_node *node, const kelp_tensor *const *inputs,
                                          kelp_tensor *outputs) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
