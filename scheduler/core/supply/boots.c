/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools with machines that never join: a wrong server address, an image that does not boot, a
 * network without a route. Each such machine costs money, and avoiding offers does not help:
 * another zone or type would be tried at once. So failures are counted over all offers of a pool.
 *
 *   launches as needed --- BOOTS_FAILED_MAX failures --> waits --- wait_ms --> launches one machine
 *          ^                     in a row                  ^       passed         |       |
 *          |                                               +-- it failed: --------+       |
 *          |                                                   wait doubles               |
 *          +------------- a machine of the pool joined, or began a job (below) -----------+
 *
 * Invariants:
 *  1. While boots.wait_ms is set the pool has at most one coming machine more than when it was set
 *     (pool_capacity). One that joined after older machines had full disks counts as coming until
 *     a job has begun there, or its disk is full too.
 *  2. The state is stored. Only a join or the start of a job resets it, not a restart of belayd or
 *     a change of the configuration.
 *  3. Failures during the wait of machines that were launched before do not lengthen it: they give
 *     no new information.
 *  4. A machine counts once, in whatever order machines fail and however often one reports a full
 *     disk: its verdict (row.boot) is stored and never changes again.
 *
 * A machine that was reclaimed while it booted is not a failure of the pool: its offer is avoided
 * (apply_instance.c).
 *
 * A machine whose disk is full before its first job begins is a failure too: it cannot run a job,
 * and the disk of another machine with the same image would be full as well. The job that it was
 * launched for is usually placed when it joins, before its first status reports the disk. So the
 * criterion is whether an attempt has begun there, not whether one was placed. These machines do
 * join, so a join does not reset the state; a job that begins on a newer machine does. The stored
 * text, which also identifies the kind of failure, is that of the newest machine that failed: it is
 * the best evidence about the next one.
 */
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/supply/boots.h"

#include "base/minmax.h"
#include "base/str.h"
#include <inttypes.h>
#include <string.h>

/* Multiples of the pool's refusal_backoff, with its default of 10 s: one minute, up to one hour. */
#define WAIT_FIRST 6
#define WAIT_MAX 360

#define DISK_FULL_TEXT "its disk was full before its first job"

bool pool_boots_disk_full(const struct pool *p)
{
    return str_starts(p->row.boots.text, DISK_FULL_TEXT);
}

bool pool_boots_fail(const struct pool *p)
{
    return p->row.boots.wait_ms > 0;
}

bool pool_may_probe(const struct pool *p, struct mono now)
{
    return p->n_coming == 0 && !p->on_trial &&
           (!mono_is_set(p->probe_at) || p->probe_at.ms <= now.ms);
}

/* Limits the stored wait to its original length, in case the wall clock was set. */
void boots_load(struct pool *p, struct stamp now)
{
    const struct pool_boots *b = &p->row.boots;
    int64_t left_ms = b->next_at.ms - now.wall.ms;
    if (!pool_boots_fail(p) || !wall_is_set(b->next_at) || left_ms <= 0)
        return;
    p->probe_at.ms = now.mono.ms + min_i64(left_ms, b->wait_ms);
}

static void extend_backoff(struct pool *p, struct stamp now)
{
    struct pool_boots *b = &p->row.boots;
    int64_t backoff_ms = max_i64(p->row.refusal_backoff_ms, 1);
    b->wait_ms =
        b->wait_ms == 0 ? WAIT_FIRST * backoff_ms : min_i64(2 * b->wait_ms, WAIT_MAX * backoff_ms);
    b->next_at.ms = now.wall.ms + b->wait_ms;
    p->probe_at.ms = now.mono.ms + b->wait_ms;
}

static bool is_newer(const struct instance *i)
{
    return i->row.id > i->pool->row.boots.instance;
}

static void decide(struct model *m, struct instance *i, enum boot_verdict verdict)
{
    i->row.boot = verdict;
    touch_instance(m, i);
    if (i->pool->on_trial != i)
        return;
    boots_left(i);
    model_note_reserve(m);
    model_note_change(m);
}

