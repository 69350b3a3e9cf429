/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs on libuv (base/runner.h). A run ends in one place, finish_if_over: when the program has
 * exited and both its outputs are at EOF. A program that failed to start ends one iteration of
 * the loop later. After a kill the outputs are not awaited, because an escaped process may hold
 * them open.
 */
#include "base/uv/runner.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/uv/timers.h"
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES 4096

struct uv_runner {
    struct runner api; /* must be first: a struct runner * is cast to this */
    uv_loop_t *loop;
    struct timers *timers;
    struct list runs;
    bool is_closing; /* freed with its last run */
};

struct run {
    struct link link; /* in runner.runs */
    struct uv_runner *runner;
    uv_process_t process;
    uv_pipe_t in, out, err;
    uv_write_t write;
    char *input;
    size_t input_len;
    size_t max_output_bytes;
    int n_open; /* handles not yet closed */
    int n_outputs;
    bool has_exited, is_over;
    struct timer deadline;
    int64_t timeout_ms;
    struct err error; /* ERR_NONE means that the result is valid */
    struct runner_result result;
    char buffer[READ_BYTES];
    runner_done_fn done;
    void *ctx;
};

/* ---- the end ---- */

static void free_if_empty(struct uv_runner *r)
{
    if (r->is_closing && list_is_empty(&r->runs))
        free(r);
}

static void run_free(struct run *run)
{
    struct uv_runner *r = run->runner;
    if (run->input)
        explicit_bzero(run->input, run->input_len);
    free(run->input);
    buf_deinit(&run->result.output);
    buf_deinit(&run->result.errors);
    link_remove(&run->link);
    free(run);
    free_if_empty(r);
}

static void on_closed(uv_handle_t *h)
{
    struct run *run = h->data;
    if (--run->n_open == 0)
        run_free(run);
}

static void close_handle(struct run *run, void *handle)
{
    uv_handle_t *h = handle;
    if (h->data == run && !uv_is_closing(h))
        uv_close(h, on_closed);
}

static void finish_if_over(struct run *run)
{
    bool is_killed = run->error.kind != ERR_NONE;
    if (run->is_over || !run->has_exited || (run->n_outputs > 0 && !is_killed))
        return;
    run->is_over = true;
    if (run->runner->timers)
        timer_stop(run->runner->timers, &run->deadline);
    close_handle(run, &run->in);
    close_handle(run, &run->out);
    close_handle(run, &run->err);
    close_handle(run, &run->process);
    run->done(run->ctx, is_killed ? &run->error : NULL, is_killed ? NULL : &run->result);
    if (run->n_open == 0)
        run_free(run);
}

/* Kills the program's session for the reason in run->error. The run ends when it has exited. */
static void kill_run(struct run *run)
{
    if (!run->has_exited)
        kill(-run->process.pid, SIGKILL);
    else
        finish_if_over(run);
}

static void on_exit_of(uv_process_t *p, int64_t status, int signum)
{
    struct run *run = p->data;
    run->has_exited = true;
    run->result.exit_code = signum ? RUNNER_SIGNAL_BASE + signum : (int)status;
    finish_if_over(run);
}

static void on_deadline(struct timer *t, void *ctx)
{
    struct run *run = ctx;
    (void)t;
    if (run->error.kind == ERR_NONE)
        err_set(&run->error, ERR_TIMEOUT, "did not end within %lld ms", (long long)run->timeout_ms);
    kill_run(run);
}

/* ---- output ---- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
    struct run *run = h->data;
    (void)suggested;
    *b = uv_buf_init(run->buffer, sizeof(run->buffer));
}

static void take_output(struct run *run, const char *p, size_t n)
{
    if (run->error.kind != ERR_NONE ||
        buf_add_limited(&run->result.output, p, n, run->max_output_bytes, NULL) == 0)
        return;
    err_set(&run->error, ERR_INVALID, "printed more than %zu bytes", run->max_output_bytes);
    kill_run(run);
}

static void take_errors(struct run *run, const char *p, size_t n)
{
    struct buf *b = &run->result.errors;
    buf_add(b, p, n);
    if (b->len > RUNNER_ERRORS_MAX)
        buf_remove_front(b, b->len - RUNNER_ERRORS_MAX);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    struct run *run = s->data;
    if (n > 0 && s == (uv_stream_t *)&run->out)
        take_output(run, b->base, (size_t)n);
    else if (n > 0)
        take_errors(run, b->base, (size_t)n);
    if (n >= 0)
        return;
    uv_read_stop(s);
    run->n_outputs--;
    finish_if_over(run);
}

/* A failure is not an error: a program may end without reading all of its input. */
static void on_written(uv_write_t *w, int status)
{
    struct run *run = w->data;
    (void)status;
    close_handle(run, &run->in);
}

