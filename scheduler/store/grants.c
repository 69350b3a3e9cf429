/* SPDX-License-Identifier: Apache-2.0
 *
 * See grants.h.
 *
 *   give --> none yet: fetch ---- made: sent to the agent -----> timer, half of its life --> fetch
 *                        ^  \---- failed: reported once -------> timer, backoff ----+
 *                        +----------------------------------------------------------+
 *
 * A fetch checks the model first: the grant of an attempt that has ended is dropped. The timer is
 * jittered, and no more than UNDER_WAY_MAX fetches run at a time, so that many attempts do not send
 * requests at once.
 */
#include "scheduler/store/grants.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/store/layout.h"
#include "ckpt/s3.h"
#include "cloud/scoped.h"
#include "scheduler/core/model/model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNDER_WAY_MAX 16
#define BUSY_MS 200
#define RENEW_MIN_MS 500
#define RETRY_BASE_MS SECONDS_MS(1)
#define RETRY_CAP_MS SECONDS_MS(60)
#define SESSION_NAME_MAX 65
/* larger than any difference of the versions of the other secrets */
#define VERSION_STEP 1000

struct grant {
    struct grants *owner;
    int64_t job, attempt;
    struct scoped_credentials c; /* token "" = none yet */
    int64_t number;              /* of c: increases, also across restarts */
    struct mono until;
    struct scoped_call *call; /* in progress, or NULL */
    struct timer timer;       /* the next fetch */
    int tries;                /* failures in a row */
    bool end_reported;        /* the expiry of its last credentials was reported */
    /* why there are no valid credentials; replaced only when its kind changes */
    struct err why;
};

struct grants {
    struct grants_options o;
    struct s3_location location;
    struct scoped *scoped;
    struct map by_job;
    int64_t last_number;
    int n_under_way;
    struct grants_stats stats;
};

/* ---- the model ---- */

/* Returns the attempt's lowest live rank, NULL if it has ended; all ranks share the credentials. */
static const struct attempt *live(const struct grants *g, int64_t job, int64_t attempt)
{
    const struct job *j = model_job(tick_model(g->o.tick), job);
    const struct attempt *a = j ? job_attempt(j) : NULL;
    return a && a->row.attempt == attempt ? a : NULL;
}

/* ---- one grant ---- */

static void on_timer(struct timer *t, void *ctx);

static void drop(struct grant *x)
{
    struct grants *g = x->owner;
    map_remove(&g->by_job, x->job);
    timer_stop(g->o.timers, &x->timer);
    if (x->call)
        g->n_under_way--;
    scoped_cancel(x->call);
    explicit_bzero(x, sizeof(*x));
    free(x);
}

static int64_t left_ms(const struct grant *x)
{
    return x->c.token[0] ? x->until.ms - clock_mono(x->owner->o.timers->clock).ms : 0;
}

static void post_no_credentials(const struct grant *x, const char *text)
{
    const struct attempt *a = live(x->owner, x->job, x->attempt);
    struct event ev = {.type = EV_NO_CREDENTIALS};
    if (!a)
        return;
    ev.no_credentials.job = x->job;
    ev.no_credentials.attempt = x->attempt;
    ev.no_credentials.node = a->row.node;
    STR_COPY(ev.no_credentials.text, text);
    tick_post(x->owner->o.tick, &ev, NULL, NULL);
}

/* A changed grant. Agents are notified only after a commit, because messages to them may depend
 * only on what is on disk. */
struct change {
    struct grants *g;
    int64_t job, attempt;
};

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct change *c = ctx;
    const struct attempt *a = e ? NULL : live(c->g, c->job, c->attempt);
    (void)id;
    if (a)
        LIST_FOREACH (&a->job->ranks, l)
            c->g->o.changed(c->g->o.ctx, LIST_ENTRY(l, struct attempt, in_job)->row.node);
    free(c);
}

static void touch_when_durable(const struct grant *x)
{
    struct change *c = mem_alloc(sizeof(*c));
    *c = (struct change){x->owner, x->job, x->attempt};
    tick_when_durable(x->owner->o.tick, on_durable, c);
}

static void on_failure(struct grant *x, const struct err *e)
{
    struct grants *g = x->owner;
    struct err why = *e;
    int64_t left = left_ms(x);
    char shown[32];
    g->stats.failures++;
    time_format_duration(left, shown, sizeof(shown));
    if (x->c.token[0] && left > 0)
        err_wrap(&why,
            "no new credentials for the job's part of the store (its current ones are valid for %s "
            "more)",
            shown);
    else if (x->c.token[0])
        err_wrap(&why,
            "no new credentials for the job's part of the store, and its old ones have expired");
    else
        err_wrap(&why, "no credentials for the job's part of the store");
    log_warn("cannot create a job's credentials for the store; retrying", log_i("job", x->job),
        log_i("attempt", x->attempt), log_i("tries", x->tries + 1), log_err(&why));
    if (x->tries == 0 || (x->c.token[0] && left <= 0 && !x->end_reported))
        post_no_credentials(x, why.text);
    x->end_reported = x->c.token[0] && left <= 0;
    if (left <= 0 && x->why.kind != why.kind) { /* texts may contain a request's id */
        x->why = why;
        touch_when_durable(x);
    }
    timer_start(
        g->o.timers, &x->timer, prng_backoff_ms(g->o.prng, x->tries, RETRY_BASE_MS, RETRY_CAP_MS));
    x->tries++;
}

