/* SPDX-License-Identifier: Apache-2.0 */
/* Images as inputs: decoding and resizing run as single nodes on the engine. */
#include "cli/image.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/float16.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define DECODER_VERSION 20
#define RESIZE_VERSION 19
#define CHANNELS_MAX 4
#define SIDE_MAX 65536

/* What an input wants of an image. */
typedef struct image_target {
    kelp_dtype dtype;
    int32_t rank; /* 3 or 4 */
    bool channels_first;
    int64_t height, width, channels; /* height and width -1: those of the file */
    bool crop;
    const char *pixel_format;
    float scale, mean[CHANNELS_MAX], deviation[CHANNELS_MAX];
} image_target;

bool kelp_image_is(const void *data, size_t size_bytes) {
    static const struct {
        const char *bytes;
        size_t length;
    } signatures[] = {{"\x89PNG", 4}, {"\xff\xd8\xff", 3}, {"BM", 2},          {"RIFF", 4},
                      {"II*\0", 4},   {"MM\0*", 4},        {"\0\0\0\x0cjP", 6}};
    const char *bytes = data;
    if (size_bytes > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
        isspace((unsigned char)bytes[2]))
        return true; /* PNM */
    for (size_t i = 0; i < KELP_COUNT(signatures); i++)
        if (size_bytes >= signatures[i].length &&
            memcmp(data, signatures[i].bytes, signatures[i].length) == 0)
            return true;
    return false;
}

/* ---- options ---- */
static kelp_status *wrong(const char *option, const char *expected, const char *found) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s': expected %s, found '%s'", option,
                      expected, found);
}

static kelp_status *parse_size(const char *text, image_target *out) {
    size_t digits = strcspn(text, "x");
    if (text[digits] != 'x' || !kelp_parse_i64((kelp_str){text, digits}, &out->height) ||
        !kelp_parse_i64(kelp_str_from(text + digits + 1), &out->width) || out->height < 1 ||
        out->width < 1 || out->height > SIDE_MAX || out->width > SIDE_MAX)
        return wrong("image-size", "HEIGHTxWIDTH such as 224x224", text);
    return NULL;
}

/* Parses one number for all channels, or one for each. */
static kelp_status *parse_channels(const char *option, const char *text, float fallback,
                                   int64_t channels, float *out) {
    double values[CHANNELS_MAX] = {(double)fallback};
    int64_t count = text == NULL ? 1 : 0;
    for (const char *at = text; at != NULL && *at;) {
        size_t length = strcspn(at, ",");
        if (count == channels || !kelp_parse_f64((kelp_str){at, length}, &values[count]))
            return wrong(option, "a number, or one for each channel", text);
        count++;
        at += length + (at[length] == ',');
    }
    if (count != 1 && count != channels)
        return wrong(option, "a number, or one for each channel", text);
    for (int64_t c = 0; c < channels; c++)
        out[c] = (float)values[count == 1 ? 0 : c];
    return NULL;
}

static kelp_status *parse_scale(const char *text, bool is_real, float *out) {
    double factor = is_real ? 1.0 : 255.0, divisor = 255;
    if (text != NULL) {
        size_t length = strcspn(text, "/");
        divisor = 1;
        if (!kelp_parse_f64((kelp_str){text, length}, &factor) ||
            (text[length] == '/' &&
             (!kelp_parse_f64(kelp_str_from(text + length + 1), &divisor) || divisor == 0)))
            return wrong("image-scale", "a number or a fraction such as 1/255", text);
    }
    *out = (float)(factor / divisor);
    return NULL;
}

/* ---- the shape of the input ---- */
static bool is_channels(int64_t dim) {
    return dim == 1 || dim == 3;
}

/* Reads layout, channels and size from the shape of the input. */
static kelp_status *read_shape(const kelp_io_info *info, const kelp_image_options *o,
                               image_target *out) {
    out->rank = info->rank == 3 ? 3 : 4;
    out->height = out->width = -1;
    out->channels = 3;
    out->channels_first = true;
    if (info->rank >= 0 && info->rank != 3 && info->rank != 4)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' has %d dimensions: an image has 3 or 4 (NCHW or NHWC)",
                          info->name, info->rank);
    const int64_t *dims = info->rank == 4 ? info->shape + 1 : info->shape;
    if (info->rank >= 0)
        out->channels_first = is_channels(dims[0]) || !is_channels(dims[2]);
    if (o->layout != NULL)
        out->channels_first = strcmp(o->layout, "nchw") == 0;
    if (info->rank < 0)
        return NULL;
    int64_t channels = dims[out->channels_first ? 0 : 2];
    out->height = dims[out->channels_first ? 1 : 0];
    out->width = dims[out->channels_first ? 2 : 1];
    if (channels >= 0 && !is_channels(channels))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' has %lld channels: an image has 1 or 3", info->name,
                          (long long)channels);
    if (channels > 0)
        out->channels = channels;
    return NULL;
}

