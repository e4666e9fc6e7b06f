/* SPDX-License-Identifier: Apache-2.0 */
/* kelp.DLTensor: a DLPack tensor on memory with another owner. It is created from an address, an
 * array or a DLPack capsule, and converts to each of them without a copy. Source: DLPack 1.1,
 * "Python Specification". */
#include "kpy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PyTypeObject *kpy_dltensor_type;

/* ---- import ---- */
static void release_managed(PyObject *holder) {
    const char *name = PyCapsule_GetName(holder);
    if (name && !strcmp(name, "kelp_versioned")) {
        DLManagedTensorVersioned *managed = PyCapsule_GetPointer(holder, name);
        if (managed && managed->deleter)
            managed->deleter(managed);
    } else {
        DLManagedTensor *managed = PyCapsule_GetPointer(holder, name);
        if (managed && managed->deleter)
            managed->deleter(managed);
    }
}

static int adopt(kpy_dltensor *self, const kelp_tensor *tensor) {
    self->dtype = tensor->dtype;
    self->read_only = tensor->flags & KELP_TENSOR_READ_ONLY;
    kelp_status *status = kelp_tensor_to_dl(tensor, &self->dl);
    if (status)
        return kpy_raise(status), -1;
    memcpy(self->extents, tensor->shape, sizeof self->extents);
    memcpy(self->steps, tensor->strides, sizeof self->steps);
    self->dl.shape = self->extents;
    self->dl.strides = self->steps;
    Py_ssize_t size = (Py_ssize_t)(kelp_dtype_bits(self->dtype) + 7) / 8;
    for (int32_t i = 0; i < tensor->rank; i++) {
        self->buffer_shape[i] = (Py_ssize_t)tensor->shape[i];
        self->buffer_strides[i] = (Py_ssize_t)tensor->strides[i] * size;
    }
    return 0;
}

/* Takes the tensor of a capsule, which is consumed. */
static int consume(kpy_dltensor *self, PyObject *capsule) {
    const char *name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;
    kelp_tensor tensor;
    kelp_status *status;
    if (name && !strcmp(name, "dltensor_versioned")) {
        DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, name);
        if (managed->version.major != DLPACK_MAJOR_VERSION) {
            kpy_fail(KELP_UNIMPLEMENTED, "a DLPack tensor has version %u.%u: expected 1.x",
                     managed->version.major, managed->version.minor);
            return -1;
        }
        status = kelp_tensor_from_dl(&managed->dl_tensor, &tensor);
        if (status)
            return kpy_raise(status), -1;
        if (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY)
            tensor.flags |= KELP_TENSOR_READ_ONLY;
        self->managed = PyCapsule_New(managed, "kelp_versioned", release_managed);
        if (self->managed == NULL)
            return -1;
        (void)PyCapsule_SetName(capsule, "used_dltensor_versioned");
    } else if (name && !strcmp(name, "dltensor")) {
        DLManagedTensor *managed = PyCapsule_GetPointer(capsule, name);
        status = kelp_tensor_from_dl(&managed->dl_tensor, &tensor);
        if (status)
            return kpy_raise(status), -1;
        self->managed = PyCapsule_New(managed, "kelp_legacy", release_managed);
        if (self->managed == NULL)
            return -1;
        (void)PyCapsule_SetName(capsule, "used_dltensor");
    } else {
        kpy_fail(KELP_INVALID_ARGUMENT,
                 "invalid capsule '%s': expected 'dltensor' or 'dltensor_versioned' (a capsule can "
                 "be used once)",
                 name ? name : "");
        return -1;
    }
    (void)PyCapsule_SetDestructor(capsule, NULL);
    return adopt(self, &tensor);
}

/* Returns the stream that a producer gets: 1 is CUDA's default stream, 0 that of ROCm. */
static PyObject *stream_of(DLDevice device, void *stream) {
    if (stream == NULL && device.device_type == kDLCUDA)
        return PyLong_FromLong(1);
    return PyLong_FromVoidPtr(stream);
}

static PyObject *ask_dlpack(PyObject *object, DLDevice device, void *stream) {
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (method == NULL)
        return NULL;
    PyObject *none = PyTuple_New(0), *capsule = NULL;
    PyObject *words = kpy_is_host(device)
                          ? PyDict_New()
                          : Py_BuildValue("{s:N}", "stream", stream_of(device, stream));
    PyObject *version = Py_BuildValue("(ii)", 1, 1);
    if (none && words && version && PyDict_SetItemString(words, "max_version", version) == 0)
        capsule = PyObject_Call(method, none, words);
    if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError) && words) {
        PyErr_Clear(); /* a producer from before version 1.0 */
        if (PyDict_DelItemString(words, "max_version") == 0)
            capsule = PyObject_Call(method, none, words);
    }
    Py_XDECREF(none);
    Py_XDECREF(words);
    Py_XDECREF(version);
    Py_DECREF(method);
    return capsule;
}

