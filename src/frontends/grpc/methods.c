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
