/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/crons/plan: when the cron entries start in the next days, and how long their jobs
 * usually run, for a calendar. Entries that run after another have its times: when that ends is not
 * known. The work is bounded by the number of times that are computed.
 */
#include "scheduler/api/api_private.h"

#include "base/str.h"
#include "job/cron.h"
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/queue/cron_after.h"
#include "scheduler/core/queue/cron_days.h"

#define DAYS_MAX 31
#define DAYS_DEFAULT 14
#define TIMES_OF_ENTRY_MAX 400
#define TIMES_MAX 5000 /* in all */

struct plan {
    const struct api *api;
    const struct caller *viewer;
    const struct model *m;
    struct wall from, to;
    json_t *list;
    int32_t left; /* times that may still be computed */
};

/* Adds the times to o; more: there are further ones before p->to. */
static void add_times(
    struct plan *p, const struct cron_row *r, const struct cron_entry *live, json_t *o)
{
    json_t *starts = json_array(), *left_out = json_array();
    const struct cron_entry *root = live ? core_cron_root(p->m, live) : NULL;
    bool is_shown = live && live->row.state == CRON_ACTIVE && root->zone && live->zone;
    char text[ZONE_TIME_MAX], why[CORE_TEXT_MAX];
    struct wall at = !is_shown ? WALL_NONE : root == live ? r->next_at : root->row.next_at;
    int32_t n = 0;
    for (; wall_is_set(at) && at.ms < p->to.ms && n < TIMES_OF_ENTRY_MAX && p->left > 0; n++) {
        zone_format(live->zone, at, text);
        if (core_cron_leaves_out(p->m, live, at, why))
            json_array_append_new(
                left_out, json_pack("{s:s,s:o}", "at", text, "why", json_text(why)));
        else
            json_array_append_new(starts, json_string(text));
        at = cron_next(&root->cron, root->zone, root->row.gap, root->row.twice, at);
        p->left--;
    }
    json_object_set_new(o, "starts", starts);
    json_object_set_new(o, "left_out", left_out);
    json_object_set_new(o, "more", json_boolean(wall_is_set(at) && at.ms < p->to.ms));
}

static int add_entry(void *ctx, const struct cron_row *r)
{
    struct plan *p = ctx;
    const struct cron_entry *live = model_cron(p->m, r->id);
    const struct access_object object = api_object_of_cron(p->api, r, live);
    int64_t least = 0, most = 0;
    if (!access_may(p->viewer, RIGHT_READ_JOB, &object))
        return 0;
    const struct runtimes *known =
        live ? runtimes_of_name(p->m, r->user, live->job.spec.name) : NULL;
    if (known)
        runtimes_range(known, 0, &least, &most);
    json_t *o = json_pack("{s:I,s:o,s:o,s:s,s:o,s:o,s:o}", "id", (json_int_t)r->id, "name",
        json_text(r->name), "user", json_text(r->user), "state", sm_name(&cron_sm, r->state),
        "zone", json_text(r->zone), "usual_ms", api_json_opt(runtimes_median(known), 0),
        "longest_ms", api_json_opt(most, 0));
    json_object_set_new(o, "after", api_json_opt(r->after, CORE_ID_NONE));
    add_times(p, r, live, o);
    json_array_append_new(p->list, o);
    return 0;
}

static void reply_plan(const struct api *api, struct http_exchange *x, const struct caller *viewer,
    const struct model *m, int64_t days)
{
    const struct wall now = tick_now(api->o.tick).wall;
    struct plan p = {.api = api,
        .viewer = viewer,
        .m = m,
        .from = now,
        .to = {now.ms + days * DAY_MS},
        .list = json_array(),
        .left = TIMES_MAX};
    struct err e;
    if (db_read_crons(api->o.reader, NULL, add_entry, &p, &e) != 0) {
        json_decref(p.list);
        http_reply_err(x, &e);
        return;
    }
    api_reply_json(x, 200,
        json_pack("{s:o,s:o,s:o}", "from", api_json_time(p.from), "to", api_json_time(p.to),
            "crons", p.list));
}

void api_crons_plan(struct request *q)
{
    int64_t days;
    if (api_query_i64(q, "days", 1, DAYS_MAX, DAYS_DEFAULT, &days))
        api_read_model(q, reply_plan, days);
}
