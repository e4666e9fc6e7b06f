/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns subgraphs of a block to providers, and replaces each by one node. */
#include "runtime/partition/partition.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "graph/load.h"
#include "runtime/partition/regions.h"

#include <string.h>

/* The state of partitioning for one provider. */
typedef struct partition_pass {
    kelp_partition *partition;
    kelp_graph *graph;
    kelp_block *block;
    const kelp_op_env *env;
    const kelp_logger *logger;
    size_t at; /* the provider's index in the choice */
    const kelp_opset_entry *entry;
    kelp_arena arena;  /* scratch memory */
    bool *candidates;  /* by node */
    bool *required;    /* by node: no other chosen provider covers it */
    uint32_t *of;      /* by node: its region */
    uint32_t *uses_in; /* by value: uses inside the current region */
    kelp_value **made; /* by value: its copy in the current body */
    size_t taken;
    bool left; /* a region with required nodes was not taken */
} partition_pass;

/* A region: the nodes that may become one subgraph. */
typedef struct region {
    uint32_t number;
    const kelp_node **nodes;
    size_t node_count;
    const kelp_value **inputs, **outputs;
    size_t input_count, output_count;
    size_t constant_bytes;
    uint32_t required;
} region;

kelp_status *kelp_partition_init(kelp_partition *partition, kelp_allocator allocator,
                                 kelp_opset_registry *registry, const char *providers,
                                 const kelp_graph *graph) {
    *partition = (kelp_partition){.allocator = allocator};
    partition->last = &partition->first;
    kelp_arena_init(&partition->arena, allocator, 1 << 10);
    return kelp_opset_choose(registry, providers, graph, &partition->arena, &partition->choice);
}

void kelp_partition_deinit(kelp_partition *partition) {
    if (partition->last == NULL)
        return;
    for (kelp_subgraph *item = partition->first; item != NULL; item = item->next) {
        if (item->entry->table.release_subgraph != NULL)
            item->entry->table.release_subgraph(item->entry->self, item->state);
        kelp_graph_release(item->graph);
    }
    kelp_arena_deinit(&partition->arena);
}

bool kelp_is_subgraph_node(const kelp_node *node) {
    return node->op == KELP_OPERATOR(RUNTIME, BackendSubgraph);
}

kelp_subgraph *kelp_partition_find(const kelp_partition *partition, const kelp_node *node) {
    kelp_subgraph *item = partition->first;
    while (item != NULL && item->node != node)
        item = item->next;
    return item;
}

/* ---- candidates ---- */
static bool owns_blocks(const kelp_node *node) {
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        if (attr->blocks != NULL)
            return true;
    return false;
}

/* If the engine's options give an order of preference, a node is required if no later provider
 * covers it, otherwise if no other provider does. */
static bool is_required(const partition_pass *t, const kelp_node *node) {
    const kelp_opset_choice *choice = &t->partition->choice;
    for (size_t i = choice->named ? t->at + 1 : 0; i < choice->count; i++)
        if (i != t->at && kelp_opset_entry_find(choice->entries[i], node, NULL) != NULL)
            return false;
    return true;
}

static bool may_take(const partition_pass *t, const kelp_node *node) {
    if (owns_blocks(node) || kelp_is_subgraph_node(node) || node->output_count == 0)
        return false;
    /* A graph imports one version of a domain; inlined functions may use others. */
    if (kelp_graph_opset_version(t->graph, node->op->domain) != node->opset_version)
        return false;
    return kelp_opset_entry_covers(t->entry, node);
}

