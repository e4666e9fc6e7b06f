/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/op_env.h: services that an operator may use while it is created, planned or run.
 *
 * The provider passes a kelp_op_env to its operators. It gives access to the threads of the
 * runtime, to cancellation and to memory. This header is independent of graphs and operators, so
 * that numerical code can use the threads of the runtime without them.
 *
 * Thread safety: unless stated otherwise, call these functions only on the thread that received the
 * environment.
 */
#ifndef KELP_OP_ENV_H_
#define KELP_OP_ENV_H_

#include <kelp/allocator.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Services that an operator may use during a call. Valid until the call returns. */
typedef struct kelp_op_env kelp_op_env;

/* Splits [0, count) into chunks, runs `fn` on the threads of the runtime and returns when all
 * chunks are done. Does not allocate. `grain` is the number of items whose work takes long enough
 * (about 16 µs) to justify waking a thread. A chunk has at least `grain` items. Smaller ranges run
 * on the calling thread or on threads that are already awake. `worker` is less than
 * kelp_op_env_threads and unique among the chunks of this call that run at the same time. If the
 * threads are busy (another context, or a nested call), all chunks run on the calling thread as
 * worker 0.
 *
 * Cancellation: long ranges run in chunks of a few milliseconds, even with one thread. After the
 * run has been cancelled, remaining chunks are skipped, so that results may be incomplete. The run
 * then returns CANCELLED, regardless of the kernel's status. A kernel must call
 * kelp_op_env_cancelled before it uses a result of this function as an index or size, or stores it
 * beyond the run; other kernels need not. While memory is being planned, no chunks are skipped. */
KELP_API void kelp_op_parallel(const kelp_op_env *env, int64_t count, int64_t grain,
                               void (*fn)(void *userp, int64_t begin, int64_t end, int worker),
                               void *userp);

/* Returns the number of threads that kelp_op_parallel uses, the calling thread included. */
KELP_API int kelp_op_env_threads(const kelp_op_env *env);

/* Returns true once the run has been cancelled. On the calling thread of the run, also polls the
 * interrupt callback; on worker threads, only reads the flag. Thread-safe. Call it in loops that
 * run for more than a few milliseconds outside of kelp_op_parallel. */
KELP_API bool kelp_op_env_cancelled(const kelp_op_env *env);

/* Returns the allocator for state that the operator keeps. Thread-safe. */
KELP_API kelp_allocator kelp_op_env_allocator(const kelp_op_env *env);

/* Allocates memory, aligned to 64 bytes, that stays valid until the context's next inference. Use
 * it for strings and for results whose size depends on data. Makes no heap call once inferences of
 * these sizes have run. Returns NULL if memory is exhausted, and while memory is being planned. The
 * engine frees the memory. */
KELP_API void *kelp_op_env_alloc(const kelp_op_env *env, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif
