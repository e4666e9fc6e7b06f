/* SPDX-License-Identifier: Apache-2.0 */
/* kelp._kelp: the C part of the Python package, and the conversion of failures to KelpError. */
#include "kernel.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static PyObject *error_type; /* kelp._error.KelpError */

static PyObject *make_error(const kelp_status *status) {
    const kelp_status *under = kelp_status_cause(status);
    PyObject *cause = under ? make_error(under) : Py_NewRef(Py_None);
    if (cause == NULL)
        return NULL;
    PyObject *error = PyObject_CallFunction(error_type, "siN", kelp_status_message(status),
                                            (int)kelp_status_code(status), cause);
    return error;
}

PyObject *kpy_raise(kelp_status *take_status) {
    PyObject *error = make_error(take_status);
    kelp_status_free(take_status);
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

static PyObject *fail(PyObject *type, kelp_code code, const char *format, va_list args) {
    PyObject *text = PyUnicode_FromFormatV(format, args);
    PyObject *error = text ? PyObject_CallFunction(type, "Oi", text, (int)code) : NULL;
    Py_XDECREF(text);
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject *kpy_fail(kelp_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(error_type, code, format, args);
    va_end(args);
    return NULL;
}

PyObject *kpy_fail_as(const char *type, kelp_code code, const char *format, ...) {
    va_list args;
    PyObject *errors = PyImport_ImportModule("kelp._error");
    PyObject *cls = errors ? PyObject_GetAttrString(errors, type) : NULL;
    Py_XDECREF(errors);
    if (cls == NULL)
        return NULL;
    va_start(args, format);
    fail(cls, code, format, args);
    va_end(args);
    Py_DECREF(cls);
    return NULL;
}

const char *kpy_type_name(PyObject *object, char out[KPY_TYPE_NAME]) {
    PyObject *type = (PyObject *)Py_TYPE(object);
    PyObject *module = PyObject_GetAttrString(type, "__module__");
    PyObject *name = PyObject_GetAttrString(type, "__qualname__");
    const char *of = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : "";
    const char *is = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : "";
    PyErr_Clear(); /* a class may define either attribute as it likes */
    bool builtin = of == NULL || *of == '\0' || !strcmp(of, "builtins");
    snprintf(out, KPY_TYPE_NAME, "%s%s%s", builtin ? "" : of, builtin ? "" : ".", is ? is : "");
    Py_XDECREF(module);
    Py_XDECREF(name);
    return out;
}

/* ---- loaded libraries ---- */
static int add_library(struct dl_phdr_info *info, size_t size, void *userp) {
    (void)size;
    PyObject *path =
        info->dlpi_name && *info->dlpi_name ? PyUnicode_DecodeFSDefault(info->dlpi_name) : NULL;
    int failed = path ? PyList_Append(userp, path) : 0;
    Py_XDECREF(path);
    return failed;
}

PyDoc_STRVAR(
    mapped_doc,
    "mapped_libraries()\n--\n\nReturns the paths of the shared libraries in this process.");
static PyObject *mapped_libraries(PyObject *self, PyObject *args) {
    (void)self, (void)args;
    PyObject *list = PyList_New(0);
    if (list != NULL && dl_iterate_phdr(add_library, list))
        Py_CLEAR(list);
    return list;
}

PyDoc_STRVAR(where_doc, "library_path()\n--\n\nReturns the path of libkelp.so.");
static PyObject *library_path(PyObject *self, PyObject *args) {
    (void)self, (void)args;
    Dl_info info;
    void *address;
    const char *(*function)(void) = kelp_version;
    memcpy(&address, &function, sizeof address);
    if (!dladdr(address, &info) || info.dli_fname == NULL)
        return kpy_fail(KELP_INTERNAL, "the path of libkelp.so is unknown");
    return PyUnicode_DecodeFSDefault(info.dli_fname);
}

PyDoc_STRVAR(
    invoke_doc,
    "invoke(context, recording=0)\n--\n\nCalls kelp_context_invoke, or kelp_capture_replay if the "
    "address of a recording is given. A signal handler that raises cancels it.");
static PyObject *invoke(PyObject *self, PyObject *args) {
    PyObject *address, *replayed = NULL;
    kpy_watch watch;
    (void)self;
    if (!PyArg_ParseTuple(args, "O|O", &address, &replayed))
        return NULL;
    kelp_context *context = PyLong_AsVoidPtr(address);
    kelp_capture *recording = context && replayed ? PyLong_AsVoidPtr(replayed) : NULL;
    if (context == NULL || PyErr_Occurred())
        return PyErr_Occurred()
                   ? NULL
                   : kpy_fail(KELP_INVALID_ARGUMENT, "the address of the context is 0");
    kpy_watch_begin(&watch, NULL);
    kelp_context_set_interrupt(context, watch.main ? kpy_watch_stops : NULL, &watch);
    kelp_status *status = recording ? kelp_capture_replay(recording) : kelp_context_invoke(context);
    kelp_context_set_interrupt(context, NULL, NULL);
    if (kpy_watch_end(&watch)) { /* the exception of a handler is set */
        kelp_status_free(status);
        return NULL;
    }
    if (status != NULL)
        return kpy_raise(status);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set_default_severity", kpy_set_default_severity, METH_O,
     "set_default_severity(severity)\n--\n\nSets the severity of the log for runs and sessions "
     "whose own is -1."},
    {"set_value_type", kpy_set_value_type, METH_O,
     "set_value_type(type)\n--\n\nSets the type whose attribute _data is used in the place of an "
     "object: OrtValue."},
    {"invoke", invoke, METH_VARARGS, invoke_doc},
    {"mapped_libraries", mapped_libraries, METH_NOARGS, mapped_doc},
    {"main_thread", kpy_main_thread, METH_NOARGS,
     "main_thread()\n--\n\nReturns the identifier of the thread that runs signal handlers."},
    {"library_path", library_path, METH_NOARGS, where_doc},
    {"next_completed", kpy_kernel_next_completed, METH_NOARGS,
     "next_completed()\n--\n\nWaits until the call of an asynchronous kernel is done, and returns "
     "it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "kelp._kelp",
    .m_doc = "The C part of the package kelp.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__kelp(void);
PyMODINIT_FUNC PyInit__kelp(void) {
    if (error_type == NULL) {
        PyObject *errors = PyImport_ImportModule("kelp._error");
        error_type = errors ? PyObject_GetAttrString(errors, "KelpError") : NULL;
        Py_XDECREF(errors);
        if (error_type == NULL)
            return NULL;
    }
    if (kpy_numpy_init())
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && (PyModule_AddStringConstant(module, "__version__", kelp_version()) ||
                           kpy_dltensor_ready(module) || kpy_interrupt_ready(module) ||
                           kpy_session_ready(module) || kpy_kernel_ready(module)))
        Py_CLEAR(module);
    return module;
}
