/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the SDK's functions inside a backend. */
#include "sdk_backend.h"

/* INPUT0 is FP32 [2, 3] = 0 … 5, INPUT1 BYTES [2] = "one", "" */
kelp_status *check_inputs(kelp_backend_request *request) {
    kelp_tensor x, part, s;
    kelp_backend_pieces pieces;
    char small[4];
    CHECK(fails_with(kelp_backend_input(request, "INPUT9", 0, KELP_ANY_RANK, &x),
                     KELP_INVALID_ARGUMENT, "INPUT9"));
    CHECK(fails_with(kelp_backend_input(request, "INPUT0", KELP_I64, KELP_ANY_RANK, &x),
                     KELP_INVALID_ARGUMENT, "input 'INPUT0': expected type INT64, found FP32"));
    CHECK(fails_with(kelp_backend_input(request, "INPUT0", KELP_F32, 3, &x), KELP_INVALID_ARGUMENT,
                     "expected 3 dimensions, found 2"));
    CHECK(!kelp_backend_has_input(request, "INPUT9"));
    CHECK(kelp_backend_has_input(request, "INPUT0"));
    KELP_TRY(kelp_backend_input(request, "INPUT0", KELP_F32, 2, &x));
    CHECK(x.rank == 2 && x.shape[0] == 2 && x.shape[1] == 3 && x.strides[0] == 3);
    CHECK(x.flags & KELP_TENSOR_READ_ONLY);
    CHECK((uintptr_t)x.data % sizeof(float) == 0 && KELP_AT(const float, &x, 1, 2) == 5);
    KELP_TRY(kelp_backend_slice(&x, 1, 1, 3, &part));
    CHECK(part.shape[1] == 2 && KELP_AT(const float, &part, 1, 0) == 4);
    CHECK(fails_with(kelp_backend_slice(&x, 1, 1, 4, &part), KELP_OUT_OF_RANGE, "[1, 4)"));
    CHECK(fails_with(kelp_backend_slice(&x, 2, 0, 0, &part), KELP_OUT_OF_RANGE, "dimension 2"));

    KELP_TRY(kelp_backend_input(request, "INPUT1", KELP_STRING, 1, &s));
    const kelp_string *strings = s.data;
    CHECK(strings[0].length == 3 && memcmp(strings[0].data, "one", 3) == 0);
    CHECK(strings[1].length == 0);

    KELP_TRY(kelp_backend_pieces_init(&pieces, request, "INPUT0"));
    CHECK(pieces.size_bytes == 24 && pieces.dtype == KELP_F32 && pieces.shape[1] == 3);
    CHECK(fails_with(kelp_backend_pieces_copy(&pieces, small, sizeof small),
                     KELP_RESOURCE_EXHAUSTED, "larger than 4 bytes"));
    char *memory = kelp_backend_request_alloc(request, 1000);
    CHECK(memory && (uintptr_t)memory % 64 == 0);
    memset(memory, 1, 1000);
    return NULL;
}

/* OUTPUT0: columns 1 and 2 of INPUT0, as a strided tensor; OUTPUT1: every second string of an
 * array; OUTPUT2: a transposed DLTensor; OUTPUT3 and OUTPUT4: strided, with dimensions of size 1.
 */
kelp_status *check_outputs(kelp_backend_request *request) {
    kelp_tensor x;
    kelp_backend_response *response, *again;
    static const kelp_string words[] = {{"a", 1}, {"x", 1}, {"bc", 2}, {"x", 1}};
    static int32_t values[] = {1, 2, 3, 4};
    int64_t two[] = {2, 2}, transposed[] = {1, 2}, negative[] = {-1};
    void *out;
    DLTensor dl = {.data = values,
                   .device = {kDLCPU, 0},
                   .ndim = 2,
                   .dtype = {kDLInt, 32, 1},
                   .shape = two,
                   .strides = transposed};
    KELP_TRY(kelp_backend_input(request, "INPUT0", KELP_F32, 2, &x));
    KELP_TRY(kelp_backend_slice(&x, 1, 1, 3, &x));
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(kelp_backend_respond(request, &again));
    CHECK(again == response);
    KELP_TRY(kelp_backend_put_tensor(response, "OUTPUT0", &x));
    CHECK(fails_with(kelp_backend_output(response, "OUTPUT1", KELP_STRING, 1, two, &out),
                     KELP_INVALID_ARGUMENT, "has type BYTES"));
    CHECK(fails_with(kelp_backend_output(response, "OUTPUT1", KELP_F32, 1, negative, &out),
                     KELP_INVALID_ARGUMENT, "output 'OUTPUT1'"));
    CHECK(fails_with(kelp_backend_output(response, "OUTPUT1", KELP_C64, 1, two, &out),
                     KELP_INVALID_ARGUMENT, "no type 'complex64'"));
    CHECK(fails_with(kelp_backend_output_bytes(response, "OUTPUT1", KELP_F32, 1, two, 9, &out),
                     KELP_INVALID_ARGUMENT, "expected 8 bytes, found 9"));
    kelp_tensor strings;
    KELP_TRY(kelp_tensor_init(&strings, KELP_STRING, 1, two, (void *)(uintptr_t)words));
    strings.strides[0] = 2;
    KELP_TRY(kelp_backend_put_tensor(response, "OUTPUT1", &strings));
    static int32_t spread[20];
    static const int64_t column[] = {2, 1}, columns[] = {2, 2, 1};
    kelp_tensor gaps;
    for (int32_t i = 0; i < 20; i++)
        spread[i] = i;
    KELP_TRY(kelp_tensor_init(&gaps, KELP_I32, 2, column, spread));
    gaps.strides[0] = 5;
    KELP_TRY(kelp_backend_put_tensor(response, "OUTPUT3", &gaps));
    KELP_TRY(kelp_tensor_init(&gaps, KELP_I32, 3, columns, spread));
    gaps.strides[0] = 10;
    gaps.strides[1] = 1;
    KELP_TRY(kelp_backend_put_tensor(response, "OUTPUT4", &gaps));
    dl.dtype.lanes = 2;
    CHECK(fails_with(kelp_backend_put_dltensor(response, "OUTPUT2", &dl), KELP_UNIMPLEMENTED,
                     "output 'OUTPUT2'"));
    dl.dtype.lanes = 1;
    return kelp_backend_put_dltensor(response, "OUTPUT2", &dl);
}

