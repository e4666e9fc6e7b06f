/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of sliding windows. */
#include "cpu/kernels/sliding/window.h"

#include "base/checked.h"

void kelp_window_make_row(kelp_conv_window *w) {
    int64_t *const fields[] = {w->in,       w->out,    w->kernel, w->stride,
                               w->dilation, w->before, w->after};
    bool row = w->in[1] == 1 && w->out[1] == 1 && w->kernel[1] == 1;
    bool column = w->in[2] == 1 && w->out[2] == 1 && w->kernel[2] == 1;
    if (row || !column)
        return;
    for (size_t i = 0; i < KELP_COUNT(fields); i++) {
        int64_t size = fields[i][1];
        fields[i][1] = fields[i][2];
        fields[i][2] = size;
    }
}
