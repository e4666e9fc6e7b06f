/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel libraries (kelp/kernel.h). A Kernel is called like a function: arrays and DLTensors are
 * described on the stack and used in place, checked against the signature, and the kernel runs
 * without the GIL, in a context from a pool or in the one passed first. */
#include "kpy.h"

#include <kelp/kernel.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#define MOST_ARGS 16

typedef struct registry {
    PyObject_HEAD kelp_kernel_registry *registry;
    kelp_kernel_session **pool;
    size_t pool_count, pool_capacity;
} registry;

typedef struct context {
    PyObject_HEAD registry *owner;
    kelp_kernel_session *session;
    bool busy;
} context;

typedef struct library {
    PyObject_HEAD registry *owner;
    kelp_kernel_library *library;
} library;

typedef struct kernel {
    PyObject_HEAD vectorcallfunc call;
    registry *owner;
    library *from;
    const kelp_kernel *kernel;
    uint8_t kinds[MOST_ARGS];
    /* The numpy type of the last array per argument, and its DLPack type. */
    PyObject *descrs[MOST_ARGS];
    DLDataType dtypes[MOST_ARGS];
    bool typed;
} kernel;

static PyTypeObject *registry_type, *context_type, *library_type, *kernel_type;

/* ---- registry ---- */
static PyObject *registry_new(PyTypeObject *type, PyObject *args, PyObject *words) {
    static char *names[] = {"threads", "search_path", NULL};
    int threads = 0;
    const char *search_path = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, words, "|iz", names, &threads, &search_path))
        return NULL;
    registry *self = (registry *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    kelp_kernel_registry_options options = {
        .struct_size = sizeof options, .threads = threads, .search_path = search_path};
    kelp_status *status = kelp_kernel_registry_create(&options, &self->registry);
    if (status != NULL) {
        self->registry = NULL;
        Py_DECREF(self);
        return kpy_raise(status);
    }
    return (PyObject *)self;
}

