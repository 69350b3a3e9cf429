/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines that never join: in some worlds none joins for a while, as with a wrong server address;
 * and machines that join with full disks (disks.c). Checked against committed data: after
 * BOOTS_FAILED_MAX successive failures a pool has one coming machine at a time, and the number of
 * further failures grows with the logarithm of time. There is one elastic pool.
 *
 * Within a batch the order of events is unknown, and belayd does not store which of the machines
 * with full disks it has counted. Where that matters, fewer failures are counted here.
 */
#include "base/str.h"
#include "simtest/world.h"

#define FIRST_WAIT_MS (6LL * SIM_BACKOFF_MS) /* scheduler/core/supply/boots.c */

bool boots_fail_now(struct world *w)
{
    return w->seed % SIM_BOOTLESS == 4 && !w->calm &&
           world_now(w) < (int64_t)(w->seed % 7 + 1) * 900000;
}

static bool is_coming(enum instance_state s)
{
    return s == INSTANCE_INTENDED || s == INSTANCE_LAUNCHED;
}

/* Maximum number of failed probes by then, each after twice the previous wait; two more, since
 * commits lag behind events. */
static int64_t most_failures(int64_t elapsed_ms)
{
    int64_t n = 2;
    for (int64_t at = FIRST_WAIT_MS, wait = FIRST_WAIT_MS; at <= elapsed_ms; n++) {
        wait *= wait < 60LL * FIRST_WAIT_MS ? 2 : 1;
        at += wait;
    }
    return n;
}

static void count_failure(struct sim_boots *b, int64_t id)
{
    b->failed++;
    b->probes += b->failed > BOOTS_FAILED_MAX && id > b->before_id;
    b->last_failed = id > b->last_failed ? id : b->last_failed;
}

static void count(
    struct sim_boots *b, const struct instance_row *r, bool *ret_joined, int64_t *ret_new)
{
    uintptr_t seen = (uintptr_t)map_get(&b->states, r->id);
    bool came = seen && is_coming((enum instance_state)(seen - 1)),
         is_over = r->state == INSTANCE_ENDING || r->state == INSTANCE_GONE;
    b->coming += is_coming(r->state) - came;
    *ret_joined |= r->state == INSTANCE_RUNNING && (!seen || came);
    *ret_new += !seen;
    b->last_id = r->id > b->last_id ? r->id : b->last_id;
    if ((!seen || came) && is_over && r->provider_id[0] && !wall_is_set(r->joined_at) &&
        !r->reclaimed) {
        b->unjoined++;
        count_failure(b, r->id);
    }
    map_put(&b->states, r->id, (void *)(uintptr_t)(r->state + 1));
    if (r->node != CORE_ID_NONE)
        map_put(&b->instances, r->node, (void *)(uintptr_t)r->id);
}

static int64_t instance_of(const struct sim_boots *b, int64_t node)
{
    return (int64_t)(uintptr_t)map_get(&b->instances, node);
}

/* An attempt on the node; returns true if it has begun. One that has ended, or waited for its gang,
 * counts after a restart of belayd as if it had. */
static bool note_attempt(struct world *w, const struct attempt_row *r)
{
    struct sim_boots *b = &w->boots_seen;
    bool has_begun = wall_is_set(r->started_at);
    if (!instance_of(b, r->node))
        return false;
    if (has_begun || r->state == ATTEMPT_ENDED || world_job(w, r->job)->spec.nodes > 1)
        map_put(&b->used, r->node, w);
    return has_begun;
}

/* In the order in which belayd learned of the disks. It counts none that is older than the last one
 * that it has counted, which may be one of those used. */
static void count_full(struct sim_boots *b, const struct history_row *h)
{
    int64_t id = instance_of(b, h->node);
    if (!str_eq(h->kind, "disk-full") || id <= b->last_failed)
        return;
    if (map_get(&b->used, h->node))
        b->last_failed = id;
    else
        count_failure(b, id);
}

void boots_committed(struct world *w, const struct changes *c)
{
    struct sim_boots *b = &w->boots_seen;
    int64_t n_new = 0, failed = b->failed;
    bool joined = false, begun = false;
    for (size_t i = 0; i < c->n_instances; i++)
        count(b, &c->instances[i], &joined, &n_new);
    for (size_t i = 0; i < c->n_attempts; i++)
        begun |= note_attempt(w, &c->attempts[i]);
    bool had_full = b->failed > b->unjoined;
    if ((begun && had_full) || (joined && b->unjoined > 0)) {
        b->failed = b->unjoined = b->probes = 0;
        return;
    }
    for (size_t i = 0; i < c->n_history; i++)
        count_full(b, &c->history[i]);
    if (failed < BOOTS_FAILED_MAX && b->failed >= BOOTS_FAILED_MAX) {
        b->since_ms = world_now(w);
        b->before_id = b->last_id;
        b->probes = 0;
    }
    if (failed < BOOTS_FAILED_MAX)
        return;
    if (n_new > 0 && b->coming > 1)
        world_fail(w,
            "%lld machines in a row never joined, or had full disks, and %lld more are on their "
            "way",
            (long long)failed, (long long)b->coming);
    if (b->probes > most_failures(world_now(w) - b->since_ms))
        world_fail(w,
            "%lld machines in a row never joined, or had full disks, of which %lld were launched "
            "to try again within %lld s",
            (long long)b->failed, (long long)b->probes,
            (long long)((world_now(w) - b->since_ms) / 1000));
}

void boots_deinit(struct world *w)
{
    map_deinit(&w->boots_seen.states);
    map_deinit(&w->boots_seen.instances);
    map_deinit(&w->boots_seen.used);
}
