/* SPDX-License-Identifier: Apache-2.0 */
/* TensorRT's messages: tables of methods made by hand, in front of one list under a lock. */
#include "tensorrt/log.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/checked.h"
#include "tensorrt/callbacks.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A build that fails says a few things; one that says more than this says nothing new. */
#define MOST_MESSAGES 512

typedef struct message {
    trt_severity severity;
    trt_error_code code; /* 0 when it came through the logger */
    char *text;
} message;

struct trt_log {
    const void *const *logger; /* what the library sees as an ILogger starts here */
    const void *const *recorder;
    kelp_allocator allocator;
    trt_severity most;
    trt_log_fn fn;
    void *userp;
    atomic_int references; /* the library counts its recorders; the log lives on its own */
    pthread_mutex_t lock;
    message *messages;
    size_t count, capacity;
    size_t hidden; /* messages before this one were cleared in the library's view */
    size_t lost;   /* not kept: too many, or no memory */
};

static trt_log *of_recorder(void *self) {
    return (trt_log *)(void *)((char *)self - offsetof(trt_log, recorder));
}

/* ---- the list ---- */
static void keep(trt_log *log, trt_severity severity, trt_error_code code, const char *text) {
    char *copy = NULL;
    kelp_status *status = NULL;
    pthread_mutex_lock(&log->lock);
    if (log->count < MOST_MESSAGES)
        status = kelp_grow(log->allocator, (void **)&log->messages, &log->capacity, log->count + 1,
                           sizeof *log->messages);
    if (status == NULL && log->count < MOST_MESSAGES)
        status = kelp_strdup(log->allocator, text, &copy);
    if (copy != NULL)
        log->messages[log->count++] = (message){severity, code, copy};
    else
        log->lost++;
    pthread_mutex_unlock(&log->lock);
    kelp_status_free(status); /* told as "and N more" */
}

static void forget(trt_log *log) {
    for (size_t i = 0; i < log->count; i++)
        kelp_free_string(log->allocator, log->messages[i].text);
    log->count = 0;
    log->hidden = 0;
    log->lost = 0;
}

/* The library often says the same to its logger, with a place in front, and to its recorder. */
static bool said_elsewhere(const trt_log *log, size_t index) {
    const char *text = log->messages[index].text;
    for (size_t i = 0; i < log->count; i++) {
        const char *other = log->messages[i].text;
        if (i != index && strstr(other, text) != NULL && (strcmp(other, text) != 0 || i < index))
            return true;
    }
    return false;
}

/* Once a call into CUDA has failed, the library repeats that after each error of any kind. */
static bool is_echo(const char *text) {
    return strstr(text, "catchCudaError") != NULL;
}

static bool is_told(const trt_log *log, size_t index, trt_severity most) {
    if (log->messages[index].severity > most || said_elsewhere(log, index))
        return false;
    if (!is_echo(log->messages[index].text))
        return true;
    for (size_t i = 0; i < log->count; i++)
        if (log->messages[i].severity <= TRT_SEVERITY_ERROR && !is_echo(log->messages[i].text))
            return false;
    return true;
}

static void join(const trt_log *log, trt_severity most, const char *separator, kelp_buf *out) {
    for (size_t i = 0; i < log->count; i++) {
        if (!is_told(log, i, most))
            continue;
        if (out->length > 0)
            kelp_buf_append_cstr(out, separator);
        kelp_buf_append_cstr(out, log->messages[i].text);
    }
    if (log->lost > 0)
        kelp_buf_printf(out, "%sand %zu more", out->length > 0 ? separator : "", log->lost);
}

/* ---- as an ILogger ---- */
static void logger_log(void *self, trt_severity severity, const char *text) {
    trt_log *log = self; /* its first member is the table */
    if (text == NULL)
        return;
    if (severity <= TRT_SEVERITY_WARNING)
        keep(log, severity, 0, text);
    if (log->fn != NULL && severity <= log->most)
        log->fn(log->userp, severity, text);
}

static trt_interface_info logger_info(const void *self) {
    (void)self;
    return (trt_interface_info){TRT_INTERFACE_LOGGER};
}

static const void *const logger_table[2 + TRT_SLOTS_LOGGER] = {
    TRT_CALLBACK_HEAD(LOGGER, logger_info), [2 + TRT_SLOT_LOGGER_LOG] = TRT_ADDRESS(logger_log)};

