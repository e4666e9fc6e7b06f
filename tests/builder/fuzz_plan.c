/* SPDX-License-Identifier: Apache-2.0 */
/* Plans from arbitrary bytes: loading fails with an error, or gives an engine that can be inspected
 * and refitted. The hashes are corrected first, so that the code after their check is reached. */
#include "cpu/image/image.h"

#include <kelp/builder.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static kelp_runtime *runtime;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    void *bytes = NULL;
    if (runtime == NULL && kelp_runtime_create(&options, &runtime) != NULL)
        abort();
    if (posix_memalign(&bytes, 64, size + 1) != 0)
        return 0;
    memcpy(bytes, data, size);
    kelp_cpu_image_seal(bytes, size);
    kelp_status *status = kelp_engine_load(runtime, bytes, size, "plan", NULL, NULL, &engine);
    if (status == NULL)
        status = kelp_engine_refit(engine, NULL, 0); /* from the original graph */
    if (engine != NULL) {
        kelp_status_free(status);
        status = kelp_context_create(engine, &context);
    }
    kelp_status_free(status);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    free(bytes);
    return 0;
}
