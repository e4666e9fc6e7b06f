/* SPDX-License-Identifier: Apache-2.0 */
/* Single files over HTTP. */
#include "cli/pull/source.h"

#include <string.h>

kelp_status *kelp_pull_http(kelp_pull *pull) {
    kelp_buf url, name;
    kelp_buf_init(&url, kelp_allocator_system());
    kelp_buf_init(&name, kelp_allocator_system());
    kelp_buf_printf(&url, "%s://%s", kelp_pull_scheme(pull), pull->address);
    kelp_status *status = kelp_buf_status(&url);
    if (status == NULL)
        status = kelp_pull_name(pull, &name);
    if (status == NULL) {
        const char *text = kelp_buf_cstr(&name);
        kelp_fetch_request request = {.url = kelp_buf_cstr(&url),
                                      .name = *text != '\0' ? text : NULL,
                                      .digest = kelp_pull_digest(pull)};
        status = kelp_pull_take(pull, &(kelp_pull_item){.request = &request,
                                                        .path = *text != '\0' ? text : "model.onnx",
                                                        .is_single = true});
    }
    kelp_buf_deinit(&url);
    kelp_buf_deinit(&name);
    return status;
}
