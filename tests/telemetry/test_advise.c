/* SPDX-License-Identifier: Apache-2.0
 *
 * Advice about jobs that hold more than they use; jobs that use it get none.
 */
#include "telemetry/advise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define HOUR 3600000LL
#define GIB (INT64_C(1) << 30)
#define HALF_HOUR (30 * 60000LL)

struct gpus {
    /* n; in percent: busy, recent (in the busiest minute), held */
    int64_t n, busy, recent, held, held_recent;
};

struct job {
    const char *name;
    int64_t cpus, cpu, memory, used; /* cpu: percent; memory and used: GiB */
    struct gpus some, others;
    int64_t hours; /* observed; 0: half an hour less a minute */
    int64_t gang_percent;
    int64_t waits, other_waits; /* percent of time that rank 0, and rank 1, waited for the other */
    bool exclusive, starved;
    const char *want;
};

static const struct job jobs[] = {
    {.name = "healthy",
        .cpus = 8,
        .cpu = 90,
        .memory = 64,
        .used = 50,
        .some = {8, 95, 99, 80, 80},
        .hours = 5,
        .want = ""},
    {.name = "healthy without GPUs",
        .cpus = 8,
        .cpu = 70,
        .memory = 64,
        .used = 50,
        .hours = 5,
        .want = ""},
    {.name = "small", .cpus = 1, .cpu = 2, .memory = 0, .hours = 5, .want = ""},
    {.name = "idle",
        .cpus = 8,
        .cpu = 90,
        .some = {8, 40, 1, 80, 80},
        .hours = 5,
        .want = "idle-gpus"},
    {.name = "idle, but once in a while it is not",
        .cpus = 8,
        .cpu = 90,
        .some = {8, 70, 60, 80, 80},
        .hours = 5,
        .want = ""},
    {.name = "idle, and nothing held",
        .cpus = 8,
        .cpu = 90,
        .some = {8, 70, 1, 80, 5},
        .hours = 5,
        .want = ""},
    {.name = "two of eight",
        .cpus = 8,
        .cpu = 90,
        .some = {2, 95, 99, 80, 80},
        .others = {6, 0, 0, 1, 1},
        .hours = 5,
        .want = "unused-gpus"},
    {.name = "none of two",
        .cpus = 8,
        .cpu = 90,
        .some = {2, 0, 0, 0, 0},
        .hours = 5,
        .want = "unused-gpus"},
    {.name = "two idle, six unused",
        .cpus = 8,
        .cpu = 90,
        .some = {2, 95, 1, 80, 80},
        .others = {6, 0, 0, 1, 1},
        .hours = 5,
        .want = "idle-gpus unused-gpus"},
    {.name = "slow",
        .cpus = 8,
        .cpu = 90,
        .some = {8, 40, 60, 80, 80},
        .hours = 5,
        .want = "slow-gpus"},
    {.name = "starved",
        .cpus = 8,
        .cpu = 90,
        .some = {8, 40, 60, 80, 80},
        .starved = true,
        .hours = 5,
        .want = "starved-gpus"},
    {.name = "much memory",
        .cpus = 8,
        .cpu = 90,
        .memory = 64,
        .used = 40,
        .hours = 5,
        .want = "too-much-memory"},
    {.name = "far too much memory",
        .cpus = 8,
        .cpu = 90,
        .memory = 64,
        .used = 2,
        .hours = 5,
        .want = "too-much-memory"},
    {.name = "many cpus", .cpus = 16, .cpu = 20, .hours = 5, .want = "too-many-cpus"},
    {.name = "a node for itself",
        .cpus = 16,
        .cpu = 20,
        .memory = 64,
        .used = 2,
        .exclusive = true,
        .hours = 5,
        .want = ""},
    {.name = "waits for its nodes",
        .cpus = 8,
        .cpu = 90,
        .gang_percent = 30,
        .hours = 5,
        .want = "gang-wait"},
    {.name = "waits for its nodes a little",
        .cpus = 8,
        .cpu = 90,
        .gang_percent = 5,
        .hours = 5,
        .want = ""},
    {.name = "one rank is waited for",
        .cpus = 8,
        .cpu = 90,
        .waits = 40,
        .other_waits = 3,
        .hours = 5,
        .want = "collectives"},
    {.name = "all wait for the network",
        .cpus = 8,
        .cpu = 90,
        .waits = 35,
        .other_waits = 41,
        .hours = 5,
        .want = "collectives"},
    {.name = "waits for its other ranks a little",
        .cpus = 8,
        .cpu = 90,
        .waits = 25,
        .other_waits = 20,
        .hours = 5,
        .want = ""},
    {.name = "waits, but is too young",
        .cpus = 8,
        .cpu = 90,
        .waits = 80,
        .other_waits = 80,
        .want = ""},
    {.name = "too young",
        .cpus = 16,
        .cpu = 1,
        .memory = 64,
        .used = 1,
        .some = {8, 0, 0, 50, 50},
        .want = ""},
};

