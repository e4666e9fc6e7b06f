/* SPDX-License-Identifier: Apache-2.0 */
/* kelp._server: Triton's server API for kelp.Server. It links libtritonserver.so, which the package
 * loads globally before it imports this module. Callbacks run on threads of the server without the
 * GIL, and acquire it only to pass a response to Python. */
#include "limited.h"

#include <triton/core/tritonserver.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <kelp/status.h>
#include <stdlib.h>
#include <time.h>

static PyObject *error_type;
static PyTypeObject *buffer_type;
static pthread_t main_thread; /* Python's main thread, which runs signal handlers */

/* Returns the code of KelpError for an error code of Triton. */
static kelp_code code_of(TRITONSERVER_Error_Code code) {
    static const kelp_code codes[] = {
        [TRITONSERVER_ERROR_UNKNOWN] = KELP_UNKNOWN,
        [TRITONSERVER_ERROR_INTERNAL] = KELP_INTERNAL,
        [TRITONSERVER_ERROR_NOT_FOUND] = KELP_NOT_FOUND,
        [TRITONSERVER_ERROR_INVALID_ARG] = KELP_INVALID_ARGUMENT,
        [TRITONSERVER_ERROR_UNAVAILABLE] = KELP_UNAVAILABLE,
        [TRITONSERVER_ERROR_UNSUPPORTED] = KELP_UNIMPLEMENTED,
        [TRITONSERVER_ERROR_ALREADY_EXISTS] = KELP_ALREADY_EXISTS,
        [TRITONSERVER_ERROR_CANCELLED] = KELP_CANCELLED,
    };
    return (size_t)code < sizeof codes / sizeof *codes ? codes[code] : KELP_UNKNOWN;
}

static PyObject *error_object(TRITONSERVER_Error *take_error) {
    PyObject *error = PyObject_CallFunction(error_type, "si", TRITONSERVER_ErrorMessage(take_error),
                                            (int)code_of(TRITONSERVER_ErrorCode(take_error)));
    TRITONSERVER_ErrorDelete(take_error);
    return error;
}

/* 0, or -1 with an exception. */
static int check(TRITONSERVER_Error *take_error) {
    if (take_error == NULL)
        return 0;
    PyObject *error = error_object(take_error);
    if (error != NULL) {
        PyErr_SetObject(error_type, error);
        Py_DECREF(error);
    }
    return -1;
}

static void ignore(TRITONSERVER_Error *take_error) {
    if (take_error != NULL)
        TRITONSERVER_ErrorDelete(take_error);
}

/* ---- memory of an output, kept by its array ---- */
typedef struct buffer {
    PyObject_HEAD void *data;
    Py_ssize_t size;
} buffer;

static void buffer_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    free(((buffer *)object)->data);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

static int buffer_get(PyObject *object, Py_buffer *out, int flags) {
    buffer *self = (buffer *)object;
    return PyBuffer_FillInfo(out, object, self->data ? self->data : (void *)"", self->size, 0,
                             flags);
}

static PyType_Slot buffer_slots[] = {
    {Py_tp_dealloc, buffer_dealloc}, {Py_bf_getbuffer, buffer_get}, {0, NULL}};
static PyType_Spec buffer_spec = {.name = "kelp._server.Buffer",
                                  .basicsize = sizeof(buffer),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = buffer_slots};

/* Memory from the allocator; `data` is NULL once a Buffer owns it. */
typedef struct block {
    void *data;
} block;

static TRITONSERVER_Error *allocate(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                    size_t size, TRITONSERVER_MemoryType type, int64_t id,
                                    void *userp, void **out, void **out_userp,
                                    TRITONSERVER_MemoryType *out_type, int64_t *out_id) {
    (void)allocator, (void)type, (void)id, (void)userp;
    block *made = calloc(1, sizeof *made);
    *out = NULL;
    *out_type = TRITONSERVER_MEMORY_CPU;
    *out_id = 0;
    if (made != NULL && size > 0 && posix_memalign(&made->data, 64, size)) {
        free(made);
        made = NULL;
    }
    if (made == NULL)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, name);
    *out = made->data;
    *out_userp = made;
    return NULL;
}

