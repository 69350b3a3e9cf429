/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines that never join: in some worlds none joins for a while, as with a wrong server address.
 * Checked against committed data: after BOOTS_FAILED_MAX successive failures a pool has one coming
 * machine at a time, and the number of further failures grows with the logarithm of time. There is
 * one elastic pool.
 */
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
        b->failed++;
        b->probes += b->failed > BOOTS_FAILED_MAX && r->id > b->before_id;
    }
    map_put(&b->states, r->id, (void *)(uintptr_t)(r->state + 1));
}

void boots_committed(struct world *w, const struct changes *c)
{
    struct sim_boots *b = &w->boots_seen;
    int64_t n_new = 0, failed = b->failed;
    bool joined = false;
    for (size_t i = 0; i < c->n_instances; i++)
        count(b, &c->instances[i], &joined, &n_new);
    if (joined) {
        b->failed = b->probes = 0;
        return;
    }
    if (failed < BOOTS_FAILED_MAX && b->failed >= BOOTS_FAILED_MAX) {
        b->since_ms = world_now(w);
        b->before_id = b->last_id;
        b->probes = 0;
    }
    if (failed < BOOTS_FAILED_MAX)
        return;
    if (n_new > 0 && b->coming > 1)
        world_fail(w, "%lld machines in a row never joined, and %lld more are on their way",
            (long long)failed, (long long)b->coming);
    if (b->probes > most_failures(world_now(w) - b->since_ms))
        world_fail(w,
            "%lld machines in a row never joined, of which %lld were launched to try again within "
            "%lld s",
            (long long)b->failed, (long long)b->probes,
            (long long)((world_now(w) - b->since_ms) / 1000));
}

void boots_deinit(struct world *w)
{
    map_deinit(&w->boots_seen.states);
}
