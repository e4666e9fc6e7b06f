/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of an engine from a graph: readiness check, passes, kernels, packed weights. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/exec/engine.h"
#include "cpu/ops/variant.h"
#include "graph/passes/passes.h"
#include "runtime/opset/bridge.h"
#include "runtime/opset/placed.h"
#include "runtime/opset/env.h"

#include <kelp/engine_provider.h>

#include <stdatomic.h>
#include <string.h>

/* ---- memory ---- */
kelp_status *kelp_cpu_engine_own(kelp_cpu_engine *engine, size_t size_bytes, void **out) {
    kelp_cpu_owned_block *block = NULL;
    KELP_TRY(KELP_NEW(engine->allocator, kelp_cpu_owned_block, &block));
    block->size_bytes = size_bytes ? size_bytes : 1;
    kelp_status *status =
        kelp_alloc_aligned(engine->weights, block->size_bytes, KELP_TENSOR_ALIGNMENT, &block->data);
    if (status != NULL) {
        kelp_free(engine->allocator, block, sizeof *block);
        return status;
    }
    block->next = engine->owned;
    engine->owned = block;
    *out = block->data;
    return NULL;
}

/* ---- inputs and outputs ---- */
static kelp_status *fill_io(const kelp_cpu_engine *engine, const char *what, kelp_io_info *info,
                            const kelp_value *value) {
    static const int32_t ranks[] = {
        [KELP_VALUE_SEQUENCE] = 1, [KELP_VALUE_OPTIONAL] = 2, [KELP_VALUE_MAP] = 3};
    info->name = value->name;
    if (value->kind == KELP_VALUE_SPARSE)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "%s '%s' of model '%s' has an unsupported type: expected a dense tensor, "
                          "found a sparse tensor",
                          what, value->name, engine->graph->info.label);
    if (value->kind != KELP_VALUE_TENSOR && value->kind != KELP_VALUE_UNKNOWN) {
        info->dtype = KELP_LIST;
        info->rank = ranks[value->kind];
        info->shape[0] = value->kind == KELP_VALUE_MAP ? 2 : -1;
        info->shape[1] = info->shape[2] = 1;
        return NULL;
    }
    info->dtype = value->dtype;
    info->rank = value->rank;
    for (int32_t i = 0; i < value->rank; i++) {
        info->shape[i] = value->shape[i];
        info->symbols[i] = value->symbols[i];
    }
    return NULL;
}

static kelp_status *collect_io(kelp_cpu_engine *engine) {
    const kelp_block *main = engine->graph->main;
    engine->input_count = main->input_count;
    engine->output_count = main->output_count;
    KELP_TRY(kelp_alloc_zero(engine->allocator, main->input_count, sizeof(kelp_io_info),
                             (void **)&engine->inputs));
    KELP_TRY(kelp_alloc_zero(engine->allocator, main->output_count, sizeof(kelp_io_info),
                             (void **)&engine->outputs));
    for (size_t i = 0; i < main->input_count; i++)
        KELP_TRY(fill_io(engine, "input", &engine->inputs[i], main->inputs[i]));
    for (size_t i = 0; i < main->output_count; i++)
        KELP_TRY(fill_io(engine, "output", &engine->outputs[i], main->outputs[i]));
    return NULL;
}

/* ---- kernels ---- */
size_t kelp_cpu_element_alignment(kelp_dtype dtype) {
    size_t bytes = kelp_dtype_bits(dtype) / 8;
    return bytes > 16 || (bytes & (bytes - 1)) != 0 ? sizeof(void *) : bytes ? bytes : 1;
}

/* Copies an unaligned constant to an aligned address. Aligned constants are read in the mapped
 * file. */
static kelp_status *align_constant(kelp_cpu_engine *engine, kelp_value *value) {
    const kelp_tensor *old = value->constant;
    if (((uintptr_t)old->data & (kelp_cpu_element_alignment(old->dtype) - 1)) == 0)
        return NULL;
    kelp_arena *arena = &engine->graph->arena;
    const kelp_tensor **key = KELP_ARENA_NEW(arena, const kelp_tensor *);
    kelp_tensor *moved = KELP_ARENA_NEW(arena, kelp_tensor);
    if (moved == NULL || key == NULL)
        return kelp_status_oom();
    *key = old;
    kelp_str name = {(const char *)key, sizeof *key};
    void *before = kelp_map_get(&engine->moved, name);
    if (before != NULL) { /* bodies that read an outer constant share it */
        value->constant = before;
        return NULL;
    }
    size_t bytes = kelp_tensor_bytes(old);
    *moved = *old;
    KELP_TRY(kelp_cpu_engine_own(engine, bytes, &moved->data));
    if (bytes > 0)
        memcpy(moved->data, old->data, bytes);
    value->constant = moved;
    return kelp_map_put(&engine->moved, name, moved);
}

