/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes InferTensorContents: typed elements of a tensor. */
#ifndef KELP_FRONTENDS_GRPC_CODEC_CONTENTS_H_
#define KELP_FRONTENDS_GRPC_CODEC_CONTENTS_H_

#include "base/arena.h"

#include <triton/core/tritonserver.h>

/*
 * Returns the elements of the message `contents` as the bytes of a tensor with `count` elements,
 * in the message if they are FP32 or FP64 and aligned, otherwise in the arena. `input` and
 * `shape_text` are for failures. Fails with INVALID_ARGUMENT if the number of elements differs, if
 * the elements are in the field of another type, or if a value does not fit into the type.
 */
kelp_status *kelp_grpc_read_contents(kelp_arena *arena, const char *input,
                                     TRITONSERVER_DataType type, uint64_t count,
                                     const char *shape_text, kelp_str contents,
                                     kelp_str *out) KELP_MUST_USE;

#endif
