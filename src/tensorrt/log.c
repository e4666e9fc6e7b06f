/* SPDX-License-Identifier: Apache-2.0 */
/* TensorRT's messages: handwritten method tables that append to one list, guarded by a lock. */
#include "tensorrt/log.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/checked.h"
#include "tensorrt/callbacks.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Limits the memory for messages. A failed build has a few messages. */
#define MAX_MESSAGES 512

typedef struct message {
    trt_severity severity;
    trt_error_code code; /* 0: a message of the logger */
    char *text;
} message;

struct trt_log {
    const void *const *logger; /* the address of this field is the ILogger */
    const void *const *recorder;
    kelp_allocator allocator;
    trt_severity max_severity;
    trt_log_fn fn;
    void *userp;
    atomic_int references; /* counted for the library; does not affect the lifetime */
    pthread_mutex_t lock;
    message *messages;
    size_t count, capacity;
    size_t hidden; /* the library has cleared the messages before this one */
    size_t lost;   /* messages that were not stored: too many, or out of memory */
};

static trt_log *of_recorder(void *self) {
    return (trt_log *)(void *)((char *)self - offsetof(trt_log, recorder));
}

/* ---- the list ---- */
static void store(trt_log *log, trt_severity severity, trt_error_code code, const char *text) {
    char *copy = NULL;
    kelp_status *status = NULL;
    KELP_ASSERT(text != NULL);
    pthread_mutex_lock(&log->lock);
    if (log->count < MAX_MESSAGES)
        status = kelp_grow(log->allocator, (void **)&log->messages, &log->capacity, log->count + 1,
                           sizeof *log->messages);
    if (status == NULL && log->count < MAX_MESSAGES)
        status = kelp_strdup(log->allocator, text, &copy);
    if (copy != NULL)
        log->messages[log->count++] = (message){severity, code, copy};
    else
        log->lost++;
    pthread_mutex_unlock(&log->lock);
    kelp_status_free(status); /* reported as "and N more" */
}

static void clear(trt_log *log) {
    for (size_t i = 0; i < log->count; i++)
        kelp_free_string(log->allocator, log->messages[i].text);
    log->count = 0;
    log->hidden = 0;
    log->lost = 0;
}

/* Returns true if another message contains this one: the library often sends the same text to its
 * logger, with a location in front, and to its recorder. */
static bool is_duplicate(const trt_log *log, size_t index) {
    const char *text = log->messages[index].text;
    for (size_t i = 0; i < log->count; i++) {
        const char *other = log->messages[i].text;
        if (i != index && strstr(other, text) != NULL && (strcmp(other, text) != 0 || i < index))
            return true;
    }
    return false;
}

/* Returns true for a repeated message: after a failed CUDA call, the library repeats it after each
 * error. */
static bool is_repeated(const char *text) {
    return strstr(text, "catchCudaError") != NULL;
}

static bool is_reported(const trt_log *log, size_t index, trt_severity max_severity) {
    if (log->messages[index].severity > max_severity || is_duplicate(log, index))
        return false;
    if (!is_repeated(log->messages[index].text))
        return true;
    for (size_t i = 0; i < log->count; i++)
        if (log->messages[i].severity <= TRT_SEVERITY_ERROR && !is_repeated(log->messages[i].text))
            return false;
    return true;
}

static void join(const trt_log *log, trt_severity max_severity, const char *separator,
                 kelp_buf *out) {
    for (size_t i = 0; i < log->count; i++) {
        if (!is_reported(log, i, max_severity))
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
        store(log, severity, 0, text);
    if (log->fn != NULL && severity <= log->max_severity)
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
    KELP_ASSERT_HELD(&log->lock);
    KELP_ASSERT(log->hidden <= log->count);
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
    const char *text = found != NULL ? found->text : ""; /* valid until the next clear */
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

/* Hides the messages from the library. They are kept for the status of the operation. */
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
    store(log, TRT_SEVERITY_ERROR, code, text);
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

/* ---- interface ---- */
kelp_status *trt_log_create(kelp_allocator allocator, trt_severity max_severity, trt_log_fn fn,
                            void *userp, trt_log **out) {
    trt_log *log = NULL;
    *out = NULL;
    KELP_TRY(KELP_NEW(allocator, trt_log, &log));
    log->logger = logger_table + 2;
    log->recorder = recorder_table + 2;
    log->allocator = allocator;
    log->max_severity = max_severity;
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
    clear(log);
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
    clear(log);
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
        if (log->messages[i].severity > TRT_SEVERITY_ERROR || is_repeated(text))
            continue;
        /* No driver, or no working device: "Cuda Runtime (… (cudaError 35: …)". */
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
    clear(log);
    pthread_mutex_unlock(&log->lock);
    const char *reasons = kelp_buf_cstr(&text);
    kelp_status *status = reasons != NULL && *reasons != '\0'
                              ? KELP_ANNOTATE(KELP_ERROR(code, "%s", reasons), "%s", what)
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
    const char *reasons = kelp_buf_cstr(&text);
    kelp_status *status =
        reasons != NULL ? kelp_strdup(log->allocator, reasons, out) : kelp_status_oom();
    kelp_buf_deinit(&text);
    return status;
}