void boots_failed(struct model *m, struct instance *i, struct stamp now, const char *why)
{
    struct pool *p = i->pool;
    struct pool_boots *b = &p->row.boots;
    bool waits = mono_is_set(p->probe_at) && p->probe_at.ms > now.mono.ms,
         is_first = !pool_boots_fail(p);
    if (i->row.boot != BOOT_OPEN)
        return;
    decide(m, i, BOOT_FAILED);
    b->failed = b->failed < INT32_MAX ? b->failed + 1 : b->failed;
    if (is_newer(i)) {
        b->instance = i->row.id;
        STR_COPY(b->text, why);
        b->console[0] = '\0';
    }
    if (b->failed >= BOOTS_FAILED_MAX && !waits)
        extend_backoff(p, now);
    touch_pool(m, p);
    model_note_reserve(m);
    model_note_change(m);
    if (b->failed < BOOTS_FAILED_MAX)
        return;
    char in[32];
    int64_t left_ms = p->probe_at.ms - now.mono.ms;
    time_format_duration(left_ms, in, sizeof in);
    history(m, now, "boot-failed", (struct history_of){.instance = i, .a = b->failed, .b = left_ms},
        "%" PRId32
        " machines of pool %s in a row never joined%s; one is launched in %s to try again",
        b->failed, p->row.name, pool_boots_disk_full(p) ? ", or had no space on their disks" : "",
        in);
    if (is_first)
        notify_boots(m, p, now);
}

void boots_disk_full(struct model *m, struct instance *i, struct stamp now, const char *why)
{
    char text[CORE_TEXT_MAX];
    text_format(text, sizeof text, DISK_FULL_TEXT ": %.200s", why);
    boots_failed(m, i, now, text);
}

static void end_failed_boots(struct model *m, struct instance *i, struct stamp now, const char *did)
{
    struct pool *p = i->pool;
    struct pool_boots *b = &p->row.boots;
    if (pool_boots_fail(p))
        history(m, now, "boots-again", (struct history_of){.instance = i},
            "a machine of pool %s %s; the %" PRId32 " before it had failed", p->row.name, did,
            b->failed);
    *b = (struct pool_boots){.next_at = WALL_NONE};
    p->probe_at = MONO_NONE;
    p->on_trial = NULL;
    touch_pool(m, p);
    model_note_reserve(m);
    model_note_change(m);
}

/* An older machine is no evidence about machines that are launched now. */
static void put_on_trial(const struct instance *i)
{
    if (is_newer(i))
        i->pool->on_trial = i;
}

void boots_joined(struct model *m, struct instance *i, struct stamp now)
{
    if (i->pool->row.boots.failed == 0)
        return;
    if (pool_boots_disk_full(i->pool))
        put_on_trial(i);
    else
        end_failed_boots(m, i, now, "joined");
}

void boots_began(struct model *m, const struct attempt *a, struct stamp now)
{
    struct instance *i = a->node->instance;
    if (!i || i->row.boot == BOOT_FAILED)
        return;
    if (i->row.boot == BOOT_OPEN)
        decide(m, i, BOOT_WORKS);
    if (i->pool->row.boots.failed > 0 && pool_boots_disk_full(i->pool) && is_newer(i))
        end_failed_boots(m, i, now, "began a job");
}

void boots_left(const struct instance *i)
{
    if (i->pool->on_trial == i)
        i->pool->on_trial = NULL;
}

void boots_node_loaded(const struct instance *i)
{
    const struct pool *p = i->pool;
    if (p->row.boots.failed > 0 && pool_boots_disk_full(p) && i->row.boot == BOOT_OPEN)
        put_on_trial(i);
}

/* The tail of the text that fits, from the start of a line, or at least of a character. */
static const char *last_lines(const char *text)
{
    size_t len = strlen(text);
    if (len < BOOT_CONSOLE_MAX)
        return text;
    text += len - (BOOT_CONSOLE_MAX - 1);
    const char *line = strchr(text, '\n');
    if (line && line[1])
        return line + 1;
    while (((unsigned char)*text & 0xc0) == 0x80)
        text++;
    return text;
}

int apply_boot_console(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct pool *p = model_pool(m, ev->boot_console.pool);
    (void)e;
    ret_outcome->id = ev->boot_console.instance;
    if (!p || p->row.boots.instance != ev->boot_console.instance || !ev->boot_console.text[0])
        return 0;
    struct pool_boots *b = &p->row.boots;
    STR_COPY(b->console, last_lines(ev->boot_console.text));
    touch_pool(m, p);
    const char *last = b->console;
    for (const char *c = b->console; *c; c++)
        last = *c == '\n' && c[1] ? c + 1 : last;
    history(
        m, ev->now, "boot-console", (struct history_of){0}, "%.*s", (int)strcspn(last, "\n"), last);
    history_last(m)->instance = ev->boot_console.instance;
    return 0;
}

int apply_pool_retry(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct pool *p = model_pool(m, ev->pool_retry.pool);
    (void)e;
    ret_outcome->id = CORE_ID_NONE;
    if (!p || !pool_boots_fail(p))
        return 0;
    p->row.boots.next_at = WALL_NONE;
    p->probe_at = MONO_NONE;
    touch_pool(m, p);
    model_note_reserve(m);
    model_note_change(m);
    return 0;
}
