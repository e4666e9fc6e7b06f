/* SPDX-License-Identifier: Apache-2.0 */
/* kelp completion: generates completion scripts from the tables of options. */
#include "cli/cli.h"

#include "base/checked.h"

typedef struct completion_options {
    kelp_arg_list positionals;
} completion_options;

/* Appends a list of choices as "a b c". */
static void put_choices(const char *choices, kelp_buf *out) {
    for (const char *c = choices; *c; c++)
        kelp_buf_append_char(out, *c == '|' ? ' ' : *c);
}

static void bash_command(const kelp_command *command, kelp_buf *out) {
    kelp_buf_printf(out, "    %s)\n        case \"$prev\" in\n", command->name);
    const kelp_arg_spec *spec;
    for (size_t i = 0; (spec = kelp_args_spec(command, i)) != NULL; i++) {
        if (spec->choices == NULL)
            continue;
        kelp_buf_printf(out, "        --%s) ", spec->name);
        if (spec->choices[0] == '@') {
            kelp_buf_printf(out, "COMPREPLY=($(compgen -%c -- \"$cur\"))",
                            !strcmp(spec->choices, "@dir") ? 'd' : 'f');
        } else {
            kelp_buf_append_cstr(out, "COMPREPLY=($(compgen -W \"");
            put_choices(spec->choices, out);
            kelp_buf_append_cstr(out, "\" -- \"$cur\"))");
        }
        kelp_buf_append_cstr(out, "; return ;;\n");
    }
    kelp_buf_append_cstr(out, "        esac\n");
    if (command->first_choices != NULL) {
        kelp_buf_append_cstr(out, "        if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
                                  "            COMPREPLY=($(compgen -W \"--help ");
        put_choices(command->first_choices, out);
        kelp_buf_append_cstr(out, "\" -- \"$cur\"))\n            return\n        fi\n");
    }
    kelp_buf_append_cstr(out, "        options=\"--help");
    for (size_t i = 0; (spec = kelp_args_spec(command, i)) != NULL; i++)
        kelp_buf_printf(out, " --%s", spec->name);
    kelp_buf_append_cstr(out, "\" ;;\n");
}

static void put_bash(kelp_buf *out) {
    kelp_buf_append_cstr(out, "# SPDX-License-Identifier: Apache-2.0\n# bash completion for kelp; "
                              "printed by 'kelp completion bash'\n"
                              "_kelp() {\n"
                              "    local cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
                              "    local prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
                              "    local options=\"\"\n"
                              "    COMPREPLY=()\n"
                              "    if [ \"$COMP_CWORD\" -eq 1 ] || "
                              "{ [ \"$COMP_CWORD\" -eq 2 ] && [ \"$prev\" = help ]; }; then\n"
                              "        COMPREPLY=($(compgen -W \"help --version --help");
    for (size_t i = 0; kelp_cli_command(i) != NULL; i++)
        kelp_buf_printf(out, " %s", kelp_cli_command(i)->name);
    kelp_buf_append_cstr(out, "\" -- \"$cur\"))\n        return\n    fi\n"
                              "    case \"${COMP_WORDS[1]}\" in\n");
    for (size_t i = 0; kelp_cli_command(i) != NULL; i++)
        bash_command(kelp_cli_command(i), out);
    kelp_buf_append_cstr(out, "    esac\n"
                              "    case \"$cur\" in\n"
                              "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
                              "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
                              "    esac\n"
                              "}\ncomplete -o filenames -F _kelp kelp\n");
}

/* Appends text for zsh's '…[help]…', with brackets, colons and quotes escaped. */
static void zsh_help(const char *help, kelp_buf *out) {
    for (const char *c = help; *c; c++) {
        if (*c == '[' || *c == ']' || *c == ':' || *c == '\\')
            kelp_buf_append_char(out, '\\');
        if (*c == '\'')
            kelp_buf_append_cstr(out, "'\\''");
        else
            kelp_buf_append_char(out, *c);
    }
}

static void zsh_command(const kelp_command *command, kelp_buf *out) {
    kelp_buf_printf(out, "    %s)\n        _arguments '--help[this text]'", command->name);
    const kelp_arg_spec *spec;
    for (size_t i = 0; (spec = kelp_args_spec(command, i)) != NULL; i++) {
        kelp_buf_printf(out, " \\\n            '%s--%s%s[",
                        spec->kind == KELP_OPTION_LIST ? "*" : "", spec->name,
                        spec->kind == KELP_OPTION_BOOL ? "" : "=");
        zsh_help(spec->help, out);
        kelp_buf_append_char(out, ']');
        if (spec->kind != KELP_OPTION_BOOL) {
            kelp_buf_append_char(out, ':');
            zsh_help(spec->value, out);
            kelp_buf_append_char(out, ':');
            if (spec->choices == NULL) {
                kelp_buf_append_char(out, ' ');
            } else if (spec->choices[0] == '@') {
                kelp_buf_append_cstr(out, !strcmp(spec->choices, "@dir") ? "_files -/" : "_files");
            } else {
                kelp_buf_append_char(out, '(');
                put_choices(spec->choices, out);
                kelp_buf_append_char(out, ')');
            }
        }
        kelp_buf_append_char(out, '\'');
    }
    if (command->first_choices != NULL) {
        kelp_buf_append_cstr(out, " \\\n            '1: :(");
        put_choices(command->first_choices, out);
        kelp_buf_append_cstr(out, ")'");
    }
    kelp_buf_append_cstr(out, " \\\n            '*:file:_files' ;;\n");
}

