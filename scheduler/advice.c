/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings about a job (see advice.h).
 */
#include "scheduler/advice.h"

#include "base/log.h"
#include "base/str.h"
#include "scheduler/right_size.h"
#include <stdio.h>

/* The duration of a checkpoint save: that of this job's last save or, if it has none, of its user's
 * newest earlier job of the same name that has one. */
struct save_duration {
    const struct job_row *of;
    int64_t job, ms; /* the job that saved; its duration, 0 = unknown */
};

static int match_earlier_job(void *ctx, const struct job_row *row)
{
    struct save_duration *m = ctx;
    if (row->save_ms <= 0 || !str_eq(row->spec.name, m->of->spec.name))
        return 0;
    m->job = row->id;
    m->ms = row->save_ms;
    return 1;
}

static struct save_duration find_save_duration(struct db_reader *r, const struct job_row *job)
{
    struct save_duration m = {.of = job, .job = job->id, .ms = job->save_ms};
    const struct job_filter mine = {
        .users = {.words = {job->user}, .n = 1}, .before = job->id, .limit = ADVICE_JOBS_EXAMINED};
    struct err e;
    if (m.ms <= 0 && db_read_jobs(r, &mine, match_earlier_job, &m, NULL, &e) != 0)
        log_warn("the duration of a save cannot be read", log_i("job", job->id), log_err(&e));
    return m;
}

static bool has_spot(const struct config_pool *p)
{
    for (size_t i = 0; i < p->n_offers; i++)
        if (p->offers[i].market == MARKET_SPOT)
            return true;
    return false;
}

static void warn_of_pool(
    json_t *list, const struct save_duration *m, const struct config_pool *p, int64_t notice_ms)
{
    char took[32], notice[32], whose[48] = "its last one did", text[512];
    if (notice_ms <= 0 || m->ms <= notice_ms)
        return;
    time_format_duration(m->ms, took, sizeof(took));
    time_format_duration(notice_ms, notice, sizeof(notice));
    if (m->job != m->of->id)
        snprintf(whose, sizeof(whose), "one of job %lld did", (long long)m->job);
    snprintf(text, sizeof(text),
        "a save takes %s (%s); %s gives %s (pool %s): a reclaim there loses the work since the "
        "previous save",
        took, whose, p->row.provider, notice, p->row.name);
    json_array_append_new(
        list, json_pack("{s:s,s:o}", "code", "save-too-slow", "text", json_text(text)));
}

static void warn_of_no_progress(json_t *list, const struct job_row *job)
{
    char text[256];
    snprintf(text, sizeof(text),
        "%d times in a row it was restored, started from before its checkpoint, and never got "
        "beyond step %lld: it does not continue from its checkpoint",
        (int)job->no_progress, (long long)job->best_progress);
    json_array_append_new(list, json_pack("{s:s,s:o}", "code", "in-vain", "text", json_text(text)));
}

static void advise_on_size(
    json_t *list, const struct model *m, struct db_reader *r, const struct job_row *job)
{
    struct right_size size;
    if (job->state != JOB_ENDED && m && right_size_of_job(m, r, NULL, job, &size))
        json_array_append_new(
            list, json_pack("{s:s,s:o}", "code", "right-size", "text", json_text(size.text)));
}

json_t *advice_on_job(const struct pools *p, const struct model *model, struct db_reader *r,
    const struct job_row *job)
{
    json_t *list = json_array();
    const struct config *c = pools_in_force(p);
    if (job->state != JOB_ENDED && job->no_progress > 0)
        warn_of_no_progress(list, job);
    advise_on_size(list, model, r, job);
    if (job->state == JOB_ENDED || job->spec.method == CKPT_NONE ||
        job->spec.market == WISH_ON_DEMAND)
        return list;
    struct save_duration m = find_save_duration(r, job);
    for (size_t i = 0; m.ms > 0 && i < c->n_pools; i++) {
        const struct config_pool *pool = &c->pools[i];
        struct cloud_driver *driver = pools_driver(p, pool);
        if (driver && has_spot(pool) && job_pools_allow(job->spec.pool, pool->row.name))
            warn_of_pool(list, &m, pool, driver->ops->spot_notice_ms);
    }
    return list;
}
