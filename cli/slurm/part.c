/* SPDX-License-Identifier: Apache-2.0
 *
 * See part.h. srun --part is what the session starts (step_parts.h):
 *
 *     srun --part --fork--> relay --fork--> step_tasks
 *
 * The first process ends when the connection is established, and the session with it. The relay
 * sends the tasks' output (in whole lines where possible) and their exit code, forwards signals,
 * and ends the tasks when srun is gone. All of it is in the task's process group, so nothing
 * outlives the job.
 *
 * The environment is srun's, except for variables of a node, which stay this node's.
 */
#include "cli/slurm/part.h"

#include "base/frames.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/slurm/layout.h"
#include "cli/slurm/slurm.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define META_MAX (4u << 20)
#define TEXT_MAX 65536
#define WORDS_MAX 65536
#define CONNECT_S 20
#define RETRY_FIRST_MS 50
#define RETRY_MAX_MS 2000
#define LINE_MAX_BYTES 32768 /* an unfinished line up to this size is held back until its end */
#define HANG_UP_MS 2000

/* ---- parameters ---- */

static json_t *opt(const char *text)
{
    return text ? json_text(text) : json_null();
}

void part_format(const struct part *p, struct buf *out)
{
    const struct step *s = &p->step;
    const struct step_node *at = &p->on;
    json_t *ids = json_array();
    json_int_t n_args = 0, n_env = 0;
    for (int64_t i = 0; i < at->n; i++)
        json_array_append_new(ids, json_integer(at->ids[i]));
    while (p->argv[n_args])
        n_args++;
    while (p->env[n_env])
        n_env++;
    json_t *v = json_pack("{s:o,s:I,s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:I,s:I}", "address",
        json_text(p->address), "port", (json_int_t)p->port, "key", p->key, "step",
        (json_int_t)at->step, "tasks", (json_int_t)at->tasks, "nodes", (json_int_t)at->nodes,
        "node", (json_int_t)at->node, "ids", ids, "nodelist", json_text(at->nodelist), "per_node",
        json_text(at->per_node), "n_args", n_args, "n_env", n_env);
    json_object_set_new(v, "output", opt(s->output));
    json_object_set_new(v, "error", opt(s->error));
    json_object_set_new(v, "input", opt(s->input));
    json_object_set_new(v, "dir", opt(s->dir));
    json_object_set_new(v, "name", opt(s->name));
    json_object_set_new(v, "export", opt(s->export));
    json_object_set_new(v, "prolog", opt(s->prolog));
    json_object_set_new(v, "epilog", opt(s->epilog));
    json_object_set_new(v, "has_programs", json_boolean(s->programs));
    json_object_set_new(v, "cpus_per_task", json_integer(s->cpus_per_task));
    json_object_set_new(v, "labels", json_boolean(s->labels));
    json_object_set_new(v, "kill_on_bad_exit", json_boolean(s->kill_on_bad_exit));
    json_object_set_new(v, "quiet", json_boolean(s->quiet));
    json_add_secret(out, v);
    buf_addc(out, '\n');
    buf_add(out, p->cwd ? p->cwd : "/", strlen(p->cwd ? p->cwd : "/") + 1);
    if (s->programs)
        buf_add(out, s->programs, strlen(s->programs) + 1);
    for (char **word = p->argv; *word; word++)
        buf_add(out, *word, strlen(*word) + 1);
    for (char **word = p->env; *word; word++)
        buf_add(out, *word, strlen(*word) + 1);
}

static const char *take_text(struct json_reader *r, struct part *p, int i, const char *key)
{
    const char *text = json_opt_str(r, key, TEXT_MAX, NULL);
    return p->texts[i] = text ? mem_strdup(text) : NULL;
}