static size_t fill_gpus(struct advise_gpu *v, const struct gpus *g, int64_t ms)
{
    for (int64_t i = 0; i < g->n; i++) {
        int64_t recent = ms < HALF_HOUR ? ms / 2 : HALF_HOUR;
        v[i] = (struct advise_gpu){.busiest_recent = g->recent,
            .recent = {.ms = recent,
                .known_ms = recent,
                .memory_bytes = g->held_recent * GIB,
                .memory_total_bytes = 100 * GIB},
            .all = {.ms = ms,
                .known_ms = ms,
                .busy_ms = ms * g->busy / 100,
                .memory_bytes = g->held * GIB,
                .memory_total_bytes = 100 * GIB}};
    }
    return (size_t)g->n;
}

static size_t advice_on(const struct job *c, struct advice *out)
{
    struct advise_gpu gpus[16];
    int64_t ms = c->hours > 0 ? c->hours * HOUR : HALF_HOUR - 60000;
    const struct diagnose_rank ranks[] = {{.rank = 0,
                                              .load = {.ms = ms,
                                                  .cpu_ms = ms * c->cpus * c->cpu / 100,
                                                  .memory_bytes = c->used * GIB,
                                                  .waited_ms = ms * c->waits / 100}},
        {.rank = 1,
            .load = {.ms = ms,
                .cpu_ms = ms * c->cpus * c->cpu / 200,
                .memory_bytes = c->used * GIB / 2,
                .waited_ms = ms * c->other_waits / 100}}};
    size_t n = fill_gpus(gpus, &c->some, ms);
    n += fill_gpus(gpus + n, &c->others, ms);
    const struct advise_job j = {.cpus = c->cpus,
        .gpus = (int64_t)n,
        .memory_bytes = c->memory * GIB,
        .exclusive = c->exclusive,
        .ranks = ranks,
        .n_ranks = 2,
        .gpu = gpus,
        .n_gpus = n,
        .gang_wait_ms = c->gang_percent,
        .total_ms = 100,
        .starved = c->starved,
        .uusd_h = 8000000};
    return advise_job(&j, &advise_usual, out);
}

static void each_job_gets_its_advice_and_healthy_ones_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        struct advice got[ADVICE_CODES];
        char codes[200] = "";
        size_t n = advice_on(&jobs[i], got);
        for (size_t k = 0; k < n; k++) {
            strcat(codes, k ? " " : "");
            strcat(codes, advice_code_names[got[k].code]);
            assert_true(got[k].text[0] && got[k].remedy[0]);
        }
        if (strcmp(codes, jobs[i].want) != 0)
            fail_msg("%s: wanted \"%s\", got \"%s\"", jobs[i].name, jobs[i].want, codes);
    }
}

static void what_is_said_has_the_figures(void **state)
{
    const struct job two = {
        .cpus = 8, .cpu = 90, .some = {2, 95, 99, 80, 80}, .others = {6, 0, 0, 1, 1}, .hours = 5};
    const struct job memory = {.cpus = 8, .cpu = 90, .memory = 64, .used = 10, .hours = 5};
    const struct job cpus = {.cpus = 16, .cpu = 20, .hours = 5};
    const struct job one = {.cpus = 8, .cpu = 90, .waits = 40, .other_waits = 3, .hours = 5};
    const struct job both = {.cpus = 8, .cpu = 90, .waits = 35, .other_waits = 41, .hours = 5};
    struct advice got[ADVICE_CODES];
    (void)state;
    assert_int_equal(advice_on(&two, got), 1);
    assert_string_equal(got[0].text, "8 GPUs asked for and 2 used: nothing ever ran on the others");
    assert_int_equal(got[0].waste_uusd_h, 6000000);
    assert_int_equal(advice_on(&memory, got), 1);
    assert_string_equal(got[0].text, "it used 10240 MiB of memory at most, 16 % of the 65536 MiB "
                                     "that it asked for: far too much");
    assert_string_equal(got[0].remedy, "--mem 12289M would do, and leave the rest to others");
    assert_int_equal(advice_on(&cpus, got), 1);
    assert_string_equal(got[0].text, "its 16 cpus are 20 % busy");
    assert_int_equal(got[0].waste_uusd_h, 6000000); /* 4 of 16 would suffice */
    assert_int_equal(advice_on(&one, got), 1);
    assert_string_equal(got[0].text,
        "rank 0 waits 40 % of its time for others, rank 1 only 3 %: the others wait for it");
    assert_int_equal(advice_on(&both, got), 1);
    assert_string_equal(got[0].text, "its ranks wait 35 to 41 % of their time for each other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_gets_its_advice_and_healthy_ones_none),
        cmocka_unit_test(what_is_said_has_the_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
