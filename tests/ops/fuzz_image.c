/* SPDX-License-Identifier: Apache-2.0 */
/* BMP and PNM, which Kelp reads itself: whatever the bytes, pixels of the size that the header
 * says, or an error. */
#include "cpu/ops/image/decode.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const kelp_image_format *formats[] = {&kelp_image_bmp, &kelp_image_pnm};
    for (size_t i = 0; i < KELP_COUNT(formats); i++) {
        kelp_encoded image = {.data = data, .size = size};
        if (!formats[i]->matches(&image))
            continue;
        kelp_status *status = formats[i]->measure(&image);
        if (status == NULL && image.width > 0 && image.height > 0 &&
            image.width <= (1 << 22) / image.height) {
            uint8_t *out = malloc((size_t)(image.width * image.height) * 3);
            if (out != NULL)
                status = formats[i]->decode(&image, out);
            free(out);
        }
        kelp_status_free(status);
    }
    return 0;
}
