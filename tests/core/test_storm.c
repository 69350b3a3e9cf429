/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded storms: random events, stale and absurd ones among them, with decisions, stored changes,
 * and reloads of the model in between. The invariants hold after each event (lab_try), the promises
 * after each tick (shelf_put), and every change was marked (shelf_compare).
 */
#include "tests/core/shelf.h"

#include "base/prng.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 400
#define TURNS 120
#define DECISIONS_MAX 500

struct storm {
    struct lab l;
    struct shelf s;
    struct prng r;
};

static int64_t below(struct storm *st, int64_t n)
{
    return (int64_t)prng_below(&st->r, (uint64_t)n);
}

/* Refusals are allowed; lab_try checks the invariants. */
static void attempt_event(struct storm *st, struct event ev)
{
    (void)lab_try(&st->l, &ev, NULL);
}

static int64_t any_id(struct storm *st, int64_t next)
{
    return 1 + below(st, next);
}

static struct job *any_running(struct storm *st)
{
    int64_t max = (int64_t)st->s.n_jobs + 8;
    for (int k = 0; k < 20; k++) {
        struct job *j = model_job(st->l.m, any_id(st, max));
        if (j && job_attempt(j))
            return j;
    }
    return NULL;
}

/* Some are never available, some only occasionally. */
static const char *any_constraints(struct storm *st)
{
    static const char *const all[] = {"constraint=ib", "constraint=ib|old", "constraint=spot&ib",
        "constraint=never", "resources=lego:1", "resources=lego:2",
        "resources=lego:3 licences=matlab:1", "licences=matlab:1 input=aws/us-east-1:7000000000",
        "licences=matlab:3", "licences=matlab:4", "licences=ansys:1,matlab:2", "licences=ansys:2",
        "constraint=old resources=lego:1 licences=ansys:1", "constraint=z1 licences=matlab:2",
        "exclusive=yes", "exclusive=yes input=store:150323855360", "resources=lego:1 exclusive=yes",
        "licences=matlab:1 exclusive=yes"};
    return below(st, 3) ? NULL : all[below(st, (int64_t)(sizeof all / sizeof all[0]))];
}

/* An existing or former array; common tasks, or others. */
static void depend_on_tasks(struct storm *st, struct ranges *tasks, struct depend_ask *ask)
{
    const struct job *on = NULL;
    for (int k = 0; k < 40 && !ask->array; k++) {
        *ask = (struct depend_ask){
            .kind = DEPEND_AFTERCORR, .on = any_id(st, (int64_t)st->s.n_jobs + 1)};
        ask->array = shelf_array_ends(&st->s, ask->on);
    }
    if (!ask->array)
        return;
    on = model_job(st->l.m, ask->on);
    ask->has_ended = !on;
    if (below(st, 4))
        *tasks = ask->array->all;
}

