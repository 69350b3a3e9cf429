/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's tasks: taken over from an earlier agent, started and removed on belayd's order, and
 * reported. Decides which task may start, whose save is next, and what is kept for a job's next
 * attempt.
 */
#include "agent/agent_private.h"

#include "agent/gpu/resources.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#define PRUNE_MS 10000

struct task *agent_find_task(const struct agent *a, int64_t job, int64_t attempt)
{
    LIST_FOREACH (&a->tasks, n) {
        struct task *t = task_of_link(n);
        if (task_job(t) == job && task_attempt(t) == attempt)
            return t;
    }
    return NULL;
}

static void add(struct agent *a, struct task *t)
{
    list_push_back(&a->tasks, task_link(t));
}

void agent_changed(void *ctx)
{
    struct agent *a = ctx;
    uplink_changed(&a->link);
}

void agent_changed_later(void *ctx)
{
    struct agent *a = ctx;
    uplink_changed_later(&a->link);
}

/* Acknowledges a reclaim once no task is left. A task is removed only when belayd has recorded its
 * end and its saves. */
void agent_acknowledge_reclaim(struct agent *a)
{
    if (a->notice.kind == NOTICE_RECLAIM && list_is_empty(&a->tasks))
        notice_reader_acknowledge(a->notices);
}

void agent_task_gone(void *ctx, struct task *t)
{
    struct agent *a = ctx;
    link_remove(task_link(t));
    task_free(t);
    agent_acknowledge_reclaim(a);
    struct kept one;
    if (kept_list(a->kept_dir, &one, 1) > 0) /* belayd knows whether it is still useful */
        uplink_changed_later(&a->link);
}

#define IN_ORDER_MAX WIRE_ATTEMPTS_MAX

/* Starts the waiting saves whose turn it is (save_order.h). */
void agent_order_saves(void *ctx)
{
    struct agent *a = ctx;
    struct save_order_entry saves[IN_ORDER_MAX];
    struct task *tasks[IN_ORDER_MAX];
    int64_t now = clock_mono(a->timers->clock).ms, deadline = INT64_MAX;
    size_t n = 0, next;
    LIST_FOREACH (&a->tasks, l) {
        if (n < IN_ORDER_MAX && task_turn(task_of_link(l), &saves[n], &deadline))
            tasks[n++] = task_of_link(l);
    }
    while ((next = save_order_next(saves, n, now, deadline)) < n) {
        saves[next].started_ms = now;
        task_take_turn(tasks[next]);
    }
}

/* ---- admission ---- */

/* Fails while another task is here and one of the two needs the node exclusively: an attempt that
 * belayd has given up may still run for a moment. */
static int check_alone(const struct agent *a, const struct task *t, struct err *e)
{
    LIST_FOREACH (&a->tasks, l) {
        const struct task *other = task_of_link(l);
        if (other == t || !task_is_here(other) ||
            !(task_spec(t)->exclusive || task_spec(other)->exclusive))
            continue;
        return err_set(e, ERR_UNAVAILABLE,
            "job %lld needs this node exclusively, and job %lld has not ended here yet",
            (long long)task_job(task_spec(t)->exclusive ? t : other),
            (long long)task_job(task_spec(t)->exclusive ? other : t));
    }
    return 0;
}

int agent_admit(void *ctx, const struct task *t, struct task_state *s, struct err *e)
{
    const struct agent *a = ctx;
    /* upper limit of tasks with GPUs, except those with GPUS_ALL */
    const char *others[WIRE_ATTEMPTS_MAX];
    size_t n = 0;
    struct counts slices;
    const struct gpus_ask ask = {
        .whole = task_spec(t)->gpus, .slices = &slices, .all = task_spec(t)->exclusive};
    if (counts_parse(task_spec(t)->resources, &slices, NULL) != 0)
        slices = (struct counts){0};
    LIST_FOREACH (&a->tasks, l) {
        const char *has = task_of_link(l) == t ? "" : task_gpus(task_of_link(l));
        if (*has && n < WIRE_ATTEMPTS_MAX)
            others[n++] = has;
    }
    if (a->gpus.n > 0)
        s->gpu_maker = gpu_is_amd(a->enroll.resources.gpu.model) ? GPU_MAKER_AMD : GPU_MAKER_NVIDIA;
    int rc = check_alone(a, t, e);
    return rc ? rc : gpus_allot(&a->gpus, &ask, others, n, s->gpus, e);
}

