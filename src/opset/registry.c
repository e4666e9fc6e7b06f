/* SPDX-License-Identifier: Apache-2.0 */
/* The opset backends that a runtime knows, what each may not lack, and who covers a node. */
#include "base/alloc.h"
#include "base/buf.h"
#include "opset/bridge.h"

#include <string.h>

static const char *const floor_ops[KELP_OPSET_FLOOR_COUNT] = {
    "Add",        "Sub",       "Mul",       "Div",       "Neg",       "Abs",
    "Sqrt",       "Pow",       "Exp",       "Log",       "MatMul",    "ReduceSum",
    "ReduceMean", "ReduceMax", "ReduceMin", "Reshape",   "Transpose", "Concat",
    "Slice",      "Split",     "Squeeze",   "Unsqueeze", "Identity",  "Cast",
    "Equal",      "Greater",   "Less",      "Where",     "Constant",  "Gather"};

typedef struct entry {
    const kelp_opset_backend *backend;
    void *self;
    const kelp_opset *atomic;
    const kelp_opset *extensions;
    size_t extension_count;
} entry;

struct kelp_opset_registry {
    kelp_allocator allocator;
    entry *entries;
    size_t count, capacity;
};

const char *const *kelp_opset_floor(void) {
    return floor_ops;
}

kelp_status *kelp_opset_registry_create(kelp_allocator allocator, kelp_opset_registry **out) {
    KELP_TRY(KELP_NEW(allocator, kelp_opset_registry, out));
    (*out)->allocator = allocator;
    return NULL;
}

void kelp_opset_registry_destroy(kelp_opset_registry *registry) {
    if (registry == NULL)
        return;
    for (size_t i = registry->count; i > 0; i--) {
        entry *e = &registry->entries[i - 1];
        if (e->backend->destroy != NULL)
            e->backend->destroy(e->self);
    }
    kelp_free(registry->allocator, registry->entries, registry->capacity * sizeof(entry));
    kelp_free(registry->allocator, registry, sizeof *registry);
}

static bool same_domain(const char *a, const char *b) {
    if (strcmp(a, "ai.onnx") == 0)
        a = "";
    if (strcmp(b, "ai.onnx") == 0)
        b = "";
    return strcmp(a, b) == 0;
}

static const kelp_opset_op *find_op(const kelp_opset *opset, const char *domain, const char *name,
                                    int64_t version) {
    if (!same_domain(opset->domain, domain))
        return NULL;
    for (size_t i = 0; i < opset->op_count; i++) {
        const kelp_opset_op *op = &opset->ops[i];
        if (version >= op->since_version &&
            version <= (op->until_version ? op->until_version : opset->version) &&
            strcmp(op->name, name) == 0)
            return op;
    }
    return NULL;
}

/* A name that some version of the opset covers: the floor asks for the operator, not for one
 * version of it. */
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
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "cannot register opset backend '%s': its atomic opset (domain '%s', "
                       "version %d) misses %d of the %d operators that every backend covers: %s",
                       backend->name, atomic->domain, atomic->version, count,
                       KELP_OPSET_FLOOR_COUNT, kelp_buf_cstr(&missing));
    kelp_buf_deinit(&missing);
    return status;
}

static const char *op_without_kernel(const kelp_opset *opset) {
    for (size_t i = 0; i < opset->op_count; i++)
        if (opset->ops[i].kernel == NULL)
            return opset->ops[i].name;
    return NULL;
}

kelp_status *kelp_opset_register(kelp_opset_registry *registry, const kelp_opset_backend *backend,
                                 void *self) {
    if (backend->abi_version != KELP_OPSET_ABI_VERSION)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register an opset backend of ABI version %u: this Kelp speaks "
                          "version %d",
                          backend->abi_version, KELP_OPSET_ABI_VERSION);
    if (backend->struct_size < sizeof *backend || backend->name == NULL ||
        (backend->atomic_opset == NULL && backend->extension_opsets == NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register an opset backend: its table has %u bytes (expected at "
                          "least %zu), name '%s' and %s",
                          backend->struct_size, sizeof *backend,
                          backend->name ? backend->name : "(none)",
                          backend->atomic_opset || backend->extension_opsets
                              ? "opsets"
                              : "neither atomic_opset nor extension_opsets");
    static const kelp_opset no_opset = {.domain = ""};
    entry e = {.backend = backend, .self = self, .atomic = &no_opset};
    if (backend->atomic_opset != NULL) {
        e.atomic = backend->atomic_opset(self);
        if (e.atomic == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "cannot register opset backend '%s': it declares no atomic opset",
                              backend->name);
        KELP_TRY(check_floor(registry->allocator, backend, e.atomic));
    }
    if (backend->extension_opsets != NULL)
        e.extensions = backend->extension_opsets(self, &e.extension_count);
    if (backend->execute_graph == NULL && backend->dispatch == NULL) {
        const char *name = op_without_kernel(e.atomic);
        for (size_t i = 0; name == NULL && i < e.extension_count; i++)
            name = op_without_kernel(&e.extensions[i]);
        if (name != NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "cannot register opset backend '%s': it overrides neither "
                              "execute_graph nor dispatch, and operator '%s' has no kernel",
                              backend->name, name);
    }
    KELP_TRY(kelp_grow(registry->allocator, (void **)&registry->entries, &registry->capacity,
                       registry->count + 1, sizeof(entry)));
    registry->entries[registry->count++] = e;
    return NULL;
}

bool kelp_opset_find(const kelp_opset_registry *registry, const kelp_node *node,
                     kelp_opset_match *out) {
    const char *domain = kelp_node_domain(node);
    const char *name = kelp_node_op_type(node);
    int64_t version = kelp_node_opset_version(node);
    for (size_t i = registry->count; i > 0; i--) {
        const entry *e = &registry->entries[i - 1];
        const kelp_opset_op *op = find_op(e->atomic, domain, name, version);
        for (size_t k = 0; op == NULL && k < e->extension_count; k++)
            op = find_op(&e->extensions[k], domain, name, version);
        if (op != NULL) {
            *out = (kelp_opset_match){e->backend, e->self, op};
            return true;
        }
    }
    return false;
}

bool kelp_opset_registry_at(const kelp_opset_registry *registry, size_t index,
                            kelp_opset_declared *out) {
    for (size_t i = 0; i < registry->count; i++) {
        const entry *e = &registry->entries[i];
        if (index <= e->extension_count) {
            *out = (kelp_opset_declared){e->backend,
                                         index == 0 ? e->atomic : &e->extensions[index - 1]};
            return true;
        }
        index -= e->extension_count + 1;
    }
    return false;
}
