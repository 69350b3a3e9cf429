/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/admin/retention: how much the database and the output of jobs use, of which limit,
 * and what goes next. Output is as the last hourly look has found it.
 */
#include "scheduler/api/api_private.h"

#include "scheduler/logs/archiver.h"
#include "scheduler/retention.h"

static json_t *of(int64_t bytes, int64_t max_bytes)
{
    int64_t over = max_bytes > 0 && bytes > max_bytes ? bytes - max_bytes : 0;
    return json_pack("{s:I,s:o,s:I}", "bytes", (json_int_t)bytes, "max_bytes",
        api_json_opt(max_bytes, 0), "over_bytes", (json_int_t)over);
}

static json_t *of_database(const struct api *a, struct err *e)
{
    const struct config_retention *c = &a->o.config->retention;
    struct retention_stats s;
    int64_t file = 0, used = 0;
    struct wall oldest = WALL_NONE;
    retention_get_stats(a->o.retention, &s);
    if (db_read_size(a->o.reader, &file, &used, e) != 0 ||
        db_read_nth_end(a->o.reader, 0, &oldest, e) != 0)
        return NULL;
    json_t *v = of(used, c->database_bytes);
    json_object_set_new(v, "file_bytes", json_integer(file));
    json_object_set_new(v, "oldest_ended_at", api_json_time(oldest));
    json_object_set_new(v, "deleted_jobs", json_integer(s.jobs));
    json_object_set_new(v, "deleted_jobs_by_size", json_integer(s.jobs_by_size));
    return v;
}

static json_t *of_output(int64_t bytes, int64_t max_bytes, int64_t jobs, int64_t next)
{
    json_t *v = of(bytes, max_bytes);
    json_object_set_new(v, "jobs", json_integer(jobs));
    json_object_set_new(v, "next_job", api_json_opt(next, CORE_ID_NONE));
    return v;
}

void api_retention(struct request *q)
{
    const struct api *a = q->api;
    const struct config_retention *c = &a->o.config->retention;
    struct output_use u;
    struct err e;
    bool is_counted = a->o.archiver && archiver_use(a->o.archiver, &u);
    json_t *database = of_database(a, &e);
    if (!database) {
        http_reply_err(q->x, &e);
        return;
    }
    json_t *disk = json_null(), *store = json_null();
    if (is_counted) {
        disk = of_output(u.disk_bytes, c->disk_bytes, u.disk_jobs, u.next_on_disk);
        json_object_set_new(disk, "live_bytes", json_integer(u.live_bytes));
        store = of_output(u.store_bytes, c->store_bytes, u.store_jobs, u.next_in_store);
    }
    api_reply_json(q->x, 200,
        json_pack(
            "{s:o,s:o,s:o}", "database", database, "logs_on_disk", disk, "logs_in_store", store));
}
