/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/advise.h"

#include <stdarg.h>
#include <stdio.h>

#define MIB (INT64_C(1) << 20)
#define COVERED 90             /* a time counts as known if this percentage of it was sampled */
#define SPARE_PART 5           /* an advised size is the peak use plus 1/SPARE_PART of it */
#define MEMORY_MIN (512 * MIB) /* smaller requests are not judged */

const struct advise_limits advise_usual = {
    .idle_ms = 30 * 60000,
    .idle_busy = 5,
    .idle_memory = 10,
    .size_ms = 24 * 3600000,
    .size_least_ms = 30 * 60000,
    .memory_far = 50,
    .memory_near = 70,
    .busy = 60,
    .gang_wait = 10,
    .collectives = 30,
};

const char *const advice_code_names[] = {"idle-gpus", "unused-gpus", "starved-gpus", "slow-gpus",
    "too-much-memory", "too-many-cpus", "gang-wait", "collectives", "idle-node", "in-vain",
    "right-size", NULL};
_Static_assert(sizeof(advice_code_names) / sizeof(advice_code_names[0]) == ADVICE_CODES + 1,
    "a name for each");

struct advice_list {
    struct advice *out;
    size_t n;
};

static struct advice *begin(struct advice_list *p, enum advice_code code, int64_t waste_uusd_h)
{
    struct advice *a = &p->out[p->n++];
    *a = (struct advice){.code = code, .waste_uusd_h = waste_uusd_h};
    return a;
}

static void __attribute__((format(printf, 2, 3)))
format_text(char out[ADVICE_TEXT_MAX], const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, ADVICE_TEXT_MAX, fmt, ap);
    va_end(ap);
}

static int64_t share(int64_t uusd_h, int64_t part, int64_t whole)
{
    return whole > 0 ? (int64_t)((__extension__(__int128) uusd_h) * part / whole) : 0;
}

/* ---- GPUs ---- */

static bool is_idle(const struct advise_gpu *g, const struct advise_limits *l)
{
    return load_percent(g->recent.known_ms, l->idle_ms) >= COVERED &&
           g->busiest_recent < l->idle_busy &&
           load_percent(g->recent.memory_bytes, g->recent.memory_total_bytes) > l->idle_memory;
}

/* Whether the GPU was hardly ever busy, and little of its memory held, for at least
 * size_least_ms. */
static bool is_unused(const struct advise_gpu *g, const struct advise_limits *l)
{
    return g->all.known_ms >= l->size_least_ms &&
           load_percent(g->all.busy_ms, g->all.known_ms) < l->idle_busy &&
           load_percent(g->all.memory_bytes, g->all.memory_total_bytes) <= l->idle_memory;
}

static void judge_gpus(
    struct advice_list *p, const struct advise_job *j, const struct advise_limits *l)
{
    int64_t idle = 0, unused = 0, used = 0, known = 0, busy = 0, n = (int64_t)j->n_gpus;
    for (size_t i = 0; i < j->n_gpus; i++) {
        bool untouched = is_unused(&j->gpu[i], l);
        idle += is_idle(&j->gpu[i], l);
        unused += untouched;
        used += !untouched && j->gpu[i].all.known_ms > 0;
        known += untouched ? 0 : j->gpu[i].all.known_ms;
        busy += untouched ? 0 : j->gpu[i].all.busy_ms;
    }
    int64_t percent = load_percent(busy, known);
    if (idle > 0) {
        struct advice *a = begin(p, ADVICE_IDLE_GPUS, share(j->uusd_h, idle, n));
        format_text(a->text,
            "%lld of its %lld GPUs were less than %lld %% busy for %lld minutes, with memory held",
            (long long)idle, (long long)n, (long long)l->idle_busy,
            (long long)(l->idle_ms / 60000));
        format_text(a->remedy, "ask its owner, or save and hold it: belay advise --reclaim JOB");
    }
    if (unused > 0) {
        struct advice *a = begin(p, ADVICE_UNUSED_GPUS, share(j->uusd_h, unused, n));
        format_text(a->text, "%lld GPUs asked for and %lld used: nothing ever ran on the others",
            (long long)n, (long long)(n - unused));
        if (n > unused)
            format_text(a->remedy, "ask for %lld, or make the program use all of them",
                (long long)(n - unused));
        else
            format_text(a->remedy, "ask for none, or make sure that the program finds them");
    }
    /* A job with idle GPUs is already reported above. */
    if (idle > 0 || used == 0 || known / used < l->size_least_ms || percent >= l->busy)
        return;
    struct advice *a = begin(p, j->starved ? ADVICE_STARVED_GPUS : ADVICE_SLOW_GPUS,
        share(j->uusd_h, 100 - percent, 100));
    format_text(a->text, "its GPUs are %lld %% busy%s", (long long)percent,
        j->starved ? ": their input does not keep up" : "");
    format_text(a->remedy, j->starved ? "belay diagnose JOB says what their input waits for"
                                      : "larger batches, fewer or smaller GPUs, or a slice of one");
}

/* ---- memory and cpus ---- */

