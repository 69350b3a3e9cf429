/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs of jobs: the first byte selects the file's name.
 */
#include "fuzz/check.h"
#include "replay/joblog.h"
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct joblog l;
    struct err e;
    memset(&l, CHECK_PATTERN, sizeof l);
    if (size == 0)
        return 0;
    int rc =
        joblog_parse(data[0] == 's' ? "log.swf" : "log", (const char *)data + 1, size - 1, &l, &e);
    if (rc != 0) {
        check_error(rc, &e);
        check_untouched(&l, sizeof l);
        return 0;
    }
    for (size_t i = 0; i < l.n; i++) {
        const struct log_job *j = &l.jobs[i];
        assert(j->work_ms > 0 && j->work_ms <= JOBLOG_RUN_MAX_MS && j->need.cpus >= 1 &&
               j->need.gpus >= 0);
        assert(j->need.memory_mib >= 0 && j->nodes >= 1 && j->nodes <= JOB_NODES_MAX &&
               wall_is_set(j->submit));
        assert(j->save_ms >= JOBLOG_UNKNOWN && j->ckpt_bytes >= JOBLOG_UNKNOWN &&
               j->time_limit_ms >= 0);
        assert(i == 0 || l.jobs[i - 1].submit.ms <= j->submit.ms);
        struct constraints x;
        assert(!j->constraints ||
               (constraints_parse(j->constraints, &x, &e) == 0 && x.input.bytes > 0));
        assert(str_is_utf8(j->name, strlen(j->name)) && strlen(j->user) < CORE_NAME_MAX);
    }
    joblog_deinit(&l);
    return 0;
}
