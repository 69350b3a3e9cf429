/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows as the JSON of docs/reference/api.md. An unknown value is null.
 */
#include "scheduler/api/api_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "job/spec_json.h"
#include "scheduler/api/json_constraints.h"
#include "scheduler/core/supply/base_load.h"
#include "scheduler/core/queue/cron_after.h"
#include "scheduler/core/queue/cron_days.h"
#include "scheduler/core/queue/crons.h"
#include <stdlib.h>

json_t *api_json_time(struct wall w)
{
    char text[TIME_ISO_MAX];
    if (!wall_is_set(w))
        return json_null();
    time_format_iso(w, text);
    return json_string(text);
}

static int compare_by_key(const void *a, const void *b, void *key)
{
    int64_t x = json_integer_value(json_object_get(*(json_t *const *)a, key));
    int64_t y = json_integer_value(json_object_get(*(json_t *const *)b, key));
    return (x < y) - (x > y);
}

json_t *api_sort_descending(json_t *items, const char *key)
{
    size_t n = json_array_size(items), i;
    json_t **v = mem_array(n, sizeof(json_t *)), *list = json_array();
    for (i = 0; i < n; i++)
        v[i] = json_array_get(items, i);
    if (n > 1)
        qsort_r(v, n, sizeof(json_t *), compare_by_key, (void *)(uintptr_t)key);
    for (i = 0; i < n; i++)
        json_array_append(list, v[i]);
    json_decref(items);
    free(v);
    return list;
}

json_t *api_json_opt(int64_t value, int64_t none)
{
    return value == none ? json_null() : json_integer(value);
}

json_t *api_json_opt_text(const char *s)
{
    return s && s[0] ? json_text(s) : json_null();
}

static json_t *opt_end(enum end_kind end)
{
    return end == END_NONE ? json_null() : json_string(end_kind_names[end]);
}

static json_t *json_ref(struct ckpt_ref ref)
{
    if (ref.attempt == 0)
        return json_null();
    return json_pack(
        "{s:I,s:I}", "attempt", (json_int_t)ref.attempt, "sequence", (json_int_t)ref.sequence);
}

static void set(json_t *o, const char *key, json_t *v)
{
    json_object_set_new(o, key, v);
}

static void set_i(json_t *o, const char *key, int64_t v)
{
    set(o, key, json_integer(v));
}

static void set_resources(json_t *o, const struct resources *r)
{
    set_i(o, "cpus", r->cpus);
    set_i(o, "memory_mib", r->memory_mib);
    set_i(o, "gpus", r->gpus);
}

static json_t *last_checkpoint(const struct job_row *j)
{
    json_t *o = json_ref(j->last_good);
    if (json_is_null(o))
        return o;
    set(o, "progress", api_json_opt(j->last_good_progress, PROGRESS_NONE));
    set(o, "saved_at", api_json_time(j->last_good_at));
    set_i(o, "bytes", j->ckpt_bytes);
    return o;
}

static json_t *retry_json(const struct job_row *j)
{
    json_t *o = json_object();
    for (int k = 0; k < RETRY_KINDS; k++)
        set(o, retry_kind_names[k],
            json_pack("{s:o,s:i}", "limit", api_json_opt(j->spec.retries.n[k], RETRIES_UNLIMITED),
                "used", (int)j->used[k]));
    return o;
}

