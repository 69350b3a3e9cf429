/* SPDX-License-Identifier: Apache-2.0
 *
 * See reload.h. The policy is not exchanged in place: the model leaves the former one job by job
 * and needs both meanwhile, so the model's is that of `kept`, the configuration that was read last.
 * The daemon's struct config has a shallow copy of it, and what it had at the start comes back in
 * reload_destroy, for its owner. The teams that users joined by signing in belong to the daemon's
 * and go from copy to copy.
 *
 * All else of `kept` is what was in force before, so who still has a pointer to it, such as a
 * notification in progress, may use it until the next reload.
 */
#include "scheduler/reload.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "scheduler/config/changes.h"
#include "scheduler/config/checks.h"
#include "scheduler/core/model/settings.h"
#include "scheduler/pools.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct reloading {
    struct reload *reload;
    struct config *next;
    struct buf text;
    json_t *changes;
    struct model_settings settings;
    struct tables *tables;   /* of next; those before when it is applied */
    struct reload_oidc oidc; /* with changes_oidc: of next */
    bool is_applied, changes_oidc;
    reload_done_fn done;
    void *ctx;
};

struct reload {
    struct reload_options o;
    struct buf text;     /* of the file in force */
    struct config *kept; /* has the model's policy and retries; NULL before the first change */
    struct queue_policy first; /* of the start, while there is kept */
    struct reloading *running; /* one at a time */
};

struct reload *reload_create(const struct reload_options *o)
{
    struct reload *r = mem_alloc(sizeof(*r));
    r->o = *o;
    buf_add(&r->text, o->file->text.data, o->file->text.len);
    return r;
}

static void free_kept(struct reload *r)
{
    if (!r->kept)
        return;
    r->kept->policy.joined = NULL; /* the daemon's has it */
    config_deinit(r->kept);
    free(r->kept);
    r->kept = NULL;
}

void reload_destroy(struct reload *r)
{
    if (!r)
        return;
    if (r->kept) {
        r->first.joined = r->o.config->policy.joined;
        r->o.config->policy = r->first;
        free_kept(r);
    }
    buf_deinit(&r->text);
    free(r);
}

/* ---- one reload ---- */

void reload_oidc_free(struct reload_oidc *o)
{
    oidc_destroy(o->oidc);
    if (o->config)
        config_oidc_deinit(o->config);
    free(o->config);
    *o = (struct reload_oidc){0};
}

static void end(struct reloading *x, const struct err *e)
{
    if (x->done)
        x->done(x->ctx, e, e ? NULL : x->changes);
    if (x->next)
        config_deinit(x->next);
    free(x->next);
    tables_destroy(x->tables);
    reload_oidc_free(&x->oidc);
    json_decref(x->changes);
    buf_deinit(&x->text);
    free(x);
}

/* Whether the key changes, or one below it. */
static bool changes(const struct reloading *x, const char *key)
{
    size_t i, n = strlen(key);
    const json_t *c;
    json_array_foreach(x->changes, i, c)
    {
        const char *path = json_string_value(json_object_get(c, "key"));
        if (str_starts(path, key) && (path[n] == '\0' || path[n] == '.'))
            return true;
    }
    return false;
}

static int read_file(struct reloading *x, struct err *e)
{
    const struct config_file *f = x->reload->o.file;
    struct config next;
    if (!f->path)
        return err_set(e, ERR_CONFLICT,
            "belayd was started without a configuration file, so there is none to read again");
    int rc = fs_read(f->path, YAML_BYTES_MAX, &x->text, e);
    if (rc == 0)
        rc = config_parse(f->path, buf_str(&x->text), x->text.len, f->state, &next, e);
    if (rc != 0)
        return rc;
    x->next = mem_alloc(sizeof(*x->next));
    *x->next = next;
    return 0;
}

static int make_oidc(struct reloading *x, struct err *e)
{
    const struct reload_options *o = &x->reload->o;
    x->changes_oidc = changes(x, "oidc");
    if (!x->changes_oidc || !x->next->oidc.issuer)
        return 0;
    x->oidc.config = mem_dup(&x->next->oidc, sizeof(x->next->oidc));
    x->next->oidc = (struct config_oidc){0};
    return oidc_create(
        &(struct oidc_options){.http = o->http, .timers = o->timers, .config = x->oidc.config},
        &x->oidc.oidc, e);
}

/* What the model gets, and whether it takes it. */
static int make_settings(struct reloading *x, struct err *e)
{
    struct config *next = x->next;
    int rc = tables_create(next, x->reload->o.zones, &x->tables, e);
    if (rc != 0)
        return rc;
    x->tables->other.has_other_budgets = changes(x, "budgets") || changes(x, "windows");
    x->tables->other.has_other_racks = changes(x, "racks") || changes(x, "node_types");
    x->settings = (struct model_settings){.lease_ms = next->lease_ms,
        .store_wait_ms = next->store_wait_ms,
        .no_progress_max = next->no_progress_max,
        .node_failures = next->failing_nodes,
        .retention_ms = next->retention.checkpoints_ms,
        .retries = &x->reload->o.config->retries, /* read in place: after exchange */
        .policy = &next->policy,
        .tables = &x->tables->other};
    return core_check_settings(tick_model(x->reload->o.tick), &x->settings, e);
}

/* A file of a webhook or of mail is read when it is needed. Without this check a missing one would
 * be noticed when the first message is lost. */
static int check_files(const struct reloading *x, struct err *e)
{
    if (!changes(x, "webhooks") && !changes(x, "mail") && !changes(x, "digest"))
        return 0;
    int rc = config_check_notify_files(&x->next->notify, e);
    return rc == 0 ? 0 : err_wrap(e, "%s: nothing was changed", x->reload->o.file->path);
}

