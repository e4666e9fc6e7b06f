/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes model configurations: any text is rejected or becomes a configuration that can be
 * written as JSON. */
#include "server/config/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_config_load_options options = {.model_name = "fuzzed"};
    kelp_model_config *config = NULL, *completed = NULL;
    kelp_status *status = kelp_model_config_parse(kelp_allocator_system(), &options, "config.pbtxt",
                                                  (const char *)data, size, &config);
    if (status == NULL) {
        kelp_buf text;
        kelp_buf_init(&text, kelp_allocator_system());
        kelp_status *shown = kelp_model_config_to_json(config, 1, &text);
        if (shown != NULL)
            abort();
        /* the JSON is a valid configuration */
        kelp_status_free(kelp_model_config_complete(config, text.data, text.length, &completed));
        kelp_model_config_release(completed);
        kelp_buf_deinit(&text);
    }
    kelp_status_free(status);
    kelp_model_config_release(config);
    return 0;
}
