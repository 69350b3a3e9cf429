/* SPDX-License-Identifier: Apache-2.0
 *
 * Studies whose results are computed by hand. An hour costs $3.60, so a second costs a tenth of a
 * cent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/config/config.h"
#include "replay/outlook.h"
#include <stdlib.h>
#include <string.h>

#define SECOND_UUSD 1000

#define MACHINES                                                                                   \
    "pools:\n"                                                                                     \
    "  burst:\n"                                                                                   \
    "    provider: aws\n"                                                                          \
    "    region: us-east-1\n"                                                                      \
    "    zones: [us-east-1a]\n"                                                                    \
    "    types: [{type: m5.xlarge, cpus: 4, memory: 16G, usd_per_hour: 3.60, spot_usd_per_hour: "  \
    "1.80}]\n"                                                                                     \
    "    image: ami-1\n"                                                                           \
    "    paid_minimum: 0s\n"
#define POOL MACHINES "    egress_usd_per_gib: 0\n"

static const struct traces no_traces;

struct given {
    struct config config;
    struct joblog log;
    struct study_options o;
};

static struct given *given(const char *pools, const char *jobs)
{
    struct given *g = mem_alloc(sizeof *g);
    struct err e;
    if (config_parse("pools.yaml", pools, strlen(pools), NULL, &g->config, &e) != 0 ||
        joblog_parse("jobs.csv", jobs, strlen(jobs), &g->log, &e) != 0)
        fail_msg("%s", e.text);
    g->o = (struct study_options){.file = "pools.yaml",
        .config = &g->config,
        .log = &g->log,
        .traces = &no_traces,
        .boot_ms = 120000,
        .restore_ms = 30000,
        .notice_ms = STUDY_BY_PROVIDER,
        .after_ms = 10LL * 86400000,
        .seed = 1};
    return g;
}

static void done(struct given *g, struct study *s)
{
    study_deinit(s);
    config_deinit(&g->config);
    joblog_deinit(&g->log);
    free(g);
}

static struct study run(struct given *g)
{
    struct study s;
    struct err e;
    if (study_run(&g->o, &s, &e) != 0)
        fail_msg("%s", e.text);
    return s;
}

/* As below, with 2 GiB a checkpoint and a store elsewhere. The job is saved after half an hour of
 * running, at the notice, and half an hour after the restore; it is read once. Storage is billed by
 * the second: 2 GiB, then 4, then 6. */
static void checkpoints_cost_egress_and_storage(void **state)
{
    (void)state;
    const double gib_s_uusd = 1000e6 / 2629800;
    int32_t counts[] = {1, 0};
    struct given *g = given(
        "store_usd_per_gib_month: 1000\n" MACHINES
        "    markets: [spot]\n    egress_usd_per_gib: 0.12\n    upload_usd_per_gib: 0.09\n",
        "submit,run,cpus,checkpoint_every,checkpoint_mib\n2026-08-01T00:00:00Z,90m,4,30m,2048\n");
    struct traces traces = {0};
    struct trace t = {.gap_ms = 3600000, .n = 2, .counts = mem_dup(counts, sizeof counts)};
    assert_int_equal(market_add(&traces, "us-east-1a", "up-and-down.json", &t, NULL), 0);
    g->o.traces = &traces;
    g->o.save_ms = 10000;
    struct study s = run(g);
    assert_int_equal(s.all.ended + s.r.reclaims, 2);
    assert_int_equal(s.r.spent[LEDGER_EGRESS], 3 * 2 * 90000 + 2 * 120000);
    assert_int_equal(s.pools[0].spent[LEDGER_EGRESS], s.r.spent[LEDGER_EGRESS]);
    double end = (double)s.r.end_ms / 1e3, first = 122 + 1800 + 10, second = 3600 + 10,
           left = 5400 - (3600 - 122 - 10), third = end - (left - 1800);
    double storage = gib_s_uusd * (2 * (second - first) + 4 * (third - second) + 6 * (end - third));
    assert_true(s.r.spent[LEDGER_STORAGE] > storage - 5 && s.r.spent[LEDGER_STORAGE] < storage + 5);
    assert_int_equal(
        s.uusd, s.r.uusd[MARKET_SPOT] + s.r.spent[LEDGER_EGRESS] + s.r.spent[LEDGER_STORAGE]);
    assert_int_equal(s.pools[0].uusd, s.r.uusd[MARKET_SPOT] + s.r.spent[LEDGER_EGRESS]);
    double spent = 0;
    for (size_t i = 0; i < s.series.n; i++)
        spent += (double)s.series.uusd[i];
    assert_true(spent > (double)s.uusd - 2 && spent < (double)s.uusd + 2);
    market_deinit(&traces);
    done(g, &s);
}

