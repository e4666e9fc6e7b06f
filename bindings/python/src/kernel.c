/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel libraries (kelp/kernel.h): registries, contexts, libraries and kernels. */
#include "kernel.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

PyTypeObject *kpy_context_type;
static PyTypeObject *registry_type, *library_type, *kernel_type;

/* ---- registry ---- */
static PyObject *registry_new(PyTypeObject *type, PyObject *args, PyObject *words) {
    static char *names[] = {"threads", "search_path", NULL};
    int threads = 0;
    const char *search_path = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, words, "|iz", names, &threads, &search_path))
        return NULL;
    kpy_registry *self = (kpy_registry *)PyType_GenericAlloc(type, 0);
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
    kpy_registry *self = (kpy_registry *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (size_t i = 0; i < self->pool_count; i++)
        kelp_kernel_session_destroy(self->pool[i]);
    PyMem_Free(self->pool);
    kelp_kernel_registry_release(self->registry);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

static PyObject *wrap_library(kpy_registry *owner, kelp_kernel_library *found) {
    kpy_library *made = (kpy_library *)PyType_GenericAlloc(library_type, 0);
    if (made != NULL) {
        made->owner = (kpy_registry *)Py_NewRef((PyObject *)owner);
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
        char **more = realloc(self->texts, capacity * sizeof *more);
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
    free(take->texts);
    return failed;
}

static PyObject *registry_open(PyObject *object, PyObject *args) {
    kpy_registry *self = (kpy_registry *)object;
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
    kpy_registry *self = (kpy_registry *)object;
    const char *name;
    kelp_kernel_library *made = NULL;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    kelp_status *status = kelp_kernel_registry_add(self->registry, name, &made);
    return status ? kpy_raise(status) : wrap_library(self, made);
}

static PyObject *registry_scan(PyObject *object, PyObject *args) {
    (void)args;
    kpy_registry *self = (kpy_registry *)object;
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
            PyList_SetItem(list, (Py_ssize_t)i, name);
    }
    return list;
}

static PyObject *registry_context(PyObject *object, PyObject *args) {
    kpy_registry *self = (kpy_registry *)object;
    PyObject *name, *stream;
    DLDevice device;
    char kind[KPY_DEVICE_NAME];
    if (!PyArg_ParseTuple(args, "OO", &name, &stream) || kpy_device_parse(name, &device, kind))
        return NULL;
    kelp_device_config config = {.device = kind, .id = device.device_id};
    if (stream != Py_None)
        config.stream = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred())
        return NULL;
    kpy_context *made = (kpy_context *)PyType_GenericAlloc(kpy_context_type, 0);
    if (made == NULL)
        return NULL;
    kelp_status *status = kelp_kernel_session_create(self->registry, &config, &made->session);
    if (status != NULL) {
        made->session = NULL;
        Py_DECREF(made);
        return kpy_raise(status);
    }
    made->owner = (kpy_registry *)Py_NewRef(object);
    return (PyObject *)made;
}

static PyMethodDef registry_methods[] = {
    {"open", registry_open, METH_VARARGS,
     "open(name, tried): opens the library with this name or file; appends (path, reason) to "
     "the\nlist `tried` for each file that failed"},
    {"add", registry_add, METH_VARARGS,
     "add(name): creates an empty library for functions by address"},
    {"scan", registry_scan, METH_NOARGS, "Opens every library on the search path; their names."},
    {"context", registry_context, METH_VARARGS,
     "context(device, stream): creates a context for calls on a device."},
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
                                    .basicsize = sizeof(kpy_registry),
                                    .flags = Py_TPFLAGS_DEFAULT,
                                    .slots = registry_slots};