static kelp_status *find_candidates(partition_pass *t) {
    size_t nodes = t->block->node_count;
    bool **const arrays[] = {&t->candidates, &t->required};
    for (size_t i = 0; i < KELP_COUNT(arrays); i++) {
        *arrays[i] = KELP_ARENA_ARRAY(&t->arena, nodes + 1, bool);
        if (*arrays[i] == NULL)
            return kelp_status_oom();
    }
    t->uses_in = KELP_ARENA_ARRAY(&t->arena, t->block->value_count + 1, uint32_t);
    t->made = KELP_ARENA_ARRAY(&t->arena, t->block->value_count + 1, kelp_value *);
    if (t->uses_in == NULL || t->made == NULL)
        return kelp_status_oom();
    bool takes_all = t->partition->choice.named || t->entry->table.cost_ns != NULL;
    for (size_t n = 0; n < nodes; n++) {
        const kelp_node *node = t->block->nodes[n];
        if (!may_take(t, node))
            continue;
        t->required[n] = is_required(t, node);
        t->candidates[n] = takes_all || t->required[n];
    }
    return NULL;
}

/* ---- a region's border ---- */
static size_t count_inputs(const region *r, size_t *out_outputs) {
    size_t inputs = 0;
    *out_outputs = 0;
    for (size_t k = 0; k < r->node_count; k++) {
        inputs += r->nodes[k]->input_count;
        *out_outputs += r->nodes[k]->output_count;
    }
    return inputs;
}

static bool is_inside(const partition_pass *t, const region *r, const kelp_value *value) {
    return value->block == t->block && value->producer != NULL && value->constant == NULL &&
           t->of[value->producer->index] == r->number;
}

static kelp_status *find_border(partition_pass *t, region *r) {
    size_t max_outputs = 0, max_inputs = count_inputs(r, &max_outputs);
    r->inputs = KELP_ARENA_ARRAY(&t->arena, max_inputs + 1, const kelp_value *);
    r->outputs = KELP_ARENA_ARRAY(&t->arena, max_outputs + 1, const kelp_value *);
    if (r->inputs == NULL || r->outputs == NULL)
        return kelp_status_oom();
    for (size_t k = 0; k < r->node_count; k++)
        for (size_t i = 0; i < r->nodes[k]->input_count; i++) {
            const kelp_value *value = r->nodes[k]->inputs[i];
            if (value == NULL || t->uses_in[value->id]++ > 0)
                continue;
            if (value->constant != NULL)
                r->constant_bytes += kelp_tensor_bytes(value->constant);
            else if (!is_inside(t, r, value))
                r->inputs[r->input_count++] = value;
        }
    for (size_t k = 0; k < r->node_count; k++)
        for (size_t i = 0; i < r->nodes[k]->output_count; i++) {
            const kelp_value *value = r->nodes[k]->outputs[i];
            if (value != NULL && value->constant == NULL &&
                value->use_count > t->uses_in[value->id])
                r->outputs[r->output_count++] = value;
        }
    for (size_t k = 0; k < r->node_count; k++) /* for the next region */
        for (size_t i = 0; i < r->nodes[k]->input_count; i++)
            if (r->nodes[k]->inputs[i] != NULL)
                t->uses_in[r->nodes[k]->inputs[i]->id] = 0;
    return NULL;
}

static kelp_status *describe(partition_pass *t, uint32_t number, region *out) {
    *out = (region){.number = number};
    for (size_t n = 0; n < t->block->node_count; n++)
        out->node_count += t->of[n] == number;
    out->nodes = KELP_ARENA_ARRAY(&t->arena, out->node_count + 1, const kelp_node *);
    if (out->nodes == NULL)
        return kelp_status_oom();
    size_t count = 0;
    for (size_t n = 0; n < t->block->node_count; n++)
        if (t->of[n] == number) {
            out->nodes[count++] = t->block->nodes[n];
            out->required += t->required[n];
        }
    return find_border(t, out);
}

