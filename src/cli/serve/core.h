/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the server of `kelp serve`. */
#ifndef KELP_CLI_SERVE_CORE_H_
#define KELP_CLI_SERVE_CORE_H_

#include "cli/serve/options/options.h"

/* Creates the server and loads its models. On failure `*out` is unchanged. */
kelp_status *kelp_serve_create_core(const kelp_serve_options *o,
                                    TRITONSERVER_Server **out) KELP_MUST_USE;

#endif
