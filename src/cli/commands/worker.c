/* SPDX-License-Identifier: Apache-2.0 */
/* kelp worker: runs subgraphs that other processes send over a socket. */
#include "cli/cli.h"

#include "base/checked.h"
#include "cli/model.h"

#include <kelp/remote.h>
#include <signal.h>
#include <stddef.h>

typedef struct worker_options {
    kelp_arg_list positionals; /* always empty */
    const char *socket;
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

static kelp_status *serve(const worker_options *o, kelp_runtime *runtime) {
    kelp_worker_options options = {.struct_size = sizeof options,
                                   .socket_path = o->socket,
                                   .providers = o->providers,
                                   .budget_bytes = (size_t)o->budget_mib << 20,
                                   .connections = (uint32_t)o->connections};
    struct sigaction action = {.sa_handler = stop};
    KELP_TRY(kelp_worker_create(runtime, &options, &running));
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    fprintf(stderr, "kelp: worker listens on %s\n", o->socket);
    kelp_status *status = kelp_worker_run(running);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    kelp_worker_destroy(running);
    running = NULL;
    return status;
}

static int run(const kelp_command *command, void *userp) {
    const worker_options *o = userp;
    kelp_runtime *runtime = NULL;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = (int)o->threads};
    if (o->socket == NULL)
        return kelp_cli_usage(command,
                              KELP_ERROR(KELP_INVALID_ARGUMENT, "missing option '--socket'"));
    kelp_status *status = kelp_runtime_create(&options, &runtime);
    if (status == NULL)
        status = serve(o, runtime);
    kelp_runtime_release(runtime);
    return kelp_cli_finish(status);
}

const kelp_command kelp_cmd_worker = {
    .name = "worker",
    .summary = "run subgraphs of models for other processes",
    .usage = "--socket PATH [options]",
    .details =
        "Receives subgraphs and inputs over a Unix socket, and sends the outputs, until it is "
        "interrupted.\nClients use the provider 'remote': 'kelp run --providers remote:PATH,cpu'.",
    .examples = "  kelp worker --socket /run/kelp.sock\n"
                "  kelp run model.onnx --random --providers remote:/run/kelp.sock,cpu",
    .specs = specs,
    .spec_count = KELP_COUNT(specs),
    .options_bytes = sizeof(worker_options),
    .defaults = defaults,
    .run = run,
};
