/* SPDX-License-Identifier: Apache-2.0
 *
 * When jobs will start: what is foretold, held against what comes about.
 */
#include "tests/core/lab.h"

#include "base/prng.h"
#include "base/str.h"
#include "scheduler/core/forecast.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)
#define USERS 5
#define JOBS_MAX 2000
#define CPUS 8

/* A cluster in virtual time, without the checks of the lab, which look at everything after every event. */
struct town {
    struct model *m;
    struct planner *p;
    struct stamp now;
    struct prng prng;
    int64_t runs_ms[JOBS_MAX]; /* by the number of a job: how long it will run */
    int64_t started_ms[JOBS_MAX];
    int64_t n_jobs;
};

static int64_t apply(struct town *t, struct event ev)
{
    struct outcome out = {0};
    struct err e;
    ev.now = t->now;
    if (core_apply(t->m, &ev, &out, &e) != 0)
        fail_msg("%s: %s", event_type_names[ev.type], e.text);
    return out.id;
}

static void decide(struct town *t)
{
    struct changes c = {0};
    struct event ev;
    while (plan_next(t->p, t->m, t->now, &ev)) {
        apply(t, ev);
        if (ev.type == EV_PLACE)
            t->started_ms[ev.place.job] = t->now.wall.ms;
    }
    model_take_changes(t->m, &c);
    changes_deinit(&c);
}

static const struct attempt *next_end(const struct town *t, int64_t *ret_at)
{
    const struct attempt *first = NULL;
    LIST_FOREACH (model_nodes(t->m), ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, in_all);
        LIST_FOREACH (&n->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            int64_t at = a->row.assigned_at.ms + t->runs_ms[a->row.job];
            if (!first || at < *ret_at) {
                first = a;
                *ret_at = at;
            }
        }
    }
    return first;
}

static void go_to(struct town *t, int64_t at_ms)
{
    if (at_ms <= t->now.wall.ms)
        return;
    t->now.mono.ms += at_ms - t->now.wall.ms;
    t->now.wall.ms = at_ms;
}

/* All that ends first. False: nothing runs. */
static bool one_end(struct town *t)
{
    int64_t at;
    const struct attempt *a = next_end(t, &at);
    if (!a)
        return false;
    const struct job *j = a->job;
    go_to(t, at);
    for (struct link *l = list_first(&j->ranks), *next; l; l = next) {
        const struct attempt *r = LIST_ENTRY(l, struct attempt, in_job);
        next = list_next(&j->ranks, l);
        bool whole = t->runs_ms[r->row.job] >= j->row.time_limit_ms && j->row.time_limit_ms > 0;
        apply(t, (struct event){.type = EV_ATTEMPT_ENDED, .ended = {.job = r->row.job, .attempt = r->row.attempt, .node = r->row.node,
                                    .end = whole ? END_TIMEOUT : END_SUCCEEDED}});
    }
    decide(t);
    return true;
}

static const struct order_options first_come = {.half_life_ms = 7 * 24 * HOUR_MS, .age_max_ms = 60LL * 24 * HOUR_MS, .reserve = 8};

static void town_init(struct town *t, uint64_t seed, int nodes, const struct order_options *order)
{
    struct model_options o = {.cluster_uid = "0123456789abcdef", .lease_ms = 100000 * HOUR_MS, .order = order};
    struct pool_row pool = {.name = "own"};
    *t = (struct town){.m = model_create(&o), .p = planner_create(), .now = {.wall = {1700000000000}, .mono = {1}}};
    prng_init(&t->prng, seed);
    apply(t, (struct event){.type = EV_POOL, .pool = &pool});
    for (int k = 0; k < nodes; k++) {
        struct node_row n = {.pool = "own", .total = {CPUS, 0, 65536}};
        snprintf(n.name, sizeof n.name, "n%d", k);
        snprintf(n.key_hash, sizeof n.key_hash, "k%d", k);
        apply(t, (struct event){.type = EV_JOIN, .join = {.node = &n}});
    }
}

static void town_deinit(struct town *t)
{
    planner_destroy(t->p);
    model_destroy(t->m);
}

