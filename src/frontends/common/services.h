/* SPDX-License-Identifier: Apache-2.0 */
/* The services of an endpoint (kelp_http_endpoint.services): what clients of its address may use.
 */
#ifndef KELP_FRONTENDS_COMMON_SERVICES_H_
#define KELP_FRONTENDS_COMMON_SERVICES_H_

enum {
    KELP_SERVICE_HTTP = 1u << 0,    /* the v2 protocol over HTTP */
    KELP_SERVICE_METRICS = 1u << 1, /* /metrics */
    KELP_SERVICE_GRPC = 1u << 2,    /* the v2 protocol over gRPC */
    KELP_SERVICE_PAGE = 1u << 3     /* the status page */
};

#endif
