/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the processor time that decisions about jobs with --finish-by take in belayd: 1,000 jobs
 * in the whole model, with 49 spot offers and on-demand. Half of the zones have spot, enough for
 * half of the jobs; the other jobs wait or are on on-demand. One hour of virtual time passes, in
 * which each job is decided on as often as in belayd.
 *
 *   decision    from the call of the planner until its event is applied: the state of the job and
 *               of all offers is collected, the offer is chosen, the baseline advances and, if the
 *               procurement changed, the job moves in the queue
 *   table       one slice of the computation of a table, which all jobs share
 */
#include "bench/core_alone.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "scheduler/core/plan.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)
#define JOBS 1000
#define ZONES 49
#define CAPACITY 20 /* machines in each zone that has spot */
#define MINUTES 60
#define DECISIONS_MAX (JOBS * MINUTES * 4)
#define SPOT_UUSD_H 300000
#define ON_DEMAND_UUSD_H 1000000

static const struct resources machine = {.cpus = 32, .memory_mib = 32 * 4096};

struct bench {
    struct model *m;
    struct planner *p;
    struct stamp now;
    /* free machines by offer id: 1 is the first zone, ZONES + 1 is on-demand */
    int64_t capacity[ZONES + 2];
    double *took_us;
    size_t n;
    double tables_us, table_worst_us;
    size_t n_tables;
};

static int64_t apply(struct bench *b, struct event ev)
{
    return core_must_apply(b->m, b->now, ev);
}

/* The launch succeeds and the machine joins at once, if the offer has capacity. */
static void answer(struct bench *b, int64_t instance, int64_t offer)
{
    struct node_row node = {.total = machine};
    struct event up = {.type = EV_LAUNCHED, .launched.instance = instance};
    if (b->capacity[offer] == 0) {
        apply(b,
            (struct event){.type = EV_LAUNCH_REFUSED, .refused = {instance, true, "no capacity"}});
        return;
    }
    b->capacity[offer]--;
    snprintf(up.launched.provider_id, sizeof up.launched.provider_id, "i-%" PRId64, instance);
    apply(b, up);
    snprintf(node.name, sizeof node.name, "n%" PRId64, instance);
    snprintf(node.key_hash, sizeof node.key_hash, "k%" PRId64, instance);
    apply(b, (struct event){.type = EV_JOIN, .join = {&node, instance}});
}

static void end_machine(struct bench *b, int64_t instance)
{
    b->capacity[model_instance(b->m, instance)->offer->row.id]++;
    apply(b, (struct event){
                 .type = EV_INSTANCE_GONE, .gone = {.instance = instance, .ended_at = WALL_NONE}});
}

static void start(struct bench *b, int64_t job)
{
    const struct attempt *a = job_attempt(model_job(b->m, job));
    apply(b, (struct event){.type = EV_ATTEMPT_STARTED,
                 .started = {.job = job,
                     .attempt = a->row.attempt,
                     .node = a->row.node,
                     .restored_progress = PROGRESS_NONE}});
}

/* Ends the attempts that were asked to stop, as if they had saved. */
static void stop_those_that_stop(struct bench *b)
{
    struct changes c = {0};
    model_take_changes(b->m, &c);
    for (size_t i = 0; i < c.n_attempts; i++)
        if (c.attempts[i].state == ATTEMPT_STOPPING)
            apply(b, (struct event){.type = EV_ATTEMPT_ENDED,
                         .ended = {c.attempts[i].job, c.attempts[i].attempt, c.attempts[i].node,
                             c.attempts[i].stop_reason, 0, ""}});
    model_return_changes(b->m, &c);
}

static void follow(struct bench *b, const struct event *ev, int64_t id)
{
    if (ev->type == EV_LAUNCH)
        answer(b, id, ev->launch.offer);
    else if (ev->type == EV_END_INSTANCE)
        end_machine(b, ev->end_instance.instance);
    else if (ev->type == EV_PLACE)
        start(b, ev->place.job);
}

static void count(struct bench *b, enum event_type type, double us)
{
    if (type == EV_PROCUREMENT && b->n < DECISIONS_MAX)
        b->took_us[b->n++] = us;
    if (type != EV_TABLE)
        return;
    b->n_tables++;
    b->tables_us += us;
    b->table_worst_us = us > b->table_worst_us ? us : b->table_worst_us;
}

static void decide(struct bench *b)
{
    struct event ev;
    for (;;) {
        double began = cpu_time_us();
        if (!plan_next(b->p, b->m, b->now, &ev))
            return;
        int64_t id = apply(b, ev);
        count(b, ev.type, cpu_time_us() - began);
        follow(b, &ev, id);
    }
}

