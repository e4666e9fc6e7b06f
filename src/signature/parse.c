/* SPDX-License-Identifier: Apache-2.0 */
/* Parses signatures. kelp/kernel.h defines the syntax. */
#include "signature/signature.h"

#include "base/assert.h"
#include "base/checked.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Gets the DLPack form of a type. Returns false if it has none. */
static bool dl_type(kelp_dtype dtype, DLDataType *out) {
    kelp_tensor tensor;
    DLTensor dl;
    kelp_status *status = kelp_tensor_init(&tensor, dtype, 0, NULL, NULL);
    if (status == NULL)
        status = kelp_tensor_to_dl(&tensor, &dl);
    if (status == NULL)
        *out = dl.dtype;
    else
        kelp_status_free(status);
    return status == NULL;
}

/* ---- scalars and other attributes ---- */
static const struct {
    const char *name;
    kelp_attr_type attr;
} attribute_types[] = {{"ints", KELP_ATTR_INTS},
                       {"floats", KELP_ATTR_FLOATS},
                       {"strings", KELP_ATTR_STRINGS},
                       {"tensor", KELP_ATTR_TENSOR},
                       {"graph", KELP_ATTR_GRAPH}};

static kelp_attr_type attribute_type(kelp_str word) {
    for (size_t i = 0; i < KELP_COUNT(attribute_types); i++)
        if (word_is(word, attribute_types[i].name))
            return attribute_types[i].attr;
    return KELP_ATTR_NONE;
}

/* Reads a number or `true` and `false` as text. */
static kelp_status *read_number(reader *r, const kelp_signature_param *p, char *text, size_t size) {
    size_t length = 0;
    skip_space(r);
    while (isalnum((unsigned char)r->at[length]) || r->at[length] == '_' || r->at[length] == '-' ||
           r->at[length] == '+' || r->at[length] == '.')
        length++;
    if (length == 0 || length >= size)
        return SIGNATURE_ERROR(r, "expected the default of '%s': %s", p->name,
                               kelp_dtype_name(p->dtype));
    memcpy(text, r->at, length);
    text[length] = '\0';
    return NULL;
}

static kelp_status *read_default_number(reader *r, kelp_signature_param *p) {
    char text[64], *end = text;
    KELP_TRY(read_number(r, p, text, sizeof text));
    errno = 0;
    if (p->dtype == KELP_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        p->fallback.i = text[0] == 't';
        end = text + strlen(text);
    } else if (p->kind == KELP_ARG_INT) {
        p->fallback.i = strtoll(text, &end, 10);
    } else {
        p->fallback.f = strtod(text, &end);
    }
    if (*end != '\0' || errno == ERANGE ||
        (p->kind == KELP_ARG_INT && !kelp_signature_integer_fits(p->dtype, p->fallback.i)))
        return SIGNATURE_ERROR(r, "expected the default of '%s': %s, found '%s'", p->name,
                               kelp_dtype_name(p->dtype), text);
    r->at += strlen(text);
    return NULL;
}

static kelp_status *read_default_string(reader *r, kelp_signature_param *p) {
    skip_space(r);
    char quote = *r->at;
    const char *begin = r->at + 1,
               *end = quote == '"' || quote == '\'' ? strchr(begin, quote) : NULL;
    if (end == NULL)
        return SIGNATURE_ERROR(r, "expected the default of '%s': a string in quotes", p->name);
    KELP_TRY(keep(r, (kelp_str){begin, (size_t)(end - begin)}, &p->fallback.s));
    r->at = end + 1;
    return NULL;
}

static kelp_status *read_default(reader *r, kelp_signature_param *p) {
    if (!take(r, '='))
        return NULL;
    if (p->optional)
        return SIGNATURE_ERROR(r, "parameter '%s' is optional: expected no default", p->name);
    if (p->kind == KELP_ARG_STRING)
        KELP_TRY(read_default_string(r, p));
    else
        KELP_TRY(read_default_number(r, p));
    p->optional = p->has_default = r->out->has_defaults = true;
    return NULL;
}

