/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of a model from image files: decoded and resized by Kelp's operators ImageDecoder and
 * Resize, then normalized. */
#ifndef KELP_CLI_IMAGE_H_
#define KELP_CLI_IMAGE_H_

#include "cli/args.h"
#include "cli/npy.h"

#include <kelp/engine.h>

#include <stddef.h>

/* Options that commands share. NULL and 0 are the defaults. */
typedef struct kelp_image_options {
    const char *size;   /* "HxW" */
    const char *fit;    /* "stretch" or "crop" */
    const char *layout; /* "nchw" or "nhwc" */
    const char *color;  /* "rgb", "bgr" or "gray" */
    const char *scale;  /* number, or "A/B" */
    const char *mean, *std;
} kelp_image_options;

/* The rows of a kelp_image_options at offset `at`. */
#define KELP_CLI_IMAGE_TEXT(at, option, member, words, allowed, text)                              \
    .name = (option), .kind = KELP_OPTION_TEXT,                                                    \
    .offset = (at) + offsetof(kelp_image_options, member), .value = (words), .choices = (allowed), \
    .help = (text)
#define KELP_CLI_IMAGE_OPTIONS(at)                                                            \
    {.group = "Images",                                                                       \
     KELP_CLI_IMAGE_TEXT(at, "image-size", size, "HxW", NULL,                                 \
                         "height and width of images (those of the input, or of the file)")}, \
        {KELP_CLI_IMAGE_TEXT(at, "image-fit", fit, "stretch|crop", "stretch|crop",            \
                             "resize to the size, or resize the shorter side and crop the "   \
                             "center (stretch)")},                                            \
        {KELP_CLI_IMAGE_TEXT(at, "image-layout", layout, "nchw|nhwc", "nchw|nhwc",            \
                             "order of the dimensions (that of the input's shape)")},         \
        {KELP_CLI_IMAGE_TEXT(at, "image-color", color, "rgb|bgr|gray", "rgb|bgr|gray",        \
                             "order of the channels (rgb, or gray for one channel)")},        \
        {KELP_CLI_IMAGE_TEXT(at, "image-scale", scale, "F", NULL,                             \
                             "factor of pixels, such as 1/255 (1/255 for floating-point "     \
                             "inputs, else 1)")},                                             \
        {KELP_CLI_IMAGE_TEXT(at, "image-mean", mean, "V,V,V", NULL,                           \
                             "mean of each channel: an element is (pixel * scale - mean) / "  \
                             "std (0)")},                                                     \
    {                                                                                         \
        KELP_CLI_IMAGE_TEXT(at, "image-std", std, "V,V,V", NULL,                              \
                            "standard deviation of each channel (1)")                         \
    }

/* Returns true for the signature of a format that ImageDecoder reads: PNG, JPEG, BMP, WebP, TIFF,
 * JPEG 2000, PNM. */
bool kelp_image_is(const void *data, size_t size_bytes);
/* Decodes an image and converts it to the input `info`. An input of uint8 and rank 1 receives the
 * bytes of the file. INVALID_ARGUMENT quotes the option or `label`. */
kelp_status *kelp_image_parse(const char *label, const void *data, size_t size_bytes,
                              const kelp_io_info *info, const kelp_image_options *options,
                              kelp_array *out) KELP_MUST_USE;

#endif
