/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines defined by a table. Parsing, --help and shell completion use the same rows. Syntax:
 * "--name value", "--name=value", "-x value"; a boolean may omit its value or take true, false, 1,
 * 0, on, off, yes, no; "--" ends the options. Strings point into argv. Not thread-safe. */
#ifndef KELP_CLI_ARGS_H_
#define KELP_CLI_ARGS_H_

#include "base/buf.h"

typedef enum kelp_option_kind {
    KELP_OPTION_BOOL, /* bool */
    KELP_ARG_I64,     /* int64_t in [min, max] */
    KELP_ARG_F64,     /* double */
    KELP_OPTION_TEXT, /* const char *, one of `choices` if any */
    KELP_OPTION_LIST  /* kelp_arg_list, may be repeated */
} kelp_option_kind;

typedef struct kelp_arg_list {
    const char **items;
    size_t count;
    size_t capacity;
} kelp_arg_list;

typedef struct kelp_arg_spec {
    const char *name; /* without "--" */
    char letter;      /* short form, or 0 */
    kelp_option_kind kind;
    size_t offset;       /* offset of the member in the struct of options */
    const char *value;   /* name of the value in help; NULL for a boolean */
    const char *choices; /* "a|b|c" or NULL; "@file" and "@dir" affect completion only */
    const char *help;
    const char *group; /* heading before this option, or NULL */
    int64_t min, max;  /* limits of KELP_ARG_I64, if they differ */
} kelp_arg_spec;

/* Options of one topic. */
typedef struct kelp_arg_table {
    const kelp_arg_spec *specs;
    size_t count;
} kelp_arg_table;

typedef struct kelp_command kelp_command;
struct kelp_command {
    const char *name;
    const char *summary;       /* one line */
    const char *usage;         /* text after "kelp NAME" */
    const char *details;       /* paragraphs, or NULL */
    const char *examples;      /* lines, or NULL */
    const char *positional;    /* name of a positional argument in messages */
    const char *first_choices; /* "a|b|c" for the first one, for completion; NULL: files */
    size_t min_positionals, max_positionals;
    const kelp_arg_table *const *tables; /* NULL after the last */
    /* The struct of options starts with a kelp_arg_list of positional arguments. It is zeroed, then
     * `defaults` (may be NULL) initializes it. */
    size_t options_bytes;
    void (*defaults)(void *options);
    int (*run)(const kelp_command *command,
               void *options); /* returns the exit code of the process */
    /* Parses argv[0 … argc) by itself and runs, instead of `run`; NULL for the usual syntax. */
    int (*main)(const kelp_command *command, int argc, char **argv);
};

/* Initializes `tables` of a command with one table. */
#define KELP_ARG_TABLE(rows)                                                  \
    (const kelp_arg_table *const[]) {                                         \
        &(const kelp_arg_table){(rows), sizeof(rows) / sizeof(*(rows))}, NULL \
    }

/* Returns option `index` of the command, across its tables, or NULL after the last. */
const kelp_arg_spec *kelp_args_spec(const kelp_command *command, size_t index);

/* Parses argv[0 … argc), which starts after the name of the command, into `options`.
 * INVALID_ARGUMENT names the option, and the most similar one if the name is unknown. --help and -h
 * set `out_help` and skip all other checks. */
kelp_status *kelp_args_parse(const kelp_command *command, int argc, char **argv, void *options,
                             bool *out_help) KELP_MUST_USE;
/* Stores the value of an option in `options`. INVALID_ARGUMENT names the option. */
kelp_status *kelp_args_set(const kelp_arg_spec *spec, const char *text,
                           void *options) KELP_MUST_USE;
/* Appends an item, which is borrowed. */
kelp_status *kelp_arg_list_add(kelp_arg_list *list, const char *item) KELP_MUST_USE;
/* Frees the items. */
void kelp_arg_list_deinit(kelp_arg_list *list);
/* Frees the lists of `options`. */
void kelp_args_deinit(const kelp_command *command, void *options);
/* Appends the text of --help. */
void kelp_args_help(const kelp_command *command, kelp_buf *out);

/* Returns the candidate most similar to `word`: the same word in another case, a word with this
 * prefix, or the one with the smallest edit distance (at most a third of its length, at least 1);
 * NULL if there is none. `next` returns candidate i, or NULL at the end. */
const char *kelp_args_nearest(const char *word, const char *(*next)(const void *userp, size_t i),
                              const void *userp);

#endif