void agent_task_ended(void *ctx)
{
    struct agent *a = ctx;
    LIST_FOREACH (&a->tasks, l)
        task_retry_store(task_of_link(l));
}

void agent_disk_refused(void *ctx, bool of_records, const char *why)
{
    struct agent *a = ctx;
    disk_refused(&a->disk, of_records, why);
}

/* ---- kept directories ---- */

struct pruning {
    struct agent *a;
    struct kept *v;
    size_t n;
};

static void prune_on_thread(void *ctx)
{
    const struct pruning *s = ctx;
    kept_prune(s->a->kept_dir, s->v, s->n, KEPT_FREE_PERCENT);
}

static void on_pruned(void *ctx)
{
    struct pruning *s = ctx;
    s->a->pruning = false;
    free(s->v);
    free(s);
}

size_t agent_count_tasks(const struct agent *a)
{
    size_t n = 0;
    LIST_FOREACH (&a->tasks, l)
        n++;
    return n;
}

static void start_pruning(struct agent *a)
{
    struct kept one;
    if (a->pruning || kept_list(a->kept_dir, &one, 1) == 0)
        return;
    struct pruning *s = mem_alloc(sizeof(*s));
    s->a = a;
    s->v = mem_array(a->n_unneeded + 1 + agent_count_tasks(a), sizeof(*s->v));
    for (size_t i = 0; i < a->n_unneeded; i++)
        s->v[s->n++] = a->unneeded[i];
    a->n_unneeded = 0;
    s->n += prefetch_take_unneeded(&a->prefetch, &s->v[s->n]);
    LIST_FOREACH (&a->tasks, l) {
        const struct task *t = task_of_link(l);
        if (task_is_prepared(t))
            s->v[s->n++] = (struct kept){.job = task_job(t), .attempt = task_attempt(t)};
    }
    a->pruning = true;
    uv_run_work(a->loop, prune_on_thread, on_pruned, s);
}

static void on_prune_timer(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    timer_start(a->timers, timer, PRUNE_MS);
    start_pruning(a);
}

static void fill_kept(const struct agent *a, struct wire_status *s)
{
    struct kept v[WIRE_KEPT_MAX];
    s->n_kept = kept_list(a->kept_dir, v, WIRE_KEPT_MAX);
    s->kept = mem_array(s->n_kept, sizeof(*s->kept));
    for (size_t i = 0; i < s->n_kept; i++)
        s->kept[i].job = v[i].job;
}

int agent_adopt_tasks(struct agent *a, struct err *e)
{
    DIR *d = opendir(a->tasks_dir);
    if (!d)
        return err_errno(e, errno, "reading %s", a->tasks_dir);
    for (struct dirent *entry; (entry = readdir(d));) {
        struct task *t = entry->d_name[0] == '.' ? NULL : task_adopt(&a->common, entry->d_name);
        if (t)
            add(a, t);
    }
    closedir(d);
    return 0;
}

/* ---- the link ---- */

static enum wire_notice_kind kind_on_wire(enum notice_kind kind)
{
    switch (kind) {
    case NOTICE_RECLAIM:
        return WIRE_NOTICE_RECLAIM;
    case NOTICE_REBALANCE:
        return WIRE_NOTICE_REBALANCE;
    case NOTICE_MAINTENANCE:
        return WIRE_NOTICE_MAINTENANCE;
    case NOTICE_NONE:
        break;
    }
    return WIRE_NOTICE_NONE;
}

static void fill_notice(const struct agent *a, struct wire_notice *n)
{
    if (a->notice.kind == NOTICE_NONE)
        return;
    n->kind = kind_on_wire(a->notice.kind);
    /* By the provider's clock, because this machine's may be wrong. */
    int64_t ahead_ms = a->notice.clock_ahead_ms;
    n->deadline = wall_is_set(a->notice.deadline) ? a->notice.deadline.ms - ahead_ms : WIRE_NONE;
    n->seen = a->notice.seen.ms - ahead_ms;
}

