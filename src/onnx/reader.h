/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the reader. */
#ifndef KELP_ONNX_READER_H_
#define KELP_ONNX_READER_H_

#include "onnx/model.h"
#include "base/wire/protobuf.h"

/* Position in the message: a chain on the stack, formatted only for errors. */
typedef struct kelp_onnx_place {
    const struct kelp_onnx_place *parent;
    const char *field;
    int64_t index; /* -1 if the field is not repeated */
    uint32_t depth;
    kelp_str name; /* name of the item, if any; reported with the index */
} kelp_onnx_place;

kelp_status *kelp_onnx_error(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                             kelp_code code, const char *format, ...)
    KELP_PRINTF(4, 5) KELP_MUST_USE;
kelp_onnx_place kelp_onnx_inside(const kelp_onnx_place *parent, const char *field, int64_t index);
kelp_status *kelp_onnx_read_tensor(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                   kelp_str bytes, kelp_onnx_tensor *out) KELP_MUST_USE;
/* Appends the dimensions in `field`, one or packed, to dims[*inout_rank], which has space for
 * KELP_MAX_RANK. */
kelp_status *kelp_onnx_read_dims(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 const kelp_protobuf_field *field, int64_t *dims,
                                 int32_t *inout_rank) KELP_MUST_USE;
/* Reads a SparseTensorProto as a dense tensor with zeros between its values. */
kelp_status *kelp_onnx_read_sparse(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                   kelp_str bytes, kelp_onnx_tensor *out) KELP_MUST_USE;
kelp_status *kelp_onnx_read_value(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  kelp_str bytes, kelp_onnx_value *out) KELP_MUST_USE;
/* Allocates an array for the repeated field `number` of the message; NULL and 0 if there is none.
 */
kelp_status *kelp_onnx_array(kelp_onnx_reader *reader, kelp_str message, uint32_t number,
                             size_t item_bytes, void *out_items) KELP_MUST_USE;

/* ---- wire types ---- */
#define KELP_ONNX_BIT(field) (1u << (field))

/* Checks that a field is a message or bytes. `name` describes it in the error. */
kelp_status *kelp_onnx_expect_bytes(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                    const kelp_protobuf_field *field,
                                    const char *name) KELP_MUST_USE;
/* Checks the wire types of known fields: `bytes` and `numbers` are bit masks of field numbers.
 * Ignores other fields. */
kelp_status *kelp_onnx_expect_types(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                    const kelp_protobuf_field *field, uint32_t bytes,
                                    uint32_t numbers) KELP_MUST_USE;
/* Checks that all fields of `message`, the name of its type, were well-formed. */
kelp_status *kelp_onnx_check_end(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 kelp_protobuf_result result, const char *message) KELP_MUST_USE;

/* ---- messages that contain each other ---- */
kelp_status *kelp_onnx_read_attribute(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                      kelp_str message, kelp_onnx_attr *out) KELP_MUST_USE;
kelp_status *kelp_onnx_read_graph(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  kelp_str message, kelp_onnx_graph *out) KELP_MUST_USE;

#endif
