/* SPDX-License-Identifier: Apache-2.0 */
/* Formats tensors as text. */
#include "cli/show.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/float16.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define SHOW_ALL 1000 /* larger tensors show only the ends of each axis */
#define SHOW_ENDS 3
#define LINE_WIDTH 96

/* ---- one element ---- */

bool kelp_show_real(const kelp_tensor *tensor, size_t i, double *out) {
    switch (tensor->dtype) {
    case KELP_F32:
        *out = (double)((const float *)tensor->data)[i];
        return true;
    case KELP_F64:
        *out = ((const double *)tensor->data)[i];
        return true;
    case KELP_F16:
        *out = (double)kelp_f16_to_f32(((const uint16_t *)tensor->data)[i]);
        return true;
    case KELP_BF16:
        *out = (double)kelp_bf16_to_f32(((const uint16_t *)tensor->data)[i]);
        return true;
    default:
        return false;
    }
}

bool kelp_show_whole(const kelp_tensor *tensor, size_t i, int64_t *out) {
    switch (tensor->dtype) {
    case KELP_I8:
        *out = ((const int8_t *)tensor->data)[i];
        return true;
    case KELP_U8:
        *out = ((const uint8_t *)tensor->data)[i];
        return true;
    case KELP_I16:
        *out = ((const int16_t *)tensor->data)[i];
        return true;
    case KELP_U16:
        *out = ((const uint16_t *)tensor->data)[i];
        return true;
    case KELP_I32:
        *out = ((const int32_t *)tensor->data)[i];
        return true;
    case KELP_U32:
        *out = ((const uint32_t *)tensor->data)[i];
        return true;
    case KELP_I64:
        *out = ((const int64_t *)tensor->data)[i];
        return true;
    default:
        return false;
    }
}

/* Returns the bits of an element of at most 8 bits. Smaller elements are packed, low bits first. */
static unsigned element_bits(const kelp_tensor *tensor, size_t i) {
    unsigned bits = kelp_dtype_bits(tensor->dtype);
    KELP_ASSERT(bits >= 1 && bits <= 8);
    const uint8_t *bytes = tensor->data;
    if (bits > 4)
        return bytes[i];
    unsigned per_byte = 8 / bits;
    return bytes[i / per_byte] >> (i % per_byte * bits) & ((1u << bits) - 1);
}

/* Formats elements without a C type: integers by value, floats by their bits. */
static void small_text(const kelp_tensor *tensor, size_t i, char *buffer, size_t capacity) {
    unsigned bits = kelp_dtype_bits(tensor->dtype);
    unsigned value = element_bits(tensor, i);
    if (tensor->dtype == KELP_U4 || tensor->dtype == KELP_U2)
        snprintf(buffer, capacity, "%u", value);
    else if (tensor->dtype == KELP_I4 || tensor->dtype == KELP_I2)
        snprintf(buffer, capacity, "%d", (int)value - (value >> (bits - 1) ? 1 << bits : 0));
    else
        snprintf(buffer, capacity, "0x%02x", value);
}

static void put_element(const kelp_tensor *tensor, size_t i, kelp_buf *out) {
    double real;
    int64_t whole;
    if (kelp_show_real(tensor, i, &real)) {
        kelp_buf_printf(out, "%.*g", tensor->dtype == KELP_F64 ? 9 : 6, real);
    } else if (kelp_show_whole(tensor, i, &whole)) {
        kelp_buf_append_i64(out, whole);
    } else if (tensor->dtype == KELP_U64) {
        kelp_buf_append_u64(out, ((const uint64_t *)tensor->data)[i]);
    } else if (tensor->dtype == KELP_BOOL) {
        kelp_buf_append_cstr(out, ((const uint8_t *)tensor->data)[i] ? "true" : "false");
    } else if (tensor->dtype == KELP_STRING) {
        kelp_string s = ((const kelp_string *)tensor->data)[i];
        kelp_json_escape(out, (kelp_str){s.data, s.length});
    } else if (tensor->dtype == KELP_C64) {
        const float *pair = (const float *)tensor->data + 2 * i;
        kelp_buf_printf(out, "%.6g%+.6gj", (double)pair[0], (double)pair[1]);
    } else if (tensor->dtype == KELP_C128) {
        const double *pair = (const double *)tensor->data + 2 * i;
        kelp_buf_printf(out, "%.9g%+.9gj", pair[0], pair[1]);
    } else {
        char text[16];
        small_text(tensor, i, text, sizeof text);
        kelp_buf_append_cstr(out, text);
    }
}