/* int = 7, float = 1.5, flag = true, text = "t" */
kelp_status *check_parameters(kelp_backend_request *request) {
    int64_t i;
    double f;
    bool b;
    const char *t;
    kelp_backend_parameter p;
    kelp_backend_response *response;
    KELP_TRY(kelp_backend_request_i64(request, "int", 0, &i));
    KELP_TRY(kelp_backend_request_f64(request, "float", 0, &f));
    KELP_TRY(kelp_backend_request_bool(request, "flag", false, &b));
    KELP_TRY(kelp_backend_request_text(request, "text", "", &t));
    CHECK(i == 7 && f == 1.5 && b && strcmp(t, "t") == 0);
    KELP_TRY(kelp_backend_request_f64(request, "int", 0, &f));
    CHECK(f == 7);
    KELP_TRY(kelp_backend_request_i64(request, "none", 42, &i));
    CHECK(i == 42);
    CHECK(fails_with(kelp_backend_request_i64(request, "text", 0, &i), KELP_INVALID_ARGUMENT,
                     "parameter 'text': expected INT, found STRING"));
    size_t count = 0;
    while (kelp_backend_request_parameter(request, count, &p))
        count++;
    CHECK(count == 4);
    CHECK(strcmp(kelp_backend_request_id(request), "the id") == 0);
    CHECK(kelp_backend_request_sequence(request) == 12);
    CHECK(strcmp(kelp_backend_request_sequence_text(request), "") == 0);
    CHECK(kelp_backend_request_is_start(request) && !kelp_backend_request_is_end(request));
    CHECK(kelp_backend_request_timeout_us(request) == 99000000);
    CHECK(!kelp_backend_request_is_cancelled(request));
    CHECK(kelp_backend_request_wants(request, "OUTPUT0"));
    CHECK(!kelp_backend_request_wants(request, "OUTPUT9"));
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(kelp_backend_set_i64(response, "i", i));
    KELP_TRY(kelp_backend_set_f64(response, "f", 2.5));
    KELP_TRY(kelp_backend_set_bool(response, "b", true));
    return kelp_backend_set_text(response, "t", "text");
}

kelp_status *check_config(kelp_backend_model *model) {
    int64_t i;
    double f;
    bool b;
    size_t count;
    const kelp_backend_value *config = kelp_backend_model_config(model), *group;
    KELP_TRY(kelp_backend_model_i64(model, "number", 0, &i));
    KELP_TRY(kelp_backend_model_f64(model, "number", 0, &f));
    KELP_TRY(kelp_backend_model_bool(model, "yes", false, &b));
    CHECK(i == 12 && f == 12 && b);
    KELP_TRY(kelp_backend_model_i64(model, "none", 5, &i));
    CHECK(i == 5);
    CHECK(
        fails_with(kelp_backend_model_i64(model, "word", 0, &i), KELP_INVALID_ARGUMENT,
                   "parameter 'word' of model 'config': expected a whole number, found 'x \"y\"'"));
    CHECK(fails_with(kelp_backend_model_f64(model, "word", 0, &f), KELP_INVALID_ARGUMENT,
                     "a number"));
    CHECK(fails_with(kelp_backend_model_bool(model, "word", 0, &b), KELP_INVALID_ARGUMENT,
                     "true or false"));
    const kelp_backend_io *inputs = kelp_backend_model_inputs(model, &count);
    CHECK(count == 2 && strcmp(inputs[0].name, "INPUT0") == 0 && inputs[0].dtype == KELP_F32);
    CHECK(inputs[0].rank == 2 && inputs[0].shape[0] == -1 && inputs[0].shape[1] == 3);
    CHECK(inputs[1].is_optional && !inputs[0].is_optional && inputs[1].dtype == KELP_STRING);
    CHECK(kelp_backend_model_outputs(model, &count)[0].dtype == KELP_F32 && count == 1);
    CHECK(kelp_backend_model_version(model) == 1 && kelp_backend_model_max_batch(model) == 0);
    CHECK(strstr(kelp_backend_model_directory(model), "config"));
    CHECK(strcmp(kelp_backend_value_text(kelp_backend_value_get(config, "backend"), ""),
                 "sdkone") == 0);
    group = kelp_backend_value_first(kelp_backend_value_get(config, "instance_group"));
    CHECK(kelp_backend_value_i64(kelp_backend_value_get(group, "count"), 0) == 2);
    CHECK(!kelp_backend_value_next(group) && kelp_backend_value_count(config) > 5);
    /* Missing values are NULL at any depth. */
    CHECK(kelp_backend_value_bool(
        kelp_backend_value_get(kelp_backend_value_get(config, "no"), "such"), true));
    CHECK(strcmp(kelp_backend_host_setting(kelp_backend_model_host(model), "default-max-batch-size",
                                           ""),
                 "4") == 0);
    CHECK(strstr(kelp_backend_host_directory(kelp_backend_model_host(model)), "sdkone"));
    return NULL;
}