/* ---- as an IErrorRecorder ---- */
static const message *nth_error(trt_log *log, int32_t index) {
    for (size_t i = log->hidden; i < log->count; i++)
        if (log->messages[i].code != 0 && index-- == 0)
            return &log->messages[i];
    return NULL;
}

static int32_t recorder_count(const void *self) {
    trt_log *log = of_recorder((void *)(uintptr_t)self);
    int32_t count = 0;
    pthread_mutex_lock(&log->lock);
    for (size_t i = log->hidden; i < log->count; i++)
        count += log->messages[i].code != 0;
    pthread_mutex_unlock(&log->lock);
    return count;
}

static trt_error_code recorder_code(const void *self, int32_t index) {
    trt_log *log = of_recorder((void *)(uintptr_t)self);
    pthread_mutex_lock(&log->lock);
    const message *found = nth_error(log, index);
    trt_error_code code = found != NULL ? found->code : TRT_ERROR_CODE_SUCCESS;
    pthread_mutex_unlock(&log->lock);
    return code;
}

static const char *recorder_text(const void *self, int32_t index) {
    trt_log *log = of_recorder((void *)(uintptr_t)self);
    pthread_mutex_lock(&log->lock);
    const message *found = nth_error(log, index);
    const char *text = found != NULL ? found->text : ""; /* lives until the next clear */
    pthread_mutex_unlock(&log->lock);
    return text;
}

static bool recorder_overflowed(const void *self) {
    trt_log *log = of_recorder((void *)(uintptr_t)self);
    pthread_mutex_lock(&log->lock);
    bool overflowed = log->lost > 0;
    pthread_mutex_unlock(&log->lock);
    return overflowed;
}

/* What the library clears is its own view; the messages wait for their status. */
static void recorder_clear(void *self) {
    trt_log *log = of_recorder(self);
    pthread_mutex_lock(&log->lock);
    log->hidden = log->count;
    pthread_mutex_unlock(&log->lock);
}

static bool recorder_report(void *self, trt_error_code code, const char *text) {
    trt_log *log = of_recorder(self);
    if (text == NULL)
        text = "";
    keep(log, TRT_SEVERITY_ERROR, code, text);
    if (log->fn != NULL)
        log->fn(log->userp, TRT_SEVERITY_ERROR, text);
    return true;
}

static int32_t recorder_retain(void *self) {
    return atomic_fetch_add(&of_recorder(self)->references, 1) + 1;
}

static int32_t recorder_release(void *self) {
    return atomic_fetch_sub(&of_recorder(self)->references, 1) - 1;
}

static trt_interface_info recorder_info(const void *self) {
    (void)self;
    return (trt_interface_info){TRT_INTERFACE_ERROR_RECORDER};
}

static const void *const recorder_table[2 + TRT_SLOTS_ERROR_RECORDER] = {
    TRT_CALLBACK_HEAD(ERROR_RECORDER, recorder_info),
    [2 + TRT_SLOT_ERROR_RECORDER_GET_NB_ERRORS] = TRT_ADDRESS(recorder_count),
    [2 + TRT_SLOT_ERROR_RECORDER_GET_ERROR_CODE] = TRT_ADDRESS(recorder_code),
    [2 + TRT_SLOT_ERROR_RECORDER_GET_ERROR_DESC] = TRT_ADDRESS(recorder_text),
    [2 + TRT_SLOT_ERROR_RECORDER_HAS_OVERFLOWED] = TRT_ADDRESS(recorder_overflowed),
    [2 + TRT_SLOT_ERROR_RECORDER_CLEAR] = TRT_ADDRESS(recorder_clear),
    [2 + TRT_SLOT_ERROR_RECORDER_REPORT_ERROR] = TRT_ADDRESS(recorder_report),
    [2 + TRT_SLOT_ERROR_RECORDER_INC_REF_COUNT] = TRT_ADDRESS(recorder_retain),
    [2 + TRT_SLOT_ERROR_RECORDER_DEC_REF_COUNT] = TRT_ADDRESS(recorder_release)};

/* ---- for the callers ---- */
kelp_status *trt_log_create(kelp_allocator allocator, trt_severity most, trt_log_fn fn, void *userp,
                            trt_log **out) {
    trt_log *log = NULL;
    *out = NULL;
    KELP_TRY(KELP_NEW(allocator, trt_log, &log));
    log->logger = logger_table + 2;
    log->recorder = recorder_table + 2;
    log->allocator = allocator;
    log->most = most;
    log->fn = fn;
    log->userp = userp;
    atomic_init(&log->references, 0);
    if (pthread_mutex_init(&log->lock, NULL) != 0) {
        kelp_free(allocator, log, sizeof *log);
        return kelp_status_oom();
    }
    *out = log;
    return NULL;
}

