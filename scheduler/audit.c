/* SPDX-License-Identifier: Apache-2.0
 *
 * See audit.h. Machines are indexed by token and by (provider, region, id). Rows are streamed, so a
 * long history needs memory only for its ledger sums.
 */
#include "scheduler/audit.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "scheduler/pooldiff.h"
#include <stdio.h>
#include <stdlib.h>

#define TIME_TOLERANCE_MS 1000 /* most providers state times in whole seconds */
#define KEY_MAX (16 + 2 * CORE_NAME_MAX + 4)

const char *const audit_kind_names[] = {
    "not-listed", "no-row", "no-instance", "differs", "no-pool", "ledger", NULL};

struct machine {
    const struct cloud_instance *c;
    const struct config_pool *pool; /* the pool whose listing contained it */
    struct wall listed;
    struct machine *next;  /* among those with the same token */
    struct machine *older; /* among all machines */
    bool has_row;
};

struct listing {
    struct wall began;
    bool failed;
};

struct audit {
    const struct config *config;
    int64_t settle_ms;
    audit_fn fn;
    audit_hides_fn hides; /* may be NULL: listings are complete */
    void *ctx;
    struct smap by_token, by_id; /* struct machine */
    struct machine *machines;
    struct smap listings; /* pool -> struct listing */
    struct map sums;      /* instance -> struct ledger_sum */
    struct audit_counts counts;
};

struct audit *audit_create(const struct config *config, int64_t settle_ms, audit_fn fn, void *ctx)
{
    struct audit *a = mem_alloc(sizeof(*a));
    *a = (struct audit){.config = config, .settle_ms = settle_ms, .fn = fn, .ctx = ctx};
    return a;
}

void audit_set_hides(struct audit *a, audit_hides_fn hides)
{
    a->hides = hides;
}

void audit_destroy(struct audit *a)
{
    if (!a)
        return;
    void *p;
    size_t pos = 0;
    while ((p = smap_next(&a->listings, &pos, &(const char *){NULL})))
        free(p);
    for (pos = 0; (p = map_next(&a->sums, &pos, NULL));)
        free(p);
    while (a->machines) {
        struct machine *m = a->machines;
        a->machines = m->older;
        free(m);
    }
    smap_deinit(&a->listings);
    map_deinit(&a->sums);
    smap_deinit(&a->by_token);
    smap_deinit(&a->by_id);
    free(a);
}

void audit_get_counts(const struct audit *a, struct audit_counts *ret_counts)
{
    *ret_counts = a->counts;
}

/* ---- reporting ---- */

/* row and machine may be NULL. */
__attribute__((format(printf, 6, 7))) static void add_difference(struct audit *a,
    enum audit_kind kind, const char *pool, const struct instance_row *row,
    const struct cloud_instance *machine, const char *fmt, ...)
{
    struct audit_difference d = {.kind = kind, .instance = row ? row->id : CORE_ID_NONE};
    const struct config_pool *c = config_pool_find(a->config, pool);
    STR_COPY(d.pool, pool);
    if (c) {
        STR_COPY(d.provider, c->row.provider);
        STR_COPY(d.region, c->row.region);
    }
    STR_COPY(d.provider_id, machine ? machine->id : row ? row->provider_id : "");
    VFORMAT(d.text, fmt);
    a->counts.differences++;
    a->fn(a->ctx, &d);
}

/* ---- listings ---- */

static void id_key(const struct config_pool *c, const char *id, char out[KEY_MAX])
{
    snprintf(out, KEY_MAX, "%s\n%s\n%s", c->row.provider, c->row.region, id);
}

static void add_machine(struct audit *a, const struct config_pool *pool, struct wall began,
    const struct cloud_instance *c)
{
    char key[KEY_MAX];
    id_key(pool, c->id, key);
    if (smap_get(&a->by_id, key))
        return;
    struct machine *m = mem_alloc(sizeof(*m));
    *m = (struct machine){.c = c, .pool = pool, .listed = began, .older = a->machines};
    a->machines = m;
    smap_put(&a->by_id, key, m);
    a->counts.machines++;
    if (!c->token[0])
        return;
    m->next = smap_get(&a->by_token, c->token);
    smap_put(&a->by_token, c->token, m);
}