PyObject *kpy_dltensor_import(PyObject *object, DLDevice device, void *stream) {
    PyObject *capsule =
        PyCapsule_CheckExact(object) ? Py_NewRef(object) : ask_dlpack(object, device, stream);
    if (capsule == NULL)
        return NULL;
    kpy_dltensor *self = (kpy_dltensor *)PyType_GenericAlloc(kpy_dltensor_type, 0);
    if (self != NULL && consume(self, capsule))
        Py_CLEAR(self);
    Py_DECREF(capsule);
    return (PyObject *)self;
}

int kpy_dlpack_device(PyObject *object, DLDevice *out) {
    PyObject *method = PyObject_GetAttrString(object, "__dlpack_device__");
    if (method == NULL) {
        PyErr_Clear();
        return 0;
    }
    PyObject *pair = PyObject_CallNoArgs(method);
    PyObject *items = pair ? PySequence_Fast(pair, "__dlpack_device__ must return a pair") : NULL;
    if (items != NULL && PySequence_Size(items) != 2)
        PyErr_SetString(PyExc_TypeError, "__dlpack_device__ must return a pair");
    if (items != NULL && !PyErr_Occurred()) {
        out->device_type = (DLDeviceType)PyLong_AsLong(kpy_sequence_item(items, 0));
        out->device_id = (int32_t)PyLong_AsLong(kpy_sequence_item(items, 1));
    }
    Py_DECREF(method);
    Py_XDECREF(pair);
    Py_XDECREF(items);
    return PyErr_Occurred() ? -1 : 1;
}

/* ---- devices ---- */
static const struct {
    const char *name;
    DLDeviceType type;
} devices[] = {{"cpu", kDLCPU},       {"cuda", kDLCUDA},   {"rocm", kDLROCM},
               {"vulkan", kDLVulkan}, {"metal", kDLMetal}, {"opencl", kDLOpenCL}};

bool kpy_is_host(DLDevice device) {
    return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
           device.device_type == kDLROCMHost;
}

void kpy_device_name(DLDevice device, char out[KPY_DEVICE_NAME]) {
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (devices[i].type != device.device_type)
            continue;
        if (device.device_type == kDLCPU && device.device_id == 0)
            snprintf(out, KPY_DEVICE_NAME, "cpu");
        else
            snprintf(out, KPY_DEVICE_NAME, "%s:%d", devices[i].name, (int)device.device_id);
        return;
    }
    snprintf(out, KPY_DEVICE_NAME, "device type %d:%d", (int)device.device_type,
             (int)device.device_id);
}

int kpy_device_parse(PyObject *text, DLDevice *out, char out_kind[KPY_DEVICE_NAME]) {
    const char *name = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : "";
    if (name == NULL)
        return -1;
    size_t length = strcspn(name, ":");
    char *end = NULL;
    long number = name[length] == ':' && name[length + 1] >= '0' && name[length + 1] <= '9'
                      ? strtol(name + length + 1, &end, 10)
                      : 0;
    bool good = name[length] == '\0' || (end != NULL && *end == '\0' && number <= INT32_MAX);
    for (size_t i = 0; good && i < sizeof devices / sizeof *devices; i++) {
        if (strlen(devices[i].name) != length || memcmp(devices[i].name, name, length) != 0)
            continue;
        *out = (DLDevice){devices[i].type, (int32_t)number};
        snprintf(out_kind, KPY_DEVICE_NAME, "%s", devices[i].name);
        return 0;
    }
    kpy_fail(KELP_INVALID_ARGUMENT,
             "unknown device %R: expected cpu, cuda, rocm, vulkan, metal or opencl, and a number "
             "as in 'cuda:0'",
             text);
    return -1;
}

/* ---- creation ---- */
static int read_sequence(PyObject *object, int64_t *out, int32_t *out_count, const char *what) {
    PyObject *items = PySequence_Fast(object, "shape and strides must be sequences of integers");
    if (items == NULL)
        return -1;
    Py_ssize_t count = PySequence_Size(items);
    if (count > KELP_MAX_RANK)
        kpy_fail(KELP_INVALID_ARGUMENT, "%s has %zd values: expected at most %d", what, count,
                 KELP_MAX_RANK);
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < count; i++)
        out[i] = PyLong_AsLongLong(kpy_sequence_item(items, i));
    *out_count = (int32_t)count;
    Py_DECREF(items);
    return PyErr_Occurred() ? -1 : 0;
}