void trt_log_destroy(trt_log *log) {
    if (log == NULL)
        return;
    forget(log);
    kelp_free(log->allocator, log->messages, log->capacity * sizeof *log->messages);
    pthread_mutex_destroy(&log->lock);
    kelp_free(log->allocator, log, sizeof *log);
}

trt_logger *trt_log_logger(trt_log *log) {
    return (trt_logger *)(void *)&log->logger;
}

trt_error_recorder *trt_log_recorder(trt_log *log) {
    return (trt_error_recorder *)(void *)&log->recorder;
}

void trt_log_clear(trt_log *log) {
    pthread_mutex_lock(&log->lock);
    forget(log);
    pthread_mutex_unlock(&log->lock);
}

static kelp_code code_of(const trt_log *log, kelp_code otherwise) {
    static const kelp_code codes[] = {[TRT_ERROR_CODE_INTERNAL_ERROR] = KELP_INTERNAL,
                                      [TRT_ERROR_CODE_INVALID_ARGUMENT] = KELP_INVALID_ARGUMENT,
                                      [TRT_ERROR_CODE_INVALID_CONFIG] = KELP_INVALID_ARGUMENT,
                                      [TRT_ERROR_CODE_FAILED_ALLOCATION] = KELP_RESOURCE_EXHAUSTED,
                                      [TRT_ERROR_CODE_FAILED_INITIALIZATION] = KELP_UNAVAILABLE,
                                      [TRT_ERROR_CODE_FAILED_EXECUTION] = KELP_INTERNAL,
                                      [TRT_ERROR_CODE_FAILED_COMPUTATION] = KELP_INTERNAL,
                                      [TRT_ERROR_CODE_INVALID_STATE] = KELP_FAILED_PRECONDITION,
                                      [TRT_ERROR_CODE_UNSUPPORTED_STATE] = KELP_UNIMPLEMENTED};
    for (size_t i = 0; i < log->count; i++) {
        const char *text = log->messages[i].text;
        trt_error_code code = log->messages[i].code;
        if (log->messages[i].severity > TRT_SEVERITY_ERROR || is_echo(text))
            continue;
        /* No driver, no device, none that answers: "Cuda Runtime (… (cudaError 35: …)". */
        if (strstr(text, "cudaError ") != NULL || strstr(text, ": Cuda Runtime (") != NULL)
            return KELP_UNAVAILABLE;
        if (code > 0 && code < (trt_error_code)KELP_COUNT(codes) && codes[code] != KELP_OK)
            return codes[code];
    }
    return otherwise;
}

static bool has_errors(const trt_log *log) {
    for (size_t i = 0; i < log->count; i++)
        if (log->messages[i].severity <= TRT_SEVERITY_ERROR)
            return true;
    return false;
}

bool trt_log_has_errors(trt_log *log) {
    pthread_mutex_lock(&log->lock);
    bool found = has_errors(log);
    pthread_mutex_unlock(&log->lock);
    return found;
}

kelp_status *trt_log_failure(trt_log *log, kelp_code code, const char *format, ...) {
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    kelp_buf text;
    kelp_buf_init(&text, log->allocator);
    pthread_mutex_lock(&log->lock);
    code = code_of(log, code);
    join(log, has_errors(log) ? TRT_SEVERITY_ERROR : TRT_SEVERITY_WARNING, "; ", &text);
    forget(log);
    pthread_mutex_unlock(&log->lock);
    const char *said = kelp_buf_cstr(&text);
    kelp_status *status = said != NULL && *said != '\0'
                              ? KELP_ANNOTATE(KELP_ERROR(code, "%s", said), "%s", what)
                              : KELP_ERROR(code, "%s (the library gave no reason)", what);
    kelp_buf_deinit(&text);
    return status;
}

kelp_status *trt_log_warnings(trt_log *log, char **out) {
    kelp_buf text;
    kelp_buf_init(&text, log->allocator);
    pthread_mutex_lock(&log->lock);
    join(log, TRT_SEVERITY_WARNING, "\n", &text);
    pthread_mutex_unlock(&log->lock);
    const char *said = kelp_buf_cstr(&text);
    kelp_status *status = said != NULL ? kelp_strdup(log->allocator, said, out) : kelp_status_oom();
    kelp_buf_deinit(&text);
    return status;
}