static TRITONSERVER_Error *deallocate(TRITONSERVER_ResponseAllocator *allocator, void *data,
                                      void *userp, size_t size, TRITONSERVER_MemoryType type,
                                      int64_t id) {
    (void)allocator, (void)data, (void)size, (void)type, (void)id;
    block *made = userp;
    free(made->data);
    free(made);
    return NULL;
}

/* ---- server ---- */
typedef struct server {
    PyObject_HEAD TRITONSERVER_Server *core;
    TRITONSERVER_ResponseAllocator *allocator;
} server;

static int add_strings(TRITONSERVER_ServerOptions *options, PyObject *list,
                       TRITONSERVER_Error *(*add)(TRITONSERVER_ServerOptions *, const char *)) {
    PyObject *items = PySequence_Fast(list, "expected a list of str");
    int failed = items == NULL;
    for (Py_ssize_t i = 0; !failed && i < PySequence_Size(items); i++) {
        const char *text = PyUnicode_AsUTF8AndSize(kpy_sequence_item(items, i), NULL);
        failed = text == NULL || check(add(options, text));
    }
    Py_XDECREF(items);
    return failed ? -1 : 0;
}

static PyObject *server_new(PyTypeObject *type, PyObject *args, PyObject *words) {
    static char *names[] = {"repositories", "models",        "control", "backends",
                            "id",           "strict",        "verbose", "info",
                            "exit_timeout", "exit_on_error", "plugins", NULL};
    PyObject *repositories, *models;
    int control, strict, verbose, info, exit_on_error;
    unsigned timeout;
    const char *backends, *id, *plugins;
    if (!PyArg_ParseTupleAndKeywords(args, words, "OOizzpipIps", names, &repositories, &models,
                                     &control, &backends, &id, &strict, &verbose, &info, &timeout,
                                     &exit_on_error, &plugins))
        return NULL;
    TRITONSERVER_ServerOptions *options = NULL;
    if (check(TRITONSERVER_ServerOptionsNew(&options)))
        return NULL;
    server *self = (server *)PyType_GenericAlloc(type, 0);
    TRITONSERVER_Error *error = NULL;
    int failed =
        self == NULL ||
        add_strings(options, repositories, TRITONSERVER_ServerOptionsSetModelRepositoryPath) ||
        add_strings(options, models, TRITONSERVER_ServerOptionsSetStartupModel) ||
        check(TRITONSERVER_ServerOptionsSetModelControlMode(
            options, (TRITONSERVER_ModelControlMode)control)) ||
        (backends && check(TRITONSERVER_ServerOptionsSetBackendDirectory(options, backends))) ||
        (id && check(TRITONSERVER_ServerOptionsSetServerId(options, id))) ||
        check(TRITONSERVER_ServerOptionsSetStrictModelConfig(options, strict)) ||
        (plugins[0] != '\0' &&
         check(TRITONSERVER_ServerOptionsSetBackendConfig(options, "kelp", "plugin", plugins))) ||
        check(TRITONSERVER_ServerOptionsSetExitOnError(options, exit_on_error)) ||
        check(TRITONSERVER_ServerOptionsSetExitTimeout(options, timeout)) ||
        check(TRITONSERVER_ServerOptionsSetLogInfo(options, info)) ||
        check(TRITONSERVER_ServerOptionsSetLogVerbose(options, verbose)) ||
        check(TRITONSERVER_ResponseAllocatorNew(&self->allocator, allocate, deallocate, NULL));
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS;
        error = TRITONSERVER_ServerNew(&self->core, options);
        Py_END_ALLOW_THREADS;
        failed = check(error);
    }
    ignore(TRITONSERVER_ServerOptionsDelete(options));
    if (failed)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static TRITONSERVER_Error *shut(server *self) {
    TRITONSERVER_Server *core = self->core;
    TRITONSERVER_Error *error = NULL;
    self->core = NULL;
    if (core != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        error = TRITONSERVER_ServerDelete(core);
        Py_END_ALLOW_THREADS;
    }
    return error;
}