/* Reads the rest of a parameter that is an attribute. */
static kelp_status *read_attribute(reader *r, kelp_str type, kelp_signature_param *p) {
    p->attr = attribute_type(type);
    switch (p->dtype) {
    case KELP_I32:
    case KELP_U32:
    case KELP_I64:
    case KELP_U64:
    case KELP_BOOL:
        p->kind = KELP_ARG_INT;
        p->attr = KELP_ATTR_INT;
        break;
    case KELP_F32:
    case KELP_F64:
        p->kind = KELP_ARG_FLOAT;
        p->attr = KELP_ATTR_FLOAT;
        break;
    case KELP_STRING:
        p->kind = KELP_ARG_STRING;
        p->attr = KELP_ATTR_STRING;
        break;
    default:
        if (p->attr != KELP_ATTR_NONE)
            break;
        return SIGNATURE_ERROR(
            r,
            "expected a scalar type (int32, uint32, int64, uint64, float32, float64, "
            "bool, string), the type of an attribute (ints, floats, strings, tensor, graph) or '[' "
            "after '%.*s'",
            KELP_STR_ARG(type));
    }
    if (p->direction != KELP_PARAM_IN)
        return SIGNATURE_ERROR(r, "a scalar cannot be written: parameter '%s'", p->name);
    if (p->variadic)
        return SIGNATURE_ERROR(r, "parameter '%s' is variadic: expected a tensor", p->name);
    return p->kind != 0 ? read_default(r, p) : NULL;
}

/* ---- parameters ---- */
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
    bool named = p->letter < 0 && !word_is(type, "any");
    if (named)
        p->dtype = kelp_dtype_parse(name);
    if (named && p->dtype == KELP_DTYPE_INVALID && attribute_type(type) == KELP_ATTR_NONE)
        return SIGNATURE_ERROR(r, "expected a type, 'any' or a capital letter, found '%s'", name);
    if (!take(r, '[')) {
        if (p->data_only)
            return SIGNATURE_ERROR(r, "expected '[' after '*%s': only a tensor has elements", name);
        return read_attribute(r, type, p);
    }
    if (named && p->dtype == KELP_DTYPE_INVALID)
        return SIGNATURE_ERROR(r, "expected the type of elements before '[', found '%s'", name);
    p->kind = KELP_ARG_TENSOR;
    if (p->dtype != KELP_DTYPE_INVALID)
        dl_type(p->dtype, &p->dl);
    return read_shape(r, p);
}

/* Applies a word before the name of a parameter. Returns false for any other word. */
static bool apply_prefix(kelp_signature_param *p, kelp_str word) {
    bool is_out = word_is(word, "out");
    if (is_out || word_is(word, "inout"))
        p->direction = is_out ? KELP_PARAM_OUT : KELP_PARAM_INOUT;
    else if (word_is(word, "optional"))
        p->optional = true;
    else if (word_is(word, "variadic"))
        p->variadic = true;
    else
        return false;
    return true;
}

static kelp_status *read_param(reader *r, kelp_signature_param *p) {
    kelp_str word = read_word(r);
    for (;;) {
        skip_space(r);
        if (*r->at == ':' || !apply_prefix(p, word)) /* before ':' it is the name */
            break;
        word = read_word(r);
    }
    if (word.length == 0)
        return SIGNATURE_ERROR(r, "expected the name of a parameter");
    KELP_TRY(keep(r, word, &p->name));
    if (!take(r, ':'))
        return SIGNATURE_ERROR(r, "expected ':' after '%s'", p->name);
    return read_type(r, p);
}

