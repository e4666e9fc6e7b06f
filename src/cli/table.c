/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of text with aligned columns. */
#include "cli/cli.h"

#include "base/assert.h"
#include "base/checked.h"

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

static void pad(kelp_buf *out, const char *cell, size_t width) {
    kelp_buf_append_cstr(out, cell);
    for (size_t at = text_width(cell); at < width; at++)
        kelp_buf_append_char(out, ' ');
}

void kelp_table_plain(kelp_table *table, const char *indent, kelp_buf *out) {
    size_t widths[KELP_TABLE_COLUMNS] = {0};
    measure(table, widths);
    const char *cell = table->text.data;
    for (size_t i = 0; i < table->cells; i++, cell += strlen(cell) + 1) {
        size_t column = i % table->columns;
        bool last = column + 1 == table->columns;
        kelp_buf_append_cstr(out, column ? "  " : indent);
        pad(out, cell, last ? 0 : widths[column]);
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
