/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a machine: boot makes the directory, the metadata service and the holder. After that,
 * only the holder reports its end (by its last line, and the end of its process). A holder that
 * ends without that line was killed: its orphans become this process's children (it is a subreaper)
 * and are killed here.
 */
#include "emulator/machines.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/proc.h"
#include "cloud/catalogue.h"
#include "emulator/holder.h"
#include "emulator/front_server.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORPHAN_KILL_MS 5000
#define CONSOLE_MAX (1024 * 1024)

struct machine {
    struct link link;   /* in machines.list */
    struct link holder; /* in options.holders */
    struct machines *machines;
    struct instance *instance; /* NULL once the region knows that it is gone */
    struct front_server *metadata;
    char *dir, *console, *script;
    uv_process_t process;
    uv_pipe_t commands, reports;
    int n_open;                 /* handles not closed yet */
    bool has_exited, has_ended; /* the process; its reports */
    bool is_power_off;
    struct mono died;
    char line[HOLDER_LINE_MAX];
    size_t n_line;
};

struct machines {
    uv_loop_t *loop;
    struct region *region;
    const struct machines_options *o;
    const struct machines_host *host;
    struct list list;
    size_t n;
    bool is_stopping; /* nothing boots any more */
};

struct machines *machines_create(uv_loop_t *loop, struct region *region,
    const struct machines_options *o, const struct machines_host *host)
{
    struct machines *ms = mem_alloc(sizeof(*ms));
    *ms = (struct machines){.loop = loop, .region = region, .o = o, .host = host};
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return ms;
}

void machines_destroy(struct machines *ms)
{
    assert(!ms || ms->n == 0);
    free(ms);
}

size_t machines_count(const struct machines *ms)
{
    return ms->n;
}

/* ---- The holder ---- */

static void kill_orphans(struct machines *ms);
static void remove_group(const struct machine *m);

static bool is_holder(const struct machines *ms, pid_t pid)
{
    LIST_FOREACH (ms->o->holders, l) {
        const struct machine *m = LIST_ENTRY(l, struct machine, holder);
        if (!m->has_exited && m->process.pid == pid)
            return true;
    }
    return false;
}

static void machine_free(struct machine *m)
{
    free(m->dir);
    free(m->console);
    free(m->script);
    free(m);
}

static void on_closed(uv_handle_t *h)
{
    struct machine *m = h->data;
    if (--m->n_open == 0)
        machine_free(m);
}

/* The region is notified when both the process and its last line are here. */
static void finish_if_gone(struct machine *m)
{
    if (!m->has_exited || !m->has_ended)
        return;
    struct machines *ms = m->machines;
    struct instance *i = m->instance;
    front_server_stop(m->metadata);
    link_remove(&m->holder);
    if (!mono_is_set(m->died)) {
        log_warn("an instance's holder was killed", log_s("instance", i->id));
        m->died = clock_mono(&clock_system);
        link_remove(&m->link);
        kill_orphans(ms);
        remove_group(m);
    }
    link_remove(&m->link);
    ms->n--;
    i->machine = m->instance = NULL;
    uv_close((uv_handle_t *)&m->process, on_closed);
    uv_close((uv_handle_t *)&m->commands, on_closed);
    uv_close((uv_handle_t *)&m->reports, on_closed);
    region_machine_gone(ms->region, i, m->is_power_off,
        (struct wall){m->died.ms + ms->host->wall_minus_mono_ms}, ms->host->now(ms->host->ctx));
    ms->host->changed(ms->host->ctx);
}

static void on_exit_of_holder(uv_process_t *p, int64_t status, int signum)
{
    struct machine *m = p->data;
    (void)status, (void)signum;
    m->has_exited = true;
    finish_if_gone(m);
}

static void on_report(struct machine *m, const char *line)
{
    int64_t ms;
    m->is_power_off = str_starts(line, "gone power-off ");
    const char *time = strrchr(line, ' ');
    if (time && str_starts(line, "gone ") &&
        str_to_i64(time + 1, 0, INT64_MAX, "time", &ms, NULL) == 0)
        m->died.ms = ms;
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *ret)
{
    struct machine *m = h->data;
    (void)hint;
    *ret = uv_buf_init(m->line + m->n_line, (unsigned)(sizeof(m->line) - 1 - m->n_line));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *unused)
{
    struct machine *m = s->data;
    (void)unused;
    if (n < 0) {
        uv_read_stop(s);
        m->has_ended = true;
        finish_if_gone(m);
        return;
    }
    m->n_line += (size_t)n;
    m->line[m->n_line] = '\0';
    char *end = strchr(m->line, '\n');
    if (end) {
        *end = '\0';
        on_report(m, m->line);
    }
    if (end || m->n_line + 1 == sizeof(m->line))
        m->n_line = 0;
}

static void on_written(uv_write_t *w, int status)
{
    (void)status; /* its end is reported by its exit */
    free(w);
}

