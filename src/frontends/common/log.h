/* SPDX-License-Identifier: Apache-2.0 */
/* Verbose messages of the protocols in the log of the server. */
#ifndef KELP_FRONTENDS_COMMON_LOG_H_
#define KELP_FRONTENDS_COMMON_LOG_H_

#include "frontends/http/message.h"

/* Logs method and path of a request, if the verbose level is at least 1. `protocol` is "HTTP" or
 * "gRPC". The log escapes what clients send. Thread-safe. */
void kelp_log_request(const char *protocol, const kelp_http_request *request);
/* Logs why a request failed, at the same level. Thread-safe. */
void kelp_log_failure(const char *protocol, const kelp_status *failure);

#endif