static void registry_dealloc(PyObject *object) {
    registry *self = (registry *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (size_t i = 0; i < self->pool_count; i++)
        kelp_kernel_session_destroy(self->pool[i]);
    PyMem_Free(self->pool);
    kelp_kernel_registry_release(self->registry);
    type->tp_free(object);
    Py_DECREF(type);
}

static int take_session(registry *self, kelp_kernel_session **out) {
    if (self->pool_count > 0) {
        *out = self->pool[--self->pool_count];
        return 0;
    }
    kelp_status *status = kelp_kernel_session_create(self->registry, NULL, out);
    return status ? (kpy_raise(status), -1) : 0;
}

static void give_session(registry *self, kelp_kernel_session *session) {
    if (self->pool_count == self->pool_capacity) {
        size_t capacity = self->pool_capacity ? 2 * self->pool_capacity : 4;
        kelp_kernel_session **more = PyMem_Realloc(self->pool, capacity * sizeof *more);
        if (more == NULL) {
            kelp_kernel_session_destroy(session);
            return;
        }
        self->pool = more;
        self->pool_capacity = capacity;
    }
    self->pool[self->pool_count++] = session;
}

static PyObject *wrap_library(registry *owner, kelp_kernel_library *found) {
    library *made = (library *)library_type->tp_alloc(library_type, 0);
    if (made != NULL) {
        made->owner = (registry *)Py_NewRef((PyObject *)owner);
        made->library = found;
    }
    return (PyObject *)made;
}

/* Files that failed to load. Filled without the GIL, because its holder may wait for the registry.
 */
typedef struct tried_files {
    char **texts; /* alternating paths and reasons */
    size_t count, capacity;
} tried_files;

static void keep_tried(void *userp, const char *path, const kelp_status *why) {
    tried_files *self = userp;
    char reason[1024];
    kelp_status_format(why, reason, sizeof reason);
    if (self->count == self->capacity) {
        size_t capacity = self->capacity ? 2 * self->capacity : 16;
        char **more = PyMem_RawRealloc(self->texts, capacity * sizeof *more);
        if (more == NULL)
            return; /* the message contains them too */
        self->texts = more;
        self->capacity = capacity;
    }
    self->texts[self->count++] = strdup(path);
    self->texts[self->count++] = strdup(reason);
}

/* Moves them to a list of (path, reason). */
static int give_tried(tried_files *take, PyObject *list) {
    int failed = 0;
    for (size_t i = 0; i < take->count; i += 2) {
        char *path = take->texts[i], *reason = take->texts[i + 1];
        PyObject *pair = !failed && path && reason
                             ? Py_BuildValue("(Ns)", PyUnicode_DecodeFSDefault(path), reason)
                             : NULL;
        failed = failed || pair == NULL || PyList_Append(list, pair);
        Py_XDECREF(pair);
        free(path);
        free(reason);
    }
    PyMem_RawFree(take->texts);
    return failed;
}

static PyObject *registry_open(PyObject *object, PyObject *args) {
    registry *self = (registry *)object;
    const char *name;
    PyObject *list;
    tried_files tried = {0};
    kelp_kernel_library *found = NULL;
    kelp_status *status;
    if (!PyArg_ParseTuple(args, "sO!", &name, &PyList_Type, &list))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kelp_kernel_registry_search(self->registry, name, keep_tried, &tried, &found);
    Py_END_ALLOW_THREADS;
    if (give_tried(&tried, list)) {
        kelp_status_free(status);
        return NULL;
    }
    return status ? kpy_raise(status) : wrap_library(self, found);
}

static PyObject *registry_add(PyObject *object, PyObject *args) {
    registry *self = (registry *)object;
    const char *name;
    kelp_kernel_library *made = NULL;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    kelp_status *status = kelp_kernel_registry_add(self->registry, name, &made);
    return status ? kpy_raise(status) : wrap_library(self, made);
}

static PyObject *registry_scan(PyObject *object, PyObject *args) {
    (void)args;
    registry *self = (registry *)object;
    size_t count;
    Py_BEGIN_ALLOW_THREADS;
    count = kelp_kernel_registry_scan(self->registry);
    Py_END_ALLOW_THREADS;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *name = PyUnicode_FromString(
            kelp_kernel_library_name(kelp_kernel_registry_at(self->registry, i)));
        if (name == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, name);
    }
    return list;
}

static PyObject *registry_context(PyObject *object, PyObject *args) {
    (void)args;
    registry *self = (registry *)object;
    context *made = (context *)context_type->tp_alloc(context_type, 0);
    if (made == NULL)
        return NULL;
    if (take_session(self, &made->session)) {
        Py_DECREF(made);
        return NULL;
    }
    made->owner = (registry *)Py_NewRef(object);
    return (PyObject *)made;
}

