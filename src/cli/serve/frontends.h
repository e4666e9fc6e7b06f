/* SPDX-License-Identifier: Apache-2.0 */
/* The front-ends of `kelp serve`. */
#ifndef KELP_CLI_SERVE_FRONTENDS_H_
#define KELP_CLI_SERVE_FRONTENDS_H_

#include "cli/serve/options/options.h"
#include "frontends/http/server.h"

/* The front-ends that run. Zeroed: none. */
typedef struct kelp_serve_frontends {
    kelp_http_handler *handler;
    kelp_http_server *http;
} kelp_serve_frontends;

/* Starts the front-ends that the options allow. On failure, stop and destroy apply. */
kelp_status *kelp_serve_start(const kelp_serve_options *o, TRITONSERVER_Server *core,
                              kelp_serve_frontends *inout_frontends) KELP_MUST_USE;
/* Appends a line with the address of each front-end. */
void kelp_serve_append_addresses(const kelp_serve_options *o, const kelp_serve_frontends *frontends,
                                 kelp_buf *out);
/* Answers readiness with 503 from now on. */
void kelp_serve_set_draining(kelp_serve_frontends *frontends);
/* Returns the time (kelp_now_ns) at which the latest request began; 0 if there was none. */
uint64_t kelp_serve_last_request_ns(const kelp_serve_frontends *frontends);
/* Stops the front-ends after the requests in flight. DEADLINE_EXCEEDED if some remain. */
kelp_status *kelp_serve_stop(kelp_serve_frontends *frontends, uint64_t timeout_ns) KELP_MUST_USE;
/* Frees the front-ends, after the server has stopped. */
void kelp_serve_destroy(kelp_serve_frontends *frontends);

#endif
