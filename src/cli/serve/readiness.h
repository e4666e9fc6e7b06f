/* SPDX-License-Identifier: Apache-2.0 */
/* The table of models that `kelp serve` prints at startup. */
#ifndef KELP_CLI_SERVE_READINESS_H_
#define KELP_CLI_SERVE_READINESS_H_

#include "base/buf.h"

#include <triton/core/tritonserver.h>

/* Appends the table. The log has the full reasons. */
kelp_status *kelp_serve_append_models(TRITONSERVER_Server *core, kelp_buf *out) KELP_MUST_USE;

#endif
