/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds the store is elsewhere, and its provider bills reads and writes: one entry per
 * transfer, from the agents' actual transfers. In all worlds the place of jobs' input bills reads
 * at their start. The ledger has exactly the transfers that belayd received reports of. A machine
 * that is lost before its report takes it along: those transfers are on the bill only, and cannot
 * be attributed.
 */
#include "simtest/world.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES_UUSD 8 /* bytes per micro-dollar */
#define WRITE_BYTES_UUSD 4
#define GIB (INT64_C(1) << 30)

static bool store_is_remote(const struct world *w)
{
    return w->seed % SIM_REMOTE_STORE == 0;
}

void traffic_prices(const struct world *w, struct pool_row *p)
{
    p->egress_uusd_gib = store_is_remote(w) ? GIB / READ_BYTES_UUSD : 0;
    /* traffic leaving owned machines is free */
    p->upload_uusd_gib = store_is_remote(w) && p->elastic ? GIB / WRITE_BYTES_UUSD : 0;
}

struct egress traffic_egress(const char *provider)
{
    return str_eq(provider, "gcp") ? (struct egress){20000, 120000} : (struct egress){20000, 90000};
}

static void add(struct world *w, const struct sim_attempt *x, int64_t sequence, int64_t uusd)
{
    w->transfers = mem_resize(w->transfers, w->n_transfers + 1, sizeof *w->transfers);
    w->transfers[w->n_transfers++] =
        (struct sim_transfer){x->job, x->attempt, x->agent->node, sequence, uusd};
}

void traffic_read(struct world *w, const struct sim_attempt *x, int64_t bytes)
{
    add(w, x, 0, store_is_remote(w) ? bytes / READ_BYTES_UUSD : 0);
}

void traffic_written(struct world *w, const struct sim_attempt *x, int64_t bytes)
{
    add(w, x, x->sequence, store_is_remote(w) && x->agent->machine ? bytes / WRITE_BYTES_UUSD : 0);
}

/* ---- input of jobs ---- */

static void note_input(struct world *w, const struct constraints_row *r)
{
    struct sim_input in = {.constraints = r->id};
    const char *text = strstr(r->text, "input=");
    if (!text)
        return;
    in.bytes = strtoll(strrchr(text, ':') + 1, NULL, 10);
    snprintf(in.from, sizeof in.from, "%.*s", (int)strcspn(text + strlen("input="), "/:"),
        text + strlen("input="));
    w->inputs = mem_resize(w->inputs, w->n_inputs + 1, sizeof *w->inputs);
    w->inputs[w->n_inputs++] = in;
}

/* By the price lists for outgoing traffic. Owned machines read over the same distance as from the
 * store. */
static int64_t input_uusd(const struct world *w, const struct sim_input *in, bool is_rented)
{
    double gib = (double)in->bytes / (double)GIB;
    if (!is_rented || str_eq(in->from, "store"))
        return store_is_remote(w) ? in->bytes / READ_BYTES_UUSD : 0;
    return (int64_t)(gib * (double)traffic_egress(in->from).out_uusd_gib + 0.5);
}

void traffic_started(struct world *w, const struct sim_attempt *x)
{
    for (size_t i = 0; i < w->n_inputs; i++) {
        int64_t uusd = input_uusd(w, &w->inputs[i], x->agent->machine);
        if (w->inputs[i].constraints == world_job(w, x->job)->constraints)
            add(w, x, 0, uusd * (x->rank + 1) / x->ranks - uusd * x->rank / x->ranks);
    }
}

/* Sum of the rank's transfers that, by its row, were reported: its start, and its saves up to the
 * last reported one. */
static int64_t billed(const struct world *w, const struct attempt_row *r)
{
    int64_t uusd = 0;
    for (size_t i = 0; i < w->n_transfers; i++) {
        const struct sim_transfer *t = &w->transfers[i];
        bool is_reported =
            t->sequence == 0 ? wall_is_set(r->started_at) : t->sequence <= r->sequence;
        if (t->job == r->job && t->attempt == r->attempt && t->node == r->node && is_reported)
            uusd += t->uusd;
    }
    return uusd;
}

/* ---- storage ---- */

