/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG through TurboJPEG, PNG through the simplified interface of libpng, WebP through libwebp.
 * This file declares the part of their interfaces that it uses, so that Kelp builds without them.
 * Source: the documentation of TurboJPEG 2.1, libpng 1.6 and libwebp 1.2.
 */
#include "base/assert.h"
#include "cpu/ops/image/decode.h"

/* ---- JPEG ---- */
typedef void *(*tj_init_fn)(void);
typedef int (*tj_header_fn)(void *handle, const unsigned char *data, unsigned long size, int *width,
                            int *height, int *sampling, int *colors);
typedef int (*tj_decode_fn)(void *handle, const unsigned char *data, unsigned long size,
                            unsigned char *out, int width, int pitch, int height, int format,
                            int flags);
typedef int (*tj_destroy_fn)(void *handle);
typedef char *(*tj_error_fn)(void *handle);
enum { TJ_RGB = 0, TJ_CMYK = 11, TJ_COLORS_CMYK = 3, TJ_ACCURATE_DCT = 4096 };

typedef struct turbojpeg {
    kelp_image_fn init, header, decode, destroy, error;
    void *handle;
} turbojpeg;

static bool is_jpeg(const kelp_encoded *image) {
    return image->size > 3 && memcmp(image->data, "\xff\xd8\xff", 3) == 0;
}

static kelp_status *jpeg_open(const kelp_encoded *image, turbojpeg *tj, int *colors, int *width,
                              int *height) {
    static const char *const names[] = {"tjInitDecompress", "tjDecompressHeader3", "tjDecompress2",
                                        "tjDestroy", "tjGetErrorStr2"};
    kelp_image_fn found[5];
    int sampling = 0;
    KELP_TRY(kelp_image_library(&kelp_lib_turbojpeg, names, 5, found));
    *tj = (turbojpeg){found[0], found[1], found[2], found[3], found[4], NULL};
    tj->handle = ((tj_init_fn)tj->init)();
    if (tj->handle == NULL)
        return kelp_status_oom();
    if (((tj_header_fn)tj->header)(tj->handle, image->data, image->size, width, height, &sampling,
                                   colors) == 0)
        return NULL;
    kelp_status *status = kelp_image_bad("JPEG", ((tj_error_fn)tj->error)(tj->handle));
    ((tj_destroy_fn)tj->destroy)(tj->handle);
    return status;
}

static kelp_status *jpeg_measure(kelp_encoded *image) {
    turbojpeg tj;
    int colors, width, height;
    KELP_TRY(jpeg_open(image, &tj, &colors, &width, &height));
    ((tj_destroy_fn)tj.destroy)(tj.handle);
    image->width = width;
    image->height = height;
    return NULL;
}

/* Converts CMYK to RGB. JPEG files store the inks inverted. */
static void from_cmyk(const uint8_t *cmyk, uint8_t *rgb, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        for (int c = 0; c < 3; c++)
            rgb[3 * i + c] = (uint8_t)((cmyk[4 * i + c] * cmyk[4 * i + 3] + 127) / 255);
}

static kelp_status *jpeg_decode(const kelp_encoded *image, uint8_t *out) {
    turbojpeg tj;
    int colors = 0, width = 0, height = 0;
    uint8_t *to = out;
    KELP_TRY(jpeg_open(image, &tj, &colors, &width, &height));
    bool inks = colors >= TJ_COLORS_CMYK;
    kelp_status *status = NULL;
    if (width != image->width || height != image->height)
        status = kelp_image_bad("JPEG", "its size changed during decoding");
    else if (inks)
        status = kelp_image_alloc(image, 4, (void **)&to);
    if (status == NULL &&
        ((tj_decode_fn)tj.decode)(tj.handle, image->data, image->size, to, width, 0, height,
                                  inks ? TJ_CMYK : TJ_RGB, TJ_ACCURATE_DCT) != 0)
        status = kelp_image_bad("JPEG", ((tj_error_fn)tj.error)(tj.handle));
    if (status == NULL && inks)
        from_cmyk(to, out, image->width * image->height);
    ((tj_destroy_fn)tj.destroy)(tj.handle);
    return status;
}
const kelp_image_format kelp_image_jpeg = {"JPEG", is_jpeg, jpeg_measure, jpeg_decode};

