/* SPDX-License-Identifier: Apache-2.0 */
/* The engine providers that are built in. */
#ifndef KELP_BUILDER_PROVIDERS_H_
#define KELP_BUILDER_PROVIDERS_H_

#include <kelp/engine_provider.h>

/* Kelp's own engine. */
const kelp_engine_provider *kelp_cpu_engine_provider(void);
/* Plans that hold inputs and outputs only, engines that answer zeros: the provider to clone. */
const kelp_engine_provider *kelp_null_engine_provider(void);

#endif
