/* SPDX-License-Identifier: Apache-2.0
 *
 * belay-emulator --config FILE [--check] [--port-file FILE]: a cloud on this machine. SIGTERM or
 * SIGINT ends all instances, then the program. See docs/reference/emulator.md.
 */
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "emulator/emulator.h"
#include "emulator/holder.h"
#include "emulator/machines.h"
#include <errno.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };
#define STOP_MAX_MS SECONDS_MS(30)

struct program {
    char *config_file, *port_file, *log_level;
    struct emulator_config config;
    struct emulator emulator;
    uv_loop_t loop;
    struct uv_signals *signals;
    uv_check_t check; /* runs once per loop iteration to detect the end */
    struct timer stop_timer;
    int only_check;
    bool is_own_dir, is_stopping;
};

/* 0 = continue; 1 = done; -1 = an error was printed. */
static int parse_arguments(struct program *p, int argc, char **argv)
{
    int wants_version = 0;
    const struct poptOption options[] = {
        {"config", 'c', POPT_ARG_STRING, &p->config_file, 0,
            "configuration, YAML (docs/reference/emulator.md)", "FILE"},
        {"check", 0, POPT_ARG_NONE, &p->only_check, 0, "check the configuration and exit", NULL},
        {"port-file", 0, POPT_ARG_STRING, &p->port_file, 0,
            "write the endpoints here as JSON when ready", "FILE"},
        {"log-level", 0, POPT_ARG_STRING, &p->log_level, 0, "debug, info, warn or error", "LEVEL"},
        {"version", 0, POPT_ARG_NONE, &wants_version, 0, "print the version", NULL},
        POPT_AUTOHELP POPT_TABLEEND};
    poptContext ctx = poptGetContext("belay-emulator", argc, (const char **)argv, options, 0);
    int rc = poptGetNextOpt(ctx);
    const char *rest = rc == -1 ? poptGetArg(ctx) : NULL;
    int code = -1;
    if (rc < -1)
        fprintf(stderr, "belay-emulator: %s: %s\n", poptBadOption(ctx, 0), poptStrerror(rc));
    else if (rest)
        fprintf(stderr, "belay-emulator: unexpected argument: %s\n", rest);
    else if (wants_version)
        code = 1;
    else if (!p->config_file)
        fprintf(stderr,
            "belay-emulator: --config FILE is required; docs/reference/emulator.md shows one\n");
    else
        code = 0;
    if (code == 1)
        printf("belay-emulator " BELAY_VERSION "\n");
    poptFreeContext(ctx);
    return code;
}

/* ---- The port file ---- */

static json_t *control_url(const struct program *p)
{
    char url[128];
    const char *host = p->config.host;
    bool is_v6 = strchr(host, ':') != NULL;
    snprintf(url, sizeof(url), "http://%s%s%s:%d", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
        http_server_port(p->emulator.control));
    return json_string(url);
}

static int announce(const struct program *p, struct err *e)
{
    json_t *o = json_object();
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < p->emulator.n_providers; k++) {
        const struct provider *provider = &p->emulator.providers[k];
        const char *url = front_server_url(provider->api);
        json_object_set_new(o, provider->front->port_key, json_string(url));
        if (provider->front->announce)
            rc = provider->front->announce(provider->state, &provider->region, url, o, e);
        log_info("API ready", log_s("provider", provider->front->name), log_s("url", url));
        if (provider->side)
            json_object_set_new(
                o, provider->front->side->port_key, json_string(front_server_url(provider->side)));
    }
    json_object_set_new(o, "control", control_url(p));
    json_object_set_new(o, "dir", json_text(p->config.dir));
    json_object_set_new(o, "pid", json_integer(getpid()));
    log_info("ready", log_s("control", json_string_value(json_object_get(o, "control"))),
        log_s("dir", p->config.dir));
    char *text = json_dump_text(o);
    json_decref(o);
    if (rc == 0 && p->port_file)
        rc = fs_write_atomic(p->port_file, text, strlen(text), 0644, e);
    free(text);
    return rc;
}