static void read_ids(struct json_reader *r, struct part *p)
{
    const json_t *ids = json_req_array(r, "ids", STEP_TASKS_MAX), *id;
    size_t i;
    p->ids = mem_array(json_array_size(ids), sizeof(*p->ids));
    json_array_foreach(ids, i, id)
    {
        p->ids[i] = json_integer_value(id);
        if (!json_is_integer(id) || p->ids[i] < 0 || p->ids[i] >= p->on.tasks)
            json_reader_fail(r, "ids", "expected numbers of tasks");
    }
    p->on.ids = p->ids;
    p->on.n = (int64_t)json_array_size(ids);
    if (r->rc == 0 && p->on.n == 0)
        json_reader_fail(r, "ids", "is empty");
}

static int read_meta(const json_t *v, struct part *p, bool *ret_programs, size_t *ret_args,
    size_t *ret_env, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, v, "part", e);
    p->address = mem_strdup(json_req_str(&r, "address", 256));
    p->port = json_req_i64(&r, "port", 1, 65535);
    json_req_strcpy(&r, "key", p->key, sizeof(p->key));
    p->on.step = json_req_i64(&r, "step", 0, INT32_MAX);
    p->on.tasks = json_req_i64(&r, "tasks", 1, LAYOUT_TASKS_MAX);
    p->on.nodes = json_req_i64(&r, "nodes", 1, LAYOUT_NODES_MAX);
    p->on.node = json_req_i64(&r, "node", 0, LAYOUT_NODES_MAX - 1);
    read_ids(&r, p);
    p->on.nodelist = take_text(&r, p, 0, "nodelist");
    p->on.per_node = take_text(&r, p, 1, "per_node");
    p->step = (struct step){.program = "srun",
        .output = take_text(&r, p, 2, "output"),
        .error = take_text(&r, p, 3, "error"),
        .input = take_text(&r, p, 4, "input"),
        .dir = take_text(&r, p, 5, "dir"),
        .name = take_text(&r, p, 6, "name"),
        .export = take_text(&r, p, 7, "export"),
        .prolog = take_text(&r, p, 8, "prolog"),
        .epilog = take_text(&r, p, 9, "epilog"),
        .cpus_per_task = json_opt_i64(&r, "cpus_per_task", 0, 65536, 0),
        .labels = json_opt_bool(&r, "labels", false),
        .kill_on_bad_exit = json_opt_bool(&r, "kill_on_bad_exit", false),
        .quiet = json_opt_bool(&r, "quiet", false)};
    *ret_programs = json_opt_bool(&r, "has_programs", false);
    *ret_args = (size_t)json_req_i64(&r, "n_args", 1, WORDS_MAX);
    *ret_env = (size_t)json_req_i64(&r, "n_env", 0, WORDS_MAX);
    if (r.rc == 0 && (!p->on.nodelist || !p->on.per_node || strlen(p->key) != PART_KEY_HEX))
        json_reader_fail(&r, NULL, "is not whole");
    return json_reader_finish(&r);
}

/* The next NUL-terminated text; NULL if there is none. */
static char *next_text(const char **p, const char *end)
{
    const char *nul = *p < end ? memchr(*p, '\0', (size_t)(end - *p)) : NULL;
    char *text = nul ? mem_strdup(*p) : NULL;
    *p = nul ? nul + 1 : end;
    return text;
}

static char **read_texts(const char **p, const char *end, size_t n)
{
    char **texts = mem_array(n + 1, sizeof(*texts));
    for (size_t i = 0; i < n && (texts[i] = next_text(p, end)); i++)
        ;
    return texts;
}

