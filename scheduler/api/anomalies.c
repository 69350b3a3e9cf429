/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/anomalies: days on which a user, a team or a pool spent far more than on the same
 * weekday of the weeks before (scheduler/spend/review.h). As costs, they are shown to everybody who
 * may read jobs.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/ledger/anomalies.h"
#include "scheduler/spend/review.h"
#include <stdlib.h>

#define DAYS_DEFAULT 2

static json_t *finding_json(const struct spend_finding *f)
{
    const struct anomaly_row *r = &f->row;
    char text[ANOMALY_TEXT_MAX], day[TIME_ISO_MAX];
    core_anomaly_text(r, text);
    time_format_iso(r->day, day);
    return json_pack("{s:s,s:o,s:o,s:I,s:I,s:I,s:i,s:o}", "of", spend_of_names[r->of], "subject",
        json_text(r->subject), "day", json_stringn(day, 10), "uusd", (json_int_t)r->uusd,
        "usual_uusd", (json_int_t)r->usual_uusd, "limit_uusd", (json_int_t)f->limit_uusd, "weeks",
        (int)r->weeks, "text", json_text(text));
}

static int read_anomalies(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    struct spend_review *s = of;
    int rc = spend_review_read(s, r, e);
    if (rc != 0)
        return rc;
    json_t *items = json_array();
    for (size_t i = 0; i < s->n_found; i++)
        json_array_append_new(items, finding_json(&s->found[i]));
    *ret_reply = json_pack("{s:o,s:i,s:i,s:i,s:i,s:I,s:b}", "items", items, "days", (int)s->days,
        "weeks", (int)s->limits.weeks, "weeks_needed", SPEND_WEEKS_MIN, "deviations",
        (int)s->limits.deviations, "at_least_uusd", (json_int_t)s->limits.at_least_uusd, "more",
        (int)s->more);
    return 0;
}

static void review_free(void *of)
{
    spend_review_deinit(of);
    free(of);
}

void api_anomalies(struct request *q)
{
    int64_t days;
    if (!api_query_i64(q, "days", 1, SPEND_DAYS_MAX, DAYS_DEFAULT, &days))
        return;
    struct spend_review *s = mem_alloc(sizeof(*s));
    spend_review_init(s, &q->api->o.config->spend.limits, tick_model(q->api->o.tick),
        tick_now(q->api->o.tick).wall, (int32_t)days);
    read_pool_run(q->api, q->x, &q->caller, READ_POOL_WAIT_MS, read_anomalies, s, review_free);
}