static void on_credentials(void *ctx, const struct err *e, const struct scoped_credentials *c)
{
    struct grant *x = ctx;
    struct grants *g = x->owner;
    x->call = NULL;
    g->n_under_way--;
    if (e) {
        on_failure(x, e);
        return;
    }
    /* numbers begin at the wall time in ms, so that a restarted belayd does not repeat them */
    int64_t now = clock_wall(g->o.timers->clock).ms;
    g->last_number = now > g->last_number ? now : g->last_number + 1;
    x->c = *c;
    x->number = g->last_number;
    x->until.ms = clock_mono(g->o.timers->clock).ms + c->left_ms;
    x->tries = 0;
    x->end_reported = false;
    x->why = (struct err){0};
    g->stats.made++;
    int64_t half = c->left_ms / 2 > RENEW_MIN_MS ? c->left_ms / 2 : RENEW_MIN_MS;
    timer_start(g->o.timers, &x->timer, prng_range(g->o.prng, half * 8 / 10, half));
    touch_when_durable(x);
}

static void fetch(struct grant *x)
{
    struct grants *g = x->owner;
    char name[SESSION_NAME_MAX];
    if (g->n_under_way >= UNDER_WAY_MAX) {
        timer_start(g->o.timers, &x->timer, prng_range(g->o.prng, BUSY_MS / 2, BUSY_MS));
        return;
    }
    const struct ckpt_job job = {.cluster = g->o.cluster, .job = x->job};
    char *prefix = mem_printf("%s%s", g->location.prefix, layout_prefix(&job, "").s);
    snprintf(name, sizeof(name), "belay-%lld.%lld@%.27s", (long long)x->job, (long long)x->attempt,
        g->o.cluster);
    g->n_under_way++;
    x->call = scoped_get(g->scoped, prefix, name, on_credentials, x);
    free(prefix);
}

static void on_timer(struct timer *t, void *ctx)
{
    struct grant *x = ctx;
    (void)t;
    if (!live(x->owner, x->job, x->attempt))
        drop(x);
    else
        fetch(x);
}

static struct grant *grant_of(struct grants *g, int64_t job, int64_t attempt)
{
    struct grant *x = map_get(&g->by_job, job);
    if (x && x->attempt == attempt)
        return x;
    if (x)
        drop(x);
    x = mem_alloc(sizeof(*x));
    *x = (struct grant){.owner = g, .job = job, .attempt = attempt};
    timer_init(&x->timer, on_timer, x);
    map_put(&g->by_job, job, x);
    fetch(x);
    return x;
}

/* ---- interface ---- */

bool grants_give(
    struct grants *g, int64_t job, int64_t attempt, struct wire_secrets *s, struct err *ret_why)
{
    const struct attempt *a = live(g, job, attempt);
    if (!a || a->job->row.spec.method == CKPT_NONE)
        return true;
    const struct grant *x = grant_of(g, job, attempt);
    int64_t left = left_ms(x);
    if (left <= 0) {
        *ret_why = x->why;
        return false;
    }
    s->version += x->number * VERSION_STEP;
    s->store_access_key = mem_strdup(x->c.access_key[0] ? x->c.access_key : NULL);
    s->store_secret_key = mem_strdup(x->c.secret_key[0] ? x->c.secret_key : NULL);
    s->store_token = mem_strdup(x->c.token);
    s->store_left_ms = left;
    return true;
}

void grants_committed(struct grants *g, const struct db_batch *committed)
{
    const struct changes *c = &committed->changes;
    for (size_t i = 0; i < c->n_attempts; i++) {
        struct grant *x = map_get(&g->by_job, c->attempts[i].job);
        if (x && !live(g, x->job, x->attempt))
            drop(x);
    }
}

void grants_get_stats(const struct grants *g, struct grants_stats *ret_stats)
{
    size_t pos = 0;
    *ret_stats = g->stats;
    for (const struct grant *x; (x = map_next(&g->by_job, &pos, NULL));) {
        int64_t left = left_ms(x);
        if (left <= 0)
            continue;
        if (ret_stats->valid++ == 0 || left < ret_stats->soonest_end_ms)
            ret_stats->soonest_end_ms = left;
    }
}

/* ---- life ---- */

int grants_create(const struct grants_options *o, struct grants **ret_grants, struct err *e)
{
    struct grants *g = mem_alloc(sizeof(*g));
    char *url = NULL;
    g->o = *o;
    int rc = job_credentials_check(&o->credentials, e);
    if (rc == 0)
        rc = s3_location_parse(o->credentials.store, &g->location, e);
    if (rc == 0) {
        struct scoped_options s = job_credentials_scoped(&o->credentials, &g->location, &url);
        s.http = o->http;
        s.timers = o->timers;
        if (s.life_ms == 0)
            s.life_ms = GRANTS_LIFE_MS;
        rc = scoped_create(&s, &g->scoped, e);
    }
    free(url);
    if (rc != 0) {
        grants_destroy(g);
        return rc;
    }
    if (g->location.dialect == STORE_KEYS_AZURE)
        log_warn("a job's credentials for the store reach every blob of the container: Azure signs "
                 "nothing smaller (docs/how-to/clouds/azure.md)",
            log_s("store", g->location.shown));
    *ret_grants = g;
    return 0;
}

void grants_destroy(struct grants *g)
{
    if (!g)
        return;
    size_t pos;
    for (struct grant *x; pos = 0, (x = map_next(&g->by_job, &pos, NULL));)
        drop(x);
    map_deinit(&g->by_job);
    scoped_destroy(g->scoped);
    s3_location_deinit(&g->location);
    free(g);
}
