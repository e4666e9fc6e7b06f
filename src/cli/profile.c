/* SPDX-License-Identifier: Apache-2.0 */
/* Measures each node through the profiler of a context. */
#include "cli/profile.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static kelp_status *add_step(kelp_profile *p, const char *op_type, const char *name,
                             const char *algorithm) {
    const char *const texts[] = {op_type, name, algorithm};
    char *copies[KELP_COUNT(texts)] = {NULL};
    for (size_t i = 0; i < KELP_COUNT(texts); i++) {
        if (texts[i] != NULL)
            copies[i] = kelp_arena_strndup(&p->strings, texts[i], strlen(texts[i]));
        if (texts[i] != NULL && copies[i] == NULL)
            return kelp_status_oom();
    }
    KELP_TRY(kelp_grow(p->strings.allocator, (void **)&p->steps, &p->capacity, p->count + 1,
                       sizeof *p->steps));
    p->steps[p->count++] =
        (kelp_profile_step){.op_type = copies[0], .name = copies[1], .algorithm = copies[2]};
    return NULL;
}

/* Steps come in the same order in each run. */
static void note_step(void *userp, size_t step, const char *op_type, const char *name,
                      const char *algorithm, uint64_t duration_ns) {
    kelp_profile *p = userp;
    uint64_t now_ns = kelp_now_ns();
    if (p->failed == NULL && step == p->count)
        p->failed = add_step(p, op_type, name, algorithm);
    if (step < p->count) {
        p->steps[step].total_ns += duration_ns;
        p->steps[step].end_ns = now_ns;
        p->steps[step].last_ns = duration_ns;
    }
    p->total_ns += duration_ns;
}

kelp_status *kelp_profile_run(kelp_profile *out, kelp_context *context, uint64_t runs) {
    *out = (kelp_profile){.runs = runs};
    kelp_arena_init(&out->strings, kelp_allocator_system(), 0);
    KELP_TRY(kelp_context_set_profiler(context, note_step, out));
    kelp_status *status = NULL;
    for (uint64_t i = 0; i < runs && status == NULL; i++) {
        out->begin_ns = kelp_now_ns();
        status = kelp_context_invoke(context);
        out->end_ns = kelp_now_ns();
    }
    kelp_status_free(kelp_context_set_profiler(context, NULL, NULL)); /* succeeded above */
    if (status == NULL) {
        status = out->failed;
        out->failed = NULL;
    }
    return status;
}

void kelp_profile_deinit(kelp_profile *profile) {
    kelp_free(profile->strings.allocator, profile->steps,
              profile->capacity * sizeof *profile->steps);
    if (profile->runs > 0)
        kelp_arena_deinit(&profile->strings);
    kelp_status_free(profile->failed);
    *profile = (kelp_profile){0};
}

/* ---- tables ---- */
static double percent(const kelp_profile *p, uint64_t duration_ns) {
    return p->total_ns > 0 ? 100.0 * (double)duration_ns / (double)p->total_ns : 0.0;
}

static void put_heads(kelp_table *table, const char *const *heads, size_t count) {
    kelp_table_init(table, count);
    for (size_t i = 0; i < count; i++)
        kelp_table_cell(table, "%s", heads[i]);
}

kelp_status *kelp_profile_put_nodes(const kelp_profile *profile, kelp_buf *out) {
    static const char *const heads[] = {"operator", "algorithm", "mean", "share", "node"};
    KELP_ASSERT(profile->runs > 0);
    kelp_table table;
    put_heads(&table, heads, KELP_COUNT(heads));
    for (size_t i = 0; i < profile->count; i++) {
        const kelp_profile_step *step = &profile->steps[i];
        char text[32];
        kelp_table_cell(&table, "%s", step->op_type);
        kelp_table_cell(&table, "%s", step->algorithm != NULL ? step->algorithm : "-");
        kelp_table_cell(&table, "%s", kelp_cli_duration(step->total_ns / profile->runs, text));
        kelp_table_cell(&table, "%.1f %%", percent(profile, step->total_ns));
        kelp_table_cell(&table, "%s", step->name);
    }
    kelp_table_plain(&table, "", out);
    return kelp_buf_status(out);
}

/* The sum of the steps of an operator. */
typedef struct operator_row {
    const char *op_type;
    size_t calls;
    uint64_t total_ns;
} operator_row;

static int slower_first(const void *a, const void *b) {
    uint64_t x = ((const operator_row *)a)->total_ns, y = ((const operator_row *)b)->total_ns;
    return (x < y) - (x > y);
}

static size_t sum_operators(const kelp_profile *profile, operator_row *rows) {
    size_t count = 0;
    for (size_t i = 0; i < profile->count; i++) {
        const kelp_profile_step *step = &profile->steps[i];
        size_t at = 0;
        while (at < count && strcmp(rows[at].op_type, step->op_type) != 0)
            at++;
        if (at == count)
            rows[count++] = (operator_row){.op_type = step->op_type};
        rows[at].calls++;
        rows[at].total_ns += step->total_ns;
    }
    if (count > 0)
        qsort(rows, count, sizeof *rows, slower_first);
    return count;
}