static PyMethodDef registry_methods[] = {
    {"open", registry_open, METH_VARARGS,
     "open(name, tried): opens the library with this name or file; appends (path, reason) to "
     "the\nlist `tried` for each file that failed"},
    {"add", registry_add, METH_VARARGS,
     "add(name): creates an empty library for functions by address"},
    {"scan", registry_scan, METH_NOARGS, "Opens every library on the search path; their names."},
    {"context", registry_context, METH_NOARGS, "Creates a context for calls."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot registry_slots[] = {
    {Py_tp_new, registry_new},
    {Py_tp_dealloc, registry_dealloc},
    {Py_tp_methods, registry_methods},
    {Py_tp_doc, (void *)"Registry(threads=0, search_path=None)\n--\n\nKernel libraries."},
    {0, NULL},
};
static PyType_Spec registry_spec = {.name = "kelp._kelp.Registry",
                                    .basicsize = sizeof(registry),
                                    .flags = Py_TPFLAGS_DEFAULT,
                                    .slots = registry_slots};

/* ---- context ---- */
static void context_dealloc(PyObject *object) {
    context *self = (context *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->session != NULL)
        kelp_kernel_session_destroy(self->session); /* with the resources of kernels */
    Py_XDECREF((PyObject *)self->owner);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *context_address(PyObject *object, void *closure) {
    (void)closure;
    return PyLong_FromVoidPtr(
        (void *)(uintptr_t)kelp_kernel_session_context(((context *)object)->session));
}

static PyGetSetDef context_getset[] = {
    {"address", context_address, NULL, "The address of the context that kernels receive.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot context_slots[] = {
    {Py_tp_dealloc, context_dealloc},
    {Py_tp_getset, context_getset},
    {Py_tp_doc, (void *)"Scratch memory and resources that calls share. One call at a time."},
    {0, NULL},
};
static PyType_Spec context_spec = {.name = "kelp._kelp.Context",
                                   .basicsize = sizeof(context),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = context_slots};

/* ---- a call ---- */
typedef struct call {
    kelp_kernel_arg args[MOST_ARGS];
    DLTensor tensors[MOST_ARGS];
    kpy_view views[MOST_ARGS];
    int64_t strides[MOST_ARGS][KELP_MAX_RANK];
    size_t view_count;
} call;

static PyObject *no_place(const kernel *self, Py_ssize_t i, const char *why) {
    return kpy_fail(KELP_INVALID_ARGUMENT, "argument %zd of kernel '%s' %s", i,
                    kelp_kernel_name(self->kernel), why);
}

static int type_at(kernel *self, Py_ssize_t i, PyObject *descr) {
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
        return no_place(self, i, "has packed elements, which numpy does not support"), -1;
    self->dtypes[i] = dl.dtype;
    Py_XSETREF(self->descrs[i], Py_NewRef(descr));
    return 0;
}

static int set_array(kernel *self, call *c, Py_ssize_t i, const kpy_array *array) {
    DLTensor *dl = &c->tensors[i];
    if (self->descrs[i] != array->descr && type_at(self, i, array->descr))
        return -1;
    *dl = (DLTensor){.data = array->data,
                     .device = {kDLCPU, 0},
                     .ndim = array->nd,
                     .dtype = self->dtypes[i],
                     .shape = (int64_t *)array->shape};
    if (!(array->flags & KPY_ARRAY_C_CONTIGUOUS)) {
        Py_ssize_t size = self->dtypes[i].bits / 8;
        if (!self->typed)
            return no_place(self, i,
                            "is not contiguous, and the kernel has no signature: make it "
                            "contiguous, or pass a DLTensor"),
                   -1;
        if (array->nd > KELP_MAX_RANK)
            return no_place(self, i, "has too many dimensions"), -1;
        for (int d = 0; d < array->nd; d++) {
            if (array->strides[d] % size != 0)
                return no_place(self, i, "has a stride that is not a multiple of the element size"),
                       -1;
            c->strides[i][d] = array->strides[d] / size;
        }
        dl->strides = c->strides[i];
    }
    c->args[i] = (kelp_kernel_arg){
        .kind = KELP_ARG_TENSOR,
        .flags = array->flags & KPY_ARRAY_WRITEABLE ? 0 : KELP_ARG_READ_ONLY,
        .as.tensor = dl,
    };
    return 0;
}

static int set_dltensor(call *c, Py_ssize_t i, kpy_dltensor *tensor) {
    c->args[i] = (kelp_kernel_arg){.kind = KELP_ARG_TENSOR,
                                   .flags = tensor->read_only ? KELP_ARG_READ_ONLY : 0,
                                   .as.tensor = &tensor->dl};
    return 0;
}

static int set_number(kernel *self, call *c, Py_ssize_t i, PyObject *object) {
    kelp_kernel_arg *arg = &c->args[i];
    arg->flags = 0;
    if (PyIndex_Check(object) && self->kinds[i] != KELP_ARG_FLOAT) {
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

/* Other objects with DLPack or the buffer protocol. */
static int set_other(kernel *self, call *c, Py_ssize_t i, PyObject *object) {
    char what[64];
    snprintf(what, sizeof what, "argument %zd", i);
    kpy_view *view = &c->views[c->view_count];
    PyObject *dlpack = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack__");
    bool memory = dlpack != NULL || PyObject_CheckBuffer(object);
    Py_XDECREF(dlpack);
    PyErr_Clear();
    if (!memory) {
        PyErr_Format(PyExc_TypeError,
                     "argument %zd of kernel '%s' has type '%s': expected an array, a DLTensor, a "
                     "number or str",
                     i, kelp_kernel_name(self->kernel), Py_TYPE(object)->tp_name);
        return -1;
    }
    if (kpy_view_strided(view, object, false, what))
        return -1;
    c->view_count++;
    kelp_status *status = kelp_tensor_to_dl(&view->tensor, &c->tensors[i]);
    if (status != NULL)
        return kpy_raise(status), -1;
    c->args[i] = (kelp_kernel_arg){
        .kind = KELP_ARG_TENSOR,
        .flags = view->tensor.flags & KELP_TENSOR_READ_ONLY ? KELP_ARG_READ_ONLY : 0,
        .as.tensor = &c->tensors[i]};
    return 0;
}

static int set_argument(kernel *self, call *c, Py_ssize_t i, PyObject *object) {
    if (kpy_is_array(object))
        return set_array(self, c, i, (const kpy_array *)object);
    if (Py_TYPE(object) == kpy_dltensor_type)
        return set_dltensor(c, i, (kpy_dltensor *)object);
    if (PyLong_Check(object) || PyFloat_Check(object) || PyIndex_Check(object))
        return set_number(self, c, i, object);
    if (PyUnicode_Check(object)) {
        c->args[i] = (kelp_kernel_arg){.kind = KELP_ARG_STRING, .as.s = PyUnicode_AsUTF8(object)};
        return c->args[i].as.s ? 0 : -1;
    }
    return kpy_is_numpy_scalar(object) ? set_number(self, c, i, object)
                                       : set_other(self, c, i, object);
}

static PyObject *run(kernel *self, kelp_kernel_session *session, PyObject *const *args,
                     Py_ssize_t count) {
    call c;
    kelp_status *status = NULL;
    int failed = 0;
    c.view_count = 0;
    if (count > MOST_ARGS)
        return kpy_fail(KELP_INVALID_ARGUMENT, "kernel '%s' has %zd arguments: expected at most %d",
                        kelp_kernel_name(self->kernel), count, MOST_ARGS);
    for (Py_ssize_t i = 0; !failed && i < count; i++)
        failed = set_argument(self, &c, i, args[i]);
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS;
        status = kelp_kernel_call(self->kernel, session, c.args, (int32_t)count);
        Py_END_ALLOW_THREADS;
    }
    for (size_t i = 0; i < c.view_count; i++)
        kpy_view_deinit(&c.views[i]);
    if (failed)
        return NULL;
    if (status != NULL)
        return kpy_raise(status);
    Py_RETURN_NONE;
}

static PyObject *kernel_call(PyObject *object, PyObject *const *args, size_t nargsf,
                             PyObject *words) {
    kernel *self = (kernel *)object;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (words != NULL && PyTuple_GET_SIZE(words) > 0) {
        PyErr_SetString(PyExc_TypeError, "kernels accept positional arguments only");
        return NULL;
    }
    if (count > 0 && Py_TYPE(args[0]) == context_type) {
        context *given = (context *)args[0];
        if (given->busy)
            return kpy_fail(KELP_FAILED_PRECONDITION, "the context is in use on another thread");
        if (given->owner != self->owner)
            return kpy_fail(KELP_INVALID_ARGUMENT, "the context belongs to another runtime");
        given->busy = true;
        PyObject *result = run(self, given->session, args + 1, count - 1);
        given->busy = false;
        return result;
    }
    kelp_kernel_session *session;
    if (take_session(self->owner, &session))
        return NULL;
    PyObject *result = run(self, session, args, count);
    give_session(self->owner, session);
    return result;
}

/* ---- kernel ---- */
static PyObject *wrap_kernel(library *from, const kelp_kernel *found) {
    kernel *self = (kernel *)kernel_type->tp_alloc(kernel_type, 0);
    if (self == NULL)
        return NULL;
    self->call = kernel_call;
    self->owner = (registry *)Py_NewRef((PyObject *)from->owner);
    self->from = (library *)Py_NewRef((PyObject *)from);
    self->kernel = found;
    int32_t count = kelp_kernel_param_count(found);
    self->typed = count >= 0;
    for (int32_t i = 0; i < count && i < MOST_ARGS; i++)
        self->kinds[i] = (uint8_t)kelp_kernel_param_at(found, i).kind;
    return (PyObject *)self;
}

static void kernel_dealloc(PyObject *object) {
    kernel *self = (kernel *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (int i = 0; i < MOST_ARGS; i++)
        Py_XDECREF(self->descrs[i]);
    Py_XDECREF((PyObject *)self->from);
    Py_XDECREF((PyObject *)self->owner);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *kernel_name(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_FromString(kelp_kernel_name(((kernel *)object)->kernel));
}
static PyObject *kernel_signature(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_FromString(kelp_kernel_signature(((kernel *)object)->kernel));
}
static PyObject *kernel_summary(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_FromString(kelp_kernel_summary(((kernel *)object)->kernel));
}
static PyObject *kernel_address(PyObject *object, void *closure) {
    (void)closure;
    kernel *self = (kernel *)object;
    void *function =
        kelp_kernel_library_function(self->from->library, kelp_kernel_name(self->kernel));
    if (function == NULL)
        Py_RETURN_NONE;
    return PyLong_FromVoidPtr(function);
}

static PyObject *param_shape(const kelp_kernel *found, int32_t index) {
    kelp_kernel_shape shape = kelp_kernel_param_shape(found, index);
    if (shape.rank < 0)
        Py_RETURN_NONE;
    PyObject *list = PyList_New(0);
    for (int32_t i = shape.leading ? -1 : 0; list != NULL && i < shape.rank; i++) {
        PyObject *item =
            i < 0 ? PyUnicode_FromFormat("...%s", shape.leading_name ? shape.leading_name : "")
            : shape.names[i]        ? PyUnicode_FromString(shape.names[i])
            : shape.extents[i] >= 0 ? PyLong_FromLongLong(shape.extents[i])
                                    : Py_NewRef(Py_None);
        if (item == NULL || PyList_Append(list, item))
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *kernel_parameters(PyObject *object, void *closure) {
    static const char *const directions[] = {"in", "out", "inout"};
    (void)closure;
    const kelp_kernel *found = ((kernel *)object)->kernel;
    int32_t count = kelp_kernel_param_count(found);
    if (count < 0)
        Py_RETURN_NONE;
    PyObject *list = PyList_New(0);
    for (int32_t i = 0; list != NULL && i < count; i++) {
        kelp_kernel_param p = kelp_kernel_param_at(found, i);
        PyObject *shape = param_shape(found, i);
        PyObject *item =
            shape ? Py_BuildValue("{ss,ss,sz,sN}", "name", p.name, "direction",
                                  directions[p.direction], "dtype",
                                  p.dtype ? kelp_dtype_name(p.dtype) : NULL, "shape", shape)
                  : NULL;
        if (item == NULL || PyList_Append(list, item))
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *kernel_repr(PyObject *object) {
    const kelp_kernel *found = ((kernel *)object)->kernel;
    const char *signature = kelp_kernel_signature(found);
    return PyUnicode_FromFormat("<kernel %s(%s)>", kelp_kernel_name(found),
                                *signature ? signature : "…");
}

static PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(kernel, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef kernel_getset[] = {
    {"name", kernel_name, NULL, "The name.", NULL},
    {"signature", kernel_signature, NULL, "The signature, or '' if it is unknown.", NULL},
    {"summary", kernel_summary, NULL, "A one-line description.", NULL},
    {"parameters", kernel_parameters, NULL,
     "The parameters: a list of dicts with name, direction ('in', 'out', 'inout'), dtype (None: "
     "any)\nand shape (numbers, names, None for any, a first '...NAME'; None: a scalar). None if "
     "the\nsignature is unknown.",
     NULL},
    {"address", kernel_address, NULL, "The address of the C function, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
PyDoc_STRVAR(
    kernel_doc,
    "A kernel, called like a function: kernel(out, a, b), or kernel(context, out, a, "
    "b).\n\nArrays, DLTensors and objects with DLPack or the buffer protocol are passed in "
    "place,\nint and float as scalars. With a signature, the arguments are checked first; "
    "without\none (see `signature`), integers are passed as int64 and floats as double.");
static PyType_Slot kernel_slots[] = {
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, kernel_members},
    {Py_tp_getset, kernel_getset},
    {Py_tp_repr, kernel_repr},
    {Py_tp_doc, (void *)kernel_doc},
    {0, NULL},
};
static PyType_Spec kernel_spec = {.name = "kelp._kelp.Kernel",
                                  .basicsize = sizeof(kernel),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                           Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = kernel_slots};

/* ---- library ---- */
static void library_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF((PyObject *)((library *)object)->owner);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *library_find(PyObject *object, PyObject *args) {
    library *self = (library *)object;
    const char *name;
    const kelp_kernel *found = NULL;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    kelp_status *status = kelp_kernel_library_find(self->library, name, &found);
    return status ? kpy_raise(status) : wrap_kernel(self, found);
}

static PyObject *library_register(PyObject *object, PyObject *args) {
    library *self = (library *)object;
    const char *name, *signature;
    PyObject *address;
    int with_context;
    const kelp_kernel *made = NULL;
    if (!PyArg_ParseTuple(args, "sO!zp", &name, &PyLong_Type, &address, &signature, &with_context))
        return NULL;
    void *function = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    kelp_status *status =
        kelp_kernel_library_register(self->library, name, function, signature, with_context, &made);
    return status ? kpy_raise(status) : wrap_kernel(self, made);
}

static PyObject *library_name(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_FromString(kelp_kernel_library_name(((library *)object)->library));
}
static PyObject *library_path(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_DecodeFSDefault(kelp_kernel_library_path(((library *)object)->library));
}
static PyObject *library_devices(PyObject *object, void *closure) {
    (void)closure;
    PyObject *list = PyList_New(0);
    const char *name;
    for (size_t i = 0; list && (name = kelp_kernel_library_device(((library *)object)->library, i));
         i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (text == NULL || PyList_Append(list, text))
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}
static PyObject *library_kernels(PyObject *object, void *closure) {
    (void)closure;
    library *self = (library *)object;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < kelp_kernel_library_count(self->library); i++) {
        PyObject *text =
            PyUnicode_FromString(kelp_kernel_name(kelp_kernel_library_at(self->library, i)));
        if (text == NULL || PyList_Append(list, text))
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyMethodDef library_methods[] = {
    {"find", library_find, METH_VARARGS, "find(name): returns the kernel with this name"},
    {"register", library_register, METH_VARARGS,
     "register(name, address, signature, with_context): registers a function by its address"},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef library_getset[] = {
    {"name", library_name, NULL, "The name.", NULL},
    {"path", library_path, NULL, "The file, or ''.", NULL},
    {"devices", library_devices, NULL, "The supported devices.", NULL},
    {"kernels", library_kernels, NULL, "The names of the kernels.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot library_slots[] = {
    {Py_tp_dealloc, library_dealloc},
    {Py_tp_methods, library_methods},
    {Py_tp_getset, library_getset},
    {Py_tp_doc, (void *)"A kernel library."},
    {0, NULL},
};
static PyType_Spec library_spec = {.name = "kelp._kelp.Library",
                                   .basicsize = sizeof(library),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = library_slots};

int kpy_kernel_ready(PyObject *module) {
    registry_type = (PyTypeObject *)PyType_FromSpec(&registry_spec);
    context_type = (PyTypeObject *)PyType_FromSpec(&context_spec);
    library_type = (PyTypeObject *)PyType_FromSpec(&library_spec);
    kernel_type = (PyTypeObject *)PyType_FromSpec(&kernel_spec);
    return registry_type && context_type && library_type && kernel_type &&
                   !PyModule_AddType(module, registry_type) &&
                   !PyModule_AddType(module, context_type) &&
                   !PyModule_AddType(module, library_type) && !PyModule_AddType(module, kernel_type)
               ? 0
               : -1;
}
