/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime and Session. A session has a pool of contexts for concurrent runs. A run takes one, binds
 * the arrays in place, lets numpy allocate the outputs, and invokes without the GIL, so that the
 * engine writes directly to the returned arrays. */
#include "notes.h"

#include <stdatomic.h>
#include <string.h>

PyTypeObject *kpy_runtime_type;
static PyTypeObject *session_type;

/* ---- runtime ---- */
static PyObject *runtime_new(PyTypeObject *type, PyObject *args, PyObject *words) {
    static char *names[] = {"threads", "plugins", NULL};
    int threads = 0;
    const char *plugins = "";
    if (!PyArg_ParseTupleAndKeywords(args, words, "|is", names, &threads, &plugins))
        return NULL;
    kpy_runtime *self = (kpy_runtime *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = threads};
    kelp_status *status;
    Py_BEGIN_ALLOW_THREADS;
    status = kelp_runtime_create(&options, &self->runtime);
    if (status != NULL)
        self->runtime = NULL;
    else
        status = kelp_runtime_load_plugins(self->runtime, plugins);
    Py_END_ALLOW_THREADS;
    if (status != NULL) {
        Py_DECREF(self);
        return kpy_raise(status);
    }
    return (PyObject *)self;
}

static void runtime_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    kelp_runtime_release(((kpy_runtime *)object)->runtime);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

static PyObject *runtime_threads(PyObject *object, void *closure) {
    (void)closure;
    return PyLong_FromLong(kelp_runtime_threads(((kpy_runtime *)object)->runtime));
}

static PyGetSetDef runtime_getset[] = {
    {"threads", runtime_threads, NULL, "Threads per operator, including the calling thread.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot runtime_slots[] = {
    {Py_tp_new, runtime_new},
    {Py_tp_dealloc, runtime_dealloc},
    {Py_tp_getset, runtime_getset},
    {Py_tp_doc, (void *)"Runtime(threads=0, plugins='')\n--\n\nThe threads and operators of "
                        "sessions; 0: all CPUs. "
                        "plugins: plug-in libraries, as kelp_runtime_load_plugins takes them."},
    {0, NULL},
};
static PyType_Spec runtime_spec = {.name = "kelp._kelp.Runtime",
                                   .basicsize = sizeof(kpy_runtime),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                   .slots = runtime_slots};

/* ---- session ---- */
typedef struct pooled {
    kelp_context *context;
    uint64_t shapes; /* of the previous run */
} pooled;

typedef struct session {
    PyObject_HEAD PyObject *runtime;
    kelp_graph *graph;
    kelp_engine *engine;
    size_t input_count, output_count;
    PyObject *input_names, *output_names; /* tuples of str */
    PyObject *input_labels;               /* "input 'x'", for messages */
    PyObject *output_index;               /* dict from name to index */
    pooled *pool;
    size_t pool_count, pool_capacity;
    kpy_watch loading;
    _Atomic size_t done, total; /* operators created so far, during loading */
    long severity;              /* of the log, -1: the default */
    bool is_traced;             /* every run is reported to _finished */
} session;

static void release_bytes(void *userp) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)userp);
    PyGILState_Release(state);
}

/* Called for every node, without the GIL. */
static bool on_progress(void *userp, size_t done, size_t total) {
    session *self = userp;
    atomic_store_explicit(&self->total, total, memory_order_relaxed);
    atomic_store_explicit(&self->done, done, memory_order_relaxed);
    return !kpy_watch_stops(&self->loading);
}

static int load(session *self, const char *path, PyObject *bytes, const char *label,
                const char *directory, uint32_t disable_fusion, kelp_precision precision,
                const _Atomic bool *cancel) {
    kelp_runtime *runtime = ((kpy_runtime *)self->runtime)->runtime;
    kelp_allocator allocator = kelp_runtime_allocator(runtime);
    kelp_engine_options options = {.struct_size = sizeof options,
                                   .disable_fusion = disable_fusion,
                                   .precision = precision,
                                   .progress = on_progress,
                                   .progress_userp = self};
    const char *data = bytes ? PyBytes_AsString(bytes) : NULL;
    size_t size = bytes ? (size_t)PyBytes_Size(bytes) : 0;
    kelp_status *status;
    Py_XINCREF(bytes);
    kpy_watch_begin(&self->loading, cancel);
    status = bytes ? kelp_graph_load_bytes(allocator, data, size, label, directory, release_bytes,
                                           bytes, NULL, &self->graph)
                   : kelp_graph_load_file(allocator, path, NULL, &self->graph);
    if (status == NULL)
        status = kelp_engine_create(runtime, self->graph, &options, &self->engine);
    if (!kpy_watch_end(&self->loading))
        return status ? (kpy_raise(status), -1) : 0;
    kelp_status_free(status);
    return -1;
}

