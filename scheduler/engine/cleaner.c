/* SPDX-License-Identifier: Apache-2.0
 *
 * See cleaner.h. Invariants:
 *  1. The port is called only for a row whose CLEANING is on disk.
 *  2. One at a time: the core decides the next after the answer to this one was applied.
 *
 *   touched ---> the port works ---> EV_CLEANED posted ---> applied
 *                                       ^  |
 *                                       +--+ the disk is full: again
 */
#include "scheduler/engine/cleaner.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define RETRY_MS 5000

struct cleaner {
    struct tick *tick;
    struct timers *timers;
    struct cleaner_port *port;
    bool working;
    struct event result; /* the newest answer; before the first one its job is 0 */
    struct timer retry;
};

static void on_posted(void *ctx, const struct err *e, int64_t id)
{
    struct cleaner *c = ctx;
    (void)id;
    if (e && e->kind == ERR_NO_SPACE)
        timer_start(c->timers, &c->retry, RETRY_MS);
}

static void on_retry(struct timer *t, void *ctx)
{
    struct cleaner *c = ctx;
    (void)t;
    if (c->result.cleaned.job)
        tick_post(c->tick, &c->result, on_posted, c);
    else
        cleaner_start(c);
}

static void on_done(void *ctx, enum clean_end end, int64_t kept_bytes, const struct err *e)
{
    struct cleaner *c = ctx;
    c->working = false;
    c->result.cleaned.end = end;
    c->result.cleaned.kept_bytes = kept_bytes;
    STR_COPY(c->result.cleaned.text, e ? e->text : "");
    if (end == CLEAN_OTHER_JOB)
        log_warn("the store has another job's data under the number of an ended job: nothing was "
                 "removed",
            log_i("job", c->result.cleaned.job), log_err(e));
    else if (end == CLEAN_FAILED)
        log_warn("the checkpoints of an ended job could not be cleaned; retrying",
            log_i("job", c->result.cleaned.job), log_err(e));
    tick_post(c->tick, &c->result, on_posted, c);
}

void cleaner_touch(struct cleaner *c, const struct ckpt_gc_row *r)
{
    if (r->state != CKPT_GC_CLEANING || c->working)
        return;
    c->working = true;
    c->result = (struct event){.type = EV_CLEANED, .cleaned.job = r->job};
    struct cleaner_job j = {.job = r->job, .keep = core_ckpt_gc_keep(r)};
    model_ckpt_gc_known(tick_model(c->tick), r->job, &j.known);
    c->port->start(c->port, &j, on_done, c);
}

/* If a cleaning has begun since this request, as the effect of a later commit, it must not begin
 * twice. */
static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct cleaner *c = ctx;
    (void)id;
    if (c->result.cleaned.job)
        return;
    if (e && e->kind == ERR_NO_SPACE)
        timer_start(c->timers, &c->retry, RETRY_MS);
    else if (!e && model_cleaning(tick_model(c->tick)))
        cleaner_touch(c, model_cleaning(tick_model(c->tick)));
}

void cleaner_start(struct cleaner *c)
{
    tick_when_durable(c->tick, on_durable, c);
}

struct cleaner *cleaner_create(struct tick *tick, struct timers *timers, struct cleaner_port *port)
{
    struct cleaner *c = mem_alloc(sizeof(*c));
    *c = (struct cleaner){.tick = tick, .timers = timers, .port = port};
    timer_init(&c->retry, on_retry, c);
    return c;
}

void cleaner_destroy(struct cleaner *c)
{
    if (!c)
        return;
    timer_stop(c->timers, &c->retry);
    free(c);
}
