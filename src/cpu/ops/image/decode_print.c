/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TIFF through libtiff, JPEG 2000 through OpenJPEG. This file declares the part of their interfaces
 * that it uses, so that Kelp builds without them. Source: the documentation of libtiff 4.5 and
 * OpenJPEG 2.5.
 */
#include "base/assert.h"
#include "cpu/ops/image/decode.h"

#include <stdarg.h>
#include <stdio.h>

/* A stream over bytes in memory. TIFF may move `at` past the end. */
typedef struct cursor {
    const uint8_t *data;
    size_t size, at;
    char message[160];
} cursor;

static size_t take(cursor *c, void *to, size_t count) {
    size_t left = c->at < c->size ? c->size - c->at : 0;
    count = KELP_MIN(count, left);
    if (count > 0)
        memcpy(to, c->data + c->at, count);
    c->at += count;
    return count;
}

/* ---- TIFF ---- */
typedef struct tiff tiff;
typedef struct tiff_options tiff_options;
typedef int (*tiff_report_fn)(tiff *t, void *userp, const char *module, const char *format,
                              va_list args);
typedef intptr_t (*tiff_move_fn)(void *handle, void *data, intptr_t size);
typedef uint64_t (*tiff_seek_fn)(void *handle, uint64_t offset, int whence);
typedef int (*tiff_close_fn)(void *handle);
typedef uint64_t (*tiff_size_fn)(void *handle);
typedef int (*tiff_map_fn)(void *handle, void **base, uint64_t *size);
typedef void (*tiff_unmap_fn)(void *handle, void *base, uint64_t size);
typedef tiff_options *(*tiff_options_alloc_fn)(void);
typedef void (*tiff_options_free_fn)(tiff_options *options);
typedef void (*tiff_options_report_fn)(tiff_options *options, tiff_report_fn fn, void *userp);
typedef tiff *(*tiff_open_fn)(const char *name, const char *mode, void *handle, tiff_move_fn read,
                              tiff_move_fn write, tiff_seek_fn seek, tiff_close_fn close,
                              tiff_size_fn size, tiff_map_fn map, tiff_unmap_fn unmap,
                              tiff_options *options);
typedef int (*tiff_field_fn)(tiff *t, uint32_t tag, ...);
typedef int (*tiff_read_fn)(tiff *t, uint32_t width, uint32_t height, uint32_t *raster,
                            int orientation, int stop);
typedef void (*tiff_end_fn)(tiff *t);
enum { TIFF_WIDTH = 256, TIFF_HEIGHT = 257, TIFF_FROM_TOP = 1 };
enum { ALLOC, FREE, ON_ERROR, ON_WARNING, OPEN, FIELD, READ, CLOSE, TIFF_FUNCTIONS };

static bool is_tiff(const kelp_encoded *image) {
    return image->size > 8 &&
           (memcmp(image->data, "II*\0", 4) == 0 || memcmp(image->data, "MM\0*", 4) == 0 ||
            memcmp(image->data, "II+\0", 4) == 0 || memcmp(image->data, "MM\0+", 4) == 0);
}

/* Stores the message. The return value 1 keeps the library from printing it. */
static int keep_report(tiff *t, void *userp, const char *module, const char *format, va_list args)
    KELP_PRINTF(4, 0);
static int keep_report(tiff *t, void *userp, const char *module, const char *format, va_list args) {
    cursor *c = userp;
    (void)t;
    (void)module;
    (void)vsnprintf(c->message, sizeof c->message, format, args);
    return 1;
}
static int drop_report(tiff *t, void *userp, const char *module, const char *format, va_list args) {
    (void)t;
    (void)userp;
    (void)module;
    (void)format;
    (void)args;
    return 1;
}
static intptr_t tiff_read(void *handle, void *data, intptr_t size) {
    return size > 0 ? (intptr_t)take(handle, data, (size_t)size) : 0;
}
static intptr_t tiff_write(void *handle, void *data, intptr_t size) {
    (void)handle;
    (void)data;
    (void)size;
    return 0;
}
static uint64_t tiff_seek(void *handle, uint64_t offset, int whence) {
    cursor *c = handle;
    c->at = (size_t)offset + (whence == SEEK_CUR ? c->at : whence == SEEK_END ? c->size : 0);
    return c->at;
}
static int tiff_close(void *handle) {
    (void)handle;
    return 0;
}
static uint64_t tiff_size(void *handle) {
    return ((cursor *)handle)->size;
}
static int tiff_map(void *handle, void **base, uint64_t *size) {
    (void)handle;
    (void)base;
    (void)size;
    return 0;
}
static void tiff_unmap(void *handle, void *base, uint64_t size) {
    (void)handle;
    (void)base;
    (void)size;
}