static int prepare(struct reloading *x, struct err *e)
{
    struct reload *r = x->reload;
    const char *path = r->o.file->path;
    int rc = read_file(x, e);
    if (rc != 0)
        return rc;
    rc = config_changes(path, &r->text, &x->text, &x->changes, e);
    if (rc == 0)
        rc = config_check_changes(path, x->changes, e);
    if (rc == 0 && changes(x, "limits") && pools_are_applied(r->o.pools))
        rc = err_set(e, ERR_CONFLICT,
            "%s: nothing was changed, because the limits in force are those of belay pools apply: "
            "change them there",
            path);
    if (rc == 0)
        rc = check_files(x, e);
    if (rc == 0)
        rc = make_settings(x, e);
    if (rc == 0)
        rc = make_oidc(x, e);
    return rc;
}

/* The teams that users joined by signing in, which are there while users can sign in. */
static void take_joined(const struct config *c, struct config *next)
{
    struct smap *joined = c->policy.joined, *unused = next->policy.joined;
    if (!joined || !unused)
        return;
    next->policy.joined = joined;
    smap_deinit(unused); /* empty: nobody has signed in to it */
    free(unused);
}

static void free_joined(struct smap *joined)
{
    const char *user;
    char *teams;
    for (size_t pos = 0; joined && (teams = smap_next(joined, &pos, &user));)
        free(teams);
    if (joined)
        smap_deinit(joined);
    free(joined);
}

/* The daemon's configuration takes what is next, which stays alive with what was before. */
static void exchange(struct reload *r, struct reloading *x)
{
    struct config *c = r->o.config, *next = x->next;
    struct smap *joined = c->policy.joined;
    struct tables *tables = *r->o.tables;
    if (!r->kept)
        r->first = c->policy;
    c->policy = next->policy;
    if (joined != c->policy.joined)
        free_joined(joined);
    config_swap_live(c, next);
    *r->o.tables = x->tables;
    x->tables = tables;
    free_kept(r);
    r->kept = next;
}

static int put_in_force(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct reloading *x = ctx;
    struct reload *r = x->reload;
    struct event ev = {.type = EV_SETTINGS, .settings = &x->settings};
    int rc = 0;
    if (x->tables->other.has_other_budgets)
        rc = tables_read_labels(x->tables, r->o.reader, e);
    if (rc == 0)
        rc = core_check_settings(tick_model(t), &x->settings, e);
    if (rc != 0)
        return rc;
    take_joined(r->o.config, x->next);
    rc = tick_apply(t, &ev, ret_id, e);
    assert(rc == 0); /* it was checked */
    exchange(r, x);
    x->next = NULL;
    x->is_applied = true;
    struct event limits = {.type = EV_LIMITS,
        .limits = {.max_nodes = r->o.config->max_nodes,
            .max_gpus = r->o.config->max_gpus,
            .max_uusd_h = r->o.config->max_uusd_h}};
    return changes(x, "limits") ? tick_apply(t, &limits, ret_id, e) : 0;
}

static void on_in_force(void *ctx, const struct err *e, int64_t id)
{
    struct reloading *x = ctx;
    struct reload *r = x->reload;
    (void)id;
    r->running = NULL;
    if (x->is_applied) {
        buf_deinit(&r->text);
        r->text = x->text;
        x->text = (struct buf){0};
        r->o.applied(r->o.ctx, x->changes_oidc ? &x->oidc : NULL);
        if (x->changes_oidc)
            x->oidc = (struct reload_oidc){0};
    }
    if (!e)
        log_info("the configuration was read again", log_s("file", r->o.file->path),
            log_i("changes", (int64_t)json_array_size(x->changes)));
    end(x, e);
}

void reload_run(struct reload *r, bool dry_run, reload_done_fn done, void *ctx)
{
    struct reloading *x = mem_alloc(sizeof(*x));
    struct err e;
    *x = (struct reloading){.reload = r, .done = done, .ctx = ctx};
    int rc = prepare(x, &e);
    if (rc == 0 && !dry_run && r->running)
        rc = err_set(
            &e, ERR_CONFLICT, "the configuration is being read again at this moment: try again");
    if (rc != 0 || dry_run) {
        end(x, rc != 0 ? &e : NULL);
        return;
    }
    r->running = x;
    tick_post_work(r->o.tick, put_in_force, on_in_force, x);
}

/* ---- by a signal ---- */

struct by_signal {
    struct reload *reload;
    struct tick_call *call;
    void (*done)(void *ctx);
    void *ctx;
};

static bool may_record(void *ctx, struct audit_row *row)
{
    (void)ctx, (void)row;
    return true;
}

static void on_signal_done(void *ctx, const struct err *e, const json_t *changes)
{
    struct by_signal *s = ctx;
    (void)changes;
    if (e)
        log_error("the configuration was not read again and stays as it was", log_err(e));
    tick_record_call(s->reload->o.tick, s->call, e ? err_kind_name(e->kind) : "ok");
    tick_call_release(s->call);
    if (s->done)
        s->done(s->ctx);
    free(s);
}

void reload_by_signal(struct reload *r, void (*done)(void *ctx), void *ctx)
{
    struct by_signal *s = mem_alloc(sizeof(*s));
    struct tick_call *call = mem_alloc(sizeof(*call));
    *call = (struct tick_call){
        .row = {.source = "signal", .route = "SIGHUP"}, .may_record = may_record, .refs = 1};
    *s = (struct by_signal){.reload = r, .call = call, .done = done, .ctx = ctx};
    tick_begin_call(r->o.tick, call);
    reload_run(r, false, on_signal_done, s);
    tick_end_call(r->o.tick);
}
