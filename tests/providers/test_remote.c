/* SPDX-License-Identifier: Apache-2.0 */
/* Subgraphs in another process: a worker that the test starts, kills and starts again. */
#include "onnx/onnx_writer.h"

#include <kelp/remote.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/check_status.h"

static char folder[64], path[96];
static pid_t worker_pid;

/* ---- the other process ---- */
static kelp_worker *serving;

static void stop_serving(int number) {
    (void)number;
    kelp_worker_stop(serving);
}

/* Runs this program as the worker. */
static int worker_main(const char *socket_path, const char *kind) {
    kelp_runtime *runtime = NULL;
    kelp_wire_caps caps = kelp_wire_caps_edge();
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_worker_options worker = {.struct_size = sizeof worker, .socket_path = socket_path};
    if (strcmp(kind, "edge") == 0)
        worker.caps = &caps;
    if (strcmp(kind, "poor") == 0)
        worker.budget_bytes = 100;
    if (strcmp(kind, "one") == 0)
        worker.connections = 1;
    kelp_status *status = kelp_runtime_create(&options, &runtime);
    if (status == NULL)
        status = kelp_worker_create(runtime, &worker, &serving);
    if (status == NULL) {
        signal(SIGTERM, stop_serving);
        status = kelp_worker_run(serving);
    }
    kelp_worker_destroy(serving);
    kelp_runtime_release(runtime);
    if (status != NULL)
        fprintf(stderr, "worker: %s\n", kelp_status_message(status));
    kelp_status_free(status);
    return status != NULL;
}

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static int connect_to_worker(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void start_worker(const char *kind) {
    const char *emulator = getenv("KELP_EMULATOR");
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    worker_pid = fork();
    if (worker_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (emulator != NULL) /* the kernel does not know this program's format */
            execlp(emulator, emulator, self, "--worker", path, kind, (char *)NULL);
        execl("/proc/self/exe", "test_remote", "--worker", path, kind, (char *)NULL);
        _exit(127);
    }
    for (int fd = -1; fd < 0;) { /* until it listens; the time limit of the test ends the wait */
        assert_int_equal(waitpid(worker_pid, NULL, WNOHANG), 0);
        pause_ms(5);
        fd = connect_to_worker();
        if (fd >= 0)
            close(fd);
    }
}

static void end_worker(int signal_number) {
    int code = 0;
    kill(worker_pid, signal_number);
    assert_int_equal(waitpid(worker_pid, &code, 0), worker_pid);
    worker_pid = 0;
    if (signal_number == SIGTERM)
        assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
}

/* After a failed test. */
static int kill_worker(void **state) {
    (void)state;
    if (worker_pid > 0) {
        kill(worker_pid, SIGKILL);
        waitpid(worker_pid, NULL, 0);
        worker_pid = 0;
    }
    return 0;
}

/* ---- a model ---- */
static void add(pb *graph, const char *op_type, const char *inputs, const char *outputs) {
    pb node = pb_node(op_type, inputs, outputs);
    pb_add_node(graph, &node);
}

static void free_bytes(void *userp) {
    free(userp);
}

/* y = Neg(Abs(x) * w), s = Identity(text): weights and strings are sent too. */
static kelp_graph *make_graph(const char *shape) {
    static const float weights[4] = {2, 3, 4, 5};
    pb graph = {0};
    kelp_graph *loaded = NULL;
    char type[64];
    snprintf(type, sizeof type, "float32[%s]", shape);
    pb_text(&graph, 2, "remote");
    add(&graph, "Abs", "x", "a");
    add(&graph, "Mul", "a w", "m");
    add(&graph, "Neg", "m", "y");
    add(&graph, "Identity", "text", "s");
    pb tensor = pb_tensor("w", KELP_F32, 1, (int64_t[]){4}, weights, sizeof weights);
    pb_add_initializer(&graph, &tensor);
    pb_add_input(&graph, "x", type);
    pb_add_input(&graph, "text", "string[k]");
    pb_add_output(&graph, "y", type);
    pb_add_output(&graph, "s", "string[k]");
    pb model = pb_model(&graph, 17);
    char *copy = malloc(model.length);
    assert_non_null(copy);
    memcpy(copy, model.data, model.length);
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), copy, model.length, "remote", NULL,
                                   free_bytes, copy, NULL, &loaded));
    return loaded;
}