/* Both jobs are submitted at once; neither can be saved. A launch is answered after 2 s, and
 * billing begins then. The machine boots for 120 s, runs its job, is idle for 120 s, and is gone 30
 * s later: 1 h + 270 s for one job, 1/2 h + 270 s for the other. */
static void two_on_demand_jobs_cost_the_expected_amount(void **state)
{
    (void)state;
    struct given *g = given(POOL "    markets: [on-demand]\n",
        "submit,run,cpus,team,finish_by\n"
        "2026-08-01T00:00:00Z,1h,4,nlp,2026-08-01T01:02:02Z\n"
        "2026-08-01T00:00:00Z,30m,4,vision,2026-08-01T00:30:00Z\n");
    struct study s = run(g);
    assert_int_equal(s.uusd, (3600 + 270 + 1800 + 270) * SECOND_UUSD);
    assert_int_equal(s.r.uusd[MARKET_ON_DEMAND], s.uusd);
    assert_int_equal(s.r.on_demand_uusd, (3600 + 1800) * SECOND_UUSD);
    assert_int_equal(s.all.jobs, 2);
    assert_int_equal(s.all.ended, 2);
    assert_int_equal(s.all.wait_mean_ms, 122000);
    assert_int_equal(s.all.wait_median_ms, 122000);
    assert_int_equal(s.all.wait_p95_ms, 122000);
    assert_int_equal(s.r.end_ms, 3722000);
    assert_int_equal(s.r.launches, 2);
    /* the first ends exactly at its deadline, the other 122 s late */
    assert_int_equal(s.all.with_deadline, 2);
    assert_int_equal(s.all.late, 1);
    assert_int_equal(s.all.late_ms, 122000);
    /* by team: the time held by its jobs, without boot and idle time */
    assert_int_equal(s.n_teams, 2);
    assert_string_equal(s.teams[0].name, "nlp");
    assert_int_equal(s.teams[0].uusd, 3600 * SECOND_UUSD);
    assert_int_equal(s.teams[1].uusd, 1800 * SECOND_UUSD);
    assert_int_equal(s.teams[1].late, 1);
    /* by kind of time */
    assert_int_equal(s.n_pools, 1);
    assert_int_equal(s.pools[0].uusd, s.uusd);
    assert_int_equal(s.pool_jobs[0].jobs, 2);
    assert_int_equal(s.pool_jobs[0].wait_p95_ms, 122000);
    assert_int_equal(s.pool_jobs[0].late, 1);
    assert_int_equal(s.pools[0].spent[LEDGER_USEFUL], (3600 + 1800) * SECOND_UUSD);
    assert_int_equal(s.pools[0].spent[LEDGER_BOOT], 2 * 120 * SECOND_UUSD);
    assert_int_equal(s.pools[0].spent[LEDGER_IDLE], 2 * 150 * SECOND_UUSD);
    assert_true(s.pools[0].used_ms[0] == 4.0 * 5400000);
    assert_true(s.pools[0].have_ms[0] == 4.0 * (5400000 + 2 * 150000));
    done(g, &s);
}

/* The only zone is available for an hour and unavailable for an hour, by turns. A save takes 10 s
 * and fits the notice of 120 s, so nothing of the 90 minutes is lost. The job continues in the
 * third hour. */