static int name_values(session *self) {
    self->input_count = kelp_engine_input_count(self->engine);
    self->output_count = kelp_engine_output_count(self->engine);
    self->input_names = PyTuple_New((Py_ssize_t)self->input_count);
    self->input_labels = PyTuple_New((Py_ssize_t)self->input_count);
    self->output_names = PyTuple_New((Py_ssize_t)self->output_count);
    self->output_index = PyDict_New();
    if (!self->input_names || !self->input_labels || !self->output_names || !self->output_index)
        return -1;
    for (size_t i = 0; i < self->input_count; i++) {
        const char *name = kelp_engine_input(self->engine, i)->name;
        PyObject *text = PyUnicode_InternFromString(name);
        PyObject *label = PyUnicode_FromFormat("input '%s'", name);
        if (!text || !label || !PyUnicode_AsUTF8AndSize(label, NULL))
            return Py_XDECREF(text), Py_XDECREF(label), -1;
        PyTuple_SetItem(self->input_names, (Py_ssize_t)i, text);
        PyTuple_SetItem(self->input_labels, (Py_ssize_t)i, label);
    }
    for (size_t i = 0; i < self->output_count; i++) {
        PyObject *text = PyUnicode_InternFromString(kelp_engine_output(self->engine, i)->name);
        PyObject *number = PyLong_FromSize_t(i);
        int failed = !text || !number || PyDict_SetItem(self->output_index, text, number);
        Py_XDECREF(number);
        if (failed)
            return Py_XDECREF(text), -1;
        PyTuple_SetItem(self->output_names, (Py_ssize_t)i, text);
    }
    return 0;
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *words) {
    (void)args, (void)words;
    return PyType_GenericAlloc(type, 0);
}

PyDoc_STRVAR(open_doc,
             "_open(path, bytes, runtime, label, directory, disable_fusion, "
             "precision, cancel)\n--\n\nLoads the model from a path or from bytes, which are "
             "referenced. cancel: RunOptions whose terminate cancels it.");
static PyObject *session_open(PyObject *object, PyObject *args) {
    session *self = (session *)object;
    PyObject *path = NULL, *bytes, *runtime, *cancel;
    const _Atomic bool *cancelled;
    const char *label, *directory, *word;
    kelp_precision precision;
    int disable_fusion;
    if (!PyArg_ParseTuple(args, "O&OO!zzpsO", PyUnicode_FSConverter, &path, &bytes,
                          kpy_runtime_type, &runtime, &label, &directory, &disable_fusion, &word,
                          &cancel))
        return NULL;
    if (kpy_run_options(cancel, &cancelled)) {
        Py_DECREF(path);
        return NULL;
    }
    if (!kelp_precision_parse(word, &precision)) {
        Py_DECREF(path);
        return kpy_fail(KELP_INVALID_ARGUMENT, "unknown precision '%s': expected f32 or bf16",
                        word);
    }
    if (self->engine != NULL) {
        Py_DECREF(path);
        return kpy_fail(KELP_FAILED_PRECONDITION, "the session already has a model");
    }
    if (bytes != Py_None && !PyBytes_Check(bytes)) {
        Py_DECREF(path);
        return kpy_fail(KELP_INVALID_ARGUMENT, "expected a path or bytes, found '%s'",
                        kpy_type_name(bytes, (char[KPY_TYPE_NAME]){0}));
    }
    self->runtime = Py_NewRef(runtime);
    int failed = load(self, PyBytes_AsString(path), bytes == Py_None ? NULL : bytes, label,
                      directory, (uint32_t)disable_fusion, precision, cancelled);
    Py_DECREF(path);
    if (failed || name_values(self))
        return NULL;
    Py_RETURN_NONE;
}

static void session_dealloc(PyObject *object) {
    session *self = (session *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    for (size_t i = 0; i < self->pool_count; i++)
        kelp_context_destroy(self->pool[i].context);
    PyMem_Free(self->pool);
    kelp_engine_release(self->engine);
    kelp_graph_release(self->graph);
    Py_XDECREF(self->runtime);
    Py_XDECREF(self->input_names);
    Py_XDECREF(self->input_labels);
    Py_XDECREF(self->output_names);
    Py_XDECREF(self->output_index);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

static int session_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((session *)object)->runtime);
    return 0;
}

/* ---- a run ---- */
#define FEW 8

typedef struct run {
    session *self;
    pooled place;
    kpy_view *views; /* of the inputs, then of the outputs written in place */
    size_t view_count;
    const size_t *wanted; /* indices of outputs, in order */
    size_t wanted_count;
    PyObject **arrays; /* per requested output; NULL: copied after the run */
    PyObject *options; /* a RunOptions, or NULL */
    bool has_extra;    /* the feed has names that are no inputs; no exception is set */
    const _Atomic bool *terminate;
    kpy_view few[2 * FEW];
    PyObject *few_arrays[FEW];
} run;

