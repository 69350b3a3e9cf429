/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of nodes: join, heartbeat, notices, drain, loss and return.
 */
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/node_failures.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/apply_node.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/supply/base_load.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/lifecycle/apply_instance.h"
#include "scheduler/core/deadline/spot_observations.h"

#include "base/minmax.h"
#include "base/str.h"
#include <inttypes.h>
#include <string.h>

#define BOOT_MAX_MS SECONDS_MS(3600) /* a longer boot counts as this one in the spread of boots */

/* A node named by a user, or NULL with the error set. */
static struct node *named_node(const struct model *m, int64_t id, struct err *e)
{
    struct node *n = model_node(m, id);
    if (!n)
        err_set(e, ERR_NOT_FOUND, "there is no node %" PRId64 " (any more)", id);
    return n;
}

void node_gone(struct model *m, struct node *n, struct stamp now, const char *text)
{
    n->row.gone_at = now.wall;
    node_move(m, n, NODE_GONE, now);
    attempts_end_all(m, now, n, text);
    if (!n->instance)
        ledger_idle(m, n, now.wall);
    node_failures_forget(m, n);
    node_unindex(m, n);
    retire_node(m, n);
}

/* ---- joining ---- */

/* host, host-2, host-3 ... */
static void unique_name(const struct model *m, const char *host, char out[CORE_NAME_MAX])
{
    str_copy(out, CORE_NAME_MAX, host[0] ? host : "node");
    for (int64_t k = 2; model_node_named(m, out); k++)
        text_format(out, CORE_NAME_MAX, "%.40s-%" PRId64, host[0] ? host : "node", k);
}

/* The machine may have changed while the agent was away; running attempts keep their resources. An
 * exclusive attempt keeps the whole node: such a node stays unchanged. */
static void set_total(struct node *n, const struct resources *total)
{
    struct resources used = n->row.total, free = *total;
    const struct link *first = list_first(&n->attempts);
    if (first && shape_is_exclusive(LIST_ENTRY(first, struct attempt, on_node)->job->shape))
        return;
    resources_take(&used, &n->free);
    if (!resources_fit(&used, total))
        return;
    resources_take(&free, &used);
    n->row.total = *total;
    n->free = free;
}

static void node_return(struct model *m, struct node *n, struct stamp now)
{
    enum node_state to = n->row.drain ? NODE_DRAINING : NODE_UP;
    if (n->row.notice == NOTICE_TYPE_RECLAIM && wall_is_set(n->row.notice_deadline) &&
        n->row.notice_deadline.ms > now.wall.ms) {
        to = NODE_NOTICED;
    } else {
        n->row.notice = NOTICE_TYPE_NONE;
        n->row.notice_deadline = WALL_NONE;
    }
    n->idle_since = now.mono;
    node_move(m, n, to, now);
    history(m, now, "returned", (struct history_of){.node = n}, "%s is back", n->row.name);
}

static void note_contact(struct model *m, struct node *n, struct stamp now)
{
    n->last_seen = now.mono;
    ledger_seen(m, n, now.wall);
    if (n->row.state == NODE_LOST) {
        node_return(m, n, now);
        return;
    }
    link_remove(&n->by_seen);
    list_push_back(&m->lifecycle.by_seen, &n->by_seen);
}

/* As reported by its agent. */
static void set_constraints(
    struct node *n, const struct gpu_kind *gpu, const char *features, const char *resources)
{
    n->row.gpu = (struct gpu_kind){.memory_mib = gpu->memory_mib};
    STR_COPY(n->row.gpu.model, gpu->model);
    STR_COPY(n->row.features, features);
    STR_COPY(n->row.resources, resources);
    node_describe(n);
}

static int rejoin(struct model *m, struct node *n, const struct event *ev,
    struct outcome *ret_outcome, struct err *e)
{
    const struct node_row *r = ev->join.node;
    if (n->row.instance != ev->join.instance)
        return err_set(e, ERR_DENIED,
            "this key belongs to node %s, which is not of instance %" PRId64, n->row.name,
            ev->join.instance);
    note_contact(m, n, ev->now);
    STR_COPY(n->row.address, r->address);
    STR_COPY(n->row.version, r->version);
    set_total(n, &r->total);
    set_constraints(n, &r->gpu, r->features, r->resources);
    node_refresh(m, n, true); /* also sets the draw of the new size, for rack_accept */
    rack_accept(n->rack);
    if (!reserve_is_valid(n))
        reserve_drop(m, n->reserved_for);
    node_set_criu(m, n, r->criu, r->criu_text);
    node_refresh(m, n, true); /* again, last: jobs may fit by what has changed since */
    limits_repriced(m, n);
    touch_node(m, n);
    ret_outcome->id = n->row.id;
    return 0;
}

