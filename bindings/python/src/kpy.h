/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the extension kelp._kelp share. Every function here is called with the GIL
 * held and, where it returns NULL or -1, has set a Python exception.
 */
#ifndef KPY_H_
#define KPY_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <kelp/engine.h>

/* ---- errors (module.c) ---- */
/* Raises KelpError for `take_status`, which is freed. Returns NULL, for `return kpy_raise(…)`. */
PyObject *kpy_raise(kelp_status *take_status);
/* Raises KelpError of a code with a message. */
PyObject *kpy_fail(kelp_code code, const char *format, ...);

/* ---- numpy without its headers (numpy.c) ---- */
/* The head of numpy's array object: the part of its ABI that has been the same since 1.7. */
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

/* Loads numpy once. */
int kpy_numpy_init(void);
bool kpy_is_array(PyObject *object);
/* A number of numpy's, such as numpy.float32(1). */
bool kpy_is_numpy_scalar(PyObject *object);
/* Borrowed dtype object of a type; NULL with an exception where numpy has none (bfloat16 and the
 * like need the package ml_dtypes). Strings: object. */
PyObject *kpy_numpy_dtype(kelp_dtype dtype);
/* The type of a dtype object: KELP_STRING for object, str and bytes; KELP_DTYPE_INVALID with an
 * exception for one that Kelp has not, or whose byte order is foreign. */
kelp_dtype kpy_numpy_dtype_of(PyObject *descr);
/* A new array of this type and shape, not filled. */
PyObject *kpy_numpy_empty(kelp_dtype dtype, int32_t rank, const int64_t *shape);
/* An array over memory that `base` keeps; `strides` in bytes. */
PyObject *kpy_numpy_over(kelp_dtype dtype, int32_t rank, const Py_ssize_t *shape,
                         const Py_ssize_t *strides, void *data, bool writable, PyObject *base);
/* From a name, a dtype or a type; KELP_DTYPE_INVALID with an exception. */
kelp_dtype kpy_numpy_parse_dtype(PyObject *object);
/* numpy.ascontiguousarray */
PyObject *kpy_numpy_compact(PyObject *array);
/* numpy.asarray(object, dtype); KELP_DTYPE_INVALID: numpy chooses. */
PyObject *kpy_numpy_asarray(PyObject *object, kelp_dtype dtype);
/* numpy.asarray(object).astype(object), flat list of items: for strings. */
PyObject *kpy_numpy_items(PyObject *array);

/* ---- views of Python objects as tensors (view.c) ---- */
typedef struct kpy_view {
    kelp_tensor tensor;
    PyObject *owner; /* keeps the memory */
    Py_buffer buffer;
    bool has_buffer;
    void *heap; /* strings, packed elements */
} kpy_view;
/* Looks at an array, a DLTensor, anything with __dlpack__ or the buffer protocol, a list or a
 * number, without a copy where the object is compact already. `expected` may be
 * KELP_DTYPE_INVALID. `writable`: the memory is written, so that read-only or strided memory is
 * refused. `what` names it in messages. */
int kpy_view_init(kpy_view *view, PyObject *object, kelp_dtype expected, bool writable,
                  const char *what);
void kpy_view_deinit(kpy_view *view);
/* As kpy_view_init, keeping strides as they are (for kernels, which see them). */
int kpy_view_strided(kpy_view *view, PyObject *object, bool writable, const char *what);
/* A numpy array of a tensor's elements, copied. Strings become str; lists what kpy_list_copy says.
 */
PyObject *kpy_tensor_copy(const kelp_tensor *tensor);
/* ---- sequences, optionals, maps (list.c) ---- */
/* Looks at a list of arrays (`rank` 1), None or what an optional holds (2), or a dict (3). */
int kpy_view_list(kpy_view *view, PyObject *object, int32_t rank, const char *what);
/* A list, None or the element, or a dict, of copies. */
PyObject *kpy_list_copy(const kelp_tensor *list);
/* Packed elements (2 and 4 bits) to one a byte, as ml_dtypes has them, and back. */
void kpy_unpack(kelp_dtype dtype, int64_t count, const uint8_t *packed, uint8_t *bytes);
void kpy_pack(kelp_dtype dtype, int64_t count, const uint8_t *bytes, uint8_t *packed);

/* ---- DLTensor (dltensor.c) ---- */
typedef struct kpy_dltensor {
    PyObject_HEAD DLTensor dl;
    int64_t extents[KELP_MAX_RANK];
    int64_t steps[KELP_MAX_RANK];
    kelp_dtype dtype;
    bool read_only;
    PyObject *owner;   /* keeps the memory, or NULL: the caller does */
    PyObject *managed; /* the capsule it came in, consumed, or NULL */
    Py_ssize_t buffer_shape[KELP_MAX_RANK];
    Py_ssize_t buffer_strides[KELP_MAX_RANK];
} kpy_dltensor;
extern PyTypeObject *kpy_dltensor_type;
int kpy_dltensor_ready(PyObject *module);
/* Takes an object with __dlpack__ as a DLTensor. */
PyObject *kpy_dltensor_import(PyObject *object);

/* ---- stopping what is under way (interrupt.c) ---- */
/* Begin releases the GIL, end takes it again. Between them kpy_watch_stops is asked, which may take
 * it to run Python's signal handlers. */
typedef struct kpy_watch {
    PyThreadState *thread;
    const _Atomic bool *terminate; /* of RunOptions; or NULL */
    bool main;                     /* the thread that runs signal handlers */
    _Atomic bool raised;
} kpy_watch;
void kpy_watch_begin(kpy_watch *watch, const _Atomic bool *terminate);
/* A kelp_interrupt_fn; `userp` is the watch. */
bool kpy_watch_stops(void *userp);
/* true when a signal handler raised: its exception is set, and the call fails with that. */
bool kpy_watch_end(kpy_watch *watch);
/* Of a RunOptions, None or NULL; -1 with TypeError for anything else. */
int kpy_run_options(PyObject *object, const _Atomic bool **out);
int kpy_interrupt_ready(PyObject *module);
/* Identity of the thread that runs signal handlers, as threading.get_ident() has it. */
PyObject *kpy_main_thread(PyObject *self, PyObject *args);

/* ---- runtime and session (session.c) ---- */
typedef struct kpy_runtime {
    PyObject_HEAD kelp_runtime *runtime;
} kpy_runtime;
extern PyTypeObject *kpy_runtime_type;
int kpy_session_ready(PyObject *module);

/* ---- kernels (kernel.c) ---- */
int kpy_kernel_ready(PyObject *module);

#endif
