/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the traces, and learns from those that are not judged (policy_world.h).
 */
#include "bench/policy_world.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "cloud/trace.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBSETS 12

void policy_die(const char *text)
{
    fprintf(stderr, "bench_policy: %s\n", text);
    exit(1);
}

/* ---- reading ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct zone *)a)->name, ((const struct zone *)b)->name);
}

static int folder_by_name(const void *a, const void *b)
{
    return strcmp(((const struct folder *)a)->name, ((const struct folder *)b)->name);
}

static void load_zone(struct folder *f, const char *dir, const char *file)
{
    struct zone *z = &f->zones[f->n];
    struct trace t;
    struct err e;
    int32_t most = 0;
    char *path = mem_printf("%s/%s", dir, file);

    if (trace_load(path, &t, &e) < 0)
        policy_die(e.text);
    free(path);
    if (f->n == ZONES_MAX)
        policy_die("too many traces in a folder");
    STR_COPY(z->name, file);
    z->n = t.n;
    z->tick_ms = t.gap_ms;
    z->up = mem_array(t.n, 1);
    z->class = mem_array(t.n, sizeof *z->class);
    z->share = mem_array(t.n, sizeof *z->share);
    z->rate = mem_array(t.n, sizeof *z->rate);
    z->record_ms = mem_array(t.n, sizeof *z->record_ms);
    for (size_t i = 0; i < t.n; i++)
        most = t.counts[i] > most ? t.counts[i] : most;
    for (size_t i = 0; i < t.n; i++)
        z->up[i] = t.counts[i] == most && most > 0;
    trace_deinit(&t);
    f->n++;
}

static void load_folder(struct world *w, const char *dir, const char *name)
{
    DIR *d = opendir(dir);
    struct folder *f = &w->folders[w->n];

    if (!d || w->n == FOLDERS_MAX)
        return;
    STR_COPY(f->name, name);
    for (struct dirent *entry; (entry = readdir(d));)
        if (strstr(entry->d_name, ".json"))
            load_zone(f, dir, entry->d_name);
    closedir(d);
    qsort(f->zones, f->n, sizeof f->zones[0], by_name);
    f->judged_from = strstr(name, "-2022") || strstr(name, "-02-15-2023") ? 0 : 0.4;
    w->n += f->n > 0;
}

void policy_load(struct world *w, const char *dir)
{
    static const char *const kinds[] = {"1-node", "4-node", "16-node"};

    for (size_t k = 0; k < N_OF(kinds); k++) {
        char *top = mem_printf("%s/availability/%s", dir, kinds[k]);
        DIR *d = opendir(top);
        for (struct dirent *entry; d && (entry = readdir(d));) {
            char *sub = mem_printf("%s/%s", top, entry->d_name);
            if (entry->d_name[0] != '.')
                load_folder(w, sub, entry->d_name);
            free(sub);
        }
        if (d)
            closedir(d);
        free(top);
    }
    if (w->n == 0) {
        fprintf(stderr,
            "bench_policy: no traces in %s/availability: name the folder of "
            "github.com/skypilot-org/spot-traces in BELAY_TRACES\n",
            dir);
        exit(77);
    }
    qsort(w->folders, w->n, sizeof w->folders[0], folder_by_name);
}

/* ---- learning ---- */

/* Returns the part of teacher's time that may be learned from when `judged` is judged: of another
 * folder all, unless it is judged in part; of the folder itself the part that is not judged. */
static double teaches(const struct folder *teacher, const struct folder *judged)
{
    if (teacher == judged)
        return judged->judged_from;
    return teacher->judged_from > 0 ? 0 : 1;
}

static int by_value(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

void policy_set_borders(
    const struct world *w, const struct folder *judged, struct deadline_borders *ret_borders)
{
    size_t n_shares = 0, n_rates = 0, cap = 0;
    double *shares, *rates;

    for (size_t i = 0; i < w->n; i++)
        for (size_t z = 0; z < w->folders[i].n; z++)
            cap += w->folders[i].zones[z].n;
    shares = mem_array(cap, sizeof *shares);
    rates = mem_array(cap, sizeof *rates);
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < w->folders[i].n; k++) {
            const struct zone *z = &w->folders[i].zones[k];
            struct spell_watch watch = {0};
            const size_t n = (size_t)(teaches(&w->folders[i], judged) * (double)z->n);
            for (size_t t = 0; t < n; t++) {
                spell_watch_see(&watch, (int64_t)t * z->tick_ms, z->up[t]);
                shares[n_shares++] = spell_watch_share(&watch);
                if (z->up[t])
                    rates[n_rates++] = spell_watch_rate(&watch);
            }
        }
    qsort(shares, n_shares, sizeof *shares, by_value);
    qsort(rates, n_rates, sizeof *rates, by_value);
    for (size_t i = 0; i + 1 < DEADLINE_SHARES; i++)
        ret_borders->share[i] = shares[n_shares * (i + 1) / DEADLINE_SHARES];
    for (size_t i = 0; i + 1 < DEADLINE_RATES; i++)
        ret_borders->rate[i] = rates[n_rates * (i + 1) / DEADLINE_RATES];
    free(shares);
    free(rates);
}

