/* SPDX-License-Identifier: Apache-2.0
 *
 * Why and how the agent ends: disowned by its cluster, cut off from it, or signalled. A signal
 * means a restart, which leaves the tasks to the next agent, unless the machine is going away: the
 * init and the metadata service are asked first. If the machine is going away, the tasks are saved
 * and reported.
 *
 *   SIGTERM, with tasks ---------------------------> checking
 *   checking -- the machine stays -----------------> ended at once; the tasks keep running
 *   checking -- the machine goes ------------------> closing
 *   closing --- all is reported, or time is over --> ended
 *
 * Without tasks, or at another signal, the agent ends at once.
 *
 * With sigterm_notice, SIGTERM is neither: by it another scheduler announces that it takes the node
 * back. Tasks and belayd get a notice of a reclaim, and the agent closes, with or without tasks.
 * belayd has to hear of it first, or it would place jobs here until the lease is over. Further
 * signals change nothing: that scheduler repeats them at the end.
 */
#include "agent/agent_private.h"

#include "base/log.h"
#include "base/str.h"

#include <signal.h>
#include <stdlib.h>

#define ORPHAN_CHECK_MS 5000
#define CHECK_MAX_MS 4000 /* for the answers of systemd and the metadata service */
#define CLOSING_CHECK_MS 100
#define REPORT_MS 10000    /* to report to belayd when all tasks have ended in a shutdown */
#define REPORT_MIN_MS 5000 /* of the whole shutdown, unless the deadline is later */
#define EXIT_UNWANTED 3    /* the cluster does not know this node */

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

/* belayd does not know this node: its tasks already run on other nodes. A reserved node that has a
 * token joins again. */
