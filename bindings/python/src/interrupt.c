/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels runs in flight on Ctrl-C and RunOptions.terminate. The engine polls between nodes, and
 * every few milliseconds within a node. Polling must be cheap: a timer thread sets a flag twenty
 * times a second, and only then does the poll check Python's signals with the GIL. The timer thread
 * sleeps when no run is in flight, and does not use Python. Only Python's main thread handles
 * signals; on other threads the poll checks `terminate`. */
#include "kpy.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#define TICK_NS 50000000L
#define TICKS_UNTIL_SLEEP 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static bool started;                 /* protected by the lock */
static _Atomic bool awake;           /* the thread is running; protected by the lock */
static _Atomic bool tick;            /* signals must be checked */
static _Atomic unsigned runs, under; /* number of runs started; in flight */
static pthread_t main_thread;

/* ---- the thread ---- */
static void *watch_main(void *userp) {
    unsigned seen = 0;
    int quiet = 0;
    (void)userp;
    for (;;) {
        struct timespec pause = {0, TICK_NS};
        (void)nanosleep(&pause, NULL);
        atomic_store(&tick, true);
        unsigned now = atomic_load(&runs);
        quiet = now == seen && atomic_load(&under) == 0 ? quiet + 1 : 0;
        seen = now;
        if (quiet < TICKS_UNTIL_SLEEP)
            continue;
        pthread_mutex_lock(&lock);
        atomic_store(&awake, false);
        if (atomic_load(&under) > 0) /* the thread saw the flag, or will lock */
            atomic_store(&awake, true);
        while (!atomic_load(&awake))
            pthread_cond_wait(&woken, &lock);
        pthread_mutex_unlock(&lock);
        quiet = 0;
    }
    return NULL;
}

/* If the thread cannot be created, runs are not interruptible. */
static void wake(void) {
    pthread_mutex_lock(&lock);
    atomic_store(&awake, true);
    if (started) {
        pthread_cond_signal(&woken);
    } else {
        sigset_t all, before;
        pthread_t thread;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        started = pthread_create(&thread, NULL, watch_main, NULL) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (started)
            pthread_detach(thread);
    }
    pthread_mutex_unlock(&lock);
}

/* The forking thread is the main and only thread of the child. */
static void after_fork(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&woken, NULL);
    started = false;
    atomic_store(&awake, false);
    atomic_store(&under, 0);
    main_thread = pthread_self();
}

/* ---- one call ---- */
void kpy_watch_begin(kpy_watch *watch, const _Atomic bool *terminate) {
    *watch = (kpy_watch){.terminate = terminate};
    watch->main = pthread_equal(pthread_self(), main_thread) != 0;
    if (watch->main) {
        atomic_fetch_add_explicit(&runs, 1, memory_order_relaxed);
        atomic_fetch_add(&under, 1);
        if (!atomic_load(&awake))
            wake();
    }
    watch->thread = PyEval_SaveThread();
}

bool kpy_watch_stops(void *userp) {
    kpy_watch *watch = userp;
    if (atomic_load_explicit(&watch->raised, memory_order_relaxed) ||
        (watch->terminate != NULL && atomic_load_explicit(watch->terminate, memory_order_relaxed)))
        return true;
    if (!watch->main || !atomic_load_explicit(&tick, memory_order_relaxed) ||
        !pthread_equal(pthread_self(), main_thread)) /* a worker thread of the main one */
        return false;
    atomic_store(&tick, false);
    PyEval_RestoreThread(watch->thread);
    bool raised = PyErr_CheckSignals() != 0;
    watch->thread = PyEval_SaveThread();
    atomic_store(&watch->raised, raised);
    return raised;
}

bool kpy_watch_end(kpy_watch *watch) {
    PyEval_RestoreThread(watch->thread);
    if (watch->main)
        atomic_fetch_sub(&under, 1);
    return atomic_load(&watch->raised);
}

/* ---- RunOptions ---- */
typedef struct run_options {
    PyObject_HEAD _Atomic bool terminate;
    bool has_adapters; /* self._adapted adds their parameters to the inputs */
} run_options;

static PyTypeObject *options_type;

static PyObject *get_terminate(PyObject *object, void *closure) {
    (void)closure;
    return PyBool_FromLong(atomic_load(&((run_options *)object)->terminate));
}

static int set_terminate(PyObject *object, PyObject *value, void *closure) {
    (void)closure;
    int on = value ? PyObject_IsTrue(value) : 0;
    if (on >= 0)
        atomic_store(&((run_options *)object)->terminate, on != 0);
    return on < 0 ? -1 : 0;
}

static PyObject *get_has_adapters(PyObject *object, void *closure) {
    (void)closure;
    return PyBool_FromLong(((run_options *)object)->has_adapters);
}

static int set_has_adapters(PyObject *object, PyObject *value, void *closure) {
    (void)closure;
    int on = value ? PyObject_IsTrue(value) : 0;
    ((run_options *)object)->has_adapters = on > 0;
    return on < 0 ? -1 : 0;
}

bool kpy_run_options_adapt(PyObject *options) {
    return options != NULL && options != Py_None && PyObject_TypeCheck(options, options_type) &&
           ((run_options *)options)->has_adapters;
}

static void options_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    kpy_type_free(type, object);
    Py_DECREF(type);
}

int kpy_run_options(PyObject *object, const _Atomic bool **out) {
    *out = NULL;
    if (object == NULL || object == Py_None)
        return 0;
    if (!PyObject_TypeCheck(object, options_type)) {
        PyErr_Format(PyExc_TypeError, "run_options: expected a kelp.RunOptions or None, found '%s'",
                     kpy_type_name(object, (char[KPY_TYPE_NAME]){0}));
        return -1;
    }
    *out = &((run_options *)object)->terminate;
    return 0;
}

static PyGetSetDef options_getset[] = {
    {"terminate", get_terminate, set_terminate,
     "Cancels current and later runs with these options.", NULL},
    {"_has_adapters", get_has_adapters, set_has_adapters, "Whether _adapted is called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot options_slots[] = {
    {Py_tp_dealloc, options_dealloc},
    {Py_tp_getset, options_getset},
    {Py_tp_doc, (void *)"The C base class of RunOptions."},
    {0, NULL},
};
static PyType_Spec options_spec = {.name = "kelp._kelp.RunOptions",
                                   .basicsize = sizeof(run_options),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                   .slots = options_slots};

PyObject *kpy_main_thread(PyObject *self, PyObject *args) {
    (void)self, (void)args;
    return PyLong_FromUnsignedLong((unsigned long)main_thread);
}

int kpy_interrupt_ready(PyObject *module) {
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *thread = threading ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
    PyObject *ident = thread ? PyObject_GetAttrString(thread, "ident") : NULL;
    unsigned long number = ident ? PyLong_AsUnsignedLong(ident) : 0;
    Py_XDECREF(ident);
    Py_XDECREF(thread);
    Py_XDECREF(threading);
    if (PyErr_Occurred())
        return -1;
    main_thread = (pthread_t)number; /* on Linux both are pthread_self() */
    if (pthread_atfork(NULL, NULL, after_fork)) {
        PyErr_NoMemory();
        return -1;
    }
    options_type = (PyTypeObject *)PyType_FromSpec(&options_spec);
    return options_type == NULL ? -1 : PyModule_AddType(module, options_type);
}