static void command(struct machine *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void command(struct machine *m, const char *fmt, ...)
{
    struct {
        uv_write_t w;
        char line[HOLDER_LINE_MAX];
    } *c = mem_alloc(sizeof(*c));
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(c->line, sizeof(c->line), fmt, args);
    va_end(args);
    const uv_buf_t b = uv_buf_init(c->line, (unsigned)n);
    if (uv_write(&c->w, (uv_stream_t *)&m->commands, &b, 1, on_written) < 0)
        free(c);
}

/* Fictitious devices: none exist, and the host's GPUs are not lent. */
static char *gpus_variable(const struct machine *m)
{
    struct catalogue_type t = {.gpus = 0};
    catalogue_find(m->machines->o->provider, m->instance->pool->type, &t, NULL);
    return mem_printf("BELAY_NODE_GPUS=%d", (int)t.gpus);
}

/* The user who runs the emulator owns its machines: jobs run as this user, also root's. */
static char *users_variable(void)
{
    const struct passwd *pw = getpwuid(geteuid());
    return mem_printf("BELAY_NODE_SYSTEM_USERS=%s", pw ? pw->pw_name : "");
}

static int spawn(struct machine *m, struct err *e)
{
    struct machines *ms = m->machines;
    char self[4096];
    size_t n = sizeof(self);
    char *home = mem_printf("HOME=%s", m->dir),
         *path = mem_printf("PATH=%s/sbin:%s", m->dir, ms->o->path);
    char *node = mem_printf("BELAY_NODE_DIR=%s/belay", m->dir),
         *url = mem_printf("BELAY_METADATA=%s", front_server_url(m->metadata));
    char *gpus = gpus_variable(m), *users = users_variable();
    char *env[] = {path, home, node, url, gpus, users, NULL};
    char *delay = mem_printf("%lld", (long long)ms->region->o->start_delay_ms);
    char *argv[] = {(char *)"belay-emulator", (char *)HOLDER_FLAG, m->instance->id, m->dir,
        m->console, m->script ? m->script : (char *)"", delay, NULL};
    uv_stdio_container_t io[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&m->commands},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&m->reports},
        {.flags = UV_INHERIT_FD, .data.fd = 2}};
    uv_process_options_t o = {.file = self,
        .args = argv,
        .env = env,
        .stdio = io,
        .stdio_count = 3,
        .exit_cb = on_exit_of_holder,
        .flags = UV_PROCESS_DETACHED};
    int rc = uv_exepath(self, &n);
    if (rc == 0) {
        uv_pipe_init(ms->loop, &m->commands, 0);
        uv_pipe_init(ms->loop, &m->reports, 0);
        m->process.data = m->commands.data = m->reports.data = m;
        m->n_open = 3;
        rc = uv_spawn(ms->loop, &m->process, &o);
    }
    if (rc == 0)
        rc = uv_read_start((uv_stream_t *)&m->reports, on_alloc, on_read);
    free(home), free(path), free(node), free(url), free(gpus), free(users), free(delay);
    return rc < 0 ? err_set(e, ERR_IO, "cannot start the holder of %s: %s", m->instance->id,
                        uv_strerror(rc))
                  : 0;
}

/* ---- Orphans ---- */

static void kill_orphans(struct machines *ms)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
    FILE *f = fopen(path, "re");
    long pid;
    while (f && fscanf(f, "%ld", &pid) == 1) {
        struct err e;
        if (is_holder(ms, (pid_t)pid))
            continue;
        if (proc_tree_kill((pid_t)pid, ORPHAN_KILL_MS, &e) < 0)
            log_warn("cannot kill an orphaned instance", log_err(&e));
        waitpid((pid_t)pid, NULL, WNOHANG);
    }
    if (f)
        fclose(f);
}

/* Does the cleanup of a dead holder. Its cgroups, if any, are below ours, as they were below its
 * own. */
static void remove_group(const struct machine *m)
{
    char name[HOLDER_GROUP_MAX];
    struct proc_group *g;
    struct err e;
    holder_group_name(m->instance->id, m->process.pid, name);
    if (proc_group_open(name, NULL, &g, &e) < 0)
        return;
    bool has_cgroups = proc_group_mode(g) != PROC_SUBREAPER;
    if (has_cgroups && proc_group_kill_all(g, 0, ORPHAN_KILL_MS, &e) < 0)
        log_warn("cannot kill the processes of an instance", log_s("instance", name), log_err(&e));
    proc_group_close(g, has_cgroups);
}

/* ---- The region's ops ---- */

static int write_file(const char *path, const struct buf *text, mode_t mode, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0)
        return err_errno(e, errno, "cannot write %s", path);
    int rc = fs_write_all(fd, buf_str(text), text->len, e);
    close(fd);
    return rc;
}

/* A minimal init, as far as an agent queries it: whether the machine is shutting down. */
static int make_systemctl(const struct machine *m, struct err *e)
{
    char *sbin = mem_printf("%s/sbin", m->dir), *path = mem_printf("%s/systemctl", sbin);
    struct buf text = {0};
    buf_printf(&text,
        "#!/bin/sh\n"
        "[ \"$*\" = is-system-running ] || { echo 'systemctl: this machine is emulated' >&2; exit "
        "1; }\n"
        "[ ! -e '%s/" HOLDER_STOPPING "' ] || { echo stopping; exit 1; }\n"
        "echo running\n",
        m->dir);
    int rc = fs_mkdirs(sbin, 0755, e);
    if (rc == 0)
        rc = write_file(path, &text, 0755, e);
    buf_deinit(&text);
    free(path);
    free(sbin);
    return rc;
}

