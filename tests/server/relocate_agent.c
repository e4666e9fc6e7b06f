/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A repository agent for tests. Parameters: "log" is a file to which each action's number is
 * appended; "reject" fails LOAD with its value as message; "sum" is the expected sum of the bytes
 * of `1/weights`; "sees" is a part of the configuration; "move" is appended to a copy of
 * config.pbtxt in an acquired directory, which is then served.
 */
#include <triton/core/tritonrepoagent.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *parameter(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                             const char *name) {
    uint32_t count = 0;
    TRITONSERVER_ErrorDelete(TRITONREPOAGENT_ModelParameterCount(agent, model, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *key = "", *value = NULL;
        TRITONSERVER_ErrorDelete(TRITONREPOAGENT_ModelParameter(agent, model, i, &key, &value));
        if (strcmp(key, name) == 0)
            return value;
    }
    return NULL;
}

static const char *place(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model) {
    TRITONREPOAGENT_ArtifactType type;
    const char *location = NULL;
    TRITONSERVER_ErrorDelete(
        TRITONREPOAGENT_ModelRepositoryLocation(agent, model, &type, &location));
    return location;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelInitialize(TRITONREPOAGENT_Agent *agent,
                                                    TRITONREPOAGENT_AgentModel *model) {
    const char *log = parameter(agent, model, "log");
    return TRITONREPOAGENT_ModelSetState(model, log ? strdup(log) : NULL);
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelFinalize(TRITONREPOAGENT_Agent *agent,
                                                  TRITONREPOAGENT_AgentModel *model) {
    void *state = NULL;
    (void)agent;
    TRITONSERVER_Error *error = TRITONREPOAGENT_ModelState(model, &state);
    free(state);
    return error;
}

static TRITONSERVER_Error *check_sum(const char *directory, long expected) {
    char path[1024];
    long sum = 0;
    snprintf(path, sizeof path, "%s/1/weights", directory);
    FILE *file = fopen(path, "rb");
    for (int c; file && (c = fgetc(file)) != EOF;)
        sum += c;
    if (file)
        fclose(file);
    return sum == expected
               ? NULL
               : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "the weights were changed");
}

static TRITONSERVER_Error *check_config(TRITONREPOAGENT_Agent *agent,
                                        TRITONREPOAGENT_AgentModel *model, const char *part) {
    TRITONSERVER_Message *message = NULL;
    const char *text = NULL;
    size_t length = 0;
    TRITONSERVER_Error *error = TRITONREPOAGENT_ModelConfig(agent, model, 1, &message);
    if (error)
        return error;
    error = TRITONSERVER_MessageSerializeToJson(message, &text, &length);
    if (!error && !memmem(text, length, part, strlen(part)))
        error = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "another configuration");
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
    return error;
}

static TRITONSERVER_Error *move(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                                const char *more) {
    char path[1024];
    const char *directory = NULL;
    TRITONSERVER_Error *error = TRITONREPOAGENT_ModelRepositoryLocationAcquire(
        agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &directory);
    if (error)
        return error;
    snprintf(path, sizeof path, "%s/1", directory);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/config.pbtxt", place(agent, model));
    FILE *from = fopen(path, "r");
    snprintf(path, sizeof path, "%s/config.pbtxt", directory);
    FILE *to = fopen(path, "w");
    for (int c; from && to && (c = fgetc(from)) != EOF;)
        fputc(c, to);
    if (to) {
        fputs(more, to);
        fclose(to);
    }
    if (from)
        fclose(from);
    return TRITONREPOAGENT_ModelRepositoryUpdate(agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM,
                                                 directory);
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent,
                                                TRITONREPOAGENT_AgentModel *model,
                                                const TRITONREPOAGENT_ActionType action) {
    void *log = NULL;
    TRITONSERVER_Error *error = TRITONREPOAGENT_ModelState(model, &log);
    FILE *file = log ? fopen(log, "a") : NULL;
    if (file) {
        fprintf(file, "%d ", (int)action);
        fclose(file);
    }
    if (error || action != TRITONREPOAGENT_ACTION_LOAD)
        return error;
    const char *reject = parameter(agent, model, "reject");
    if (reject)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, reject);
    const char *sum = parameter(agent, model, "sum");
    if (sum)
        error = check_sum(place(agent, model), strtol(sum, NULL, 10));
    const char *part = parameter(agent, model, "sees");
    if (part && !error)
        error = check_config(agent, model, part);
    const char *more = error ? NULL : parameter(agent, model, "move");
    return more ? move(agent, model, more) : error;
}
