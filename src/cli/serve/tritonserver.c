/* SPDX-License-Identifier: Apache-2.0 */
/* tritonserver: serves models with the command line, the defaults, the log lines and the exit codes
 * of Triton's server. */
#include "base/alloc.h"
#include "base/checked.h"
#include "cli/cli.h"
#include "cli/serve/accepted.h"
#include "cli/serve/lifecycle.h"
#include "cli/serve/readiness.h"

#include <stdio.h>
#include <stdlib.h>

#define HTTP_THREADS 8
#define GRPC_PORT 8001
#define METRICS_PORT 8002

typedef struct triton_options {
    kelp_serve_options serve; /* first */
    kelp_serve_accepted accepted;
} triton_options;

static void defaults(void *options) {
    kelp_serve_options *o = options;
    kelp_serve_defaults(o);
    o->server.id = "triton";
    o->http.address = "0.0.0.0";
    o->http.threads = HTTP_THREADS;
    o->metrics.port = METRICS_PORT;
    o->metrics.histograms = false;
    o->grpc.port = GRPC_PORT;
    o->http.status_page = false;
    o->trace.from_environment = false;
    o->trace.service_name = "triton-inference-server";
}

/* ---- command line: the syntax of getopt_long ---- */

/* Finds an option by its name or a prefix that only one option has. */
static kelp_status *find(const kelp_command *command, kelp_str name, const kelp_arg_spec **out) {
    const kelp_arg_spec *spec;
    size_t count = 0;
    for (size_t i = 0; (spec = kelp_args_spec(command, i)) != NULL; i++) {
        if (!kelp_str_starts(kelp_str_from(spec->name), name))
            continue;
        *out = spec;
        count++;
        if (strlen(spec->name) == name.length)
            return NULL;
    }
    if (count == 1)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s option '--%.*s'", count ? "ambiguous" : "unknown",
                      KELP_STR_ARG(name));
}

/* Returns the element of `words` that `text` is in another case, or `text`. */
static const char *in_case(const char *text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!strcasecmp(text, words[i]))
            return words[i];
    }
    return text;
}

/* Returns the value in the form of Kelp's options. */
static const char *canonical(const kelp_arg_spec *spec, const char *text) {
    static const char *const words[] = {"none", "explicit", "poll", "off", "execution_count",
                                        "true", "false",    "on"};
    if (!strcmp(spec->name, "log-verbose"))
        return !strcasecmp(text, "true") ? "1" : !strcasecmp(text, "false") ? "0" : text;
    if (spec->kind == KELP_OPTION_BOOL || !strcmp(spec->name, "model-control-mode") ||
        !strcmp(spec->name, "rate-limit"))
        return in_case(text, words, KELP_COUNT(words));
    return text;
}

/* Prints a warning for an option that Triton has replaced by another one. */
static void warn_of_deprecation(const char *name, const char *value) {
    static const struct {
        const char *name, *replacement;
    } deprecated[] = {{"strict-model-config", "--disable-auto-complete-config"},
                      {"trace-file", "--trace-config triton,file=FILE"},
                      {"trace-level", "--trace-config level=LEVEL"},
                      {"trace-rate", "--trace-config rate=N"},
                      {"trace-count", "--trace-config count=N"},
                      {"trace-log-frequency", "--trace-config triton,log-frequency=N"}};
    for (size_t i = 0; i < KELP_COUNT(deprecated); i++) {
        if (!strcmp(name, deprecated[i].name))
            fprintf(stderr, "Warning: '--%s' has been deprecated; use '%s' instead\n", name,
                    deprecated[i].replacement);
    }
    if (!strcmp(name, "response-cache-byte-size"))
        fprintf(stderr,
                "Warning: '--%s' has been deprecated; use '--cache-config=local,size=%s' instead\n",
                name, value);
}

static kelp_status *set(triton_options *o, const kelp_arg_spec *spec, const char *text) {
    const char *value = canonical(spec, text);
    if (kelp_serve_is_accepted(spec))
        return kelp_serve_accept(&o->accepted, spec, value);
    warn_of_deprecation(spec->name, value);
    return kelp_args_set(spec, value, o);
}

/* Parses the option at argv[*inout_at], and sets *inout_at to its last word. */
static kelp_status *parse_option(const kelp_command *command, int argc, char **argv, int *inout_at,
                                 triton_options *o) {
    const char *word = argv[*inout_at];
    const kelp_arg_spec *spec = NULL;
    if (word[0] != '-' || word[1] != '-')
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unexpected argument '%s'", word);
    kelp_str name = {word + 2, strcspn(word + 2, "=")};
    const char *value = word[2 + name.length] == '=' ? word + 2 + name.length + 1 : NULL;
    KELP_TRY(find(command, name, &spec));
    if (!strcmp(spec->name, "disable-auto-complete-config")) { /* the only one without a value */
        if (value != NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s' does not have a value",
                              spec->name);
        return set(o, spec, "true");
    }
    if (value == NULL) {
        if (*inout_at + 1 >= argc)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s' needs a value", spec->name);
        value = argv[++*inout_at];
    }
    return set(o, spec, value);
}

static kelp_status *parse(const kelp_command *command, int argc, char **argv, triton_options *o) {
    for (int i = 0; i < argc; i++)
        KELP_TRY(parse_option(command, argc, argv, &i, o));
    if (o->serve.models.load_models.count && strcmp(o->serve.models.control_mode, "explicit"))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--load-model' requires '--model-control-mode=explicit'");
    return NULL;
}

/* ---- messages ---- */

