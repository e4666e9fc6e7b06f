/* SPDX-License-Identifier: Apache-2.0 */
/* Padded tiles of images: the input of a strip of output rows with its padding, so that windows
 * slide over it without conditions. */
#ifndef KELP_CPU_KERNELS_SLIDING_PADDED_H_
#define KELP_CPU_KERNELS_SLIDING_PADDED_H_

#include "cpu/kernels/sliding/window.h"
#include "cpu/kernels/simd/simd.h"

#define KELP_PADDED_SLACK 64 /* floats after a tile that vectors read */

/* Returns true if the window moves over two axes at most. */
bool kelp_padded_fits(const kelp_conv_window *w);
/* Returns the output rows of a strip: about 32 KiB of input. */
int64_t kelp_padded_strip(const kelp_conv_window *w);
/* Returns the floats of a strip's tile, slack included; -1 if too large. */
int64_t kelp_padded_floats(const kelp_conv_window *w, int64_t rows);
/* Fills a tile with the input of output rows [first, first + rows) of the plane at x, with
 * `border` as padding, and describes the window over it. The caller sets op, y and w. */
void kelp_padded_fill(const kelp_conv_window *w, const kelp_simd *simd, const float *x,
                      int64_t first, int64_t rows, float border, float *tile, kelp_slide *out);
/* Describes the window over the image itself, for all rows of plane `plane`. Returns false if
 * that would read outside the planes, or if kelp_slide_takes_bare rejects the window. */
bool kelp_padded_bare(const kelp_conv_window *w, const float *x, int64_t plane, int64_t planes,
                      kelp_slide *out);
/* Returns true for weighted windows of 3 x 3 or 5 x 5 that keep the width. They need no tile:
 * kelp_padded_image describes the window over output rows [first, first + rows) of the plane at
 * x. */
bool kelp_padded_is_same(const kelp_conv_window *w, const kelp_simd *simd);
void kelp_padded_image(const kelp_conv_window *w, const float *x, int64_t first, int64_t rows,
                       kelp_slide *out);

#endif
