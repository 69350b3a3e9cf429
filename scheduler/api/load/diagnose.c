/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/jobs/N/diagnose: what a job did and what slows it down. telemetry/diagnose.c makes
 * the judgement.
 */
#include "scheduler/api/api_private.h"
#include "scheduler/job_loads.h"

#include <string.h>

#define PERIOD_MIN_MS 1000
#define PERIOD_MAX_MS (90 * 86400000LL)

static json_t *evidence_json(const struct finding *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->n_evidence; i++)
        json_array_append_new(
            list, json_pack("{s:s,s:I,s:s}", "name", f->evidence[i].name, "value",
                      (json_int_t)f->evidence[i].value, "unit", f->evidence[i].unit));
    return list;
}

static json_t *finding_json(const struct finding *f)
{
    json_t *list = json_array();
    for (const char *const *r = f->remedies; *r; r++)
        json_array_append_new(list, json_string(*r));
    return json_pack("{s:s,s:i,s:o,s:o,s:o,s:o}", "code", finding_code_names[f->code], "rank",
        (int)f->rank, "gpu", api_json_opt(f->gpu, -1), "text", json_text(f->text), "evidence",
        evidence_json(f), "remedies", list);
}

static json_t *task_json(const struct task_load *l)
{
    json_t *o = json_object();
#define SET(member) json_object_set_new(o, #member, json_integer(l->member))
    SET(ms);
    SET(cpu_ms);
    SET(busiest_ms);
    SET(blocked_ms);
    SET(stall_ms);
    SET(waited_ms);
    SET(memory_bytes);
    SET(swap_bytes);
    SET(read_bytes);
    SET(write_bytes);
    SET(faults);
    SET(refaults);
    SET(net_in_bytes);
    SET(net_out_bytes);
    json_object_set_new(o, "net_is_nodes", json_boolean(l->net_is_nodes));
    SET(link_bytes_s);
    SET(node_cpus);
    SET(node_cpu_ms);
    SET(node_iowait_ms);
    SET(node_swapped_bytes);
    return o;
}

static json_t *gpu_json(const struct job_gpu *g)
{
    const struct gpu_load *l = &g->load;
    json_t *o = json_object();
    json_object_set_new(o, "rank", json_integer(g->rank));
    json_object_set_new(o, "gpu", json_text(g->gpu));
    json_object_set_new(o, "index", json_integer(g->index));
    json_object_set_new(o, "is_slice", json_boolean(g->is_slice));
    SET(ms);
    SET(known_ms);
    SET(busy_ms);
    SET(memory_bytes);
    SET(memory_total_bytes);
    SET(energy_mj);
    SET(power_limit_mw);
    SET(temperature_c);
    SET(clock_permille_ms);
    SET(thermal_ms);
    SET(power_ms);
    SET(slowed_ms);
    SET(ecc_corrected);
    SET(ecc_uncorrected);
    SET(processes);
#undef SET
    return o;
}

static json_t *ranks_json(const struct job_loads *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->n_ranks; i++) {
        json_t *o = task_json(&l->ranks[i].load);
        json_object_set_new(o, "rank", json_integer(l->ranks[i].rank));
        json_object_set_new(o, "node", json_integer(l->ranks[i].node));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *reply_json(
    const struct request *q, const struct job_row *row, const struct job_loads *l, struct wall from)
{
    struct finding found[FINDING_CODES];
    const struct diagnose_limits *limits = &q->api->o.config->telemetry.diagnose;
    json_t *list = json_array(), *gpu_list = json_array();
    bool enough;
    size_t n = job_loads_diagnose(l, limits, found, &enough);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, finding_json(&found[i]));
    for (size_t i = 0; i < l->n_gpus; i++)
        json_array_append_new(gpu_list, gpu_json(&l->gpus[i]));
    json_t *o = json_pack("{s:I,s:s,s:I,s:o,s:b,s:o,s:o,s:o}", "job", (json_int_t)row->id, "ref",
        job_ref(row).s, "attempt", (json_int_t)l->attempt, "from", api_json_time(from), "enough",
        (int)enough, "findings", list, "ranks", ranks_json(l), "gpus", gpu_list);
    json_object_set_new(o, "least_ms", json_integer(limits->least_ms));
    return o;
}

void api_jobs_diagnose(struct request *q)
{
    const struct config_telemetry *c = &q->api->o.config->telemetry;
    struct job_row row;
    struct job_loads l;
    struct err e;
    int64_t over_ms;
    if (!api_query_i64(q, "over_ms", PERIOD_MIN_MS, PERIOD_MAX_MS, c->over_ms, &over_ms) ||
        !api_find_job(q, RIGHT_READ_JOB, &row))
        return;
    struct wall now = clock_wall(q->api->o.timers->clock);
    struct wall to = row.state == JOB_ENDED && wall_is_set(row.ended_at) ? row.ended_at : now,
                from = {to.ms - over_ms};
    int rc = job_loads_read(&l, q->api->o.reader, tick_model(q->api->o.tick), &row, from,
        job_loads_finest(c, now.ms - from.ms), &e);
    if (rc == 0)
        api_reply_json(q->x, 200, reply_json(q, &row, &l, from));
    else
        http_reply_err(q->x, &e);
    job_loads_deinit(&l);
}
