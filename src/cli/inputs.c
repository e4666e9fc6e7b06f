/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the inputs of a model from a command line. */
#include "cli/inputs.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/float16.h"
#include "base/fs.h"
#include "cli/npz.h"
#include "cli/show.h"

#include <math.h>
#include <stdio.h>

/* The inputs of a model. */
typedef struct model_inputs {
    const kelp_io_info *infos;
    size_t count;
} model_inputs;

/* Splits "name=rest" into the index of the input and the rest. Names may contain '=', so that the
 * longest matching name wins. */
static kelp_status *find_input(const model_inputs *all, const char *option, const char *word,
                               size_t *out_index, const char **out_rest) {
    size_t longest = 0;
    *out_rest = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const char *name = all->infos[i].name;
        size_t length = strlen(name);
        if (length >= longest && !strncmp(word, name, length) && word[length] == '=') {
            longest = length;
            *out_index = i;
            *out_rest = word + length + 1;
        }
    }
    if (*out_rest != NULL)
        return NULL;
    if (strchr(word, '=') == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s': expected NAME=…, found '%s'",
                          option, word);
    kelp_buf names;
    kelp_buf_init(&names, kelp_allocator_system());
    for (size_t i = 0; i < all->count; i++)
        kelp_buf_printf(&names, "%s'%s'", i ? ", " : "", all->infos[i].name);
    const char *list = kelp_buf_cstr(&names);
    kelp_status *status =
        KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s': the model has no input '%.*s'; it has %s",
                   option, (int)strcspn(word, "="), word, list ? list : "others");
    kelp_buf_deinit(&names);
    return status;
}

typedef struct wanted_shape {
    bool is_set;
    int32_t rank;
    int64_t dims[KELP_MAX_RANK];
} wanted_shape;

/* Parses "1x8x8", "1,8,8", or "" for a scalar. */
static kelp_status *parse_shape(const char *input, const char *text, wanted_shape *out) {
    *out = (wanted_shape){.is_set = true};
    for (const char *at = text; *at;) {
        size_t digits = strcspn(at, "x,");
        if (out->rank == KELP_MAX_RANK ||
            !kelp_parse_i64((kelp_str){at, digits}, &out->dims[out->rank]) ||
            out->dims[out->rank] < 0)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "option '--shape': input '%s': expected dimensions such as 1x3x224x224, found '%s'",
                input, text);
        out->rank++;
        at += digits + (at[digits] != '\0');
    }
    return NULL;
}

/* Returns the shape from the command line, or the declared one with 1 for dynamic dimensions. */
static kelp_status *settle_shape(const kelp_io_info *info, const wanted_shape *wanted,
                                 wanted_shape *out) {
    if (wanted->is_set) {
        *out = *wanted;
        return NULL;
    }
    if (info->rank < 0)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "the model does not declare the rank of input '%s': specify '--shape %s=…'", info->name,
            info->name);
    out->rank = info->rank;
    for (int32_t axis = 0; axis < info->rank; axis++)
        out->dims[axis] = info->shape[axis] < 0 ? 1 : info->shape[axis];
    return NULL;
}

/* ---- elements from text ---- */

static bool whole_fits(kelp_dtype dtype, int64_t value) {
    unsigned bits = kelp_dtype_bits(dtype);
    KELP_ASSERT(bits >= 8 && bits <= 64);
    if (dtype == KELP_U8 || dtype == KELP_U16 || dtype == KELP_U32)
        return value >= 0 && value < (int64_t)1 << bits;
    return bits == 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
}

static bool parse_whole(kelp_dtype dtype, kelp_str text, void *at) {
    int64_t value;
    uint64_t unsigned_value;
    if (dtype == KELP_U64) {
        if (!kelp_parse_u64(text, &unsigned_value))
            return false;
        memcpy(at, &unsigned_value, sizeof unsigned_value);
        return true;
    }
    if (!kelp_parse_i64(text, &value) || !whole_fits(dtype, value))
        return false;
    /* The host is little-endian: copy the low bytes. */
    memcpy(at, &value, kelp_dtype_bits(dtype) / 8);
    return true;
}

static bool parse_real(kelp_dtype dtype, kelp_str text, void *at) {
    KELP_ASSERT(dtype == KELP_F16 || dtype == KELP_F32 || dtype == KELP_F64 || dtype == KELP_BF16);
    double value;
    if (!kelp_parse_f64(text, &value))
        return false;
    float single = (float)value;
    if (dtype == KELP_F64) {
        memcpy(at, &value, sizeof value);
    } else if (dtype == KELP_F32) {
        memcpy(at, &single, sizeof single);
    } else if (dtype == KELP_F16) {
        uint16_t half = kelp_f32_to_f16(single);
        memcpy(at, &half, sizeof half);
    } else {
        uint16_t bits = kelp_f32_to_bf16(single);
        memcpy(at, &bits, sizeof bits);
    }
    return true;
}

