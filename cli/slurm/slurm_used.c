/* SPDX-License-Identifier: Apache-2.0
 *
 * Resource use of a job in Slurm's terms (see slurm.h): of its newest attempt, with all processes
 * of a node as one task, because belay does not account tasks separately.
 */
#include "cli/slurm/slurm.h"
#include "cli/cli.h"
#include "cli/reports/job_use.h"

#include <string.h>

bool slurm_is_usage(int what)
{
    switch (what) {
    case JOB_TOTAL_CPU:
    case JOB_USER_CPU:
    case JOB_SYSTEM_CPU:
    case JOB_AVE_CPU:
    case JOB_MAX_RSS:
    case JOB_MAX_RSS_NODE:
    case JOB_MAX_RSS_TASK:
    case JOB_AVE_RSS:
        return true;
    default:
        return false;
    }
}

/* "01:02.345", "1-02:03:04" */
static void add_cpu(int64_t ms, struct buf *out)
{
    int64_t s = ms / 1000;
    if (s < 3600)
        buf_printf(out, "%02lld:%02lld.%03lld", (long long)(s / 60), (long long)(s % 60),
            (long long)(ms % 1000));
    else
        slurm_time_used(ms, true, out);
}

static void add_kib(int64_t bytes, struct buf *out)
{
    if (bytes > 0)
        buf_printf(out, "%lldK", (long long)(bytes + 1023) / 1024);
}

/* Adds the rank's node. The nodes are in the order of their ranks; if belayd has forgotten one, the
 * order is unknown, and nothing is added. */
static void add_node_of(const struct slurm_job *j, int64_t rank, struct buf *out)
{
    const char *nodes = j->nodes ? j->nodes : "";
    int64_t missing = 0;
    const json_t *a;
    size_t i;
    json_array_foreach(json_object_get(j->detail, "attempts"), i, a)
    {
        missing += cli_int(a, "attempt", 0) == cli_int(j->job, "attempts", 0);
    }
    for (const char *p = nodes; p && *p; p = strchr(p, ','), p += p != NULL)
        missing--;
    if (missing != 0)
        return;
    for (; rank > 0 && *nodes; rank--) {
        nodes += strcspn(nodes, ",");
        nodes += *nodes == ',';
    }
    buf_add(out, nodes, strcspn(nodes, ","));
}

void slurm_used_value(const struct slurm_job *j, int what, struct buf *out)
{
    struct used u;
    if (!used_of(j->detail, &u))
        return;
    switch (what) {
    case JOB_TOTAL_CPU:
        add_cpu(u.cpu_ms, out);
        return;
    case JOB_USER_CPU:
        if (u.user_ms > 0)
            add_cpu(u.user_ms, out);
        return;
    case JOB_SYSTEM_CPU:
        if (u.user_ms > 0)
            add_cpu(u.cpu_ms > u.user_ms ? u.cpu_ms - u.user_ms : 0, out);
        return;
    case JOB_AVE_CPU:
        slurm_time_used(u.cpu_ms / u.ranks, true, out);
        return;
    case JOB_MAX_RSS:
        add_kib(u.peak_most, out);
        return;
    case JOB_MAX_RSS_NODE:
        if (u.peak_rank >= 0)
            add_node_of(j, u.peak_rank, out);
        return;
    case JOB_MAX_RSS_TASK:
        if (u.peak_rank >= 0)
            buf_printf(out, "%lld", (long long)u.peak_rank);
        return;
    default: /* JOB_AVE_RSS: the average process */
        add_kib(u.peak_sum / u.ranks, out);
        return;
    }
}
