/* SPDX-License-Identifier: Apache-2.0 */
/* kelp serve: serves models over HTTP and gRPC, with the options of Triton's server. */
#include "base/checked.h"
#include "base/fs.h"
#include "cli/cli.h"
#include "cli/pull/source.h"
#include "cli/serve/lifecycle.h"
#include "cli/serve/readiness.h"
#include "cli/serve/remote/remote.h"

#include <stdio.h>

/* Appends a line with the address of an endpoint. */
static void append_address(const kelp_serve_endpoint *endpoint, uint16_t port, kelp_buf *out) {
    const char *address = endpoint->base.address;
    const char *scheme = endpoint->base.tls != NULL ? "https" : "http";
    if (!strncmp(address, "unix:", 5))
        kelp_buf_printf(out, "%s  %s\n", endpoint->name, address);
    else if (!strcmp(address, "0.0.0.0") || !strcmp(address, "::"))
        kelp_buf_printf(out, "%s  %s://127.0.0.1:%u (all addresses)\n", endpoint->name, scheme,
                        port);
    else
        kelp_buf_printf(out,
                        strchr(address, ':') != NULL ? "%s  %s://[%s]:%u\n" : "%s  %s://%s:%u\n",
                        endpoint->name, scheme, address, port);
}

/* Prints the models and the addresses. */
static kelp_status *announce(const kelp_serve_options *o, TRITONSERVER_Server *core,
                             const kelp_serve_frontends *frontends) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = kelp_serve_append_models(core, !kelp_serve_logs_errors(o), &text);
    if (status == NULL) {
        for (size_t i = 0; i < frontends->endpoint_count; i++)
            append_address(&frontends->endpoints[i], kelp_serve_port(frontends, i), &text);
        status = kelp_cli_print(&text);
    }
    kelp_buf_deinit(&text);
    return status;
}

static void stopping(int signal_number) {
    (void)signal_number;
    fprintf(stderr, "kelp: stopping\n");
}

/* The log has the failures of models, if it goes to the terminal. */
static void not_created(const kelp_serve_options *o, kelp_status *take_status) {
    if (kelp_serve_logs_errors(o) &&
        strstr(kelp_status_message(take_status), KELP_SERVE_NOT_LOADED)) {
        fprintf(stderr, "kelp: cannot start the server: not all models are loaded\n");
        kelp_status_free(take_status);
        return;
    }
    (void)kelp_cli_finish(take_status);
}

static void failed(kelp_status *take_status) {
    (void)kelp_cli_finish(take_status);
}

static const kelp_serve_voice voice = {announce, stopping, not_created, failed};

/* Sorts the positional arguments into model files and repositories. */
static kelp_status *sort_arguments(kelp_serve_options *o) {
    for (size_t i = 0; i < o->positionals.count; i++) {
        const char *path = o->positionals.items[i];
        bool is_repository =
            kelp_pull_is_address(path) || kelp_fs_kind_of(path) == KELP_FS_DIRECTORY;
        KELP_TRY(
            kelp_arg_list_add(is_repository ? &o->models.repositories : &o->models.files, path));
    }
    return NULL;
}

/* Returns what is wrong with the command line, or NULL. */
static kelp_status *check(const kelp_serve_options *o) {
    if (o->models.repositories.count == 0 && o->models.files.count == 0 &&
        o->backends.with_backends.count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "no model repository: expected a directory, a model file, or "
                          "--model-repository DIR");
    KELP_TRY(kelp_serve_remote_check(&o->models));
    kelp_tls_options tls;
    KELP_TRY(kelp_serve_tls_convert(&o->tls, &tls));
    KELP_TRY(kelp_serve_grpc_tls(&o->grpc, &tls));
    if (o->models.load_models.count && strcmp(o->models.control_mode, "explicit"))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--load-model' requires '--model-control-mode explicit'");
    return NULL;
}

static int run(const kelp_command *command, void *options) {
    kelp_serve_options *o = options;
    kelp_status *status = sort_arguments(o);
    if (status == NULL)
        status = check(o);
    int code = status != NULL ? kelp_cli_usage(command, status) : kelp_serve_run(o, &voice);
    kelp_arg_list_deinit(&o->models.files);
    return code;
}

static const kelp_arg_table *const tables[] = {KELP_SERVE_TABLES, NULL};

const kelp_command kelp_cmd_serve = {
    .name = "serve",
    .summary = "serve models over HTTP and gRPC",
    .usage = "[DIR|FILE|ADDRESS]... [options]",
    .details = "Implements the KServe v2 protocol with Triton's extensions. DIR is a model "
               "repository, and FILE a\nmodel, .onnx or .plan, which is served under its name. "
               "ADDRESS is one of kelp pull: of a model file,\nor of a model or a repository in S3 "
               "or an OCI registry. Options have Triton's names. SIGINT or\nSIGTERM stops the "
               "server after the requests in flight.",
    .examples =
        "  kelp serve examples/models\n"
        "  kelp serve model.onnx\n"
        "  kelp serve s3://models/production --model-cache cache --model-control-mode poll\n"
        "  kelp serve --model-repository models --http-port 0 --exit-on-error=false\n"
        "  kelp serve --model-repository models --model-control-mode explicit --load-model digits\n"
        "  kelp serve --with-backend build/libtriton_my_backend.so\n"
        "  curl -s localhost:8000/v2/models/digits/infer -d @examples/requests/digits.json",
    .positional = "DIR|FILE|ADDRESS",
    .max_positionals = 64,
    .tables = tables,
    .options_bytes = sizeof(kelp_serve_options),
    .defaults = kelp_serve_defaults,
    .run = run,
};
