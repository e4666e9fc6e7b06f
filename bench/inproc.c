/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost of a request in process, through the C API: a 64-byte identity model with one request at a
 * time, with 32 in flight, and with batches of 16 that the server forms from single requests; and
 * an ensemble of 8 steps. The given libraries are interleaved in one run.
 *
 *   inproc [--on-instance] BACKENDS REQUESTS LIBRARY…
 *
 * BACKENDS is the directory of identity/libtriton_identity.so. Each library runs in a separate
 * process, because a process cannot contain two of them. The program waits for responses on a
 * condition variable: when 1 or 32 requests are in flight, or until all 16 requests of a batch are
 * complete. For each request, it prints the median, minimum and maximum over the rounds of the CPU
 * time of the process and of the elapsed time, in nanoseconds, and of the number of calls of
 * malloc, calloc, realloc and posix_memalign. --on-instance makes Kelp execute requests on the
 * thread of the instance, as it does for backends that do not declare that they never block.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <triton/core/tritonserver.h>
#include <unistd.h>

enum { ROUNDS = 5, DEPTH = 32, BATCH = 16, STEPS = 8, MODES = 4 };

typedef struct mode {
    const char *name, *model;
    unsigned depth; /* requests under way */
    bool joined;    /* all are over before the next ones are submitted */
} mode;
static const mode modes[MODES] = {
    {.name = "one by one", .model = "identity", .depth = 1, .joined = false},
    {.name = "pipelined", .model = "identity", .depth = DEPTH, .joined = false},
    {.name = "batched", .model = "batched", .depth = BATCH, .joined = true},
    {.name = "ensemble", .model = "ensemble", .depth = 1, .joined = false},
};

/* ---- allocations: this program's definitions are those of the whole process ---- */
#pragma GCC visibility push(default)
static atomic_ullong allocations;
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
void *malloc(size_t size) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_realloc(old, size);
}
int posix_memalign(void **out, size_t alignment, size_t size) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : 12;
}
#pragma GCC visibility pop

/* ---- the library ---- */
/* clang-format off */
#define FUNCTIONS(X) \
    X(ServerOptionsNew) X(ServerOptionsDelete) X(ServerOptionsSetModelRepositoryPath) \
    X(ServerOptionsSetBackendDirectory) X(ServerOptionsSetStrictModelConfig) \
    X(ServerOptionsSetLogInfo) X(ServerOptionsSetLogWarn) X(ServerOptionsSetLogError) \
    X(ServerNew) X(ServerDelete) X(ServerInferAsync) \
    X(InferenceRequestNew) X(InferenceRequestDelete) X(InferenceRequestAddInput) \
    X(InferenceRequestAppendInputData) X(InferenceRequestSetReleaseCallback) \
    X(InferenceRequestSetResponseCallback) X(InferenceResponseDelete) X(InferenceResponseError) \
    X(ResponseAllocatorNew) X(ErrorMessage)
/* clang-format on */
#define DECLARE(name) static __typeof__(TRITONSERVER_##name) *name;
FUNCTIONS(DECLARE)

static void *library;
static void *need(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s: %s\n", name, dlerror());
        exit(1);
    }
    return found;
}
#define BIND(name) *(void **)(void *)&name = need("TRITONSERVER_" #name);

static void ok(TRITONSERVER_Error *error) {
    if (error) {
        fprintf(stderr, "%s\n", ErrorMessage(error));
        exit(1);
    }
}

/* ---- requests ---- */
static TRITONSERVER_Server *server;
static TRITONSERVER_ResponseAllocator *allocator;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned in_flight;
static char data[64];

typedef struct slot {
    _Alignas(64) char answer[64];
    atomic_int parts; /* response and release that are still to come */
} slot;
static slot slots[DEPTH];
static slot *idle[DEPTH];
static unsigned idle_count;

