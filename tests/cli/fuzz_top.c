/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of metrics of `kelp top`. */
#include "cli/top/sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_top_model models[] = {{.name = "a", .version = "1"}, {.name = "digits", .version = "1"}};
    kelp_top_sample sample = {.models = models, .count = 2};
    kelp_top_parse_metrics((kelp_str){(const char *)data, size}, &sample);
    return 0;
}
