/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the extension kelp._kelp. Every function is called with the
 * GIL held, and sets a Python exception if it returns NULL or -1. */
#ifndef KPY_H_
#define KPY_H_

#include "limited.h"

#include <kelp/engine.h>

/* ---- errors (module.c) ---- */
/* Raises KelpError for `take_status` and frees it. Returns NULL, for `return kpy_raise(…)`. */
PyObject *kpy_raise(kelp_status *take_status);
/* Raises KelpError with a code and a message. */
PyObject *kpy_fail(kelp_code code, const char *format, ...);
/* Raises an exception of this class of kelp._error. */
PyObject *kpy_fail_as(const char *type, kelp_code code, const char *format, ...);
#define KPY_TYPE_NAME 96
/* Writes the name of an object's type, such as "int" or "numpy.ndarray", and returns `out`. */
const char *kpy_type_name(PyObject *object, char out[KPY_TYPE_NAME]);

/* ---- numpy without its headers (numpy.c) ---- */
/* The first fields of numpy's array object, which are part of its ABI since 1.7. */
typedef struct kpy_array {
    PyObject_HEAD char *data;
    int nd;
    Py_ssize_t *shape;
    Py_ssize_t *strides; /* bytes */
    PyObject *base;
    PyObject *descr;
    int flags;
} kpy_array;
#define KPY_ARRAY_C_CONTIGUOUS 0x0001
#define KPY_ARRAY_ALIGNED 0x0100
#define KPY_ARRAY_WRITEABLE 0x0400

/* Loads numpy the first time. */
int kpy_numpy_init(void);
bool kpy_is_array(PyObject *object);
/* Returns whether an object is a numpy scalar, such as numpy.float32(1). */
bool kpy_is_numpy_scalar(PyObject *object);
/* Returns whether an object is a numpy.bool. */
bool kpy_is_numpy_bool(PyObject *object);
/* Returns the borrowed dtype object of a type; NULL with an exception if numpy lacks it (bfloat16
 * and similar types need the package ml_dtypes). Strings: object. */
PyObject *kpy_numpy_dtype(kelp_dtype dtype);
/* Returns the type of a dtype object: KELP_STRING for object, str and bytes; KELP_DTYPE_INVALID
 * with an exception for an unsupported type or byte order. */
kelp_dtype kpy_numpy_dtype_of(PyObject *descr);
/* Creates an uninitialized array of this type and shape. */
PyObject *kpy_numpy_empty(kelp_dtype dtype, int32_t rank, const int64_t *shape);
/* Creates an array on memory that `base` keeps; `strides` in bytes. */
PyObject *kpy_numpy_over(kelp_dtype dtype, int32_t rank, const Py_ssize_t *shape,
                         const Py_ssize_t *strides, void *data, bool writable, PyObject *base);
/* Returns a type from a name, a dtype or a Python type; KELP_DTYPE_INVALID with an exception. */
kelp_dtype kpy_numpy_parse_dtype(PyObject *object);
/* Calls numpy.ascontiguousarray. */
PyObject *kpy_numpy_compact(PyObject *array);
/* Calls numpy.asarray(object, dtype). With KELP_DTYPE_INVALID, numpy chooses the type. */
PyObject *kpy_numpy_asarray(PyObject *object, kelp_dtype dtype);
/* Returns the flat list of numpy.asarray(object).astype(object), for strings. */
PyObject *kpy_numpy_items(PyObject *array);

/* ---- views of Python objects as tensors (view.c) ---- */
typedef struct kpy_view {
    kelp_tensor tensor;
    PyObject *owner; /* keeps the memory */
    Py_buffer buffer;
    bool has_buffer;
    void *heap; /* strings, packed elements */
} kpy_view;
/* Creates a view of an array, a DLTensor, an object with __dlpack__ or the buffer protocol, a list
 * or a number. Contiguous objects are not copied. `expected` may be KELP_DTYPE_INVALID. `writable`
 * rejects read-only and strided memory. `what` names the object in messages. */
int kpy_view_init(kpy_view *view, PyObject *object, kelp_dtype expected, bool writable,
                  const char *what);
void kpy_view_deinit(kpy_view *view);
/* Sets the type of values that contain another object in their attribute `_data`. */
PyObject *kpy_set_value_type(PyObject *self, PyObject *type);
/* Returns a new reference to the object that a value contains, or to `object` itself; NULL with an
 * exception. */
