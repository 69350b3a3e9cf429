/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines that never join: in some worlds none joins for a while, as with a wrong server address;
 * and machines that join with full disks (disks.c). Checked against committed data: each of these
 * machines counts once, whenever it is reported, and no other does; after BOOTS_FAILED_MAX
 * successive failures the pool has one coming machine at a time, and the number of further failures
 * grows with the logarithm of time. There is one elastic pool.
 *
 * Within a batch the order of events is unknown. Where it matters, belayd's rows decide: whether a
 * job or the full disk came first on a machine, and which failures of a batch were before its
 * success.
 */
#include "base/str.h"
#include "simtest/world.h"

#define FIRST_WAIT_MS (6LL * SIM_BACKOFF_MS) /* scheduler/core/supply/boots.c */

bool boots_fail_now(struct world *w)
{
    return w->seed % SIM_BOOTLESS == 4 && !w->faults_over &&
           world_now(w) < (int64_t)(w->seed % 7 + 1) * 900000;
}

static bool is_coming(enum instance_state s)
{
    return s == INSTANCE_INTENDED || s == INSTANCE_LAUNCHED;
}

/* Maximum number of failed probes within elapsed_ms: each wait is twice the one before. Plus two,
 * because commits lag behind events. */
static int64_t most_failures(int64_t elapsed_ms)
{
    int64_t n = 2;
    for (int64_t at = FIRST_WAIT_MS, wait = FIRST_WAIT_MS; at <= elapsed_ms; n++) {
        wait *= wait < 60LL * FIRST_WAIT_MS ? 2 : 1;
        at += wait;
    }
    return n;
}

/* Failures and successes of one batch. */
struct boots_batch {
    const struct changes *c;
    int64_t n_new, n_failed;
    int64_t newest_failed, newest_begun; /* ids; 0: none */
    bool joined, is_unclear;
};

static enum boot_verdict verdict_of(const struct sim_boots *b, int64_t id)
{
    return (enum boot_verdict)(uintptr_t)map_get(&b->verdicts, id);
}

static void decide(struct sim_boots *b, int64_t id, enum boot_verdict verdict)
{
    map_put(&b->verdicts, id, (void *)(uintptr_t)verdict);
}

static void count_failure(struct sim_boots *b, struct boots_batch *x, int64_t id)
{
    decide(b, id, BOOT_FAILED);
    x->n_failed++;
    x->newest_failed = id > x->newest_failed ? id : x->newest_failed;
    b->probes += b->failed >= BOOTS_FAILED_MAX && id > b->before_id;
}

/* A machine that ended in the batch of its launch, or was reclaimed, may have ended before it was
 * counted. */
static void count_unjoined(
    struct sim_boots *b, struct boots_batch *x, const struct instance_row *r, bool was_launched)
{
    bool is_sure = was_launched && !r->reclaimed;
    if (is_sure || (r->provider_id[0] && r->boot == BOOT_FAILED))
        count_failure(b, x, r->id);
}

static void note_instance(struct sim_boots *b, struct boots_batch *x, const struct instance_row *r)
{
    uintptr_t seen = (uintptr_t)map_get(&b->states, r->id);
    bool came = seen && is_coming((enum instance_state)(seen - 1)),
         is_over = r->state == INSTANCE_ENDING || r->state == INSTANCE_GONE,
         has_joined = wall_is_set(r->joined_at);
    b->coming += is_coming(r->state) - came;
    x->joined |= has_joined && (!seen || came);
    x->n_new += !seen;
    b->last_id = r->id > b->last_id ? r->id : b->last_id;
    if ((!seen || came) && is_over && !has_joined)
        count_unjoined(b, x, r, seen == INSTANCE_LAUNCHED + 1);
    map_put(&b->states, r->id, (void *)(uintptr_t)(r->state + 1));
    if (r->node != CORE_ID_NONE)
        map_put(&b->instances, r->node, (void *)(uintptr_t)r->id);
}

static int64_t instance_of(const struct sim_boots *b, int64_t node)
{
    return (int64_t)(uintptr_t)map_get(&b->instances, node);
}

static void note_disk(struct sim_boots *b, struct boots_batch *x, const struct history_row *h)
{
    int64_t id = instance_of(b, h->node);
    if (!str_eq(h->kind, "disk-full") || !id || verdict_of(b, id) != BOOT_OPEN)
        return;
    count_failure(b, x, id);
    map_put(&b->full, id, (void *)(uintptr_t)b->n_batches);
}

static bool records_boot_works(const struct changes *c, int64_t id)
{
    for (size_t i = 0; i < c->n_instances; i++)
        if (c->instances[i].id == id)
            return c->instances[i].boot == BOOT_WORKS;
    return false;
}

