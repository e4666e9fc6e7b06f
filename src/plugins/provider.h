/* SPDX-License-Identifier: Apache-2.0 */
/* The provider `kernels`: one kernel of a kernel library as a model. Also makes the operators of
 * kernel libraries available to a runtime. */
#ifndef KELP_PLUGINS_PROVIDER_H_
#define KELP_PLUGINS_PROVIDER_H_

#include "runtime/provider.h"

/* The row of the registry. */
extern const kelp_provider kelp_kernels_provider;

/* Lets the runtime load kernel libraries as operators, by file and by domain. */
kelp_status *kelp_kernels_attach(kelp_runtime *runtime) KELP_MUST_USE;

#endif
