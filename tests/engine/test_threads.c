/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of threads: none while idle, none for small work, and little when two sessions run
 * concurrently. Measured as CPU time and context switches, not as elapsed time. */
#include <kelp/builder.h>

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/check_status.h"

#define ROUNDS 20
#define PAUSE_NS 10000000
#define SPIN_NS 50000 /* limit for a thread that polls for work */

typedef struct session {
    kelp_runtime *runtime;
    kelp_engine *engine;
    kelp_context *context;
    float *x;
} session;

static void free_plan(void *plan) {
    kelp_blob_release(plan);
}

static kelp_shape square(int64_t n) {
    return (kelp_shape){.rank = 2, .d = {n, n}};
}

/* x [n,n] times itself; for n = 1, one addition. */
static void open_session(session *s, int threads, int64_t n) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = threads};
    kelp_builder *builder = NULL;
    kelp_network *network = NULL;
    kelp_builder_config *config = NULL;
    kelp_net_tensor *x = NULL;
    kelp_layer *layer = NULL;
    kelp_blob *plan = NULL;
    kelp_tensor tensor;
    check_ok(kelp_runtime_create(&options, &s->runtime));
    check_ok(kelp_builder_create(s->runtime, "cpu", &builder));
    check_ok(kelp_builder_create_network(builder, &network));
    check_ok(kelp_network_add_input(network, "x", KELP_F32, square(n), &x));
    if (n == 1)
        check_ok(kelp_network_add_elementwise(network, x, x, KELP_ELEMENTWISE_SUM, &layer));
    else
        check_ok(kelp_network_add_matrix_multiply(network, x, KELP_MATRIX_NONE, x, KELP_MATRIX_NONE,
                                                  &layer));
    check_ok(kelp_network_mark_output(network, kelp_layer_output(layer, 0)));
    check_ok(kelp_builder_create_config(builder, &config));
    check_ok(kelp_builder_build(builder, network, config, &plan));
    check_ok(kelp_engine_load(s->runtime, kelp_blob_data(plan), kelp_blob_size(plan), "product",
                              free_plan, plan, &s->engine));
    check_ok(kelp_context_create(s->engine, &s->context));
    s->x = calloc((size_t)(n * n), sizeof *s->x);
    assert_non_null(s->x);
    const int64_t shape[2] = {n, n};
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, shape, s->x));
    check_ok(kelp_context_set_input(s->context, 0, &tensor));
    kelp_builder_config_release(config);
    kelp_network_release(network);
    kelp_builder_release(builder);
}

static void close_session(session *s) {
    kelp_context_destroy(s->context);
    kelp_engine_release(s->engine);
    kelp_runtime_release(s->runtime);
    free(s->x);
}

static uint64_t cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void pause_a_while(void) {
    const struct timespec pause = {0, PAUSE_NS};
    nanosleep(&pause, NULL);
}

/* How often the threads of the pool have gone to sleep. Each sleeps again after it was woken. */
static long sleeps(void) {
    long sum = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300], line[256], name[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = *entry->d_name != '.' ? fopen(path, "r") : NULL;
        long switches = 0;
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            sscanf(line, "Name: %63s", name);
            sscanf(line, "voluntary_ctxt_switches: %ld", &switches);
        }
        if (file != NULL)
            fclose(file);
        if (strncmp(name, "kelp-", 5) == 0)
            sum += switches;
    }
    closedir(folder);
    return sum;
}

static void idle_threads_sleep(void **state) {
    session s;
    uint64_t idle_ns = 0;
    (void)state;
    open_session(&s, 4, 256);
    long before = sleeps();
    for (int round = 0; round < ROUNDS; round++) {
        check_ok(kelp_context_invoke(s.context));
        uint64_t began = cpu_ns();
        pause_a_while();
        idle_ns += cpu_ns() - began;
    }
    assert_true(sleeps() > before); /* the product used several threads */
    /* three threads without sleep would take one to three times the time of the pauses */
    assert_true(idle_ns < ROUNDS * (3 * SPIN_NS + PAUSE_NS / 10));
    close_session(&s);
}

static void small_work_wakes_no_threads(void **state) {
    session s;
    (void)state;
    open_session(&s, 4, 1);
    pause_a_while(); /* the threads start, without work */
    long before = sleeps();
    for (int i = 0; i < 50 && (pause_a_while(), sleeps() != before); i++)
        before = sleeps();
    for (int i = 0; i < 2000; i++)
        check_ok(kelp_context_invoke(s.context));
    assert_int_equal(sleeps(), before);
    close_session(&s);
}

static void *run_many(void *userp) {
    session *s = userp;
    for (int i = 0; i < 40; i++)
        check_ok(kelp_context_invoke(s->context));
    return NULL;
}

static void two_sessions_share_the_cpus(void **state) {
    session s[2];
    pthread_t thread;
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_session(&s[i], 2, 320);
        check_ok(kelp_context_invoke(s[i].context));
    }
    uint64_t began = cpu_ns();
    run_many(&s[0]);
    run_many(&s[1]);
    uint64_t apart_ns = cpu_ns() - began;
    began = cpu_ns();
    assert_int_equal(pthread_create(&thread, NULL, run_many, &s[0]), 0);
    run_many(&s[1]);
    pthread_join(thread, NULL);
    uint64_t together_ns = cpu_ns() - began;
    print_message("CPU time side by side to one after the other: %.2f\n",
                  (double)together_ns / (double)apart_ns);
    /* the spin time of each, twice because of shared caches */
    assert_true(together_ns < 2 * apart_ns + (uint64_t)(2 * 40 * 2) * SPIN_NS);
    for (int i = 0; i < 2; i++)
        close_session(&s[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_threads_sleep),
        cmocka_unit_test(small_work_wakes_no_threads),
        cmocka_unit_test(two_sessions_share_the_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
