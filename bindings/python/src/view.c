/* SPDX-License-Identifier: Apache-2.0 */
/* Views of Python objects as tensors, without a copy if they are contiguous. */
#include "kpy.h"

#include <stdlib.h>
#include <string.h>

/* ---- elements of less than a byte ---- */
static uint32_t packed_bits(kelp_dtype dtype) {
    uint32_t bits = kelp_dtype_bits(dtype);
    return bits < 8 ? bits : 0;
}

void kpy_unpack(kelp_dtype dtype, int64_t count, const uint8_t *packed, uint8_t *bytes) {
    uint32_t bits = kelp_dtype_bits(dtype), each = 8 / bits;
    uint8_t mask = (uint8_t)((1u << bits) - 1), sign = (uint8_t)(1u << (bits - 1));
    bool is_signed = dtype == KELP_I4 || dtype == KELP_I2;
    for (int64_t i = 0; i < count; i++) {
        uint8_t value = (uint8_t)(packed[i / each] >> (bits * (uint32_t)(i % each))) & mask;
        bytes[i] = is_signed && (value & sign) ? (uint8_t)(value | ~mask) : value;
    }
}

void kpy_pack(kelp_dtype dtype, int64_t count, const uint8_t *bytes, uint8_t *packed) {
    uint32_t bits = kelp_dtype_bits(dtype), each = 8 / bits;
    uint8_t mask = (uint8_t)((1u << bits) - 1);
    memset(packed, 0, (size_t)((count + each - 1) / each));
    for (int64_t i = 0; i < count; i++)
        packed[i / each] |= (uint8_t)((bytes[i] & mask) << (bits * (uint32_t)(i % each)));
}

/* ---- strings ---- */
static int view_strings(kpy_view *view, PyObject *array, int32_t rank, const int64_t *shape) {
    PyObject *items = kpy_numpy_items(array);
    if (items == NULL)
        return -1;
    kpy_replace(&view->owner, items);
    if (!PyList_Check(items)) /* rank 0: the element itself */
        kpy_replace(&view->owner, Py_BuildValue("[O]", items));
    items = view->owner;
    if (items == NULL)
        return -1;
    Py_ssize_t count = PyList_Size(items);
    kelp_string *strings = PyMem_Calloc((size_t)count + 1, sizeof *strings);
    if (strings == NULL)
        return PyErr_NoMemory(), -1;
    view->heap = strings;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(items, i);
        Py_ssize_t length = 0;
        if (PyUnicode_Check(item)) {
            strings[i].data = PyUnicode_AsUTF8AndSize(item, &length);
            if (strings[i].data == NULL)
                return -1;
        } else if (PyBytes_Check(item)) {
            strings[i].data = PyBytes_AsString(item);
            length = PyBytes_Size(item);
        } else {
            kpy_fail(KELP_INVALID_ARGUMENT,
                     "element %zd of a string array has type '%s': expected str or bytes", i,
                     kpy_type_name(item, (char[KPY_TYPE_NAME]){0}));
            return -1;
        }
        strings[i].length = (size_t)length;
    }
    kelp_status *status = kelp_tensor_init(&view->tensor, KELP_STRING, rank, shape, strings);
    return status ? (kpy_raise(status), -1) : 0;
}

/* ---- numpy ---- */
static int describe(kpy_view *view, kelp_dtype dtype, int32_t rank, const Py_ssize_t *shape,
                    void *data) {
    int64_t extents[KELP_MAX_RANK];
    if (rank > KELP_MAX_RANK) {
        kpy_fail(KELP_INVALID_ARGUMENT, "an array has %d dimensions: expected at most %d",
                 (int)rank, KELP_MAX_RANK);
        return -1;
    }
    for (int32_t i = 0; i < rank; i++)
        extents[i] = shape[i];
    kelp_status *status = kelp_tensor_init(&view->tensor, dtype, rank, extents, data);
    return status ? (kpy_raise(status), -1) : 0;
}

static int set_strides(kpy_view *view, const Py_ssize_t *strides, Py_ssize_t itemsize,
                       const char *what) {
    for (int32_t i = 0; i < view->tensor.rank; i++) {
        if (strides[i] % itemsize != 0) {
            kpy_fail(
                KELP_INVALID_ARGUMENT,
                "%s has a stride of %zd bytes, which is not a multiple of the element size %zd",
                what, strides[i], itemsize);
            return -1;
        }
        view->tensor.strides[i] = strides[i] / itemsize;
    }
    return 0;
}

