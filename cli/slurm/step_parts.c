/* SPDX-License-Identifier: Apache-2.0
 *
 * See step_parts.h. Each part is started by its own process (because struct client makes one call
 * at a time), which then ends; after that the part is represented by its connection.
 *
 * A peer that does not prove within HELLO_MS that it has a key is disconnected. When there are
 * GUESTS_MAX such peers, the oldest of the address with the most connections is disconnected, so
 * that a flood displaces itself and not a part, which retries. A part believed to be started has
 * CONNECT_MS to connect: it may have been started even if its session broke.
 */
#include "cli/slurm/step_parts.h"
#include "cli/slurm/part.h"

#include "base/frames.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "job/pattern.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/session.h"
#include "cli/slurm/slurm.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS_FILE_MAX (1u << 20)
#define HELLO_MS 10000
#define CONNECT_MS 30000
#define START_MS 300000 /* for a node of the job that is still starting */
#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS 5000
#define GUESTS_MAX 128
#define AT_ONCE 16 /* connections accepted in one go, before the others are served */
/* exit code of a starter that does not know whether the part was started */
#define START_UNKNOWN 75

/* A connection that has not proved yet to have a key. */
struct guest {
    int fd;               /* -1 = none */
    struct part_tls *tls; /* NULL until the first data arrives */
    struct in6_addr address;
    int64_t until_ms;
    bool is_likely; /* its first message named a part, which may be a replay */
};

struct remote {
    int64_t index; /* among the step's nodes */
    char key[PART_KEY_HEX + 1];
    pid_t starter;    /* 0 once it has ended */
    int64_t until_ms; /* deadline for connecting; 0 = not started yet */
    int fd;           /* -1 = not connected, or no longer */
    struct part_tls *tls;
    struct buf in;
    bool was_there, ended;
    int code;
};

struct parts {
    struct parts_ask request;
    int listener;
    int64_t port;
    int out, err; /* descriptors for the parts' output */
    struct remote *all;
    int64_t n;
    struct guest guests[GUESTS_MAX];
    bool failed;
};

static const char *name_of(const struct parts *p, const struct remote *r)
{
    return p->request.nodes->names[p->request.ranks[r->index]];
}

/* ---- the job's nodes ---- */

static char *copy_text(struct json_reader *r, const char *key, size_t max)
{
    const char *text = json_req_str(r, key, max);
    return mem_strdup(text ? text : "");
}

int step_nodes_read(const char *control, struct step_nodes *ret_nodes, struct err *e)
{
    struct buf text = {0};
    struct json_reader r;
    json_t *v = NULL;
    const json_t *name;
    size_t i;
    char *path = mem_printf("%s/steps.json", control ? control : "");
    *ret_nodes = (struct step_nodes){0};
    int rc = fs_read_secret(path, STEPS_FILE_MAX, &text, e);
    free(path);
    if (rc == 0)
        rc = json_parse(buf_str(&text), text.len, STEPS_FILE_MAX, &v, e);
    buf_wipe(&text);
    if (rc != 0)
        return rc;
    json_reader_init(&r, v, "steps.json", e);
    ret_nodes->server = copy_text(&r, "server", 1024);
    ret_nodes->ca = copy_text(&r, "ca", 65536);
    ret_nodes->token = copy_text(&r, "token", 1024);
    ret_nodes->address = copy_text(&r, "address", 256);
    const json_t *names = json_req_array(&r, "nodes", LAYOUT_NODES_MAX);
    json_array_foreach(names, i, name)
    {
        if (!json_is_string(name))
            json_reader_fail(&r, "nodes", "expected names");
        ret_nodes->names[ret_nodes->n++] =
            mem_strdup(json_is_string(name) ? json_string_value(name) : "");
    }
    rc = json_reader_finish_lenient(&r);
    json_wipe(v);
    return rc;
}

