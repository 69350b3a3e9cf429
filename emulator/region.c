/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants
 *   1. pool->in_use[m] is the number of instances with is_counted set; an instance is counted from
 *      its launch until its notice or until it leaves PENDING/RUNNING, so capacity for new ones
 *      opens with the notice.
 *   2. Every instance in `alive` is PENDING, RUNNING, SHUTTING_DOWN or STOPPING.
 *   3. Prices change only inside a step, after all running instances were billed up to it.
 */
#include "emulator/region.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/region_parts.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_SLACK_MS 100 /* a machine gone this shortly before its deadline was killed by it */

const char *region_market_name(enum cloud_market m)
{
    return m == CLOUD_SPOT ? "spot" : "on-demand";
}

const char *region_provider(const struct region *r)
{
    return r->o->provider ? r->o->provider : "aws";
}

void region_journal(struct region *r, struct wall at, const char *what, json_t *details)
{
    json_t *d = details ? details : json_object();
    json_object_set_new(d, "provider", json_string(region_provider(r)));
    journal_add(r->journal, at, what, d);
}

void region_note(struct region *r, struct wall at, const char *what, const struct instance *i,
    const char *reason)
{
    json_t *d = json_object();
    json_object_set_new(d, "instance", json_string(i->id));
    json_object_set_new(d, "zone", json_string(i->pool->zone));
    json_object_set_new(d, "type", json_string(i->pool->type));
    json_object_set_new(d, "market", json_string(region_market_name(i->reservation->spec.market)));
    if (reason)
        json_object_set_new(d, "reason", json_text(reason));
    if (wall_is_set(i->deadline))
        json_object_set_new(d, "deadline_ms", json_integer(i->deadline.ms));
    region_journal(r, at, what, d);
    log_info(what, log_s("provider", region_provider(r)), log_s("instance", i->id),
        log_s("zone", i->pool->zone), log_s("type", i->pool->type),
        log_s("reason", reason ? reason : ""));
}

/* Adds the volumes of the configuration. */
static void add_first_volumes(struct region *r, struct wall now)
{
    for (size_t k = 0; k < r->o->n_volumes; k++) {
        const struct region_volume *v = &r->o->volumes[k];
        struct disk_spec spec = v->spec;
        spec.tags = (struct tags){0};
        for (size_t t = 0; t < v->spec.tags.n; t++)
            tags_set(&spec.tags, v->spec.tags.list[t].key, v->spec.tags.list[t].value);
        region_add_volume(r, &spec, v->zone, (struct wall){now.ms - v->age_ms});
    }
}

void region_init(struct region *r, const struct region_options *o, struct journal *journal,
    struct market_pool *pools, size_t n_pools, const struct region_ops *ops, void *ctx,
    struct wall now)
{
    *r = (struct region){
        .o = o, .journal = journal, .ops = ops, .ctx = ctx, .start = now, .now = now};
    market_init(&r->market, pools, n_pools, now);
    prng_init(&r->prng, o->seed);
    /* Unique among the providers too, whose seeds are the same by default: the machines of all have
     * their directories in one. */
    prng_init(&r->ids, o->seed + 1 + hash_text(region_provider(r)));
    prng_init(&r->request_ids, o->seed + 2);
    prng_init(&r->volume_ids, o->seed + 3);
    add_first_volumes(r, now);
}

void region_deinit(struct region *r)
{
    for (size_t i = 0; i < r->n_instances; i++) {
        link_remove(&r->instances[i]->alive);
        instance_destroy(r->instances[i]);
    }
    for (size_t i = 0; i < r->n_reservations; i++) {
        launch_spec_deinit(&r->reservations[i]->spec);
        free(r->reservations[i]->instances);
        free(r->reservations[i]);
    }
    free(r->instances);
    free(r->reservations);
    region_volumes_deinit(r);
    faults_deinit(&r->faults);
    market_deinit(&r->market);
    *r = (struct region){0};
}

/* ---- The ends of an instance ---- */

static void uncount(struct instance *i)
{
    if (i->is_counted)
        i->pool->in_use[i->reservation->spec.market]--;
    i->is_counted = false;
}