json_t *api_json_job(const struct job_row *j, const char *node_name)
{
    json_t *o = json_object();
    set_i(o, "id", j->id);
    job_spec_show(&j->spec, o);
    if (j->spec.nodes_min == j->spec.nodes)
        set(o, "on_loss", json_null());
    set(o, "user", json_text(j->user));
    set(o, "priority", json_null());
    set(o, "why", json_null());
    set(o, "pool_used", json_null());
    set(o, "state", json_string(sm_name(&job_sm, j->state)));
    set(o, "end", opt_end(j->end));
    set(o, "exit_code", j->end == END_NONE ? json_null() : json_integer(j->exit_code));
    set(o, "ranks", api_json_opt(j->ranks, 0));
    set_i(o, "attempts", j->attempts);
    set_i(o, "reclaims", j->reclaims);
    set(o, "requeue", json_boolean(!retries_are_none(j)));
    set(o, "retry", retry_json(j));
    set(o, "node", api_json_opt_text(node_name));
    set(o, "progress", api_json_opt(j->progress, PROGRESS_NONE));
    set(o, "progress_total", api_json_opt(j->progress_total, PROGRESS_NONE));
    set(o, "last_checkpoint", last_checkpoint(j));
    set(o, "save_ms", api_json_opt(j->save_ms, 0));
    set(o, "pause_ms", j->save_ms > 0 ? json_integer(j->pause_ms) : json_null());
    set(o, "save_interval_ms", json_null());
    set(o, "reclaims_per_hour", json_null());
    set(o, "usage", json_null());
    set(o, "requeue_asked_at", json_null());
    set(o, "idle_gpus_since", json_null());
    set(o, "idle_gpus_parks_at", json_null());
    set_i(o, "lost_ms", j->lost_ms);
    set_i(o, "lost_steps", j->lost_steps);
    set_i(o, "cost_uusd", j->cost_uusd);
    set_i(o, "on_demand_uusd", j->on_demand_uusd);
    set(o, "array_id", api_json_opt(j->array, CORE_ID_NONE));
    set(o, "array_index", j->array == CORE_ID_NONE ? json_null() : json_integer(j->array_index));
    set(o, "hold", json_string(hold_names[j->hold]));
    set(o, "pace",
        j->spec.finish_ms ? json_string(procurement_names[j->procurement]) : json_null());
    set(o, "cron", api_json_opt(j->cron, CORE_ID_NONE));
    set(o, "cron_at", j->cron == CORE_ID_NONE ? json_null() : api_json_time(j->cron_at));
    set(o, "submitted_at", api_json_time(j->submitted_at));
    set(o, "eligible_at", api_json_time(j->eligible_at));
    set(o, "started_at", api_json_time(j->started_at));
    set(o, "attempt_started_at", json_null());
    set(o, "ended_at", api_json_time(j->ended_at));
    return o;
}

json_t *api_json_array(const struct array_row *a)
{
    json_t *o = json_object();
    set(o, "tasks", json_text(a->tasks));
    set(o, "left", api_json_opt_text(a->left));
    set(o, "at_once", api_json_opt(a->at_once, 0));
    set_i(o, "succeeded", a->n_succeeded);
    set_i(o, "other", a->n_other);
    return o;
}

json_t *api_json_dependency(const struct dependency_row *d)
{
    json_t *o = json_object();
    set(o, "kind", json_string(depend_kind_names[d->kind]));
    set_i(o, "job", d->on);
    set(o, "task", d->of_task ? json_integer(d->task) : json_null());
    set_i(o, "delay_ms", d->delay_ms);
    set(o, "state", json_string(sm_name(&depend_sm, d->state)));
    return o;
}

#define UPCOMING 5

#define LEFT_OUT 20 /* of days that calendars leave out, before the last of the next times */

/* Adds the entry's next times, in the local time of its zone, and those that are left out. */
static void add_upcoming(
    json_t *o, const struct model *m, const struct cron_row *r, const struct cron_entry *live)
{
    json_t *next = json_array(), *left_out = json_array();
    const struct cron_entry *root = live ? core_cron_root(m, live) : NULL;
    bool is_shown = live && live->row.state == CRON_ACTIVE && root->zone && live->zone;
    char text[ZONE_TIME_MAX], why[CORE_TEXT_MAX];
    struct wall at = !is_shown ? WALL_NONE : root == live ? r->next_at : root->row.next_at;
    while (wall_is_set(at) && json_array_size(next) < UPCOMING &&
           json_array_size(left_out) < LEFT_OUT) {
        zone_format(live->zone, at, text);
        if (core_cron_leaves_out(m, live, at, why))
            json_array_append_new(
                left_out, json_pack("{s:s,s:o}", "at", text, "why", json_text(why)));
        else
            json_array_append_new(next, json_string(text));
        at = cron_next(&root->cron, root->zone, root->row.gap, root->row.twice, at);
    }
    set(o, "upcoming", next);
    set(o, "left_out", left_out);
}

