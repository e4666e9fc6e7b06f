/* SPDX-License-Identifier: Apache-2.0 */
/* Random ensembles of sums and differences, with random requested outputs and several requests at a
 * time, compared with a direct computation. */
#include "server/support.h"

enum { ENSEMBLES = 60, MAX_STEPS = 12, REQUESTS = 4, BATCH = 2, WIDTH = 16 };
enum { VALUES = BATCH * WIDTH, MAX_TENSORS = 2 + 2 * MAX_STEPS };

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT});
}

/* A generator of numbers: xorshift. */
static unsigned draw(unsigned *inout_seed, unsigned limit) {
    *inout_seed ^= *inout_seed << 13;
    *inout_seed ^= *inout_seed >> 17;
    *inout_seed ^= *inout_seed << 5;
    return *inout_seed % limit;
}

/* Tensors 0 and 1 are the inputs; step i produces 2 + 2 * i (sum) and 3 + 2 * i (difference). */
typedef struct design {
    unsigned steps;
    unsigned inputs[MAX_STEPS][2];
    unsigned order[MAX_STEPS]; /* in the configuration */
    bool is_output[MAX_TENSORS];
    unsigned outputs;
} design;

static void make_design(design *d, unsigned *inout_seed) {
    memset(d, 0, sizeof *d);
    d->steps = 1 + draw(inout_seed, MAX_STEPS);
    for (unsigned i = 0; i < d->steps; i++) {
        d->order[i] = i;
        for (unsigned k = 0; k < 2; k++)
            d->inputs[i][k] = i == 0 ? k : draw(inout_seed, 2 + 2 * i);
    }
    for (unsigned i = d->steps; i-- > 1;) {
        unsigned other = draw(inout_seed, i + 1), kept = d->order[i];
        d->order[i] = d->order[other];
        d->order[other] = kept;
    }
    for (unsigned t = 2; t < 2 + 2 * d->steps; t++)
        d->is_output[t] = draw(inout_seed, 3) == 0 || (t == 2 + 2 * d->steps - 1 && !d->outputs);
    for (unsigned t = 2; t < 2 + 2 * d->steps; t++)
        d->outputs += d->is_output[t];
}

static void write_config(const design *d, char *out, size_t size) {
    static const char io[] = "%s [ { name: \"t%u\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n";
    size_t length = (size_t)snprintf(out, size, "max_batch_size: 8\n");
    for (unsigned t = 0; t < 2; t++)
        length += (size_t)snprintf(out + length, size - length, io, "input", t);
    for (unsigned t = 2; t < 2 + 2 * d->steps; t++)
        if (d->is_output[t])
            length += (size_t)snprintf(out + length, size - length, io, "output", t);
    length += (size_t)snprintf(out + length, size - length, "ensemble_scheduling {\n");
    for (unsigned i = 0; i < d->steps; i++) {
        unsigned step = d->order[i];
        length += (size_t)snprintf(
            out + length, size - length,
            "step [ { model_name: \"%s\" input_map { key: \"INPUT0\" value: \"t%u\" }\n"
            "input_map { key: \"INPUT1\" value: \"t%u\" }\n"
            "output_map { key: \"OUTPUT0\" value: \"t%u\" }\n"
            "output_map { key: \"OUTPUT1\" value: \"t%u\" } } ]\n",
            step % 2 ? "threads" : "addsub", d->inputs[step][0], d->inputs[step][1], 2 + 2 * step,
            3 + 2 * step);
        assert_true(length < size);
    }
    snprintf(out + length, size - length, "}\n");
}

/* Computes all tensors. */
static void compute(const design *d, float tensors[MAX_TENSORS][VALUES]) {
    for (unsigned i = 0; i < d->steps; i++) {
        const float *a = tensors[d->inputs[i][0]], *b = tensors[d->inputs[i][1]];
        for (unsigned k = 0; k < VALUES; k++) {
            tensors[2 + 2 * i][k] = a[k] + b[k];
            tensors[3 + 2 * i][k] = a[k] - b[k];
        }
    }
}

static void request_some(call *c, const design *d, bool *wanted, unsigned *inout_seed) {
    bool all = draw(inout_seed, 3) == 0;
    unsigned count = 0;
    char name[16];
    for (unsigned t = 0; t < MAX_TENSORS; t++) {
        wanted[t] = d->is_output[t] && (all || draw(inout_seed, 2) == 0);
        count += wanted[t];
    }
    for (unsigned t = 0; t < MAX_TENSORS; t++) {
        if (count == 0)
            wanted[t] = d->is_output[t]; /* no name means all */
        else if (wanted[t] && !all) {
            snprintf(name, sizeof name, "t%u", t);
            ok(TRITONSERVER_InferenceRequestAddRequestedOutput(c->request, name));
        }
    }
}

static void check(call *c, const bool *wanted, float tensors[MAX_TENSORS][VALUES]) {
    uint32_t count = 0, expected = 0;
    char name[16];
    size_t size_bytes = 0;
    ok(TRITONSERVER_InferenceResponseError(c->response));
    ok(TRITONSERVER_InferenceResponseOutputCount(c->response, &count));
    for (unsigned t = 0; t < MAX_TENSORS; t++) {
        if (!wanted[t])
            continue;
        expected++;
        snprintf(name, sizeof name, "t%u", t);
        const float *out = call_output(c, name, &size_bytes);
        assert_int_equal(size_bytes, sizeof tensors[t]);
        for (unsigned k = 0; k < VALUES; k++)
            assert_true(out[k] == tensors[t][k]); /* integers below 2^24 */
    }
    assert_int_equal(count, expected);
    assert_int_equal(c->responses, 1);
}

static void run_requests(world *w, const design *d, unsigned *inout_seed) {
    static const int64_t shape[] = {BATCH, WIDTH};
    static float tensors[REQUESTS][MAX_TENSORS][VALUES];
    bool wanted[REQUESTS][MAX_TENSORS];
    call calls[REQUESTS];
    for (unsigned r = 0; r < REQUESTS; r++) {
        for (unsigned k = 0; k < VALUES; k++)
            for (unsigned t = 0; t < 2; t++)
                tensors[r][t][k] = (float)draw(inout_seed, 100);
        compute(d, tensors[r]);
        call_init(&calls[r], w->server, "random", -1);
        for (unsigned t = 0; t < 2; t++)
            call_input(&calls[r], t ? "t1" : "t0", TRITONSERVER_TYPE_FP32, shape, 2, tensors[r][t],
                       sizeof tensors[r][t]);
        request_some(&calls[r], d, wanted[r], inout_seed);
        call_start(&calls[r]);
    }
    for (unsigned r = 0; r < REQUESTS; r++) {
        call_wait(&calls[r]);
        check(&calls[r], wanted[r], tensors[r]);
        call_deinit(&calls[r]);
    }
}

static void test_random_ensembles_compute_what_their_steps_compute(void **state) {
    world *w = *state;
    char threads[2048], config[16384];
    unsigned seed = 20260711;
    snprintf(threads, sizeof threads,
             "%sparameters { key: \"kelp_execute_on\" value { string_value: \"instance\" } }\n",
             addsub_config);
    world_load(w, "addsub", addsub_config);
    world_load(w, "threads", threads);
    for (int i = 0; i < ENSEMBLES; i++) {
        design d;
        make_design(&d, &seed);
        write_config(&d, config, sizeof config);
        world_load(w, "random", config);
        run_requests(w, &d, &seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_ensembles_compute_what_their_steps_compute,
                                        set_up, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
