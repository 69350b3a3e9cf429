/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/uv/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000
#define TICK_MS 5

/* ---- belayd ---- */

static void reply_desired(struct world *w, struct http_exchange *x)
{
    struct wire_desired d = {.rev = w->rev, .sync_ms = 5000, .lease_ms = w->lease_ms};
    struct wire_desired_attempt list[WORLD_WANTS];
    struct buf out = {0};
    d.attempts = list;
    for (size_t i = 0; i < WORLD_WANTS; i++) {
        if (!w->wants[i].a.job)
            continue;
        list[d.n_attempts] = w->wants[i].a;
        if (w->wants[i].reported) {
            list[d.n_attempts].script = NULL;
            list[d.n_attempts].n_args = list[d.n_attempts].n_env = 0;
        }
        d.n_attempts++;
    }
    struct wire_kept unneeded = {.job = w->ended};
    d.unneeded = &unneeded;
    d.n_unneeded = w->ended != 0;
    d.prefetch = w->prefetch;
    wire_desired_encode(&d, &out);
    http_reply_bytes(x, 200, "application/json", out.data, out.len);
    buf_deinit(&out);
}

static void release(struct world *w)
{
    struct http_exchange *x = w->parked;
    w->parked = NULL;
    if (x)
        reply_desired(w, x);
}

static void on_wait_over(void *ctx, struct http_exchange *x)
{
    struct world *w = ctx;
    w->parked = NULL;
    reply_desired(w, x);
}

static void on_wait_gone(void *ctx, struct http_exchange *x)
{
    struct world *w = ctx;
    (void)x;
    w->parked = NULL;
}

static void take_status(struct world *w, struct wire_status *st)
{
    bool newer = st->incarnation > w->status.incarnation ||
                 (st->incarnation == w->status.incarnation && st->seq > w->status.seq);
    if (!newer) {
        wire_status_deinit(st);
        return;
    }
    wire_status_deinit(&w->status);
    w->status = *st;
    w->n_status++;
    if (st->notice.kind != WIRE_NOTICE_NONE && !w->noticed_at)
        w->noticed_at = clock_system_ms();
    for (size_t i = 0; i < st->n_attempts; i++) {
        struct want *want = world_find(w, st->attempts[i].job);
        if (want && want->a.attempt == st->attempts[i].attempt)
            want->reported = true;
    }
}

static void on_sync(struct world *w, struct http_exchange *x, const struct http_server_request *r)
{
    struct wire_status st;
    struct err e;
    if (wire_status_decode(r->body, r->body_len, &st, &e)) {
        http_reply_err(x, &e);
        return;
    }
    int64_t wait_ms = st.wait_ms, have = st.have_rev;
    take_status(w, &st);
    if (w->disown) {
        err_set(&e, ERR_NOT_FOUND, "node 1 is no longer belongs to this cluster");
        http_reply_err(x, &e);
    } else if (wait_ms == 0 || have != w->rev) {
        reply_desired(w, x);
    } else {
        release(w);
        w->parked = x;
        http_exchange_wait(x, wait_ms, on_wait_over, on_wait_gone, w);
    }
}

static void reply_joined(struct world *w, struct http_exchange *x, const char *csr)
{
    struct wire_joined m = {.node = 1, .name = "n1", .cluster = "lab"};
    struct buf out = {0};
    struct err e;
    char *cert = NULL;
    if (ca_issue_node(w->ca, csr, "node-1", w->cert_life_ms, &cert, &e)) {
        http_reply_err(x, &e);
        return;
    }
    STR_COPY(m.cert_pem, cert);
    STR_COPY(m.ca_pem, ca_pem(w->ca));
    STR_COPY(m.store, w->store_url);
    wire_joined_encode(&m, &out);
    http_reply_bytes(x, 200, "application/json", out.data, out.len);
    buf_deinit(&out);
    free(cert);
}

