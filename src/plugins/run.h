/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of kernels on tensors, for operators and models. The signature defines the output shapes. */
#ifndef KELP_PLUGINS_RUN_H_
#define KELP_PLUGINS_RUN_H_

#include "plugins/internal.h"

typedef struct kelp_kernel_run {
    const kelp_kernel *kernel; /* has a signature */
    kelp_kernel_session *session;
    const kelp_tensor *const *inputs; /* of in and inout parameters, in order; compact */
    size_t input_count;
    kelp_tensor *outputs; /* of out and inout parameters, in order; written by the run */
    size_t output_count;  /* the trailing outputs may be omitted */
    /* Sets the value of a scalar. If the scalar has no value, and a default or the name of a
     * dimension (param->symbol >= 0), sets out->kind to 0. */
    kelp_status *(*scalar)(void *userp, const kelp_signature_param *param, kelp_kernel_arg *out);
    /* Returns memory for output `index`, of at least one byte. The run fails with its error. */
    kelp_status *(*memory)(void *userp, size_t index, size_t size_bytes, void **out);
    void *userp;
} kelp_kernel_run;
/* The arguments of a kernel. They must stay in memory until the kernel is done. */
typedef struct kelp_kernel_bound {
    const kelp_kernel_run *run;
    kelp_kernel_arg args[KELP_SIGNATURE_PARAMS];
    DLTensor tensors[KELP_SIGNATURE_PARAMS];
    kelp_tensor copies[KELP_SIGNATURE_PARAMS]; /* own the shapes of `tensors` */
    kelp_signature_binding binding;
} kelp_kernel_bound;

/* Starts the kernel. The session's on_done is called when it is done, unless this fails. */
kelp_status *kelp_kernel_submit_on_tensors(const kelp_kernel_run *run,
                                           kelp_kernel_bound *bound) KELP_MUST_USE;
/* Runs the kernel. */
kelp_status *kelp_kernel_run_on_tensors(const kelp_kernel_run *run) KELP_MUST_USE;
/* Infers the types and shapes of all outputs, without data. Does not call `memory`. */
kelp_status *kelp_kernel_shapes_on_tensors(const kelp_kernel_run *run) KELP_MUST_USE;

/* Returns true if the kernel has a signature and at least one output, and the shapes and types of
 * all outputs follow from the inputs. */
bool kelp_kernel_shapes_follow(const kelp_kernel *kernel);

#endif
