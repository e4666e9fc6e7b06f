/* SPDX-License-Identifier: Apache-2.0 */
/* Checks arguments against signatures and computes the shapes that follow. */
#include "signature/signature.h"

#include "base/assert.h"
#include "base/checked.h"

#include <stdio.h>
#include <string.h>

static inline bool same_type(DLDataType a, DLDataType b) {
    uint32_t x, y;
    _Static_assert(sizeof a == sizeof x, "one word");
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

/* Marks error paths, so that the checks of every call are compact. */
#define COLD __attribute__((cold, noinline))

static const char *type_text(DLDataType type, char *buffer, size_t size) {
    kelp_tensor tensor;
    DLTensor dl = {.dtype = type, .device = {kDLCPU, 0}};
    kelp_status *status = kelp_tensor_from_dl(&dl, &tensor);
    if (status == NULL)
        return kelp_dtype_name(tensor.dtype);
    kelp_status_free(status);
    snprintf(buffer, size, "DLPack type %u of %u bits", type.code, type.bits);
    return buffer;
}

COLD static kelp_status *bad_type(const kelp_signature_param *p, DLDataType expected,
                                  DLDataType found) {
    char a[64], b[64];
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "argument '%s' has the wrong type: expected %s, found %s", p->name,
                      type_text(expected, a, sizeof a), type_text(found, b, sizeof b));
}

COLD static kelp_status *bad_shape(const kelp_signature *s, const kelp_signature_param *p,
                                   const DLTensor *tensor, const char *why, int64_t expected) {
    char found[256], detail[96] = "";
    (void)s;
    kelp_shape_format(tensor->ndim, tensor->shape, found, sizeof found);
    if (expected >= 0)
        snprintf(detail, sizeof detail, " %lld", (long long)expected);
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "argument '%s' has shape %s: expected %s%s", p->name,
                      found, why, detail);
}

static inline bool is_compact(const DLTensor *tensor) {
    int64_t step = 1;
    if (tensor->strides == NULL)
        return true;
    for (int32_t axis = tensor->ndim - 1; axis >= 0; axis--) {
        int64_t dim = tensor->shape[axis];
        if (dim > 1 && tensor->strides[axis] != step)
            return false;
        if (dim > 1 && !kelp_i64_mul(step, dim, &step))
            return false;
    }
    return true;
}

COLD static kelp_status *bad_leading(const kelp_signature *s, const kelp_signature_param *p,
                                     const DLTensor *tensor, const kelp_signature_binding *b) {
    char text[160], shape[128];
    int at = p->leading_symbol;
    kelp_shape_format(b->leading_ranks[at], b->leadings[at], shape, sizeof shape);
    snprintf(text, sizeof text, "leading dimensions %s, as for the other '...%s'", shape,
             s->leadings[at]);
    return bad_shape(s, p, tensor, text, -1);
}

COLD static kelp_status *bad_dim(const kelp_signature *s, const kelp_signature_param *p,
                                 const DLTensor *tensor, int32_t axis, int64_t dim,
                                 int64_t expected) {
    char text[96];
    if (dim <= -2)
        snprintf(text, sizeof text, "dimension '%s' of axis %d to be", s->symbols[-2 - dim], axis);
    else
        snprintf(text, sizeof text, "axis %d to be", axis);
    return bad_shape(s, p, tensor, text, expected);
}

static inline kelp_status *check_leading(const kelp_signature *s, const kelp_signature_param *p,
                                         const DLTensor *tensor, kelp_signature_binding *b) {
    int32_t rank = tensor->ndim - p->dim_count;
    int at = p->leading_symbol;
    if (at < 0)
        return NULL;
    if ((b->leadings_known >> at & 1) == 0) {
        b->leadings_known |= (uint32_t)1 << at;
        b->leading_ranks[at] = rank;
        b->leadings[at] = tensor->shape;
        return NULL;
    }
    bool same = b->leading_ranks[at] == rank;
    for (int32_t i = 0; same && i < rank; i++)
        same = b->leadings[at][i] == tensor->shape[i];
    return same ? NULL : bad_leading(s, p, tensor, b);
}

static inline kelp_status *check_dims(const kelp_signature *s, const kelp_signature_param *p,
                                      const DLTensor *tensor, kelp_signature_binding *b) {
    int32_t first = tensor->ndim - p->dim_count;
    if (p->leading ? first < 0 : first != 0)
        return bad_shape(s, p, tensor, p->leading ? "rank of at least" : "rank", p->dim_count);
    if (p->leading)
        KELP_TRY(check_leading(s, p, tensor, b));
    for (int32_t i = 0; i < p->dim_count; i++) {
        int64_t found = tensor->shape[first + i], expected = p->dims[i];
        if (expected <= -2) {
            int at = (int)(-2 - expected);
            int64_t *bound = &b->dims[at];
            if ((b->dims_known >> at & 1) == 0) {
                b->dims_known |= (uint32_t)1 << at;
                *bound = found;
            }
            if (*bound != found)
                return bad_dim(s, p, tensor, first + i, expected, *bound);
        } else if (expected >= 0 && found != expected) {
            return bad_dim(s, p, tensor, first + i, expected, expected);
        }
    }
    return NULL;
}

