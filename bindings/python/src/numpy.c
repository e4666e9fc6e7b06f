/* SPDX-License-Identifier: Apache-2.0 */
/* numpy arrays through numpy's published function table and the first fields of its array object,
 * so that the build does not need numpy and calls do not use Python. The indices of the table are
 * part of numpy's ABI, versions 0x01000009 (1.x) and 0x02000000 (2.x). With another version,
 * numpy's Python functions are called. */
#include "kpy.h"

#include <string.h>

typedef PyObject *(*new_from_descr_fn)(PyTypeObject *type, PyObject *descr, int nd,
                                       const Py_ssize_t *shape, const Py_ssize_t *strides,
                                       void *data, int flags, PyObject *base);

typedef int (*set_base_fn)(PyObject *array, PyObject *base);

static struct {
    bool loaded;
    PyObject *module;
    PyTypeObject *array_type, *bool_type;
    PyTypeObject *scalar_type;        /* numpy.generic: scalars */
    new_from_descr_fn new_from_descr; /* NULL if the ABI differs */
    set_base_fn set_base;
    PyObject *empty, *ascontiguousarray, *asarray;
    PyObject *dtypes[KELP_DTYPE_COUNT]; /* NULL if numpy lacks it */
    bool tried_ml_dtypes;
} np;

static const kelp_dtype plain[] = {KELP_F32, KELP_U8,   KELP_I8,  KELP_U16, KELP_I16,
                                   KELP_I32, KELP_I64,  KELP_F16, KELP_F64, KELP_U32,
                                   KELP_U64, KELP_BOOL, KELP_C64, KELP_C128};

static PyObject *make_dtype(PyObject *what) {
    PyObject *function = PyObject_GetAttrString(np.module, "dtype");
    PyObject *dtype = function ? PyObject_CallFunctionObjArgs(function, what, NULL) : NULL;
    Py_XDECREF(function);
    return dtype;
}

static int load_dtypes(void) {
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        PyObject *name = PyUnicode_FromString(kelp_dtype_name(plain[i]));
        np.dtypes[plain[i]] = name ? make_dtype(name) : NULL;
        Py_XDECREF(name);
        if (np.dtypes[plain[i]] == NULL)
            return -1;
    }
    PyObject *name = PyUnicode_FromString("O");
    np.dtypes[KELP_STRING] = name ? make_dtype(name) : NULL;
    Py_XDECREF(name);
    return np.dtypes[KELP_STRING] ? 0 : -1;
}

/* numpy 2 moved the module with the table. */
static void load_table(void) {
    PyObject *core = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (core == NULL) {
        PyErr_Clear();
        core = PyImport_ImportModule("numpy.core._multiarray_umath");
    }
    PyObject *capsule = core ? PyObject_GetAttrString(core, "_ARRAY_API") : NULL;
    void **table = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    PyErr_Clear();
    if (table != NULL) {
        unsigned version;
        unsigned (*get_version)(void);
        memcpy(&get_version, &table[0], sizeof get_version);
        version = get_version();
        if ((version == 0x01000009u || version == 0x02000000u) &&
            (PyTypeObject *)table[2] == np.array_type) {
            memcpy(&np.new_from_descr, &table[94], sizeof np.new_from_descr);
            memcpy(&np.set_base, &table[282], sizeof np.set_base);
        }
    }
    Py_XDECREF(capsule);
    Py_XDECREF(core);
}

int kpy_numpy_init(void) {
    if (np.loaded)
        return 0;
    np.module = PyImport_ImportModule("numpy");
    if (np.module == NULL)
        return -1;
    np.array_type = (PyTypeObject *)PyObject_GetAttrString(np.module, "ndarray");
    np.scalar_type = (PyTypeObject *)PyObject_GetAttrString(np.module, "generic");
    np.bool_type = (PyTypeObject *)PyObject_GetAttrString(np.module, "bool_");
    np.empty = PyObject_GetAttrString(np.module, "empty");
    np.ascontiguousarray = PyObject_GetAttrString(np.module, "ascontiguousarray");
    np.asarray = PyObject_GetAttrString(np.module, "asarray");
    if (!np.array_type || !np.scalar_type || !np.bool_type || !np.empty || !np.ascontiguousarray ||
        !np.asarray || load_dtypes())
        return -1;
    load_table();
    np.loaded = true;
    return 0;
}