kelp_status *kelp_profile_put_operators(const kelp_profile *profile, kelp_buf *out) {
    static const char *const heads[] = {"operator", "calls", "time", "share"};
    KELP_ASSERT(profile->runs > 0);
    operator_row *rows = NULL;
    size_t bytes = profile->count * sizeof *rows;
    KELP_TRY(kelp_alloc(kelp_allocator_system(), bytes, (void **)&rows));
    size_t count = sum_operators(profile, rows);
    kelp_table table;
    put_heads(&table, heads, KELP_COUNT(heads));
    for (size_t i = 0; i < count; i++) {
        char text[32];
        kelp_table_cell(&table, "%s", rows[i].op_type);
        kelp_table_cell(&table, "%zu", rows[i].calls);
        kelp_table_cell(&table, "%s", kelp_cli_duration(rows[i].total_ns / profile->runs, text));
        kelp_table_cell(&table, "%.1f %%", percent(profile, rows[i].total_ns));
    }
    kelp_table_plain(&table, "", out);
    kelp_free(kelp_allocator_system(), rows, bytes);
    return kelp_buf_status(out);
}

/* ---- JSON ---- */
static void put_text(kelp_json_writer *writer, const char *key, const char *value) {
    kelp_json_key(writer, key);
    kelp_json_put_cstr(writer, value);
}

void kelp_profile_put_json(const kelp_profile *profile, kelp_json_writer *writer) {
    KELP_ASSERT(profile->runs > 0);
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < profile->count; i++) {
        const kelp_profile_step *step = &profile->steps[i];
        kelp_json_begin_object(writer);
        put_text(writer, "operator", step->op_type);
        put_text(writer, "node", step->name);
        if (step->algorithm != NULL)
            put_text(writer, "algorithm", step->algorithm);
        kelp_json_key(writer, "mean_ns");
        kelp_json_put_u64(writer, step->total_ns / profile->runs);
        kelp_json_end_object(writer);
    }
    kelp_json_end_array(writer);
}

/* Opens an event of a duration; the caller adds members of "args" and calls end_event. Times are
 * in microseconds, relative to the begin of the run. */
static void begin_event(kelp_json_writer *writer, const char *category, const char *name,
                        uint64_t begin_ns, uint64_t duration_ns) {
    kelp_json_begin_object(writer);
    put_text(writer, "cat", category);
    put_text(writer, "name", name);
    put_text(writer, "ph", "X");
    kelp_json_key(writer, "pid");
    kelp_json_put_i64(writer, getpid());
    kelp_json_key(writer, "tid");
    kelp_json_put_i64(writer, getpid());
    kelp_json_key(writer, "ts");
    kelp_json_put_f64(writer, (double)begin_ns / 1e3);
    kelp_json_key(writer, "dur");
    kelp_json_put_f64(writer, (double)duration_ns / 1e3);
    kelp_json_key(writer, "args");
    kelp_json_begin_object(writer);
}

static void end_event(kelp_json_writer *writer) {
    kelp_json_end_object(writer);
    kelp_json_end_object(writer);
    kelp_buf_append_char(writer->out, '\n');
}

static kelp_status *put_trace(const kelp_profile *profile, kelp_buf *out) {
    kelp_buf name;
    kelp_json_writer writer;
    kelp_buf_init(&name, kelp_allocator_system());
    kelp_json_writer_init(&writer, out);
    kelp_json_begin_array(&writer);
    begin_event(&writer, "Session", "model_run", 0, profile->end_ns - profile->begin_ns);
    end_event(&writer);
    for (size_t i = 0; i < profile->count && !name.failed; i++) {
        const kelp_profile_step *step = &profile->steps[i];
        char index[32];
        kelp_buf_clear(&name);
        kelp_buf_printf(&name, "%s_kernel_time", *step->name ? step->name : step->op_type);
        const char *text = kelp_buf_cstr(&name);
        uint64_t begin_ns = step->end_ns - KELP_MIN(step->last_ns, step->end_ns);
        begin_event(&writer, "Node", text != NULL ? text : "",
                    begin_ns - KELP_MIN(profile->begin_ns, begin_ns), step->last_ns);
        put_text(&writer, "op_name", step->op_type);
        snprintf(index, sizeof index, "%zu", i);
        put_text(&writer, "node_index", index);
        if (step->algorithm != NULL)
            put_text(&writer, "algorithm", step->algorithm);
        end_event(&writer);
    }
    kelp_json_end_array(&writer);
    kelp_buf_append_char(out, '\n');
    kelp_status *status = kelp_buf_status(&name);
    kelp_buf_deinit(&name);
    return status != NULL ? status : kelp_buf_status(out);
}

kelp_status *kelp_profile_save_trace(const kelp_profile *profile, const char *path) {
    KELP_ASSERT(profile->runs > 0);
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = put_trace(profile, &text);
    if (status == NULL)
        status = kelp_fs_write(path, text.data, text.length);
    kelp_buf_deinit(&text);
    return status != NULL ? KELP_ANNOTATE(status, "cannot write the trace") : NULL;
}
