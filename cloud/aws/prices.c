/* SPDX-License-Identifier: Apache-2.0
 *
 * Prices in force: spot prices from EC2 and, where permitted, placement scores and the price list's
 * on-demand prices.
 *
 *   DescribeSpotPriceHistory --> GetSpotPlacementScores --> GetProducts, a type at a time --> done
 *     (must succeed)               (once each time)          (each type once a day)
 *
 * Invariants:
 *   1. The second and third request are optional: whatever their outcome, spot prices are reported.
 *      A failed one is retried with growing pauses, a denied one (or one unknown there) once a day.
 *      The failure is logged once, until it works again.
 *   2. Scores are only valid now: they are reported with the prices read together with them, and
 *      never kept. List prices are cached and reported each time, because the caller may have
 *      forgotten them.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/driver_parts.h"
#include "cloud/aws/pricing.h"
#include <stdlib.h>
#include <string.h>

#define RETRY_FIRST_MS SECONDS_MS(600)
#define RETRY_DAILY_MS SECONDS_MS(24 * 3600)
#define FAILURES_MAX 100 /* counted up to this */
#define LISTED_MAX 1000  /* regions times types; a pool has one region and at most 64 types */
#define LIST_PAGES_MAX 10
#define LIST_TIMEOUT_MS SECONDS_MS(20)

/* The price list's entry for a type. */
struct aws_list_price {
    char region[CLOUD_NAME_MAX];
    struct cloud_price price; /* uusd_h 0 = no price */
    struct mono asked;
};

/* A call in progress. */
struct aws_prices {
    struct ec2_zones zones;
    struct ec2_scores scores;
    struct cloud_prices listed; /* of the current type */
};

