/* SPDX-License-Identifier: Apache-2.0
 *
 * GetSpotPlacementScores: from the market's current capacity for machines of the requested types.
 * 10: three times the request is available; 1: nothing. With fewer than three types the score is
 * low whatever the capacity, as in EC2.
 */
#include "base/str.h"
#include "emulator/ec2/ec2.h"
#include "emulator/xml_write.h"
#include <stdlib.h>

#define TYPES_MAX 1000
#define REGIONS_MAX 10
#define TARGET_MAX 2000000000
#define TYPES_ENOUGH 3
#define SCORE_MAX 10
#define SCORE_FEW_MAX 3
#define SCORES_RETURNED_MAX 10

struct query {
    size_t n_types;
    int64_t target;
    bool is_zonal, is_here; /* the request includes this region */
    struct ec2_page page;
};

struct row {
    const char *zone; /* NULL for the whole region */
    int score;
};

static int read_query(struct ec2_call *c, struct query *q)
{
    const char *text;
    size_t n_regions = 0;
    while (form_get(c->form, "InstanceType.%zu", q->n_types + 1))
        if (++q->n_types > TYPES_MAX)
            return ec2_fail(
                c, "InvalidParameterValue", "At most %d instance types can be given.", TYPES_MAX);
    if (q->n_types == 0)
        return ec2_fail(c, "MissingParameter", "The request must contain InstanceTypes.");
    q->is_here = true;
    for (bool found = false; (text = form_get(c->form, "RegionName.%zu", n_regions + 1));
         q->is_here = found) {
        if (++n_regions > REGIONS_MAX)
            return ec2_fail(
                c, "InvalidParameterValue", "At most %d Regions can be given.", REGIONS_MAX);
        found = found || str_eq(text, c->region->o->name);
    }
    if (ec2_required(c, "TargetCapacity", &text) < 0 ||
        ec2_integer(c, "TargetCapacity", 1, TARGET_MAX, 1, &q->target) < 0 ||
        ec2_boolean(c, "SingleAvailabilityZone", false, &q->is_zonal) < 0 ||
        ec2_read_page(c, SCORES_RETURNED_MAX, 1000, &q->page) < 0)
        return -1;
    text = form_get(c->form, "TargetCapacityUnitType");
    if (text && !str_eq(text, "units"))
        return ec2_fail(c, "InvalidParameterValue",
            "Value (%.60s) for parameter TargetCapacityUnitType is invalid: this emulator counts "
            "units.",
            text);
    return ec2_params_end(c);
}

static bool is_asked_about(struct ec2_call *c, const struct query *q, const char *type)
{
    for (size_t k = 0; k < q->n_types; k++)
        if (str_eq(form_get(c->form, "InstanceType.%zu", k + 1), type))
            return true;
    return false;
}

static int score_of(struct ec2_call *c, const struct query *q, const char *zone)
{
    const struct market *m = &c->region->market;
    int64_t enough = TYPES_ENOUGH * q->target, unused = 0;
    for (size_t k = 0; k < m->n_pools && unused < enough; k++) {
        const struct market_pool *p = &m->pools[k];
        if ((zone && !str_eq(p->zone, zone)) || !is_asked_about(c, q, p->type))
            continue;
        int64_t more = market_unused(p, CLOUD_SPOT);
        unused = more < enough - unused ? unused + more : enough;
    }
    int score = 1 + (int)((SCORE_MAX - 1) * unused / enough);
    return q->n_types < TYPES_ENOUGH && score > SCORE_FEW_MAX ? SCORE_FEW_MAX : score;
}

/* Best first, ties in the order of the market. Returns how many, at most SCORES_RETURNED_MAX. */
static size_t add_row(struct row *rows, size_t n, struct row r)
{
    size_t at = n;
    while (at > 0 && rows[at - 1].score < r.score)
        at--;
    if (at == SCORES_RETURNED_MAX)
        return n;
    n = n < SCORES_RETURNED_MAX ? n + 1 : n;
    for (size_t k = n - 1; k > at; k--)
        rows[k] = rows[k - 1];
    rows[at] = r;
    return n;
}

static size_t collect(
    struct ec2_call *c, const struct query *q, struct row rows[SCORES_RETURNED_MAX])
{
    const struct market *m = &c->region->market;
    size_t n = 0;
    if (!q->is_here)
        return 0;
    if (!q->is_zonal)
        return add_row(rows, n, (struct row){NULL, score_of(c, q, NULL)});
    for (size_t k = 0; k < m->n_pools; k++)
        if (market_is_first_of_zone(m, k))
            n = add_row(rows, n, (struct row){m->pools[k].zone, score_of(c, q, m->pools[k].zone)});
    return n;
}

int ec2_get_spot_placement_scores(struct ec2_call *c)
{
    struct query q = {0};
    struct row rows[SCORES_RETURNED_MAX];
    struct buf *b = &c->reply->body;
    if (read_query(c, &q) < 0)
        return -1;
    size_t n = collect(c, &q, rows);
    xmlw_open(b, "spotPlacementScoreSet");
    for (size_t k = (size_t)q.page.after; k < n; k++) {
        char id[32];
        xmlw_open(b, "item");
        xmlw_leaf(b, "region", c->region->o->name);
        if (rows[k].zone) {
            ec2_zone_id(rows[k].zone, id, sizeof(id));
            xmlw_leaf(b, "availabilityZoneId", id);
        }
        xmlw_printf(b, "score", "%d", rows[k].score);
        xmlw_close(b, "item");
    }
    xmlw_close(b, "spotPlacementScoreSet");
    return 0;
}
