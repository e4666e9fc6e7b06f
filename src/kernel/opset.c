/* SPDX-License-Identifier: Apache-2.0 */
/* A library's kernels as operators of a domain. Threads: operators run from several at once, each
 * with a session of its own, which are kept. */
#include "kernel/internal.h"

#include "base/alloc.h"

#include <kelp/opset.h>
#include <stdio.h>
#include <string.h>

/* Lives in the registry's arena. */
typedef struct kernel_opset {
    kelp_opset_backend backend;
    kelp_opset opset;
    kelp_kernel_library *library;
} kernel_opset;

/* Every output's shape follows from the inputs. */
static bool can_be_operator(const kelp_kernel *kernel) {
    const kelp_signature *s = &kernel->signature;
    bool symbols[KELP_SIGNATURE_SYMBOLS] = {false}, leadings[KELP_SIGNATURE_SYMBOLS] = {false};
    bool letters[26] = {false}, writes = false;
    if (!kernel->typed)
        return false;
    for (int32_t i = 0; i < s->count; i++) {
        const kelp_signature_param *p = &s->params[i];
        if (p->kind != KELP_ARG_TENSOR || p->direction == KELP_PARAM_OUT)
            continue;
        if (p->letter >= 0)
            letters[p->letter] = true;
        if (p->leading_symbol >= 0)
            leadings[p->leading_symbol] = true;
        for (int32_t k = 0; k < p->extent_count; k++) {
            if (p->extents[k] <= -2)
                symbols[-2 - p->extents[k]] = true;
        }
    }
    for (int32_t i = 0; i < s->count; i++) {
        const kelp_signature_param *p = &s->params[i];
        writes |= p->direction != KELP_PARAM_IN;
        if (p->direction != KELP_PARAM_OUT)
            continue;
        if (p->letter >= 0 ? !letters[p->letter] : p->dtype == KELP_DTYPE_INVALID)
            return false;
        if (p->leading && (p->leading_symbol < 0 || !leadings[p->leading_symbol]))
            return false;
        for (int32_t k = 0; k < p->extent_count; k++) {
            if (p->extents[k] == -1 || (p->extents[k] <= -2 && !symbols[-2 - p->extents[k]]))
                return false;
        }
    }
    return writes;
}

/* ---- one call ---- */
typedef struct op_call {
    const kelp_kernel *kernel;
    const kelp_op_env *env;
    const kelp_node *node;
    const kelp_tensor *const *inputs;
    kelp_tensor *outputs;
    kelp_kernel_arg args[KELP_SIGNATURE_PARAMS];
    DLTensor tensors[KELP_SIGNATURE_PARAMS];
    kelp_tensor copies[KELP_SIGNATURE_PARAMS]; /* what `tensors` borrow shapes from */
    kelp_signature_binding binding;
} op_call;

static kelp_status *set_attribute(op_call *call, int32_t index) {
    const kelp_signature_param *p = &call->kernel->signature.params[index];
    kelp_kernel_arg *arg = &call->args[index];
    kelp_attr_type type = kelp_node_attr_type(call->node, p->name);
    arg->kind = (uint32_t)p->kind;
    if (p->kind == KELP_ARG_INT && type == KELP_ATTR_INT)
        arg->as.i = kelp_node_attr_i64(call->node, p->name, 0);
    else if (p->kind == KELP_ARG_FLOAT && type == KELP_ATTR_FLOAT)
        arg->as.f = (double)kelp_node_attr_f32(call->node, p->name, 0);
    else if (p->kind == KELP_ARG_STRING && type == KELP_ATTR_STRING)
        arg->as.s = kelp_node_attr_string(call->node, p->name, "", NULL);
    else
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "attribute '%s' is missing or of another type: expected %s", p->name,
                          kelp_dtype_name(p->dtype));
    return NULL;
}

static kelp_status *set_tensor(op_call *call, int32_t index, const kelp_tensor *tensor) {
    call->copies[index] = *tensor;
    KELP_TRY(kelp_tensor_to_dl(&call->copies[index], &call->tensors[index]));
    call->args[index].kind = KELP_ARG_TENSOR;
    call->args[index].as.tensor = &call->tensors[index];
    return NULL;
}

