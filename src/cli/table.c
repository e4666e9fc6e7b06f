/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of text with aligned columns. */
#include "cli/cli.h"

#include "base/assert.h"
#include "base/checked.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define USUAL_WIDTH 100
#define MIN_COLUMN 8

void kelp_table_init(kelp_table *table, size_t columns) {
    KELP_ASSERT(columns >= 1 && columns <= KELP_TABLE_COLUMNS);
    *table = (kelp_table){.columns = columns};
    kelp_buf_init(&table->text, kelp_allocator_system());
}

void kelp_table_cell(kelp_table *table, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *at = length < 0 ? NULL : kelp_buf_reserve(&table->text, (size_t)length + 1);
    if (at != NULL) {
        (void)vsnprintf(at, (size_t)length + 1, format, again);
        for (char *line = at; (line = strpbrk(line, "\r\n")) != NULL;)
            *line = ' '; /* keep a row on one line */
        table->text.length += (size_t)length + 1;
        table->cells++;
    }
    va_end(again);
    va_end(args);
}

size_t kelp_cli_columns(const char *text, size_t length) {
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

static size_t text_width(const char *text) {
    return kelp_cli_columns(text, strlen(text));
}

static void measure(const kelp_table *table, size_t widths[KELP_TABLE_COLUMNS]) {
    KELP_ASSERT(table->text.failed || table->cells % table->columns == 0);
    const char *cell = table->text.data;
    for (size_t i = 0; i < table->cells; i++, cell += strlen(cell) + 1) {
        size_t width = text_width(cell);
        widths[i % table->columns] = KELP_MAX(widths[i % table->columns], width);
    }
}

/* Appends a cell of `width` columns; "…" is the end of a longer one. */
static void pad(kelp_buf *out, const char *cell, size_t width) {
    size_t columns = text_width(cell);
    if (columns <= width) {
        kelp_buf_append_cstr(out, cell);
        for (; columns < width; columns++)
            kelp_buf_append_char(out, ' ');
        return;
    }
    size_t length = 0;
    for (columns = 0; columns < width; length++)
        columns += ((unsigned char)cell[length] & 0xc0) != 0x80;
    kelp_buf_append(out, cell, length - 1); /* all but the first byte of the last column */
    kelp_buf_append_cstr(out, "…");
}

/* Returns the width of the terminal; that of usual ones if standard output is none. */
static size_t terminal_width(void) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    uint64_t width;
    if (columns != NULL && kelp_parse_u64(kelp_str_from(columns), &width) && width > 0)
        return (size_t)KELP_MIN(width, (uint64_t)UINT16_MAX);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return USUAL_WIDTH;
}

/* Shrinks the widest columns until a framed table fits in `width`. */
static void shrink(const kelp_table *table, size_t widths[KELP_TABLE_COLUMNS], size_t width) {
    for (;;) {
        size_t total = 1, widest = 0;
        for (size_t i = 0; i < table->columns; i++) {
            total += widths[i] + 3;
            widest = widths[i] > widths[widest] ? i : widest;
        }
        if (total <= width || widths[widest] <= MIN_COLUMN)
            return;
        widths[widest]--;
    }
}

void kelp_table_plain(kelp_table *table, const char *indent, kelp_buf *out) {
    size_t widths[KELP_TABLE_COLUMNS] = {0};
    measure(table, widths);
    const char *cell = table->text.data;
    for (size_t i = 0; i < table->cells; i++, cell += strlen(cell) + 1) {
        size_t column = i % table->columns;
        bool last = column + 1 == table->columns;
        kelp_buf_append_cstr(out, column ? "  " : indent);
        if (last)
            kelp_buf_append_cstr(out, cell);
        else
            pad(out, cell, widths[column]);
        if (last)
            kelp_buf_append_char(out, '\n');
    }
    kelp_buf_deinit(&table->text);
    table->cells = 0;
}

static void rule(const kelp_table *table, const size_t *widths, kelp_buf *out) {
    for (size_t column = 0; column < table->columns; column++) {
        kelp_buf_append_char(out, '+');
        for (size_t i = 0; i < widths[column] + 2; i++)
            kelp_buf_append_char(out, '-');
    }
    kelp_buf_append_cstr(out, "+\n");
}

void kelp_table_framed(kelp_table *table, kelp_buf *out) {
    size_t widths[KELP_TABLE_COLUMNS] = {0};
    measure(table, widths);
    shrink(table, widths, terminal_width());
    rule(table, widths, out);
    const char *cell = table->text.data;
    for (size_t i = 0; i < table->cells; i++, cell += strlen(cell) + 1) {
        size_t column = i % table->columns;
        kelp_buf_append_cstr(out, "| ");
        pad(out, cell, widths[column]);
        kelp_buf_append_char(out, ' ');
        if (column + 1 < table->columns)
            continue;
        kelp_buf_append_cstr(out, "|\n");
        if (i + 1 == table->columns)
            rule(table, widths, out);
    }
    rule(table, widths, out);
    kelp_buf_deinit(&table->text);
    table->cells = 0;
}