static void server_dealloc(PyObject *object) {
    server *self = (server *)object;
    PyTypeObject *type = Py_TYPE(object);
    ignore(shut(self));
    if (self->allocator != NULL)
        ignore(TRITONSERVER_ResponseAllocatorDelete(self->allocator));
    kpy_type_free(type, object);
    Py_DECREF(type);
}

static PyObject *server_close(PyObject *object, PyObject *args) {
    (void)args;
    if (check(shut((server *)object)))
        return NULL;
    Py_RETURN_NONE;
}

static TRITONSERVER_Server *core_of(PyObject *object) {
    TRITONSERVER_Server *core = ((server *)object)->core;
    if (core == NULL)
        (void)check(TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "the server is closed"));
    return core;
}

static PyObject *server_state(PyObject *object, PyObject *args) {
    const char *what, *name;
    long long version;
    bool yes = false;
    TRITONSERVER_Server *core = core_of(object);
    if (core == NULL || !PyArg_ParseTuple(args, "szL", &what, &name, &version))
        return NULL;
    TRITONSERVER_Error *error;
    Py_BEGIN_ALLOW_THREADS;
    error = name           ? TRITONSERVER_ServerModelIsReady(core, name, version, &yes)
            : *what == 'l' ? TRITONSERVER_ServerIsLive(core, &yes)
                           : TRITONSERVER_ServerIsReady(core, &yes);
    Py_END_ALLOW_THREADS;
    return check(error) ? NULL : PyBool_FromLong(yes);
}

/* Returns a document of the server as JSON: s(erver), m(etadata), c(onfig), t(statistics), i(ndex).
 */
static PyObject *server_message(PyObject *object, PyObject *args) {
    const char *what, *name, *text = NULL;
    long long version;
    size_t size = 0;
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Server *core = core_of(object);
    if (core == NULL || !PyArg_ParseTuple(args, "ssL", &what, &name, &version))
        return NULL;
    TRITONSERVER_Error *error;
    Py_BEGIN_ALLOW_THREADS;
    error = *what == 's'   ? TRITONSERVER_ServerMetadata(core, &message)
            : *what == 'm' ? TRITONSERVER_ServerModelMetadata(core, name, version, &message)
            : *what == 'c' ? TRITONSERVER_ServerModelConfig(core, name, version, 1, &message)
            : *what == 't' ? TRITONSERVER_ServerModelStatistics(core, name, version, &message)
                           : TRITONSERVER_ServerModelIndex(core, 0, &message);
    Py_END_ALLOW_THREADS;
    if (check(error))
        return NULL;
    PyObject *result = check(TRITONSERVER_MessageSerializeToJson(message, &text, &size))
                           ? NULL
                           : PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
    ignore(TRITONSERVER_MessageDelete(message));
    return result;
}

static PyObject *server_metrics(PyObject *object, PyObject *args) {
    (void)args;
    TRITONSERVER_Metrics *metrics = NULL;
    const char *text = NULL;
    size_t size = 0;
    TRITONSERVER_Server *core = core_of(object);
    if (core == NULL || check(TRITONSERVER_ServerMetrics(core, &metrics)))
        return NULL;
    PyObject *result =
        check(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &text, &size))
            ? NULL
            : PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
    ignore(TRITONSERVER_MetricsDelete(metrics));
    return result;
}

