/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes networks as ONNX models. A model has one version of ai.onnx and its nodes have different
 * names, while a network may mix layers with nodes of a parsed model of another version, and a
 * layer may become several nodes.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "builder/builder.h"
#include "builder/emit.h"
#include "graph/save.h"

#include <string.h>

#define OLDEST_OPSET 17 /* of exported networks */

/* A function that is called for every node, also of nested blocks. */
typedef kelp_status *(*node_fn)(kelp_node *node, void *userp);

static kelp_status *for_each_node(kelp_block *block, node_fn fn, void *userp) {
    for (size_t n = 0; n < block->node_count; n++) {
        KELP_TRY(fn(block->nodes[n], userp));
        for (kelp_attr *attr = block->nodes[n]->attributes; attr != NULL; attr = attr->next)
            for (size_t i = 0; attr->blocks != NULL && i < attr->count; i++)
                KELP_TRY(for_each_node(attr->blocks[i], fn, userp));
    }
    return NULL;
}

/* ---- one version of ai.onnx ---- */
/* Fails if the operator differs between the node's version and the version `*userp`. */
static kelp_status *check_version(kelp_node *node, void *userp) {
    int64_t version = *(const int64_t *)userp;
    if (!kelp_operator_is_onnx(node->op) || node->opset_version == version)
        return NULL;
    const kelp_onnx_schema *schema = kelp_operator_schema(node->op, version);
    if (schema != NULL && schema == kelp_operator_schema(node->op, node->opset_version))
        return NULL;
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "node '%s' has version %lld of %s, which differs from version %lld: an ONNX "
                      "model has one version of ai.onnx",
                      node->name, (long long)node->opset_version, node->op->name,
                      (long long)version);
}

static kelp_status *set_version(kelp_node *node, void *userp) {
    if (kelp_operator_is_onnx(node->op))
        node->opset_version = *(const int64_t *)userp;
    return NULL;
}

/* Returns the oldest version of the IR that allows a version of ai.onnx, as onnx.helper does.
 * Source: onnx/docs/Versioning.md, "Released Versions". */
static int64_t ir_version_of(int64_t opset) {
    static const struct {
        int64_t opset, ir;
    } released[] = {{24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}};
    for (size_t i = 0; i < KELP_COUNT(released); i++)
        if (opset >= released[i].opset)
            return released[i].ir;
    return 7;
}

static kelp_status *set_import(kelp_graph *graph, int64_t version) {
    kelp_opset_import *imports =
        KELP_ARENA_ARRAY(&graph->arena, graph->import_count, kelp_opset_import);
    if (imports == NULL)
        return kelp_status_oom();
    memcpy(imports, graph->imports, graph->import_count * sizeof *imports);
    for (size_t i = 0; i < graph->import_count; i++)
        if (*imports[i].domain == '\0')
            imports[i].version = version;
    graph->imports = imports;
    if (graph->info.ir_version < ir_version_of(version))
        graph->info.ir_version = ir_version_of(version);
    return for_each_node(graph->main, set_version, &version);
}

/* Sets *userp to the version that introduced the node's schema, if it is larger. */
static kelp_status *raise_version(kelp_node *node, void *userp) {
    int64_t *version = userp;
    const kelp_onnx_schema *schema = kelp_operator_schema(node->op, node->opset_version);
    if (kelp_operator_is_onnx(node->op) && schema != NULL && schema->since > *version)
        *version = schema->since;
    return NULL;
}

/* Chooses the oldest version that defines all layers as the newest does, for old readers. */
static kelp_status *lower_version(kelp_graph *graph) {
    int64_t version = OLDEST_OPSET;
    KELP_TRY(for_each_node(graph->main, raise_version, &version));
    return set_import(graph, version);
}

/* Chooses the version of the parsed model, or that of the layers. */
static kelp_status *unify_versions(kelp_graph *graph) {
    int64_t version = kelp_graph_opset_version(graph, ""), newest = KELP_BUILDER_OPSET;
    if (version == 0 || version == newest)
        return NULL;
    kelp_status *status = for_each_node(graph->main, check_version, &version);
    if (status == NULL)
        return set_import(graph, version);
    kelp_status_free(status);
    KELP_TRY(for_each_node(graph->main, check_version, &newest));
    return set_import(graph, newest);
}

/* ---- names ---- */
typedef struct names {
    kelp_map seen;
    size_t count;
} names;

static kelp_status *make_unique(kelp_node *node, void *userp) {
    names *all = userp;
    const char *name = node->name;
    all->count++;
    if (*name == '\0')
        return NULL;
    for (size_t number = all->count; kelp_map_find(&all->seen, kelp_str_from(name), NULL);
         number++) {
        name = kelp_arena_printf(&node->block->graph->arena, "%s_%zu", node->name, number);
        if (name == NULL)
            return kelp_status_oom();
    }
    node->name = name;
    return kelp_map_put(&all->seen, kelp_str_from(name), node);
}

static kelp_status *name_nodes(kelp_graph *graph) {
    names all = {.count = 0};
    kelp_map_init(&all.seen, graph->allocator);
    kelp_status *status = for_each_node(graph->main, make_unique, &all);
    kelp_map_deinit(&all.seen);
    return status;
}

/* ---- the model ---- */
static kelp_status *write_model(const kelp_network *network, kelp_graph *graph, kelp_blob **out) {
    kelp_buf model;
    KELP_ASSERT(graph->main != NULL);
    KELP_TRY(network->parsed == NULL ? lower_version(graph) : unify_versions(graph));
    KELP_TRY(name_nodes(graph));
    kelp_buf_init(&model, network->allocator);
    kelp_status *status = kelp_graph_save(graph, NULL, &model);
    if (status == NULL)
        status = kelp_blob_of(&model, out);
    kelp_buf_deinit(&model);
    return status;
}

kelp_status *kelp_network_to_onnx(const kelp_network *network, kelp_blob **out) {
    kelp_graph *graph = NULL;
    kelp_status *status = kelp_network_lower(network, &graph);
    if (status == NULL)
        status = write_model(network, graph, out);
    kelp_graph_release(graph);
    return kelp_in_domain(status, KELP_DOMAIN_NETWORK);
}