static int from_address(kpy_dltensor *self, PyObject *data, PyObject *shape, PyObject *dtype,
                        PyObject *strides) {
    int64_t extents[KELP_MAX_RANK], steps[KELP_MAX_RANK];
    int32_t rank = 0, step_count = 0;
    kelp_tensor tensor;
    if (shape == Py_None || dtype == Py_None) {
        kpy_fail(KELP_INVALID_ARGUMENT, "a DLTensor at an address requires shape and dtype");
        return -1;
    }
    void *address = PyLong_AsVoidPtr(data);
    if (PyErr_Occurred() || read_sequence(shape, extents, &rank, "shape"))
        return -1;
    kelp_dtype type = kpy_numpy_parse_dtype(dtype);
    if (type == KELP_DTYPE_INVALID)
        return -1;
    kelp_status *status = kelp_tensor_init(&tensor, type, rank, extents, address);
    if (status)
        return kpy_raise(status), -1;
    if (address == NULL && kelp_tensor_elements(&tensor) > 0) {
        kpy_fail(KELP_INVALID_ARGUMENT, "a DLTensor of %lld elements has the address 0",
                 (long long)kelp_tensor_elements(&tensor));
        return -1;
    }
    if (strides != Py_None) {
        if (read_sequence(strides, steps, &step_count, "strides"))
            return -1;
        if (step_count != rank) {
            kpy_fail(KELP_INVALID_ARGUMENT, "shape has %d values and strides %d", (int)rank,
                     (int)step_count);
            return -1;
        }
        memcpy(tensor.strides, steps, (size_t)rank * sizeof *steps);
    }
    return adopt(self, &tensor);
}

/* Checks that memory of an object is on the requested device. */
static int check_device(const kpy_dltensor *self, DLDevice wanted) {
    char has[KPY_DEVICE_NAME], wants[KPY_DEVICE_NAME];
    if (self->dl.device.device_type == wanted.device_type &&
        self->dl.device.device_id == wanted.device_id)
        return 0;
    kpy_device_name(self->dl.device, has);
    kpy_device_name(wanted, wants);
    kpy_fail(KELP_INVALID_ARGUMENT, "the tensor is on device %s: expected %s", has, wants);
    return -1;
}

/* `device` is NULL if it is not given. */
static kpy_dltensor *from_object(PyTypeObject *type, PyObject *data, const DLDevice *device) {
    kpy_view view;
    if (PyCapsule_CheckExact(data)) {
        kpy_dltensor *self = (kpy_dltensor *)kpy_dltensor_import(data, (DLDevice){kDLCPU, 0}, NULL);
        if (self != NULL && device != NULL && check_device(self, *device))
            Py_CLEAR(self);
        return self;
    }
    if (kpy_view_strided(&view, data, false, "the array"))
        return NULL;
    kpy_dltensor *self = (kpy_dltensor *)PyType_GenericAlloc(type, 0);
    if (self != NULL && view.heap != NULL) {
        kpy_fail(KELP_UNIMPLEMENTED, "a DLTensor cannot represent numpy's %s elements",
                 kelp_dtype_name(view.tensor.dtype));
        Py_CLEAR(self);
    }
    if (self != NULL && adopt(self, &view.tensor))
        Py_CLEAR(self);
    if (self != NULL) /* a memoryview keeps the buffer; an array keeps itself */
        self->owner = view.has_buffer ? PyMemoryView_FromObject(data) : Py_NewRef(view.owner);
    kpy_view_deinit(&view);
    if (self != NULL && device != NULL && check_device(self, *device))
        Py_CLEAR(self);
    return self;
}

static int set_writable(kpy_dltensor *self, int writable) {
    if (writable > 0 && self->read_only) {
        kpy_fail(KELP_INVALID_ARGUMENT, "the memory is read-only: writable=True is not possible");
        return -1;
    }
    if (writable == 0)
        self->read_only = self->declared_read_only = true;
    return 0;
}

