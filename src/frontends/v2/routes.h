/* SPDX-License-Identifier: Apache-2.0 */
/* The table of paths and their handlers. */
#ifndef KELP_FRONTENDS_V2_ROUTES_H_
#define KELP_FRONTENDS_V2_ROUTES_H_

#include "frontends/common/access.h"

struct kelp_v2_exchange;

/* A route. In a pattern, '*' matches one segment, the name of a model or a region, and '#' matches
 * the digits of a version. Routes with the same pattern follow each other. */
typedef struct kelp_v2_row {
    const char *method;
    const char *pattern;
    void (*handler)(struct kelp_v2_exchange *exchange);
    uint32_t service; /* that the endpoint must have */
    kelp_access_category category;
} kelp_v2_row;

extern const kelp_v2_row kelp_v2_rows[];
extern const size_t kelp_v2_row_count;

#endif