static kelp_status *make_target(const kelp_io_info *info, const kelp_image_options *o,
                                image_target *out) {
    *out = (image_target){.dtype = info->dtype};
    KELP_TRY(read_shape(info, o, out));
    if (o->size != NULL)
        KELP_TRY(parse_size(o->size, out));
    if (o->color != NULL && (info->rank < 0 || strcmp(o->color, "gray") != 0))
        out->channels = strcmp(o->color, "gray") == 0 ? 1 : 3;
    out->pixel_format = out->channels == 1                                 ? "Grayscale"
                        : o->color != NULL && strcmp(o->color, "bgr") == 0 ? "BGR"
                                                                           : "RGB";
    out->crop = o->fit != NULL && strcmp(o->fit, "crop") == 0;
    bool is_real = info->dtype == KELP_F32 || info->dtype == KELP_F16 || info->dtype == KELP_F64 ||
                   info->dtype == KELP_BF16;
    KELP_TRY(parse_scale(o->scale, is_real, &out->scale));
    KELP_TRY(parse_channels("image-mean", o->mean, 0, out->channels, out->mean));
    return parse_channels("image-std", o->std, 1, out->channels, out->deviation);
}

/* ---- nodes ---- */
/* Runs a single node and copies its output. */
static kelp_status *run_node(kelp_runtime *runtime, const kelp_node_desc *desc, kelp_array *out) {
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_status *status = kelp_graph_create_node(kelp_allocator_system(), desc, NULL, &graph);
    if (status == NULL)
        status = kelp_engine_create(runtime, graph, NULL, &engine);
    if (status == NULL)
        status = kelp_context_create(engine, &context);
    for (size_t i = 0, bound = 0; status == NULL && i < desc->input_count; i++)
        if (desc->inputs[i] != NULL)
            status = kelp_context_set_input(context, bound++, desc->inputs[i]);
    if (status == NULL)
        status = kelp_context_invoke(context);
    const kelp_tensor *result = status == NULL ? kelp_context_output(context, 0) : NULL;
    if (result != NULL) {
        status = kelp_array_init(out, result->dtype, result->rank, result->shape);
        if (status == NULL && out->data_bytes > 0)
            memcpy(out->data, result->data, out->data_bytes);
    }
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    return status;
}

/* Decodes to uint8, [height, width, channels]. */
static kelp_status *decode(kelp_runtime *runtime, const void *data, size_t size_bytes,
                           const char *pixel_format, kelp_array *out) {
    kelp_tensor bytes;
    KELP_TRY(kelp_tensor_init(&bytes, KELP_U8, 1, (int64_t[]){(int64_t)size_bytes},
                              (void *)(uintptr_t)data));
    const kelp_node_attribute format = {.name = "pixel_format",
                                        .type = KELP_ATTR_STRING,
                                        .s = {pixel_format, strlen(pixel_format)}};
    const kelp_tensor *const inputs[] = {&bytes};
    const kelp_node_desc desc = {.struct_size = sizeof desc,
                                 .name = "ImageDecoder",
                                 .version = DECODER_VERSION,
                                 .inputs = inputs,
                                 .input_count = 1,
                                 .output_count = 1,
                                 .attributes = &format,
                                 .attribute_count = 1};
    return run_node(runtime, &desc, out);
}

/* Resizes float32 pixels as Pillow's filter BILINEAR does: with antialiasing where they shrink. */
static kelp_status *resize(kelp_runtime *runtime, const kelp_tensor *pixels, int64_t height,
                           int64_t width, kelp_array *out) {
    int64_t wanted[] = {height, width, pixels->shape[2]};
    kelp_tensor sizes;
    KELP_TRY(kelp_tensor_init(&sizes, KELP_I64, 1, (int64_t[]){3}, wanted));
    const kelp_node_attribute attributes[] = {
        {.name = "mode", .type = KELP_ATTR_STRING, .s = {"linear", 6}},
        {.name = "antialias", .type = KELP_ATTR_INT, .i = 1},
        {.name = "exclude_outside", .type = KELP_ATTR_INT, .i = 1}};
    const kelp_tensor *const inputs[] = {pixels, NULL, NULL, &sizes};
    const kelp_node_desc desc = {.struct_size = sizeof desc,
                                 .name = "Resize",
                                 .version = RESIZE_VERSION,
                                 .inputs = inputs,
                                 .input_count = KELP_COUNT(inputs),
                                 .output_count = 1,
                                 .attributes = attributes,
                                 .attribute_count = KELP_COUNT(attributes)};
    return run_node(runtime, &desc, out);
}