static PyObject *dltensor_new(PyTypeObject *type, PyObject *args, PyObject *words) {
    static char *names[] = {"data",    "shape", "dtype",    "device",
                            "strides", "owner", "writable", NULL};
    PyObject *data, *shape = Py_None, *dtype = Py_None, *device_name = NULL, *strides = Py_None;
    PyObject *owner = NULL, *writable = Py_None;
    DLDevice device = {kDLCPU, 0};
    char kind[KPY_DEVICE_NAME];
    if (!PyArg_ParseTupleAndKeywords(args, words, "O|OOO$OOO", names, &data, &shape, &dtype,
                                     &device_name, &strides, &owner, &writable))
        return NULL;
    if (device_name != NULL && kpy_device_parse(device_name, &device, kind))
        return NULL;
    int writes = writable == Py_None ? -1 : PyObject_IsTrue(writable);
    if (PyErr_Occurred())
        return NULL;
    kpy_dltensor *self;
    if (PyLong_Check(data)) {
        self = (kpy_dltensor *)PyType_GenericAlloc(type, 0);
        if (self != NULL && from_address(self, data, shape, dtype, strides))
            Py_CLEAR(self);
        if (self != NULL) {
            self->dl.device = device;
            self->owner = Py_XNewRef(owner);
        }
    } else {
        self = from_object(type, data, device_name != NULL ? &device : NULL);
    }
    if (self != NULL && set_writable(self, writes))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void dltensor_dealloc(PyObject *object) {
    kpy_dltensor *self = (kpy_dltensor *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->owner);
    Py_XDECREF(self->managed);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

/* ---- export ---- */
typedef struct exported {
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor legacy;
    } u;
    PyObject *tensor;
} exported;

static void free_export(exported *e) {
    PyGILState_STATE state = PyGILState_Ensure(); /* a consumer may release it on any thread */
    Py_DECREF(e->tensor);
    PyGILState_Release(state);
    free(e);
}

static void free_versioned(DLManagedTensorVersioned *managed) {
    free_export(managed->manager_ctx);
}

static void free_legacy(DLManagedTensor *managed) {
    free_export(managed->manager_ctx);
}

static void drop_capsule(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned") ||
        PyCapsule_IsValid(capsule, "dltensor")) {
        DLManagedTensor *managed = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
        if (!strcmp(PyCapsule_GetName(capsule), "dltensor"))
            managed->deleter(managed);
        else
            free_versioned((DLManagedTensorVersioned *)managed);
    }
}

static PyObject *export(kpy_dltensor *self, bool versioned) {
    if (self->read_only && !versioned) {
        PyErr_SetString(PyExc_BufferError, "the tensor is read-only, which requires DLPack 1.0");
        return NULL;
    }
    exported *e = calloc(1, sizeof *e);
    if (e == NULL)
        return PyErr_NoMemory();
    e->tensor = Py_NewRef((PyObject *)self);
    if (versioned) {
        e->u.versioned =
            (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                       .manager_ctx = e,
                                       .deleter = free_versioned,
                                       .flags = self->read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0,
                                       .dl_tensor = self->dl};
    } else {
        e->u.legacy = (DLManagedTensor){self->dl, e, free_legacy};
    }
    PyObject *capsule =
        PyCapsule_New(e, versioned ? "dltensor_versioned" : "dltensor", drop_capsule);
    if (capsule == NULL)
        free_export(e);
    return capsule;
}

PyDoc_STRVAR(dlpack_doc, "__dlpack__(*, stream=None, max_version=None, dl_device=None, "
                         "copy=None)\n--\n\nReturns a capsule: 'dltensor_versioned' for consumers "
                         "of DLPack 1.0 or later, otherwise 'dltensor'. Nothing is copied.");
static PyObject *dltensor_dlpack(PyObject *object, PyObject *args, PyObject *words) {
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, words, "|$OOOO", names, &stream, &version, &device,
                                     &copy))
        return NULL;
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "copy=True is not supported");
        return NULL;
    }
    long major = 0;
    if (version != Py_None) {
        PyObject *first = PySequence_GetItem(version, 0);
        major = first ? PyLong_AsLong(first) : -1;
        Py_XDECREF(first);
        if (PyErr_Occurred())
            return NULL;
    }
    return export((kpy_dltensor *)object, major >= 1);
}

static PyObject *dltensor_dlpack_device(PyObject *object, PyObject *args) {
    (void)args;
    const kpy_dltensor *self = (const kpy_dltensor *)object;
    return Py_BuildValue("(ii)", (int)self->dl.device.device_type, (int)self->dl.device.device_id);
}