static void submit(struct storm *st)
{
    struct job_row r = lab_job((int32_t)(1 + below(st, 6)));
    STR_COPY(r.user, below(st, 2) ? "ann" : "bob");
    static const char *const classes[] = {"", "high", "middle", "low"};
    STR_COPY(r.spec.qos, classes[below(st, 4)]);
    r.spec.market = (enum market_wish)below(st, 3);
    r.spec.need.gpus = below(st, 5) == 0;
    r.spec.nodes = below(st, 5) ? 1 : (int32_t)(2 + below(st, 2));
    r.spec.retries.n[RETRY_FAILED] = (int32_t)below(st, 3);
    static const char *const pools[] = {
        "", "", "base", "burst", "absent", "base,burst", "absent,burst"};
    STR_COPY(r.spec.pool, pools[below(st, 7)]);
    r.spec.drill_tries = below(st, 4) == 0 ? DRILL_TRIES_DEFAULT : 0;
    snprintf(r.script_key, sizeof r.script_key, "%s", (const char *[]){"", "a", "b"}[below(st, 3)]);
    struct job_texts texts = {.script = "#!",
        .args_json = "[]",
        .env_json = "{}",
        .cwd = "/",
        .labels_json = "{}",
        .constraints = any_constraints(st)};
    struct depend_ask asks[2] = {{.kind = (enum depend_kind)below(st, DEPEND_SINGLETON + 1)},
        {.kind = (enum depend_kind)below(st, DEPEND_SINGLETON)}};
    for (size_t k = 0; k < 2; k++)
        if (asks[k].kind != DEPEND_SINGLETON)
            asks[k].on = any_id(st, (int64_t)st->s.n_jobs + 1);
    asks[1].delay_ms = asks[1].kind == DEPEND_AFTER ? below(st, 20000) : 0;
    struct ranges tasks;
    bool is_array = below(st, 6) == 0;
    (void)ranges_parse((const char *[]){"0", "1-3", "0-20:5,7"}[below(st, 3)], &tasks, &st->l.e);
    if (is_array && below(st, 2))
        depend_on_tasks(st, &tasks, &asks[0]);
    r.hold = below(st, 8) ? HOLD_NONE : HOLD_USER;
    r.spec.begin_at.ms = below(st, 8) ? WALL_NONE.ms : st->l.now.wall.ms + below(st, 60000);
    r.spec.depends_any = below(st, 2);
    r.spec.keep_unmeetable = below(st, 8) == 0;
    if (r.spec.market == WISH_ANY && below(st, 4) == 0) {
        r.spec.work_ms = 1000 + below(st, 100000);
        r.spec.finish_ms = st->l.now.wall.ms + 1 + below(st, 200000);
    }
    r.spec.deadline_ms =
        below(st, 8) ? 0 : st->l.now.wall.ms + r.spec.time_limit_ms + below(st, 60000);
    r.spec.max_uusd = below(st, 6) ? 0 : 1000 * below(st, 1000);
    r.spec.max_uusd_h = below(st, 6) ? 0 : 1000 * below(st, 3000);
    r.spec.method = below(st, 8) || r.spec.drill_tries > 0 ? r.spec.method : CKPT_NONE;
    attempt_event(st, (struct event){.type = EV_SUBMIT,
                          .submit = {.job = &r,
                              .texts = &texts,
                              .tasks = is_array ? &tasks : NULL,
                              .at_once = is_array ? (int32_t)below(st, 3) : 0,
                              .depends = asks,
                              .n_depends = asks[0].array  ? 1 + (size_t)below(st, 2)
                                           : below(st, 4) ? 0
                                                          : (size_t)below(st, 3)}});
    if (asks[0].array)
        bits_deinit(&asks[0].array->succeeded);
    free(asks[0].array);
}

/* Some or all fields, of running, waiting, ended or unknown jobs; of an array, or of its tasks. */
static void update(struct storm *st)
{
    static const char *const pools[] = {"", "base", "burst", "absent", "burst,base"},
                             *const classes[] = {"", "high", "middle", "low", "none"},
                             *const names[] = {"train", "train", "eval", ""},
                             *const teams[] = {"", "red", "blue"};
    const struct ranges some = {1, {{(int32_t)below(st, 4), 4, 1}}};
    struct job_row to = lab_job((int32_t)(1 + below(st, 6)));
    struct depend_ask asks[2] = {
        {.kind = DEPEND_SINGLETON}, {.kind = (enum depend_kind)below(st, DEPEND_SINGLETON)}};
    if (below(st, 2))
        asks[0] = (struct depend_ask){.kind = (enum depend_kind)below(st, DEPEND_SINGLETON),
            .on = any_id(st, (int64_t)st->s.n_jobs + 1)};
    asks[1].on = any_id(st, (int64_t)st->s.n_jobs + 1);
    asks[1].delay_ms = asks[1].kind == DEPEND_AFTER ? below(st, 20000) : 0;
    STR_COPY(to.spec.pool, pools[below(st, 5)]);
    STR_COPY(to.spec.qos, classes[below(st, 5)]);
    STR_COPY(to.spec.name, names[below(st, 4)]);
    STR_COPY(to.spec.team, teams[below(st, 3)]);
    to.spec.market = (enum market_wish)below(st, 3);
    to.spec.need.gpus = below(st, 5) == 0;
    to.spec.nodes = (int32_t)(1 + below(st, 3));
    to.spec.nodes_min = (int32_t)below(st, 4);
    to.spec.time_limit_ms = below(st, 3) ? below(st, 100000) : 0;
    to.spec.nice = (int32_t)below(st, 30) - 1;
    to.spec.begin_at.ms = below(st, 2) ? WALL_NONE.ms : st->l.now.wall.ms + below(st, 60000);
    to.spec.deadline_ms = below(st, 2) ? 0 : st->l.now.wall.ms + below(st, 300000);
    to.spec.finish_ms = below(st, 2) ? 0 : st->l.now.wall.ms + below(st, 600000);
    to.spec.work_ms = below(st, 3) ? 1000 + below(st, 100000) : 0;
    to.spec.depends_any = below(st, 2);
    to.spec.max_uusd = below(st, 2) ? 0 : 1000 * below(st, 2000);
    to.spec.max_uusd_h = below(st, 2) ? 0 : 1000 * below(st, 3000);
    for (int k = 0; k < RETRY_KINDS; k++)
        to.spec.retries.n[k] = below(st, 2)   ? 0
                               : below(st, 3) ? (int32_t)below(st, 4)
                                              : RETRIES_NEVER;
    uint64_t fields = UPDATE_BIT(below(st, UPDATE_FIELDS));
    for (int64_t more = below(st, 4); more > 0; more--)
        fields |= UPDATE_BIT(below(st, UPDATE_FIELDS));
    if (below(st, 3) == 0)
        /* fields that may change while it runs */
        fields &= (UPDATE_BIT(UPDATE_AT_ONCE) - 1) | UPDATE_BIT(UPDATE_MAX_USD) |
                  UPDATE_BIT(UPDATE_MAX_USD_H);
    attempt_event(st, (struct event){.type = EV_UPDATE,
                          .update = {.job = any_id(st, (int64_t)st->s.n_jobs + 2),
                              .by = "ann",
                              .fields = fields,
                              .to = &to,
                              .constraints = any_constraints(st),
                              .depends = asks,
                              .n_depends = (size_t)below(st, 3),
                              .at_once = (int32_t)below(st, 4) - 1,
                              .tasks = below(st, 6) ? NULL : &some}});
}

