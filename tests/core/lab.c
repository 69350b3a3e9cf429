/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/planner.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/queue/queue_walk.h"
#include "scheduler/core/supply/supply_access.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const struct count lab_licences[LAB_LICENCES] = {{"matlab", 4}, {"ansys", 1}};

const struct rack_options lab_racks[LAB_RACKS] = {
    {.name = "left",
        .max_w = 1000,
        .nodes = {{"power[1-3]", 3, 100, 500}, {"power-gpu", 1, 100, 500}},
        .n_nodes = 2},
    {.name = "right", .max_w = 700, .nodes = {{"host,host-[2-4]", 4, 100, 300}}, .n_nodes = 1},
    {.name = "below", .max_w = 1000, .nodes = {{"", 3, 100, 500, "racked"}}, .n_nodes = 1},
};

static struct egress egress(const char *provider)
{
    return str_eq(provider, "gcp") ? (struct egress){20000, 120000} : (struct egress){20000, 90000};
}

void lab_init(struct lab *l)
{
    lab_init_policy(l, NULL);
}

void lab_init_policy(struct lab *l, const struct queue_policy *policy)
{
    lab_init_budgets(l, policy, NULL, 0, 0);
}

static void init(struct lab *l, struct model_options o)
{
    STR_COPY(o.cluster_uid, "0123456789abcdef");
    o.lease_ms = LAB_LEASE_MS;
    o.no_progress_max = LAB_NO_PROGRESS_MAX;
    o.tables.licences = lab_licences;
    o.tables.n_licences = LAB_LICENCES;
    o.tables.racks = lab_racks;
    o.tables.n_racks = LAB_RACKS;
    o.egress = egress;
    struct pool_row base = {.name = "base", .usd_per_hour_uusd = 500000};
    *l = (struct lab){.m = model_create(&o),
        .p = planner_create(),
        .now = {.wall = {1700000000000}, .mono = {5000}}};
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &base});
}

void lab_init_budgets(struct lab *l, const struct queue_policy *policy,
    const struct budget_options *budgets, size_t n_budgets, int64_t store_uusd_gib_month)
{
    init(l, (struct model_options){.policy = policy,
                .tables.budgets = budgets,
                .tables.n_budgets = n_budgets,
                .store_uusd_gib_month = store_uusd_gib_month});
}

void lab_init_failures(struct lab *l, const struct node_failures_options *options)
{
    static const struct notify_hook hook = {.name = "ops", .events = 1 << NOTIFY_NODE_DRAINED};
    init(l, (struct model_options){
                .node_failures = *options, .tables.hooks = &hook, .tables.n_hooks = 1});
}

void lab_init_procurement(struct lab *l, const struct procurement_options *procurement)
{
    init(l, (struct model_options){.procurement = procurement});
}

void lab_init_for_days(struct lab *l, const struct queue_policy *policy, int64_t uusd_h)
{
    struct model_options o = {
        .cluster_uid = "0123456789abcdef", .lease_ms = 1000 * 86400000LL, .policy = policy};
    struct pool_row base = {.name = "base", .usd_per_hour_uusd = uusd_h};
    *l = (struct lab){.m = model_create(&o),
        .p = planner_create(),
        .now = {.wall = {1700000000000}, .mono = {5000}}};
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &base});
}

void lab_deinit(struct lab *l)
{
    changes_deinit(&l->c);
    planner_destroy(l->p);
    model_destroy(l->m);
}

void lab_elastic(struct lab *l, const char *pool, int32_t max_nodes, const char *type, int32_t cpus)
{
    struct pool_row r = {.elastic = true,
        .provider = "aws",
        .region = "r1",
        .max_nodes = max_nodes,
        .idle_timeout_ms = LAB_IDLE_MS,
        .cooldown_ms = LAB_COOLDOWN_MS,
        .boot_timeout_ms = LAB_BOOT_MS,
        .refusal_backoff_ms = LAB_BACKOFF_MS};
    STR_COPY(r.name, pool);
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &r});
    struct resources total = {.cpus = cpus, .memory_mib = cpus * 4096};
    lab_offer(l, pool, type, MARKET_SPOT, 0, total, LAB_SPOT_UUSD_H);
    lab_offer(l, pool, type, MARKET_ON_DEMAND, 1, total, LAB_ON_DEMAND_UUSD_H);
}

