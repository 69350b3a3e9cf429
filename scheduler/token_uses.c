/* SPDX-License-Identifier: Apache-2.0
 *
 * See token_uses.h. A token's row is written whole, so it is read again within the turn that writes
 * it: a token that was revoked meanwhile stays revoked.
 */
#include "scheduler/token_uses.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

struct use {
    char hash[65];
    struct wall last, stored; /* stored includes a use that is about to be stored */
    bool to_store;
};

struct token_uses {
    struct token_uses_options o;
    struct map by_token; /* id -> struct use */
    struct timer delay;
    bool posted; /* store is queued at the tick */
};

/* Reads the row as this tick has changed it, else as committed. */
static int read_row(const struct token_uses *u, const struct tick *t, const char *hash,
    struct token_row *ret_row, struct err *e)
{
    size_t n;
    const struct token_row *now = tick_tokens(t, &n);
    int rc = db_read_token_by_hash(u->o.reader, hash, ret_row, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (str_eq(now[i].hash, hash))
            *ret_row = now[i];
    return rc;
}

static int store(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct token_uses *u = ctx;
    size_t pos = 0;
    (void)ret_id, (void)e;
    for (struct use *use; (use = map_next(&u->by_token, &pos, NULL));) {
        struct token_row row;
        struct err why;
        if (!use->to_store)
            continue;
        use->to_store = false;
        if (read_row(u, t, use->hash, &row, &why) != 0) {
            log_warn("the last use of a token is not stored: it cannot be read", log_err(&why));
            continue;
        }
        row.used_at = use->stored = use->last;
        tick_put_token(t, &row);
    }
    return 0;
}

static void on_stored(void *ctx, const struct err *e, int64_t id)
{
    struct token_uses *u = ctx;
    size_t pos = 0;
    (void)id;
    u->posted = false;
    if (e && e->kind == ERR_UNAVAILABLE)
        return; /* belayd is stopping */
    for (struct use *use; (use = map_next(&u->by_token, &pos, NULL));)
        if (use->to_store && !timer_is_running(&u->delay))
            timer_start(u->o.timers, &u->delay, TOKEN_USES_DELAY_MS);
}

static void on_delay(struct timer *timer, void *ctx)
{
    struct token_uses *u = ctx;
    (void)timer;
    u->posted = true;
    tick_post_work(u->o.tick, store, on_stored, u);
}

struct token_uses *token_uses_create(const struct token_uses_options *o)
{
    struct token_uses *u = mem_alloc(sizeof(*u));
    u->o = *o;
    timer_init(&u->delay, on_delay, u);
    return u;
}

void token_uses_destroy(struct token_uses *u)
{
    size_t pos = 0;
    if (!u)
        return;
    timer_stop(u->o.timers, &u->delay);
    for (struct use *use; (use = map_next(&u->by_token, &pos, NULL));)
        free(use);
    map_deinit(&u->by_token);
    free(u);
}

void token_uses_note(struct token_uses *u, const struct token_row *token)
{
    struct wall now = clock_wall(u->o.timers->clock);
    struct use *use = map_get(&u->by_token, token->id);
    if (!use) {
        use = mem_alloc(sizeof(*use));
        STR_COPY(use->hash, token->hash);
        use->stored = token->used_at;
        map_put(&u->by_token, token->id, use);
    }
    use->last = now;
    bool is_old = !wall_is_set(use->stored) || now.ms - use->stored.ms >= TOKEN_USES_STORE_MS;
    if (!is_old || use->to_store)
        return;
    use->to_store = true;
    if (!u->posted && !timer_is_running(&u->delay))
        timer_start(u->o.timers, &u->delay, TOKEN_USES_DELAY_MS);
}

struct wall token_uses_last(const struct token_uses *u, const struct token_row *token)
{
    const struct use *use = map_get(&u->by_token, token->id);
    return use ? use->last : token->used_at;
}