static int instance_to_join(
    struct model *m, int64_t id, struct instance **ret_instance, struct err *e)
{
    struct instance *i = model_instance(m, id);
    if (!i || i->row.state == INSTANCE_ENDING)
        return err_set(e, ERR_CONFLICT, "instance %" PRId64 " is %s: its machine cannot join", id,
            i ? "being ended" : "gone");
    if (i->node)
        return err_set(e, ERR_DENIED,
            "the join token of instance %" PRId64 " was used already, by another key", id);
    *ret_instance = i;
    return 0;
}

static void instance_joined(
    struct model *m, struct instance *i, struct node *n, int64_t start_ms, struct stamp now)
{
    struct offer *o = i->offer;
    i->node = n;
    i->row.node = n->row.id;
    i->row.joined_at = now.wall;
    /* the join may arrive before the provider's answer */
    if (!wall_is_set(i->row.launched_at) && i->offer)
        spot_observations_note(m, i->offer, SPOT_THERE, now.wall);
    if (!wall_is_set(i->row.launched_at))
        ledger_launched(m, i, WALL_NONE, now);
    i->row.start_ms = max_i64(0, min_i64(start_ms, now.wall.ms - i->row.launched_at.ms));
    i->row.boot_uusd = core_instance_uusd(&i->row, now.wall);
    instance_move(m, i, INSTANCE_RUNNING, now);
    boots_joined(m, i, now);
    if (!o)
        return;
    offer_note_size(o, &n->row.total);
    o->row.refused_in_a_row = 0;
    int64_t took_ms = now.wall.ms - i->row.intended_at.ms;
    if (took_ms > 0) {
        o->row.boots++;
        o->row.boot_ms += took_ms;
        took_ms = min_i64(took_ms, BOOT_MAX_MS);
        o->row.boot_ms2 += took_ms * took_ms;
        base_load_boot_changed(i->pool);
    }
    touch_offer(m, o);
}

static void describe_node(const struct node_row *r, char *out, size_t size)
{
    char memory[32], gpus[32] = "";
    str_format_bytes((uint64_t)r->total.memory_mib << 20, memory, sizeof memory);
    if (r->total.gpus)
        text_format(gpus, sizeof gpus, ", %" PRId32 " gpus", r->total.gpus);
    text_format(out, size, "%s joined: %" PRId32 " cpus%s, %s, %s", r->name, r->total.cpus, gpus,
        memory, market_names[r->market]);
}

static int check_join(const struct node_row *r, const struct pool *p, bool elastic, struct err *e)
{
    if (r->total.cpus < 1 || r->total.gpus < 0 || r->total.memory_mib < 0 || !r->key_hash[0])
        return err_set(e, ERR_INVALID, "node '%s': it needs a key and at least 1 cpu", r->name);
    if (!p)
        return err_set(
            e, ERR_NOT_FOUND, "node '%s' joins pool '%s', which does not exist", r->name, r->pool);
    if (!elastic && p->row.elastic)
        return err_set(e, ERR_CONFLICT,
            "node '%s' cannot join pool '%s' by itself: the pool is elastic", r->name, r->pool);
    return 0;
}

int apply_join(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct node_row *r = ev->join.node;
    struct instance *i = NULL;
    struct node *n = model_node_by_key(m, r->key_hash);
    int rc = 0;
    if (n)
        return rejoin(m, n, ev, ret_outcome, e);
    if (ev->join.instance != CORE_ID_NONE)
        rc = instance_to_join(m, ev->join.instance, &i, e);
    struct pool *p = i ? i->pool : model_pool(m, r->pool);
    if (rc == 0)
        rc = check_join(r, p, i != NULL, e);
    if (rc)
        return rc;
    n = model_alloc_node(m);
    n->row = (struct node_row){
        .id = NEXT_ID(m, node),
        .instance = ev->join.instance,
        .state = NODE_UP,
        .total = r->total,
        .price_uusd_h = i ? i->row.price_uusd_h : p->row.usd_per_hour_uusd,
        .on_demand_uusd_h = i ? i->row.on_demand_uusd_h : p->row.usd_per_hour_uusd,
        .market = i ? i->row.market : MARKET_OWNED,
        .notice_deadline = WALL_NONE,
        .joined_at = ev->now.wall,
        .gone_at = WALL_NONE,
        .priced_at = WALL_NONE,
        .used_until = WALL_NONE,
        .settled_at = WALL_NONE,
    };
    unique_name(m, r->name, n->row.name);
    STR_COPY(n->row.pool, p->row.name);
    STR_COPY(n->row.address, r->address);
    STR_COPY(n->row.key_hash, r->key_hash);
    STR_COPY(n->row.version, r->version);
    n->free = r->total;
    n->pool = p;
    n->instance = i;
    n->last_seen = n->since = n->idle_since = ev->now.mono;
    if (i)
        instance_joined(m, i, n, ev->join.start_ms, ev->now);
    else
        ledger_joined(n, ev->now.wall);
    n->row.criu = r->criu;
    STR_COPY(n->row.criu_text, r->criu_text);
    set_constraints(n, &r->gpu, r->features, r->resources);
    node_index(m, n);
    node_set_criu(m, n, r->criu, r->criu_text); /* its pool may not have the information */
    touch_node(m, n);
    char what[CORE_TEXT_MAX];
    describe_node(&n->row, what, sizeof what);
    history(m, ev->now, "joined", (struct history_of){.node = n}, "%s", what);
    ret_outcome->id = n->row.id;
    return 0;
}