static void a_reclaim_costs_a_save_and_a_restore(void **state)
{
    (void)state;
    int32_t counts[] = {1, 0};
    struct given *g =
        given(POOL "    markets: [spot]\n", "submit,run,cpus\n2026-08-01T00:00:00Z,90m,4\n");
    struct traces traces = {0};
    struct trace t = {.gap_ms = 3600000, .n = 2, .counts = mem_dup(counts, sizeof counts)};
    assert_int_equal(market_add(&traces, "us-east-1a", "up-and-down.json", &t, NULL), 0);
    g->o.traces = &traces;
    g->o.save_ms = 10000;
    struct study s = run(g);
    assert_int_equal(s.all.ended, 1);
    assert_int_equal(s.r.reclaims, 1);
    assert_int_equal(s.all.lost_ms, 0);
    assert_int_equal(s.pools[0].ms[LEDGER_USEFUL], 5400000);
    assert_int_equal(s.pools[0].ms[LEDGER_RESTORE], 30000);
    assert_true(s.r.end_ms > 7200000 + 122000 && s.r.end_ms < 3 * 3600000);
    int64_t spent = 0;
    for (int k = 0; k < LEDGER_KINDS; k++)
        spent += s.pools[0].spent[k];
    assert_int_equal(spent, s.uusd);
    study_deinit(&s);
    /* Without notice, a job that cannot be saved loses all work of the first hour. The loss is
     * known at once. */
    g->o.save_ms = 0;
    g->o.notice_ms = 0;
    g->o.after_ms = 2LL * 86400000;
    s = run(g);
    assert_int_equal(s.all.ended, 0); /* one hour at a time is never enough for 90 minutes */
    assert_true(s.all.reclaims > 10 && s.all.lost_ms / s.all.reclaims <= 3600000 - 122000);
    assert_int_equal(s.n_notes, 1);
    study_deinit(&s);
    /* belayd tries again a hundred times */
    g->o.after_ms = 30LL * 86400000;
    s = run(g);
    assert_int_equal(s.all.ended, 1);
    assert_int_equal(s.all.given_up, 1);
    assert_int_equal(s.r.finished, 0);
    done(g, &s);
    market_deinit(&traces);
}

/* A job on three nodes loses all of them: one reclaim of the job, three of machines. */
static void a_reclaim_of_several_nodes_counts_once_for_the_job(void **state)
{
    (void)state;
    int32_t counts[] = {1, 0};
    struct given *g = given(
        POOL "    markets: [spot]\n", "submit,run,cpus,nodes\n2026-08-01T00:00:00Z,90m,4,3\n");
    struct traces traces = {0};
    struct trace t = {.gap_ms = 3600000, .n = 2, .counts = mem_dup(counts, sizeof counts)};
    assert_int_equal(market_add(&traces, "us-east-1a", "up-and-down.json", &t, NULL), 0);
    g->o.traces = &traces;
    for (int i = 0; i < 2; i++) {
        g->o.save_ms = i == 0 ? 10000 : 0;
        g->o.after_ms = 2LL * 86400000;
        struct study s = run(g);
        assert_int_equal(s.all.ended, i == 0);
        assert_true(s.r.reclaims >= 3 && s.r.reclaims % 3 == 0);
        assert_int_equal(s.all.reclaims, s.r.reclaims / 3);
        study_deinit(&s);
    }
    struct study none = {0};
    done(g, &none);
    market_deinit(&traces);
}

/* Owned machines cost from the first submit to the last end, used or not. */
static void owned_machines_cost_by_time(void **state)
{
    (void)state;
    static const char pools[] = "pools:\n  base: {kind: reserved, usd_per_hour: 3.60}\n";
    struct given *g = given(pools, "submit,run,cpus\n0,3600,2\n0,3600,2\n1800,1800,1\n");
    struct study s;
    struct err e;
    assert_int_equal(study_run(&g->o, &s, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "--owned base="));
    struct study_owned owned;
    assert_int_equal(study_parse_owned("base=1,cpus=4,memory=16G", &owned, &e), 0);
    g->o.owned = &owned;
    g->o.n_owned = 1;
    s = run(g);
    assert_int_equal(s.uusd, 5400 * SECOND_UUSD);
    assert_int_equal(s.r.uusd[MARKET_OWNED], s.uusd);
    assert_int_equal(s.r.end_ms, 5400000);
    assert_int_equal(s.all.wait_max_ms, 1800000); /* the third job waits for the first two */
    assert_int_equal(s.all.wait_median_ms, 0);
    assert_true(s.pools[0].used_ms[0] == 3600000.0 * 4 + 1800000);
    assert_true(s.pools[0].have_ms[0] == 5400000.0 * 4);
    done(g, &s);
}