/* A variadic tensor takes all inputs, or outputs, that remain. */
static kelp_status *check_param(reader *r, const kelp_signature_param *params,
                                const kelp_signature_param *p) {
    if ((p->variadic || p->optional) && p->direction == KELP_PARAM_INOUT)
        return SIGNATURE_ERROR(r, "parameter '%s' is %s: expected an input or an output", p->name,
                               p->variadic ? "variadic" : "optional");
    for (const kelp_signature_param *other = params; other < p; other++) {
        bool both_read = other->direction != KELP_PARAM_OUT && p->direction != KELP_PARAM_OUT;
        bool both_written = other->direction != KELP_PARAM_IN && p->direction != KELP_PARAM_IN;
        if (strcmp(other->name, p->name) == 0)
            return SIGNATURE_ERROR(r, "two parameters have the name '%s'", p->name);
        if (other->variadic && p->kind == KELP_ARG_TENSOR && (both_read || both_written))
            return SIGNATURE_ERROR(r, "parameter '%s' is variadic: expected no %s after it",
                                   other->name, both_read ? "input" : "output");
    }
    return NULL;
}

/* ---- constraints ---- */
static bool uses_letter(const kelp_signature_param *params, int32_t count, int letter) {
    for (int32_t i = 0; i < count; i++)
        if (params[i].kind == KELP_ARG_TENSOR && params[i].letter == letter)
            return true;
    return false;
}

