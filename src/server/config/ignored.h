/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a configuration that are valid, but that the scheduler does not implement. */
#ifndef KELP_SERVER_CONFIG_IGNORED_H_
#define KELP_SERVER_CONFIG_IGNORED_H_

#include "server/config/config.h"

/* Logs a warning for each field of `dynamic_batching` that is set and has no effect. */
void kelp_model_config_warn_ignored(const kelp_model_config *config);

#endif