void aws_prices_free(struct aws_prices *p)
{
    if (!p)
        return;
    cloud_prices_deinit(&p->listed);
    free(p);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, so that the question is always the same: EC2 limits the number of different questions
 * scored per day. The next word is the first that may be looked up in the price list. */
static void keep_types(struct aws_call *c, const char *const *types, size_t n_types)
{
    cloud_call_add_words(&c->base, types, n_types);
    qsort(c->base.words, c->base.n_words, sizeof(*c->base.words), by_name);
    c->prices = mem_alloc(sizeof(*c->prices));
}

/* ---- optional requests ---- */

static struct mono now_of(const struct aws_call *c)
{
    return clock_mono(c->d->calls.timers->clock);
}

static bool may_request(const struct aws_call *c, const struct aws_favour *f)
{
    return !mono_is_set(f->not_before) || f->not_before.ms <= now_of(c).ms;
}

static void failed(
    const struct aws_call *c, struct aws_favour *f, const char *what, const struct err *e)
{
    bool is_denied = e->kind == ERR_DENIED || e->kind == ERR_CONFIG;
    int64_t pause_ms = prng_backoff_ms(&c->d->prng, f->failures, RETRY_FIRST_MS, RETRY_DAILY_MS);
    bool is_news = f->failures == 0 || (is_denied && !f->was_denied);
    f->not_before.ms = now_of(c).ms + (is_denied ? RETRY_DAILY_MS : pause_ms);
    f->failures += f->failures < FAILURES_MAX;
    f->was_denied = f->was_denied || is_denied;
    log_at(!is_news    ? LOG_DEBUG
           : is_denied ? LOG_WARN
                       : LOG_INFO,
        what, log_s("region", c->base.region), log_err(e));
}

static void worked(struct aws_favour *f)
{
    *f = (struct aws_favour){.not_before = MONO_NONE};
}

/* ---- the price list ---- */

static char *list_endpoint(const struct aws_driver *d, const char *region)
{
    (void)region;
    return mem_strdup(d->prices_url ? d->prices_url : PRICING_HOST);
}

/* A credential or clock error is not retried here: EC2 would have reported it a moment ago. */
static int list_error(
    int status, const char *body, size_t n, enum ec2_remedy *ret_remedy, struct err *e)
{
    *ret_remedy = EC2_REMEDY_NONE;
    return pricing_parse_error(status, body, n, e);
}

static const struct aws_service price_list = {.name = "pricing",
    .region = PRICING_REGION,
    .content_type = PRICING_CONTENT_TYPE,
    .target = PRICING_TARGET,
    .timeout_ms = LIST_TIMEOUT_MS,
    .pages_max = LIST_PAGES_MAX,
    .endpoint = list_endpoint,
    .add_page = pricing_add_page,
    .parse_error = list_error};

static bool has_list(const struct aws_call *c)
{
    if (c->d->prices_url)
        return true;
    return !c->d->endpoint_url && pricing_covers(c->base.region);
}

static struct aws_list_price *find_listed(const struct aws_call *c, const char *type)
{
    for (size_t i = 0; i < c->d->n_listed; i++) {
        struct aws_list_price *l = &c->d->listed[i];
        if (str_eq(l->price.type, type) && str_eq(l->region, c->base.region))
            return l;
    }
    return NULL;
}

static bool is_due(const struct aws_call *c, const char *type)
{
    const struct aws_list_price *l = find_listed(c, type);
    return l ? now_of(c).ms - l->asked.ms >= RETRY_DAILY_MS : c->d->n_listed < LISTED_MAX;
}

static int parse_list(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    struct aws_prices *p = c->prices;
    return pricing_parse_products(
        body, n, c->base.region, cloud_call_word(&c->base), &p->listed, c->page, e);
}

/* A known price stays until there is a new one. */
static void keep_listed(struct aws_call *c, const char *type, const struct cloud_prices *found)
{
    struct aws_driver *d = c->d;
    struct aws_list_price *l = find_listed(c, type);
    if (!l) {
        d->listed = mem_resize(d->listed, d->n_listed + 1, sizeof(*d->listed));
        l = &d->listed[d->n_listed++];
        *l = (struct aws_list_price){0};
        STR_COPY(l->region, c->base.region);
        STR_COPY(l->price.type, type);
    }
    if (found->n > 0)
        l->price = found->list[0];
    l->asked = now_of(c);
}

static void list_failed(struct aws_call *c, const struct err *e)
{
    failed(c, &c->d->list_prices,
        "on-demand prices stay unchanged: the price list did not return them", e);
    c->base.next_word = c->base.n_words;
}

/* Adds the known prices for the completion. Errors do not matter: rows beyond its limit are left
 * out. */
static void add_listed(struct aws_call *c)
{
    for (size_t i = 0; i < c->base.n_words; i++) {
        const struct aws_list_price *l = find_listed(c, c->base.words[i]);
        if (l && l->price.uusd_h > 0)
            cloud_prices_keep(&c->base.prices, &l->price, NULL);
    }
}

static bool listed(struct aws_call *c);

static bool next_listed(struct aws_call *c)
{
    struct aws_prices *p = c->prices;
    bool may = has_list(c) && may_request(c, &c->d->list_prices);
    while (may && cloud_call_word(&c->base) && !is_due(c, cloud_call_word(&c->base)))
        c->base.next_word++;
    if (!may || !cloud_call_word(&c->base)) {
        add_listed(c);
        return false;
    }
    cloud_prices_deinit(&p->listed);
    aws_call_clear_request(c);
    pricing_build_get_products(c->base.region, cloud_call_word(&c->base), &c->request);
    c->service = &price_list;
    c->parse = parse_list;
    c->forgo = list_failed;
    c->next = listed;
    return true;
}

static bool listed(struct aws_call *c)
{
    struct aws_prices *p = c->prices;
    if (cloud_call_word(&c->base)) {
        keep_listed(c, cloud_call_word(&c->base), &p->listed);
        c->base.next_word++;
        worked(&c->d->list_prices);
    }
    return next_listed(c);
}

/* ---- scores ---- */

static int parse_scores(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_placement_scores(body, n, &c->prices->scores, c->page, e);
}

static void scores_failed(struct aws_call *c, const struct err *e)
{
    c->prices->scores.n = 0;
    failed(c, &c->d->scores, "spot offers have no scores: EC2 did not return them", e);
}

static int score_of(const struct aws_prices *p, const char *zone)
{
    const char *id = NULL;
    for (size_t i = 0; i < p->zones.n && !id; i++)
        if (str_eq(p->zones.list[i].name, zone))
            id = p->zones.list[i].id;
    for (size_t i = 0; i < p->scores.n && id; i++)
        if (str_eq(p->scores.list[i].zone_id, id))
            return p->scores.list[i].score;
    return 0;
}

static bool scored(struct aws_call *c)
{
    struct cloud_prices *l = &c->base.prices;
    if (c->prices->scores.n > 0)
        worked(&c->d->scores);
    for (size_t i = 0; i < l->n; i++)
        l->list[i].score = score_of(c->prices, l->list[i].zone);
    return next_listed(c);
}

/* Without ids for the zones, or with too few types for a score, nothing is requested. */
static bool next_scores(struct aws_call *c)
{
    struct aws_prices *p = c->prices;
    aws_call_clear_request(c);
    if (c->base.n_words < EC2_SCORED_TYPES_MIN || p->zones.n == 0 ||
        !may_request(c, &c->d->scores) ||
        ec2_build_placement_scores((const char *const *)c->base.words, c->base.n_words,
            c->base.region, &c->request, NULL) != 0)
        return next_listed(c);
    c->parse = parse_scores;
    c->forgo = scores_failed;
    c->next = scored;
    return true;
}

/* ---- the whole call ---- */

static int parse_spot(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_spot_prices(body, n, &c->base.prices, &c->prices->zones, c->page, e);
}

void aws_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n_types, cloud_prices_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"DescribeSpotPriceHistory", aws_call_step,
        aws_call_on_reply, aws_call_deinit, aws_call_on_silence};
    struct aws_call *c = aws_call_new((struct aws_driver *)d, region);
    if (c->base.refused.kind == ERR_NONE &&
        ec2_build_spot_prices(types, n_types, clock_wall(c->d->calls.timers->clock), &c->request,
            &c->base.refused) == 0)
        keep_types(c, types, n_types);
    c->parse = parse_spot;
    c->next = next_scores;
    cloud_call_prices(&c->d->calls, &c->base, &ops, region, done, ctx);
}