static void on_join(struct world *w, struct http_exchange *x, const struct http_server_request *r)
{
    struct err e;
    if (wire_join_decode(r->body, r->body_len, &w->join, &e)) {
        http_reply_err(x, &e);
    } else if (w->refuse_join) {
        w->n_refused++;
        err_set(&e, ERR_DENIED, "the join token was already used by another machine");
        http_reply_err(x, &e);
    } else {
        w->n_joins++;
        reply_joined(w, x, w->join.csr_pem);
    }
}

static void on_renew(struct world *w, struct http_exchange *x, const struct http_server_request *r)
{
    struct wire_renew m;
    struct err e;
    w->n_renews++;
    if (wire_renew_decode(r->body, r->body_len, &m, &e))
        http_reply_err(x, &e);
    else
        reply_joined(w, x, m.csr_pem);
}

static void send_workdir(struct http_exchange *x, const char *text)
{
    http_reply_bytes(x, 200, "text/plain", text, strlen(text));
}

static void on_workdir_waited(void *ctx, struct http_exchange *x)
{
    struct world *w = ctx;
    w->asked_workdir = NULL;
    send_workdir(x, w->workdir);
}

static void on_workdir_gone(void *ctx, struct http_exchange *x)
{
    struct world *w = ctx;
    (void)x;
    w->asked_workdir = NULL;
}

static void on_workdir(struct world *w, struct http_exchange *x)
{
    struct err e;
    if (!w->workdir || w->asked_workdir) {
        err_set(&e, ERR_NOT_FOUND, "no such working directory");
        http_reply_err(x, &e);
        return;
    }
    w->asked_workdir = x;
    http_exchange_wait(x, 30000, on_workdir_waited, on_workdir_gone, w);
}

void world_send_workdir(struct world *w)
{
    struct http_exchange *x = w->asked_workdir;
    assert_non_null(x);
    w->asked_workdir = NULL;
    send_workdir(x, w->workdir);
}

static void on_output(struct world *w, struct http_exchange *x, const struct http_server_request *r)
{
    long long job, attempt;
    int64_t offset = 0;
    char text[96];
    struct want *want = NULL;
    if (sscanf(r->path, "/agent/v1/output/%lld/%lld", &job, &attempt) == 2)
        want = world_find(w, job);
    if (want &&
        str_to_i64(http_request_query(x, "offset"), 0, INT64_MAX, "offset", &offset, NULL) == 0 &&
        offset <= (int64_t)want->output.len &&
        offset + (int64_t)r->body_len > (int64_t)want->output.len) {
        size_t have = want->output.len - (size_t)offset;
        buf_add(&want->output, (const char *)r->body + have, r->body_len - have);
    }
    snprintf(text, sizeof(text), "{\"size\":%zu,\"durable\":%s}",
        want ? want->output.len : (size_t)(offset + (int64_t)r->body_len),
        str_eq(http_request_query(x, "durable"), "1") ? "true" : "false");
    http_reply_text(x, 200, "application/json", text);
}

static void on_belayd(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    struct world *w = ctx;
    struct err e;
    if (w->deaf || (w->deaf_to_output && str_starts(r->path, "/agent/v1/output/"))) {
        http_reply_none(x);
    } else if (str_eq(r->path, "/agent/v1/join")) {
        on_join(w, x, r);
    } else if (!r->peer_cn) {
        err_set(&e, ERR_DENIED, "a node's certificate is needed: %s",
            r->peer_cert_error ? r->peer_cert_error : "none given");
        w->n_refused++;
        http_reply_err(x, &e);
    } else if (str_eq(r->path, "/agent/v1/sync")) {
        on_sync(w, x, r);
    } else if (str_eq(r->path, "/agent/v1/renew")) {
        on_renew(w, x, r);
    } else if (str_starts(r->path, "/agent/v1/workdir/")) {
        on_workdir(w, x);
    } else {
        on_output(w, x, r);
    }
}

