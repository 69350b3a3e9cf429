/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/jobs/N/load: what one rank of a job used over time, on its CPUs and GPUs, for charts:
 * columns of numbers, one position of each column for each stretch of time.
 */
#include "scheduler/api/api_private.h"
#include "scheduler/job_loads.h"

#include "base/mem.h"
#include <stdlib.h>

#define POINTS_MAX                                                                                 \
    720 /* of a chart: 12 h in minutes, 5 days in tens of minutes, 30 days in hours */
#define RANK_MAX 255

struct load_request {
    struct job_row row;
    int32_t rank;
    int64_t span_ms;
    struct wall from, to;
};

/* A row of the database that is not written yet, because the next may be of the same time: one
 * attempt ended in it and another began. */
struct points {
    const struct load_request *of;
    json_t *reply, *gpus;
    struct task_load_row task;
    struct gpu_load_row gpu;
    int64_t *nodes; /* on which the rank was */
    size_t n_nodes;
};

static void add(json_t *columns, const char *name, int64_t value)
{
    json_t *column = json_object_get(columns, name);
    if (!column) {
        column = json_array();
        json_object_set_new(columns, name, column);
    }
    json_array_append_new(column, json_integer(value));
}

static int64_t per_second(int64_t n, int64_t ms)
{
    return (int64_t)((double)n * 1000 / (double)ms);
}

static void flush_task(struct points *p)
{
    const struct task_load *l = &p->task.load;
    if (l->ms > 0) {
        add(p->reply, "at_ms", p->task.at);
        add(p->reply, "cpu_milli", per_second(l->cpu_ms, l->ms));
        add(p->reply, "memory_bytes", l->memory_bytes);
        add(p->reply, "read_bytes_s", per_second(l->read_bytes, l->ms));
        add(p->reply, "write_bytes_s", per_second(l->write_bytes, l->ms));
        add(p->reply, "net_bytes_s", per_second(l->net_in_bytes + l->net_out_bytes, l->ms));
        add(p->reply, "blocked_percent", load_percent(l->blocked_ms, l->ms));
    }
    p->task = (struct task_load_row){0};
}

static bool has_node(const struct points *p, int64_t node)
{
    for (size_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i] == node)
            return true;
    return false;
}

static int on_task(void *ctx, const struct task_load_row *row)
{
    struct points *p = ctx;
    if (row->rank != p->of->rank)
        return 0;
    if (!has_node(p, row->node)) {
        p->nodes = mem_resize(p->nodes, p->n_nodes + 1, sizeof(*p->nodes));
        p->nodes[p->n_nodes++] = row->node;
    }
    if (p->task.at == row->at) {
        task_load_add(&p->task.load, &row->load);
        return 0;
    }
    flush_task(p);
    p->task = *row;
    return 0;
}

static void flush_gpu(struct points *p)
{
    const struct gpu_load *l = &p->gpu.load;
    json_t *one = json_object_get(p->gpus, p->gpu.gpu);
    if (l->ms > 0 && !one) {
        one = json_pack("{s:s,s:I}", "gpu", p->gpu.gpu, "index", (json_int_t)p->gpu.gpu_index);
        json_object_set_new(p->gpus, p->gpu.gpu, one);
    }
    if (l->ms > 0) {
        add(one, "at_ms", p->gpu.at);
        add(one, "busy_percent", load_percent(l->busy_ms, l->known_ms));
        add(one, "memory_bytes", l->memory_bytes);
        add(one, "watts", l->energy_mj / l->ms);
        add(one, "temperature_c", l->temperature_c);
        add(one, "slowed_percent", load_percent(l->slowed_ms, l->ms));
    }
    p->gpu = (struct gpu_load_row){0};
}

static int on_gpu(void *ctx, const struct gpu_load_row *row)
{
    struct points *p = ctx;
    if (!has_node(p, row->node))
        return 0;
    if (p->gpu.at == row->at && str_eq(p->gpu.gpu, row->gpu)) {
        gpu_load_add(&p->gpu.load, &row->load);
        return 0;
    }
    flush_gpu(p);
    p->gpu = *row;
    return 0;
}

/* The GPUs as a list, which has no order. */
static json_t *take_gpus(json_t *gpus)
{
    const char *name;
    json_t *one, *list = json_array();
    json_object_foreach(gpus, name, one) json_array_append(list, one);
    json_decref(gpus);
    return list;
}

static int read_load(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    const struct load_request *l = of;
    struct points p = {.of = l, .reply = json_object(), .gpus = json_object()};
    static const char *const columns[] = {"at_ms", "cpu_milli", "memory_bytes", "read_bytes_s",
        "write_bytes_s", "net_bytes_s", "blocked_percent", NULL};
    for (int i = 0; columns[i]; i++)
        json_object_set_new(p.reply, columns[i], json_array());
    int rc = db_read_task_loads(r, l->row.id, 0, l->span_ms, l->from.ms, on_task, &p, e);
    flush_task(&p);
    if (rc == 0)
        rc = db_read_gpu_loads(r, l->row.id, 0, l->span_ms, l->from.ms, on_gpu, &p, e);
    flush_gpu(&p);
    json_object_set_new(p.reply, "job", json_integer(l->row.id));
    json_object_set_new(p.reply, "ref", json_string(job_ref(&l->row).s));
    json_object_set_new(p.reply, "rank", json_integer(l->rank));
    json_object_set_new(p.reply, "span_ms", json_integer(l->span_ms));
    json_object_set_new(p.reply, "from", api_json_time(l->from));
    json_object_set_new(p.reply, "to", api_json_time(l->to));
    json_object_set_new(p.reply, "gpus", take_gpus(p.gpus));
    free(p.nodes);
    *ret_reply = p.reply;
    return rc;
}

/* The finest span that is kept for all of the time and needs at most POINTS_MAX points; of the
 * coarsest, the last points. */
static void choose_span(struct load_request *l, const struct config_telemetry *c, struct wall now)
{
    static const int64_t spans[LOAD_SPANS] = LOAD_SPANS_MS;
    int i = job_loads_finest(c, now.ms - l->from.ms);
    while (i < LOAD_SPANS - 1 && (l->to.ms - l->from.ms) / spans[i] >= POINTS_MAX)
        i++;
    l->span_ms = spans[i];
    if ((l->to.ms - l->from.ms) / spans[i] >= POINTS_MAX)
        l->from.ms = l->to.ms - POINTS_MAX * spans[i];
    l->from.ms -= l->from.ms % spans[i]; /* where the span of that moment begins */
}

void api_jobs_load(struct request *q)
{
    struct load_request l = {0};
    int64_t rank;
    if (!api_query_i64(q, "rank", 0, RANK_MAX, 0, &rank) ||
        !api_find_job(q, RIGHT_READ_JOB, &l.row))
        return;
    struct wall now = clock_wall(q->api->o.timers->clock);
    l.rank = (int32_t)rank;
    l.to = l.row.state == JOB_ENDED && wall_is_set(l.row.ended_at) ? l.row.ended_at : now;
    l.from = wall_is_set(l.row.started_at) ? l.row.started_at : l.to;
    choose_span(&l, &q->api->o.config->telemetry, now);
    read_pool_run(
        q->api, q->x, &q->caller, READ_POOL_WAIT_MS, read_load, mem_dup(&l, sizeof(l)), free);
}
