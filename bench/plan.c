/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the processor time of the core in a tick, without the commit: applying facts, then
 * calling the planner and applying its decisions until there are none. All nodes have 32 CPUs and
 * are full. Jobs of 200 users with 12 different demands are queued, all with time limits; one in
 * fifty needs several nodes.
 *
 *   one end     one job ends, and a job that fits is placed: the usual tick
 *   1000 ends   in one tick, as after a network partition or a short array; median of nine, with
 *               the same queue length before each
 *   worst       the slowest of them: the first, which allocates memory that the later ones reuse
 *   reads       the time of an end in dependent memory reads, spread over as much memory as the
 *               model has: comparable between machines, and between times on one machine
 *   memory      of the model, for one more queued job
 *   why         everything that `belay why` prints about a job: reasons, jobs ahead, expected
 *               start, remedies. For jobs spread evenly over the queue: median and worst
 *   quotas      the same with eight teams whose quota is a tenth of the capacity each, and 20 to
 *               2,000 users: the number of users must not matter
 *   elastic     the same with a pool that has reached its maximum number of machines
 */
#include "bench/core_alone.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "scheduler/core/forecast/ahead.h"
#include "scheduler/core/forecast/remedies.h"
#include "scheduler/core/forecast/forecast.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/plan.h"
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOUR_MS 3600000LL
#define CPUS 32
#define USERS 200
#define TEAMS 8
#define ENDS 1000
#define BURSTS 9
#define WHYS 31
#define LINE 64 /* bytes of a cache line */
#define READS 2000000
#define TICK_MS 10 /* of virtual time */
#define BAR 40     /* characters */

static const int32_t cpus[] = {1, 2, 4, 8, 16, CPUS};

struct bench {
    struct model *m;
    struct planner *p;
    struct stamp now;
    struct prng prng;
    int64_t nodes, queued;
    int users;
    bool has_quotas;
};

struct figures {
    int64_t nodes, queued;
    double median_us, worst_us, burst_ms, worst_burst_ms, reads, bytes, why_ms, why_worst_ms;
};

static int64_t apply(struct bench *b, struct event ev)
{
    return core_must_apply(b->m, b->now, ev);
}

static int atoi_of(const char *user)
{
    return (int)strtol(user + strlen("user"), NULL, 10);
}

static void submit(struct bench *b)
{
    struct job_row r = {
        .spec.name = "job", .spec.nodes = 1, .spec.ckpt_signal = SIGUSR1, .spec.ckpt_keep = 1};
    r.spec.need.cpus = cpus[prng_below(&b->prng, sizeof cpus / sizeof *cpus)];
    r.spec.need.memory_mib = 1024 * (1 + (int64_t)prng_below(&b->prng, 2));
    if (r.spec.need.cpus == CPUS && prng_below(&b->prng, 8) == 0)
        r.spec.nodes = 2 + (int32_t)prng_below(&b->prng, 7);
    r.spec.time_limit_ms = HOUR_MS * (1 + (int64_t)prng_below(&b->prng, 24));
    snprintf(r.user, sizeof r.user, "user%d", (int)prng_below(&b->prng, (uint64_t)b->users));
    if (b->has_quotas)
        snprintf(r.spec.team, sizeof r.spec.team, "team%d", atoi_of(r.user) % TEAMS);
    apply(b, (struct event){.type = EV_SUBMIT, .submit.job = &r});
    b->queued++;
}

static void decide(struct bench *b)
{
    struct changes c = {0};
    struct event ev;
    while (plan_next(b->p, b->m, b->now, &ev)) {
        apply(b, ev);
        b->queued -= ev.type == EV_PLACE;
    }
    model_take_changes(b->m, &c);
    model_return_changes(b->m, &c);
}

