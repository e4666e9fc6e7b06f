/* SPDX-License-Identifier: Apache-2.0 */
/* kelp kernels: lists kernel libraries with the signatures of their kernels. */
#include "cli/cli.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"

#include <kelp/kernel.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct kernels_options {
    kelp_arg_list libraries;
    bool json;
} kernels_options;

static const kelp_arg_spec specs[] = {
    {.name = "library",
     .letter = 'l',
     .kind = KELP_OPTION_LIST,
     .offset = offsetof(kernels_options, libraries),
     .value = "NAME|FILE",
     .help = "only this library, by name or file; may be repeated"},
    {.name = "json",
     .kind = KELP_OPTION_BOOL,
     .offset = offsetof(kernels_options, json),
     .help = "print JSON"},
};

static void log_line(void *userp, int level, const char *text) {
    (void)userp, (void)level;
    fprintf(stderr, "kelp: not loaded:%s\n", text);
}

static void devices_of(const kelp_kernel_library *library, char *out, size_t capacity) {
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; kelp_kernel_library_device(library, i) != NULL && used < capacity; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%s%s", i ? "," : "",
                                 kelp_kernel_library_device(library, i));
}

static void put_text(const kelp_kernel_library *library, kelp_buf *out) {
    kelp_table table;
    char devices[256];
    devices_of(library, devices, sizeof devices);
    kelp_buf_printf(out, "%s  (%s)  %s\n", kelp_kernel_library_name(library), devices,
                    kelp_kernel_library_path(library));
    kelp_table_init(&table, 3);
    for (size_t i = 0; i < kelp_kernel_library_count(library); i++) {
        const kelp_kernel *kernel = kelp_kernel_library_at(library, i);
        kelp_table_cell(&table, "%s", kelp_kernel_name(kernel));
        kelp_table_cell(&table, "%s",
                        kelp_kernel_param_count(kernel) < 0 ? "(no signature)"
                                                            : kelp_kernel_signature(kernel));
        kelp_table_cell(&table, "%s", kelp_kernel_summary(kernel));
    }
    if (kelp_kernel_library_count(library) == 0)
        kelp_buf_append_cstr(out, "  functions can be called by name; the library has no list\n");
    kelp_table_plain(&table, "  ", out);
}

static void put_string(kelp_buf *out, const char *text) {
    kelp_json_escape(out, (kelp_str){text, strlen(text)});
}

static void put_json(const kelp_kernel_library *library, bool first, kelp_buf *out) {
    kelp_buf_append_cstr(out, first ? "{\"name\":" : ",{\"name\":");
    put_string(out, kelp_kernel_library_name(library));
    kelp_buf_append_cstr(out, ",\"path\":");
    put_string(out, kelp_kernel_library_path(library));
    kelp_buf_append_cstr(out, ",\"devices\":[");
    for (size_t i = 0; kelp_kernel_library_device(library, i) != NULL; i++) {
        kelp_buf_append_cstr(out, i ? "," : "");
        put_string(out, kelp_kernel_library_device(library, i));
    }
    kelp_buf_append_cstr(out, "],\"kernels\":[");
    for (size_t i = 0; i < kelp_kernel_library_count(library); i++) {
        const kelp_kernel *kernel = kelp_kernel_library_at(library, i);
        kelp_buf_append_cstr(out, i ? ",{\"name\":" : "{\"name\":");
        put_string(out, kelp_kernel_name(kernel));
        kelp_buf_append_cstr(out, ",\"signature\":");
        put_string(out, kelp_kernel_signature(kernel));
        kelp_buf_append_cstr(out, ",\"summary\":");
        put_string(out, kelp_kernel_summary(kernel));
        kelp_buf_append_char(out, '}');
    }
    kelp_buf_append_cstr(out, "]}");
}

static kelp_status *open_all(kelp_kernel_registry *registry, const kernels_options *o) {
    if (o->libraries.count == 0) {
        kelp_kernel_registry_scan(registry);
        return NULL;
    }
    for (size_t i = 0; i < o->libraries.count; i++) {
        kelp_kernel_library *library = NULL;
        KELP_TRY(kelp_kernel_registry_open(registry, o->libraries.items[i], &library));
    }
    return NULL;
}

/* Redirects stdout to stderr while libraries are loaded or unloaded, because they may print.
 * Returns the previous stdout for the second call. */
static int divert_stdout(int saved) {
    fflush(stdout);
    if (saved < 0) {
        saved = dup(STDOUT_FILENO);
        if (saved >= 0)
            (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        return saved;
    }
    KELP_ASSERT(saved != STDOUT_FILENO);
    (void)dup2(saved, STDOUT_FILENO);
    close(saved);
    return -1;
}

static int run(const kelp_command *command, void *options) {
    const kernels_options *o = options;
    kelp_kernel_registry_options settings = {
        .struct_size = sizeof settings, .threads = 1, .log = log_line};
    kelp_kernel_registry *registry = NULL;
    kelp_buf text;
    (void)command;
    kelp_buf_init(&text, kelp_allocator_system());
    int out = divert_stdout(-1);
    kelp_status *status = kelp_kernel_registry_create(&settings, &registry);
    if (status == NULL)
        status = open_all(registry, o);
    size_t count = status == NULL ? kelp_kernel_registry_count(registry) : 0;
    if (o->json)
        kelp_buf_append_char(&text, '[');
    for (size_t i = 0; i < count; i++) {
        const kelp_kernel_library *library = kelp_kernel_registry_at(registry, i);
        if (o->json)
            put_json(library, i == 0, &text);
        else
            put_text(library, &text);
    }
    if (o->json)
        kelp_buf_append_cstr(&text, "]\n");
    else if (count == 0)
        kelp_buf_append_cstr(&text, "no kernel library found: set KELP_BACKEND_PATH to its "
                                    "directory, or use --library FILE\n");
    kelp_kernel_registry_release(registry);
    if (out >= 0)
        divert_stdout(out);
    if (status == NULL)
        status = kelp_cli_print(&text);
    kelp_buf_deinit(&text);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_kernels = {
    .name = "kernels",
    .summary = "list kernel libraries and the signatures of their kernels",
    .usage = "[options]",
    .details = "Searches the directories of KELP_BACKEND_PATH and TRITON_BACKEND_PATH, then the "
               "installation.",
    .examples = "  KELP_BACKEND_PATH=build/kernels kelp kernels\n"
                "  kelp kernels --library ./libtoolbox.so",
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(kernels_options),
    .run = run,
};
