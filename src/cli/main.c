/* SPDX-License-Identifier: Apache-2.0 */
/* The `kelp` program: finds the command, parses its command line and runs it. The commands are in
 * src/cli/commands and src/cli/serve. A link to the program with the name "tritonserver" is that
 * command. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <kelp/engine.h>
#include <stdlib.h>

static const kelp_command *const commands[] = {
    &kelp_cmd_serve,  &kelp_cmd_run,        &kelp_cmd_build,        &kelp_cmd_inspect,
    &kelp_cmd_bench,  &kelp_cmd_top,        &kelp_cmd_kernels,      &kelp_cmd_ops,
    &kelp_cmd_worker, &kelp_cmd_pull,       &kelp_cmd_health,       &kelp_cmd_new,
    &kelp_cmd_doctor, &kelp_cmd_completion, &kelp_cmd_tritonserver,
};

const kelp_command *kelp_cli_command(size_t index) {
    return index < KELP_COUNT(commands) ? commands[index] : NULL;
}

static const char *command_name(const void *userp, size_t i) {
    (void)userp;
    return i < KELP_COUNT(commands) ? commands[i]->name : NULL;
}

static const kelp_command *find_command(const char *name) {
    for (size_t i = 0; i < KELP_COUNT(commands); i++) {
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    }
    return NULL;
}

static void overview(kelp_buf *out) {
    kelp_buf_printf(
        out, "kelp %s: run and serve ONNX models\n\nUsage: kelp COMMAND [arguments]\n\nCommands:\n",
        kelp_version());
    kelp_table table;
    kelp_table_init(&table, 2);
    for (size_t i = 0; i < KELP_COUNT(commands); i++) {
        kelp_table_cell(&table, "%s", commands[i]->name);
        kelp_table_cell(&table, "%s", commands[i]->summary);
    }
    kelp_table_cell(&table, "help");
    kelp_table_cell(&table, "print the help of a command");
    kelp_table_plain(&table, "  ", out);
    kelp_buf_append_cstr(
        out, "\nOptions:\n  --version  print the version\n  --help     print this "
             "help\n\nExamples:\n  kelp serve --model-repository examples/models\n  kelp run "
             "examples/models/digits/1/model.onnx --input image=@examples/requests/digits.npy\n  "
             "kelp inspect examples/models/digits/1/model.onnx\n  kelp help serve\n\nExit codes: 0 "
             "success, 1 failure (see the message), 2 invalid command line.\n");
}

static int print_help(const kelp_command *command) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    if (command != NULL)
        kelp_args_help(command, &text);
    else
        overview(&text);
    int code = kelp_cli_finish(kelp_cli_print(&text));
    kelp_buf_deinit(&text);
    return code;
}

static int unknown_command(const char *name) {
    const char *nearest = kelp_args_nearest(name, command_name, NULL);
    if (nearest != NULL)
        fprintf(stderr, "kelp: unknown command '%s'; did you mean '%s'?\n", name, nearest);
    else
        fprintf(stderr, "kelp: unknown command '%s'\n", name);
    fprintf(stderr, "See 'kelp help'.\n");
    return KELP_EXIT_USAGE;
}

static int run_command(const kelp_command *command, int argc, char **argv) {
    if (command->main != NULL)
        return command->main(command, argc, argv);
    kelp_allocator allocator = kelp_allocator_system();
    void *options = NULL;
    kelp_status *status = kelp_alloc_zero(allocator, 1, command->options_bytes, &options);
    if (status != NULL)
        return kelp_cli_finish(status);
    if (command->defaults != NULL)
        command->defaults(options);
    bool help = false;
    int code;
    status = kelp_args_parse(command, argc, argv, options, &help);
    if (status != NULL)
        code = kelp_cli_usage(command, status);
    else if (help)
        code = print_help(command);
    else
        code = command->run(command, options);
    kelp_args_deinit(command, options);
    kelp_free(allocator, options, command->options_bytes);
    return code;
}

static int help_command(int argc, char **argv) {
    if (argc < 1)
        return print_help(NULL);
    const kelp_command *command = find_command(argv[0]);
    return command != NULL ? print_help(command) : unknown_command(argv[0]);
}

int main(int argc, char **argv) {
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    if (argc > 0 && !strcmp(slash != NULL ? slash + 1 : argv[0], kelp_cmd_tritonserver.name))
        return run_command(&kelp_cmd_tritonserver, argc - 1, argv + 1);
    if (argc < 2) {
        (void)print_help(NULL);
        return KELP_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--version") || !strcmp(name, "-V") || !strcmp(name, "version")) {
        printf("kelp %s\n", kelp_version());
        return fflush(stdout) ? KELP_EXIT_FAILURE : KELP_EXIT_OK;
    }
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
        return help_command(argc - 2, argv + 2);
    const kelp_command *command = find_command(name);
    return command != NULL ? run_command(command, argc - 2, argv + 2) : unknown_command(name);
}
