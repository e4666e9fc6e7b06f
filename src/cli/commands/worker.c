/* SPDX-License-Identifier: Apache-2.0 */
/* kelp worker: runs subgraphs that other processes send. */
#include "cli/cli.h"

#include "base/checked.h"
#include "base/log.h"
#include "cli/model.h"

#include <kelp/remote.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

typedef struct worker_options {
    kelp_arg_list positionals; /* always empty */
    const char *socket, *listen;
    const char *token_file;
    const char *providers;
    int64_t threads;
    int64_t budget_mib;
    int64_t connections;
} worker_options;

#define AT(member) offsetof(worker_options, member)
static const kelp_arg_spec specs[] = {
    {.name = "socket",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(socket),
     .value = "PATH",
     .help = "Unix socket to create and listen on"},
    {.name = "listen",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(listen),
     .value = "HOST:PORT",
     .help = "TCP address to listen on, without encryption; :PORT is 127.0.0.1, port 0 selects a "
             "free port"},
    {.name = "token-file",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(token_file),
     .value = "FILE",
     .choices = "@file",
     .help = "file with a token that clients must send; clients name theirs in "
             "KELP_REMOTE_TOKEN_FILE"},
    KELP_CLI_PROVIDERS(AT(providers), "providers that run the subgraphs, in order of priority"),
    KELP_CLI_THREADS(AT(threads), NULL),
    {.name = "budget",
     .kind = KELP_ARG_I64,
     .offset = AT(budget_mib),
     .value = "MIB",
     .min = 1,
     .max = 1 << 20,
     .help = "memory limit for the inputs of all runs in flight (256)"},
    {.name = "connections",
     .kind = KELP_ARG_I64,
     .offset = AT(connections),
     .value = "N",
     .min = 1,
     .max = 4096,
     .help = "maximum number of connections, one per subgraph (64)"},
};
#undef AT

static void defaults(void *options) {
    worker_options *o = options;
    o->budget_mib = 256;
    o->connections = 64;
}

/* The signal handler has no other access to it. */
static kelp_worker *running;

static void stop(int number) {
    (void)number;
    kelp_worker_stop(running);
}

static kelp_status *serve(const worker_options *o, kelp_runtime *runtime, const char *address) {
    kelp_worker_options options = {.struct_size = sizeof options,
                                   .address = address,
                                   .providers = o->providers,
                                   .budget_bytes = (size_t)o->budget_mib << 20,
                                   .connections = (uint32_t)o->connections,
                                   .token_file = o->token_file};
    struct sigaction action = {.sa_handler = stop};
    KELP_TRY(kelp_worker_create(runtime, &options, &running));
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    fprintf(stderr, "kelp: worker listens on %s\n", kelp_worker_address(running));
    kelp_status *status = kelp_worker_run(running);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    kelp_worker_destroy(running);
    running = NULL;
    return status;
}

static kelp_status *check_options(const worker_options *o) {
    if ((o->socket == NULL) == (o->listen == NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "expected one of '--socket' and '--listen'");
    if (o->listen != NULL &&
        (strchr(o->listen, '/') != NULL || strncmp(o->listen, "unix:", 5) == 0))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid --listen '%s': expected HOST:PORT; '--socket' takes a path",
                          o->listen);
    return NULL;
}

static int run(const kelp_command *command, void *userp) {
    const worker_options *o = userp;
    kelp_runtime *runtime = NULL;
    kelp_runtime_options options = {.struct_size = sizeof options,
                                    .threads = (int)o->threads,
                                    .log = kelp_cli_log,
                                    .log_level = KELP_LOG_WARNING};
    kelp_buf address;
    kelp_status *status = check_options(o);
    if (status != NULL)
        return kelp_cli_usage(command, status);
    kelp_buf_init(&address, kelp_allocator_system());
    kelp_buf_printf(&address, "%s%s", o->socket != NULL ? "unix:" : "",
                    o->socket != NULL ? o->socket : o->listen);
    status = kelp_buf_status(&address);
    if (status == NULL)
        status = kelp_runtime_create(&options, &runtime);
    if (status == NULL)
        status = serve(o, runtime, kelp_buf_cstr(&address));
    kelp_runtime_release(runtime);
    kelp_buf_deinit(&address);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_worker = {
    .name = "worker",
    .summary = "run subgraphs of models for other processes",
    .usage = "--socket PATH|--listen HOST:PORT [options]",
    .details =
        "Receives subgraphs and inputs, and sends the outputs, until it is interrupted.\n"
        "Clients use the provider 'remote': 'kelp run --providers remote:ADDRESS,cpu', where "
        "ADDRESS is\na path with a slash, unix:PATH, HOST:PORT or [IPV6]:PORT.\n"
        "The protocol has no encryption, and a worker runs every model that it receives: use TCP "
        "only in\na trusted network or through a tunnel.",
    .examples = "  kelp worker --socket /run/kelp.sock\n"
                "  kelp run model.onnx --random --providers remote:/run/kelp.sock,cpu\n"
                "  kelp worker --listen 10.0.0.5:9000 --token-file /etc/kelp.token\n"
                "  KELP_REMOTE_TOKEN_FILE=/etc/kelp.token kelp run model.onnx --random --providers "
                "remote:10.0.0.5:9000,cpu",
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(worker_options),
    .defaults = defaults,
    .run = run,
};
