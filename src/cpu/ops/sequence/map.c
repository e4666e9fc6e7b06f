/* SPDX-License-Identifier: Apache-2.0 */
/* ZipMap, CastMap, DictVectorizer: conversion between maps and tensors. Source: ONNX operator
 * specification, ai.onnx.ml-1. */
#include "base/assert.h"
#include "base/str.h"
#include "cpu/ops/ml/ml.h"
#include "cpu/ops/sequence/sequence.h"

#include <stdio.h>

/* ---- ZipMap ---- */
static kelp_status *keys_of(const kelp_list_call *call, const kelp_ml_labels *labels,
                            kelp_tensor *out) {
    kelp_dtype dtype = labels->strings != NULL ? KELP_STRING : KELP_I64;
    KELP_TRY(kelp_list_tensor(call, dtype, 1, (const int64_t[]){(int64_t)labels->count}, out));
    for (size_t i = 0; i < labels->count; i++)
        kelp_ml_label_write(labels, i, out, (int64_t)i);
    return NULL;
}

kelp_status *kelp_list_zip_map(const kelp_list_call *call) {
    const kelp_tensor *x = kelp_list_in(call, 0);
    kelp_ml_labels labels;
    kelp_tensor keys;
    KELP_TRY(kelp_ml_labels_read(call->node, "classlabels_strings", "classlabels_int64s", &labels));
    if (x == NULL || x->dtype != KELP_F32 || x->rank < 1 || x->rank > 2 ||
        x->shape[x->rank - 1] != (int64_t)labels.count)
        return KELP_LIST_ERROR(call, "input 0 is invalid: expected float32 [N,%zu] or [%zu]",
                               labels.count, labels.count);
    int64_t rows = x->rank == 2 ? x->shape[0] : 1;
    KELP_TRY(keys_of(call, &labels, &keys));
    KELP_TRY(kelp_list_make(call, 1, rows, &call->outputs[0]));
    for (int64_t r = 0; r < rows; r++) {
        kelp_tensor *map = kelp_list_items(&call->outputs[0]) + r;
        KELP_TRY(kelp_list_make(call, 3, 2, map));
        kelp_tensor *values = kelp_list_items(map) + 1;
        kelp_list_items(map)[0] = keys;
        KELP_TRY(kelp_list_tensor(call, KELP_F32, 1, keys.shape, values));
        memcpy(values->data, (const float *)x->data + r * (int64_t)labels.count,
               labels.count * sizeof(float));
    }
    return NULL;
}

/* ---- maps as inputs ---- */
static kelp_status *read_map(const kelp_list_call *call, const kelp_tensor **out_keys,
                             const kelp_tensor **out_values) {
    const kelp_tensor *map = NULL;
    KELP_TRY(kelp_list_expect(call, 0, 3, &map));
    const kelp_tensor *keys = kelp_list_items(map), *values = keys + 1;
    if (map->shape[0] != 2 || keys->rank != 1 || values->rank != 1 ||
        keys->shape[0] != values->shape[0] ||
        (keys->dtype != KELP_STRING && keys->dtype != KELP_I64))
        return KELP_LIST_ERROR(call, "%s",
                               "input 0 is invalid: expected a map with equal numbers of keys and "
                               "values");
    *out_keys = keys;
    *out_values = values;
    return NULL;
}

/* ---- DictVectorizer ---- */
static bool is_key(const kelp_ml_labels *vocabulary, size_t word, const kelp_tensor *keys,
                   int64_t index) {
    KELP_ASSERT(word < vocabulary->count && index < keys->shape[0]);
    if (vocabulary->strings == NULL)
        return ((const int64_t *)keys->data)[index] == vocabulary->numbers[word];
    const kelp_string *a = &vocabulary->strings[word], *b = (const kelp_string *)keys->data + index;
    return a->length == b->length && (a->length == 0 || memcmp(a->data, b->data, a->length) == 0);
}

kelp_status *kelp_list_vectorize(const kelp_list_call *call) {
    const kelp_tensor *keys = NULL, *values = NULL;
    kelp_ml_labels words;
    KELP_TRY(kelp_ml_labels_read(call->node, "string_vocabulary", "int64_vocabulary", &words));
    KELP_TRY(read_map(call, &keys, &values));
    if ((keys->dtype == KELP_STRING) != (words.strings != NULL))
        return KELP_LIST_ERROR(call,
                               "the keys of the map have the wrong type: expected %s, found "
                               "%s",
                               words.strings != NULL ? "string" : "int64",
                               kelp_dtype_name(keys->dtype));
    int64_t shape[2] = {1, (int64_t)words.count};
    kelp_tensor *y = &call->outputs[0];
    KELP_TRY(kelp_list_tensor(call, values->dtype, 2, shape, y));
    size_t item = kelp_ops_element_bytes(values->dtype);
    if (item == 0)
        return KELP_LIST_ERROR(call, "the values of the map have the unsupported type %s",
                               kelp_dtype_name(values->dtype));
    memset(y->data, 0, kelp_tensor_bytes(y));
    for (size_t w = 0; w < words.count; w++)
        for (int64_t i = 0; i < keys->shape[0]; i++)
            if (is_key(&words, w, keys, i))
                memcpy((char *)y->data + w * item, (const char *)values->data + (size_t)i * item,
                       item);
    return NULL;
}