static int refuse_writing(const char *what, const char *why) {
    kpy_fail(KELP_INVALID_ARGUMENT, "%s is not writable: %s", what, why);
    return -1;
}

static int view_packed(kpy_view *view, kelp_dtype dtype, kpy_array *array, bool writable,
                       const char *what) {
    if (writable)
        return refuse_writing(what,
                              "elements of fewer than 8 bits are packed in Kelp and not in numpy");
    if (describe(view, dtype, array->nd, array->shape, array->data))
        return -1;
    size_t bytes = kelp_tensor_bytes(&view->tensor);
    view->heap = PyMem_Malloc(bytes ? bytes : 1);
    if (view->heap == NULL)
        return PyErr_NoMemory(), -1;
    kpy_pack(dtype, kelp_tensor_elements(&view->tensor), (const uint8_t *)array->data, view->heap);
    view->tensor.data = view->heap;
    return 0;
}

static int view_array(kpy_view *view, PyObject *object, kelp_dtype expected, bool writable,
                      bool strided, const char *what) {
    kpy_array *array = (kpy_array *)object;
    kelp_dtype dtype = expected;
    if (expected == KELP_DTYPE_INVALID || expected == KELP_STRING ||
        kpy_numpy_dtype(expected) != array->descr) {
        PyErr_Clear();
        dtype = kpy_numpy_dtype_of(array->descr);
        if (dtype == KELP_DTYPE_INVALID)
            return -1;
    }
    if (writable && !(array->flags & KPY_ARRAY_WRITEABLE))
        return refuse_writing(what, "the array is read-only");
    if (dtype == KELP_STRING) {
        int64_t extents[KELP_MAX_RANK];
        if (writable)
            return refuse_writing(what, "Python owns the strings");
        if (array->nd > KELP_MAX_RANK)
            return describe(view, dtype, array->nd, array->shape, NULL);
        for (int i = 0; i < array->nd; i++)
            extents[i] = array->shape[i];
        return view_strings(view, object, array->nd, extents);
    }
    if (!(array->flags & KPY_ARRAY_C_CONTIGUOUS) && !strided) {
        if (writable)
            return refuse_writing(what,
                                  "the array is not contiguous (see numpy.ascontiguousarray)");
        view->owner = kpy_numpy_compact(object);
        if (view->owner == NULL)
            return -1;
        array = (kpy_array *)view->owner;
    } else {
        Py_INCREF(object);
        view->owner = object;
    }
    if (packed_bits(dtype))
        return view_packed(view, dtype, array, writable, what);
    if (describe(view, dtype, array->nd, array->shape, array->data))
        return -1;
    if (!(array->flags & KPY_ARRAY_WRITEABLE))
        view->tensor.flags |= KELP_TENSOR_READ_ONLY;
    if (strided && !(array->flags & KPY_ARRAY_C_CONTIGUOUS))
        return set_strides(view, array->strides, kelp_dtype_bits(dtype) / 8, what);
    return 0;
}

/* ---- DLTensor and DLPack ---- */
static int view_dltensor(kpy_view *view, PyObject *object, bool writable, bool strided,
                         const char *what) {
    kpy_dltensor *tensor = (kpy_dltensor *)object;
    kelp_status *status = kelp_tensor_from_dl(&tensor->dl, &view->tensor);
    if (status)
        return kpy_raise(status), -1;
    if (!strided && !kpy_is_host(tensor->dl.device)) {
        char name[KPY_DEVICE_NAME];
        kpy_device_name(tensor->dl.device, name);
        kpy_fail(KELP_UNIMPLEMENTED, "%s is on device %s: copy it to the CPU", what, name);
        return -1;
    }
    if (tensor->read_only && writable)
        return refuse_writing(what, "the tensor is read-only");
    if (!strided && !kelp_tensor_is_compact(&view->tensor)) {
        if (writable)
            return refuse_writing(what, "the tensor is not contiguous");
        PyObject *array = kpy_numpy_asarray(object, KELP_DTYPE_INVALID);
        if (array == NULL)
            return -1;
        int failed = view_array(view, array, KELP_DTYPE_INVALID, false, false, what);
        Py_DECREF(array);
        return failed;
    }
    if (tensor->read_only)
        view->tensor.flags |= KELP_TENSOR_READ_ONLY;
    Py_INCREF(object);
    view->owner = object;
    return 0;
}

