/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes NumPy's .npy files. */
#include "cli/npy.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fs.h"

#include <ctype.h>
#include <stdio.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6u
#define HEADER_MAX (1u << 20)

/* ---- memory ---- */

kelp_status *kelp_array_init(kelp_array *out, kelp_dtype dtype, int32_t rank,
                             const int64_t *shape) {
    *out = (kelp_array){0};
    KELP_TRY(kelp_tensor_init(&out->tensor, dtype, rank, shape, NULL));
    out->data_bytes = kelp_tensor_bytes(&out->tensor);
    kelp_status *status = kelp_alloc_aligned(kelp_allocator_system(), out->data_bytes,
                                             KELP_TENSOR_ALIGNMENT, &out->data);
    if (status != NULL) {
        *out = (kelp_array){0};
        return status;
    }
    if (out->data != NULL)
        memset(out->data, 0, out->data_bytes);
    out->tensor.data = out->data;
    return NULL;
}

void kelp_array_deinit(kelp_array *array) {
    kelp_allocator allocator = kelp_allocator_system();
    kelp_free_aligned(allocator, array->data, array->data_bytes, KELP_TENSOR_ALIGNMENT);
    kelp_free(allocator, array->text, array->text_bytes);
    *array = (kelp_array){0};
}

/* ---- the header: a Python dictionary of three members ---- */

typedef struct header {
    const char *label;
    kelp_str rest; /* unread part of the header */
    kelp_str descr;
    bool fortran;
    int32_t rank;
    int64_t shape[KELP_MAX_RANK];
} header;

static kelp_status *malformed(const header *h, const char *what) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' is not a valid .npy file: %s", h->label, what);
}

static void skip_blanks(header *h) {
    while (h->rest.length && (isspace((unsigned char)h->rest.data[0]) || !h->rest.data[0])) {
        h->rest.data++;
        h->rest.length--;
    }
}

static bool take_char(header *h, char c) {
    skip_blanks(h);
    if (!h->rest.length || h->rest.data[0] != c)
        return false;
    h->rest.data++;
    h->rest.length--;
    return true;
}

static bool take_word(header *h, const char *word) {
    skip_blanks(h);
    kelp_str expected = kelp_str_from(word);
    if (!kelp_str_starts(h->rest, expected))
        return false;
    h->rest.data += expected.length;
    h->rest.length -= expected.length;
    return true;
}

static bool take_quoted(header *h, kelp_str *out) {
    char quote = take_char(h, '\'') ? '\'' : take_char(h, '"') ? '"' : '\0';
    if (!quote)
        return false;
    const char *end = memchr(h->rest.data, quote, h->rest.length);
    if (end == NULL)
        return false;
    *out = (kelp_str){h->rest.data, (size_t)(end - h->rest.data)};
    h->rest.length -= out->length + 1;
    h->rest.data = end + 1;
    return true;
}

static kelp_status *read_shape(header *h) {
    if (!take_char(h, '('))
        return malformed(h, "header field 'shape': expected a tuple");
    while (!take_char(h, ')')) {
        size_t digits = 0;
        skip_blanks(h);
        while (digits < h->rest.length && isdigit((unsigned char)h->rest.data[digits]))
            digits++;
        int64_t dim;
        if (!kelp_parse_i64((kelp_str){h->rest.data, digits}, &dim))
            return malformed(h, "header field 'shape': expected an integer");
        if (h->rank == KELP_MAX_RANK)
            return malformed(h, "header field 'shape': more than 16 dimensions");
        h->shape[h->rank++] = dim;
        h->rest.data += digits;
        h->rest.length -= digits;
        (void)take_char(h, 'L'); /* suffix of long integers in Python 2 */
        if (!take_char(h, ',') && !(h->rest.length && h->rest.data[0] == ')'))
            return malformed(h, "header field 'shape': expected ',' or ')'");
    }
    return NULL;
}

static kelp_status *read_field(header *h, unsigned *inout_seen) {
    kelp_str key;
    if (!take_quoted(h, &key) || !take_char(h, ':'))
        return malformed(h, "header: expected 'name': value");
    if (kelp_str_is(key, "descr")) {
        *inout_seen |= 1;
        if (take_char(h, '['))
            return KELP_ERROR(KELP_UNIMPLEMENTED, "'%s': structured dtypes are not supported",
                              h->label);
        return take_quoted(h, &h->descr) ? NULL
                                         : malformed(h, "header field 'descr': expected a string");
    }
    if (kelp_str_is(key, "fortran_order")) {
        *inout_seen |= 2;
        h->fortran = take_word(h, "True");
        return h->fortran || take_word(h, "False")
                   ? NULL
                   : malformed(h, "header field 'fortran_order': expected True or False");
    }
    if (kelp_str_is(key, "shape")) {
        *inout_seen |= 4;
        h->rank = 0;
        return read_shape(h);
    }
    return malformed(h, "header: unknown field; expected descr, fortran_order or shape");
}