static void set_reason(struct instance *i, const char *code, const char *text)
{
    STR_COPY(i->reason_code, code);
    char *whole = mem_printf("%s: %s", code, text);
    STR_COPY(i->reason, whole);
    free(whole);
}

static void finish(struct region *r, struct instance *i, struct wall at)
{
    instance_move(i, i->state == INSTANCE_STOPPING ? INSTANCE_STOPPED : INSTANCE_TERMINATED);
    if (!wall_is_set(i->ended_at))
        i->ended_at = at;
    i->gone_at = at;
    if (i->state == INSTANCE_TERMINATED)
        region_free_volumes(r, i, at);
    uncount(i);
    link_remove(&i->alive);
    region_note(r, at, i->state == INSTANCE_STOPPED ? "stopped" : "terminated", i, i->reason_code);
}

/* Leaves PENDING or RUNNING because it is ended from outside. stops: it still exists afterwards. */
static void end(struct region *r, struct instance *i, bool at_once, bool stops, struct wall at)
{
    instance_bill(i, at);
    i->ended_at = at;
    uncount(i);
    if (i->state == INSTANCE_PENDING || !r->ops) {
        if (stops && i->state == INSTANCE_RUNNING)
            instance_move(i, INSTANCE_STOPPING);
        finish(r, i, at);
        return;
    }
    instance_move(i, stops ? INSTANCE_STOPPING : INSTANCE_SHUTTING_DOWN);
    r->ops->shutdown(r->ctx, i, at_once);
}

void region_reclaim_now(struct region *r, struct instance *i, struct wall at)
{
    r->counts.reclaims++;
    set_reason(i, "Server.SpotInstanceTermination",
        i->is_by_price ? "Spot instance termination (the price rose above your maximum)"
                       : "Spot instance termination");
    region_note(r, at, "reclaimed", i, i->reason_code);
    end(r, i, true, i->reservation->spec.reclaim_stops, at);
}

int64_t region_notice_ms(const struct region *r, const struct instance *i)
{
    return r->o->notice_ms + i->reservation->spec.soft_off_lead_ms;
}

/* The notice names a whole second, as EC2's does; the deadline is exactly that second. */
void region_mark(
    struct region *r, struct instance *i, int64_t notice_ms, int64_t soft_off_ms, struct wall at)
{
    i->is_reclaimed = true;
    i->noticed_at = at;
    i->deadline.ms = (at.ms + notice_ms + 999) / 1000 * 1000;
    if (soft_off_ms < 0 && i->reservation->spec.has_soft_off)
        soft_off_ms = i->reservation->spec.soft_off_lead_ms;
    if (soft_off_ms >= 0)
        i->soft_off_at.ms = at.ms + (soft_off_ms < notice_ms ? soft_off_ms : notice_ms);
    uncount(i);
    r->counts.notices++;
    region_note(r, at, "notice", i, NULL);
    if (r->ops && i->state == INSTANCE_RUNNING)
        r->ops->doom(r->ctx, i);
}

static void boot(struct region *r, struct instance *i, struct wall at)
{
    struct err e;
    if (r->ops && r->ops->boot(r->ctx, i, &e) < 0) {
        log_warn("an instance could not be started", log_s("instance", i->id), log_err(&e));
        set_reason(i, "Server.InternalError", e.text);
        finish(r, i, at);
        return;
    }
    instance_move(i, INSTANCE_RUNNING);
    i->running_at = i->billed_until = at;
    region_note(r, at, "running", i, NULL);
    if (r->ops && wall_is_set(i->deadline))
        r->ops->doom(r->ctx, i);
}

void region_terminate(struct region *r, struct instance *i, struct wall now)
{
    region_advance(r, now);
    if (i->state != INSTANCE_STOPPED && !instance_is_alive(i))
        return;
    r->counts.terminations++;
    set_reason(i, "Client.UserInitiatedShutdown", "User initiated shutdown");
    region_note(r, now, "terminate", i, NULL);
    if (i->state == INSTANCE_STOPPED) {
        instance_move(i, INSTANCE_TERMINATED);
        region_free_volumes(r, i, now);
    } else {
        end(r, i, false, false, now);
    }
}

void region_accept_reclaim(struct region *r, struct instance *i, struct wall now)
{
    region_advance(r, now);
    if (i->state == INSTANCE_RUNNING && wall_is_set(i->deadline))
        region_reclaim_now(r, i, now);
}

