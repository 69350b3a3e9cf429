/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/offers/history: what belay has seen of offers, from the rows of the machines that it
 * asked for: the prices that these had, and when one came, was refused, or was reclaimed. What
 * belay did not ask for it has not seen, so an offer that it leaves alone has no history.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include <stdlib.h>

#define DAYS_MAX 45 /* of spot observations, scheduler/spot_history.c */
#define DAYS_DEFAULT 14
#define MACHINES_MAX 4000 /* the newest are examined, of all pools */
#define OFFERS_MAX 512    /* in one reply */

enum sight_kind { PRICE, LAUNCHED, REFUSED, RECLAIMED, SIGHT_KINDS };
static const char *const lists[SIGHT_KINDS] = {"prices", "launched", "refused", "reclaimed"};

struct sight {
    struct wall at;
    enum sight_kind what;
    int64_t uusd_h; /* of PRICE */
};

struct seen_offer {
    char pool[CORE_NAME_MAX], zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
    enum market market;
    struct sight *sights;
    size_t n, room;
};

struct offer_history {
    char pool[CORE_NAME_MAX]; /* "" = all */
    struct wall since;
    struct seen_offer *offers;
    size_t n;
    int examined;
    bool more; /* there are older machines, or further offers */
};

static struct seen_offer *offer_of(struct offer_history *h, const struct instance_row *r)
{
    for (size_t i = 0; i < h->n; i++) {
        struct seen_offer *o = &h->offers[i];
        if (o->market == r->market && str_eq(o->type, r->type) && str_eq(o->zone, r->zone) &&
            str_eq(o->pool, r->pool))
            return o;
    }
    if (h->n == OFFERS_MAX)
        return NULL;
    struct seen_offer *o = &h->offers[h->n++];
    STR_COPY(o->pool, r->pool);
    STR_COPY(o->zone, r->zone);
    STR_COPY(o->type, r->type);
    o->market = r->market;
    return o;
}

static void add(struct seen_offer *o, enum sight_kind what, struct wall at, int64_t uusd_h)
{
    if (!wall_is_set(at))
        return;
    if (o->n == o->room) {
        o->room = o->room ? 2 * o->room : 16;
        o->sights = mem_resize(o->sights, o->room, sizeof(o->sights[0]));
    }
    o->sights[o->n++] = (struct sight){at, what, uusd_h};
}

static int add_machine(void *ctx, const struct instance_row *r)
{
    struct offer_history *h = ctx;
    if (++h->examined > MACHINES_MAX || r->intended_at.ms < h->since.ms) {
        h->more = true;
        return 1;
    }
    if (h->pool[0] && !str_eq(h->pool, r->pool))
        return 0;
    struct seen_offer *o = offer_of(h, r);
    if (!o) {
        h->more = true;
        return 0;
    }
    if (!wall_is_set(r->launched_at)) {
        if (r->state == INSTANCE_GONE)
            add(o, REFUSED, r->intended_at, 0);
        return 0;
    }
    add(o, LAUNCHED, r->launched_at, 0);
    if (wall_is_set(r->before_at) && r->before_at.ms >= r->launched_at.ms)
        add(o, PRICE, r->before_at, r->before_uusd_h);
    add(o, PRICE, wall_is_set(r->priced_at) ? r->priced_at : r->launched_at, r->price_uusd_h);
    if (r->reclaimed)
        add(o, RECLAIMED, wall_is_set(r->ended_at) ? r->ended_at : r->launched_at, 0);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct sight *x = a, *y = b;
    if (x->at.ms != y->at.ms)
        return x->at.ms < y->at.ms ? -1 : 1;
    return (int)x->what - (int)y->what;
}

/* Machines of one offer have the same prices: only changes are shown. */
static json_t *offer_json(struct seen_offer *o)
{
    json_t *of[SIGHT_KINDS];
    int64_t price = -1;
    for (int i = 0; i < SIGHT_KINDS; i++)
        of[i] = json_array();
    if (o->n > 0)
        qsort(o->sights, o->n, sizeof(o->sights[0]), by_time);
    for (size_t i = 0; i < o->n; i++) {
        const struct sight *s = &o->sights[i];
        if (s->what != PRICE) {
            json_array_append_new(of[s->what], api_json_time(s->at));
        } else if (s->uusd_h != price) {
            price = s->uusd_h;
            json_array_append_new(of[PRICE],
                json_pack("{s:o,s:I}", "at", api_json_time(s->at), "uusd_h", (json_int_t)price));
        }
    }
    json_t *v = json_pack("{s:o,s:o,s:o,s:s}", "pool", json_text(o->pool), "zone",
        json_text(o->zone), "type", json_text(o->type), "market", market_names[o->market]);
    for (int i = 0; i < SIGHT_KINDS; i++)
        json_object_set_new(v, lists[i], of[i]);
    return v;
}

static int read_history(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    struct offer_history *h = of;
    int rc = db_read_newest_instances(r, INT64_MAX, MACHINES_MAX + 1, add_machine, h, e);
    if (rc != 0)
        return rc;
    json_t *offers = json_array();
    for (size_t i = 0; i < h->n; i++)
        json_array_append_new(offers, offer_json(&h->offers[i]));
    *ret_reply = json_pack(
        "{s:o,s:o,s:b}", "since", api_json_time(h->since), "offers", offers, "more", (int)h->more);
    return 0;
}

static void history_free(void *of)
{
    struct offer_history *h = of;
    for (size_t i = 0; i < h->n; i++)
        free(h->offers[i].sights);
    free(h->offers);
    free(h);
}

void api_offers_history(struct request *q)
{
    const char *pool = http_request_query(q->x, "pool");
    char shown[STR_SHOW_MAX];
    int64_t days;
    if (!api_query_i64(q, "days", 1, DAYS_MAX, DAYS_DEFAULT, &days))
        return;
    if (pool && !str_is_name(pool, CORE_NAME_MAX - 1)) {
        api_reply_failure(q->x, ERR_INVALID, "pool: expected the name of a pool, found %s",
            str_show(pool, shown));
        return;
    }
    struct offer_history *h = mem_alloc(sizeof(*h));
    h->offers = mem_array(OFFERS_MAX, sizeof(h->offers[0]));
    h->since = (struct wall){tick_now(q->api->o.tick).wall.ms - days * DAY_MS};
    STR_COPY(h->pool, pool ? pool : "");
    read_pool_run(q->api, q->x, &q->caller, READ_POOL_WAIT_MS, read_history, h, history_free);
}
