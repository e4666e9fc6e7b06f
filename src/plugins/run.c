/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels on tensors. kelp/kernel.h defines the order of inputs and outputs. */
#include "plugins/run.h"

#include "base/assert.h"

#include <string.h>

bool kelp_kernel_shapes_follow(const kelp_kernel *kernel) {
    bool writes = false;
    for (int32_t i = 0; kernel->typed && i < kernel->signature.count; i++)
        writes |= kernel->signature.params[i].kind == KELP_ARG_TENSOR &&
                  kernel->signature.params[i].direction != KELP_PARAM_IN;
    return writes && kelp_signature_determines_outputs(&kernel->signature);
}

static kelp_status *set_tensor(kelp_kernel_bound *b, int32_t index, const kelp_tensor *tensor) {
    b->copies[index] = *tensor;
    KELP_TRY(kelp_tensor_to_dl(&b->copies[index], &b->tensors[index]));
    b->args[index].kind = KELP_ARG_TENSOR;
    b->args[index].as.tensor = &b->tensors[index];
    return NULL;
}

/* Sets a scalar. fill_counters sets an integer that has the name of a dimension and no value. */
static kelp_status *set_scalar(kelp_kernel_bound *b, int32_t index) {
    const kelp_signature *s = &b->run->kernel->signature;
    const kelp_signature_param *p = &s->params[index];
    b->args[index].kind = (uint32_t)p->kind;
    KELP_TRY(b->run->scalar(b->run->userp, p, &b->args[index]));
    bool has_value = b->args[index].kind != 0;
    KELP_ASSERT(has_value || p->symbol >= 0 || p->has_default); /* the contract of `scalar` */
    if (p->symbol >= 0)
        b->args[index].kind = (uint32_t)p->kind;
    return has_value && p->symbol >= 0
               ? kelp_signature_bind_counter(s, index, b->args[index].as.i, &b->binding)
               : NULL;
}

static kelp_status *fill_counters(kelp_kernel_bound *b) {
    const kelp_signature *s = &b->run->kernel->signature;
    for (int32_t i = 0; i < s->counter_count; i++) {
        const kelp_signature_param *p = &s->params[s->counters[i]];
        if ((b->binding.dims_known >> p->symbol & 1) == 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "parameter '%s' has no value: it is not set, and no input has a "
                              "dimension of that name",
                              p->name);
        b->args[s->counters[i]].as.i = b->binding.dims[p->symbol];
    }
    return NULL;
}

static kelp_status *set_inputs(kelp_kernel_bound *b) {
    const kelp_signature *s = &b->run->kernel->signature;
    size_t next = 0, input_count = b->run->input_count;
    kelp_signature_begin(&b->binding);
    for (int32_t i = 0; i < s->count; i++) {
        const kelp_signature_param *p = &s->params[i];
        if (p->kind != KELP_ARG_TENSOR) {
            KELP_TRY(set_scalar(b, i));
            continue;
        }
        if (p->direction == KELP_PARAM_OUT)
            continue;
        bool missing = next >= input_count || b->run->inputs[next] == NULL;
        if (missing && p->optional) {
            next++;
            continue;
        }
        if (missing)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "input %zu ('%s') is missing", next, p->name);
        KELP_TRY(set_tensor(b, i, b->run->inputs[next++]));
        KELP_TRY(kelp_signature_check_tensor(s, i, &b->tensors[i], &b->binding));
    }
    return next >= input_count ? fill_counters(b)
                               : KELP_ERROR(KELP_INVALID_ARGUMENT, "it has %zu inputs: found %zu",
                                            next, input_count);
}

static kelp_status *describe(const kelp_kernel *kernel, const kelp_signature_binding *binding,
                             const kelp_kernel_arg *args, int32_t index, kelp_tensor *out) {
    int64_t shape[KELP_MAX_RANK];
    int32_t rank;
    DLDataType type;
    if (kernel->signature.params[index].direction == KELP_PARAM_INOUT)
        return kelp_tensor_from_dl(args[index].as.tensor, out);
    if (!kelp_signature_shape(&kernel->signature, index, binding, &rank, shape, &type))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the shape of output '%s' does not follow from the inputs",
                          kernel->signature.params[index].name);
    DLTensor dl = {.dtype = type, .ndim = rank, .shape = shape, .device = {kDLCPU, 0}};
    return kelp_tensor_from_dl(&dl, out);
}

static kelp_status *make_output(kelp_kernel_bound *b, int32_t index, size_t number,
                                kelp_tensor *out) {
    KELP_TRY(describe(b->run->kernel, &b->binding, b->args, index, out));
    const void *before = out->data;
    size_t bytes = kelp_tensor_bytes(out);
    out->data = NULL;
    KELP_TRY(b->run->memory(b->run->userp, number, bytes, &out->data));
    if (b->run->kernel->signature.params[index].direction == KELP_PARAM_INOUT && bytes > 0)
        memcpy(out->data, before, bytes);
    return set_tensor(b, index, out);
}

