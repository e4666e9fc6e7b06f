/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements statuses. A status, its message and its file name are one heap block. The file name
 * is copied, because a status may outlive the shared library that raised it. The C library's heap
 * is used, so that a status can be created where no allocator is available.
 */
#include <kelp/status.h>

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kelp_status {
    kelp_code code;
    kelp_domain domain;
    int line;
    bool is_static; /* a flag, because each library that contains this file has its own object */
    const char *message;
    const char *file;
    kelp_status *cause;
};

/* Never modified: kelp_status_free and kelp_status_annotate check is_static first. */
static const kelp_status out_of_memory = {
    .code = KELP_RESOURCE_EXHAUSTED,
    .is_static = true,
    .message = "out of memory",
    .file = "",
};

kelp_status *kelp_status_oom(void) {
    return (kelp_status *)(uintptr_t)&out_of_memory;
}

/* Allocates a status with space for a message of `message_length` bytes, which the caller writes;
 * returns NULL if memory is exhausted. */
static kelp_status *block_new(kelp_code code, const char *file, int line, size_t message_length,
                              char **out_message) {
    if (file == NULL)
        file = "";
    size_t file_bytes = strlen(file) + 1;
    size_t size_bytes;
    if (!kelp_size_add(sizeof(kelp_status), file_bytes, &size_bytes) ||
        !kelp_size_add(size_bytes, message_length, &size_bytes) ||
        !kelp_size_add(size_bytes, 1, &size_bytes))
        return NULL;
    kelp_status *status = malloc(size_bytes);
    if (status == NULL)
        return NULL;
    char *text = (char *)(status + 1);
    memcpy(text, file, file_bytes);
    *status = (kelp_status){
        .code = code, .line = line, .message = text + file_bytes, .file = text, .cause = NULL};
    text[file_bytes] = '\0';
    *out_message = text + file_bytes;
    return status;
}

static KELP_PRINTF(4, 0) kelp_status *status_make(kelp_code code, const char *file, int line,
                                                  const char *format, va_list args) {
    va_list measure;
    va_copy(measure, args);
    int length = vsnprintf(NULL, 0, format, measure);
    va_end(measure);
    /* if the message cannot be formatted, the format itself is the message */
    size_t message_length = length < 0 ? strlen(format) : (size_t)length;
    char *message = NULL;
    kelp_status *status = block_new(code, file, line, message_length, &message);
    if (status == NULL)
        return NULL;
    if (length < 0)
        memcpy(message, format, message_length + 1);
    else
        (void)vsnprintf(message, message_length + 1, format, args);
    return status;
}

KELP_PRINTF(4, 0)
kelp_status *kelp_status_newv(kelp_code code, const char *file, int line, const char *format,
                              va_list args) {
    kelp_status *status = status_make(code, file, line, format, args);
    return status != NULL ? status : kelp_status_oom();
}

kelp_status *kelp_status_new(kelp_code code, const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    kelp_status *status = kelp_status_newv(code, file, line, format, args);
    va_end(args);
    return status;
}

kelp_status *kelp_status_annotate(kelp_status *take_cause, const char *file, int line,
                                  const char *format, ...) {
    if (take_cause == NULL)
        return NULL;
    va_list args;
    va_start(args, format);
    kelp_status *status = status_make(take_cause->code, file, line, format, args);
    va_end(args);
    if (status == NULL)
        return take_cause;
    status->cause = take_cause;
    status->domain = take_cause->domain;
    return status;
}

void kelp_status_free(kelp_status *status) {
    while (status != NULL && !status->is_static) {
        kelp_status *cause = status->cause;
        free(status);
        status = cause;
    }
}

kelp_status *kelp_status_clone(const kelp_status *status) {
    kelp_status *first = NULL;
    kelp_status **link = &first;
    for (; status != NULL; status = status->cause) {
        if (status->is_static) {
            *link = kelp_status_oom();
            return first;
        }
        size_t length = strlen(status->message);
        char *message = NULL;
        kelp_status *copy = block_new(status->code, status->file, status->line, length, &message);
        if (copy == NULL) {
            kelp_status_free(first);
            return kelp_status_oom();
        }
        memcpy(message, status->message, length + 1);
        copy->domain = status->domain;
        *link = copy;
        link = &copy->cause;
    }
    return first;
}

kelp_code kelp_status_code(const kelp_status *status) {
    return status != NULL ? status->code : KELP_OK;
}

const char *kelp_status_message(const kelp_status *status) {
    return status != NULL ? status->message : "";
}

const kelp_status *kelp_status_cause(const kelp_status *status) {
    return status != NULL ? status->cause : NULL;
}

const char *kelp_status_file(const kelp_status *status) {
    return status != NULL ? status->file : "";
}

int kelp_status_line(const kelp_status *status) {
    return status != NULL ? status->line : 0;
}

kelp_domain kelp_status_domain(const kelp_status *status) {
    return status != NULL ? status->domain : KELP_DOMAIN_NONE;
}

void kelp_status_set_domain(kelp_status *status, kelp_domain domain) {
    if (status != NULL && !status->is_static)
        status->domain = domain;
}

const char *kelp_domain_name(kelp_domain domain) {
    static const char *const names[] = {"",        "builder", "network",  "engine",
                                        "runtime", "device",  "parameter"};
    return (unsigned)domain < KELP_COUNT(names) ? names[(unsigned)domain] : "";
}

const char *kelp_code_name(kelp_code code) {
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    return (unsigned)code < KELP_COUNT(names) ? names[(unsigned)code] : "UNKNOWN";
}

/* Appends what fits and counts the rest. */
static void put_text(const char *text, char *buffer, size_t capacity, size_t *inout_length) {
    for (; *text; text++, (*inout_length)++) {
        if (capacity && *inout_length < capacity - 1)
            buffer[*inout_length] = *text;
    }
}

size_t kelp_status_format(const kelp_status *status, char *buffer, size_t capacity) {
    size_t length = 0;
    for (const kelp_status *at = status; at != NULL; at = at->cause) {
        if (at != status)
            put_text(": ", buffer, capacity, &length);
        put_text(at->message, buffer, capacity, &length);
    }
    if (capacity)
        buffer[KELP_MIN(length, capacity - 1)] = '\0';
    return length;
}