typedef struct fixture {
    kelp_runtime *runtime;
    kelp_graph *graph;
    kelp_engine *engine;
    kelp_context *context;
} fixture;

static kelp_status *make(fixture *f, const char *shape, const kelp_wire_caps *caps) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_engine_options engine = {.struct_size = sizeof engine, .providers = "remote,cpu"};
    kelp_remote_options remote = {.struct_size = sizeof remote, .socket_path = path, .caps = caps};
    *f = (fixture){.graph = make_graph(shape)};
    check_ok(kelp_runtime_create(&options, &f->runtime));
    check_ok(kelp_remote_register(f->runtime, &remote));
    KELP_TRY(kelp_engine_create(f->runtime, f->graph, &engine, &f->engine));
    return kelp_context_create(f->engine, &f->context);
}

static void drop(fixture *f) {
    kelp_context_destroy(f->context);
    kelp_engine_release(f->engine);
    kelp_graph_release(f->graph);
    kelp_runtime_release(f->runtime);
}

static kelp_status *invoke(kelp_context *context, int64_t rows) {
    float *data = malloc((size_t)rows * 4 * sizeof *data);
    kelp_string words[2] = {{"far", 3}, {"away!", 5}};
    kelp_tensor x, text;
    assert_non_null(data);
    for (int64_t i = 0; i < rows * 4; i++)
        data[i] = (float)(i % 7) - 3;
    check_ok(kelp_tensor_init(&x, KELP_F32, 2, (int64_t[]){rows, 4}, data));
    check_ok(kelp_tensor_init(&text, KELP_STRING, 1, (int64_t[]){2}, words));
    check_ok(kelp_context_set_input(context, 0, &x));
    check_ok(kelp_context_set_input(context, 1, &text));
    kelp_status *status = kelp_context_invoke(context);
    if (status == NULL) {
        const kelp_tensor *y = kelp_context_output(context, 0),
                          *s = kelp_context_output(context, 1);
        assert_int_equal(y->shape[0], rows);
        for (int64_t i = 0; i < rows * 4; i++) {
            float magnitude = data[i] < 0 ? -data[i] : data[i];
            assert_true(((const float *)y->data)[i] == -(magnitude * (float)(2 + i % 4)));
        }
        for (int i = 0; i < 2; i++)
            assert_memory_equal(((const kelp_string *)s->data)[i].data, words[i].data,
                                words[i].length);
    }
    free(data);
    return status;
}

/* ---- tests ---- */
static void subgraph_runs_in_another_process(void **state) {
    fixture f;
    (void)state;
    start_worker("plain");
    check_ok(make(&f, "n,4", NULL));
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 2); /* they are not connected */
    for (int64_t rows = 1; rows < 40; rows += 13)
        check_ok(invoke(f.context, rows));
    drop(&f);
    check_ok(make(&f, "3,4", NULL)); /* static shapes */
    check_ok(invoke(f.context, 3));
    check_ok(invoke(f.context, 3));
    drop(&f);
    end_worker(SIGTERM);
    assert_int_equal(access(path, F_OK), -1);
}

static void load_fails_without_a_worker(void **state) {
    fixture f;
    (void)state;
    expect_failure(make(&f, "n,4", NULL), KELP_UNAVAILABLE, "cannot connect to a worker at");
    drop(&f);
}

