/* SPDX-License-Identifier: Apache-2.0 */
/* Checks tensors against signatures with partial knowledge, and tells what follows for others. */
#include "signature/signature.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

void kelp_signature_facts_init(const kelp_signature *signature, kelp_signature_facts *out) {
    memset(out->letters, 0, sizeof out->letters);
    for (int32_t i = 0; i < signature->symbol_count; i++) {
        out->dims[i] = -1;
        out->symbols[i] = NULL;
    }
    for (int32_t i = 0; i < signature->leading_count; i++)
        out->leadings[i].rank = -1;
}

void kelp_signature_list_types(uint32_t dtypes, char *out, size_t capacity) {
    size_t length = 0;
    out[0] = '\0';
    for (int32_t i = 0; i < KELP_DTYPE_COUNT && length < capacity; i++)
        if ((dtypes >> i & 1) != 0)
            length += (size_t)snprintf(out + length, capacity - length, "%s%s",
                                       length > 0 ? " or " : "", kelp_dtype_name((kelp_dtype)i));
}

/* ---- types ---- */
static bool wrong_type(kelp_signature_problem *out, const char *expected, kelp_dtype found) {
    snprintf(out->text, sizeof out->text, "expected type %s, found %s", expected,
             kelp_dtype_name(found));
    return false;
}

static bool learn_type(const kelp_signature *s, const kelp_signature_param *p, kelp_dtype found,
                       kelp_signature_facts *facts, kelp_signature_problem *problem) {
    if (found == KELP_DTYPE_INVALID)
        return true;
    kelp_dtype expected = p->letter >= 0 ? facts->letters[p->letter] : p->dtype;
    if (expected != KELP_DTYPE_INVALID && found != expected)
        return wrong_type(problem, kelp_dtype_name(expected), found);
    if (p->letter < 0)
        return true;
    uint32_t permitted = s->letters[p->letter].dtypes;
    if (permitted != 0 && (found >= KELP_DTYPE_COUNT || (permitted >> found & 1) == 0)) {
        char names[256];
        kelp_signature_list_types(permitted, names, sizeof names);
        return wrong_type(problem, names, found);
    }
    facts->letters[p->letter] = found;
    return true;
}

/* ---- shapes ---- */
static bool wrong_shape(kelp_signature_problem *out, const kelp_signature_view *view,
                        const char *expected) {
    char found[256];
    kelp_shape_format(view->rank, view->shape, found, sizeof found);
    snprintf(out->text, sizeof out->text, "expected %s, found shape %s", expected, found);
    return false;
}

/* Merges a dimension into `*inout`; returns false if they differ. */
static bool merge_dim(int64_t *inout, const char **inout_symbol, int64_t dim, const char *symbol) {
    if (dim < 0) {
        if (*inout < 0 && *inout_symbol == NULL)
            *inout_symbol = symbol;
        return true;
    }
    if (*inout >= 0)
        return *inout == dim;
    *inout = dim;
    *inout_symbol = NULL;
    return true;
}

static bool learn_leading(const kelp_signature *s, const kelp_signature_param *p,
                          const kelp_signature_view *view, kelp_signature_facts *facts,
                          kelp_signature_problem *problem) {
    if (p->leading_symbol < 0)
        return true;
    kelp_signature_view *known = &facts->leadings[p->leading_symbol];
    int32_t rank = view->rank - p->dim_count;
    bool same = known->rank < 0 || known->rank == rank;
    if (known->rank < 0) {
        known->rank = rank;
        for (int32_t i = 0; i < rank; i++) {
            known->shape[i] = -1;
            known->symbols[i] = NULL;
        }
    }
    kelp_signature_view before = *known;
    for (int32_t i = 0; same && i < rank; i++)
        same = merge_dim(&known->shape[i], &known->symbols[i], view->shape[i], view->symbols[i]);
    if (same)
        return true;
    char shape[160], expected[256];
    kelp_shape_format(before.rank, before.shape, shape, sizeof shape);
    snprintf(expected, sizeof expected, "leading dimensions %s, as for the other '...%s'", shape,
             s->leadings[p->leading_symbol]);
    return wrong_shape(problem, view, expected);
}