bool kpy_is_array(PyObject *object) {
    return np.new_from_descr != NULL &&
           (Py_TYPE(object) == np.array_type || PyObject_TypeCheck(object, np.array_type));
}

bool kpy_is_numpy_scalar(PyObject *object) {
    return PyObject_TypeCheck(object, np.scalar_type);
}

bool kpy_is_numpy_bool(PyObject *object) {
    return Py_TYPE(object) == np.bool_type;
}

/* The types of the package ml_dtypes, loaded when they are used for the first time. */
static void load_ml_dtypes(void) {
    np.tried_ml_dtypes = true;
    PyObject *module = PyImport_ImportModule("ml_dtypes");
    for (int i = 1; module != NULL && i < KELP_DTYPE_COUNT; i++) {
        if (np.dtypes[i] != NULL)
            continue;
        const char *name = kelp_dtype_name((kelp_dtype)i);
        /* numpy's names for two types end in "fn" and "fnu", as in ml_dtypes. */
        const char *theirs = i == KELP_F4E2M1   ? "float4_e2m1fn"
                             : i == KELP_F8E8M0 ? "float8_e8m0fnu"
                             : i == KELP_F6E2M3 ? "float6_e2m3fn"
                             : i == KELP_F6E3M2 ? "float6_e3m2fn"
                                                : name;
        PyObject *type = PyObject_GetAttrString(module, theirs);
        np.dtypes[i] = type ? make_dtype(type) : NULL;
        Py_XDECREF(type);
        PyErr_Clear();
    }
    PyErr_Clear();
    Py_XDECREF(module);
}

PyObject *kpy_numpy_dtype(kelp_dtype dtype) {
    if ((int)dtype > 0 && dtype < KELP_DTYPE_COUNT) {
        if (np.dtypes[dtype] == NULL && !np.tried_ml_dtypes)
            load_ml_dtypes();
        if (np.dtypes[dtype] != NULL)
            return np.dtypes[dtype];
    }
    return kpy_fail(KELP_UNIMPLEMENTED,
                    "numpy does not support %s elements: install the package ml_dtypes",
                    kelp_dtype_name(dtype));
}

static kelp_dtype by_attributes(PyObject *descr) {
    PyObject *kind = PyObject_GetAttrString(descr, "kind");
    PyObject *native = PyObject_GetAttrString(descr, "isnative");
    PyObject *name = PyObject_GetAttrString(descr, "name");
    kelp_dtype dtype = KELP_DTYPE_INVALID;
    if (kind && native && name) {
        const char *k = PyUnicode_AsUTF8AndSize(kind, NULL);
        const char *n = PyUnicode_AsUTF8AndSize(name, NULL);
        if (k && (*k == 'U' || *k == 'S' || *k == 'O' || *k == 'T'))
            dtype = KELP_STRING;
        else if (native == Py_True && n)
            dtype = kelp_dtype_parse(n);
        if (dtype == KELP_DTYPE_INVALID && native == Py_True && !np.tried_ml_dtypes)
            load_ml_dtypes();
        for (int i = 1; dtype == KELP_DTYPE_INVALID && i < KELP_DTYPE_COUNT; i++)
            if (np.dtypes[i] == descr)
                dtype = (kelp_dtype)i;
        if (dtype == KELP_DTYPE_INVALID && k && *k == 'V' && n && !strncmp(n, "void", 4))
            dtype = KELP_STRING; /* bytes of a fixed length */
        if (dtype == KELP_DTYPE_INVALID && !PyErr_Occurred())
            kpy_fail(KELP_INVALID_ARGUMENT, "Kelp does not support numpy's type '%s'%s",
                     n ? n : "?", native == Py_True ? "" : " in foreign byte order");
    }
    Py_XDECREF(kind);
    Py_XDECREF(native);
    Py_XDECREF(name);
    return dtype;
}

