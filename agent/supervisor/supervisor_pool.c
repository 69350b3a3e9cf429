/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/supervisor_pool.h"

#include "agent/supervisor/supervisor.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FREE_MAX 256
#define TRIM_MS 10000 /* supervisors that were idle between two checks are let go */

struct supervisor_pool {
    uv_loop_t *loop;
    struct timers *timers;
    struct limits limits;
    int fd;                /* our end; -1 = no process, or it is ending */
    uv_process_t *process; /* NULL once the last one has ended */
    /* connections to supervisors without a task; the most recently used one is last */
    uv_pipe_t *idle[FREE_MAX];
    size_t n_free, n_unused; /* n_unused: the minimum since the last check */
    char node[256];          /* name that they were given */
    struct timer trim;
};

static void on_closed(uv_handle_t *h)
{
    free(h);
}

/* ---- supervisors without a task ---- */

static void close_free(struct supervisor_pool *n, size_t i)
{
    uv_close((uv_handle_t *)n->idle[i], on_closed);
    memmove(&n->idle[i], &n->idle[i + 1], (--n->n_free - i) * sizeof(*n->idle));
    n->n_unused = n->n_unused < n->n_free ? n->n_unused : n->n_free;
}

static void close_all_free(struct supervisor_pool *n)
{
    while (n->n_free > 0)
        close_free(n, n->n_free - 1);
}

static void on_trim(struct timer *timer, void *ctx)
{
    struct supervisor_pool *n = ctx;
    for (size_t i = n->n_unused; i > 0; i--)
        close_free(n, 0);
    n->n_unused = n->n_free;
    if (n->n_free > 0)
        timer_start(n->timers, timer, TRIM_MS);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
    (void)h, (void)suggested;
    *b = uv_buf_init(mem_alloc(16), 16);
}

/* A free supervisor sends nothing, so this is the end of its connection. */
static void on_end(uv_stream_t *stream, ssize_t len, const uv_buf_t *b)
{
    struct supervisor_pool *n = stream->data;
    free(b->base);
    for (size_t i = 0; len != 0 && i < n->n_free; i++)
        if ((uv_stream_t *)n->idle[i] == stream) {
            close_free(n, i);
            return;
        }
}

void supervisor_pool_return(struct supervisor_pool *n, uv_pipe_t *pipe)
{
    if (n->n_free == FREE_MAX) {
        uv_close((uv_handle_t *)pipe, on_closed);
        return;
    }
    pipe->data = n;
    n->idle[n->n_free++] = pipe;
    uv_read_stop((uv_stream_t *)pipe);
    uv_read_start((uv_stream_t *)pipe, on_alloc, on_end);
    if (!timer_is_running(&n->trim))
        timer_start(n->timers, &n->trim, TRIM_MS);
}

/* True if a free supervisor has been given the task. */
static bool assign_idle(struct supervisor_pool *n, const char *dir, uv_pipe_t **ret_pipe)
{
    char text[SUPERVISOR_LINE_MAX];
    const char *slash = strrchr(dir, '/');
    int len = snprintf(text, sizeof(text), "task %s\n", slash ? slash + 1 : dir);
    uv_buf_t b = uv_buf_init(text, (unsigned)len);
    while (n->n_free > 0 && len < (int)sizeof(text)) {
        uv_pipe_t *pipe = n->idle[n->n_free - 1];
        uv_read_stop((uv_stream_t *)pipe);
        if (uv_try_write((uv_stream_t *)pipe, &b, 1) == len) {
            n->n_free--;
            n->n_unused = n->n_unused < n->n_free ? n->n_unused : n->n_free;
            *ret_pipe = pipe;
            return true;
        }
        close_free(n, n->n_free - 1);
    }
    return false;
}

struct supervisor_pool *supervisor_pool_create(
    uv_loop_t *loop, struct timers *timers, const struct limits *limits)
{
    struct supervisor_pool *n = mem_alloc(sizeof(*n));
    *n = (struct supervisor_pool){.loop = loop, .timers = timers, .limits = *limits, .fd = -1};
    timer_init(&n->trim, on_trim, n);
    return n;
}

/* ---- the process ---- */

static void forget(uv_process_t *p)
{
    struct supervisor_pool *n = p->data;
    if (n && n->process == p)
        n->process = NULL;
    uv_close((uv_handle_t *)p, on_closed);
}