static kelp_status *tiff_open(kelp_image_fn *fn, cursor *c, tiff **out) {
    static const char *const names[TIFF_FUNCTIONS] = {"TIFFOpenOptionsAlloc",
                                                      "TIFFOpenOptionsFree",
                                                      "TIFFOpenOptionsSetErrorHandlerExtR",
                                                      "TIFFOpenOptionsSetWarningHandlerExtR",
                                                      "TIFFClientOpenExt",
                                                      "TIFFGetField",
                                                      "TIFFReadRGBAImageOriented",
                                                      "TIFFClose"};
    KELP_TRY(kelp_image_library(&kelp_lib_tiff, names, TIFF_FUNCTIONS, fn));
    tiff_options *options = ((tiff_options_alloc_fn)fn[ALLOC])();
    if (options == NULL)
        return kelp_status_oom();
    ((tiff_options_report_fn)fn[ON_ERROR])(options, keep_report, c);
    ((tiff_options_report_fn)fn[ON_WARNING])(options, drop_report, c);
    snprintf(c->message, sizeof c->message, "it is corrupt");
    *out = ((tiff_open_fn)fn[OPEN])("image", "rm", c, tiff_read, tiff_write, tiff_seek, tiff_close,
                                    tiff_size, tiff_map, tiff_unmap, options);
    ((tiff_options_free_fn)fn[FREE])(options);
    return *out != NULL ? NULL : kelp_image_bad("TIFF", c->message);
}

static kelp_status *tiff_measure(kelp_encoded *image) {
    kelp_image_fn fn[TIFF_FUNCTIONS];
    cursor c = {.data = image->data, .size = image->size};
    uint32_t width = 0, height = 0;
    tiff *t = NULL;
    KELP_TRY(tiff_open(fn, &c, &t));
    bool found = ((tiff_field_fn)fn[FIELD])(t, TIFF_WIDTH, &width) == 1 &&
                 ((tiff_field_fn)fn[FIELD])(t, TIFF_HEIGHT, &height) == 1;
    ((tiff_end_fn)fn[CLOSE])(t);
    image->width = width;
    image->height = height;
    return found ? NULL : kelp_image_bad("TIFF", "it has no width or height");
}

static kelp_status *tiff_decode(const kelp_encoded *image, uint8_t *out) {
    kelp_image_fn fn[TIFF_FUNCTIONS];
    cursor c = {.data = image->data, .size = image->size};
    uint32_t *raster = NULL;
    tiff *t = NULL;
    KELP_TRY(kelp_image_alloc(image, 4, (void **)&raster));
    KELP_TRY(tiff_open(fn, &c, &t));
    bool done = ((tiff_read_fn)fn[READ])(t, (uint32_t)image->width, (uint32_t)image->height, raster,
                                         TIFF_FROM_TOP, 1) == 1;
    ((tiff_end_fn)fn[CLOSE])(t);
    for (int64_t i = 0; i < image->width * image->height && done; i++)
        for (int s = 0; s < 3; s++)
            out[3 * i + s] = (uint8_t)(raster[i] >> (8 * s));
    return done ? NULL : kelp_image_bad("TIFF", c.message);
}
const kelp_image_format kelp_image_tiff = {"TIFF", is_tiff, tiff_measure, tiff_decode};

