/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config/ignored.h"

#include "base/checked.h"
#include "server/core/log.h"

void kelp_model_config_warn_ignored(const kelp_model_config *config) {
    const kelp_config_dynamic_batching *batching = &config->dynamic_batching;
    const struct {
        bool is_set;
        const char *field, *reason;
    } fields[] = {
        {batching->preferred_count > 0, "preferred_batch_size",
         "a batch contains as many queued requests as max_batch_size allows"},
        {batching->max_queue_delay_us > 0, "max_queue_delay_microseconds",
         "the scheduler does not wait for more requests"},
        {batching->preserve_ordering, "preserve_ordering",
         "responses are sent as soon as they are complete"},
        {batching->priority_levels > 0, "priority_levels", "all requests have the same priority"},
        {batching->policy_count > 0, "priority_queue_policy",
         "all requests have the default queue policy"},
    };
    if (config->scheduling != KELP_SCHEDULING_DYNAMIC)
        return;
    for (size_t i = 0; i < KELP_COUNT(fields); i++)
        if (fields[i].is_set)
            KELP_SERVER_LOG(KELP_LOG_WARNING,
                            "model '%s': field 'dynamic_batching.%s' has no effect: %s",
                            config->name, fields[i].field, fields[i].reason);
}