/* Ends one job on a random node, with all of its ranks. */
static void end_one(struct bench *b)
{
    const struct node *node =
        model_node(b->m, 1 + (int64_t)prng_below(&b->prng, (uint64_t)b->nodes));
    struct link *l = list_first(&node->attempts);
    if (!l)
        return;
    const struct job *j = LIST_ENTRY(l, struct attempt, on_node)->job;
    struct link *next;
    for (struct link *r = list_first(&j->ranks); r; r = next) {
        const struct attempt *a = LIST_ENTRY(r, struct attempt, in_job);
        next = list_next(&j->ranks, r);
        apply(b, (struct event){.type = EV_ATTEMPT_ENDED,
                     .ended = {.job = a->row.job,
                         .attempt = a->row.attempt,
                         .node = a->row.node,
                         .end = END_SUCCEEDED}});
    }
}

static double tick(struct bench *b, int ends)
{
    double began = cpu_time_us();
    b->now.wall.ms += TICK_MS;
    b->now.mono.ms += TICK_MS;
    for (int i = 0; i < ends; i++)
        end_one(b);
    decide(b);
    return cpu_time_us() - began;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Duration of one dependent read: follows a random cycle over all cache lines (Sattolo's
 * algorithm). */
static double dependent_read_us(struct bench *b, size_t bytes)
{
    size_t n = bytes / LINE, at = 0;
    struct {
        size_t next;
        char rest[LINE - sizeof(size_t)];
    } *lines = mem_array(n, LINE);
    for (size_t i = 0; i < n; i++)
        lines[i].next = i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t k = (size_t)prng_below(&b->prng, i), other = lines[k].next;
        lines[k].next = lines[i].next;
        lines[i].next = other;
    }
    double began = cpu_time_us();
    for (int i = 0; i < READS; i++)
        at = lines[at].next;
    double took = cpu_time_us() - began;
    if (at >= n)
        abort(); /* uses `at`, so that the loop is not optimised away */
    free(lines);
    return took / READS;
}

/* Resident memory, without free memory that malloc keeps, and without the space for a tick's
 * rows. */
static double memory_bytes(const struct bench *b)
{
    const struct changes *c = model_final_rows(b->m);
    long pages = 0;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        abort();
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) -
           (double)(c->cap.jobs * sizeof *c->jobs + c->cap.attempts * sizeof *c->attempts +
                    c->cap.nodes * sizeof *c->nodes + c->cap.history * sizeof *c->history +
                    c->cap.ledger * sizeof *c->ledger);
}

static double why(struct bench *b, int64_t job)
{
    struct reason reasons[EXPLAIN_REASONS_MAX];
    struct ahead ahead;
    struct forecast f;
    double began = cpu_time_us();
    bool queued = core_ahead(b->m, b->now, job, &ahead);
    core_explain_with(b->m, b->now, job, queued ? &ahead : NULL, reasons, EXPLAIN_REASONS_MAX);
    core_forecast(b->m, b->now, job, &f);
    core_remedies(b->m, b->now, job, reasons, REMEDIES_MAX);
    return (cpu_time_us() - began) / 1000;
}

/* Asks about WHYS pending jobs, evenly spread by number. */
static void ask_why(struct bench *b, struct figures *f)
{
    double took[WHYS];
    struct model_counts counts;
    model_counts(b->m, &counts);
    int64_t job = 1, last = counts.pending + counts.running + 1;
    for (int i = 0; i < WHYS; i++) {
        for (job = last * i / WHYS + 1; !model_job(b->m, job) || job_attempt(model_job(b->m, job));
             job++)
            ;
        took[i] = why(b, job);
    }
    qsort(took, WHYS, sizeof *took, by_size);
    f->why_ms = took[WHYS / 2];
    f->why_worst_ms = took[WHYS - 1];
}

static int64_t launch(struct bench *b, int64_t offer, int64_t k)
{
    struct event launched = {.type = EV_LAUNCHED};
    launched.launched.instance = apply(b, (struct event){.type = EV_LAUNCH, .launch.offer = offer});
    snprintf(launched.launched.provider_id, sizeof launched.launched.provider_id, "i-%" PRId64, k);
    apply(b, launched);
    return launched.launched.instance;
}

