/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenVINO through its C interface, loaded at run time. Names, signatures and constants are those
 * of the headers openvino/c of release 2026.4; earlier releases number element types differently.
 */
#include "bench/turns_openvino.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_INPUTS 64 /* also outputs */

typedef struct ov_object ov_object;
typedef struct ov_dims {
    int64_t rank;
    int64_t *dims;
} ov_dims;

/* Name and parameters; each function returns 0 or an error code. */
#define OV_ENTRIES(ENTRY)                                                                         \
    ENTRY(ov_core_create, (ov_object * *core))                                                    \
    ENTRY(ov_core_read_model,                                                                     \
          (const ov_object *, const char *path, const char *weights, ov_object **out_model))      \
    ENTRY(ov_core_compile_model, (const ov_object *core, const ov_object *model,                  \
                                  const char *device, size_t words, ov_object **out, ...))        \
    ENTRY(ov_compiled_model_create_infer_request, (const ov_object *, ov_object **out))           \
    ENTRY(ov_compiled_model_outputs_size, (const ov_object *, size_t *out))                       \
    ENTRY(ov_infer_request_set_tensor, (ov_object *, const char *name, const ov_object *tensor))  \
    ENTRY(ov_infer_request_infer, (ov_object *))                                                  \
    ENTRY(ov_infer_request_get_output_tensor_by_index,                                            \
          (const ov_object *, size_t index, ov_object **out))                                     \
    ENTRY(ov_tensor_create_from_host_ptr, (int type, ov_dims shape, void *data, ov_object **out)) \
    ENTRY(ov_tensor_get_element_type, (const ov_object *, int *out))                              \
    ENTRY(ov_tensor_get_shape, (const ov_object *, ov_dims *out))                                 \
    ENTRY(ov_shape_free, (ov_dims *))                                                             \
    ENTRY(ov_tensor_data, (const ov_object *, void **out))

/* The element types by number, as Kelp's. */
static const kelp_dtype types[] = {KELP_DTYPE_INVALID,
                                   KELP_BOOL,
                                   KELP_BF16,
                                   KELP_F16,
                                   KELP_F32,
                                   KELP_F64,
                                   KELP_I4,
                                   KELP_I8,
                                   KELP_I16,
                                   KELP_I32,
                                   KELP_I64,
                                   KELP_DTYPE_INVALID /* u1 */,
                                   KELP_U2,
                                   KELP_DTYPE_INVALID /* u3 */,
                                   KELP_U4,
                                   KELP_DTYPE_INVALID /* u6 */,
                                   KELP_U8,
                                   KELP_U16,
                                   KELP_U32,
                                   KELP_U64};
#define TYPE_COUNT ((int)(sizeof types / sizeof *types))

static struct {
#define MEMBER(name, parameters) int(*name) parameters;
    OV_ENTRIES(MEMBER)
#undef MEMBER
    const char *(*ov_get_last_err_msg)(void);
    void (*ov_tensor_free)(ov_object *);
    void (*ov_infer_request_free)(ov_object *);
    void (*ov_compiled_model_free)(ov_object *);
    void (*ov_model_free)(ov_object *);
} ov;

static ov_object *core, *request, *compiled, *model;
static ov_object *given[MOST_INPUTS], *taken[MOST_INPUTS];
static char thread_text[16], message[1024];

static const char *failure(int code, const char *what) {
    if (code == 0)
        return NULL;
    const char *why = ov.ov_get_last_err_msg();
    snprintf(message, sizeof message, "%s: error %d: %s", what, code, why != NULL ? why : "");
    return message;
}

static void *entry(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "OpenVINO has no '%s'\n", name);
        exit(2);
    }
    return found;
}