static void add_after(json_t *o, const struct model *m, const struct cron_row *r)
{
    const struct cron_entry *other = model_cron(m, r->after);
    set(o, "after", api_json_opt(r->after, CORE_ID_NONE));
    set(o, "after_name", api_json_opt_text(other ? other->row.name : NULL));
    set(o, "after_end", json_string(cron_after_end_names[r->after_end]));
}

json_t *api_json_cron(const struct api *a, const struct cron_row *r, const struct cron_entry *live)
{
    const struct model *m = tick_model(a->o.tick);
    struct wall at[CRON_WAITING_MAX];
    size_t n = core_cron_waiting(r, at);
    char done_by[16];
    json_t *o = json_object(), *waiting = json_array();
    for (size_t k = 0; k < n; k++)
        json_array_append_new(waiting, api_json_time(at[k]));
    set_i(o, "id", r->id);
    set(o, "name", json_text(r->name));
    set(o, "user", json_text(r->user));
    set(o, "team", api_json_opt_text(api_object_of_cron(a, r, live).team));
    set(o, "state", json_string(sm_name(&cron_sm, r->state)));
    set(o, "schedule", json_text(r->schedule));
    add_after(o, m, r);
    set(o, "zone", json_text(r->zone));
    set(o, "gap", json_string(cron_gap_names[r->gap]));
    set(o, "twice", json_string(cron_twice_names[r->twice]));
    set(o, "overlap", json_string(cron_overlap_names[r->overlap]));
    set(o, "catch_up", json_string(cron_catch_up_names[r->catch_up]));
    set_i(o, "catch_up_max", r->catch_up_max);
    set(o, "skip_on", api_json_opt_text(r->skip_on));
    set(o, "only_on", api_json_opt_text(r->only_on));
    snprintf(
        done_by, sizeof(done_by), "%02d:%02d", (r->done_by - 1) / 60 % 24, (r->done_by - 1) % 60);
    set(o, "done_by", r->done_by ? json_string(done_by) : json_null());
    set(o, "created_at", api_json_time(r->created_at));
    set(o, "next_at", api_json_time(r->next_at));
    add_upcoming(o, m, r, live);
    set(o, "waiting", waiting);
    set(o, "last_job", api_json_opt(r->last_job, CORE_ID_NONE));
    set_i(o, "started", r->started);
    set_i(o, "skipped", r->skipped);
    set_i(o, "missed", r->missed);
    set(o, "why", api_json_opt_text(live ? live->why : NULL));
    return o;
}

json_t *api_json_cron_run(struct db_reader *reader, const struct cron_run_row *r)
{
    struct job_row job = {0};
    json_t *o = json_object();
    /* The retention deletes jobs before runs. */
    bool has_job =
        r->job != CORE_ID_NONE && db_read_job(reader, r->job, &job, &(struct err){0}) == 0;
    set_i(o, "number", r->number);
    set(o, "at", api_json_time(r->at));
    set(o, "by_hand", json_boolean(r->by_hand));
    set(o, "outcome", json_string(cron_outcome_names[r->outcome]));
    set_i(o, "times", r->times);
    set(o, "job", api_json_opt(r->job, CORE_ID_NONE));
    set(o, "decided_at", api_json_time(r->decided_at));
    set(o, "text", api_json_opt_text(r->text));
    set(o, "end", has_job && job.state == JOB_ENDED ? opt_end(job.end) : json_null());
    set(o, "started_at", has_job ? api_json_time(job.started_at) : json_null());
    set(o, "ended_at", has_job ? api_json_time(job.ended_at) : json_null());
    return o;
}