/* ---- the metadata service ---- */

static void on_imds(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    static const char document[] =
        "{\"instanceId\":\"i-0abc\",\"instanceType\":\"m5.large\",\"region\":\"us-east-1\","
        "\"availabilityZone\":\"us-east-1a\"}";
    struct world *w = ctx;
    w->n_imds++;
    if (str_eq(r->method, "PUT")) {
        http_reply_add_header(x, "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600");
        http_reply_text(x, 200, "text/plain", "a-session-token");
    } else if (str_ends(r->path, "/document")) {
        http_reply_text(x, 200, "text/plain", document);
    } else if (str_ends(r->path, "/instance-life-cycle")) {
        http_reply_text(x, 200, "text/plain", "spot");
    } else if (str_ends(r->path, "/instance-action") && w->action.len > 0) {
        if (!w->served_at)
            w->served_at = clock_wall(&clock_system).ms;
        http_reply_text(x, 200, "application/json", w->action.data);
    } else {
        http_reply_text(x, 404, "text/html", "<html>404</html>");
    }
}

/* ---- the world ---- */

static void on_tick(uv_timer_t *t)
{
    (void)t;
}

/* For conditions on files and processes, of which the loop has no event. One handle for all
 * iterations: uv_run() does not wait while a handle is being closed. */
static void start_tick(struct world *w)
{
    uv_timer_init(&w->loop, &w->tick);
    uv_timer_start(&w->tick, on_tick, TICK_MS, TICK_MS);
}

static void start_belayd(struct world *w)
{
    const char *names[] = {"localhost"};
    char *cert, *key;
    struct err e;
    if (ca_issue_server(w->ca, names, 1, &cert, &key, &e))
        fail_msg("%s", e.text);
    const struct http_server_options o = {.host = "127.0.0.1",
        .cert_pem = cert,
        .key_pem = key,
        .client_ca_pem = ca_pem(w->ca),
        .max_body_bytes = WIRE_MESSAGE_MAX,
        .limits = {[HTTP_STRANGER] = {.max_connections = 64}},
        .handler = on_belayd,
        .ctx = w};
    if (http_server_start(&w->loop, &o, &w->belayd, &e))
        fail_msg("%s", e.text);
    w->server_url = mem_printf("https://127.0.0.1:%d", http_server_port(w->belayd));
    free(cert);
    free(key);
}

static void start_imds(struct world *w)
{
    const struct http_server_options o = {.host = "127.0.0.1",
        .max_body_bytes = 4096,
        .limits = {[HTTP_STRANGER] = {.max_connections = 16}},
        .handler = on_imds,
        .ctx = w};
    struct err e;
    if (http_server_start(&w->loop, &o, &w->imds, &e))
        fail_msg("%s", e.text);
    w->imds_url = mem_printf("http://127.0.0.1:%d", http_server_port(w->imds));
}