/* ---- cost ---- */
static bool is_profitable(const partition_pass *t, const region *r) {
    if (t->entry->table.cost_ns == NULL)
        return true;
    kelp_opset_region seen = {.struct_size = sizeof seen,
                              .required = r->required,
                              .nodes = r->nodes,
                              .node_count = r->node_count,
                              .input_count = r->input_count,
                              .output_count = r->output_count,
                              .constant_bytes = r->constant_bytes};
    for (size_t i = 0; i < r->input_count; i++)
        seen.border_bytes += kelp_estimate_bytes(r->inputs[i]);
    for (size_t i = 0; i < r->output_count; i++)
        seen.border_bytes += kelp_estimate_bytes(r->outputs[i]);
    for (size_t k = 0; k < r->node_count; k++) {
        double operations = 0, ns = 0;
        kelp_estimate_node(r->nodes[k], &operations, &ns);
        seen.operations += operations;
        seen.elsewhere_ns += ns;
    }
    double cost = t->entry->table.cost_ns(t->entry->self, &seen);
    return (cost >= 0 && cost < seen.elsewhere_ns) || r->required == r->node_count;
}

/* ---- the body ---- */
static kelp_status *copy_value(kelp_block *body, const kelp_value *from, kelp_value **out) {
    KELP_TRY(kelp_block_add_value(body, from->name, out));
    (*out)->kind = from->kind;
    (*out)->dtype = from->dtype;
    (*out)->rank = from->rank;
    memcpy((*out)->shape, from->shape, sizeof from->shape);
    memcpy((*out)->symbols, from->symbols, sizeof from->symbols);
    (*out)->constant = from->constant;
    return NULL;
}

static kelp_status *map_value(partition_pass *t, kelp_block *body, const kelp_value *from,
                              kelp_value **out) {
    *out = NULL;
    if (from == NULL)
        return NULL;
    kelp_value **made = &t->made[from->id];
    if (*made == NULL)
        KELP_TRY(copy_value(body, from, made));
    *out = *made;
    return NULL;
}

static kelp_status *map_values(partition_pass *t, kelp_block *body, const kelp_value *const *from,
                               size_t count, kelp_value ***out) {
    *out = KELP_ARENA_ARRAY(&body->graph->arena, count + 1, kelp_value *);
    if (*out == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++)
        KELP_TRY(map_value(t, body, from[i], &(*out)[i]));
    return NULL;
}

static kelp_status *import_domain(kelp_graph *graph, const kelp_node *node, size_t capacity) {
    if (kelp_graph_opset_version(graph, node->op->domain) != 0)
        return NULL;
    if (graph->imports == NULL)
        graph->imports = KELP_ARENA_ARRAY(&graph->arena, capacity, kelp_opset_import);
    if (graph->imports == NULL)
        return kelp_status_oom();
    graph->imports[graph->import_count++] =
        (kelp_opset_import){node->op->domain, node->opset_version};
    return NULL;
}

static kelp_status *fill_body(partition_pass *t, const region *r, kelp_graph *graph) {
    kelp_block *body = graph->main;
    KELP_TRY(map_values(t, body, r->inputs, r->input_count, &body->inputs));
    for (size_t k = 0; k < r->node_count; k++) {
        const kelp_node *node = r->nodes[k];
        kelp_value **inputs = NULL, **outputs = NULL;
        KELP_TRY(map_values(t, body, (const kelp_value *const *)node->inputs, node->input_count,
                            &inputs));
        KELP_TRY(map_values(t, body, (const kelp_value *const *)node->outputs, node->output_count,
                            &outputs));
        KELP_TRY(import_domain(graph, node, t->graph->import_count + 1));
        KELP_TRY(kelp_block_add_node(body, node->op, node->opset_version, node->name, inputs,
                                     node->input_count, outputs, node->output_count,
                                     node->attributes, NULL));
    }
    KELP_TRY(map_values(t, body, r->outputs, r->output_count, &body->outputs));
    body->input_count = r->input_count;
    body->output_count = r->output_count;
    for (size_t i = 0; i < body->input_count; i++)
        body->inputs[i]->is_input = true;
    for (size_t i = 0; i < body->output_count; i++)
        body->outputs[i]->is_output = true;
    kelp_block_count_uses(body);
    return NULL;
}

