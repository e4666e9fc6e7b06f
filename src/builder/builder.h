/* SPDX-License-Identifier: Apache-2.0 */
/* Builders and configurations. */
#ifndef KELP_BUILDER_BUILDER_H_
#define KELP_BUILDER_BUILDER_H_

#include "base/buf.h"
#include "runtime/runtime.h"

#include <kelp/engine_provider.h>

/* A builder: a runtime and one of its engine providers. */
struct kelp_builder {
    _Atomic uint32_t references;
    kelp_runtime *runtime;
    const kelp_engine_provider *provider;
};

/* Checks that a configuration belongs to this builder, and its profiles against the network. */
kelp_status *kelp_builder_check_config(const kelp_builder *builder, const kelp_network *network,
                                       const kelp_builder_config *config) KELP_MUST_USE;

/* Moves the contents of a buffer to a blob. The buffer is empty afterwards. */
kelp_status *kelp_blob_of(kelp_buf *buf, kelp_blob **out) KELP_MUST_USE;

#endif
