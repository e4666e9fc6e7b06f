/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a warm request, and the number of threads that take them. The program replaces
 * the C library's pthread_mutex_lock and records the calls. Requests to two models from two
 * threads share no lock. */
#include "server/support.h"

#include <dlfcn.h>
#include <stdatomic.h>

enum { MOST = 256, ROUNDS = 50 };

typedef struct notes {
    const pthread_mutex_t *locks[MOST];
    pthread_t threads[MOST];
    unsigned lock_count, thread_count;
} notes;

static notes taken[2];
static _Atomic(notes *) noting; /* NULL: not recording */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void note(notes *n, const pthread_mutex_t *lock) {
    unsigned i = 0;
    while (i < n->lock_count && n->locks[i] != lock)
        i++;
    if (i == n->lock_count && i < MOST)
        n->locks[n->lock_count++] = lock;
    for (i = 0; i < n->thread_count; i++)
        if (pthread_equal(n->threads[i], pthread_self()))
            return;
    if (i < MOST)
        n->threads[n->thread_count++] = pthread_self();
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *lock) {
    typedef int lock_fn(pthread_mutex_t *);
    static _Atomic(lock_fn *) real;
    lock_fn *fn = atomic_load(&real);
    if (!fn) {
        *(void **)&fn = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        atomic_store(&real, fn);
    }
    if (atomic_load(&noting)) {
        while (atomic_flag_test_and_set(&busy))
            ;
        notes *now = atomic_load(&noting);
        if (now)
            note(now, lock);
        atomic_flag_clear(&busy);
    }
    return fn(lock);
}

typedef struct worker {
    TRITONSERVER_Server *server;
    const char *model;
    notes *out;
} worker;

static void ask(call *c, const worker *w) {
    float a[16], b[16];
    size_t size_bytes = 0;
    call_init(c, w->server, w->model, -1);
    call_addsub(c, a, b, 1);
    call_run(c);
    const float *sum = call_output(c, "OUTPUT0", &size_bytes);
    assert_true(sum[3] == 5);
    call_deinit(c);
}

/* Complete requests, from the creation of the object to its deletion. */
static void *work(void *userp) {
    static call calls[2]; /* separately, so that no address is used by two locks */
    const worker *w = userp;
    call *c = &calls[w->out - taken];
    for (int i = 0; i < ROUNDS; i++)
        ask(c, w);
    atomic_store(&noting, w->out);
    for (int i = 0; i < ROUNDS; i++)
        ask(c, w);
    atomic_store(&noting, NULL);
    return NULL;
}

static void check(const char *place, unsigned threads) {
    repo r;
    char config[2048];
    pthread_t thread[2];
    repo_make(&r);
    snprintf(config, sizeof config,
             "%sparameters { key: \"kelp_execute_on\" value { string_value: \"%s\" } }\n",
             addsub_config, place);
    repo_model(&r, "one", config);
    repo_model(&r, "two", config);
    TRITONSERVER_Server *server = server_start(&r, &(server_setup){0});
    memset(taken, 0, sizeof taken);
    worker workers[2] = {{server, "one", &taken[0]}, {server, "two", &taken[1]}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
        pthread_join(thread[i], NULL);
        assert_true(taken[i].lock_count > 0 && taken[i].lock_count < MOST);
        assert_true(taken[i].thread_count <= threads);
    }
    for (unsigned i = 0; i < taken[0].lock_count; i++)
        for (unsigned k = 0; k < taken[1].lock_count; k++)
            if (taken[0].locks[i] == taken[1].locks[k])
                fail_msg("requests to two models both take the lock at %p",
                         (const void *)taken[0].locks[i]);
    server_end(server);
    repo_remove(&r);
}

/* The request changes to the instance's thread, and to no other thread. */
static void test_locks_of_a_request_on_an_instance(void **state) {
    (void)state;
    check("instance", 2);
}

static void test_locks_of_a_request_on_the_caller(void **state) {
    (void)state;
    check("caller", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks_of_a_request_on_an_instance),
        cmocka_unit_test(test_locks_of_a_request_on_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
