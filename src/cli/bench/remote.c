/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a model of a running server over HTTP: binary tensors, one connection per worker. */
#include "cli/bench/bench.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/text/json.h"
#include "cli/show.h"

#include <stdio.h>

#define HTTP_OK 200u

typedef struct remote {
    const kelp_bench_options *options;
    const char *url; /* of the model, without a trailing '/' */
    char *infer_url;
    kelp_arena arena;
    kelp_io_info *infos;
    size_t input_count;
    kelp_inputs inputs;
    kelp_buf body;
    size_t json_length;
    kelp_cli_http **clients;
    size_t client_count;
} remote;

bool kelp_bench_is_remote(const kelp_bench_options *options) {
    return kelp_cli_http_is_url(options->positionals.items[0]);
}

/* ---- the inputs of the model ---- */
static kelp_status *read_input(remote *r, const kelp_json *input, kelp_io_info *out) {
    const kelp_json *name = kelp_json_get(input, "name"), *type = kelp_json_get(input, "datatype"),
                    *shape = kelp_json_get(input, "shape");
    if (name == NULL || name->type != KELP_JSON_STRING || type == NULL ||
        type->type != KELP_JSON_STRING || shape == NULL || shape->type != KELP_JSON_ARRAY ||
        shape->count > KELP_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'%s' describes an input without name, datatype "
                          "or shape",
                          r->url);
    *out = (kelp_io_info){
        .name = kelp_arena_strndup(&r->arena, name->string.data, name->string.length)};
    const char *text = kelp_arena_strndup(&r->arena, type->string.data, type->string.length);
    if (out->name == NULL || text == NULL)
        return kelp_status_oom();
    out->dtype = kelp_dtype_parse(text);
    for (const kelp_json *dim = shape->child; dim != NULL; dim = dim->next)
        out->shape[out->rank++] = dim->i64;
    if (out->dtype == KELP_DTYPE_INVALID)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "input '%s' has the unknown datatype '%s'", out->name,
                          text);
    return NULL;
}

/* Reads the description of the model. */
static kelp_status *read_inputs(remote *r) {
    unsigned code = 0;
    kelp_str body;
    kelp_json *tree = NULL;
    KELP_TRY(kelp_cli_http_get(r->clients[0], r->url, &code, &body));
    KELP_TRY(kelp_cli_http_expect(r->url, code, body));
    kelp_status *status = kelp_json_parse(&r->arena, r->url, body.data, body.length, &tree);
    const kelp_json *inputs = kelp_json_get(tree, "inputs");
    if (status == NULL && (inputs == NULL || inputs->type != KELP_JSON_ARRAY))
        status = KELP_ERROR(KELP_INVALID_ARGUMENT, "the response has no member 'inputs'");
    if (status != NULL)
        return KELP_ANNOTATE(status,
                             "'%s' is not the URL of a model: expected "
                             "http://HOST:PORT/v2/models/NAME",
                             r->url);
    r->infos = KELP_ARENA_ARRAY(&r->arena, inputs->count, kelp_io_info);
    if (r->infos == NULL && inputs->count > 0)
        return kelp_status_oom();
    for (const kelp_json *input = inputs->child; input != NULL; input = input->next)
        KELP_TRY(read_input(r, input, &r->infos[r->input_count++]));
    return kelp_inputs_init(&r->inputs, r->infos, r->input_count, &r->options->model.inputs,
                            &r->options->model.shapes, &r->options->model.image, KELP_FILL_RANDOM);
}

/* ---- the request ---- */
static size_t binary_size(const kelp_tensor *tensor) {
    if (tensor->dtype != KELP_STRING)
        return kelp_tensor_bytes(tensor);
    size_t total = 0;
    for (int64_t i = 0; i < kelp_tensor_elements(tensor); i++)
        total += sizeof(uint32_t) + ((const kelp_string *)tensor->data)[i].length;
    return total;
}

static void put_input(const kelp_io_info *info, const kelp_tensor *tensor, kelp_json_writer *w) {
    kelp_json_begin_object(w);
    kelp_json_key(w, "name");
    kelp_json_put_cstr(w, info->name);
    kelp_json_key(w, "datatype");
    kelp_json_put_cstr(w, kelp_dtype_triton_name(info->dtype));
    kelp_show_shape_json(tensor, w);
    kelp_json_key(w, "parameters");
    kelp_json_begin_object(w);
    kelp_json_key(w, "binary_data_size");
    kelp_json_put_u64(w, binary_size(tensor));
    kelp_json_end_object(w);
    kelp_json_end_object(w);
}

