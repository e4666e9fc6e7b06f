/* SPDX-License-Identifier: Apache-2.0 */
/* NULL wherever a pointer is asked for: every export comes back, and those that return errors say
 * an error that names the argument. */
#include "null_calls.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

_Alignas(128) char null_calls_blank[1 << 17];
static sigjmp_buf crashed;
static const char *wordless; /* of the current call */
static size_t errors;

static void on_crash(int number) {
    (void)number;
    siglongjmp(crashed, 1);
}

void null_calls_take(TRITONSERVER_Error *error) {
    if (!error)
        return;
    errors++;
    if (TRITONSERVER_ErrorMessage(error)[0] == '\0')
        wordless = "its error has no words";
    TRITONSERVER_ErrorDelete(error);
}

/* NULL, or what is wrong with the call. */
static const char *try_call(const null_call *call) {
    wordless = NULL;
    memset(null_calls_blank, 0, sizeof null_calls_blank);
    if (sigsetjmp(crashed, 1))
        return "it crashes";
    call->fn();
    return wordless;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_NODEFER};
    size_t failed = 0;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    for (size_t i = 0; i < null_call_count; i++) {
        const char *wrong = try_call(&null_calls[i]);
        if (wrong)
            printf("not ok: %s: %s\n", null_calls[i].what, wrong);
        failed += wrong != NULL;
    }
    printf("%zu calls, %zu rejected\n", null_call_count, errors);
    printf("%zu passed, %zu failed\n", null_call_count - failed, failed);
    return failed != 0;
}
