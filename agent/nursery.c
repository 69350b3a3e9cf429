/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nursery.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct nursery {
    uv_loop_t *loop;
    int fd;                /* our end; -1: there is no process, or it is ending */
    uv_process_t *process; /* NULL: the last one has ended */
};

struct nursery *nursery_create(uv_loop_t *loop)
{
    struct nursery *n = mem_alloc(sizeof(*n));
    *n = (struct nursery){.loop = loop, .fd = -1};
    return n;
}

/* ---- the process ---- */

static void on_closed(uv_handle_t *h)
{
    free(h);
}

static void forget(uv_process_t *p)
{
    struct nursery *n = p->data;
    if (n && n->process == p)
        n->process = NULL;
    uv_close((uv_handle_t *)p, on_closed);
}

/* Who asks next finds out by the socket. */
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

static int spawn(struct nursery *n, int theirs)
{
    char path[PATH_MAX];
    char *args[] = {path, NULL};
    uv_stdio_container_t stdio[NURSERY_FD + 1] = {{.flags = UV_IGNORE}, {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}, {.flags = UV_INHERIT_FD, .data.fd = theirs}};
    program(path);
    uv_process_options_t o = {.file = path,
        .args = args,
        .exit_cb = on_exit_of,
        .flags = UV_PROCESS_DETACHED, /* a signal to our group is none to the tasks */
        .stdio = stdio,
        .stdio_count = NURSERY_FD + 1};
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

static int start(struct nursery *n, struct err *e)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(e, errno, "making a pair of sockets");
    int rc = spawn(n, ends[1]);
    close(ends[1]);
    if (rc < 0) {
        close(ends[0]);
        return err_set(e, ERR_IO, "belay-supervisor, which has to be beside belay-agent, cannot be started: %s", uv_strerror(rc));
    }
    n->fd = ends[0];
    return 0;
}

/* It ends by itself then. */
static void give_up(struct nursery *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

/* ---- asking ---- */

/* 0 or -errno. */
static int send_request(const struct nursery *n, const void *text, size_t len, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec v = {.iov_base = (void *)(uintptr_t)text, .iov_len = len};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    return sendmsg(n->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int nursery_fork(struct nursery *n, const char *dir, const char *node, int handshake_fd, struct err *e)
{
    char text[NURSERY_MESSAGE_MAX];
    size_t dir_len = strlen(dir) + 1, node_len = strlen(node) + 1;
    if (dir_len + node_len > sizeof(text))
        return err_set(e, ERR_INVALID, "the path of a task's directory is too long: %zu bytes", dir_len - 1);
    memcpy(text, dir, dir_len);
    memcpy(text + dir_len, node, node_len);
    int failed = n->fd < 0 ? -EPIPE : send_request(n, text, dir_len + node_len, handshake_fd);
    if (failed && failed != -EAGAIN) { /* it is not there, or not any more */
        give_up(n);
        int rc = start(n, e);
        if (rc)
            return rc;
        failed = send_request(n, text, dir_len + node_len, handshake_fd);
    }
    return failed ? err_errno(e, -failed, "asking belay-supervisor for a process") : 0;
}

void nursery_stop(struct nursery *n)
{
    give_up(n);
    if (n->process)
        uv_process_kill(n->process, SIGKILL);
}

bool nursery_is_idle(const struct nursery *n)
{
    return !n->process;
}

void nursery_destroy(struct nursery *n)
{
    free(n);
}