static void set_up(struct bench *b)
{
    struct procurement_options procurement = procurement_usual;
    struct model_options options = {
        .cluster_uid = "0123456789abcdef", .lease_ms = 1000 * HOUR_MS, .procurement = &procurement};
    struct pool_row pool = {.name = "burst",
        .elastic = true,
        .provider = "aws",
        .region = "r1",
        .max_nodes = JOBS,
        .idle_timeout_ms = 2 * MINUTE_MS,
        .cooldown_ms = 2 * MINUTE_MS,
        .boot_timeout_ms = 10 * MINUTE_MS,
        .refusal_backoff_ms = MINUTE_MS};
    b->m = model_create(&options);
    b->p = planner_create();
    b->now = (struct stamp){.wall = {1700000000000}, .mono = {1}};
    apply(b, (struct event){.type = EV_POOL, .pool = &pool});
    for (int i = 0; i <= ZONES; i++) {
        bool is_sure = i == ZONES;
        struct offer_row o = {.pool = "burst",
            .type = "m5.8xlarge",
            .market = is_sure ? MARKET_ON_DEMAND : MARKET_SPOT,
            .rank = is_sure,
            .total = machine,
            .price_uusd_h = is_sure ? ON_DEMAND_UUSD_H : SPOT_UUSD_H + 1000 * i,
            .on_demand_uusd_h = ON_DEMAND_UUSD_H};
        snprintf(o.zone, sizeof o.zone, "z%d", i);
        int64_t id = apply(b, (struct event){.type = EV_OFFER, .offer = &o});
        b->capacity[id] = is_sure ? JOBS : i % 2 * CAPACITY;
    }
}

static void submit(struct bench *b, struct prng *prng)
{
    struct job_row r = {.spec.name = "job",
        .user = "ann",
        .spec.nodes = 1,
        .spec.need = {.cpus = machine.cpus, .memory_mib = 1024},
        .spec.method = CKPT_COOP,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 1};
    struct job_texts texts = {.script = "#!/bin/sh\n",
        .args_json = "[]",
        .env_json = "{}",
        .cwd = "/",
        .labels_json = "{}"};
    r.spec.begin_at = WALL_NONE;
    r.spec.work_ms = prng_range(prng, 3 * HOUR_MS, 48 * HOUR_MS);
    r.spec.finish_ms =
        b->now.wall.ms + 2 * r.spec.work_ms + prng_range(prng, 2 * HOUR_MS, 32 * HOUR_MS);
    apply(b, (struct event){.type = EV_SUBMIT, .submit = {.job = &r, .texts = &texts}});
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_figures(struct bench *b)
{
    size_t paces[PROCURE_ON_DEMAND + 1] = {0}, running = 0;
    double sum = 0;
    for (int64_t id = 1; id <= JOBS; id++) {
        const struct job *j = model_job(b->m, id);
        paces[j->row.procurement]++;
        running += job_attempt(j) != NULL;
    }
    for (size_t i = 0; i < b->n; i++)
        sum += b->took_us[i];
    qsort(b->took_us, b->n, sizeof *b->took_us, by_size);
    printf("%d jobs with --finish-by, %d offers: %zu run at the end; %zu wait for better, %zu are "
           "for spot, %zu on-demand\n",
        JOBS, ZONES + 1, running, paces[PROCURE_WAIT], paces[PROCURE_SPOT],
        paces[PROCURE_ON_DEMAND]);
    printf("a decision, all the way      %8.1f us mean, %.1f median, %.1f of 99 in 100, %.1f "
           "worst; %zu in an hour\n",
        sum / (double)b->n, b->took_us[b->n / 2], b->took_us[b->n * 99 / 100], b->took_us[b->n - 1],
        b->n);
    printf("a slice of a table           %8.1f us mean, %.1f worst; %zu, %.0f ms together\n",
        b->tables_us / (double)b->n_tables, b->table_worst_us, b->n_tables, b->tables_us / 1000);
}

int main(void)
{
    struct bench b = {.took_us = mem_array(DECISIONS_MAX, sizeof(double))};
    struct prng prng;
    prng_init(&prng, 1);
    set_up(&b);
    for (int i = 0; i < JOBS; i++)
        submit(&b, &prng);
    for (int64_t s = 0; s < MINUTES * 60; s++) {
        decide(&b);
        stop_those_that_stop(&b);
        b.now.wall.ms += 1000;
        b.now.mono.ms += 1000;
    }
    print_figures(&b);
    planner_destroy(b.p);
    model_destroy(b.m);
    free(b.took_us);
    return 0;
}
