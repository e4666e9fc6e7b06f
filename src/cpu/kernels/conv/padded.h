/* SPDX-License-Identifier: Apache-2.0 */
/* Images with their padding around them, a strip of output rows at a time, so that a window slides
 * without conditions. */
#ifndef KELP_CPU_KERNELS_CONV_PADDED_H_
#define KELP_CPU_KERNELS_CONV_PADDED_H_

#include "cpu/kernels/conv/conv_shape.h"
#include "cpu/kernels/simd/simd.h"

#define KELP_FRAME_SLACK 64 /* floats behind a frame that vectors read */

/* Whether the window moves over two axes at most. */
bool kelp_frame_fits(const kelp_window *w);
/* Output rows of a strip: some 32 KiB of input. */
int64_t kelp_frame_strip(const kelp_window *w);
/* Floats of a strip's frame, slack included; -1 when too large. */
int64_t kelp_frame_floats(const kelp_window *w, int64_t rows);
/* Lays out what output rows [first, first + rows) of the plane at x read, `border` around it, and
 * describes the window over it; op, y, w are left to the caller. */
void kelp_frame_fill(const kelp_window *w, const kelp_simd *simd, const float *x, int64_t first,
                     int64_t rows, float border, float *frame, kelp_slide *out);
/* The same without a frame, for all rows of plane `plane` of those at x; false where that would
 * read beyond the planes, or the window is none that kelp_slide_takes_bare allows. */
bool kelp_frame_bare(const kelp_window *w, const float *x, int64_t plane, int64_t planes,
                     kelp_slide *out);
/* Whether weighted windows of 3 x 3 or 5 x 5 keep the width: then no frame is needed, and
 * kelp_frame_image describes the window over rows [first, first + rows) of the plane at x. */
bool kelp_frame_is_same(const kelp_window *w, const kelp_simd *simd);
void kelp_frame_image(const kelp_window *w, const float *x, int64_t first, int64_t rows,
                      kelp_slide *out);

#endif
