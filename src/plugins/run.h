/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel run on tensors: outputs get their shapes from the signature. For operators and models.
 */
#ifndef KELP_PLUGINS_RUN_H_
#define KELP_PLUGINS_RUN_H_

#include "plugins/internal.h"

typedef struct kelp_kernel_run {
    const kelp_kernel *kernel; /* has a signature */
    kelp_kernel_session *session;
    const kelp_tensor *const *inputs; /* those that are read, in the signature's order; compact */
    size_t input_count;
    kelp_tensor *outputs; /* those that are written; described here */
    size_t output_count;  /* fewer than there are: nobody wants the rest */
    /* Sets the value; out->kind 0 says that nobody gives it, which is fine for an integer that
     * stands for an extent (param->symbol >= 0). */
    kelp_status *(*scalar)(void *userp, const kelp_signature_param *param, kelp_kernel_arg *out);
    /* Memory for output `index`, of at least one byte; its error is the call's. */
    kelp_status *(*memory)(void *userp, size_t index, size_t size_bytes, void **out);
    void *userp;
} kelp_kernel_run;
kelp_status *kelp_kernel_run_on_tensors(const kelp_kernel_run *run) KELP_MUST_USE;
/* The types and shapes that all its outputs would have, without data; `memory` is not asked. */
kelp_status *kelp_kernel_shapes_on_tensors(const kelp_kernel_run *run) KELP_MUST_USE;

/* true when the kernel has a signature, writes something, and the shape and type of all that it
 * writes follow from what it reads. */
bool kelp_kernel_shapes_follow(const kelp_kernel *kernel);

#endif