static int take_context(session *self, pooled *out) {
    if (self->pool_count > 0) {
        *out = self->pool[--self->pool_count];
        return 0;
    }
    *out = (pooled){0};
    kelp_status *status = kelp_context_create(self->engine, &out->context);
    return status ? (kpy_raise(status), -1) : 0;
}

static void give_context(session *self, pooled place) {
    if (self->pool_count == self->pool_capacity) {
        size_t capacity = self->pool_capacity ? 2 * self->pool_capacity : 4;
        pooled *more = PyMem_Realloc(self->pool, capacity * sizeof *more);
        if (more == NULL) {
            kelp_context_destroy(place.context);
            return;
        }
        self->pool = more;
        self->pool_capacity = capacity;
    }
    self->pool[self->pool_count++] = place;
}

static PyObject *names_of(PyObject *tuple) {
    PyObject *comma = PyUnicode_FromString("', '");
    PyObject *text = comma ? PyUnicode_Join(comma, tuple) : NULL;
    Py_XDECREF(comma);
    return text;
}

static int refuse_feed(session *self, PyObject *feed) {
    PyObject *key, *value, *names = names_of(self->input_names);
    Py_ssize_t at = 0;
    while (names && PyDict_Next(feed, &at, &key, &value)) {
        int known = PySequence_Contains(self->input_names, key);
        if (known < 0)
            break;
        if (known == 0) {
            kpy_fail(KELP_INVALID_ARGUMENT, "the model has no input %R; it has '%U'", key, names);
            break;
        }
    }
    Py_XDECREF(names);
    return -1;
}

/* Returns the list of the inputs that the feed lacks. */
static PyObject *absent_names(session *self, PyObject *feed) {
    PyObject *absent = PyList_New(0);
    for (size_t i = 0; absent != NULL && i < self->input_count; i++) {
        PyObject *name = PyTuple_GetItem(self->input_names, (Py_ssize_t)i);
        int given = PyDict_Contains(feed, name);
        if (given < 0 || (given == 0 && PyList_Append(absent, name) < 0))
            Py_CLEAR(absent);
    }
    return absent;
}

/* A misspelled name is reported as a missing input. The second sentence is ONNX Runtime's message.
 */
static int refuse_missing(session *self, PyObject *feed, size_t index) {
    const kelp_io_info *missing = kelp_engine_input(self->engine, index);
    PyObject *key, *value, *stranger = NULL;
    char shape[256];
    Py_ssize_t at = 0;
    kelp_shape_format(missing->rank, missing->shape, shape, sizeof shape);
    while (stranger == NULL && PyDict_Next(feed, &at, &key, &value)) {
        int known = PySequence_Contains(self->input_names, key);
        if (known < 0)
            return -1;
        stranger = known ? NULL : key;
    }
    PyObject *absent = absent_names(self, feed), *given = PyDict_Keys(feed);
    PyObject *more = stranger == NULL
                         ? PyUnicode_FromString("")
                         : PyUnicode_FromFormat("; the model has no input %R", stranger);
    if (absent != NULL && given != NULL && more != NULL)
        kpy_fail_as("MissingInput", KELP_INVALID_ARGUMENT,
                    "missing input '%s': expected %s %s%U. Required inputs (%R) are missing from "
                    "input feed (%R)",
                    missing->name, kelp_dtype_name(missing->dtype), shape, more, absent, given);
    Py_XDECREF(absent);
    Py_XDECREF(given);
    Py_XDECREF(more);
    return -1;
}

/* Views a list or a dict. The attribute `_map_values` has the element types of values of maps, by
 * input. */
static int view_list(session *self, kpy_view *view, PyObject *object, const kelp_io_info *info,
                     const char *label) {
    PyObject *types = PyObject_GetAttrString((PyObject *)self, "_map_values");
    PyObject *name = types != NULL ? PyDict_GetItemString(types, info->name) : NULL; /* borrowed */
    const char *word = name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    kelp_dtype dtype = word != NULL ? kelp_dtype_parse(word) : KELP_DTYPE_INVALID;
    PyErr_Clear();
    Py_XDECREF(types);
    return kpy_view_list(view, object, info->rank, dtype, label);
}

