/* SPDX-License-Identifier: Apache-2.0
 *
 * See reload.h. The policy is not exchanged in place: the model leaves the former one job by job
 * and needs both meanwhile, so the model's is that of `kept`, the configuration that was read last.
 * The daemon's struct config has a shallow copy of it, and what it had at the start comes back in
 * reload_destroy, for its owner. The teams that users joined by signing in belong to the daemon's
 * and go from copy to copy.
 */
#include "scheduler/reload.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "scheduler/config/changes.h"
#include "scheduler/core/model/settings.h"
#include "scheduler/pools.h"
#include <stdlib.h>

struct reloading {
    struct reload *reload;
    struct config *next;
    struct buf text;
    json_t *changes;
    struct model_settings settings;
    bool is_applied;
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

static void end(struct reloading *x, const struct err *e)
{
    if (x->done)
        x->done(x->ctx, e, e ? NULL : x->changes);
    if (x->next)
        config_deinit(x->next);
    free(x->next);
    json_decref(x->changes);
    buf_deinit(&x->text);
    free(x);
}

static bool changes_limits(const json_t *changes)
{
    size_t i;
    const json_t *c;
    json_array_foreach((json_t *)changes, i, c)
    {
        if (str_starts(json_string_value(json_object_get(c, "key")), "limits"))
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
    if (rc == 0 && changes_limits(x->changes) && pools_are_applied(r->o.pools))
        rc = err_set(e, ERR_CONFLICT,
            "%s: nothing was changed, because the limits in force are those of belay pools apply: "
            "change them there",
            path);
    return rc;
}

/* The daemon's configuration takes the policy of next, which stays alive as the model's. */
static void exchange(struct reload *r, struct config *next)
{
    struct config *c = r->o.config;
    struct smap *joined = c->policy.joined;
    if (!r->kept)
        r->first = c->policy;
    if (next->policy.joined) {
        smap_deinit(next->policy.joined); /* empty: nobody has signed in to it */
        free(next->policy.joined);
    }
    next->policy.joined = joined;
    c->policy = next->policy;
    config_swap_live(c, next);
    free_kept(r);
    r->kept = next;
}

static int put_in_force(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct reloading *x = ctx;
    struct reload *r = x->reload;
    struct config *next = x->next;
    struct retry_options *retries = &r->o.config->retries; /* read in place: after exchange */
    x->settings = (struct model_settings){.no_progress_max = next->no_progress_max,
        .node_failures = next->failing_nodes,
        .retention_ms = next->retention.checkpoints_ms,
        .retries = retries,
        .policy = &next->policy};
    struct event ev = {.type = EV_SETTINGS, .settings = &x->settings};
    int rc = tick_apply(t, &ev, ret_id, e);
    if (rc != 0)
        return rc;
    exchange(r, next);
    x->next = NULL;
    x->is_applied = true;
    struct event limits = {.type = EV_LIMITS,
        .limits = {.max_nodes = r->o.config->max_nodes,
            .max_gpus = r->o.config->max_gpus,
            .max_uusd_h = r->o.config->max_uusd_h}};
    return changes_limits(x->changes) ? tick_apply(t, &limits, ret_id, e) : 0;
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
        r->o.applied(r->o.ctx);
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