void audit_listing(struct audit *a, const char *pool, struct wall began, const struct err *e,
    const struct cloud_instance *list, size_t n)
{
    const struct config_pool *c = config_pool_find(a->config, pool);
    if (!c || !c->row.elastic || smap_get(&a->listings, pool))
        return; /* a pool that was removed meanwhile had no instances */
    struct listing *l = mem_alloc(sizeof(*l));
    *l = (struct listing){.began = began, .failed = e != NULL};
    smap_put(&a->listings, pool, l);
    a->counts.pools++;
    if (e)
        add_difference(a, AUDIT_NOT_LISTED, pool, NULL, NULL,
            "its instances could not be listed: %.200s", e->text);
    for (size_t i = 0; !e && i < n; i++)
        add_machine(a, c, began, &list[i]);
}

void audit_ledger_sum(struct audit *a, const struct ledger_sum *sum)
{
    map_put(&a->sums, sum->instance, mem_dup(sum, sizeof(*sum)));
}

/* ---- a row against its machine ---- */

/* True if the machine exists and costs money: one that stopped by itself still bills its disk. */
static bool is_alive(const struct cloud_instance *c)
{
    return c->state != CLOUD_GONE && !(c->state == CLOUD_STOPPING && c->reclaimed);
}

/* Returns the machine of a row: by its token, and by its id if it has one. */
static struct machine *machine_of(
    const struct audit *a, const struct config_pool *c, const struct instance_row *r)
{
    char key[KEY_MAX];
    struct machine *m = smap_get(&a->by_token, r->token);
    while (m && r->provider_id[0] && !str_eq(m->c->id, r->provider_id))
        m = m->next;
    if (m || !c || !r->provider_id[0])
        return m;
    id_key(c, r->provider_id, key);
    return smap_get(&a->by_id, key);
}

static const char *market_of(const struct cloud_instance *c)
{
    static const enum market markets[] = {[CLOUD_SPOT] = MARKET_SPOT,
        [CLOUD_ON_DEMAND] = MARKET_ON_DEMAND,
        [CLOUD_OWNED] = MARKET_OWNED};
    return market_names[markets[c->market]];
}

static void compare(struct audit *a, const struct instance_row *r, const struct cloud_instance *c)
{
    if (c->type[0] && !str_eq(c->type, r->type))
        add_difference(a, AUDIT_DIFFERS, r->pool, r, c,
            "its type is %s at the provider, and %s in the row", c->type, r->type);
    if (c->zone[0] && !str_eq(c->zone, r->zone))
        add_difference(a, AUDIT_DIFFERS, r->pool, r, c,
            "its zone is %s at the provider, and %s in the row", c->zone, r->zone);
    if (!str_eq(market_of(c), market_names[r->market]))
        add_difference(a, AUDIT_DIFFERS, r->pool, r, c,
            "its market is %s at the provider, and %s in the row", market_of(c),
            market_names[r->market]);
}

static void check_live(
    struct audit *a, const struct instance_row *r, const struct config_pool *c, struct machine *m)
{
    const struct listing *l = smap_get(&a->listings, r->pool);
    const struct wall since = wall_is_set(r->launched_at) ? r->launched_at : r->intended_at;
    if (!c || !c->row.elastic)
        add_difference(a, AUDIT_NO_POOL, r->pool, r, NULL,
            "the row is %s, and its pool %s is not configured: it cannot be terminated",
            sm_name(&instance_sm, r->state), r->pool);
    if (m && is_alive(m->c)) {
        compare(a, r, m->c);
        return;
    }
    if (!l || l->failed || r->state == INSTANCE_INTENDED || r->state == INSTANCE_ENDING ||
        l->began.ms - since.ms < a->settle_ms)
        return;
    if (!m && a->hides && a->hides(a->ctx, r->pool, r->provider_id)) {
        add_difference(a, AUDIT_NOT_LISTED, r->pool, r, NULL,
            "the listing could not see its place: its state is unknown");
        return;
    }
    add_difference(a, AUDIT_NO_INSTANCE, r->pool, r, NULL,
        "the row is %s, and the provider %s%.128s", sm_name(&instance_sm, r->state),
        m ? "says that it has ended: " : "does not list it", m ? m->c->reason : "");
}

static void check_over(struct audit *a, const struct instance_row *r, const struct machine *m)
{
    if (m && is_alive(m->c) && m->listed.ms - r->ended_at.ms >= a->settle_ms)
        add_difference(a, AUDIT_NO_ROW, r->pool, r, m->c,
            "it is there (%s), and its row says that it has ended: %.128s", m->c->type, r->text);
}

/* ---- a row against the ledger ---- */

