/* SPDX-License-Identifier: Apache-2.0
 *
 * Ten minutes of jobs of every kind, and the expected findings; healthy jobs get none.
 */
#include "telemetry/diagnose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define MS 600000LL
#define PART(percent) (MS * (percent) / 100)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

/* Behaviour of a case; other members are 0. */
struct job {
    const char *name;
    int64_t cpus, cpu; /* cpus: allocated; cpu: percent of them in use */
    int64_t thread, blocked, stall;
    int64_t memory, memory_used; /* GiB */
    int64_t faults_s, swap_mib, swapped_mib_s;
    int64_t net_mib_s, link_mib_s;
    bool has_gpu;
    int64_t gpu, held; /* gpu: percent busy; held: percent of its memory */
    int64_t thermal, power, slowed, clock, ecc;
    const char *want; /* expected codes, separated by blanks */
};

static const struct job jobs[] = {
    {.name = "healthy on cpus", .cpus = 8, .cpu = 95, .thread = 99, .want = ""},
    {.name = "healthy on one cpu", .cpus = 1, .cpu = 98, .thread = 98, .want = ""},
    {.name = "healthy on a GPU, loaders wait for disks",
        .cpus = 16,
        .cpu = 40,
        .blocked = 60,
        .has_gpu = true,
        .gpu = 96,
        .held = 80,
        .clock = 95,
        .power = 90,
        .want = ""},
    {.name = "healthy on a GPU, one thread feeds it",
        .cpus = 8,
        .cpu = 13,
        .thread = 99,
        .has_gpu = true,
        .gpu = 97,
        .held = 50,
        .want = ""},
    {.name = "healthy, much network",
        .cpus = 4,
        .cpu = 90,
        .net_mib_s = 900,
        .link_mib_s = 1190,
        .want = ""},
    {.name = "healthy, sends a little", .cpus = 4, .cpu = 30, .net_mib_s = 20, .want = ""},
    {.name = "healthy, reads its data by mapping it",
        .cpus = 4,
        .cpu = 90,
        .memory = 64,
        .memory_used = 20,
        .faults_s = 500,
        .want = ""},
    {.name = "healthy, little of it is swapped out and stays there",
        .cpus = 2,
        .cpu = 90,
        .swap_mib = 500,
        .want = ""},
    {.name = "sleeps", .cpus = 4, .cpu = 1, .want = ""},
    {.name = "a GPU that nobody uses, cpus busy",
        .cpus = 4,
        .cpu = 95,
        .has_gpu = true,
        .gpu = 0,
        .held = 0,
        .want = ""},
    {.name = "waits for disks", .cpus = 4, .cpu = 10, .blocked = 80, .want = "iowait"},
    {.name = "waits for disks a little", .cpus = 4, .cpu = 10, .blocked = 20, .want = ""},
    {.name = "waits for disks and computes", .cpus = 1, .cpu = 70, .blocked = 30, .want = ""},
    {.name = "starved by disks",
        .cpus = 8,
        .cpu = 15,
        .blocked = 70,
        .has_gpu = true,
        .gpu = 20,
        .held = 60,
        .want = "gpu-starved iowait"},
    {.name = "starved by its cpus",
        .cpus = 4,
        .cpu = 99,
        .thread = 99,
        .has_gpu = true,
        .gpu = 20,
        .held = 60,
        .want = "gpu-starved"},
    {.name = "starved by one thread",
        .cpus = 8,
        .cpu = 13,
        .thread = 99,
        .has_gpu = true,
        .gpu = 20,
        .held = 60,
        .want = "gpu-starved one-busy-thread"},
    {.name = "starved by the network",
        .cpus = 8,
        .cpu = 20,
        .net_mib_s = 1000,
        .link_mib_s = 1190,
        .has_gpu = true,
        .gpu = 20,
        .held = 60,
        .want = "gpu-starved network"},
    {.name = "swaps",
        .cpus = 2,
        .cpu = 20,
        .swap_mib = 800,
        .swapped_mib_s = 30,
        .want = "memory-pressure"},
    {.name = "stalls", .cpus = 2, .cpu = 50, .stall = 40, .want = "memory-pressure"},
    {.name = "thrashes",
        .cpus = 2,
        .cpu = 20,
        .memory = 8,
        .memory_used = 8,
        .faults_s = 900,
        .want = "memory-pressure"},
    {.name = "swaps and waits for it",
        .cpus = 2,
        .cpu = 10,
        .blocked = 80,
        .stall = 70,
        .want = "memory-pressure iowait"},
    {.name = "network",
        .cpus = 4,
        .cpu = 20,
        .net_mib_s = 1100,
        .link_mib_s = 1190,
        .want = "network"},
    {.name = "network of unknown speed", .cpus = 4, .cpu = 20, .net_mib_s = 90, .want = "network"},
    {.name = "disks over a network",
        .cpus = 4,
        .cpu = 20,
        .net_mib_s = 90,
        .blocked = 70,
        .want = "iowait"},
    {.name = "one thread", .cpus = 8, .cpu = 12, .thread = 98, .want = "one-busy-thread"},
    {.name = "one thread of one cpu", .cpus = 1, .cpu = 98, .thread = 98, .want = ""},
    {.name = "many threads", .cpus = 8, .cpu = 55, .thread = 98, .want = ""},
    {.name = "hot",
        .cpus = 4,
        .cpu = 30,
        .has_gpu = true,
        .gpu = 99,
        .held = 50,
        .thermal = 40,
        .clock = 60,
        .want = "thermal-throttling"},
    {.name = "at its limit of power, at full clock",
        .cpus = 4,
        .cpu = 30,
        .has_gpu = true,
        .gpu = 99,
        .held = 50,
        .power = 100,
        .clock = 93,
        .want = ""},
    {.name = "held back by power",
        .cpus = 4,
        .cpu = 30,
        .has_gpu = true,
        .gpu = 99,
        .held = 50,
        .power = 100,
        .clock = 50,
        .want = "power-throttling"},
    {.name = "slowed by the board",
        .cpus = 4,
        .cpu = 30,
        .has_gpu = true,
        .gpu = 99,
        .held = 50,
        .slowed = 100,
        .clock = 50,
        .want = "hardware-slowdown"},
    {.name = "errors",
        .cpus = 4,
        .cpu = 30,
        .has_gpu = true,
        .gpu = 99,
        .held = 50,
        .ecc = 2,
        .want = "gpu-errors"},
};

