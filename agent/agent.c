/* SPDX-License-Identifier: Apache-2.0
 *
 *   open state dir --> take over tasks --> (metadata: who am I) --> join --> link <--> tasks
 *   notices --> tasks, then belayd
 *
 * Invariants.
 *  1. One agent a state directory (lock).
 *  2. A notice reaches the programs before anybody else is told of it.
 *  3. Attempts are started and forgotten only on belayd's word.
 *  4. SIGTERM is a restart of the agent, which leaves the tasks to the next one, unless a reclaim
 *     is announced or the machine shuts down: then the agent ends when every task is saved, has
 *     ended and is told of, or when the time is over.
 */
#include "agent/agent.h"

#include "agent/channels.h"
#include "agent/criu/criu.h"
#include "agent/criu/criu_trial.h"
#include "agent/enroll.h"
#include "agent/gpu/gpus.h"
#include "agent/supervisor/image.h"
#include "agent/incarnation.h"
#include "agent/gpu/resources.h"
#include "agent/node_guard.h"
#include "agent/supervisor/limits.h"
#include "agent/supervisor/namespaces.h"
#include "agent/supervisor/proc_mount.h"
#include "agent/task/kept.h"
#include "agent/task/record.h"
#include "agent/shutdown.h"
#include "agent/task/storage.h"
#include "agent/task/task.h"
#include "agent/gpu/telemetry.h"
#include "agent/uplink.h"
#include "agent/watch.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "base/uv/runner.h"
#include "cloud/notice.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORPHAN_LOOK_MS 5000
#define SWEEP_MS 10000
#define IDENTITY_WAIT_MS 60000
#define GPUS_LISTING_MAX 32768
#define LOOK_MS 4000 /* for systemd and the metadata service to say whether the machine goes */
#define CLOSING_LOOK_MS 100
#define TELL_MS 10000 /* for belayd, when all tasks have ended in a shutdown */
#define TELL_LEAST_MS 5000
#define EXIT_UNWANTED 3 /* the cluster does not know this node */

struct agent {
    uv_loop_t *loop;
    struct config *config;
    char *tasks_dir, *kept_dir, *workdirs_dir;
    int lock_fd;
    struct identity id;
    struct criu criu;
    struct timers *timers;
    struct http_client *http;
    struct uv_signals *signals;
    struct prng prng;
    struct peer peer;
    struct enroll enroll;
    struct uplink link;
    struct notice_reader *notices;
    struct notice notice;
    struct storage *storage;
    struct task_room room;
    struct list tasks;
    struct gpus gpus;
    struct channels channels;
    struct telemetry *telemetry;
    struct timer identity_wait, orphan, exit_check, sweep, looking, closing;
    struct runner *runner;
    struct shutdown shutdown; /* the question */
    bool is_looking;          /* after SIGTERM, until it is known whether the machine goes */
    bool is_asked;            /* the init has answered */
    bool is_looked;           /* the metadata service has */
    bool is_closing, is_shutdown;
    struct mono closing_since, all_ended_since; /* MONO_NONE: not yet */
    struct kept unneeded[WIRE_KEPT_MAX];        /* belayd's last word */
    size_t n_unneeded;
    bool joining, ending, orphaned, sweeping;
    int64_t incarnation;
    int exit_code;
};

/* ---- tasks ---- */

static struct task *find(const struct agent *a, int64_t job, int64_t attempt)
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

static void on_changed(void *ctx)
{
    struct agent *a = ctx;
    uplink_changed(&a->link);
}

static void on_changed_later(void *ctx)
{
    struct agent *a = ctx;
    uplink_changed_later(&a->link);
}

/* A task is gone once belayd has its end durably, and with it what was saved. */
static void acknowledge_reclaim(struct agent *a)
{
    if (a->notice.kind == NOTICE_RECLAIM && list_is_empty(&a->tasks))
        notice_reader_acknowledge(a->notices);
}

static void on_gone(void *ctx, struct task *t)
{
    struct agent *a = ctx;
    link_remove(task_link(t));
    task_free(t);
    acknowledge_reclaim(a);
    struct kept one;
    if (kept_list(a->kept_dir, &one, 1) > 0) /* belayd knows whether it is of use */
        uplink_changed_later(&a->link);
}

#define IN_ORDER_MAX WIRE_ATTEMPTS_MAX