/* Each user has habits: what part of their limits their jobs take. One job in ten runs into it. */
static int64_t submit(struct town *t)
{
    static const int32_t cpus[] = {1, 1, 2, 4, CPUS};
    static const int64_t limits[] = {10, 20, 30, 60, 120, 240};
    struct job_row r = {.name = "job", .nodes = 1, .ckpt_keep = 1, .retries.n[RETRY_TIMEOUT] = RETRIES_NEVER};
    int user = (int)prng_below(&t->prng, USERS);
    double from = 0.15 * user, part = from + 0.3 * prng_unit(&t->prng);
    r.need.cpus = cpus[prng_below(&t->prng, sizeof cpus / sizeof *cpus)];
    r.need.memory_mib = 100;
    if (r.need.cpus == CPUS && prng_below(&t->prng, 3) == 0)
        r.nodes = 2;
    r.time_limit_ms = MINUTE_MS * limits[prng_below(&t->prng, sizeof limits / sizeof *limits)];
    snprintf(r.user, sizeof r.user, "user%d", user);
    int64_t job = apply(t, (struct event){.type = EV_SUBMIT, .submit.job = &r});
    assert_true(job < JOBS_MAX);
    t->runs_ms[job] = prng_chance(&t->prng, 0.1) ? r.time_limit_ms : (int64_t)(part * (double)r.time_limit_ms) + 1;
    t->n_jobs = job;
    return job;
}

struct score {
    int64_t n, in_time, before_median, unknown;
    double error, wait; /* sums: of the median against what came about; of what came about */
};

static void one_town(uint64_t seed, const struct order_options *order, struct score *s)
{
    static struct forecast told[JOBS_MAX];
    struct town t;
    town_init(&t, seed, 6, order);
    for (int k = 0; k < 250; k++) { /* what is learned from */
        submit(&t);
        decide(&t);
        if (k >= 50)
            one_end(&t);
    }
    for (int k = 0; k < 60; k++)
        submit(&t);
    decide(&t);
    int64_t now_ms = t.now.wall.ms;
    for (int64_t job = 1; job <= t.n_jobs; job++) {
        const struct job *j = model_job(t.m, job);
        told[job] = (struct forecast){0};
        if (j && !job_attempt(j))
            assert_true(core_forecast(t.m, t.now, job, &told[job]));
    }
    while (one_end(&t))
        ;
    for (int64_t job = 1; job <= t.n_jobs; job++) {
        const struct forecast *f = &told[job];
        if (f->median.ms == 0)
            continue;
        assert_true(t.started_ms[job] > 0);
        s->n++;
        if (!wall_is_set(f->median) || !wall_is_set(f->latest)) {
            s->unknown++;
            continue;
        }
        s->in_time += t.started_ms[job] <= f->latest.ms;
        s->before_median += t.started_ms[job] <= f->median.ms;
        s->error += (double)(f->median.ms - t.started_ms[job]);
        s->wait += (double)(t.started_ms[job] - now_ms);
    }
    town_deinit(&t);
}

static struct score towns(const struct order_options *order, int n)
{
    struct score s = {0};
    for (int k = 0; k < n; k++)
        one_town(1000 + (uint64_t)k, order, &s);
    print_message("%" PRId64 " jobs: %.1f %% in time, %.1f %% before the median, which is off by %+.1f %% of the wait; %" PRId64 " unknown\n", s.n,
        100.0 * (double)s.in_time / (double)s.n, 100.0 * (double)s.before_median / (double)s.n, 100 * s.error / s.wait, s.unknown);
    return s;
}

static void starts_come_as_foretold(void **state)
{
    (void)state;
    struct score s = towns(&first_come, 12);
    assert_true(s.n > 500);
    assert_int_equal(s.unknown, 0);
    assert_true(s.in_time >= s.n * 90 / 100);
    assert_true(s.before_median >= s.n * 40 / 100 && s.before_median <= s.n * 60 / 100);
    assert_true(s.error < 0.1 * s.wait && s.error > -0.1 * s.wait);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_come_as_foretold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