void step_nodes_deinit(struct step_nodes *n)
{
    for (int64_t i = 0; i < n->n; i++)
        free(n->names[i]);
    if (n->token)
        explicit_bzero(n->token, strlen(n->token));
    free(n->token);
    free(n->server);
    free(n->ca);
    free(n->address);
    *n = (struct step_nodes){0};
}

/* ---- creation ---- */

static int listen_on(struct parts *p, int family, struct err *e)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr *a = family == AF_INET6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t size = family == AF_INET6 ? sizeof(six) : sizeof(four);
    int no = 0;
    p->listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->listener >= 0 && family == AF_INET6)
        setsockopt(p->listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (p->listener < 0 || bind(p->listener, a, size) < 0 ||
        listen(p->listener, LAYOUT_NODES_MAX) < 0 || getsockname(p->listener, a, &size) < 0)
        return err_errno(e, errno, "listening for the step's other nodes");
    p->port = ntohs(family == AF_INET6 ? six.sin6_port : four.sin_port);
    return 0;
}

/* A file shared by tasks of several nodes is written by srun; a file per task is written by the
 * task's node. */
static int open_shared(const struct parts *p, const char *pattern, int fallback)
{
    if (!pattern || str_eq(pattern, "none") || pattern_has_rank(pattern))
        return fallback;
    return step_open_file(
        p->request.s, p->request.step, pattern, 0, O_WRONLY | O_CREAT | O_APPEND | O_TRUNC);
}

int parts_create(const struct parts_ask *request, struct parts **ret_parts, struct err *e)
{
    struct parts *p = mem_alloc(sizeof(*p));
    *p = (struct parts){.request = *request, .listener = -1};
    p->all = mem_array((size_t)request->layout->nodes, sizeof(*p->all));
    for (int i = 0; i < GUESTS_MAX; i++)
        p->guests[i].fd = -1;
    for (int64_t i = 0; i < request->layout->nodes; i++) {
        if (request->ranks[i] == 0)
            continue;
        struct remote *r = &p->all[p->n++];
        *r = (struct remote){.index = i, .fd = -1};
        random_hex(PART_KEY_HEX / 2, r->key);
    }
    int rc = listen_on(p, AF_INET6, e);
    if (rc != 0) {
        if (p->listener >= 0)
            close(p->listener);
        rc = listen_on(p, AF_INET, e);
    }
    p->out = open_shared(p, request->s->output, STDOUT_FILENO);
    p->err = open_shared(p, request->s->error, request->s->output ? p->out : STDERR_FILENO);
    if (rc == 0 && (p->out < 0 || p->err < 0))
        rc = err_set(e, ERR_IO, "the files for the step's output cannot be opened");
    if (rc != 0)
        parts_destroy(p);
    else
        *ret_parts = p;
    return rc;
}

static void hang_up(struct remote *r)
{
    part_tls_free(r->tls);
    r->tls = NULL;
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    buf_deinit(&r->in);
}

static void hang_up_guest(struct guest *g)
{
    part_tls_free(g->tls);
    if (g->fd >= 0)
        close(g->fd);
    *g = (struct guest){.fd = -1};
}

void parts_destroy(struct parts *p)
{
    if (!p)
        return;
    for (int64_t i = 0; i < p->n; i++) {
        hang_up(&p->all[i]);
        if (p->all[i].starter > 0) {
            kill(p->all[i].starter, SIGKILL);
            waitpid(p->all[i].starter, NULL, 0);
        }
        explicit_bzero(p->all[i].key, sizeof(p->all[i].key));
    }
    for (int i = 0; i < GUESTS_MAX; i++)
        hang_up_guest(&p->guests[i]);
    if (p->listener >= 0)
        close(p->listener);
    if (p->out > STDERR_FILENO)
        close(p->out);
    if (p->err > STDERR_FILENO && p->err != p->out)
        close(p->err);
    free(p->all);
    free(p);
}

/* ---- starting a part ---- */

