/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/retention.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "db/prune.h"
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_MS 60000

/* A look for old output, on its thread. */
struct output_look {
    struct retention *owner; /* NULL if it was destroyed meanwhile */
    char *db_path, *logs_dir;
    struct wall before;
    atomic_int cancel;
    int64_t removed;
    int rc;
    struct err e;
};

struct retention {
    struct retention_options o;
    char *db_path, *logs_dir;
    struct timer rows, output;
    struct pruned since;      /* deleted since the last line in the log */
    struct output_look *look; /* may be NULL */
};

/* ---- rows ---- */

static int put_prune(void *ctx, struct tick *tick, int64_t *ret_id, struct err *e)
{
    struct retention *r = ctx;
    const struct config_retention *c = r->o.config;
    (void)ret_id, (void)e;
    tick_put_prune(tick, &(struct prune){.is_due = true,
                             .now = clock_wall(r->o.timers->clock),
                             .age_ms = {[PRUNE_JOBS] = c->jobs_ms,
                                 [PRUNE_EVENTS] = c->events_ms,
                                 [PRUNE_AUDIT] = c->audit_ms,
                                 [PRUNE_DAYS] = c->days_ms}});
    return 0;
}

/* Refused while the disk is full: tried again. */
static void on_put(void *ctx, const struct err *e, int64_t id)
{
    struct retention *r = ctx;
    (void)id;
    if (e && e->kind != ERR_UNAVAILABLE)
        timer_start(r->o.timers, &r->rows, RETENTION_EVERY_MS);
}

static void on_rows(struct timer *t, void *ctx)
{
    struct retention *r = ctx;
    (void)t;
    tick_post_work(r->o.tick, put_prune, on_put, r);
}

void retention_committed(struct retention *r, const struct pruned *p)
{
    struct pruned *s = &r->since;
    s->jobs += p->jobs;
    s->events += p->events;
    s->audit_rows += p->audit_rows;
    s->other_rows += p->other_rows;
    timer_start(r->o.timers, &r->rows, p->is_more ? RETENTION_AGAIN_MS : RETENTION_EVERY_MS);
    if (p->is_more || s->jobs + s->events + s->audit_rows + s->other_rows == 0)
        return;
    log_info("rows were deleted that are older than the retention", log_i("jobs", s->jobs),
        log_i("events", s->events), log_i("audit_rows", s->audit_rows),
        log_i("other_rows", s->other_rows));
    *s = (struct pruned){0};
}

/* ---- output ---- */

static bool is_number(const char *name, int64_t *ret_number)
{
    struct err ignored;
    return str_to_i64(name, 0, INT64_MAX, "directory", ret_number, &ignored) == 0;
}

/* The output of a job that has no row is only removed if the retention deleted the job: after an
 * older copy of the database was restored it may be all that is left of it. */
static int is_old(struct db_reader *r, struct job_row *row, int64_t job, struct wall before,
    bool *ret_is, struct err *e)
{
    struct wall at;
    int64_t age_ms;
    int rc = db_read_job(r, job, row, e);
    if (rc == ERR_NOT_FOUND)
        return prune_read_deleted(r, job, ret_is, &at, &age_ms, e);
    *ret_is = rc == 0 && row->state == JOB_ENDED && wall_is_set(before) &&
              wall_is_set(row->ended_at) && row->ended_at.ms < before.ms;
    return rc;
}

static int look_in_group(struct db_reader *r, const char *dir, struct wall before,
    atomic_int *cancel, int64_t *ret_removed, struct err *e)
{
    struct job_row *row = mem_alloc(sizeof(*row));
    DIR *d = opendir(dir);
    int rc = 0;
    for (struct dirent *entry; rc == 0 && d && (entry = readdir(d));) {
        int64_t job;
        bool old = false;
        if (!is_number(entry->d_name, &job))
            continue;
        rc = atomic_load(cancel) ? err_set(e, ERR_CANCELLED, "belayd ends")
                                 : is_old(r, row, job, before, &old, e);
        if (rc != 0 || !old)
            continue;
        char *path = mem_printf("%s/%s", dir, entry->d_name);
        rc = fs_remove_tree(path, e);
        *ret_removed += rc == 0;
        free(path);
    }
    if (d)
        closedir(d);
    free(row);
    return rc;
}

int retention_remove_output(struct db_reader *r, const char *dir, struct wall before,
    atomic_int *cancel, int64_t *ret_removed, struct err *e)
{
    DIR *d = opendir(dir);
    int rc = 0;
    for (struct dirent *entry; rc == 0 && d && (entry = readdir(d));) {
        int64_t group;
        if (!is_number(entry->d_name, &group))
            continue;
        char *path = mem_printf("%s/%s", dir, entry->d_name);
        rc = look_in_group(r, path, before, cancel, ret_removed, e);
        rmdir(path); /* if it is empty now */
        free(path);
    }
    if (d)
        closedir(d);
    return rc;
}

static void on_thread(void *ctx)
{
    struct output_look *l = ctx;
    struct db_reader *r = NULL;
    l->rc = db_reader_open(l->db_path, &r, &l->e);
    if (l->rc == 0)
        l->rc = retention_remove_output(r, l->logs_dir, l->before, &l->cancel, &l->removed, &l->e);
    db_reader_close(r);
}

static void look_free(struct output_look *l)
{
    free(l->db_path);
    free(l->logs_dir);
    free(l);
}

static void on_looked(void *ctx)
{
    struct output_look *l = ctx;
    struct retention *r = l->owner;
    if (r) {
        r->look = NULL;
        timer_start(r->o.timers, &r->output, RETENTION_OUTPUT_EVERY_MS);
        if (l->rc != 0)
            log_warn("old output of jobs could not be removed; trying again later",
                log_s("dir", l->logs_dir), log_err(&l->e));
        if (l->removed > 0)
            log_info(
                "output was removed that is older than the retention", log_i("jobs", l->removed));
    }
    look_free(l);
}

static void on_output(struct timer *t, void *ctx)
{
    struct retention *r = ctx;
    int64_t age_ms = r->o.config->logs_ms;
    struct output_look *l = mem_alloc(sizeof(*l));
    (void)t;
    *l = (struct output_look){.owner = r,
        .db_path = mem_strdup(r->db_path),
        .logs_dir = mem_strdup(r->logs_dir),
        .before =
            age_ms > 0 ? (struct wall){clock_wall(r->o.timers->clock).ms - age_ms} : WALL_NONE};
    r->look = l;
    uv_run_work(r->o.loop, on_thread, on_looked, l);
}

/* ---- life ---- */

struct retention *retention_create(const struct retention_options *o)
{
    struct retention *r = mem_alloc(sizeof(*r));
    *r = (struct retention){
        .o = *o, .db_path = mem_strdup(o->db_path), .logs_dir = mem_strdup(o->logs_dir)};
    timer_init(&r->rows, on_rows, r);
    timer_init(&r->output, on_output, r);
    return r;
}

void retention_start(struct retention *r)
{
    timer_start(r->o.timers, &r->rows, FIRST_MS);
    timer_start(r->o.timers, &r->output, 2 * FIRST_MS);
}

void retention_destroy(struct retention *r)
{
    if (!r)
        return;
    timer_stop(r->o.timers, &r->rows);
    timer_stop(r->o.timers, &r->output);
    if (r->look) {
        r->look->owner = NULL;
        atomic_store(&r->look->cancel, 1);
    }
    free(r->db_path);
    free(r->logs_dir);
    free(r);
}