int64_t lab_offer(struct lab *l, const char *pool, const char *type, enum market market,
    int32_t rank, struct resources total, int64_t uusd_h)
{
    struct offer_row r = {.zone = "z1",
        .market = market,
        .rank = rank,
        .total = total,
        .price_uusd_h = uusd_h,
        .on_demand_uusd_h = LAB_ON_DEMAND_UUSD_H};
    STR_COPY(r.pool, pool);
    STR_COPY(r.type, type);
    return lab_apply(l, (struct event){.type = EV_OFFER, .offer = &r});
}

int64_t lab_launches(const struct lab *l, int64_t offer)
{
    return model_offer(l->m, offer)->row.launches;
}

struct pool_row lab_pool(const struct lab *l, const char *name)
{
    return model_pool(l->m, name)->row;
}

void lab_set_pool(struct lab *l, struct pool_row row)
{
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &row});
}

/* A placement never exceeds a limit. */
static void check_limits(const struct account *a)
{
    const struct allowance *const of[] = {&a->allowance, &a->team->allowance};
    for (size_t k = 0; k < 2; k++)
        for (int kind = 0; kind < LIMIT_KINDS; kind++)
            if (kind != LIMIT_SUBMITTED && of[k]->used[kind] > of[k]->max[kind])
                fail_msg("%s of team %s exceeds %s", k == 0 ? a->row.user : "all", a->row.team,
                    limit_names[kind]);
}

int lab_try(struct lab *l, struct event *ev, int64_t *ret_id)
{
    struct outcome out = {0};
    struct err broken = {0};
    ev->now = l->now;
    int rc = core_apply(l->m, ev, &out, &l->e);
    if (model_check(l->m, &broken))
        fail_msg("after %s: %s", event_type_names[ev->type], broken.text);
    if (rc == 0 && ev->type == EV_PLACE)
        check_limits(model_job(l->m, out.id)->account);
    if (ret_id)
        *ret_id = out.id;
    return rc;
}

int64_t lab_apply(struct lab *l, struct event ev)
{
    int64_t id = 0;
    if (lab_try(l, &ev, &id))
        fail_msg("%s: %s", event_type_names[ev.type], l->e.text);
    return id;
}

void lab_wait(struct lab *l, int64_t ms)
{
    l->now.wall.ms += ms;
    l->now.mono.ms += ms;
}

struct job_row lab_job(int32_t cpus)
{
    return (struct job_row){.spec.name = "train",
        .user = "ann",
        .spec.nodes = 1,
        .spec.need = {.cpus = cpus, .memory_mib = 100},
        .spec.method = CKPT_COOP,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 3,
        .spec.retries.n[RETRY_FAILED] = 1};
}

struct job_texts lab_texts(const char *labels)
{
    return (struct job_texts){.script = "#!/bin/sh\ntrue\n",
        .args_json = "[]",
        .env_json = "{}",
        .cwd = "/",
        .labels_json = labels};
}

int64_t lab_submit(struct lab *l, const struct job_row *row)
{
    const struct job_texts texts = lab_texts("{}");
    return lab_apply(l, (struct event){.type = EV_SUBMIT, .submit = {.job = row, .texts = &texts}});
}

static int try_asking(
    struct lab *l, const struct job_row *row, const char *constraints, int64_t *ret_id)
{
    struct job_texts texts = lab_texts("{}");
    texts.constraints = constraints;
    struct event ev = {.type = EV_SUBMIT, .submit = {.job = row, .texts = &texts}};
    return lab_try(l, &ev, ret_id);
}

int lab_try_asking(struct lab *l, const struct job_row *row, const char *constraints)
{
    return try_asking(l, row, constraints, NULL);
}

void lab_refused(struct lab *l, const struct job_row *r, const char *words)
{
    struct event ev = {.type = EV_SUBMIT, .submit = {.job = r}};
    assert_int_equal(lab_try(l, &ev, NULL), ERR_INVALID);
    if (!strstr(l->e.text, words))
        fail_msg("%s", l->e.text);
}

int64_t lab_submit_asking(struct lab *l, const struct job_row *row, const char *constraints)
{
    int64_t id = CORE_ID_NONE;
    if (try_asking(l, row, constraints, &id) != 0)
        fail_msg("%s: %s", constraints, l->e.text);
    return id;
}

int64_t lab_submit_cpus(struct lab *l, int32_t cpus)
{
    struct job_row r = lab_job(cpus);
    return lab_submit(l, &r);
}

