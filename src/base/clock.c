/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the clocks. The calls cannot fail: both clocks exist on every supported system. */
#include "base/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t clock) {
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t kelp_now_ns(void) {
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t kelp_wall_now_ns(void) {
    return read_ns(CLOCK_REALTIME);
}

uint64_t kelp_wall_about_ns(void) {
#ifdef CLOCK_REALTIME_COARSE
    return read_ns(CLOCK_REALTIME_COARSE);
#else
    return read_ns(CLOCK_REALTIME);
#endif
}