int apply_facts(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct node *n = model_node(m, ev->facts.node);
    ret_outcome->id = ev->facts.node;
    if (ev->facts.criu < CRIU_UNKNOWN || ev->facts.criu > CRIU_GPU)
        return err_set(e, ERR_INVALID, "node %" PRId64 ": CRIU support of unknown kind %d",
            ev->facts.node, (int)ev->facts.criu);
    if (!n)
        return 0;
    node_set_criu(m, n, ev->facts.criu, ev->facts.criu_text);
    if (strcmp(n->row.features, ev->facts.features) == 0 &&
        strcmp(n->row.resources, ev->facts.resources) == 0 &&
        strcmp(n->row.gpu.model, ev->facts.gpu.model) == 0 &&
        n->row.gpu.memory_mib == ev->facts.gpu.memory_mib)
        return 0;
    set_constraints(n, &ev->facts.gpu, ev->facts.features, ev->facts.resources);
    if (!reserve_is_valid(n))
        reserve_drop(m, n->reserved_for);
    node_refresh(m, n, true);
    touch_node(m, n);
    return 0;
}

static void set_throttle(struct model *m, struct node *n, enum node_throttle to, struct stamp now)
{
    if (to == n->throttle)
        return;
    if (to != NODE_THROTTLE_NONE)
        history(m, now, "throttled", (struct history_of){.node = n},
            "%s is throttled by %s: it gets no new jobs", n->row.name,
            to == NODE_THROTTLE_HEAT    ? "heat"
            : to == NODE_THROTTLE_POWER ? "a limit of power"
                                        : "its board");
    else
        history(m, now, "recovered", (struct history_of){.node = n}, "%s is not throttled any more",
            n->row.name);
    n->throttle = to;
    if (!node_takes_work(n))
        gang_node_leaves(m, n);
    node_refresh(m, n, true);
}

int apply_condition(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct node *n = model_node(m, ev->condition.node);
    ret_outcome->id = ev->condition.node;
    if (ev->condition.throttle < NODE_THROTTLE_NONE ||
        ev->condition.throttle > NODE_THROTTLE_BOARD || ev->condition.watts < 0)
        return err_set(e, ERR_INVALID,
            "node %" PRId64 ": unknown throttle kind %d, or negative power draw",
            ev->condition.node, (int)ev->condition.throttle);
    if (!n)
        return 0;
    set_throttle(m, n, ev->condition.throttle, ev->now);
    rack_measured(m, n, ev->condition.watts);
    return 0;
}

/* While the disk is full, a start there would end as END_CAPACITY. A later text may have other
 * figures or another reason; that alone changes nothing. */
int apply_disk(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct node *n = model_node(m, ev->disk.node);
    bool is_full = ev->disk.full[0] != '\0';
    (void)e;
    ret_outcome->id = ev->disk.node;
    if (!n)
        return 0;
    bool was_full = n->disk_full[0] != '\0';
    STR_COPY(n->disk_full, ev->disk.full);
    if (is_full == was_full)
        return 0;
    if (is_full)
        history(m, ev->now, "disk-full", (struct history_of){.node = n},
            "%s has no space on its disk and gets no new jobs: %.160s", n->row.name, n->disk_full);
    else
        history(m, ev->now, "disk-room", (struct history_of){.node = n},
            "%s has space on its disk again", n->row.name);
    if (is_full && n->instance)
        boots_disk_full(m, n->instance, ev->now, n->disk_full);
    if (!node_takes_work(n))
        gang_node_leaves(m, n);
    node_refresh(m, n, true);
    return 0;
}