static void power_off(struct region *r, struct instance *i, struct wall at)
{
    const struct launch_spec *spec = &i->reservation->spec;
    instance_bill(i, at);
    i->ended_at = at;
    r->counts.power_offs++;
    set_reason(i, "Client.InstanceInitiatedShutdown", "Instance initiated shutdown");
    region_note(r, at, "power-off", i, NULL);
    if (spec->powers_off_to_stop)
        instance_move(i, INSTANCE_STOPPING);
    finish(r, i, at);
}

void region_machine_gone(
    struct region *r, struct instance *i, bool is_power_off, struct wall died_at, struct wall now)
{
    if (died_at.ms > now.ms)
        died_at = now;
    bool is_at_deadline =
        wall_is_set(i->deadline) && died_at.ms >= i->deadline.ms - DEADLINE_SLACK_MS;
    bool is_reclaim = i->is_reclaimed && (i->is_soft_off || is_at_deadline);
    if (i->state == INSTANCE_RUNNING && is_reclaim) {
        r->counts.reclaims++;
        set_reason(i, "Server.SpotInstanceTermination", "Spot instance termination");
        region_note(r, died_at, "reclaimed", i, i->reason_code);
        instance_bill(i, died_at);
        i->ended_at = died_at;
        if (i->reservation->spec.reclaim_stops)
            instance_move(i, INSTANCE_STOPPING);
        finish(r, i, died_at);
    } else if (i->state == INSTANCE_RUNNING && is_power_off) {
        power_off(r, i, died_at);
    } else if (i->state == INSTANCE_RUNNING) {
        instance_bill(i, died_at);
        set_reason(i, "Server.InternalError", "the machine died");
        finish(r, i, died_at);
    } else {
        finish(r, i, died_at);
    }
    region_advance(r, now);
}

/* ---- Time ---- */

static bool is_spot_running(const struct instance *i)
{
    return instance_is_alive(i) && i->is_counted && i->reservation->spec.market == CLOUD_SPOT;
}

/* The newest, or a random one, of the counted spot instances of a pool. */
static struct instance *pick_victim(struct region *r, const struct market_pool *p)
{
    struct instance *picked = NULL;
    uint64_t n = 0;
    LIST_FOREACH (&r->alive, l) {
        struct instance *i = LIST_ENTRY(l, struct instance, alive);
        if (i->pool != p || !is_spot_running(i))
            continue;
        n++;
        if (r->o->surplus == SURPLUS_NEWEST || prng_below(&r->prng, n) == 0)
            picked = i;
    }
    return picked;
}

static void reclaim_surplus(struct region *r, struct wall at)
{
    for (size_t k = 0; k < r->market.n_pools; k++) {
        struct market_pool *p = &r->market.pools[k];
        for (int64_t n = market_surplus(p, CLOUD_SPOT); n > 0; n--) {
            struct instance *victim = pick_victim(r, p);
            region_mark(r, victim, region_notice_ms(r, victim), REGION_USUAL_SOFT_OFF, at);
        }
    }
}

static void reclaim_outbid(struct region *r, struct wall at)
{
    LIST_FOREACH (&r->alive, l) {
        struct instance *i = LIST_ENTRY(l, struct instance, alive);
        int64_t max = i->reservation->spec.max_price_uusd_h;
        if (max == 0 || !is_spot_running(i) || i->pool->price_uusd_h[CLOUD_SPOT] <= max)
            continue;
        i->is_by_price = true;
        region_mark(r, i, region_notice_ms(r, i), REGION_USUAL_SOFT_OFF, at);
    }
}

static void run_script(struct region *r, struct wall at)
{
    while (r->script_next < r->o->n_script &&
           r->start.ms + r->o->script[r->script_next].at_ms <= at.ms) {
        const struct region_event *ev = &r->o->script[r->script_next++].event;
        json_t *reply = NULL;
        struct err e;
        if (region_apply(r, ev, at, &reply, &e) < 0)
            log_warn("an event of the script did not apply", log_err(&e));
        json_decref(reply);
    }
}