/* load(name, config or None): config is JSON that replaces config.pbtxt. */
static PyObject *server_load(PyObject *object, PyObject *args) {
    const char *name, *config;
    TRITONSERVER_Server *core = core_of(object);
    if (core == NULL || !PyArg_ParseTuple(args, "sz", &name, &config))
        return NULL;
    TRITONSERVER_Parameter *parameter =
        config ? TRITONSERVER_ParameterNew("config", TRITONSERVER_PARAMETER_STRING, config) : NULL;
    const TRITONSERVER_Parameter *parameters[1] = {parameter};
    TRITONSERVER_Error *error;
    Py_BEGIN_ALLOW_THREADS;
    error = parameter ? TRITONSERVER_ServerLoadModelWithParameters(core, name, parameters, 1)
                      : TRITONSERVER_ServerLoadModel(core, name);
    Py_END_ALLOW_THREADS;
    if (parameter != NULL)
        TRITONSERVER_ParameterDelete(parameter);
    if (check(error))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *server_unload(PyObject *object, PyObject *args) {
    const char *name;
    int dependents;
    TRITONSERVER_Server *core = core_of(object);
    if (core == NULL || !PyArg_ParseTuple(args, "sp", &name, &dependents))
        return NULL;
    TRITONSERVER_Error *error;
    Py_BEGIN_ALLOW_THREADS;
    error = dependents ? TRITONSERVER_ServerUnloadModelAndDependents(core, name)
                       : TRITONSERVER_ServerUnloadModel(core, name);
    Py_END_ALLOW_THREADS;
    if (check(error))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- a request ---- */
typedef struct job {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    PyObject *callback; /* NULL if the caller waits */
    PyObject *server;   /* keeps the allocator and the server until the last callback */
    Py_buffer *buffers;
    size_t buffer_count;
    TRITONSERVER_InferenceRequest *request;
    TRITONSERVER_InferenceResponse **responses; /* for the waiting caller */
    size_t response_count;
    bool released, final, out_of_memory;
    bool abandoned; /* the waiting caller was interrupted: the last callback frees the job */
} job;

static void job_free(job *self) { /* with the GIL */
    if (self->request != NULL)
        ignore(TRITONSERVER_InferenceRequestDelete(self->request));
    for (size_t i = 0; i < self->buffer_count; i++)
        PyBuffer_Release(&self->buffers[i]);
    for (size_t i = 0; i < self->response_count; i++)
        if (self->responses[i] != NULL)
            ignore(TRITONSERVER_InferenceResponseDelete(self->responses[i]));
    free(self->buffers);
    free(self->responses);
    Py_XDECREF(self->callback);
    Py_XDECREF(self->server);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

/* [(name, Triton's type, shape, Buffer)] */
static PyObject *outputs_of(TRITONSERVER_InferenceResponse *response) {
    uint32_t count = 0;
    if (check(TRITONSERVER_InferenceResponseOutputCount(response, &count)))
        return NULL;
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        const char *name;
        TRITONSERVER_DataType type;
        TRITONSERVER_MemoryType memory;
        const int64_t *shape;
        const void *base;
        uint64_t rank;
        size_t size;
        int64_t id;
        void *userp;
        buffer *memory_object = NULL;
        PyObject *extents = NULL;
        if (!check(TRITONSERVER_InferenceResponseOutput(response, i, &name, &type, &shape, &rank,
                                                        &base, &size, &memory, &id, &userp)))
            memory_object = (buffer *)PyType_GenericAlloc(buffer_type, 0);
        if (memory_object != NULL) {
            memory_object->size = (Py_ssize_t)size;
            memory_object->data = userp ? ((block *)userp)->data : NULL;
            if (userp)
                ((block *)userp)->data = NULL;
            extents = PyTuple_New((Py_ssize_t)rank);
        }
        for (uint64_t d = 0; extents != NULL && d < rank; d++)
            PyTuple_SetItem(extents, (Py_ssize_t)d, PyLong_FromLongLong(shape[d]));
        PyObject *item = extents ? Py_BuildValue("(ssOO)", name, TRITONSERVER_DataTypeString(type),
                                                 extents, memory_object)
                                 : NULL;
        Py_XDECREF(extents);
        Py_XDECREF((PyObject *)memory_object);
        if (item == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, item);
    }
    return list;
}

/* Returns the outputs or a KelpError object, and deletes the response. */
static PyObject *result_of(TRITONSERVER_InferenceResponse *response) {
    TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(response);
    PyObject *result = error ? error_object(error) : outputs_of(response);
    ignore(TRITONSERVER_InferenceResponseDelete(response));
    return result;
}

static void on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp) {
    (void)request, (void)flags;
    job *self = userp;
    pthread_mutex_lock(&self->lock);
    self->released = true;
    bool last = self->final && (self->callback != NULL || self->abandoned);
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (last) {
        PyGILState_STATE state = PyGILState_Ensure();
        job_free(self);
        PyGILState_Release(state);
    }
}

static void keep_response(job *self, TRITONSERVER_InferenceResponse *response) {
    TRITONSERVER_InferenceResponse **more =
        realloc(self->responses, (self->response_count + 1) * sizeof *more);
    if (more == NULL) {
        self->out_of_memory = true;
        ignore(TRITONSERVER_InferenceResponseDelete(response));
        return;
    }
    self->responses = more;
    self->responses[self->response_count++] = response;
}

/* Returns the current exception as an object. */
static PyObject *raised(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

static void hand_over(job *self, TRITONSERVER_InferenceResponse *response, bool final) {
    PyObject *result = response ? result_of(response) : Py_NewRef(Py_None);
    if (result == NULL)
        result = raised();
    PyObject *done = PyObject_CallFunctionObjArgs(self->callback, result ? result : Py_None,
                                                  final ? Py_True : Py_False, NULL);
    if (done == NULL)
        PyErr_WriteUnraisable(self->callback);
    Py_XDECREF(done);
    Py_XDECREF(result);
}

static void on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                        void *userp) {
    job *self = userp;
    bool final = flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL;
    if (self->callback == NULL) {
        pthread_mutex_lock(&self->lock);
        if (response != NULL)
            keep_response(self, response);
        self->final = self->final || final;
        bool nobody = self->abandoned && self->released && self->final;
        pthread_cond_signal(&self->changed);
        pthread_mutex_unlock(&self->lock);
        if (!nobody)
            return;
        PyGILState_STATE held = PyGILState_Ensure();
        job_free(self);
        PyGILState_Release(held);
        return;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    hand_over(self, response, final);
    if (final) {
        pthread_mutex_lock(&self->lock);
        self->final = true;
        bool last = self->released;
        pthread_mutex_unlock(&self->lock);
        if (last)
            job_free(self);
    }
    PyGILState_Release(state);
}

static int add_inputs(job *self, PyObject *inputs) {
    Py_ssize_t count = PyList_Size(inputs);
    self->buffers = calloc((size_t)count + 1, sizeof *self->buffers);
    if (self->buffers == NULL)
        return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *name, *type;
        PyObject *shape, *memory;
        int64_t extents[64];
        if (!PyArg_ParseTuple(PyList_GetItem(inputs, i), "ssO!O", &name, &type, &PyTuple_Type,
                              &shape, &memory))
            return -1;
        Py_ssize_t rank = PyTuple_Size(shape);
        for (Py_ssize_t d = 0; d < rank && d < 64; d++)
            extents[d] = PyLong_AsLongLong(PyTuple_GetItem(shape, d));
        if (PyErr_Occurred() || rank > 64 ||
            PyObject_GetBuffer(memory, &self->buffers[self->buffer_count], PyBUF_SIMPLE))
            return -1;
        const Py_buffer *bytes = &self->buffers[self->buffer_count++];
        if (check(TRITONSERVER_InferenceRequestAddInput(self->request, name,
                                                        TRITONSERVER_StringToDataType(type),
                                                        extents, (uint64_t)rank)) ||
            check(TRITONSERVER_InferenceRequestAppendInputData(
                self->request, name, bytes->buf, (size_t)bytes->len, TRITONSERVER_MEMORY_CPU, 0)))
            return -1;
    }
    return 0;
}

static int add_parameters(TRITONSERVER_InferenceRequest *request, PyObject *parameters) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(parameters, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        TRITONSERVER_Error *error = NULL;
        if (name == NULL)
            return -1;
        if (PyBool_Check(value)) {
            error = TRITONSERVER_InferenceRequestSetBoolParameter(request, name, value == Py_True);
        } else if (PyLong_Check(value)) {
            error = TRITONSERVER_InferenceRequestSetIntParameter(request, name,
                                                                 PyLong_AsLongLong(value));
        } else if (PyFloat_Check(value)) {
            error = TRITONSERVER_InferenceRequestSetDoubleParameter(request, name,
                                                                    PyFloat_AsDouble(value));
        } else {
            const char *text = PyUnicode_AsUTF8AndSize(value, NULL);
            error =
                text ? TRITONSERVER_InferenceRequestSetStringParameter(request, name, text) : NULL;
        }
        if (check(error) || PyErr_Occurred())
            return -1;
    }
    return 0;
}