json_t *api_json_ref(struct db_reader *r, int64_t job)
{
    struct job_ref ref;
    struct err e;
    if (job == CORE_ID_NONE)
        return json_null();
    if (db_read_job_ref(r, job, &ref, &e) != 0)
        log_error("the name of a job cannot be read", log_i("job", job), log_err(&e));
    return json_string(ref.s);
}

json_t *api_json_drill(struct db_reader *r, const struct drill_row *d)
{
    json_t *o = json_object();
    set_i(o, "job", d->job);
    set(o, "ref", api_json_ref(r, d->job));
    set_i(o, "number", d->number);
    set(o, "state", json_string(sm_name(&drill_sm, d->state)));
    set(o, "text", api_json_opt_text(d->text));
    set(o, "script_key", api_json_opt_text(d->script_key));
    set(o, "user", json_text(d->user));
    set(o, "name", json_text(d->name));
    set(o, "method", json_string(ckpt_method_names[d->method]));
    set(o, "without_notice", json_boolean(d->without_notice));
    set(o, "by", api_json_opt_text(d->by));
    set(o, "version", json_text(d->version));
    set_i(o, "method_version", d->method_version);
    set(o, "asked_at", api_json_time(d->asked_at));
    set(o, "killed_at", api_json_time(d->killed_at));
    set(o, "resumed_at", api_json_time(d->resumed_at));
    set(o, "ended_at", api_json_time(d->ended_at));
    set_i(o, "attempt", d->attempt);
    set_i(o, "node", d->node);
    set(o, "saved", json_ref(d->saved));
    set(o, "saved_progress", api_json_opt(d->saved_progress, PROGRESS_NONE));
    set_i(o, "bytes", d->bytes);
    set(o, "save_ms", api_json_opt(d->save_ms, 0));
    set_i(o, "lost_ms", d->lost_ms);
    set(o, "lost_steps", api_json_opt(d->lost_steps, PROGRESS_NONE));
    set(o, "resumed_attempt", api_json_opt(d->resumed_attempt, 0));
    set(o, "resumed_node", api_json_opt(d->resumed_node, 0));
    set(o, "restore_ms", api_json_opt(d->resumed_attempt ? d->restore_ms : INT64_MIN, INT64_MIN));
    set(o, "progress", api_json_opt(d->progress, PROGRESS_NONE));
    set(o, "resume_ms", api_json_opt(d->resume_ms, 0));
    set(o, "compared_with", api_json_opt(d->compared_with, 0));
    set(o, "compared_with_ref", api_json_ref(r, d->compared_with));
    return o;
}

json_t *api_json_ckpt_gc(const struct ckpt_gc_row *l)
{
    json_t *o = json_object();
    /* the cleaning is done: only the size of what remains is still read, for the bill */
    bool is_over = l->closed && !wall_is_set(l->last_at);
    enum ckpt_gc_state state = is_over ? CKPT_GC_DONE : l->state;
    set(o, "state", json_string(sm_name(&ckpt_gc_sm, state)));
    set(o, "keep", json_string(ckpt_gc_keep_names[core_ckpt_gc_keep(l)]));
    set(o, "due_at", state == CKPT_GC_DONE ? json_null() : api_json_time(l->due_at));
    set_i(o, "tries", l->tries);
    return o;
}

json_t *api_json_restart(const struct restart_moments *m)
{
    struct restart_parts p;
    restart_parts(m, &p);
    json_t *o = json_object();
    set(o, "stopped_at", api_json_time(m->stopped_at));
    set_i(o, "lost_ms", m->lost_ms);
    set_i(o, "wait_ms", p.wait_ms);
    set_i(o, "launch_ms", p.launch_ms);
    set_i(o, "boot_ms", p.boot_ms);
    set_i(o, "agent_ms", p.agent_ms);
    set_i(o, "place_ms", p.place_ms);
    set_i(o, "prepare_ms", p.prepare_ms);
    set_i(o, "restore_ms", p.restore_ms);
    set(o, "warm_up_ms", api_json_opt(p.warm_up_ms, 0));
    return o;
}

