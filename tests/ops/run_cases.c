/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the operator cases of gen_cases.py in the engine and compares the results.
 *
 * usage: run_cases DIR [--isa 0|1|2|3] [--threads N] [--missing FILE] [--match TEXT]
 *        [--precision f32|bf16] [--allocations 0]
 * With --allocations 0, a case fails if the process allocates memory in an inference whose shapes
 * have run before; schedules are kept for all shapes of a loop. A case whose only output is
 * "!refused" must be rejected, with its text in the message. Cases that fail must be listed in FILE
 * (name, tab, reason). The last line is the summary.
 */
#include "cpu/kernels/cpu_features.h"
#include "support/case_file.h"
#include "support/compare.h"
#include "support/count_malloc.h"

#include <kelp/engine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_ROUNDS 4

static kelp_precision precision;
static bool counts_allocations;

static kelp_status *bind_and_invoke(const test_case *c, kelp_engine *engine,
                                    kelp_context *context) {
    for (uint32_t i = 0; i < c->input_count; i++) {
        size_t index = kelp_engine_find_input(engine, c->inputs[i].name);
        if (index != SIZE_MAX)
            KELP_TRY(kelp_context_set_input(context, index, &c->inputs[i].tensor));
    }
    return kelp_context_invoke(context);
}

/* Counts the allocations of repeated inferences, after buffers have reached their final size. */
static kelp_status *count_allocations(kelp_context *context, char *why, size_t room) {
    uint64_t before = 0;
    for (int round = 0; round < WARM_ROUNDS + 2; round++) {
        if (round == 2)
            before = test_allocations();
        KELP_TRY(kelp_context_invoke(context));
    }
    uint64_t made = test_allocations() - before;
    if (made > 0)
        snprintf(why, room, "%llu allocations in %d warm runs", (unsigned long long)made,
                 WARM_ROUNDS);
    return NULL;
}

/* Runs the model twice, so that the second run uses existing schedules and buffers. */
static kelp_status *run(kelp_runtime *runtime, const char *model, const test_case *c, char *why,
                        size_t room) {
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_status *status = kelp_graph_load_file(kelp_allocator_system(), model, NULL, &graph);
    if (status == NULL)
        status =
            kelp_engine_create(runtime, graph,
                               &(kelp_engine_options){.struct_size = sizeof(kelp_engine_options),
                                                      .max_plans = counts_allocations ? 256 : 0,
                                                      .precision = precision},
                               &engine);
    if (status == NULL)
        status = kelp_context_create(engine, &context);
    for (int round = 0; status == NULL && round < 2 && *why == '\0'; round++) {
        status = bind_and_invoke(c, engine, context);
        for (uint32_t i = 0; status == NULL && i < c->output_count; i++) {
            char text[1000];
            size_t index = kelp_engine_find_output(engine, c->outputs[i].name);
            if (index != SIZE_MAX &&
                !test_same(kelp_context_output(context, index), &c->outputs[i].tensor, c->rtol,
                           c->atol, text, sizeof text)) {
                snprintf(why, room, "output '%s' %s (round %d)", c->outputs[i].name, text, round);
                break;
            }
        }
    }
    if (status == NULL && *why == '\0' && counts_allocations)
        status = count_allocations(context, why, room);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    return status;
}

/* Returns why a case may fail, from the file with one case per line (name, tab, reason), or NULL.
 */
static const char *listed(const char *missing, const char *name) {
    size_t length = strlen(name);
    for (const char *at = missing; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == missing || at[-1] == '\n') && at[length] == '\t')
            return at + length + 1;
    }
    return NULL;
}