PyObject *kpy_content(PyObject *object);
/* Returns whether the object is such a value. */
bool kpy_is_value(PyObject *object);
/* Does the same as kpy_view_init and keeps strides, for kernels. */
int kpy_view_strided(kpy_view *view, PyObject *object, bool writable, const char *what);
/* Copies a tensor to a numpy array. Strings become str; lists are converted by kpy_list_copy. */
PyObject *kpy_tensor_copy(const kelp_tensor *tensor);
/* ---- sequences, optionals, maps (list.c) ---- */
/* Creates a view of a list of arrays (`rank` 1), an optional, None or its value (2), or a dict (3).
 * `map_values`: type that values of dicts are converted to, or KELP_DTYPE_INVALID. */
int kpy_view_list(kpy_view *view, PyObject *object, int32_t rank, kelp_dtype map_values,
                  const char *what);
/* Copies to a list, to None or the value, or to a dict. */
PyObject *kpy_list_copy(const kelp_tensor *list);
/* Convert packed elements (2 and 4 bits) to one per byte, the format of ml_dtypes, and back. */
void kpy_unpack(kelp_dtype dtype, int64_t count, const uint8_t *packed, uint8_t *bytes);
void kpy_pack(kelp_dtype dtype, int64_t count, const uint8_t *bytes, uint8_t *packed);

/* ---- DLTensor (dltensor.c) ---- */
typedef struct kpy_dltensor {
    PyObject_HEAD DLTensor dl;
    int64_t extents[KELP_MAX_RANK];
    int64_t steps[KELP_MAX_RANK];
    kelp_dtype dtype;
    bool read_only;
    bool declared_read_only; /* by the user: writable=False */
    PyObject *owner;         /* keeps the memory; NULL if the caller does */
    PyObject *managed;       /* the consumed capsule, or NULL */
    Py_ssize_t buffer_shape[KELP_MAX_RANK];
    Py_ssize_t buffer_strides[KELP_MAX_RANK];
} kpy_dltensor;
extern PyTypeObject *kpy_dltensor_type;
int kpy_dltensor_ready(PyObject *module);
/* Converts an object with __dlpack__, or a capsule, to a DLTensor. For a device other than the CPU,
 * its producer makes the memory ready for work on `stream`. */
PyObject *kpy_dltensor_import(PyObject *object, DLDevice device, void *stream);
/* Calls __dlpack_device__. Returns 1, 0 if the object lacks it, or -1 with an exception. */
int kpy_dlpack_device(PyObject *object, DLDevice *out);

/* Size of the name of a device. */
#define KPY_DEVICE_NAME 48
/* Returns whether the CPU can read the memory of a device. */
bool kpy_is_host(DLDevice device);
/* Formats a device: "cpu", "cuda:1". */
void kpy_device_name(DLDevice device, char out[KPY_DEVICE_NAME]);
/* Parses a device, and writes its name without the number to `out_kind`. */
int kpy_device_parse(PyObject *text, DLDevice *out, char out_kind[KPY_DEVICE_NAME]);

/* ---- cancelling runs in flight (interrupt.c) ---- */
/* Begin releases the GIL, and end acquires it. Between them, the engine polls kpy_watch_stops,
 * which may acquire it to run Python's signal handlers. */
typedef struct kpy_watch {
    PyThreadState *thread;
    const _Atomic bool *terminate; /* of RunOptions, or NULL */
    bool main;                     /* the thread that runs signal handlers */
    _Atomic bool raised;
} kpy_watch;
void kpy_watch_begin(kpy_watch *watch, const _Atomic bool *terminate);
/* Implements kelp_interrupt_fn; `userp` is the watch. */
bool kpy_watch_stops(void *userp);
/* Returns true if a signal handler raised. Its exception is set, and the call fails with it. */
bool kpy_watch_end(kpy_watch *watch);
/* Accepts a RunOptions, None or NULL; -1 with TypeError for other objects. */
int kpy_run_options(PyObject *object, const _Atomic bool **out);
/* Returns whether an object is a RunOptions with adapters. */
bool kpy_run_options_adapt(PyObject *options);
int kpy_interrupt_ready(PyObject *module);
/* Returns the identifier of the thread that runs signal handlers, as threading.get_ident() does. */
PyObject *kpy_main_thread(PyObject *self, PyObject *args);

/* ---- runtime and session (session.c) ---- */
typedef struct kpy_runtime {
    PyObject_HEAD kelp_runtime *runtime;
} kpy_runtime;
extern PyTypeObject *kpy_runtime_type;
int kpy_session_ready(PyObject *module);
/* Sets the severity of the log for runs and sessions that do not have one. */
PyObject *kpy_set_default_severity(PyObject *self, PyObject *value);

/* ---- kernels (kernel.c) ---- */
int kpy_kernel_ready(PyObject *module);

#endif
