/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/progress.h"

#include "base/checked.h"
#include "base/clock.h"
#include "cli/cli.h"

#define BAR_CELLS 30
#define NAME_COLUMNS 32
#define STEP_NS UINT64_C(100000000)
#define SECOND_NS UINT64_C(1000000000)

void kelp_progress_begin(kelp_progress *progress, const char *name, uint64_t offset_bytes) {
    progress->name = name;
    progress->began_bytes = offset_bytes;
    progress->began_ns = kelp_now_ns();
    progress->shown_ns = 0;
}

void kelp_progress_show(kelp_progress *progress, uint64_t done_bytes, uint64_t total_bytes) {
    static const char full[BAR_CELLS + 1] = "##############################";
    char done[32], total[32], rate[32];
    uint64_t now_ns = kelp_now_ns();
    if (!progress->enabled || now_ns < progress->shown_ns + STEP_NS)
        return;
    progress->shown_ns = now_ns;
    double seconds = (double)(now_ns - progress->began_ns) / (double)SECOND_NS;
    uint64_t fresh = done_bytes - KELP_MIN(done_bytes, progress->began_bytes);
    uint64_t per_second = seconds > 0 ? (uint64_t)((double)fresh / seconds) : 0;
    kelp_cli_bytes(done_bytes, done);
    kelp_cli_bytes(per_second, rate);
    if (total_bytes == 0) {
        fprintf(stderr, "\r%-*.*s  %s  %s/s\033[K", NAME_COLUMNS, NAME_COLUMNS, progress->name,
                done, rate);
    } else {
        uint64_t left = total_bytes - KELP_MIN(done_bytes, total_bytes);
        int cells = (int)(BAR_CELLS - left * BAR_CELLS / total_bytes);
        fprintf(stderr, "\r%-*.*s  [%-*.*s] %3d %%  %s of %s  %s/s  %llu s\033[K", NAME_COLUMNS,
                NAME_COLUMNS, progress->name, BAR_CELLS, cells, full,
                (int)(100 - left * 100 / total_bytes), done, kelp_cli_bytes(total_bytes, total),
                rate, (unsigned long long)(per_second > 0 ? left / per_second : 0));
    }
    progress->visible = true;
}

void kelp_progress_end(kelp_progress *progress) {
    if (progress->visible)
        fprintf(stderr, "\r\033[K");
    progress->visible = false;
}