static kelp_status *make_body(partition_pass *t, const region *r, kelp_graph **out) {
    kelp_graph *graph = NULL;
    KELP_TRY(kelp_graph_new(t->graph->allocator, &graph));
    memset(t->made, 0, (t->block->value_count + 1) * sizeof(kelp_value *));
    graph->info.ir_version = t->graph->info.ir_version;
    graph->info.producer_name = "kelp";
    graph->info.node_count = r->node_count;
    graph->info.label =
        kelp_arena_printf(&graph->arena, "%s: subgraph %zu, for '%s'", t->graph->info.label,
                          t->partition->count + 1, t->entry->backend->name);
    graph->main->name = kelp_arena_printf(&graph->arena, "%s_%zu", t->entry->backend->name,
                                          t->partition->count + 1);
    graph->info.graph_name = graph->main->name;
    kelp_status *status = graph->info.label == NULL || graph->main->name == NULL
                              ? kelp_status_oom()
                              : fill_body(t, r, graph);
    if (status != NULL) {
        kelp_graph_release(graph);
        return status;
    }
    *out = graph;
    return NULL;
}

/* ---- the node ---- */
static kelp_status *add_carrier(partition_pass *t, const region *r, kelp_subgraph *item) {
    kelp_arena *arena = &t->graph->arena;
    kelp_attr *body = KELP_ARENA_NEW(arena, kelp_attr);
    kelp_attr *provider = KELP_ARENA_NEW(arena, kelp_attr);
    kelp_block **blocks = KELP_ARENA_ARRAY(arena, 1, kelp_block *);
    kelp_node *node = NULL;
    const char *name = item->entry->backend->name;
    if (body == NULL || provider == NULL || blocks == NULL)
        return kelp_status_oom();
    blocks[0] = item->graph->main;
    *provider =
        (kelp_attr){.name = "provider", .type = KELP_ATTR_STRING, .s = {name, strlen(name)}};
    *body = (kelp_attr){
        .name = "body", .type = KELP_ATTR_GRAPH, .count = 1, .blocks = blocks, .next = provider};
    KELP_TRY(kelp_block_add_node(t->block, KELP_OPERATOR(RUNTIME, BackendSubgraph), 1,
                                 item->graph->main->name, (kelp_value *const *)r->inputs,
                                 r->input_count, (kelp_value *const *)r->outputs, r->output_count,
                                 body, &node));
    for (size_t k = 0; k < r->node_count; k++)
        ((kelp_node *)(uintptr_t)r->nodes[k])->removed = true;
    /* the position of its last node: keeps the order of the other nodes */
    node->index = r->nodes[r->node_count - 1]->index;
    item->node = node;
    return NULL;
}

static kelp_status *take(partition_pass *t, const region *r) {
    const kelp_opset_backend *table = &t->entry->table;
    kelp_partition *partition = t->partition;
    KELP_ASSERT(r->node_count > 0);
    kelp_subgraph *item = KELP_ARENA_NEW(&partition->arena, kelp_subgraph);
    if (item == NULL)
        return kelp_status_oom();
    item->entry = t->entry;
    item->registry = partition->choice.registry;
    KELP_TRY(make_body(t, r, &item->graph));
    kelp_status *status =
        table->prepare_subgraph != NULL
            ? table->prepare_subgraph(t->entry->self, t->env, item->graph, &item->state)
            : NULL;
    if (status != NULL) {
        kelp_graph_release(item->graph);
        if (kelp_status_code(status) != KELP_UNIMPLEMENTED)
            return KELP_ANNOTATE(status, "provider '%s' cannot take %zu nodes of model '%s'",
                                 table->name, r->node_count, t->graph->info.label);
        KELP_LOGF(t->logger, KELP_LOG_WARNING, "provider '%s' declined %zu nodes of model '%s': %s",
                  table->name, r->node_count, t->graph->info.label, kelp_status_message(status));
        kelp_status_free(status);
        return NULL;
    }
    *partition->last = item;
    partition->last = &item->next;
    partition->count++;
    t->taken++;
    return add_carrier(t, r, item);
}