typedef struct request_words {
    const char *model, *id;
    long long version;
    PyObject *inputs, *outputs, *parameters, *callback, *sequence;
    unsigned flags;
    unsigned long long priority, timeout_us;
} request_words;

static int fill(job *self, server *owner, const request_words *w) {
    if (check(TRITONSERVER_InferenceRequestNew(&self->request, owner->core, w->model, w->version)))
        return -1;
    if (add_inputs(self, w->inputs) || add_parameters(self->request, w->parameters))
        return -1;
    for (Py_ssize_t i = 0; i < PyList_Size(w->outputs); i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyList_GetItem(w->outputs, i), NULL);
        if (!name || check(TRITONSERVER_InferenceRequestAddRequestedOutput(self->request, name)))
            return -1;
    }
    TRITONSERVER_Error *error = NULL;
    if (PyLong_Check(w->sequence)) {
        error = TRITONSERVER_InferenceRequestSetCorrelationId(
            self->request, PyLong_AsUnsignedLongLong(w->sequence));
    } else if (w->sequence != Py_None) {
        const char *text = PyUnicode_AsUTF8AndSize(w->sequence, NULL);
        error =
            text ? TRITONSERVER_InferenceRequestSetCorrelationIdString(self->request, text) : NULL;
    }
    if (check(error) || PyErr_Occurred())
        return -1;
    return check(TRITONSERVER_InferenceRequestSetFlags(self->request, w->flags)) ||
                   (w->id && check(TRITONSERVER_InferenceRequestSetId(self->request, w->id))) ||
                   check(TRITONSERVER_InferenceRequestSetPriorityUInt64(self->request,
                                                                        w->priority)) ||
                   check(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(self->request,
                                                                             w->timeout_us)) ||
                   check(TRITONSERVER_InferenceRequestSetReleaseCallback(self->request, on_release,
                                                                         self)) ||
                   check(TRITONSERVER_InferenceRequestSetResponseCallback(
                       self->request, owner->allocator, NULL, on_response, self))
               ? -1
               : 0;
}