/* When a running instance reaches its maximum run time; WALL_NONE if it has none. */
static struct wall run_limit(const struct instance *i)
{
    int64_t max_ms = i->reservation->spec.max_run_ms;
    return max_ms > 0 && i->state == INSTANCE_RUNNING ? (struct wall){i->running_at.ms + max_ms}
                                                      : WALL_NONE;
}

static void soft_off(struct region *r, struct instance *i)
{
    i->is_soft_off = true;
    if (r->ops)
        r->ops->soft_off(r->ctx, i);
}

static void end_of_run(struct region *r, struct instance *i, struct wall at)
{
    set_reason(i, "Client.MaxRunDuration", "the instance has reached its maximum run time");
    region_note(r, at, "terminate", i, i->reason_code);
    end(r, i, false, i->reservation->spec.reclaim_stops, at);
}

static bool is_due(struct wall w, struct wall at)
{
    return wall_is_set(w) && w.ms <= at.ms;
}

static void run_instances(struct region *r, struct wall at)
{
    LIST_FOREACH (&r->alive, l) {
        struct instance *i = LIST_ENTRY(l, struct instance, alive);
        if (i->state == INSTANCE_PENDING && i->boots_at.ms <= at.ms)
            boot(r, i, at);
        if (i->state == INSTANCE_RUNNING && !i->is_soft_off && is_due(i->soft_off_at, at))
            soft_off(r, i);
        if (instance_is_alive(i) && is_due(i->deadline, at))
            region_reclaim_now(r, i, at);
        else if (is_due(run_limit(i), at))
            end_of_run(r, i, at);
    }
}

void region_bill_all(struct region *r, struct wall at)
{
    LIST_FOREACH (&r->alive, l)
        instance_bill(LIST_ENTRY(l, struct instance, alive), at);
}

static void step(struct region *r, struct wall at)
{
    if (at.ms < r->now.ms)
        at = r->now;
    r->now = at;
    region_bill_all(r, at);
    market_advance(&r->market, at);
    run_script(r, at);
    run_instances(r, at);
    reclaim_surplus(r, at);
    reclaim_outbid(r, at);
}

static void earlier(struct wall *next, struct wall w)
{
    if (wall_is_set(w) && (!wall_is_set(*next) || w.ms < next->ms))
        *next = w;
}

struct wall region_next(const struct region *r)
{
    struct wall next = market_next(&r->market);
    if (r->script_next < r->o->n_script)
        earlier(&next, (struct wall){r->start.ms + r->o->script[r->script_next].at_ms});
    LIST_FOREACH (&r->alive, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, alive);
        if (i->state == INSTANCE_PENDING)
            earlier(&next, i->boots_at);
        if (instance_is_alive(i))
            earlier(&next, i->deadline);
        if (i->state == INSTANCE_RUNNING && !i->is_soft_off)
            earlier(&next, i->soft_off_at);
        earlier(&next, run_limit(i));
    }
    return next;
}

void region_advance(struct region *r, struct wall now)
{
    for (;;) {
        struct wall next = region_next(r);
        if (!wall_is_set(next) || next.ms > now.ms)
            break;
        step(r, next);
    }
    step(r, now);
}

/* ---- Launches ---- */

static bool in_scope(const struct reservation *v, const char *token, const char *zone)
{
    return str_eq(v->spec.token, token) && str_eq(v->token_zone, zone);
}

struct reservation *region_find_token(const struct region *r, const char *token, const char *zone)
{
    for (size_t i = 0; token[0] && i < r->n_reservations; i++)
        if (in_scope(r->reservations[i], token, zone))
            return r->reservations[i];
    return NULL;
}

static void make_id(struct region *r, const char *prefix, int digits, char *out, size_t size)
{
    snprintf(out, size, "%s0%0*llx", prefix, digits - 1,
        (unsigned long long)(prng_u64(&r->ids) >> (64 - 4 * (digits - 1))));
}