static void any_facts(
    struct storm *st, char features[FEATURES_TEXT_MAX], char resources[COUNTS_TEXT_MAX])
{
    str_copy(features, FEATURES_TEXT_MAX,
        (const char *[]){"", ",ib,", ",ib,old,", ",old,"}[below(st, 4)]);
    str_copy(resources, COUNTS_TEXT_MAX,
        (const char *[]){"", "lego:1", "lego:4", "lego:3,shmem:1"}[below(st, 4)]);
}

static void join(struct storm *st)
{
    struct node_row r = {
        .pool = "base", .total = {(int32_t)(1 + below(st, 8)), (int32_t)below(st, 2), 40000}};
    int64_t instance = below(st, 3) ? any_id(st, (int64_t)st->s.n_instances + 4) : CORE_ID_NONE;
    STR_COPY(r.name, "host");
    if (instance)
        snprintf(r.key_hash, sizeof r.key_hash, "vm-%" PRId64 "%s", instance,
            below(st, 9) ? "" : "-other");
    else
        snprintf(r.key_hash, sizeof r.key_hash, "own-%" PRId64, below(st, 6));
    any_facts(st, r.features, r.resources);
    attempt_event(st, (struct event){.type = EV_JOIN, .join = {.node = &r, .instance = instance}});
}

static const struct attempt *any_rank(struct storm *st, const struct job *j)
{
    int64_t skip = below(st, j->row.spec.nodes);
    const struct attempt *a = NULL;
    LIST_FOREACH (&j->ranks, l) {
        a = LIST_ENTRY(l, struct attempt, in_job);
        if (skip-- == 0)
            break;
    }
    return a;
}

static void facts(struct storm *st)
{
    struct event ev = {.type = EV_FACTS, .facts.node = any_id(st, (int64_t)st->s.n_nodes + 2)};
    any_facts(st, ev.facts.features, ev.facts.resources);
    attempt_event(st, ev);
}

/* A node's draw, its throttling (4 is refused), whether its disk is full; then, often before any
 * decision, the end of the throttling, or another reason for it. */
