/* SPDX-License-Identifier: Apache-2.0 */
/*
 * String operators of ai.onnx.contrib with results of known shape: StringLower, StringUpper,
 * StringLength, StringStrip, StringConcat, StringMapping, StringToVector. Source:
 * onnxruntime-extensions, docs/custom_ops.md.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/map.h"
#include "base/text/utf8.h"
#include "cpu/ops/tokenize/tables.h"
#include "cpu/ops/tokenize/tokenize.h"
#include "tokenizer/words.h"

static kelp_string element_of(kelp_str text) {
    return (kelp_string){text.data, text.length};
}

/* Sets one text for each text of input 0. */
static kelp_status *same_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    return kelp_ops_set_like(args, 0, args->inputs[0]);
}

/* ---- StringLower: the letters that BasicTokenizer converts ---- */
static kelp_status *lower_text(const kelp_op_env *env, kelp_str text, kelp_string *out) {
    char *data = NULL;
    size_t length = 0;
    KELP_TRY(kelp_run_array(env, text.length + 1, 4, (void **)&data));
    for (size_t at = 0; at < text.length;) {
        kelp_char x = kelp_char_at(text, at);
        length += kelp_utf8_encode(kelp_words_lower(x.c), data + length);
        at = x.end;
    }
    *out = (kelp_string){data, length};
    return NULL;
}

static kelp_status *lower_invoke(const void *state, kelp_op_args *args) {
    const kelp_string *x = args->inputs[0]->data;
    kelp_string *y = args->outputs[0]->data;
    (void)state;
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++)
        KELP_TRY(lower_text(args->env, kelp_text_of(&x[i]), &y[i]));
    return NULL;
}
KELP_KERNEL(StringLower, KELP_OP_SERIAL, 0, 0, same_reshape, lower_invoke);

/* ---- StringUpper: ASCII ---- */
static kelp_status *upper_invoke(const void *state, kelp_op_args *args) {
    const kelp_string *x = args->inputs[0]->data;
    kelp_string *y = args->outputs[0]->data;
    (void)state;
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++) {
        kelp_str text = kelp_text_of(&x[i]);
        char *data = NULL;
        KELP_TRY(kelp_run_array(args->env, text.length, 1, (void **)&data));
        for (size_t k = 0; k < text.length; k++) {
            char c = text.data[k];
            data[k] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        }
        y[i] = (kelp_string){data, text.length};
    }
    return NULL;
}
KELP_KERNEL(StringUpper, KELP_OP_SERIAL, 0, 0, same_reshape, upper_invoke);

/* ---- StringLength: in characters ---- */
static kelp_status *length_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    return kelp_ops_set(args, 0, KELP_I64, args->inputs[0]->rank, args->inputs[0]->shape);
}

static kelp_status *length_invoke(const void *state, kelp_op_args *args) {
    const kelp_string *x = args->inputs[0]->data;
    int64_t *y = args->outputs[0]->data;
    (void)state;
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++) {
        kelp_str text = kelp_text_of(&x[i]);
        y[i] = 0;
        for (size_t at = 0; at < text.length; y[i]++)
            at = kelp_char_at(text, at).end;
    }
    return NULL;
}
KELP_KERNEL(StringLength, KELP_OP_SERIAL, 0, 0, length_reshape, length_invoke);

/* ---- StringStrip: ASCII white space; a text of nothing else stays ---- */
static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static kelp_status *strip_invoke(const void *state, kelp_op_args *args) {
    const kelp_string *x = args->inputs[0]->data;
    kelp_string *y = args->outputs[0]->data;
    (void)state;
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++) {
        kelp_str text = kelp_text_of(&x[i]);
        size_t begin = 0, end = text.length;
        while (begin < end && is_space(text.data[begin]))
            begin++;
        while (begin < end && is_space(text.data[end - 1]))
            end--;
        y[i] = element_of(begin < end ? (kelp_str){text.data + begin, end - begin} : text);
    }
    return NULL;
}
KELP_KERNEL(StringStrip, KELP_OP_SERIAL, 0, 0, same_reshape, strip_invoke);

/* ---- StringConcat: operands of the same shape ---- */
static kelp_status *concat_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    KELP_TRY(kelp_text_check(args, 2, KELP_STRING));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    if (a->rank != b->rank || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) != 0)
        return kelp_ops_bad_shapes(args, a, b, "the shapes differ");
    return kelp_ops_set_like(args, 0, a);
}

