/* SPDX-License-Identifier: Apache-2.0 */
/* Repository agents: the order of actions, rejected models, and replaced files. */
#include "server/support.h"

#include <sys/stat.h>
#include <time.h>
#include <triton/core/tritonrepoagent.h>

/* Creates a model with an agent and the agent's parameters. */
static void model(const repo *r, const char *name, const char *parameters) {
    char text[4096];
    snprintf(text, sizeof text,
             "%smodel_repository_agents { agents [ { name: \"relocate\" parameters [ { key: "
             "\"log\" value: \"%s.log\" } %s ] } ] }\n",
             addsub_config, r->path, parameters);
    repo_model(r, name, text);
}

static TRITONSERVER_Server *start(const repo *r) {
    return server_start(r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                           .agents = KELP_TEST_BACKENDS});
}

/* Waits, at most 10 s, until the agent has received these actions. */
static void saw(const repo *r, const char *actions) {
    char path[300], text[256] = "";
    snprintf(path, sizeof path, "%s.log", r->path);
    for (int i = 0; i < 1000; i++) {
        FILE *file = fopen(path, "r");
        if (file && !fgets(text, sizeof text, file))
            text[0] = '\0';
        if (file)
            fclose(file);
        if (strcmp(text, actions) == 0)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_string_equal(text, actions);
}

static void end(TRITONSERVER_Server *server, repo *r) {
    char path[300];
    server_end(server);
    snprintf(path, sizeof path, "%s.log", r->path);
    remove(path);
    repo_remove(r);
}

static void ask(TRITONSERVER_Server *server, const char *name) {
    call c;
    float a[16], b[16];
    size_t size_bytes = 0;
    call_init(&c, server, name, -1);
    call_addsub(&c, a, b, 3);
    call_run(&c);
    const float *sum = call_output(&c, "OUTPUT0", &size_bytes);
    assert_true(sum[0] == 4);
    call_deinit(&c);
}

static void test_actions_are_called_in_order(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    model(&r, "seen", "");
    TRITONSERVER_Server *server = start(&r);
    ok(TRITONSERVER_ServerLoadModel(server, "seen"));
    saw(&r, "0 1 ");
    ask(server, "seen");
    ok(TRITONSERVER_ServerUnloadModel(server, "seen"));
    saw(&r, "0 1 3 4 ");
    ok(TRITONSERVER_ServerLoadModel(server, "seen"));
    ok(TRITONSERVER_ServerLoadModel(
        server, "seen")); /* the new model is loaded before the old one is unloaded */
    saw(&r, "0 1 3 4 0 1 0 1 3 4 ");
    end(server, &r);
}

static void test_agent_can_reject_a_model(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    model(&r, "rejected", ", { key: \"reject\" value: \"not on my watch\" }");
    model(&r, "changed", ", { key: \"sum\" value: \"294\" }");
    repo_file(&r, "changed/1/weights", "abc");
    TRITONSERVER_Server *server = start(&r);
    fails(TRITONSERVER_ServerLoadModel(server, "rejected"), TRITONSERVER_ERROR_UNAVAILABLE,
          "not on my watch (rejected by repository agent 'relocate')");
    saw(&r, "0 ");
    ok(TRITONSERVER_ServerLoadModel(server, "changed"));
    repo_file(&r, "changed/1/weights", "abd");
    fails(TRITONSERVER_ServerLoadModel(server, "changed"), TRITONSERVER_ERROR_INTERNAL,
          "failed to poll from model repository: the weights were changed");
    ask(server, "changed"); /* the previous model continues to serve */
    end(server, &r);
}

/* A model whose load fails after the agent's LOAD. */
static void test_failed_load_calls_the_agent(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    model(&r, "broken", ", { key: \"move\" value: \"platform: 7\" }");
    TRITONSERVER_Server *server = start(&r);
    fails(TRITONSERVER_ServerLoadModel(server, "broken"), TRITONSERVER_ERROR_INTERNAL, "platform");
    saw(&r, "0 2 ");
    end(server, &r);
}

static void test_files_are_replaced(void **state) {
    repo r;
    TRITONSERVER_Message *message = NULL;
    (void)state;
    repo_make(&r);
    model(
        &r, "moved",
        ", { key: \"move\" value: \"parameters { key: 'moved' value { string_value: 'yes' } }\" }");
    TRITONSERVER_Server *server = start(&r);
    ok(TRITONSERVER_ServerLoadModel(server, "moved"));
    ask(server, "moved");
    ok(TRITONSERVER_ServerModelConfig(server, "moved", -1, 1, &message));
    char *text = message_text(message);
    contains(text, "\"moved\":{\"string_value\":\"yes\"}");
    free(text);
    end(server, &r);
}

/* A configuration with agents need not be complete. The second agent sees that of the first one. */
static void test_incomplete_configuration_is_replaced(void **state) {
    repo r;
    char complete[1024], text[4096];
    size_t length = 0;
    (void)state;
    repo_make(&r);
    for (const char *at = addsub_config; *at; at++)
        complete[length++] = *at == '"' ? '\'' : *at == '\n' ? ' ' : *at;
    complete[length] = '\0';
    snprintf(text, sizeof text,
             "model_repository_agents { agents [ { name: \"relocate\" parameters [ { key: \"move\" "
             "value: \"%s\" } ] }, { name: \"relocate\" parameters [ { key: \"sees\" value: "
             "\"INPUT1\" } ] } ] }\n",
             complete);
    repo_model(&r, "stub", text);
    repo_model(&r, "left", "model_repository_agents { agents [ { name: \"relocate\" } ] }\n");
    TRITONSERVER_Server *server = start(&r);
    ok(TRITONSERVER_ServerLoadModel(server, "stub"));
    ask(server, "stub");
    fails(TRITONSERVER_ServerLoadModel(server, "left"), TRITONSERVER_ERROR_INTERNAL,
          "Could not determine backend");
    end(server, &r);
}

static void test_unknown_agent_is_an_error(void **state) {
    repo r;
    char text[2048];
    (void)state;
    repo_make(&r);
    snprintf(text, sizeof text, "%smodel_repository_agents { agents [ { name: \"unknown\" } ] }\n",
             addsub_config);
    repo_model(&r, "lost", text);
    TRITONSERVER_Server *server = start(&r);
    fails(TRITONSERVER_ServerLoadModel(server, "lost"), TRITONSERVER_ERROR_INTERNAL,
          "unknown/libtritonrepoagent_unknown.so");
    end(server, &r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_actions_are_called_in_order),
        cmocka_unit_test(test_agent_can_reject_a_model),
        cmocka_unit_test(test_failed_load_calls_the_agent),
        cmocka_unit_test(test_files_are_replaced),
        cmocka_unit_test(test_incomplete_configuration_is_replaced),
        cmocka_unit_test(test_unknown_agent_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