/* ---- one provider ---- */
/* Takes the profitable regions. */
static kelp_status *take_regions(partition_pass *t) {
    uint32_t count = 0;
    size_t nodes = t->block->node_count; /* carriers are appended */
    KELP_TRY(kelp_regions_grow(t->block, t->candidates, &t->arena, &t->of, &count));
    for (uint32_t number = 0; number < count; number++) {
        region r;
        size_t all = t->block->node_count;
        t->block->node_count = nodes;
        kelp_status *status = describe(t, number, &r);
        t->block->node_count = all;
        KELP_TRY(status);
        if (is_profitable(t, &r))
            KELP_TRY(take(t, &r));
        else
            t->left = t->left || r.required > 0;
    }
    return NULL;
}

/* Moves each carrier to the position of the last node that it replaces. */
static kelp_status *place_carriers(partition_pass *t) {
    kelp_block *block = t->block;
    size_t nodes = block->node_count - t->taken, placed = 0;
    kelp_node **order = KELP_ARENA_ARRAY(&t->arena, block->node_count + 1, kelp_node *);
    uint32_t *carrier = KELP_ARENA_ARRAY(&t->arena, nodes + 1, uint32_t);
    if (order == NULL || carrier == NULL)
        return kelp_status_oom();
    for (size_t k = nodes; k < block->node_count; k++) {
        KELP_ASSERT(block->nodes[k]->index < nodes && carrier[block->nodes[k]->index] == 0);
        carrier[block->nodes[k]->index] = (uint32_t)k;
    }
    for (size_t n = 0; n < nodes; n++) {
        if (!block->nodes[n]->removed)
            order[placed++] = block->nodes[n];
        if (carrier[n] != 0)
            order[placed++] = block->nodes[carrier[n]];
    }
    memcpy(block->nodes, order, placed * sizeof *order);
    block->node_count = placed;
    for (size_t n = 0; n < placed; n++)
        block->nodes[n]->index = n;
    t->taken = 0;
    return kelp_block_sort(block);
}

static kelp_status *take_profitable(partition_pass *t) {
    kelp_block_count_uses(t->block);
    KELP_TRY(find_candidates(t));
    KELP_TRY(take_regions(t));
    return t->taken > 0 ? place_carriers(t) : NULL;
}

/* Retries regions that are not profitable with their required nodes only. */
static kelp_status *take_required(partition_pass *t) {
    kelp_block_count_uses(t->block);
    KELP_TRY(find_candidates(t));
    memcpy(t->candidates, t->required, t->block->node_count * sizeof(bool));
    KELP_TRY(take_regions(t));
    return t->taken > 0 ? place_carriers(t) : NULL;
}

kelp_status *kelp_partition_run(kelp_partition *partition, kelp_graph *graph,
                                const kelp_op_env *env, const kelp_logger *logger) {
    const kelp_opset_choice *choice = &partition->choice;
    kelp_status *status = NULL;
    for (size_t i = 0; status == NULL && i < choice->count; i++) {
        if (!kelp_opset_takes_subgraphs(choice->entries[i]))
            continue;
        partition_pass t = {.partition = partition,
                            .graph = graph,
                            .block = graph->main,
                            .env = env,
                            .logger = logger,
                            .at = i,
                            .entry = choice->entries[i]};
        kelp_arena_init(&t.arena, partition->allocator, 16 << 10);
        status = take_profitable(&t);
        if (status == NULL && t.left)
            status = take_required(&t);
        kelp_arena_deinit(&t.arena);
    }
    kelp_block_count_uses(graph->main);
    return status != NULL ? status : kelp_opset_check_choice(choice, graph, true);
}