static kelp_status *read_permitted(reader *r, kelp_signature_types *types) {
    DLDataType forms[KELP_DTYPE_COUNT];
    do {
        char name[32];
        kelp_str word = read_word(r);
        snprintf(name, sizeof name, "%.*s", KELP_STR_ARG(word));
        kelp_dtype dtype = kelp_dtype_parse(name);
        if (dtype == KELP_DTYPE_INVALID)
            return SIGNATURE_ERROR(r, "expected a type, found '%s'", name);
        KELP_ASSERT(dtype < KELP_DTYPE_COUNT); /* types with names */
        if ((types->dtypes >> dtype & 1) != 0)
            return SIGNATURE_ERROR(r, "type '%s' is repeated", name);
        types->dtypes |= (uint32_t)1 << dtype;
        types->dl_count += dl_type(dtype, &forms[types->dl_count]);
    } while (take(r, '|'));
    DLDataType *kept = KELP_ARENA_ARRAY(r->arena, (size_t)types->dl_count + 1, DLDataType);
    if (kept == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a signature");
    memcpy(kept, forms, (size_t)types->dl_count * sizeof *kept);
    types->dl = kept;
    return NULL;
}

/* Reads the constraints after `where`. */
static kelp_status *read_constraints(reader *r, const kelp_signature_param *params) {
    do {
        kelp_str word = read_word(r);
        if (word.length != 1 || !isupper((unsigned char)word.data[0]))
            return SIGNATURE_ERROR(r, "expected a capital letter after 'where', found '%.*s'",
                                   KELP_STR_ARG(word));
        int letter = word.data[0] - 'A';
        if (!uses_letter(params, r->out->count, letter))
            return SIGNATURE_ERROR(r, "no parameter has type '%c'", word.data[0]);
        if (r->out->letters[letter].dtypes != 0)
            return SIGNATURE_ERROR(r, "type '%c' has two constraints", word.data[0]);
        if (!take(r, ':'))
            return SIGNATURE_ERROR(r, "expected ':' after '%c'", word.data[0]);
        KELP_TRY(read_permitted(r, &r->out->letters[letter]));
    } while (take(r, ','));
    skip_space(r);
    return *r->at == '\0' ? NULL
                          : SIGNATURE_ERROR(r, "expected '|', ',' or the end, found '%c'", *r->at);
}

/* ---- the whole text ---- */
static kelp_status *find_counters(reader *r, kelp_signature_param *params) {
    kelp_signature *s = r->out;
    for (int32_t i = 0; i < s->count; i++) {
        for (int32_t k = 0; params[i].kind == KELP_ARG_INT && k < s->symbol_count; k++) {
            if (strcmp(s->symbols[k], params[i].name) != 0)
                continue;
            if (params[i].has_default)
                return SIGNATURE_ERROR(
                    r, "parameter '%s' is the size of a dimension: expected no default",
                    params[i].name);
            params[i].symbol = k;
            s->counters[s->counter_count++] = i;
            break;
        }
    }
    return NULL;
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
        KELP_TRY(check_param(&r, params, &params[out->count]));
        out->count++;
        if (take(&r, ','))
            continue;
        const char *end = r.at;
        if (word_is(read_word(&r), "where")) {
            KELP_TRY(read_constraints(&r, params));
            break;
        }
        r.at = end;
        skip_space(&r);
        if (*r.at != '\0')
            return SIGNATURE_ERROR(&r, "expected ',' or the end, found '%c'", *r.at);
    }
    KELP_TRY(find_counters(&r, params));
    out->params = KELP_ARENA_ARRAY(arena, (size_t)out->count, kelp_signature_param);
    if (out->params == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a signature");
    if (out->count > 0)
        memcpy(out->params, params, (size_t)out->count * sizeof *params);
    return NULL;
}

kelp_status *kelp_signature_check_kernel(const kelp_signature *signature) {
    for (int32_t i = 0; i < signature->count; i++) {
        const kelp_signature_param *p = &signature->params[i];
        const char *why = NULL;
        if (p->kind == KELP_ARG_TENSOR && p->dtype != KELP_DTYPE_INVALID && p->dl.lanes == 0)
            why = "DLPack has no tensors of this type";
        else if (p->variadic)
            why = "a kernel has a fixed number of parameters: expected no 'variadic'";
        else if (p->kind == 0)
            why = "the arguments of a kernel are tensors and scalars";
        else if (p->kind != KELP_ARG_TENSOR && p->optional && !p->has_default)
            why = "an optional scalar of a kernel needs a default";
        if (why != NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s' is not for kernels: %s",
                              p->name, why);
    }
    return NULL;
}

/* ---- shapes that follow ---- */
typedef struct bound_names {
    bool symbols[KELP_SIGNATURE_SYMBOLS], leadings[KELP_SIGNATURE_SYMBOLS], letters[26];
} bound_names;

static bool follows(const kelp_signature_param *p, const bound_names *bound) {
    if (p->letter >= 0 ? !bound->letters[p->letter] : p->dtype == KELP_DTYPE_INVALID)
        return false;
    if (p->leading && (p->leading_symbol < 0 || !bound->leadings[p->leading_symbol]))
        return false;
    for (int32_t k = 0; k < p->dim_count; k++)
        if (p->dims[k] == -1 || (p->dims[k] <= -2 && !bound->symbols[-2 - p->dims[k]]))
            return false;
    return true;
}

bool kelp_signature_determines_outputs(const kelp_signature *signature) {
    bound_names bound = {{false}, {false}, {false}};
    for (int32_t i = 0; i < signature->count; i++) {
        const kelp_signature_param *p = &signature->params[i];
        if (p->symbol >= 0)
            bound.symbols[p->symbol] = true;
        if (p->kind != KELP_ARG_TENSOR || p->direction == KELP_PARAM_OUT || p->optional)
            continue;
        if (p->letter >= 0)
            bound.letters[p->letter] = true;
        if (p->leading_symbol >= 0)
            bound.leadings[p->leading_symbol] = true;
        for (int32_t k = 0; k < p->dim_count; k++)
            if (p->dims[k] <= -2)
                bound.symbols[-2 - p->dims[k]] = true;
    }
    for (int32_t i = 0; i < signature->count; i++) {
        const kelp_signature_param *p = &signature->params[i];
        if (p->kind == KELP_ARG_TENSOR && p->direction == KELP_PARAM_OUT && !follows(p, &bound))
            return false;
    }
    return true;
}
