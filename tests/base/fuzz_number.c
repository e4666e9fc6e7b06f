/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes number parsing: what is taken must print and read back to the same value. */
#include "base/str.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_str s = {(const char *)data, size};
    int64_t i;
    uint64_t u;
    double value;
    char text[32];
    (void)kelp_parse_i64(s, &i);
    (void)kelp_parse_u64(s, &u);
    if (!kelp_parse_f64(s, &value))
        return 0;
    double back;
    size_t length = kelp_format_f64(value, text);
    if (length >= sizeof(text) || !kelp_parse_f64((kelp_str){text, length}, &back) ||
        (isnan(value) ? !isnan(back) : memcmp(&back, &value, sizeof(value)) != 0))
        abort();
    /* The C library judges whatever it can read as one string. */
    char copy[512];
    if (size >= sizeof(copy) || isnan(value))
        return 0;
    memcpy(copy, data, size);
    copy[size] = '\0';
    if (strtod(copy, NULL) != value)
        abort();
    return 0;
}