static void put_data(const kelp_tensor *tensor, kelp_buf *out) {
    if (tensor->dtype != KELP_STRING) {
        kelp_buf_append(out, tensor->data, kelp_tensor_bytes(tensor));
        return;
    }
    for (int64_t i = 0; i < kelp_tensor_elements(tensor); i++) {
        kelp_string s = ((const kelp_string *)tensor->data)[i];
        uint32_t length = (uint32_t)s.length;
        kelp_buf_append(out, &length, sizeof length); /* the host is little-endian */
        kelp_buf_append(out, s.data, s.length);
    }
}

/* Writes the request: JSON, then the elements of the inputs. Outputs are requested as bytes. */
static kelp_status *make_body(remote *r) {
    kelp_json_writer w;
    kelp_json_writer_init(&w, &r->body);
    kelp_json_begin_object(&w);
    kelp_json_key(&w, "parameters");
    kelp_json_begin_object(&w);
    kelp_json_key(&w, "binary_data_output");
    kelp_json_put_bool(&w, true);
    kelp_json_end_object(&w);
    kelp_json_key(&w, "inputs");
    kelp_json_begin_array(&w);
    for (size_t i = 0; i < r->input_count; i++)
        put_input(&r->infos[i], &r->inputs.arrays[i].tensor, &w);
    kelp_json_end_array(&w);
    kelp_json_end_object(&w);
    r->json_length = r->body.length;
    for (size_t i = 0; i < r->input_count; i++)
        put_data(&r->inputs.arrays[i].tensor, &r->body);
    return kelp_buf_status(&r->body);
}

static kelp_status *send_request(remote *r, size_t worker, unsigned *out_code, kelp_str *out_body) {
    KELP_ASSERT(worker < r->client_count);
    return kelp_cli_http_post(r->clients[worker], r->infer_url,
                              (kelp_str){r->body.data, r->body.length}, r->json_length, out_code,
                              out_body);
}

/* A response with an error, such as one of a full queue, counts as a failure. */
static kelp_status *invoke(void *userp, size_t worker, bool *out_failed) {
    unsigned code = 0;
    kelp_str body;
    KELP_TRY(send_request(userp, worker, &code, &body));
    *out_failed = code != HTTP_OK;
    return NULL;
}

/* Sends the requests of the warm-up on each connection. They must succeed. */
static kelp_status *warm_up(remote *r, uint64_t *out_first_ns) {
    for (size_t i = 0; i < r->client_count; i++) {
        for (int64_t run = 0; run < r->options->warmup || (i == 0 && run == 0); run++) {
            unsigned code = 0;
            kelp_str body;
            uint64_t began_ns = kelp_now_ns();
            KELP_TRY(send_request(r, i, &code, &body));
            KELP_TRY(kelp_cli_http_expect(r->infer_url, code, body));
            if (i == 0 && run == 0)
                *out_first_ns = kelp_now_ns() - began_ns;
        }
    }
    return NULL;
}

static kelp_status *prepare(remote *r, size_t connections) {
    const char *url = r->options->positionals.items[0];
    size_t length = strlen(url);
    while (length > 0 && url[length - 1] == '/')
        length--;
    r->url = kelp_arena_strndup(&r->arena, url, length);
    r->infer_url = kelp_arena_printf(&r->arena, "%.*s/infer", (int)length, url);
    if (r->url == NULL || r->infer_url == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_alloc_zero(kelp_allocator_system(), connections, sizeof(kelp_cli_http *),
                             (void **)&r->clients));
    r->client_count = connections;
    for (size_t i = 0; i < connections; i++)
        KELP_TRY(kelp_cli_http_create(&r->options->http, &r->clients[i]));
    KELP_TRY(read_inputs(r));
    return make_body(r);
}

static void remote_deinit(remote *r) {
    for (size_t i = 0; r->clients != NULL && i < r->client_count; i++)
        kelp_cli_http_destroy(r->clients[i]);
    kelp_free(kelp_allocator_system(), r->clients, r->client_count * sizeof(kelp_cli_http *));
    kelp_inputs_deinit(&r->inputs);
    kelp_buf_deinit(&r->body);
    kelp_arena_deinit(&r->arena);
}

kelp_status *kelp_bench_measure_server(const kelp_bench_options *options, kelp_bench_row *inout) {
    remote r = {.options = options};
    char label[64];
    KELP_ASSERT(inout->concurrency >= 1);
    kelp_arena_init(&r.arena, kelp_allocator_system(), 0);
    kelp_buf_init(&r.body, kelp_allocator_system());
    snprintf(label, sizeof label, "concurrency %lld", (long long)inout->concurrency);
    kelp_status *status = prepare(&r, (size_t)inout->concurrency);
    if (status == NULL)
        status = warm_up(&r, &inout->first_ns);
    kelp_bench_load_options load = {.workers = (size_t)inout->concurrency,
                                    .seconds = options->seconds,
                                    .label = label,
                                    .invoke = invoke,
                                    .userp = &r};
    if (status == NULL)
        status = kelp_bench_load_run(&load, &inout->load);
    remote_deinit(&r);
    return status;
}
