/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes tensor data in JSON. The first byte selects the element type. What is read is written and
 * read again with the same result, and FP32 values are those of strtof. */
#include "frontends/tensor/float_read.h"
#include "frontends/tensor/tensor.h"

#include <math.h>
#include <stdlib.h>

static const TRITONSERVER_DataType types[] = {TRITONSERVER_TYPE_FP32,  TRITONSERVER_TYPE_BOOL,
                                              TRITONSERVER_TYPE_INT8,  TRITONSERVER_TYPE_UINT64,
                                              TRITONSERVER_TYPE_INT64, TRITONSERVER_TYPE_FP16,
                                              TRITONSERVER_TYPE_FP64,  TRITONSERVER_TYPE_BYTES};

static kelp_status *read_text(kelp_arena *arena, TRITONSERVER_DataType type, uint64_t count,
                              kelp_str text, kelp_v2_data *out) {
    size_t position = 0;
    return kelp_v2_read_data(arena, "x", type, count, "[n]", text.data, text.length, &position,
                             out);
}

/* Compares with strtof the number that the fast path reads from the beginning of the text. */
static void check_float(kelp_str text) {
    char copy[64];
    size_t position = 0;
    float value;
    if (kelp_v2_read_floats(text.data, text.length, &position, &value, 1) == 0)
        return;
    if (position >= sizeof copy)
        abort(); /* a number has at most 19 digits */
    memcpy(copy, text.data, position);
    copy[position] = 0;
    float expected = strtof(copy, NULL);
    if (memcmp(&value, &expected, sizeof value) != 0)
        abort();
}

static void check(TRITONSERVER_DataType type, kelp_str text) {
    kelp_arena arena;
    kelp_v2_data data, again;
    kelp_buf out;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_buf_init(&out, kelp_allocator_system());
    kelp_status *status = read_text(&arena, type, KELP_V2_ANY_COUNT, text, &data);
    if (status == NULL) {
        if (kelp_v2_write_data(&out, "y", type, data.bytes, data.size_bytes, true) != NULL)
            abort();
        status = read_text(&arena, type, data.count, (kelp_str){out.data, out.length}, &again);
        /* a string that is not UTF-8 is written differently */
        if (type != TRITONSERVER_TYPE_BYTES &&
            (status != NULL || again.size_bytes != data.size_bytes ||
             memcmp(again.bytes, data.bytes, data.size_bytes) != 0))
            abort();
    }
    kelp_status_free(status);
    kelp_buf_deinit(&out);
    kelp_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    kelp_str text = {(const char *)data + 1, size - 1};
    check_float(text);
    check(types[data[0] % (sizeof types / sizeof types[0])], text);
    return 0;
}