/* A job of a hundred days, of which two pass. It saves every hour; nothing of the last hour is
 * saved. */
static void running_jobs_count_up_to_the_end(void **state)
{
    (void)state;
    const int64_t end_ms = 2 * 86400000, step_ms = 3600000 + 10000;
    struct given *g = given("pools:\n  base: {kind: reserved, usd_per_hour: 3.60}\n",
        "submit,run,cpus,team,checkpoint_every\n2026-08-01T00:00:00Z,100d,4,nlp,1h\n");
    struct study_owned owned;
    assert_int_equal(study_parse_owned("base=1,cpus=4,memory=16G", &owned, NULL), 0);
    g->o.owned = &owned;
    g->o.n_owned = 1;
    g->o.save_ms = 10000;
    g->o.after_ms = end_ms;
    struct study s = run(g);
    assert_int_equal(s.all.ended, 0);
    assert_int_equal(s.n_notes, 1);
    assert_int_equal(s.r.end_ms, end_ms);
    assert_int_equal(s.r.ms[LEDGER_USEFUL] + s.r.ms[LEDGER_SAVE] + s.r.ms[LEDGER_LOST], end_ms);
    assert_int_equal(s.r.ms[LEDGER_LOST], end_ms % step_ms);
    assert_int_equal(s.r.ms[LEDGER_SAVE], end_ms / step_ms * 10000);
    assert_int_equal(s.all.lost_ms, s.r.ms[LEDGER_LOST]);
    assert_int_equal(s.teams[0].uusd, s.uusd);
    assert_true(s.pools[0].used_ms[0] == s.pools[0].have_ms[0]);
    done(g, &s);
}

/* Unusable input is reported, and so is a log that cannot be of one cluster. */
static void mistakes_in_the_command_line_and_the_log_are_reported(void **state)
{
    (void)state;
    struct given *g = given(POOL "    markets: [spot]\n", "submit,run\n0,1h\n");
    struct traces traces = {0};
    int32_t counts[] = {1};
    static const char *const offers[] = {"us-east-1a", "us-east-1z"};
    for (int i = 0; i < 2; i++) {
        struct trace t = {.gap_ms = 3600000, .n = 1, .counts = mem_dup(counts, sizeof counts)};
        assert_int_equal(market_add(&traces, offers[i], "t.json", &t, NULL), 0);
        traces.list[i].is_explicit = true;
    }
    struct study_owned owned[2];
    assert_int_equal(study_parse_owned("burst=1,cpus=4,memory=16G", &owned[0], NULL), 0);
    assert_int_equal(study_parse_owned("bose=1,cpus=4,memory=16G", &owned[1], NULL), 0);
    g->o.traces = &traces;
    g->o.owned = owned;
    g->o.n_owned = 2;
    struct study s = run(g);
    assert_int_equal(s.n_notes, 3);
    assert_string_equal(
        s.notes[0], "The trace given for us-east-1z matches no spot offer, and is not used");
    assert_string_equal(s.notes[1],
        "Pool burst is elastic, so machines are launched in it: those of --owned are left out");
    assert_string_equal(
        s.notes[2], "There is no pool bose in the file: its machines of --owned are left out");
    study_deinit(&s);
    g->o.traces = &no_traces;
    g->o.observed = &traces;
    g->o.n_owned = 0;
    s = run(g);
    assert_int_equal(s.n_notes, 3);
    assert_string_equal(
        s.notes[0], "The trace given for us-east-1z matches no spot offer, and is not used");
    assert_string_equal(s.notes[1], "1 of 1 spot offers were observed before the first job");
    assert_non_null(strstr(s.notes[2], "1 of 1 spot offers have no trace"));
    market_deinit(&traces);
    done(g, &s);
    g = given(POOL, "submit,run\n0,1h\n2026-08-01T00:00:00Z,1h\n");
    struct err e;
    g->o.boot_p95_ms = g->o.boot_ms - 1;
    assert_int_equal(study_run(&g->o, &s, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "--boot-tail is less than --boot"));
    g->o.boot_p95_ms = 0;
    assert_int_equal(study_run(&g->o, &s, &e), ERR_INVALID);
    assert_non_null(
        strstr(e.text, "from 1970-01-01T00:00:00Z to 2026-08-01T00:00:00Z, and at most 20 years"));
    s = (struct study){0};
    done(g, &s);
}

