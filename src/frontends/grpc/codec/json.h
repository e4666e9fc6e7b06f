/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes the JSON texts of the server (metadata, configuration, statistics, index) as protobuf
 * messages, by the table of schema.h. */
#ifndef KELP_FRONTENDS_GRPC_CODEC_JSON_H_
#define KELP_FRONTENDS_GRPC_CODEC_JSON_H_

#include "base/buf.h"
#include "base/text/json.h"

/* Appends the members of an object as the fields of the message `type`, a name of the schema.
 * Members without a field are omitted, as are default values. 64-bit integers may be numbers or
 * strings of digits. Fails with INTERNAL if a value does not have the type of its field. */
kelp_status *kelp_grpc_put_json(kelp_buf *out, const char *type,
                                const kelp_json *object) KELP_MUST_USE;

#endif
