/* SPDX-License-Identifier: Apache-2.0 */
/* The services that an endpoint provides: bits of kelp_http_endpoint.services. A handler rejects
 * requests from an endpoint without its bit. */
#ifndef KELP_FRONTENDS_SERVICES_H_
#define KELP_FRONTENDS_SERVICES_H_

#define KELP_SERVES_HTTP 1u    /* the v2 protocol */
#define KELP_SERVES_GRPC 2u    /* Triton's gRPC protocol */
#define KELP_SERVES_METRICS 4u /* /metrics */

#endif