/* One machine, in use for an hour. Two jobs wait whose deadline is before it is free; one of them
 * is given up, as with submit --deadline. */
static void a_job_that_cannot_meet_its_deadline_is_late_or_given_up(void **state)
{
    (void)state;
    static const char pools[] = "pools:\n  base: {kind: reserved}\n";
    struct given *g = given(pools,
        "submit,run,cpus,time_limit,finish_by,deadline\n"
        "2026-08-01T00:00:00Z,1h,4,1h,,\n"
        "2026-08-01T00:01:00Z,10m,4,10m,2026-08-01T00:30:00Z,\n"
        "2026-08-01T00:02:00Z,10m,4,10m,,2026-08-01T00:30:00Z\n"
        "2026-08-01T00:03:00Z,10m,4,10m,,2026-08-01T02:00:00Z\n"
        "2026-08-01T00:04:00Z,10m,4,2h,,2026-08-01T00:10:00Z\n"); /* belayd would have refused it */
    struct study_owned owned;
    assert_int_equal(study_parse_owned("base=1,cpus=4,memory=16G", &owned, NULL), 0);
    g->o.owned = &owned;
    g->o.n_owned = 1;
    struct study s = run(g);
    assert_int_equal(s.all.jobs, 5);
    assert_int_equal(s.all.ended, 5);
    assert_int_equal(s.all.started, 4);
    assert_int_equal(s.all.given_up, 1);
    assert_int_equal(s.all.with_deadline, 4);
    assert_int_equal(s.all.late, 3);
    assert_int_equal(s.r.end_ms, 90 * 60000);
    done(g, &s);
}

static void jobs_that_fit_no_machine_are_left_out_and_reported(void **state)
{
    (void)state;
    struct given *g = given(POOL, "submit,run,cpus,gpus\n0,60,4,0\n0,60,5,0\n0,60,1,1\n");
    struct study s = run(g);
    assert_int_equal(s.all.jobs, 1);
    assert_int_equal(s.n_notes, 2);
    assert_non_null(strstr(s.notes[0], "1 of 1 spot offers have no trace"));
    assert_non_null(strstr(s.notes[1], "2 jobs are left out"));
    done(g, &s);
    g = given(POOL, "submit,run,cpus\n0,60,5\n");
    struct err e;
    assert_int_equal(study_run(&g->o, &s, &e), ERR_INVALID);
    assert_string_equal(e.text, "pools.yaml: no job of the log fits a machine that it may use; the "
                                "first one needs 5 cpus, 0 GPUs and 0 MiB");
    s = (struct study){0};
    done(g, &s);
}

static void cpus_of_a_log_without_nodes_are_spread(void **state)
{
    (void)state;
    struct given *g = given(POOL "    markets: [on-demand]\n", "submit,run\n0,60\n");
    static const char swf[] =
        "; UnixStartTime: 1767225600\n1 0 0 600 10 -1 -1 10 600 -1 1 3 1 -1 -1 -1 -1 -1\n";
    struct err e;
    joblog_deinit(&g->log);
    assert_int_equal(joblog_parse("x.swf", swf, strlen(swf), &g->log, &e), 0);
    struct study s = run(g);
    assert_int_equal(s.all.ended, 1);
    assert_int_equal(s.r.launches, 3); /* 10 processors on machines of 4 */
    assert_string_equal(s.teams[0].name, "group1");
    done(g, &s);
}

