/* SPDX-License-Identifier: Apache-2.0 */
/* Parses signatures. kelp/kernel.h defines the syntax. */
#include "signature/signature.h"

#include "base/checked.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    const char *text, *at;
    kelp_arena *arena;
    kelp_signature *out;
} reader;

#define SIGNATURE_ERROR(r, ...)                                             \
    KELP_ANNOTATE(KELP_ERROR(KELP_INVALID_ARGUMENT, __VA_ARGS__),           \
                  "signature '%s' is malformed at character %d", (r)->text, \
                  (int)((r)->at - (r)->text) + 1)

static void skip_space(reader *r) {
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')
        r->at++;
}

static bool take(reader *r, char c) {
    skip_space(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static kelp_str read_word(reader *r) {
    skip_space(r);
    const char *begin = r->at;
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
        r->at++;
    return (kelp_str){begin, (size_t)(r->at - begin)};
}

static bool word_is(kelp_str word, const char *text) {
    return word.length == strlen(text) && memcmp(word.data, text, word.length) == 0;
}

static kelp_status *keep(reader *r, kelp_str word, const char **out) {
    *out = kelp_arena_strndup(r->arena, word.data, word.length);
    return *out != NULL ? NULL : KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a signature");
}

/* Returns the index of a name in `names`. Adds the name if it is new. */
static kelp_status *intern(reader *r, kelp_str word, const char **names, int32_t *inout_count,
                           int *out) {
    for (int i = 0; i < *inout_count; i++) {
        if (word_is(word, names[i])) {
            *out = i;
            return NULL;
        }
    }
    if (*inout_count == KELP_SIGNATURE_SYMBOLS)
        return SIGNATURE_ERROR(r, "expected at most %d names of dimensions",
                               KELP_SIGNATURE_SYMBOLS);
    KELP_TRY(keep(r, word, &names[*inout_count]));
    *out = (*inout_count)++;
    return NULL;
}

static kelp_status *read_dim(reader *r, kelp_signature_dim *out) {
    if (take(r, '?')) {
        *out = -1;
        return NULL;
    }
    kelp_str word = read_word(r);
    if (word.length == 0)
        return SIGNATURE_ERROR(r, "expected a dimension: a number, a name or '?'");
    if (!isdigit((unsigned char)word.data[0])) {
        int symbol = 0;
        KELP_TRY(intern(r, word, r->out->symbols, &r->out->symbol_count, &symbol));
        *out = -2 - symbol;
        return NULL;
    }
    int64_t value = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (!isdigit((unsigned char)word.data[i]) || !kelp_i64_mul(value, 10, &value) ||
            !kelp_i64_add(value, word.data[i] - '0', &value))
            return SIGNATURE_ERROR(r, "expected a number, found '%.*s'", KELP_STR_ARG(word));
    }
    *out = value;
    return NULL;
}

static kelp_status *read_shape(reader *r, kelp_signature_param *p) {
    kelp_signature_dim dims[KELP_MAX_RANK];
    p->leading_symbol = -1;
    if (take(r, ']'))
        return NULL;
    skip_space(r);
    if (strncmp(r->at, "...", 3) == 0) {
        r->at += 3;
        p->leading = true;
        kelp_str word = read_word(r);
        if (word.length > 0)
            KELP_TRY(intern(r, word, r->out->leadings, &r->out->leading_count, &p->leading_symbol));
        if (take(r, ']'))
            return NULL;
        if (!take(r, ','))
            return SIGNATURE_ERROR(r, "expected ',' or ']' after '...'");
    }
    do {
        if (p->dim_count == KELP_MAX_RANK)
            return SIGNATURE_ERROR(r, "expected at most %d dimensions", KELP_MAX_RANK);
        KELP_TRY(read_dim(r, &dims[p->dim_count]));
        p->dim_count++;
    } while (take(r, ','));
    if (!take(r, ']'))
        return SIGNATURE_ERROR(r, "expected ',' or ']' after a dimension");
    p->dims = KELP_ARENA_ARRAY(r->arena, (size_t)p->dim_count, kelp_signature_dim);
    if (p->dims == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a signature");
    memcpy(p->dims, dims, (size_t)p->dim_count * sizeof *dims);
    return NULL;
}

static kelp_status *dl_type(kelp_dtype dtype, DLDataType *out) {
    kelp_tensor tensor;
    DLTensor dl;
    KELP_TRY(kelp_tensor_init(&tensor, dtype, 0, NULL, NULL));
    KELP_TRY(kelp_tensor_to_dl(&tensor, &dl));
    *out = dl.dtype;
    return NULL;
}

static kelp_status *read_scalar(reader *r, kelp_str type, kelp_signature_param *p) {
    switch (p->dtype) {
    case KELP_I32:
    case KELP_U32:
    case KELP_I64:
    case KELP_U64:
    case KELP_BOOL:
        p->kind = KELP_ARG_INT;
        break;
    case KELP_F32:
    case KELP_F64:
        p->kind = KELP_ARG_FLOAT;
        break;
    case KELP_STRING:
        p->kind = KELP_ARG_STRING;
        break;
    default:
        return SIGNATURE_ERROR(
            r,
            "expected a scalar type (int32, uint32, int64, uint64, float32, float64, "
            "bool, string) or '[' after '%.*s'",
            KELP_STR_ARG(type));
    }
    if (p->direction != KELP_PARAM_IN)
        return SIGNATURE_ERROR(r, "a scalar cannot be written: parameter '%s'", p->name);
    return NULL;
}

static kelp_status *read_type(reader *r, kelp_signature_param *p) {
    p->data_only = take(r, '*');
    kelp_str type = read_word(r);
    char name[32];
    if (word_is(type, "strided")) {
        p->strided = true;
        type = read_word(r);
    }
    p->letter = -1;
    snprintf(name, sizeof name, "%.*s", KELP_STR_ARG(type));
    if (type.length == 1 && isupper((unsigned char)type.data[0]))
        p->letter = type.data[0] - 'A';
    if (p->letter < 0 && !word_is(type, "any"))
        p->dtype = kelp_dtype_parse(name);
    if (p->letter < 0 && p->dtype == KELP_DTYPE_INVALID && !word_is(type, "any"))
        return SIGNATURE_ERROR(r, "expected a type, 'any' or a capital letter, found '%s'", name);
    if (!take(r, '[')) {
        if (p->data_only)
            return SIGNATURE_ERROR(r, "expected '[' after '*%s': only a tensor has elements", name);
        return read_scalar(r, type, p);
    }
    p->kind = KELP_ARG_TENSOR;
    if (p->dtype == KELP_STRING)
        return SIGNATURE_ERROR(r, "DLPack has no tensors of strings");
    if (p->dtype != KELP_DTYPE_INVALID)
        KELP_TRY(dl_type(p->dtype, &p->dl));
    return read_shape(r, p);
}

static kelp_status *read_param(reader *r, kelp_signature_param *p) {
    kelp_str word = read_word(r);
    if (word_is(word, "out") || word_is(word, "inout")) {
        skip_space(r);
        if (*r->at != ':') { /* otherwise the name of the parameter */
            p->direction = word_is(word, "out") ? KELP_PARAM_OUT : KELP_PARAM_INOUT;
            word = read_word(r);
        }
    }
    if (word.length == 0)
        return SIGNATURE_ERROR(r, "expected the name of a parameter");
    KELP_TRY(keep(r, word, &p->name));
    if (!take(r, ':'))
        return SIGNATURE_ERROR(r, "expected ':' after '%s'", p->name);
    return read_type(r, p);
}

static void find_counters(kelp_signature *s, kelp_signature_param *params) {
    for (int32_t i = 0; i < s->count; i++) {
        for (int32_t k = 0; params[i].kind == KELP_ARG_INT && k < s->symbol_count; k++) {
            if (strcmp(s->symbols[k], params[i].name) == 0) {
                params[i].symbol = k;
                s->counters[s->counter_count++] = i;
                break;
            }
        }
    }
}

kelp_status *kelp_signature_parse(kelp_arena *arena, const char *text, kelp_signature *out) {
    kelp_signature_param params[KELP_SIGNATURE_PARAMS];
    reader r = {text, text, arena, out};
    *out = (kelp_signature){0};
    skip_space(&r);
    while (*r.at != '\0') {
        if (out->count == KELP_SIGNATURE_PARAMS)
            return SIGNATURE_ERROR(&r, "expected at most %d parameters", KELP_SIGNATURE_PARAMS);
        params[out->count] = (kelp_signature_param){.leading_symbol = -1, .symbol = -1};
        KELP_TRY(read_param(&r, &params[out->count]));
        out->count++;
        if (take(&r, ','))
            continue;
        skip_space(&r);
        if (*r.at != '\0')
            return SIGNATURE_ERROR(&r, "expected ',' or the end, found '%c'", *r.at);
    }
    find_counters(out, params);
    out->params = KELP_ARENA_ARRAY(arena, (size_t)out->count, kelp_signature_param);
    if (out->params == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a signature");
    if (out->count > 0)
        memcpy(out->params, params, (size_t)out->count * sizeof *params);
    return NULL;
}
