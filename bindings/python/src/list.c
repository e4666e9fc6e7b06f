/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's sequences, optionals and maps as Python objects: a list; None or the value; a dict. In a
 * sequence or an optional, a list or tuple is a sequence, a dict is a map, and anything else is a
 * tensor. */
#include "kpy.h"

#include <string.h>

#define HOLDER_NAME "kelp.list"
#define DEPTH_MAX 4

/* The memory of a list: its descriptors and views. */
typedef struct holder {
    Py_ssize_t count;
    kelp_dtype map_values;
    kpy_view *views;
    kelp_tensor *items;
} holder;

static void free_holder(PyObject *capsule) {
    holder *h = PyCapsule_GetPointer(capsule, HOLDER_NAME);
    for (Py_ssize_t i = 0; h != NULL && i < h->count; i++)
        kpy_view_deinit(&h->views[i]);
    if (h != NULL) {
        PyMem_Free(h->views);
        PyMem_Free(h->items);
        PyMem_Free(h);
    }
}

/* Creates the memory for up to `capacity` elements, owned by the view. */
static holder *make_holder(kpy_view *view, Py_ssize_t capacity) {
    holder *h = PyMem_Calloc(1, sizeof *h);
    if (h == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    h->views = PyMem_Calloc((size_t)capacity + 1, sizeof *h->views);
    h->items = PyMem_Calloc((size_t)capacity + 1, sizeof *h->items);
    view->owner = PyCapsule_New(h, HOLDER_NAME, free_holder);
    if (view->owner == NULL || h->views == NULL || h->items == NULL) {
        if (view->owner == NULL) {
            PyMem_Free(h->views);
            PyMem_Free(h->items);
            PyMem_Free(h);
        } else {
            PyErr_NoMemory();
        }
        return NULL;
    }
    return h;
}

static int view_list(kpy_view *view, PyObject *object, int32_t rank, kelp_dtype map_values,
                     const char *what, int depth);

static int add(holder *h, PyObject *object, const char *what, int depth) {
    kpy_view *view = &h->views[h->count];
    bool sequence = PyList_Check(object) || PyTuple_Check(object);
    int failed = sequence || PyDict_Check(object)
                     ? view_list(view, object, sequence ? 1 : 3, h->map_values, what, depth + 1)
                     : kpy_view_init(view, object, KELP_DTYPE_INVALID, false, what);
    if (failed)
        return -1;
    h->items[h->count++] = view->tensor;
    return 0;
}

static int add_side(holder *h, PyObject *object, PyObject *(*side)(PyObject *), kelp_dtype dtype,
                    const char *what) {
    PyObject *items = side(object);
    kpy_view *view = &h->views[h->count];
    int failed = items == NULL || kpy_view_init(view, items, dtype, false, what) ? -1 : 0;
    Py_XDECREF(items);
    if (failed == 0)
        h->items[h->count++] = view->tensor;
    return failed;
}

static int fill(holder *h, PyObject *object, int32_t rank, const char *what, int depth) {
    if (rank == 3)
        return add_side(h, object, PyDict_Keys, KELP_DTYPE_INVALID, what) ||
                       add_side(h, object, PyDict_Values, h->map_values, what)
                   ? -1
                   : 0;
    if (rank == 2)
        return object == Py_None ? 0 : add(h, object, what, depth);
    for (Py_ssize_t i = 0; i < PySequence_Size(object); i++)
        if (add(h, kpy_sequence_item(object, i), what, depth))
            return -1;
    return 0;
}

static int view_list(kpy_view *view, PyObject *object, int32_t rank, kelp_dtype map_values,
                     const char *what, int depth) {
    memset(view, 0, sizeof *view);
    bool fits = rank == 2 ||
                (rank == 3 ? PyDict_Check(object) : PyList_Check(object) || PyTuple_Check(object));
    if (!fits || depth > DEPTH_MAX) {
        kpy_fail(KELP_INVALID_ARGUMENT, "%s: expected %s, found '%s'", what,
                 rank == 3 ? "a dict" : "a list of arrays",
                 kpy_type_name(object, (char[KPY_TYPE_NAME]){0}));
        return -1;
    }
    Py_ssize_t capacity = rank == 1 ? PySequence_Size(object) : 2;
    holder *h = make_holder(view, capacity);
    if (h != NULL)
        h->map_values = map_values;
    if (h == NULL || fill(h, object, rank, what, depth)) {
        kpy_view_deinit(view);
        return -1;
    }
    const int64_t shape[3] = {h->count, 1, 1};
    kelp_status *status = kelp_tensor_init(&view->tensor, KELP_LIST, rank, shape, h->items);
    if (status == NULL)
        return 0;
    kpy_raise(status);
    kpy_view_deinit(view);
    return -1;
}

int kpy_view_list(kpy_view *view, PyObject *object, int32_t rank, kelp_dtype map_values,
                  const char *what) {
    PyObject *content = kpy_content(object);
    memset(view, 0, sizeof *view);
    int failed = content ? view_list(view, content, rank, map_values, what, 1) : -1;
    Py_XDECREF(content);
    return failed;
}

/* ---- results ---- */
static PyObject *copy_map(const kelp_tensor *items) {
    PyObject *keys = kpy_tensor_copy(&items[0]), *values = kpy_tensor_copy(&items[1]);
    PyObject *key_list = keys ? PyObject_CallMethod(keys, "tolist", NULL) : NULL;
    PyObject *value_list = values ? PyObject_CallMethod(values, "tolist", NULL) : NULL;
    PyObject *map = key_list && value_list ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; map != NULL && i < PyList_Size(key_list); i++)
        if (PyDict_SetItem(map, PyList_GetItem(key_list, i), PyList_GetItem(value_list, i)))
            Py_CLEAR(map);
    Py_XDECREF(value_list);
    Py_XDECREF(key_list);
    Py_XDECREF(values);
    Py_XDECREF(keys);
    return map;
}

PyObject *kpy_list_copy(const kelp_tensor *list) {
    const kelp_tensor *items = list->data;
    if (list->rank == 3)
        return copy_map(items);
    if (list->rank == 2)
        return list->shape[0] > 0 ? kpy_tensor_copy(&items[0]) : Py_NewRef(Py_None);
    PyObject *result = PyList_New((Py_ssize_t)list->shape[0]);
    for (int64_t i = 0; result != NULL && i < list->shape[0]; i++) {
        PyObject *item = kpy_tensor_copy(&items[i]);
        if (item == NULL)
            Py_CLEAR(result);
        else
            PyList_SetItem(result, (Py_ssize_t)i, item);
    }
    return result;
}
