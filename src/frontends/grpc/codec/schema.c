/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/grpc/codec/schema.h"

#include "base/checked.h"

/* Names and numbers are those of Triton's grpc_service.proto and model_config.proto, and of gRPC's
 * protocols for health checking and reflection. */
#define KELP_FILE(name_, package_, import_) \
    {.kind = KELP_GRPC_FILE, .name = name_, .type_name = package_, .other = import_},
#define KELP_MESSAGE(name_) \
    {.kind = KELP_GRPC_MESSAGE, .name = name_, .type_name = "", .other = ""},
#define KELP_FIELD_ROW(kind_, name_, number_, type_, type_name_, other_, key_type_) \
    {.kind = KELP_GRPC_##kind_,                                                     \
     .name = name_,                                                                 \
     .number = number_,                                                             \
     .type = KELP_GRPC_##type_,                                                     \
     .type_name = type_name_,                                                       \
     .other = other_,                                                               \
     .key_type = KELP_GRPC_##key_type_},
#define KELP_FIELD(name_, number_, type_, type_name_) \
    KELP_FIELD_ROW(FIELD, name_, number_, type_, type_name_, "", STRING)
#define KELP_LIST(name_, number_, type_, type_name_) \
    KELP_FIELD_ROW(LIST, name_, number_, type_, type_name_, "", STRING)
#define KELP_MAP(name_, number_, key_type_, type_, type_name_) \
    KELP_FIELD_ROW(MAP, name_, number_, type_, type_name_, "", key_type_)
#define KELP_CHOICE(name_, number_, type_, type_name_, oneof_) \
    KELP_FIELD_ROW(CHOICE, name_, number_, type_, type_name_, oneof_, STRING)
#define KELP_ENUM(name_) {.kind = KELP_GRPC_ENUM, .name = name_, .type_name = "", .other = ""},
#define KELP_VALUE(name_, number_) \
    {.kind = KELP_GRPC_VALUE, .name = name_, .number = number_, .type_name = "", .other = ""},
#define KELP_SERVICE(name_) \
    {.kind = KELP_GRPC_SERVICE, .name = name_, .type_name = "", .other = ""},
#define KELP_METHOD(name_, request_, response_, client_streams_, server_streams_) \
    {.kind = KELP_GRPC_METHOD,                                                    \
     .name = name_,                                                               \
     .type_name = request_,                                                       \
     .other = response_,                                                          \
     .client_streams = client_streams_,                                           \
     .server_streams = server_streams_},

const kelp_grpc_row kelp_grpc_schema[] = {
#include "frontends/grpc/codec/schema/grpc_service.inc"
#include "frontends/grpc/codec/schema/model_config.inc"
#include "frontends/grpc/codec/schema/health.inc"
    KELP_FILE("grpc/reflection/v1/reflection.proto", "grpc.reflection.v1", "")
#include "frontends/grpc/codec/schema/reflection.inc"
        KELP_FILE("grpc/reflection/v1alpha/reflection.proto", "grpc.reflection.v1alpha", "")
#include "frontends/grpc/codec/schema/reflection.inc"
};
const size_t kelp_grpc_schema_count = KELP_COUNT(kelp_grpc_schema);

const kelp_grpc_row *kelp_grpc_find_type(const char *name) {
    for (const kelp_grpc_row *row = kelp_grpc_schema; row < kelp_grpc_schema_end(); row++)
        if ((row->kind == KELP_GRPC_MESSAGE || row->kind == KELP_GRPC_ENUM) &&
            strcmp(row->name, name) == 0)
            return row;
    return NULL;
}