static struct diagnose_rank rank_of(const struct job *j, int32_t rank)
{
    return (struct diagnose_rank){.rank = rank,
        .cpus = j->cpus,
        .gpus = j->has_gpu,
        .memory_bytes = j->memory * GIB,
        .load = {.ms = MS,
            .cpu_ms = PART(j->cpu) * j->cpus,
            .busiest_ms = PART(j->thread),
            .blocked_ms = PART(j->blocked),
            .stall_ms = PART(j->stall),
            .memory_bytes = j->memory_used * GIB,
            .swap_bytes = j->swap_mib * MIB,
            .faults = j->faults_s * MS / 1000,
            .net_in_bytes = j->net_mib_s * MIB * MS / 1000,
            .link_bytes_s = j->link_mib_s * MIB,
            .net_is_nodes = 1,
            .node_cpus = 64,
            .node_swapped_bytes = j->swapped_mib_s * MIB * MS / 1000}};
}

static struct diagnose_gpu gpu_of(const struct job *j, int32_t rank)
{
    return (struct diagnose_gpu){.rank = rank,
        .index = 3,
        .load = {.ms = MS,
            .known_ms = MS,
            .busy_ms = PART(j->gpu),
            .memory_bytes = j->held * GIB,
            .memory_total_bytes = 100 * GIB,
            .energy_mj = MS * 400,
            .temperature_c = 85,
            .clock_permille_ms = PART(j->clock) * 1000,
            .thermal_ms = PART(j->thermal),
            .power_ms = PART(j->power),
            .slowed_ms = PART(j->slowed),
            .ecc_uncorrected = j->ecc}};
}

static void codes(const struct finding *f, size_t n, char out[200])
{
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        strcat(out, i ? " " : "");
        strcat(out, finding_code_names[f[i].code]);
        assert_true(f[i].text[0] && f[i].n_evidence > 0 && f[i].remedies[0]);
    }
}