PyDoc_STRVAR(numpy_doc, "numpy()\n--\n\nReturns a numpy array on the same memory.");
static PyObject *dltensor_numpy(PyObject *object, PyObject *args) {
    (void)args;
    kpy_dltensor *self = (kpy_dltensor *)object;
    if (!kpy_is_host(self->dl.device))
        return kpy_fail(KELP_UNIMPLEMENTED, "numpy supports CPU memory only");
    if (kelp_dtype_bits(self->dtype) < 8)
        return kpy_fail(KELP_UNIMPLEMENTED, "numpy does not support packed %s elements",
                        kelp_dtype_name(self->dtype));
    return kpy_numpy_over(self->dtype, self->dl.ndim, self->buffer_shape, self->buffer_strides,
                          (char *)self->dl.data + self->dl.byte_offset, !self->read_only, object);
}

static PyObject *dltensor_array(PyObject *object, PyObject *args, PyObject *words) {
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, words, "|OO", names, &dtype, &copy))
        return NULL;
    PyObject *array = dltensor_numpy(object, NULL);
    if (array != NULL && dtype != Py_None)
        kpy_replace(&array, PyObject_CallMethod(array, "astype", "O", dtype));
    if (array != NULL && copy == Py_True)
        kpy_replace(&array, PyObject_CallMethod(array, "copy", NULL));
    return array;
}

static const char *buffer_format(kelp_dtype dtype) {
    static const char *const formats[KELP_DTYPE_COUNT] = {
        [KELP_F32] = "f", [KELP_U8] = "B",  [KELP_I8] = "b",   [KELP_U16] = "H",  [KELP_I16] = "h",
        [KELP_I32] = "i", [KELP_I64] = "q", [KELP_BOOL] = "?", [KELP_F16] = "e",  [KELP_F64] = "d",
        [KELP_U32] = "I", [KELP_U64] = "Q", [KELP_C64] = "Zf", [KELP_C128] = "Zd"};
    return formats[dtype];
}