static struct instance *create_instance(
    struct region *r, struct reservation *v, struct market_pool *p)
{
    struct instance *i = mem_alloc(sizeof(*i));
    *i = (struct instance){.number = (int64_t)r->n_instances + 1,
        .launch_index = (int)v->n_instances,
        .reservation = v,
        .pool = p,
        .is_counted = true,
        .launched_at = v->launched_at,
        .boots_at = {v->launched_at.ms + r->o->boot_delay_ms},
        .running_at = WALL_NONE,
        .rebalance_at = WALL_NONE,
        .noticed_at = WALL_NONE,
        .deadline = WALL_NONE,
        .soft_off_at = WALL_NONE,
        .off_by = WALL_NONE,
        .ended_at = WALL_NONE,
        .gone_at = WALL_NONE,
        .billed_until = WALL_NONE};
    if (r->o->make_id)
        r->o->make_id(&r->ids, i->id, sizeof(i->id));
    else
        make_id(r, "i-", 17, i->id, sizeof(i->id));
    if (v->spec.market == CLOUD_SPOT)
        make_id(r, "sir-", 8, i->spot_request_id, sizeof(i->spot_request_id));
    snprintf(i->private_ip, sizeof(i->private_ip), "10.%d.%d.%d", (int)(i->number >> 16 & 0xff),
        (int)(i->number >> 8 & 0xff), (int)(i->number & 0xff));
    for (size_t k = 0; k < v->spec.tags.n; k++)
        tags_set(&i->tags, v->spec.tags.list[k].key, v->spec.tags.list[k].value);
    p->in_use[v->spec.market]++;
    v->instances[v->n_instances++] = i;
    r->instances = mem_resize(r->instances, r->n_instances + 1, sizeof(struct instance *));
    r->instances[r->n_instances++] = i;
    list_push_back(&r->alive, &i->alive);
    region_make_volumes(r, i);
    r->counts.launches++;
    region_note(r, v->launched_at, "launch", i, NULL);
    return i;
}

static int check_quota(const struct region *r, int64_t n, struct err *e)
{
    int64_t n_alive = 0, quota = r->o->quota > 0 ? r->o->quota : REGION_ALIVE_MAX;
    LIST_FOREACH (&r->alive, l)
        n_alive += l != NULL;
    if (n_alive + n > quota || (int64_t)r->n_instances + n > REGION_INSTANCES_MAX)
        return err_set(e, ERR_QUOTA,
            "%lld instances plus %lld exceed the quota of %lld at a time, %d in total",
            (long long)n_alive, (long long)n, (long long)quota, REGION_INSTANCES_MAX);
    return 0;
}

int region_launch(struct region *r, struct launch_spec *spec, const char *named_zone,
    const char *fingerprint, int64_t min, int64_t max, struct wall now,
    struct reservation **ret_reservation, struct err *e)
{
    region_advance(r, now);
    struct market_pool *p =
        market_find(&r->market, spec->zone[0] ? spec->zone : NULL, spec->type, spec->market);
    assert(p && min >= 1 && max >= min);
    int64_t unused = market_unused(p, spec->market), n = unused < max ? unused : max;
    if (unused >= min && check_quota(r, n, e) < 0) {
        r->counts.refusals++;
        return ERR_QUOTA;
    }
    if (unused < min) {
        r->counts.refusals++;
        return err_set(e, ERR_NO_CAPACITY, "%s %s in %s: capacity for %lld of %lld",
            region_market_name(spec->market), p->type, p->zone, (long long)unused, (long long)min);
    }
    struct reservation *v = mem_alloc(sizeof(*v));
    v->spec = *spec;
    *spec = (struct launch_spec){0};
    STR_COPY(v->spec.zone, p->zone);
    STR_COPY(v->token_zone, named_zone);
    STR_COPY(v->fingerprint, fingerprint);
    v->launched_at = now;
    make_id(r, "r-", 17, v->id, sizeof(v->id));
    v->instances = mem_array((size_t)n, sizeof(struct instance *));
    while (n-- > 0)
        create_instance(r, v, p);
    r->reservations =
        mem_resize(r->reservations, r->n_reservations + 1, sizeof(struct reservation *));
    r->reservations[r->n_reservations++] = v;
    *ret_reservation = v;
    region_advance(r, now); /* for a boot delay of 0 */
    return 0;
}

struct instance *region_find(const struct region *r, const char *id)
{
    for (size_t i = r->n_instances; i-- > 0;)
        if (str_eq(r->instances[i]->id, id))
            return r->instances[i];
    return NULL;
}

bool region_is_visible(const struct region *r, const struct instance *i, struct wall now)
{
    return now.ms >= i->launched_at.ms + r->o->consistency_delay_ms;
}
