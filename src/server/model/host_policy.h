/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host policies: the CPUs that the threads of instances run on. `cpu-cores` lists CPUs ("0-3,8"),
 * `numa-node` selects the CPUs of a node. A thread inherits the CPUs of the thread that creates it;
 * therefore the loading thread is restricted while it creates a model or an instance.
 */
#ifndef KELP_SERVER_MODEL_HOST_POLICY_H_
#define KELP_SERVER_MODEL_HOST_POLICY_H_

#include "server/config/config.h"
#include "server/core/options.h"

/* The CPUs of a policy. */
typedef struct kelp_cpu_set {
    bool restricted;         /* false: all CPUs that the process may use */
    unsigned char bits[128]; /* as in sched_setaffinity(2) */
} kelp_cpu_set;

/* Returns the name of the host policy of a group: "cpu" or "model" by default. */
const char *kelp_host_policy_of(const kelp_config_instance_group *group);
/* Returns true if the policy of a group restricts the CPUs. */
bool kelp_host_policy_restricts(const kelp_server_options *options,
                                const kelp_config_instance_group *group);
/* Reads the CPUs of the policy of a group. INVALID_ARGUMENT if a setting is invalid. */
kelp_status *kelp_host_policy_cpus(const kelp_server_options *options,
                                   const kelp_config_instance_group *group,
                                   kelp_cpu_set *out) KELP_MUST_USE;
/* Reads the CPUs of all groups together. Not restricted if one of them is not. */
kelp_status *kelp_host_policy_cpus_of_all(const kelp_server_options *options,
                                          const kelp_model_config *config,
                                          kelp_cpu_set *out) KELP_MUST_USE;

/* Restricts the calling thread, and stores its previous CPUs. INVALID_ARGUMENT if the process may
 * use none of the CPUs. */
kelp_status *kelp_cpu_set_enter(const kelp_cpu_set *cpus, kelp_cpu_set *out_previous) KELP_MUST_USE;
/* Undoes kelp_cpu_set_enter. */
void kelp_cpu_set_leave(const kelp_cpu_set *previous);

#endif
