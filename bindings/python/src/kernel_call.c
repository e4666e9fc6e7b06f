/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernels: arrays and DLTensors are described on the stack and used in place, checked
 * against the signature, and the kernel runs without the GIL, in a context from a pool or in the
 * one passed first. */
#include "kernel.h"

#include <stdio.h>
#include <string.h>

static int bad_argument(const kpy_kernel *kernel, Py_ssize_t i, const char *why) {
    kpy_fail(KELP_INVALID_ARGUMENT, "argument %zd of kernel '%s' %s", i,
             kelp_kernel_name(kernel->kernel), why);
    return -1;
}

/* ---- arguments by position and by name ---- */
/* Returns the index of a parameter, or -1 with TypeError. */
static int find_param(const kpy_kernel *kernel, PyObject *name) {
    for (int i = 0; i < kernel->count; i++)
        if (kernel->params[i].name == name || PyUnicode_Compare(kernel->params[i].name, name) == 0)
            return i;
    PyErr_Format(PyExc_TypeError, "kernel '%s' has no parameter '%U': expected %s",
                 kelp_kernel_name(kernel->kernel), name, kelp_kernel_signature(kernel->kernel));
    return -1;
}

static int give(const kpy_kernel *kernel, PyObject **objects, int i, PyObject *object) {
    if (objects[i] != NULL) {
        PyErr_Format(PyExc_TypeError, "kernel '%s' got two values for parameter '%U'",
                     kelp_kernel_name(kernel->kernel), kernel->params[i].name);
        return -1;
    }
    objects[i] = object;
    return 0;
}

/* Arguments by position are all parameters, if all are given, or those that may not be omitted. */
static int arrange_positions(const kpy_kernel *kernel, PyObject *const *args, Py_ssize_t count,
                             bool all, PyObject **objects) {
    Py_ssize_t next = 0;
    for (int i = 0; i < kernel->count && next < count; i++)
        if ((all || !kpy_may_be_omitted(&kernel->params[i])) &&
            give(kernel, objects, i, args[next++]))
            return -1;
    if (next == count)
        return 0;
    PyErr_Format(PyExc_TypeError,
                 "kernel '%s' has %d parameters, and %zd arguments are given by position: pass all "
                 "parameters (%s), or those that are neither outputs nor sizes of inputs",
                 kelp_kernel_name(kernel->kernel), kernel->count, count,
                 kelp_kernel_signature(kernel->kernel));
    return -1;
}

/* Sets `objects` by parameter; NULL for those that are omitted. */
static int arrange(const kpy_kernel *kernel, PyObject *const *args, Py_ssize_t count,
                   PyObject *words, PyObject **objects) {
    Py_ssize_t word_count = words != NULL ? PyTuple_Size(words) : 0;
    bool all = count + word_count == kernel->count;
    memset(objects, 0, KPY_KERNEL_ARGS * sizeof *objects);
    for (Py_ssize_t k = 0; k < word_count; k++) {
        int i = find_param(kernel, PyTuple_GetItem(words, k));
        if (i < 0 || give(kernel, objects, i, args[count + k]))
            return -1;
        if (kernel->params[i].is_out)
            all = false;
        if (args[count + k] == Py_None && kpy_may_be_omitted(&kernel->params[i]))
            objects[i] = NULL; /* the default of inspect.signature */
    }
    if (arrange_positions(kernel, args, count, all, objects))
        return -1;
    for (int i = 0; i < kernel->count; i++) {
        if (objects[i] != NULL || kpy_may_be_omitted(&kernel->params[i]))
            continue;
        PyErr_Format(PyExc_TypeError, "kernel '%s' has no argument for parameter '%U': expected %s",
                     kelp_kernel_name(kernel->kernel), kernel->params[i].name,
                     kelp_kernel_signature(kernel->kernel));
        return -1;
    }
    return 0;
}

/* ---- conversion ---- */
static int type_at(kpy_kernel *kernel, Py_ssize_t i, PyObject *descr) {
    DLTensor dl;
    int64_t one = 1;
    kelp_tensor tensor;
    kelp_dtype dtype = kpy_numpy_dtype_of(descr);
    if (dtype == KELP_DTYPE_INVALID)
        return -1;
    kelp_status *status = kelp_tensor_init(&tensor, dtype, 1, &one, NULL);
    if (status == NULL)
        status = kelp_tensor_to_dl(&tensor, &dl);
    if (status != NULL)
        return kpy_raise(status), -1;
    if (kelp_dtype_bits(dtype) < 8)
        return bad_argument(kernel, i, "has packed elements, which numpy does not support");
    kernel->dtypes[i] = dl.dtype;
    kpy_replace(&kernel->descrs[i], Py_NewRef(descr));
    return 0;
}