static kelp_status *concat_invoke(const void *state, kelp_op_args *args) {
    const kelp_string *a = args->inputs[0]->data, *b = args->inputs[1]->data;
    kelp_string *y = args->outputs[0]->data;
    (void)state;
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++) {
        kelp_str left = kelp_text_of(&a[i]), right = kelp_text_of(&b[i]);
        char *data = NULL;
        KELP_TRY(kelp_run_array(args->env, left.length + right.length, 1, (void **)&data));
        memcpy(data, left.data, left.length);
        memcpy(data + left.length, right.data, right.length);
        y[i] = (kelp_string){data, left.length + right.length};
    }
    return NULL;
}
KELP_KERNEL(ContribStringConcat, KELP_OP_SERIAL, 0, 0, concat_reshape, concat_invoke);

/* ---- StringMapping ---- */
static kelp_status *mapping_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    return kelp_text_table_init(state, node, allocator, KELP_TABLE_TEXTS);
}

static void table_deinit(void *state) {
    kelp_text_table_deinit(state);
}
KELP_STATE(mapping, kelp_text_table, mapping_read, table_deinit)

static kelp_status *mapping_invoke(const void *state, kelp_op_args *args) {
    const kelp_text_table *table = state;
    const kelp_string *x = args->inputs[0]->data;
    kelp_string *y = args->outputs[0]->data;
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++) {
        kelp_str text = kelp_text_of(&x[i]);
        const kelp_table_row *row = kelp_map_get(&table->rows, text);
        y[i] = element_of(row != NULL ? row->text : text);
    }
    return NULL;
}

KELP_STATE_KERNEL(StringMapping, mapping, 0, same_reshape, mapping_invoke);

/* ---- StringToVector ---- */
static kelp_status *vector_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    return kelp_text_table_init(state, node, allocator, KELP_TABLE_TO_VECTOR);
}
KELP_STATE(vector, kelp_text_table, vector_read, table_deinit)

static kelp_status *vector_reshape(const void *state, kelp_op_args *args) {
    const kelp_text_table *table = state;
    int64_t shape[KELP_MAX_RANK];
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    const kelp_tensor *x = args->inputs[0];
    if (x->rank == KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, x, NULL, "the result has too many axes");
    memcpy(shape, x->shape, (size_t)x->rank * sizeof *shape);
    shape[x->rank] = (int64_t)table->vector_length;
    return kelp_ops_set(args, 0, KELP_I64, x->rank + 1, shape);
}

static kelp_status *vector_invoke(const void *state, kelp_op_args *args) {
    const kelp_text_table *table = state;
    const kelp_string *x = args->inputs[0]->data;
    int64_t *y = args->outputs[0]->data;
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++) {
        const kelp_table_row *row = kelp_map_get(&table->rows, kelp_text_of(&x[i]));
        memcpy(y + (size_t)i * table->vector_length,
               row != NULL ? row->vector : table->unknown_vector, table->vector_length * sizeof *y);
    }
    return NULL;
}

KELP_STATE_KERNEL(StringToVector, vector, 0, vector_reshape, vector_invoke);

/* ---- VectorToString ---- */
static kelp_status *text_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    return kelp_text_table_init(state, node, allocator, KELP_TABLE_FROM_VECTOR);
}
KELP_STATE(text, kelp_text_table, text_read, table_deinit)

static kelp_status *text_reshape(const void *state, kelp_op_args *args) {
    const kelp_text_table *table = state;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_text_check(args, 1, KELP_I64));
    const kelp_tensor *x = args->inputs[0];
    if (table->vector_length == 1 && x->rank <= 1)
        return kelp_ops_set(args, 0, KELP_STRING, x->rank, x->shape);
    if (x->rank == 0 || x->shape[x->rank - 1] != (int64_t)table->vector_length)
        return kelp_ops_bad_shapes(args, x, NULL,
                                   "the last dimension is not the length of the vectors");
    return kelp_ops_set(args, 0, KELP_STRING, x->rank - 1, x->shape);
}

static kelp_status *text_invoke(const void *state, kelp_op_args *args) {
    const kelp_text_table *table = state;
    const int64_t *x = args->inputs[0]->data;
    kelp_string *y = args->outputs[0]->data;
    for (int64_t i = 0; i < kelp_tensor_elements(args->outputs[0]); i++) {
        const int64_t *vector = x + (size_t)i * table->vector_length;
        kelp_str key = {(const char *)vector, table->vector_length * sizeof *vector};
        const kelp_table_row *row = kelp_map_get(&table->rows, key);
        y[i] = element_of(row != NULL ? row->text : table->unknown_text);
    }
    return NULL;
}

KELP_STATE_KERNEL(VectorToString, text, 0, text_reshape, text_invoke);
