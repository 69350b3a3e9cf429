/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd: arguments, configuration file, loop.
 */
#include "base/fs.h"
#include "base/json_memory.h"
#include "base/log.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "base/uv/timers.h"
#include "base/yaml.h"
#include "scheduler/daemon.h"
#include "scheduler/service_manager.h"
#include <malloc.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>

struct program {
    uv_loop_t loop;
    struct config config;
    struct config_file file;
    struct open_files files;
    struct daemon *daemon;
    struct uv_signals *signals;
    uv_signal_t hangup;
    struct timers *timers;
    struct service_manager *manager;
};

struct arguments {
    char *config, *state, *level;
    int version, check;
};

static int read_arguments(int argc, const char **argv, struct arguments *a)
{
    struct poptOption options[] = {
        {"config", 'c', POPT_ARG_STRING, &a->config, 0,
            "configuration file (default: none; docs/reference/configuration.md)", "FILE"},
        {"state", 's', POPT_ARG_STRING, &a->state, 0,
            "state directory (default: the configuration's, or /var/lib/belay)", "DIR"},
        {"check", 0, POPT_ARG_NONE, &a->check, 0, "check the configuration and exit", NULL},
        {"log-level", 0, POPT_ARG_STRING, &a->level, 0,
            "debug, info, warn or error (default: info)", "LEVEL"},
        {"version", 0, POPT_ARG_NONE, &a->version, 0, "print the version and exit", NULL},
        POPT_AUTOHELP POPT_TABLEEND,
    };
    poptContext pc = poptGetContext("belayd", argc, argv, options, 0);
    int rc = poptGetNextOpt(pc);
    enum log_level level = LOG_INFO;
    if (rc < -1)
        fprintf(stderr, "belayd: %s: %s (belayd --help lists the options)\n", poptBadOption(pc, 0),
            poptStrerror(rc));
    else if (poptPeekArg(pc))
        fprintf(stderr, "belayd: unexpected argument \"%s\"\n", poptPeekArg(pc)), rc = -2;
    else if (a->level && log_level_from_name(a->level, &level) != 0)
        fprintf(stderr, "belayd: --log-level: expected debug, info, warn or error, found \"%s\"\n",
            a->level),
            rc = -2;
    log_init("belayd", level);
    poptFreeContext(pc);
    return rc < -1 ? -1 : 0;
}

static int read_config(const struct arguments *a, struct program *p, struct err *e)
{
    struct config_file *f = &p->file;
    *f = (struct config_file){.path = a->config, .state = a->state};
    int rc = a->config ? fs_read(a->config, YAML_BYTES_MAX, &f->text, e) : 0;
    return rc != 0 ? rc
                   : config_parse(a->config ? a->config : "(defaults)", buf_str(&f->text),
                         f->text.len, a->state, &p->config, e);
}

static void on_stopped(void *ctx)
{
    struct program *p = ctx;
    uv_stop(&p->loop);
}

static void on_signal(void *ctx, int signum)
{
    struct program *p = ctx;
    log_info("stopping", log_i("signal", signum));
    service_manager_stopping(p->manager);
    daemon_stop(p->daemon, on_stopped, p);
}

static void on_reloaded(void *ctx)
{
    struct program *p = ctx;
    service_manager_reloaded(p->manager);
}

static void on_hangup(uv_signal_t *h, int signum)
{
    struct program *p = h->data;
    (void)signum;
    service_manager_reloading(p->manager);
    daemon_reload(p->daemon, on_reloaded, p);
}

static int run(struct program *p, struct err *e)
{
    int rc = open_files_raise(&p->files, e);
    if (rc != 0)
        return rc;
    uv_loop_init(&p->loop);
    p->timers = uv_timers_create(&p->loop);
    rc = service_manager_open(p->timers, &p->manager, e); /* before anything runs a program */
    if (rc == 0)
        rc = daemon_start(&p->loop, &p->config, &p->file, &p->files, &p->daemon, e);
    if (rc == 0) {
        p->signals = uv_signals_create(&p->loop, on_signal, p);
        p->hangup.data = p;
        uv_signal_init(&p->loop, &p->hangup);
        uv_signal_start(&p->hangup, on_hangup, SIGHUP);
        service_manager_ready(p->manager);
        uv_run(&p->loop, UV_RUN_DEFAULT);
        uv_signals_destroy(p->signals);
        uv_close((uv_handle_t *)&p->hangup, NULL);
        daemon_destroy(p->daemon);
    }
    service_manager_close(p->manager);
    uv_timers_destroy(p->timers);
    uv_loop_finish(&p->loop);
    return rc;
}

static int check(struct program *p, struct err *e)
{
    int rc = open_files_raise(&p->files, e);
    if (rc != 0)
        return rc;
    uv_loop_init(&p->loop);
    rc = daemon_check(&p->loop, &p->config, &p->files, e);
    uv_loop_finish(&p->loop);
    return rc;
}

static void print_fine(const struct program *p)
{
    const struct open_files *f = &p->files;
    printf("the configuration is fine: %zu pool%s\n", p->config.n_pools,
        p->config.n_pools == 1 ? "" : "s");
    if (p->config.why_node_credentials)
        printf("note: every job can reach all checkpoints through its node's role "
               "(store_credentials: node); for credentials of each job's own %s\n",
            p->config.why_node_credentials);
    if (open_files_are_few(f))
        printf("note: belayd may open %lld files at a time (ulimit -Hn, or LimitNOFILE= of its "
               "systemd unit), which is few: connections are limited to %d of nodes, %d of users, "
               "%d at the UNIX socket, %d of strangers and %d to providers\n",
            (long long)f->max, f->nodes, f->users, f->users_at_socket, f->unauthenticated,
            f->outgoing);
}

/* By default, glibc raises this threshold whenever it frees a mapped block. Bodies of requests
 * would then be allocated on the heap and fragment it, and belayd would keep the memory of a past
 * flood. */
#define MMAP_THRESHOLD_BYTES (128 << 10)

int main(int argc, char **argv)
{
    struct program p = {0};
    struct arguments a = {0};
    struct err e = {0};
    int status = 0;
    mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
    /* cleanings, verifications and long reads occupy a thread each */
    setenv("UV_THREADPOOL_SIZE", "8", 0);
    json_memory_wipe_freed(); /* secrets and environments of jobs */
    if (read_arguments(argc, (const char **)argv, &a) != 0) {
        status = 2;
    } else if (a.version) {
        printf("belayd %s\n", BELAY_VERSION);
    } else if (read_config(&a, &p, &e) != 0) {
        fprintf(stderr, "belayd: %s\n", e.text);
        status = 2;
    } else if (a.check && check(&p, &e) != 0) {
        fprintf(stderr, "belayd: %s\n", e.text);
        status = 2;
    } else if (a.check) {
        print_fine(&p);
    } else if (run(&p, &e) != 0) {
        log_error("belayd cannot start", log_err(&e));
        status = 1;
    }
    config_deinit(&p.config);
    buf_deinit(&p.file.text);
    free(a.config);
    free(a.state);
    free(a.level);
    return status;
}