static int bind_inputs(run *r, PyObject *feed, uint64_t *out_shapes) {
    session *self = r->self;
    uint64_t shapes = 1469598103934665603u;
    for (size_t i = 0; i < self->input_count; i++) {
        PyObject *name = PyTuple_GetItem(self->input_names, (Py_ssize_t)i);
        PyObject *object = PyDict_GetItemWithError(feed, name);
        if (object == NULL) {
            if (PyErr_Occurred())
                return -1;
            return refuse_missing(self, feed, i);
        }
        kpy_view *view = &r->views[r->view_count];
        const char *label =
            PyUnicode_AsUTF8AndSize(PyTuple_GetItem(self->input_labels, (Py_ssize_t)i), NULL);
        const kelp_io_info *info = kelp_engine_input(self->engine, i);
        if (object == Py_None && info->dtype != KELP_LIST) {
            kpy_fail(KELP_INVALID_ARGUMENT, "%s: expected an array, found None", label);
            return -1;
        }
        if (info->dtype == KELP_LIST ? view_list(self, view, object, info, label)
                                     : kpy_view_init(view, object, info->dtype, false, label))
            return -1;
        r->view_count++;
        kelp_status *status = kelp_context_set_input(r->place.context, i, &view->tensor);
        if (status != NULL)
            return kpy_raise(status), -1;
        for (int32_t d = 0; d < view->tensor.rank; d++)
            shapes = (shapes ^ (uint64_t)view->tensor.shape[d]) * 1099511628211u;
        shapes = (shapes ^ 0x9e37u) * 1099511628211u;
    }
    if (PyDict_Size(feed) != (Py_ssize_t)self->input_count) {
        r->has_extra = true;
        return -1;
    }
    *out_shapes = shapes;
    return 0;
}

/* Binds an output to an array of the caller. */
static int bind_into(run *r, size_t index, PyObject *into) {
    const kelp_io_info *info = kelp_engine_output(r->self->engine, index);
    const kelp_tensor *tensor = kelp_context_output(r->place.context, index);
    kpy_view *view = &r->views[r->view_count];
    if (kpy_view_init(view, into, info->dtype, true, info->name))
        return -1;
    r->view_count++;
    if (view->tensor.dtype != tensor->dtype) {
        kpy_fail(KELP_INVALID_ARGUMENT, "output '%s' has type %s: the array has type %s",
                 info->name, kelp_dtype_name(tensor->dtype), kelp_dtype_name(view->tensor.dtype));
        return -1;
    }
    bool same = tensor->rank < 0 || tensor->rank == view->tensor.rank;
    for (int32_t i = 0; same && i < tensor->rank; i++)
        same = tensor->shape[i] == view->tensor.shape[i];
    if (!same) {
        char is[256], given[256];
        kelp_shape_format(tensor->rank, tensor->shape, is, sizeof is);
        kelp_shape_format(view->tensor.rank, view->tensor.shape, given, sizeof given);
        kpy_fail(KELP_INVALID_ARGUMENT, "output '%s' has shape %s: the array has shape %s",
                 info->name, is, given);
        return -1;
    }
    kelp_status *status = kelp_context_set_output(r->place.context, index, view->tensor.data,
                                                  kelp_tensor_bytes(&view->tensor));
    return status ? (kpy_raise(status), -1) : 0;
}

static int bind_outputs(run *r, PyObject **into) {
    kelp_context *context = r->place.context;
    kelp_status *status = NULL;
    for (size_t i = 0; r->wanted_count != r->self->output_count && i < r->self->output_count; i++) {
        status = kelp_context_set_output(context, i, NULL, 0);
        if (status != NULL)
            return kpy_raise(status), -1;
    }
    for (size_t w = 0; w < r->wanted_count; w++) {
        const kelp_tensor *tensor = kelp_context_output(context, r->wanted[w]);
        void *data = NULL;
        if (into != NULL && into[w] != NULL) {
            if (bind_into(r, r->wanted[w], into[w]))
                return -1;
            r->arrays[w] = Py_NewRef(into[w]);
            continue;
        }
        if (tensor->rank >= 0 && tensor->dtype != KELP_STRING && tensor->dtype != KELP_LIST &&
            kelp_dtype_bits(tensor->dtype) >= 8) {
            PyObject *array = kpy_numpy_empty(tensor->dtype, tensor->rank, tensor->shape);
            if (array == NULL)
                return -1;
            if (kpy_is_array(array)) {
                r->arrays[w] = array;
                data = ((kpy_array *)array)->data;
            } else {
                Py_DECREF(array); /* copied afterwards */
            }
        }
        status = kelp_context_set_output(context, r->wanted[w], data,
                                         data ? kelp_tensor_bytes(tensor) : 0);
        if (status != NULL)
            return kpy_raise(status), -1;
    }
    return 0;
}

static PyObject *collect(run *r) {
    PyObject *list = PyList_New((Py_ssize_t)r->wanted_count);
    for (size_t w = 0; list != NULL && w < r->wanted_count; w++) {
        PyObject *array = r->arrays[w];
        r->arrays[w] = NULL;
        if (array == NULL)
            array = kpy_tensor_copy(kelp_context_output(r->place.context, r->wanted[w]));
        if (array == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)w, array);
    }
    return list;
}

