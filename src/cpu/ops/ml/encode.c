/* SPDX-License-Identifier: Apache-2.0 */
/* LabelEncoder, CategoryMapper, OneHotEncoder: look-ups of strings and numbers. */
#include "cpu/ops/ml/ml.h"

#include "base/assert.h"
#include "base/map.h"
#include "cpu/ops/variant.h"

#include <math.h>

/* ---- tables from keys to values ---- */
typedef struct table {
    kelp_map map; /* from the bytes of a key to its index + 1 */
    kelp_tensor keys, values;
    kelp_tensor fallback; /* the value of unknown keys */
} table;

typedef struct encoder {
    kelp_ml_state head;
    table tables[2]; /* the type of the input selects one by the type of its keys */
    size_t count;
} encoder;

/* Returns the bytes of a key; those of a number are written to `buffer`. */
static kelp_string key_bytes(const kelp_tensor *keys, int64_t index, char buffer[8]) {
    if (keys->dtype == KELP_STRING)
        return ((const kelp_string *)keys->data)[index];
    if (kelp_ops_is_float(keys->dtype)) {
        double value = kelp_ops_read_f64(keys, index);
        value = isnan(value) ? (double)NAN : value == 0 ? 0.0 : value;
        memcpy(buffer, &value, 8);
    } else {
        int64_t value = kelp_ops_read_i64(keys, index);
        memcpy(buffer, &value, 8);
    }
    return (kelp_string){buffer, 8};
}

static kelp_status *build(kelp_arena *arena, const kelp_node *node, table *t) {
    int64_t count = kelp_tensor_elements(&t->keys);
    if (count != kelp_tensor_elements(&t->values))
        return KELP_ML_ERROR(node, "the numbers of keys and values differ: found %lld and %lld",
                             (long long)count, (long long)kelp_tensor_elements(&t->values));
    for (int64_t i = 0; i < count; i++) {
        char *buffer = kelp_arena_alloc(arena, 8, 8);
        if (buffer == NULL)
            return kelp_status_oom();
        kelp_string key = key_bytes(&t->keys, i, buffer);
        kelp_str text = {key.data, key.length};
        if (!kelp_map_find(&t->map, text, NULL)) /* keeps the first of equal keys */
            KELP_TRY(kelp_map_put(&t->map, text, (void *)(uintptr_t)(i + 1)));
    }
    return NULL;
}

/* ---- tables from attributes ---- */
/* Describes a vector at `data`, which stays borrowed. */
static kelp_status *vector(kelp_dtype dtype, size_t count, const void *data, kelp_tensor *out) {
    union {
        const void *from;
        void *to;
    } borrowed = {data};
    return kelp_tensor_init(out, dtype, 1, (const int64_t[]){(int64_t)count}, borrowed.to);
}

static bool is_label(kelp_dtype dtype) {
    return dtype == KELP_STRING || dtype == KELP_I64 || dtype == KELP_F32 || dtype == KELP_I32 ||
           dtype == KELP_I16 || dtype == KELP_F64;
}

/* Reads the attribute `what`_strings, _int64s, _floats or _tensor; exactly one must be set. */
static kelp_status *read_side(kelp_arena *arena, const kelp_node *node, const char *what,
                              kelp_tensor *out) {
    const kelp_string *strings = NULL;
    const int64_t *ints = NULL;
    const float *floats = NULL;
    char name[32];
    size_t found = 0, length = strlen(what);
    KELP_ASSERT(length + sizeof "_strings" <= sizeof name);
    memcpy(name, what, length);
#define NAMED(suffix) (memcpy(name + length, suffix, sizeof suffix), name)
    size_t count = kelp_node_attr_strings(node, NAMED("_strings"), &strings);
    if (count > 0 && ++found)
        KELP_TRY(vector(KELP_STRING, count, strings, out));
    count = kelp_node_attr_i64s(node, NAMED("_int64s"), &ints);
    if (count > 0 && ++found)
        KELP_TRY(vector(KELP_I64, count, ints, out));
    count = kelp_node_attr_f32s(node, NAMED("_floats"), &floats);
    if (count > 0 && ++found)
        KELP_TRY(vector(KELP_F32, count, floats, out));
    const kelp_tensor *tensor = kelp_node_attr_tensor(node, NAMED("_tensor"));
#undef NAMED
    if (tensor != NULL) {
        found++;
        if (!is_label(tensor->dtype))
            return KELP_ML_ERROR(node,
                                 "attribute '%s_tensor' has an unsupported type: expected string, "
                                 "int16, int32, int64, float32 or float64, found %s",
                                 what, kelp_dtype_name(tensor->dtype));
        size_t bytes = kelp_tensor_bytes(tensor);
        void *aligned = kelp_arena_alloc(arena, bytes + 8, 16);
        if (aligned == NULL)
            return kelp_status_oom();
        if (bytes > 0)
            memcpy(aligned, tensor->data, bytes);
        KELP_TRY(vector(tensor->dtype, (size_t)kelp_tensor_elements(tensor), aligned, out));
    }
    if (found != 1)
        return KELP_ML_ERROR(
            node, "expected one of %s_strings, _int64s, _floats, _tensor; found %zu", what, found);
    return NULL;
}

