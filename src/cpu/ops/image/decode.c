/* SPDX-License-Identifier: Apache-2.0 */
/* ImageDecoder, and DecodeImage of com.microsoft.extensions: the first bytes determine the format.
 * Sources: ONNX operator specification, ImageDecoder-20; onnxruntime-extensions,
 * docs/custom_ops.md. */
#include "base/assert.h"
#include "cpu/ops/image/decode.h"

static const kelp_image_format *const formats[] = {
    &kelp_image_jpeg, &kelp_image_png, &kelp_image_bmp,     &kelp_image_webp,
    &kelp_image_tiff, &kelp_image_pnm, &kelp_image_jpeg2000};

typedef struct decoder_plan {
    kelp_encoded image;
    const kelp_image_format *format;
    bool gray, blue_first;
} decoder_plan;

kelp_status *kelp_image_bad(const char *format, const char *why) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot decode a %s image: %s", format, why);
}

kelp_status *kelp_image_alloc(const kelp_encoded *image, size_t bytes_per_pixel, void **out) {
    KELP_ASSERT(image->width > 0 && image->height > 0 &&
                image->width <= KELP_IMAGE_MAX_PIXELS / image->height);
    *out = kelp_op_env_alloc(image->env,
                             (size_t)image->width * (size_t)image->height * bytes_per_pixel + 64);
    return *out != NULL ? NULL : kelp_status_oom();
}

kelp_status *kelp_image_library(const kelp_optional_library *library, const char *const *names,
                                size_t count, kelp_image_fn *out) {
    kelp_dl dl;
    KELP_TRY(kelp_optional_open(library, &dl));
    for (size_t i = 0; i < count; i++) {
        void *symbol = kelp_dl_symbol(&dl, names[i]);
        if (symbol == NULL)
            return KELP_ERROR(KELP_UNAVAILABLE,
                              "%s need the function '%s', which the library '%s' lacks: "
                              "expected that of Debian package %s",
                              library->subject, names[i], library->file, library->package);
        memcpy(&out[i], &symbol, sizeof symbol);
    }
    return NULL;
}

/* Finds the format and the size of the image. */
static kelp_status *measure(kelp_op_args *args) {
    decoder_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0];
    const char *op = kelp_node_op_type(args->node);
    if (kelp_ops_defer(args, 0))
        return NULL;
    p->image = (kelp_encoded){x->data, kelp_tensor_bytes(x), args->env, 0, 0};
    p->format = NULL;
    for (size_t i = 0; i < KELP_COUNT(formats) && p->format == NULL; i++)
        if (formats[i]->matches(&p->image))
            p->format = formats[i];
    if (p->format == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: the input has an unknown image format: expected JPEG, PNG, BMP, "
                          "WebP, TIFF, PNM or JPEG 2000, found %zu other bytes",
                          op, p->image.size);
    KELP_TRY(p->format->measure(&p->image));
    if (p->image.width < 1 || p->image.height < 1 ||
        p->image.width > KELP_IMAGE_MAX_PIXELS / p->image.height)
        return kelp_image_bad(p->format->name, "its width or height is out of range");
    int64_t shape[3] = {p->image.height, p->image.width, p->gray ? 1 : 3};
    return kelp_ops_set(args, 0, KELP_U8, 3, shape);
}

static kelp_status *decoder_reshape(const void *state, kelp_op_args *args) {
    decoder_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const char *pixels = kelp_node_attr_string(args->node, "pixel_format", "RGB", NULL);
    if (args->inputs[0]->dtype != KELP_U8)
        return kelp_ops_bad_type(args, args->inputs[0]->dtype);
    p->gray = strcmp(pixels, "Grayscale") == 0;
    p->blue_first = strcmp(pixels, "BGR") == 0;
    if (!p->gray && !p->blue_first && strcmp(pixels, "RGB") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "ImageDecoder: attribute 'pixel_format': expected RGB, BGR or Grayscale, "
                          "found '%s'",
                          pixels);
    return measure(args);
}

/* ITU-R BT.601, in 16 bits of fraction. */
static void to_gray(const uint8_t *rgb, uint8_t *out, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = (uint8_t)((rgb[3 * i] * 19595u + rgb[3 * i + 1] * 38470u + rgb[3 * i + 2] * 7471u +
                            0x8000u) >>
                           16);
}

static kelp_status *decoder_invoke(const void *state, kelp_op_args *args) {
    decoder_plan *p = args->plan;
    uint8_t *out = args->outputs[0]->data, *rgb = out;
    int64_t count = p->image.width * p->image.height;
    (void)state;
    KELP_ASSERT(p->format != NULL && count > 0);
    KELP_ASSERT(kelp_tensor_elements(args->outputs[0]) == count * (p->gray ? 1 : 3));
    KELP_ASSERT(kelp_tensor_bytes(args->inputs[0]) == p->image.size);
    p->image.env = args->env;
    p->image.data = args->inputs[0]->data;
    if (p->gray)
        KELP_TRY(kelp_image_alloc(&p->image, 3, (void **)&rgb));
    KELP_TRY(p->format->decode(&p->image, rgb));
    if (p->gray)
        to_gray(rgb, out, count);
    for (int64_t i = 0; i < count && p->blue_first; i++) {
        uint8_t red = out[3 * i];
        out[3 * i] = out[3 * i + 2];
        out[3 * i + 2] = red;
    }
    return NULL;
}
KELP_KERNEL(ImageDecoder, 0, sizeof(decoder_plan), 1, decoder_reshape, decoder_invoke);

/* ---- DecodeImage of onnxruntime-extensions ---- */
kelp_status *kelp_image_blue_first(const kelp_node *node, bool *out) {
    const char *colors = kelp_node_attr_string(node, "color_space", "bgr", NULL);
    *out = strcmp(colors, "bgr") == 0;
    if (!*out && strcmp(colors, "rgb") != 0)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "node '%s' (%s): attribute 'color_space': expected bgr or rgb, found '%s'",
            kelp_node_name(node), kelp_node_op_type(node), colors);
    return NULL;
}

static kelp_status *decode_image_reshape(const void *state, kelp_op_args *args) {
    decoder_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    if (args->inputs[0]->dtype != KELP_U8)
        return kelp_ops_bad_type(args, args->inputs[0]->dtype);
    p->gray = false;
    KELP_TRY(kelp_image_blue_first(args->node, &p->blue_first));
    return measure(args);
}
KELP_KERNEL(DecodeImage, 0, sizeof(decoder_plan), 1, decode_image_reshape, decoder_invoke);