static int fail_run(const run *r, kelp_status *take_status) {
    bool terminated = r->terminate != NULL && atomic_load(r->terminate) &&
                      kelp_status_code(take_status) == KELP_CANCELLED;
    PyObject *id = terminated ? PyObject_GetAttrString(r->options, "logid") : NULL;
    const char *text = id ? PyUnicode_AsUTF8AndSize(id, NULL) : NULL;
    PyErr_Clear();
    kelp_status *status =
        terminated
            ? KELP_ANNOTATE(take_status, "the run%s%s%s was cancelled by RunOptions.terminate",
                            text && *text ? " '" : "", text ? text : "", text && *text ? "'" : "")
            : take_status;
    Py_XDECREF(id);
    kpy_raise(status);
    return -1;
}

/* ---- the log and the trace ---- */
/* Severity of the log for runs and sessions that do not have one; protected by the GIL. */
static long default_severity = 2;

PyObject *kpy_set_default_severity(PyObject *self, PyObject *value) {
    (void)self;
    long severity = PyLong_AsLong(value);
    if (severity == -1 && PyErr_Occurred())
        return NULL;
    default_severity = severity;
    Py_RETURN_NONE;
}

/* Returns 1 if the nodes of the run are wanted: for a trace, or for the log at severity 0 (verbose)
 * or 1 (info). -1 with an exception. */
static int wants_notes(const run *r) {
    if (r->self->is_traced)
        return 1;
    long severity = -1;
    if (r->terminate != NULL) {
        PyObject *level = PyObject_GetAttrString(r->options, "log_severity_level");
        severity = level ? PyLong_AsLong(level) : -1;
        Py_XDECREF(level);
        if (PyErr_Occurred())
            return -1;
    }
    if (severity < 0)
        severity = r->self->severity < 0 ? default_severity : r->self->severity;
    return severity <= 1;
}