/* ---- the buffer protocol ---- */
static kelp_dtype buffer_dtype(const Py_buffer *buffer) {
    const char *format = buffer->format ? buffer->format : "B";
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    if (format[0] == 'Z' && format[1])
        return format[1] == 'f' ? KELP_C64 : format[1] == 'd' ? KELP_C128 : KELP_DTYPE_INVALID;
    if (format[0] == '\0' || format[1] != '\0')
        return KELP_DTYPE_INVALID;
    static const struct {
        char letters[8];
        kelp_dtype by_size[4]; /* of 1, 2, 4, 8 bytes */
    } kinds[] = {
        {"bhilqn", {KELP_I8, KELP_I16, KELP_I32, KELP_I64}},
        {"BHILQN", {KELP_U8, KELP_U16, KELP_U32, KELP_U64}},
        {"efd", {KELP_DTYPE_INVALID, KELP_F16, KELP_F32, KELP_F64}},
        {"?", {KELP_BOOL, KELP_DTYPE_INVALID, KELP_DTYPE_INVALID, KELP_DTYPE_INVALID}},
        {"c", {KELP_U8, KELP_DTYPE_INVALID, KELP_DTYPE_INVALID, KELP_DTYPE_INVALID}},
    };
    int size = buffer->itemsize == 1   ? 0
               : buffer->itemsize == 2 ? 1
               : buffer->itemsize == 4 ? 2
               : buffer->itemsize == 8 ? 3
                                       : -1;
    for (size_t i = 0; size >= 0 && i < sizeof kinds / sizeof *kinds; i++)
        if (strchr(kinds[i].letters, format[0]))
            return kinds[i].by_size[size];
    return KELP_DTYPE_INVALID;
}

static int view_buffer(kpy_view *view, PyObject *object, bool writable, bool strided,
                       const char *what) {
    int flags = PyBUF_FORMAT | (strided ? PyBUF_STRIDES : PyBUF_C_CONTIGUOUS) |
                (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, &view->buffer, flags)) {
        if (!PyErr_ExceptionMatches(PyExc_BufferError))
            return -1;
        PyErr_Clear();
        if (writable)
            return refuse_writing(what, "the buffer is read-only or not contiguous");
        PyObject *array = kpy_numpy_asarray(object, KELP_DTYPE_INVALID);
        int failed = array ? view_array(view, array, KELP_DTYPE_INVALID, false, false, what) : -1;
        Py_XDECREF(array);
        return failed;
    }
    view->has_buffer = true;
    kelp_dtype dtype = buffer_dtype(&view->buffer);
    if (dtype == KELP_DTYPE_INVALID) {
        kpy_fail(KELP_INVALID_ARGUMENT, "%s: unsupported buffer format '%s'", what,
                 view->buffer.format ? view->buffer.format : "B");
        return -1;
    }
    if (describe(view, dtype, view->buffer.ndim, view->buffer.shape, view->buffer.buf))
        return -1;
    if (view->buffer.readonly)
        view->tensor.flags |= KELP_TENSOR_READ_ONLY;
    return strided ? set_strides(view, view->buffer.strides, view->buffer.itemsize, what) : 0;
}

/* ---- OrtValue ---- */
static PyTypeObject *value_type;

PyObject *kpy_set_value_type(PyObject *self, PyObject *type) {
    (void)self;
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "set_value_type: expected a type");
        return NULL;
    }
    Py_XDECREF(value_type);
    value_type = (PyTypeObject *)Py_NewRef(type);
    Py_RETURN_NONE;
}

bool kpy_is_value(PyObject *object) {
    return value_type != NULL && PyObject_TypeCheck(object, value_type);
}

PyObject *kpy_content(PyObject *object) {
    return kpy_is_value(object) ? PyObject_GetAttrString(object, "_data") : Py_NewRef(object);
}

