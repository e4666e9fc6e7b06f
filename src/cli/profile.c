/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each node of a model, over some runs. */
#include "cli/profile.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "cli/cli.h"

#include <string.h>

static kelp_status *add_step(kelp_cli_profile *p, const char *op_type, const char *name,
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
        (kelp_cli_step){.op_type = copies[0], .name = copies[1], .algorithm = copies[2]};
    return NULL;
}

/* Steps come in the same order in each run. */
static void note_step(void *userp, size_t step, const char *op_type, const char *name,
                      const char *algorithm, uint64_t duration_ns) {
    kelp_cli_profile *p = userp;
    if (p->failed == NULL && step == p->count)
        p->failed = add_step(p, op_type, name, algorithm);
    if (step < p->count)
        p->steps[step].duration_ns += duration_ns;
    p->total_ns += duration_ns;
}

kelp_status *kelp_cli_profile_init(kelp_cli_profile *profile, kelp_context *context,
                                   uint64_t runs) {
    *profile = (kelp_cli_profile){.runs = runs};
    kelp_arena_init(&profile->strings, kelp_allocator_system(), 0);
    KELP_TRY(kelp_context_set_profiler(context, note_step, profile));
    kelp_status *status = NULL;
    for (uint64_t i = 0; i < runs && status == NULL; i++)
        status = kelp_context_invoke(context);
    kelp_status_free(kelp_context_set_profiler(context, NULL, NULL)); /* succeeded above */
    return status;
}

void kelp_cli_profile_deinit(kelp_cli_profile *profile) {
    kelp_free(profile->strings.allocator, profile->steps,
              profile->capacity * sizeof *profile->steps);
    kelp_arena_deinit(&profile->strings);
    kelp_status_free(profile->failed);
}

void kelp_cli_profile_put_text(const kelp_cli_profile *p, kelp_buf *out) {
    static const char *const heads[] = {"operator", "algorithm", "mean", "share", "node"};
    kelp_table table;
    kelp_table_init(&table, KELP_COUNT(heads));
    for (size_t i = 0; i < KELP_COUNT(heads); i++)
        kelp_table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < p->count; i++) {
        const kelp_cli_step *step = &p->steps[i];
        char text[32];
        kelp_table_cell(&table, "%s", step->op_type);
        kelp_table_cell(&table, "%s", step->algorithm != NULL ? step->algorithm : "-");
        kelp_table_cell(&table, "%s", kelp_cli_duration(step->duration_ns / p->runs, text));
        kelp_table_cell(&table, "%.1f %%",
                        p->total_ns ? 100.0 * (double)step->duration_ns / (double)p->total_ns
                                    : 0.0);
        kelp_table_cell(&table, "%s", step->name);
    }
    kelp_table_plain(&table, "", out);
}

void kelp_cli_profile_put_json(const kelp_cli_profile *p, kelp_json_writer *writer) {
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < p->count; i++) {
        const kelp_cli_step *step = &p->steps[i];
        kelp_json_begin_object(writer);
        kelp_json_key(writer, "operator");
        kelp_json_put_cstr(writer, step->op_type);
        kelp_json_key(writer, "node");
        kelp_json_put_cstr(writer, step->name);
        if (step->algorithm != NULL) {
            kelp_json_key(writer, "algorithm");
            kelp_json_put_cstr(writer, step->algorithm);
        }
        kelp_json_key(writer, "mean_ns");
        kelp_json_put_u64(writer, step->duration_ns / p->runs);
        kelp_json_end_object(writer);
    }
    kelp_json_end_array(writer);
}
