/* SPDX-License-Identifier: Apache-2.0 */
/* The logging extension: clients read and change the log settings of the server. All protocols of a
 * server share them. Thread-safe. */
#ifndef KELP_FRONTENDS_SETTINGS_LOGGING_H_
#define KELP_FRONTENDS_SETTINGS_LOGGING_H_

#include "base/log.h"
#include "base/str.h"

#include <kelp/allocator.h>

typedef struct kelp_logging kelp_logging;

/* The settings. */
typedef struct kelp_logging_values {
    const char *file; /* "" for standard output and error; borrowed */
    bool info, warning, error;
    uint32_t verbose; /* level; 0: off */
    kelp_log_format format;
} kelp_logging_values;

/* Creates the settings; `initial` are those of the log. */
kelp_status *kelp_logging_create(kelp_allocator allocator, const kelp_logging_values *initial,
                                 kelp_logging **out) KELP_MUST_USE;
/* NULL is allowed. */
void kelp_logging_destroy(kelp_logging *logging);

kelp_logging_values kelp_logging_get(kelp_logging *logging);
/* Returns "default", "ISO8601" or "json". */
const char *kelp_logging_format_name(kelp_log_format format);

/* The value of a setting as a client sent it. */
typedef struct kelp_logging_change {
    kelp_str name; /* log_info, log_warning, log_error, log_verbose_level, log_format, log_file */
    enum { KELP_LOGGING_BOOL, KELP_LOGGING_NUMBER, KELP_LOGGING_TEXT } kind;
    bool boolean;
    uint64_t number;
    kelp_str text;
} kelp_logging_change;

/* Applies all changes or none. Fails with INVALID_ARGUMENT for an unknown name or a value that does
 * not fit, UNIMPLEMENTED for log_file. */
kelp_status *kelp_logging_update(kelp_logging *logging, const kelp_logging_change *changes,
                                 size_t count) KELP_MUST_USE;

#endif
