/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of asynchronous kernels in flight. A call owns its arguments until the kernel is done; then
 * it enters a queue, from which a thread of kelp._kernels takes it and sets its future. The thread
 * that completes the kernel does not need the GIL. */
#include "kernel.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct pending {
    PyObject_HEAD kpy_kernel *kernel;
    kpy_context *context; /* of the caller, or NULL */
    kelp_kernel_session *session;
    kelp_event *event;
    PyObject *future;
    PyObject *args, *words, *names; /* keep the arguments */
    kelp_status *status;            /* of kelp_kernel_submit */
    _Atomic int remaining;          /* the kernel and the submitting thread */
    struct pending *next;
    kpy_call call;
} pending;

static PyTypeObject *pending_type;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pending *first, **last = &first; /* calls that are done; each holds a reference */

static void push(pending *call) {
    pthread_mutex_lock(&mutex);
    call->next = NULL;
    *last = call;
    last = &call->next;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void on_done(void *userp) {
    pending *call = userp;
    if (atomic_fetch_sub(&call->remaining, 1) == 1)
        push(call);
}

/* Submits without the GIL. The call may be in the queue when this returns. */
static void submit(pending *self) {
    kelp_status *status = kelp_event_create(kelp_allocator_system(), &self->event);
    if (status == NULL) {
        kelp_event_set_callback(self->event, on_done, self);
        status = kelp_kernel_submit(self->kernel->kernel, self->session, self->call.args,
                                    self->call.count, self->event);
    }
    self->status = status;
    if (status == NULL) {
        on_done(self);
        return;
    }
    kelp_event_destroy(self->event); /* the kernel may have completed it, but not the call */
    self->event = NULL;
    push(self);
}

static int prepare(pending *self, PyObject *args, PyObject *words) {
    PyObject *flat[2 * KPY_KERNEL_ARGS + 2];
    PyObject *const *items = flat;
    Py_ssize_t count = PyTuple_Size(args), total = count + PyDict_Size(words);
    PyObject *name, *value;
    if (total > (Py_ssize_t)(sizeof flat / sizeof *flat)) {
        PyErr_SetString(PyExc_TypeError, "too many arguments");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        flat[i] = PyTuple_GetItem(args, i);
    self->args = Py_NewRef(args);
    self->words = PyDict_Copy(words);
    self->names = PyTuple_New(total - count);
    if (self->words == NULL || self->names == NULL)
        return -1;
    for (Py_ssize_t at = 0, k = 0; PyDict_Next(words, &at, &name, &value); k++) {
        PyTuple_SetItem(self->names, k, Py_NewRef(name));
        flat[count + k] = value;
    }
    if (kpy_session_take(self->kernel, &items, &count, &self->context, &self->session))
        return -1;
    Py_XINCREF((PyObject *)self->context);
    if (kpy_call_init(&self->call, self->kernel, self->session, items, count, self->names) == 0)
        return 0;
    kpy_session_give(self->kernel, self->context, self->session);
    self->session = NULL;
    return -1;
}

PyObject *kpy_kernel_start(PyObject *object, PyObject *args) {
    PyObject *future, *arguments, *words;
    if (!PyArg_ParseTuple(args, "OO!O!", &future, &PyTuple_Type, &arguments, &PyDict_Type, &words))
        return NULL;
    pending *self = (pending *)PyType_GenericAlloc(pending_type, 0);
    if (self == NULL)
        return NULL;
    self->kernel = (kpy_kernel *)Py_NewRef(object);
    self->future = Py_NewRef(future);
    atomic_init(&self->remaining, 2);
    if (prepare(self, arguments, words)) {
        Py_DECREF(self);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    submit(self); /* the queue takes the reference */
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyObject *kpy_kernel_next_completed(PyObject *module, PyObject *args) {
    pending *found;
    (void)module, (void)args;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&mutex);
    while (first == NULL)
        pthread_cond_wait(&changed, &mutex);
    found = first;
    first = found->next;
    if (first == NULL)
        last = &first;
    pthread_mutex_unlock(&mutex);
    Py_END_ALLOW_THREADS;
    return (PyObject *)found;
}

/* ---- the object ---- */
/* Ends the call: returns its outputs, or raises the failure of the kernel. */
static PyObject *pending_finish(PyObject *object, PyObject *args) {
    (void)args;
    pending *self = (pending *)object;
    kelp_status *status = self->status;
    if (self->session == NULL)
        return kpy_fail(KELP_FAILED_PRECONDITION, "the call has ended");
    Py_BEGIN_ALLOW_THREADS;
    if (status == NULL)
        status = kelp_kernel_session_result(self->session);
    kelp_event_destroy(self->event);
    Py_END_ALLOW_THREADS;
    self->event = NULL;
    self->status = NULL;
    PyObject *result = status != NULL ? kpy_raise(status) : kpy_call_result(&self->call);
    kpy_call_deinit(&self->call);
    kpy_session_give(self->kernel, self->context, self->session);
    self->session = NULL;
    return result;
}

static PyObject *pending_future(PyObject *object, void *closure) {
    (void)closure;
    return Py_NewRef(((pending *)object)->future);
}

/* A call in flight is not freed, because the queue gets its reference. */
static void pending_dealloc(PyObject *object) {
    pending *self = (pending *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->future);
    Py_XDECREF(self->args);
    Py_XDECREF(self->words);
    Py_XDECREF(self->names);
    Py_XDECREF((PyObject *)self->context);
    Py_XDECREF((PyObject *)self->kernel);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

static PyMethodDef pending_methods[] = {
    {"finish", pending_finish, METH_NOARGS,
     "finish()\n--\n\nReturns the outputs, or raises the failure of the kernel."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef pending_getset[] = {
    {"future", pending_future, NULL, "The future of the call.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot pending_slots[] = {
    {Py_tp_dealloc, pending_dealloc},
    {Py_tp_methods, pending_methods},
    {Py_tp_getset, pending_getset},
    {Py_tp_doc, (void *)"A call of an asynchronous kernel."},
    {0, NULL},
};
static PyType_Spec pending_spec = {.name = "kelp._kelp.Pending",
                                   .basicsize = sizeof(pending),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = pending_slots};

int kpy_kernel_submit_ready(void) {
    pending_type = (PyTypeObject *)PyType_FromSpec(&pending_spec);
    return pending_type != NULL ? 0 : -1;
}