static void judge_memory(struct advice_list *p, const struct advise_job *j,
    const struct advise_limits *l, int64_t seen_ms)
{
    int64_t most = 0;
    for (size_t i = 0; i < j->n_ranks; i++)
        most = j->ranks[i].load.memory_bytes > most ? j->ranks[i].load.memory_bytes : most;
    int64_t percent = load_percent(most, j->memory_bytes);
    if (j->exclusive || seen_ms < l->size_least_ms || j->memory_bytes < MEMORY_MIN ||
        percent >= l->memory_near || most == 0)
        return;
    struct advice *a = begin(p, ADVICE_MEMORY, 0);
    int64_t enough = (most + most / SPARE_PART) / MIB + 1;
    format_text(a->text,
        "it used %lld MiB of memory at most, %lld %% of the %lld MiB that it asked for%s",
        (long long)(most / MIB), (long long)percent, (long long)(j->memory_bytes / MIB),
        percent < l->memory_far ? ": far too much" : "");
    format_text(a->remedy, "--mem %lldM would do, and leave the rest to others", (long long)enough);
}

static void judge_cpus(struct advice_list *p, const struct advise_job *j,
    const struct advise_limits *l, int64_t seen_ms)
{
    int64_t most_milli = 0;
    for (size_t i = 0; i < j->n_ranks; i++) {
        int64_t milli = j->ranks[i].load.ms > 0
                            ? (int64_t)((__extension__(__int128) j->ranks[i].load.cpu_ms) * 1000 /
                                        j->ranks[i].load.ms)
                            : 0;
        most_milli = milli > most_milli ? milli : most_milli;
    }
    int64_t percent = load_percent(most_milli, j->cpus * 1000),
            enough = (most_milli + most_milli / SPARE_PART) / 1000 + 1;
    if (j->exclusive || seen_ms < l->size_least_ms || percent >= l->busy || enough >= j->cpus)
        return;
    /* The price of a GPU machine is that of its GPUs: unused cpus waste nothing. */
    struct advice *a =
        begin(p, ADVICE_CPUS, j->gpus > 0 ? 0 : share(j->uusd_h, j->cpus - enough, j->cpus));
    format_text(a->text, "its %lld cpus are %lld %% busy", (long long)j->cpus, (long long)percent);
    format_text(a->remedy,
        "-c %lld would do on average; belay diagnose JOB says whether something slows them down",
        (long long)enough);
}

static void judge_gang(
    struct advice_list *p, const struct advise_job *j, const struct advise_limits *l)
{
    int64_t percent = load_percent(j->gang_wait_ms, j->total_ms);
    if (j->total_ms <= 0 || percent < l->gang_wait)
        return;
    struct advice *a = begin(p, ADVICE_GANG_WAIT, 0);
    format_text(a->text, "its nodes spent %lld %% of their time waiting for the last of them",
        (long long)percent);
    format_text(a->remedy,
        "a range of nodes (--nodes 2-8) lets it start with the available ones; fewer, "
        "larger nodes start sooner");
}

static int64_t waited_percent(const struct advise_job *j, size_t rank)
{
    int64_t percent = load_percent(j->ranks[rank].load.waited_ms, j->ranks[rank].load.ms);
    return percent < 100 ? percent : 100; /* a late report may exceed the period */
}

/* If one rank waits less than half as long as the one that waits most, the others wait for it.
 * Otherwise all wait for the network. */
static void judge_collectives(struct advice_list *p, const struct advise_job *j,
    const struct advise_limits *l, int64_t seen_ms)
{
    size_t least = 0, most = 0;
    for (size_t i = 1; i < j->n_ranks; i++) {
        least = waited_percent(j, i) < waited_percent(j, least) ? i : least;
        most = waited_percent(j, i) > waited_percent(j, most) ? i : most;
    }
    if (j->n_ranks < 2 || seen_ms < l->size_least_ms || waited_percent(j, most) < l->collectives)
        return;
    int64_t low = waited_percent(j, least), high = waited_percent(j, most);
    bool is_one = low < high / 2;
    struct advice *a = begin(p, ADVICE_COLLECTIVES, 0);
    if (is_one) {
        format_text(a->text,
            "rank %d waits %lld %% of its time for others, rank %d only %lld %%: the others wait "
            "for it",
            j->ranks[most].rank, (long long)high, j->ranks[least].rank, (long long)low);
        format_text(a->remedy,
            "belay diagnose JOB says what slows rank %d down, if anything; otherwise balance the "
            "work",
            j->ranks[least].rank);
    } else {
        format_text(a->text, "its ranks wait %lld to %lld %% of their time for each other",
            (long long)low, (long long)high);
        format_text(a->remedy,
            "fewer and larger collectives (gradients accumulated, larger buckets), "
            "overlapped with work; or fewer, larger nodes");
    }
}

size_t advise_job(
    const struct advise_job *j, const struct advise_limits *l, struct advice out[ADVICE_CODES])
{
    struct advice_list p = {.out = out};
    int64_t seen_ms = j->n_ranks > 0 ? INT64_MAX : 0;
    for (size_t i = 0; i < j->n_ranks; i++)
        seen_ms = j->ranks[i].load.ms < seen_ms ? j->ranks[i].load.ms : seen_ms;
    judge_gpus(&p, j, l);
    judge_memory(&p, j, l, seen_ms);
    judge_cpus(&p, j, l, seen_ms);
    judge_gang(&p, j, l);
    judge_collectives(&p, j, l, seen_ms);
    return p.n;
}
