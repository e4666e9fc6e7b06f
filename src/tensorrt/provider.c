/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's TensorRT as a provider of engines, if it is installed. */
#include "tensorrt/provider.h"

#include <kelp/cuda.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- the library ---- */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static trt_library *opened; /* never closed: it has its own threads and handlers */

kelp_status *trt_shared_library(const trt_library **out) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&opening);
    if (opened == NULL)
        status = trt_library_open(kelp_allocator_system(), NULL, &opened);
    *out = opened;
    pthread_mutex_unlock(&opening);
    if (status == NULL)
        return NULL;
    kelp_status *unavailable =
        KELP_ERROR(KELP_UNAVAILABLE,
                   "TensorRT is not available (docs/platforms.md describes its installation): %s",
                   kelp_status_message(status));
    kelp_status_free(status);
    return unavailable;
}

static void log_line(void *userp, trt_severity severity, const char *text) {
    const kelp_runtime *runtime = userp;
    kelp_log_level level = severity <= TRT_SEVERITY_ERROR     ? KELP_LOG_ERROR
                           : severity == TRT_SEVERITY_WARNING ? KELP_LOG_WARNING
                           : severity == TRT_SEVERITY_INFO    ? KELP_LOG_INFO
                                                              : KELP_LOG_VERBOSE;
    KELP_LOGF(&runtime->logger, level, "TensorRT: %s", text);
}

kelp_status *trt_runtime_log(kelp_runtime *runtime, trt_log **out) {
    trt_severity max_severity =
        runtime->logger.level >= KELP_LOG_VERBOSE ? TRT_SEVERITY_VERBOSE : TRT_SEVERITY_INFO;
    return trt_log_create(runtime->allocator, max_severity, log_line, runtime, out);
}

/* ---- availability ---- */
static kelp_status *available(void *self, kelp_runtime *runtime) {
    const trt_library *library = NULL;
    (void)self, (void)runtime;
    return trt_shared_library(&library);
}

/* Compares the first bytes with those of plans of TensorRT-RTX and TensorRT. */
static bool recognizes(void *self, const void *data, size_t size_bytes) {
    (void)self;
    return size_bytes >= 4 && (memcmp(data, "vtrt", 4) == 0 || memcmp(data, "ftrt", 4) == 0);
}

typedef struct sink {
    void (*write)(void *userp, const char *text, size_t length);
    void *userp;
} sink;

static void put(const sink *s, const char *label, const char *text) {
    char line[5000];
    int length = snprintf(line, sizeof line, "%-10s %s\n", label, text);
    s->write(s->userp, line, length < (int)sizeof line ? (size_t)length : sizeof line - 1);
}

static kelp_status *describe_devices(const sink *s) {
    kelp_cuda *cuda = NULL;
    char text[256];
    kelp_status *status = kelp_cuda_open(kelp_allocator_system(), &cuda);
    if (status != NULL) {
        put(s, "driver", kelp_status_message(status));
        kelp_status_free(status);
        return NULL; /* building engines needs no driver */
    }
    int version = kelp_cuda_driver_version(cuda);
    snprintf(text, sizeof text, "of CUDA %d.%d", version / 1000, version % 1000 / 10);
    put(s, "driver", text);
    for (int i = 0; status == NULL && i < kelp_cuda_device_count(cuda); i++) {
        kelp_cuda_device device;
        status = kelp_cuda_describe(cuda, i, &device);
        if (status != NULL)
            break;
        snprintf(text, sizeof text, "%d: %s, compute capability %d.%d, %zu MiB", i, device.name,
                 device.compute_major, device.compute_minor, device.memory_bytes >> 20);
        put(s, "device", text);
    }
    kelp_cuda_destroy(cuda);
    return status;
}

static kelp_status *describe(void *self, kelp_runtime *runtime,
                             void (*write)(void *userp, const char *text, size_t length),
                             void *userp) {
    const trt_library *library = NULL;
    const sink s = {write, userp};
    char text[4200];
    (void)self, (void)runtime;
    KELP_TRY(trt_shared_library(&library));
    trt_library_describe(library, text, sizeof text);
    put(&s, "library", text);
    put(&s, "tables", library->methods->name);
    put(&s, "builder", library->create_builder != NULL ? "yes" : "no: it can only run engines");
    put(&s, "parser",
        library->parser_path != NULL     ? library->parser_path
        : library->parser_reason != NULL ? library->parser_reason
                                         : "none");
    return describe_devices(&s);
}

static const kelp_engine_provider engines = {
    .abi_version = KELP_ENGINE_PROVIDER_ABI_VERSION,
    .struct_size = sizeof(kelp_engine_provider),
    .name = "tensorrt",
    /* Networks are strongly typed: their tensors' types say what is computed in FP16, BF16,
     * INT8 and FP8. */
    .flags = KELP_BUILD_TF32 | KELP_BUILD_REFIT | KELP_BUILD_REFIT_INDIVIDUAL |
             KELP_BUILD_STRIP_WEIGHTS | KELP_BUILD_WEIGHT_STREAMING |
             KELP_BUILD_VERSION_COMPATIBLE | KELP_BUILD_MONITOR_MEMORY | KELP_BUILD_DETAILED,
    .pools = 1u << KELP_POOL_WORKSPACE | 1u << KELP_POOL_DEVICE,
    .timing_cache = true,
    .has_devices = true,
    .needs_profiles = true,
    .available = available,
    .supports = trt_engine_supports,
    .build = trt_engine_build,
    .recognises = recognizes,
    .load = trt_engine_load,
    .describe = describe,
};

const kelp_provider kelp_tensorrt_provider = {.name = "tensorrt", .engines = &engines};