int64_t lab_submit_pool(struct lab *l, int32_t cpus, const char *pool, enum market_wish wish)
{
    struct job_row r = lab_job(cpus);
    STR_COPY(r.spec.pool, pool);
    r.spec.market = wish;
    return lab_submit(l, &r);
}

int64_t lab_submit_nodes(struct lab *l, int32_t nodes, int32_t cpus, int64_t limit_ms)
{
    struct job_row r = lab_job(cpus);
    r.spec.nodes = nodes;
    r.spec.time_limit_ms = limit_ms;
    return lab_submit(l, &r);
}

static int64_t join(struct lab *l, const char *name, int64_t instance, int32_t cpus)
{
    struct node_row r = {
        .pool = "base", .total = {.cpus = cpus, .memory_mib = cpus * 4096}, .version = "1"};
    STR_COPY(r.name, name);
    snprintf(r.key_hash, sizeof r.key_hash, "key-%s", name);
    return lab_apply(
        l, (struct event){.type = EV_JOIN, .join = {.node = &r, .instance = instance}});
}

int64_t lab_join(struct lab *l, const char *name, int32_t cpus)
{
    return join(l, name, CORE_ID_NONE, cpus);
}

int64_t lab_join_with(
    struct lab *l, const char *name, int32_t cpus, const char *features, const char *resources)
{
    int64_t id = join(l, name, CORE_ID_NONE, cpus);
    struct event ev = {.type = EV_FACTS, .facts.node = id};
    STR_COPY(ev.facts.features, features);
    STR_COPY(ev.facts.resources, resources);
    lab_apply(l, ev);
    return id;
}

int64_t lab_join_instance(struct lab *l, int64_t instance, int32_t cpus)
{
    char name[32];
    snprintf(name, sizeof name, "vm-%" PRId64, instance);
    return join(l, name, instance, cpus);
}

void lab_started(struct lab *l, int64_t job)
{
    const struct job *j = model_job(l->m, job);
    lab_apply(l, (struct event){.type = EV_ATTEMPT_STARTED,
                     .started = {.job = job,
                         .attempt = j->row.attempts,
                         .node = job_attempt(j)->row.node,
                         .restored = j->row.last_good,
                         .restored_progress = j->row.last_good_progress,
                         .restore_ms = j->row.last_good.attempt ? 500 : 0}});
}

void lab_saved(struct lab *l, int64_t job, int64_t sequence, int64_t progress)
{
    const struct job *j = model_job(l->m, job);
    lab_apply(l, (struct event){.type = EV_CHECKPOINT,
                     .checkpoint = {.job = job,
                         .node = job_attempt(j)->row.node,
                         .ref = {j->row.attempts, sequence},
                         .bytes = 1000,
                         .stored_bytes = 500,
                         .took_ms = 100,
                         .pause_ms = 100,
                         .progress = progress,
                         .saved_at = l->now.wall,
                         .cause = "periodic"}});
}

void lab_ended(struct lab *l, int64_t job, enum end_kind end, int32_t exit_code)
{
    const struct job *j = model_job(l->m, job);
    lab_apply(l, (struct event){.type = EV_ATTEMPT_ENDED,
                     .ended = {.job = job,
                         .attempt = j->row.attempts,
                         .node = job_attempt(j)->row.node,
                         .end = end,
                         .exit_code = exit_code}});
}

void lab_cancel(struct lab *l, int64_t job, const char *tasks)
{
    struct ranges set;
    if (tasks)
        assert_int_equal(ranges_parse(tasks, &set, &l->e), 0);
    lab_apply(l, (struct event){.type = EV_CANCEL,
                     .cancel = {.job = job, .by = "ann", .tasks = tasks ? &set : NULL}});
}

void lab_notice(struct lab *l, int64_t node, enum notice_type kind, int64_t in_ms)
{
    lab_apply(l, (struct event){.type = EV_NOTICE,
                     .notice = {.node = node, .kind = kind, .deadline = {l->now.wall.ms + in_ms}}});
}

void lab_heartbeats(struct lab *l)
{
    LIST_FOREACH (model_nodes(l->m), k) {
        const struct node *n = LIST_ENTRY(k, struct node, in_all);
        if (n->row.state != NODE_LOST)
            lab_apply(l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = n->row.id});
    }
}

void lab_launched(struct lab *l, int64_t instance)
{
    struct event ev = {.type = EV_LAUNCHED, .launched.instance = instance};
    snprintf(ev.launched.provider_id, sizeof ev.launched.provider_id, "i-%" PRId64, instance);
    lab_apply(l, ev);
}

