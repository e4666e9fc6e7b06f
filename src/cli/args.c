/* SPDX-License-Identifier: Apache-2.0 */
/* Parses command lines by a table of options. */
#include "cli/args.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "cli/cli.h"

#define WORD_MAX 64

/* Returns Levenshtein's distance (Soviet Physics Doklady 10, 1966), computed row by row. */
static size_t edit_distance(const char *a, const char *b) {
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > WORD_MAX || b_length > WORD_MAX)
        return SIZE_MAX;
    size_t row[WORD_MAX + 1];
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t above = row[j];
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = KELP_MIN(change, KELP_MIN(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[b_length];
}

const char *kelp_args_nearest(const char *word, const char *(*next)(const void *userp, size_t i),
                              const void *userp) {
    size_t length = strlen(word);
    size_t best = KELP_MAX(length / 3, (size_t)1) + 1;
    const char *nearest = NULL;
    for (size_t i = 0;; i++) {
        const char *candidate = next(userp, i);
        if (candidate == NULL)
            return nearest;
        /* A word in another case or a prefix is the best match. */
        if (strcasecmp(word, candidate) == 0)
            return candidate;
        size_t distance = length > 2 && !strncasecmp(word, candidate, length)
                              ? 0
                              : edit_distance(word, candidate);
        if (distance < best) {
            best = distance;
            nearest = candidate;
        }
    }
}

const kelp_arg_spec *kelp_args_spec(const kelp_command *command, size_t index) {
    for (const kelp_arg_table *const *at = command->tables; at != NULL && *at != NULL; at++) {
        if (index < (*at)->count)
            return &(*at)->specs[index];
        index -= (*at)->count;
    }
    return NULL;
}

static const char *spec_name(const void *userp, size_t i) {
    const kelp_arg_spec *spec = kelp_args_spec(userp, i);
    return spec != NULL ? spec->name : NULL;
}

kelp_status *kelp_arg_list_add(kelp_arg_list *list, const char *item) {
    KELP_TRY(kelp_grow(kelp_allocator_system(), (void **)&list->items, &list->capacity,
                       list->count + 1, sizeof *list->items));
    list->items[list->count++] = item;
    return NULL;
}

static bool parse_bool(const char *text, bool *out) {
    static const char *const yes[] = {"true", "1", "on", "yes", "True", "TRUE"};
    static const char *const no[] = {"false", "0", "off", "no", "False", "FALSE"};
    for (size_t i = 0; i < KELP_COUNT(yes); i++) {
        if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
            *out = !strcmp(text, yes[i]);
            return true;
        }
    }
    return false;
}

static bool is_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    for (const char *at = choices; *at;) {
        size_t word = strcspn(at, "|");
        if (word == length && !memcmp(at, text, length))
            return true;
        at += word + (at[word] == '|');
    }
    return false;
}

kelp_status *kelp_args_set(const kelp_arg_spec *spec, const char *text, void *options) {
    KELP_ASSERT(text != NULL);
    void *member = (char *)options + spec->offset;
    switch (spec->kind) {
    case KELP_OPTION_BOOL:
        if (!parse_bool(text, member))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--%s': expected true or false, found '%s'", spec->name,
                              text);
        return NULL;
    case KELP_ARG_I64: {
        int64_t value;
        if (!kelp_parse_i64(kelp_str_from(text), &value))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--%s': expected an integer, found '%s'", spec->name, text);
        if (spec->min != spec->max && (value < spec->min || value > spec->max))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "option '--%s': expected %lld to %lld, found '%s'", spec->name,
                              (long long)spec->min, (long long)spec->max, text);
        memcpy(member, &value, sizeof value);
        return NULL;
    }
    case KELP_ARG_F64: {
        double value;
        if (!kelp_parse_f64(kelp_str_from(text), &value))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s': expected a number, found '%s'",
                              spec->name, text);
        memcpy(member, &value, sizeof value);
        return NULL;
    }
    case KELP_OPTION_TEXT:
        if (spec->choices != NULL && spec->choices[0] != '@' && !is_choice(spec->choices, text))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s': expected %s, found '%s'",
                              spec->name, spec->choices, text);
        memcpy(member, &text, sizeof text);
        return NULL;
    case KELP_OPTION_LIST:
        break;
    }
    return kelp_arg_list_add(member, text);
}

static const kelp_arg_spec *find_long(const kelp_command *command, kelp_str name) {
    const kelp_arg_spec *spec;
    for (size_t i = 0; (spec = kelp_args_spec(command, i)) != NULL; i++) {
        if (kelp_str_is(name, spec->name))
            return spec;
    }
    return NULL;
}

static kelp_status *unknown_option(const kelp_command *command, kelp_str name) {
    char word[WORD_MAX + 1] = "";
    if (name.length <= WORD_MAX)
        memcpy(word, name.data, name.length);
    /* Options use '-'. Edit distance may not find a name with several '_'. */
    for (char *c = word; *c; c++) {
        if (*c == '_')
            *c = '-';
    }
    const char *nearest = kelp_args_nearest(word, spec_name, command);
    if (nearest != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown option '--%.*s'; did you mean '--%s'?",
                          KELP_STR_ARG(name), nearest);
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown option '--%.*s'", KELP_STR_ARG(name));
}