/* Starts what may be stored now of the saves that wait for their turn. */
static void on_order(void *ctx)
{
    struct agent *a = ctx;
    struct order_save saves[IN_ORDER_MAX];
    struct task *tasks[IN_ORDER_MAX];
    int64_t now = clock_mono(a->timers->clock).ms, deadline = INT64_MAX;
    size_t n = 0, next;
    LIST_FOREACH (&a->tasks, l) {
        if (n < IN_ORDER_MAX && task_turn(task_of_link(l), &saves[n], &deadline))
            tasks[n++] = task_of_link(l);
    }
    while ((next = order_next(saves, n, now, deadline)) < n) {
        saves[next].started_ms = now;
        task_take_turn(tasks[next]);
    }
}

/* ---- who may begin ---- */

/* What belayd has given up may still run for a moment; beside it nobody is alone. */
static int check_alone(const struct agent *a, const struct task *t, struct err *e)
{
    LIST_FOREACH (&a->tasks, l) {
        const struct task *other = task_of_link(l);
        if (other == t || !task_is_here(other) ||
            !(task_spec(t)->exclusive || task_spec(other)->exclusive))
            continue;
        return err_set(e, ERR_UNAVAILABLE,
            "job %lld is to have this node for itself, and job %lld has not ended here yet",
            (long long)task_job(task_spec(t)->exclusive ? t : other),
            (long long)task_job(task_spec(t)->exclusive ? other : t));
    }
    return 0;
}

