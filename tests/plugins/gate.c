/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous kernels that are in flight until `open` is called. */
#include <kelp/kernel.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

typedef struct call {
    const kelp_kernel_context *context;
    kelp_kernel_completion *completion;
    const DLTensor *values;
    double *sum;
    struct call *next;
} call;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static call *waiting;

static void complete(call *done) {
    *done->sum = 0;
    for (int64_t i = 0; i < done->values->shape[0]; i++)
        *done->sum += ((const double *)done->values->data)[i];
    done->context->complete(done->completion, KELP_OK, NULL);
    free(done);
}

static call *begin(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    call *made = malloc(sizeof *made);
    if (made != NULL)
        *made = (call){context, context->later(context), args[1].as.tensor, args[0].as.tensor->data,
                       NULL};
    return made;
}

static kelp_code wait_for_open(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    call *made = begin(context, args);
    if (made == NULL)
        return KELP_RESOURCE_EXHAUSTED;
    pthread_mutex_lock(&mutex);
    made->next = waiting;
    waiting = made;
    pthread_mutex_unlock(&mutex);
    return KELP_OK;
}

static void *open_main(void *userp) {
    for (call *done = userp, *next; done != NULL; done = next) {
        next = done->next;
        complete(done);
    }
    return NULL;
}

/* Completes the calls on a thread that Python does not know. */
static kelp_code open_gate(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    pthread_t thread;
    (void)context, (void)args;
    pthread_mutex_lock(&mutex);
    call *all = waiting;
    waiting = NULL;
    pthread_mutex_unlock(&mutex);
    if (pthread_create(&thread, NULL, open_main, all) != 0)
        return KELP_RESOURCE_EXHAUSTED;
    pthread_detach(thread);
    return KELP_OK;
}

static void *slow_main(void *userp) {
    thrd_sleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    complete(userp);
    return NULL;
}

static kelp_code slow(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    pthread_t thread;
    call *made = begin(context, args);
    if (made == NULL || pthread_create(&thread, NULL, slow_main, made) != 0)
        return KELP_RESOURCE_EXHAUSTED;
    pthread_detach(thread);
    return KELP_OK;
}

static kelp_code fails(const kelp_kernel_context *context, const kelp_kernel_arg *args) {
    (void)args;
    (void)context->later(context);
    context->fail(context, "failed at once");
    return KELP_UNAVAILABLE;
}

#define SUM "out sum: float64[], values: float64[n]"
static const kelp_kernel_def kernels[] = {
    {.name = "wait", .signature = SUM, .fn = wait_for_open, .flags = KELP_KERNEL_ASYNC},
    {.name = "open", .signature = "", .fn = open_gate},
    {.name = "slow", .signature = SUM, .fn = slow, .flags = KELP_KERNEL_ASYNC},
    {.name = "fails", .signature = SUM, .fn = fails, .flags = KELP_KERNEL_ASYNC},
};
KELP_KERNEL_LIBRARY("gate", kernels)