static void release_pages(void *userp) {
    const kelp_cpu_engine *engine = userp;
    kelp_graph_release_pages(engine->source);
}

static kelp_status *create_bridge(const kelp_cpu_engine *engine, const kelp_opset_match *match,
                                  const kelp_node *node, void **out_state) {
    const kelp_opset_entry *entry = kelp_opset_match_entry(match);
    uint64_t stays = kelp_places(entry) ? kelp_partition_stays(&engine->partition, node, entry) : 0;
    return kelp_bridge_create(match, node, stays, engine->weights, out_state);
}

static kelp_status *create_node(kelp_cpu_engine *engine, const kelp_node *node,
                                kelp_cpu_node *out) {
    kelp_opset_match match;
    out->node = node;
    out->index = kelp_node_is_folded(node) ? UINT32_MAX : engine->node_count++;
    if (kelp_is_subgraph_node(node)) {
        out->kernel = &kelp_subgraph_kernel;
        kelp_subgraph *subgraph = kelp_partition_find(&engine->partition, node);
        if (subgraph != NULL && kelp_places(subgraph->entry))
            subgraph->stays = kelp_partition_stays(&engine->partition, node, subgraph->entry);
        out->state = subgraph;
        return NULL;
    }
    if (!kelp_opset_choice_find(&engine->partition.choice, node, &match))
        return KELP_ERROR(
            KELP_UNIMPLEMENTED,
            "no registered provider covers operator '%s::%s' version %lld of node '%s'%s",
            node->op->domain, node->op->name, (long long)node->opset_version, node->name,
            engine->partition.choice.searched);
    out->kernel = match.op->kernel != NULL ? match.op->kernel : &kelp_bridge_kernel;
    for (size_t i = 0; i < node->input_count; i++) {
        bool any_address = i < 32 && (out->kernel->unaligned_inputs >> i & 1) != 0;
        if (node->inputs[i] != NULL && node->inputs[i]->constant != NULL && !any_address)
            KELP_TRY(align_constant(engine, node->inputs[i]));
    }
    kelp_op_env env = {.allocator = engine->weights,
                       .pool = engine->runtime->pool,
                       .release_pages = release_pages,
                       .release_userp = engine};
    env.pack = (kelp_op_pack_site){.packs = engine->packs != NULL ? &engine->packs->packs : NULL,
                                   .node = node,
                                   .index = out->index,
                                   .shares = &engine->shares};
    kelp_status *status = NULL;
    if (match.op->kernel == NULL)
        status = create_bridge(engine, &match, node, &out->state);
    else if (out->kernel->create != NULL)
        status = out->kernel->create(node, &env, &out->state);
    if (status != NULL)
        return KELP_ANNOTATE(status, "cannot create the kernel of node '%s' (%s) in model '%s'",
                             node->name, node->op->name, engine->graph->info.label);
    return NULL;
}

static kelp_status *create_program(kelp_cpu_engine *engine, const kelp_block *block,
                                   kelp_cpu_program **out);

static kelp_status *create_bodies(kelp_cpu_engine *engine, kelp_cpu_program *program,
                                  kelp_cpu_node *node) {
    bool is_if = node->node->op == KELP_OP(If);
    size_t count = 0;
    for (const kelp_attr *attr = node->node->attributes; attr != NULL; attr = attr->next)
        count += attr->blocks != NULL ? attr->count : 0;
    if (count == 0 || kelp_is_subgraph_node(node->node))
        return NULL;
    kelp_cpu_program **bodies = KELP_ARENA_ARRAY(&engine->graph->arena, count, kelp_cpu_program *);
    if (bodies == NULL)
        return kelp_status_oom();
    node->bodies = bodies;
    for (const kelp_attr *attr = node->node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
            kelp_cpu_program **body = &bodies[node->body_count++];
            KELP_TRY(create_program(engine, attr->blocks[k], body));
            if (!is_if)
                continue;
            (*body)->value_offset = program->value_total;
            program->value_total += (*body)->value_total;
            program->node_total += (*body)->node_total;
        }
    return NULL;
}