static void log_line(TRITONSERVER_LogLevel level, int line, const char *text) {
    TRITONSERVER_Error *error = TRITONSERVER_LogMessage(level, "tritonserver.c", line, text);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
}

/* Logs a table, and clears it. */
static kelp_status *log_table(int line, kelp_buf *inout_text) {
    const char *text = kelp_buf_cstr(inout_text);
    if (text != NULL)
        log_line(TRITONSERVER_LOG_INFO, line, text);
    kelp_status *status = kelp_buf_status(inout_text);
    kelp_buf_clear(inout_text);
    kelp_buf_append_char(inout_text, '\n'); /* of the next table */
    return status;
}

static kelp_status *log_tables(const kelp_serve_options *o, TRITONSERVER_Server *core,
                               kelp_buf *text) {
    kelp_buf_append_char(text, '\n');
    KELP_TRY(kelp_serve_append_models(core, !kelp_serve_logs_errors(o), text));
    KELP_TRY(log_table(__LINE__, text));
    KELP_TRY(kelp_serve_append_options(o, core, text));
    return log_table(__LINE__, text);
}

static void log_endpoint(const kelp_serve_endpoint *endpoint, uint16_t port) {
    char text[512];
    const char *address = endpoint->base.address;
    const char *service = !strcmp(endpoint->name, "HTTP")   ? "HTTPService"
                          : !strcmp(endpoint->name, "gRPC") ? "GRPCInferenceService"
                                                            : "Metrics Service";
    if (!strncmp(address, "unix:", 5))
        snprintf(text, sizeof text, "Started %s at %s", service, address);
    else
        snprintf(text, sizeof text, "Started %s at %s:%u", service, address, port);
    log_line(TRITONSERVER_LOG_INFO, __LINE__, text);
}

static kelp_status *announce(const kelp_serve_options *o, TRITONSERVER_Server *core,
                             const kelp_serve_frontends *frontends) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = log_tables(o, core, &text);
    kelp_buf_deinit(&text);
    KELP_TRY(status);
    for (size_t i = 0; i < frontends->endpoint_count; i++)
        log_endpoint(&frontends->endpoints[i], kelp_serve_port(frontends, i));
    return NULL;
}

static void stopping(int signal_number) {
    printf("Signal (%d) received.\n", signal_number);
    (void)fflush(stdout);
}

static void not_created(const kelp_serve_options *o, kelp_status *take_status) {
    char text[4096];
    (void)o;
    kelp_status_format(take_status, text, sizeof text);
    const char *reason = strstr(text, KELP_SERVE_NOT_LOADED) != NULL && kelp_serve_logs_errors(o)
                             ? KELP_SERVE_NOT_LOADED
                             : text;
    fprintf(stderr, "error: creating server: Internal - %s\n", reason);
    kelp_status_free(take_status);
}

static void failed(kelp_status *take_status) {
    char text[4096];
    kelp_status_format(take_status, text, sizeof text);
    log_line(TRITONSERVER_LOG_ERROR, __LINE__, text);
    kelp_status_free(take_status);
}

static const kelp_serve_voice voice = {announce, stopping, not_created, failed};

/* ---- the program ---- */

/* Triton's server prints its help as an error. */
static void print_usage(const kelp_command *command, kelp_status *take_reason) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_args_help(command, &text);
    fprintf(stderr, "Usage: tritonserver %s\n\n%s\n", command->usage,
            kelp_buf_cstr(&text) != NULL ? text.data : "");
    if (take_reason != NULL)
        fprintf(stderr, "%s\n", kelp_status_message(take_reason));
    kelp_buf_deinit(&text);
    kelp_status_free(take_reason);
}

static bool asks_for_help(int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--help"))
            return true;
    }
    return false;
}

static int serve(const kelp_command *command, int argc, char **argv, triton_options *o) {
    kelp_status *status = NULL;
    bool help = asks_for_help(argc, argv);
    if (!help)
        status = parse(command, argc, argv, o);
    if (help || status != NULL) {
        print_usage(command, status);
        return KELP_EXIT_FAILURE;
    }
    if (o->serve.models.repositories.count == 0 && o->serve.backends.with_backends.count == 0) {
        fprintf(stderr, "error: creating server: Invalid argument - no --model-repository\n");
        return KELP_EXIT_FAILURE;
    }
    return kelp_serve_run(&o->serve, &voice);
}

static int start(const kelp_command *command, int argc, char **argv) {
    triton_options *o = NULL;
    kelp_status *status = KELP_NEW(kelp_allocator_system(), triton_options, &o);
    if (status != NULL)
        return kelp_cli_finish(status);
    command->defaults(o);
    int code = serve(command, argc, argv, o);
    kelp_args_deinit(command, o);
    kelp_free(kelp_allocator_system(), o, sizeof *o);
    return code;
}

static const kelp_arg_table *const tables[] = {KELP_SERVE_TABLES, &kelp_serve_accepted_table, NULL};

const kelp_command kelp_cmd_tritonserver = {
    .name = "tritonserver",
    .summary = "serve models with the command line of Triton's server",
    .usage = "[options]",
    .details =
        "Has the options, defaults, log lines and exit codes of Triton's server, and the options "
        "of kelp serve.\nEach option needs a value, true or false for a boolean one, except "
        "--disable-auto-complete-config. The\noptions of the last group are accepted, with a "
        "warning.",
    .examples = "  tritonserver --model-repository=models --model-control-mode=explicit\n"
                "  tritonserver --model-repository models --http-port 9000 --allow-grpc false",
    .tables = tables,
    .options_bytes = sizeof(triton_options),
    .defaults = defaults,
    .main = start,
};
