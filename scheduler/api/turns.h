/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules long answers on the loop in turns: those of one user in the order of their requests,
 * users one after the other. They get the loop for TURNS_SLICE_MS at a time (one answer may take
 * longer) and for no more than half of the time, so that agents and others are answered meanwhile,
 * however many requests one user makes.
 *
 * An answer may need a special moment, for example one at which the whole model is committed: `ask`
 * is called when answers are waiting, and the owner calls turns_take() at such a moment.
 */
#ifndef BELAY_SCHEDULER_API_TURNS_H
#define BELAY_SCHEDULER_API_TURNS_H

#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"

#define TURNS_SLICE_MS 10
#define TURNS_PER_USER_MAX 64 /* waiting turns */

/* Embedded in the object that gives the answer. `moment` is the argument of turns_take(). run may
 * free the turn. */
struct turn {
    void (*run)(struct turn *turn, void *moment);
    struct link in_user;
};

typedef void (*turns_request_fn)(void *ctx);

struct turns {
    struct timers *timers;
    turns_request_fn ask;
    void *ctx;
    struct smap users;  /* name -> struct turns_user, for users with turns */
    struct list order;  /* these users, the next one first */
    struct timer pause; /* leaves the loop to others; then calls ask */
    bool asked;         /* ask was called; turns_take() will follow */
};

/* ask is never called inside turns_take(); it must lead to a later turns_take(), not an immediate
 * one. */
void turns_init(struct turns *t, struct timers *timers, turns_request_fn ask, void *ctx);
/* Waiting turns are neither run nor freed: see turns_drop(). */
void turns_deinit(struct turns *t);

/* Returns false if too many turns of the user are waiting; the turn stays the caller's. */
bool turns_enter(struct turns *t, const char *user, struct turn *turn);

/* Runs turns in order, for a slice of time. */
void turns_take(struct turns *t, void *moment);

/* Removes and returns a waiting turn for the caller to free, or NULL if there are none. For the
 * shutdown. */
struct turn *turns_drop(struct turns *t);

#endif