static void inference_fails_until_the_worker_restarts(void **state) {
    fixture f;
    (void)state;
    start_worker("plain");
    check_ok(make(&f, "n,4", NULL));
    check_ok(invoke(f.context, 2));
    end_worker(SIGKILL);
    expect_failure(invoke(f.context, 2), KELP_UNAVAILABLE, "worker at");
    start_worker("plain"); /* replaces the remaining socket file */
    check_ok(invoke(f.context, 2));
    check_ok(invoke(f.context, 5));
    drop(&f);
    end_worker(SIGTERM);
}

static void limits_of_the_worker_apply(void **state) {
    fixture f;
    (void)state;
    start_worker("edge");
    check_ok(make(&f, "n,4", NULL));
    check_ok(invoke(f.context, 1000));
    expect_failure(invoke(f.context, 5000), KELP_OUT_OF_RANGE,
                   "bytes of a fill: 80064 of at most 65536");
    check_ok(invoke(f.context, 1000)); /* on a new connection */
    drop(&f);
    end_worker(SIGTERM);
    start_worker("poor");
    check_ok(make(&f, "n,4", NULL));
    expect_failure(invoke(f.context, 10), KELP_RESOURCE_EXHAUSTED,
                   "BudgetExceeded: slot 0 ('x') exceeds the budget: 224 bytes, 100 remain");
    drop(&f);
    end_worker(SIGTERM);
}

static void unsupported_nodes_stay_in_this_process(void **state) {
    fixture f;
    kelp_wire_caps caps = kelp_wire_caps_default();
    (void)state;
    start_worker("plain");
    caps.fill_bytes = 1000;
    check_ok(make(&f, "100,4", &caps)); /* known to be too large: only the strings are sent */
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 1);
    check_ok(invoke(f.context, 100));
    drop(&f);
    end_worker(SIGTERM);
}

static void connection_count_is_limited(void **state) {
    fixture f;
    (void)state;
    start_worker("one");
    pause_ms(100); /* the connection of the search was closed */
    int fd = connect_to_worker();
    assert_true(fd >= 0);
    expect_failure(make(&f, "n,4", NULL), KELP_RESOURCE_EXHAUSTED,
                   "has 1 connections, which is the limit");
    drop(&f);
    close(fd);
    end_worker(SIGTERM);
}

static void worker_survives_malformed_messages(void **state) {
    fixture f;
    (void)state;
    start_worker("plain");
    static const char *const starts[] = {"GET / HTTP/1.1\r\n\r\n", "KRPC\x03\0\0\0", "KRPC", ""};
    uint64_t seed = 7;
    for (int round = 0; round < 60; round++) {
        char bytes[256];
        const char *start = starts[round % 4];
        size_t length = 64 + (size_t)round;
        for (size_t i = 0; i < length; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (char)(seed >> 56);
        }
        memcpy(bytes, start, strlen(start));
        if (round % 4 == 1) /* a truncated run, before a model is loaded */
            memcpy(bytes, "KRPC\x03\0\0\0\x30\0\0\0\0\0\0\0KENV", 20);
        if (round % 4 == 2) /* a malformed model */
            memcpy(bytes, "KRPC\x01\0\0\0\x20\0\0\0\0\0\0\0", 16);
        int fd = connect_to_worker();
        assert_true(fd >= 0);
        assert_true(send(fd, bytes, length, MSG_NOSIGNAL) > 0);
        shutdown(fd, SHUT_WR);
        while (recv(fd, bytes, sizeof bytes, 0) > 0) {
        }
        close(fd);
    }
    check_ok(make(&f, "n,4", NULL));
    check_ok(invoke(f.context, 4));
    drop(&f);
    end_worker(SIGTERM);
}

/* ---- a worker with a defect: it answers every run with a failure of two bytes ---- */
typedef struct broken_worker {
    int listener;
    pthread_t thread;
    atomic_int connections;
} broken_worker;

