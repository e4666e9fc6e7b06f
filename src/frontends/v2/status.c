/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/v2/status.h"

#include "base/triton/convert.h"

kelp_status *kelp_v2_status(TRITONSERVER_Error *take_error) {
    if (take_error == NULL)
        return NULL;
    kelp_status *status = KELP_ERROR(kelp_code_from_triton(TRITONSERVER_ErrorCode(take_error)),
                                     "%s", TRITONSERVER_ErrorMessage(take_error));
    TRITONSERVER_ErrorDelete(take_error);
    return status;
}

kelp_http_status kelp_v2_http_status(const kelp_status *status) {
    /* clang-format off */
    switch (kelp_status_code(status)) {
#define KELP_CODE_ROW(kelp, triton, http) case KELP_##kelp: return KELP_HTTP_##http;
#define KELP_CODE_ROW_TO KELP_CODE_ROW
#include "base/triton/codes.inc"
    }
    /* clang-format on */
    return KELP_HTTP_BAD_REQUEST;
}