int64_t lab_bring_up(struct lab *l, int64_t instance, int32_t cpus)
{
    lab_launched(l, instance);
    return lab_join_instance(l, instance, cpus);
}

static bool same_nodes(const int64_t *a, size_t n_a, const int64_t *b, size_t n_b)
{
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof *a) == 0);
}

static bool same_decision(const struct event *a, const struct event *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case EV_PLACE:
        return a->place.job == b->place.job && a->place.node == b->place.node &&
               same_nodes(a->place.more, a->place.n_more, b->place.more, b->place.n_more);
    case EV_RESERVE:
        return a->reserve.job == b->reserve.job && same_nodes(a->reserve.nodes, a->reserve.n_nodes,
                                                       b->reserve.nodes, b->reserve.n_nodes);
    case EV_LAUNCH:
        return a->launch.offer == b->launch.offer;
    case EV_END_INSTANCE:
        return a->end_instance.instance == b->end_instance.instance;
    case EV_MOVE:
        return a->move.job == b->move.job;
    default:
        return a->lost.node == b->lost.node;
    }
}

/* ---- what two planners that disagree saw ---- */

static void print_decision(const char *who, bool any, const struct event *ev)
{
    if (!any) {
        print_message("%s decides nothing\n", who);
        return;
    }
    print_message("%s decides %s:", who, event_type_names[ev->type]);
    switch (ev->type) {
    case EV_PLACE:
        print_message(" job %" PRId64 " on node %" PRId64, ev->place.job, ev->place.node);
        for (size_t k = 0; k < ev->place.n_more; k++)
            print_message(", %" PRId64, ev->place.more[k]);
        break;
    case EV_RESERVE:
        print_message(" for job %" PRId64 ", nodes", ev->reserve.job);
        for (size_t k = 0; k < ev->reserve.n_nodes; k++)
            print_message(" %" PRId64, ev->reserve.nodes[k]);
        break;
    case EV_LAUNCH:
        print_message(" offer %" PRId64, ev->launch.offer);
        break;
    case EV_END_INSTANCE:
        print_message(
            " instance %" PRId64 ": %s", ev->end_instance.instance, ev->end_instance.text);
        break;
    default: /* the id of its job or node is the first member */
        print_message(" %" PRId64, ev->lost.node);
    }
    print_message("\n");
}

/* Which class fitted nowhere at which growth count, and how far the cursor is. */
static void print_memory(const struct lab *l)
{
    const struct planner *p = l->p;
    const struct model_versions *v = model_versions(l->m);
    print_message("the model: growth %" PRId64 ", rewind %" PRId64 ", retry_all %" PRId64
                  ", change %" PRId64 ", launches %" PRId64 "\n",
        v->growth, v->rewind, v->retry_all, v->change, v->launches);
    print_message("the planner: rewind %" PRId64 ", seen growth %" PRId64 " fresh %" PRId64
                  " retry_all %" PRId64 ", cursor %" PRId64 " %" PRId64
                  "%s; launches computed at change %" PRId64 " after %" PRId64 ":",
        p->rewind, p->seen.growth, p->seen.fresh, p->seen.retry_all, p->cursor.at_16,
        p->cursor.head, p->is_all ? ", all classes" : "", p->change, p->base);
    for (size_t k = 0; k < p->n_launches; k++)
        print_message(" %" PRId64, p->launches[k]);
    print_message("\n");
}

static void print_queue(const struct lab *l)
{
    struct queue_walk w = {0};
    queue_walk_begin(&w, l->m);
    for (const struct shape *s; (s = queue_walk_next(&w)) != NULL;)
        print_message("job %" PRId64 " at %" PRId64 ": %" PRId32 " to %" PRId32 " nodes of %" PRId32
                      " cpus, %" PRId32 " gpus, %" PRId64 " MiB; class %" PRId64
                      " fitted nowhere at growth %" PRId64 "\n",
            s->head, s->position_16, s->least, s->nodes, s->need.cpus, s->need.gpus,
            s->need.memory_mib, s->demand_class->id,
            (int64_t)(intptr_t)map_get(&l->p->unfit, s->demand_class->id) - 1);
    queue_walk_end(&w);
}

