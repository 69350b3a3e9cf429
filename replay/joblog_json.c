/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs of jobs as printed by `belay list --all --json`: {"jobs": [{...}]}, or the array alone. The
 * run time is the time between the first start and the end, less the lost time. For an interrupted
 * job that includes waiting, which only the database can exclude.
 */
#include "replay/joblog.h"

#include "base/json.h"
#include "base/str.h"
#include "scheduler/config/egress.h"
#include <stdio.h>
#include <string.h>

#define CPUS_MAX 1000000

static const char *text_at(struct json_reader *r, struct joblog *l, const char *key)
{
    const char *text = json_opt_str(r, key, 1024, "");
    return joblog_text(l, text, strlen(text));
}

static struct wall time_at(struct json_reader *r, const char *key)
{
    struct wall at = WALL_NONE;
    struct err why;
    const char *text = json_opt_str(r, key, 64, NULL);
    if (text && time_parse_iso(text, &at, &why) != 0)
        json_reader_fail(r, key, "%s", why.text);
    return at;
}

static void read_input(struct json_reader *r, struct joblog *l, struct log_job *j)
{
    const json_t *o = json_opt_object(r, "input");
    const char *location = json_string_value(json_object_get(o, "place"));
    struct input in = {.bytes = json_integer_value(json_object_get(o, "bytes"))};
    struct err why;
    if (!o)
        return;
    if (in.bytes < 1 || in.bytes > INPUT_BYTES_MAX)
        json_reader_fail(r, "input", "bytes: expected 1 to %lld", INPUT_BYTES_MAX);
    else if (location && config_read_input_location(location, &in, &why) != 0)
        json_reader_fail(r, "input", "%s", why.text);
    else
        joblog_set_input(l, j, &in);
}

static int read_job(const json_t *v, const char *path, struct joblog *l, struct err *e)
{
    struct json_reader r;
    struct log_job *j = joblog_add(l);
    if (!j)
        return err_set(e, ERR_INVALID, "%s: more than %d jobs", path, JOBLOG_JOBS_MAX);
    json_reader_init(&r, v, path, e);
    j->name = text_at(&r, l, "name");
    j->user = text_at(&r, l, "user");
    j->team = text_at(&r, l, "team");
    j->pool = text_at(&r, l, "pool");
    j->submit = time_at(&r, "submitted_at");
    j->finish_by = time_at(&r, "deadline_at");
    j->ends_late = wall_is_set(j->finish_by);
    struct wall finish_by = time_at(&r, "finish_by");
    j->finish_by = j->ends_late ? j->finish_by : finish_by;
    j->declared_ms = json_opt_i64(&r, "work_ms", 1, JOBLOG_RUN_MAX_MS, 0);
    struct wall start = time_at(&r, "started_at"), end = time_at(&r, "ended_at");
    j->need.cpus = (int32_t)json_opt_i64(&r, "cpus", 1, CPUS_MAX, 1);
    j->need.gpus = (int32_t)json_opt_i64(&r, "gpus", 0, CPUS_MAX, 0);
    j->need.memory_mib = json_opt_i64(&r, "memory_mib", 0, INT64_C(1) << 40, 0);
    j->nodes = (int32_t)json_opt_i64(&r, "nodes", 1, JOB_NODES_MAX, 1);
    j->wish = (enum market_wish)json_opt_enum(&r, "market", market_wish_names, WISH_ANY);
    j->time_limit_ms = json_opt_i64(&r, "time_limit_ms", 0, INT64_MAX / 4, 0);
    read_input(&r, l, j);
    int64_t lost_ms = json_opt_i64(&r, "lost_ms", 0, JOBLOG_RUN_MAX_MS, 0);
    j->save_ms = json_opt_i64(&r, "pause_ms", 0, JOBLOG_RUN_MAX_MS, JOBLOG_UNKNOWN);
    const json_t *checkpoint = json_opt_object(&r, "checkpoint");
    const char *method = json_string_value(json_object_get(checkpoint, "method"));
    j->every_ms = json_integer_value(json_object_get(checkpoint, "every_ms"));
    j->every_ms =
        j->every_ms >= JOBLOG_EVERY_MIN_MS && j->every_ms <= JOBLOG_RUN_MAX_MS ? j->every_ms : 0;
    if (method && str_eq(method, "none"))
        j->save_ms = 0;
    else if (j->save_ms == 0)
        j->save_ms = 1;
    int rc = json_reader_finish_lenient(&r);
    if (rc == 0 && !wall_is_set(j->submit))
        rc = err_set(e, ERR_INVALID, "%s.submitted_at: expected a time", path);
    j->work_ms = wall_is_set(start) && wall_is_set(end) ? end.ms - start.ms - lost_ms : 0;
    if (rc == 0 && j->work_ms > JOBLOG_RUN_MAX_MS)
        rc = err_set(e, ERR_INVALID, "%s: a job may run for at most 366 days", path);
    if (rc == 0 && j->work_ms <= 0) {
        l->n--;
        l->n_never_ran++;
    }
    return rc;
}

int joblog_read_json(const char *file, const char *text, size_t n, struct joblog *l, struct err *e)
{
    json_t *root = NULL;
    int rc = json_parse(text, n, JOBLOG_BYTES_MAX, &root, e);
    if (rc < 0)
        return err_wrap(e, "%s", file);
    const json_t *jobs = json_is_array(root) ? root : json_object_get(root, "jobs");
    if (!json_is_array(jobs))
        rc = err_set(
            e, ERR_INVALID, "expected {\"jobs\": [...]}, as belay list --all --json prints it");
    for (size_t i = 0; rc == 0 && i < json_array_size(jobs); i++) {
        char path[48];
        snprintf(path, sizeof path, "jobs[%zu]", i);
        rc = read_job(json_array_get(jobs, i), path, l, e);
    }
    json_decref(root);
    return rc < 0 ? err_wrap(e, "%s", file) : 0;
}