static kelp_status *read_header(header *h) {
    unsigned seen = 0;
    if (!take_char(h, '{'))
        return malformed(h, "header: expected '{'");
    while (!take_char(h, '}')) {
        KELP_TRY(read_field(h, &seen));
        if (!take_char(h, ',') && !(h->rest.length && h->rest.data[0] == '}'))
            return malformed(h, "header: expected ',' or '}'");
    }
    skip_blanks(h);
    if (h->rest.length)
        return malformed(h, "header: unexpected text after '}'");
    return seen == 7 ? NULL : malformed(h, "header: descr, fortran_order or shape is missing");
}

/* ---- types ---- */

static const struct {
    const char *code;
    kelp_dtype dtype;
} types[] = {
    {"b1", KELP_BOOL}, {"i1", KELP_I8},  {"u1", KELP_U8},  {"i2", KELP_I16},   {"u2", KELP_U16},
    {"i4", KELP_I32},  {"u4", KELP_U32}, {"i8", KELP_I64}, {"u8", KELP_U64},   {"f2", KELP_F16},
    {"f4", KELP_F32},  {"f8", KELP_F64}, {"c8", KELP_C64}, {"c16", KELP_C128},
};

/* The type of the elements: a number, or a string of `characters` of `unit` bytes. */
typedef struct element {
    kelp_dtype dtype;
    size_t bytes;
    size_t unit; /* 0 for numbers, 1 for |S, 4 for <U */
} element;

static kelp_status *read_type(const header *h, element *out) {
    kelp_str code = h->descr;
    char order = code.length ? code.data[0] : '\0';
    if (order == '<' || order == '|' || order == '=' || order == '>')
        code = (kelp_str){code.data + 1, code.length - 1};
    if (code.length && (code.data[0] == 'S' || code.data[0] == 'a' || code.data[0] == 'U')) {
        uint64_t characters;
        out->dtype = KELP_STRING;
        out->unit = code.data[0] == 'U' ? 4 : 1;
        if (!kelp_parse_u64((kelp_str){code.data + 1, code.length - 1}, &characters) ||
            !kelp_size_mul(characters, out->unit, &out->bytes))
            return malformed(h, "header field 'descr': expected a length in the string type");
    } else {
        for (size_t i = 0; i < KELP_COUNT(types); i++) {
            if (kelp_str_is(code, types[i].code))
                out->dtype = types[i].dtype;
        }
        out->bytes = kelp_dtype_bits(out->dtype) / 8;
    }
    if (code.length && code.data[0] == 'O')
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "'%s' contains pickled Python objects, which are not supported; store "
                          "strings with a dtype such as '<U16' or '|S16'",
                          h->label);
    if (code.length && code.data[0] == 'V')
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "'%s' has dtype '%.*s': .npy files cannot identify bfloat16 and 8-bit "
                          "floats; store float32",
                          h->label, KELP_STR_ARG(h->descr));
    if (out->dtype == KELP_DTYPE_INVALID)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "'%s' has unsupported dtype '%.*s'", h->label,
                          KELP_STR_ARG(h->descr));
    if (order == '>' && (out->unit == 4 || (out->unit == 0 && out->bytes > 1)))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "'%s' is big-endian (dtype '%.*s'); store it as '<%.*s'", h->label,
                          KELP_STR_ARG(h->descr), KELP_STR_ARG(code));
    return NULL;
}

/* ---- elements ---- */

static size_t utf8_put(uint32_t point, char *out) {
    KELP_ASSERT(point <= 0x10ffff);
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    out[0] = (char)(leads[length] | point);
    return length;
}

