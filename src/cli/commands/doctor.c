/* SPDX-License-Identifier: Apache-2.0 */
/* kelp doctor: lists the providers, and for what does not work on this machine, the reason. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/sync/thread.h"
#include "base/text/json.h"
#include "frontends/otlp/curl.h"
#include "frontends/tls/openssl.h"

#include <kelp/engine_provider.h>
#include <stddef.h>
#include <string.h>
#include <sys/utsname.h>

typedef struct doctor_options {
    kelp_arg_list positionals; /* always empty */
    bool json;
} doctor_options;

static const kelp_arg_spec specs[] = {
    {.name = "json",
     .kind = KELP_OPTION_BOOL,
     .offset = offsetof(doctor_options, json),
     .help = "print JSON"},
};

/* ---- a provider ---- */
static const struct {
    uint32_t bit;
    const char *name, *use;
} offers[] = {{KELP_OFFERS_ENGINES, "plan files", "kelp build --provider NAME"},
              {KELP_OFFERS_MODELS, "models", "the parameter 'provider' of a served model"},
              {KELP_OFFERS_SUBGRAPHS, "subgraphs", "--providers NAME,NAME,…"}};

static void describe_line(void *userp, const char *line, size_t length) {
    kelp_buf_append(userp, line, length);
}

static const kelp_engine_provider *find_engines(const kelp_runtime *runtime, const char *name) {
    for (size_t i = 0; i < kelp_engine_provider_count(runtime); i++)
        if (strcmp(kelp_engine_provider_at(runtime, i)->name, name) == 0)
            return kelp_engine_provider_at(runtime, i);
    return NULL;
}

/* Appends the description of a usable engine provider, or the causes of a failure; one per line.
 * `*out_usable` is false after a failure. */
static kelp_status *examine_provider(kelp_runtime *runtime, const char *name, bool *out_usable,
                                     kelp_buf *lines) {
    const kelp_engine_provider *engines = find_engines(runtime, name);
    bool describes = engines != NULL &&
                     engines->struct_size >=
                         offsetof(kelp_engine_provider, describe) + sizeof engines->describe &&
                     engines->describe != NULL;
    kelp_status *status = kelp_runtime_check_provider(runtime, name);
    *out_usable = status == NULL;
    if (status == NULL && describes)
        status = engines->describe(engines->self, runtime, describe_line, lines);
    for (const kelp_status *at = status; at != NULL; at = kelp_status_cause(at)) {
        kelp_buf_append_cstr(lines, kelp_status_message(at));
        kelp_buf_append_char(lines, '\n');
    }
    kelp_status_free(status);
    return kelp_buf_status(lines);
}

/* ---- text ---- */
static void put_machine(const kelp_runtime *runtime, kelp_buf *text) {
    struct utsname name;
    if (uname(&name) == 0)
        kelp_buf_printf(text, "machine     %s, %s %s, %d usable CPUs\n", name.machine, name.sysname,
                        name.release, kelp_cpu_count());
    kelp_buf_printf(text, "kelp        %s, kernels for %s\n\nproviders of\n", kelp_version(),
                    kelp_runtime_isa(runtime));
    for (size_t i = 0; i < KELP_COUNT(offers); i++)
        kelp_buf_printf(text, "  %-12s%s\n", offers[i].name, offers[i].use);
    kelp_buf_append_char(text, '\n');
}

static void put_provider(const kelp_provider_info *info, bool usable, const kelp_buf *lines,
                         kelp_buf *text) {
    const char *separator = "";
    kelp_buf_printf(text, "  %-12s%-9s", info->name, usable ? "usable" : "missing");
    for (size_t i = 0; i < KELP_COUNT(offers); i++) {
        if ((info->offers & offers[i].bit) == 0)
            continue;
        kelp_buf_printf(text, "%s%s", separator, offers[i].name);
        separator = ", ";
    }
    kelp_buf_append_char(text, '\n');
    for (size_t at = 0; at < lines->length;) {
        const char *line = lines->data + at, *end = memchr(line, '\n', lines->length - at);
        size_t length = end != NULL ? (size_t)(end - line) : lines->length - at;
        kelp_buf_printf(text, "              %.*s\n", (int)length, line);
        at += length + 1;
    }
}

/* ---- JSON ---- */
static void put_machine_json(const kelp_runtime *runtime, kelp_json_writer *writer) {
    struct utsname name;
    kelp_json_begin_object(writer);
    kelp_json_key(writer, "version");
    kelp_json_put_cstr(writer, kelp_version());
    kelp_json_key(writer, "isa");
    kelp_json_put_cstr(writer, kelp_runtime_isa(runtime));
    if (uname(&name) == 0) {
        kelp_json_key(writer, "machine");
        kelp_json_put_cstr(writer, name.machine);
        kelp_json_key(writer, "system");
        kelp_json_put_cstr(writer, name.sysname);
        kelp_json_key(writer, "release");
        kelp_json_put_cstr(writer, name.release);
    }
    kelp_json_key(writer, "cpus");
    kelp_json_put_i64(writer, kelp_cpu_count());
    kelp_json_key(writer, "providers");
    kelp_json_begin_array(writer);
}