/* Clears `why` if the case was to be rejected and was, with the expected text. */
static void judge_rejection(const test_case *c, const kelp_status *status, char *why, size_t room) {
    if (c->output_count != 1 || strcmp(c->outputs[0].name, "!refused") != 0)
        return;
    const kelp_string *text = c->outputs[0].tensor.data;
    char found[2048];
    if (status == NULL) {
        snprintf(why, room, "was not rejected: expected '%.*s'", (int)text->length, text->data);
        return;
    }
    kelp_status_format(status, found, sizeof found);
    if (memmem(found, strlen(found), text->data, text->length) != NULL)
        *why = '\0';
    else
        snprintf(why, room, "was rejected: expected '%.*s', found '%.1500s'", (int)text->length,
                 text->data, found);
}

typedef struct totals {
    int passed, failed, missing, found;
} totals;

static void run_case(kelp_runtime *runtime, const char *directory, const char *name,
                     const char *missing, totals *sums) {
    char path[4096], why[2048] = "";
    test_case c;
    snprintf(path, sizeof path, "%s/%s.bin", directory, name);
    test_case_read(&c, path);
    snprintf(path, sizeof path, "%s/%s.onnx", directory, name);
    kelp_status *status = run(runtime, path, &c, why, sizeof why);
    if (status != NULL)
        kelp_status_format(status, why, sizeof why);
    judge_rejection(&c, status, why, sizeof why);
    const char *reason = listed(missing, name);
    bool by_luck = reason != NULL && strncmp(reason, "drawn:", 6) == 0;
    if (*why == '\0') {
        sums->passed++;
        sums->found += reason != NULL && !by_luck;
        if (reason != NULL && !by_luck)
            printf("LISTED as missing, but passes: %s\n", name);
    } else if (reason != NULL) {
        sums->missing++;
    } else {
        sums->failed++;
        printf("FAILED %s: %s\n", name, why);
    }
    kelp_status_free(status);
    test_case_free(&c);
}

static char *read_text(const char *path) {
    kelp_mapping mapping = {0};
    kelp_status *status = path ? kelp_fs_map(path, &mapping) : NULL;
    if (status != NULL) {
        fprintf(stderr, "%s\n", kelp_status_message(status));
        exit(2);
    }
    char *text = calloc(1, mapping.size_bytes + 1);
    if (text == NULL)
        exit(2);
    if (mapping.size_bytes > 0)
        memcpy(text, mapping.data, mapping.size_bytes);
    kelp_fs_unmap(&mapping);
    return text;
}

int main(int argc, char **argv) {
    const char *directory = argc > 1 ? argv[1] : ".", *match = "", *missing_file = NULL;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--isa") == 0)
            kelp_cpu_isa_limit((kelp_cpu_isa)atoi(argv[i + 1]));
        else if (strcmp(argv[i], "--threads") == 0)
            options.threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--precision") == 0 &&
                 !kelp_precision_parse(argv[i + 1], &precision))
            return 2;
        else if (strcmp(argv[i], "--allocations") == 0)
            counts_allocations = true;
        else if (strcmp(argv[i], "--match") == 0)
            match = argv[i + 1];
        else if (strcmp(argv[i], "--missing") == 0)
            missing_file = argv[i + 1];
    }
    kelp_runtime *runtime = NULL;
    char path[4096], name[512];
    kelp_status *status = kelp_runtime_create(&options, &runtime);
    snprintf(path, sizeof path, "%s/cases.txt", directory);
    FILE *list = fopen(path, "r");
    if (status != NULL || list == NULL) {
        fprintf(stderr, "cannot begin: %s\n", status ? kelp_status_message(status) : path);
        return 2;
    }
    char *missing = read_text(missing_file);
    totals sums = {0};
    while (fgets(name, sizeof name, list) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        if (strstr(name, match) != NULL)
            run_case(runtime, directory, name, missing, &sums);
    }
    fclose(list);
    free(missing);
    kelp_runtime_release(runtime);
    printf("%d passed, %d failed, %d known to be missing\n", sums.passed, sums.failed,
           sums.missing);
    if (sums.found > 0)
        printf("take %d cases off %s\n", sums.found, missing_file);
    return sums.failed + sums.found == 0 && sums.passed > 0 ? 0 : 1;
}