static void describe(const struct parts *p, const struct remote *r, struct buf *out)
{
    extern char **environ;
    const struct parts_ask *a = &p->request;
    int64_t n = layout_count(a->layout, r->index), *ids = mem_array((size_t)n, sizeof(*ids));
    char *cwd = getcwd(NULL, 0);
    struct part part = {.address = a->nodes->address,
        .port = p->port,
        .step = *a->s,
        .on = {.step = a->step,
            .tasks = a->layout->tasks,
            .nodes = a->layout->nodes,
            .node = r->index,
            .n = n,
            .ids = ids,
            .nodelist = a->nodelist,
            .per_node = a->per_node},
        .cwd = cwd,
        .argv = a->argv,
        .env = environ};
    memcpy(part.key, r->key, sizeof(part.key));
    for (int64_t i = 0; i < n; i++)
        ids[i] = layout_task(a->layout, r->index, i);
    if (p->out != STDOUT_FILENO)
        part.step.output = NULL;
    if (p->err != STDERR_FILENO && a->s->error)
        part.step.error = NULL;
    part_format(&part, out);
    free(cwd);
    free(ids);
}

/* Retries for START_MS while belayd is unreachable or the node is still starting. Returns the exit
 * code of the starter. */
static int start_part(const struct parts *p, const struct remote *r, const struct buf *text)
{
    static const char *const words[] = {"belay", "slurm", "srun", PART_FLAG};
    const struct parts_ask *a = &p->request;
    const char *job = getenv("SLURM_JOB_ID");
    struct session_request request = {.rank = a->ranks[r->index], .words = words, .n_words = 4};
    struct client *c;
    struct err e = {0};
    int64_t until = clock_system_ms() + START_MS, delay = RETRY_FIRST_MS;
    bool begun = false;
    int code = 1, rc = str_to_i64(job ? job : "", 1, INT64_MAX, "SLURM_JOB_ID", &request.job, &e);
    client_create_at(a->nodes->server, a->nodes->ca, a->nodes->token, &c);
    while (rc == 0) {
        rc = session_feed(c, &request, text->data, text->len, &begun, &code, &e);
        if (rc != ERR_UNAVAILABLE || begun || clock_system_ms() > until)
            break;
        part_pause(&delay, RETRY_MAX_MS);
        rc = 0;
    }
    client_destroy(c);
    if (rc == 0)
        return code;
    if (begun)
        return START_UNKNOWN;
    slurm_error(a->s->program, "%s: %s", name_of(p, r), e.text);
    return 1;
}

static pid_t fork_starter(const struct parts *p, const struct remote *r)
{
    struct buf text = {0};
    sigset_t none;
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    describe(p, r, &text);
    int code = start_part(p, r, &text);
    buf_wipe(&text);
    _exit(code < 0 ? 1 : code);
}

bool parts_start(struct parts *p)
{
    for (int64_t i = 0; p && i < p->n; i++) {
        p->all[i].starter = fork_starter(p, &p->all[i]);
        if (p->all[i].starter < 0) {
            slurm_error(p->request.s->program, "%s", strerror(errno));
            p->all[i].starter = 0;
            for (int64_t k = i; k < p->n; k++)
                p->all[k].ended = true;
            p->failed = true;
            return false;
        }
    }
    return true;
}

/* ---- ends ---- */

static void fail(struct parts *p, struct remote *r, const char *why)
{
    if (why)
        slurm_error(p->request.s->program, "%s: %s", name_of(p, r), why);
    hang_up(r);
    r->ended = true;
    r->code = 1;
    p->failed = true;
}

void parts_reap(struct parts *p, pid_t pid, int status)
{
    for (int64_t i = 0; p && i < p->n; i++) {
        struct remote *r = &p->all[i];
        if (r->starter != pid)
            continue;
        r->starter = 0;
        bool unknown = WIFEXITED(status) && WEXITSTATUS(status) == START_UNKNOWN,
             fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (r->was_there || r->ended)
            return;
        if (fine || unknown)
            r->until_ms = clock_system_ms() + CONNECT_MS;
        else
            fail(p, r, NULL); /* the starter has reported why */
    }
}

