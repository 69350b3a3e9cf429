/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares an agent's status with the model: the differences become facts (see agent_sync.h).
 *
 * Invariant: checkpoints of a status are posted before its end, so that an end never hides the save
 * that came with it.
 */
#include "scheduler/engine/agent_sync_private.h"

#include "base/log.h"
#include "base/str.h"
#include "scheduler/engine/agent_sync_words.h"

void agent_sync_read_constraints(const char *features, const char *resources,
    char ret_features[FEATURES_TEXT_MAX], char ret_resources[COUNTS_TEXT_MAX])
{
    struct counts counts = {0};
    char name[FEATURE_MAX];
    ret_features[0] = '\0';
    for (size_t pos = 0; features_next(features, &pos, name);)
        features_add(ret_features, FEATURES_TEXT_MAX, name);
    if (counts_parse(resources, &counts, NULL) != 0)
        counts = (struct counts){0};
    counts_format(&counts, ret_resources);
}

static void post_checkpoints(
    struct agent_sync *s, const struct attempt *a, const struct wire_attempt_status *st)
{
    for (size_t i = 0; i < st->n_checkpoints; i++) {
        const struct wire_checkpoint *c = &st->checkpoints[i];
        if (c->sequence <= a->row.sequence)
            continue;
        struct event ev = {
            .type = EV_CHECKPOINT,
            .checkpoint = {.job = st->job,
                .node = a->row.node,
                .ref = {st->attempt, c->sequence},
                .bytes = c->bytes,
                .stored_bytes = c->stored_bytes,
                .took_ms = c->took_ms,
                .pause_ms = c->pause_ms == WIRE_NONE ? c->took_ms : c->pause_ms,
                .progress = c->progress == WIRE_NONE ? PROGRESS_NONE : c->progress,
                .saved_at = {c->saved_at}},
        };
        STR_COPY(ev.checkpoint.cause, wire_word_name(wire_cause_names, (int)c->cause));
        tick_post(s->o.tick, &ev, NULL, NULL);
    }
}

/* The count that an earlier belayd process has already recorded. */
static int64_t known_failed_saves(const struct agent_sync *s, const struct attempt *a)
{
    struct err e;
    int64_t n = 0;
    if (db_read_failed_saves(s->o.reader, a->row.job, a->row.attempt, a->row.node, &n, &e) != 0)
        log_warn("the failed saves of a job cannot be read: they are reported again",
            log_i("job", a->row.job), log_err(&e));
    return n;
}