COLD static kelp_status *bad_letter(const kelp_signature_types *types,
                                    const kelp_signature_param *p, DLDataType found) {
    char expected[256], text[64];
    kelp_signature_list_types(types->dtypes, expected, sizeof expected);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "argument '%s' has the wrong type: expected %s, found %s", p->name, expected,
                      type_text(found, text, sizeof text));
}

static inline bool is_permitted(const kelp_signature_types *types, DLDataType type) {
    if (types->dtypes == 0)
        return true;
    for (int32_t i = 0; i < types->dl_count; i++)
        if (same_type(types->dl[i], type))
            return true;
    return false;
}

static inline kelp_status *check_tensor(const kelp_signature *signature, int32_t index,
                                        const DLTensor *tensor, kelp_signature_binding *inout) {
    const kelp_signature_param *p = &signature->params[index];
    if (tensor->ndim < 0 || tensor->ndim > KELP_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "argument '%s' has rank %d: expected 0 to %d",
                          p->name, tensor->ndim, KELP_MAX_RANK);
    if (p->letter >= 0) {
        DLDataType *bound = &inout->letters[p->letter];
        if ((inout->letters_known >> p->letter & 1) == 0) {
            if (!is_permitted(&signature->letters[p->letter], tensor->dtype))
                return bad_letter(&signature->letters[p->letter], p, tensor->dtype);
            inout->letters_known |= (uint32_t)1 << p->letter;
            *bound = tensor->dtype;
        }
        if (!same_type(*bound, tensor->dtype))
            return bad_type(p, *bound, tensor->dtype);
    } else if (p->dtype != KELP_DTYPE_INVALID && !same_type(p->dl, tensor->dtype)) {
        return bad_type(p, p->dl, tensor->dtype);
    }
    KELP_TRY(check_dims(signature, p, tensor, inout));
    if (!p->strided && !is_compact(tensor))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "argument '%s' has gaps between its elements: expected a compact tensor",
                          p->name);
    return NULL;
}

kelp_status *kelp_signature_check_tensor(const kelp_signature *signature, int32_t index,
                                         const DLTensor *tensor, kelp_signature_binding *inout) {
    return check_tensor(signature, index, tensor, inout);
}

/* Returns true if the address is a multiple of the element's size, at most 8. */
static inline bool is_aligned(const DLTensor *tensor) {
    uint32_t bytes = (uint32_t)tensor->dtype.bits * tensor->dtype.lanes / 8;
    uintptr_t mask = bytes >= 8 ? 7 : bytes >= 4 ? 3 : bytes >= 2 ? 1 : 0;
    return (((uintptr_t)tensor->data + tensor->byte_offset) & mask) == 0;
}

COLD static kelp_status *bad_address(const kelp_signature_param *p, const DLTensor *tensor) {
    char text[64];
    return KELP_ERROR(
        KELP_INVALID_ARGUMENT,
        "the address of argument '%s' is not aligned: expected a multiple of the size of %s",
        p->name, type_text(tensor->dtype, text, sizeof text));
}

static inline kelp_status *check_tensor_arg(const kelp_signature *s, int32_t index,
                                            const kelp_kernel_arg *arg, DLDevice device,
                                            kelp_signature_binding *binding) {
    const kelp_signature_param *p = &s->params[index];
    const DLTensor *tensor = arg->as.tensor;
    KELP_TRY(check_tensor(s, index, tensor, binding));
    if (p->direction != KELP_PARAM_IN && (arg->flags & KELP_ARG_READ_ONLY) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "argument '%s' is read-only, but the kernel writes to it", p->name);
    if (tensor->device.device_type != device.device_type ||
        tensor->device.device_id != device.device_id)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "argument '%s' is on the wrong device: expected type %d, id %d, found type %d, id %d",
            p->name, (int)device.device_type, device.device_id, (int)tensor->device.device_type,
            tensor->device.device_id);
    if (!is_aligned(tensor))
        return bad_address(p, tensor);
    if (tensor->data == NULL) {
        for (int32_t axis = 0; axis < tensor->ndim; axis++) {
            if (tensor->shape[axis] == 0)
                return NULL;
        }
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "argument '%s' has no data", p->name);
    }
    return NULL;
}

static kelp_status *check_int(const kelp_signature_param *p, int64_t value) {
    return kelp_signature_integer_fits(p->dtype, value)
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "argument '%s' is out of range: %lld is not a valid %s", p->name,
                            (long long)value, kelp_dtype_name(p->dtype));
}