static void print_nodes(const struct lab *l)
{
    LIST_FOREACH (model_nodes(l->m), k) {
        const struct node *n = LIST_ENTRY(k, struct node, in_all);
        print_message("node %" PRId64 " %s of %s, %s%s%s: %" PRId32 " of %" PRId32
                      " cpus free, %" PRId32 " gpus, %" PRId64 " MiB; grown at %" PRId64,
            n->row.id, n->row.name, n->row.pool, sm_name(&node_sm, (int)n->row.state),
            n->throttle ? ", throttled" : "", n->disk_full[0] ? ", disk full" : "", n->free.cpus,
            n->row.total.cpus, n->free.gpus, n->free.memory_mib, n->grown);
        if (n->rack)
            print_message("; rack %s, draws %" PRId64 " and %" PRId64 " W more",
                n->rack->options->name, n->draw_w, n->over_w);
        if (n->kept_for)
            print_message("; kept for job %" PRId64, n->kept_for->row.id);
        if (n->reserved_for)
            print_message("; reserved for job %" PRId64 " until %" PRId64 ", %" PRId32 " claims",
                n->reserved_for->head, n->reserved_for->reserved_until, n->claims);
        print_message("\n");
    }
    for (size_t k = 0; k < racks_count(l->m); k++)
        print_message("rack %s: %" PRId64 " W left\n", rack_at(l->m, k)->options->name,
            rack_left(rack_at(l->m, k)));
}

static void fail_disagreeing(const struct lab *l, const char *why, const char *other, bool any,
    const struct event *a, bool other_any, const struct event *b)
{
    print_decision("the planner", any, a);
    print_decision(other, other_any, b);
    print_memory(l);
    print_queue(l);
    print_nodes(l);
    fail_msg("%s", why);
}

bool lab_decision(struct lab *l, struct event *ret_event)
{
    struct event first = {0}, again = {0};
    bool any = plan_next(l->p, l->m, l->now, &first), other = plan_next(l->p, l->m, l->now, &again);
    if (other != any || (any && !same_decision(&first, &again)))
        fail_disagreeing(
            l, "asked again it decides otherwise", "asked again, it", any, &first, other, &again);
    /* the planner's memory must not affect decisions */
    struct planner *fresh = planner_create();
    other = plan_next(fresh, l->m, l->now, &again);
    if (other != any || (any && !same_decision(&first, &again)))
        fail_disagreeing(l, "remembering hides a decision, or finds one", "one without memory", any,
            &first, other, &again);
    planner_destroy(fresh);
    *ret_event = first;
    return any;
}

/* Decision of a planner without memory at another time. */
static bool decides_at(const struct lab *l, int64_t mono_ms)
{
    struct event ev;
    struct planner *p = planner_create();
    struct stamp at = {{l->now.wall.ms + mono_ms - l->now.mono.ms}, {mono_ms}};
    bool any = plan_next(p, l->m, at, &ev);
    if (any && mono_ms < plan_wake(l->p, l->m, l->now).ms)
        print_message("%s would be decided before\n", event_type_names[ev.type]);
    planner_destroy(p);
    return any;
}

static bool is_tried_again_at(const struct lab *l, int64_t mono_ms)
{
    LIST_FOREACH (model_pools(l->m), k)
        if (LIST_ENTRY(k, struct pool, in_all)->probe_at.ms == mono_ms)
            return true;
    for (int64_t id = 1; model_offer(l->m, id); id++)
        if (model_offer(l->m, id)->row.avoid_until.ms == mono_ms)
            return true;
    return false;
}

/* A job has been on-demand long enough to move, if there were a cheaper place. */
static bool may_move_at(const struct lab *l, int64_t mono_ms)
{
    LIST_FOREACH (supply_costly(l->m), k) {
        const struct attempt *a = LIST_ENTRY(k, struct attempt, costly);
        int64_t due = a->row.assigned_at.ms + a->node->pool->row.return_ms;
        if (due - l->now.wall.ms == mono_ms - l->now.mono.ms)
            return true;
    }
    return false;
}

/* The wall clock may be set, so it is checked every minute with cron entries or a digest, and every
 * hour with budgets or checkpoints of ended jobs. */
static bool is_clock_looked_at(const struct lab *l, int64_t mono_ms)
{
    if (budgets_n_due(l->m) + ckpt_gc_n_due(l->m) > 0 && mono_ms - l->now.mono.ms == 3600000)
        return true;
    return (crons_n_due(l->m) > 0 || l->m->options.tables.digest) &&
           mono_ms - l->now.mono.ms == 60000;
}

/* A job may be preempted again, so a place may become available. */
static bool may_reclaim_at(const struct lab *l, int64_t mono_ms)
{
    return mono_is_set(l->p->preempt_until) && l->p->preempt_until.ms == mono_ms;
}