static void part_done(slot *s) {
    if (atomic_fetch_sub(&s->parts, 1) != 1)
        return;
    pthread_mutex_lock(&lock);
    idle[idle_count++] = s;
    in_flight--;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static TRITONSERVER_Error *allocate(TRITONSERVER_ResponseAllocator *a, const char *name,
                                    size_t size, TRITONSERVER_MemoryType type, int64_t id,
                                    void *userp, void **buffer, void **buffer_userp,
                                    TRITONSERVER_MemoryType *actual, int64_t *actual_id) {
    (void)a, (void)name, (void)size, (void)type, (void)id;
    *buffer = ((slot *)userp)->answer;
    *buffer_userp = NULL;
    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    return NULL;
}

static TRITONSERVER_Error *give_back(TRITONSERVER_ResponseAllocator *a, void *buffer,
                                     void *buffer_userp, size_t size, TRITONSERVER_MemoryType type,
                                     int64_t id) {
    (void)a, (void)buffer, (void)buffer_userp, (void)size, (void)type, (void)id;
    return NULL;
}

static void released(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp) {
    (void)flags;
    ok(InferenceRequestDelete(request));
    part_done(userp);
}

static void answered(TRITONSERVER_InferenceResponse *response, const uint32_t flags, void *userp) {
    if (response) {
        ok(InferenceResponseError(response));
        ok(InferenceResponseDelete(response));
    }
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        part_done(userp);
}

static void wait_until_at_most(unsigned limit) {
    while (in_flight > limit)
        pthread_cond_wait(&changed, &lock);
}

static void submit(const mode *m) {
    static const int64_t shape[] = {1, 16};
    TRITONSERVER_InferenceRequest *request = NULL;
    pthread_mutex_lock(&lock);
    wait_until_at_most(m->depth - 1);
    in_flight++;
    slot *s = idle[--idle_count];
    pthread_mutex_unlock(&lock);
    atomic_store(&s->parts, 2);
    ok(InferenceRequestNew(&request, server, m->model, -1));
    ok(InferenceRequestAddInput(request, "INPUT0", TRITONSERVER_TYPE_INT32, shape + !m->joined,
                                m->joined ? 2 : 1));
    ok(InferenceRequestAppendInputData(request, "INPUT0", data, sizeof data,
                                       TRITONSERVER_MEMORY_CPU, 0));
    ok(InferenceRequestSetReleaseCallback(request, released, s));
    ok(InferenceRequestSetResponseCallback(request, allocator, s, answered, s));
    ok(ServerInferAsync(server, request, NULL));
}

static void wait_for_all(void) {
    pthread_mutex_lock(&lock);
    wait_until_at_most(0);
    pthread_mutex_unlock(&lock);
}

static void run(unsigned count, const mode *m) {
    for (unsigned i = 0; i < count; i++) {
        submit(m);
        if (m->joined && (i + 1) % m->depth == 0)
            wait_for_all();
    }
    wait_for_all();
}

typedef struct figures {
    double cpu_ns, wall_ns, allocations;
} figures;

static double cpu_ns(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e9 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e3;
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static figures measure(unsigned count, const mode *m) {
    run(count / 10 + 96, m);
    double cpu = cpu_ns(), wall = now_ns();
    unsigned long long made = atomic_load(&allocations);
    run(count, m);
    return (figures){(cpu_ns() - cpu) / count, (now_ns() - wall) / count,
                     (double)(atomic_load(&allocations) - made) / count};
}

static void start(const char *path, const char *repository, const char *backends) {
    TRITONSERVER_ServerOptions *options = NULL;
    library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    FUNCTIONS(BIND)
    ok(ServerOptionsNew(&options));
    ok(ServerOptionsSetModelRepositoryPath(options, repository));
    ok(ServerOptionsSetBackendDirectory(options, backends));
    ok(ServerOptionsSetStrictModelConfig(options, true));
    ok(ServerOptionsSetLogInfo(options, false));
    ok(ServerOptionsSetLogWarn(options, false));
    ok(ServerOptionsSetLogError(options, false));
    ok(ServerNew(&server, options));
    ok(ServerOptionsDelete(options));
    ok(ResponseAllocatorNew(&allocator, allocate, give_back, NULL));
    for (idle_count = 0; idle_count < DEPTH; idle_count++)
        idle[idle_count] = &slots[idle_count];
}

/* In a child, which writes its rows to `out`. */
static void child(const char *path, const char *repository, const char *backends, unsigned count,
                  int out) {
    if (!freopen("/dev/null", "w", stdout))
        exit(1);
    start(path, repository, backends);
    figures rows[MODES];
    for (int i = 0; i < MODES; i++)
        rows[i] = measure(count / BATCH * BATCH, &modes[i]);
    if (write(out, rows, sizeof rows) != (ssize_t)sizeof rows)
        exit(1);
    ok(ServerDelete(server));
    _exit(0);
}

static void write_model(const char *folder, const char *name, bool batched, bool on_instance) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/1", folder, name);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/config.pbtxt", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        exit(1);
    fputs("backend: \"identity\"\n"
          "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n"
          "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n"
          "instance_group [ { kind: KIND_CPU count: 1 } ]\n",
          file);
    if (batched)
        fprintf(file,
                "max_batch_size: %d\n"
                "dynamic_batching { preferred_batch_size: [ %d ] "
                "max_queue_delay_microseconds: 1000 }\n",
                BATCH, BATCH);
    if (on_instance)
        fputs("parameters { key: \"kelp_execute_on\" value { string_value: \"instance\" } }\n",
              file);
    fclose(file);
}

/* A chain of STEPS calls of "identity". */
static void write_ensemble(const char *folder) {
    char path[512], from[16] = "INPUT0", to[16];
    snprintf(path, sizeof path, "%s/ensemble", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/ensemble/1", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/ensemble/config.pbtxt", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        exit(1);
    fputs("platform: \"ensemble\"\n"
          "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n"
          "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n"
          "ensemble_scheduling { step [\n",
          file);
    for (int i = 1; i <= STEPS; i++) {
        snprintf(to, sizeof to, i < STEPS ? "T%d" : "OUTPUT0", i);
        fprintf(file,
                "{ model_name: \"identity\" model_version: -1\n"
                "  input_map { key: \"INPUT0\" value: \"%s\" }\n"
                "  output_map { key: \"OUTPUT0\" value: \"%s\" } }%s\n",
                from, to, i < STEPS ? "," : "");
        memcpy(from, to, sizeof from);
    }
    fputs("] }\n", file);
    fclose(file);
}

static void write_repository(char *folder, size_t size, bool on_instance) {
    snprintf(folder, size, "/tmp/kelp-inproc-XXXXXX");
    if (!mkdtemp(folder))
        exit(1);
    write_model(folder, "identity", false, on_instance);
    write_model(folder, "batched", true, on_instance);
    write_ensemble(folder);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts, and gives the median. */
static double middle(double values[ROUNDS]) {
    qsort(values, ROUNDS, sizeof values[0], ascending);
    return values[ROUNDS / 2];
}

static void print_row(const char *what, const figures rounds[ROUNDS], const char *path) {
    double cpu[ROUNDS], wall[ROUNDS], made[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        cpu[i] = rounds[i].cpu_ns;
        wall[i] = rounds[i].wall_ns;
        made[i] = rounds[i].allocations;
    }
    double cpu_ns = middle(cpu), wall_ns = middle(wall);
    printf("%-10s %7.0f ns CPU (%.0f..%.0f) %7.0f ns wall (%.0f..%.0f) %6.2f allocations  %s\n",
           what, cpu_ns, cpu[0], cpu[ROUNDS - 1], wall_ns, wall[0], wall[ROUNDS - 1], middle(made),
           path);
}

/* The CPU time of a step of the ensemble, beyond that of a direct call. */
static void print_step_cost(const figures rounds[MODES][ROUNDS]) {
    double costs[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        costs[i] = rounds[MODES - 1][i].cpu_ns / STEPS - rounds[0][i].cpu_ns;
    double cost_ns = middle(costs);
    printf("%-10s %7.0f ns (%.0f..%.0f) of CPU more than a direct call, a step\n", "", cost_ns,
           costs[0], costs[ROUNDS - 1]);
}

int main(int argc, char **argv) {
    enum { MOST = 8 };
    static figures all[MOST][MODES][ROUNDS];
    char repository[64];
    bool on_instance = argc > 1 && strcmp(argv[1], "--on-instance") == 0;
    argc -= on_instance;
    argv += on_instance;
    if (argc < 4 || argc - 3 > MOST) {
        fprintf(stderr, "usage: inproc [--on-instance] BACKENDS REQUESTS LIBRARY...\n");
        return 2;
    }
    unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
    write_repository(repository, sizeof repository, on_instance);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 3; i < argc; i++) {
            int pipes[2], code = 0;
            figures rows[MODES];
            if (pipe(pipes) != 0)
                return 1;
            pid_t pid = fork();
            if (pid == 0)
                child(argv[i], repository, argv[1], count, pipes[1]);
            close(pipes[1]);
            bool whole = read(pipes[0], rows, sizeof rows) == (ssize_t)sizeof rows;
            close(pipes[0]);
            waitpid(pid, &code, 0);
            if (!whole)
                return 1;
            for (int m = 0; m < MODES; m++)
                all[i - 3][m][round] = rows[m];
        }
    }
    for (int i = 3; i < argc; i++) {
        for (int m = 0; m < MODES; m++)
            print_row(modes[m].name, all[i - 3][m], argv[i]);
        print_step_cost(all[i - 3]);
    }
    return 0;
}