static void post_failed_save(
    struct agent_sync *s, const struct attempt *a, bool is_restore, const char *text)
{
    struct event ev = {.type = EV_SAVE_FAILED,
        .save_failed = {.job = a->row.job,
            .attempt = a->row.attempt,
            .node = a->row.node,
            .is_restore = is_restore}};
    STR_COPY(ev.save_failed.text, text);
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* A status may be the first to report a failed restore and that the attempt has started since. */
static void post_failed_saves(struct agent_sync *s, struct known_attempt *k,
    const struct attempt *a, const struct wire_attempt_status *st)
{
    if (st->failed_saves > 0 && k->failed_saves == 0)
        k->failed_saves = known_failed_saves(s, a);
    if (st->failed_restores > k->failed_saves)
        post_failed_save(s, a, true, st->restore_error);
    if (st->failed_saves > k->failed_saves && st->failed_saves > st->failed_restores)
        post_failed_save(s, a, false, st->save_error);
    k->failed_saves = st->failed_saves;
}

static void post_end(
    struct agent_sync *s, const struct attempt *a, const struct wire_attempt_status *st)
{
    struct event ev = {.type = EV_ATTEMPT_ENDED,
        .ended = {.job = st->job,
            .attempt = st->attempt,
            .node = a->row.node,
            .exit_code = (int32_t)st->exit_code,
            .user_refused = st->user_refused}};
    ev.ended.end = agent_sync_end(st->end);
    if (ev.ended.end == END_NONE) {
        log_warn("an agent reported an unknown kind of end; counted as failed",
            log_i("job", st->job), log_i("attempt", st->attempt));
        ev.ended.end = END_FAILED;
    }
    ev.ended.cpu_ms = st->usage.cpu_ms;
    ev.ended.cpu_user_ms = st->usage.cpu_user_ms;
    ev.ended.memory_peak = st->usage.memory_peak_bytes;
    STR_COPY(ev.ended.text, st->text);
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* Each status repeats it until the attempt has begun. */
static void post_store(
    struct agent_sync *s, const struct attempt *a, const struct wire_attempt_status *st)
{
    if (st->store_tries <= a->store_tries || st->phase == WIRE_ENDED)
        return;
    struct event ev = {.type = EV_STORE_REFUSED,
        .store_refused = {.job = st->job,
            .attempt = st->attempt,
            .node = a->row.node,
            .tries = st->store_tries < INT32_MAX ? (int32_t)st->store_tries : INT32_MAX}};
    STR_COPY(ev.store_refused.text, st->store_error);
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* Every status repeats what is already known. */
static void post_usage(
    struct agent_sync *s, const struct attempt *a, const struct wire_attempt_status *st)
{
    const struct wire_usage *u = &st->usage;
    if (u->cpu_ms == a->row.cpu_ms && u->memory_peak_bytes == a->row.memory_peak &&
        u->cpu_milli == a->cpu_milli && u->memory_bytes == a->memory_bytes)
        return;
    struct event ev = {.type = EV_USAGE,
        .usage = {.job = st->job,
            .attempt = st->attempt,
            .node = a->row.node,
            .cpu_ms = u->cpu_ms,
            .cpu_user_ms = u->cpu_user_ms,
            .memory_peak = u->memory_peak_bytes,
            .cpu_milli = u->cpu_milli,
            .memory_bytes = u->memory_bytes}};
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* Reported once after each cleaning: only the first rank cleans. */
static void post_kept(
    struct agent_sync *s, const struct attempt *a, const struct wire_attempt_status *st)
{
    int64_t known = model_stored_bytes(tick_model(s->o.tick), st->job);
    if (st->kept_bytes == 0 || known < 0 || known == st->kept_bytes || a->row.rank > 0)
        return;
    struct event ev = {.type = EV_KEPT,
        .kept = {
            .job = st->job, .attempt = st->attempt, .node = a->row.node, .bytes = st->kept_bytes}};
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* Work that the ledger counts as useful and the attempt repeats. Looked up only if the attempt was
 * not restored from the last good checkpoint, if an earlier attempt was not, or if the job was
 * started over and has saved nothing since. */
static void find_repeated_work(struct agent_sync *s, const struct job_row *j, struct event *started)
{
    const int64_t attempt = started->started.attempt;
    const struct ckpt_ref restored = started->started.restored;
    const bool from_scratch = j->from_attempt > 0 && restored.attempt == 0;
    const bool newest = ckpt_ref_compare(restored, j->last_good) == 0 && !from_scratch;
    struct err e;
    int64_t ms = 0;
    bool was = false;
    int rc = attempt > 2 && (newest || from_scratch)
                 ? db_read_has_repeated(
                       s->o.reader, j->id, from_scratch ? j->from_attempt : 0, attempt, &was, &e)
                 : 0;

    if (rc == 0 && (was || !newest))
        rc = db_read_repeated_work(s->o.reader, j->id, attempt, restored, &ms, &e);
    if (rc != 0)
        log_warn("the repeated work of a job cannot be read: it is not counted",
            log_i("job", j->id), log_err(&e));
    started->started.behind_ms = ms;
    started->started.behind_already_counted = from_scratch && was;
}

static void post_attempt(
    struct agent_sync *s, struct node_sync *x, const struct wire_attempt_status *st)
{
    const struct job *job = model_job(tick_model(s->o.tick), st->job);
    const struct attempt *a = job_attempt_on(job, st->attempt, x->node);
    struct known_attempt *k = agent_sync_find_known(x, st->job, st->attempt);
    k->reported = true;
    k->secrets = st->secrets;
    k->status_no = x->status_no;
    if (!a)
        return; /* stale: it is not desired, so the agent will drop it */
    if (st->started_at != WIRE_NONE && !wall_is_set(a->row.started_at)) {
        struct ckpt_ref restored = {st->restored_attempt, st->restored_sequence};
        struct event ev = {.type = EV_ATTEMPT_STARTED,
            .started = {.job = st->job,
                .attempt = st->attempt,
                .node = x->node,
                .restored = restored,
                .restored_progress =
                    st->restored_progress == WIRE_NONE ? PROGRESS_NONE : st->restored_progress,
                .restore_ms = st->restore_ms,
                .bytes = st->restored_bytes,
                .nearby_bytes = st->reused_bytes,
                .damaged = (int32_t)st->damaged}};
        find_repeated_work(s, &job->row, &ev);
        tick_post(s->o.tick, &ev, NULL, NULL);
    }
    if (st->done != WIRE_NONE && a->row.rank == 0) {
        struct event ev = {.type = EV_PROGRESS,
            .progress = {.job = st->job,
                .attempt = st->attempt,
                .done = st->done,
                .total = st->total == WIRE_NONE ? PROGRESS_NONE : st->total,
                .has_first = st->first_done != WIRE_NONE,
                .first = st->first_done,
                .first_ms = st->first_done_ms}};
        tick_post(s->o.tick, &ev, NULL, NULL);
    }
    post_checkpoints(s, a, st);
    post_kept(s, a, st);
    post_failed_saves(s, k, a, st);
    post_store(s, a, st);
    if (st->phase == WIRE_ENDED)
        post_end(s, a, st);
    else
        post_usage(s, a, st);
}

/* An attempt that this agent had reported and no longer reports is lost with its state (a wiped
 * disk). If it was reported to an earlier belayd process, this counts only once the agent has
 * received an answer from this one: its earlier statuses may have been reordered. */
static void post_vanished(
    struct agent_sync *s, struct node_sync *x, const struct node *node, int64_t have_rev)
{
    bool knows_us = have_rev >> REV_BOOT_SHIFT == s->o.boots;
    LIST_FOREACH (&node->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        const struct known_attempt *k = agent_sync_find_known(x, a->row.job, a->row.attempt);
        bool had = k->reported || (knows_us && a->row.started_at.ms != TIME_NONE_MS);
        if (!had || k->status_no == x->status_no)
            continue;
        struct event ev = {.type = EV_ATTEMPT_ENDED,
            .ended = {.job = a->row.job,
                .attempt = a->row.attempt,
                .node = x->node,
                .end = END_NODE_LOST}};
        STR_COPY(ev.ended.text, AGENT_SYNC_VANISHED);
        tick_post(s->o.tick, &ev, NULL, NULL);
    }
}

static void post_notice(struct agent_sync *s, const struct node *node, const struct wire_notice *n)
{
    const enum notice_type kind = agent_sync_notice(n->kind);
    bool is_over = n->kind == WIRE_NOTICE_NONE && node->row.state == NODE_NOTICED &&
                   node->row.instance == CORE_ID_NONE;
    if (kind <= node->row.notice && !is_over)
        return;
    struct event ev = {.type = EV_NOTICE,
        .notice = {.node = node->row.id,
            .kind = kind,
            .deadline = {n->deadline == WIRE_NONE ? TIME_NONE_MS : n->deadline}}};
    tick_post(s->o.tick, &ev, NULL, NULL);
}

static void post_facts(struct agent_sync *s, const struct node *node, const struct wire_status *st)
{
    struct event ev = {.type = EV_FACTS,
        .facts = {.node = node->row.id, .criu = agent_sync_criu_ability(st->criu)}};
    STR_COPY(ev.facts.criu_text, st->criu_text);
    agent_sync_read_constraints(st->features, st->resources, ev.facts.features, ev.facts.resources);
    ev.facts.gpu.memory_mib = st->gpu_memory_mib;
    gpu_model(st->gpu_model, ev.facts.gpu.model);
    if (ev.facts.criu != node->row.criu || !str_eq(ev.facts.criu_text, node->row.criu_text) ||
        !str_eq(ev.facts.gpu.model, node->row.gpu.model) ||
        ev.facts.gpu.memory_mib != node->row.gpu.memory_mib ||
        !str_eq(ev.facts.features, node->row.features) ||
        !str_eq(ev.facts.resources, node->row.resources))
        tick_post(s->o.tick, &ev, NULL, NULL);
}

/* The first status after a start of belayd is logged again. */
static void log_disk(struct node_sync *x, const struct node *node, const char *full)
{
    bool is_full = full[0] != '\0';
    if (is_full && !x->is_full)
        log_warn("a node's disk is full: it gets no new work until it has space",
            log_s("node", node->row.name), log_s("why", full));
    else if (!is_full && x->is_full)
        log_info("a node's disk has space again", log_s("node", node->row.name));
    x->is_full = is_full;
}

static void post_disk(struct agent_sync *s, struct node_sync *x, const struct node *node,
    const struct wire_status *st)
{
    struct event ev = {.type = EV_DISK, .disk.node = node->row.id};
    STR_COPY(ev.disk.full, st->disk_full);
    log_disk(x, node, st->disk_full);
    if (!str_eq(ev.disk.full, node->disk_full))
        tick_post(s->o.tick, &ev, NULL, NULL);
}

static void post_fault(struct agent_sync *s, const struct node *node, const struct wire_status *st)
{
    struct event ev = {.type = EV_FAULT, .fault.node = node->row.id};
    STR_COPY(ev.fault.text, st->fault);
    if (str_eq(ev.fault.text, node->row.fault))
        return;
    if (ev.fault.text[0])
        log_warn("a node is faulty: it is drained", log_s("node", node->row.name),
            log_s("why", ev.fault.text));
    tick_post(s->o.tick, &ev, NULL, NULL);
}

/* Every status repeats it. */
static void post_prefetched(
    struct agent_sync *s, const struct node *node, const struct wire_prefetched *x)
{
    const struct job *job = x->job ? model_job(tick_model(s->o.tick), x->job) : NULL;
    const struct attempt *a = job ? job_attempt(job) : NULL;
    struct event ev = {.type = EV_PREFETCHED,
        .prefetch = {.job = x->job, .node = node->row.id, .ref = {x->attempt, x->sequence}}};
    if (!a || a->row.attempt != x->attempt || a->prefetch.node != node->row.id ||
        a->prefetch.is_over || (x->sequence == 0 && !x->text[0]))
        return;
    if (x->sequence == 0)
        STR_COPY(ev.prefetch.text, x->text);
    tick_post(s->o.tick, &ev, NULL, NULL);
}

static void take_loads(struct agent_sync *s, struct node_sync *x, const struct wire_status *st)
{
    if (s->o.loads)
        s->o.loads(s->o.loads_ctx, x->node, st, x->task_loads, x->gpu_loads);
    for (size_t i = 0; i < st->n_task_loads; i++)
        x->task_loads = st->task_loads[i].no > x->task_loads ? st->task_loads[i].no : x->task_loads;
    for (size_t i = 0; i < st->n_gpu_loads; i++)
        x->gpu_loads = st->gpu_loads[i].no > x->gpu_loads ? st->gpu_loads[i].no : x->gpu_loads;
}

void agent_sync_post_status(struct agent_sync *s, struct node_sync *x, const struct node *node,
    const struct wire_status *st)
{
    post_notice(s, node, &st->notice);
    post_facts(s, node, st);
    post_disk(s, x, node, st); /* before the end of an attempt that found no space */
    for (size_t i = 0; i < st->n_attempts; i++)
        post_attempt(s, x, &st->attempts[i]);
    post_fault(s, node, st); /* after the end of an attempt that has found it */
    post_vanished(s, x, node, st->have_rev);
    post_prefetched(s, node, &st->prefetched);
    take_loads(s, x, st);
}