static bool parse_element(kelp_dtype dtype, kelp_str text, void *data, size_t i) {
    char *at = (char *)data + i * (kelp_dtype_bits(dtype) / 8);
    switch (dtype) {
    case KELP_STRING:
        ((kelp_string *)data)[i] = (kelp_string){text.data, text.length};
        return true;
    case KELP_BOOL:
        *at = kelp_str_is(text, "true") || kelp_str_is(text, "1");
        return *at || kelp_str_is(text, "false") || kelp_str_is(text, "0");
    case KELP_F16:
    case KELP_F32:
    case KELP_F64:
    case KELP_BF16:
        return parse_real(dtype, text, at);
    case KELP_I8:
    case KELP_U8:
    case KELP_I16:
    case KELP_U16:
    case KELP_I32:
    case KELP_U32:
    case KELP_I64:
    case KELP_U64:
        return parse_whole(dtype, text, at);
    default:
        return false;
    }
}

/* Chooses a shape for `count` elements: the last dynamic dimension gets the quotient. */
static bool fit_shape(const kelp_io_info *info, int64_t count, wanted_shape *inout) {
    if (info->rank < 0) {
        *inout = (wanted_shape){.is_set = true, .rank = 1, .dims = {count}};
        return true;
    }
    int64_t fixed = 1;
    int32_t dynamic = -1;
    for (int32_t axis = 0; axis < info->rank; axis++) {
        if (info->shape[axis] < 0) {
            inout->dims[axis] = 1;
            dynamic = axis; /* the last one; the others are 1 */
        } else {
            inout->dims[axis] = info->shape[axis];
            if (!kelp_i64_mul(fixed, info->shape[axis], &fixed))
                return false;
        }
    }
    inout->rank = info->rank;
    inout->is_set = true;
    if (dynamic < 0 || fixed == 0)
        return count == fixed;
    inout->dims[dynamic] = count / fixed;
    return count % fixed == 0;
}

static kelp_status *parse_values(const kelp_io_info *info, const char *text,
                                 const wanted_shape *wanted, kelp_array *out) {
    int64_t count = *text ? 1 : 0, elements;
    for (const char *c = text; *c; c++)
        count += *c == ',';
    wanted_shape shape = *wanted;
    char expected[256];
    if (!shape.is_set && !fit_shape(info, count, &shape)) {
        (void)kelp_shape_format(info->rank, info->shape, expected, sizeof expected);
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--input': input '%s' has shape %s, which does not match %lld "
                          "values; specify '--shape %s=…'",
                          info->name, expected, (long long)count, info->name);
    }
    if (!kelp_shape_elements(shape.rank, shape.dims, &elements) || elements != count) {
        (void)kelp_shape_format(shape.rank, shape.dims, expected, sizeof expected);
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--input': input '%s': shape %s does not match %lld values",
                          info->name, expected, (long long)count);
    }
    KELP_TRY(kelp_array_init(out, info->dtype, shape.rank, shape.dims));
    for (int64_t i = 0; i < count; i++) {
        size_t length = strcspn(text, ",");
        kelp_str word = {text, length};
        if (info->dtype != KELP_STRING)
            word = kelp_str_trim(word);
        if (!parse_element(info->dtype, word, out->data, (size_t)i))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--input': input '%s' (%s): invalid value %lld: '%.*s'",
                              info->name, kelp_dtype_name(info->dtype), (long long)i + 1,
                              KELP_STR_ARG(word));
        text += length + (text[length] != '\0');
    }
    return NULL;
}

/* ---- random elements ---- */

/* Marsaglia's xorshift64* (Journal of Statistical Software 8, 14, 2003): the same numbers on every
 * machine. */
static uint64_t next_random(uint64_t *inout_state) {
    KELP_ASSERT(*inout_state != 0);
    uint64_t x = *inout_state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *inout_state = x;
    return x * 0x2545f4914f6cdd1dull;
}

