/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulates a week of ten teams on forty machines, decided by belay's core in virtual time. Each
 * team always has pending jobs: mostly small ones, some that need a whole machine, some that need
 * several. Prints each team's share of the used capacity, the utilisation, and waiting times; with
 * the default configuration, without time limits, and without reservations.
 */
#include "bench/core_alone.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/plan.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)
#define WEEK_MS (7 * 24 * HOUR_MS)
#define RAMP_MS (12 * HOUR_MS) /* waits and use are counted from here on */
#define STEP_MS (30 * 1000)
#define MACHINES 40
#define CPUS 32
#define TEAMS 10
#define LARGEST 20       /* machines */
#define LARGEST_TEAMS 3  /* the first teams, which also submit jobs of that size ... */
#define LARGEST_EVERY 24 /* ... once in this many hours on average */

static const struct policy_team teams[TEAMS] = {{.name = "t0", .shares = 20},
    {.name = "t1", .shares = 16}, {.name = "t2", .shares = 14}, {.name = "t3", .shares = 12},
    {.name = "t4", .shares = 10}, {.name = "t5", .shares = 8}, {.name = "t6", .shares = 7},
    {.name = "t7", .shares = 6}, {.name = "t8", .shares = 4}, {.name = "t9", .shares = 3}};

enum size { SMALL, WHOLE, GANG, HUGE, KINDS };
/* number of pending jobs that each team always has */
static const int64_t backlog[KINDS] = {20, 3, 1, 0};

struct planned {
    enum size kind;
    int team;
    int64_t runs_ms;
    struct wall submitted, ends; /* ends: set when it starts */
};

struct week {
    struct model *m;
    struct planner *p;
    struct stamp now;
    struct prng prng;
    struct planned *jobs; /* index: id */
    size_t n_jobs;
    bool has_time_limits;
    int64_t n_of[TEAMS][KINDS], used_ms[TEAMS]; /* n_of: pending; used_ms: CPUs times ms */
    int64_t busy_ms, waited_ms[KINDS], longest_ms[KINDS], n_started[KINDS];
};

static int64_t apply(struct week *w, struct event ev)
{
    return core_must_apply(w->m, w->now, ev);
}

static int64_t between(struct week *w, int64_t from, int64_t to)
{
    return from + (int64_t)prng_below(&w->prng, (uint64_t)(to - from + 1));
}

static void submit(struct week *w, int team, enum size kind)
{
    struct planned j = {.kind = kind, .team = team, .submitted = w->now.wall, .ends = WALL_NONE};
    struct job_row r = {.spec.name = "job",
        .spec.nodes = 1,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 1,
        .spec.need = {.memory_mib = 1024}};
    switch (j.kind) {
    case SMALL:
        r.spec.need.cpus = (int32_t)between(w, 1, 8);
        j.runs_ms = between(w, 3, 60) * MINUTE_MS;
        break;
    case WHOLE:
        r.spec.need.cpus = (int32_t)between(w, 16, CPUS);
        j.runs_ms = between(w, 30, 240) * MINUTE_MS;
        break;
    case GANG:
        r.spec.need.cpus = CPUS;
        r.spec.nodes = (int32_t)between(w, 2, 8);
        j.runs_ms = between(w, 30, 240) * MINUTE_MS;
        break;
    case HUGE:
    case KINDS:
        r.spec.need.cpus = CPUS;
        r.spec.nodes = LARGEST;
        j.runs_ms = between(w, 60, 180) * MINUTE_MS;
        break;
    }
    if (w->has_time_limits)
        r.spec.time_limit_ms = j.runs_ms * between(w, 110, 300) / 100;
    STR_COPY(r.user, teams[team].name);
    STR_COPY(r.spec.team, teams[team].name);
    int64_t id = apply(w, (struct event){.type = EV_SUBMIT, .submit.job = &r});
    for (; (int64_t)w->n_jobs <= id;)
        (void)GROW(w->jobs, w->n_jobs);
    w->jobs[id] = j;
    w->n_of[team][kind]++;
}

static void started(struct week *w, int64_t id)
{
    struct planned *j = &w->jobs[id];
    int64_t waited_ms = w->now.wall.ms - j->submitted.ms;
    j->ends.ms = w->now.wall.ms + j->runs_ms;
    w->n_of[j->team][j->kind]--;
    if (w->now.mono.ms < RAMP_MS)
        return;
    w->n_started[j->kind]++;
    w->waited_ms[j->kind] += waited_ms;
    if (waited_ms > w->longest_ms[j->kind])
        w->longest_ms[j->kind] = waited_ms;
}

static void decide(struct week *w)
{
    struct event ev;
    while (plan_next(w->p, w->m, w->now, &ev)) {
        int64_t job = ev.type == EV_PLACE ? ev.place.job : CORE_ID_NONE;
        apply(w, ev);
        if (job != CORE_ID_NONE)
            started(w, job);
    }
    struct changes c = {0};
    model_take_changes(w->m, &c);
    changes_deinit(&c);
}

