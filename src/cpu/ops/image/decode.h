/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoders of image formats, for ImageDecoder. A format that needs a library loads it for the first
 * image of that format and never unloads it. Thread-safe.
 */
#ifndef KELP_CPU_OPS_IMAGE_DECODE_H_
#define KELP_CPU_OPS_IMAGE_DECODE_H_

#include "cpu/ops/kernel.h"
#include "cpu/ops/optional.h"

/* The largest number of pixels of an image. */
#define KELP_IMAGE_MAX_PIXELS ((int64_t)1 << 30)

/* An image file in memory. */
typedef struct kelp_encoded {
    const uint8_t *data;
    size_t size;
    const kelp_op_env *env; /* provides the memory of the run */
    int64_t width, height;  /* set by `measure` */
} kelp_encoded;

/* The functions of one image format. */
typedef struct kelp_image_format {
    const char *name;
    /* Returns true if the data begins with the signature of the format. */
    bool (*matches)(const kelp_encoded *image);
    /* Reads width and height from the header; the caller checks them. */
    kelp_status *(*measure)(kelp_encoded *image);
    /* Writes [height, width, 3] bytes in the order red, green, blue, the top row first. */
    kelp_status *(*decode)(const kelp_encoded *image, uint8_t *out);
} kelp_image_format;

extern const kelp_image_format kelp_image_bmp, kelp_image_pnm, kelp_image_jpeg, kelp_image_png,
    kelp_image_webp, kelp_image_tiff, kelp_image_jpeg2000;

/* Returns INVALID_ARGUMENT for an image that is corrupt or of an unsupported kind. */
kelp_status *kelp_image_bad(const char *format, const char *why) KELP_MUST_USE;
/* Allocates memory of the run for all pixels of a measured image. Returns RESOURCE_EXHAUSTED if
 * there is not enough. */
kelp_status *kelp_image_alloc(const kelp_encoded *image, size_t bytes_per_pixel,
                              void **out) KELP_MUST_USE;

/* Reads the attribute 'color_space' of DecodeImage and EncodeImage. */
kelp_status *kelp_image_blue_first(const kelp_node *node, bool *out) KELP_MUST_USE;

/* A function of a library, to be cast to its type. */
typedef void (*kelp_image_fn)(void);
/* Looks up `count` functions. Returns NOT_FOUND or UNAVAILABLE, with the name of the Debian
 * package, if the library or one of them is missing. */
kelp_status *kelp_image_library(const kelp_optional_library *library, const char *const *names,
                                size_t count, kelp_image_fn *out) KELP_MUST_USE;

#endif