static void offers_are_matched_with_their_traces(void **state)
{
    (void)state;
    static const char *const files[] = {"d/us-east-1a_v100_1.json", "d/us-east-1a_v100_8.json",
        "d/us-east-1a_k80_1.json", "d/us-east-1b_p3.2xlarge.json", "d/us-central1-a_c3-88.json"};
    struct traces t = {0};
    for (size_t i = 0; i < 5; i++) {
        struct trace one = {.gap_ms = 1000, .n = 1, .counts = mem_alloc(sizeof(int32_t))};
        assert_int_equal(market_add(&t, NULL, files[i], &one, NULL), 0);
    }
    struct offer_row o = {.pool = "burst",
        .zone = "us-east-1a",
        .type = "p3.16xlarge",
        .total.gpus = 8,
        .gpu.model = "V100"};
    bool prices;
    assert_string_equal(market_find(&t, &o, &prices)->file, files[1]);
    assert_true(prices);
    o.total.gpus = 4; /* on no machine of the traces */
    assert_string_equal(market_find(&t, &o, &prices)->file, files[0]);
    assert_false(prices);
    STR_COPY(o.gpu.model, "T4"); /* with several offers in its zone */
    assert_null(market_find(&t, &o, &prices));
    STR_COPY(o.zone, "us-east-1b");
    STR_COPY(o.type, "p3.2xlarge");
    assert_string_equal(market_find(&t, &o, &prices)->file, files[3]);
    assert_true(prices);
    STR_COPY(o.zone, "us-central1-a");
    assert_string_equal(market_find(&t, &o, &prices)->file, files[4]);
    assert_false(prices);
    STR_COPY(o.zone, "us-west-2a");
    assert_null(market_find(&t, &o, &prices));
    struct trace one = {.gap_ms = 1000, .n = 1, .counts = mem_alloc(sizeof(int32_t))};
    assert_int_equal(market_add(&t, "burst/us-east-1b/p3.2xlarge", "own.json", &one, NULL), 0);
    STR_COPY(o.zone, "us-east-1b");
    assert_string_equal(market_find(&t, &o, &prices)->file, "own.json");
    market_deinit(&t);
}

/* On on-demand the begin does not matter. On spot the job is simulated from each quarter of an hour
 * of its trace, which is up for the first half; from the last two it has to wait. */