void lab_check_wake(const struct lab *l)
{
    struct mono wake = plan_wake(l->p, l->m, l->now);
    int64_t ten_years = 10LL * 365 * 86400 * 1000;
    if (!mono_is_set(wake)) {
        assert_false(decides_at(l, l->now.mono.ms + ten_years));
        return;
    }
    assert_true(wake.ms > l->now.mono.ms);
    if (decides_at(l, wake.ms - 1))
        fail_msg("a decision is due before the planner would wake");
    if (!decides_at(l, wake.ms) && !is_tried_again_at(l, wake.ms) && !may_move_at(l, wake.ms) &&
        !is_clock_looked_at(l, wake.ms) && !may_reclaim_at(l, wake.ms))
        fail_msg("the planner would wake for nothing");
}

int lab_plan(struct lab *l)
{
    struct event ev;
    int n = 0;
    for (; lab_decision(l, &ev);
         n += ev.type != EV_CLEAN && ev.type != EV_ORDER && ev.type != EV_RESERVE) {
        lab_apply(l, ev);
        if (ev.type == EV_CLEAN)
            lab_apply(l, (struct event){.type = EV_CLEANED, .cleaned.job = ev.clean.job});
    }
    lab_check_wake(l);
    return n;
}

void lab_take(struct lab *l)
{
    changes_deinit(&l->c);
    model_take_changes(l->m, &l->c);
}

const struct history_row *lab_history(const struct lab *l, const char *kind)
{
    for (size_t k = l->c.n_history; k-- > 0;)
        if (strcmp(l->c.history[k].kind, kind) == 0)
            return &l->c.history[k];
    return NULL;
}

const struct job_row *lab_row(const struct lab *l, int64_t job)
{
    for (size_t k = l->c.n_jobs; k-- > 0;)
        if (l->c.jobs[k].id == job)
            return &l->c.jobs[k];
    return NULL;
}

const struct instance_row *lab_instance_row(const struct lab *l, int64_t instance)
{
    for (size_t k = l->c.n_instances; k-- > 0;)
        if (l->c.instances[k].id == instance)
            return &l->c.instances[k];
    return NULL;
}

int64_t lab_node_of(const struct lab *l, int64_t job)
{
    const struct job *j = model_job(l->m, job);
    return j && job_attempt(j) ? job_attempt(j)->row.node : CORE_ID_NONE;
}

struct job *lab_task(const struct lab *l, int64_t array, int32_t index)
{
    const struct job *j = model_job(l->m, array);
    if (j && j->array)
        LIST_FOREACH (&j->array->tasks, k)
            if (LIST_ENTRY(k, struct job_side, in_array)->job->row.array_index == index)
                return LIST_ENTRY(k, struct job_side, in_array)->job;
    return NULL;
}

bool lab_runs(const struct lab *l, int64_t job)
{
    return lab_node_of(l, job) != CORE_ID_NONE;
}

bool lab_has_reason(const struct lab *l, int64_t job, const char *code, const char *words)
{
    struct reason r[EXPLAIN_REASONS_MAX];
    size_t n = core_explain(l->m, l->now, job, r, EXPLAIN_REASONS_MAX);
    for (size_t k = 0; k < n; k++)
        if (str_eq(r[k].code, code) && strstr(r[k].text, words))
            return true;
    for (size_t k = 0; k < n; k++)
        print_message("%s: %s\n", r[k].code, r[k].text);
    return false;
}

struct ledger_row lab_ledger_sum(const struct lab *l, enum ledger_kind kind)
{
    struct ledger_row s = {.kind = kind};
    for (size_t k = 0; k < l->c.n_ledger; k++) {
        const struct ledger_row *r = &l->c.ledger[k];
        if (r->kind != kind)
            continue;
        s.ms += r->ms;
        s.node_ms += r->node_ms;
        s.uusd += r->uusd;
        s.on_demand_uusd += r->on_demand_uusd;
    }
    return s;
}

void lab_start_rented(struct lab *l, int n_jobs, int32_t cpus)
{
    lab_init(l);
    lab_elastic(l, "burst", 1, "m5", 4);
    for (int k = 0; k < n_jobs; k++)
        lab_submit_cpus(l, cpus);
    lab_plan(l);
    lab_launched(l, 1);
    lab_wait(l, 60000);
    lab_join_instance(l, 1, 4);
    lab_plan(l);
    lab_take(l);
}

double lab_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