/* ---- text ---- */

typedef struct shown {
    const kelp_tensor *tensor;
    kelp_buf *out;
    bool shorten;
    size_t width; /* width of the widest visible element */
    size_t column;
} shown;

/* Returns the next visible index of an axis. */
static int64_t next_index(const shown *s, int32_t axis, int64_t index) {
    KELP_ASSERT(axis < s->tensor->rank);
    int64_t dim = s->tensor->shape[axis];
    if (s->shorten && dim > 2 * SHOW_ENDS && index + 1 == SHOW_ENDS)
        return dim - SHOW_ENDS;
    return index + 1;
}

/* Computes the width of the columns. The recursion depth is at most KELP_MAX_RANK. */
static void measure(shown *s, int32_t axis, size_t base) {
    if (axis == s->tensor->rank) {
        size_t before = s->out->length;
        put_element(s->tensor, base, s->out);
        s->width = KELP_MAX(s->width, s->out->length - before);
        s->out->length = before;
        return;
    }
    for (int64_t i = 0; i < s->tensor->shape[axis]; i = next_index(s, axis, i))
        measure(s, axis + 1, base + (size_t)(i * s->tensor->strides[axis]));
}

static void show_row(shown *s, size_t base) {
    KELP_ASSERT(s->tensor->rank > 0);
    int32_t axis = s->tensor->rank - 1;
    for (int64_t i = 0; i < s->tensor->shape[axis];) {
        if (i && s->column + s->width + 1 > LINE_WIDTH) {
            kelp_buf_printf(s->out, "\n %*s", s->tensor->rank, "");
            s->column = (size_t)s->tensor->rank + 1;
        } else if (i) {
            kelp_buf_append_char(s->out, ' ');
        }
        size_t before = s->out->length;
        put_element(s->tensor, base + (size_t)i, s->out);
        size_t length = s->out->length - before;
        /* Right-align numbers. */
        char *at = length < s->width ? kelp_buf_reserve(s->out, s->width - length) : NULL;
        if (at != NULL) {
            memmove(s->out->data + before + (s->width - length), s->out->data + before, length);
            memset(s->out->data + before, ' ', s->width - length);
            s->out->length += s->width - length;
        }
        s->column += s->width + 1;
        int64_t next = next_index(s, axis, i);
        if (next > i + 1 && next < s->tensor->shape[axis]) {
            kelp_buf_append_cstr(s->out, " ...");
            s->column += 4;
        }
        i = next;
    }
}

static void show_axis(shown *s, int32_t axis, size_t base) {
    kelp_buf_append_char(s->out, '[');
    if (axis + 1 == s->tensor->rank) {
        s->column = (size_t)s->tensor->rank + 1;
        show_row(s, base);
    } else {
        for (int64_t i = 0; i < s->tensor->shape[axis];) {
            if (i)
                kelp_buf_printf(s->out, "\n %*s", axis + 1, "");
            show_axis(s, axis + 1, base + (size_t)(i * s->tensor->strides[axis]));
            int64_t next = next_index(s, axis, i);
            if (next > i + 1 && next < s->tensor->shape[axis])
                kelp_buf_printf(s->out, "\n %*s...", axis + 1, "");
            i = next;
        }
    }
    kelp_buf_append_char(s->out, ']');
}

/* Formats the elements of sequences, optionals and maps. */
static void show_list(const char *name, const kelp_tensor *list, kelp_buf *out) {
    KELP_ASSERT(list->rank >= 1 && list->rank <= 3);
    const kelp_tensor *items = list->data;
    const char *kind = list->rank == 1 ? "sequence" : list->rank == 2 ? "optional" : "map";
    kelp_buf_printf(out, "%s  %s", name, kind);
    if (list->rank == 1)
        kelp_buf_printf(out, " of %" PRId64, list->shape[0]);
    kelp_buf_append_cstr(out, list->shape[0] > 0 ? "\n" : ", empty\n");
    for (int64_t i = 0; i < list->shape[0]; i++) {
        char label[512];
        if (list->rank == 3)
            snprintf(label, sizeof label, "%s.%s", name, i ? "values" : "keys");
        else
            snprintf(label, sizeof label, "%s[%" PRId64 "]", name, i);
        kelp_show_tensor(label, &items[i], out);
    }
}

