/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kelp top. */
#ifndef KELP_CLI_TOP_VIEW_H_
#define KELP_CLI_TOP_VIEW_H_

#include "base/buf.h"
#include "cli/top/sample.h"

typedef enum kelp_top_order {
    KELP_TOP_BY_NAME,
    KELP_TOP_BY_REQUESTS,
    KELP_TOP_BY_LATENCY,
    KELP_TOP_BY_PENDING,
    KELP_TOP_ORDERS
} kelp_top_order;

typedef struct kelp_top_view {
    const char *url;
    const kelp_top_sample *before, *now; /* rates are between them */
    kelp_top_order order;
    size_t first; /* rows that are scrolled off */
    bool paused;
    const char *error;  /* of the last attempt to read a sample, or NULL */
    size_t rows, width; /* of the terminal; 0: unlimited */
} kelp_top_view;

/* Returns the name of an order. */
const char *kelp_top_order_name(kelp_top_order order);
/* Appends the lines of the view, each with '\n'. Lines are cut to the width. */
kelp_status *kelp_top_put_view(const kelp_top_view *view, kelp_buf *out) KELP_MUST_USE;

#endif