static bool learn_dims(const kelp_signature *s, const kelp_signature_param *p,
                       const kelp_signature_view *view, kelp_signature_facts *facts,
                       kelp_signature_problem *problem) {
    char expected[160];
    int32_t first = view->rank - p->dim_count;
    for (int32_t i = 0; i < p->dim_count; i++) {
        int64_t dim = p->dims[i], found = view->shape[first + i];
        if (dim == -1)
            continue;
        if (dim >= 0 && found >= 0 && found != dim) {
            snprintf(expected, sizeof expected, "axis %d to be %lld", first + i, (long long)dim);
            return wrong_shape(problem, view, expected);
        }
        if (dim >= 0)
            continue;
        int64_t at = -2 - dim, bound = facts->dims[at];
        if (!merge_dim(&facts->dims[at], &facts->symbols[at], found, view->symbols[first + i])) {
            snprintf(expected, sizeof expected, "dimension '%s' of axis %d to be %lld",
                     s->symbols[at], first + i, (long long)bound);
            return wrong_shape(problem, view, expected);
        }
    }
    return true;
}

bool kelp_signature_learn(const kelp_signature *signature, int32_t index,
                          const kelp_signature_view *view, kelp_signature_facts *inout,
                          kelp_signature_problem *out_problem) {
    const kelp_signature_param *p = &signature->params[index];
    KELP_ASSERT(p->kind == KELP_ARG_TENSOR && view->rank <= KELP_MAX_RANK);
    if (!learn_type(signature, p, view->dtype, inout, out_problem))
        return false;
    if (view->rank < 0)
        return true;
    if (p->leading ? view->rank < p->dim_count : view->rank != p->dim_count) {
        char expected[64];
        snprintf(expected, sizeof expected, "rank %s%d", p->leading ? "of at least " : "",
                 p->dim_count);
        return wrong_shape(out_problem, view, expected);
    }
    return (!p->leading || learn_leading(signature, p, view, inout, out_problem)) &&
           learn_dims(signature, p, view, inout, out_problem);
}

bool kelp_signature_learn_integer(const kelp_signature *signature, int32_t index, int64_t value,
                                  kelp_signature_facts *inout,
                                  kelp_signature_problem *out_problem) {
    const kelp_signature_param *p = &signature->params[index];
    if (!kelp_signature_integer_fits(p->dtype, value) || (p->symbol >= 0 && value < 0)) {
        snprintf(out_problem->text, sizeof out_problem->text, "expected %s, found %lld",
                 p->symbol >= 0 ? "the size of a dimension" : kelp_dtype_name(p->dtype),
                 (long long)value);
        return false;
    }
    if (p->symbol < 0)
        return true;
    int64_t bound = inout->dims[p->symbol];
    if (merge_dim(&inout->dims[p->symbol], &inout->symbols[p->symbol], value, NULL))
        return true;
    snprintf(out_problem->text, sizeof out_problem->text,
             "expected %lld, which is dimension '%s' of the tensors, found %lld", (long long)bound,
             p->name, (long long)value);
    return false;
}

void kelp_signature_tell(const kelp_signature *signature, int32_t index,
                         const kelp_signature_facts *facts, kelp_signature_view *out) {
    const kelp_signature_param *p = &signature->params[index];
    KELP_ASSERT(p->kind == KELP_ARG_TENSOR);
    out->dtype = p->letter >= 0 ? facts->letters[p->letter] : p->dtype;
    out->rank = 0;
    if (p->leading) {
        const kelp_signature_view *leading =
            p->leading_symbol >= 0 ? &facts->leadings[p->leading_symbol] : NULL;
        if (leading == NULL || leading->rank < 0 || leading->rank + p->dim_count > KELP_MAX_RANK) {
            out->rank = -1;
            return;
        }
        out->rank = leading->rank;
        memcpy(out->shape, leading->shape, (size_t)out->rank * sizeof *out->shape);
        memcpy(out->symbols, leading->symbols, (size_t)out->rank * sizeof *out->symbols);
    }
    for (int32_t i = 0; i < p->dim_count; i++, out->rank++) {
        int64_t dim = p->dims[i];
        bool named = dim <= -2;
        out->shape[out->rank] = named ? facts->dims[-2 - dim] : dim;
        out->symbols[out->rank] = named ? facts->symbols[-2 - dim] : NULL;
    }
}