bool parts_are_over(const struct parts *p)
{
    for (int64_t i = 0; p && i < p->n; i++)
        if (!p->all[i].ended)
            return false;
    return true;
}

bool parts_have_failed(const struct parts *p)
{
    return p && p->failed;
}

int parts_exit_code(const struct parts *p)
{
    int code = 0;
    for (int64_t i = 0; p && i < p->n; i++)
        if (p->all[i].code > code)
            code = p->all[i].code;
    return code;
}

static void send_signal(struct parts *p, struct remote *r, int signum)
{
    struct buf frame = {0};
    const char byte = (char)signum;
    frame_add(&frame, FRAME_SIGNAL, &byte, 1);
    if (!part_tls_send(r->tls, frame.data, frame.len))
        fail(p, r, "the connection was lost");
    buf_deinit(&frame);
}

/* Cancels a part that is not connected yet. Its starter may have started it already, so it will be
 * refused when it connects. */
static void cancel_part(struct parts *p, struct remote *r)
{
    if (r->starter > 0)
        kill(r->starter, SIGKILL);
    fail(p, r, NULL);
}

void parts_signal(struct parts *p, int signum)
{
    for (int64_t i = 0; p && i < p->n; i++) {
        struct remote *r = &p->all[i];
        if (r->ended)
            continue;
        if (r->fd >= 0)
            send_signal(p, r, signum);
        else
            cancel_part(p, r);
    }
}

/* ---- received data ---- */

static void write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno != EINTR)
            return; /* discarded, like output that is not read */
        p += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
}

/* True if the part has ended with an exit code other than 0. */
static bool take_frame(struct parts *p, struct remote *r, const struct frame *f)
{
    if (f->type == FRAME_OUT || f->type == FRAME_ERR) {
        write_all(f->type == FRAME_OUT ? p->out : p->err, f->p, f->n);
    } else if (f->type == FRAME_EXIT) {
        r->code = (unsigned char)f->p[0];
        r->ended = true;
    } else {
        fail(p, r, "it sent a message of an unknown type");
    }
    return r->ended && r->code != 0;
}

static bool read_part(struct parts *p, struct remote *r)
{
    struct frame f;
    struct err e;
    size_t used;
    bool bad = false;
    int rc = 0;
    bool is_there = part_tls_receive(r->tls, &r->in);
    while (!r->ended && (rc = frame_read(buf_str(&r->in), r->in.len, &f, &used, &e)) == 1) {
        bad = take_frame(p, r, &f);
        if (r->in.len >= used)
            buf_remove_front(&r->in, used);
    }
    if (r->ended)
        hang_up(r);
    else if (rc < 0 || !is_there)
        fail(p, r, "the connection was lost");
    return bad || (r->ended && r->code != 0);
}

static struct remote *expected(struct parts *p, int64_t index)
{
    for (int64_t i = 0; i < p->n; i++)
        if (p->all[i].index == index && !p->all[i].was_there && !p->all[i].ended)
            return &p->all[i];
    return NULL;
}

static const char *key_of(void *ctx, int64_t index)
{
    const struct remote *r = expected(ctx, index);
    return r ? r->key : NULL;
}

/* Makes the guest, which has proved its key, the connection of r. Data sent with the proof has
 * arrived already. Returns as read_part. */
