/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/api/turns.h"

#include "base/mem.h"
#include <stdlib.h>

/* Exists while the user has turns. */
struct turns_user {
    char *name;
    struct link in_order;
    struct list turns;
    int n;
};

static void ask(struct turns *t)
{
    if (t->asked || timer_is_running(&t->pause))
        return;
    t->asked = true;
    t->ask(t->ctx);
}

static void on_pause_over(struct timer *timer, void *ctx)
{
    (void)timer;
    ask(ctx);
}

void turns_init(struct turns *t, struct timers *timers, turns_request_fn fn, void *ctx)
{
    *t = (struct turns){.timers = timers, .ask = fn, .ctx = ctx};
    timer_init(&t->pause, on_pause_over, t);
}

void turns_deinit(struct turns *t)
{
    timer_stop(t->timers, &t->pause);
    smap_deinit(&t->users);
}

static struct turns_user *user_of(struct turns *t, const char *name)
{
    struct turns_user *u = smap_get(&t->users, name);
    if (u)
        return u;
    u = mem_alloc(sizeof(*u));
    u->name = mem_strdup(name);
    smap_put(&t->users, u->name, u);
    list_push_back(&t->order, &u->in_order);
    return u;
}

bool turns_enter(struct turns *t, const char *user, struct turn *turn)
{
    struct turns_user *u = user_of(t, user);
    if (u->n >= TURNS_PER_USER_MAX)
        return false;
    list_push_back(&u->turns, &turn->in_user);
    u->n++;
    ask(t);
    return true;
}

/* Removes and returns the next turn. A user who has more turns moves to the end of the order. */
static struct turn *next(struct turns *t)
{
    struct link *first = list_pop(&t->order);
    if (!first)
        return NULL;
    struct turns_user *u = LIST_ENTRY(first, struct turns_user, in_order);
    struct turn *turn = LIST_ENTRY(list_pop(&u->turns), struct turn, in_user);
    if (--u->n > 0) {
        list_push_back(&t->order, &u->in_order);
    } else {
        smap_remove(&t->users, u->name);
        free(u->name);
        free(u);
    }
    return turn;
}

void turns_take(struct turns *t, void *moment)
{
    const int64_t from_ms = clock_mono(t->timers->clock).ms;
    int64_t took_ms = 0;
    struct turn *turn;
    while (took_ms < TURNS_SLICE_MS && (turn = next(t))) {
        turn->run(turn, moment);
        took_ms = clock_mono(t->timers->clock).ms - from_ms;
    }
    t->asked = false;
    if (list_first(&t->order))
        timer_start(t->timers, &t->pause, took_ms);
}

struct turn *turns_drop(struct turns *t)
{
    return next(t);
}