static int set_strides(kpy_kernel *kernel, kpy_call *call, Py_ssize_t i, const kpy_array *array) {
    Py_ssize_t size = kernel->dtypes[i].bits / 8;
    if (kernel->count < 0)
        return bad_argument(kernel, i,
                            "is not contiguous, and the kernel has no signature: make it "
                            "contiguous, or pass a DLTensor");
    if (array->nd > KELP_MAX_RANK)
        return bad_argument(kernel, i, "has too many dimensions");
    for (int d = 0; d < array->nd; d++) {
        if (array->strides[d] % size != 0)
            return bad_argument(kernel, i,
                                "has a stride that is not a multiple of the element size");
        call->strides[i][d] = array->strides[d] / size;
    }
    call->tensors[i].strides = call->strides[i];
    return 0;
}

/* A kernel without a signature may write to any argument. */
static int check_writable(const kpy_kernel *kernel, Py_ssize_t i, bool read_only) {
    return !read_only || kernel->count >= 0
               ? 0
               : bad_argument(kernel, i,
                              "is read-only, and the kernel has no signature that tells whether "
                              "it writes to it: if it only reads, pass DLTensor(array, "
                              "writable=False)");
}

static int check_device(const kpy_kernel *kernel, const kpy_call *call, Py_ssize_t i,
                        DLDevice found) {
    char has[KPY_DEVICE_NAME], wants[KPY_DEVICE_NAME];
    if (found.device_type == call->device.device_type && found.device_id == call->device.device_id)
        return 0;
    kpy_device_name(found, has);
    kpy_device_name(call->device, wants);
    kpy_fail(KELP_INVALID_ARGUMENT,
             "argument %zd of kernel '%s' is on device %s, and the call is for device %s: pass a "
             "context for its device first (Runtime.get_context(device=\"%s\"))",
             i, kelp_kernel_name(kernel->kernel), has, wants, has);
    return -1;
}

static int set_array(kpy_kernel *kernel, kpy_call *call, Py_ssize_t i, const kpy_array *array) {
    DLTensor *dl = &call->tensors[i];
    bool read_only = !(array->flags & KPY_ARRAY_WRITEABLE);
    if (kernel->descrs[i] != array->descr && type_at(kernel, i, array->descr))
        return -1;
    *dl = (DLTensor){.data = array->data,
                     .device = {kDLCPU, 0},
                     .ndim = array->nd,
                     .dtype = kernel->dtypes[i],
                     .shape = (int64_t *)array->shape};
    if (call->device.device_type != kDLCPU && check_device(kernel, call, i, dl->device))
        return -1;
    if (read_only && check_writable(kernel, i, read_only))
        return -1;
    if (!(array->flags & KPY_ARRAY_C_CONTIGUOUS) && set_strides(kernel, call, i, array))
        return -1;
    call->args[i] = (kelp_kernel_arg){
        .kind = KELP_ARG_TENSOR, .flags = read_only ? KELP_ARG_READ_ONLY : 0, .as.tensor = dl};
    return 0;
}

static int set_dltensor(kpy_kernel *kernel, kpy_call *call, Py_ssize_t i, kpy_dltensor *tensor) {
    if (check_device(kernel, call, i, tensor->dl.device) ||
        check_writable(kernel, i, tensor->read_only && !tensor->declared_read_only))
        return -1;
    call->args[i] = (kelp_kernel_arg){.kind = KELP_ARG_TENSOR,
                                      .flags = tensor->read_only ? KELP_ARG_READ_ONLY : 0,
                                      .as.tensor = &tensor->dl};
    return 0;
}

