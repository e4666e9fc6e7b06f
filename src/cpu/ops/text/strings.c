/* SPDX-License-Identifier: Apache-2.0 */
/* StringConcat, StringSplit, StringNormalizer. New text is in memory of the run; unchanged text is
 * borrowed from the input. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/text/text.h"

#define TEXT_ERROR(args, format, ...)                                                          \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (%s): " format, kelp_node_name((args)->node), \
               kelp_node_op_type((args)->node), __VA_ARGS__)

static kelp_status *check_strings(const kelp_op_args *args, int32_t count) {
    KELP_TRY(kelp_ops_check_inputs(args, count));
    for (int32_t i = 0; i < count; i++)
        if (args->inputs[i]->dtype != KELP_STRING)
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    return NULL;
}

/* ---- StringConcat ---- */
static kelp_status *concat_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    KELP_TRY(check_strings(args, 2));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = a->rank;
    memcpy(shape, a->shape, sizeof shape);
    if (!kelp_ops_broadcast_shape(&rank, shape, b->rank, b->shape))
        return kelp_ops_bad_shapes(args, a, b, "the shapes do not broadcast");
    return kelp_ops_set(args, 0, KELP_STRING, rank, shape);
}

static kelp_status *concat_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    const kelp_tensor *y = args->outputs[0];
    const kelp_string *a = args->inputs[0]->data, *b = args->inputs[1]->data;
    kelp_string *out = y->data;
    kelp_bcast bcast;
    kelp_bcast_init(&bcast, y->rank, y->shape, args->inputs, 2);
    for (int64_t row = 0, i = 0; row < bcast.outer; row++) {
        int64_t offsets[KELP_BCAST_MAX];
        kelp_bcast_row(&bcast, row, offsets);
        for (int64_t k = 0; k < bcast.inner; k++, i++) {
            int64_t last = bcast.rank - 1;
            const kelp_string *p = a + offsets[0] + (last >= 0 ? k * bcast.strides[0][last] : 0);
            const kelp_string *q = b + offsets[1] + (last >= 0 ? k * bcast.strides[1][last] : 0);
            size_t length;
            if (!kelp_size_add(p->length, q->length, &length))
                return kelp_status_oom();
            char *text = kelp_op_env_alloc(args->env, length + 1);
            if (text == NULL)
                return kelp_status_oom();
            if (p->length > 0)
                memcpy(text, p->data, p->length);
            if (q->length > 0)
                memcpy(text + p->length, q->data, q->length);
            KELP_ASSERT(i < kelp_tensor_elements(y));
            out[i] = (kelp_string){text, length};
        }
    }
    return NULL;
}
KELP_KERNEL(StringConcat, 0, 0, 0, concat_reshape, concat_invoke);

/* ---- StringSplit ---- */
typedef struct splitter {
    const char *at, *end;
    const char *delimiter;
    size_t delimiter_length; /* 0: white space */
    int64_t left;            /* number of further splits */
    bool open;               /* there is another part */
} splitter;

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static splitter split_begin(const kelp_op_args *args, const kelp_string *text) {
    splitter s = {.at = text->data, .end = text->data + text->length, .open = true};
    s.delimiter = kelp_node_attr_string(args->node, "delimiter", "", &s.delimiter_length);
    if (kelp_node_attr_type(args->node, "delimiter") == KELP_ATTR_NONE)
        s.delimiter_length = 0;
    s.left = kelp_node_attr_i64(args->node, "maxsplit", INT64_MAX);
    if (text->length == 0)
        s.at = s.end = "";
    return s;
}

/* Returns the next word between runs of white space; after the last split, the rest of the text
 * without the white space around it. */
static bool next_word(splitter *s, kelp_string *out) {
    while (s->at < s->end && is_space(*s->at))
        s->at++;
    if (s->at == s->end)
        return false;
    const char *first = s->at;
    if (s->left-- <= 0) {
        const char *last = s->end;
        while (last > first && is_space(last[-1]))
            last--;
        *out = (kelp_string){first, (size_t)(last - first)};
        s->at = s->end;
        return true;
    }
    while (s->at < s->end && !is_space(*s->at))
        s->at++;
    *out = (kelp_string){first, (size_t)(s->at - first)};
    return true;
}

static bool next_part(splitter *s, kelp_string *out) {
    if (s->delimiter_length == 0)
        return next_word(s, out);
    if (!s->open)
        return false;
    size_t rest = (size_t)(s->end - s->at);
    const char *hit =
        s->left > 0 && rest > 0 ? memmem(s->at, rest, s->delimiter, s->delimiter_length) : NULL;
    s->left--;
    s->open = hit != NULL;
    *out = (kelp_string){s->at, hit != NULL ? (size_t)(hit - s->at) : rest};
    if (hit != NULL)
        s->at = hit + s->delimiter_length;
    return true;
}

static kelp_status *split_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(check_strings(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_defer(args, 0))
        return NULL;
    int64_t max_parts = 0, count = kelp_tensor_elements(x);
    for (int64_t i = 0; i < count; i++) {
        splitter s = split_begin(args, (const kelp_string *)x->data + i);
        kelp_string part;
        int64_t parts = 0;
        while (next_part(&s, &part))
            parts++;
        max_parts = KELP_MAX(max_parts, parts);
    }
    if (x->rank + 1 > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, x, NULL, "the result has too many axes");
    int64_t shape[KELP_MAX_RANK];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank] = max_parts;
    KELP_TRY(kelp_ops_set(args, 0, KELP_STRING, x->rank + 1, shape));
    return kelp_ops_set(args, 1, KELP_I64, x->rank, x->shape);
}