/* Parses the option at argv[*inout_at], and sets *inout_at to its last word. */
static kelp_status *parse_option(const kelp_command *command, int argc, char **argv, int *inout_at,
                                 void *options, bool *out_help) {
    const char *word = argv[*inout_at];
    const kelp_arg_spec *spec = NULL;
    const char *value = NULL;
    if (word[1] == '-') {
        kelp_str name = {word + 2, strcspn(word + 2, "=")};
        if (word[2 + name.length] == '=')
            value = word + 2 + name.length + 1;
        if (kelp_str_is(name, "help")) {
            *out_help = true;
            return NULL;
        }
        spec = find_long(command, name);
        if (spec == NULL)
            return unknown_option(command, name);
    } else {
        if (!strcmp(word, "-h")) {
            *out_help = true;
            return NULL;
        }
        for (size_t i = 0; (spec = kelp_args_spec(command, i)) != NULL; i++) {
            if (spec->letter == word[1])
                break;
        }
        if (spec == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown option '%s'", word);
        if (word[2])
            value = word + 2 + (word[2] == '=');
    }
    KELP_ASSERT(spec->offset < command->options_bytes);
    KELP_ASSERT((spec->kind == KELP_OPTION_BOOL) == (spec->value == NULL));
    const char *following = *inout_at + 1 < argc ? argv[*inout_at + 1] : NULL;
    if (value == NULL && spec->kind == KELP_OPTION_BOOL) {
        bool ignored;
        value = following != NULL && parse_bool(following, &ignored) ? following : "true";
        *inout_at += value == following;
    } else if (value == NULL) {
        if (following == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '--%s' needs a value, %s", spec->name,
                              spec->value);
        value = following;
        ++*inout_at;
    }
    return kelp_args_set(spec, value, options);
}

kelp_status *kelp_args_parse(const kelp_command *command, int argc, char **argv, void *options,
                             bool *out_help) {
    KELP_ASSERT(command->options_bytes >= sizeof(kelp_arg_list));
    KELP_ASSERT(command->min_positionals <= command->max_positionals);
    kelp_arg_list *positionals = options;
    bool options_end = false;
    *out_help = false;
    for (int i = 0; i < argc; i++) {
        if (!options_end && !strcmp(argv[i], "--")) {
            options_end = true;
        } else if (!options_end && argv[i][0] == '-' && argv[i][1]) {
            KELP_TRY(parse_option(command, argc, argv, &i, options, out_help));
            if (*out_help)
                return NULL;
        } else if (positionals->count == command->max_positionals) {
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "unexpected argument '%s'", argv[i]);
        } else {
            KELP_TRY(kelp_arg_list_add(positionals, argv[i]));
        }
    }
    if (positionals->count < command->min_positionals)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "missing argument %s", command->positional);
    return NULL;
}

void kelp_arg_list_deinit(kelp_arg_list *list) {
    kelp_free(kelp_allocator_system(), list->items, list->capacity * sizeof *list->items);
    *list = (kelp_arg_list){0};
}

void kelp_args_deinit(const kelp_command *command, void *options) {
    const kelp_arg_spec *spec;
    kelp_arg_list_deinit(options);
    for (size_t i = 0; (spec = kelp_args_spec(command, i)) != NULL; i++) {
        if (spec->kind == KELP_OPTION_LIST)
            kelp_arg_list_deinit((kelp_arg_list *)((char *)options + spec->offset));
    }
}

#define HELP_COLUMN 30
#define HELP_WIDTH 100

/* Appends `text` from HELP_COLUMN, wrapped at HELP_WIDTH. */
static void wrap(kelp_buf *out, size_t column, const char *text) {
    KELP_ASSERT(text != NULL);
    if (column + 2 > HELP_COLUMN) {
        kelp_buf_append_char(out, '\n');
        column = 0;
    }
    kelp_buf_printf(out, "%*s", (int)(HELP_COLUMN - column), "");
    column = HELP_COLUMN;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + word > HELP_WIDTH) {
            kelp_buf_printf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            kelp_buf_append_char(out, ' ');
            column++;
        }
        kelp_buf_append(out, text, word);
        column += word;
        text += word + strspn(text + word, " ");
    }
    kelp_buf_append_char(out, '\n');
}

void kelp_args_help(const kelp_command *command, kelp_buf *out) {
    kelp_buf_printf(out, "kelp %s: %s\n\nUsage: kelp %s %s\n", command->name, command->summary,
                    command->name, command->usage);
    if (command->details != NULL)
        kelp_buf_printf(out, "\n%s\n", command->details);
    const kelp_arg_spec *spec;
    for (size_t i = 0; (spec = kelp_args_spec(command, i)) != NULL; i++) {
        if (spec->group != NULL || i == 0)
            kelp_buf_printf(out, "\n%s:\n", spec->group != NULL ? spec->group : "Options");
        size_t before = out->length;
        if (spec->letter)
            kelp_buf_printf(out, "  -%c, --%s", spec->letter, spec->name);
        else
            kelp_buf_printf(out, "  --%s", spec->name);
        if (spec->value != NULL)
            kelp_buf_printf(out, " %s", spec->value);
        wrap(out, kelp_cli_columns(out->data + before, out->length - before), spec->help);
    }
    kelp_buf_append_cstr(out, kelp_args_spec(command, 0) != NULL ? "" : "\nOptions:\n");
    kelp_buf_append_cstr(out, "  -h, --help");
    wrap(out, strlen("  -h, --help"), "print this help");
    if (command->examples != NULL)
        kelp_buf_printf(out, "\nExamples:\n%s\n", command->examples);
    kelp_buf_append_cstr(
        out, "\nExit codes: 0 success, 1 failure (see the message), 2 invalid command line.\n");
}
