/* SPDX-License-Identifier: Apache-2.0
 *
 * belay down: has everything that runs on this machine saved and queued again, then stops the agent
 * and belayd. Nothing is lost: `belay up` continues. If the machine is not stopped after all (the
 * saves take too long, an interrupt), a node drained here is undrained.
 */
#include "cli/local.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "job/hosts.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STOP_MS 30000
#define POLL_MS 50
#define SILENT_MS 3000  /* a wait that is shorter is not reported */
#define REPORT_MS 10000 /* between reports */
#define NAMED_MAX 5     /* jobs named in a report */

enum { VAL_TIMEOUT = 1 };

struct down {
    char *home;
    int64_t timeout_ms;
    struct client *client;
    int64_t node;     /* node number of our agent; 0 = none */
    char name[64];    /* the node's */
    bool was_drained; /* by this program */
    /* Signals that interrupt. They are blocked until the agent is asked to stop: an interrupt
     * undrains the node before the program ends. before: the previous mask. */
    sigset_t signals, before;
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct down *d = ctx;
    struct err e;
    (void)val;
    if (time_parse_duration(arg, false, &d->timeout_ms, &e) == 0)
        return CLI_OK;
    cli_error("--timeout: %s", e.text);
    return CLI_USAGE;
}

enum here { HERE_UNKNOWN, HERE_KNOWN, HERE_DRAINING };

/* Number of jobs on our node, 0 also if belayd does not know the node; -1 on an error. */
static int64_t running_here(struct down *d, enum here *ret_here, struct err *e)
{
    json_t *v = NULL, *node;
    size_t i;
    int64_t n = 0;
    *ret_here = HERE_UNKNOWN;
    if (client_json(d->client, "GET", "/api/v1/nodes", NULL, &v, e) != 0)
        return -1;
    json_array_foreach(json_object_get(v, "nodes"), i, node)
    {
        if (cli_int(node, "id", 0) == d->node) {
            *ret_here = str_eq(cli_text(node, "state"), "draining") ? HERE_DRAINING : HERE_KNOWN;
            n = cli_int(node, "jobs", 0);
            STR_COPY(d->name, cli_text(node, "name"));
        }
    }
    json_decref(v);
    return n;
}

static int post(struct down *d, const char *verb, struct err *e)
{
    const char *path = CLI_PATH("/api/v1/nodes/%lld/%s", (long long)d->node, verb);
    json_t *reply = NULL;
    int rc = client_json(d->client, "POST", path, NULL, &reply, e);
    json_decref(reply);
    return rc;
}

static int drain(struct down *d, struct err *e)
{
    enum here here;
    int rc = running_here(d, &here, e) < 0 ? (int)e->kind : 0;
    if (rc != 0 || here == HERE_UNKNOWN)
        return rc;
    rc = post(d, "drain", e);
    d->was_drained = rc == 0 && here != HERE_DRAINING;
    return rc;
}

/* Whether a signal has arrived, or arrives within that time. */
static bool is_interrupted(const struct down *d, int within_ms)
{
    const struct timespec limit = {.tv_nsec = within_ms * 1000000L};
    return sigtimedwait(&d->signals, NULL, &limit) > 0;
}

/* "42 (train), 43 (eval)": the first of the jobs that still run on our node; "" if they cannot be
 * read. */
static void name_jobs(struct down *d, struct buf *out)
{
    json_t *v = NULL, *job;
    size_t i;
    int n = 0;
    struct err unused;
    if (client_json(d->client, "GET", "/api/v1/jobs?state=running", NULL, &v, &unused) != 0)
        return;
    json_array_foreach(json_object_get(v, "jobs"), i,
        job) if (hosts_has(cli_text(job, "node"), d->name) && n++ < NAMED_MAX) buf_printf(out,
        "%s%s (%s)", n > 1 ? ", " : "", cli_text(job, "ref"), cli_text(job, "name"));
    if (n > NAMED_MAX)
        buf_adds(out, ", ...");
    json_decref(v);
}

/* Says on standard error what is waited for. */
static void report_wait(struct down *d, int64_t n, int64_t left_ms)
{
    struct buf jobs = {0};
    name_jobs(d, &jobs);
    fprintf(stderr, "belay: waiting up to %lld s for %lld job%s being saved%s%s\n",
        (long long)(left_ms + 999) / 1000, (long long)n, n == 1 ? " that is" : "s that are",
        jobs.len ? ": " : "", buf_str(&jobs));
    buf_deinit(&jobs);
}

