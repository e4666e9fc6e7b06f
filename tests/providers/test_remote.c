/* SPDX-License-Identifier: Apache-2.0 */
/* Subgraphs in another process, over a Unix socket and over TCP: a worker that the test starts,
 * kills and starts again. The argument `tcp` selects TCP. */
#include "onnx/onnx_writer.h"

#include <kelp/remote.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
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

/* The address is that of the transport under test: `path` or "127.0.0.1:PORT". */
static char folder[64], path[96], address[96], token_path[96];
static bool is_tcp;
static uint16_t port;
static pid_t worker_pid;

/* ---- the other process ---- */
static kelp_worker *serving;

static void stop_serving(int number) {
    (void)number;
    kelp_worker_stop(serving);
}

/* Runs this program as the worker. */
static int worker_main(const char *worker_address, const char *kind) {
    kelp_runtime *runtime = NULL;
    kelp_wire_caps caps = kelp_wire_caps_edge();
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_worker_options worker = {.struct_size = sizeof worker, .address = worker_address};
    if (strcmp(kind, "edge") == 0)
        worker.caps = &caps;
    if (strcmp(kind, "poor") == 0)
        worker.budget_bytes = 100;
    if (strcmp(kind, "one") == 0)
        worker.connections = 1;
    if (kind[0] == '/')
        worker.token_file = kind;
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

static int open_socket(struct sockaddr_storage *out_name, socklen_t *out_size) {
    *out_name = (struct sockaddr_storage){0};
    if (is_tcp) {
        struct sockaddr_in *name = (struct sockaddr_in *)out_name;
        *name = (struct sockaddr_in){.sin_family = AF_INET,
                                     .sin_port = htons(port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        *out_size = sizeof *name;
    } else {
        struct sockaddr_un *name = (struct sockaddr_un *)out_name;
        name->sun_family = AF_UNIX;
        memcpy(name->sun_path, path, strlen(path) + 1);
        *out_size = sizeof *name;
    }
    return socket(is_tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
}

static int connect_to_worker(void) {
    struct sockaddr_storage name;
    socklen_t size;
    int fd = open_socket(&name, &size);
    if (connect(fd, (struct sockaddr *)&name, size) == 0)
        return fd;
    close(fd);
    return -1;
}

static int listen_as_worker(int backlog) {
    struct sockaddr_storage name;
    socklen_t size;
    int fd = open_socket(&name, &size), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&name, size) == 0 && listen(fd, backlog) == 0)
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
            execlp(emulator, emulator, self, "--worker", address, kind, (char *)NULL);
        execl("/proc/self/exe", "test_remote", "--worker", address, kind, (char *)NULL);
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

static kelp_status *make_with(fixture *f, const char *shape, const kelp_wire_caps *caps,
                              const char *token_file) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_engine_options engine = {.struct_size = sizeof engine, .providers = "remote,cpu"};
    kelp_remote_options remote = {
        .struct_size = sizeof remote, .address = address, .caps = caps, .token_file = token_file};
    *f = (fixture){.graph = make_graph(shape)};
    check_ok(kelp_runtime_create(&options, &f->runtime));
    check_ok(kelp_remote_register(f->runtime, &remote));
    KELP_TRY(kelp_engine_create(f->runtime, f->graph, &engine, &f->engine));
    return kelp_context_create(f->engine, &f->context);
}

static kelp_status *make(fixture *f, const char *shape, const kelp_wire_caps *caps) {
    return make_with(f, shape, caps, NULL);
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
    assert_int_equal(access(path, F_OK), -1); /* a Unix socket is removed */
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

/* ---- a worker with a defect: it answers every run with a failure of two bytes, or vanishes in the
 * middle of the run ---- */
static atomic_bool worker_vanishes;

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
        if (!is_load && atomic_load(&worker_vanishes))
            break;
        if (read <= 0 || send(fd, is_load ? loaded : failed,
                              is_load ? sizeof loaded : sizeof failed, MSG_NOSIGNAL) < 0)
            break;
    }
    shutdown(fd, SHUT_RDWR); /* a worker that was forked since shares the socket */
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

static void start_broken_worker(broken_worker *w, bool vanishes) {
    unlink(path);
    atomic_init(&w->connections, 0);
    atomic_store(&worker_vanishes, vanishes);
    w->listener = listen_as_worker(8);
    assert_true(w->listener >= 0);
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
    start_broken_worker(&w, false);
    check_ok(make(&f, "n,4", NULL));
    expect_failure(invoke(f.context, 2), KELP_INVALID_ARGUMENT, "invalid failure of 2 bytes");
    int before = atomic_load(&w.connections);
    expect_failure(invoke(f.context, 2), KELP_INVALID_ARGUMENT, "invalid failure of 2 bytes");
    assert_true(atomic_load(&w.connections) > before);
    drop(&f);
    end_broken_worker(&w);
}

static void engine_survives_a_worker_that_vanishes_during_a_run(void **state) {
    fixture f;
    broken_worker w;
    (void)state;
    start_broken_worker(&w, true);
    check_ok(make(&f, "n,4", NULL));
    expect_failure(invoke(f.context, 2), KELP_UNAVAILABLE, address);
    end_broken_worker(&w);
    start_worker("plain");
    check_ok(invoke(f.context, 2));
    drop(&f);
    end_worker(SIGTERM);
}

/* Returns the number of bytes of writable memory of the worker. */
static size_t worker_memory(void) {
    char name[64], line[128];
    size_t kib = 0;
    snprintf(name, sizeof name, "/proc/%d/status", (int)worker_pid);
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmData: %zu", &kib) == 1)
            break;
    fclose(file);
    assert_true(kib > 0);
    return kib << 10;
}

static void announced_size_reserves_no_memory(void **state) {
    static const char head[16] = {'K', 'R', 'P', 'C', 1, 0, 0, 0, 0, 0, 0, 0x40}; /* 1 GiB */
    int fds[4];
    (void)state;
    start_worker("plain");
    size_t before = worker_memory();
    for (int i = 0; i < 4; i++) {
        fds[i] = connect_to_worker();
        assert_true(fds[i] >= 0);
        assert_int_equal(send(fds[i], head, sizeof head, MSG_NOSIGNAL), sizeof head);
    }
    pause_ms(300);
    assert_true(worker_memory() < before + ((size_t)512 << 20));
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    end_worker(SIGTERM);
}

/* ---- tokens ---- */
static void write_token(const char *text) {
    FILE *file = fopen(token_path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void worker_rejects_clients_without_its_token(void **state) {
    fixture f;
    (void)state;
    write_token("open sesame\n");
    start_worker(token_path);
    check_ok(make_with(&f, "n,4", NULL, token_path));
    check_ok(invoke(f.context, 3));
    drop(&f);
    expect_failure(make(&f, "n,4", NULL), KELP_UNAUTHENTICATED, "expects a token");
    drop(&f);
    static const char *const wrong[] = {"open sesam", "open sesamf", "open sesame2"};
    for (int i = 0; i < 3; i++) {
        write_token(wrong[i]);
        expect_failure(make_with(&f, "n,4", NULL, token_path), KELP_UNAUTHENTICATED,
                       "expects another token");
        drop(&f);
    }
    write_token("open sesame"); /* the white space at the end does not count */
    check_ok(make_with(&f, "n,4", NULL, token_path));
    check_ok(invoke(f.context, 3));
    drop(&f);
    end_worker(SIGTERM);
    start_worker("plain"); /* a worker that expects no token accepts any */
    check_ok(make_with(&f, "n,4", NULL, token_path));
    drop(&f);
    end_worker(SIGTERM);
}

static void invalid_token_files_are_rejected(void **state) {
    kelp_runtime *runtime = NULL;
    kelp_worker *worker = NULL;
    char longer[5000];
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_remote_options remote = {
        .struct_size = sizeof remote, .address = address, .token_file = token_path};
    kelp_worker_options server = {
        .struct_size = sizeof server, .address = address, .token_file = token_path};
    (void)state;
    check_ok(kelp_runtime_create(&options, &runtime));
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const char *const texts[] = {" \n", longer};
    for (int i = 0; i < 2; i++) {
        write_token(texts[i]);
        expect_failure(kelp_remote_register(runtime, &remote), KELP_INVALID_ARGUMENT, token_path);
        expect_failure(kelp_worker_create(runtime, &server, &worker), KELP_INVALID_ARGUMENT,
                       "expected 1 to 4096 bytes");
    }
    unlink(token_path);
    expect_failure(kelp_remote_register(runtime, &remote), KELP_NOT_FOUND, token_path);
    setenv("KELP_REMOTE_TOKEN_FILE", token_path, 1);
    expect_failure(kelp_remote_register_named(runtime, "remote:./a,cpu"), KELP_NOT_FOUND,
                   token_path);
    setenv("KELP_REMOTE_TOKEN_FILE", "", 1);
    check_ok(kelp_remote_register_named(runtime, "remote:./a,cpu"));
    unsetenv("KELP_REMOTE_TOKEN_FILE");
    kelp_runtime_release(runtime);
}

/* ---- addresses ---- */
static void invalid_addresses_are_rejected(void **state) {
    static const struct {
        const char *text, *message;
    } cases[] = {{"", "'' is not an address of a worker: expected HOST:PORT"},
                 {"worker.sock", "'worker.sock' is not an address of a worker"},
                 {"host:", "no valid port: expected a number from 0 to 65535, found ''"},
                 {"host:http", "found 'http'"},
                 {"host:65536", "found '65536'"},
                 {"host:-1", "found '-1'"},
                 {"::1:9000", "'::1:9000' has no valid host"},
                 {"[]:9000", "no valid host"},
                 {"unix:", "not a valid socket path"},
                 {"host:0", "expected the port on which the worker listens"},
                 {NULL, "has no address"}};
    kelp_runtime *runtime = NULL;
    kelp_worker *worker = NULL;
    char longer[400];
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_remote_options remote = {.struct_size = sizeof remote};
    kelp_worker_options server = {.struct_size = sizeof server};
    (void)state;
    check_ok(kelp_runtime_create(&options, &runtime));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        remote.address = server.address = cases[i].text;
        expect_failure(kelp_remote_register(runtime, &remote), KELP_INVALID_ARGUMENT,
                       cases[i].message);
        if (cases[i].text == NULL || strcmp(cases[i].text, "host:0") != 0)
            expect_failure(kelp_worker_create(runtime, &server, &worker), KELP_INVALID_ARGUMENT,
                           cases[i].message);
    }
    memset(longer, 'h', sizeof longer);
    snprintf(longer + 300, sizeof longer - 300, ":80");
    remote.address = longer;
    expect_failure(kelp_remote_register(runtime, &remote), KELP_INVALID_ARGUMENT, "no valid host");
    longer[0] = '/';
    expect_failure(kelp_remote_register(runtime, &remote), KELP_INVALID_ARGUMENT,
                   "expected 1 to 107 bytes");
    expect_failure(kelp_remote_register_named(runtime, "cpu,remote:worker"), KELP_INVALID_ARGUMENT,
                   "'worker' is not an address");
    char named[400] = "remote:";
    memset(named + 7, 'h', 300);
    expect_failure(kelp_remote_register_named(runtime, named), KELP_INVALID_ARGUMENT,
                   "is too long: expected at most 255 bytes, found 307");
    server.address = "host.invalid:9000";
    expect_failure(kelp_worker_create(runtime, &server, &worker), KELP_UNAVAILABLE,
                   "cannot listen on 'host.invalid:9000': cannot resolve host 'host.invalid'");
    kelp_runtime_release(runtime);
}

static int warnings;

static void count_warning(void *userp, int level, const char *file, int line, const char *text,
                          size_t length) {
    (void)userp;
    (void)file;
    (void)line;
    (void)length;
    warnings += level == 1 && strstr(text, "without a token") != NULL;
}

static int open_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

static void worker_tells_its_address(void **state) {
    kelp_runtime *runtime = NULL;
    kelp_worker *worker = NULL, *second = NULL;
    kelp_runtime_options options = {
        .struct_size = sizeof options, .threads = 1, .log = count_warning, .log_level = 1};
    kelp_worker_options server = {.struct_size = sizeof server, .address = ":0"};
    int number = 0;
    (void)state;
    check_ok(kelp_runtime_create(&options, &runtime));
    int before = open_descriptors();
    check_ok(kelp_worker_create(runtime, &server, &worker));
    assert_int_equal(sscanf(kelp_worker_address(worker), "127.0.0.1:%d", &number), 1);
    assert_true(number > 0);
    server.address = kelp_worker_address(worker);
    expect_failure(kelp_worker_create(runtime, &server, &second), KELP_UNAVAILABLE,
                   "cannot listen on '127.0.0.1:");
    kelp_worker_destroy(worker);
    assert_int_equal(warnings, 0);
    server.address = "0.0.0.0:0";
    check_ok(kelp_worker_create(runtime, &server, &worker));
    assert_int_equal(warnings, 1);
    kelp_worker_destroy(worker);
    write_token("secret");
    server.token_file = token_path;
    check_ok(kelp_worker_create(runtime, &server, &worker));
    assert_int_equal(warnings, 1);
    kelp_worker_destroy(worker);
    unlink(token_path);
    server.token_file = NULL;
    server.address = "[::1]:0";
    kelp_status *status = kelp_worker_create(runtime, &server, &worker);
    if (status == NULL) { /* this machine has IPv6 */
        assert_int_equal(strncmp(kelp_worker_address(worker), "[::1]:", 6), 0);
        kelp_worker_destroy(worker);
    }
    kelp_status_free(status);
    server.address = path;
    check_ok(kelp_worker_create(runtime, &server, &worker));
    assert_string_equal(kelp_worker_address(worker), path);
    kelp_worker_destroy(worker);
    kelp_worker_destroy(NULL);
    assert_int_equal(open_descriptors(), before);
    kelp_runtime_release(runtime);
}

/* The kernel ignores connection requests to a full queue, as a host that is down would. */
static void connecting_has_a_time_limit(void **state) {
    kelp_runtime *runtime = NULL;
    kelp_engine *engine = NULL;
    struct sockaddr_storage name;
    socklen_t size;
    int fds[4], listener = listen_as_worker(0);
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_engine_options built = {.struct_size = sizeof built, .providers = "remote,cpu"};
    kelp_remote_options remote = {.struct_size = sizeof remote,
                                  .address = address,
                                  .connect_timeout_ns = (uint64_t)200 * 1000000};
    (void)state;
    assert_true(listener >= 0);
    for (int i = 0; i < 4; i++) {
        fds[i] = open_socket(&name, &size);
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
        (void)connect(fds[i], (struct sockaddr *)&name, size);
    }
    kelp_graph *graph = make_graph("n,4");
    check_ok(kelp_runtime_create(&options, &runtime));
    check_ok(kelp_remote_register(runtime, &remote));
    expect_failure(kelp_engine_create(runtime, graph, &built, &engine), KELP_UNAVAILABLE,
                   "no response within 200 ms");
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    close(listener);
    kelp_graph_release(graph);
    kelp_runtime_release(runtime);
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

/* ---- transports ---- */
static int use_unix(void **state) {
    (void)state;
    snprintf(address, sizeof address, "%s", path);
    return 0;
}

/* Selects a port that is free, and outside of the range that the kernel assigns. The first one
 * depends on the time: processes in different namespaces can have the same number. */
static int use_tcp(void **state) {
    (void)state;
    struct timespec now;
    is_tcp = true;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (int i = 0; i < 1000; i++) {
        port = (uint16_t)(20000 + (now.tv_nsec / 1000 + i) % 10000);
        int fd = listen_as_worker(1);
        if (fd < 0)
            continue;
        close(fd);
        snprintf(address, sizeof address, "127.0.0.1:%d", port);
        return 0;
    }
    return -1;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argv[2], argv[3]);
    snprintf(folder, sizeof folder, "%s/kelp-remote-XXXXXX", "/tmp");
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/worker.sock", folder);
    snprintf(token_path, sizeof token_path, "%s/token", folder);
#define TRANSPORT_TESTS                                                                    \
    cmocka_unit_test_teardown(subgraph_runs_in_another_process, kill_worker),              \
        cmocka_unit_test_teardown(load_fails_without_a_worker, kill_worker),               \
        cmocka_unit_test_teardown(inference_fails_until_the_worker_restarts, kill_worker), \
        cmocka_unit_test_teardown(limits_of_the_worker_apply, kill_worker),                \
        cmocka_unit_test_teardown(unsupported_nodes_stay_in_this_process, kill_worker),    \
        cmocka_unit_test_teardown(connection_count_is_limited, kill_worker),               \
        cmocka_unit_test_teardown(worker_survives_malformed_messages, kill_worker),        \
        cmocka_unit_test(connection_is_not_reused_after_a_malformed_failure),              \
        cmocka_unit_test_teardown(engine_survives_a_worker_that_vanishes_during_a_run,     \
                                  kill_worker),                                            \
        cmocka_unit_test_teardown(announced_size_reserves_no_memory, kill_worker),         \
        cmocka_unit_test_teardown(worker_rejects_clients_without_its_token, kill_worker),  \
        cmocka_unit_test_teardown(concurrent_contexts_share_connections, kill_worker)
    const struct CMUnitTest unix_tests[] = {
        TRANSPORT_TESTS,
        cmocka_unit_test(invalid_token_files_are_rejected),
        cmocka_unit_test(invalid_addresses_are_rejected),
        cmocka_unit_test(worker_tells_its_address),
    };
    const struct CMUnitTest tcp_tests[] = {
        TRANSPORT_TESTS,
        cmocka_unit_test(connecting_has_a_time_limit),
    };
    int failed = argc == 2 && strcmp(argv[1], "tcp") == 0
                     ? cmocka_run_group_tests_name("tcp", tcp_tests, use_tcp, NULL)
                     : cmocka_run_group_tests_name("unix", unix_tests, use_unix, NULL);
    unlink(token_path);
    unlink(path);
    rmdir(folder);
    return failed;
}
