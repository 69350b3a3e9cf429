/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds the store lies elsewhere, and its provider bills what is read there and written: transfer by transfer, from what the
 * agents really do. What belayd was told of is in the ledger, all of it and nothing else. A machine that goes before it has told
 * takes that with it: those transfers are on the bill, and nobody can know whose they were.
 */
#include "sim/world.h"

#include "base/mem.h"
#include <stdlib.h>

#define READ_BYTES_UUSD 8  /* so many bytes for a micro-dollar */
#define WRITE_BYTES_UUSD 4
#define GIB (INT64_C(1) << 30)

static bool is_elsewhere(const struct world *w)
{
    return w->seed % SIM_ELSEWHERE == 0;
}

void traffic_prices(const struct world *w, struct pool_row *p)
{
    p->egress_uusd_gib = is_elsewhere(w) ? GIB / READ_BYTES_UUSD : 0;
    p->upload_uusd_gib = is_elsewhere(w) && p->elastic ? GIB / WRITE_BYTES_UUSD : 0; /* what leaves our own machines is not billed */
}

static void add(struct world *w, const struct sim_attempt *x, int64_t sequence, int64_t uusd)
{
    w->transfers = mem_resize(w->transfers, w->n_transfers + 1, sizeof *w->transfers);
    w->transfers[w->n_transfers++] = (struct sim_transfer){x->job, x->attempt, x->agent->node, sequence, is_elsewhere(w) ? uusd : 0};
}

void traffic_read(struct world *w, const struct sim_attempt *x, int64_t bytes)
{
    add(w, x, 0, bytes / READ_BYTES_UUSD);
}

void traffic_written(struct world *w, const struct sim_attempt *x, int64_t bytes)
{
    add(w, x, x->sequence, x->agent->machine ? bytes / WRITE_BYTES_UUSD : 0);
}

/* Of what the rank moved, what its row says that it was told of: that it started, and its saves up to the last. */
static int64_t billed(const struct world *w, const struct attempt_row *r)
{
    int64_t uusd = 0;
    for (size_t i = 0; i < w->n_transfers; i++) {
        const struct sim_transfer *t = &w->transfers[i];
        bool is_told = t->sequence == 0 ? wall_is_set(r->started_at) : t->sequence <= r->sequence;
        if (t->job == r->job && t->attempt == r->attempt && t->node == r->node && is_told)
            uusd += t->uusd;
    }
    return uusd;
}

void traffic_committed(struct world *w, const struct changes *c)
{
    int64_t ledger = 0, bill = 0;
    for (size_t i = 0; i < c->n_ledger; i++)
        ledger += c->ledger[i].kind == LEDGER_EGRESS ? c->ledger[i].uusd : 0;
    for (size_t i = 0; i < c->n_attempts; i++)
        bill += c->attempts[i].state == ATTEMPT_ENDED ? billed(w, &c->attempts[i]) : 0;
    if (ledger != bill)
        world_fail(w, "attempts that ended have moved data for %lld uusd, and the ledger has %lld", (long long)bill, (long long)ledger);
}

void traffic_deinit(struct world *w)
{
    free(w->transfers);
}
