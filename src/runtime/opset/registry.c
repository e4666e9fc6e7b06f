/* SPDX-License-Identifier: Apache-2.0 */
/* Registers providers of operators, checks their tables, and finds the provider of a node. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/checked.h"
#include "graph/ir.h"
#include "runtime/opset/bridge.h"
#include "runtime/opset/registry.h"

#include <stddef.h>
#include <string.h>

static const char *const floor_ops[KELP_OPSET_FLOOR_COUNT] = {
    "Add",        "Sub",       "Mul",       "Div",       "Neg",       "Abs",
    "Sqrt",       "Pow",       "Exp",       "Log",       "MatMul",    "ReduceSum",
    "ReduceMean", "ReduceMax", "ReduceMin", "Reshape",   "Transpose", "Concat",
    "Slice",      "Split",     "Squeeze",   "Unsqueeze", "Identity",  "Cast",
    "Equal",      "Greater",   "Less",      "Where",     "Constant",  "Gather"};

const char *const *kelp_opset_floor(void) {
    return floor_ops;
}

kelp_status *kelp_opset_registry_create(kelp_allocator allocator, kelp_opset_registry **out) {
    KELP_TRY(KELP_NEW(allocator, kelp_opset_registry, out));
    (*out)->allocator = allocator;
    (*out)->max_pending = KELP_OPSET_MAX_PENDING;
    if (pthread_mutex_init(&(*out)->mutex, NULL) != 0) {
        kelp_free(allocator, *out, sizeof **out);
        *out = NULL;
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a mutex");
    }
    return NULL;
}

static void destroy_entry(kelp_allocator allocator, kelp_opset_entry *e) {
    kelp_arena_deinit(&e->signatures);
    kelp_free(allocator, e->links, e->link_count * sizeof *e->links);
    kelp_free(allocator, e, sizeof *e);
}

static void destroy_entries(kelp_opset_registry *registry, kelp_opset_entry **entries, size_t count,
                            size_t capacity) {
    for (size_t i = count; i > 0; i--) {
        if (entries[i - 1]->backend->destroy != NULL)
            entries[i - 1]->backend->destroy(entries[i - 1]->self);
        destroy_entry(registry->allocator, entries[i - 1]);
    }
    kelp_free(registry->allocator, entries, capacity * sizeof *entries);
}

void kelp_opset_registry_destroy(kelp_opset_registry *registry) {
    if (registry == NULL)
        return;
    destroy_entries(registry, registry->found, registry->found_count, registry->found_capacity);
    destroy_entries(registry, registry->entries, registry->count, registry->capacity);
    if (registry->source != NULL)
        registry->source->destroy(registry->source_self);
    pthread_mutex_destroy(&registry->mutex);
    kelp_free(registry->allocator, registry->rows, registry->row_capacity * sizeof *registry->rows);
    kelp_free(registry->allocator, registry, sizeof *registry);
}

static kelp_status *add_row(kelp_opset_registry *registry, const char *name, kelp_provider **out) {
    KELP_TRY(kelp_grow(registry->allocator, (void **)&registry->rows, &registry->row_capacity,
                       registry->row_count + 1, sizeof *registry->rows));
    *out = &registry->rows[registry->row_count++];
    **out = (kelp_provider){.name = name};
    return NULL;
}

kelp_status *kelp_registry_row(kelp_opset_registry *registry, const char *name,
                               kelp_provider **out) {
    for (size_t i = registry->row_count; i > 0; i--)
        if (strcmp(registry->rows[i - 1].name, name) == 0) {
            *out = &registry->rows[i - 1];
            return NULL;
        }
    return add_row(registry, name, out);
}

static bool same_domain(const char *a, const char *b) {
    if (strcmp(a, "ai.onnx") == 0)
        a = "";
    if (strcmp(b, "ai.onnx") == 0)
        b = "";
    return strcmp(a, b) == 0;
}

/* ---- operators by record, or by name if they have no record ---- */
static uint32_t bucket_of(const char *name) {
    uint32_t hash = 0;
    for (; *name != '\0'; name++)
        hash = hash * 31 + (uint8_t)*name;
    return (hash ^ hash >> 8) % KELP_OPSET_BUCKETS;
}

