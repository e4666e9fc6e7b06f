/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the machine, from /proc: CPU utilization since the previous page of metrics, and
 * memory. Thread-safe. */
#include "server/metrics/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* CPU time since the machine started, in jiffies. */
typedef struct cpu_times {
    uint64_t all, idle;
} cpu_times;

static bool read_times(cpu_times *out) {
    uint64_t field[8] = {0};
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL)
        return false;
    int count = fscanf(file,
                       "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                       " %" SCNu64 " %" SCNu64,
                       &field[0], &field[1], &field[2], &field[3], &field[4], &field[5], &field[6],
                       &field[7]);
    fclose(file);
    *out = (cpu_times){.idle = field[3] + field[4]}; /* idle, and waiting for I/O */
    for (int i = 0; i < 8; i++)
        out->all += field[i];
    return count >= 4;
}

static bool read_memory(uint64_t *out_total_bytes, uint64_t *out_used_bytes) {
    uint64_t total = 0, available = 0;
    char line[256];
    FILE *file = fopen("/proc/meminfo", "re");
    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t kib = 0;
        if (sscanf(line, "MemTotal: %" SCNu64, &kib) == 1)
            total = kib * 1024;
        else if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            available = kib * 1024;
    }
    fclose(file);
    *out_total_bytes = total;
    *out_used_bytes = total > available ? total - available : 0;
    return total > 0;
}

static double utilization(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cpu_times before;
    static double latest;
    cpu_times now;
    pthread_mutex_lock(&lock);
    if (read_times(&now)) {
        uint64_t all = now.all - before.all, idle = now.idle - before.idle;
        if (now.all > before.all && idle <= all) {
            latest = (double)(all - idle) / (double)all;
            before = now;
        }
    }
    double value = latest;
    pthread_mutex_unlock(&lock);
    return value;
}

void kelp_metrics_write_host(kelp_buf *out) {
    uint64_t total_bytes = 0, used_bytes = 0;
    kelp_metrics_write_header(out, "nv_cpu_utilization", "Fraction of CPU time in use, 0 to 1",
                              "gauge");
    kelp_buf_append_cstr(out, "nv_cpu_utilization ");
    kelp_metrics_write_number(out, utilization());
    kelp_buf_append_char(out, '\n');
    if (!read_memory(&total_bytes, &used_bytes))
        return;
    kelp_metrics_write_header(out, "nv_cpu_memory_total_bytes", "Memory of the machine, in bytes",
                              "gauge");
    kelp_buf_printf(out, "nv_cpu_memory_total_bytes %" PRIu64 "\n", total_bytes);
    kelp_metrics_write_header(out, "nv_cpu_memory_used_bytes", "Memory in use, in bytes", "gauge");
    kelp_buf_printf(out, "nv_cpu_memory_used_bytes %" PRIu64 "\n", used_bytes);
}
