/* SPDX-License-Identifier: Apache-2.0 */
/* A library's kernels as operators of a domain. Operators may run on several threads at once; each
 * run uses a session of its own, which the registry keeps for later runs. */
#include "base/assert.h"
#include "plugins/run.h"

#include <kelp/opset.h>
#include <string.h>

/* A provider of operators. Allocated in the registry's arena. */
typedef struct kernel_opset {
    kelp_opset_backend backend;
    kelp_opset opset;
    kelp_kernel_library *library;
    const kelp_kernel **kernels; /* of the operators, in order */
} kernel_opset;

/* ---- dispatch ---- */
typedef struct op_call {
    const kelp_op_env *env;
    const kelp_node *node;
} op_call;

static kelp_status *scalar_of(void *userp, const kelp_signature_param *p, kelp_kernel_arg *out) {
    const kelp_node *node = ((op_call *)userp)->node;
    kelp_attr_type type = kelp_node_attr_type(node, p->name);
    if ((p->symbol >= 0 || p->has_default) && type == KELP_ATTR_NONE)
        out->kind = 0;
    else if (p->kind == KELP_ARG_INT && type == KELP_ATTR_INT)
        out->as.i = kelp_node_attr_i64(node, p->name, 0);
    else if (p->kind == KELP_ARG_FLOAT && type == KELP_ATTR_FLOAT)
        out->as.f = (double)kelp_node_attr_f32(node, p->name, 0);
    else if (p->kind == KELP_ARG_STRING && type == KELP_ATTR_STRING)
        out->as.s = kelp_node_attr_string(node, p->name, "", NULL);
    else
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "attribute '%s' is missing or has the wrong type: expected %s", p->name,
                          kelp_dtype_name(p->dtype));
    return NULL;
}

static kelp_status *memory_of(void *userp, size_t index, size_t size_bytes, void **out) {
    (void)index;
    *out = kelp_op_env_alloc(((op_call *)userp)->env, size_bytes > 0 ? size_bytes : 1);
    return *out != NULL ? NULL : kelp_status_oom();
}

/* Returns the kernel of an operator that was declared. */
static const kelp_kernel *kernel_of(const kernel_opset *opset, const char *name) {
    size_t i = 0;
    while (strcmp(opset->kernels[i]->name, name) != 0)
        i++;
    KELP_ASSERT(i < opset->opset.op_count);
    return opset->kernels[i];
}

static kelp_status *dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result) {
    kernel_opset *opset = self;
    kelp_kernel_registry *registry = opset->library->registry;
    kelp_kernel_session *session = NULL;
    op_call call = {env, node};
    (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    KELP_TRY(kelp_kernel_take_session(registry, &session));
    kelp_kernel_run run = {.kernel = kernel_of(opset, kelp_node_op_type(node)),
                           .session = session,
                           .inputs = inputs,
                           .input_count = kelp_node_input_count(node),
                           .outputs = outputs,
                           .output_count = kelp_node_output_count(node),
                           .scalar = scalar_of,
                           .memory = memory_of,
                           .userp = &call};
    kelp_status *status = kelp_kernel_run_on_tensors(&run);
    kelp_kernel_return_session(registry, session);
    return status;
}

static const kelp_opset *extension_opsets(void *self, size_t *out_count) {
    *out_count = 1;
    return &((kernel_opset *)self)->opset;
}

/* ---- the provider ---- */
static kelp_status *make_opset(kelp_kernel_library *library, kernel_opset **out) {
    KELP_ASSERT_HELD(&library->registry->mutex);
    kelp_arena *arena = &library->registry->arena;
    kernel_opset *opset = KELP_ARENA_NEW(arena, kernel_opset);
    kelp_opset_op *ops = KELP_ARENA_ARRAY(arena, library->kernel_count + 1, kelp_opset_op);
    const kelp_kernel **kernels =
        KELP_ARENA_ARRAY(arena, library->kernel_count + 1, const kelp_kernel *);
    if (opset == NULL || ops == NULL || kernels == NULL)
        return kelp_status_oom();
    size_t count = 0;
    for (size_t i = 0; i < library->kernel_count; i++) {
        const kelp_kernel *kernel = library->kernels[i];
        if (!kelp_kernel_shapes_follow(kernel))
            continue;
        kernels[count] = kernel;
        ops[count++] = (kelp_opset_op){
            .name = kernel->name, .since_version = 1, .signature = kernel->signature_text};
    }
    if (count == 0)
        return KELP_ERROR(KELP_NOT_FOUND,
                          "no kernel of library '%s' can be an operator: each needs a signature in "
                          "which the outputs' shapes follow from the inputs'",
                          library->name);
    *opset = (kernel_opset){.backend = {.abi_version = KELP_OPSET_ABI_VERSION,
                                        .struct_size = sizeof(kelp_opset_backend),
                                        .name = library->name,
                                        .extension_opsets = extension_opsets,
                                        .dispatch = dispatch},
                            .opset = {library->name, 1, ops, count},
                            .library = library,
                            .kernels = kernels};
    *out = opset;
    return NULL;
}

kelp_status *kelp_kernel_library_opset(kelp_kernel_library *library,
                                       const kelp_opset_backend **out_backend, void **out_self) {
    kernel_opset *opset = NULL;
    pthread_mutex_lock(&library->registry->mutex);
    kelp_status *status = make_opset(library, &opset);
    pthread_mutex_unlock(&library->registry->mutex);
    if (status != NULL)
        return status;
    *out_backend = &opset->backend;
    *out_self = opset;
    return NULL;
}