static void write_config(struct world *w, const char *extra)
{
    struct buf out = {0};
    w->config = mem_printf("%s/agent.yaml", w->dir);
    buf_printf(&out, "server: %s\nmetadata: %s\ndir: %s/node\nsystem_users: [root]\n%sca: |\n",
        w->server_url, w->imds_url, w->dir, extra);
    for (const char *p = ca_pem(w->ca); *p;) {
        size_t n = strcspn(p, "\n");
        buf_printf(&out, "  %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
    world_write(w->config, out.data);
    buf_deinit(&out);
}

struct world *world_create(void **state, const char *extra)
{
    struct world *w = mem_alloc(sizeof(*w));
    struct err e;
    *state = w;
    STR_COPY(w->dir, "/tmp/belay-agent-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    chmod(w->dir, 0755);
    w->rev = 1;
    w->cert_life_ms = 3600000;
    w->lease_ms = 30000;
    w->uid = geteuid();
    uv_loop_init(&w->loop);
    start_tick(w);
    char *ca_dir = mem_printf("%s/ca", w->dir);
    mkdir(ca_dir, 0700);
    if (ca_open(ca_dir, "lab", &clock_system, &w->ca, &e))
        fail_msg("%s", e.text);
    free(ca_dir);
    w->store_url = mem_printf("file://%s/store", w->dir);
    w->log = mem_printf("%s/agent.log", w->dir);
    start_belayd(w);
    start_imds(w);
    write_config(w, extra);
    return w;
}

static bool has_no_tasks(struct world *w, int64_t unused)
{
    char *path = mem_printf("%s/node/tasks/*", w->dir);
    glob_t found = {0};
    bool none = glob(path, 0, NULL, &found) == GLOB_NOMATCH;
    (void)unused;
    globfree(&found);
    free(path);
    return none;
}

/* The agent kills tasks that are not desired; if it has ended, a new one does. */
static void end_tasks(struct world *w)
{
    int64_t until = clock_system_ms() + WAIT_MS;
    for (size_t i = 0; i < WORLD_WANTS; i++)
        w->wants[i].a.job = 0;
    if (has_no_tasks(w, 0))
        return;
    if ((w->deaf || w->deaf_to_output) && w->agent) /* it would retry too late */
        world_kill_agent(w, SIGKILL);
    w->deaf = w->deaf_to_output = w->disown = w->refuse_join = false;
    if (!w->agent)
        world_start_agent(w);
    world_go(w);
    while (!has_no_tasks(w, 0) && clock_system_ms() < until)
        world_iterate(w);
    if (!has_no_tasks(w, 0))
        fprintf(stderr, "tasks are left in %s\n", w->dir);
}

int world_teardown(void **state)
{
    struct world *w = *state;
    struct err e;
    end_tasks(w);
    if (w->agent)
        world_kill_agent(w, SIGTERM);
    http_server_stop(w->belayd);
    http_server_stop(w->imds);
    uv_loop_finish(&w->loop);
    ca_close(w->ca);
    int rc = fs_remove_tree(w->dir, &e);
    wire_status_deinit(&w->status);
    for (size_t i = 0; i < WORLD_WANTS; i++)
        buf_deinit(&w->wants[i].output);
    buf_deinit(&w->action);
    free(w->server_url);
    free(w->imds_url);
    free(w->store_url);
    free(w->config);
    free(w->log);
    free(w);
    return rc;
}

/* ---- the agent ---- */

static void exec_agent(struct world *w)
{
    const char *program = getenv("BELAY_AGENT");
    int fd = open(w->log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    dup2(fd, 1);
    dup2(fd, 2);
    close_range(3, ~0U, 0);
    char *path = mem_printf("%s/bin:%s", w->dir, getenv("PATH"));
    setenv("PATH", path, 1);
    if (w->uid != geteuid() && (setgroups(0, NULL) < 0 || setgid(w->uid) < 0 || setuid(w->uid) < 0))
        _exit(125);
    execl(program, "belay-agent", "--config", w->config, "--log-level", "debug", (char *)NULL);
    _exit(126);
}

void world_systemctl(struct world *w, const char *script)
{
    char *dir = mem_printf("%s/bin", w->dir), *path = mem_printf("%s/systemctl", dir);
    mkdir(dir, 0755);
    world_write(path, script);
    assert_int_equal(chmod(path, 0755), 0);
    free(path);
    free(dir);
}

void world_be_nobody(struct world *w)
{
    char *node = mem_printf("%s/node", w->dir);
    if (geteuid() == 0) {
        w->uid = 65534;
        mkdir(node, 0700);
        assert_int_equal(chown(node, w->uid, w->uid), 0);
        assert_int_equal(chown(w->config, w->uid, w->uid), 0);
    }
    free(node);
}

void world_start_agent(struct world *w)
{
    if (!getenv("BELAY_AGENT"))
        fail_msg("BELAY_AGENT must be the path of the program");
    assert_int_equal(w->agent, 0);
    w->agent = fork();
    if (w->agent == 0)
        exec_agent(w);
    assert_true(w->agent > 0);
}

void world_kill_agent(struct world *w, int signum)
{
    kill(w->agent, signum);
    world_wait_agent(w);
}

static bool agent_ended(struct world *w, int64_t unused)
{
    siginfo_t info = {0};
    (void)unused;
    return waitid(P_PID, (id_t)w->agent, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == w->agent;
}

int world_wait_agent(struct world *w)
{
    int status;
    world_until(w, agent_ended, 0, "the agent's process ends");
    assert_int_equal(waitpid(w->agent, &status, 0), w->agent);
    w->agent = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void world_fail(struct world *w, const char *what)
{
    char *log = world_read(w->log);
    fprintf(stderr, "---- the agent's log ----\n%s----\n", log ? log : "");
    free(log);
    fail_msg("waited in vain until %s", what);
}

void world_iterate(struct world *w)
{
    uv_run(&w->loop, UV_RUN_ONCE);
}

void world_until(struct world *w, world_cond cond, int64_t job, const char *what)
{
    int64_t until = clock_system_ms() + WAIT_MS;
    while (!cond(w, job) && clock_system_ms() < until)
        world_iterate(w);
    if (!cond(w, job))
        world_fail(w, what);
}

/* ---- desired attempts ---- */

struct want *world_find(struct world *w, int64_t job)
{
    for (size_t i = 0; i < WORLD_WANTS; i++)
        if (w->wants[i].a.job == job)
            return &w->wants[i];
    return NULL;
}

struct wire_desired_attempt *world_want(
    struct world *w, int64_t job, int64_t attempt, const char *script)
{
    struct want *want = world_find(w, job);
    if (!want)
        want = world_find(w, 0);
    assert_non_null(want);
    buf_clear(&want->output);
    want->reported = false;
    want->a = (struct wire_desired_attempt){.job = job,
        .attempt = attempt,
        .want = WIRE_RUN,
        .options.name = "job",
        .script = (char *)(uintptr_t)script,
        .cwd = "/tmp",
        .cpus = 1,
        .method = WIRE_METHOD_NONE,
        .options.ckpt_keep = 2,
        .kill_wait_ms = 5000};
    return &want->a;
}

void world_forget(struct world *w, int64_t job)
{
    struct want *want = world_find(w, job);
    if (want)
        want->a.job = 0;
}

void world_go(struct world *w)
{
    w->rev++;
    release(w);
}

const struct wire_attempt_status *world_reported(struct world *w, int64_t job)
{
    for (size_t i = 0; i < w->status.n_attempts; i++)
        if (w->status.attempts[i].job == job)
            return &w->status.attempts[i];
    return NULL;
}

void world_forget_reports(struct world *w)
{
    struct wire_status empty = {.incarnation = w->status.incarnation, .seq = w->status.seq};
    wire_status_deinit(&w->status);
    w->status = empty;
}

const char *world_output(struct world *w, int64_t job)
{
    struct want *want = world_find(w, job);
    return want ? buf_str(&want->output) : "";
}

void world_notice_in(struct world *w, int64_t ms)
{
    char iso[TIME_ISO_MAX];
    time_format_iso((struct wall){clock_wall(&clock_system).ms + ms}, iso);
    buf_clear(&w->action);
    buf_printf(&w->action, "{\"action\": \"terminate\", \"time\": \"%.19sZ\"}", iso);
}

/* ---- conditions ---- */

static bool is_in_phase(struct world *w, int64_t job, enum wire_phase phase)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->phase == phase;
}

bool is_running(struct world *w, int64_t job)
{
    return is_in_phase(w, job, WIRE_RUNNING);
}

bool is_saving(struct world *w, int64_t job)
{
    return is_in_phase(w, job, WIRE_SAVING);
}

bool is_reported_ended(struct world *w, int64_t job)
{
    return is_in_phase(w, job, WIRE_ENDED);
}

bool has_ended(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    struct want *want = world_find(w, job);
    return s && s->phase == WIRE_ENDED && want && want->a.attempt == s->attempt &&
           (int64_t)want->output.len >= s->output_bytes;
}

bool has_checkpoint(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->n_checkpoints > 0;
}

bool has_failed_save(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->failed_saves > 0;
}

bool is_forgotten(struct world *w, int64_t job)
{
    char *path = mem_printf("%s/node/tasks/%lld-1", w->dir, (long long)job);
    bool there = fs_exists(path);
    free(path);
    return !there && !world_reported(w, job);
}

void assert_ended(struct world *w, int64_t job, enum wire_end end, int exit_code, const char *text)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    assert_non_null(s);
    assert_int_equal(s->end, end);
    if (s->exit_code != exit_code)
        fail_msg("exit code %d: %s", (int)s->exit_code, s->text);
    if (!strstr(s->text, text))
        fail_msg("expected \"%s\" in \"%s\"", text, s->text);
}

bool is_process_gone(struct world *w, int64_t pid)
{
    (void)w;
    return proc_start_ticks((pid_t)pid) == 0;
}

/* ---- files ---- */

char *world_task_path(struct world *w, int64_t job, int64_t attempt, const char *name)
{
    return mem_printf(
        "%s/node/tasks/%lld-%lld/%s", w->dir, (long long)job, (long long)attempt, name);
}

bool world_task_has(struct world *w, int64_t job, int64_t attempt, const char *name)
{
    char *path = world_task_path(w, job, attempt, name);
    bool has = fs_exists(path);
    free(path);
    return has;
}

void world_task_write(
    struct world *w, int64_t job, int64_t attempt, const char *name, const char *text)
{
    char *path = world_task_path(w, job, attempt, name);
    world_write(path, text);
    free(path);
}

char *world_read(const char *path)
{
    struct buf text = {0};
    struct err e;
    if (fs_read(path, 64u << 20, &text, &e)) {
        buf_deinit(&text);
        return NULL;
    }
    if (!text.data)
        buf_adds(&text, "");
    return buf_take(&text);
}

void world_write(const char *path, const char *text)
{
    struct err e;
    if (fs_write_atomic(path, text, strlen(text), 0600, &e))
        fail_msg("%s", e.text);
}

void assert_file(const char *dir, const char *name, const char *text)
{
    char *path = mem_printf("%s/%s", dir, name), *found = world_read(path);
    if (!found)
        fail_msg("there is no file %s", path);
    assert_string_equal(found, text);
    free(found);
    free(path);
}

bool world_log_has(struct world *w, const char *text)
{
    char *log = world_read(w->log);
    bool has = log && strstr(log, text);
    free(log);
    return has;
}

static bool has_said(struct world *w, int64_t unused)
{
    (void)unused;
    return world_log_has(w, w->awaited);
}

void world_until_said(struct world *w, const char *text)
{
    char what[200];
    snprintf(what, sizeof(what), "the agent says \"%s\"", text);
    w->awaited = text;
    world_until(w, has_said, 0, what);
}

int world_run(const struct CMUnitTest *tests, size_t n, int argc, char **argv)
{
    struct CMUnitTest *part = mem_alloc(n * sizeof(*part));
    size_t n_part = 0;
    unsigned first = 1, every = 1;
    int failed;
    if (argc > 1 && (sscanf(argv[1], "%u/%u", &first, &every) != 2 || first < 1 || first > every ||
                        first > n)) {
        fprintf(stderr, "%s: expected K/N with 1 <= K <= N, found %s\n", argv[0], argv[1]);
        free(part);
        return 2;
    }
    for (size_t i = first - 1; i < n; i += every)
        part[n_part++] = tests[i];
    failed = _cmocka_run_group_tests("tests", part, n_part, NULL, NULL);
    free(part);
    return failed;
}