static void add_nodes(struct bench *b, int64_t nodes, bool is_elastic)
{
    struct pool_row pool = {.name = "own"};
    struct offer_row offer = {.pool = "own",
        .zone = "z1",
        .type = "m5",
        .market = MARKET_SPOT,
        .total = {CPUS, 0, CPUS * 4096},
        .price_uusd_h = 1000000,
        .on_demand_uusd_h = 3000000,
        .avoid_until = MONO_NONE};
    int64_t id = CORE_ID_NONE;
    if (is_elastic)
        pool = (struct pool_row){.name = "own",
            .elastic = true,
            .provider = "aws",
            .region = "r1",
            .max_nodes = (int32_t)nodes,
            .idle_timeout_ms = HOUR_MS,
            .boot_timeout_ms = HOUR_MS};
    apply(b, (struct event){.type = EV_POOL, .pool = &pool});
    if (is_elastic)
        id = apply(b, (struct event){.type = EV_OFFER, .offer = &offer});
    for (int64_t k = 0; k < nodes; k++) {
        struct node_row n = {.pool = "own", .total = {CPUS, 0, CPUS * 4096}};
        snprintf(n.name, sizeof n.name, "n%" PRId64, k);
        snprintf(n.key_hash, sizeof n.key_hash, "k%" PRId64, k);
        apply(
            b, (struct event){.type = EV_JOIN,
                   .join = {.node = &n, .instance = is_elastic ? launch(b, id, k) : CORE_ID_NONE}});
    }
}

static void set_up(
    struct bench *b, int64_t nodes, int users, const struct queue_policy *policy, bool is_elastic)
{
    struct model_options options = {
        .cluster_uid = "0123456789abcdef", .lease_ms = 1000 * HOUR_MS, .policy = policy};
    b->users = users;
    b->has_quotas = policy->n_teams > 0;
    b->m = model_create(&options);
    b->p = planner_create();
    b->now = (struct stamp){.wall = {1700000000000}, .mono = {1}};
    b->nodes = nodes;
    b->queued = 0;
    prng_init(&b->prng, 1);
    add_nodes(b, nodes, is_elastic);
}

/* Submits until `queued` jobs are pending. */
static void fill(struct bench *b, int64_t queued)
{
    while (b->queued < queued) {
        for (int64_t n = queued - b->queued; n > 0; n--)
            submit(b);
        decide(b);
    }
}

/* Returns the median of ticks with ENDS ends, in ms. */
static double bursts(struct bench *b, double *ret_worst_ms)
{
    double took[BURSTS];
    int64_t queued = b->queued;
    for (int i = 0; i < BURSTS; i++) {
        fill(b, queued);
        took[i] = tick(b, ENDS) / 1000;
    }
    qsort(took, BURSTS, sizeof *took, by_size);
    *ret_worst_ms = took[BURSTS - 1];
    return took[BURSTS / 2];
}

static struct figures run(int64_t nodes, int64_t queued)
{
    struct bench b;
    struct figures f = {.nodes = nodes, .queued = queued};
    double took[ENDS];
    set_up(&b, nodes, USERS, &queue_policy_defaults, false);
    fill(&b, 1000);
    double before = memory_bytes(&b);
    fill(&b, queued);
    f.bytes = (memory_bytes(&b) - before) / (double)(queued - 1000);
    for (int i = 0; i < ENDS; i++)
        took[i] = tick(&b, 1);
    qsort(took, ENDS, sizeof *took, by_size);
    f.median_us = took[ENDS / 2];
    f.worst_us = took[ENDS - 1];
    f.burst_ms = bursts(&b, &f.worst_burst_ms);
    f.reads = f.burst_ms * 1000 / ENDS / dependent_read_us(&b, (size_t)memory_bytes(&b));
    ask_why(&b, &f);
    planner_destroy(b.p);
    model_destroy(b.m);
    return f;
}

