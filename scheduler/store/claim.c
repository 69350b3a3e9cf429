/* SPDX-License-Identifier: Apache-2.0
 *
 * See store/claim.h. The store is checked on a thread, which uses only its own struct check, so
 * that a claim can be destroyed meanwhile.
 */
#include "scheduler/store/claim.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/store/keys_source.h"
#include "ckpt/store/marker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_MS 5000  /* how long a start waits for the store */
#define READ_MS 10000  /* how long `belayd --check` waits for it */
#define CHECK_MS 60000 /* then a check is interrupted */
#define RETRY_BASE_MS 2000
#define RETRY_CAP_MS 30000
#define WATCH_MS 10000 /* between two looks at the marker of a store that is ours */
#define PLACES_BYTES_MAX (64u << 10)

/* The result of a check of the store. */
enum finding {
    FOUND_OURS,
    FOUND_OTHER_OWNER, /* refused: another cluster's, a later epoch's, or its owner is unknown */
    FOUND_MISSING,     /* this cluster's marker is gone */
    FOUND_NUMBERS,     /* given up by its owner; its jobs have numbers that ours would get */
    FOUND_NOTHING      /* no answer */
};

struct check {
    struct store_claim *claim; /* NULL after it was destroyed */
    char url[1024], cluster[64], uid[MARKER_UID_MAX];
    bool is_known, had_checkpoints, reads_only;
    bool is_watch; /* the store was ours: nothing is written */
    int64_t next_job, epoch, now_ms;
    struct store_net *net; /* NULL for a store of this machine */
    atomic_int cancel;
    enum finding found;
    bool is_new; /* the marker was written by this check */
    int64_t last_job;
    int rc;
    struct err e;
};

struct store_claim {
    struct store_claim_options o;
    struct keys_source keys;
    struct check *now;                    /* the check in progress; may be NULL */
    bool on_thread, is_starting, is_over; /* is_over: the result of the start's check is known */
    bool is_ours;
    bool is_refused;
    int tries, rc; /* rc: of the last check */
    int64_t next_job;
    char text[ERR_TEXT_MAX];
    struct timer retry, limit;
};

static void start_check(struct store_claim *c);

/* ---- on the thread ---- */

static int refuse(struct check *k, struct err *e, const char *whose)
{
    k->found = FOUND_OTHER_OWNER;
    return err_set(e, ERR_CONFIG,
        "the store %.200s has checkpoints of %s under the cluster name %s: give this cluster "
        "another name (cluster:) or another store (store:), or, if that cluster is gone for good, "
        "take over its store with belay checkpoint adopt",
        k->url, whose, k->cluster);
}

/* The owner is unknown: no cluster may claim it. */
static int refuse_torn(struct check *k, struct err *e)
{
    struct err why = *e;

    k->found = FOUND_OTHER_OWNER;
    return err_set(e, ERR_CONFIG,
        "the store %.160s cannot be claimed: %.160s. Nothing was changed. Put the marker back from "
        "a copy, or use another store (store:) or cluster name (cluster:); if no other cluster "
        "uses it, belay checkpoint adopt",
        k->url, why.text);
}

static int claim_unmarked(
    struct check *k, struct store *s, const struct marker *none, struct err *e)
{
    struct marker_contents there;
    int rc;

    if (k->is_known) {
        k->found = FOUND_MISSING;
        return err_set(e, ERR_NOT_FOUND,
            "the store %.200s has lost its marker (%s/owner/): it is not mounted, or was emptied. "
            "Restore it; or, if this is intended, stop belayd, run belay checkpoint adopt --config "
            "FILE, and start belayd",
            k->url, k->cluster);
    }
    rc = marker_survey(s, k->cluster, true, &there, e);
    if (!rc && there.last_job > 0 && !k->had_checkpoints)
        rc = refuse(k, e, "a cluster that left no marker (an earlier belay?)");
    if (!rc && k->reads_only)
        return 0;
    if (!rc)
        rc = marker_write(s, k->cluster, none, k->uid, k->epoch, k->now_ms, e);
    k->is_new = rc == 0;
    return rc;
}

