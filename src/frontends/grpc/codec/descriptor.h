/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of the schema, as server reflection returns them. */
#ifndef KELP_FRONTENDS_GRPC_CODEC_DESCRIPTOR_H_
#define KELP_FRONTENDS_GRPC_CODEC_DESCRIPTOR_H_

#include "base/buf.h"
#include "frontends/grpc/codec/schema.h"

/* Returns the file of this name, or NULL. */
const kelp_grpc_row *kelp_grpc_find_file(kelp_str name);
/* Returns the file that declares a symbol with its package, such as
 * "inference.ModelInferRequest.id", or NULL. Finds messages, enumerations, services, fields,
 * methods. */
const kelp_grpc_row *kelp_grpc_find_symbol(kelp_str symbol);
/* Appends the google.protobuf.FileDescriptorProto of a file. */
void kelp_grpc_put_file(kelp_buf *out, const kelp_grpc_row *file);

#endif