static void note_attempt(struct sim_boots *b, struct boots_batch *x, const struct attempt_row *r)
{
    int64_t id = instance_of(b, r->node), key = (r->job << 40) + (r->attempt << 20) + r->node;
    if (!id || !wall_is_set(r->started_at) || map_get(&b->begun, key))
        return;
    map_put(&b->begun, key, b);
    bool became_full = (int64_t)(uintptr_t)map_get(&b->full, id) == b->n_batches;
    if (became_full && records_boot_works(x->c, id)) {
        map_remove(&b->full, id);
        decide(b, id, BOOT_WORKS);
        x->n_failed--;
        x->is_unclear = true;
    }
    if (verdict_of(b, id) == BOOT_FAILED)
        return;
    decide(b, id, BOOT_WORKS);
    x->newest_begun = id > x->newest_begun ? id : x->newest_begun;
}

static void check_verdict(struct world *w, const struct instance_row *r)
{
    enum boot_verdict verdict = verdict_of(&w->boots_seen, r->id);
    if (r->boot != verdict)
        world_fail(w, "the boot of instance %lld is '%s', but is stored as '%s'", (long long)r->id,
            boot_verdict_names[verdict], boot_verdict_names[r->boot]);
}

/* Checks the stored state of the pool, unless the order within the batch leaves it open. */
static void check_count(
    struct world *w, const struct boots_batch *x, int64_t failed, int64_t newest)
{
    const struct sim_boots *b = &w->boots_seen;
    bool was_full = map_get(&b->full, b->newest) != NULL,
         resets = was_full ? x->newest_begun > b->newest : x->joined;
    int64_t all = b->failed + x->n_failed;
    if (x->is_unclear || ((x->joined || x->newest_begun) && x->n_failed > 0)) {
        if (failed > x->n_failed && failed != all)
            world_fail(w, "%lld failed boots are stored, but at most %lld occurred",
                (long long)failed, (long long)all);
        return;
    }
    if (resets && b->failed > 0)
        all = 0;
    int64_t last = all == 0 ? 0 : x->newest_failed > b->newest ? x->newest_failed : b->newest;
    if (failed != all || newest != last)
        world_fail(w,
            "%lld failed boots are stored, the newest of instance %lld, and there were %lld, the "
            "newest of %lld",
            (long long)failed, (long long)newest, (long long)all, (long long)last);
}

static void check_launches(struct world *w, const struct boots_batch *x)
{
    const struct sim_boots *b = &w->boots_seen;
    if (x->n_new > 0 && b->coming > 1)
        world_fail(w,
            "%lld machines in a row never joined, or had full disks, and %lld more are on their "
            "way",
            (long long)b->failed, (long long)b->coming);
    if (b->probes > most_failures(world_now(w) - b->since_ms))
        world_fail(w,
            "%lld machines in a row never joined, or had full disks, of which %lld were launched "
            "to try again within %lld s",
            (long long)b->failed, (long long)b->probes,
            (long long)((world_now(w) - b->since_ms) / 1000));
}

void boots_committed(struct world *w, const struct changes *c)
{
    struct sim_boots *b = &w->boots_seen;
    struct boots_batch x = {.c = c};
    int64_t failed = b->failed, newest = b->newest;
    b->n_batches++;
    for (size_t i = 0; i < c->n_instances; i++)
        note_instance(b, &x, &c->instances[i]);
    for (size_t i = 0; i < c->n_history; i++)
        note_disk(b, &x, &c->history[i]);
    for (size_t i = 0; i < c->n_attempts; i++)
        note_attempt(b, &x, &c->attempts[i]);
    for (size_t i = 0; i < c->n_instances; i++)
        check_verdict(w, &c->instances[i]);
    for (size_t i = 0; i < c->n_pools; i++)
        if (c->pools[i].elastic) {
            failed = c->pools[i].boots.failed;
            newest = c->pools[i].boots.instance;
        }
    check_count(w, &x, failed, newest);
    bool goes_on = b->failed >= BOOTS_FAILED_MAX && failed >= b->failed;
    b->failed = failed;
    b->newest = newest;
    if (goes_on) {
        check_launches(w, &x);
    } else if (failed >= BOOTS_FAILED_MAX) {
        b->since_ms = world_now(w);
        b->before_id = b->last_id;
        b->probes = 0;
    }
}

void boots_deinit(struct world *w)
{
    map_deinit(&w->boots_seen.states);
    map_deinit(&w->boots_seen.instances);
    map_deinit(&w->boots_seen.verdicts);
    map_deinit(&w->boots_seen.full);
    map_deinit(&w->boots_seen.begun);
}