/* ---- context ---- */
static void context_dealloc(PyObject *object) {
    kpy_context *self = (kpy_context *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->session != NULL)
        kelp_kernel_session_destroy(self->session); /* with the resources of kernels */
    Py_XDECREF((PyObject *)self->owner);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

static PyObject *context_address(PyObject *object, void *closure) {
    (void)closure;
    return PyLong_FromVoidPtr(
        (void *)(uintptr_t)kelp_kernel_session_context(((kpy_context *)object)->session));
}

static PyObject *context_device(PyObject *object, void *closure) {
    char name[KPY_DEVICE_NAME];
    (void)closure;
    kpy_device_name(kelp_kernel_session_context(((kpy_context *)object)->session)->device, name);
    return PyUnicode_FromString(name);
}

static PyGetSetDef context_getset[] = {
    {"device", context_device, NULL, "The device of the calls, such as 'cpu' or 'cuda:0'.", NULL},
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
                                   .basicsize = sizeof(kpy_context),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = context_slots};

/* ---- kernel ---- */
/* Finds the first input with a dimension that has the name of integer `i`. */
static void find_implied(kpy_kernel *self, int i) {
    kpy_param *param = &self->params[i];
    const char *name = kelp_kernel_param_at(self->kernel, i).name;
    param->implied = -1;
    for (int k = 0; param->kind == KELP_ARG_INT && k < self->count; k++) {
        kelp_kernel_shape shape = kelp_kernel_param_shape(self->kernel, k);
        if (kelp_kernel_param_at(self->kernel, k).direction == KELP_PARAM_OUT)
            continue;
        for (int32_t d = 0; d < shape.rank; d++) {
            if (shape.names[d] != NULL && strcmp(shape.names[d], name) == 0) {
                param->implied = k;
                param->axis = d - shape.rank;
                return;
            }
        }
    }
}

static int read_params(kpy_kernel *self) {
    self->count = kelp_kernel_param_count(self->kernel);
    for (int i = 0; i < self->count && i < KPY_KERNEL_ARGS; i++) {
        kelp_kernel_param p = kelp_kernel_param_at(self->kernel, i);
        self->params[i].kind = (uint8_t)p.kind;
        self->params[i].is_bool = p.dtype == KELP_BOOL;
        self->params[i].optional = p.optional;
        self->params[i].is_out = p.direction == KELP_PARAM_OUT;
        self->params[i].name = PyUnicode_InternFromString(p.name);
        if (self->params[i].name == NULL)
            return -1;
        find_implied(self, i);
    }
    return 0;
}

static PyObject *wrap_kernel(kpy_library *from, const kelp_kernel *found) {
    kpy_kernel *self = (kpy_kernel *)PyType_GenericAlloc(kernel_type, 0);
    if (self == NULL)
        return NULL;
    self->call = kpy_kernel_call;
    self->owner = (kpy_registry *)Py_NewRef((PyObject *)from->owner);
    self->from = (kpy_library *)Py_NewRef((PyObject *)from);
    self->kernel = found;
    if (read_params(self))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void kernel_dealloc(PyObject *object) {
    kpy_kernel *self = (kpy_kernel *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (int i = 0; i < KPY_KERNEL_ARGS; i++) {
        Py_XDECREF(self->descrs[i]);
        Py_XDECREF(self->params[i].name);
    }
    Py_XDECREF((PyObject *)self->from);
    Py_XDECREF((PyObject *)self->owner);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

static PyObject *kernel_name(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_FromString(kelp_kernel_name(((kpy_kernel *)object)->kernel));
}
static PyObject *kernel_signature(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_FromString(kelp_kernel_signature(((kpy_kernel *)object)->kernel));
}
static PyObject *kernel_summary(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_FromString(kelp_kernel_summary(((kpy_kernel *)object)->kernel));
}
static PyObject *kernel_address(PyObject *object, void *closure) {
    (void)closure;
    kpy_kernel *self = (kpy_kernel *)object;
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
    const kelp_kernel *found = ((kpy_kernel *)object)->kernel;
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

static PyObject *kernel_asynchronous(PyObject *object, void *closure) {
    (void)closure;
    return PyBool_FromLong(
        (kelp_kernel_flags(((kpy_kernel *)object)->kernel) & KELP_KERNEL_ASYNC) != 0);
}

/* Returns the parameters that may not be omitted, and then the others: ([name, …], [name, …]). */
static PyObject *kernel_names(PyObject *object, void *closure) {
    (void)closure;
    const kpy_kernel *self = (const kpy_kernel *)object;
    PyObject *lists[2] = {PyList_New(0), PyList_New(0)};
    bool failed = lists[0] == NULL || lists[1] == NULL;
    for (int i = 0; !failed && i < self->count && i < KPY_KERNEL_ARGS; i++) {
        const kpy_param *param = &self->params[i];
        failed = PyList_Append(lists[kpy_may_be_omitted(param)], param->name) != 0;
    }
    if (!failed)
        return Py_BuildValue("(NN)", lists[0], lists[1]);
    Py_XDECREF(lists[0]);
    Py_XDECREF(lists[1]);
    return NULL;
}

/* ---- members that kelp._kernels implements ---- */
static PyObject *helper(const char *name) {
    PyObject *module = PyImport_ImportModule("kelp._kernels");
    PyObject *found = module != NULL ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return found;
}

static PyObject *kernel_dunder_signature(PyObject *object, void *closure) {
    (void)closure;
    PyObject *function = helper("signature");
    PyObject *result =
        function != NULL ? PyObject_CallFunctionObjArgs(function, object, NULL) : NULL;
    Py_XDECREF(function);
    return result;
}

PyDoc_STRVAR(submit_doc,
             "submit(*arguments, **keywords)\n--\n\nStarts a call and returns a KernelFuture, "
             "whose result() is that of the call. The arguments\nmust not be used until it is "
             "done.");
static PyObject *kernel_submit(PyObject *object, PyObject *args, PyObject *words) {
    PyObject *none = words == NULL ? PyDict_New() : Py_NewRef(words);
    PyObject *function = helper("submit");
    PyObject *result = none != NULL && function != NULL
                           ? PyObject_CallFunctionObjArgs(function, object, args, none, NULL)
                           : NULL;
    Py_XDECREF(function);
    Py_XDECREF(none);
    return result;
}

static PyMethodDef kernel_methods[] = {
    {"submit", (PyCFunction)(void (*)(void))kernel_submit, METH_VARARGS | METH_KEYWORDS,
     submit_doc},
    {"_start", kpy_kernel_start, METH_VARARGS,
     "_start(future, arguments, keywords): starts an asynchronous kernel"},
    {NULL, NULL, 0, NULL},
};

static PyObject *kernel_repr(PyObject *object) {
    const kelp_kernel *found = ((kpy_kernel *)object)->kernel;
    const char *signature = kelp_kernel_signature(found);
    return PyUnicode_FromFormat("<kernel %s(%s)>", kelp_kernel_name(found),
                                *signature ? signature : "…");
}

static PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(kpy_kernel, call), READONLY, NULL},
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
    {"asynchronous", kernel_asynchronous, NULL,
     "Whether the kernel may complete after its function returns.", NULL},
    {"_names", kernel_names, NULL, "The required and the optional parameters.", NULL},
    {"__signature__", kernel_dunder_signature, NULL, "For inspect.signature.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
PyDoc_STRVAR(
    kernel_doc,
    "A kernel, called like a function: kernel(out, a, b), or kernel(context, out, a, "
    "b).\n\nArrays, DLTensors and objects with DLPack or the buffer protocol are passed in "
    "place,\nint, float and str as scalars. With a signature, the arguments are checked first, "
    "and\nmay be given by name. Outputs that are omitted are allocated and returned: kernel(a, "
    "b).\nIntegers that are the size of an input's dimension may be omitted, too. Without a "
    "signature\n(see `signature`), integers are passed as int64 and floats as double.");
static PyType_Slot kernel_slots[] = {
    {Py_tp_dealloc, kernel_dealloc}, {Py_tp_call, PyVectorcall_Call},
    {Py_tp_methods, kernel_methods}, {Py_tp_members, kernel_members},
    {Py_tp_getset, kernel_getset},   {Py_tp_repr, kernel_repr},
    {Py_tp_doc, (void *)kernel_doc}, {0, NULL},
};
static PyType_Spec kernel_spec = {.name = "kelp._kelp.Kernel",
                                  .basicsize = sizeof(kpy_kernel),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                           Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = kernel_slots};

/* ---- library ---- */
static void library_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF((PyObject *)((kpy_library *)object)->owner);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

static PyObject *library_find(PyObject *object, PyObject *args) {
    kpy_library *self = (kpy_library *)object;
    const char *name;
    const kelp_kernel *found = NULL;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    kelp_status *status = kelp_kernel_library_find(self->library, name, &found);
    return status ? kpy_raise(status) : wrap_kernel(self, found);
}

static PyObject *library_register(PyObject *object, PyObject *args) {
    kpy_library *self = (kpy_library *)object;
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
    return PyUnicode_FromString(kelp_kernel_library_name(((kpy_library *)object)->library));
}
static PyObject *library_path(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_DecodeFSDefault(kelp_kernel_library_path(((kpy_library *)object)->library));
}
static PyObject *library_devices(PyObject *object, void *closure) {
    (void)closure;
    PyObject *list = PyList_New(0);
    const char *name;
    for (size_t i = 0;
         list && (name = kelp_kernel_library_device(((kpy_library *)object)->library, i)); i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (text == NULL || PyList_Append(list, text))
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}
static PyObject *library_kernels(PyObject *object, void *closure) {
    (void)closure;
    kpy_library *self = (kpy_library *)object;
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
                                   .basicsize = sizeof(kpy_library),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = library_slots};

int kpy_kernel_ready(PyObject *module) {
    registry_type = (PyTypeObject *)PyType_FromSpec(&registry_spec);
    kpy_context_type = (PyTypeObject *)PyType_FromSpec(&context_spec);
    library_type = (PyTypeObject *)PyType_FromSpec(&library_spec);
    kernel_type = (PyTypeObject *)PyType_FromSpec(&kernel_spec);
    return kpy_kernel_submit_ready() == 0 && registry_type && kpy_context_type && library_type &&
                   kernel_type && !PyModule_AddType(module, registry_type) &&
                   !PyModule_AddType(module, kpy_context_type) &&
                   !PyModule_AddType(module, library_type) && !PyModule_AddType(module, kernel_type)
               ? 0
               : -1;
}