static int wait_for_saves(struct down *d, struct err *e)
{
    int64_t end = clock_mono(&clock_system).ms + d->timeout_ms;
    int64_t n, report_at = end - d->timeout_ms + SILENT_MS;
    enum here here;
    while ((n = running_here(d, &here, e)) > 0) {
        const char *are = n == 1 ? " is" : "s are";
        const int64_t now = clock_mono(&clock_system).ms;
        if (now >= report_at && now <= end) {
            report_wait(d, n, end - now);
            report_at = now + REPORT_MS;
        }
        if (clock_mono(&clock_system).ms > end)
            return err_set(e, ERR_TIMEOUT,
                "%lld job%s still being saved after %lld s; nothing was stopped: look with belay "
                "list, or give more time with --timeout",
                (long long)n, are, (long long)d->timeout_ms / 1000);
        if (is_interrupted(d, POLL_MS))
            return err_set(e, ERR_CANCELLED,
                "interrupted while %lld job%s being saved; nothing was stopped", (long long)n, are);
    }
    if (n == 0 && is_interrupted(d, 0))
        return err_set(e, ERR_CANCELLED, "interrupted; nothing was stopped");
    return n < 0 ? (int)e->kind : 0;
}

/* e: why the wait has ended. */
static void undrain(struct down *d, struct err *e)
{
    struct err why;
    char *text = mem_strdup(e->text);
    if (post(d, "undrain", &why) == 0)
        err_set(e, e->kind, "%s. The node takes jobs again (undrained)", text);
    else
        err_set(e, e->kind, "%s. The node stays drained (%s): belay nodes undrain %lld", text,
            why.text, (long long)d->node);
    free(text);
}

static int drain_and_wait(struct down *d, struct err *e)
{
    int rc = drain(d, e);
    if (rc == 0)
        rc = wait_for_saves(d, e);
    if (rc != 0 && d->was_drained)
        undrain(d, e);
    return rc;
}

static void block_signals(struct down *d)
{
    sigemptyset(&d->signals);
    sigaddset(&d->signals, SIGINT);
    sigaddset(&d->signals, SIGTERM);
    sigaddset(&d->signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &d->signals, &d->before);
}

static void unblock_signals(const struct down *d)
{
    pthread_sigmask(SIG_SETMASK, &d->before, NULL);
}

static int stop_process(const struct down *d, const char *file, const char *program, struct err *e)
{
    char *path = mem_printf("%s/%s", d->home, file);
    pid_t pid = local_pid(path, program);
    int fd = -1, rc = pid ? local_stop_begin(pid, &fd, e) : 0;
    unblock_signals(d);
    if (rc == 0)
        rc = local_stop_wait(pid, fd, STOP_MS, e);
    free(path);
    return rc == 0 ? 0 : err_wrap(e, "%s", program);
}

static int stop_all(struct down *d, struct err *e)
{
    char *path = mem_printf("%s/belayd.json", d->home);
    bool up = local_pid(path, "belayd") != 0;
    int rc = 0;
    free(path);
    if (!up && local_has_tasks(d->home))
        return err_set(e, ERR_UNAVAILABLE,
            "belayd is not running, but its jobs are, and without it they cannot be saved; nothing "
            "was stopped: run belay up, then belay down");
    block_signals(d);
    if (up) {
        rc = client_create(&d->client, e);
        if (rc == 0)
            rc = drain_and_wait(d, e);
    }
    if (rc != 0)
        unblock_signals(d);
    if (rc == 0)
        rc = stop_process(d, "agent.pid", "belay-agent", e);
    if (rc == 0)
        rc = stop_process(d, "belayd.json", "belayd", e);
    return rc;
}

static void report_json(const struct down *d)
{
    json_t *o = json_pack("{s:o,s:b}", "home", json_text(d->home), "stopped", 1);
    cli_print_json(o);
    json_decref(o);
}

static int run(int argc, const char **argv)
{
    struct down d = {.home = cli_home(), .timeout_ms = 120000};
    struct cli_args a;
    struct err e = {0};
    int rc = cli_parse(&verb_down, argc, argv, false, on_option, &d, &a);
    if (rc == 0 && local_use(d.home, &e) != 0) {
        cli_error("%s", e.text);
        rc = CLI_USAGE;
    }
    if (rc == 0) {
        d.node = local_node(d.home);
        int failed = stop_all(&d, &e);
        if (failed)
            cli_error("%s", e.text);
        else if (a.json)
            report_json(&d);
        else
            printf("belayd is down; unfinished jobs continue after the next belay up\n");
        rc = failed ? CLI_FAILED : CLI_OK;
    }
    client_destroy(d.client);
    free(d.home);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"timeout", 0, POPT_ARG_STRING, NULL, VAL_TIMEOUT, "how long saves may take (default 2m)",
        "TIME"},
    POPT_TABLEEND,
};

const struct verb verb_down = {"down", CLI_NO_WORDS,
    "save running jobs, then stop belayd and the agent", run, options, false,
    .examples = "belay down\n"};
