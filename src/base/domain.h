/* SPDX-License-Identifier: Apache-2.0 */
/* Domains of failures, set where a public function returns. */
#ifndef KELP_BASE_DOMAIN_H_
#define KELP_BASE_DOMAIN_H_

#include "base/checked.h"

#include <kelp/status.h>

/* Sets the domain of a failure that has none, and returns it. */
KELP_MUST_USE static inline kelp_status *kelp_in_domain(kelp_status *take_status,
                                                        kelp_domain domain) {
    if (KELP_UNLIKELY(take_status != NULL) && kelp_status_domain(take_status) == KELP_DOMAIN_NONE)
        kelp_status_set_domain(take_status, domain);
    return take_status;
}

/* Sets the domain of a failure of a function that mainly checks its arguments, and returns it:
 * KELP_DOMAIN_PARAMETER for a wrong argument, otherwise KELP_DOMAIN_ENGINE. */
KELP_MUST_USE static inline kelp_status *kelp_in_argument_domain(kelp_status *take_status) {
    if (KELP_LIKELY(take_status == NULL))
        return NULL;
    kelp_code code = kelp_status_code(take_status);
    bool wrong = code == KELP_INVALID_ARGUMENT || code == KELP_OUT_OF_RANGE;
    return kelp_in_domain(take_status, wrong ? KELP_DOMAIN_PARAMETER : KELP_DOMAIN_ENGINE);
}

#endif