/* Passes the nodes of a run to self._finished. -1 with an exception. */
static int tell_session(const run *r, const kpy_notes *notes) {
    PyObject *list = kpy_notes_list(notes);
    PyObject *done = list ? PyObject_CallMethod((PyObject *)r->self, "_finished", "OKKO", list,
                                                (unsigned long long)notes->begin_ns,
                                                (unsigned long long)kpy_now_ns(),
                                                r->terminate != NULL ? r->options : Py_None)
                          : NULL;
    Py_XDECREF(list);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

static int invoke(run *r) {
    kpy_watch watch;
    kpy_notes notes = {0};
    int wants = wants_notes(r);
    if (wants < 0)
        return -1;
    kelp_status *status =
        wants ? kelp_context_set_profiler(r->place.context, kpy_notes_add, &notes) : NULL;
    if (status != NULL)
        return fail_run(r, status);
    if (wants)
        notes.begin_ns = kpy_now_ns();
    kpy_watch_begin(&watch, r->terminate);
    bool asks = watch.main || watch.terminate != NULL;
    kelp_context_set_interrupt(r->place.context, asks ? kpy_watch_stops : NULL, &watch);
    status = kelp_context_invoke(r->place.context);
    bool raised = kpy_watch_end(&watch);
    if (wants)
        kelp_status_free(kelp_context_set_profiler(r->place.context, NULL, NULL)); /* see above */
    int failed = 0;
    if (raised) /* the exception of a signal handler is set */
        kelp_status_free(status), failed = -1;
    else if (status != NULL)
        failed = fail_run(r, status);
    else if (wants)
        failed = tell_session(r, &notes);
    kpy_notes_deinit(&notes);
    return failed;
}

static PyObject *run_bound(run *r, PyObject *feed, PyObject **into) {
    uint64_t shapes;
    if (bind_inputs(r, feed, &shapes))
        return NULL;
    kelp_status *status;
    if (shapes == r->place.shapes) { /* already scheduled */
        status = kelp_context_prepare(r->place.context);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        status = kelp_context_prepare(r->place.context);
        Py_END_ALLOW_THREADS;
        r->place.shapes = shapes;
    }
    if (status != NULL)
        return kpy_raise(status);
    if (bind_outputs(r, into))
        return NULL;
    return invoke(r) ? NULL : collect(r);
}

static PyObject *run_feed(session *self, const size_t *wanted, size_t wanted_count, PyObject *feed,
                          PyObject **into, PyObject *options);

/* Runs the model with a feed that has names which are no inputs. If they are initializers that can
 * be overridden, self._overridden returns a session for which they are inputs, otherwise None. */
static PyObject *run_overridden(session *self, const size_t *wanted, size_t wanted_count,
                                PyObject *feed, PyObject **into, PyObject *options) {
    PyObject *other = PyObject_CallMethod((PyObject *)self, "_overridden", "O", feed);
    PyObject *result = NULL;
    if (other != NULL && PyObject_TypeCheck(other, session_type))
        result = run_feed((session *)other, wanted, wanted_count, feed, into, options);
    else if (other != NULL)
        refuse_feed(self, feed);
    Py_XDECREF(other);
    return result;
}

static PyObject *run_feed(session *self, const size_t *wanted, size_t wanted_count, PyObject *feed,
                          PyObject **into, PyObject *options) {
    run r;
    if (kpy_run_options(options, &r.terminate))
        return NULL;
    if (self->engine == NULL)
        return kpy_fail(KELP_FAILED_PRECONDITION, "the session has no model");
    if (!PyDict_Check(feed)) {
        PyErr_Format(PyExc_TypeError, "inputs: expected a dict from names to arrays, found '%s'",
                     kpy_type_name(feed, (char[KPY_TYPE_NAME]){0}));
        return NULL;
    }
    r.options = options;
    r.self = self;
    r.has_extra = false;
    r.view_count = 0;
    r.wanted = wanted;
    r.wanted_count = wanted_count;
    r.views = r.few;
    r.arrays = r.few_arrays;
    if (take_context(self, &r.place))
        return NULL;
    PyObject *result = NULL;
    size_t most = self->input_count + wanted_count;
    if (most > 2 * FEW)
        r.views = PyMem_Malloc(most * sizeof *r.views);
    if (wanted_count > FEW)
        r.arrays = PyMem_Malloc(wanted_count * sizeof *r.arrays);
    if (r.views == NULL || r.arrays == NULL) {
        PyErr_NoMemory();
    } else {
        memset(r.arrays, 0, wanted_count * sizeof *r.arrays);
        result = run_bound(&r, feed, into);
        for (size_t i = 0; i < r.view_count; i++)
            kpy_view_deinit(&r.views[i]);
        for (size_t i = 0; i < wanted_count; i++)
            Py_XDECREF(r.arrays[i]);
    }
    if (r.views != r.few)
        PyMem_Free(r.views);
    if (r.arrays != r.few_arrays)
        PyMem_Free(r.arrays);
    give_context(self, r.place);
    return r.has_extra ? run_overridden(self, wanted, wanted_count, feed, into, options) : result;
}

/* Adapters of the options add their parameters to the inputs. */
static PyObject *run_session(session *self, const size_t *wanted, size_t wanted_count,
                             PyObject *feed, PyObject **into, PyObject *options) {
    if (!kpy_run_options_adapt(options))
        return run_feed(self, wanted, wanted_count, feed, into, options);
    PyObject *adapted = PyObject_CallMethod(options, "_adapted", "O", feed);
    PyObject *result =
        adapted ? run_feed(self, wanted, wanted_count, adapted, into, options) : NULL;
    Py_XDECREF(adapted);
    return result;
}

/* Returns the indices of the named outputs. `few` has memory for FEW of them. The caller frees *out
 * unless it is `few`. */
static int find_outputs(session *self, PyObject *names, size_t *few, size_t **out, size_t *count) {
    if (self->engine == NULL)
        return kpy_fail(KELP_FAILED_PRECONDITION, "the session has no model"), -1;
    if (PyUnicode_Check(names)) {
        PyErr_Format(PyExc_TypeError,
                     "output_names: expected a list of str, or None for all, found the str %R",
                     names);
        return -1;
    }
    PyObject *items = names == Py_None
                          ? Py_NewRef(self->output_names)
                          : PySequence_Fast(names, "output_names: expected a list of str");
    if (items == NULL)
        return -1;
    *count = (size_t)PySequence_Size(items);
    *out = *count > FEW ? PyMem_Malloc(*count * sizeof **out) : few;
    if (*out == NULL) {
        Py_DECREF(items);
        return PyErr_NoMemory(), -1;
    }
    for (size_t i = 0; i < *count; i++) {
        (*out)[i] = i;
        if (names == Py_None)
            continue;
        PyObject *name = kpy_sequence_item(items, (Py_ssize_t)i);
        PyObject *number = PyDict_GetItemWithError(self->output_index, name);
        if (number != NULL) {
            (*out)[i] = PyLong_AsSize_t(number);
            continue;
        }
        PyObject *all = PyErr_Occurred() ? NULL : names_of(self->output_names);
        if (all != NULL)
            kpy_fail(KELP_INVALID_ARGUMENT, "the model has no output %R; it has '%U'", name, all);
        Py_XDECREF(all);
        Py_DECREF(items);
        if (*out != few)
            PyMem_Free(*out);
        return -1;
    }
    Py_DECREF(items);
    return 0;
}

static int read_run_words(PyObject *const *args, Py_ssize_t count, PyObject *words,
                          PyObject **values) {
    static const char *const names[3] = {"output_names", "input_feed", "run_options"};
    if (count > 3) {
        PyErr_Format(PyExc_TypeError, "run: expected at most 3 arguments, found %zd", count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = args[i];
    for (Py_ssize_t i = 0; words != NULL && i < PyTuple_Size(words); i++) {
        PyObject *word = PyTuple_GetItem(words, i);
        int at = 0;
        while (at < 3 && PyUnicode_CompareWithASCIIString(word, names[at]))
            at++;
        if (at == 3 || at < count) {
            PyErr_Format(PyExc_TypeError, "run: argument '%U' is unknown or specified twice", word);
            return -1;
        }
        values[at] = args[count + i];
    }
    if (values[1] == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "run: missing argument 'input_feed', a dict from names to arrays");
        return -1;
    }
    return 0;
}

PyDoc_STRVAR(
    run_doc,
    "run(output_names, input_feed, run_options=None)\n--\n\nRuns the model. "
    "Thread-safe.\n\noutput_names: a list of names, or None for all outputs.\ninput_feed: a dict "
    "from the name of every input to an array of its dtype and shape:\n    numpy, or an object "
    "with __dlpack__ or the buffer protocol; lists and numbers are\n    converted. Contiguous "
    "arrays are used in place, others are copied.\nrun_options: a RunOptions, whose terminate "
    "cancels the run. Ctrl-C cancels it too.\nReturns a list of numpy arrays, to which the engine "
    "writes directly. Strings are\narrays of str objects.");
static PyObject *session_run(PyObject *object, PyObject *const *args, Py_ssize_t count,
                             PyObject *words) {
    session *self = (session *)object;
    PyObject *values[3] = {Py_None, NULL, NULL};
    size_t few[FEW], *wanted, wanted_count;
    if (read_run_words(args, count, words, values))
        return NULL;
    if (values[0] != Py_None && (PyList_Check(values[0]) || PyTuple_Check(values[0])) &&
        PySequence_Size(values[0]) == 0)
        values[0] = Py_None;
    if (find_outputs(self, values[0], few, &wanted, &wanted_count))
        return NULL;
    PyObject *result = run_session(self, wanted, wanted_count, values[1], NULL, values[2]);
    if (wanted != few)
        PyMem_Free(wanted);
    return result;
}

PyDoc_STRVAR(run_into_doc,
             "run_into(output_feed, input_feed, run_options=None)\n--\n\nRuns the model and writes "
             "the outputs to existing arrays.\n\noutput_feed: a dict from the names of outputs to "
             "contiguous, writable arrays of the\n    output's dtype and shape; None creates a new "
             "array.\nReturns the arrays in the order of the dict.");
static PyObject *session_run_into(PyObject *object, PyObject *args, PyObject *words) {
    static char *names[] = {"output_feed", "input_feed", "run_options", NULL};
    session *self = (session *)object;
    PyObject *outputs, *feed, *options = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, words, "O!O!|O", names, &PyDict_Type, &outputs,
                                     &PyDict_Type, &feed, &options))
        return NULL;
    size_t few[FEW], *wanted, wanted_count;
    PyObject *keys = PyDict_Keys(outputs), *values = PyDict_Values(outputs), *result = NULL;
    if (keys && values && !find_outputs(self, keys, few, &wanted, &wanted_count)) {
        PyObject **into = PyMem_Calloc(wanted_count + 1, sizeof *into);
        if (into == NULL) {
            PyErr_NoMemory();
        } else {
            for (size_t i = 0; i < wanted_count; i++) {
                into[i] = PyList_GetItem(values, (Py_ssize_t)i);
                if (into[i] == Py_None)
                    into[i] = NULL;
            }
            result = run_session(self, wanted, wanted_count, feed, into, options);
        }
        PyMem_Free(into);
        if (wanted != few)
            PyMem_Free(wanted);
    }
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return result;
}

