/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/intern.h"

/* An operator that is not in the list. Operators of one name and different domains are chained. */
typedef struct custom {
    kelp_operator op;
    struct custom *next;
} custom;

void kelp_interner_init(kelp_interner *interner, kelp_allocator allocator, kelp_arena *arena) {
    interner->arena = arena;
    kelp_map_init(&interner->by_name, allocator);
}

void kelp_interner_deinit(kelp_interner *interner) {
    kelp_map_deinit(&interner->by_name);
}

static const char *copy(kelp_interner *interner, kelp_str text) {
    return kelp_arena_strndup(interner->arena, text.data != NULL ? text.data : "", text.length);
}

kelp_status *kelp_intern_operator(kelp_interner *interner, kelp_str domain, kelp_str name,
                                  const kelp_operator **out) {
    if (kelp_str_is(domain, "ai.onnx"))
        domain = (kelp_str){0};
    *out = kelp_operator_find(domain, name);
    if (*out != NULL)
        return NULL;
    custom *first = kelp_map_get(&interner->by_name, name);
    for (custom *known = first; known != NULL; known = known->next)
        if (kelp_str_is(domain, known->op.domain)) {
            *out = &known->op;
            return NULL;
        }
    custom *made = KELP_ARENA_NEW(interner->arena, custom);
    const char *own_domain = copy(interner, domain), *own_name = copy(interner, name);
    if (made == NULL || own_domain == NULL || own_name == NULL)
        return kelp_status_oom();
    made->op = (kelp_operator){own_domain, own_name, KELP_OPERATOR_COUNT, KELP_ONNX_NO_SCHEMA};
    made->next = first;
    *out = &made->op;
    return kelp_map_put(&interner->by_name, (kelp_str){own_name, name.length}, made);
}