static void condition(struct storm *st)
{
    const struct event ev = {.type = EV_CONDITION,
        .condition = {.node = any_id(st, (int64_t)st->s.n_nodes + 2),
            .throttle = below(st, 2) ? NODE_THROTTLE_NONE : (enum node_throttle)below(st, 5),
            .watts = below(st, 2) ? 0 : below(st, 600)}};
    struct event disk = {.type = EV_DISK, .disk.node = ev.condition.node}, again = ev;
    attempt_event(st, ev);
    STR_COPY(disk.disk.full, ev.condition.watts % 4 == 3 ? "it is full" : "");
    attempt_event(st, disk);
    again.condition.throttle = below(st, 4) ? NODE_THROTTLE_NONE : NODE_THROTTLE_POWER;
    attempt_event(st, again);
    struct event fetched = {.type = EV_PREFETCHED,
        .prefetch = {.job = any_id(st, (int64_t)st->s.n_jobs + 2),
            .node = ev.condition.node,
            .ref = {1 + below(st, 3), 1}}};
    STR_COPY(fetched.prefetch.text, below(st, 3) ? "" : "the store is away");
    attempt_event(st, fetched);
}

/* The pool's settings for its nodes. */
static void pool(struct storm *st)
{
    const struct pool *known = model_pool(st->l.m, below(st, 2) ? "base" : "burst");
    struct pool_row p = known->row;
    any_facts(st, p.features, p.resources);
    p.egress_uusd_gib = (int64_t)strlen(p.features) % 3 * 1000000;
    p.upload_uusd_gib = (int64_t)strlen(p.resources) % 3 * 1000000;
    attempt_event(st, (struct event){.type = EV_POOL, .pool = &p});
}

static void agent(struct storm *st)
{
    struct job *j = any_running(st);
    if (!j)
        return;
    const struct attempt *a = any_rank(st, j);
    int64_t stale = below(st, 8) == 0;
    int64_t job = j->row.id, attempt = j->row.attempts - stale,
            node = a->row.node + (below(st, 30) == 0);
    struct ckpt_ref good = j->row.last_good;
    switch (below(st, 7)) {
    case 6:
        attempt_event(st,
            (struct event){.type = EV_KEPT,
                .kept = {
                    .job = job, .attempt = attempt, .node = node, .bytes = below(st, 1 << 22)}});
        break;
    case 0:
        attempt_event(
            st, (struct event){.type = EV_ATTEMPT_STARTED,
                    .started = {.job = job,
                        .attempt = attempt,
                        .node = node,
                        .restored = below(st, 4) ? good : (struct ckpt_ref){below(st, 5), 1},
                        .restored_progress = below(st, 100),
                        .restore_ms = below(st, 9000),
                        .bytes = 1000000,
                        .nearby_bytes = attempt * 400000,
                        .damaged = (int32_t)below(st, 2)}});
        break;
    case 1:
    case 2:
        attempt_event(st, (struct event){.type = EV_CHECKPOINT,
                              .checkpoint = {.job = job,
                                  .node = node,
                                  .ref = {attempt, a->row.sequence + below(st, 3)},
                                  .bytes = below(st, 1 << 20),
                                  .stored_bytes = 1000 * st->l.now.wall.ms % (1 << 20),
                                  .took_ms = below(st, 5000),
                                  .pause_ms = below(st, 5000),
                                  .progress = below(st, 1000),
                                  .saved_at = {st->l.now.wall.ms + below(st, 3000) - 2000},
                                  .cause = "periodic"}});
        break;
    case 3:
        attempt_event(st, (struct event){.type = EV_ATTEMPT_ENDED,
                              .ended = {.job = job,
                                  .attempt = attempt,
                                  .node = node,
                                  .end = (enum end_kind)below(st, END_DRILLED + 2),
                                  .exit_code = below(st, 2) ? 85 : 1,
                                  .text = "because"}});
        break;
    case 4:
        attempt_event(st,
            (struct event){.type = EV_PROGRESS, .progress = {job, attempt, below(st, 1000), 1000}});
        break;
    default:
        attempt_event(st, (struct event){.type = EV_SAVE_FAILED,
                              .save_failed = {job, attempt, node, "disk full"}});
    }
}

static void user(struct storm *st)
{
    const struct ranges some = {1, {{(int32_t)below(st, 4), 4, 1}}};
    int64_t job = any_id(st, (int64_t)st->s.n_jobs + 2),
            node = any_id(st, (int64_t)st->s.n_nodes + 2);
    switch (below(st, 8)) {
    case 6:
    case 7:
        attempt_event(
            st, (struct event){.type = EV_DRILL, .drill = {job, "ann", below(st, 3) == 0}});
        break;
    case 0:
        if (below(st, 2))
            attempt_event(
                st, (struct event){.type = below(st, 3) ? EV_RELEASE : EV_HOLD,
                        .hold = {.job = job, .by = "ann", .by_operator = below(st, 3) == 0}});
        else
            attempt_event(
                st, (struct event){.type = EV_CANCEL,
                        .cancel = {.job = job, .by = "ann", .tasks = below(st, 3) ? NULL : &some}});
        break;
    case 1:
    case 2:
        attempt_event(st, (struct event){.type = EV_REQUEUE, .requeue = {job, "ann"}});
        break;
    case 3:
        attempt_event(st, (struct event){.type = EV_DRAIN, .drain.node = node});
        break;
    case 4:
        attempt_event(st, (struct event){.type = EV_UNDRAIN, .undrain.node = node});
        break;
    default:
        attempt_event(st, (struct event){.type = EV_NODE_DELETE, .node_delete.node = node});
    }
}