int part_parse(const char *text, size_t n, struct part *ret_part, struct err *e)
{
    const char *newline = n > 0 ? memchr(text, '\n', n < META_MAX ? n : META_MAX) : NULL,
               *end = text + n;
    size_t n_args = 0, n_env = 0;
    bool programs = false;
    json_t *v = NULL;
    *ret_part = (struct part){0};
    if (!newline)
        return err_set(e, ERR_INVALID, "the parameters of the step's part are incomplete");
    int rc = json_parse(text, (size_t)(newline - text), META_MAX, &v, e);
    if (rc == 0)
        rc = read_meta(v, ret_part, &programs, &n_args, &n_env, e);
    json_wipe(v);
    if (rc != 0)
        return rc;
    const char *p = newline + 1;
    ret_part->cwd = next_text(&p, end);
    if (programs)
        ret_part->step.programs = ret_part->programs = next_text(&p, end);
    ret_part->argv = read_texts(&p, end, n_args);
    ret_part->env = read_texts(&p, end, n_env);
    if (!ret_part->cwd || (programs && !ret_part->programs) || !ret_part->argv[n_args - 1] ||
        (n_env > 0 && !ret_part->env[n_env - 1]) || p != end)
        return err_set(e, ERR_INVALID, "the parameters of the step's part are incomplete");
    return 0;
}

void part_deinit(struct part *p)
{
    for (size_t i = 0; i < sizeof(p->texts) / sizeof(p->texts[0]); i++)
        free(p->texts[i]);
    mem_free_texts(p->argv);
    mem_free_texts(p->env);
    free(p->programs);
    free(p->cwd);
    free(p->address);
    free(p->ids);
    explicit_bzero(p->key, sizeof(p->key));
    *p = (struct part){0};
}

/* ---- environment ---- */

static bool is_of_node(const char *entry)
{
    static const char *const names[] = {"BELAY_CONTROL_DIR", "BELAY_NODE_RANK", "BELAY_NOTICE_FILE",
        "BELAY_CHECKPOINT_DIR", "BELAY_STDIN", "BELAY_RESTORED_DIR", "BELAY_GPUS",
        "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "SLURM_CPUS_ON_NODE",
        "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURMD_NODENAME"};
    size_t n = strcspn(entry, "=");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == n && strncmp(names[i], entry, n) == 0)
            return true;
    return false;
}

/* Variables that only apply on the first node: a checkpoint directory elsewhere would not be saved.
 */
static bool is_of_first(const char *entry)
{
    return str_starts(entry, "BELAY_CHECKPOINT_DIR=") || str_starts(entry, "BELAY_STDIN=");
}

static void take_environment(const struct part *p)
{
    extern char **environ;
    size_t n = 0, given = 0, own = 0;
    while (p->env[given])
        given++;
    while (environ[own])
        own++;
    char **env = mem_array(given + own + 1, sizeof(*env));
    for (char **entry = p->env; *entry; entry++)
        if (!is_of_node(*entry))
            env[n++] = *entry;
    for (char **entry = environ; *entry; entry++)
        if (is_of_node(*entry) && !is_of_first(*entry))
            env[n++] = *entry;
    environ = env;
}

/* ---- connection ---- */

/* One try. ERR_CONFLICT: srun does not listen at this address, so another try is useless. */
static int connect_once(const struct part *p, int64_t deadline_ms, int *ret_fd,
    struct part_tls **ret_tls, struct err *e)
{
    const struct timeval wait = {.tv_sec = CONNECT_S}, none = {0};
    const struct addrinfo want = {
        .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[16];
    int yes = 1;
    snprintf(port, sizeof(port), "%d", (int)p->port);
    if (getaddrinfo(p->address, port, &want, &found) != 0)
        return err_set(e, ERR_CONFLICT, "%s", strerror(EADDRNOTAVAIL));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)); /* also applies to connect(2) */
    int rc = fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0 ? -1 : 0;
    int why = errno;
    freeaddrinfo(found);
    if (rc < 0)
        rc = err_set(e, why == ECONNREFUSED ? ERR_CONFLICT : ERR_IO, "%s", strerror(why));
    else
        rc = part_tls_connect(fd, p->on.node, p->key, deadline_ms, ret_tls, e);
    if (rc != 0) {
        if (fd >= 0)
            close(fd);
        return rc;
    }
    setsockopt(
        fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none)); /* a stopped srun must block its tasks */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    *ret_fd = fd;
    return 0;
}