void agent_node_faulty(void *ctx, const char *why)
{
    struct agent *a = ctx;
    node_fault_set(&a->fault, clock_wall(a->timers->clock), why);
    /* Later: the end of an attempt that has found it goes first, or with it. Else the job could
     * come back before the node is drained, or its attempt would be stopped while it ends. */
    uplink_changed_later(&a->link);
}

void agent_fill_status(void *ctx, struct wire_status *s)
{
    struct agent *a = ctx;
    s->load_milli = resources_load_milli();
    s->criu = a->criu.can;
    STR_COPY(s->criu_text, a->criu.text);
    STR_COPY(s->features, a->config->features);
    STR_COPY(s->resources, a->config->resources);
    STR_COPY(s->gpu_model, a->enroll.resources.gpu.model);
    s->gpu_memory_mib = a->enroll.resources.gpu.memory_mib;
    STR_COPY(s->disk_full, disk_full(&a->disk));
    STR_COPY(s->fault, a->fault.text);
    fill_notice(a, &s->notice);
    fill_kept(a, s);
    prefetch_fill(&a->prefetch, s);
    size_t n_reported = 0;
    LIST_FOREACH (&a->tasks, n)
        n_reported += !task_is_leaving(task_of_link(n));
    n_reported = n_reported < WIRE_ATTEMPTS_MAX ? n_reported : WIRE_ATTEMPTS_MAX;
    s->attempts = mem_array(n_reported, sizeof(*s->attempts));
    s->tails = mem_array(WIRE_TAILS_MAX, sizeof(*s->tails));
    LIST_FOREACH (&a->tasks, n) {
        if (s->n_attempts == n_reported || task_is_leaving(task_of_link(n)))
            continue;
        task_read_usage(task_of_link(n));
        task_status(task_of_link(n), &s->attempts[s->n_attempts++]);
        if (s->n_tails < WIRE_TAILS_MAX && task_tail(task_of_link(n), &s->tails[s->n_tails]))
            s->n_tails++;
    }
    telemetry_fill(a->telemetry, s);
}

void agent_list_tasks(void *ctx, struct telemetry *telemetry)
{
    struct agent *a = ctx;
    struct probe_of of;
    LIST_FOREACH (&a->tasks, l) {
        const struct task *t = task_of_link(l);
        if (task_probe(t, &of))
            telemetry_task(telemetry, task_job(t), task_attempt(t), &of, task_gpus(t));
    }
}

static bool is_desired(const struct wire_desired *d, const struct task *t)
{
    for (size_t i = 0; i < d->n_attempts; i++)
        if (d->attempts[i].job == task_job(t) && d->attempts[i].attempt == task_attempt(t))
            return true;
    return false;
}

void agent_desired(void *ctx, const struct wire_desired *d)
{
    struct agent *a = ctx;
    bool made = false;
    a->orphaned = false;
    LIST_FOREACH (&a->tasks, n) {
        if (!is_desired(d, task_of_link(n)))
            task_forget(task_of_link(n));
    }
    for (size_t i = 0; i < d->n_attempts; i++) {
        struct task *t = agent_find_task(a, d->attempts[i].job, d->attempts[i].attempt);
        if (t) {
            task_desired(t, &d->attempts[i]);
        } else {
            add(a, task_create(&a->common, &d->attempts[i]));
            made = true;
        }
    }
    if (made)
        uplink_changed(&a->link);
    prefetch_desired(&a->prefetch, d);
    channels_desired(&a->channels, d);
    telemetry_taken(a->telemetry, d->task_loads_taken, d->gpu_loads_taken);
    a->n_unneeded = 0;
    for (size_t i = 0; i < d->n_unneeded; i++)
        a->unneeded[a->n_unneeded++] =
            (struct kept){.job = d->unneeded[i].job, .attempt = INT64_MAX};
    if (a->n_unneeded > 0)
        start_pruning(a);
}

/* ---- timers ---- */

void agent_tasks_init(struct agent *a)
{
    timer_init(&a->prune_timer, on_prune_timer, a);
}

void agent_tasks_begin(struct agent *a)
{
    timer_start(a->timers, &a->prune_timer, PRUNE_MS);
}
