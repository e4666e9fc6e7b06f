/* SPDX-License-Identifier: Apache-2.0 */
/* Models of the provider `kernels`, and their calls. */
#ifndef KELP_PLUGINS_MODEL_H_
#define KELP_PLUGINS_MODEL_H_

#include "base/str.h"
#include "plugins/run.h"
#include "runtime/runtime.h"

#include <kelp/compute.h>

typedef struct kelp_kernels_scalar {
    const char *name;
    kelp_str value;
} kelp_kernels_scalar;

/* One inference: a session and the memory of its outputs. */
typedef struct kelp_kernels_call kelp_kernels_call;

typedef struct kelp_kernels_model {
    kelp_compute_model base;
    kelp_runtime *runtime;
    kelp_kernel_registry *registry;
    const kelp_kernel *kernel;
    kelp_arena arena; /* text, names, infos */
    const char *text;
    kelp_kernels_scalar scalars[KELP_SIGNATURE_PARAMS];
    size_t scalar_count;
    kelp_io_info *inputs, *outputs;
    kelp_compute_metadata metadata;
    kelp_kernels_call *own; /* for calls that wait */
    /* submissions: the mutex is taken after that of a session */
    pthread_mutex_t mutex;
    kelp_kernels_call *first, *last; /* in flight, in order of submission */
    kelp_kernels_call *spare;
} kelp_kernels_model;

/* Sets the value of a scalar: a kelp_kernel_run.scalar, but for a model. */
kelp_status *kelp_kernels_scalar_of(const kelp_kernels_model *model, const kelp_signature_param *p,
                                    kelp_kernel_arg *out) KELP_MUST_USE;

/* Creates a call. The caller destroys it; NULL is allowed. */
kelp_status *kelp_kernels_call_create(kelp_kernels_model *model,
                                      kelp_kernels_call **out) KELP_MUST_USE;
void kelp_kernels_call_destroy(kelp_kernels_call *call);
/* Destroys a list of calls. */
void kelp_kernels_call_destroy_all(kelp_kernels_call *first);

/* The functions of the model's table. Only asynchronous kernels are submitted. */
kelp_status *kelp_kernels_infer_one(kelp_compute_model *base, kelp_infer_item *item) KELP_MUST_USE;
kelp_status *kelp_kernels_infer_shapes(kelp_compute_model *base,
                                       kelp_infer_item *item) KELP_MUST_USE;
kelp_status *kelp_kernels_submit(kelp_compute_model *base, kelp_infer_item *item,
                                 void (*done)(void *userp, kelp_status *take_status),
                                 void *userp) KELP_MUST_USE;

#endif