static kelp_status *generate(const kelp_io_info *info, const wanted_shape *wanted,
                             kelp_input_fill fill, uint64_t *inout_state, kelp_array *out) {
    wanted_shape shape = {0};
    KELP_TRY(settle_shape(info, wanted, &shape));
    KELP_TRY(kelp_array_init(out, info->dtype, shape.rank, shape.dims));
    if (fill != KELP_FILL_RANDOM || kelp_dtype_bits(info->dtype) < 8)
        return NULL;
    int64_t count = kelp_tensor_elements(&out->tensor);
    for (int64_t i = 0; i < count; i++) {
        uint64_t random = next_random(inout_state);
        char text[32];
        bool real = info->dtype == KELP_F16 || info->dtype == KELP_F32 || info->dtype == KELP_F64 ||
                    info->dtype == KELP_BF16;
        if (info->dtype == KELP_STRING) {
            ((kelp_string *)out->data)[i] =
                random >> 63 ? (kelp_string){"kelp", 4} : (kelp_string){"", 0};
            continue;
        }
        int length = real
                         ? snprintf(text, sizeof text, "0.%06u", (unsigned)(random >> 32) % 1000000)
                         : snprintf(text, sizeof text, "%u", (unsigned)(random >> 63));
        if (!parse_element(info->dtype, (kelp_str){text, (size_t)length}, out->data, (size_t)i))
            break; /* other types stay zero */
    }
    return NULL;
}

/* ---- all inputs ---- */

static kelp_status *reject_list(const kelp_io_info *info) {
    const char *kind = info->rank == 1 ? "a sequence" : info->rank == 2 ? "an optional" : "a map";
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "input '%s' is %s: the command line supports tensors only; use the C API",
                      info->name, kind);
}

/* The inputs of a command line. */
typedef struct input_words {
    const kelp_arg_list *values, *shapes;
    const kelp_image_options *image;
} input_words;

/* The inputs while they are read. */
typedef struct reading {
    const model_inputs *all;
    const input_words *words;
    const wanted_shape *shapes;
    bool *is_set;
    kelp_inputs *out;
} reading;

/* Marks an input as set. */
static kelp_status *claim(const reading *r, size_t index) {
    const kelp_io_info *info = &r->all->infos[index];
    if (info->dtype == KELP_LIST)
        return reject_list(info);
    if (r->is_set[index])
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--input': input '%s' is specified twice",
                          info->name);
    r->is_set[index] = true;
    return NULL;
}

/* Applies the shape of the command line to an array from a file. */
static kelp_status *reshape(const reading *r, size_t index, const char *path) {
    const wanted_shape *shape = &r->shapes[index];
    kelp_tensor *tensor = &r->out->arrays[index].tensor;
    int64_t elements = 0;
    if (!shape->is_set)
        return NULL;
    if (!kelp_shape_elements(shape->rank, shape->dims, &elements) ||
        elements != kelp_tensor_elements(tensor))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--shape': input '%s': '%s' has a different number of elements",
                          r->all->infos[index].name, path);
    return kelp_tensor_init(tensor, tensor->dtype, shape->rank, shape->dims, tensor->data);
}

/* Reads the array of an archive that has the name of the input, or its only array. */
static kelp_status *read_member(const kelp_npz *npz, const kelp_io_info *info, kelp_array *out) {
    for (size_t i = 0; i < npz->count; i++)
        if (npz->count == 1 || kelp_str_is(npz->members[i].name, info->name))
            return kelp_npz_read(npz, i, out);
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' has %zu arrays, and none is named '%s'",
                      npz->label, npz->count, info->name);
}

/* Reads a file of any supported format. */
static kelp_status *parse_file(const reading *r, const char *path, const kelp_mapping *file,
                               size_t index) {
    const kelp_io_info *info = &r->all->infos[index];
    const void *data = file->data != NULL ? file->data : "";
    kelp_array *out = &r->out->arrays[index];
    if (kelp_npz_is(data, file->size_bytes)) {
        kelp_npz npz;
        kelp_status *status = kelp_npz_init(&npz, path, data, file->size_bytes);
        if (status == NULL)
            status = read_member(&npz, info, out);
        kelp_npz_deinit(&npz);
        return status;
    }
    if (kelp_image_is(data, file->size_bytes))
        return kelp_image_parse(path, data, file->size_bytes, info, r->words->image, out);
    return kelp_npy_parse(path, data, file->size_bytes, out);
}

static kelp_status *read_file(const reading *r, const char *path, size_t index) {
    kelp_mapping file = {0};
    kelp_status *status = kelp_fs_map(path, &file);
    if (status == NULL)
        status = parse_file(r, path, &file, index);
    kelp_fs_unmap(&file);
    if (status != NULL)
        return KELP_ANNOTATE(status, "cannot read input '%s'", r->all->infos[index].name);
    return reshape(r, index, path);
}

/* Reads all arrays of an archive into the inputs with their names. */
static kelp_status *read_members(const reading *r, const kelp_npz *npz) {
    for (size_t i = 0; i < npz->count; i++) {
        kelp_str name = npz->members[i].name;
        size_t index = 0;
        while (index < r->all->count && !kelp_str_is(name, r->all->infos[index].name))
            index++;
        if (index == r->all->count)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "'%s' has an array '%.*s', but the model has no such input",
                              npz->label, KELP_STR_ARG(name));
        KELP_TRY(claim(r, index));
        KELP_TRY(kelp_npz_read(npz, i, &r->out->arrays[index]));
        KELP_TRY(reshape(r, index, npz->label));
    }
    return NULL;
}

