/* SPDX-License-Identifier: Apache-2.0
 *
 * Size and cost of jobs' data in the store, from the first checkpoint until no data is left, before
 * and after the job's end.
 *
 * The size is reported: bytes newly stored by each checkpoint, and the rest after a cleaning by the
 * agent. After the job's end belayd cleans, and measures again once a month while data remains.
 * Cost accrues in millionths of a micro-dollar, so that nothing is lost by rounding between
 * checkpoints. It becomes a ledger row without time at a change of day, at the end of an attempt or
 * of the job, and at each measurement: whole micro-dollars, the rest is carried over.
 *
 * It is part of the job's cost, also after its end, and of the budgets that the job matches, except
 * budgets of a pool, when the row is written. It is neither reserved in budgets nor a reason by
 * itself to park jobs.
 */
#include "scheduler/core/ledger/storage.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/budgets.h"

#include "base/mem.h"
#include <inttypes.h>
#include <stdlib.h>

#define GIB (INT64_C(1) << 30)
#define MONTH_MS INT64_C(2629800000) /* one twelfth of 365.25 days */
#define PARTS 1000000                /* per micro-dollar */

__extension__ typedef __int128 wide;

static void touch(struct model *m, const struct stored *s)
{
    *ADD_ROW(m, stored) = s->row;
}

struct stored *storage_of(const struct model *m, int64_t job)
{
    return map_get(&m->ledger.stored, job);
}

static struct stored *make(struct model *m, int64_t job, struct wall at)
{
    struct stored *s = storage_of(m, job);
    if (s)
        return s;
    s = mem_alloc(sizeof *s);
    s->row = (struct stored_row){.job = job, .at = at, .settled_at = at};
    map_put(&m->ledger.stored, job, s);
    return s;
}

/* Divides before it multiplies, to avoid overflow; the error is below one part. */
static int64_t parts_of(int64_t bytes, int64_t ms, int64_t uusd_gib_month)
{
    const wide month = (wide)GIB * MONTH_MS, all = (wide)bytes * ms,
               price = (wide)uusd_gib_month * PARTS;
    wide parts = all / month * price + all % month * price / month;
    return parts < INT64_MAX / 2 ? (int64_t)parts : INT64_MAX / 2;
}

static void accrue(const struct model *m, struct stored *s, struct wall now)
{
    int64_t ms = now.ms - s->row.at.ms;
    if (ms <= 0)
        return; /* the wall clock may be set back, and agents report past events */
    int64_t parts = parts_of(s->row.bytes, ms, m->options.store_uusd_gib_month);
    s->row.parts = s->row.parts < INT64_MAX - parts ? s->row.parts + parts : INT64_MAX;
    s->row.at = now;
}

/* Jobs that ended are not in the model: their struct ckpt_gc has the budgets. */
static void charge(struct model *m, int64_t job, int64_t uusd)
{
    struct job *j = model_job(m, job);
    const struct ckpt_gc *l = j ? NULL : ckpt_gc_of(m, job);
    if (j) {
        j->row.cost_uusd += uusd;
        touch_job(m, j);
    } else {
        *ADD_ROW(m, late_costs) = (struct late_cost){.job = job, .uusd = uusd};
    }
    budgets_stored(m, j, j ? budgets_of(m, j) : l ? l->budgets : 0, uusd);
}

static void book(struct model *m, struct stored *s)
{
    int64_t uusd = s->row.parts / PARTS;
    if (uusd == 0)
        return;
    charge(m, s->row.job, uusd);
    ledger_add(m, &(struct ledger_row){.job = s->row.job,
                      .kind = LEDGER_STORAGE,
                      .from = s->row.settled_at,
                      .to = s->row.at,
                      .uusd = uusd});
    s->row.parts -= uusd * PARTS;
    s->row.uusd += uusd;
    s->row.settled_at = s->row.at;
}

static void count(struct model *m, struct stored *s, int64_t bytes, struct wall now)
{
    accrue(m, s, now);
    s->row.bytes = bytes;
    if (s->row.at.ms / DAY_MS > s->row.settled_at.ms / DAY_MS)
        book(m, s);
    touch(m, s);
}

/* Not counted where storage is free. */
static bool is_counted(const struct model *m, int64_t job)
{
    return m->options.store_uusd_gib_month > 0 || storage_of(m, job);
}

void storage_saved(struct model *m, int64_t job, int64_t bytes, struct wall at)
{
    if (!is_counted(m, job))
        return;
    struct stored *s = make(m, job, at);
    count(m, s, s->row.bytes < STORED_BYTES_MAX - bytes ? s->row.bytes + bytes : STORED_BYTES_MAX,
        at);
}

void storage_settle(struct model *m, int64_t job, struct wall now)
{
    struct stored *s = storage_of(m, job);
    if (!s)
        return;
    accrue(m, s, now);
    book(m, s);
    touch(m, s);
}

void storage_measured(struct model *m, int64_t job, int64_t bytes, struct wall now)
{
    if (bytes == 0 ? !storage_of(m, job) : !is_counted(m, job))
        return;
    struct stored *s = make(m, job, now);
    if (s->row.bytes != bytes)
        count(m, s, bytes, now);
}

bool storage_costs(const struct model *m, int64_t job)
{
    const struct stored *s = storage_of(m, job);
    return s && s->row.bytes > 0 && m->options.store_uusd_gib_month > 0;
}

void storage_forget(struct model *m, int64_t job, struct wall now)
{
    struct stored *s = storage_of(m, job);
    if (!s)
        return;
    accrue(m, s, now);
    book(m, s);
    s->row.bytes = 0;
    touch(m, s);
    map_remove(&m->ledger.stored, job);
    free(s);
}

int64_t model_stored_bytes(const struct model *m, int64_t job)
{
    const struct stored *s = storage_of(m, job);
    return s ? s->row.bytes : is_counted(m, job) ? 0 : -1;
}

int model_load_stored(struct model *m, const struct stored_row *r, struct err *e)
{
    if (storage_of(m, r->job) || r->bytes < 0 || r->bytes > STORED_BYTES_MAX || r->parts < 0 ||
        (!model_job(m, r->job) && !ckpt_gc_of(m, r->job)))
        return err_set(e, ERR_CORRUPT,
            "the stored size of the data that job %" PRId64
            " has in the store contradicts other rows",
            r->job);
    make(m, r->job, r->at)->row = *r;
    return 0;
}

void storage_deinit(struct model *m)
{
    struct stored *p;
    for (size_t pos = 0; (p = map_next(&m->ledger.stored, &pos, &(int64_t){0})) != NULL;)
        free(p);
    map_deinit(&m->ledger.stored);
}
