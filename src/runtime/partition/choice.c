/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the registered providers that an engine uses, and their order of preference. */
#include "base/assert.h"
#include "base/buf.h"
#include "runtime/partition/domains.h"

#include <string.h>

const kelp_opset_backend *kelp_opset_by_name(const kelp_opset_registry *registry, const char *name,
                                             void **out_self) {
    for (size_t i = registry->count; i > 0; i--) {
        const kelp_opset_entry *entry = registry->entries[i - 1];
        if (strcmp(entry->backend->name, name) != 0)
            continue;
        if (out_self != NULL)
            *out_self = entry->self;
        return entry->backend;
    }
    return NULL;
}

static kelp_opset_entry *find_entry(const kelp_opset_registry *registry, kelp_str name) {
    for (size_t i = registry->count; i > 0; i--)
        if (kelp_str_is(name, registry->entries[i - 1]->backend->name))
            return registry->entries[i - 1];
    return NULL;
}

/* `reason` may be NULL. */
static kelp_status *unknown_provider(const kelp_opset_registry *registry, const char *providers,
                                     kelp_str name, const kelp_status *reason) {
    kelp_buf names;
    kelp_buf_init(&names, registry->allocator);
    for (size_t i = 0; i < registry->count; i++)
        kelp_buf_printf(&names, "%s%s", i > 0 ? ", " : "", registry->entries[i]->backend->name);
    const char *list = kelp_buf_cstr(&names);
    kelp_status *status =
        KELP_ERROR(KELP_NOT_FOUND, "no provider '%.*s' is registered (of '%s'): found %s%s%s",
                   (int)name.length, name.data, providers, list != NULL ? list : "others",
                   reason != NULL ? "\n" : "", reason != NULL ? kelp_status_message(reason) : "");
    kelp_buf_deinit(&names);
    return status;
}

/* Returns the name that begins at `*inout_at`, without blanks around it. Returns false at the end.
 */
static bool next_name(const char *providers, size_t *inout_at, kelp_str *out) {
    size_t begin = *inout_at;
    if (begin > strlen(providers))
        return false;
    size_t length = strcspn(providers + begin, ",");
    *inout_at = begin + length + 1;
    while (length > 0 && providers[begin] == ' ') {
        begin++;
        length--;
    }
    while (length > 0 && providers[begin + length - 1] == ' ')
        length--;
    *out = (kelp_str){providers + begin, length};
    return true;
}

/* Adds the provider of this name: a registered one, or the operators of a library. */
static kelp_status *add_named(kelp_opset_choice *choice, const char *providers, kelp_str name,
                              kelp_arena *arena) {
    kelp_opset_entry *entry = find_entry(choice->registry, name);
    kelp_status *reason = NULL;
    if (entry == NULL) {
        const char *copy = kelp_arena_strndup(arena, name.data, name.length);
        if (copy == NULL)
            return kelp_status_oom();
        reason = kelp_opset_search(choice->registry, copy, &entry);
    }
    if (entry == NULL && kelp_status_code(reason) != KELP_RESOURCE_EXHAUSTED) {
        kelp_status *unknown = unknown_provider(choice->registry, providers, name, reason);
        kelp_status_free(reason);
        return unknown;
    }
    if (reason != NULL)
        return reason;
    return kelp_opset_choice_add(choice, arena, entry);
}

kelp_status *kelp_opset_choose(kelp_opset_registry *registry, const char *providers,
                               const kelp_graph *graph, kelp_arena *arena, kelp_opset_choice *out) {
    *out = (kelp_opset_choice){.registry = registry, .named = providers != NULL, .searched = ""};
    kelp_str name;
    for (size_t at = 0; providers != NULL && next_name(providers, &at, &name);)
        KELP_TRY(add_named(out, providers, name, arena));
    if (providers != NULL)
        return NULL;
    for (size_t i = registry->count; i > 0; i--)
        if ((registry->entries[i - 1]->table.flags & KELP_OPSET_BY_NAME) == 0)
            KELP_TRY(kelp_opset_choice_add(out, arena, registry->entries[i - 1]));
    return kelp_opset_search_domains(graph, arena, out);
}

bool kelp_opset_choice_find(const kelp_opset_choice *choice, const kelp_node *node,
                            kelp_opset_match *out) {
    for (size_t i = 0; i < choice->count; i++) {
        const kelp_opset_entry *entry = choice->entries[i];
        const kelp_opset_link *link = kelp_opset_entry_find(entry, node, NULL);
        if (link == NULL)
            continue;
        *out = (kelp_opset_match){entry->backend, entry->self, link->op, choice->registry};
        return true;
    }
    return false;
}

bool kelp_opset_entry_covers(const kelp_opset_entry *entry, const kelp_node *node) {
    return kelp_opset_entry_find(entry, node, NULL) != NULL ||
           (entry->table.covers != NULL && entry->table.covers(entry->self, node));
}

bool kelp_opset_takes_subgraphs(const kelp_opset_entry *entry) {
    return entry->table.run_subgraph != NULL || entry->table.execute_graph != NULL;
}

/* ---- results in flight ---- */
void kelp_opset_set_max_pending(kelp_opset_registry *registry, uint32_t max_pending) {
    registry->max_pending = max_pending > 0 ? max_pending : KELP_OPSET_MAX_PENDING;
}

kelp_status *kelp_opset_begin_pending(kelp_opset_registry *registry) {
    uint32_t before = atomic_fetch_add_explicit(&registry->pending, 1, memory_order_relaxed);
    if (before < registry->max_pending)
        return NULL;
    kelp_opset_end_pending(registry);
    return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                      "%u results are already in flight, which is the limit",
                      registry->max_pending);
}

void kelp_opset_end_pending(kelp_opset_registry *registry) {
    uint32_t before = atomic_fetch_sub_explicit(&registry->pending, 1, memory_order_relaxed);
    KELP_ASSERT(before > 0);
    (void)before;
}