static kelp_status *report_progress(const kelp_cpu_engine *engine, size_t done, size_t total) {
    const kelp_engine_options *options = engine->options;
    return options->progress == NULL || options->progress(options->progress_userp, done, total)
               ? NULL
               : KELP_ERROR(KELP_CANCELLED, "the build of model '%s' was cancelled",
                            engine->graph->info.label);
}

/* Sets `*out` first, so that kernels created before a failure are destroyed with the engine. */
static kelp_status *create_program(kelp_cpu_engine *engine, const kelp_block *block,
                                   kelp_cpu_program **out) {
    kelp_cpu_program *program = KELP_ARENA_NEW(&engine->graph->arena, kelp_cpu_program);
    if (program == NULL)
        return kelp_status_oom();
    *out = program;
    program->nodes = KELP_ARENA_ARRAY(&engine->graph->arena, block->node_count + 1, kelp_cpu_node);
    if (program->nodes == NULL)
        return kelp_status_oom();
    program->block = block;
    program->value_total = block->value_count;
    program->node_total = block->node_count;
    for (size_t i = 0; i < block->node_count; i++) {
        if (block == engine->graph->main)
            KELP_TRY(report_progress(engine, i, block->node_count));
        kelp_cpu_node *node = &program->nodes[program->node_count++];
        node->node = block->nodes[i];
        KELP_TRY(create_bodies(engine, program, node));
        KELP_TRY(create_node(engine, block->nodes[i], node));
        kelp_cpu_engine_release_pages(engine);
    }
    /* an output may be a constant that no node reads */
    for (size_t i = 0; i < block->output_count; i++)
        if (block->outputs[i]->constant != NULL)
            KELP_TRY(align_constant(engine, block->outputs[i]));
    return NULL;
}

static void destroy_program(kelp_cpu_engine *engine, const kelp_cpu_program *program) {
    for (size_t i = 0; program != NULL && i < program->node_count; i++) {
        const kelp_cpu_node *node = &program->nodes[i];
        for (size_t k = 0; k < node->body_count; k++)
            destroy_program(engine, node->bodies[k]);
        if (node->state != NULL && node->kernel->destroy != NULL)
            node->kernel->destroy(node->state, engine->weights);
    }
}

/* ---- phases ---- */
static kelp_status *choose_providers(kelp_cpu_engine *engine) {
    return kelp_partition_init(&engine->partition, engine->allocator, engine->runtime->registry,
                               engine->options->providers, engine->source);
}

static kelp_status *check_ready(kelp_cpu_engine *engine) {
    return kelp_opset_check_choice(&engine->partition.choice, engine->source, false);
}

static kelp_status *clone_graph(kelp_cpu_engine *engine) {
    engine->nodes_loaded = engine->source->info.node_count;
    KELP_TRY(kelp_graph_clone_for_engine(engine->source, &engine->graph));
    KELP_TRY(kelp_pass_gradient(engine->graph->main));
    kelp_block_remove_dead(engine->graph->main);
    return kelp_pass_captures(engine->graph->main);
}

/* The loader knows no signatures, so that it stops at operators that are not Kelp's. */
static kelp_status *infer_signatures(kelp_cpu_engine *engine) {
    return kelp_block_infer_signatures(engine->graph->main, kelp_opset_choice_signature,
                                       &engine->partition.choice);
}

static kelp_status *fold(kelp_cpu_engine *engine) {
    KELP_TRY(kelp_cpu_engine_fold_constants(engine, false));
    kelp_block_remove_dead(engine->graph->main);
    return NULL;
}

/* Folds constants, but keeps quantized weights for the passes that fuse quantized operators. */
static kelp_status *fold_first(kelp_cpu_engine *engine) {
    KELP_TRY(kelp_cpu_engine_fold_constants(engine, !engine->options->disable_fusion));
    kelp_block_remove_dead(engine->graph->main);
    return NULL;
}

/* Runs before fusion, because other providers do not support fused operators. */
static kelp_status *partition(kelp_cpu_engine *engine) {
    KELP_ASSERT(engine->program == NULL); /* kernels are created afterwards */
    kelp_op_env env = {.allocator = engine->weights, .pool = engine->runtime->pool};
    return kelp_partition_run(&engine->partition, engine->graph, &env, &engine->runtime->logger);
}

/* Runs before the other passes, which match float32. */
static kelp_status *widen_halves(kelp_cpu_engine *engine) {
    KELP_TRY(kelp_passes_run_half(engine->graph->main));
    return fold_first(engine);
}