/* Brings the meter up to now. The bill covers data as long as it exists; belayd counts reported
 * data from the time of the report on. The two sums differ only by reports in transit, and are
 * equal at the end. */
static struct sim_store_job *metered(struct world *w, int64_t job)
{
    struct sim_store_job *s = &w->store[job - 1];
    struct wall now = world_stamp(w).wall;
    int64_t bytes = (int64_t)s->n * SIM_STORED_BYTES, ms = now.ms - s->metered_at.ms;
    /* the clock was set back: belayd counts the time already billed again, or not at all */
    if (ms < 0) {
        s->differ_byte_ms -= (bytes + s->known_bytes) * ms;
        ms = 0;
    }
    s->byte_ms += bytes * ms;
    s->differ_byte_ms += (llabs(bytes - s->known_bytes) + s->changed_bytes) * ms;
    s->metered_at = now;
    return s;
}

void traffic_store_changes(struct world *w, int64_t job, int64_t manifests)
{
    struct sim_store_job *s = metered(w, job);
    s->changed_bytes += llabs(manifests) * SIM_STORED_BYTES;
    s->changes++;
}

int64_t traffic_store_price(const struct world *w)
{
    return store_is_remote(w) ? SIM_STORE_UUSD_GIB_MONTH : 0;
}

static void check_stored(struct world *w, const struct stored_row *r)
{
    const double parts_a_byte_ms =
        (double)SIM_STORE_UUSD_GIB_MONTH * 1e6 / (double)GIB / (30.4375 * 86400e3);
    struct sim_store_job *s = metered(w, r->job);
    int64_t ms = s->metered_at.ms > r->at.ms ? s->metered_at.ms - r->at.ms : 0,
            most = (int64_t)SIM_MANIFESTS_MAX * SIM_STORED_BYTES;
    double counted = (double)r->uusd * 1e6 + (double)r->parts,
           bill = (double)s->byte_ms * parts_a_byte_ms;
    double allowed = (double)(s->differ_byte_ms + (ms < 1000 ? ms * most : llabs(r->bytes) * ms)) *
                         parts_a_byte_ms +
                     (double)s->changes + 1e-9 * bill + 1;
    if (counted - bill > allowed || bill - counted > allowed)
        world_fail(w,
            "job %lld: the provider billed %.0f millionths of a micro-dollar for its checkpoints, "
            "but belayd counted %.0f (allowed difference: %.0f)",
            (long long)r->job, bill, counted, allowed);
    s->known_bytes = r->bytes;
    s->changed_bytes = 0;
}

void traffic_check(struct world *w)
{
    for (int64_t job = 1; job <= SIM_JOBS_MAX && store_is_remote(w); job++) {
        const struct sim_store_job *s = &w->store[job - 1];
        if (s->fence == SIM_CLOSED && s->known_bytes > 0 &&
            s->known_bytes != (int64_t)s->n * SIM_STORED_BYTES)
            world_fail(w,
                "the store keeps %zu checkpoints of job %lld, but belayd counts %lld bytes", s->n,
                (long long)job, (long long)s->known_bytes);
    }
}

/* ---- transfers ---- */

void traffic_committed(struct world *w, const struct changes *c)
{
    int64_t ledger = 0, bill = 0;
    for (size_t i = 0; i < c->n_constraints; i++)
        note_input(w, &c->constraints[i]);
    for (size_t i = 0; i < c->n_jobs; i++)
        world_job(w, c->jobs[i].id)->constraints = c->jobs[i].constraints;
    for (size_t i = 0; i < c->n_stored; i++)
        check_stored(w, &c->stored[i]);
    for (size_t i = 0; i < c->n_ledger; i++)
        ledger += c->ledger[i].kind == LEDGER_EGRESS ? c->ledger[i].uusd : 0;
    for (size_t i = 0; i < c->n_attempts; i++)
        bill += c->attempts[i].state == ATTEMPT_ENDED ? billed(w, &c->attempts[i]) : 0;
    if (ledger != bill)
        world_fail(w, "the transfers of ended attempts cost %lld uusd, but the ledger has %lld",
            (long long)bill, (long long)ledger);
}

void traffic_deinit(struct world *w)
{
    free(w->transfers);
    free(w->inputs);
}