/* ---- metadata ---- */
static PyObject *describe(const kelp_io_info *info) {
    PyObject *shape = info->rank < 0 ? Py_NewRef(Py_None) : PyList_New(info->rank);
    for (int32_t i = 0; shape != NULL && i < info->rank; i++) {
        PyObject *extent = info->shape[i] >= 0 ? PyLong_FromLongLong(info->shape[i])
                           : info->symbols[i] && *info->symbols[i]
                               ? PyUnicode_FromString(info->symbols[i])
                               : Py_NewRef(Py_None);
        if (extent == NULL)
            Py_CLEAR(shape);
        else
            PyList_SetItem(shape, i, extent);
    }
    return shape ? Py_BuildValue("(ssN)", info->name, kelp_dtype_name(info->dtype), shape) : NULL;
}

PyDoc_STRVAR(io_doc, "_io()\n--\n\nReturns inputs and outputs: lists of (name, dtype, shape).");
static PyObject *session_io(PyObject *object, PyObject *args) {
    (void)args;
    session *self = (session *)object;
    PyObject *inputs = PyList_New(0), *outputs = PyList_New(0);
    for (size_t i = 0; inputs && outputs && i < self->input_count + self->output_count; i++) {
        bool in = i < self->input_count;
        PyObject *item = describe(in ? kelp_engine_input(self->engine, i)
                                     : kelp_engine_output(self->engine, i - self->input_count));
        int failed = item ? PyList_Append(in ? inputs : outputs, item) : -1;
        Py_XDECREF(item);
        if (failed)
            Py_CLEAR(inputs);
    }
    if (inputs == NULL || outputs == NULL) {
        Py_XDECREF(inputs);
        Py_XDECREF(outputs);
        return NULL;
    }
    return Py_BuildValue("(NN)", inputs, outputs);
}