/* ---- CastMap ---- */
static kelp_status *cast_one(const kelp_list_call *call, const kelp_tensor *values, int64_t i,
                             kelp_tensor *y, int64_t at) {
    double number = 0;
    kelp_string text = {"", 0};
    if (values->dtype == KELP_STRING) {
        text = ((const kelp_string *)values->data)[i];
        if (y->dtype != KELP_STRING) {
            if (!kelp_parse_f64(kelp_str_trim((kelp_str){text.data, text.length}), &number))
                return KELP_LIST_ERROR(call, "value %lld is not a number: found '%.*s'",
                                       (long long)i, (int)KELP_MIN(text.length, (size_t)100),
                                       text.data);
        }
    } else {
        number = kelp_ops_read_f64(values, i);
        if (y->dtype == KELP_STRING) {
            enum { MAX_CHARS = 320 }; /* of the largest double */
            char *copy;
            KELP_TRY(kelp_list_alloc(call, MAX_CHARS, 1, &copy));
            (void)snprintf(copy, MAX_CHARS, "%f", number);
            text.length = kelp_plain_radix(copy);
            text.data = copy;
        }
    }
    if (y->dtype == KELP_STRING)
        ((kelp_string *)y->data)[at] = text;
    else if (y->dtype == KELP_F32)
        ((float *)y->data)[at] = (float)number;
    else if (number >= -0x1p63 && number < 0x1p63)
        ((int64_t *)y->data)[at] = (int64_t)number;
    else
        return KELP_LIST_ERROR(call, "value %lld is outside the range of int64: found %g",
                               (long long)i, number);
    return NULL;
}

static kelp_status *target_type(const kelp_list_call *call, kelp_dtype *out) {
    const char *name = kelp_node_attr_string(call->node, "cast_to", "TO_FLOAT", NULL);
    *out = strcmp(name, "TO_FLOAT") == 0    ? KELP_F32
           : strcmp(name, "TO_STRING") == 0 ? KELP_STRING
           : strcmp(name, "TO_INT64") == 0  ? KELP_I64
                                            : KELP_DTYPE_INVALID;
    if (*out == KELP_DTYPE_INVALID)
        return KELP_LIST_ERROR(
            call, "cast_to: expected TO_FLOAT, TO_STRING or TO_INT64, found '%s'", name);
    return NULL;
}

kelp_status *kelp_list_cast_map(const kelp_list_call *call) {
    const kelp_tensor *keys = NULL, *values = NULL;
    kelp_dtype dtype = KELP_DTYPE_INVALID;
    KELP_TRY(read_map(call, &keys, &values));
    KELP_TRY(target_type(call, &dtype));
    const char *form = kelp_node_attr_string(call->node, "map_form", "DENSE", NULL);
    bool sparse = strcmp(form, "SPARSE") == 0;
    int64_t columns = sparse ? kelp_node_attr_i64(call->node, "max_map", 1) : keys->shape[0];
    if ((!sparse && strcmp(form, "DENSE") != 0) || columns < 0 || keys->dtype != KELP_I64)
        return KELP_LIST_ERROR(
            call,
            "the map is invalid: expected map_form DENSE or SPARSE, max_map of 0 "
            "or more and keys of int64, found '%s', %lld and %s",
            form, (long long)columns, kelp_dtype_name(keys->dtype));
    kelp_tensor *y = &call->outputs[0];
    KELP_TRY(kelp_list_tensor(call, dtype, 2, (const int64_t[]){1, columns}, y));
    memset(y->data, 0, kelp_tensor_bytes(y));
    const int64_t *numbers = keys->data;
    for (int64_t i = 0; i < keys->shape[0]; i++) {
        int64_t at = 0; /* dense: the rank of the key */
        for (int64_t k = 0; !sparse && k < keys->shape[0]; k++)
            at += numbers[k] < numbers[i];
        at = sparse ? numbers[i] : at;
        if (at < 0)
            return KELP_LIST_ERROR(call, "key %lld is negative", (long long)at);
        if (at < columns)
            KELP_TRY(cast_one(call, values, i, y, at));
    }
    return NULL;
}