/* ---- Ctrl-C while the model runs on the calling thread ---- */
/* Python handles a signal when its main thread returns. Until then, a handler installed before
 * Python's wakes a thread that cancels the request. */
static struct sigaction pythons;
static sem_t interrupted;
static pthread_mutex_t current_lock = PTHREAD_MUTEX_INITIALIZER;
static TRITONSERVER_InferenceRequest *current;
static _Atomic bool wanted; /* Ctrl-C was pressed after `current` was set */
static bool canceller_runs;

static void on_interrupt(int number, siginfo_t *info, void *context) {
    int saved = errno;
    atomic_store(&wanted, true);
    (void)sem_post(&interrupted);
    if (pythons.sa_flags & SA_SIGINFO)
        pythons.sa_sigaction(number, info, context);
    else
        pythons.sa_handler(number);
    errno = saved;
}

static void *canceller_main(void *userp) {
    (void)userp;
    for (;;) {
        while (sem_wait(&interrupted) != 0) {
        }
        pthread_mutex_lock(&current_lock);
        if (current != NULL && atomic_load(&wanted))
            ignore(TRITONSERVER_InferenceRequestCancel(current));
        pthread_mutex_unlock(&current_lock);
    }
    return NULL;
}

static void forget_canceller(void) { /* a child process has one thread */
    canceller_runs = false;
    current = NULL;
    pthread_mutex_init(&current_lock, NULL);
    main_thread = pthread_self();
}