static int look(kpy_view *view, PyObject *object, kelp_dtype expected, bool writable, bool strided,
                const char *what) {
    view->owner = NULL;
    view->heap = NULL;
    view->has_buffer = false;
    if (kpy_is_array(object))
        return view_array(view, object, expected, writable, strided, what);
    if (Py_TYPE(object) == kpy_dltensor_type)
        return view_dltensor(view, object, writable, strided, what);
    if (kpy_is_value(object)) {
        PyObject *content = kpy_content(object);
        int failed = content ? look(view, content, expected, writable, strided, what) : -1;
        Py_XDECREF(content);
        return failed;
    }
    PyObject *dlpack = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack__");
    if (dlpack != NULL) {
        Py_DECREF(dlpack);
        PyObject *tensor = kpy_dltensor_import(object, (DLDevice){kDLCPU, 0}, NULL);
        int failed = tensor ? view_dltensor(view, tensor, writable, strided, what) : -1;
        Py_XDECREF(tensor);
        return failed;
    }
    PyErr_Clear();
    /* bytes is one string if a string is expected, not an array of numbers */
    if (PyObject_CheckBuffer(object) && expected != KELP_STRING)
        return view_buffer(view, object, writable, strided, what);
    if (writable)
        return refuse_writing(what, "it is not an array");
    PyObject *array = kpy_numpy_asarray(object, expected);
    int failed = array ? view_array(view, array, expected, false, strided, what) : -1;
    Py_XDECREF(array);
    return failed;
}

int kpy_view_init(kpy_view *view, PyObject *object, kelp_dtype expected, bool writable,
                  const char *what) {
    if (look(view, object, expected, writable, false, what) == 0)
        return 0;
    kpy_view_deinit(view);
    return -1;
}

int kpy_view_strided(kpy_view *view, PyObject *object, bool writable, const char *what) {
    if (look(view, object, KELP_DTYPE_INVALID, writable, true, what) == 0)
        return 0;
    kpy_view_deinit(view);
    return -1;
}

void kpy_view_deinit(kpy_view *view) {
    if (view->has_buffer)
        PyBuffer_Release(&view->buffer);
    view->has_buffer = false;
    if (view->heap)
        PyMem_Free(view->heap);
    view->heap = NULL;
    Py_CLEAR(view->owner);
}

/* ---- results ---- */
static PyObject *copy_strings(const kelp_tensor *tensor) {
    int64_t count = kelp_tensor_elements(tensor);
    PyObject *array = kpy_numpy_empty(KELP_STRING, tensor->rank, tensor->shape);
    PyObject *flat = array ? PyObject_CallMethod(array, "ravel", NULL) : NULL; /* a view */
    const kelp_string *strings = tensor->data;
    for (int64_t i = 0; flat != NULL && i < count; i++) {
        PyObject *item = PyUnicode_DecodeUTF8(strings[i].data ? strings[i].data : "",
                                              (Py_ssize_t)strings[i].length, NULL);
        if (item == NULL && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
            PyErr_Clear(); /* invalid UTF-8 stays bytes */
            item = PyBytes_FromStringAndSize(strings[i].data, (Py_ssize_t)strings[i].length);
        }
        if (item == NULL || PySequence_SetItem(flat, (Py_ssize_t)i, item))
            Py_CLEAR(flat);
        Py_XDECREF(item);
    }
    if (flat == NULL)
        Py_CLEAR(array);
    Py_XDECREF(flat);
    return array;
}

PyObject *kpy_tensor_copy(const kelp_tensor *tensor) {
    if (tensor->dtype == KELP_STRING)
        return copy_strings(tensor);
    if (tensor->dtype == KELP_LIST)
        return kpy_list_copy(tensor);
    PyObject *array = kpy_numpy_empty(tensor->dtype, tensor->rank, tensor->shape);
    if (array == NULL)
        return NULL;
    if (kelp_tensor_elements(tensor) == 0)
        return array;
    kpy_view view;
    if (packed_bits(tensor->dtype)) {
        kpy_unpack(tensor->dtype, kelp_tensor_elements(tensor), tensor->data,
                   (uint8_t *)((kpy_array *)array)->data);
    } else if (kpy_view_init(&view, array, tensor->dtype, true, "the result")) {
        Py_CLEAR(array);
    } else {
        memcpy(view.tensor.data, tensor->data, kelp_tensor_bytes(tensor));
        kpy_view_deinit(&view);
    }
    return array;
}