/* The next request fails on the socket, and starts another process. */
static void on_exit_of(uv_process_t *p, int64_t status, int signum)
{
    (void)status, (void)signum;
    forget(p);
}

static void program(char out[PATH_MAX])
{
    static const char name[] = "belay-supervisor";
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - sizeof(name) - 1);
    out[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(out, '/');
    str_copy(slash ? slash + 1 : out, sizeof(name), name);
}

static int spawn(struct supervisor_pool *n, int theirs)
{
    char path[PATH_MAX];
    char words[LIMITS_TEXT_MAX], *args[1 + LIMITS_WORDS_MAX] = {path};
    uv_stdio_container_t stdio[SUPERVISOR_POOL_FD + 1] = {{.flags = UV_IGNORE},
        {.flags = UV_IGNORE}, {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = theirs}};
    program(path);
    limits_write(&n->limits, words, args + 1);
    uv_process_options_t o = {.file = path,
        .args = args,
        .exit_cb = on_exit_of,
        .flags = UV_PROCESS_DETACHED, /* keeps signals to our process group from the tasks */
        .stdio = stdio,
        .stdio_count = SUPERVISOR_POOL_FD + 1};
    uv_process_t *p = mem_alloc(sizeof(*p));
    int rc = uv_spawn(n->loop, p, &o);
    p->data = n;
    n->process = p;
    if (rc < 0)
        forget(p);
    else
        uv_unref((uv_handle_t *)p);
    return rc;
}

static int start(struct supervisor_pool *n, struct err *e)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(e, errno, "making a pair of sockets");
    int rc = spawn(n, ends[1]);
    close(ends[1]);
    if (rc < 0) {
        close(ends[0]);
        return err_set(e, ERR_IO,
            "cannot start belay-supervisor, which must be in the same directory as belay-agent: %s",
            uv_strerror(rc));
    }
    n->fd = ends[0];
    return 0;
}

/* Closes the socket; belay-supervisor then ends by itself. */
static void give_up(struct supervisor_pool *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

/* ---- asking ---- */

/* fd: the supervisor's end of the socket. */
static int fork_one(
    struct supervisor_pool *n, const char *dir, const char *node, int fd, struct err *e)
{
    char text[SUPERVISOR_POOL_MESSAGE_MAX];
    size_t dir_len = strlen(dir) + 1, node_len = strlen(node) + 1;
    if (dir_len + node_len > sizeof(text))
        return err_set(
            e, ERR_INVALID, "the path of a task's directory is too long: %zu bytes", dir_len - 1);
    memcpy(text, dir, dir_len);
    memcpy(text + dir_len, node, node_len);
    int failed = n->fd < 0 ? -EPIPE : fds_send(n->fd, text, dir_len + node_len, &fd, 1);
    if (failed && failed != -EAGAIN) { /* the process is not running, or no longer */
        give_up(n);
        int rc = start(n, e);
        if (rc)
            return rc;
        failed = fds_send(n->fd, text, dir_len + node_len, &fd, 1);
    }
    return failed ? err_errno(e, -failed, "asking belay-supervisor for a process") : 0;
}

int supervisor_pool_request(struct supervisor_pool *n, const char *dir, const char *node,
    uv_pipe_t **ret_pipe, struct err *e)
{
    int ends[2];
    if (!str_eq(node, n->node))
        close_all_free(n); /* the node has joined under another name */
    STR_COPY(n->node, node);
    if (assign_idle(n, dir, ret_pipe))
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(e, errno, "making a pair of sockets");
    int rc = fork_one(n, dir, node, ends[1], e);
    close(ends[1]);
    if (rc) {
        close(ends[0]);
        return rc;
    }
    uv_pipe_t *pipe = mem_alloc(sizeof(*pipe));
    uv_pipe_init(n->loop, pipe, 0);
    uv_pipe_open(pipe, ends[0]);
    *ret_pipe = pipe;
    return 0;
}

void supervisor_pool_stop(struct supervisor_pool *n)
{
    timer_stop(n->timers, &n->trim);
    close_all_free(n);
    give_up(n);
    if (n->process)
        uv_process_kill(n->process, SIGKILL);
}

bool supervisor_pool_is_idle(const struct supervisor_pool *n)
{
    return !n->process;
}

void supervisor_pool_destroy(struct supervisor_pool *n)
{
    free(n);
}