int apply_heartbeat(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    struct node *n = model_node(m, ev->heartbeat.node);
    ret_outcome->id = ev->heartbeat.node;
    if (n)
        note_contact(m, n, ev->now);
    return 0;
}

/* ---- notices, drains, losses ---- */

static void describe_notice(const struct event *ev, const struct node *n, char *out, size_t size)
{
    int64_t left = wall_is_set(ev->notice.deadline) ? ev->notice.deadline.ms - ev->now.wall.ms : 0;
    char in[32];
    time_format_duration(left > 0 ? left : 0, in, sizeof in);
    const char *kind = notice_type_names[ev->notice.kind];
    if (wall_is_set(ev->notice.deadline))
        text_format(out, size, "%s notice on %s: %s left", kind, n->row.name, in);
    else
        text_format(out, size, "%s notice on %s", kind, n->row.name);
}

/* Not a reason to leave, but to save early and more often: core_reclaims_per_hour. */
static void instance_rebalanced(struct model *m, struct instance *i)
{
    if (i->row.rebalanced)
        return;
    i->row.rebalanced = true;
    touch_instance(m, i);
    if (!i->offer)
        return;
    i->offer->row.rebalances++;
    touch_offer(m, i->offer);
}

/* The agent restarted and reports no notice. A machine without an instance was shut down or
 * rebooted and returned. An instance keeps leaving: it is already replaced. */
static void notice_is_over(struct model *m, struct node *n, struct stamp now)
{
    if (n->instance || n->row.notice != NOTICE_TYPE_RECLAIM)
        return;
    note_contact(m, n, now);
    n->row.notice = NOTICE_TYPE_NONE;
    n->row.notice_deadline = WALL_NONE;
    touch_node(m, n);
    if (n->row.state != NODE_NOTICED)
        return;
    node_move(m, n, n->row.drain ? NODE_DRAINING : NODE_UP, now);
    history(m, now, "returned", (struct history_of){.node = n}, "%s is back", n->row.name);
}

int apply_notice(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    enum notice_type kind = ev->notice.kind;
    if ((int)kind < NOTICE_TYPE_NONE || kind > NOTICE_TYPE_RECLAIM)
        return err_set(e, ERR_INVALID, "node %" PRId64 ": a notice of unknown kind %d",
            ev->notice.node, (int)kind);
    struct node *n = model_node(m, ev->notice.node);
    ret_outcome->id = ev->notice.node;
    if (n && kind == NOTICE_TYPE_NONE)
        notice_is_over(m, n, ev->now);
    if (!n || kind <= n->row.notice)
        return 0; /* a repeated or a lesser notice */
    note_contact(m, n, ev->now);
    n->row.notice = kind;
    n->row.notice_deadline = ev->notice.deadline;
    touch_node(m, n);
    char what[CORE_TEXT_MAX];
    describe_notice(ev, n, what, sizeof what);
    if (list_is_empty(&n->attempts))
        history(m, ev->now, "notice", (struct history_of){.node = n, .a = ev->notice.deadline.ms},
            "%s", what);
    LIST_FOREACH (&n->attempts, l)
        history(m, ev->now, "notice",
            (struct history_of){.attempt = LIST_ENTRY(l, struct attempt, on_node),
                .node = n,
                .a = ev->notice.deadline.ms},
            "%s", what);
    if (kind == NOTICE_TYPE_REBALANCE && n->instance)
        instance_rebalanced(m, n->instance);
    if (kind != NOTICE_TYPE_RECLAIM)
        return 0;
    node_move(m, n, NODE_NOTICED, ev->now);
    if (n->instance)
        instance_reclaimed(m, n->instance, ev->now);
    LIST_FOREACH (&n->attempts, l)
        gang_stop_others(m, LIST_ENTRY(l, struct attempt, on_node));
    return 0;
}

