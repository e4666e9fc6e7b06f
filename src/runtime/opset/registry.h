/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of the registry of providers, and the providers that one engine uses. */
#ifndef KELP_RUNTIME_OPSET_REGISTRY_H_
#define KELP_RUNTIME_OPSET_REGISTRY_H_

#include "base/arena.h"
#include "graph/signature.h"
#include "runtime/provider.h"

#include <kelp/opset.h>

#include <pthread.h>
#include <stdatomic.h>

#define KELP_OPSET_BUCKETS 64

/* A declared operator, in a chain. */
typedef struct kelp_opset_link {
    const kelp_opset *opset;
    const kelp_opset_op *op;
    const kelp_signature *signature; /* NULL: none */
    uint32_t next;
} kelp_opset_link;

/* A registered provider of operators. `table` has this version's size: members that an older
 * provider's table lacks are NULL. */
typedef struct kelp_opset_entry {
    const kelp_opset_registry *registry;
    const kelp_opset_backend *backend; /* as registered */
    kelp_opset_backend table;
    void *self;
    const kelp_opset *atomic;
    const kelp_opset *extensions;
    size_t extension_count;
    /* Chains of operators: by record id, or by a hash of the name for operators without a record.
     * The items are indices into `links`; 0 ends a chain. */
    uint32_t first_by_id[KELP_OPERATOR_COUNT];
    uint32_t first_by_name[KELP_OPSET_BUCKETS];
    kelp_opset_link *links;
    size_t link_count;
    kelp_arena signatures; /* parsed */
} kelp_opset_entry;

struct kelp_opset_registry {
    kelp_allocator allocator;
    kelp_provider *rows; /* one for each provider */
    size_t row_count, row_capacity;
    /* providers of operators as they were registered, prepared for look-ups */
    kelp_opset_entry **entries;
    size_t count, capacity;
    uint32_t max_pending;
    atomic_uint pending;             /* dispatches in flight that may end later */
    const kelp_opset_source *source; /* or NULL */
    void *source_self;
    /* Providers that models of undeclared domains made `source` find, and that any thread may
     * add. */
    pthread_mutex_t mutex;
    kelp_opset_entry **found;
    size_t found_count, found_capacity;
};

/* Returns the provider that the source finds under this name, or NULL if nothing is searched. Fails
 * with the reasons if no library could be used. Thread-safe. */
kelp_status *kelp_opset_search(kelp_opset_registry *registry, const char *name,
                               kelp_opset_entry **out) KELP_MUST_USE;
/* Returns true if a registered provider declares an opset of the domain. */
bool kelp_opset_declares(const kelp_opset_registry *registry, const char *domain);

/* Finds the last row of this name, or adds one. The row is valid until the next call. */
kelp_status *kelp_registry_row(kelp_opset_registry *registry, const char *name,
                               kelp_provider **out) KELP_MUST_USE;

/* Counts a dispatch that may end later. Fails with RESOURCE_EXHAUSTED if too many are in flight. */
kelp_status *kelp_opset_begin_pending(kelp_opset_registry *registry) KELP_MUST_USE;
void kelp_opset_end_pending(kelp_opset_registry *registry);

/* The providers of operators that an engine uses, in order of preference. */
typedef struct kelp_opset_choice {
    kelp_opset_registry *registry;
    kelp_opset_entry **entries;
    size_t count, capacity;
    bool named;           /* the engine's options list them */
    const char *searched; /* why no library was found for some domains, in lines; or "" */
} kelp_opset_choice;

/* Chooses providers; `providers` is the member of kelp_engine_options. Without it, also searches
 * libraries for the domains of `graph` that no registered provider declares. */
kelp_status *kelp_opset_choose(kelp_opset_registry *registry, const char *providers,
                               const kelp_graph *graph, kelp_arena *arena,
                               kelp_opset_choice *out) KELP_MUST_USE;
/* Finds the provider that covers a node by itself. Returns false if there is none. */
bool kelp_opset_choice_find(const kelp_opset_choice *choice, const kelp_node *node,
                            kelp_opset_match *out);
/* Returns the entry's declaration of the node's operator, or NULL. Skips operators whose signature
 * the node does not match; then sets `out_problem`, if it is not NULL, to the reason. */
const kelp_opset_link *kelp_opset_entry_find(const kelp_opset_entry *entry, const kelp_node *node,
                                             kelp_signature_problem *out_problem);
/* Returns the signature of the first chosen operator that covers the node, even if it does not
 * match, or NULL. `choice` is a kelp_opset_choice (see kelp_signature_of_fn). */
const kelp_signature *kelp_opset_choice_signature(void *choice, const kelp_node *node);
/* Returns the entry of a match. */
const kelp_opset_entry *kelp_opset_match_entry(const kelp_opset_match *match);
/* Returns the signature of an operator that the entry declares, or NULL. */
const kelp_signature *kelp_opset_entry_signature(const kelp_opset_entry *entry,
                                                 const kelp_opset_op *op, const kelp_node *node);
/* Returns true if the entry covers the node, by itself or in a subgraph. */
bool kelp_opset_entry_covers(const kelp_opset_entry *entry, const kelp_node *node);
/* Returns true if the entry runs subgraphs. */
bool kelp_opset_takes_subgraphs(const kelp_opset_entry *entry);

/* Checks the chosen providers as kelp_opset_check_ready does. If `alone`, providers that cover a
 * node only in subgraphs do not count. */
kelp_status *kelp_opset_check_choice(const kelp_opset_choice *choice, const kelp_graph *graph,
                                     bool alone) KELP_MUST_USE;

#endif
