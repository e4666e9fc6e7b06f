/* SPDX-License-Identifier: Apache-2.0 */
/* Padded tiles of images: the input of a strip of output rows with its padding, so that windows
 * slide over it without conditions. */
#ifndef KELP_CPU_KERNELS_SLIDING_PADDED_H_
#define KELP_CPU_KERNELS_SLIDING_PADDED_H_

#include "cpu/kernels/sliding/sliding_kernels.h"
#include "cpu/kernels/sliding/window.h"

#define KELP_PADDED_SLACK 64 /* floats after a tile that vectors read */

/* Returns true if the window moves over at most two axes. */
bool kelp_padded_fits(const kelp_conv_window *w);
/* Returns the output rows of a strip: about 32 KiB of input. */
int64_t kelp_padded_strip(const kelp_conv_window *w);
/* Returns the floats of a strip's tile, slack included; -1 if too large. */
int64_t kelp_padded_floats(const kelp_conv_window *w, int64_t rows);
/* Fills a tile with the input of output rows [first, first + rows) of the plane at x, with
 * `border` as padding, and sets the geometry of the windows over it. */
void kelp_padded_fill(const kelp_conv_window *w, const float *x, int64_t first, int64_t rows,
                      float border, float *tile, kelp_sliding_geometry *out);
/* Describes the windows of a pool over the image itself, for all rows of plane `plane` of the
 * `planes` at x. Returns false if that would read outside the planes, or if
 * kelp_sliding_takes_unpadded rejects the window. The caller sets y. */
bool kelp_padded_pool_image(const kelp_conv_window *w, const float *x, int64_t plane,
                            int64_t planes, kelp_sliding_pool *out);
/* Returns true for windows of 3 x 3 or 5 x 5 that keep the width, which kelp_sliding_image computes
 * without a tile. */
bool kelp_padded_keeps_width(const kelp_conv_window *w);
/* Describes such windows over output rows [first, first + rows) of the plane at x. The caller sets
 * w and y. */
void kelp_padded_image(const kelp_conv_window *w, const float *x, int64_t first, int64_t rows,
                       kelp_sliding_weighted *out);

#endif