static kelp_status *set_inputs(op_call *call) {
    const kelp_signature *s = &call->kernel->signature;
    size_t next = 0, given = kelp_node_input_count(call->node);
    kelp_signature_begin(&call->binding);
    for (int32_t i = 0; i < s->count; i++) {
        const kelp_signature_param *p = &s->params[i];
        if (p->kind != KELP_ARG_TENSOR) {
            KELP_TRY(set_attribute(call, i));
            continue;
        }
        if (p->direction == KELP_PARAM_OUT)
            continue;
        if (next == given || call->inputs[next] == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "input %zu ('%s') is missing", next, p->name);
        KELP_TRY(set_tensor(call, i, call->inputs[next++]));
        KELP_TRY(kelp_signature_check_tensor(s, i, &call->tensors[i], &call->binding));
    }
    return next == given
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT, "it takes %zu inputs: found %zu", next, given);
}

static kelp_status *make_output(op_call *call, int32_t index, kelp_tensor *out) {
    const kelp_signature_param *p = &call->kernel->signature.params[index];
    int64_t shape[KELP_MAX_RANK];
    int32_t rank;
    DLDataType type;
    if (p->direction == KELP_PARAM_INOUT) {
        *out = call->copies[index];
    } else if (kelp_signature_shape(&call->kernel->signature, index, &call->binding, &rank, shape,
                                    &type)) {
        DLTensor dl = {.dtype = type, .ndim = rank, .shape = shape, .device = {kDLCPU, 0}};
        KELP_TRY(kelp_tensor_from_dl(&dl, out));
    } else {
        return KELP_ERROR(KELP_INTERNAL, "the shape of output '%s' is not known", p->name);
    }
    size_t bytes = kelp_tensor_bytes(out);
    void *data = kelp_op_env_alloc(call->env, bytes > 0 ? bytes : 1);
    if (data == NULL)
        return kelp_status_oom();
    if (p->direction == KELP_PARAM_INOUT && bytes > 0)
        memcpy(data, out->data, bytes);
    out->data = data;
    return set_tensor(call, index, out);
}

static kelp_status *set_outputs(op_call *call) {
    const kelp_signature *s = &call->kernel->signature;
    size_t next = 0, wanted = kelp_node_output_count(call->node);
    for (int32_t i = 0; i < s->count; i++) {
        kelp_tensor ignored;
        if (s->params[i].kind != KELP_ARG_TENSOR || s->params[i].direction == KELP_PARAM_IN)
            continue;
        KELP_TRY(make_output(call, i, next < wanted ? &call->outputs[next] : &ignored));
        next++;
    }
    return NULL;
}

static kelp_status *dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result) {
    kernel_opset *opset = self;
    kelp_kernel_registry *registry = opset->library->registry;
    op_call *call = kelp_op_env_alloc(env, sizeof *call);
    kelp_kernel_session *session = NULL;
    (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    if (call == NULL)
        return kelp_status_oom();
    memset(call, 0, sizeof *call);
    call->env = env;
    call->node = node;
    call->inputs = inputs;
    call->outputs = outputs;
    KELP_TRY(kelp_kernel_library_find(opset->library, kelp_node_op_type(node), &call->kernel));
    KELP_TRY(set_inputs(call));
    KELP_TRY(set_outputs(call));
    KELP_TRY(kelp_kernel_take_session(registry, &session));
    kelp_status *status =
        kelp_kernel_call(call->kernel, session, call->args, call->kernel->signature.count);
    kelp_kernel_give_session(registry, session);
    return status;
}

static const kelp_opset *extension_opsets(void *self, size_t *out_count) {
    *out_count = 1;
    return &((kernel_opset *)self)->opset;
}

/* ---- the backend ---- */
static kelp_status *make_opset(kelp_kernel_library *library, kernel_opset **out) {
    kelp_arena *arena = &library->registry->arena;
    kernel_opset *opset = KELP_ARENA_NEW(arena, kernel_opset);
    kelp_opset_op *ops = KELP_ARENA_ARRAY(arena, library->kernel_count + 1, kelp_opset_op);
    if (opset == NULL || ops == NULL)
        return kelp_status_oom();
    size_t count = 0;
    for (size_t i = 0; i < library->kernel_count; i++) {
        if (can_be_operator(library->kernels[i]))
            ops[count++] = (kelp_opset_op){.name = library->kernels[i]->name, .since_version = 1};
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
                            .library = library};
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
