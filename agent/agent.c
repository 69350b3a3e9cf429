/* SPDX-License-Identifier: Apache-2.0
 *
 *   open state dir --> take over tasks --> (metadata: own id) --> join --> link <--> tasks
 *   notices --> tasks, then belayd
 *
 * Invariants.
 *  1. One agent per state directory (lock).
 *  2. A notice reaches the programs before it is reported to belayd.
 *  3. Attempts are started and removed only on belayd's order.
 *  4. SIGTERM means a restart of the agent, which leaves the tasks to the next one, unless a
 *     reclaim is announced, the machine shuts down, or the configuration says that SIGTERM is a
 *     notice: then the agent ends when every task is saved, has ended and is reported, or when the
 *     time is over.
 */
#include "agent/agent_private.h"

#include "agent/agent.h"
#include "agent/gpu/resources.h"
#include "agent/incarnation.h"
#include "agent/supervisor/limits.h"
#include "agent/watch.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_client.h"
#include "base/uv/timers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define IDENTITY_WAIT_MS 60000
#define STORES_WAIT_MS 5000 /* for calls to stores to return when the agent ends */

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
        log_error("the metadata service does not report this machine's identity",
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

static int on_shell(void *ctx, int64_t job, int64_t attempt, int fd)
{
    struct task *t = agent_find_task(ctx, job, attempt);
    return t ? task_shell(t, fd) : -ENOENT;
}

static void init_link(struct agent *a)
{
    a->peer = (struct peer){.http = a->http, .config = a->config, .id = &a->id};
    a->link = (struct uplink){.peer = &a->peer,
        .timers = a->timers,
        .prng = &a->prng,
        .incarnation = a->incarnation,
        .fill = agent_fill_status,
        .desired = agent_desired,
        .refused = agent_refused,
        .ctx = a};
    uplink_init(&a->link);
    a->enroll = (struct enroll){.peer = &a->peer,
        .config = a->config,
        .id = &a->id,
        .criu = &a->criu,
        .timers = a->timers,
        .prng = &a->prng,
        .on_joined = on_joined,
        .ctx = a};
    a->channels = (struct channels){
        .loop = a->loop, .timers = a->timers, .peer = &a->peer, .shell = on_shell, .ctx = a};
}

static void init_common(struct agent *a)
{
    const struct limits limits = {
        .memory_mib = limits_memory_default_mib(resources_measure().memory_mib),
        .pids = a->config->task_pids,
        .no_new_privs = a->config->no_new_privs,
        .private_ipc = a->config->private_ipc,
        .hides_processes = a->config->hiding != PROCESSES_SHOWN};
    a->store_credentials = store_credentials_create(a->loop, a->timers, a->http, a->config);
    a->common = (struct task_common){.loop = a->loop,
        .timers = a->timers,
        .watches = watches_open(a->loop, a->timers),
        .prng = &a->prng,
        .peer = &a->peer,
        .supervisors = supervisor_pool_create(a->loop, a->timers, &limits),
        .net = store_credentials_net(a->store_credentials),
        .criu = &a->criu,
        .system_users = a->config->system_users,
        .dir = a->tasks_dir,
        .spares = spares_create(a->tasks_dir),
        .preparers = crew_create(a->loop, a->timers),
        .removers = crew_create(a->loop, a->timers),
        .store_threads = store_threads_create(a->loop),
        .kept_dir = a->kept_dir,
        .workdirs_dir = a->workdirs_dir,
        .notice = &a->notice,
        .admit = agent_admit,
        .changed = agent_changed,
        .changed_later = agent_changed_later,
        .gone = agent_task_gone,
        .ended = agent_task_ended,
        .disk_refused = agent_disk_refused,
        .node_faulty = agent_node_faulty,
        .runner = a->runner,
        .prolog = a->config->prolog,
        .epilog = a->config->epilog,
        .hook_timeout_ms = a->config->hook_timeout_ms,
        .order = agent_order_saves,
        .ctx = a};
    prefetch_init(&a->prefetch, &a->common);
}

/* Creates the agent's parts and connects them. */
static void wire_up(struct agent *a)
{
    uint64_t seed;
    random_bytes(&seed, sizeof(seed));
    prng_init(&a->prng, seed);
    a->timers = uv_timers_create(a->loop);
    a->http = uv_http_client_create(a->loop);
    a->runner = uv_runner_create(a->loop);
    a->signals = uv_signals_create(a->loop, agent_signal, a);
    init_link(a);
    init_common(a);
    a->telemetry = telemetry_create(&(struct telemetry_options){.loop = a->loop,
        .timers = a->timers,
        .sample_ms = a->config->sample_ms,
        .every_ms = a->config->telemetry_ms,
        .list = agent_list_tasks,
        .changed = agent_changed_later,
        .faulty = agent_node_faulty,
        .ctx = a});
    a->disk = (struct disk){
        .dir = a->config->dir, .timers = a->timers, .changed = agent_changed, .ctx = a};
    disk_start(&a->disk);
    timer_init(&a->identity_wait, on_identity_wait, a);
    agent_tasks_init(a);
    agent_ending_init(a);
}

static void start_notices(struct agent *a)
{
    const struct notice_reader_options o = {.base_url = a->config->metadata,
        .http = a->http,
        .timers = a->timers,
        .on_notice = agent_notice,
        .on_identity = on_identity,
        .on_polled = agent_polled_notices,
        .ctx = a};
    a->notices = notice_reader_start(a->config->provider, &o);
}

static int start(struct agent *a, struct err *e)
{
    int rc = agent_open_dirs(a, e);
    if (!rc)
        rc = agent_guard_node(a, e);
    if (!rc)
        rc = incarnation_next(a->config->dir, clock_wall(&clock_system).ms, &a->incarnation, e);
    if (!rc)
        rc = identity_open(a->config->dir, &a->id, e);
    if (rc)
        return rc;
    wire_up(a);
    agent_measure(a);
    rc = agent_adopt_tasks(a, e);
    if (rc)
        return rc;
    start_notices(a);
    agent_tasks_begin(a);
    agent_ending_begin(a);
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

/* The agent exits although a thread's call to a store does not return, and frees nothing that the
 * thread may use. */
static void on_stores_wait(struct timer *timer, void *ctx)
{
    const struct agent *a = ctx;
    bool is_all = true; /* every other task is idle */
    size_t n_on_store = !prefetch_is_idle(&a->prefetch);
    LIST_FOREACH (&a->tasks, n) {
        const struct task *t = task_of_link(n);
        is_all &= task_is_idle(t) || task_is_on_store(t);
        n_on_store += task_is_on_store(t);
    }
    if (!is_all || n_on_store == 0) {
        timer_start(a->timers, timer, STORES_WAIT_MS);
        return;
    }
    log_warn("ending although a store of checkpoints does not answer",
        log_i("waiting", (int64_t)n_on_store));
    _exit(a->exit_code);
}

static void stop(struct agent *a)
{
    struct timer stores_wait;
    enroll_stop(&a->enroll);
    uplink_stop(&a->link);
    notice_reader_stop(a->notices);
    a->notices = NULL;
    timer_stop(a->timers, &a->identity_wait);
    timer_stop(a->timers, &a->prune_timer);
    disk_stop(&a->disk);
    agent_ending_stop(a);
    LIST_FOREACH (&a->tasks, n) {
        task_release(task_of_link(n));
    }
    uv_runner_destroy(a->runner); /* after the tasks, whose programs it then no longer ends */
    prefetch_stop(&a->prefetch);
    channels_stop(&a->channels);
    telemetry_stop(a->telemetry);
    store_credentials_stop(a->store_credentials);
    uv_http_client_destroy(a->http);
    supervisor_pool_stop(a->common.supervisors);
    timer_init(&stores_wait, on_stores_wait, a);
    timer_start(a->timers, &stores_wait, STORES_WAIT_MS);
    while (!all_idle(a) || !prefetch_is_idle(&a->prefetch) || !channels_is_idle(&a->channels) ||
           a->pruning || !supervisor_pool_is_idle(a->common.supervisors) ||
           !telemetry_is_idle(a->telemetry))
        uv_run(a->loop, UV_RUN_ONCE);
    timer_stop(a->timers, &stores_wait);
    for (struct link *n; (n = list_pop(&a->tasks));)
        task_free(task_of_link(n));
    watches_close(a->common.watches);
    telemetry_destroy(a->telemetry);
    supervisor_pool_destroy(a->common.supervisors);
    spares_destroy(a->common.spares);
    crew_destroy(a->common.preparers);
    crew_destroy(a->common.removers);
    store_threads_destroy(a->common.store_threads);
    store_credentials_destroy(a->store_credentials);
    uv_signals_destroy(a->signals);
    uv_timers_destroy(a->timers);
}

int agent_run(uv_loop_t *loop, struct config *config)
{
    struct agent a = {.loop = loop, .config = config, .lock_fd = -1};
    struct err e;
    /* independent of user data's umask: jobs of other users must reach their directories */
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
