/* SPDX-License-Identifier: Apache-2.0 */
#include "server/model/host_policy.h"

#include "base/fs.h"
#include "base/str.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(cpu_set_t) == sizeof((kelp_cpu_set){0}.bits), "the sizes must be equal");

const char *kelp_host_policy_of(const kelp_config_instance_group *group) {
    if (group->host_policy[0])
        return group->host_policy;
    return group->kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL ? "model" : "cpu";
}

bool kelp_host_policy_restricts(const kelp_server_options *options,
                                const kelp_config_instance_group *group) {
    const char *policy = kelp_host_policy_of(group);
    return kelp_settings_get(&options->host_policies, policy, "cpu-cores") != NULL ||
           kelp_settings_get(&options->host_policies, policy, "numa-node") != NULL;
}

/* Removes and returns the number at the beginning of a text. */
static bool take_number(kelp_str *text, uint64_t *out) {
    size_t length = 0;
    while (length < text->length && text->data[length] >= '0' && text->data[length] <= '9')
        length++;
    bool valid = kelp_parse_u64((kelp_str){text->data, length}, out) && *out < CPU_SETSIZE;
    text->data += length;
    text->length -= length;
    return valid;
}

static bool take_char(kelp_str *text, char expected) {
    if (text->length == 0 || text->data[0] != expected)
        return false;
    text->data++;
    text->length--;
    return true;
}

/* Parses a list such as "0-3,8". */
static bool parse_list(kelp_str text, cpu_set_t *out) {
    do {
        uint64_t first, last;
        if (!take_number(&text, &first))
            return false;
        last = first;
        if (take_char(&text, '-') && (!take_number(&text, &last) || last < first))
            return false;
        for (uint64_t cpu = first; cpu <= last; cpu++)
            CPU_SET(cpu, out);
    } while (take_char(&text, ','));
    return text.length == 0;
}

/* Reads the CPUs of a NUMA node. */
static bool read_node(const char *node, cpu_set_t *out) {
    char path[96], line[1024];
    uint64_t number;
    if (!kelp_parse_u64(kelp_str_from(node), &number))
        return false;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%llu/cpulist",
             (unsigned long long)number);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    bool valid = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    if (valid)
        line[strcspn(line, "\n")] = '\0';
    return valid && parse_list(kelp_str_from(line), out);
}

/* Adds the CPUs of a policy. */
static kelp_status *add_cpus(const kelp_server_options *options, const char *policy,
                             cpu_set_t *out) {
    const char *cores = kelp_settings_get(&options->host_policies, policy, "cpu-cores");
    const char *node = kelp_settings_get(&options->host_policies, policy, "numa-node");
    if (cores != NULL && !parse_list(kelp_str_from(cores), out))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "host policy '%s': setting 'cpu-cores': expected a list of CPUs such as "
                          "0-3,8, found '%s'",
                          policy, cores);
    if (cores == NULL && node != NULL && !read_node(node, out))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "host policy '%s': setting 'numa-node': expected the number of a node of "
                          "this machine, found '%s'",
                          policy, node);
    return NULL;
}

kelp_status *kelp_host_policy_cpus(const kelp_server_options *options,
                                   const kelp_config_instance_group *group, kelp_cpu_set *out) {
    cpu_set_t set;
    CPU_ZERO(&set);
    KELP_TRY(add_cpus(options, kelp_host_policy_of(group), &set));
    out->restricted = kelp_host_policy_restricts(options, group);
    memcpy(out->bits, &set, sizeof set);
    return NULL;
}

kelp_status *kelp_host_policy_cpus_of_all(const kelp_server_options *options,
                                          const kelp_model_config *config, kelp_cpu_set *out) {
    cpu_set_t set;
    CPU_ZERO(&set);
    out->restricted = config->instance_group_count > 0;
    for (size_t i = 0; i < config->instance_group_count; i++) {
        const kelp_config_instance_group *group = &config->instance_groups[i];
        KELP_TRY(add_cpus(options, kelp_host_policy_of(group), &set));
        out->restricted &= kelp_host_policy_restricts(options, group);
    }
    memcpy(out->bits, &set, sizeof set);
    return NULL;
}

kelp_status *kelp_cpu_set_enter(const kelp_cpu_set *cpus, kelp_cpu_set *out_previous) {
    cpu_set_t set;
    *out_previous = (kelp_cpu_set){0};
    if (!cpus->restricted)
        return NULL;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot read the CPUs of a thread: %s", strerror(errno));
    memcpy(out_previous->bits, &set, sizeof set);
    memcpy(&set, cpus->bits, sizeof set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot run on the CPUs of the host policy: %s",
                          strerror(errno));
    out_previous->restricted = true;
    return NULL;
}

void kelp_cpu_set_leave(const kelp_cpu_set *previous) {
    cpu_set_t set;
    memcpy(&set, previous->bits, sizeof set);
    if (previous->restricted)
        (void)sched_setaffinity(0, sizeof set, &set); /* the CPUs were valid before */
}
