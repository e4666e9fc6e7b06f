/* SPDX-License-Identifier: Apache-2.0 */
/* Python.h restricted to the limited API of CPython 3.10, so that one build of the extensions works
 * with CPython 3.10 and every later version (abi3). The declarations below are those that the
 * headers withhold at this level. All of them are exported by CPython 3.10 with the same layout,
 * and belong to the stable ABI since the version given: the buffer protocol (3.11) and vectorcall
 * (3.12). Source: CPython's Misc/stable_abi.toml and PEP 590. */
#ifndef KPY_LIMITED_H_
#define KPY_LIMITED_H_

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

/* ---- the buffer protocol ---- */
typedef struct Py_buffer {
    void *buf;
    PyObject *obj;
    Py_ssize_t len;
    Py_ssize_t itemsize;
    int readonly;
    int ndim;
    char *format;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    Py_ssize_t *suboffsets;
    void *internal;
} Py_buffer;

#define PyBUF_SIMPLE 0
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_ND 0x0008
#define PyBUF_STRIDES (0x0010 | PyBUF_ND)
#define PyBUF_C_CONTIGUOUS (0x0020 | PyBUF_STRIDES)

/* Slot of PyType_FromSpec. */
#define Py_bf_getbuffer 1

PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject *object);
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *object, Py_buffer *out, int flags);
PyAPI_FUNC(int) PyBuffer_FillInfo(Py_buffer *out, PyObject *object, void *data, Py_ssize_t size,
                                  int read_only, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *buffer);

/* ---- vectorcall ---- */
typedef PyObject *(*vectorcallfunc)(PyObject *callable, PyObject *const *args, size_t nargsf,
                                    PyObject *names);
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
PyAPI_FUNC(PyObject *) PyVectorcall_Call(PyObject *callable, PyObject *args, PyObject *words);

/* Returns the number of positional arguments; the highest bit of `nargsf` is a flag. */
static inline Py_ssize_t kpy_vectorcall_nargs(size_t nargsf) {
    return (Py_ssize_t)(nargsf << 1 >> 1);
}

/* ---- short forms ---- */
/* Frees the memory of an object at the end of its deallocator. */
static inline void kpy_type_free(PyTypeObject *type, PyObject *object) {
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
}

/* Returns the borrowed element `i` of a list or tuple (the result of PySequence_Fast). */
static inline PyObject *kpy_sequence_item(PyObject *sequence, Py_ssize_t i) {
    return PyList_Check(sequence) ? PyList_GetItem(sequence, i) : PyTuple_GetItem(sequence, i);
}

/* Replaces an owned reference, or NULL, by `take_value`. */
static inline void kpy_replace(PyObject **inout, PyObject *take_value) {
    PyObject *previous = *inout;
    *inout = take_value;
    Py_XDECREF(previous);
}

#endif