static uint32_t load_u32(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Converts a string of the file to UTF-8, without trailing zeros. */
static kelp_status *read_string(const header *h, const element *e, const unsigned char *at,
                                char **inout_text, kelp_string *out) {
    KELP_ASSERT(e->unit == 1 || e->unit == 4);
    size_t count = e->bytes / e->unit;
    char *begin = *inout_text;
    if (e->unit == 1) {
        while (count && !at[count - 1])
            count--;
        memcpy(begin, at, count);
        *inout_text += count;
    } else {
        while (count && !load_u32(at + 4 * (count - 1)))
            count--;
        for (size_t i = 0; i < count; i++) {
            uint32_t point = load_u32(at + 4 * i);
            if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
                return malformed(h, "a string contains an invalid Unicode character");
            *inout_text += utf8_put(point, *inout_text);
        }
    }
    *out = (kelp_string){begin, (size_t)(*inout_text - begin)};
    return NULL;
}

/* Returns the index in the file of the next element in row-major order. */
static size_t fortran_next(const header *h, size_t *inout_index) {
    size_t at = 0, stride = 1;
    KELP_ASSERT(h->rank > 0 && h->rank <= KELP_MAX_RANK);
    for (int32_t axis = 0; axis < h->rank; axis++) {
        at += inout_index[axis] * stride;
        stride *= (size_t)h->shape[axis];
    }
    for (int32_t axis = h->rank - 1; axis >= 0; axis--) {
        if (++inout_index[axis] < (size_t)h->shape[axis])
            break;
        inout_index[axis] = 0;
    }
    return at;
}

static kelp_status *read_elements(const header *h, const element *e, const unsigned char *data,
                                  kelp_array *out) {
    size_t count = (size_t)kelp_tensor_elements(&out->tensor);
    if (e->unit) {
        out->text_bytes = count * e->bytes; /* UTF-8 is never longer than UCS-4 */
        KELP_TRY(kelp_alloc(kelp_allocator_system(), out->text_bytes, (void **)&out->text));
    } else if (!h->fortran || h->rank < 2) {
        if (count)
            memcpy(out->data, data, count * e->bytes);
        return NULL;
    }
    size_t index[KELP_MAX_RANK] = {0};
    char *text = out->text;
    kelp_string *strings = out->data;
    for (size_t i = 0; i < count; i++) {
        size_t from = h->fortran ? fortran_next(h, index) : i;
        const unsigned char *at = data + from * e->bytes;
        if (!e->unit)
            memcpy((char *)out->data + i * e->bytes, at, e->bytes);
        else if (!e->bytes)
            strings[i] = (kelp_string){"", 0};
        else
            KELP_TRY(read_string(h, e, at, &text, &strings[i]));
    }
    KELP_ASSERT(text == NULL || (size_t)(text - out->text) <= out->text_bytes);
    return NULL;
}

kelp_status *kelp_npy_parse(const char *label, const void *data, size_t size_bytes,
                            kelp_array *out) {
    const unsigned char *bytes = data;
    header h = {.label = label};
    *out = (kelp_array){0};
    if (size_bytes < MAGIC_BYTES + 4 || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0)
        return malformed(&h, "it does not start with \\x93NUMPY");
    unsigned major = bytes[6];
    if (major < 1 || major > 3)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "'%s' has unsupported format %u.%u; expected 1.0, 2.0 or 3.0", label,
                          major, bytes[7]);
    size_t before = major == 1 ? 10 : 12;
    if (size_bytes < before)
        return malformed(&h, "the header is truncated");
    size_t length = major == 1 ? (size_t)bytes[8] | (size_t)bytes[9] << 8 : load_u32(bytes + 8);
    if (length > HEADER_MAX || length > size_bytes - before)
        return malformed(&h, "the header is truncated or longer than 1 MiB");
    h.rest = (kelp_str){(const char *)bytes + before, length};
    element e = {0};
    KELP_TRY(read_header(&h));
    KELP_TRY(read_type(&h, &e));
    int64_t elements;
    size_t expected, found = size_bytes - before - length;
    if (!kelp_shape_elements(h.rank, h.shape, &elements) ||
        !kelp_size_mul((size_t)elements, e.bytes, &expected))
        return malformed(&h, "header field 'shape': the number of elements is too large");
    /* Strings of length 0 take no bytes, so that the size of the file does not limit their number.
     */
    if (!e.bytes && elements > 65536)
        return malformed(&h, "too many strings of length 0");
    if (expected != found)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "'%s' is not a valid .npy file: expected %zu bytes of data after the header, found %zu",
            label, expected, found);
    KELP_TRY(kelp_array_init(out, e.dtype, h.rank, h.shape));
    kelp_status *status = read_elements(&h, &e, bytes + before + length, out);
    if (status != NULL)
        kelp_array_deinit(out);
    return status;
}

kelp_status *kelp_npy_load(const char *path, kelp_array *out) {
    *out = (kelp_array){0};
    kelp_mapping file = {0};
    KELP_TRY(kelp_fs_map(path, &file));
    kelp_status *status =
        kelp_npy_parse(path, file.data != NULL ? file.data : "", file.size_bytes, out);
    kelp_fs_unmap(&file);
    return status;
}

/* ---- writing ---- */