/* ---- conversion ---- */
static bool store(kelp_dtype dtype, float value, void *data, size_t at) {
    double whole = nearbyint((double)value);
    switch (dtype) {
    case KELP_F32:
        ((float *)data)[at] = value;
        return true;
    case KELP_F64:
        ((double *)data)[at] = (double)value;
        return true;
    case KELP_F16:
        ((uint16_t *)data)[at] = kelp_f32_to_f16(value);
        return true;
    case KELP_BF16:
        ((uint16_t *)data)[at] = kelp_f32_to_bf16(value);
        return true;
    case KELP_U8:
        ((uint8_t *)data)[at] = (uint8_t)KELP_MIN(KELP_MAX(whole, 0.0), (double)UINT8_MAX);
        return true;
    case KELP_I8:
        ((int8_t *)data)[at] = (int8_t)KELP_MIN(KELP_MAX(whole, INT8_MIN), (double)INT8_MAX);
        return true;
    case KELP_I32:
        ((int32_t *)data)[at] = (int32_t)KELP_MIN(KELP_MAX(whole, -1e9), 1e9);
        return true;
    case KELP_I64:
        ((int64_t *)data)[at] = (int64_t)KELP_MIN(KELP_MAX(whole, -1e18), 1e18);
        return true;
    default:
        return false;
    }
}

/* Writes the window of `pixels` that begins at (top, left) to the input, normalized. */
static kelp_status *convert(const image_target *t, const kelp_tensor *pixels, int64_t top,
                            int64_t left, kelp_array *out) {
    int64_t width = pixels->shape[1], channels = t->channels;
    int64_t shape[4] = {1, channels, t->height, t->width};
    if (!t->channels_first)
        memcpy(shape, (int64_t[]){1, t->height, t->width, channels}, sizeof shape);
    KELP_TRY(kelp_array_init(out, t->dtype, t->rank, shape + (t->rank == 3)));
    const float *source = pixels->data;
    for (int64_t y = 0; y < t->height; y++) {
        for (int64_t x = 0; x < t->width; x++) {
            for (int64_t c = 0; c < channels; c++) {
                float pixel = source[((y + top) * width + x + left) * channels + c];
                float value = (pixel * t->scale - t->mean[c]) / t->deviation[c];
                int64_t at = t->channels_first ? (c * t->height + y) * t->width + x
                                               : (y * t->width + x) * channels + c;
                if (!store(t->dtype, value, out->data, (size_t)at))
                    return KELP_ERROR(KELP_UNIMPLEMENTED,
                                      "an image cannot be converted to elements of type %s",
                                      kelp_dtype_name(t->dtype));
            }
        }
    }
    return NULL;
}

static kelp_status *to_float(const kelp_tensor *decoded, kelp_array *out) {
    KELP_TRY(kelp_array_init(out, KELP_F32, decoded->rank, decoded->shape));
    for (int64_t i = 0; i < kelp_tensor_elements(decoded); i++)
        ((float *)out->data)[i] = (float)((const uint8_t *)decoded->data)[i];
    return NULL;
}

/* Resizes decoded pixels to the target and writes the input. */
static kelp_status *fit(kelp_runtime *runtime, image_target *t, const kelp_tensor *pixels,
                        kelp_array *out) {
    int64_t height = pixels->shape[0], width = pixels->shape[1];
    t->height = t->height > 0 ? t->height : height;
    t->width = t->width > 0 ? t->width : width;
    int64_t new_height = t->height, new_width = t->width;
    if (t->crop) {
        double factor =
            KELP_MAX((double)t->height / (double)height, (double)t->width / (double)width);
        new_height = KELP_MAX((int64_t)round((double)height * factor), t->height);
        new_width = KELP_MAX((int64_t)round((double)width * factor), t->width);
    }
    int64_t top = (new_height - t->height) / 2, left = (new_width - t->width) / 2;
    if (new_height == height && new_width == width)
        return convert(t, pixels, top, left, out);
    kelp_array resized = {0};
    kelp_status *status = resize(runtime, pixels, new_height, new_width, &resized);
    if (status == NULL)
        status = convert(t, &resized.tensor, top, left, out);
    kelp_array_deinit(&resized);
    return status;
}

static kelp_status *copy_bytes(const void *data, size_t size_bytes, kelp_array *out) {
    KELP_TRY(kelp_array_init(out, KELP_U8, 1, (int64_t[]){(int64_t)size_bytes}));
    memcpy(out->data, data, size_bytes);
    return NULL;
}

kelp_status *kelp_image_parse(const char *label, const void *data, size_t size_bytes,
                              const kelp_io_info *info, const kelp_image_options *options,
                              kelp_array *out) {
    image_target target;
    kelp_runtime *runtime = NULL;
    kelp_array decoded = {0}, pixels = {0};
    const kelp_runtime_options single = {.struct_size = sizeof single, .threads = 1};
    *out = (kelp_array){0};
    if (info->dtype == KELP_U8 && info->rank == 1)
        return copy_bytes(data, size_bytes, out);
    KELP_TRY(make_target(info, options, &target));
    KELP_TRY(kelp_runtime_create(&single, &runtime));
    kelp_status *status = decode(runtime, data, size_bytes, target.pixel_format, &decoded);
    if (status != NULL)
        status = KELP_ANNOTATE(status, "cannot decode the image '%s'", label);
    if (status == NULL)
        status = to_float(&decoded.tensor, &pixels);
    if (status == NULL)
        status = fit(runtime, &target, &pixels.tensor, out);
    kelp_array_deinit(&decoded);
    kelp_array_deinit(&pixels);
    kelp_runtime_release(runtime);
    if (status != NULL)
        kelp_array_deinit(out);
    return status;
}
