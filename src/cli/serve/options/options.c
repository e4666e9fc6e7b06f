/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/options.h"

void kelp_serve_defaults(void *options) {
    kelp_serve_options *o = options;
    kelp_serve_models_defaults(&o->models);
    kelp_serve_backends_defaults(&o->backends);
    kelp_serve_caches_defaults(&o->caches);
    kelp_serve_server_defaults(&o->server);
    kelp_serve_http_defaults(&o->http);
    kelp_serve_grpc_defaults(&o->grpc);
    kelp_serve_metrics_defaults(&o->metrics);
    kelp_serve_log_defaults(&o->log);
    kelp_serve_trace_defaults(&o->trace);
}

kelp_status *kelp_serve_status(TRITONSERVER_Error *take_error, const char *doing) {
    if (take_error == NULL)
        return NULL;
    kelp_status *status =
        KELP_ERROR(KELP_INTERNAL, "%s: %s", doing, TRITONSERVER_ErrorMessage(take_error));
    TRITONSERVER_ErrorDelete(take_error);
    return status;
}

kelp_status *kelp_serve_set(TRITONSERVER_Error *take_error) {
    return kelp_serve_status(take_error, "cannot set the server's options");
}