static kelp_status *read_fallback(kelp_arena *arena, const kelp_node *node, kelp_dtype dtype,
                                  kelp_tensor *out) {
    const kelp_tensor *tensor = kelp_node_attr_tensor(node, "default_tensor");
    void *value = kelp_arena_array(arena, 1, sizeof(kelp_string));
    if (value == NULL)
        return kelp_status_oom();
    KELP_TRY(vector(dtype, 1, value, out));
    if (tensor != NULL) {
        if (tensor->dtype != dtype || kelp_tensor_elements(tensor) != 1)
            return KELP_ML_ERROR(node, "default_tensor: expected one %s, found %lld of %s",
                                 kelp_dtype_name(dtype), (long long)kelp_tensor_elements(tensor),
                                 kelp_dtype_name(tensor->dtype));
        memcpy(value, tensor->data, kelp_tensor_bytes(tensor));
        return NULL;
    }
    KELP_ASSERT(is_label(dtype));
    int64_t number = kelp_node_attr_i64(node, "default_int64", -1);
    float real = kelp_node_attr_f32(node, "default_float", -0.0f);
    switch (dtype) {
    case KELP_STRING: {
        kelp_string text = {0};
        text.data = kelp_node_attr_string(node, "default_string", "_Unused", &text.length);
        if (kelp_node_attr_type(node, "default_string") == KELP_ATTR_NONE)
            text.length = strlen(text.data);
        memcpy(value, &text, sizeof text);
        break;
    }
    case KELP_F32:
        *(float *)value = real;
        break;
    case KELP_F64:
        *(double *)value = (double)real;
        break;
    case KELP_I32:
        *(int32_t *)value = (int32_t)number;
        break;
    case KELP_I16:
        *(int16_t *)value = (int16_t)number;
        break;
    default:
        *(int64_t *)value = number;
        break;
    }
    return NULL;
}

static kelp_status *read_tables(encoder *e, const kelp_node *node) {
    kelp_arena *arena = &e->head.arena;
    const kelp_string *strings = NULL;
    const int64_t *ints = NULL;
    bool mapper = kelp_op_variant_of(node) == KELP_VARIANT_CATEGORY_MAPPER;
    size_t count =
        kelp_node_attr_strings(node, mapper ? "cats_strings" : "classes_strings", &strings);
    table *t = e->tables;
    if (!mapper && count == 0) { /* LabelEncoder-2 and later */
        e->count = 1;
        KELP_TRY(read_side(arena, node, "keys", &t->keys));
        KELP_TRY(read_side(arena, node, "values", &t->values));
    } else {
        e->count = 2;
        int64_t *numbers = KELP_ARENA_ARRAY(arena, count + 1, int64_t);
        size_t number_count = mapper ? kelp_node_attr_i64s(node, "cats_int64s", &ints) : count;
        if (numbers == NULL)
            return kelp_status_oom();
        for (size_t i = 0; i < count; i++)
            numbers[i] = (int64_t)i;
        KELP_TRY(vector(KELP_STRING, count, strings, &t[0].keys));
        KELP_TRY(vector(KELP_I64, number_count, mapper ? ints : numbers, &t[0].values));
        t[1].keys = t[0].values;
        t[1].values = t[0].keys;
    }
    for (size_t i = 0; i < e->count; i++) {
        KELP_TRY(read_fallback(arena, node, t[i].values.dtype, &t[i].fallback));
        KELP_TRY(build(arena, node, &t[i]));
    }
    return NULL;
}

static void encoder_destroy(void *state, kelp_allocator allocator) {
    encoder *e = state;
    for (size_t i = 0; e != NULL && i < 2; i++)
        kelp_map_deinit(&e->tables[i].map);
    kelp_ml_state_destroy(state, allocator);
}

static kelp_status *encoder_create(const kelp_node *node, const kelp_op_env *env,
                                   void **out_state) {
    encoder *e = NULL;
    KELP_TRY(kelp_ml_state_create(env, sizeof *e, &e));
    for (size_t i = 0; i < 2; i++)
        kelp_map_init(&e->tables[i].map, kelp_op_env_allocator(env));
    kelp_status *status = read_tables(e, node);
    if (status != NULL) {
        encoder_destroy(e, kelp_op_env_allocator(env));
        return status;
    }
    *out_state = e;
    return NULL;
}

