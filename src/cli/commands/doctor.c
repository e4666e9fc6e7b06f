/* SPDX-License-Identifier: Apache-2.0 */
/* kelp doctor: lists the providers that work on this machine, and what the others lack. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/sync/thread.h"

#include <kelp/compute.h>
#include <kelp/engine_provider.h>
#include <stddef.h>
#include <sys/utsname.h>

typedef struct doctor_options {
    kelp_arg_list positionals;
} doctor_options;

static void machine(const kelp_runtime *runtime, kelp_buf *text) {
    struct utsname name;
    if (uname(&name) != 0)
        return;
    kelp_buf_printf(text, "machine     %s, %s %s, %d usable CPUs\n", name.machine, name.sysname,
                    name.release, kelp_cpu_count());
    kelp_buf_printf(text, "kelp        %s, kernels for %s\n", kelp_version(),
                    kelp_runtime_isa(runtime));
}

/* Appends the causes of a failure, one per line. */
static void reason(kelp_status *take_status, kelp_buf *text) {
    for (const kelp_status *at = take_status; at != NULL; at = kelp_status_cause(at)) {
        kelp_buf_append_cstr(text, "            ");
        for (const char *c = kelp_status_message(at); *c != '\0'; c++) {
            kelp_buf_append_char(text, *c);
            if (*c == '\n')
                kelp_buf_append_cstr(text, "            ");
        }
        kelp_buf_append_char(text, '\n');
    }
    kelp_status_free(take_status);
}

/* Appends a line of a provider's description. */
static void describe_line(void *userp, const char *line, size_t length) {
    kelp_buf *text = userp;
    kelp_buf_append_cstr(text, "            ");
    kelp_buf_append(text, line, length);
}

static kelp_status *describe(const kelp_engine_provider *provider, kelp_runtime *runtime,
                             kelp_buf *text) {
    bool ends_before = provider->struct_size <
                       offsetof(kelp_engine_provider, describe) + sizeof provider->describe;
    return ends_before || provider->describe == NULL
               ? NULL
               : provider->describe(provider->self, runtime, describe_line, text);
}

static kelp_status *examine(kelp_runtime *runtime, kelp_buf *text) {
    machine(runtime, text);
    kelp_buf_append_cstr(text, "\nengine providers (kelp build --provider NAME)\n");
    for (size_t i = 0; i < kelp_engine_provider_count(runtime); i++) {
        const kelp_engine_provider *provider = kelp_engine_provider_at(runtime, i);
        kelp_status *status =
            provider->available != NULL ? provider->available(provider->self, runtime) : NULL;
        kelp_buf_printf(text, "  %-10s%s\n", provider->name, status == NULL ? "usable" : "missing");
        if (status == NULL)
            status = describe(provider, runtime, text);
        reason(status, text);
    }
    kelp_buf_append_cstr(text, "\nmodel providers (parameter 'provider' of a model)\n");
    for (size_t i = 0; i < kelp_compute_count(runtime); i++)
        kelp_buf_printf(text, "  %s\n", kelp_compute_at(runtime, i)->name);
    return kelp_buf_status(text);
}

static int run(const kelp_command *command, void *options) {
    kelp_runtime_options settings = {.struct_size = sizeof settings, .threads = 1};
    kelp_runtime *runtime = NULL;
    kelp_buf text;
    (void)command;
    (void)options;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = kelp_runtime_create(&settings, &runtime);
    if (status == NULL)
        status = examine(runtime, &text);
    if (status == NULL)
        status = kelp_cli_print(&text);
    kelp_buf_deinit(&text);
    if (runtime != NULL)
        kelp_runtime_release(runtime);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_doctor = {
    .name = "doctor",
    .summary = "list the providers that work on this machine, and what the others lack",
    .usage = "",
    .details = "A missing library is listed with every path that was tried.\nThe environment "
               "variable KELP_ISA limits the instruction set: portable, avx2, avx512.",
    .examples = "  kelp doctor\n  KELP_ISA=avx2 kelp doctor",
    .options_bytes = sizeof(doctor_options),
    .run = run,
};