/* Claims a store that was given up by `belay checkpoint adopt`. Its jobs keep their numbers, so
 * this cluster's get higher ones. */
static int claim_given_up(
    struct check *k, struct store *s, const struct marker *mark, struct err *e)
{
    struct marker_contents there;
    int rc;

    if (k->reads_only)
        return 0;
    rc = marker_survey(s, k->cluster, false, &there, e);
    k->last_job = rc ? 0 : there.last_job;
    if (!rc && there.last_job >= k->next_job) {
        k->found = FOUND_NUMBERS;
        return err_set(e, ERR_CONFLICT,
            "the store %.200s was given up and has jobs up to number %" PRId64
            ": restart belayd, which then takes it over",
            k->url, there.last_job);
    }
    if (!rc)
        rc = marker_write(s, k->cluster, mark, k->uid, k->epoch, k->now_ms, e);
    k->is_new = rc == 0;
    return rc;
}

/* The marker is this cluster's. A lower epoch is of before the restore that made this state. */
static int check_epoch(struct check *k, struct store *s, const struct marker *mark, struct err *e)
{
    char at[TIME_ISO_MAX];
    if (mark->epoch == k->epoch || (mark->epoch < k->epoch && k->reads_only))
        return 0;
    if (mark->epoch < k->epoch)
        return marker_write(s, k->cluster, mark, k->uid, k->epoch, k->now_ms, e);
    time_format_iso((struct wall){mark->created_at_ms}, at);
    k->found = FOUND_OTHER_OWNER;
    return err_set(e, ERR_CONFIG,
        "the cluster %s was restored from a backup at %s, and this state is from before: its jobs "
        "and machines belong to the restored belayd, so this one must not run. Remove or move away "
        "this state directory",
        k->cluster, at);
}

/* The result for a store that was ours: only the marker counts. */
static int watch_store(struct check *k, struct store *s, struct err *e)
{
    struct marker mark;
    int rc = marker_read(s, k->cluster, &mark, e);
    if (rc != 0 || mark.generation == 0)
        return rc;
    if (str_eq(mark.uid, k->uid))
        return check_epoch(k, s, &mark, e);
    k->found = FOUND_OTHER_OWNER;
    return err_set(e, ERR_CONFIG, "the store %.200s was taken over by %s%s", k->url,
        mark.uid[0] ? "the cluster " : "belay checkpoint adopt", mark.uid);
}

static int check_store(struct check *k, struct err *e)
{
    const struct store_options o = {.net = k->net,
        .cancel = &k->cancel,
        .existing = k->is_known || k->reads_only || k->is_watch};
    struct marker mark;
    char whose[128];
    struct store *s;
    int rc = store_open(k->url, &o, &s, e);

    if (rc == ERR_NOT_FOUND && k->is_known)
        k->found = FOUND_MISSING;
    if (rc == ERR_NOT_FOUND && !k->is_known && k->reads_only) {
        k->found = FOUND_OURS; /* a start creates it */
        return 0;
    }
    if (rc)
        return rc;
    rc = k->is_watch ? watch_store(k, s, e) : marker_read(s, k->cluster, &mark, e);
    if (k->is_watch)
        ; /* done */
    else if (rc == ERR_CORRUPT)
        rc = refuse_torn(k, e);
    else if (!rc && mark.generation == 0)
        rc = claim_unmarked(k, s, &mark, e);
    else if (!rc && mark.uid[0] == '\0')
        rc = claim_given_up(k, s, &mark, e);
    else if (!rc && !str_eq(mark.uid, k->uid)) {
        snprintf(whose, sizeof(whose), "another cluster (uid %s, this one %s%s)", mark.uid,
            k->uid[0] ? "is " : "has none yet", k->uid);
        rc = refuse(k, e, whose);
    } else if (!rc) {
        rc = check_epoch(k, s, &mark, e);
    }
    store_close(s);
    if (!rc)
        k->found = FOUND_OURS;
    return rc;
}

static void on_thread(void *ctx)
{
    struct check *k = ctx;
    k->rc = check_store(k, &k->e);
}