/* Returns the length of the character at `at` (RFC 3629); 0 for invalid UTF-8. */
static size_t utf8_take(const unsigned char *at, size_t left, uint32_t *out_point) {
    static const uint32_t min_points[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80             ? 1
                    : (at[0] & 0xe0) == 0xc0 ? 2
                    : (at[0] & 0xf0) == 0xe0 ? 3
                    : (at[0] & 0xf8) == 0xf0 ? 4
                                             : 0;
    if (!length || length > left)
        return 0;
    uint32_t point = length == 1 ? at[0] : at[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (at[i] & 0x3f);
    }
    if (point < min_points[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return 0;
    *out_point = point;
    return length;
}

/* Returns the number of characters; SIZE_MAX for invalid UTF-8. */
static size_t utf8_count(kelp_string s) {
    size_t count = 0;
    uint32_t point;
    for (size_t at = 0; at < s.length; count++) {
        size_t step = utf8_take((const unsigned char *)s.data + at, s.length - at, &point);
        if (!step)
            return SIZE_MAX;
        at += step;
    }
    return count;
}

static void put_header(kelp_buf *out, const char *descr, const kelp_tensor *tensor) {
    size_t begin = out->length;
    kelp_buf_append(out, MAGIC "\x01\x00\x00\x00", MAGIC_BYTES + 4);
    kelp_buf_printf(out, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        kelp_buf_printf(out, axis ? " %lld," : "%lld,", (long long)tensor->shape[axis]);
    if (tensor->rank > 1)
        out->length -= !out->failed;
    kelp_buf_append_cstr(out, "), }");
    /* Align the data to 64 bytes, so that it can be mapped. */
    while (!out->failed && (out->length - begin + 1) % 64)
        kelp_buf_append_char(out, ' ');
    kelp_buf_append_char(out, '\n');
    if (out->failed)
        return;
    size_t length = out->length - begin - 10;
    KELP_ASSERT(length <= UINT16_MAX);
    out->data[begin + 8] = (char)(length & 0xff);
    out->data[begin + 9] = (char)(length >> 8);
}

static kelp_status *put_strings(const char *label, const kelp_tensor *tensor, kelp_buf *out) {
    const kelp_string *strings = tensor->data;
    size_t count = (size_t)kelp_tensor_elements(tensor);
    size_t longest = 0, characters = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = utf8_count(strings[i]);
        characters = KELP_MAX(characters, n);
        longest = KELP_MAX(longest, strings[i].length);
    }
    bool unicode = characters != SIZE_MAX;
    size_t width = KELP_MAX(unicode ? characters : longest, (size_t)1);
    char descr[32];
    snprintf(descr, sizeof descr, unicode ? "<U%zu" : "|S%zu", width);
    put_header(out, descr, tensor);
    size_t bytes;
    if (!kelp_size_mul(width, unicode ? 4 : 1, &bytes) || !kelp_size_mul(bytes, count, &bytes))
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "'%s' is too large for a .npy file", label);
    char *at = kelp_buf_reserve(out, bytes);
    if (at == NULL)
        return kelp_buf_status(out);
    memset(at, 0, bytes);
    for (size_t i = 0; i < count; i++, at += unicode ? 4 * width : width) {
        if (!unicode) {
            if (strings[i].length)
                memcpy(at, strings[i].data, strings[i].length);
            continue;
        }
        uint32_t point = 0;
        size_t next = 0;
        for (size_t done = 0; done < strings[i].length; next++) {
            size_t step = utf8_take((const unsigned char *)strings[i].data + done,
                                    strings[i].length - done, &point);
            KELP_ASSERT(step > 0); /* utf8_count accepted the string */
            done += step;
            for (size_t byte = 0; byte < 4; byte++)
                at[4 * next + byte] = (char)(point >> (8 * byte));
        }
    }
    out->length += bytes;
    return NULL;
}

kelp_status *kelp_npy_write(const char *label, const kelp_tensor *tensor, kelp_buf *out) {
    if (tensor->dtype == KELP_STRING) {
        KELP_TRY(put_strings(label, tensor, out));
        return kelp_buf_status(out);
    }
    for (size_t i = 0; i < KELP_COUNT(types); i++) {
        if (types[i].dtype != tensor->dtype)
            continue;
        char descr[8];
        snprintf(descr, sizeof descr, "%c%s", kelp_dtype_bits(tensor->dtype) > 8 ? '<' : '|',
                 types[i].code);
        put_header(out, descr, tensor);
        kelp_buf_append(out, tensor->data, kelp_tensor_bytes(tensor));
        return kelp_buf_status(out);
    }
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "'%s' has type %s, which .npy files do not support; print it instead", label,
                      kelp_dtype_name(tensor->dtype));
}

kelp_status *kelp_npy_save(const char *path, const char *label, const kelp_tensor *tensor) {
    kelp_buf file;
    kelp_buf_init(&file, kelp_allocator_system());
    kelp_status *status = kelp_npy_write(label, tensor, &file);
    if (status == NULL)
        status = kelp_fs_write(path, file.data, file.length);
    kelp_buf_deinit(&file);
    return status;
}