static int64_t span_ms(struct wall from, struct wall to)
{
    return wall_is_set(from) && wall_is_set(to) && to.ms > from.ms ? to.ms - from.ms : 0;
}

/* Checks the instance's rows in the ledger. Once it has ended, they cover its whole life; until
 * then, only what core/ledger/ledger.c has distributed. */
static void check_ledger(struct audit *a, const struct instance_row *r)
{
    const struct ledger_sum *s = map_get(&a->sums, r->id), none = {0};
    bool is_over = r->state == INSTANCE_GONE && wall_is_set(r->launched_at);
    s = s ? s : &none;
    int64_t cost = is_over ? core_instance_uusd(r, r->ended_at) : s->attempts_uusd + r->idle_uusd,
            ms = is_over ? span_ms(r->launched_at, r->ended_at) : r->attempts_ms + r->idle_ms;
    if (s->attempts_uusd != r->attempts_uusd)
        add_difference(a, AUDIT_LEDGER, r->pool, r, NULL,
            "its attempts cost %lld uusd in the ledger, and %lld in the row",
            (long long)s->attempts_uusd, (long long)r->attempts_uusd);
    if (s->uusd != cost)
        add_difference(a, AUDIT_LEDGER, r->pool, r, NULL,
            "it cost %lld uusd in the ledger, and %lld by its prices and times", (long long)s->uusd,
            (long long)cost);
    if (s->ms != ms)
        add_difference(a, AUDIT_LEDGER, r->pool, r, NULL,
            "the ledger has %lld ms of its time, and there are %lld by its life", (long long)s->ms,
            (long long)ms);
}

/* Checks that the running time by the provider's bill equals the row's, within
 * TIME_TOLERANCE_MS. */
static void check_bill(
    struct audit *a, const struct instance_row *r, const struct cloud_instance *c)
{
    if (!wall_is_set(c->launched_at) || !wall_is_set(c->ended_at) || !wall_is_set(r->launched_at))
        return;
    int64_t billed = span_ms(c->launched_at, c->ended_at),
            have = span_ms(r->launched_at, r->ended_at);
    if (have - billed > TIME_TOLERANCE_MS || billed - have > TIME_TOLERANCE_MS)
        add_difference(a, AUDIT_LEDGER, r->pool, r, c,
            "the provider bills %lld ms of it, and the ledger has %lld", (long long)billed,
            (long long)have);
}

void audit_row(struct audit *a, const struct instance_row *r)
{
    const struct config_pool *c = config_pool_find(a->config, r->pool);
    struct machine *m = machine_of(a, c, r);
    a->counts.rows++;
    if (m)
        m->has_row = true;
    if (r->state != INSTANCE_GONE)
        check_live(a, r, c, m);
    else
        check_over(a, r, m);
    if (r->state == INSTANCE_GONE && m)
        check_bill(a, r, m->c);
    check_ledger(a, r);
    free(map_remove(&a->sums, r->id));
}

void audit_ledger_node(struct audit *a, const struct ledger_node *n)
{
    add_difference(a, AUDIT_LEDGER, "", NULL, NULL,
        "node %lld: the ledger has %lld ms of its time, and its row %lld", (long long)n->node,
        (long long)n->ms, (long long)n->row_ms);
}

void audit_ledger_gap(struct audit *a, const struct ledger_gap *g)
{
    struct instance_row of = {.id = g->instance};
    add_difference(a, AUDIT_LEDGER, "", &of, NULL,
        "attempt %lld of job %lld: its stretches are %lld ms, and it took %lld",
        (long long)g->attempt, (long long)g->job, (long long)g->ms, (long long)g->span_ms);
}

void audit_rollup_gap(struct audit *a, const char *text)
{
    add_difference(a, AUDIT_LEDGER, "", NULL, NULL, "%.200s", text);
}

void audit_end(struct audit *a)
{
    int64_t id;
    size_t pos = 0;
    for (struct machine *m = a->machines; m; m = m->older)
        if (!m->has_row && is_alive(m->c))
            add_difference(a, AUDIT_NO_ROW, m->pool->row.name, NULL, m->c,
                "it carries our tag (%s in %s, token %s) and has no row", m->c->type, m->c->zone,
                m->c->token[0] ? m->c->token : "none");
    while (map_next(&a->sums, &pos, &id)) {
        struct instance_row of = {.id = id};
        add_difference(
            a, AUDIT_LEDGER, "", &of, NULL, "the ledger has rows of an instance that has none");
    }
}