/* ---- places ---- */

static char *places_file(const struct store_claim *c)
{
    return mem_printf("%s/store.places", c->o.state_dir);
}

static char *place_line(const struct store_claim *c)
{
    return mem_printf("%s %s\n", c->o.cluster, c->o.store);
}

/* Reads the existing lines; a missing file has none. */
static int read_places(const struct store_claim *c, struct buf *out, struct err *e)
{
    char *path = places_file(c);
    int rc = fs_read(path, PLACES_BYTES_MAX, out, e);
    free(path);
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

static bool has_line(const char *text, const char *line)
{
    for (const char *at = text; (at = strstr(at, line)); at++)
        if (at == text || at[-1] == '\n')
            return true;
    return false;
}

static int note_place(const struct store_claim *c, struct err *e)
{
    char *path = places_file(c), *line = place_line(c);
    struct buf text = {0};
    int rc = read_places(c, &text, e);
    if (!rc && !has_line(buf_str(&text), line)) {
        buf_adds(&text, line);
        rc = fs_write_atomic(path, text.data, text.len, 0600, e);
    }
    buf_deinit(&text);
    free(line);
    free(path);
    return rc;
}

/* ---- on the loop ---- */

static void check_free(struct check *k)
{
    store_net_destroy(k->net);
    free(k);
}

static void set_text(struct store_claim *c, const struct check *k)
{
    bool is_same = str_eq(c->text, k->e.text);
    STR_COPY(c->text, k->e.text);
    if (!is_same && !c->o.reads_only) /* else the caller reports it */
        log_error(
            "the store of checkpoints cannot be used: jobs that need it wait", log_err(&k->e));
}

static void take_ours(struct store_claim *c, const struct check *k)
{
    struct err e;
    if (!c->o.reads_only && note_place(c, &e) != 0)
        log_warn("the ownership of the store could not be recorded", log_err(&e));
    if (k->is_new)
        log_info("the store of checkpoints is marked as this cluster's", log_s("store", k->url),
            log_s("uid", k->uid));
    c->text[0] = '\0';
    c->is_ours = c->is_over = true;
    if (!c->o.reads_only)
        timer_start(c->o.timers, &c->retry, WATCH_MS);
    if (!c->is_starting)
        c->o.changed(c->o.ctx);
}

/* A store that does not answer, or has lost its marker, stays ours: those who use it report it. */
static void watched(struct store_claim *c, const struct check *k)
{
    if (k->found != FOUND_OTHER_OWNER) {
        timer_start(c->o.timers, &c->retry, WATCH_MS);
        return;
    }
    c->is_ours = false;
    STR_COPY(c->text, k->e.text);
    c->o.lost(c->o.ctx, c->text);
}

static void finish(struct check *k)
{
    struct store_claim *c = k->claim;
    struct err e;
    if (!c) {
        check_free(k);
        return;
    }
    c->now = NULL;
    c->on_thread = false;
    c->rc = k->rc;
    timer_stop(c->o.timers, &c->limit);
    if (k->rc == ERR_DENIED)
        keys_source_refused(&c->keys);
    if (k->is_watch) {
        watched(c, k);
    } else if (k->rc == 0) {
        take_ours(c, k);
    } else if (k->found == FOUND_NUMBERS && c->is_starting &&
               c->o.raise(c->o.ctx, k->last_job + 1, &e) == 0) {
        c->next_job = k->last_job + 1;
        timer_start(c->o.timers, &c->retry, 0);
    } else {
        set_text(c, k);
        c->is_refused = k->found == FOUND_OTHER_OWNER;
        c->is_over = c->is_over || k->found == FOUND_MISSING || c->is_refused || c->o.reads_only;
        timer_start(c->o.timers, &c->retry,
            prng_backoff_ms(c->o.prng, c->tries++, RETRY_BASE_MS, RETRY_CAP_MS));
    }
    check_free(k);
}

static void on_done(void *ctx)
{
    finish(ctx);
}

static void on_limit(struct timer *t, void *ctx)
{
    struct store_claim *c = ctx;
    (void)t;
    if (c->now)
        atomic_store(&c->now->cancel, 1);
}

static void on_keys(void *ctx, const struct err *e)
{
    struct store_claim *c = ctx;
    if (e) {
        c->now->e = *e;
        c->now->rc = e->kind;
        finish(c->now);
        return;
    }
    c->on_thread = true;
    timer_start(c->o.timers, &c->limit, CHECK_MS);
    uv_run_work(c->o.loop, on_thread, on_done, c->now);
}

static bool is_known(const struct store_claim *c, bool *ret_any)
{
    char *line = place_line(c);
    struct buf text = {0};
    struct err e;
    bool known = true; /* if the file cannot be read: a known store is never created anew */
    *ret_any = true;
    if (read_places(c, &text, &e) == 0) {
        known = has_line(buf_str(&text), line);
        *ret_any = text.len > 0;
    }
    buf_deinit(&text);
    free(line);
    return known;
}

static void start_check(struct store_claim *c)
{
    struct check *k = mem_alloc(sizeof(*k));
    bool any;
    *k = (struct check){.claim = c, .next_job = c->next_job, .found = FOUND_NOTHING};
    k->epoch = c->o.epoch;
    k->is_watch = c->is_ours;
    k->is_known = is_known(c, &any);
    k->had_checkpoints = c->o.had_checkpoints && !any;
    k->reads_only = c->o.reads_only;
    k->now_ms = clock_wall(&clock_system).ms;
    STR_COPY(k->url, c->o.store);
    STR_COPY(k->cluster, c->o.cluster);
    STR_COPY(k->uid, c->o.cluster_uid);
    c->now = k;
    keys_source_get_net(&c->keys, k->url, &k->net, on_keys, c);
}

static void on_retry(struct timer *t, void *ctx)
{
    (void)t;
    start_check(ctx);
}

static void on_start_over(struct timer *t, void *ctx)
{
    (void)t;
    *(bool *)ctx = true;
}

int store_claim_begin(
    const struct store_claim_options *o, struct store_claim **ret_claim, struct err *e)
{
    struct store_claim *c = mem_alloc(sizeof(*c));
    struct timer start;
    bool timed_out = false;
    *c = (struct store_claim){.o = *o,
        .keys = {.timers = o->timers, .http = o->http},
        .is_starting = true,
        .next_job = o->next_job};
    timer_init(&c->retry, on_retry, c);
    timer_init(&c->limit, on_limit, c);
    timer_init(&start, on_start_over, &timed_out);
    timer_start(o->timers, &start, o->reads_only ? READ_MS : START_MS);
    start_check(c);
    while (!c->is_over && !timed_out)
        uv_run(o->loop, UV_RUN_ONCE);
    timer_stop(o->timers, &start);
    c->is_starting = false;
    c->is_over = true;
    if (!c->is_ours && !c->text[0])
        str_copy(c->text, sizeof(c->text), "the store of checkpoints does not answer");
    int rc = c->is_refused ? err_set(e, ERR_CONFIG, "%s", c->text) : 0;
    if (rc == 0 && o->reads_only && !c->is_ours)
        rc = err_set(e, c->rc != 0 ? (enum err_kind)c->rc : ERR_TIMEOUT,
            "store: %.200s cannot be used, and jobs that need it would wait: %s", o->store,
            c->text);
    if (rc != 0)
        store_claim_destroy(c);
    else
        *ret_claim = c;
    return rc;
}

bool store_claim_is_ours(const struct store_claim *c)
{
    return c->is_ours;
}

const char *store_claim_text(const struct store_claim *c)
{
    return c->is_ours ? "" : c->text;
}

void store_claim_destroy(struct store_claim *c)
{
    if (!c)
        return;
    timer_stop(c->o.timers, &c->retry);
    timer_stop(c->o.timers, &c->limit);
    keys_source_deinit(&c->keys);
    if (c->now && c->on_thread) {
        c->now->claim = NULL;
        atomic_store(&c->now->cancel, 1);
    } else if (c->now) {
        check_free(c->now);
    }
    free(c);
}
