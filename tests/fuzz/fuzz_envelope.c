/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes received RPC messages: all bytes of all tensors can be read, and the memory budget is
 * never exceeded and zero at the end. The first byte determines how the rest is split. */
#include <kelp/wire.h>

#include <stdlib.h>
#include <string.h>

#define BUDGET_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned char sink;

static void read_bytes(const void *data, size_t length) {
    for (size_t i = 0; i < length; i++)
        sink ^= ((const unsigned char *)data)[i];
}

static void read_tensor(const kelp_tensor *tensor) {
    if (tensor->rank > KELP_MAX_RANK || kelp_dtype_bits(tensor->dtype) == 0)
        abort();
    read_bytes(tensor->data, kelp_tensor_bytes(tensor));
    for (int64_t i = 0; tensor->dtype == KELP_STRING && i < kelp_tensor_elements(tensor); i++) {
        const kelp_string *string = (const kelp_string *)tensor->data + i;
        read_bytes(string->data, string->length);
    }
}

static void read_all(const kelp_receiver *receiver) {
    size_t bytes = 0;
    const void *suffix = kelp_receiver_suffix(receiver, &bytes);
    read_bytes(suffix, bytes);
    for (size_t i = 0; i < kelp_receiver_address_count(receiver); i++) {
        const void *address = kelp_receiver_address(receiver, i, &bytes);
        read_bytes(address, bytes);
    }
    for (size_t i = 0; i < kelp_receiver_report_count(receiver); i++) {
        const kelp_fill_report *report = kelp_receiver_report(receiver, i);
        if ((report->kind == KELP_WIRE_DELIVERED) != (report->status == NULL) ||
            kelp_wire_kind_of(report->status) != report->kind)
            abort();
    }
    for (size_t slot = 0; slot < 3; slot++)
        if (kelp_receiver_tensor(receiver, slot) != NULL)
            read_tensor(kelp_receiver_tensor(receiver, slot));
}

static void receive(kelp_receiver *receiver, const uint8_t *data, size_t size, size_t step) {
    kelp_status *status = NULL;
    while (status == NULL && size > 0) {
        size_t wanted = 0;
        void *where = kelp_receiver_want(receiver, &wanted);
        if (where == NULL) { /* another message follows */
            read_all(receiver);
            kelp_receiver_next(receiver);
            continue;
        }
        if (wanted == 0)
            abort();
        size_t some = wanted < step ? wanted : step;
        some = some < size ? some : size;
        memcpy(where, data, some);
        status = kelp_receiver_got(receiver, some);
        data += some;
        size -= some;
    }
    kelp_status_free(status);
    read_all(receiver);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_types *types = NULL;
    kelp_budget *budget = NULL;
    kelp_receiver *receiver = NULL;
    kelp_wire_slot slots[3] = {{.name = "x", .type_hash = kelp_type_of_tensor(KELP_F32)},
                               {.name = "text", .type_hash = kelp_type_of_tensor(KELP_STRING)},
                               {.name = "any"}};
    kelp_wire_caps caps = kelp_wire_caps_edge();
    if (size < 1 || kelp_types_create(kelp_allocator_system(), &types) != NULL ||
        kelp_budget_create(kelp_allocator_system(), BUDGET_BYTES, &budget) != NULL)
        return 0;
    kelp_receiver_options options = {.struct_size = sizeof options,
                                     .allocator = kelp_allocator_system(),
                                     .types = types,
                                     .budget = budget,
                                     .caps = &caps,
                                     .slots = slots,
                                     .slot_count = 3};
    if (kelp_receiver_create(&options, &receiver) != NULL)
        abort();
    receive(receiver, data + 1, size - 1, data[0] > 0 ? data[0] : SIZE_MAX);
    if (kelp_budget_used(budget) > BUDGET_BYTES)
        abort();
    kelp_receiver_destroy(receiver);
    if (kelp_budget_used(budget) != 0)
        abort();
    kelp_budget_destroy(budget);
    kelp_types_destroy(types);
    return 0;
}
