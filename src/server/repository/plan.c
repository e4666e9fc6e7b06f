/* SPDX-License-Identifier: Apache-2.0 */
/* Loads of several models: the members of an ensemble before the ensemble, models that do not
 * depend on each other concurrently. */
#include "base/assert.h"
#include "base/sync/thread.h"
#include "server/repository/repository.h"
#include "server/repository/scan.h"

/* The maximum number of ensembles inside each other. */
enum { MAX_DEPTH = 32 };

struct kelp_load_item {
    kelp_load_item *next;
    const char *name;
    const char *space; /* NULL: all namespaces */
    const kelp_load_options *options;
    bool requested;         /* otherwise it is a member that did not serve */
    bool visited;           /* its members were added, or are being added */
    bool visiting;          /* its members are being added */
    kelp_load_item *parent; /* the ensemble because of which they are being added */
    unsigned level;         /* above those of all members in the plan */
    kelp_status *failure;
};

void kelp_load_plan_init(kelp_load_plan *plan, kelp_repository *repository) {
    *plan = (kelp_load_plan){.repository = repository};
    kelp_arena_init(&plan->arena, repository->host->base.allocator, 0);
    kelp_map_init(&plan->items, repository->host->base.allocator);
}

void kelp_load_plan_deinit(kelp_load_plan *plan) {
    for (kelp_load_item *item = plan->first; item != NULL; item = item->next)
        kelp_status_free(item->failure);
    kelp_map_deinit(&plan->items);
    kelp_arena_deinit(&plan->arena);
}

/* ---- the members of ensembles ---- */

/* Returns the item of a model, and creates it if needed. */
static kelp_status *get_item(kelp_load_plan *plan, const char *name, const char *space,
                             kelp_load_item **out) {
    kelp_arena *arena = &plan->arena;
    bool named = space != NULL && plan->repository->host->options->model_namespacing;
    const char *key =
        kelp_arena_printf(arena, "%s%s%s", named ? space : "", named ? "::" : "", name);
    if (key == NULL)
        return kelp_status_oom();
    kelp_load_item *item = kelp_map_get(&plan->items, kelp_str_from(key));
    if (item == NULL) {
        item = KELP_ARENA_NEW(arena, kelp_load_item);
        if (item == NULL)
            return kelp_status_oom();
        item->name = kelp_arena_strndup(arena, name, strlen(name));
        item->space = named ? kelp_arena_strndup(arena, space, strlen(space)) : NULL;
        if (item->name == NULL || (named && item->space == NULL))
            return kelp_status_oom();
        KELP_TRY(kelp_map_put(&plan->items, kelp_str_from(key), item));
        item->next = plan->first;
        plan->first = item;
    }
    *out = item;
    return NULL;
}

/* Reads the configuration of one model of a scan. */
static kelp_status *read_config(const kelp_load_plan *plan, const kelp_load_item *item,
                                const kelp_scan_model *found, kelp_model_config **out) {
    const kelp_server_options *options = plan->repository->host->options;
    const char *json = item->options != NULL ? item->options->config_json : NULL;
    const char *slash = strrchr(found->path, '/');
    const kelp_config_load_options config_options = {
        .model_directory = found->path,
        .model_name = item->name,
        .directory_name = slash != NULL ? slash + 1 : found->path,
        .config_name = options->model_config_name,
        .override_json = json,
        .override_length = json != NULL ? strlen(json) : 0,
        .strict = options->strict_model_config,
        .draft = true,
    };
    return kelp_model_config_load(plan->repository->host->base.allocator, &config_options, out);
}

static kelp_status *add_members(kelp_load_plan *plan, kelp_load_item *item, unsigned depth);

/* Fails for an ensemble that contains one of the ensembles that contain it. */
static kelp_status *cycle(const kelp_load_plan *plan, const kelp_load_item *last,
                          const kelp_load_item *first) {
    kelp_buf path;
    kelp_buf_init(&path, plan->arena.allocator);
    kelp_buf_printf(&path, "'%s'", first->name);
    for (const kelp_load_item *at = last; at != first; at = at->parent)
        kelp_buf_printf(&path, " <- '%s'", at->name);
    kelp_buf_printf(&path, " <- '%s'", first->name);
    const char *text = kelp_buf_cstr(&path);
    kelp_status *status =
        text != NULL ? KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "failed to load '%s': circular dependency between ensembles: %s",
                                  first->name, text)
                     : kelp_status_oom();
    kelp_buf_deinit(&path);
    return status;
}