static int dltensor_getbuffer(PyObject *object, Py_buffer *buffer, int flags) {
    kpy_dltensor *self = (kpy_dltensor *)object;
    kelp_tensor tensor;
    kelp_status *status = kelp_tensor_from_dl(&self->dl, &tensor);
    kelp_status_free(status);
    bool compact = status == NULL && kelp_tensor_is_compact(&tensor);
    const char *why = !kpy_is_host(self->dl.device) ? "the tensor is not in CPU memory"
                      : !buffer_format(self->dtype) ? "buffers do not support this element type"
                      : self->read_only && (flags & PyBUF_WRITABLE) ? "the tensor is read-only"
                      : !compact && (flags & PyBUF_STRIDES) != PyBUF_STRIDES
                          ? "the tensor is not contiguous"
                      : !compact && (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS
                          ? "the tensor is not contiguous"
                          : NULL;
    if (why) {
        buffer->obj = NULL;
        PyErr_SetString(PyExc_BufferError, why);
        return -1;
    }
    Py_ssize_t size = kelp_dtype_bits(self->dtype) / 8;
    *buffer = (Py_buffer){.buf = tensor.data,
                          .obj = Py_NewRef(object),
                          .len = (Py_ssize_t)kelp_tensor_elements(&tensor) * size,
                          .itemsize = size,
                          .readonly = self->read_only,
                          .ndim = self->dl.ndim,
                          .format = (char *)buffer_format(self->dtype),
                          .shape = self->buffer_shape,
                          .strides = self->buffer_strides};
    return 0;
}

/* ---- attributes ---- */
static PyObject *tuple_of(const int64_t *values, int32_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (int32_t i = 0; tuple && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (value == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, i, value);
    }
    return tuple;
}

static PyObject *get_data(PyObject *object, void *closure) {
    (void)closure;
    const DLTensor *dl = &((kpy_dltensor *)object)->dl;
    return PyLong_FromVoidPtr((char *)dl->data + dl->byte_offset);
}
static PyObject *get_shape(PyObject *object, void *closure) {
    (void)closure;
    const kpy_dltensor *self = (const kpy_dltensor *)object;
    return tuple_of(self->extents, self->dl.ndim);
}
static PyObject *get_strides(PyObject *object, void *closure) {
    (void)closure;
    const kpy_dltensor *self = (const kpy_dltensor *)object;
    return tuple_of(self->steps, self->dl.ndim);
}
static PyObject *get_dtype(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_FromString(kelp_dtype_name(((kpy_dltensor *)object)->dtype));
}
static PyObject *get_device(PyObject *object, void *closure) {
    (void)closure;
    char name[KPY_DEVICE_NAME];
    kpy_device_name(((kpy_dltensor *)object)->dl.device, name);
    return PyUnicode_FromString(name);
}
static PyObject *get_ndim(PyObject *object, void *closure) {
    (void)closure;
    return PyLong_FromLong(((kpy_dltensor *)object)->dl.ndim);
}
static PyObject *get_read_only(PyObject *object, void *closure) {
    (void)closure;
    return PyBool_FromLong(((kpy_dltensor *)object)->read_only);
}
/* Returns the address of the DLTensor struct, for ctypes and cffi. */
static PyObject *get_pointer(PyObject *object, void *closure) {
    (void)closure;
    return PyLong_FromVoidPtr(&((kpy_dltensor *)object)->dl);
}

static PyObject *dltensor_repr(PyObject *object) {
    const kpy_dltensor *self = (const kpy_dltensor *)object;
    char shape[256];
    kelp_shape_format(self->dl.ndim, self->extents, shape, sizeof shape);
    return PyUnicode_FromFormat("DLTensor(%s, %s%s)", kelp_dtype_name(self->dtype), shape,
                                self->read_only ? ", read-only" : "");
}

static PyMethodDef dltensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dltensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     dlpack_doc},
    {"__dlpack_device__", dltensor_dlpack_device, METH_NOARGS, "(device type, device number)"},
    {"__array__", (PyCFunction)(void (*)(void))dltensor_array, METH_VARARGS | METH_KEYWORDS,
     "The tensor as a numpy array on the same memory."},
    {"numpy", dltensor_numpy, METH_NOARGS, numpy_doc},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef dltensor_getset[] = {
    {"data", get_data, NULL, "The address of the first element.", NULL},
    {"shape", get_shape, NULL, "Extents.", NULL},
    {"strides", get_strides, NULL,
     "The distance between consecutive indices of each axis, in elements.", NULL},
    {"dtype", get_dtype, NULL, "The name of the element type, such as 'float32'.", NULL},
    {"device", get_device, NULL, "The device of the memory, such as 'cpu' or 'cuda:0'.", NULL},
    {"ndim", get_ndim, NULL, "The number of axes.", NULL},
    {"read_only", get_read_only, NULL, "Whether the memory is read-only.", NULL},
    {"pointer", get_pointer, NULL, "The address of the DLTensor struct.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
PyDoc_STRVAR(
    dltensor_doc,
    "DLTensor(data, shape=None, dtype=None, device='cpu', *, strides=None, owner=None, "
    "writable=None)\n--\n\nA tensor on memory with another owner; nothing is copied.\n\ndata: an "
    "address (shape and dtype are required, strides count elements, and the memory\n    must live "
    "as long as the tensor; `owner` is kept), an array, an object with\n    __dlpack__ or the "
    "buffer protocol, or a DLPack capsule.\ndtype: 'float32', numpy.float32, a numpy dtype, or "
    "Triton's 'FP32'.\ndevice: the device of an address, such as 'cuda:0'; an object must be on "
    "it.\nwritable: False makes the tensor read-only, and states that a kernel without a "
    "signature\n    does not write to it.\n\n>>> import numpy, kelp\n>>> a = numpy.arange(6, "
    "dtype='float32').reshape(2, 3)\n>>> t = kelp.DLTensor(data=a.ctypes.data, shape=a.shape, "
    "dtype=a.dtype)\n>>> t, t.data == a.ctypes.data\n(DLTensor(float32, [2,3]), True)\n>>> "
    "numpy.from_dlpack(t)[1]\narray([3., 4., 5.], dtype=float32)\n");
static PyType_Slot dltensor_slots[] = {
    {Py_tp_new, dltensor_new},         {Py_tp_dealloc, dltensor_dealloc},
    {Py_tp_methods, dltensor_methods}, {Py_tp_getset, dltensor_getset},
    {Py_tp_repr, dltensor_repr},       {Py_bf_getbuffer, dltensor_getbuffer},
    {Py_tp_doc, (void *)dltensor_doc}, {0, NULL},
};
static PyType_Spec dltensor_spec = {.name = "kelp.DLTensor",
                                    .basicsize = sizeof(kpy_dltensor),
                                    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                                    .slots = dltensor_slots};

int kpy_dltensor_ready(PyObject *module) {
    kpy_dltensor_type = (PyTypeObject *)PyType_FromSpec(&dltensor_spec);
    return kpy_dltensor_type ? PyModule_AddType(module, kpy_dltensor_type) : -1;
}
