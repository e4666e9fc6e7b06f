/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenVINO through its C interface, found at run time. The names, signatures and numbers are those
 * of its openvino/c folder of headers in release 2026.4; older releases number element types
 * otherwise.
 */
#include "bench/turns_openvino.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ov_object ov_object;
typedef struct ov_dims {
    int64_t rank;
    int64_t *dims;
} ov_dims;

/* Name, parameters; each answers 0 or an error. */
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
    ENTRY(ov_tensor_get_byte_size, (const ov_object *, size_t *out))                              \
    ENTRY(ov_tensor_data, (const ov_object *, void **out))

#define OV_F32 4

static struct {
#define MEMBER(name, parameters) int(*name) parameters;
    OV_ENTRIES(MEMBER)
#undef MEMBER
    const char *(*ov_get_last_err_msg)(void);
} ov;

static ov_object *core, *request, *compiled;
static char thread_text[16];

static void must(int code, const char *what) {
    if (code == 0)
        return;
    fprintf(stderr, "%s: error %d: %s\n", what, code, ov.ov_get_last_err_msg());
    exit(2);
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
    snprintf(thread_text, sizeof thread_text, "%d", threads);
    must(ov.ov_core_create(&core), "core");
}

static int element_type(kelp_dtype dtype) {
    switch (dtype) {
    case KELP_BOOL:
        return 1;
    case KELP_F32:
        return OV_F32;
    case KELP_I32:
        return 9;
    case KELP_I64:
        return 10;
    case KELP_U8:
        return 16;
    default:
        fprintf(stderr, "no input of element type %d is handed to OpenVINO\n", (int)dtype);
        exit(2);
    }
}

void turns_openvino_load(const char *path, const test_case *inputs, bool bf16) {
    ov_object *model = NULL;
    must(ov.ov_core_read_model(core, path, NULL, &model), "reading the model");
    must(ov.ov_core_compile_model(core, model, "CPU", 10, &compiled, "PERFORMANCE_HINT", "LATENCY",
                                  "INFERENCE_PRECISION_HINT", bf16 ? "bf16" : "f32",
                                  "INFERENCE_NUM_THREADS", thread_text, "NUM_STREAMS", "1",
                                  "DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"),
         "compiling the model");
    must(ov.ov_compiled_model_create_infer_request(compiled, &request), "request");
    for (uint32_t i = 0; i < inputs->input_count; i++) {
        const kelp_tensor *given = &inputs->inputs[i].tensor;
        int64_t dims[KELP_MAX_RANK] = {0};
        ov_object *tensor = NULL;
        memcpy(dims, given->shape, (size_t)given->rank * sizeof *dims);
        must(ov.ov_tensor_create_from_host_ptr(element_type(given->dtype),
                                               (ov_dims){given->rank, dims}, given->data, &tensor),
             inputs->inputs[i].name);
        must(ov.ov_infer_request_set_tensor(request, inputs->inputs[i].name, tensor),
             inputs->inputs[i].name);
    }
}

void turns_openvino_infer(void) {
    must(ov.ov_infer_request_infer(request), "inference");
}

size_t turns_openvino_outputs(void) {
    size_t count = 0;
    must(ov.ov_compiled_model_outputs_size(compiled, &count), "outputs");
    return count;
}

const float *turns_openvino_output(size_t index, size_t *out_elements) {
    ov_object *tensor = NULL;
    int type = 0;
    size_t bytes = 0;
    void *data = NULL;
    must(ov.ov_infer_request_get_output_tensor_by_index(request, index, &tensor), "output");
    must(ov.ov_tensor_get_element_type(tensor, &type), "output");
    must(ov.ov_tensor_get_byte_size(tensor, &bytes), "output");
    must(ov.ov_tensor_data(tensor, &data), "output");
    *out_elements = bytes / sizeof(float);
    return type == OV_F32 ? data : NULL;
}