static void put_provider_json(const kelp_provider_info *info, bool usable, const kelp_buf *lines,
                              kelp_json_writer *writer) {
    kelp_json_begin_object(writer);
    kelp_json_key(writer, "name");
    kelp_json_put_cstr(writer, info->name);
    kelp_json_key(writer, "usable");
    kelp_json_put_bool(writer, usable);
    kelp_json_key(writer, "offers");
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < KELP_COUNT(offers); i++)
        if ((info->offers & offers[i].bit) != 0)
            kelp_json_put_cstr(writer, offers[i].name);
    kelp_json_end_array(writer);
    kelp_json_key(writer, "details");
    kelp_json_put_string(writer, (kelp_str){lines->data, lines->length});
    kelp_json_end_object(writer);
}

/* ---- libraries of the server ---- */
static kelp_status *load_openssl(void) {
    const kelp_openssl *functions;
    return kelp_openssl_load(&functions);
}

static kelp_status *load_curl(void) {
    const kelp_curl *functions;
    return kelp_curl_load(&functions);
}

static const struct {
    const char *name, *use;
    kelp_status *(*load)(void);
} libraries[] = {{"openssl", "TLS", load_openssl},
                 {"curl",
                  "export of traces, kelp pull, kelp serve ADDRESS, kelp top, kelp bench URL",
                  load_curl}};

/* Appends the state of a library, and the causes of a failure. */
static void put_library(size_t i, const kelp_status *failure, kelp_buf *text) {
    kelp_buf_printf(text, "  %-12s%-9s%s\n", libraries[i].name,
                    failure == NULL ? "usable" : "missing", libraries[i].use);
    for (const kelp_status *at = failure; at != NULL; at = kelp_status_cause(at))
        kelp_buf_printf(text, "              %s\n", kelp_status_message(at));
}

static void put_library_json(size_t i, const kelp_status *failure, kelp_json_writer *writer) {
    char reason[1024] = "";
    if (failure != NULL)
        (void)kelp_status_format(failure, reason, sizeof reason);
    kelp_json_begin_object(writer);
    kelp_json_key(writer, "name");
    kelp_json_put_cstr(writer, libraries[i].name);
    kelp_json_key(writer, "usable");
    kelp_json_put_bool(writer, failure == NULL);
    kelp_json_key(writer, "use");
    kelp_json_put_cstr(writer, libraries[i].use);
    kelp_json_key(writer, "details");
    kelp_json_put_cstr(writer, reason);
    kelp_json_end_object(writer);
}

/* Lists the libraries that `kelp serve` loads when it needs them. */
static void examine_libraries(bool json, kelp_json_writer *writer, kelp_buf *text) {
    if (json) {
        kelp_json_key(writer, "libraries");
        kelp_json_begin_array(writer);
    } else {
        kelp_buf_append_cstr(text, "\nlibraries loaded on demand\n\n");
    }
    for (size_t i = 0; i < KELP_COUNT(libraries); i++) {
        kelp_status *failure = libraries[i].load();
        if (json)
            put_library_json(i, failure, writer);
        else
            put_library(i, failure, text);
        kelp_status_free(failure);
    }
    if (json)
        kelp_json_end_array(writer);
}

static kelp_status *examine(kelp_runtime *runtime, bool json, kelp_buf *text) {
    kelp_json_writer writer;
    kelp_provider_info info;
    kelp_status *status = NULL;
    kelp_json_writer_init(&writer, text);
    if (json)
        put_machine_json(runtime, &writer);
    else
        put_machine(runtime, text);
    for (size_t i = 0; status == NULL && kelp_runtime_provider_at(runtime, i, &info); i++) {
        kelp_buf lines;
        bool usable = false;
        kelp_buf_init(&lines, kelp_allocator_system());
        status = examine_provider(runtime, info.name, &usable, &lines);
        if (json)
            put_provider_json(&info, usable, &lines, &writer);
        else
            put_provider(&info, usable, &lines, text);
        kelp_buf_deinit(&lines);
    }
    if (json)
        kelp_json_end_array(&writer);
    examine_libraries(json, &writer, text);
    if (json) {
        kelp_json_end_object(&writer);
        kelp_buf_append_char(text, '\n');
    }
    return status != NULL ? status : kelp_buf_status(text);
}

static int run(const kelp_command *command, void *options) {
    kelp_runtime_options settings = {.struct_size = sizeof settings, .threads = 1};
    kelp_runtime *runtime = NULL;
    kelp_buf text;
    (void)command;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = kelp_runtime_create(&settings, &runtime);
    if (status == NULL)
        status = examine(runtime, ((const doctor_options *)options)->json, &text);
    if (status == NULL)
        status = kelp_cli_print(&text);
    kelp_buf_deinit(&text);
    if (runtime != NULL)
        kelp_runtime_release(runtime);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_doctor = {
    .name = "doctor",
    .summary = "list the providers and optional libraries, and why some do not work here",
    .usage = "[--json]",
    .details =
        "Below the provider cpu: libraries that operators load when they need them, and the "
        "Debian\n"
        "package to install for a missing one. For other providers, a missing library is listed\n"
        "with every path that was tried. The other libraries are loaded when an option or a\n"
        "command needs them. The environment variable KELP_ISA limits the instruction set:\n"
        "portable, avx2, avx512.",
    .examples = "  kelp doctor\n  kelp doctor --json\n  KELP_ISA=avx2 kelp doctor",
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(doctor_options),
    .run = run,
};