static int on_admit(void *ctx, const struct task *t, struct task_state *s, struct err *e)
{
    const struct agent *a = ctx;
    /* no more have GPUs, unless one is said to have all of them */
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

static void on_ended(void *ctx)
{
    struct agent *a = ctx;
    LIST_FOREACH (&a->tasks, l)
        task_look_again(task_of_link(l));
}

/* ---- what is kept ---- */

struct sweep {
    struct agent *a;
    struct kept *v;
    size_t n;
};

static void sweep_on_thread(void *ctx)
{
    const struct sweep *s = ctx;
    kept_sweep(s->a->kept_dir, s->v, s->n, KEPT_FREE_PERCENT);
}

static void on_swept(void *ctx)
{
    struct sweep *s = ctx;
    s->a->sweeping = false;
    free(s->v);
    free(s);
}

static size_t count_tasks(const struct agent *a)
{
    size_t n = 0;
    LIST_FOREACH (&a->tasks, l)
        n++;
    return n;
}

static void start_sweep(struct agent *a)
{
    struct kept one;
    if (a->sweeping || kept_list(a->kept_dir, &one, 1) == 0)
        return;
    struct sweep *s = mem_alloc(sizeof(*s));
    s->a = a;
    s->v = mem_array(a->n_unneeded + count_tasks(a), sizeof(*s->v));
    for (size_t i = 0; i < a->n_unneeded; i++)
        s->v[s->n++] = a->unneeded[i];
    a->n_unneeded = 0;
    LIST_FOREACH (&a->tasks, l) {
        const struct task *t = task_of_link(l);
        if (task_is_prepared(t))
            s->v[s->n++] = (struct kept){.job = task_job(t), .attempt = task_attempt(t)};
    }
    a->sweeping = true;
    uv_run_work(a->loop, sweep_on_thread, on_swept, s);
}

static void on_sweep(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    timer_start(a->timers, timer, SWEEP_MS);
    start_sweep(a);
}

static void fill_kept(const struct agent *a, struct wire_status *s)
{
    struct kept v[WIRE_KEPT_MAX];
    s->n_kept = kept_list(a->kept_dir, v, WIRE_KEPT_MAX);
    s->kept = mem_array(s->n_kept, sizeof(*s->kept));
    for (size_t i = 0; i < s->n_kept; i++)
        s->kept[i].job = v[i].job;
}

static int adopt_all(struct agent *a, struct err *e)
{
    DIR *d = opendir(a->tasks_dir);
    if (!d)
        return err_errno(e, errno, "reading %s", a->tasks_dir);
    for (struct dirent *entry; (entry = readdir(d));) {
        struct task *t = entry->d_name[0] == '.' ? NULL : task_adopt(&a->room, entry->d_name);
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
    /* By the provider's clock: this machine's may be wrong. */
    int64_t ahead_ms = a->notice.clock_ahead_ms;
    n->deadline = wall_is_set(a->notice.deadline) ? a->notice.deadline.ms - ahead_ms : WIRE_NONE;
    n->seen = a->notice.seen.ms - ahead_ms;
}

static void on_fill(void *ctx, struct wire_status *s)
{
    struct agent *a = ctx;
    s->load_milli = resources_load_milli();
    s->criu = a->criu.can;
    STR_COPY(s->criu_text, a->criu.text);
    STR_COPY(s->features, a->config->features);
    STR_COPY(s->resources, a->config->resources);
    STR_COPY(s->gpu_model, a->enroll.resources.gpu.model);
    s->gpu_memory_mib = a->enroll.resources.gpu.memory_mib;
    fill_notice(a, &s->notice);
    fill_kept(a, s);
    size_t told = 0;
    LIST_FOREACH (&a->tasks, n)
        told += !task_is_leaving(task_of_link(n));
    told = told < WIRE_ATTEMPTS_MAX ? told : WIRE_ATTEMPTS_MAX;
    s->attempts = mem_array(told, sizeof(*s->attempts));
    s->tails = mem_array(WIRE_TAILS_MAX, sizeof(*s->tails));
    LIST_FOREACH (&a->tasks, n) {
        if (s->n_attempts == told || task_is_leaving(task_of_link(n)))
            continue;
        task_read_usage(task_of_link(n));
        task_status(task_of_link(n), &s->attempts[s->n_attempts++]);
        if (s->n_tails < WIRE_TAILS_MAX && task_tail(task_of_link(n), &s->tails[s->n_tails]))
            s->n_tails++;
    }
    telemetry_fill(a->telemetry, s);
}

static void on_list(void *ctx, struct telemetry *telemetry)
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

static void on_desired(void *ctx, const struct wire_desired *d)
{
    struct agent *a = ctx;
    bool made = false;
    a->orphaned = false;
    LIST_FOREACH (&a->tasks, n) {
        if (!is_desired(d, task_of_link(n)))
            task_forget(task_of_link(n));
    }
    for (size_t i = 0; i < d->n_attempts; i++) {
        struct task *t = find(a, d->attempts[i].job, d->attempts[i].attempt);
        if (t) {
            task_desired(t, &d->attempts[i]);
        } else {
            add(a, task_create(&a->room, &d->attempts[i]));
            made = true;
        }
    }
    if (made)
        uplink_changed(&a->link);
    channels_desired(&a->channels, d);
    telemetry_taken(a->telemetry, d->task_loads_taken, d->gpu_loads_taken);
    a->n_unneeded = 0;
    for (size_t i = 0; i < d->n_unneeded; i++)
        a->unneeded[a->n_unneeded++] =
            (struct kept){.job = d->unneeded[i].job, .attempt = INT64_MAX};
    if (a->n_unneeded > 0)
        start_sweep(a);
}

/* ---- ending ---- */

static void finish(struct agent *a, int exit_code)
{
    if (a->ending)
        return;
    a->ending = true;
    a->exit_code = exit_code;
    uv_stop(a->loop);
}

static size_t count_running(const struct agent *a)
{
    size_t n = 0;
    LIST_FOREACH (&a->tasks, l)
        n += !task_has_ended(task_of_link(l));
    return n;
}

static bool all_ended(const struct agent *a)
{
    return count_running(a) == 0;
}

static void power_off(const struct agent *a)
{
    if (!a->config->power_off)
        return;
    log_warn("powering off", log_s("command", a->config->power_off));
    if (system(a->config->power_off) != 0)
        log_error("the power_off command failed", log_s("command", a->config->power_off));
}

static void leave(struct agent *a)
{
    finish(a, EXIT_UNWANTED);
    if (config_is_elastic(a->config))
        power_off(a);
}

static void stop_all(struct agent *a, const char *text)
{
    LIST_FOREACH (&a->tasks, n) {
        task_save_and_stop(task_of_link(n), WIRE_END_NODE_LOST, text, 0);
    }
}

/* belayd has said that this node is none of its cluster's: its tasks run somewhere else by now. A
 * reserved node with a token was deleted to be joined again. */
static void on_disowned(struct agent *a, const struct err *e)
{
    log_error("the cluster does not know this node any more: ending its tasks", log_err(e));
    LIST_FOREACH (&a->tasks, n) {
        task_forget(task_of_link(n));
    }
    if (config_is_elastic(a->config) || !enroll_refused(&a->enroll))
        timer_start(a->timers, &a->exit_check, 0);
}

static void on_exit_check(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    if (list_is_empty(&a->tasks))
        leave(a);
    else
        timer_start(a->timers, timer, 100);
}

static bool on_refused(void *ctx, const struct err *e)
{
    struct agent *a = ctx;
    if (e->kind == ERR_NOT_FOUND) {
        uplink_stop(&a->link);
        on_disowned(a, e);
        return true;
    }
    if (!enroll_refused(&a->enroll)) {
        log_error("belayd refuses this node's certificate, and there is no token to join with "
                  "again: get one with `belay token create --join` and restart the agent",
            log_err(e));
        return false;
    }
    uplink_stop(&a->link);
    return true;
}

/* An elastic node that nobody answers to must not run, and cost, for ever. */
static void on_orphan_look(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    int64_t silent_ms = clock_mono(a->timers->clock).ms - a->link.heard.ms;
    timer_start(a->timers, timer, ORPHAN_LOOK_MS);
    if (silent_ms < a->config->orphan_timeout_ms || silent_ms < a->link.lease_ms)
        return;
    if (!a->orphaned) {
        log_error("belayd was not heard of for too long: saving and ending",
            log_i("silent_ms", silent_ms));
        a->orphaned = true;
        stop_all(a, "belayd could not be reached for too long");
    }
    if (all_ended(a))
        leave(a);
}

/* ---- notices ---- */

static void start_closing(struct agent *a);

/* A second reclaim only counts if it comes sooner: a shutdown under a notice, another event. */
static void bring_nearer(struct agent *a, const struct notice *n)
{
    struct mono at = a->notice.deadline_mono;
    bool is_sooner =
        mono_is_set(n->deadline_mono) && (!mono_is_set(at) || n->deadline_mono.ms < at.ms);
    if (n->kind != NOTICE_RECLAIM || !is_sooner)
        return;
    a->notice.deadline = n->deadline;
    a->notice.deadline_mono = n->deadline_mono;
    LIST_FOREACH (&a->tasks, l) {
        task_notice_sooner(task_of_link(l), &a->notice);
    }
    log_warn("the machine goes sooner than was announced",
        log_i("left_ms", n->deadline_mono.ms - clock_mono(a->timers->clock).ms));
}

static void on_notice(void *ctx, const struct notice *n)
{
    struct agent *a = ctx;
    if (n->kind == NOTICE_NONE)
        return;
    if (a->notice.kind == NOTICE_RECLAIM) {
        bring_nearer(a, n);
        return;
    }
    a->notice = *n;
    LIST_FOREACH (&a->tasks, l) {
        task_notice(task_of_link(l), &a->notice);
    }
    uplink_changed(&a->link);
    log_warn("notice", log_s("kind", notice_kind_name(n->kind)), log_s("what", n->what),
        log_i("left_ms", mono_is_set(n->deadline_mono)
                             ? n->deadline_mono.ms - clock_mono(a->timers->clock).ms
                             : -1));
    acknowledge_reclaim(a);
    if (a->is_looking && n->kind == NOTICE_RECLAIM)
        start_closing(a);
}

/* ---- shutting down ---- */

/* How long what runs here has, if no notice says less. */
static int64_t shutdown_ms(const struct agent *a)
{
    int64_t own = a->config->shutdown_timeout_ms, providers = notice_reader_shutdown_ms(a->notices);
    return providers > 0 && providers < own ? providers : own;
}

static bool closing_is_over(struct agent *a, struct mono now)
{
    int64_t until = a->closing_since.ms + TELL_LEAST_MS;
    if (mono_is_set(a->notice.deadline_mono) && a->notice.deadline_mono.ms > until)
        until = a->notice.deadline_mono.ms;
    if (!all_ended(a))
        a->all_ended_since = MONO_NONE;
    else if (!mono_is_set(a->all_ended_since))
        a->all_ended_since = now;
    return list_is_empty(&a->tasks) || now.ms >= until ||
           (mono_is_set(a->all_ended_since) && now.ms - a->all_ended_since.ms >= TELL_MS);
}

static void on_closing_look(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    struct mono now = clock_mono(a->timers->clock);
    if (!closing_is_over(a, now)) {
        timer_start(a->timers, timer, CLOSING_LOOK_MS);
        return;
    }
    if (list_is_empty(&a->tasks))
        log_info("ending; belayd knows of everything that ran here");
    else
        log_warn("ending: time is over, and belayd may not know of everything that ran here",
            log_i("tasks", (int64_t)count_tasks(a)), log_i("not_ended", (int64_t)count_running(a)));
    finish(a, 0);
}

static void start_closing(struct agent *a)
{
    if (a->is_closing)
        return;
    a->is_closing = true;
    a->closing_since = clock_mono(a->timers->clock);
    log_info("told to end while this machine goes: what runs here is saved first",
        log_i("tasks", (int64_t)count_tasks(a)));
    timer_start(a->timers, &a->closing, 0);
}

/* As a notice of the provider's, to the tasks and to belayd: of the time that a shutdown has. */
static void shut_down(struct agent *a, const char *why)
{
    struct wall now = clock_wall(a->timers->clock);
    int64_t left_ms = shutdown_ms(a);
    if (a->is_shutdown)
        return;
    a->is_shutdown = true;
    log_warn("this machine shuts down", log_s("known", why), log_i("left_ms", left_ms));
    on_notice(a, &(struct notice){
                     .kind = NOTICE_RECLAIM,
                     .what = "shutdown",
                     .deadline = {now.ms + left_ms},
                     .deadline_mono = {clock_mono(a->timers->clock).ms + left_ms},
                     .seen = now,
                 });
    start_closing(a);
}

static void end_for_next(struct agent *a)
{
    log_info("ending; tasks go on under their supervisors");
    finish(a, 0);
}

static void conclude_if_known(struct agent *a)
{
    if (!a->is_looking || !a->is_asked || !a->is_looked)
        return;
    a->is_looking = false;
    timer_stop(a->timers, &a->looking);
    if (!a->is_closing)
        end_for_next(a);
}

static void on_init_answer(void *ctx, bool is_shutdown, const char *why)
{
    struct agent *a = ctx;
    a->is_asked = true;
    if (a->ending)
        return;
    if (is_shutdown)
        shut_down(a, why);
    conclude_if_known(a);
}

static void on_looked(void *ctx)
{
    struct agent *a = ctx;
    a->is_looked = true;
    conclude_if_known(a);
}

static void on_looking_over(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    (void)timer;
    a->is_asked = a->is_looked = true;
    conclude_if_known(a);
}

/* A provider may switch the machine off together with its notice: SIGTERM can be here before it. */
static void look_whether_machine_goes(struct agent *a)
{
    a->is_looking = true;
    a->is_looked = !a->notices;
    timer_start(a->timers, &a->looking, LOOK_MS);
    if (a->notice.kind == NOTICE_RECLAIM)
        start_closing(a);
    shutdown_ask(&a->shutdown, a->runner, on_init_answer, a);
    notice_reader_look(a->notices);
}

/* ---- joining ---- */

static void on_joined(void *ctx)
{
    struct agent *a = ctx;
    uplink_start(&a->link);
}

static void begin(struct agent *a)
{
    if (a->joining)
        return;
    a->joining = true;
    timer_stop(a->timers, &a->identity_wait);
    enroll_start(&a->enroll);
    if (identity_is_joined(&a->id))
        uplink_start(&a->link);
}

static void on_identity(void *ctx, const struct err *e, const struct notice_identity *id)
{
    struct agent *a = ctx;
    if (e) {
        log_error("the metadata service does not say who this machine is",
            log_s("metadata", a->config->metadata), log_err(e));
    } else {
        STR_COPY(a->enroll.provider, id->provider);
        STR_COPY(a->enroll.instance_id, id->instance_id);
    }
    begin(a);
}

static void on_identity_wait(struct timer *timer, void *ctx)
{
    (void)timer;
    begin(ctx);
}

/* ---- */

static void on_signal(void *ctx, int signum)
{
    struct agent *a = ctx;
    log_info("told to end", log_i("signal", signum));
    if (signum != SIGTERM || list_is_empty(&a->tasks))
        end_for_next(a);
    else if (!a->is_looking && !a->is_closing)
        look_whether_machine_goes(a);
}

/* Has ext4 spread the tasks over the disk. In one place each new file would have to step over all
 * inodes that were freed in the last minutes (it does not use them again so soon): a node that runs
 * many short jobs does little else then. */
static void spread(const char *dir)
{
    int flags, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
        flags |= FS_TOPDIR_FL;
        if (ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0)
            log_debug("this file system does not spread the tasks", log_s("dir", dir));
    }
    if (fd >= 0)
        close(fd);
}

/* Others must be able to pass through to the directories of their jobs. */
static int open_dirs(struct agent *a, struct err *e)
{
    mode_t mode = geteuid() == 0 ? 0711 : 0700;
    a->tasks_dir = mem_printf("%s/tasks", a->config->dir);
    a->kept_dir = mem_printf("%s/kept", a->config->dir);
    a->workdirs_dir = mem_printf("%s/workdirs", a->config->dir);
    int rc = fs_mkdirs(a->tasks_dir, mode, e);
    if (rc)
        return rc;
    spread(a->tasks_dir);
    char *path = mem_printf("%s/lock", a->config->dir);
    a->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (a->lock_fd < 0)
        rc = err_errno(e, errno, "opening %s", path);
    else if (fs_lock(a->lock_fd) < 0)
        rc = err_set(
            e, ERR_CONFLICT, "another agent is running with the directory %s", a->config->dir);
    free(path);
    return rc;
}

static int on_shell(void *ctx, int64_t job, int64_t attempt, int fd)
{
    struct task *t = find(ctx, job, attempt);
    return t ? task_shell(t, fd) : -ENOENT;
}

static void wire_up(struct agent *a)
{
    uint64_t seed;
    random_bytes(&seed, sizeof(seed));
    prng_init(&a->prng, seed);
    a->timers = uv_timers_create(a->loop);
    a->http = uv_http_client_create(a->loop);
    a->runner = uv_runner_create(a->loop);
    a->signals = uv_signals_create(a->loop, on_signal, a);
    a->peer = (struct peer){.http = a->http, .config = a->config, .id = &a->id};
    a->link = (struct uplink){.peer = &a->peer,
        .timers = a->timers,
        .prng = &a->prng,
        .incarnation = a->incarnation,
        .fill = on_fill,
        .desired = on_desired,
        .refused = on_refused,
        .ctx = a};
    uplink_init(&a->link);
    a->storage = storage_create(a->loop, a->timers, a->http, a->config);
    const struct limits limits = {
        .memory_mib = limits_memory_default_mib(resources_measure().memory_mib),
        .pids = a->config->task_pids,
        .no_new_privs = a->config->no_new_privs,
        .private_ipc = a->config->private_ipc,
        .hides_processes = a->config->hiding != PROCESSES_SHOWN};
    a->room = (struct task_room){.loop = a->loop,
        .timers = a->timers,
        .watches = watches_open(a->loop, a->timers),
        .prng = &a->prng,
        .peer = &a->peer,
        .supervisors = supervisor_pool_create(a->loop, a->timers, &limits),
        .net = storage_net(a->storage),
        .criu = &a->criu,
        .system_users = a->config->system_users,
        .dir = a->tasks_dir,
        .spares = spares_create(a->tasks_dir),
        .preparers = crew_create(a->loop, a->timers),
        .removers = crew_create(a->loop, a->timers),
        .kept_dir = a->kept_dir,
        .workdirs_dir = a->workdirs_dir,
        .notice = &a->notice,
        .admit = on_admit,
        .changed = on_changed,
        .changed_later = on_changed_later,
        .gone = on_gone,
        .ended = on_ended,
        .order = on_order,
        .ctx = a};
    a->channels = (struct channels){
        .loop = a->loop, .timers = a->timers, .peer = &a->peer, .shell = on_shell, .ctx = a};
    a->telemetry = telemetry_create(&(struct telemetry_options){.loop = a->loop,
        .timers = a->timers,
        .look_ms = a->config->look_ms,
        .every_ms = a->config->telemetry_ms,
        .list = on_list,
        .changed = on_changed_later,
        .ctx = a});
    a->enroll = (struct enroll){.peer = &a->peer,
        .config = a->config,
        .id = &a->id,
        .criu = &a->criu,
        .timers = a->timers,
        .prng = &a->prng,
        .on_joined = on_joined,
        .ctx = a};
    timer_init(&a->identity_wait, on_identity_wait, a);
    timer_init(&a->orphan, on_orphan_look, a);
    timer_init(&a->exit_check, on_exit_check, a);
    timer_init(&a->sweep, on_sweep, a);
    timer_init(&a->looking, on_looking_over, a);
    timer_init(&a->closing, on_closing_look, a);
    a->closing_since = a->all_ended_since = MONO_NONE;
}

/* With which containers can be run, for who asks for one (scheduler/api/jobspec.c). */
static void add_runtimes(struct config *c)
{
    struct image_runtimes found;
    image_runtimes_find(&found);
    if (found.podman)
        features_add(c->features, sizeof(c->features), "podman");
    if (found.apptainer)
        features_add(c->features, sizeof(c->features), "apptainer");
    image_runtimes_deinit(&found);
}

/* What the driver's own program lists; without it what devices there are. */
static void find_gpus(struct agent *a, struct node_resources *r)
{
    char program[256], *listing = mem_alloc(GPUS_LISTING_MAX);
    const char *const argv[] = {program, "-L", NULL};
    struct counts own, all;
    struct err e;
    bool lists = a->config->gpus != 0 && criu_find_program("nvidia-smi", program, sizeof(program));
    if (lists &&
        criu_call(argv, "nvidia-smi -L", NULL, CRIU_PROBE_MS, listing, GPUS_LISTING_MAX, &e) != 0)
        log_warn("the GPUs could not be listed", log_err(&e));
    else if (lists)
        gpus_read(&a->gpus, listing);
    free(listing);
    if (a->gpus.n == 0)
        gpus_number(&a->gpus, r->gpus);
    if (a->config->gpus >= 0 && a->config->gpus != gpus_whole(&a->gpus))
        gpus_number(&a->gpus, a->config->gpus);
    r->gpus = gpus_whole(&a->gpus);
    if (counts_parse(a->config->resources, &own, &e) == 0) {
        gpus_count_slices(&a->gpus, &own, &all);
        counts_format(&all, a->config->resources);
    }
}

static void measure(struct agent *a)
{
    struct node_resources r = resources_measure();
    if (a->config->cpus > 0)
        r.cpus = a->config->cpus;
    if (a->config->memory_mib > 0)
        r.memory_mib = a->config->memory_mib;
    find_gpus(a, &r);
    if (a->config->gpu.model[0])
        STR_COPY(r.gpu.model, a->config->gpu.model);
    if (a->config->gpu.memory_mib > 0)
        r.gpu.memory_mib = a->config->gpu.memory_mib;
    features_add(a->config->features, sizeof(a->config->features), r.arch);
    add_runtimes(a->config);
    a->enroll.resources = r;
    criu_probe(a->config->criu, &a->criu);
    criu_trial(&a->criu, a->config->dir);
    log_info("checkpoints by CRIU", log_s("can", wire_word_name(wire_criu_names, (int)a->criu.can)),
        log_s("criu", a->criu.text));
}

static void start_notices(struct agent *a)
{
    const struct notice_reader_options o = {.base_url = a->config->metadata,
        .http = a->http,
        .timers = a->timers,
        .on_notice = on_notice,
        .on_identity = on_identity,
        .on_looked = on_looked,
        .ctx = a};
    a->notices = notice_reader_start(a->config->provider, &o);
}

/* What cannot be had is said here, once: each task would fail anew. */
static void try_separation(struct agent *a)
{
    const struct namespaces_want ipc = {.ipc = true}, proc = {.hides_processes = true};
    struct err why;
    if (a->config->private_ipc && namespaces_try(&ipc, &why)) {
        log_warn(
            "tasks use the node's shared memory, and what they leave there stays (see private_ipc)",
            log_err(&why));
        a->config->private_ipc = false;
    }
    if (a->config->hiding != PROCESSES_SHOWN && namespaces_try(&proc, &why)) {
        log_warn("users see each other's processes in tasks (see hide_processes)", log_err(&why));
        a->config->hiding = PROCESSES_SHOWN;
    }
}

/* Before any job can start; those of the agent before have run under the same. */
static int guard_node(struct agent *a, struct err *e)
{
    struct err why;
    enum metadata_guard want = a->config->metadata_guard;
    int rc = want == METADATA_OPEN ? 0 : node_guard_metadata(&why);
    if (rc && want == METADATA_GUARD_REQUIRED)
        return err_set(e, ERR_CONFIG, "metadata_guard: required: %s", why.text);
    if (rc)
        log_warn("jobs on this node can get its role's credentials from the metadata service (see "
                 "metadata_guard)",
            log_err(&why));
    else if (want != METADATA_OPEN)
        features_add(a->config->features, sizeof(a->config->features), "metadata-guard");
    if (geteuid() == 0)
        limits_protect();
    if (a->config->hiding == PROCESSES_HIDDEN && proc_mount_hide(&why))
        log_warn(
            "users see each other's processes on this node (see hide_processes)", log_err(&why));
    if (geteuid() == 0)
        try_separation(a);
    return 0;
}

static int start(struct agent *a, struct err *e)
{
    int rc = open_dirs(a, e);
    if (!rc)
        rc = guard_node(a, e);
    if (!rc)
        rc = incarnation_next(a->config->dir, clock_wall(&clock_system).ms, &a->incarnation, e);
    if (!rc)
        rc = identity_open(a->config->dir, &a->id, e);
    if (rc)
        return rc;
    wire_up(a);
    measure(a);
    rc = adopt_all(a, e);
    if (rc)
        return rc;
    start_notices(a);
    timer_start(a->timers, &a->sweep, SWEEP_MS);
    if (config_is_elastic(a->config))
        timer_start(a->timers, &a->orphan, ORPHAN_LOOK_MS);
    if (a->notices && !identity_is_joined(&a->id))
        timer_start(a->timers, &a->identity_wait, IDENTITY_WAIT_MS);
    else
        begin(a);
    return 0;
}

static bool all_idle(const struct agent *a)
{
    LIST_FOREACH (&a->tasks, n) {
        if (!task_is_idle(task_of_link(n)))
            return false;
    }
    return true;
}

static void stop(struct agent *a)
{
    enroll_stop(&a->enroll);
    uplink_stop(&a->link);
    notice_reader_stop(a->notices);
    a->notices = NULL;
    timer_stop(a->timers, &a->identity_wait);
    timer_stop(a->timers, &a->orphan);
    timer_stop(a->timers, &a->exit_check);
    timer_stop(a->timers, &a->sweep);
    timer_stop(a->timers, &a->looking);
    timer_stop(a->timers, &a->closing);
    uv_runner_destroy(a->runner);
    LIST_FOREACH (&a->tasks, n) {
        task_release(task_of_link(n));
    }
    channels_stop(&a->channels);
    telemetry_stop(a->telemetry);
    storage_stop(a->storage);
    uv_http_client_destroy(a->http);
    supervisor_pool_stop(a->room.supervisors);
    while (!all_idle(a) || !channels_is_idle(&a->channels) || a->sweeping ||
           !supervisor_pool_is_idle(a->room.supervisors) || !telemetry_is_idle(a->telemetry))
        uv_run(a->loop, UV_RUN_ONCE);
    for (struct link *n; (n = list_pop(&a->tasks));)
        task_free(task_of_link(n));
    watches_close(a->room.watches);
    telemetry_destroy(a->telemetry);
    supervisor_pool_destroy(a->room.supervisors);
    spares_destroy(a->room.spares);
    crew_destroy(a->room.preparers);
    crew_destroy(a->room.removers);
    storage_destroy(a->storage);
    uv_signals_destroy(a->signals);
    uv_timers_destroy(a->timers);
}

int agent_run(uv_loop_t *loop, struct config *config)
{
    struct agent a = {.loop = loop, .config = config, .lock_fd = -1};
    struct err e;
    /* whatever user data came with: other users' jobs have to get to their directories */
    umask(geteuid() == 0 ? 022 : 077);
    int rc = start(&a, &e);
    if (rc) {
        log_error("the agent cannot start", log_err(&e));
        a.exit_code = 1;
    } else {
        uv_run(loop, UV_RUN_DEFAULT);
    }
    if (a.timers)
        stop(&a);
    uv_loop_finish(loop);
    identity_deinit(&a.id);
    free(a.tasks_dir);
    free(a.kept_dir);
    free(a.workdirs_dir);
    if (a.lock_fd >= 0)
        close(a.lock_fd);
    return a.exit_code;
}