static kelp_status *set_outputs(kelp_kernel_bound *b) {
    const kelp_signature *s = &b->run->kernel->signature;
    size_t next = 0;
    for (int32_t i = 0; i < s->count; i++) {
        kelp_tensor unrequested;
        if (s->params[i].kind != KELP_ARG_TENSOR || s->params[i].direction == KELP_PARAM_IN)
            continue;
        KELP_TRY(make_output(b, i, next,
                             next < b->run->output_count ? &b->run->outputs[next] : &unrequested));
        next++;
    }
    return NULL;
}

static kelp_status *bind(const kelp_kernel_run *run, kelp_kernel_bound *b) {
    KELP_ASSERT(run->kernel->typed);
    b->run = run;
    for (int32_t i = 0; i < run->kernel->signature.count; i++)
        b->args[i] = (kelp_kernel_arg){0};
    kelp_status *status = set_inputs(b);
    if (status == NULL)
        status = set_outputs(b);
    return KELP_ANNOTATE(status, "cannot call kernel '%s' of library '%s'", run->kernel->name,
                         run->kernel->library->name);
}

kelp_status *kelp_kernel_run_on_tensors(const kelp_kernel_run *run) {
    kelp_kernel_bound b;
    KELP_TRY(bind(run, &b));
    return kelp_kernel_call(run->kernel, run->session, b.args, run->kernel->signature.count);
}

kelp_status *kelp_kernel_submit_on_tensors(const kelp_kernel_run *run, kelp_kernel_bound *bound) {
    KELP_TRY(bind(run, bound));
    return kelp_kernel_submit(run->kernel, run->session, bound->args, run->kernel->signature.count,
                              NULL);
}

/* ---- shape inference ---- */
static kelp_status *bind_argument(const kelp_signature *s, int32_t index,
                                  const kelp_kernel_arg *arg, kelp_signature_binding *inout) {
    const kelp_signature_param *p = &s->params[index];
    if (p->kind == KELP_ARG_TENSOR && p->direction == KELP_PARAM_OUT)
        return NULL;
    if (arg->kind == 0 && p->optional)
        return NULL;
    if (p->kind == KELP_ARG_TENSOR && (arg->kind != KELP_ARG_TENSOR || arg->as.tensor == NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "argument '%s' is missing: expected a tensor",
                          p->name);
    if (p->kind == KELP_ARG_TENSOR)
        return kelp_signature_check_tensor(s, index, arg->as.tensor, inout);
    return arg->kind == KELP_ARG_INT && p->symbol >= 0
               ? kelp_signature_bind_counter(s, index, arg->as.i, inout)
               : NULL;
}

static kelp_status *infer_shapes(const kelp_kernel *kernel, const kelp_kernel_arg *args,
                                 int32_t count, kelp_tensor *outputs) {
    const kelp_signature *s = &kernel->signature;
    kelp_signature_binding binding;
    if (!kernel->typed)
        return KELP_ERROR(KELP_FAILED_PRECONDITION, "it has no signature");
    if (count != s->count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "it has %d parameters: found %d arguments",
                          (int)s->count, (int)count);
    kelp_signature_begin(&binding);
    for (int32_t i = 0; i < count; i++)
        KELP_TRY(bind_argument(s, i, &args[i], &binding));
    for (int32_t i = 0; i < count; i++) {
        if (s->params[i].kind != KELP_ARG_TENSOR || s->params[i].direction == KELP_PARAM_IN)
            continue;
        KELP_TRY(describe(kernel, &binding, args, i, outputs));
        (outputs++)->data = NULL;
    }
    return NULL;
}

kelp_status *kelp_kernel_infer_shapes(const kelp_kernel *kernel, const kelp_kernel_arg *args,
                                      int32_t count, kelp_tensor *out_tensors) {
    return KELP_ANNOTATE(infer_shapes(kernel, args, count, out_tensors),
                         "cannot infer the shapes of kernel '%s' of library '%s'", kernel->name,
                         kernel->library->name);
}

kelp_status *kelp_kernel_shapes_on_tensors(const kelp_kernel_run *run) {
    kelp_kernel_bound b;
    b.run = run;
    for (int32_t i = 0; i < run->kernel->signature.count; i++)
        b.args[i] = (kelp_kernel_arg){0};
    kelp_status *status = set_inputs(&b);
    if (status == NULL)
        status = infer_shapes(run->kernel, b.args, run->kernel->signature.count, run->outputs);
    return KELP_ANNOTATE(status, "cannot call kernel '%s' of library '%s'", run->kernel->name,
                         run->kernel->library->name);
}