void part_pause(int64_t *delay_ms, int64_t max_ms)
{
    uint32_t random;
    random_bytes(&random, sizeof(random));
    int64_t ms = *delay_ms / 2 + random % (*delay_ms / 2 + 1);
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
    *delay_ms = *delay_ms * 2 < max_ms ? *delay_ms * 2 : max_ms;
}

/* Retries for CONNECT_S seconds: when many parts connect at once, srun may close a connection
 * before its part has sent anything. */
static int connect_to(const struct part *p, int *ret_fd, struct part_tls **ret_tls, struct err *e)
{
    int64_t deadline_ms = clock_mono(&clock_system).ms + CONNECT_S * 1000,
            delay_ms = RETRY_FIRST_MS;
    for (;;) {
        int rc = connect_once(p, deadline_ms, ret_fd, ret_tls, e);
        if (rc != ERR_IO || clock_mono(&clock_system).ms + delay_ms > deadline_ms)
            return rc;
        part_pause(&delay_ms, RETRY_MAX_MS);
    }
}

/* ---- the relay ---- */

struct relay {
    int fd, signals;
    struct part_tls *tls;
    int pipes[2]; /* -1 after EOF */
    struct buf unsent[2];
    pid_t step;
    bool gone; /* srun is gone */
};

static void send_all(struct relay *r, const struct buf *frame)
{
    r->gone = r->gone || !part_tls_send(r->tls, frame->data, frame->len);
}

static void send_frame(struct relay *r, enum frame_type type, const void *p, size_t n)
{
    struct buf frame = {0};
    frame_add(&frame, type, p, n);
    send_all(r, &frame);
    buf_deinit(&frame);
}

/* Sends the complete lines held back; all: also an incomplete one. */
static void send_lines(struct relay *r, int which, bool all)
{
    struct buf *b = &r->unsent[which];
    const char *last = b->len > 0 ? memrchr(b->data, '\n', b->len) : NULL;
    size_t n = all || (!last && b->len > LINE_MAX_BYTES) ? b->len
               : last                                    ? (size_t)(last - b->data) + 1
                                                         : 0;
    if (n == 0)
        return;
    send_frame(r, which == 0 ? FRAME_OUT : FRAME_ERR, b->data, n);
    buf_remove_front(b, n);
}

/* False if there is nothing to read now, or at EOF. */
static bool read_pipe(struct relay *r, int which)
{
    ssize_t n = r->pipes[which] < 0
                    ? 0
                    : read(r->pipes[which], buf_reserve(&r->unsent[which], 16384), 16384);
    if (n > 0) {
        buf_commit(&r->unsent[which], (size_t)n);
        send_lines(r, which, false);
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (r->pipes[which] >= 0)
        close(r->pipes[which]);
    r->pipes[which] = -1;
    return false;
}

static void handle_frames(struct relay *r, struct buf *received)
{
    struct frame f;
    struct err e;
    size_t used;
    int rc;
    r->gone = r->gone || !part_tls_receive(r->tls, received);
    while ((rc = frame_read(buf_str(received), received->len, &f, &used, &e)) == 1) {
        unsigned char signum = f.type == FRAME_SIGNAL ? (unsigned char)f.p[0] : 0;
        if (signum == SIGKILL)
            kill(-r->step, SIGKILL);
        else if (signum > 0)
            kill(r->step, signum); /* step_tasks forwards it to the tasks */
        buf_remove_front(received, used);
    }
    r->gone = r->gone || rc < 0;
}

static _Noreturn void end_tasks(struct relay *r)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    kill(r->step, SIGTERM);
    for (int waited = 0; waited < HANG_UP_MS && waitpid(r->step, NULL, WNOHANG) == 0; waited += 50)
        nanosleep(&pause, NULL);
    kill(-r->step, SIGKILL);
    _exit(0);
}