static void on_disowned(struct agent *a, const struct err *e)
{
    log_error("the cluster no longer knows this node: ending its tasks", log_err(e));
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

bool agent_refused(void *ctx, const struct err *e)
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

/* Ends an elastic node that has lost contact with its cluster: it would cost money for ever. */
static void on_orphan_check(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    int64_t silent_ms = clock_mono(a->timers->clock).ms - a->link.heard.ms;
    timer_start(a->timers, timer, ORPHAN_CHECK_MS);
    if (silent_ms < a->config->orphan_timeout_ms || silent_ms < a->link.lease_ms)
        return;
    if (!a->orphaned) {
        log_error("no contact with belayd for too long: saving tasks and ending",
            log_i("silent_ms", silent_ms));
        a->orphaned = true;
        stop_all(a, "no contact with belayd for too long");
    }
    if (all_ended(a))
        leave(a);
}

/* ---- shutting down ---- */

/* Milliseconds that tasks have in a shutdown, unless a notice leaves less. */
static int64_t shutdown_ms(const struct agent *a)
{
    int64_t own = a->config->shutdown_timeout_ms, providers = notice_reader_shutdown_ms(a->notices);
    return providers > 0 && providers < own ? providers : own;
}

static bool closing_is_over(struct agent *a, struct mono now)
{
    int64_t until = a->closing_since.ms + REPORT_MIN_MS;
    if (mono_is_set(a->notice.deadline_mono) && a->notice.deadline_mono.ms > until)
        until = a->notice.deadline_mono.ms;
    if (!all_ended(a))
        a->all_ended_since = MONO_NONE;
    else if (!mono_is_set(a->all_ended_since))
        a->all_ended_since = now;
    return (list_is_empty(&a->tasks) && uplink_is_reported(&a->link)) || now.ms >= until ||
           (mono_is_set(a->all_ended_since) && now.ms - a->all_ended_since.ms >= REPORT_MS);
}

static void on_closing_check(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    struct mono now = clock_mono(a->timers->clock);
    if (!closing_is_over(a, now)) {
        timer_start(a->timers, timer, CLOSING_CHECK_MS);
        return;
    }
    if (list_is_empty(&a->tasks))
        log_info("ending; everything that ran here is reported to belayd");
    else
        log_warn("ending: time is up; some results may not have reached belayd",
            log_i("tasks", (int64_t)agent_count_tasks(a)),
            log_i("not_ended", (int64_t)count_running(a)));
    finish(a, 0);
}

static void close_when_reported(struct agent *a)
{
    a->is_closing = true;
    a->closing_since = clock_mono(a->timers->clock);
    log_info("asked to end while this machine goes away: saving tasks first",
        log_i("tasks", (int64_t)agent_count_tasks(a)));
    timer_start(a->timers, &a->closing, 0);
}

void agent_start_closing(struct agent *a)
{
    if (a->is_closing)
        return;
    close_when_reported(a);
    agent_notice_stop_tasks(a);
}

static void notice_of_own(struct agent *a, const char *what, int64_t left_ms)
{
    struct wall now = clock_wall(a->timers->clock);
    struct notice n = {
        .kind = NOTICE_RECLAIM,
        .deadline = {now.ms + left_ms},
        .deadline_mono = {clock_mono(a->timers->clock).ms + left_ms},
        .seen = now,
    };
    STR_COPY(n.what, what);
    agent_notice(a, &n);
}

/* Handles the shutdown like a provider's notice, towards tasks and belayd, with the time of a
 * shutdown. */
static void shut_down(struct agent *a, const char *why)
{
    int64_t left_ms = shutdown_ms(a);
    if (a->is_shutdown)
        return;
    a->is_shutdown = true;
    log_warn("this machine shuts down", log_s("known", why), log_i("left_ms", left_ms));
    notice_of_own(a, "shutdown", left_ms);
    agent_start_closing(a);
}

/* Tasks may work on for a while, as at any notice. */
static void take_back(struct agent *a)
{
    if (a->is_closing)
        return;
    notice_of_own(a, "SIGTERM", a->config->sigterm_notice_ms);
    close_when_reported(a);
}

static void end_for_next(struct agent *a)
{
    log_info("ending; tasks keep running under their supervisors");
    finish(a, 0);
}

static void end_when_answered(struct agent *a)
{
    if (!a->is_checking || !a->is_init_answered || !a->is_polled)
        return;
    a->is_checking = false;
    timer_stop(a->timers, &a->shutdown_check);
    if (!a->is_closing)
        end_for_next(a);
}

static void on_init_answer(void *ctx, bool is_shutdown, const char *why)
{
    struct agent *a = ctx;
    a->is_init_answered = true;
    if (a->ending)
        return;
    if (is_shutdown)
        shut_down(a, why);
    end_when_answered(a);
}

void agent_polled_notices(void *ctx)
{
    struct agent *a = ctx;
    a->is_polled = true;
    end_when_answered(a);
}

static void on_check_deadline(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    (void)timer;
    a->is_init_answered = a->is_polled = true;
    end_when_answered(a);
}

/* A provider may shut the machine down together with its notice, so SIGTERM can arrive first. */
static void check_for_shutdown(struct agent *a)
{
    a->is_checking = true;
    a->is_polled = !a->notices;
    timer_start(a->timers, &a->shutdown_check, CHECK_MAX_MS);
    if (a->notice.kind == NOTICE_RECLAIM)
        agent_start_closing(a);
    shutdown_ask(&a->shutdown, a->runner, on_init_answer, a);
    notice_reader_poll(a->notices);
}

void agent_signal(void *ctx, int signum)
{
    struct agent *a = ctx;
    log_info("asked to end", log_i("signal", signum));
    if (signum == SIGTERM && a->config->sigterm_notice_ms > 0)
        take_back(a);
    else if (signum != SIGTERM || list_is_empty(&a->tasks))
        end_for_next(a);
    else if (!a->is_checking && !a->is_closing)
        check_for_shutdown(a);
}

/* ---- timers ---- */

void agent_ending_init(struct agent *a)
{
    timer_init(&a->orphan, on_orphan_check, a);
    timer_init(&a->exit_check, on_exit_check, a);
    timer_init(&a->shutdown_check, on_check_deadline, a);
    timer_init(&a->closing, on_closing_check, a);
    agent_notice_init(a);
    a->closing_since = a->all_ended_since = MONO_NONE;
}

void agent_ending_begin(struct agent *a)
{
    if (config_is_elastic(a->config))
        timer_start(a->timers, &a->orphan, ORPHAN_CHECK_MS);
}

void agent_ending_stop(struct agent *a)
{
    timer_stop(a->timers, &a->orphan);
    timer_stop(a->timers, &a->exit_check);
    timer_stop(a->timers, &a->shutdown_check);
    timer_stop(a->timers, &a->closing);
    timer_stop(a->timers, &a->last_save);
}