/* ---- Running ---- */

static int make_dir(struct program *p, struct err *e)
{
    if (p->config.dir)
        return fs_mkdirs(p->config.dir, machines_dir_mode(), e);
    const char *tmp = getenv("TMPDIR");
    p->config.dir = mem_printf("%s/belay-emulator.XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(p->config.dir))
        return err_errno(
            e, errno, "cannot make a directory below %s", tmp && tmp[0] ? tmp : "/tmp");
    p->is_own_dir = true;
    if (chmod(p->config.dir, machines_dir_mode()) < 0)
        return err_errno(e, errno, "cannot set the mode of %s", p->config.dir);
    return 0;
}

static void stop_when_empty(struct program *p)
{
    if (p->is_stopping && emulator_is_empty(&p->emulator))
        uv_stop(&p->loop);
}

static void on_check(uv_check_t *c)
{
    stop_when_empty(c->data);
}

/* A process does not die (it is stuck in the kernel). Its holder continues to try after our end. */
static void on_stop_timer(struct timer *t, void *ctx)
{
    const struct program *p = ctx;
    (void)t;
    log_error("not all instances ended in time", log_i("left", emulator_machines(&p->emulator)));
    _exit(EXIT_FAILURE);
}

static void on_signal(void *ctx, int signum)
{
    struct program *p = ctx;
    if (p->is_stopping)
        return;
    p->is_stopping = true;
    log_info(
        "stopping", log_i("signal", signum), log_i("instances", emulator_machines(&p->emulator)));
    emulator_stop(&p->emulator);
    timer_init(&p->stop_timer, on_stop_timer, p);
    timer_start(p->emulator.timers, &p->stop_timer, STOP_MAX_MS);
    stop_when_empty(p);
}

static int run(struct program *p, struct err *e)
{
    int rc = make_dir(p, e);
    if (rc < 0)
        return rc;
    uv_loop_init(&p->loop);
    rc = emulator_start(&p->emulator, &p->loop, &p->config, e);
    if (rc == 0)
        rc = announce(p, e);
    p->signals = uv_signals_create(&p->loop, on_signal, p);
    uv_check_init(&p->loop, &p->check);
    p->check.data = p;
    uv_check_start(&p->check, on_check);
    if (rc < 0)
        on_signal(p, 0);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    timer_stop(p->emulator.timers, &p->stop_timer);
    uv_signals_destroy(p->signals);
    emulator_deinit(&p->emulator);
    uv_loop_finish(&p->loop);
    if (p->is_own_dir && fs_remove_tree(p->config.dir, rc < 0 ? NULL : e) < 0)
        rc = rc < 0 ? rc : e->kind;
    return rc;
}

int main(int argc, char **argv)
{
    log_init("belay-emulator", LOG_INFO);
    if (argc > 1 && str_eq(argv[1], HOLDER_FLAG))
        return holder_main(argc - 2, argv + 2);
    struct program p = {0};
    struct err e = {0};
    enum log_level level = LOG_INFO;
    int code = parse_arguments(&p, argc, argv);
    if (code != 0) {
        code = code > 0 ? 0 : EXIT_USAGE;
        goto out;
    }
    if (p.log_level && log_level_from_name(p.log_level, &level) < 0) {
        fprintf(stderr,
            "belay-emulator: --log-level: expected debug, info, warn or error, found %s\n",
            p.log_level);
        code = EXIT_USAGE;
        goto out;
    }
    log_set_level(level);
    if (config_load(p.config_file, &p.config, &e) < 0) {
        fprintf(stderr, "belay-emulator: %s\n", e.text);
        code = EXIT_USAGE;
        goto out;
    }
    if (p.only_check) {
        puts("the configuration is fine");
    } else if (run(&p, &e) < 0) {
        fprintf(stderr, "belay-emulator: %s\n", e.text);
        code = 1;
    }
    config_deinit(&p.config);
out:
    free(p.config_file);
    free(p.port_file);
    free(p.log_level);
    return code;
}
