/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of .npz files. */
#include "cli/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_npz npz;
    (void)kelp_npz_is(data, size);
    kelp_status *status = kelp_npz_init(&npz, "fuzz", data, size);
    for (size_t i = 0; status == NULL && i < npz.count; i++) {
        kelp_array array;
        kelp_status_free(kelp_npz_read(&npz, i, &array));
        kelp_array_deinit(&array);
    }
    kelp_status_free(status);
    kelp_npz_deinit(&npz);
    return 0;
}
