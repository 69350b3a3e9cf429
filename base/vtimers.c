/* SPDX-License-Identifier: Apache-2.0
 *
 * A binary heap of running timers, ordered by due time, then by order of starting.
 *
 * Invariants: for every i in 0 .. n-1, heap[i].timer->impl is i + 1 as a pointer, so that stopping
 * needs no search; no entry precedes its parent heap[(i - 1) / 2]; no entry is due before now.
 */
#include "base/vtimers.h"

#include "base/mem.h"
#include <assert.h>
#include <stdlib.h>

struct vtimers_entry {
    int64_t due_ms;
    uint64_t order;
    struct timer *timer;
};

static struct wall virtual_wall(void *ctx)
{
    struct vtimers *vt = ctx;
    return (struct wall){vt->now_ms + vt->wall_offset_ms};
}

static struct mono virtual_mono(void *ctx)
{
    struct vtimers *vt = ctx;
    return (struct mono){vt->now_ms};
}

static bool precedes(const struct vtimers_entry *a, const struct vtimers_entry *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void put_at(struct vtimers *vt, size_t i, struct vtimers_entry entry)
{
    vt->heap[i] = entry;
    entry.timer->impl = (void *)(uintptr_t)(i + 1);
}

/* Puts entry at i or above, moving its parents down. */
static void sift_up(struct vtimers *vt, size_t i, struct vtimers_entry entry)
{
    while (i > 0 && precedes(&entry, &vt->heap[(i - 1) / 2])) {
        put_at(vt, i, vt->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put_at(vt, i, entry);
}

/* Puts entry at i or below, moving its children up. */
static void sift_down(struct vtimers *vt, size_t i, struct vtimers_entry entry)
{
    for (size_t child; (child = 2 * i + 1) < vt->n; i = child) {
        if (child + 1 < vt->n && precedes(&vt->heap[child + 1], &vt->heap[child]))
            child++;
        if (!precedes(&vt->heap[child], &entry))
            break;
        put_at(vt, i, vt->heap[child]);
    }
    put_at(vt, i, entry);
}

static void heap_remove(struct vtimers *vt, size_t i)
{
    struct vtimers_entry removed = vt->heap[i], last = vt->heap[--vt->n];
    removed.timer->impl = NULL;
    if (i == vt->n)
        return;
    if (precedes(&last, &removed))
        sift_up(vt, i, last);
    else
        sift_down(vt, i, last);
}

static struct vtimers *of(struct timers *ts)
{
    return (struct vtimers *)((char *)ts - offsetof(struct vtimers, timers));
}

static void virtual_stop(struct timers *ts, struct timer *t)
{
    if (t->impl)
        heap_remove(of(ts), (uintptr_t)t->impl - 1);
}

static void virtual_start(struct timers *ts, struct timer *t, int64_t delay_ms)
{
    struct vtimers *vt = of(ts);
    assert(t->fn && delay_ms >= 0);
    virtual_stop(ts, t);
    struct vtimers_entry entry = {.order = vt->next_order++, .timer = t};
    if (__builtin_add_overflow(vt->now_ms, delay_ms, &entry.due_ms))
        entry.due_ms = INT64_MAX;
    if (vt->n == vt->cap) {
        vt->cap = vt->cap ? vt->cap * 2 : 64;
        vt->heap = mem_resize(vt->heap, vt->cap, sizeof(*vt->heap));
    }
    sift_up(vt, vt->n++, entry);
}

void vtimers_init(struct vtimers *vt, int64_t start_wall_ms)
{
    *vt = (struct vtimers){
        .timers = {.clock = &vt->clock, .start = virtual_start, .stop = virtual_stop},
        .clock = {.wall = virtual_wall, .mono = virtual_mono, .ctx = vt},
        .wall_offset_ms = start_wall_ms,
    };
}

void vtimers_deinit(struct vtimers *vt)
{
    for (size_t i = 0; i < vt->n; i++)
        vt->heap[i].timer->impl = NULL;
    free(vt->heap);
    *vt = (struct vtimers){0};
}

bool vtimers_next(const struct vtimers *vt, int64_t *ret_due_ms)
{
    if (vt->n == 0)
        return false;
    *ret_due_ms = vt->heap[0].due_ms;
    return true;
}

bool vtimers_run_next(struct vtimers *vt)
{
    if (vt->n == 0)
        return false;
    struct timer *t = vt->heap[0].timer;
    if (vt->now_ms < vt->heap[0].due_ms)
        vt->now_ms = vt->heap[0].due_ms;
    heap_remove(vt, 0);
    t->fn(t, t->ctx); /* may free t */
    return true;
}

void vtimers_advance(struct vtimers *vt, int64_t ms)
{
    assert(ms >= 0 && ms <= INT64_MAX - vt->now_ms);
    int64_t until = vt->now_ms + ms, due;
    while (vtimers_next(vt, &due) && due <= until)
        vtimers_run_next(vt);
    vt->now_ms = until;
}

void vtimers_stall(struct vtimers *vt, int64_t ms)
{
    assert(ms >= 0 && ms <= INT64_MAX - vt->now_ms);
    vt->now_ms += ms;
}

void vtimers_set_wall(struct vtimers *vt, int64_t wall_ms)
{
    vt->wall_offset_ms = wall_ms - vt->now_ms;
}
