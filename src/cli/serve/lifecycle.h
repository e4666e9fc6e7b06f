/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a serving process: start, wait for a signal, stop. `kelp serve` and `tritonserver`
 * differ in what they print. */
#ifndef KELP_CLI_SERVE_LIFECYCLE_H_
#define KELP_CLI_SERVE_LIFECYCLE_H_

#include "cli/serve/frontends.h"

/* What a program prints. */
typedef struct kelp_serve_voice {
    /* Prints the models and the addresses; the front-ends run. */
    kelp_status *(*announce)(const kelp_serve_options *o, TRITONSERVER_Server *core,
                             const kelp_serve_frontends *frontends);
    /* Prints that the server stops because of a signal. */
    void (*stopping)(int signal_number);
    /* Prints a failure to create the server, and frees it. */
    void (*not_created)(const kelp_serve_options *o, kelp_status *take_status);
    /* Prints another failure, and frees it. */
    void (*failed)(kelp_status *take_status);
} kelp_serve_voice;

/* Serves until SIGINT or SIGTERM. Returns the exit code of the process. */
int kelp_serve_run(kelp_serve_options *o, const kelp_serve_voice *voice);

#endif