static uint32_t *first_of(kelp_opset_entry *e, const char *domain, const char *name) {
    const kelp_operator *op = kelp_operator_find(
        same_domain(domain, "") ? (kelp_str){0} : kelp_str_from(domain), kelp_str_from(name));
    return op != NULL ? &e->first_by_id[op->id] : &e->first_by_name[bucket_of(name)];
}

static kelp_status *parse_signature(kelp_opset_entry *e, kelp_opset_link *link) {
    kelp_signature *signature = KELP_ARENA_NEW(&e->signatures, kelp_signature);
    if (signature == NULL)
        return kelp_status_oom();
    link->signature = signature;
    return KELP_ANNOTATE(kelp_signature_parse(&e->signatures, link->op->signature, signature),
                         "cannot register provider '%s': operator '%s::%s' version %d",
                         e->table.name, *link->opset->domain ? link->opset->domain : "ai.onnx",
                         link->op->name, link->op->since_version);
}

/* Chains keep the order of declaration: the first operator that covers a node is chosen. */
static kelp_status *index_ops(kelp_allocator allocator, kelp_opset_entry *e) {
    size_t count = e->atomic->op_count, at;
    for (size_t k = 0; k < e->extension_count; k++)
        count += e->extensions[k].op_count;
    KELP_TRY(kelp_alloc_zero(allocator, count + 1, sizeof *e->links, (void **)&e->links));
    at = e->link_count = count + 1;
    for (size_t k = e->extension_count + 1; k-- > 0;) {
        const kelp_opset *opset = k > 0 ? &e->extensions[k - 1] : e->atomic;
        for (size_t i = opset->op_count; i-- > 0;) {
            uint32_t *first = first_of(e, opset->domain, opset->ops[i].name);
            e->links[--at] = (kelp_opset_link){opset, &opset->ops[i], NULL, *first};
            if (opset->ops[i].signature != NULL)
                KELP_TRY(parse_signature(e, &e->links[at]));
            *first = (uint32_t)at;
        }
    }
    KELP_ASSERT(at == 1); /* link 0 ends chains */
    return NULL;
}

/* Returns true if some version of the operator is covered: the floor does not require a version. */
static bool has_name(const kelp_opset *opset, const char *name) {
    for (size_t i = 0; i < opset->op_count; i++)
        if (strcmp(opset->ops[i].name, name) == 0)
            return true;
    return false;
}

static kelp_status *check_floor(kelp_allocator allocator, const kelp_opset_backend *backend,
                                const kelp_opset *atomic) {
    kelp_buf missing;
    kelp_buf_init(&missing, allocator);
    int count = 0;
    for (int i = 0; i < KELP_OPSET_FLOOR_COUNT; i++) {
        /* an opset of another domain covers nothing of ai.onnx */
        if (same_domain(atomic->domain, "") && has_name(atomic, floor_ops[i]))
            continue;
        kelp_buf_printf(&missing, "%s%s", count++ ? ", " : "", floor_ops[i]);
    }
    kelp_status *status = kelp_buf_status(&missing);
    if (status == NULL && count > 0)
        status = KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "cannot register provider '%s': its atomic opset (domain '%s', "
            "version %d) lacks %d of the %d operators that every provider must cover: %s",
            backend->name, atomic->domain, atomic->version, count, KELP_OPSET_FLOOR_COUNT,
            kelp_buf_cstr(&missing));
    kelp_buf_deinit(&missing);
    return status;
}

static const char *op_without_kernel(const kelp_opset *opset) {
    for (size_t i = 0; i < opset->op_count; i++)
        if (opset->ops[i].kernel == NULL)
            return opset->ops[i].name;
    return NULL;
}

/* Size of the table in the first version. */
#define FIRST_TABLE_BYTES offsetof(kelp_opset_backend, flags)

