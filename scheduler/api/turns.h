/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that take long on the loop, in turns: those of one user in the order in which they were
 * asked for, users one after the other. They have the loop for TURNS_SLICE_MS at a time (one answer
 * may take longer) and for no more than half of the time, so that agents and others are answered
 * meanwhile, whatever one user asks for in bulk.
 *
 * An answer may need a moment of its own, when all that the model holds is committed say: `ask` is
 * called when there are answers to be given, and the owner calls turns_take() at such a moment.
 */
#ifndef BELAY_SCHEDULER_API_TURNS_H
#define BELAY_SCHEDULER_API_TURNS_H

#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"

#define TURNS_SLICE_MS 10
#define TURNS_PER_USER_MAX 64 /* that wait */

/* Embedded in what gives the answer. `moment` is what turns_take() got; it may free the turn. */
struct turn {
    void (*run)(struct turn *turn, void *moment);
    struct link in_user;
};

typedef void (*turns_ask_fn)(void *ctx);

struct turns {
    struct timers *timers;
    turns_ask_fn ask;
    void *ctx;
    struct smap users;  /* name -> those that have turns */
    struct list order;  /* of them, who is next first */
    struct timer pause; /* others have the loop; then it asks */
    bool asked;         /* a turns_take() is to come */
};

/* ask: never called from within turns_take(); must lead to one later, not at once. */
void turns_init(struct turns *t, struct timers *timers, turns_ask_fn ask, void *ctx);
/* Turns that wait are neither run nor freed: see turns_drop(). */
void turns_deinit(struct turns *t);

/* False: so many of the user wait that it is refused; the turn stays the caller's. */
bool turns_enter(struct turns *t, const char *user, struct turn *turn);

/* Runs those whose turn it is, for a slice of time. */
void turns_take(struct turns *t, void *moment);

/* One that waits, taken out for the caller to free; NULL: there are none. For the end. */
struct turn *turns_drop(struct turns *t);

#endif