static int set_number(kpy_kernel *kernel, kpy_call *call, Py_ssize_t i, PyObject *object) {
    kelp_kernel_arg *arg = &call->args[i];
    uint8_t kind = kernel->count >= 0 ? kernel->params[i].kind : 0;
    arg->flags = 0;
    if (kind == KELP_ARG_INT && kernel->params[i].is_bool && kpy_is_numpy_bool(object)) {
        arg->kind = KELP_ARG_INT;
        arg->as.i = PyObject_IsTrue(object);
    } else if (PyIndex_Check(object) && kind != KELP_ARG_FLOAT) {
        PyObject *number = PyNumber_Index(object);
        arg->kind = KELP_ARG_INT;
        arg->as.i = number ? PyLong_AsLongLong(number) : 0;
        Py_XDECREF(number);
    } else {
        arg->kind = KELP_ARG_FLOAT;
        arg->as.f = PyFloat_AsDouble(object);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int set_string(kpy_kernel *kernel, kpy_call *call, Py_ssize_t i, PyObject *object) {
    Py_ssize_t length = 0;
    const char *text = PyUnicode_AsUTF8AndSize(object, &length);
    if (text == NULL)
        return -1;
    if ((size_t)length != strlen(text)) {
        PyErr_Format(PyExc_ValueError, "argument %zd of kernel '%s' contains a NUL character", i,
                     kelp_kernel_name(kernel->kernel));
        return -1;
    }
    call->args[i] = (kelp_kernel_arg){.kind = KELP_ARG_STRING, .as.s = text};
    return 0;
}

/* Objects with __dlpack__, on the device of the session. */
static int set_dlpack(kpy_kernel *kernel, kpy_call *call, Py_ssize_t i, PyObject *object) {
    DLDevice device;
    int known = kpy_dlpack_device(object, &device);
    if (known < 0 || (known > 0 && check_device(kernel, call, i, device)))
        return -1;
    PyObject *tensor = kpy_dltensor_import(object, call->device, call->stream);
    if (tensor == NULL)
        return -1;
    call->views[call->view_count++] = (kpy_view){.owner = tensor};
    return set_dltensor(kernel, call, i, (kpy_dltensor *)tensor);
}

/* Objects with the buffer protocol. */
static int set_buffer(kpy_kernel *kernel, kpy_call *call, Py_ssize_t i, PyObject *object) {
    char what[64];
    snprintf(what, sizeof what, "argument %zd", i);
    kpy_view *view = &call->views[call->view_count];
    if (kpy_view_strided(view, object, false, what))
        return -1;
    call->view_count++;
    kelp_status *status = kelp_tensor_to_dl(&view->tensor, &call->tensors[i]);
    if (status != NULL)
        return kpy_raise(status), -1;
    bool read_only = (view->tensor.flags & KELP_TENSOR_READ_ONLY) != 0;
    call->args[i] = (kelp_kernel_arg){.kind = KELP_ARG_TENSOR,
                                      .flags = read_only ? KELP_ARG_READ_ONLY : 0,
                                      .as.tensor = &call->tensors[i]};
    return check_device(kernel, call, i, call->tensors[i].device) ||
                   check_writable(kernel, i, read_only)
               ? -1
               : 0;
}

static int set_other(kpy_kernel *kernel, kpy_call *call, Py_ssize_t i, PyObject *object) {
    PyObject *dlpack = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack__");
    if (dlpack != NULL) {
        Py_DECREF(dlpack);
        return set_dlpack(kernel, call, i, object);
    }
    PyErr_Clear();
    if (object == Py_None && kernel->count >= 0 && kernel->params[i].optional) {
        call->args[i] = (kelp_kernel_arg){0};
        return 0;
    }
    if (PyObject_CheckBuffer(object))
        return set_buffer(kernel, call, i, object);
    PyErr_Format(PyExc_TypeError,
                 "argument %zd of kernel '%s' has type '%s': expected an array, a DLTensor, a "
                 "number or str",
                 i, kelp_kernel_name(kernel->kernel),
                 kpy_type_name(object, (char[KPY_TYPE_NAME]){0}));
    return -1;
}

static int set_argument(kpy_kernel *kernel, kpy_call *call, Py_ssize_t i, PyObject *object) {
    if (kpy_is_array(object))
        return set_array(kernel, call, i, (const kpy_array *)object);
    if (Py_TYPE(object) == kpy_dltensor_type)
        return set_dltensor(kernel, call, i, (kpy_dltensor *)object);
    if (PyLong_Check(object) || PyFloat_Check(object) || PyIndex_Check(object))
        return set_number(kernel, call, i, object);
    if (PyUnicode_Check(object))
        return set_string(kernel, call, i, object);
    return kpy_is_numpy_scalar(object) ? set_number(kernel, call, i, object)
                                       : set_other(kernel, call, i, object);
}

/* ---- arguments that are omitted ---- */
/* Sets an integer to the size of its dimension. The check of the arguments reports an input that
 * lacks the dimension. */
static void set_implied(const kpy_kernel *kernel, kpy_call *call, int i) {
    const kpy_param *param = &kernel->params[i];
    const kelp_kernel_arg *from = &call->args[param->implied];
    const DLTensor *tensor = from->kind == KELP_ARG_TENSOR ? from->as.tensor : NULL;
    bool known = tensor != NULL && tensor->ndim + param->axis >= 0;
    call->args[i] = (kelp_kernel_arg){
        .kind = KELP_ARG_INT, .as.i = known ? tensor->shape[tensor->ndim + param->axis] : 0};
}

/* An optional output is not computed if it is omitted. */
static bool makes(const kpy_param *param) {
    return param->is_out && !param->optional;
}

static int make_outputs(kpy_kernel *kernel, kpy_call *call, PyObject *const *objects) {
    kelp_tensor tensors[KPY_KERNEL_ARGS];
    const kelp_tensor *next = tensors;
    if (call->device.device_type != kDLCPU) {
        kpy_fail(KELP_UNIMPLEMENTED,
                 "kernel '%s' is called for a device, and an output is omitted: Kelp allocates "
                 "outputs on the CPU only",
                 kelp_kernel_name(kernel->kernel));
        return -1;
    }
    kelp_status *status =
        kelp_kernel_infer_shapes(kernel->kernel, call->args, call->count, tensors);
    if (status != NULL)
        return kpy_raise(status), -1;
    for (int i = 0; i < kernel->count; i++) {
        if (kelp_kernel_param_at(kernel->kernel, i).direction == KELP_PARAM_IN)
            continue;
        const kelp_tensor *tensor = next++;
        if (objects[i] != NULL || !makes(&kernel->params[i]))
            continue;
        PyObject *made = kpy_numpy_empty(tensor->dtype, tensor->rank, tensor->shape);
        if (made == NULL)
            return -1;
        call->made[call->made_count++] = made;
        if (set_array(kernel, call, i, (const kpy_array *)made))
            return -1;
    }
    return 0;
}

static int set_named(kpy_kernel *kernel, kpy_call *call, PyObject *const *args, Py_ssize_t count,
                     PyObject *words) {
    PyObject *objects[KPY_KERNEL_ARGS];
    bool omits_output = false;
    if (kernel->count < 0) {
        PyErr_Format(PyExc_TypeError,
                     "kernel '%s' has no signature: its arguments have no names and must be given "
                     "by position",
                     kelp_kernel_name(kernel->kernel));
        return -1;
    }
    if (arrange(kernel, args, count, words, objects))
        return -1;
    call->count = kernel->count;
    for (int i = 0; i < kernel->count; i++) {
        call->args[i] = (kelp_kernel_arg){0};
        if (objects[i] != NULL && set_argument(kernel, call, i, objects[i]))
            return -1;
        omits_output = omits_output || (objects[i] == NULL && makes(&kernel->params[i]));
    }
    for (int i = 0; i < kernel->count; i++)
        if (objects[i] == NULL && kernel->params[i].implied >= 0)
            set_implied(kernel, call, i);
    return omits_output ? make_outputs(kernel, call, objects) : 0;
}

static int set_arguments(kpy_kernel *kernel, kpy_call *call, PyObject *const *args,
                         Py_ssize_t count, PyObject *words) {
    bool named = words != NULL && PyTuple_Size(words) > 0;
    if (kernel->count > KPY_KERNEL_ARGS || count > KPY_KERNEL_ARGS) {
        kpy_fail(KELP_INVALID_ARGUMENT, "kernel '%s' has %zd arguments: expected at most %d",
                 kelp_kernel_name(kernel->kernel),
                 count > kernel->count ? count : (Py_ssize_t)kernel->count, KPY_KERNEL_ARGS);
        return -1;
    }
    if (named || (kernel->count >= 0 && count != kernel->count))
        return set_named(kernel, call, args, count, words);
    call->count = (int32_t)count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (set_argument(kernel, call, i, args[i]))
            return -1;
    return 0;
}

/* ---- a call ---- */
int kpy_call_init(kpy_call *call, kpy_kernel *kernel, kelp_kernel_session *session,
                  PyObject *const *args, Py_ssize_t count, PyObject *words) {
    const kelp_kernel_context *context = kelp_kernel_session_context(session);
    call->device = context->device;
    call->stream = context->stream;
    call->view_count = call->made_count = 0;
    if (set_arguments(kernel, call, args, count, words) == 0)
        return 0;
    kpy_call_deinit(call);
    return -1;
}

void kpy_call_deinit(kpy_call *call) {
    for (size_t i = 0; i < call->view_count; i++)
        kpy_view_deinit(&call->views[i]);
    for (size_t i = 0; i < call->made_count; i++)
        Py_DECREF(call->made[i]);
    call->view_count = call->made_count = 0;
}

PyObject *kpy_call_result(kpy_call *call) {
    if (call->made_count == 0)
        Py_RETURN_NONE;
    if (call->made_count == 1)
        return Py_NewRef(call->made[0]);
    PyObject *tuple = PyTuple_New((Py_ssize_t)call->made_count);
    for (size_t i = 0; tuple != NULL && i < call->made_count; i++)
        PyTuple_SetItem(tuple, (Py_ssize_t)i, Py_NewRef(call->made[i]));
    return tuple;
}

/* ---- sessions ---- */
static int take_pooled(kpy_registry *registry, kelp_kernel_session **out) {
    if (registry->pool_count > 0) {
        *out = registry->pool[--registry->pool_count];
        return 0;
    }
    kelp_status *status = kelp_kernel_session_create(registry->registry, NULL, out);
    return status != NULL ? (kpy_raise(status), -1) : 0;
}

static void give_pooled(kpy_registry *registry, kelp_kernel_session *session) {
    if (registry->pool_count == registry->pool_capacity) {
        size_t capacity = registry->pool_capacity ? 2 * registry->pool_capacity : 4;
        kelp_kernel_session **more = PyMem_Realloc(registry->pool, capacity * sizeof *more);
        if (more == NULL) {
            kelp_kernel_session_destroy(session);
            return;
        }
        registry->pool = more;
        registry->pool_capacity = capacity;
    }
    registry->pool[registry->pool_count++] = session;
}

int kpy_session_take(kpy_kernel *kernel, PyObject *const **inout_args, Py_ssize_t *inout_count,
                     kpy_context **out_context, kelp_kernel_session **out) {
    *out_context = NULL;
    if (*inout_count == 0 || Py_TYPE((*inout_args)[0]) != kpy_context_type)
        return take_pooled(kernel->owner, out);
    kpy_context *context = (kpy_context *)(*inout_args)[0];
    if (context->busy || context->owner != kernel->owner) {
        kpy_fail(context->busy ? KELP_FAILED_PRECONDITION : KELP_INVALID_ARGUMENT,
                 context->busy ? "the context is in use by another call"
                               : "the context belongs to another runtime");
        return -1;
    }
    context->busy = true;
    ++*inout_args;
    --*inout_count;
    *out_context = context;
    *out = context->session;
    return 0;
}

void kpy_session_give(kpy_kernel *kernel, kpy_context *context, kelp_kernel_session *session) {
    if (context != NULL)
        context->busy = false;
    else
        give_pooled(kernel->owner, session);
}

PyObject *kpy_kernel_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *words) {
    kpy_kernel *kernel = (kpy_kernel *)object;
    Py_ssize_t count = kpy_vectorcall_nargs(nargsf);
    kpy_context *context;
    kelp_kernel_session *session;
    kpy_call call;
    PyObject *result = NULL;
    if (kpy_session_take(kernel, &args, &count, &context, &session))
        return NULL;
    if (kpy_call_init(&call, kernel, session, args, count, words) == 0) {
        kelp_status *status;
        Py_BEGIN_ALLOW_THREADS;
        status = kelp_kernel_call(kernel->kernel, session, call.args, call.count);
        Py_END_ALLOW_THREADS;
        result = status != NULL ? kpy_raise(status) : kpy_call_result(&call);
        kpy_call_deinit(&call);
    }
    kpy_session_give(kernel, context, session);
    return result;
}