static bool serves(const kelp_load_plan *plan, const kelp_config_step *step, const char *lookup) {
    kelp_model *model = NULL;
    int64_t version = step->model_version > 0 ? step->model_version : -1;
    kelp_status *status = kelp_repository_find(plan->repository, lookup, version, &model, NULL);
    if (model != NULL)
        kelp_model_release(&model->base);
    kelp_status_free(status);
    return model != NULL;
}

/* Returns the namespace of a step: its own, or that of the ensemble if it has such a model; NULL
 * means any. */
static const char *space_of(const kelp_load_plan *plan, const kelp_config_step *step,
                            const char *ensemble_space) {
    kelp_repository *repository = plan->repository;
    kelp_scan *scan = NULL;
    bool has_model = false;
    if (step->model_namespace[0])
        return step->model_namespace;
    if (!repository->host->options->model_namespacing)
        return NULL;
    pthread_mutex_lock(&repository->lock);
    kelp_status_free(kelp_repository_scan_for(repository, step->model_name, &scan));
    pthread_mutex_unlock(&repository->lock);
    for (size_t i = 0; scan != NULL && i < scan->model_count; i++)
        has_model = has_model || strcmp(scan->models[i].repository, ensemble_space) == 0;
    kelp_scan_destroy(scan);
    return has_model ? ensemble_space : NULL;
}

/* Adds the model of a step, unless it serves and is not in the plan. */
static kelp_status *add_member(kelp_load_plan *plan, kelp_load_item *item, const char *item_space,
                               const kelp_config_step *step, unsigned depth) {
    const char *space = space_of(plan, step, item_space);
    kelp_load_item *member = NULL;
    const char *lookup = space != NULL
                             ? kelp_arena_printf(&plan->arena, "%s::%s", space, step->model_name)
                             : step->model_name;
    if (lookup == NULL)
        return kelp_status_oom();
    if (kelp_map_get(&plan->items, kelp_str_from(lookup)) == NULL && serves(plan, step, lookup))
        return NULL;
    KELP_TRY(get_item(plan, step->model_name, space, &member));
    if (member->visiting)
        return cycle(plan, item, member);
    if (!member->visited)
        member->parent = item;
    KELP_TRY(add_members(plan, member, depth));
    if (item->level <= member->level)
        item->level = member->level + 1;
    return NULL;
}

/* Adds the members of an item's models. A configuration that cannot be read has none: the load
 * reports the reason. */
static kelp_status *add_members(kelp_load_plan *plan, kelp_load_item *item, unsigned depth) {
    kelp_scan *scan = NULL;
    if (item->visited)
        return NULL;
    item->visited = true;
    if (depth == MAX_DEPTH)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "failed to load '%s': more than %d ensembles are inside each other",
                          item->name, (int)MAX_DEPTH);
    pthread_mutex_lock(&plan->repository->lock);
    kelp_status_free(kelp_repository_scan_for(plan->repository, item->name, &scan));
    pthread_mutex_unlock(&plan->repository->lock);
    kelp_status *status = NULL;
    item->visiting = true;
    for (size_t i = 0; scan != NULL && i < scan->model_count && status == NULL; i++) {
        kelp_model_config *config = NULL;
        if (item->space != NULL && strcmp(item->space, scan->models[i].repository) != 0)
            continue;
        kelp_status_free(read_config(plan, item, &scan->models[i], &config));
        for (size_t k = 0; config != NULL && k < config->step_count && status == NULL; k++)
            status =
                add_member(plan, item, scan->models[i].repository, &config->steps[k], depth + 1);
        kelp_model_config_release(config);
    }
    item->visiting = false;
    kelp_scan_destroy(scan);
    return status;
}

kelp_status *kelp_load_plan_add(kelp_load_plan *plan, const char *name, const char *space,
                                const kelp_load_options *options) {
    kelp_load_item *item = NULL;
    KELP_TRY(get_item(plan, name, space, &item));
    item->requested = true;
    item->options = options;
    return NULL;
}

