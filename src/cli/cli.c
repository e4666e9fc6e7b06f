/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the commands: errors and output. */
#include "cli/cli.h"

#include "base/assert.h"
#include "base/checked.h"

#include <errno.h>
#include <unistd.h>

static void report(const kelp_status *status) {
    KELP_ASSERT(status != NULL);
    char text[4096];
    if (kelp_status_format(status, text, sizeof text) < sizeof text) {
        fprintf(stderr, "kelp: %s\n", text);
        return;
    }
    /* A list of unsupported operators may be long; print all of it. */
    fprintf(stderr, "kelp: ");
    for (const kelp_status *at = status; at != NULL; at = kelp_status_cause(at))
        fprintf(stderr, "%s%s", at == status ? "" : ": ", kelp_status_message(at));
    fprintf(stderr, "\n");
}

int kelp_cli_finish(kelp_status *take_status) {
    if (take_status == NULL)
        return KELP_EXIT_OK;
    report(take_status);
    kelp_status_free(take_status);
    return KELP_EXIT_FAILURE;
}

int kelp_cli_usage(const kelp_command *command, kelp_status *take_status) {
    report(take_status);
    fprintf(stderr, "Usage: kelp %s %s\nSee 'kelp help %s'.\n", command->name, command->usage,
            command->name);
    kelp_status_free(take_status);
    return KELP_EXIT_USAGE;
}

kelp_status *kelp_cli_print(kelp_buf *text) {
    KELP_TRY(kelp_buf_status(text));
    if (!text->length)
        return NULL;
    /* A closed pipe (`| head`) is not an error. */
    bool written = text->length == 0 || fwrite(text->data, 1, text->length, stdout) == text->length;
    if (!written || fflush(stdout)) {
        if (errno == EPIPE)
            return NULL;
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot write to standard output: %s", strerror(errno));
    }
    return NULL;
}

const char *kelp_cli_bytes(uint64_t bytes, char *buffer) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < KELP_COUNT(units)) {
        value /= 1024;
        unit++;
    }
    snprintf(buffer, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return buffer;
}

const char *kelp_cli_duration(uint64_t duration_ns, char *buffer) {
    double value = (double)duration_ns;
    if (value < 1e3)
        snprintf(buffer, 32, "%.0f ns", value);
    else if (value < 1e6)
        snprintf(buffer, 32, "%.1f us", value / 1e3);
    else if (value < 1e9)
        snprintf(buffer, 32, "%.2f ms", value / 1e6);
    else
        snprintf(buffer, 32, "%.2f s", value / 1e9);
    return buffer;
}