static void run_on(struct week *w)
{
    LIST_FOREACH (model_nodes(w->m), ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, in_all);
        LIST_FOREACH (&n->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            const struct planned *j = &w->jobs[a->row.job];
            int64_t cpu_ms = a->job->row.spec.need.cpus * STEP_MS;
            w->used_ms[j->team] += cpu_ms;
            w->busy_ms += w->now.mono.ms >= RAMP_MS ? cpu_ms : 0;
            if (j->ends.ms <= w->now.wall.ms)
                apply(w, (struct event){.type = EV_ATTEMPT_ENDED,
                             .ended = {.job = a->row.job,
                                 .attempt = a->row.attempt,
                                 .node = a->row.node,
                                 .end = END_SUCCEEDED}});
        }
    }
}

static void set_up(struct week *w, struct queue_policy *o)
{
    struct model_options options = {
        .cluster_uid = "0123456789abcdef", .lease_ms = 100 * WEEK_MS, .policy = o};
    struct pool_row pool = {.name = "own"};
    w->m = model_create(&options);
    w->p = planner_create();
    w->now = (struct stamp){.wall = {1700000000000}, .mono = {1}};
    prng_init(&w->prng, 1);
    apply(w, (struct event){.type = EV_POOL, .pool = &pool});
    for (int k = 0; k < MACHINES; k++) {
        struct node_row n = {.pool = "own", .total = {CPUS, 0, CPUS * 4096}};
        snprintf(n.name, sizeof n.name, "n%d", k);
        snprintf(n.key_hash, sizeof n.key_hash, "k%d", k);
        apply(w, (struct event){.type = EV_JOIN, .join = {.node = &n}});
    }
}

static double hours(int64_t ms)
{
    return (double)ms / HOUR_MS;
}

/* The team's share of all used capacity, in percent. */
static double part_of(const struct week *w, int team)
{
    double all = 0;
    for (int t = 0; t < TEAMS; t++)
        all += (double)w->used_ms[t];
    return 100 * (double)w->used_ms[team] / all;
}

static double off(const struct week *w, int team)
{
    return part_of(w, team) / teams[team].shares * 100 - 100; /* the shares add up to 100 */
}

static void print_teams(const struct week *w)
{
    puts("team   share    used     off");
    for (int t = 0; t < TEAMS; t++)
        printf("%-4s  %3d %%  %6.2f %%  %+4.1f %%\n", teams[t].name, teams[t].shares, part_of(w, t),
            off(w, t));
    printf("\n%-18s %6s %7s  %15s %15s %15s %15s\n%-18s %6s %7s  %15s %15s %15s %15s\n", "", "", "",
        "up to 8 cpus", "16 to 32 cpus", "2 to 8 machines", "20 machines", "", "off", "in use",
        "mean, longest", "mean, longest", "mean, longest", "mean, longest");
}

static void print_mode(const struct week *w, const char *name)
{
    double worst = 0;
    for (int t = 0; t < TEAMS; t++)
        worst = off(w, t) > worst ? off(w, t) : -off(w, t) > worst ? -off(w, t) : worst;
    printf("%-18s %4.1f %% %5.1f %% ", name, worst,
        100 * (double)w->busy_ms / ((double)(WEEK_MS - RAMP_MS) * MACHINES * CPUS));
    for (int k = 0; k < KINDS; k++) {
        if (w->n_started[k] > 0)
            printf(" %5.1f h", hours(w->waited_ms[k] / w->n_started[k]));
        else
            printf(" %7s", "none");
        printf(" %5.1f h", hours(w->longest_ms[k]));
    }
    putchar('\n');
}

static void keep_waiting(struct week *w, int team)
{
    for (enum size k = SMALL; k < KINDS; k++)
        while (w->n_of[team][k] < backlog[k])
            submit(w, team, k);
    if (team < LARGEST_TEAMS && between(w, 1, LARGEST_EVERY * HOUR_MS / STEP_MS) == 1)
        submit(w, team, HUGE);
}

/* Jobs that are still pending have waited at least this long. */
static void count_waiting(struct week *w)
{
    for (size_t id = 1; id < w->n_jobs; id++) {
        const struct planned *j = &w->jobs[id];
        int64_t waited_ms = w->now.wall.ms - j->submitted.ms;
        if (!wall_is_set(j->ends) && waited_ms > w->longest_ms[j->kind])
            w->longest_ms[j->kind] = waited_ms;
    }
}

static void run(const char *name, bool has_time_limits, int32_t reserve, bool with_teams)
{
    struct queue_policy o = queue_policy_defaults;
    struct week w = {.has_time_limits = has_time_limits};
    struct policy_team own[TEAMS];
    memcpy(own, teams, sizeof own);
    o.teams = own;
    o.n_teams = TEAMS;
    o.reserve = reserve;
    set_up(&w, &o);
    while (w.now.mono.ms < WEEK_MS) {
        run_on(&w);
        for (int t = 0; t < TEAMS; t++)
            keep_waiting(&w, t);
        decide(&w);
        w.now.wall.ms += STEP_MS;
        w.now.mono.ms += STEP_MS;
    }
    count_waiting(&w);
    if (with_teams)
        print_teams(&w);
    print_mode(&w, name);
    planner_destroy(w.p);
    model_destroy(w.m);
    free(w.jobs);
}

int main(void)
{
    run("as it is", true, queue_policy_defaults.reserve, true);
    run("no time limits", false, queue_policy_defaults.reserve, false);
    run("no reservations", true, 0, false);
    return 0;
}