static void provider(struct storm *st)
{
    int64_t i = any_id(st, (int64_t)st->s.n_instances + 4);
    struct event ev = {0};
    switch (below(st, 6)) {
    case 0:
    case 1:
    case 2:
        ev = (struct event){.type = EV_LAUNCHED, .launched.instance = i};
        snprintf(ev.launched.provider_id, sizeof ev.launched.provider_id, "i-%" PRId64, i);
        break;
    case 3:
        ev = (struct event){
            .type = EV_LAUNCH_REFUSED, .refused = {i, below(st, 4) > 0, "no capacity"}};
        break;
    case 4:
        ev = (struct event){
            .type = EV_INSTANCE_GONE, .gone = {i, below(st, 2) == 0, WALL_NONE, "terminated"}};
        if (below(st, 2) == 0) /* the provider's clock differs */
            ev.gone.ended_at.ms = st->l.now.wall.ms - below(st, 7200000) + below(st, 60000);
        break;
    default:
        if (below(st, 4) == 0) /* 11 is refused */
            ev = (struct event){
                .type = EV_SCORE, .score = {"burst", "z1", "m5", (int32_t)below(st, 12)}};
        else
            ev = (struct event){.type = EV_PRICE,
                .price = {"r1", "z1", "m5", MARKET_SPOT, 1000 + below(st, 3000000)}};
    }
    attempt_event(st, ev);
}

static void nodes(struct storm *st)
{
    int64_t node = any_id(st, (int64_t)st->s.n_nodes + 2);
    if (below(st, 4) == 0)
        attempt_event(st, (struct event){.type = EV_NOTICE,
                              .notice = {node, (enum notice_type)below(st, 5),
                                  {below(st, 2) ? st->l.now.wall.ms + 120000 : TIME_NONE_MS}}});
    else if (below(st, 2))
        attempt_event(st, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = node});
    else
        lab_heartbeats(&st->l);
}

static void decide(struct storm *st)
{
    struct event ev;
    int n = 0;
    for (; lab_decision(&st->l, &ev); n++) {
        if (n == DECISIONS_MAX)
            fail_msg("the planner does not come to an end: %s again", event_type_names[ev.type]);
        lab_apply(&st->l, ev);
        if (ev.type == EV_CLEAN && below(st, 4))
            lab_apply(&st->l, (struct event){.type = EV_CLEANED,
                                  .cleaned = {.job = ev.clean.job,
                                      .end = below(st, 4) == 0 ? CLEAN_FAILED : CLEAN_DONE,
                                      .kept_bytes = below(st, 2) * below(st, 1 << 22),
                                      .text = "busy"}});
    }
    lab_check_wake(&st->l);
}

static void store(struct storm *st)
{
    lab_take(&st->l);
    shelf_put(&st->s, &st->l.c);
    shelf_compare(&st->s, st->l.m);
    if (below(st, 6) == 0) {
        st->l.now.mono.ms = below(st, 1000000); /* another process has another start of time */
        model_destroy(st->l.m);
        planner_destroy(st->l.p);
        st->l.m = shelf_load(&st->s, st->l.now);
        st->l.p = planner_create();
        shelf_compare(&st->s, st->l.m);
    }
}