void policy_watch(const struct folder *f, const size_t *zones, size_t n, size_t ticks,
    const struct deadline_chain *single, struct deadline_counts *counts,
    const struct deadline_borders *borders, uint16_t *ret_classes, uint16_t **ret_offers)
{
    struct deadline_offer_set m = {.n = n, .single = single};
    bool up[ZONES_MAX];

    for (size_t t = 0; t < ticks; t++) {
        const int64_t at_ms = (int64_t)t * f->zones[zones[0]].tick_ms;
        for (size_t i = 0; i < n; i++)
            up[i] = f->zones[zones[i]].up[t];
        deadline_offer_set_see(&m, at_ms, up, counts);
        if (ret_classes)
            ret_classes[t] = deadline_offer_set_class(&m, borders, at_ms);
        for (size_t i = 0; ret_offers && i < n; i++)
            ret_offers[i][t] = deadline_offer_set_class_of(&m, i, &m.offers[i], borders, at_ms);
    }
}

/* Learns from the first ticks of each trace: `part` of them, at most ticks_most. like: only from
 * traces of that length, because others began at another time; 0: from all. */
static void learn_folder(const struct folder *f, double part, size_t ticks_most, size_t like,
    size_t n, const struct deadline_chain *single, struct deadline_counts *counts)
{
    size_t zones[ZONES_MAX], n_zones = 0, least = SIZE_MAX;
    struct prng prng;

    prng_init(&prng, 1);
    for (size_t z = 0; z < f->n; z++) {
        if (like && f->zones[z].n != like)
            continue;
        zones[n_zones++] = z;
        least = f->zones[z].n < least ? f->zones[z].n : least;
    }
    least = (size_t)(part * (double)least);
    least = least < ticks_most ? least : ticks_most;
    if (n == 1) {
        for (size_t z = 0; z < n_zones; z++)
            policy_watch(f, &zones[z], 1, least, NULL, counts, NULL, NULL, NULL);
        return;
    }
    n = n > n_zones ? n_zones : n;
    for (size_t s = 0; s < SUBSETS; s++) {
        for (size_t i = 0; i < n; i++) {
            const size_t other = i + prng_below(&prng, n_zones - i), keep = zones[i];
            zones[i] = zones[other];
            zones[other] = keep;
        }
        policy_watch(f, zones, n, least, single, counts, NULL, NULL, NULL);
        if (n == n_zones)
            break;
    }
}

void policy_count(const struct world *w, const struct folder *judged, size_t n, size_t until,
    size_t like, const struct deadline_chain *single, struct deadline_counts *ret_counts)
{
    memset(ret_counts, 0, sizeof *ret_counts);
    ret_counts->borders = judged->borders;
    ret_counts->of_several = n > 1;
    for (size_t i = 0; i < w->n; i++)
        learn_folder(
            &w->folders[i], teaches(&w->folders[i], judged), SIZE_MAX, 0, n, single, ret_counts);
    if (until > 0) {
        deadline_counts_fade(ret_counts, POLICY_FADE);
        learn_folder(judged, 1, until, like, n, single, ret_counts);
    }
}

void policy_learn(const struct world *w, const struct folder *judged, size_t n, size_t until,
    size_t like, const struct deadline_chain *single, struct deadline_chain *ret_chain)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);

    policy_count(w, judged, n, until, like, single, counts);
    deadline_chain_init(ret_chain, counts);
    free(counts);
}

void policy_classify(struct folder *f)
{
    for (size_t k = 0; k < f->n; k++) {
        struct zone *z = &f->zones[k];
        struct spell_watch watch = {0};
        for (size_t t = 0; t < z->n; t++) {
            spell_watch_see(&watch, (int64_t)t * z->tick_ms, z->up[t]);
            z->class[t] = deadline_class(&f->borders, &watch, (int64_t)t * z->tick_ms);
            z->share[t] = (float)spell_watch_share(&watch);
            z->rate[t] = (float)spell_watch_rate(&watch);
            z->record_ms[t] = spell_watch_record_ms(&watch, (int64_t)t * z->tick_ms);
        }
    }
}