PyDoc_STRVAR(progress_doc,
             "_progress()\n--\n\nReturns the number of created operators, and their total.");
static PyObject *session_progress(PyObject *object, PyObject *args) {
    (void)args;
    session *self = (session *)object;
    return Py_BuildValue("(nn)", (Py_ssize_t)atomic_load(&self->done),
                         (Py_ssize_t)atomic_load(&self->total));
}

PyDoc_STRVAR(meta_doc, "_meta()\n--\n\nReturns the metadata of the model as a dict.");
static PyObject *session_meta(PyObject *object, PyObject *args) {
    (void)args;
    session *self = (session *)object;
    if (self->engine == NULL)
        return kpy_fail(KELP_FAILED_PRECONDITION, "the session has no model");
    kelp_graph_info info = kelp_graph_get_info(self->graph);
    kelp_engine_stats stats = kelp_engine_get_stats(self->engine);
    PyObject *custom = PyDict_New();
    for (size_t i = 0; custom != NULL && i < info.metadata_count; i++) {
        const char *key, *value;
        kelp_graph_metadata(self->graph, i, &key, &value);
        PyObject *text = PyUnicode_FromString(value);
        if (text == NULL || PyDict_SetItemString(custom, key, text))
            Py_CLEAR(custom);
        Py_XDECREF(text);
    }
    return custom ? Py_BuildValue(
                        "{ss,ss,ss,ss,sL,sL,sn,sn,sn,sN}", "producer_name", info.producer_name,
                        "graph_name", info.graph_name, "domain", info.domain, "description",
                        info.doc, "version", (long long)info.model_version, "ir_version",
                        (long long)info.ir_version, "node_count", (Py_ssize_t)info.node_count,
                        "planned_node_count", (Py_ssize_t)stats.nodes_planned, "parameter_count",
                        (Py_ssize_t)info.parameter_count, "custom_metadata_map", custom)
                  : NULL;
}

PyDoc_STRVAR(observe_doc, "_observe(severity, is_traced)\n--\n\nSets for which runs _finished is "
                          "called: all, or by the severity of the log.");
static PyObject *session_observe(PyObject *object, PyObject *args) {
    session *self = (session *)object;
    int is_traced;
    if (!PyArg_ParseTuple(args, "lp", &self->severity, &is_traced))
        return NULL;
    self->is_traced = is_traced;
    Py_RETURN_NONE;
}

static PyMethodDef session_methods[] = {
    {"_observe", session_observe, METH_VARARGS, observe_doc},
    {"_open", session_open, METH_VARARGS, open_doc},
    {"run", (PyCFunction)(void (*)(void))session_run, METH_FASTCALL | METH_KEYWORDS, run_doc},
    {"run_into", (PyCFunction)(void (*)(void))session_run_into, METH_VARARGS | METH_KEYWORDS,
     run_into_doc},
    {"_io", session_io, METH_NOARGS, io_doc},
    {"_progress", session_progress, METH_NOARGS, progress_doc},
    {"_meta", session_meta, METH_NOARGS, meta_doc},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot session_slots[] = {
    {Py_tp_new, session_new},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_traverse, session_traverse},
    {Py_tp_methods, session_methods},
    {Py_tp_doc, (void *)"The C base class of InferenceSession."},
    {0, NULL},
};
static PyType_Spec session_spec = {.name = "kelp._kelp.Session",
                                   .basicsize = sizeof(session),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                            Py_TPFLAGS_HAVE_GC,
                                   .slots = session_slots};

int kpy_session_ready(PyObject *module) {
    kpy_runtime_type = (PyTypeObject *)PyType_FromSpec(&runtime_spec);
    session_type = (PyTypeObject *)PyType_FromSpec(&session_spec);
    if (!kpy_runtime_type || !session_type || PyModule_AddType(module, kpy_runtime_type))
        return -1;
    return PyModule_AddType(module, session_type);
}
