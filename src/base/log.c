/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the logger and the three formats of a line. */
#include "base/log.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES 2048

void kelp_log(const kelp_logger *logger, kelp_log_level level, const char *file, int line,
              const char *format, ...) {
    if (logger == NULL || logger->fn == NULL || level > logger->level)
        return;
    char small[STACK_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (length < 0) {
        logger->fn(logger->userp, level, file, line, format, strlen(format));
        return;
    }
    if ((size_t)length < sizeof small) {
        logger->fn(logger->userp, level, file, line, small, (size_t)length);
        return;
    }
    char *large = malloc((size_t)length + 1);
    if (large == NULL) { /* a truncated message is better than none */
        logger->fn(logger->userp, level, file, line, small, sizeof small - 1);
        return;
    }
    va_start(args, format);
    (void)vsnprintf(large, (size_t)length + 1, format, args);
    va_end(args);
    logger->fn(logger->userp, level, file, line, large, (size_t)length);
    free(large);
}

/* Destination of a line; bytes that do not fit are only counted. */
typedef struct writer {
    char *buffer;
    size_t capacity;
    size_t length;
} writer;

static void put_char(writer *out, char c) {
    if (out->capacity && out->length < out->capacity - 1)
        out->buffer[out->length] = c;
    out->length++;
}

static void put_text(writer *out, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        put_char(out, text[i]);
}

/* Returns the length of the well-formed UTF-8 sequence at `text` (RFC 3629, section 4), or 0. */
static size_t utf8_length(const unsigned char *text, size_t left) {
    unsigned char lead = text[0];
    size_t need = lead < 0x80   ? 1
                  : lead < 0xC2 ? 0
                  : lead < 0xE0 ? 2
                  : lead < 0xF0 ? 3
                  : lead < 0xF5 ? 4
                                : 0;
    if (need == 0 || need > left)
        return 0;
    for (size_t i = 1; i < need; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((lead == 0xE0 && text[1] < 0xA0) || (lead == 0xED && text[1] > 0x9F) ||
        (lead == 0xF0 && text[1] < 0x90) || (lead == 0xF4 && text[1] > 0x8F))
        return 0;
    return need;
}

static void put_escaped(writer *out, unsigned char c) {
    static const char hex[] = "0123456789abcdef";
    const char *shorts = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *at = shorts; *at; at += 2) {
        if ((unsigned char)*at == c) {
            put_char(out, '\\');
            put_char(out, at[1]);
            return;
        }
    }
    put_text(out, "\\u00", 4);
    put_char(out, hex[c >> 4]);
    put_char(out, hex[c & 15]);
}

/* Writes a JSON string (RFC 8259, section 7); invalid UTF-8 becomes U+FFFD, so that the line stays
 * valid. */
static void put_quoted(writer *out, const char *text, size_t length) {
    put_char(out, '"');
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        size_t bytes = utf8_length((const unsigned char *)text + i, length - i);
        if (bytes == 0)
            put_text(out, "\xEF\xBF\xBD", 3);
        else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7F)
            put_escaped(out, c);
        else
            put_text(out, text + i, bytes);
        i += bytes ? bytes : 1;
    }
    put_char(out, '"');
}

static const char *base_name(const char *file) {
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    return slash != NULL ? slash + 1 : file != NULL ? file : "";
}

static void put_head(writer *out, kelp_log_format format, char letter, const char *file, int line,
                     const struct tm *utc, int micros) {
    char head[96];
    int used = 0;
    if (format == KELP_LOG_ISO8601)
        used = snprintf(head, sizeof head, "%04d-%02d-%02dT%02d:%02d:%02dZ %c %d ",
                        utc->tm_year + 1900, utc->tm_mon + 1, utc->tm_mday, utc->tm_hour,
                        utc->tm_min, utc->tm_sec, letter, (int)getpid());
    else
        used = snprintf(head, sizeof head, "%c%02d%02d %02d:%02d:%02d.%06d %d ", letter,
                        utc->tm_mon + 1, utc->tm_mday, utc->tm_hour, utc->tm_min, utc->tm_sec,
                        micros, (int)getpid());
    KELP_ASSERT(used > 0 && (size_t)used < sizeof head);
    put_text(out, head, (size_t)used);
    put_text(out, file, strlen(file));
    used = snprintf(head, sizeof head, ":%d] ", line);
    put_text(out, head, (size_t)used);
}

static void put_json_head(writer *out, const char *level, const char *file, int line,
                          const struct tm *utc, int micros) {
    char head[160];
    int used =
        snprintf(head, sizeof head,
                 "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06dZ\",\"level\":\"%s\",\"file\":",
                 utc->tm_year + 1900, utc->tm_mon + 1, utc->tm_mday, utc->tm_hour, utc->tm_min,
                 utc->tm_sec, micros, level);
    KELP_ASSERT(used > 0 && (size_t)used < sizeof head);
    put_text(out, head, (size_t)used);
    put_quoted(out, file, strlen(file));
    used = snprintf(head, sizeof head, ",\"line\":%d,\"thread\":%ld,\"message\":", line,
                    (long)syscall(SYS_gettid));
    put_text(out, head, (size_t)used);
}

size_t kelp_log_format_line(kelp_log_format format, bool escape, kelp_log_level level,
                            const char *file, int line, const char *text, size_t length,
                            char *buffer, size_t capacity) {
    static const char letters[] = "EWII" /* as Triton's verbose lines */;
    static const char *const names[] = {"error", "warning", "info", "verbose"};
    size_t index = (unsigned)level < KELP_COUNT(names) ? (unsigned)level : KELP_LOG_INFO;
    writer out = {buffer, capacity, 0};
    uint64_t now_ns = kelp_wall_now_ns();
    time_t seconds = (time_t)(now_ns / UINT64_C(1000000000));
    int micros = (int)(now_ns % UINT64_C(1000000000) / 1000);
    struct tm utc = {0};
    (void)gmtime_r(&seconds, &utc);
    file = base_name(file);
    if (format == KELP_LOG_JSON)
        put_json_head(&out, names[index], file, line, &utc, micros);
    else
        put_head(&out, format, letters[index], file, line, &utc, micros);
    bool table = length > 0 && text[0] == '\n';
    if (format != KELP_LOG_JSON && (table || !escape))
        put_text(&out, text, length);
    else
        put_quoted(&out, text, length);
    if (format == KELP_LOG_JSON)
        put_char(&out, '}');
    put_char(&out, '\n');
    if (capacity)
        buffer[KELP_MIN(out.length, capacity - 1)] = '\0';
    return out.length;
}