json_t *api_json_attempt(const struct attempt_row *a)
{
    json_t *o = json_object();
    set_i(o, "attempt", a->attempt);
    set_i(o, "rank", a->rank);
    set_i(o, "node", a->node);
    set(o, "state", json_string(sm_name(&attempt_sm, a->state)));
    set(o, "end", opt_end(a->end));
    set(o, "exit_code", a->end == END_NONE ? json_null() : json_integer(a->exit_code));
    set(o, "assigned_at", api_json_time(a->assigned_at));
    set(o, "started_at", api_json_time(a->started_at));
    set(o, "ended_at", api_json_time(a->ended_at));
    set(o, "restored", json_ref(a->restored));
    set(o, "restored_progress", api_json_opt(a->restored_progress, PROGRESS_NONE));
    set(o, "restored_bytes", api_json_opt(a->restored_bytes, 0));
    set(o, "fetched_bytes",
        a->restored_bytes > 0 ? json_integer(a->restored_bytes - a->nearby_bytes) : json_null());
    set_i(o, "restore_ms", a->restore_ms);
    set_i(o, "behind_ms", a->behind_ms);
    set_i(o, "save_ms", a->save_ms);
    set_i(o, "checkpoints", a->sequence);
    set(o, "cpu_ms", api_json_opt(a->cpu_ms, 0));
    set(o, "cpu_user_ms", api_json_opt(a->cpu_user_ms, 0));
    set(o, "memory_peak_bytes", api_json_opt(a->memory_peak, 0));
    set_i(o, "price_uusd_h", a->price_uusd_h);
    set_i(o, "on_demand_uusd_h", a->on_demand_uusd_h);
    set(o, "restart", json_null());
    set(o, "text", api_json_opt_text(a->text));
    return o;
}

json_t *api_json_event(struct db_reader *r, const struct history_row *h, bool is_hidden)
{
    return api_json_event_of(h, api_json_ref(r, h->job), is_hidden);
}

json_t *api_json_event_of(const struct history_row *h, json_t *ref, bool is_hidden)
{
    json_t *o = json_object();
    set_i(o, "id", h->id);
    set(o, "job", api_json_opt(h->job, CORE_ID_NONE));
    set(o, "ref", ref);
    set(o, "attempt", api_json_opt(h->attempt, 0));
    set(o, "node", api_json_opt(h->node, CORE_ID_NONE));
    set(o, "instance", api_json_opt(h->instance, CORE_ID_NONE));
    set(o, "at", api_json_time(h->at));
    set(o, "kind", json_text(h->kind));
    set(o, "text",
        is_hidden ? json_string("not shown: the job is another user's") : json_text(h->text));
    set(o, "a", is_hidden ? json_null() : api_json_opt(h->a, PROGRESS_NONE));
    set(o, "b", is_hidden ? json_null() : api_json_opt(h->b, PROGRESS_NONE));
    return o;
}

json_t *api_json_checkpoint(const struct checkpoint_row *c)
{
    json_t *o = json_ref(c->ref);
    set_i(o, "node", c->node);
    set(o, "saved_at", api_json_time(c->saved_at));
    set_i(o, "bytes", c->bytes);
    set_i(o, "stored_bytes", c->stored_bytes);
    set_i(o, "took_ms", c->took_ms);
    set_i(o, "pause_ms", c->pause_ms);
    set(o, "progress", api_json_opt(c->progress, PROGRESS_NONE));
    set(o, "cause", json_text(c->cause));
    return o;
}

json_t *api_json_ledger(const struct ledger_row *l)
{
    json_t *o = json_object();
    set(o, "attempt", api_json_opt(l->attempt, 0));
    set(o, "node", api_json_opt(l->node, CORE_ID_NONE));
    set(o, "instance", api_json_opt(l->instance, CORE_ID_NONE));
    set(o, "kind", json_string(ledger_kind_names[l->kind]));
    set(o, "from", api_json_time(l->from));
    set(o, "to", api_json_time(l->to));
    set_i(o, "ms", l->ms);
    set_i(o, "node_ms", l->node_ms);
    set_i(o, "uusd", l->uusd);
    set_i(o, "on_demand_uusd", l->on_demand_uusd);
    return o;
}