/* ---- JPEG 2000 ---- */
typedef struct opj_component { /* opj_image_comp_t */
    uint32_t dx, dy, w, h, x0, y0, prec, bpp, sgnd, resno_decoded, factor;
    int32_t *data;
    uint16_t alpha;
} opj_component;
typedef struct opj_picture { /* opj_image_t */
    uint32_t x0, y0, x1, y1, numcomps;
    int color_space;
    opj_component *comps;
    uint8_t *icc_profile_buf;
    uint32_t icc_profile_len;
} opj_picture;
typedef void *(*opj_create_fn)(int format);
typedef void (*opj_defaults_fn)(void *parameters);
typedef int (*opj_setup_fn)(void *codec, void *parameters);
typedef void *(*opj_stream_create_fn)(size_t buffer, int is_input);
typedef size_t (*opj_take_fn)(void *to, size_t count, void *userp);
typedef int64_t (*opj_skip_fn)(int64_t count, void *userp);
typedef int (*opj_seek_fn)(int64_t at, void *userp);
typedef void (*opj_set_read_fn)(void *stream, opj_take_fn fn);
typedef void (*opj_set_skip_fn)(void *stream, opj_skip_fn fn);
typedef void (*opj_set_seek_fn)(void *stream, opj_seek_fn fn);
typedef void (*opj_set_user_fn)(void *stream, void *userp, void (*release)(void *userp));
typedef void (*opj_set_length_fn)(void *stream, uint64_t length);
typedef int (*opj_header_fn)(void *stream, void *codec, opj_picture **out);
typedef int (*opj_decode_fn)(void *codec, void *stream, opj_picture *picture);
typedef void (*opj_destroy_fn)(void *object);
enum {
    OPJ_CREATE,
    OPJ_DEFAULTS,
    OPJ_SETUP,
    OPJ_STREAM,
    OPJ_SET_READ,
    OPJ_SET_SKIP,
    OPJ_SET_SEEK,
    OPJ_SET_USER,
    OPJ_SET_LENGTH,
    OPJ_HEADER,
    OPJ_DECODE,
    OPJ_FREE_STREAM,
    OPJ_FREE_CODEC,
    OPJ_FREE_PICTURE,
    OPJ_FUNCTIONS
};
enum { OPJ_CODEC_J2K = 0, OPJ_CODEC_JP2 = 2, OPJ_YCC = 3 };

static const uint8_t j2k_magic[4] = {0xff, 0x4f, 0xff, 0x51};

static bool is_jpeg2000(const kelp_encoded *image) {
    static const uint8_t jp2[12] = {0, 0, 0, 12, 'j', 'P', ' ', ' ', 13, 10, 0x87, 10};
    return image->size > 12 && (memcmp(image->data, jp2, sizeof jp2) == 0 ||
                                memcmp(image->data, j2k_magic, sizeof j2k_magic) == 0);
}

static size_t opj_take(void *to, size_t count, void *userp) {
    size_t taken = take(userp, to, count);
    return taken > 0 ? taken : (size_t)-1;
}
static int64_t opj_skip(int64_t count, void *userp) {
    cursor *c = userp;
    KELP_ASSERT(c->at <= c->size);
    if (count < 0 || (uint64_t)count > c->size - c->at)
        count = (int64_t)(c->size - c->at);
    c->at += (size_t)count;
    return count;
}
static int opj_seek(int64_t at, void *userp) {
    cursor *c = userp;
    if (at < 0 || (uint64_t)at > c->size)
        return 0;
    c->at = (size_t)at;
    return 1;
}

typedef struct opj {
    kelp_image_fn fn[OPJ_FUNCTIONS];
    cursor c;
    void *codec, *stream;
    opj_picture *picture;
} opj;

static void opj_close(opj *o) {
    if (o->picture != NULL)
        ((opj_destroy_fn)o->fn[OPJ_FREE_PICTURE])(o->picture);
    if (o->stream != NULL)
        ((opj_destroy_fn)o->fn[OPJ_FREE_STREAM])(o->stream);
    if (o->codec != NULL)
        ((opj_destroy_fn)o->fn[OPJ_FREE_CODEC])(o->codec);
}

