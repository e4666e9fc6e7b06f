/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of ONNX Runtime's C API that Kelp calls, and their positions in its table.
 *
 * New versions only append to the table, so positions are valid for version 8 and later. Source:
 * struct OrtApi in include/onnxruntime/core/session/onnxruntime_c_api.h of the ONNX Runtime
 * repository, checked against release 1.31.1. Element types have the numbers of
 * onnx.TensorProto.DataType, as kelp_dtype does.
 */
#ifndef KELP_ONNXRUNTIME_ORT_API_H_
#define KELP_ONNXRUNTIME_ORT_API_H_

#include <stddef.h>
#include <stdint.h>

/* The requested version of the table, that of ONNX Runtime 1.8. */
#define ORT_API_VERSION_REQUIRED 8

/* An opaque object of the library. */
typedef struct ort_object ort_object;

typedef struct ort_api_base {
    const void *const *(*get_api)(uint32_t version);
    const char *(*version_string)(void);
} ort_api_base;

/* Position, result, name, parameters. A status is an object; NULL is success. */
#define ORT_ENTRIES(ENTRY)                                                                         \
    ENTRY(1, int, error_code, (const ort_object *status))                                          \
    ENTRY(2, const char *, error_message, (const ort_object *status))                              \
    ENTRY(3, ort_object *, create_env, (int log_level, const char *id, ort_object **out_env))      \
    ENTRY(7, ort_object *, create_session,                                                         \
          (ort_object * env, const char *path, const ort_object *options, ort_object **out))       \
    ENTRY(8, ort_object *, create_session_from_array,                                              \
          (ort_object * env, const void *data, size_t size_bytes, const ort_object *options,       \
           ort_object **out))                                                                      \
    ENTRY(9, ort_object *, run,                                                                    \
          (ort_object * session, const ort_object *run_options, const char *const *input_names,    \
           const ort_object *const *inputs, size_t input_count, const char *const *output_names,   \
           size_t output_count, ort_object **outputs))                                             \
    ENTRY(10, ort_object *, create_session_options, (ort_object * *out))                           \
    ENTRY(24, ort_object *, set_intra_op_threads, (ort_object * options, int threads))             \
    ENTRY(25, ort_object *, set_inter_op_threads, (ort_object * options, int threads))             \
    ENTRY(30, ort_object *, input_count, (const ort_object *session, size_t *out))                 \
    ENTRY(31, ort_object *, output_count, (const ort_object *session, size_t *out))                \
    ENTRY(33, ort_object *, input_type,                                                            \
          (const ort_object *session, size_t index, ort_object **out_type))                        \
    ENTRY(34, ort_object *, output_type,                                                           \
          (const ort_object *session, size_t index, ort_object **out_type))                        \
    ENTRY(36, ort_object *, input_name,                                                            \
          (const ort_object *session, size_t index, ort_object *allocator, char **out))            \
    ENTRY(37, ort_object *, output_name,                                                           \
          (const ort_object *session, size_t index, ort_object *allocator, char **out))            \
    ENTRY(48, ort_object *, create_tensor,                                                         \
          (ort_object * allocator, const int64_t *shape, size_t rank, int type, ort_object **out)) \
    ENTRY(49, ort_object *, create_tensor_over,                                                    \
          (const ort_object *memory, void *data, size_t size_bytes, const int64_t *shape,          \
           size_t rank, int type, ort_object **out))                                               \
    ENTRY(51, ort_object *, tensor_data, (ort_object * value, void **out))                         \
    ENTRY(52, ort_object *, fill_strings,                                                          \
          (ort_object * value, const char *const *strings, size_t count))                          \
    ENTRY(53, ort_object *, strings_length, (const ort_object *value, size_t *out_bytes))          \
    ENTRY(                                                                                         \
        54, ort_object *, strings_content,                                                         \
        (const ort_object *value, void *bytes, size_t size_bytes, size_t *offsets, size_t count))  \
    ENTRY(55, ort_object *, type_as_tensor, (const ort_object *type, const ort_object **out))      \
    ENTRY(60, ort_object *, element_type, (const ort_object *info, int *out))                      \
    ENTRY(61, ort_object *, rank, (const ort_object *info, size_t *out))                           \
    ENTRY(62, ort_object *, shape, (const ort_object *info, int64_t *out, size_t rank))            \
    ENTRY(63, ort_object *, symbols, (const ort_object *info, const char **out, size_t rank))      \
    ENTRY(65, ort_object *, value_info, (const ort_object *value, ort_object **out))               \
    ENTRY(69, ort_object *, create_cpu_memory, (int allocator, int memory, ort_object **out))      \
    ENTRY(76, ort_object *, allocator_free, (ort_object * allocator, void *address))               \
    ENTRY(78, ort_object *, default_allocator, (ort_object * *out))                                \
    ENTRY(92, void, release_env, (ort_object *))                                                   \
    ENTRY(93, void, release_status, (ort_object *))                                                \
    ENTRY(94, void, release_memory, (ort_object *))                                                \
    ENTRY(95, void, release_session, (ort_object *))                                               \
    ENTRY(96, void, release_value, (ort_object *))                                                 \
    ENTRY(98, void, release_type, (ort_object *))                                                  \
    ENTRY(99, void, release_info, (ort_object *))                                                  \
    ENTRY(100, void, release_options, (ort_object *))

#define ORT_FIELD(position, result, name, parameters) result(*name) parameters;
typedef struct ort_api {
    ORT_ENTRIES(ORT_FIELD)
} ort_api;
#undef ORT_FIELD

/* Copies the functions from the library's table. */
static inline void ort_api_copy(const void *const *table, ort_api *out) {
#define ORT_COPY(position, result, name, parameters) \
    __builtin_memcpy(&out->name, &table[position], sizeof out->name);
    ORT_ENTRIES(ORT_COPY)
#undef ORT_COPY
}

#endif