void kelp_show_tensor(const char *name, const kelp_tensor *tensor, kelp_buf *out) {
    char shape[512];
    if (tensor->dtype == KELP_LIST) {
        show_list(name, tensor, out);
        return;
    }
    (void)kelp_shape_format(tensor->rank, tensor->shape, shape, sizeof shape);
    kelp_buf_printf(out, "%s  %s %s\n ", name, kelp_dtype_name(tensor->dtype), shape);
    int64_t elements = kelp_tensor_elements(tensor);
    shown s = {.tensor = tensor, .out = out, .shorten = elements > SHOW_ALL};
    if (elements == 0) {
        kelp_buf_append_cstr(out, "(no elements)");
    } else if (tensor->rank == 0) {
        put_element(tensor, 0, out);
    } else {
        measure(&s, 0, 0);
        show_axis(&s, 0, 0);
    }
    kelp_buf_append_char(out, '\n');
}

/* ---- JSON ---- */

static void put_json(const kelp_tensor *tensor, size_t i, kelp_json_writer *writer) {
    double real;
    int64_t whole;
    if (tensor->dtype == KELP_F32 && isfinite(((const float *)tensor->data)[i])) {
        /* Nine digits restore a float32 exactly; its double would need up to seventeen. */
        char text[32];
        int length = snprintf(text, sizeof text, "%.9g", (double)((const float *)tensor->data)[i]);
        kelp_json_put_raw(writer, (kelp_str){text, (size_t)length});
    } else if (kelp_show_real(tensor, i, &real)) {
        kelp_json_put_f64(writer, real);
    } else if (kelp_show_whole(tensor, i, &whole)) {
        kelp_json_put_i64(writer, whole);
    } else if (tensor->dtype == KELP_U64) {
        kelp_json_put_u64(writer, ((const uint64_t *)tensor->data)[i]);
    } else if (tensor->dtype == KELP_BOOL) {
        kelp_json_put_bool(writer, ((const uint8_t *)tensor->data)[i]);
    } else if (tensor->dtype == KELP_LIST) {
        kelp_show_json("", (const kelp_tensor *)tensor->data + i, writer);
    } else if (tensor->dtype == KELP_STRING) {
        kelp_string s = ((const kelp_string *)tensor->data)[i];
        kelp_json_put_string(writer, (kelp_str){s.data, s.length});
    } else if (tensor->dtype == KELP_C64 || tensor->dtype == KELP_C128) {
        bool wide = tensor->dtype == KELP_C128;
        kelp_json_begin_array(writer);
        for (size_t part = 2 * i; part < 2 * i + 2; part++)
            kelp_json_put_f64(writer, wide ? ((const double *)tensor->data)[part]
                                           : (double)((const float *)tensor->data)[part]);
        kelp_json_end_array(writer);
    } else {
        kelp_json_put_u64(writer, element_bits(tensor, i));
    }
}

void kelp_show_shape_json(const kelp_tensor *tensor, kelp_json_writer *writer) {
    kelp_json_key(writer, "shape");
    kelp_json_begin_array(writer);
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        kelp_json_put_i64(writer, tensor->shape[axis]);
    kelp_json_end_array(writer);
}

void kelp_show_json(const char *name, const kelp_tensor *tensor, kelp_json_writer *writer) {
    const char *triton = kelp_dtype_triton_name(tensor->dtype);
    kelp_json_begin_object(writer);
    kelp_json_key(writer, "name");
    kelp_json_put_cstr(writer, name);
    kelp_json_key(writer, "datatype");
    kelp_json_put_cstr(writer, triton != NULL ? triton : kelp_dtype_name(tensor->dtype));
    kelp_show_shape_json(tensor, writer);
    kelp_json_key(writer, "data");
    kelp_json_begin_array(writer);
    int64_t elements = kelp_tensor_elements(tensor);
    for (int64_t i = 0; i < elements; i++)
        put_json(tensor, (size_t)i, writer);
    kelp_json_end_array(writer);
    kelp_json_end_object(writer);
}