static kelp_status *check_table(const kelp_opset_backend *backend) {
    if (backend->abi_version != KELP_OPSET_ABI_VERSION)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "cannot register a provider of operators of ABI version %u: this Kelp supports "
            "version %d",
            backend->abi_version, KELP_OPSET_ABI_VERSION);
    if (backend->struct_size < FIRST_TABLE_BYTES || backend->name == NULL)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "cannot register a provider of operators: its table has %u bytes (expected at "
            "least %zu) and name '%s'",
            backend->struct_size, FIRST_TABLE_BYTES,
            backend->struct_size >= FIRST_TABLE_BYTES && backend->name != NULL ? backend->name
                                                                               : "(none)");
    return NULL;
}

static kelp_status *check_entry(const kelp_opset_registry *registry, kelp_opset_entry *e) {
    static const kelp_opset no_opset = {.domain = ""};
    const kelp_opset_backend *table = &e->table;
    if (table->atomic_opset == NULL && table->extension_opsets == NULL && table->covers == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register provider '%s': it has neither atomic_opset nor "
                          "extension_opsets nor covers",
                          table->name);
    e->atomic = &no_opset;
    if (table->atomic_opset != NULL) {
        e->atomic = table->atomic_opset(e->self);
        if (e->atomic == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "cannot register provider '%s': it declares no atomic opset",
                              table->name);
        KELP_TRY(check_floor(registry->allocator, table, e->atomic));
    }
    if (table->extension_opsets != NULL)
        e->extensions = table->extension_opsets(e->self, &e->extension_count);
    if (table->covers != NULL && !kelp_opset_takes_subgraphs(e))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register provider '%s': it covers nodes in subgraphs, and "
                          "has neither run_subgraph nor execute_graph",
                          table->name);
    bool needs_release = table->materialize != NULL;
    bool may_release = needs_release || table->placements != 0;
    if (table->release_tensor != NULL ? !may_release : needs_release)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot register provider '%s': it has %s",
                          table->name,
                          needs_release ? "materialize without release_tensor"
                                        : "release_tensor without materialize and placements");
    if (table->execute_graph == NULL && table->dispatch == NULL) {
        const char *name = op_without_kernel(e->atomic);
        for (size_t i = 0; name == NULL && i < e->extension_count; i++)
            name = op_without_kernel(&e->extensions[i]);
        if (name != NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "cannot register provider '%s': it implements neither "
                              "execute_graph nor dispatch, and operator '%s' has no kernel",
                              table->name, name);
    }
    return NULL;
}

/* Creates an entry that is not part of the registry. */
static kelp_status *new_entry(kelp_opset_registry *registry, const kelp_opset_backend *backend,
                              void *self, kelp_opset_entry **out) {
    KELP_TRY(check_table(backend));
    kelp_opset_entry *entry = NULL;
    KELP_TRY(KELP_NEW(registry->allocator, kelp_opset_entry, &entry));
    kelp_arena_init(&entry->signatures, registry->allocator, 0);
    entry->registry = registry;
    entry->backend = backend;
    entry->self = self;
    memcpy(&entry->table, backend, KELP_MIN(backend->struct_size, sizeof entry->table));
    kelp_status *status = check_entry(registry, entry);
    if (status == NULL)
        status = index_ops(registry->allocator, entry);
    if (status != NULL) {
        destroy_entry(registry->allocator, entry);
        return status;
    }
    *out = entry;
    return NULL;
}

kelp_status *kelp_opset_register(kelp_opset_registry *registry, const kelp_opset_backend *backend,
                                 void *self) {
    kelp_opset_entry *entry = NULL;
    kelp_provider *row = NULL;
    KELP_TRY(new_entry(registry, backend, self, &entry));
    kelp_status *status =
        kelp_grow(registry->allocator, (void **)&registry->entries, &registry->capacity,
                  registry->count + 1, sizeof *registry->entries);
    if (status == NULL)
        status = kelp_registry_row(registry, backend->name, &row);
    if (status == NULL && row->operators != NULL) /* the newer provider of a name has priority */
        status = add_row(registry, backend->name, &row);
    if (status != NULL) {
        destroy_entry(registry->allocator, entry);
        return status;
    }
    KELP_ASSERT(row->operators == NULL && registry->count < registry->capacity);
    row->operators = backend;
    registry->entries[registry->count++] = entry;
    return NULL;
}