int64_t api_count(const struct list *l)
{
    int64_t n = 0;
    LIST_FOREACH (l, it)
        n++;
    return n;
}

json_t *api_json_node(const struct node_row *n, const struct node *live, struct mono now)
{
    json_t *o = json_object();
    set_i(o, "id", n->id);
    set(o, "name", json_text(n->name));
    set(o, "pool", json_text(n->pool));
    set(o, "instance", api_json_opt(n->instance, CORE_ID_NONE));
    set(o, "state", json_string(sm_name(&node_sm, n->state)));
    set_resources(o, &n->total);
    set(o, "market", json_string(market_names[n->market]));
    set_i(o, "price_uusd_h", n->price_uusd_h);
    set(o, "notice",
        n->notice == NOTICE_TYPE_NONE ? json_null() : json_string(notice_type_names[n->notice]));
    set(o, "notice_deadline", api_json_time(n->notice_deadline));
    set(o, "joined_at", api_json_time(n->joined_at));
    set(o, "gone_at", api_json_time(n->gone_at));
    set(o, "address", api_json_opt_text(n->address));
    set(o, "version", api_json_opt_text(n->version));
    set(o, "criu", json_string(criu_ability_names[n->criu]));
    set(o, "criu_text", api_json_opt_text(n->criu_text));
    struct counts own = {0};
    if (counts_parse(n->resources, &own, NULL) != 0)
        own = (struct counts){0};
    set(o, "gpu_model", api_json_opt_text(live ? live->gpu.model : n->gpu.model));
    set(o, "gpu_memory_mib", api_json_opt(live ? live->gpu.memory_mib : n->gpu.memory_mib, 0));
    set(o, "features", json_features(live ? live->features : n->features));
    set(o, "resources", json_counts(live ? &live->resources : &own));
    set(o, "resources_free", live ? json_stock(&live->stock) : json_null());
    set(o, "cpus_free", live ? json_integer(live->free.cpus) : json_null());
    set(o, "memory_free_mib", live ? json_integer(live->free.memory_mib) : json_null());
    set(o, "gpus_free", live ? json_integer(live->free.gpus) : json_null());
    int64_t watts = 0;
    const char *rack = live ? core_node_rack(live, &watts) : NULL;
    set(o, "rack", rack ? json_text(rack) : json_null());
    set(o, "watts", rack ? json_integer(watts) : json_null());
    set(o, "throttled",
        json_string(node_throttle_names[live ? live->throttle : NODE_THROTTLE_NONE]));
    set(o, "disk", json_string(live && live->disk_full[0] ? "full" : "ok"));
    set(o, "disk_text", live ? api_json_opt_text(live->disk_full) : json_null());
    set(o, "drain", json_boolean(n->drain));
    set(o, "drain_text", api_json_opt_text(n->drain_text));
    set(o, "fault", api_json_opt_text(n->fault));
    set_i(o, "jobs", live ? api_count(&live->attempts) : 0);
    int64_t cpu_milli = 0, bytes = 0;
    if (live)
        LIST_FOREACH (&live->attempts, l) {
            cpu_milli += LIST_ENTRY(l, struct attempt, on_node)->cpu_milli;
            bytes += LIST_ENTRY(l, struct attempt, on_node)->memory_bytes;
        }
    set(o, "usage",
        json_pack(
            "{s:I,s:I}", "cpu_milli", (json_int_t)cpu_milli, "memory_bytes", (json_int_t)bytes));
    set(o, "silent_ms", live ? json_integer(now.ms - live->last_seen.ms) : json_null());
    return o;
}

