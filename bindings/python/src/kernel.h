/* SPDX-License-Identifier: Apache-2.0 */
/* The types of kernel libraries, and calls of kernels. Every function is called with the GIL held,
 * and sets a Python exception if it returns NULL or -1. */
#ifndef KPY_KERNEL_H_
#define KPY_KERNEL_H_

#include "kpy.h"

#include <kelp/kernel.h>

#define KPY_KERNEL_ARGS 16

typedef struct kpy_registry {
    PyObject_HEAD kelp_kernel_registry *registry;
    kelp_kernel_session **pool; /* unused sessions on the CPU */
    size_t pool_count, pool_capacity;
} kpy_registry;

typedef struct kpy_context {
    PyObject_HEAD kpy_registry *owner;
    kelp_kernel_session *session;
    bool busy;
} kpy_context;

typedef struct kpy_library {
    PyObject_HEAD kpy_registry *owner;
    kelp_kernel_library *library;
} kpy_library;

/* A parameter of a kernel with a signature. */
typedef struct kpy_param {
    PyObject *name;
    uint8_t kind; /* a kelp_arg_kind */
    bool is_bool;
    bool optional; /* the kernel accepts that it is omitted */
    bool is_out;   /* allocated if it is omitted */
    int implied;   /* for an integer that input `implied` determines; otherwise -1 */
    int32_t axis;  /* of input `implied`, counted from the last, which is -1 */
} kpy_param;

typedef struct kpy_kernel {
    PyObject_HEAD vectorcallfunc call;
    kpy_registry *owner;
    kpy_library *from;
    const kelp_kernel *kernel;
    int count; /* parameters; -1 without a signature */
    kpy_param params[KPY_KERNEL_ARGS];
    /* The numpy type of the last array per argument, and its DLPack type. */
    PyObject *descrs[KPY_KERNEL_ARGS];
    DLDataType dtypes[KPY_KERNEL_ARGS];
} kpy_kernel;

static inline bool kpy_may_be_omitted(const kpy_param *param) {
    return param->is_out || param->optional || param->implied >= 0;
}

extern PyTypeObject *kpy_context_type;

/* The arguments of one call. It is not initialized as a whole, because it is large. */
typedef struct kpy_call {
    DLDevice device; /* of the session */
    void *stream;
    kelp_kernel_arg args[KPY_KERNEL_ARGS];
    int32_t count;
    DLTensor tensors[KPY_KERNEL_ARGS];
    kpy_view views[KPY_KERNEL_ARGS];
    int64_t strides[KPY_KERNEL_ARGS][KELP_MAX_RANK];
    size_t view_count;
    PyObject *made[KPY_KERNEL_ARGS]; /* outputs that were omitted */
    size_t made_count;
} kpy_call;

/* Converts the arguments and allocates outputs that are omitted. Objects are borrowed: the caller
 * keeps them until the kernel is done. On failure, the call is deinitialized. */
int kpy_call_init(kpy_call *call, kpy_kernel *kernel, kelp_kernel_session *session,
                  PyObject *const *args, Py_ssize_t count, PyObject *words);
/* Returns the outputs that were allocated: None, an array, or a tuple of arrays. */
PyObject *kpy_call_result(kpy_call *call);
void kpy_call_deinit(kpy_call *call);

/* Returns the session of a call: that of the context in the first argument (`*inout_args` is
 * advanced), or one of the pool (`*out_context` is NULL). */
int kpy_session_take(kpy_kernel *kernel, PyObject *const **inout_args, Py_ssize_t *inout_count,
                     kpy_context **out_context, kelp_kernel_session **out);
void kpy_session_give(kpy_kernel *kernel, kpy_context *context, kelp_kernel_session *session);

/* Implements calls of kernels. */
PyObject *kpy_kernel_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *words);

/* ---- calls in flight (kernel_submit.c) ---- */
/* Starts an asynchronous kernel: start(future, arguments, keywords). */
PyObject *kpy_kernel_start(PyObject *object, PyObject *args);
/* Waits for a call to end, without the GIL, and returns it. */
PyObject *kpy_kernel_next_completed(PyObject *self, PyObject *args);
int kpy_kernel_submit_ready(void);

#endif