/* ---- providers of a source ---- */
void kelp_opset_set_source(kelp_opset_registry *registry, const kelp_opset_source *source,
                           void *take_self) {
    KELP_ASSERT(registry->source == NULL);
    registry->source = source;
    registry->source_self = take_self;
}

kelp_status *kelp_opset_register_kernels(kelp_opset_registry *registry, const char *path) {
    const kelp_opset_backend *backend = NULL;
    void *self = NULL;
    if (registry->source == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "this runtime has no kernels");
    KELP_TRY(registry->source->load(registry->source_self, path, &backend, &self));
    return kelp_opset_register(registry, backend, self);
}

static kelp_status *search_locked(kelp_opset_registry *registry, const char *name,
                                  kelp_opset_entry **out) {
    const kelp_opset_backend *backend = NULL;
    void *self = NULL;
    for (size_t i = 0; i < registry->found_count; i++)
        if (strcmp(registry->found[i]->backend->name, name) == 0) {
            *out = registry->found[i];
            return NULL;
        }
    KELP_TRY(kelp_grow(registry->allocator, (void **)&registry->found, &registry->found_capacity,
                       registry->found_count + 1, sizeof(kelp_opset_entry *)));
    KELP_TRY(registry->source->find(registry->source_self, name, &backend, &self));
    if (backend == NULL)
        return NULL;
    KELP_TRY(new_entry(registry, backend, self, out));
    registry->found[registry->found_count++] = *out;
    return NULL;
}

kelp_status *kelp_opset_search(kelp_opset_registry *registry, const char *name,
                               kelp_opset_entry **out) {
    *out = NULL;
    if (registry->source == NULL)
        return NULL;
    pthread_mutex_lock(&registry->mutex);
    kelp_status *status = search_locked(registry, name, out);
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

bool kelp_opset_declares(const kelp_opset_registry *registry, const char *domain) {
    kelp_opset_declared declared;
    for (size_t i = 0; kelp_opset_registry_at(registry, i, &declared); i++)
        if (declared.opset->op_count > 0 && same_domain(declared.opset->domain, domain))
            return true;
    return false;
}

/* An operator is unchanged in newer declared versions of its domain that do not list it: a plug-in
 * with a newer ai.onnx needs to declare only what changed. */
static bool is_unchanged(const kelp_opset_entry *entry, const kelp_opset *of,
                         const kelp_opset_op *op, int64_t version) {
    kelp_opset_declared declared;
    bool known = false;
    if (op->until_version != 0)
        return false;
    for (size_t i = 0; kelp_opset_registry_at(entry->registry, i, &declared); i++) {
        const kelp_opset *newer = declared.opset;
        if (newer->version <= of->version || !same_domain(newer->domain, of->domain))
            continue;
        if (has_name(newer, op->name))
            return false;
        known = known || newer->version >= version;
    }
    return known;
}

static bool is_covered_by(const kelp_opset_entry *entry, const kelp_opset *opset,
                          const kelp_opset_op *op, int64_t version) {
    if (version < op->since_version)
        return false;
    return version <= (op->until_version ? op->until_version : opset->version) ||
           is_unchanged(entry, opset, op, version);
}

/* Compares names: the chain of a custom operator has other operators of the same hash. */
static bool has_operator(const kelp_opset *opset, const kelp_opset_op *op,
                         const kelp_operator *of) {
    return strcmp(op->name, of->name) == 0 && same_domain(opset->domain, of->domain);
}

/* Returns the next declaration that covers the node's operator and version, from chain position
 * `*inout_at` on, or NULL. Advances the position. */
static const kelp_opset_link *next_link(const kelp_opset_entry *entry, const kelp_node *node,
                                        uint32_t *inout_at) {
    bool custom = node->op->id == KELP_OPERATOR_COUNT;
    while (*inout_at != 0) {
        KELP_ASSERT(*inout_at < entry->link_count);
        const kelp_opset_link *link = &entry->links[*inout_at];
        *inout_at = link->next;
        if ((!custom || has_operator(link->opset, link->op, node->op)) &&
            is_covered_by(entry, link->opset, link->op, node->opset_version))
            return link;
    }
    return NULL;
}

static uint32_t first_link(const kelp_opset_entry *entry, const kelp_node *node) {
    KELP_ASSERT(node->op->id <= KELP_OPERATOR_COUNT);
    return node->op->id == KELP_OPERATOR_COUNT ? entry->first_by_name[bucket_of(node->op->name)]
                                               : entry->first_by_id[node->op->id];
}

const kelp_opset_link *kelp_opset_entry_find(const kelp_opset_entry *entry, const kelp_node *node,
                                             kelp_signature_problem *out_problem) {
    uint32_t at = first_link(entry, node);
    for (;;) {
        kelp_signature_facts facts;
        kelp_signature_problem problem;
        const kelp_opset_link *link = next_link(entry, node, &at);
        if (link == NULL || link->signature == NULL ||
            kelp_node_matches(node, link->signature, &facts, &problem))
            return link;
        if (out_problem != NULL)
            *out_problem = problem;
    }
}

const kelp_signature *kelp_opset_choice_signature(void *choice, const kelp_node *node) {
    const kelp_opset_choice *c = choice;
    const kelp_opset_link *declared = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const kelp_opset_link *link = kelp_opset_entry_find(c->entries[i], node, NULL);
        uint32_t at = first_link(c->entries[i], node);
        if (link != NULL)
            return link->signature;
        if (declared == NULL)
            declared = next_link(c->entries[i], node, &at);
    }
    return declared != NULL ? declared->signature : NULL;
}