/* Runs until the tasks have ended, or srun has. */
static _Noreturn void relay(struct relay *r)
{
    struct buf received = {0};
    int status = 0;
    bool ended = false;
    handle_frames(r, &received); /* data that came with the handshake */
    while (!ended && !r->gone) {
        struct pollfd p[4] = {{.fd = r->fd, .events = POLLIN},
            {.fd = r->pipes[0], .events = POLLIN}, {.fd = r->pipes[1], .events = POLLIN},
            {.fd = r->signals, .events = POLLIN}};
        struct signalfd_siginfo info;
        if (poll(p, 4, -1) < 0)
            continue;
        if (p[0].revents)
            handle_frames(r, &received);
        for (int i = 0; i < 2; i++)
            if (p[1 + i].revents)
                read_pipe(r, i);
        while (read(r->signals, &info, sizeof(info)) == sizeof(info))
            ;
        ended = waitpid(r->step, &status, WNOHANG) == r->step;
    }
    if (r->gone)
        end_tasks(r);
    for (int i = 0; i < 2; i++) {
        while (read_pipe(r, i))
            /* reads what the tasks wrote before they ended; does not wait for others that hold the
             * pipe open */
            ;
        send_lines(r, i, true);
    }
    char code = (char)(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    send_frame(r, FRAME_EXIT, &code, 1);
    shutdown(r->fd, SHUT_WR);
    _exit(0);
}

static _Noreturn void run_tasks(const struct part *p, const int pipes[2])
{
    sigset_t none;
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(pipes[0], STDOUT_FILENO);
    dup2(pipes[1], STDERR_FILENO);
    take_environment(p);
    if (chdir(p->cwd) != 0) {
        slurm_error("srun", "%s cannot be entered: %s", p->cwd, strerror(errno));
        _exit(1);
    }
    int code = step_tasks(&p->step, &p->on, NULL, p->argv);
    fflush(NULL);
    _exit(code);
}

/* Detaches from the session: its descriptors, and its process session. */
static void detach(void)
{
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3 && null >= 0; i++)
        dup2(null, i);
    if (null > 2)
        close(null);
    setsid();
}

static _Noreturn void serve(const struct part *p, int fd, struct part_tls *tls)
{
    struct relay r = {.fd = fd, .tls = tls};
    sigset_t child;
    int out[2], err[2];
    detach();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    r.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
        _exit(1);
    r.step = fork();
    if (r.step == 0)
        run_tasks(p, (const int[]){out[1], err[1]});
    if (r.step < 0)
        _exit(1); /* the exit closes the connection */
    setpgid(r.step, r.step);
    close(out[1]);
    close(err[1]);
    r.pipes[0] = out[0];
    r.pipes[1] = err[0];
    for (int i = 0; i < 2; i++)
        fcntl(r.pipes[i], F_SETFL, O_NONBLOCK);
    relay(&r);
}

int part_main(void)
{
    struct buf text = {0};
    struct part_tls *tls = NULL;
    struct part p;
    struct err e;
    ssize_t n;
    while ((n = read(STDIN_FILENO, buf_reserve(&text, 65536), 65536)) > 0 &&
           text.len <= PART_BYTES_MAX)
        buf_commit(&text, (size_t)n);
    int rc = part_parse(buf_str(&text), text.len, &p, &e), fd = -1;
    buf_wipe(&text);
    if (rc != 0) {
        slurm_error("srun", "%s", e.text);
        part_deinit(&p);
        return 1;
    }
    const char *node = getenv("SLURMD_NODENAME");
    if (connect_to(&p, &fd, &tls, &e) != 0)
        slurm_error("srun", "%s: the first node of the job cannot be reached at %s: %s",
            node ? node : "this node", p.address, e.text);
    pid_t pid = fd < 0 ? -1 : fork();
    if (pid == 0)
        serve(&p, fd, tls);
    part_tls_free(tls);
    part_deinit(&p);
    return pid < 0;
}
