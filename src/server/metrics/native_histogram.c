/* SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"
#include "server/metrics/exposition.h"
#include "server/metrics/metrics.h"

#include <inttypes.h>
#include <math.h>

#define STEPS (1 << KELP_NATIVE_SCHEMA)

/* Returns the index of the bucket of a duration. */
static int index_of(double duration_ms) {
    /* 2^(k/8 - 1) */
    static const double bounds[STEPS] = {0.5,
                                         0.5452538663326288,
                                         0.5946035575013605,
                                         0.6484197773255048,
                                         0.7071067811865475,
                                         0.7711054127039704,
                                         0.8408964152537144,
                                         0.9170040432046711};
    int exponent = 0, step = 0;
    double fraction = frexp(duration_ms, &exponent);
    while (step < STEPS && fraction > bounds[step])
        step++;
    return (exponent - 1) * STEPS + step;
}

void kelp_native_histogram_add(kelp_native_histogram *histogram, uint64_t duration_ns) {
    double duration_ms = (double)duration_ns / 1e6;
    int bucket = duration_ns > 0 ? index_of(duration_ms) - KELP_NATIVE_FIRST : -1;
    _Atomic uint64_t *counter = &histogram->zero_count;
    if (bucket >= 0)
        counter = &histogram->buckets[KELP_MIN(bucket, KELP_NATIVE_BUCKETS - 1)];
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_ns, duration_ns, memory_order_relaxed);
}

void kelp_native_histogram_write(const kelp_native_histogram *histogram, kelp_buf *out) {
    kelp_buf_append_cstr(out, "# NATIVE ");
    kelp_metrics_write_number(out, (double)atomic_load(&histogram->sum_ns) / 1e6);
    kelp_buf_printf(out, " %" PRIu64, atomic_load(&histogram->zero_count));
    for (int i = 0; i < KELP_NATIVE_BUCKETS; i++) {
        uint64_t count = atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
        if (count > 0)
            kelp_buf_printf(out, " %d:%" PRIu64, i + KELP_NATIVE_FIRST, count);
    }
    kelp_buf_append_char(out, '\n');
}