const kelp_opset_entry *kelp_opset_match_entry(const kelp_opset_match *match) {
    kelp_opset_registry *registry = match->registry;
    const kelp_opset_entry *entry = NULL;
    for (size_t i = registry->count; entry == NULL && i > 0; i--)
        if (registry->entries[i - 1]->backend == match->backend &&
            registry->entries[i - 1]->self == match->self)
            entry = registry->entries[i - 1];
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; entry == NULL && i < registry->found_count; i++)
        if (registry->found[i]->backend == match->backend)
            entry = registry->found[i];
    pthread_mutex_unlock(&registry->mutex);
    KELP_ASSERT(entry != NULL);
    return entry;
}

const kelp_signature *kelp_opset_entry_signature(const kelp_opset_entry *entry,
                                                 const kelp_opset_op *op, const kelp_node *node) {
    uint32_t at = first_link(entry, node);
    const kelp_opset_link *link = next_link(entry, node, &at);
    while (link != NULL && link->op != op)
        link = next_link(entry, node, &at);
    return link != NULL ? link->signature : NULL;
}

static bool find_found(kelp_opset_registry *registry, const kelp_node *node,
                       kelp_opset_match *out) {
    const kelp_opset_link *link = NULL;
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; link == NULL && i < registry->found_count; i++) {
        const kelp_opset_entry *entry = registry->found[i];
        link = kelp_opset_entry_find(entry, node, NULL);
        if (link != NULL)
            *out = (kelp_opset_match){entry->backend, entry->self, link->op, registry};
    }
    pthread_mutex_unlock(&registry->mutex);
    return link != NULL;
}

bool kelp_opset_find(const kelp_opset_registry *registry, const kelp_node *node,
                     kelp_opset_match *out) {
    for (size_t i = registry->count; i > 0; i--) {
        const kelp_opset_entry *entry = registry->entries[i - 1];
        const kelp_opset_link *link = (entry->table.flags & KELP_OPSET_BY_NAME) == 0
                                          ? kelp_opset_entry_find(entry, node, NULL)
                                          : NULL;
        if (link == NULL)
            continue;
        *out = (kelp_opset_match){entry->backend, entry->self, link->op,
                                  (kelp_opset_registry *)(uintptr_t)registry};
        return true;
    }
    return find_found((kelp_opset_registry *)(uintptr_t)registry, node, out);
}

bool kelp_opset_registry_at(const kelp_opset_registry *registry, size_t index,
                            kelp_opset_declared *out) {
    for (size_t i = 0; i < registry->count; i++) {
        const kelp_opset_entry *e = registry->entries[i];
        if (index <= e->extension_count) {
            *out = (kelp_opset_declared){e->backend,
                                         index == 0 ? e->atomic : &e->extensions[index - 1]};
            return true;
        }
        index -= e->extension_count + 1;
    }
    return false;
}
