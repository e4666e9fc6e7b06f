/* SPDX-License-Identifier: Apache-2.0 */
/* The provider `kernels`: one kernel of a kernel library as a model. */
#ifndef KELP_PLUGINS_PROVIDER_H_
#define KELP_PLUGINS_PROVIDER_H_

#include "runtime/provider.h"

/* The row of the registry. */
extern const kelp_provider kelp_kernels_provider;

#endif
