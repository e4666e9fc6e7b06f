/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft Tokenizer: splits each text at separators, or into the matches of an expression.
 * Expressions are those of RE2, of which the longest match counts. Source: ONNX Runtime,
 * ContribOperators.md.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/text/utf8.h"
#include "cpu/ops/text/regex.h"

#define TOKENIZER_ERROR(node, format, ...)                                                    \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (Tokenizer): " format, kelp_node_name(node), \
               __VA_ARGS__)

typedef struct tokenizer {
    kelp_regex *regexes; /* separators in order, or the expression of a token; NULL: characters */
    size_t regex_count;
    bool is_token; /* the expression matches tokens */
    bool mark;
    size_t shortest; /* in characters */
    kelp_string pad;
} tokenizer;

/* Tokens of all texts. Texts are split separator by separator: from one list to the other. */
typedef struct token_list {
    kelp_str *items;
    size_t count, capacity;
} token_list;

typedef struct tokenizer_plan {
    kelp_str *tokens; /* of all texts, in order */
    size_t *ends;     /* for each text: the number of tokens up to its end */
} tokenizer_plan;

static kelp_status *push(token_list *list, const kelp_op_env *env, kelp_str token) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 64, bytes;
        kelp_str *items =
            kelp_size_mul(capacity, sizeof *items, &bytes) ? kelp_op_env_alloc(env, bytes) : NULL;
        if (items == NULL)
            return kelp_status_oom();
        if (list->count > 0)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = token;
    return NULL;
}

static bool long_enough(const tokenizer *t, kelp_str token) {
    size_t count = 0;
    (void)kelp_utf8_count(token, &count);
    return count >= t->shortest;
}

static size_t character_size(kelp_str text, size_t at) {
    uint32_t c;
    size_t size =
        at < text.length ? kelp_utf8_decode((kelp_str){text.data + at, text.length - at}, &c) : 1;
    KELP_ASSERT(size > 0);
    return size;
}

/* Appends the matches in `text`, or the parts between them. An empty match separates nothing, but
 * it removes the character that follows. */
static kelp_status *split_text(const tokenizer *t, const kelp_op_env *env, kelp_matcher *matcher,
                               kelp_str text, token_list *out) {
    size_t at = 0;
    while (at <= text.length) {
        bool found = false;
        size_t begin = text.length, end = text.length;
        KELP_TRY(kelp_matcher_find(matcher, text, at, &found));
        if (found)
            kelp_matcher_group(matcher, 0, &begin, &end);
        KELP_ASSERT(begin >= at && end >= begin && end <= text.length);
        kelp_str token = t->is_token ? (kelp_str){text.data + begin, end - begin}
                                     : (kelp_str){text.data + at, begin - at};
        if ((found || !t->is_token) && long_enough(t, token))
            KELP_TRY(push(out, env, token));
        if (!found)
            return NULL;
        at = end > begin ? end : begin + character_size(text, begin);
    }
    return NULL;
}

static kelp_status *split_characters(const kelp_op_env *env, kelp_str text, token_list *out) {
    for (size_t at = 0; at < text.length;) {
        size_t size = character_size(text, at);
        KELP_TRY(push(out, env, (kelp_str){text.data + at, size}));
        at += size;
    }
    return NULL;
}

/* Appends the tokens of one text to `out`; `scratch` has the matcher of each expression. */
static kelp_status *tokenize(const tokenizer *t, const kelp_op_env *env, kelp_matcher *matchers,
                             kelp_str text, token_list parts[2], token_list *out) {
    if (t->regexes == NULL)
        return split_characters(env, text, out);
    parts[0].count = 0;
    KELP_TRY(push(&parts[0], env, text));
    for (size_t i = 0; i < t->regex_count; i++) {
        token_list *from = &parts[i % 2], *to = i + 1 < t->regex_count ? &parts[(i + 1) % 2] : out;
        if (to != out)
            to->count = 0;
        for (size_t k = 0; k < from->count; k++)
            KELP_TRY(split_text(t, env, &matchers[i], from->items[k], to));
    }
    return NULL;
}

static kelp_status *read_shortest(tokenizer *t, const kelp_node *node, bool characters) {
    int64_t shortest = kelp_node_attr_i64(node, "mincharnum", 0);
    if (shortest < 1 || (characters && shortest > 1))
        return TOKENIZER_ERROR(node, "mincharnum: expected 1%s, found %lld",
                               characters ? " for single characters" : " or more",
                               (long long)shortest);
    t->shortest = (size_t)shortest;
    return NULL;
}

static kelp_status *read_all(tokenizer *t, const kelp_node *node, kelp_allocator allocator) {
    static const char *const required[] = {"mark", "pad_value", "mincharnum"};
    const kelp_string *separators = NULL;
    kelp_string token = {0};
    size_t count = kelp_node_attr_strings(node, "separators", &separators);
    for (size_t i = 0; i < KELP_COUNT(required); i++)
        if (kelp_node_attr_type(node, required[i]) == KELP_ATTR_NONE)
            return TOKENIZER_ERROR(node, "attribute '%s' is missing", required[i]);
    t->mark = kelp_node_attr_i64(node, "mark", 0) != 0;
    t->pad.data = kelp_node_attr_string(node, "pad_value", "", &t->pad.length);
    token.data = kelp_node_attr_string(node, "tokenexp", NULL, &token.length);
    t->is_token = count == 0;
    if (count == 0 && (token.data == NULL || token.length == 0))
        return TOKENIZER_ERROR(node, "expected one of the attributes %s, found none",
                               "'separators' and 'tokenexp'");
    /* as in ONNX Runtime, where this expression also matches line ends */
    bool characters = count == 0 ? token.length == 1 && *token.data == '.'
                                 : count == 1 && separators[0].length == 0;
    KELP_TRY(read_shortest(t, node, characters));
    if (characters)
        return NULL;
    t->regex_count = KELP_MAX(count, 1);
    KELP_TRY(kelp_alloc_zero(allocator, t->regex_count, sizeof *t->regexes, (void **)&t->regexes));
    for (size_t i = 0; i < t->regex_count; i++) {
        const kelp_string *text = t->is_token ? &token : &separators[i];
        KELP_TRY(kelp_regex_init(&t->regexes[i], node, t->is_token ? "tokenexp" : "separator",
                                 (kelp_str){text->data, text->length}, KELP_REGEX_LONGEST));
    }
    return NULL;
}