/* One storm in two has limits, one in four has quotas. */
static const struct queue_policy *order_of(uint64_t seed)
{
    static struct policy_user users[] = {
        {.name = "ann", .shares = 1, .limits = {.is_set = {true, true}, .max = {2, 1}}},
        {.name = "bob", .shares = 2}};
    static struct policy_team team = {.name = "red",
        .shares = 1,
        .users = users,
        .n_users = 2,
        .limits = {.is_set = {[LIMIT_UUSD_H] = true, [LIMIT_SUBMITTED] = true},
            .max = {[LIMIT_UUSD_H] = 2500000, [LIMIT_SUBMITTED] = 30}}};
    static struct policy_user ann = {.name = "ann", .shares = 1},
                              bob = {.name = "bob", .shares = 1};
    static struct policy_team teams[] = {
        {.name = "red", .shares = 1, .users = &ann, .n_users = 1, .quota_mcpu = 6000},
        {.name = "blue", .shares = 2, .users = &bob, .n_users = 1, .quota_mcpu = 4000}};
    static uint64_t both = 6, last = 4; /* bit sets of preempted classes */
    static struct policy_qos classes[] = {
        {.name = "high", .boost_ms = 3600000, .preempts = {&both, 3}},
        {.name = "middle", .preempts = {&last, 3}}, {.name = "low"}};
    static struct queue_policy o;
    o = queue_policy_defaults;
    o.gpu_mcpu = 1000;
    o.qos = classes;
    o.n_qos = seed % 3 ? sizeof classes / sizeof classes[0] : 0;
    o.teams = seed % 4 == 2 ? teams : &team;
    o.n_teams = seed % 4 == 2 ? 2 : 1;
    return seed % 4 ? &o : NULL;
}

/* In one storm of three. Their rest is often insufficient. */
static size_t budgets_of_storm(uint64_t seed, const struct budget_options **ret_budgets)
{
    static const struct window noon = {
        .name = "noon", .days = 0x7f, .from_min = 22 * 60, .to_min = 23 * 60, .zone = &zone_utc};
    static const struct budget_options budgets[] = {{.name = "ann",
                                                        .user = "ann",
                                                        .period = BUDGET_HOUR,
                                                        .cap_uusd = 300000,
                                                        .at_limit = BUDGET_PARK,
                                                        .alert_pct = {50, 100},
                                                        .n_alerts = 2,
                                                        .n_mails = 1},
        {.name = "all",
            .period = BUDGET_DAY,
            .zone = &zone_utc,
            .cap_uusd = 2000000,
            .at_limit = BUDGET_STOP_NEW,
            .alert_pct = {80},
            .n_alerts = 1},
        {.name = "burst",
            .pool = "burst",
            .job = "train",
            .period = BUDGET_WINDOW,
            .window = &noon,
            .cap_uusd = 500000,
            .at_limit = BUDGET_PARK},
        {.name = "told",
            .team = "red",
            .period = BUDGET_MONTH,
            .zone = &zone_utc,
            .cap_uusd = 400000,
            .alert_pct = {50, 80, 100},
            .n_alerts = 3}};
    *ret_budgets = budgets;
    return seed % 3 == 1 ? sizeof budgets / sizeof budgets[0] : 0;
}

static void one_storm(uint64_t seed)
{
    static void (*const winds[])(struct storm *) = {submit, submit, update, update, join, join,
        agent, agent, agent, agent, user, provider, provider, nodes, facts, condition, pool};
    struct storm st = {0};
    prng_init(&st.r, seed);
    st.s.policy = order_of(seed);
    st.s.n_budget_options = budgets_of_storm(seed, &st.s.budget_options);
    /* one micro-dollar per second and MiB */
    st.s.store_uusd_gib_month = seed % 2 ? 3000000000LL : 0;
    lab_init_budgets(
        &st.l, st.s.policy, st.s.budget_options, st.s.n_budget_options, st.s.store_uusd_gib_month);
    lab_elastic(&st.l, "burst", 3, "m5", 4);
    lab_offer(&st.l, "burst", "big", MARKET_SPOT, 0, (struct resources){8, 1, 64000}, 1500000);
    /* no budgets in its way, and a rack without power for all of its machines */
    if (seed % 3 == 0)
        lab_elastic(&st.l, "racked", 4, "m5", 4);
    struct pool_row p = model_pool(st.l.m, "burst")->row;
    p.idle_timeout_ms = 1000 * (1 + below(&st, 60));
    p.cooldown_ms = 1000 * below(&st, 120);
    lab_apply(&st.l, (struct event){.type = EV_POOL, .pool = &p});
    for (int turn = 0; turn < TURNS; turn++) {
        for (int64_t k = below(&st, 8); k >= 0; k--)
            winds[below(&st, sizeof winds / sizeof winds[0])](&st);
        decide(&st);
        store(&st);
        lab_wait(&st.l, below(&st, 4) ? below(&st, 5000) : below(&st, 200000));
    }
    shelf_deinit(&st.s);
    lab_deinit(&st.l);
}