static kelp_status *opj_open(const kelp_encoded *image, opj *o) {
    static const char *const names[OPJ_FUNCTIONS] = {"opj_create_decompress",
                                                     "opj_set_default_decoder_parameters",
                                                     "opj_setup_decoder",
                                                     "opj_stream_create",
                                                     "opj_stream_set_read_function",
                                                     "opj_stream_set_skip_function",
                                                     "opj_stream_set_seek_function",
                                                     "opj_stream_set_user_data",
                                                     "opj_stream_set_user_data_length",
                                                     "opj_read_header",
                                                     "opj_decode",
                                                     "opj_stream_destroy",
                                                     "opj_destroy_codec",
                                                     "opj_image_destroy"};
    uint64_t parameters[4096]; /* opj_dparameters_t: 8 KiB in version 2.5; later ones may grow */
    memset(o, 0, sizeof *o);
    KELP_TRY(kelp_image_library(&kelp_lib_openjpeg, names, OPJ_FUNCTIONS, o->fn));
    o->c = (cursor){.data = image->data, .size = image->size};
    bool raw = memcmp(image->data, j2k_magic, sizeof j2k_magic) == 0;
    o->codec = ((opj_create_fn)o->fn[OPJ_CREATE])(raw ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    o->stream = ((opj_stream_create_fn)o->fn[OPJ_STREAM])(1 << 16, 1);
    bool done = o->codec != NULL && o->stream != NULL;
    if (done) {
        ((opj_set_read_fn)o->fn[OPJ_SET_READ])(o->stream, opj_take);
        ((opj_set_skip_fn)o->fn[OPJ_SET_SKIP])(o->stream, opj_skip);
        ((opj_set_seek_fn)o->fn[OPJ_SET_SEEK])(o->stream, opj_seek);
        ((opj_set_user_fn)o->fn[OPJ_SET_USER])(o->stream, &o->c, NULL);
        ((opj_set_length_fn)o->fn[OPJ_SET_LENGTH])(o->stream, image->size);
        ((opj_defaults_fn)o->fn[OPJ_DEFAULTS])(parameters);
        done = ((opj_setup_fn)o->fn[OPJ_SETUP])(o->codec, parameters) != 0 &&
               ((opj_header_fn)o->fn[OPJ_HEADER])(o->stream, o->codec, &o->picture) != 0 &&
               o->picture->x1 > o->picture->x0 && o->picture->y1 > o->picture->y0;
    }
    if (done)
        return NULL;
    opj_close(o);
    return kelp_image_bad("JPEG 2000", "its header is corrupt");
}

static kelp_status *jpeg2000_measure(kelp_encoded *image) {
    opj o;
    KELP_TRY(opj_open(image, &o));
    image->width = (int64_t)o.picture->x1 - o.picture->x0;
    image->height = (int64_t)o.picture->y1 - o.picture->y0;
    opj_close(&o);
    return NULL;
}

/* Returns a component of a pixel, scaled to 0 … 255. */
static int32_t component_at(const opj_component *c, int64_t x, int64_t y) {
    KELP_ASSERT(c->w > 0 && c->h > 0 && c->dx > 0 && c->dy > 0 && c->prec > 0 && c->prec <= 31);
    int64_t column = KELP_MIN(x / c->dx, (int64_t)c->w - 1);
    int64_t row = KELP_MIN(y / c->dy, (int64_t)c->h - 1);
    int64_t value = c->data[row * c->w + column];
    if (c->sgnd)
        value += (int64_t)1 << (c->prec - 1);
    value = c->prec > 8 ? value >> (c->prec - 8) : value * 255 / (((int64_t)1 << c->prec) - 1);
    return (int32_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static uint8_t byte_of(double value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5);
}

static void opj_pixel(const opj_picture *picture, int64_t x, int64_t y, uint8_t *rgb) {
    bool color = picture->numcomps >= 3;
    double v[3];
    for (int c = 0; c < 3; c++)
        v[c] = component_at(&picture->comps[color ? c : 0], x, y);
    if (color && picture->color_space == OPJ_YCC) {
        double luma = v[0], blue = v[1] - 128, red = v[2] - 128;
        v[0] = luma + 1.402 * red;
        v[1] = luma - 0.344136 * blue - 0.714136 * red;
        v[2] = luma + 1.772 * blue;
    }
    for (int c = 0; c < 3; c++)
        rgb[c] = byte_of(v[c]);
}

static kelp_status *jpeg2000_decode(const kelp_encoded *image, uint8_t *out) {
    opj o;
    KELP_TRY(opj_open(image, &o));
    const opj_picture *picture = o.picture;
    bool done = ((opj_decode_fn)o.fn[OPJ_DECODE])(o.codec, o.stream, o.picture) != 0 &&
                picture->numcomps > 0 && (int64_t)picture->x1 - picture->x0 == image->width &&
                (int64_t)picture->y1 - picture->y0 == image->height;
    for (uint32_t i = 0; i < 3 && done; i++) {
        const opj_component *c = &picture->comps[picture->numcomps >= 3 ? i : 0];
        done = c->data != NULL && c->w > 0 && c->h > 0 && c->dx > 0 && c->dy > 0 && c->prec > 0 &&
               c->prec <= 31;
    }
    for (int64_t i = 0; i < image->width * image->height && done; i++)
        opj_pixel(picture, i % image->width, i / image->width, out + 3 * i);
    opj_close(&o);
    return done ? NULL : kelp_image_bad("JPEG 2000", "it is corrupt or truncated");
}
const kelp_image_format kelp_image_jpeg2000 = {"JPEG 2000", is_jpeg2000, jpeg2000_measure,
                                               jpeg2000_decode};