/* ---- PNG ---- */
typedef struct png_view { /* png_image, version 1 */
    void *opaque;
    uint32_t version, width, height, format, flags, colormap_entries, warning_or_error;
    char message[64];
} png_view;
typedef int (*png_begin_fn)(png_view *view, const void *data, size_t size);
typedef int (*png_finish_fn)(png_view *view, const void *background, void *out, int32_t stride,
                             void *colormap);
typedef void (*png_free_fn)(png_view *view);
enum { PNG_RGBA = 3 };

static bool is_png(const kelp_encoded *image) {
    return image->size > 24 && memcmp(image->data, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static uint32_t read_big_endian(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static kelp_status *png_measure(kelp_encoded *image) {
    KELP_ASSERT(is_png(image)); /* long enough for the header */
    image->width = read_big_endian(image->data + 16);
    image->height = read_big_endian(image->data + 20);
    return NULL;
}

static kelp_status *png_decode(const kelp_encoded *image, uint8_t *out) {
    static const char *const names[] = {"png_image_begin_read_from_memory", "png_image_finish_read",
                                        "png_image_free"};
    kelp_image_fn found[3];
    png_view view = {.version = 1};
    uint8_t *rgba = NULL;
    KELP_TRY(kelp_image_library(&kelp_lib_png, names, 3, found));
    KELP_TRY(kelp_image_alloc(image, 4, (void **)&rgba));
    bool done = ((png_begin_fn)found[0])(&view, image->data, image->size) != 0 &&
                view.width == image->width && view.height == image->height;
    view.format = PNG_RGBA;
    done = done && ((png_finish_fn)found[1])(&view, NULL, rgba, 0, NULL) != 0;
    view.message[sizeof view.message - 1] = '\0';
    kelp_status *status = done ? NULL : kelp_image_bad("PNG", view.message);
    ((png_free_fn)found[2])(&view);
    for (int64_t i = 0; i < image->width * image->height && done; i++)
        memcpy(out + 3 * i, rgba + 4 * i, 3); /* without alpha */
    return status;
}
const kelp_image_format kelp_image_png = {"PNG", is_png, png_measure, png_decode};

/* ---- WebP ---- */
typedef int (*webp_info_fn)(const uint8_t *data, size_t size, int *width, int *height);
typedef uint8_t *(*webp_decode_fn)(const uint8_t *data, size_t size, uint8_t *out, size_t out_size,
                                   int stride);

static bool is_webp(const kelp_encoded *image) {
    return image->size > 12 && memcmp(image->data, "RIFF", 4) == 0 &&
           memcmp(image->data + 8, "WEBP", 4) == 0;
}

static kelp_status *webp_open(kelp_image_fn *out) {
    static const char *const names[] = {"WebPGetInfo", "WebPDecodeRGBInto"};
    return kelp_image_library(&kelp_lib_webp, names, 2, out);
}

static kelp_status *webp_measure(kelp_encoded *image) {
    kelp_image_fn found[2];
    int width = 0, height = 0;
    KELP_TRY(webp_open(found));
    if (((webp_info_fn)found[0])(image->data, image->size, &width, &height) == 0)
        return kelp_image_bad("WebP", "its header is corrupt");
    image->width = width;
    image->height = height;
    return NULL;
}

static kelp_status *webp_decode(const kelp_encoded *image, uint8_t *out) {
    kelp_image_fn found[2];
    size_t stride = 3 * (size_t)image->width;
    KELP_TRY(webp_open(found));
    if (((webp_decode_fn)found[1])(image->data, image->size, out, stride * (size_t)image->height,
                                   (int)stride) == NULL)
        return kelp_image_bad("WebP", "it is corrupt or truncated");
    return NULL;
}
const kelp_image_format kelp_image_webp = {"WebP", is_webp, webp_measure, webp_decode};