static void put_zsh(kelp_buf *out) {
    kelp_buf_append_cstr(out, "#compdef kelp\n# SPDX-License-Identifier: Apache-2.0\n# printed by "
                              "'kelp completion zsh'\n_kelp() {\n"
                              "    if (( CURRENT == 2 )); then\n        local -a commands=(");
    for (size_t i = 0; kelp_cli_command(i) != NULL; i++) {
        kelp_buf_printf(out, "\n            '%s:", kelp_cli_command(i)->name);
        zsh_help(kelp_cli_command(i)->summary, out);
        kelp_buf_append_char(out, '\'');
    }
    kelp_buf_append_cstr(out, "\n            'help:explain a command')\n"
                              "        _describe command commands\n        return\n    fi\n"
                              "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                              "    case $command in\n");
    for (size_t i = 0; kelp_cli_command(i) != NULL; i++)
        zsh_command(kelp_cli_command(i), out);
    kelp_buf_append_cstr(out, "    esac\n}\n"
                              "if [ \"$funcstack[1]\" = _kelp ]; then _kelp \"$@\"; "
                              "else compdef _kelp kelp; fi\n");
}

static void fish_quote(const char *text, kelp_buf *out) {
    kelp_buf_append_char(out, '\'');
    for (const char *c = text; *c; c++) {
        if (*c == '\'' || *c == '\\')
            kelp_buf_append_char(out, '\\');
        kelp_buf_append_char(out, *c);
    }
    kelp_buf_append_char(out, '\'');
}

static void fish_command(const kelp_command *command, kelp_buf *out) {
    kelp_buf_printf(out, "complete -c kelp -n __fish_use_subcommand -f -a %s -d ", command->name);
    fish_quote(command->summary, out);
    kelp_buf_append_char(out, '\n');
    if (command->first_choices != NULL) {
        kelp_buf_printf(out,
                        "complete -c kelp -n '__fish_seen_subcommand_from %s; and test (count "
                        "(commandline -opc)) -eq 2' -f -a '",
                        command->name);
        put_choices(command->first_choices, out);
        kelp_buf_append_cstr(out, "'\n");
    }
    const kelp_arg_spec *spec;
    for (size_t i = 0; (spec = kelp_args_spec(command, i)) != NULL; i++) {
        kelp_buf_printf(out, "complete -c kelp -n '__fish_seen_subcommand_from %s' -l %s",
                        command->name, spec->name);
        if (spec->letter)
            kelp_buf_printf(out, " -s %c", spec->letter);
        if (spec->kind != KELP_OPTION_BOOL)
            kelp_buf_append_cstr(out, " -r");
        if (spec->choices != NULL && spec->choices[0] != '@') {
            kelp_buf_append_cstr(out, " -f -a '");
            put_choices(spec->choices, out);
            kelp_buf_append_char(out, '\'');
        }
        kelp_buf_append_cstr(out, " -d ");
        fish_quote(spec->help, out);
        kelp_buf_append_char(out, '\n');
    }
}

static void put_fish(kelp_buf *out) {
    kelp_buf_append_cstr(out, "# SPDX-License-Identifier: Apache-2.0\n# fish completion for kelp; "
                              "printed by 'kelp completion fish'\n");
    for (size_t i = 0; kelp_cli_command(i) != NULL; i++)
        fish_command(kelp_cli_command(i), out);
    kelp_buf_append_cstr(out, "complete -c kelp -n __fish_use_subcommand -f -a help -d "
                              "'explain a command'\n");
}

static int run(const kelp_command *command, void *options) {
    static const struct {
        const char *shell;
        void (*put)(kelp_buf *out);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    const char *shell = ((const completion_options *)options)->positionals.items[0];
    for (size_t i = 0; i < KELP_COUNT(shells); i++) {
        if (strcmp(shell, shells[i].shell))
            continue;
        kelp_buf text;
        kelp_buf_init(&text, kelp_allocator_system());
        shells[i].put(&text);
        int code = kelp_cli_finish(kelp_cli_print(&text));
        kelp_buf_deinit(&text);
        return code;
    }
    return kelp_cli_usage(
        command,
        KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown shell '%s': expected bash, zsh or fish", shell));
}

const kelp_command kelp_cmd_completion = {
    .name = "completion",
    .summary = "print a completion script for a shell",
    .usage = "bash|zsh|fish",
    .examples = "  source <(kelp completion bash)\n"
                "  kelp completion zsh > \"${fpath[1]}/_kelp\"\n"
                "  kelp completion fish > ~/.config/fish/completions/kelp.fish",
    .positional = "bash|zsh|fish",
    .first_choices = "bash|zsh|fish",
    .min_positionals = 1,
    .max_positionals = 1,
    .options_bytes = sizeof(completion_options),
    .run = run,
};
