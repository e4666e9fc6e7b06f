/* SPDX-License-Identifier: Apache-2.0 */
/* The table of methods. */
#include "base/checked.h"
#include "frontends/grpc/exchange.h"

#define INFERENCE "/inference.GRPCInferenceService/"

static const kelp_grpc_method methods[] = {
    {INFERENCE "ModelInfer", kelp_grpc_infer, false, false, true},
    {INFERENCE "ModelStreamInfer", kelp_grpc_infer, true, true, true},
    {INFERENCE "ServerLive", kelp_grpc_server_live, false, false, false},
    {INFERENCE "ServerReady", kelp_grpc_server_ready, false, false, false},
    {INFERENCE "ServerMetadata", kelp_grpc_server_metadata, false, false, false},
    {INFERENCE "ModelReady", kelp_grpc_model_ready, false, false, false},
    {INFERENCE "ModelMetadata", kelp_grpc_model_metadata, false, false, false},
    {INFERENCE "ModelConfig", kelp_grpc_model_config, false, false, false},
    {INFERENCE "ModelStatistics", kelp_grpc_model_statistics, false, false, false},
    {INFERENCE "RepositoryIndex", kelp_grpc_repository_index, false, false, false},
    {INFERENCE "RepositoryModelLoad", kelp_grpc_repository_load, false, false, false},
    {INFERENCE "RepositoryModelUnload", kelp_grpc_repository_unload, false, false, false},
    {INFERENCE "TraceSetting", kelp_grpc_trace_setting, false, false, false},
    {INFERENCE "LogSettings", kelp_grpc_log_settings, false, false, false},
    {INFERENCE "SystemSharedMemoryStatus", kelp_grpc_shm_status, false, false, false},
    {INFERENCE "SystemSharedMemoryRegister", kelp_grpc_shm_register, false, false, false},
    {INFERENCE "SystemSharedMemoryUnregister", kelp_grpc_shm_unregister, false, false, false},
    {INFERENCE "CudaSharedMemoryStatus", kelp_grpc_cuda_shm_status, false, false, false},
    {INFERENCE "CudaSharedMemoryRegister", kelp_grpc_cuda_shm_register, false, false, false},
    {INFERENCE "CudaSharedMemoryUnregister", kelp_grpc_cuda_shm_unregister, false, false, false},
    {"/grpc.health.v1.Health/Check", kelp_grpc_health_check, false, false, false},
    {"/grpc.health.v1.Health/Watch", kelp_grpc_health_watch, false, true, false},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", kelp_grpc_reflect, true, true,
     false},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kelp_grpc_reflect, true,
     true, false},
};

const kelp_grpc_method *kelp_grpc_find_method(kelp_str path) {
    for (size_t i = 0; i < KELP_COUNT(methods); i++)
        if (kelp_str_is(path, methods[i].path))
            return &methods[i];
    return NULL;
}

/* Returns the category of a method. Methods of other services, such as reflection, have none. */
static kelp_access_category category_of(kelp_str path) {
    static const struct {
        const char *start; /* of the path; the first match counts */
        kelp_access_category category;
    } rows[] = {
        {INFERENCE "ModelInfer", KELP_ACCESS_INFERENCE},
        {INFERENCE "ModelStreamInfer", KELP_ACCESS_INFERENCE},
        {INFERENCE "ServerMetadata", KELP_ACCESS_METADATA},
        {INFERENCE "ModelMetadata", KELP_ACCESS_METADATA},
        {INFERENCE "ModelConfig", KELP_ACCESS_MODEL_CONFIG},
        {INFERENCE "ModelStatistics", KELP_ACCESS_STATISTICS},
        {INFERENCE "Repository", KELP_ACCESS_MODEL_REPOSITORY},
        {INFERENCE "SystemSharedMemory", KELP_ACCESS_SHARED_MEMORY},
        {INFERENCE "CudaSharedMemory", KELP_ACCESS_SHARED_MEMORY},
        {INFERENCE "Trace", KELP_ACCESS_TRACE},
        {INFERENCE "Log", KELP_ACCESS_LOGGING},
        {INFERENCE "Server", KELP_ACCESS_HEALTH}, /* Live, Ready */
        {INFERENCE "ModelReady", KELP_ACCESS_HEALTH},
        {"/grpc.health.v1.", KELP_ACCESS_HEALTH},
    };
    for (size_t i = 0; i < KELP_COUNT(rows); i++)
        if (kelp_str_starts(path, kelp_str_from(rows[i].start)))
            return rows[i].category;
    return KELP_ACCESS_OTHER;
}

static const kelp_str *find_metadata(const void *userp, const char *name) {
    return kelp_http_find(userp, name);
}

kelp_status *kelp_grpc_permit(const kelp_grpc_service *service, const kelp_http_request *request) {
    if (!kelp_access_is_limited(service->access))
        return NULL;
    kelp_status *status =
        kelp_access_check(service->access, category_of(request->path), find_metadata, request);
    if (kelp_status_code(status) != KELP_PERMISSION_DENIED)
        return status;
    kelp_status *restricted = KELP_ERROR(KELP_UNAVAILABLE, "%s", kelp_status_message(status));
    kelp_status_free(status);
    return restricted;
}