static void each_job_gets_its_finding_and_healthy_ones_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        const struct diagnose_rank rank = rank_of(&jobs[i], 0);
        const struct diagnose_gpu gpu = gpu_of(&jobs[i], 0);
        const struct diagnose_input in = {.ranks = &rank,
            .n_ranks = 1,
            .gpus = &gpu,
            .n_gpus = jobs[i].has_gpu,
            .limits = &diagnose_usual};
        struct finding found[FINDING_CODES];
        char got[200];
        codes(found, diagnose(&in, found), got);
        if (strcmp(got, jobs[i].want) != 0)
            fail_msg("%s: wanted \"%s\", got \"%s\"", jobs[i].name, jobs[i].want, got);
    }
}

static const struct job *job_named(const char *name)
{
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        if (strcmp(jobs[i].name, name) == 0)
            return &jobs[i];
    fail();
    return NULL;
}

static void of_several_ranks_the_worst_is_named(void **state)
{
    const struct diagnose_rank ranks[] = {rank_of(job_named("healthy on cpus"), 0),
        rank_of(job_named("waits for disks"), 1), rank_of(job_named("healthy on cpus"), 2)};
    const struct diagnose_input in = {.ranks = ranks, .n_ranks = 3, .limits = &diagnose_usual};
    struct finding found[FINDING_CODES];
    (void)state;
    assert_int_equal(diagnose(&in, found), 1);
    assert_int_equal(found[0].rank, 1);
    assert_int_equal(found[0].gpu, -1);
}

static void of_what_was_seen_too_shortly_nothing_is_said(void **state)
{
    struct diagnose_rank rank = rank_of(job_named("waits for disks"), 0);
    const struct diagnose_input in = {.ranks = &rank, .n_ranks = 1, .limits = &diagnose_usual};
    struct finding found[FINDING_CODES];
    (void)state;
    assert_true(diagnose_is_enough(&in));
    rank.load.ms = diagnose_usual.least_ms - 1;
    assert_false(diagnose_is_enough(&in));
    assert_int_equal(diagnose(&in, found), 0);
}

/* Slices and old GPUs do not report how busy they are. No finding is derived from that. */
static void a_gpu_that_does_not_tell_is_not_idle(void **state)
{
    const struct diagnose_rank rank = rank_of(job_named("starved by its cpus"), 0);
    struct diagnose_gpu gpu = gpu_of(job_named("starved by its cpus"), 0);
    const struct diagnose_input in = {
        .ranks = &rank, .n_ranks = 1, .gpus = &gpu, .n_gpus = 1, .limits = &diagnose_usual};
    struct finding found[FINDING_CODES];
    (void)state;
    gpu.load.known_ms = gpu.load.busy_ms = 0;
    assert_int_equal(diagnose(&in, found), 0);
}

static void any_input_gives_a_diagnosis_or_none(void **state)
{
    struct diagnose_rank rank = {.cpus = 65536, .gpus = 64, .memory_bytes = INT64_C(1) << 60};
    struct diagnose_gpu gpu = {.index = 0};
    const struct diagnose_input in = {
        .ranks = &rank, .n_ranks = 1, .gpus = &gpu, .n_gpus = 1, .limits = &diagnose_usual};
    struct finding found[FINDING_CODES];
    (void)state;
    for (size_t i = 0; i < sizeof(rank.load) / sizeof(int64_t); i++)
        ((int64_t *)&rank.load)[i] = INT64_C(1) << 44;
    for (size_t i = 0; i < sizeof(gpu.load) / sizeof(int64_t); i++)
        ((int64_t *)&gpu.load)[i] = INT64_C(1) << 44;
    assert_true(diagnose(&in, found) <= FINDING_CODES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_gets_its_finding_and_healthy_ones_none),
        cmocka_unit_test(of_several_ranks_the_worst_is_named),
        cmocka_unit_test(of_what_was_seen_too_shortly_nothing_is_said),
        cmocka_unit_test(a_gpu_that_does_not_tell_is_not_idle),
        cmocka_unit_test(any_input_gives_a_diagnosis_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
