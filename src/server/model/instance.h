/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of a model. TRITONBACKEND_ModelInstance is a pointer to kelp_instance. */
#ifndef KELP_SERVER_MODEL_INSTANCE_H_
#define KELP_SERVER_MODEL_INSTANCE_H_

#include "server/core/message.h"
#include "server/model/host_policy.h"
#include "server/scheduler/scheduler.h"

/* An instance of a model. */
typedef struct kelp_instance {
    kelp_instance_base base;
    struct kelp_model *model;
    const kelp_config_instance_group *group; /* of `config` */
    char *name;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device_id;
    bool passive;
    bool begun;       /* ModelInstanceInitialize was called: ModelInstanceFinalize must be called */
    bool initialized; /* it succeeded, and the instance is in the pool unless it is passive */
    bool removed; /* finalized; stays in memory for late reports; under the model's change_lock */
    void *state;
    const char *const *profiles;
    size_t profile_count;
    kelp_message *host_policy;
    kelp_cpu_set cpus;         /* of the host policy */
    kelp_model_config *config; /* a reference to the configuration that it was created from */
    char *key;                 /* equal for instances that can replace each other */
    size_t key_capacity;
} kelp_instance;

/* Creates an instance without initializing it. */
kelp_status *kelp_instance_create(struct kelp_model *model, kelp_model_config *config,
                                  size_t group_index, int32_t index,
                                  kelp_instance **out) KELP_MUST_USE;
/* Frees an instance that is finalized or was never initialized. */
void kelp_instance_destroy(kelp_instance *instance);
/* Initializes instances, in parallel if the backend supports it; adds them to the pool. */
kelp_status *kelp_instances_begin(struct kelp_model *model, kelp_instance **instances,
                                  size_t count) KELP_MUST_USE;
/* Calls ModelInstanceFinalize if ModelInstanceInitialize was called. */
void kelp_instance_end(kelp_instance *instance);
/* Computes the number of instances of a configuration's groups. INVALID_ARGUMENT if there are too
 * many, or all are passive. */
kelp_status *kelp_instances_count(const struct kelp_model *model, const kelp_model_config *config,
                                  size_t *out_total) KELP_MUST_USE;
/* Returns true if instances of the configuration must execute on threads of their own, because they
 * wait for the rate limiter, or because a host policy selects their CPUs. */
bool kelp_instances_need_threads(const struct kelp_model *model, const kelp_model_config *config);
/* Returns a text that is equal for instances that can replace each other. Free with kelp_free. */
kelp_status *kelp_instance_key(const kelp_model_config *config, size_t group, char **out,
                               size_t *out_capacity) KELP_MUST_USE;

/* ---- execute.c ---- */
/* Calls the backend with started requests. If it returns an error, fails the requests that it has
 * not released. */
void kelp_instance_execute(kelp_instance_base *instance, kelp_request **requests, uint32_t count);
/* Returns true if the calling thread is in an execution on the instance. */
bool kelp_instance_is_executing(const kelp_instance *instance);

/* ---- warmup.c ---- */
/* Executes the samples of the configuration (`model_warmup`) on an instance that executes no
 * requests yet. */
kelp_status *kelp_instance_warm_up(kelp_instance_base *instance) KELP_MUST_USE;

#endif