static kelp_status *fuse_quantized(kelp_cpu_engine *engine) {
    KELP_TRY(kelp_passes_run_quant(engine->graph->main));
    return fold(engine);
}

static kelp_status *fuse(kelp_cpu_engine *engine) {
    KELP_TRY(kelp_passes_run(engine->graph->main));
    return fold(engine);
}

static kelp_status *round_to_bf16(kelp_cpu_engine *engine) {
    return kelp_passes_run_bf16(engine->graph->main);
}

static kelp_status *finish_graph(kelp_cpu_engine *engine) {
    kelp_block_count_uses(engine->graph->main);
    return collect_io(engine);
}

static kelp_status *create_kernels(kelp_cpu_engine *engine) {
    KELP_ASSERT(engine->inputs != NULL || engine->graph->main->input_count == 0);
    KELP_TRY(create_program(engine, engine->graph->main, &engine->program));
    kelp_pack_shares_close(&engine->shares);
    size_t all = engine->graph->main->node_count;
    return report_progress(engine, all, all);
}

/* Conditions of a phase; all must hold. */
typedef enum phase_condition {
    ALWAYS = 0,
    FROM_MODEL = 1, /* not from an engine image after the passes */
    WEIGHTS = 2,    /* weights are not missing */
    FUSION = 4,     /* fusion is not disabled, and some provider has the fused operators */
    BF16 = 8        /* precision is bf16 */
} phase_condition;

static const struct phase {
    unsigned conditions;
    kelp_status *(*run)(kelp_cpu_engine *engine);
} phases[] = {
    {ALWAYS, choose_providers},
    {FROM_MODEL, check_ready},
    {ALWAYS, clone_graph},
    {FROM_MODEL, infer_signatures},
    {FROM_MODEL | WEIGHTS, fold_first},
    {FROM_MODEL | WEIGHTS, partition},
    {FROM_MODEL | WEIGHTS | FUSION, widen_halves},
    {FROM_MODEL | WEIGHTS | FUSION, fuse_quantized},
    {FROM_MODEL | WEIGHTS | FUSION, fuse},
    {FROM_MODEL | WEIGHTS | BF16, round_to_bf16},
    {ALWAYS, finish_graph},
    {WEIGHTS, create_kernels},
};

static bool has_fused_operators(const kelp_cpu_engine *engine) {
    kelp_node fused = {.op = KELP_OP_KELP(MatMulBias), .opset_version = 1};
    kelp_opset_match match;
    return kelp_opset_choice_find(&engine->partition.choice, &fused, &match);
}

static bool applies(const kelp_cpu_engine *engine, const kelp_cpu_origin *origin,
                    unsigned conditions) {
    const kelp_engine_options *options = engine->options;
    return !((conditions & FROM_MODEL) != 0 && origin->prepared) &&
           !((conditions & WEIGHTS) != 0 && origin->bare) &&
           !((conditions & BF16) != 0 && options->precision != KELP_PRECISION_BF16) &&
           !((conditions & FUSION) != 0 &&
             (options->disable_fusion || !has_fused_operators(engine)));
}

static kelp_status *build(kelp_cpu_engine *engine, const kelp_cpu_origin *origin) {
    for (size_t i = 0; i < KELP_COUNT(phases); i++)
        if (applies(engine, origin, phases[i].conditions))
            KELP_TRY(phases[i].run(engine));
    return NULL;
}

static kelp_status *new_engine(kelp_runtime *runtime, kelp_cpu_engine **out) {
    kelp_cpu_engine *engine = NULL;
    KELP_TRY(KELP_NEW(runtime->allocator, kelp_cpu_engine, &engine));
    atomic_init(&engine->references, 1);
    kelp_pack_shares_init(&engine->shares);
    engine->runtime = kelp_runtime_retain(runtime);
    engine->allocator = runtime->allocator;
    kelp_cpu_engine_weights_init(engine);
    kelp_arena_init(&engine->arena, engine->allocator, 4 << 10);
    *out = engine;
    return NULL;
}