void turns_openvino_open(int threads) {
    const char *path = getenv("KELP_OPENVINO_LIBRARY");
    void *library = dlopen(path != NULL ? path : "libopenvino_c.so", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
#define FIND(name, parameters) *(void **)&ov.name = entry(library, #name);
    OV_ENTRIES(FIND)
#undef FIND
    *(void **)&ov.ov_get_last_err_msg = entry(library, "ov_get_last_err_msg");
    *(void **)&ov.ov_tensor_free = entry(library, "ov_tensor_free");
    *(void **)&ov.ov_infer_request_free = entry(library, "ov_infer_request_free");
    *(void **)&ov.ov_compiled_model_free = entry(library, "ov_compiled_model_free");
    *(void **)&ov.ov_model_free = entry(library, "ov_model_free");
    snprintf(thread_text, sizeof thread_text, "%d", threads);
    const char *error = failure(ov.ov_core_create(&core), "core");
    if (error != NULL) {
        fprintf(stderr, "%s\n", error);
        exit(2);
    }
}

static int element_type(kelp_dtype dtype) {
    for (int i = 1; i < TYPE_COUNT; i++) {
        if (types[i] == dtype)
            return i;
    }
    return 0;
}

static const char *set_input(size_t index, const test_named *input) {
    const kelp_tensor *from = &input->tensor;
    int64_t dims[KELP_MAX_RANK] = {0};
    int type = element_type(from->dtype);
    if (index >= MOST_INPUTS || type == 0) {
        snprintf(message, sizeof message, "input '%s' has element type %d, which is not passed",
                 input->name, (int)from->dtype);
        return message;
    }
    memcpy(dims, from->shape, (size_t)from->rank * sizeof *dims);
    const char *error = failure(ov.ov_tensor_create_from_host_ptr(type, (ov_dims){from->rank, dims},
                                                                  from->data, &given[index]),
                                input->name);
    return error != NULL
               ? error
               : failure(ov.ov_infer_request_set_tensor(request, input->name, given[index]),
                         input->name);
}

const char *turns_openvino_load(const char *path, const test_case *inputs, bool bf16) {
    const char *group = getenv("KELP_OPENVINO_GROUP_SIZE"); /* of 8-bit activations */
    const char *error = failure(ov.ov_core_read_model(core, path, NULL, &model), "reading");
    if (error == NULL)
        error = failure(ov.ov_core_compile_model(
                            core, model, "CPU", 10, &compiled, "PERFORMANCE_HINT", "LATENCY",
                            "INFERENCE_PRECISION_HINT", bf16 ? "bf16" : "f32",
                            "INFERENCE_NUM_THREADS", thread_text, "NUM_STREAMS", "1",
                            "DYNAMIC_QUANTIZATION_GROUP_SIZE", group != NULL ? group : "0"),
                        "compiling");
    if (error == NULL)
        error = failure(ov.ov_compiled_model_create_infer_request(compiled, &request), "request");
    for (uint32_t i = 0; error == NULL && i < inputs->input_count; i++)
        error = set_input(i, &inputs->inputs[i]);
    return error;
}

static void free_tensors(ov_object **tensors) {
    for (size_t i = 0; i < MOST_INPUTS; i++) {
        if (tensors[i] != NULL)
            ov.ov_tensor_free(tensors[i]);
        tensors[i] = NULL;
    }
}

void turns_openvino_unload(void) {
    free_tensors(taken);
    if (request != NULL)
        ov.ov_infer_request_free(request);
    free_tensors(given);
    if (compiled != NULL)
        ov.ov_compiled_model_free(compiled);
    if (model != NULL)
        ov.ov_model_free(model);
    request = compiled = model = NULL;
}

const char *turns_openvino_infer(void) {
    return failure(ov.ov_infer_request_infer(request), "inference");
}

size_t turns_openvino_outputs(void) {
    size_t count = 0;
    return failure(ov.ov_compiled_model_outputs_size(compiled, &count), "outputs") == NULL ? count
                                                                                           : 0;
}

const char *turns_openvino_output(size_t index, kelp_tensor *out) {
    ov_object *tensor = NULL;
    ov_dims dims = {0};
    int type = 0;
    void *data = NULL;
    const char *error = index < MOST_INPUTS ? NULL : "too many outputs";
    if (error == NULL)
        error = failure(ov.ov_infer_request_get_output_tensor_by_index(request, index, &tensor),
                        "output");
    if (error != NULL)
        return error;
    if (taken[index] != NULL)
        ov.ov_tensor_free(taken[index]);
    taken[index] = tensor;
    error = failure(ov.ov_tensor_get_element_type(tensor, &type), "type");
    if (error == NULL)
        error = failure(ov.ov_tensor_get_shape(tensor, &dims), "shape");
    if (error == NULL)
        error = failure(ov.ov_tensor_data(tensor, &data), "data");
    kelp_dtype dtype = type > 0 && type < TYPE_COUNT ? types[type] : KELP_DTYPE_INVALID;
    kelp_status *status =
        error == NULL ? kelp_tensor_init(out, dtype, (int32_t)dims.rank, dims.dims, data) : NULL;
    if (status != NULL) {
        snprintf(message, sizeof message, "output: %s", kelp_status_message(status));
        kelp_status_free(status);
        error = message;
    }
    if (dims.dims != NULL)
        ov.ov_shape_free(&dims);
    return error;
}