/* Adds the members of all requested models. A cycle fails the models that lead to it. */
static kelp_status *complete(kelp_load_plan *plan) {
    size_t count = 0;
    for (kelp_load_item *item = plan->first; item != NULL; item = item->next)
        count++;
    kelp_load_item **requested = KELP_ARENA_ARRAY(&plan->arena, count, kelp_load_item *);
    if (requested == NULL)
        return kelp_status_oom();
    size_t at = count;
    for (kelp_load_item *item = plan->first; item != NULL; item = item->next)
        requested[--at] = item;
    for (size_t i = 0; i < count; i++) {
        kelp_status *status = add_members(plan, requested[i], 0);
        if (kelp_status_code(status) == KELP_RESOURCE_EXHAUSTED)
            return status;
        requested[i]->failure = status;
    }
    return NULL;
}

/* ---- loading ---- */

/* The items of one level, which several threads load. */
typedef struct crew {
    kelp_load_plan *plan;
    kelp_load_item **items;
    size_t count;
    atomic_size_t next;
} crew;

static void *load_some(void *userp) {
    crew *c = userp;
    size_t index;
    while ((index = atomic_fetch_add(&c->next, 1)) < c->count) {
        kelp_load_item *item = c->items[index];
        item->failure = kelp_repository_load_named(c->plan->repository, item->name, item->space,
                                                   item->options, !item->requested);
    }
    return NULL;
}

static void load_level(crew *c) {
    enum { MAX_THREADS = 64 };
    pthread_t threads[MAX_THREADS];
    unsigned wanted = c->plan->repository->host->options->model_load_threads, started = 0;
    while (started + 1 < wanted && started + 1 < c->count && started < MAX_THREADS) {
        kelp_status *status = kelp_thread_start(&threads[started], "kelp-load", load_some, c);
        if (status != NULL) {
            kelp_status_free(status); /* fewer threads load the same models */
            break;
        }
        started++;
    }
    load_some(c);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

kelp_status *kelp_load_plan_run(kelp_load_plan *plan) {
    KELP_TRY(complete(plan));
    size_t count = 0;
    unsigned highest = 0;
    for (kelp_load_item *item = plan->first; item != NULL; item = item->next) {
        count++;
        if (item->level > highest)
            highest = item->level;
        if (item->failure != NULL)
            kelp_repository_note_failure(plan->repository, item->name, item->failure);
    }
    crew c = {.plan = plan, .items = KELP_ARENA_ARRAY(&plan->arena, count, kelp_load_item *)};
    if (c.items == NULL)
        return kelp_status_oom();
    for (unsigned level = 0; level <= highest; level++) {
        c.count = 0;
        atomic_store(&c.next, 0);
        for (kelp_load_item *item = plan->first; item != NULL; item = item->next) {
            if (item->level == level && item->failure == NULL)
                c.items[c.count++] = item;
        }
        load_level(&c);
    }
    return NULL;
}

/* Appends the complete text of a failure. */
static void append_failure(kelp_buf *text, const kelp_status *failure, const char *separator) {
    char reason[4096];
    if (text->length > 0)
        kelp_buf_append_cstr(text, separator);
    kelp_status_format(failure, reason, sizeof reason);
    kelp_buf_append_cstr(text, reason);
}

kelp_status *kelp_load_plan_failure(const kelp_load_plan *plan, const char *separator) {
    const kelp_status *first = NULL;
    size_t count = 0;
    kelp_buf text;
    kelp_buf_init(&text, plan->arena.allocator);
    for (int requested = 1; requested >= 0; requested--) {
        for (const kelp_load_item *item = plan->first; item != NULL; item = item->next) {
            if (item->failure == NULL || item->requested != (requested == 1))
                continue;
            if (count++ == 0)
                first = item->failure;
            append_failure(&text, item->failure, separator);
        }
    }
    kelp_status *status = NULL;
    if (count == 1)
        status = kelp_status_clone(first);
    else if (count > 1)
        status = kelp_buf_cstr(&text) != NULL ? KELP_ERROR(kelp_status_code(first), "%s", text.data)
                                              : kelp_status_oom();
    kelp_buf_deinit(&text);
    return status;
}
