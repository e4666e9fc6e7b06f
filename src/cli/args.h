/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines from a table: each option is named once, and parsing, --help and shell completion
 * come from that row.
 *
 * "--name value", "--name=value", "-x value"; a boolean may stand alone or take true, false, 1, 0,
 * on, off, yes, no; "--" ends the options. Text borrowed from argv. One thread.
 */
#ifndef KELP_CLI_ARGS_H_
#define KELP_CLI_ARGS_H_

#include "base/buf.h"

typedef enum kelp_option_kind {
    KELP_OPTION_BOOL, /* bool */
    KELP_ARG_I64,     /* int64_t in [min, max] */
    KELP_ARG_F64,     /* double */
    KELP_OPTION_TEXT, /* const char *, one of `choices` when there are some */
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
    size_t offset;       /* of its member in the options' struct */
    const char *value;   /* what stands for the value in help; NULL for a boolean */
    const char *choices; /* "a|b|c" or NULL; "@file" and "@dir" are for completion only */
    const char *help;
    const char *group; /* heading that begins here, or NULL */
    int64_t min, max;  /* of KELP_ARG_I64, when they differ */
} kelp_arg_spec;

typedef struct kelp_command kelp_command;
struct kelp_command {
    const char *name;
    const char *summary;    /* one line */
    const char *usage;      /* after "kelp NAME" */
    const char *details;    /* paragraphs, or NULL */
    const char *examples;   /* lines, or NULL */
    const char *positional; /* what stands for an argument in messages */
    size_t min_positionals, max_positionals;
    const kelp_arg_spec *specs;
    size_t spec_count;
    /* The options' struct begins with a kelp_arg_list of positional arguments; it is zeroed, then
     * `defaults` (may be NULL) fills it. */
    size_t options_bytes;
    void (*defaults)(void *options);
    int (*run)(const kelp_command *command, void *options); /* the process's exit code */
};

/* Fills `options` from argv[0 … argc), which begins after the command's name. INVALID_ARGUMENT
 * names the option, and the nearest one when there is none of that name. `out_help` is set by
 * --help and -h, and then nothing else is checked. */
kelp_status *kelp_args_parse(const kelp_command *command, int argc, char **argv, void *options,
                             bool *out_help) KELP_MUST_USE;
/* Frees the lists of `options`. */
void kelp_args_deinit(const kelp_command *command, void *options);
/* Appends the text of --help. */
void kelp_args_help(const kelp_command *command, kelp_buf *out);

/* The candidate nearest to `word`: the same in another case, one that begins with it, else by edit
 * distance (at most a third of its length, at least 1); NULL when none is. `next` gives candidate
 * i, NULL at the end. */
const char *kelp_args_nearest(const char *word, const char *(*next)(const void *userp, size_t i),
                              const void *userp);

#endif
