/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/secrets/reseal.h"

#include "base/log.h"
#include "scheduler/secrets/store.h"
#include <stdlib.h>

struct slice {
    struct reseal *r;
    struct tick *tick;
    int n;
};

static int seal_again(void *ctx, const struct secret_row *row)
{
    struct slice *s = ctx;
    const struct sealer *sealer = s->r->sealer;
    struct secret_row next = *row;
    struct buf value = {0};
    struct err e;
    if (!row->sealed || seal_is_current(sealer, row->sealed))
        return 0;
    int rc = secret_open(sealer, row, &value, &e);
    if (rc == 0) {
        next.sealed = secret_seal(sealer, row->owner, row->name, value.data, value.len);
        tick_put_secret(s->tick, &next);
        s->n++;
    } else {
        log_error("a secret cannot be sealed with the new key", log_s("owner", row->owner),
            log_s("name", row->name), log_err(&e));
    }
    buf_wipe(&value);
    return s->n == RESEAL_SLICE;
}

static int work(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct slice s = {.r = ctx, .tick = t};
    size_t n_put;
    (void)ret_id;
    tick_secrets(t, &n_put);
    /* a user's change in this tick would be undone: the next slice is in another one */
    int rc = n_put > 0 ? 0 : db_read_secrets(s.r->reader, NULL, seal_again, &s, e);
    s.r->n += s.n;
    s.r->goes_on = n_put > 0 || s.n == RESEAL_SLICE;
    return rc;
}

static void on_committed(void *ctx, const struct err *e, int64_t id)
{
    struct reseal *r = ctx;
    (void)id;
    if (e)
        log_warn("secrets are not sealed with the new key yet: a restart continues", log_err(e));
    else if (r->goes_on)
        tick_post_work(r->tick, work, on_committed, r);
    else if (r->n > 0)
        log_info("all secrets are sealed with the first key of the key file",
            log_i("sealed_again", r->n));
}

void reseal_start(struct reseal *r)
{
    tick_post_work(r->tick, work, on_committed, r);
}