static kelp_status *read_archive(const reading *r, const char *path) {
    kelp_mapping file = {0};
    kelp_npz npz = {0};
    KELP_TRY(kelp_fs_map(path, &file));
    kelp_status *status =
        kelp_npz_init(&npz, path, file.data != NULL ? file.data : "", file.size_bytes);
    if (status == NULL)
        status = read_members(r, &npz);
    kelp_npz_deinit(&npz);
    kelp_fs_unmap(&file);
    return status;
}

static kelp_status *read_values(const reading *r) {
    const kelp_arg_list *values = r->words->values;
    for (size_t i = 0; values != NULL && i < values->count; i++) {
        size_t index = 0;
        const char *rest;
        if (values->items[i][0] == '@') {
            KELP_TRY(read_archive(r, values->items[i] + 1));
            continue;
        }
        KELP_TRY(find_input(r->all, "input", values->items[i], &index, &rest));
        KELP_TRY(claim(r, index));
        if (rest[0] == '@')
            KELP_TRY(read_file(r, rest + 1, index));
        else
            KELP_TRY(parse_values(&r->all->infos[index], rest, &r->shapes[index],
                                  &r->out->arrays[index]));
    }
    return NULL;
}

static kelp_status *fill_inputs(const model_inputs *all, const input_words *words,
                                kelp_input_fill fill, wanted_shape *shapes, bool *is_set,
                                kelp_inputs *out) {
    const kelp_arg_list *shape_words = words->shapes;
    const reading read = {all, words, shapes, is_set, out};
    for (size_t i = 0; shape_words != NULL && i < shape_words->count; i++) {
        size_t index = 0;
        const char *rest;
        KELP_TRY(find_input(all, "shape", shape_words->items[i], &index, &rest));
        KELP_TRY(parse_shape(all->infos[index].name, rest, &shapes[index]));
    }
    KELP_TRY(read_values(&read));
    uint64_t state = 0x6b656c70;
    for (size_t i = 0; i < out->count; i++) {
        const kelp_io_info *info = &all->infos[i];
        if (info->dtype == KELP_LIST)
            return reject_list(info);
        if (is_set[i])
            continue;
        if (fill == KELP_FILL_NONE) {
            char shape[256] = "of any shape";
            if (info->rank >= 0)
                (void)kelp_shape_format(info->rank, info->shape, shape, sizeof shape);
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "missing input '%s' (%s %s): specify '--input %s=@file.npy', values or '--random'",
                info->name, kelp_dtype_name(info->dtype), shape, info->name);
        }
        KELP_TRY(generate(info, &shapes[i], fill, &state, &out->arrays[i]));
    }
    return NULL;
}

kelp_status *kelp_inputs_init(kelp_inputs *out, const kelp_io_info *infos, size_t count,
                              const kelp_arg_list *values, const kelp_arg_list *shapes,
                              const kelp_image_options *image, kelp_input_fill fill) {
    kelp_allocator allocator = kelp_allocator_system();
    const model_inputs all = {infos, count};
    const input_words words = {values, shapes, image};
    *out = (kelp_inputs){.count = count};
    wanted_shape *wanted = NULL;
    bool *is_set = NULL;
    kelp_status *status =
        kelp_alloc_zero(allocator, out->count, sizeof *out->arrays, (void **)&out->arrays);
    if (status == NULL)
        status = kelp_alloc_zero(allocator, out->count, sizeof *wanted, (void **)&wanted);
    if (status == NULL)
        status = kelp_alloc_zero(allocator, out->count, sizeof *is_set, (void **)&is_set);
    if (status == NULL)
        status = fill_inputs(&all, &words, fill, wanted, is_set, out);
    kelp_free(allocator, wanted, out->count * sizeof *wanted);
    kelp_free(allocator, is_set, out->count * sizeof *is_set);
    if (status != NULL)
        kelp_inputs_deinit(out);
    return status;
}

void kelp_inputs_deinit(kelp_inputs *inputs) {
    for (size_t i = 0; inputs->arrays != NULL && i < inputs->count; i++)
        kelp_array_deinit(&inputs->arrays[i]);
    kelp_free(kelp_allocator_system(), inputs->arrays, inputs->count * sizeof *inputs->arrays);
    *inputs = (kelp_inputs){0};
}

kelp_status *kelp_inputs_bind(const kelp_inputs *inputs, kelp_context *context) {
    KELP_ASSERT(inputs->arrays != NULL || inputs->count == 0);
    for (size_t i = 0; i < inputs->count; i++)
        KELP_TRY(kelp_context_set_input(context, i, &inputs->arrays[i].tensor));
    return NULL;
}
