/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/common/status.h"

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
    static const kelp_http_status statuses[] = {
#define KELP_CODE_ROW(kelp, triton, http) [KELP_##kelp] = KELP_HTTP_##http,
#define KELP_CODE_ROW_TO KELP_CODE_ROW
#include "base/triton/codes.inc"
    };
    size_t code = (size_t)kelp_status_code(status);
    return code < KELP_COUNT(statuses) ? statuses[code] : KELP_HTTP_BAD_REQUEST;
}