static const table *table_for(const encoder *e, kelp_dtype dtype) {
    for (size_t i = 0; i < e->count; i++)
        if (e->tables[i].keys.dtype == dtype)
            return &e->tables[i];
    return NULL;
}

static kelp_status *encoder_reshape(const void *state, kelp_op_args *args) {
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    const table *t = table_for(state, x->dtype);
    if (t == NULL)
        return KELP_ML_ERROR(args->node,
                             "input 0 has the wrong type: expected the type of the keys, found %s",
                             kelp_dtype_name(x->dtype));
    return kelp_ops_set(args, 0, t->values.dtype, x->rank, x->shape);
}

static kelp_status *encoder_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    const table *t = table_for(state, x->dtype);
    size_t item = kelp_ops_element_bytes(t->values.dtype);
    char *y = args->outputs[0]->data;
    int64_t count = kelp_tensor_elements(x);
    for (int64_t i = 0; i < count; i++) {
        char buffer[8];
        kelp_string key = key_bytes(x, i, buffer);
        uintptr_t found = (uintptr_t)kelp_map_get(&t->map, (kelp_str){key.data, key.length});
        KELP_ASSERT(found <= (uintptr_t)kelp_tensor_elements(&t->values));
        const char *from = found ? (const char *)t->values.data + (found - 1) * item
                                 : (const char *)t->fallback.data;
        memcpy(y + (size_t)i * item, from, item);
    }
    return NULL;
}

#define ENCODER_KERNEL(name)                                                      \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .create = encoder_create,              \
                                           .destroy = encoder_destroy,            \
                                           .reshape = encoder_reshape,            \
                                           .invoke = encoder_invoke}
ENCODER_KERNEL(LabelEncoder);
ENCODER_KERNEL(CategoryMapper);

/* ---- OneHotEncoder ---- */
static kelp_status *one_hot_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    kelp_ml_labels labels;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(kelp_ml_labels_read(args->node, "cats_strings", "cats_int64s", &labels));
    if ((labels.strings != NULL) != (x->dtype == KELP_STRING) || !is_label(x->dtype))
        return KELP_ML_ERROR(args->node, "input 0 has the wrong type: expected %s, found %s",
                             labels.strings != NULL ? "strings" : "numbers",
                             kelp_dtype_name(x->dtype));
    if (x->rank + 1 > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, x, NULL, "the result has too many axes");
    int64_t shape[KELP_MAX_RANK];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank] = (int64_t)labels.count;
    return kelp_ops_set(args, 0, KELP_F32, x->rank + 1, shape);
}

static int64_t category(const kelp_ml_labels *labels, const kelp_tensor *x, int64_t i) {
    if (labels->strings != NULL) {
        const kelp_string *text = (const kelp_string *)x->data + i;
        for (size_t k = 0; k < labels->count; k++)
            if (labels->strings[k].length == text->length &&
                (text->length == 0 ||
                 memcmp(labels->strings[k].data, text->data, text->length) == 0))
                return (int64_t)k;
        return -1;
    }
    bool real = x->dtype == KELP_F32 || x->dtype == KELP_F64;
    int64_t value = real ? 0 : kelp_ops_read_i64(x, i);
    if (real) {
        double number = kelp_ml_read(x, i);
        if (!(number >= -0x1p62 && number <= 0x1p62))
            return -1;
        value = (int64_t)number;
    }
    for (size_t k = 0; k < labels->count; k++)
        if (labels->numbers[k] == value)
            return (int64_t)k;
    return -1;
}

static kelp_status *one_hot_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    kelp_ml_labels labels;
    KELP_TRY(kelp_ml_labels_read(args->node, "cats_strings", "cats_int64s", &labels));
    const kelp_tensor *x = args->inputs[0];
    float *y = args->outputs[0]->data;
    int64_t count = kelp_tensor_elements(x);
    memset(y, 0, kelp_tensor_bytes(args->outputs[0]));
    for (int64_t i = 0; i < count; i++) {
        int64_t found = category(&labels, x, i);
        if (found >= 0)
            y[i * (int64_t)labels.count + found] = 1.0f;
        else if (kelp_node_attr_i64(args->node, "zeros", 1) == 0)
            return KELP_ML_ERROR(args->node,
                                 "element %lld is not in the attribute 'cats_strings' or "
                                 "'cats_int64s', which has %zu categories",
                                 (long long)i, labels.count);
    }
    return NULL;
}
KELP_KERNEL(OneHotEncoder, 0, 0, 0, one_hot_reshape, one_hot_invoke);