/* ---- the start ---- */

static void open_pipe(struct run *run, uv_pipe_t *pipe)
{
    uv_pipe_init(run->runner->loop, pipe, 0);
    pipe->data = run;
    run->n_open++;
}

static char *environment(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return mem_printf("%s=%s", name, value ? value : fallback);
}

static int spawn(struct run *run, const char *const *argv)
{
    char *path = environment("PATH", "/usr/local/bin:/usr/bin:/bin"),
         *home = environment("HOME", "/"), lang[] = "LANG=C";
    char *env[] = {path, home, lang, NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&run->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&run->out},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&run->err},
    };
    uv_process_options_t o = {
        .exit_cb = on_exit_of,
        .file = argv[0],
        .args = (char **)argv,
        .env = env,
        .flags = UV_PROCESS_DETACHED,
        .stdio = stdio,
        .stdio_count = 3,
    };
    run->process.data = run;
    run->n_open++;
    int rc = uv_spawn(run->runner->loop, &run->process, &o);
    free(path);
    free(home);
    return rc;
}

static void start_io(struct run *run)
{
    uv_buf_t input = uv_buf_init(run->input, (unsigned)run->input_len);
    run->n_outputs = 2;
    run->write.data = run;
    if (uv_write(&run->write, (uv_stream_t *)&run->in, &input, 1, on_written) != 0)
        close_handle(run, &run->in);
    if (uv_read_start((uv_stream_t *)&run->out, on_alloc, on_read) != 0)
        run->n_outputs--;
    if (uv_read_start((uv_stream_t *)&run->err, on_alloc, on_read) != 0)
        run->n_outputs--;
}

static struct run *start(
    struct runner *api, const struct runner_command *c, runner_done_fn done, void *ctx)
{
    struct uv_runner *r = (struct uv_runner *)api;
    assert(c->timeout_ms > 0 && c->max_output_bytes > 0 && !r->is_closing);
    struct run *run = mem_alloc(sizeof(*run));
    *run = (struct run){.runner = r,
        .input = mem_dup(c->input_len ? c->input : "", c->input_len ? c->input_len : 1),
        .input_len = c->input_len,
        .max_output_bytes = c->max_output_bytes,
        .timeout_ms = c->timeout_ms,
        .done = done,
        .ctx = ctx};
    list_push_back(&r->runs, &run->link);
    timer_init(&run->deadline, on_deadline, run);
    open_pipe(run, &run->in);
    open_pipe(run, &run->out);
    open_pipe(run, &run->err);
    int rc = spawn(run, c->argv);
    if (rc == 0) {
        start_io(run);
        timer_start(r->timers, &run->deadline, c->timeout_ms);
    } else {
        err_errno(&run->error, -rc, "starting %s", c->argv[0]);
        run->has_exited = true;
        timer_start(r->timers, &run->deadline, 0);
    }
    return run;
}

static void cancel(struct runner *api, struct run *run)
{
    (void)api;
    if (run->is_over || (run->has_exited && run->error.kind != ERR_NONE))
        return;
    if (run->error.kind == ERR_NONE)
        err_set(&run->error, ERR_CANCELLED, "cancelled");
    if (run->has_exited)
        timer_start(run->runner->timers, &run->deadline, 0);
    else
        kill_run(run);
}

/* ---- the runner ---- */

struct runner *uv_runner_create(uv_loop_t *loop)
{
    struct uv_runner *r = mem_alloc(sizeof(*r));
    r->api = (struct runner){.start = start, .cancel = cancel};
    r->loop = loop;
    r->timers = uv_timers_create(loop);
    return &r->api;
}

void uv_runner_destroy(struct runner *api)
{
    struct uv_runner *r = (struct uv_runner *)api;
    if (!r)
        return;
    r->is_closing = true;
    struct timers *timers = r->timers;
    r->timers = NULL;
    LIST_FOREACH (&r->runs, l) {
        struct run *run = LIST_ENTRY(l, struct run, link);
        if (run->is_over)
            continue;
        timer_stop(timers, &run->deadline);
        if (!run->has_exited)
            kill(-run->process.pid, SIGKILL);
        err_set(&run->error, ERR_CANCELLED, "the runner was closed");
        run->has_exited = true; /* not awaited any more; the loop reaps it */
        finish_if_over(run);
    }
    uv_timers_destroy(timers);
    free_if_empty(r);
}