mode_t machines_dir_mode(void)
{
    return geteuid() == 0 ? 0711 : 0700;
}

static int make_files(struct machine *m, struct err *e)
{
    const struct buf *user_data = &m->instance->reservation->spec.user_data;
    const char *dir = m->machines->o->dir;
    bool is_script = str_starts(buf_str(user_data), "#!");
    m->dir = mem_printf("%s/%s", dir, m->instance->id);
    m->console = mem_printf("%s/%s.console", dir, m->instance->id);
    int rc = fs_mkdirs(m->dir, 0700, e);
    if (rc == 0 && chmod(m->dir, machines_dir_mode()) < 0) /* whatever the umask */
        rc = err_errno(e, errno, "cannot set the mode of %s", m->dir);
    if (rc == 0)
        rc = make_systemctl(m, e);
    if (rc == 0 && is_script) {
        m->script = mem_printf("%s/user-data", m->dir);
        rc = write_file(m->script, user_data, 0700, e);
    } else if (rc == 0 && user_data->len > 0) {
        struct buf note = {0};
        buf_adds(&note, "user data: not run, it does not begin with #!\n");
        rc = write_file(m->console, &note, 0600, e);
        buf_deinit(&note);
    }
    return rc;
}

static int start_metadata(struct machine *m, struct err *e)
{
    const struct machines *ms = m->machines;
    const struct front_server_options o = {.front = ms->o->front,
        .region = ms->region,
        .state = ms->o->front_state,
        .instance = m->instance,
        .host = ms->o->metadata_host,
        .port = ms->o->metadata_port,
        .now = ms->host->now,
        .changed = ms->host->changed,
        .ctx = ms->host->ctx};
    return front_server_start(ms->loop, &o, &m->metadata, e);
}

static int op_boot(void *ctx, struct instance *i, struct err *e)
{
    struct machines *ms = ctx;
    if (ms->is_stopping)
        return err_set(e, ERR_CANCELLED, "the emulator is stopping");
    struct machine *m = mem_alloc(sizeof(*m));
    m->machines = ms;
    m->instance = i;
    m->died = MONO_NONE;
    int rc = make_files(m, e);
    if (rc == 0)
        rc = start_metadata(m, e);
    if (rc == 0)
        rc = spawn(m, e);
    if (rc == 0) {
        list_push_back(&ms->list, &m->link);
        list_push_back(ms->o->holders, &m->holder);
        ms->n++;
        i->machine = m;
        return 0;
    }
    front_server_stop(m->metadata);
    if (m->n_open == 0) {
        machine_free(m);
        return rc;
    }
    uv_close((uv_handle_t *)&m->process, on_closed);
    uv_close((uv_handle_t *)&m->commands, on_closed);
    uv_close((uv_handle_t *)&m->reports, on_closed);
    return rc;
}

static void op_doom(void *ctx, struct instance *i)
{
    const struct machines *ms = ctx;
    command(
        i->machine, "kill-at %lld\n", (long long)(i->deadline.ms - ms->host->wall_minus_mono_ms));
}

static void op_soft_off(void *ctx, struct instance *i)
{
    const struct machines *ms = ctx;
    command(i->machine, "soft-off\n");
    if (wall_is_set(i->off_by))
        command(
            i->machine, "kill-at %lld\n", (long long)(i->off_by.ms - ms->host->wall_minus_mono_ms));
}

static void op_shutdown(void *ctx, struct instance *i, bool at_once)
{
    const struct machines *ms = ctx;
    command(i->machine, "shutdown %lld\n", at_once ? 0LL : (long long)ms->o->shutdown_ms);
}

const struct region_ops machines_ops = {
    .boot = op_boot, .doom = op_doom, .soft_off = op_soft_off, .shutdown = op_shutdown};

/* ---- The rest ---- */

void machines_kill_all(struct machines *ms)
{
    ms->is_stopping = true;
    LIST_FOREACH (&ms->list, l)
        command(LIST_ENTRY(l, struct machine, link), "shutdown 0\n");
}

void machines_wake(struct machines *ms)
{
    LIST_FOREACH (&ms->list, l)
        front_server_wake(LIST_ENTRY(l, struct machine, link)->metadata);
}

const char *machine_metadata_url(const struct instance *i)
{
    const struct machine *m = i->machine;
    return m ? front_server_url(m->metadata) : "";
}

pid_t machine_pid(const struct instance *i)
{
    const struct machine *m = i->machine;
    return m ? m->process.pid : 0;
}

void machines_console(void *ctx, const struct instance *i, struct buf *out)
{
    const struct machines *ms = ctx;
    char *path = mem_printf("%s/%s.console", ms->o->dir, i->id);
    struct err e;
    struct buf text = {0};
    if (fs_read(path, CONSOLE_MAX, &text, &e) == 0)
        buf_add(out, buf_str(&text), text.len);
    buf_deinit(&text);
    free(path);
}