static bool need_canceller(void) {
    pthread_t thread;
    sigset_t all, before;
    if (canceller_runs)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    canceller_runs = sem_init(&interrupted, 0, 0) == 0 &&
                     pthread_create(&thread, NULL, canceller_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (canceller_runs)
        pthread_detach(thread);
    return canceller_runs;
}

static void set_current(TRITONSERVER_InferenceRequest *request) {
    pthread_mutex_lock(&current_lock);
    current = request;
    atomic_store(&wanted, false);
    pthread_mutex_unlock(&current_lock);
}

/* Calls TRITONSERVER_ServerInferAsync; handles Ctrl-C if `waits`. With the GIL. */
static TRITONSERVER_Error *submit(TRITONSERVER_Server *core, TRITONSERVER_InferenceRequest *request,
                                  bool waits) {
    struct sigaction ours = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    TRITONSERVER_Error *error;
    bool watched = waits && current == NULL && pthread_equal(pthread_self(), main_thread) &&
                   need_canceller() && sigaction(SIGINT, NULL, &pythons) == 0 &&
                   ((pythons.sa_flags & SA_SIGINFO) ||
                    (pythons.sa_handler != SIG_DFL && pythons.sa_handler != SIG_IGN));
    if (watched) {
        set_current(request); /* first, so that later signals cancel this request */
        (void)sigaction(SIGINT, &ours, NULL);
    }
    Py_BEGIN_ALLOW_THREADS;
    error = TRITONSERVER_ServerInferAsync(core, request, NULL);
    Py_END_ALLOW_THREADS;
    if (watched) {
        (void)sigaction(SIGINT, &pythons, NULL);
        set_current(NULL);
    }
    return error;
}

/* Waits for a limited time. Returns whether the request is released and the last response arrived.
 */
static bool wait_a_while(job *self) {
    struct timespec until;
    bool done;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int late = 0;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&self->lock);
    while (!(done = self->released && self->final) && !late)
        late = pthread_cond_timedwait(&self->changed, &self->lock, &until);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS;
    return done;
}

/* A signal handler raised. Do not wait for the backend to notice the cancellation. */
static void abandon(job *take_self) {
    ignore(TRITONSERVER_InferenceRequestCancel(take_self->request));
    pthread_mutex_lock(&take_self->lock);
    take_self->abandoned = true;
    bool done = take_self->released && take_self->final;
    pthread_mutex_unlock(&take_self->lock);
    if (done)
        job_free(take_self);
}

static PyObject *results_of(job *self) {
    if (self->out_of_memory)
        return PyErr_NoMemory();
    PyObject *list = PyList_New((Py_ssize_t)self->response_count);
    for (size_t i = 0; list != NULL && i < self->response_count; i++) {
        PyObject *result = result_of(self->responses[i]);
        self->responses[i] = NULL;
        if (result == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, result);
    }
    return list;
}

/* Frees the job, or leaves it to its callbacks. Returns a list of results; NULL with an exception,
 * possibly of a signal handler. */
static PyObject *wait_for(job *take_self) {
    bool done = false;
    while (!done) {
        if (PyErr_CheckSignals()) {
            abandon(take_self);
            return NULL;
        }
        done = wait_a_while(take_self);
    }
    PyObject *result = results_of(take_self);
    job_free(take_self);
    return result;
}