kelp_dtype kpy_numpy_dtype_of(PyObject *descr) {
    for (int i = 1; i < KELP_DTYPE_COUNT; i++)
        if (np.dtypes[i] == descr)
            return (kelp_dtype)i;
    return by_attributes(descr);
}

PyObject *kpy_numpy_empty(kelp_dtype dtype, int32_t rank, const int64_t *shape) {
    PyObject *descr = kpy_numpy_dtype(dtype);
    if (descr == NULL)
        return NULL;
    if (np.new_from_descr != NULL && dtype != KELP_STRING) {
        Py_ssize_t extents[KELP_MAX_RANK];
        for (int32_t i = 0; i < rank; i++)
            extents[i] = (Py_ssize_t)shape[i];
        Py_INCREF(descr); /* the function takes the reference */
        return np.new_from_descr(np.array_type, descr, rank, extents, NULL, NULL, 0, NULL);
    }
    PyObject *extents = PyTuple_New(rank);
    for (int32_t i = 0; extents != NULL && i < rank; i++)
        PyTuple_SetItem(extents, i, PyLong_FromLongLong(shape[i]));
    PyObject *array = extents ? PyObject_CallFunctionObjArgs(np.empty, extents, descr, NULL) : NULL;
    Py_XDECREF(extents);
    return array;
}

PyObject *kpy_numpy_over(kelp_dtype dtype, int32_t rank, const Py_ssize_t *shape,
                         const Py_ssize_t *strides, void *data, bool writable, PyObject *base) {
    PyObject *descr = kpy_numpy_dtype(dtype);
    if (descr == NULL)
        return NULL;
    if (np.new_from_descr == NULL) {
        PyObject *bytes =
            PyObject_CallFunctionObjArgs(np.asarray, base, NULL); /* by the buffer protocol */
        return bytes;
    }
    Py_INCREF(descr);
    PyObject *array =
        np.new_from_descr(np.array_type, descr, rank, shape, strides, data,
                          KPY_ARRAY_ALIGNED | (writable ? KPY_ARRAY_WRITEABLE : 0), NULL);
    if (array != NULL && np.set_base(array, Py_NewRef(base)))
        Py_CLEAR(array);
    return array;
}

kelp_dtype kpy_numpy_parse_dtype(PyObject *object) {
    if (PyUnicode_Check(object)) {
        const char *name = PyUnicode_AsUTF8AndSize(object, NULL);
        kelp_dtype dtype = name ? kelp_dtype_parse(name) : KELP_DTYPE_INVALID;
        if (dtype != KELP_DTYPE_INVALID || name == NULL)
            return dtype;
    }
    PyObject *descr = make_dtype(object);
    kelp_dtype dtype = descr ? kpy_numpy_dtype_of(descr) : KELP_DTYPE_INVALID;
    Py_XDECREF(descr);
    return dtype;
}

PyObject *kpy_numpy_compact(PyObject *array) {
    return PyObject_CallFunctionObjArgs(np.ascontiguousarray, array, NULL);
}

PyObject *kpy_numpy_asarray(PyObject *object, kelp_dtype dtype) {
    if (dtype == KELP_DTYPE_INVALID)
        return PyObject_CallFunctionObjArgs(np.asarray, object, NULL);
    PyObject *descr = kpy_numpy_dtype(dtype);
    return descr ? PyObject_CallFunctionObjArgs(np.asarray, object, descr, NULL) : NULL;
}

PyObject *kpy_numpy_items(PyObject *array) {
    PyObject *flat = PyObject_CallMethod(array, "ravel", NULL);
    PyObject *list = flat ? PyObject_CallMethod(flat, "tolist", NULL) : NULL;
    Py_XDECREF(flat);
    return list;
}