static kelp_status *split_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    const kelp_tensor *x = args->inputs[0];
    kelp_tensor *y = kelp_ops_out(args, 0), *lengths = kelp_ops_out(args, 1);
    int64_t count = kelp_tensor_elements(x), max_parts = y != NULL ? y->shape[y->rank - 1] : 0;
    for (int64_t i = 0; i < count; i++) {
        splitter s = split_begin(args, (const kelp_string *)x->data + i);
        kelp_string part;
        int64_t parts = 0;
        for (; next_part(&s, &part); parts++)
            if (y != NULL)
                ((kelp_string *)y->data)[i * max_parts + parts] = part;
        KELP_ASSERT(y == NULL || parts <= max_parts);
        for (int64_t k = parts; k < max_parts; k++)
            ((kelp_string *)y->data)[i * max_parts + k] = (kelp_string){"", 0};
        if (lengths != NULL)
            ((int64_t *)lengths->data)[i] = parts;
    }
    return NULL;
}
KELP_KERNEL(StringSplit, 0, 0, 0, split_reshape, split_invoke);

/* ---- StringNormalizer ---- */
typedef enum action { KEEP, LOWER, UPPER } action;

static kelp_status *read_action(const kelp_op_args *args, action *out) {
    static const char *const names[] = {"NONE", "LOWER", "UPPER"};
    const char *name = kelp_node_attr_string(args->node, "case_change_action", "NONE", NULL);
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (action)i;
            return NULL;
        }
    return TEXT_ERROR(args, "case_change_action: expected NONE, LOWER or UPPER, found '%s'", name);
}

static kelp_status *change_case(const kelp_op_args *args, const kelp_string *from, action how,
                                kelp_string *out) {
    *out = *from;
    if (how == KEEP || from->length == 0)
        return NULL;
    size_t capacity;
    if (!kelp_size_mul(from->length, 2, &capacity) || !kelp_size_add(capacity, 1, &capacity))
        return kelp_status_oom();
    char *text = kelp_op_env_alloc(args->env, capacity);
    if (text == NULL)
        return kelp_status_oom();
    out->length = how == LOWER ? kelp_text_lower(from->data, from->length, text)
                               : kelp_text_upper(from->data, from->length, text);
    out->data = text;
    return NULL;
}

/* Writes the texts that are not stop words, in order. `out` has a capacity of one more than the
 * input has elements. */
static kelp_status *normalize(const kelp_op_args *args, kelp_string *out, int64_t *out_count) {
    const kelp_string *stops = NULL, *x = args->inputs[0]->data;
    int64_t count = kelp_tensor_elements(args->inputs[0]);
    size_t stop_count = kelp_node_attr_strings(args->node, "stopwords", &stops);
    bool exact = kelp_node_attr_i64(args->node, "is_case_sensitive", 0) != 0;
    action how = KEEP;
    KELP_TRY(read_action(args, &how));
    action compared = exact ? KEEP : how == UPPER ? UPPER : LOWER;
    kelp_string *words = kelp_op_env_alloc(args->env, (stop_count + 1) * sizeof *words);
    if (words == NULL)
        return kelp_status_oom();
    for (size_t k = 0; k < stop_count; k++)
        KELP_TRY(change_case(args, &stops[k], compared, &words[k]));
    *out_count = 0;
    for (int64_t i = 0; i < count; i++) {
        kelp_string text;
        bool stopped = false;
        KELP_TRY(change_case(args, &x[i], compared, &text));
        for (size_t k = 0; k < stop_count && !stopped; k++)
            stopped = kelp_text_same(&text, &words[k]);
        if (!stopped)
            KELP_TRY(change_case(args, &x[i], how, &out[(*out_count)++]));
    }
    if (*out_count == 0) {
        *out_count = 1; /* the result is never empty: one empty text */
        out[0] = (kelp_string){"", 0};
    }
    return NULL;
}

typedef struct normalizer_plan {
    kelp_string *texts;
} normalizer_plan;

static kelp_status *normalizer_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    normalizer_plan *plan = args->plan;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(check_strings(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if ((x->rank != 1 && x->rank != 2) || (x->rank == 2 && x->shape[0] != 1))
        return kelp_ops_bad_shapes(args, x, NULL, "expected [C] or [1,C]");
    if (kelp_ops_defer(args, 0))
        return NULL;
    int64_t count = kelp_tensor_elements(x);
    plan->texts = kelp_op_env_alloc(args->env, (size_t)(count + 1) * sizeof *plan->texts);
    if (plan->texts == NULL) { /* there is no memory of a run while a schedule is compiled */
        args->deferred = true;
        return NULL;
    }
    int64_t kept = 0;
    KELP_TRY(normalize(args, plan->texts, &kept));
    return kelp_ops_set(args, 0, KELP_STRING, x->rank,
                        (const int64_t[]){x->rank == 2 ? 1 : kept, kept});
}

static kelp_status *normalizer_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    const normalizer_plan *plan = args->plan;
    memcpy(args->outputs[0]->data, plan->texts, kelp_tensor_bytes(args->outputs[0]));
    return NULL;
}
KELP_KERNEL(StringNormalizer, 0, sizeof(normalizer_plan), 0, normalizer_reshape, normalizer_invoke);