json_t *api_json_instance(const struct instance_row *i)
{
    json_t *o = json_object();
    set_i(o, "id", i->id);
    set(o, "provider_id", api_json_opt_text(i->provider_id));
    set(o, "pool", json_text(i->pool));
    set(o, "zone", json_text(i->zone));
    set(o, "type", json_text(i->type));
    set(o, "market", json_string(market_names[i->market]));
    set(o, "state", json_string(sm_name(&instance_sm, i->state)));
    set(o, "node", api_json_opt(i->node, CORE_ID_NONE));
    set_i(o, "price_uusd_h", i->price_uusd_h);
    set_i(o, "on_demand_uusd_h", i->on_demand_uusd_h);
    set(o, "intended_at", api_json_time(i->intended_at));
    set(o, "launched_at", api_json_time(i->launched_at));
    set(o, "joined_at", api_json_time(i->joined_at));
    set(o, "ended_at", api_json_time(i->ended_at));
    set(o, "reclaimed", json_boolean(i->reclaimed));
    set(o, "text", api_json_opt_text(i->text));
    return o;
}

/* The failed boots since the last successful one; null if there are none. */
static json_t *json_boots(const struct pool_boots *b)
{
    if (b->failed == 0)
        return json_null();
    json_t *o = json_object();
    set_i(o, "failed", b->failed);
    set(o, "one_at_a_time", json_boolean(b->wait_ms > 0));
    set(o, "next_launch_at", b->wait_ms > 0 ? api_json_time(b->next_at) : json_null());
    set_i(o, "instance", b->instance);
    set(o, "text", api_json_opt_text(b->text));
    set(o, "console", api_json_opt_text(b->console));
    return o;
}

static json_t *window_of(const struct base_values *v)
{
    return v->window ? json_text(v->window->window.name) : json_null();
}

/* NULL for a pool that keeps no machines. */
static json_t *json_base_load(const struct pool *p, struct wall now)
{
    struct base_view v;
    json_t *o = json_object();
    if (!p->row.elastic || (p->n_windows == 0 && p->row.min_nodes == 0 && p->row.warm_nodes == 0)) {
        json_decref(o);
        return json_null();
    }
    core_base_load(p, now, &v);
    bool changes = wall_is_set(v.next_at);
    set_i(o, "min_nodes", v.now.min_nodes);
    set_i(o, "warm_nodes", v.now.warm_nodes);
    set(o, "window", window_of(&v.now));
    set(o, "next_at", api_json_time(v.next_at));
    set(o, "next_min_nodes", changes ? json_integer(v.next.min_nodes) : json_null());
    set(o, "next_warm_nodes", changes ? json_integer(v.next.warm_nodes) : json_null());
    set(o, "next_window", changes ? window_of(&v.next) : json_null());
    set(o, "launches_from", api_json_time(v.launches_from));
    return o;
}

json_t *api_json_pool(const struct pool *live, struct wall now)
{
    const struct pool_row *p = &live->row;
    json_t *o = json_object();
    set(o, "name", json_text(p->name));
    set(o, "kind", json_string(p->elastic ? "elastic" : "reserved"));
    set(o, "provider", api_json_opt_text(p->provider));
    set(o, "region", api_json_opt_text(p->region));
    set(o, "max_nodes", p->elastic ? json_integer(p->max_nodes) : json_null());
    set(o, "idle_timeout_ms", p->elastic ? json_integer(p->idle_timeout_ms) : json_null());
    set(o, "required_labels", json_features(p->required_labels));
    set(o, "features", json_features(p->features));
    set(o, "resources", json_counts_text(p->resources));
    set(o, "max_gpus", api_json_opt(p->max_gpus, 0));
    set(o, "max_uusd_per_hour", api_json_opt(p->max_uusd_h, 0));
    set(o, "uusd_per_hour", p->elastic ? json_null() : json_integer(p->usd_per_hour_uusd));
    set(o, "base_load", json_base_load(live, now));
    set(o, "boots", json_boots(&p->boots));
    return o;
}

/* Returns until when the offer is not launched, because it was refused or boots of its pool fail;
 * MONO_NONE if neither. */