COLD static kelp_status *bad_counter(const kelp_signature_param *p, int64_t value,
                                     int64_t expected) {
    if (value < 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "argument '%s' is %lld: a dimension cannot be negative", p->name,
                          (long long)value);
    return KELP_ERROR(
        KELP_INVALID_ARGUMENT,
        "argument '%s' is %lld: expected %lld, which is dimension '%s' of the tensors", p->name,
        (long long)value, (long long)expected, p->name);
}

kelp_status *kelp_signature_bind_counter(const kelp_signature *signature, int32_t index,
                                         int64_t value, kelp_signature_binding *inout) {
    const kelp_signature_param *p = &signature->params[index];
    KELP_ASSERT(p->symbol >= 0 && p->symbol < signature->symbol_count);
    int64_t *bound = &inout->dims[p->symbol];
    bool known = (inout->dims_known >> p->symbol & 1) != 0;
    if (value < 0 || (known && *bound != value))
        return bad_counter(p, value, *bound);
    inout->dims_known |= (uint32_t)1 << p->symbol;
    *bound = value;
    return NULL;
}

static const char *kind_name(uint32_t kind) {
    static const char *const names[] = {"nothing", "a tensor", "an integer", "a number",
                                        "a string"};
    return kind < KELP_COUNT(names) ? names[kind] : "an unknown kind";
}

kelp_status *kelp_signature_check(const kelp_signature *signature, const kelp_kernel_arg *args,
                                  int32_t count, DLDevice device) {
    kelp_signature_binding binding;
    if (count != signature->count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the kernel has %d parameters: found %d arguments",
                          signature->count, count);
    kelp_signature_begin(&binding);
    for (int32_t i = 0; i < count; i++) {
        const kelp_signature_param *p = &signature->params[i];
        bool number = p->kind == KELP_ARG_FLOAT && args[i].kind == KELP_ARG_INT;
        if (args[i].kind == 0 && p->optional)
            continue;
        if ((args[i].kind != (uint32_t)p->kind && !number) ||
            (p->kind == KELP_ARG_TENSOR && args[i].as.tensor == NULL))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "argument '%s' must be %s: found %s", p->name,
                              kind_name((uint32_t)p->kind), kind_name(args[i].kind));
        if (p->kind == KELP_ARG_TENSOR)
            KELP_TRY(check_tensor_arg(signature, i, &args[i], device, &binding));
        else if (p->kind == KELP_ARG_INT)
            KELP_TRY(check_int(p, args[i].as.i));
    }
    for (int32_t i = 0; i < signature->counter_count; i++)
        KELP_TRY(kelp_signature_bind_counter(signature, signature->counters[i],
                                             args[signature->counters[i]].as.i, &binding));
    return NULL;
}

const kelp_kernel_arg *kelp_signature_fill(const kelp_signature *signature,
                                           const kelp_kernel_arg *args, kelp_kernel_arg *out) {
    bool omitted = false;
    for (int32_t i = 0; i < signature->count; i++) {
        const kelp_signature_param *p = &signature->params[i];
        out[i] = args[i];
        if (args[i].kind != 0 || !p->has_default)
            continue;
        omitted = true;
        out[i].kind = (uint32_t)p->kind;
        if (p->kind == KELP_ARG_INT)
            out[i].as.i = p->fallback.i;
        else if (p->kind == KELP_ARG_FLOAT)
            out[i].as.f = p->fallback.f;
        else
            out[i].as.s = p->fallback.s;
    }
    return omitted ? out : args;
}

bool kelp_signature_shape(const kelp_signature *signature, int32_t index,
                          const kelp_signature_binding *binding, int32_t *out_rank,
                          int64_t *out_shape, DLDataType *out_dtype) {
    KELP_ASSERT(index >= 0 && index < signature->count);
    const kelp_signature_param *p = &signature->params[index];
    *out_rank = 0;
    if (p->letter >= 0 ? (binding->letters_known >> p->letter & 1) == 0 : p->dl.lanes == 0)
        return false;
    *out_dtype = p->letter >= 0 ? binding->letters[p->letter] : p->dl;
    if (p->leading) {
        if (p->leading_symbol < 0 || (binding->leadings_known >> p->leading_symbol & 1) == 0 ||
            binding->leading_ranks[p->leading_symbol] + p->dim_count > KELP_MAX_RANK)
            return false;
        *out_rank = binding->leading_ranks[p->leading_symbol];
        memcpy(out_shape, binding->leadings[p->leading_symbol],
               (size_t)*out_rank * sizeof *out_shape);
    }
    for (int32_t i = 0; i < p->dim_count; i++) {
        int64_t dim = p->dims[i];
        if (dim <= -2) {
            int at = (int)(-2 - dim);
            KELP_ASSERT(at < signature->symbol_count);
            dim = (binding->dims_known >> at & 1) != 0 ? binding->dims[at] : -1;
        }
        if (dim < 0)
            return false;
        out_shape[(*out_rank)++] = dim;
    }
    return true;
}
