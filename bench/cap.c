/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the cap on what a job with a deadline may cost more than Uniform Progress (baseline.h)
 * holds: in a million made-up worlds (cap_worlds.h), half of them with zones of one price, by the
 * law with a guarantee and by the usual ones.
 *
 *     bench_cap [WORLDS]
 *
 * The worlds are divided among as many processes as there are processors, and are the same for any
 * number of these. Ends with 1 if the law with a guarantee was above its cap in a world.
 */
#include "bench/cap_worlds.h"

#include "base/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOUR_MS 3600000.0
#define TOLERANCE_UUSD 2 /* of sums of some thousand prices */
#define PROCESSES_MAX 256
#define PROGRESS_WORLDS 10000 /* of one process */

struct counts {
    const char *name;
    double cap; /* a part of the cost of the work on on-demand */
    bool is_certain;
    enum deadline_rule baseline;
    size_t above, late;
    double most, paid; /* most: above the cap, as a part of the same; paid: sum of such parts */
};

/* Returns whether the outcome is above its cap. */
static bool count(
    struct counts *c, const struct cap_outcome *out, double whole_uusd, double cap_uusd)
{
    const double above = out->paid_uusd - out->baseline_uusd - cap_uusd;
    const bool is_above = above > TOLERANCE_UUSD;

    c->late += out->late;
    c->above += is_above;
    if (above / whole_uusd > c->most)
        c->most = above / whole_uusd;
    c->paid += out->paid_uusd / whole_uusd;
    return is_above;
}

static const struct counts nothing_counted[] = {
    {"certain, 10 %", CAP_WORLD_CAP, true, DEADLINE_UNIFORM},
    {"certain, 10 %, UC-h", CAP_WORLD_CAP, true, DEADLINE_RC_CR_PLAIN},
    {"usual, 10 %", CAP_WORLD_CAP, false, DEADLINE_UNIFORM},
    {"usual, 35 %", 0.35, false, DEADLINE_UNIFORM},
    {"usual, 35 %, UC-h", 0.35, false, DEADLINE_RC_CR_PLAIN}};

#define LAWS (sizeof nothing_counted / sizeof nothing_counted[0])

struct share {
    struct counts all[LAWS];
    size_t broken; /* above a cap that is guaranteed */
};

/* World i under each law. */
static void play(size_t i, const struct deadline_policy *p, const struct deadline_borders *b,
    struct cap_world *w, struct share *s)
{
    struct prng prng;
    double whole_uusd;

    prng_init(&prng, i);
    cap_world_make(&prng, i % 2, w);
    whole_uusd = CAP_SURE_UUSD_H * (double)w->work_ms / HOUR_MS;
    for (size_t k = 0; k < LAWS; k++) {
        struct counts *c = &s->all[k];
        const struct cap_terms cap = {c->cap * whole_uusd,
            c->is_certain ? &deadline_law_certain : deadline_law_usual(w->n), c->baseline};
        const struct cap_outcome out = cap_world_play(w, p, b, &cap);
        if (count(c, &out, whole_uusd, cap.uusd) && c->is_certain) {
            printf("above its cap: world %zu\n", i);
            s->broken++;
        }
    }
}

/* Every n_shares'th world, from `first` on. */
static void play_share(size_t first, size_t n_shares, size_t n, const struct deadline_policy *p,
    const struct deadline_borders *b, struct share *s)
{
    struct cap_world *w = mem_alloc(sizeof *w);

    for (size_t i = first, done = 1; i < n; i += n_shares, done++) {
        play(i, p, b, w, s);
        if (first == 0 && done % PROGRESS_WORLDS == 0)
            fprintf(stderr, "about %zu of %zu worlds\n", done * n_shares, n);
    }
    free(w);
}

static void add(struct share *sum, const struct share *s)
{
    sum->broken += s->broken;
    for (size_t k = 0; k < LAWS; k++) {
        struct counts *c = &sum->all[k];
        c->above += s->all[k].above;
        c->late += s->all[k].late;
        c->paid += s->all[k].paid;
        c->most = s->all[k].most > c->most ? s->all[k].most : c->most;
    }
}

/* Returns the number of processes that failed. */
static int play_all(
    size_t n, const struct deadline_policy *p, const struct deadline_borders *b, struct share *sum)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t n_shares = cores < 1 ? 1 : cores > PROCESSES_MAX ? PROCESSES_MAX : (size_t)cores;
    struct share *shares = mmap(
        NULL, n_shares * sizeof *shares, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0, status;

    if (shares == MAP_FAILED) {
        perror("bench_cap: mmap");
        return 1;
    }
    for (size_t i = 0; i < n_shares; i++) {
        shares[i] = *sum;
        const pid_t pid = fork();
        if (pid == 0) {
            play_share(i, n_shares, n, p, b, &shares[i]);
            exit(0);
        }
        failed += pid < 0;
    }
    while (wait(&status) > 0)
        failed += status != 0;
    for (size_t i = 0; i < n_shares; i++)
        add(sum, &shares[i]);
    munmap(shares, n_shares * sizeof *shares);
    return failed;
}

int main(int argc, char **argv)
{
    const size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    struct share sum = {.broken = 0};
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    const struct deadline_starts starts = {.restart = 1.2, .boot = 0.9, .switching = 0.3};
    int failed;

    memcpy(sum.all, nothing_counted, sizeof sum.all);
    cap_world_learn(&c);
    deadline_table_init(&t, &c, 144, 200, &starts, 1.0 / 3);
    failed = play_all(n, &p, &c.borders, &sum);
    for (size_t k = 0; failed == 0 && k < LAWS; k++)
        printf("cap: %-20s above it in %zu of %zu worlds, by at most %.2f %% of on-demand; late "
               "%zu; mean cost %.2f %% of on-demand\n",
            sum.all[k].name, sum.all[k].above, n, 100 * sum.all[k].most, sum.all[k].late,
            100 * sum.all[k].paid / (double)n);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
    return failed > 0 || sum.broken > 0;
}