static struct mono avoided_until(const struct offer *o)
{
    struct mono until = o->row.avoid_until,
                probe = o->pool->row.boots.wait_ms > 0 ? o->pool->probe_at : MONO_NONE;
    return mono_is_set(probe) && (!mono_is_set(until) || probe.ms > until.ms) ? probe : until;
}

/* The provider's words at the last refusal, or a machine's short life; NULL if it is avoided for
 * its pool's boots alone. */
static const char *avoided_why(const struct offer *o, struct mono now)
{
    return mono_is_set(o->row.avoid_until) && o->row.avoid_until.ms > now.ms ? o->why : NULL;
}

json_t *api_json_offer(const struct offer_row *f, const struct offer *live, struct stamp now)
{
    struct mono until = live ? avoided_until(live) : MONO_NONE;
    bool is_avoided = mono_is_set(until) && until.ms > now.mono.ms;
    json_t *o = json_object();
    set(o, "pool", json_text(f->pool));
    set(o, "zone", json_text(f->zone));
    set(o, "type", json_text(f->type));
    set(o, "market", json_string(market_names[f->market]));
    set_resources(o, &f->total);
    set(o, "arch", api_json_opt_text(f->arch));
    set(o, "gpu_model", api_json_opt_text(f->gpu.model));
    set(o, "gpu_memory_mib", api_json_opt(f->gpu.memory_mib, 0));
    set_i(o, "price_uusd_h", f->price_uusd_h);
    set_i(o, "on_demand_uusd_h", f->on_demand_uusd_h);
    set(o, "effective_uusd_h",
        live ? json_integer(core_offer_effective_uusd_h(live)) : json_null());
    set(o, "placement_score",
        live && live->score != OFFER_SCORE_NONE ? json_integer(live->score) : json_null());
    set(o, "withdrawn", json_boolean(f->rank == OFFER_WITHDRAWN));
    set_i(o, "launches", f->launches);
    set_i(o, "refusals", f->refusals);
    set_i(o, "refused_in_a_row", f->refused_in_a_row);
    set_i(o, "early_reclaims_in_a_row", live ? live->early_reclaims_in_a_row : 0);
    set(o, "avoided_ms", is_avoided ? json_integer(until.ms - now.mono.ms) : json_null());
    set(o, "avoided_until",
        is_avoided ? api_json_time((struct wall){now.wall.ms + until.ms - now.mono.ms})
                   : json_null());
    set(o, "avoided_why", api_json_opt_text(live ? avoided_why(live, now.mono) : NULL));
    set_i(o, "failed_boots_of_pool", live ? live->pool->row.boots.failed : 0);
    set_i(o, "reclaims", f->reclaims);
    set(o, "reclaims_per_hour", live ? json_real(core_offer_reclaims_per_hour(live)) : json_null());
    set_i(o, "up_ms", f->up_ms);
    set(o, "boot_ms", f->boots > 0 ? json_integer(f->boot_ms / f->boots) : json_null());
    set_i(o, "rebalances", f->rebalances);
    set_i(o, "rebalances_true", f->rebalances_true);
    return o;
}

json_t *api_json_token(const struct token_row *t, struct wall last_use)
{
    json_t *o = json_object();
    set_i(o, "id", t->id);
    set(o, "kind",
        json_string(t->join      ? "join"
                    : t->session ? "session"
                    : t->login   ? "login"
                                 : "api"));
    set(o, "user", api_json_opt_text(t->user));
    set(o, "admin", json_boolean(t->admin));
    set(o, "role", api_json_opt_text(t->admin ? role_names[ROLE_ADMIN] : t->role));
    set(o, "scope", api_json_opt_text(t->scope));
    set(o, "pool", api_json_opt_text(t->pool));
    set(o, "parent", api_json_opt(t->parent, 0));
    set(o, "created_at", api_json_time(t->created_at));
    set(o, "expires_at", api_json_time(t->expires_at));
    set(o, "used_at", api_json_time(last_use));
    set(o, "revoked", json_boolean(t->revoked));
    return o;
}