static void tokenizer_destroy(void *state, kelp_allocator allocator) {
    tokenizer *t = state;
    if (t == NULL)
        return;
    for (size_t i = 0; t->regexes != NULL && i < t->regex_count; i++)
        kelp_regex_deinit(&t->regexes[i]);
    if (t->regexes != NULL)
        kelp_free(allocator, t->regexes, t->regex_count * sizeof *t->regexes);
    kelp_free(allocator, t, sizeof *t);
}

static kelp_status *tokenizer_create(const kelp_node *node, const kelp_op_env *env,
                                     void **out_state) {
    tokenizer *t = NULL;
    kelp_allocator allocator = kelp_op_env_allocator(env);
    KELP_TRY(KELP_NEW(allocator, tokenizer, &t));
    kelp_status *status = read_all(t, node, allocator);
    if (status != NULL) {
        tokenizer_destroy(t, allocator);
        return status;
    }
    *out_state = t;
    return NULL;
}

/* Computes the tokens of all texts and the largest number of tokens of a text. */
static kelp_status *tokenize_all(const tokenizer *t, const kelp_op_args *args, tokenizer_plan *plan,
                                 size_t *out_most) {
    const kelp_string *x = args->inputs[0]->data;
    size_t count = (size_t)kelp_tensor_elements(args->inputs[0]);
    token_list parts[2] = {0}, out = {0};
    kelp_matcher *matchers = kelp_op_env_alloc(args->env, (t->regex_count + 1) * sizeof *matchers);
    if (matchers == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < t->regex_count; i++)
        KELP_TRY(kelp_matcher_init(&matchers[i], &t->regexes[i], args->env));
    *out_most = 0;
    for (size_t i = 0; i < count; i++) {
        kelp_str text = {x[i].length > 0 ? x[i].data : "", x[i].length};
        size_t before = out.count;
        if (!kelp_utf8_count(text, NULL))
            return TOKENIZER_ERROR(args->node, "element %zu is not valid UTF-8", i);
        KELP_TRY(tokenize(t, args->env, matchers, text, parts, &out));
        plan->ends[i] = out.count;
        *out_most = KELP_MAX(*out_most, out.count - before);
    }
    plan->tokens = out.items;
    return NULL;
}

static kelp_status *tokenizer_reshape(const void *state, kelp_op_args *args) {
    const tokenizer *t = state;
    tokenizer_plan *plan = args->plan;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_STRING)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank != 1 && x->rank != 2)
        return kelp_ops_bad_shapes(args, x, NULL, "expected [C] or [N,C]");
    int64_t shape[3] = {x->shape[0], x->rank == 2 ? x->shape[1] : 0, 0};
    if (kelp_tensor_elements(x) == 0) { /* ONNX Runtime omits the axis of the tokens */
        shape[1] = 0;
        return kelp_ops_set(args, 0, KELP_STRING, x->rank, shape);
    }
    if (kelp_ops_defer(args, 0))
        return NULL;
    size_t most = 0;
    plan->ends = kelp_op_env_alloc(args->env, (size_t)kelp_tensor_elements(x) * sizeof *plan->ends);
    if (plan->ends == NULL) { /* such memory does not exist during planning */
        args->deferred = true;
        return NULL;
    }
    KELP_TRY(tokenize_all(t, args, plan, &most));
    shape[x->rank] = most == 0 ? 0 : (int64_t)most + (t->mark ? 2 : 0);
    return kelp_ops_set(args, 0, KELP_STRING, x->rank + 1, shape);
}

static kelp_status *tokenizer_invoke(const void *state, kelp_op_args *args) {
    const tokenizer *t = state;
    const tokenizer_plan *plan = args->plan;
    const kelp_tensor *y = args->outputs[0];
    kelp_string *out = y->data;
    int64_t columns = y->shape[y->rank - 1], rows = kelp_tensor_elements(args->inputs[0]);
    size_t token = 0;
    for (int64_t r = 0; columns > 0 && r < rows; r++, out += columns) {
        int64_t c = 0;
        if (t->mark)
            out[c++] = (kelp_string){"\x02", 1};
        for (; token < plan->ends[r]; token++)
            out[c++] = (kelp_string){plan->tokens[token].data, plan->tokens[token].length};
        if (t->mark)
            out[c++] = (kelp_string){"\x03", 1};
        KELP_ASSERT(c <= columns);
        while (c < columns)
            out[c++] = t->pad;
    }
    return NULL;
}

const kelp_op_kernel kelp_op_MsTokenizer = {.struct_size = sizeof(kelp_op_kernel),
                                            .flags = KELP_OP_SERIAL,
                                            .plan_bytes = sizeof(tokenizer_plan),
                                            .create = tokenizer_create,
                                            .destroy = tokenizer_destroy,
                                            .reshape = tokenizer_reshape,
                                            .invoke = tokenizer_invoke};
