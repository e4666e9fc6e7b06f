/* SPDX-License-Identifier: Apache-2.0 */
/* Plots of latencies and throughput: bars for a terminal, and a drawing in SVG. */
#include "cli/bench/bench.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "cli/cli.h"

#include <stdio.h>

#define BAR_COLUMNS 50u

/* The rows of the bars: percentiles. */
static const struct {
    const char *name;
    unsigned percent;
} bars[] = {{"min", 0}, {"25 %", 25}, {"median", 50}, {"75 %", 75}, {"90 %", 90}, {"99 %", 99}};

/* Returns the largest 99th percentile, at least 1: the end of the scale. */
static uint64_t scale_ns(const kelp_bench_report *report) {
    uint64_t largest_ns = 1;
    for (size_t i = 0; i < report->count; i++)
        largest_ns = KELP_MAX(largest_ns, report->rows[i].load.quantiles_ns[99]);
    return largest_ns;
}

static double row_per_second(const kelp_bench_row *row) {
    return kelp_bench_per_second(row->load.runs, row->load.elapsed_ns);
}

void kelp_bench_put_plot(const kelp_bench_report *report, kelp_buf *out) {
    uint64_t end_ns = scale_ns(report);
    for (size_t i = 0; i < report->count; i++) {
        const kelp_bench_row *row = &report->rows[i];
        char label[64], text[32];
        kelp_bench_label(report, i, label, sizeof label);
        kelp_buf_printf(out, "\n%s: %.1f per second\n", label, row_per_second(row));
        for (size_t b = 0; b < KELP_COUNT(bars); b++) {
            uint64_t value_ns = row->load.quantiles_ns[bars[b].percent];
            size_t filled = (size_t)((double)value_ns / (double)end_ns * BAR_COLUMNS + 0.5);
            kelp_buf_printf(out, "  %-7s %9s ", bars[b].name, kelp_cli_duration(value_ns, text));
            for (size_t c = 0; c < filled; c++)
                kelp_buf_append_cstr(out, "█");
            kelp_buf_append_char(out, '\n');
        }
    }
}

/* ---- SVG ----
 *
 * Two panels: the share of inferences that end within a latency, a line for each row, and the
 * throughput, a bar for each row. */
enum {
    WIDTH = 900,
    LEFT = 60,
    TOP = 50,
    PANEL_WIDTH = 800,
    PANEL_HEIGHT = 260,
    BAR_HEIGHT = 18,
    ROW_HEIGHT = 26,
    LABEL_WIDTH = 210,
    TICKS = 5,
    BAR_SPACE = 480
};
static const char *const colors[] = {"#1f6feb", "#d1242f", "#1a7f37", "#9a6700",
                                     "#8250df", "#0a7ea4", "#bc4c00", "#57606a"};

static const char *color(size_t row) {
    return colors[row % KELP_COUNT(colors)];
}

static void put_escaped(kelp_buf *out, const char *text) {
    for (; *text; text++) {
        if (*text == '<' || *text == '&' || *text == '>')
            kelp_buf_printf(out, "&#%d;", *text);
        else
            kelp_buf_append_char(out, *text);
    }
}

static void put_axes(uint64_t end_ns, kelp_buf *out) {
    for (int i = 0; i <= TICKS; i++) {
        char text[32];
        int x = LEFT + PANEL_WIDTH * i / TICKS, y = TOP + PANEL_HEIGHT * i / TICKS;
        kelp_buf_printf(out,
                        "<path class='grid' d='M%d %dV%d'/><text x='%d' y='%d' "
                        "text-anchor='middle'>%s</text>\n",
                        x, TOP, TOP + PANEL_HEIGHT, x, TOP + PANEL_HEIGHT + BAR_HEIGHT,
                        kelp_cli_duration(end_ns * (uint64_t)i / TICKS, text));
        kelp_buf_printf(out,
                        "<path class='grid' d='M%d %dH%d'/><text x='%d' y='%d' "
                        "text-anchor='end'>%d %%</text>\n",
                        LEFT, y, LEFT + PANEL_WIDTH, LEFT - 6, y + 4, 100 - 100 * i / TICKS);
    }
}

static void put_line(const kelp_bench_row *row, size_t index, uint64_t end_ns, kelp_buf *out) {
    kelp_buf_printf(out, "<polyline stroke='%s' points='", color(index));
    for (int p = 0; p < KELP_BENCH_LOAD_POINTS; p++) {
        double share = (double)row->load.quantiles_ns[p] / (double)end_ns;
        if (share > 1)
            break; /* the maximum may be far outside */
        kelp_buf_printf(out, "%.1f,%.1f ", LEFT + share * PANEL_WIDTH,
                        TOP + PANEL_HEIGHT * (1 - p / (double)(KELP_BENCH_LOAD_POINTS - 1)));
    }
    kelp_buf_append_cstr(out, "'/>\n");
}

static void put_bar(const kelp_bench_report *report, size_t index, double most, int top,
                    kelp_buf *out) {
    char label[64];
    double value = row_per_second(&report->rows[index]);
    int y = top + (int)index * ROW_HEIGHT, width = most > 0 ? (int)(value / most * BAR_SPACE) : 0;
    kelp_bench_label(report, index, label, sizeof label);
    kelp_buf_printf(out,
                    "<text x='%d' y='%d'>%s</text><rect x='%d' y='%d' width='%d' height='%d' "
                    "fill='%s'/><text x='%d' y='%d'>%.1f</text>\n",
                    LEFT, y + 14, label, LEFT + LABEL_WIDTH, y, width, BAR_HEIGHT, color(index),
                    LEFT + LABEL_WIDTH + width + 6, y + 14, value);
}

void kelp_bench_put_svg(const kelp_bench_report *report, kelp_buf *out) {
    uint64_t end_ns = scale_ns(report);
    int below = TOP + PANEL_HEIGHT + 60, height = below + 20 + (int)report->count * ROW_HEIGHT;
    double most = 0;
    KELP_ASSERT(report->count > 0);
    for (size_t i = 0; i < report->count; i++)
        most = KELP_MAX(most, row_per_second(&report->rows[i]));
    kelp_buf_printf(out,
                    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' "
                    "font-family='sans-serif' font-size='12'>\n"
                    "<style>.grid{stroke:#d0d7de;fill:none}polyline{fill:none;stroke-width:2}"
                    ".title{font-weight:bold;font-size:14px}</style>\n"
                    "<rect width='100%%' height='100%%' fill='#fff'/>\n"
                    "<text class='title' x='%d' y='24'>",
                    WIDTH, height, LEFT);
    put_escaped(out, report->options->positionals.items[0]);
    kelp_buf_printf(out,
                    "</text>\n<text x='%d' y='42'>share of inferences that end within a latency"
                    "</text>\n",
                    LEFT);
    put_axes(end_ns, out);
    for (size_t i = 0; i < report->count; i++)
        put_line(&report->rows[i], i, end_ns, out);
    kelp_buf_printf(out, "<text x='%d' y='%d'>inferences per second</text>\n", LEFT, below - 10);
    for (size_t i = 0; i < report->count; i++)
        put_bar(report, i, most, below, out);
    kelp_buf_append_cstr(out, "</svg>\n");
}