static void a_job_is_simulated_on_each_offer_from_many_moments(void **state)
{
    (void)state;
    int32_t counts[] = {1, 1, 1, 1, 0, 0, 0, 0};
    struct given *g = given(POOL, "submit,run\n0,60\n");
    struct traces traces = {0};
    struct trace t = {.gap_ms = 3600000, .n = 8, .counts = mem_dup(counts, sizeof counts)};
    struct outlook *list;
    struct err e;
    size_t n;
    assert_int_equal(market_add(&traces, "us-east-1a", "half.json", &t, NULL), 0);
    g->o.traces = &traces;
    struct outlook_options o = {.study = g->o,
        .job = {.work_ms = 3600000, .need.cpus = 4, .nodes = 1},
        .within_ms = 3600000 + 122000,
        .starts = 4};
    assert_int_equal(outlook_run(&o, &list, &n, &e), 0);
    assert_int_equal(n, 3);
    /* sorted before spot, which is cheaper, because it is never late */
    assert_int_equal(list[1].offer.market, MARKET_ON_DEMAND);
    assert_int_equal(list[1].starts, 1);
    assert_int_equal(list[1].late, 0);
    assert_int_equal(list[1].mean_uusd, (3600 + 270) * SECOND_UUSD);
    assert_int_equal(list[1].median_ms, 3722000);
    assert_int_equal(list[2].offer.market, MARKET_SPOT);
    assert_int_equal(list[2].starts, 4);
    assert_int_equal(list[2].done, 4);
    assert_int_equal(list[2].late, 2);
    assert_int_equal(list[2].median_uusd, (3600 + 270) * SECOND_UUSD / 2);
    assert_int_equal(list[2].median_ms, 3722000);
    assert_true(list[2].p95_ms > 4 * 3600000 + 3722000);
    assert_int_equal(list[0].starts, 4); /* in total */
    assert_int_equal(list[0].done, 4);
    assert_int_equal(list[0].late, 0); /* with so little time it buys no spot at all */
    assert_true(list[0].mean_uusd > list[2].mean_uusd && list[0].mean_uusd <= list[1].mean_uusd);
    json_t *v = outlook_json(list, n, n, &o);
    assert_int_equal(json_integer_value(json_object_get(
                         json_array_get(json_object_get(v, "candidates"), 2), "late")),
        2);
    json_decref(v);
    assert_int_equal(list[1].fastest_ms, 3722000);
    assert_int_equal(outlook_infeasible_ms(list, n, &o), 0);
    free(list);
    o.within_ms = 3600000; /* less than the boot leaves */
    assert_int_equal(outlook_run(&o, &list, &n, &e), 0);
    assert_int_equal(outlook_infeasible_ms(list, n, &o), 122000);
    /* on spot only, from the moments without spot it would be late in any case */
    list[1].offer.market = list[2].offer.market = MARKET_SPOT;
    o.within_ms = 3600000 + 120000;
    assert_int_equal(outlook_infeasible_ms(list, n, &o), 0);
    free(list);
    o.job.wish = WISH_SPOT;
    assert_int_equal(outlook_run(&o, &list, &n, &e), 0);
    assert_int_equal(n, 2);
    free(list);
    o.job.need.cpus = 5;
    assert_int_equal(outlook_run(&o, &list, &n, &e), ERR_INVALID);
    struct study s = {0};
    done(g, &s);
    market_deinit(&traces);
}

static void the_owned_machines_option_is_parsed(void **state)
{
    (void)state;
    struct study_owned o;
    struct err e;
    assert_int_equal(study_parse_owned("base=4,cpus=8,memory=60G,gpus=1", &o, &e), 0);
    assert_string_equal(o.pool, "base");
    assert_int_equal(o.n, 4);
    assert_int_equal(o.total.cpus, 8);
    assert_int_equal(o.total.gpus, 1);
    assert_int_equal(o.total.memory_mib, 60 << 10);
    static const char *const wrong[] = {"", "base", "base=4", "base=0,cpus=1,memory=1G",
        "base=4,cpus=8", "base=4,cpus=8,memory=x", "base=4,cpu=8,memory=1G", "=4,cpus=8,memory=1G",
        "base=4,cpus=8,memory=1G,", "base=4,cpus=99999999,memory=1G", "a b=4,cpus=8,memory=1G"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (study_parse_owned(wrong[i], &o, &e) != ERR_INVALID)
            fail_msg("\"%s\" was taken", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_on_demand_jobs_cost_the_expected_amount),
        cmocka_unit_test(a_reclaim_costs_a_save_and_a_restore),
        cmocka_unit_test(checkpoints_cost_egress_and_storage),
        cmocka_unit_test(a_reclaim_of_several_nodes_counts_once_for_the_job),
        cmocka_unit_test(owned_machines_cost_by_time),
        cmocka_unit_test(running_jobs_count_up_to_the_end),
        cmocka_unit_test(mistakes_in_the_command_line_and_the_log_are_reported),
        cmocka_unit_test(a_job_that_cannot_meet_its_deadline_is_late_or_given_up),
        cmocka_unit_test(jobs_that_fit_no_machine_are_left_out_and_reported),
        cmocka_unit_test(cpus_of_a_log_without_nodes_are_spread),
        cmocka_unit_test(offers_are_matched_with_their_traces),
        cmocka_unit_test(a_job_is_simulated_on_each_offer_from_many_moments),
        cmocka_unit_test(the_owned_machines_option_is_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