static void ends(struct bench *b)
{
    double took[ENDS];
    size_t kinds = queue_n_demand_classes(b->m), shapes = queue_n_shapes(b->m);
    int64_t queued = b->queued;
    for (int i = 0; i < ENDS; i++)
        took[i] = tick(b, 1);
    qsort(took, ENDS, sizeof *took, by_size);
    double worst_ms, burst_ms = bursts(b, &worst_ms);
    printf("%6" PRId64 "   %9" PRId64 "   %6d %8zu %6zu   %8.0f us %9.1f ms   %9.1f ms %7.1f ms\n",
        b->nodes, queued, b->users, shapes, kinds, took[ENDS / 2], took[ENDS - 1] / 1000, burst_ms,
        worst_ms);
    fflush(stdout);
    planner_destroy(b->p);
    model_destroy(b->m);
}

/* Teams have quotas. */
static void run_quotas(int64_t nodes, int64_t queued, int users)
{
    struct bench b;
    struct queue_policy policy = queue_policy_defaults;
    struct policy_team teams[TEAMS];
    for (int k = 0; k < TEAMS; k++) {
        teams[k] = (struct policy_team){.shares = 1, .quota_mcpu = nodes * CPUS * 1000 / 10};
        snprintf(teams[k].name, sizeof teams[k].name, "team%d", k);
    }
    policy.teams = teams;
    policy.n_teams = TEAMS;
    set_up(&b, nodes, users, &policy, false);
    fill(&b, queued);
    ends(&b);
}

static void run_elastic(int64_t nodes, int64_t queued)
{
    struct bench b;
    set_up(&b, nodes, USERS, &queue_policy_defaults, true);
    fill(&b, queued);
    ends(&b);
}

static void print(const struct figures *f)
{
    printf("%6" PRId64 "   %9" PRId64
           "   %8.0f us %9.1f ms   %9.1f ms %7.1f ms  %8.0f %8.0f bytes %7.1f ms %7.1f ms\n",
        f->nodes, f->queued, f->median_us, f->worst_us / 1000, f->burst_ms, f->worst_burst_ms,
        f->reads, f->bytes, f->why_ms, f->why_worst_ms);
    fflush(stdout);
}

/* Prints a bar for each queue length: the time of the tick with 1000 ends. */
static void plot(const struct figures *f, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = f[i].burst_ms > most ? f[i].burst_ms : most;
    puts("\na tick with 1000 ends");
    for (size_t i = 0; i < n; i++) {
        printf("%6" PRId64 " nodes %9" PRId64 " queued  ", f[i].nodes, f[i].queued);
        for (int k = (int)(f[i].burst_ms / most * BAR + 0.5); k > 0; k--)
            putchar('#');
        printf(" %.1f ms\n", f[i].burst_ms);
    }
}

int main(void)
{
    static const int64_t nodes[] = {1000, 10000}, queued[] = {10000, 100000, 1000000};
    struct figures all[6];
    size_t n = 0;
    puts(" nodes      queued       one end       worst     1000 ends     worst   in reads   memory "
         "of a job        why      worst");
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            all[n] = run(nodes[i], queued[k]);
            print(&all[n++]);
        }
    plot(all, n);
    puts("\n nodes      queued    users   shapes  kinds       one end       worst     1000 ends    "
         "  worst   with quotas of 8 teams");
    for (int users = 20; users <= 2000; users *= 10)
        run_quotas(1000, 100000, users);
    puts("\n nodes      queued    users   shapes  kinds       one end       worst     1000 ends    "
         "  worst   of a pool that has all that it may have");
    run_elastic(1000, 10000);
    run_elastic(1000, 100000);
    return 0;
}