/* ---- racks that are short of power ---- */

static void submit_small(struct storm *st)
{
    struct job_row r = lab_job((int32_t)(1 + below(st, 1 + below(st, 6))));
    STR_COPY(r.user, below(st, 2) ? "ann" : "bob");
    r.spec.nodes = below(st, 2) ? 1 : (int32_t)(2 + below(st, 2));
    r.spec.nodes_min = r.spec.nodes > 2 && below(st, 2) ? 2 : r.spec.nodes;
    r.spec.time_limit_ms = below(st, 2) ? 0 : 1000 + below(st, 60000);
    /* it may exceed a limit */
    (void)lab_try_asking(&st->l, &r, below(st, 2) ? NULL : "constraint=ib");
}

/* One rank, or all of them. */
static void end(struct storm *st)
{
    const struct job *j = any_running(st);
    bool all = below(st, 3) > 0;
    const int64_t job = j ? j->row.id : CORE_ID_NONE;
    while ((j = model_job(st->l.m, job)) != NULL && job_attempt(j)) {
        const struct attempt *a = any_rank(st, j);
        attempt_event(st, (struct event){.type = EV_ATTEMPT_ENDED,
                              .ended = {.job = job,
                                  .attempt = j->row.attempts,
                                  .node = a->row.node,
                                  .end = below(st, 3) ? END_SUCCEEDED : END_EVICTED}});
        if (!all)
            break;
    }
}

static void drain(struct storm *st)
{
    const int64_t node = any_id(st, (int64_t)st->s.n_nodes + 2);
    attempt_event(st, below(st, 2) ? (struct event){.type = EV_DRAIN, .drain.node = node}
                                   : (struct event){.type = EV_UNDRAIN, .undrain.node = node});
}

/* Nodes of all sizes in two racks, with jobs that the power does not suffice for. */
static void one_short_of_power(uint64_t seed)
{
    static void (*const winds[])(struct storm *) = {
        submit_small, submit_small, submit_small, end, end, condition, drain};
    static const char *const names[] = {"host", "host-2", "host-3", "host-4", "power1", "power2"};
    struct storm st = {0};
    prng_init(&st.r, seed);
    st.s.policy = order_of(seed % 2 ? 2 : seed); /* most have quotas */
    lab_init_policy(&st.l, st.s.policy);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        const int32_t cpus = (int32_t)(1 + below(&st, 8));
        lab_join_with(&st.l, names[k], cpus, below(&st, 3) ? ",ib," : "", "");
    }
    for (int turn = 0; turn < TURNS / 2; turn++) {
        for (int64_t k = below(&st, 4); k >= 0; k--)
            winds[below(&st, sizeof winds / sizeof winds[0])](&st);
        decide(&st);
        store(&st);
        lab_wait(&st.l, below(&st, 5000));
        lab_heartbeats(&st.l);
    }
    shelf_deinit(&st.s);
    lab_deinit(&st.l);
}

static uint64_t current_seed; /* printed when a storm fails: BELAY_SEED=N repeats it */

static int print_seed(void **state)
{
    (void)state;
    if (current_seed > 0 && current_seed <= SEEDS)
        print_message("it failed in storm BELAY_SEED=%" PRIu64 "\n", current_seed);
    return 0;
}

static void no_order_of_events_breaks_a_promise(void **state)
{
    (void)state;
    const char *one = getenv("BELAY_SEED");
    if (one) {
        one_storm(strtoull(one, NULL, 10));
        return;
    }
    for (current_seed = 1; current_seed <= SEEDS; current_seed++)
        one_storm(current_seed);
}

static void no_order_of_events_breaks_one_where_power_is_short(void **state)
{
    (void)state;
    const char *one = getenv("BELAY_SEED");
    if (one) {
        one_short_of_power(strtoull(one, NULL, 10));
        return;
    }
    for (current_seed = 1; current_seed <= SEEDS; current_seed++)
        one_short_of_power(current_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(no_order_of_events_breaks_a_promise, print_seed),
        cmocka_unit_test_teardown(no_order_of_events_breaks_one_where_power_is_short, print_seed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