kelp_status *kelp_cpu_engine_make(kelp_runtime *runtime, kelp_graph *graph,
                                  const kelp_engine_options *user, const kelp_cpu_origin *origin,
                                  kelp_cpu_engine **out) {
    kelp_engine_options options = {0};
    if (user != NULL)
        memcpy(&options, user,
               user->struct_size < sizeof options ? user->struct_size : sizeof options);
    if (options.precision != KELP_PRECISION_F32 && options.precision != KELP_PRECISION_BF16) {
        kelp_cpu_packs_destroy(origin->take_packs);
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown precision %d", (int)options.precision);
    }
    kelp_cpu_engine *engine = NULL;
    kelp_status *status = new_engine(runtime, &engine);
    if (status != NULL) {
        kelp_cpu_packs_destroy(origin->take_packs);
        return status;
    }
    engine->packs = origin->take_packs;
    kelp_map_init(&engine->moved, engine->allocator);
    engine->source = kelp_graph_retain(graph);
    engine->max_schedules = options.max_plans ? options.max_plans : 16;
    engine->options = &options;
    engine->no_fusion = options.disable_fusion != 0;
    engine->precision = options.precision;
    engine->stripped = origin->bare;
    status = build(engine, origin);
    engine->options = NULL;
    kelp_map_deinit(&engine->moved);
    if (status != NULL) {
        kelp_cpu_engine_release(engine);
        return status;
    }
    *out = engine;
    return NULL;
}

kelp_cpu_engine *kelp_cpu_engine_retain(kelp_cpu_engine *engine) {
    atomic_fetch_add_explicit(&engine->references, 1, memory_order_relaxed);
    return engine;
}

void kelp_cpu_engine_release(kelp_cpu_engine *engine) {
    if (engine == NULL ||
        atomic_fetch_sub_explicit(&engine->references, 1, memory_order_acq_rel) != 1)
        return;
    kelp_cpu_engine_release(engine->refitted);
    destroy_program(engine, engine->program);
    kelp_pack_shares_deinit(&engine->shares);
    kelp_cpu_packs_destroy(engine->packs);
    kelp_partition_deinit(&engine->partition);
    for (kelp_cpu_owned_block *block = engine->owned, *next; block != NULL; block = next) {
        next = block->next;
        kelp_free_aligned(engine->weights, block->data, block->size_bytes, KELP_TENSOR_ALIGNMENT);
        kelp_free(engine->allocator, block, sizeof *block);
    }
    kelp_graph_release(engine->graph);
    kelp_graph_release(engine->source);
    kelp_free(engine->allocator, engine->inputs, engine->input_count * sizeof *engine->inputs);
    kelp_free(engine->allocator, engine->outputs, engine->output_count * sizeof *engine->outputs);
    kelp_arena_deinit(&engine->arena);
    kelp_runtime *runtime = engine->runtime;
    kelp_cpu_engine_weights_deinit(engine);
    kelp_free(engine->allocator, engine, sizeof *engine);
    kelp_runtime_release(runtime);
}

/* ---- statistics ---- */
/* Counts the nodes and the bytes of constants of a block and its nested blocks. */
static void count_program(const kelp_cpu_program *program, size_t *inout_nodes,
                          size_t *inout_bytes) {
    *inout_nodes += program->node_count;
    for (size_t i = 0; i < program->block->value_count; i++) {
        const kelp_value *value = program->block->values[i];
        if (value->constant != NULL && value->use_count > 0)
            *inout_bytes += kelp_tensor_bytes(value->constant);
    }
    for (size_t i = 0; i < program->node_count; i++)
        for (size_t k = 0; k < program->nodes[i].body_count; k++)
            count_program(program->nodes[i].bodies[k], inout_nodes, inout_bytes);
}

static size_t count_bf16(const kelp_cpu_program *program) {
    size_t count = 0;
    for (size_t i = 0; i < program->node_count; i++) {
        const kelp_node *node = program->nodes[i].node;
        count += kelp_op_variant_of(node) == KELP_VARIANT_BF16;
        for (size_t k = 0; k < program->nodes[i].body_count; k++)
            count += count_bf16(program->nodes[i].bodies[k]);
    }
    return count;
}

kelp_engine_stats kelp_cpu_engine_stats(const kelp_cpu_engine *engine) {
    size_t borrowed = 0, nodes = 0;
    if (engine->program != NULL)
        count_program(engine->program, &nodes, &borrowed);
    for (const kelp_cpu_owned_block *block = engine->owned; block != NULL; block = block->next)
        borrowed -= borrowed < block->size_bytes ? borrowed : block->size_bytes;
    return (kelp_engine_stats){.nodes_loaded = engine->nodes_loaded,
                               .nodes_planned = nodes,
                               .weight_bytes_borrowed = borrowed,
                               .weight_bytes_packed = atomic_load(&engine->packed_bytes),
                               .nodes_bf16 =
                                   (engine->program != NULL ? count_bf16(engine->program) : 0)};
}