static void *broken_connection(void *userp) {
    int fd = (int)(intptr_t)userp;
    char head[16], content[4096];
    static const char loaded[16] = "KRPC\x02", failed[18] = "KRPC\x05\0\0\0\x02";
    while (recv(fd, head, sizeof head, MSG_WAITALL) == sizeof head) {
        uint64_t length;
        ssize_t read = 1;
        memcpy(&length, head + 8, sizeof length);
        for (; length > 0 && read > 0; length -= (uint64_t)read)
            read = recv(fd, content, length < sizeof content ? length : sizeof content, 0);
        bool is_load = head[4] == 1;
        if (read <= 0 || send(fd, is_load ? loaded : failed,
                              is_load ? sizeof loaded : sizeof failed, MSG_NOSIGNAL) < 0)
            break;
    }
    close(fd);
    return NULL;
}

static void *broken_main(void *userp) {
    broken_worker *w = userp;
    for (int fd; (fd = accept(w->listener, NULL, NULL)) >= 0;) {
        pthread_t thread;
        atomic_fetch_add(&w->connections, 1);
        if (pthread_create(&thread, NULL, broken_connection, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
        else
            close(fd);
    }
    return NULL;
}

static void start_broken_worker(broken_worker *w) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    unlink(path);
    w->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    atomic_init(&w->connections, 0);
    assert_int_equal(bind(w->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(w->listener, 8), 0);
    assert_int_equal(pthread_create(&w->thread, NULL, broken_main, w), 0);
}

static void end_broken_worker(broken_worker *w) {
    shutdown(w->listener, SHUT_RDWR);
    pthread_join(w->thread, NULL);
    close(w->listener);
    unlink(path);
}

/* The position in the stream is unknown after a malformed frame. */
static void connection_is_not_reused_after_a_malformed_failure(void **state) {
    fixture f;
    broken_worker w;
    (void)state;
    start_broken_worker(&w);
    check_ok(make(&f, "n,4", NULL));
    expect_failure(invoke(f.context, 2), KELP_INVALID_ARGUMENT, "invalid failure of 2 bytes");
    int before = atomic_load(&w.connections);
    expect_failure(invoke(f.context, 2), KELP_INVALID_ARGUMENT, "invalid failure of 2 bytes");
    assert_true(atomic_load(&w.connections) > before);
    drop(&f);
    end_broken_worker(&w);
}

/* Several threads, each with a context of one engine. */
static void *run_often(void *userp) {
    kelp_context *context = NULL;
    check_ok(kelp_context_create(userp, &context));
    for (int i = 0; i < 20; i++)
        check_ok(invoke(context, 1 + i % 5));
    kelp_context_destroy(context);
    return NULL;
}

static void concurrent_contexts_share_connections(void **state) {
    fixture f;
    pthread_t threads[3];
    (void)state;
    start_worker("plain");
    check_ok(make(&f, "n,4", NULL));
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, f.engine), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    drop(&f);
    end_worker(SIGTERM);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argv[2], argv[3]);
    snprintf(folder, sizeof folder, "%s/kelp-remote-XXXXXX", "/tmp");
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/worker.sock", folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(subgraph_runs_in_another_process, kill_worker),
        cmocka_unit_test_teardown(load_fails_without_a_worker, kill_worker),
        cmocka_unit_test_teardown(inference_fails_until_the_worker_restarts, kill_worker),
        cmocka_unit_test_teardown(limits_of_the_worker_apply, kill_worker),
        cmocka_unit_test_teardown(unsupported_nodes_stay_in_this_process, kill_worker),
        cmocka_unit_test_teardown(connection_count_is_limited, kill_worker),
        cmocka_unit_test_teardown(worker_survives_malformed_messages, kill_worker),
        cmocka_unit_test(connection_is_not_reused_after_a_malformed_failure),
        cmocka_unit_test_teardown(concurrent_contexts_share_connections, kill_worker),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(folder);
    return failed;
}