void node_drain(
    struct model *m, struct node *n, struct stamp now, const struct drain_reason *reason)
{
    char jobs[CORE_TEXT_MAX] = "";
    if (n->row.drain)
        return;
    n->row.drain = true;
    n->row.drained_by_belay = reason->cause != DRAIN_BY_OPERATOR;
    STR_COPY(n->row.drain_text, reason->text);
    touch_node(m, n);
    history(m, now, reason->cause == DRAIN_BY_OPERATOR ? "drain" : "auto-drain",
        (struct history_of){.node = n}, "%s is being emptied%s%.180s", n->row.name,
        reason->text[0] ? ": " : "", reason->text);
    m->lifecycle.drains[reason->cause]++;
    if (n->row.state == NODE_UP)
        node_move(m, n, NODE_DRAINING, now);
    if (reason->cause != DRAIN_BY_OPERATOR) {
        LIST_FOREACH (&n->attempts, l)
            job_ref_add(
                jobs, sizeof jobs, job_ref(&LIST_ENTRY(l, struct attempt, on_node)->job->row));
        notify_node_drained(m, n, reason->jobs[0] ? reason->jobs : jobs, now);
    }
    LIST_FOREACH (&n->attempts, l)
        job_stop(m, LIST_ENTRY(l, struct attempt, on_node)->job, END_DRAINED, true);
}

int apply_drain(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct node *n = named_node(m, ev->drain.node, e);
    if (!n)
        return ERR_NOT_FOUND;
    ret_outcome->id = n->row.id;
    if (n->row.drain && !n->row.drained_by_belay && ev->drain.text[0] &&
        !str_eq(n->row.drain_text, ev->drain.text)) {
        STR_COPY(n->row.drain_text, ev->drain.text);
        touch_node(m, n);
        history(m, ev->now, "drain", (struct history_of){.node = n}, "%s is being emptied: %.180s",
            n->row.name, n->row.drain_text);
    }
    node_drain(m, n, ev->now, &(struct drain_reason){DRAIN_BY_OPERATOR, ev->drain.text, ""});
    return 0;
}

int apply_fault(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct node *n = model_node(m, ev->fault.node);
    (void)e;
    ret_outcome->id = ev->fault.node;
    if (!n || str_eq(n->row.fault, ev->fault.text))
        return 0;
    STR_COPY(n->row.fault, ev->fault.text);
    touch_node(m, n);
    if (!n->row.fault[0])
        return 0; /* its agent has started again: only an operator knows of a repair */
    history(m, ev->now, "fault", (struct history_of){.node = n}, "%s is faulty: %.180s",
        n->row.name, n->row.fault);
    if (n->row.drain && !n->row.drained_by_belay) {
        n->row.drained_by_belay = true;
        STR_COPY(n->row.drain_text, n->row.fault);
        node_refresh(m, n, false);
    }
    node_drain(m, n, ev->now, &(struct drain_reason){DRAIN_FAULT, n->row.fault, ""});
    return 0;
}

int apply_undrain(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct node *n = named_node(m, ev->undrain.node, e);
    if (!n)
        return ERR_NOT_FOUND;
    ret_outcome->id = n->row.id;
    if (!n->row.drain)
        return 0;
    n->row.drain = n->row.drained_by_belay = false;
    n->row.drain_text[0] = '\0';
    node_failures_forget(m, n);
    touch_node(m, n);
    history(m, ev->now, "undrain", (struct history_of){.node = n}, "%s accepts jobs again",
        n->row.name);
    if (n->row.state == NODE_DRAINING)
        node_move(m, n, NODE_UP, ev->now);
    return 0;
}

int apply_node_delete(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct node *n = named_node(m, ev->node_delete.node, e);
    if (!n)
        return ERR_NOT_FOUND;
    if (!list_is_empty(&n->attempts))
        return err_set(e, ERR_CONFLICT, "node %s still runs jobs: drain it first", n->row.name);
    ret_outcome->id = n->row.id;
    if (n->instance) {
        struct event end = {.type = EV_END_INSTANCE,
            .now = ev->now,
            .end_instance = {.instance = n->row.instance, .text = "its node was deleted"}};
        return apply_end_instance(m, &end, &(struct outcome){0}, e);
    }
    history(m, ev->now, "gone", (struct history_of){.node = n}, "%s was deleted", n->row.name);
    node_gone(m, n, ev->now, "deleted");
    return 0;
}

int apply_node_lost(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct node *n = named_node(m, ev->lost.node, e);
    if (!n)
        return ERR_NOT_FOUND;
    ret_outcome->id = n->row.id;
    if (n->row.state == NODE_LOST)
        return 0;
    char silent[32], what[CORE_TEXT_MAX];
    time_format_duration(ev->now.mono.ms - n->last_seen.ms, silent, sizeof silent);
    text_format(what, sizeof what, "silent for %s", silent);
    history(m, ev->now, "lost", (struct history_of){.node = n}, "%s: %s", n->row.name, what);
    node_move(m, n, NODE_LOST, ev->now);
    attempts_end_all(m, ev->now, n, what);
    return 0;
}