PyDoc_STRVAR(infer_doc,
             "infer(model, version, inputs, outputs, parameters, callback, id, sequence, flags,\n  "
             "    priority, timeout_us)\n--\n\ninputs: [(name, Triton's type, shape, buffer)]. "
             "Without a callback, waits and returns\na list of results, each [(name, type, shape, "
             "Buffer)] or a KelpError. With a callback,\nreturns immediately and calls "
             "callback(result, final) on a thread of the server.");
static PyObject *server_infer(PyObject *object, PyObject *args) {
    request_words w;
    TRITONSERVER_Server *core = core_of(object);
    if (core == NULL ||
        !PyArg_ParseTuple(args, "sLO!O!O!OzOIKK", &w.model, &w.version, &PyList_Type, &w.inputs,
                          &PyList_Type, &w.outputs, &PyDict_Type, &w.parameters, &w.callback, &w.id,
                          &w.sequence, &w.flags, &w.priority, &w.timeout_us))
        return NULL;
    job *self = calloc(1, sizeof *self);
    if (self == NULL)
        return PyErr_NoMemory();
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
    self->server = Py_NewRef(object);
    self->callback = w.callback == Py_None ? NULL : Py_NewRef(w.callback);
    if (fill(self, (server *)object, &w)) {
        job_free(self);
        return NULL;
    }
    bool waits = self->callback == NULL;
    if (check(submit(core, self->request, waits))) { /* no callback runs */
        job_free(self);
        return NULL;
    }
    if (!waits)
        Py_RETURN_NONE;
    return wait_for(self);
}

static PyMethodDef server_methods[] = {
    {"close", server_close, METH_NOARGS, "Waits for requests in flight and stops the server."},
    {"state", server_state, METH_VARARGS, "state('live'|'ready'|'model', name, version)"},
    {"message", server_message, METH_VARARGS, "message(what, name, version): JSON text"},
    {"metrics", server_metrics, METH_NOARGS, "Metrics in Prometheus' format."},
    {"load", server_load, METH_VARARGS, "load(name, config)"},
    {"unload", server_unload, METH_VARARGS, "unload(name, dependents)"},
    {"infer", server_infer, METH_VARARGS, infer_doc},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot server_slots[] = {
    {Py_tp_new, server_new},
    {Py_tp_dealloc, server_dealloc},
    {Py_tp_methods, server_methods},
    {Py_tp_doc, (void *)"The C base of kelp.Server."},
    {0, NULL},
};
static PyType_Spec server_spec = {.name = "kelp._server.Server",
                                  .basicsize = sizeof(server),
                                  .flags = Py_TPFLAGS_DEFAULT,
                                  .slots = server_slots};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "kelp._server",
                                        .m_doc = "Triton's server API for kelp.Server.",
                                        .m_size = -1};

PyMODINIT_FUNC PyInit__server(void);
PyMODINIT_FUNC PyInit__server(void) {
    PyObject *native = PyImport_ImportModule("kelp._kelp");
    PyObject *ident = native ? PyObject_CallMethod(native, "main_thread", NULL) : NULL;
    main_thread = (pthread_t)(ident ? PyLong_AsUnsignedLong(ident) : 0);
    Py_XDECREF(ident);
    Py_XDECREF(native);
    if (PyErr_Occurred() || pthread_atfork(NULL, NULL, forget_canceller))
        return NULL;
    PyObject *errors = PyImport_ImportModule("kelp._error");
    error_type = errors ? PyObject_GetAttrString(errors, "KelpError") : NULL;
    Py_XDECREF(errors);
    buffer_type = (PyTypeObject *)PyType_FromSpec(&buffer_spec);
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&server_spec);
    PyObject *module = error_type && buffer_type && type ? PyModule_Create(&definition) : NULL;
    if (module != NULL && PyModule_AddType(module, type))
        Py_CLEAR(module);
    Py_XDECREF((PyObject *)type);
    return module;
}