static bool take_guest(struct parts *p, struct guest *g, struct remote *r)
{
    int yes = 1;
    setsockopt(g->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    r->fd = g->fd;
    r->tls = g->tls;
    r->was_there = true;
    *g = (struct guest){.fd = -1};
    return read_part(p, r);
}

static bool read_guest(struct parts *p, struct guest *g)
{
    int64_t index = -1;
    if (!g->tls)
        g->tls = part_tls_accept(g->fd, key_of, p);
    int rc = g->tls ? part_tls_greet(g->tls, &index) : -1;
    struct remote *r = rc == 1 ? expected(p, index) : NULL;
    if (r)
        return take_guest(p, g, r);
    if (rc != 0)
        hang_up_guest(g);
    else
        g->is_likely = index >= 0;
    return false;
}

/* The guest to disconnect when all slots are taken: the oldest of the address with the most,
 * preferably none that is likely a part. */
static struct guest *guest_to_drop(struct parts *p)
{
    struct guest *found = &p->guests[0];
    int most = -GUESTS_MAX;
    for (int i = 0; i < GUESTS_MAX; i++) {
        struct guest *g = &p->guests[i];
        int n = g->is_likely ? -GUESTS_MAX : 0;
        for (int k = 0; k < GUESTS_MAX; k++)
            n += memcmp(&p->guests[k].address, &g->address, sizeof(g->address)) == 0;
        if (n > most || (n == most && g->until_ms < found->until_ms)) {
            found = g;
            most = n;
        }
    }
    return found;
}

static struct guest *slot_for(struct parts *p)
{
    for (int i = 0; i < GUESTS_MAX; i++)
        if (p->guests[i].fd < 0)
            return &p->guests[i];
    struct guest *g = guest_to_drop(p);
    hang_up_guest(g);
    return g;
}

static struct in6_addr address_of(const struct sockaddr_storage *a)
{
    struct in6_addr address = {0};
    if (a->ss_family == AF_INET6)
        address = ((const struct sockaddr_in6 *)a)->sin6_addr;
    else if (a->ss_family == AF_INET)
        memcpy(&address, &((const struct sockaddr_in *)a)->sin_addr, sizeof(struct in_addr));
    return address;
}

/* A few at a time, so that connections with a key are served meanwhile. */
static void accept_guests(struct parts *p)
{
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof(from);
        int fd =
            accept4(p->listener, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        struct guest *g = slot_for(p);
        *g = (struct guest){
            .fd = fd, .address = address_of(&from), .until_ms = clock_system_ms() + HELLO_MS};
    }
}

static void check_deadlines(struct parts *p)
{
    int64_t now = clock_system_ms();
    for (int i = 0; i < GUESTS_MAX; i++)
        if (p->guests[i].fd >= 0 && now > p->guests[i].until_ms)
            hang_up_guest(&p->guests[i]);
    for (int64_t i = 0; i < p->n; i++) {
        struct remote *r = &p->all[i];
        if (!r->was_there && !r->ended && r->until_ms > 0 && now > r->until_ms)
            fail(p, r,
                "its tasks were started, but it did not connect within 30 s: check that the job's "
                "nodes can reach each other");
    }
}

size_t parts_fds_max(const struct parts *p)
{
    return p ? (size_t)p->n + GUESTS_MAX + 1 : 0;
}

size_t parts_poll(const struct parts *p, struct pollfd *fds)
{
    size_t n = 0;
    if (!p)
        return 0;
    fds[n++] = (struct pollfd){.fd = p->listener, .events = POLLIN};
    for (int i = 0; i < GUESTS_MAX; i++)
        fds[n++] = (struct pollfd){.fd = p->guests[i].fd, .events = POLLIN};
    for (int64_t i = 0; i < p->n; i++)
        fds[n++] = (struct pollfd){.fd = p->all[i].fd, .events = POLLIN};
    return n;
}

bool parts_handle(struct parts *p, const struct pollfd *fds, size_t n)
{
    bool bad = false;
    if (n == 0)
        return false;
    for (int64_t i = 0; i < p->n; i++)
        if (p->all[i].fd >= 0 && p->all[i].fd == fds[1 + GUESTS_MAX + i].fd &&
            fds[1 + GUESTS_MAX + i].revents)
            bad |= read_part(p, &p->all[i]);
    for (int i = 0; i < GUESTS_MAX; i++)
        if (p->guests[i].fd >= 0 && p->guests[i].fd == fds[1 + i].fd && fds[1 + i].revents)
            bad |= read_guest(p, &p->guests[i]);
    if (fds[0].revents)
        accept_guests(p);
    check_deadlines(p);
    return bad;
}
