/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of image formats, for ImageDecoder. Formats that need a library find it when an image of
 * theirs comes, by its name of Debian; it stays loaded. Any thread.
 */
#ifndef KELP_CPU_OPS_IMAGE_DECODE_H_
#define KELP_CPU_OPS_IMAGE_DECODE_H_

#include "base/dl.h"
#include "cpu/ops/kernel.h"

typedef struct kelp_encoded {
    const uint8_t *data;
    size_t size;
    const kelp_op_env *env; /* memory of the run */
    int64_t width, height;  /* what `measure` found */
} kelp_encoded;

typedef struct kelp_image_format {
    const char *name;
    bool (*is)(const kelp_encoded *image);
    /* Fills width and height from the header. */
    kelp_status *(*measure)(kelp_encoded *image);
    /* Rows of red, green, blue, from the top, without gaps. */
    kelp_status *(*decode)(const kelp_encoded *image, uint8_t *out);
} kelp_image_format;

extern const kelp_image_format kelp_image_bmp, kelp_image_pnm, kelp_image_jpeg, kelp_image_png,
    kelp_image_webp, kelp_image_tiff, kelp_image_jpeg2000;

/* INVALID_ARGUMENT: the image is broken, or of a kind that is not read. */
kelp_status *kelp_image_bad(const char *format, const char *why) KELP_MUST_USE;
/* Memory of the run; RESOURCE_EXHAUSTED when there is none. */
kelp_status *kelp_image_alloc(const kelp_encoded *image, size_t per_pixel,
                              void **out) KELP_MUST_USE;

/* A function of a library. */
typedef void (*kelp_image_fn)(void);
/* Finds `count` functions; NOT_FOUND or UNAVAILABLE, with the name of Debian's package, when the
 * library or one of them is not there. */
kelp_status *kelp_image_library(const char *library, const char *package, const char *format,
                                const char *const *names, size_t count,
                                kelp_image_fn *out) KELP_MUST_USE;

#endif
