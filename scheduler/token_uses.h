/* SPDX-License-Identifier: Apache-2.0
 *
 * When each API token was last used. Kept in memory, and stored with a delay in a commit of the
 * tick: of each token at most once a minute, and of all tokens in one commit. A crash loses at most
 * the last minute and a half.
 */
#ifndef BELAY_SCHEDULER_TOKEN_USES_H
#define BELAY_SCHEDULER_TOKEN_USES_H

#include "base/timers.h"
#include "db/db.h"
#include "scheduler/engine/tick.h"

#define TOKEN_USES_STORE_MS 60000 /* a later use is stored when the stored one is older than this */
#define TOKEN_USES_DELAY_MS 10000 /* from a use to its commit */

struct token_uses_options {
    struct tick *tick;
    struct timers *timers;
    struct db_reader *reader;
};

/* All borrowed. destroy accepts NULL; a store that was already posted then has no effect. */
struct token_uses *token_uses_create(const struct token_uses_options *o);
void token_uses_destroy(struct token_uses *u);

/* Records that this API token, in its stored form, was accepted now. */
void token_uses_note(struct token_uses *u, const struct token_row *token);

/* The last use: the stored one, or a later one that is not stored yet. WALL_NONE: never used. */
struct wall token_uses_last(const struct token_uses *u, const struct token_row *token);

#endif
