/* SPDX-License-Identifier: Apache-2.0
 *
 * A host's claim (see host.h). Invariants:
 *  1. A claim is stored before anything runs for it, and removed only when nothing runs for it any
 *     more. So on a host without a claim nothing of belay runs.
 *  2. A request repeated with the same token returns the same claim. A claim is started once: after
 *     a reboot the host reports it as "ended" until it is released.
 */
#include "agent/host.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/time.h"
#include "base/uv/proc.h"
#include "base/uv/proc_table.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLAIM_BYTES_MAX 4096
#define USER_DATA_MAX 65536
#define READY_WAIT_MS 15000
#define END_WAIT_S 20
#define KILL_WAIT_MS 10000

struct claim {
    char id[17]; /* random */
    char token[65], cluster[64];
    int64_t since_ms;
    bool is_started;
};

/* ---- requests and replies ---- */

int host_request_parse(const char *text, size_t n, struct host_request *ret_request, struct err *e)
{
    static const char *const names[] = {"list", "claim", "release", NULL};
    struct host_request q = {0};
    struct json_reader r;
    json_t *root = NULL;
    int rc = json_parse(text, n, HOST_REQUEST_MAX, &root, e);
    if (rc != 0)
        return rc;
    json_reader_init(&r, root, "request", e);
    json_req_i64(&r, "host", 1, 1);
    q.what = json_req_enum(&r, "do", names);
    if (q.what == HOST_CLAIM) {
        json_req_strcpy(&r, "token", q.token, sizeof(q.token));
        json_req_strcpy(&r, "cluster", q.cluster, sizeof(q.cluster));
        q.user_data = mem_strdup(json_req_str(&r, "user_data", USER_DATA_MAX));
        if (r.rc == 0 && (!q.token[0] || !q.cluster[0]))
            json_reader_fail(&r, "token", "token and cluster must not be empty");
    } else if (q.what == HOST_RELEASE) {
        json_req_strcpy(&r, "id", q.id, sizeof(q.id));
    }
    rc = json_reader_finish(&r);
    json_wipe(root); /* because user data holds a one-use secret */
    if (rc != 0)
        host_request_deinit(&q);
    else
        *ret_request = q;
    return rc;
}

void host_request_deinit(struct host_request *r)
{
    if (r->user_data)
        explicit_bzero(r->user_data, strlen(r->user_data));
    free(r->user_data);
    *r = (struct host_request){0};
}

static void add_line(struct buf *out, json_t *v)
{
    json_add(out, v);
    buf_addc(out, '\n');
}

static json_t *claim_json(const struct claim *c, const char *state)
{
    return json_pack("{s:o, s:o, s:o, s:s, s:I}", "id", json_text(c->id), "token",
        json_text(c->token), "cluster", json_text(c->cluster), "state", state, "since_ms",
        (json_int_t)c->since_ms);
}

/* ---- files ---- */

static char *path_of(const char *dir, const char *name)
{
    return mem_printf("%s/%s", dir, name);
}

/* ERR_NOT_FOUND if there is none. */
static int read_claim(const char *dir, const char *name, struct claim *ret_claim, struct err *e)
{
    struct buf text = {0};
    struct json_reader r;
    json_t *root = NULL;
    char *path = path_of(dir, name);
    int rc = fs_read(path, CLAIM_BYTES_MAX, &text, e);
    if (rc == 0)
        rc = json_parse(buf_str(&text), text.len, CLAIM_BYTES_MAX, &root, e);
    if (rc == 0) {
        struct claim c = {0};
        json_reader_init(&r, root, path, e);
        json_req_strcpy(&r, "id", c.id, sizeof(c.id));
        json_req_strcpy(&r, "token", c.token, sizeof(c.token));
        json_req_strcpy(&r, "cluster", c.cluster, sizeof(c.cluster));
        c.since_ms = json_req_i64(&r, "since_ms", 0, INT64_MAX);
        c.is_started = json_req_bool(&r, "started");
        rc = json_reader_finish_lenient(&r);
        if (rc == 0)
            *ret_claim = c;
    }
    if (rc == ERR_INVALID)
        rc = (int)(e->kind = ERR_CORRUPT);
    json_decref(root);
    buf_deinit(&text);
    free(path);
    return rc;
}

static int write_claim(const char *dir, const struct claim *c, bool is_new, struct err *e)
{
    json_t *v = claim_json(c, "");
    char *path = path_of(dir, "claim.json");
    json_object_set_new(v, "started", json_boolean(c->is_started));
    char *text = json_dump_text(v);
    int rc = is_new ? fs_create_atomic(path, text, strlen(text), 0600, e)
                    : fs_write_atomic(path, text, strlen(text), 0600, e);
    json_decref(v);
    free(text);
    free(path);
    return rc;
}

/* ---- the holder ---- */

static int open_holder_lock(const char *dir, struct err *e)
{
    char *path = path_of(dir, "hold");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        err_errno(e, errno, "opening %s", path);
    free(path);
    return fd;
}

/* The pid of the process that holds the lock; 0 = none. */
static pid_t holder_of(int holder_lock)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(holder_lock, F_GETLK, &l) == 0 && l.l_type != F_UNLCK ? l.l_pid : 0;
}

static const char *state_of(const struct claim *c, int holder_lock)
{
    if (holder_of(holder_lock) != 0)
        return "running";
    return c->is_started ? "ended" : "starting";
}

static void leave_connection(const char *dir)
{
    char *path = path_of(dir, "console");
    int in = open("/dev/null", O_RDONLY);
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    free(path);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(1);
}

/* Starts the holder in its own session. It reports on descriptor 3 that it has the lock. */
static int start_holder(const char *dir, struct err *e)
{
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_errno(e, errno, "starting the holder");
    pid_t pid = fork();
    if (pid == 0) {
        char exe[] = "/proc/self/exe", name[] = "belay-agent", verb[] = "holder";
        char *args[] = {name, verb, (char *)(uintptr_t)dir, NULL};
        setsid();
        leave_connection(dir);
        if (dup2(ready[1], 3) < 0)
            _exit(1);
        if (ready[1] == 3)
            fcntl(3, F_SETFD, 0);
        execv(exe, args);
        _exit(1);
    }
    close(ready[1]);
    struct pollfd p = {.fd = ready[0], .events = POLLIN};
    char byte;
    bool is_ready = pid > 0 && poll(&p, 1, READY_WAIT_MS) > 0 && read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (is_ready)
        return 0;
    if (pid > 0 && kill(pid, SIGKILL) == 0) /* so that it cannot start later */
        waitpid(pid, NULL, 0);
    return err_set(e, ERR_IO, "the holder did not start; %s/console may say why", dir);
}

/* Whether the process has this text in its environment. */
static bool has_variable(pid_t pid, const char *variable)
{
    char path[64];
    struct buf text = {0};
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; fd >= 0 && n > 0 && text.len < (1u << 20);) {
        n = read(fd, buf_reserve(&text, 4096), 4096);
        buf_commit(&text, n > 0 ? (size_t)n : 0);
    }
    if (fd >= 0)
        close(fd);
    buf_addc(&text, '\0');
    for (size_t at = 0; at < text.len && !found; at += strlen(text.data + at) + 1)
        found = str_eq(text.data + at, variable);
    buf_deinit(&text);
    return found;
}

/* Kills what a killed holder left: the agent and its supervisors have the directory in their
 * environment, and the tasks are their descendants. */
static int kill_leftovers(const char *dir, struct err *e)
{
    char *variable = mem_printf("BELAY_NODE_DIR=%s/node", dir);
    struct proc_table t = {0};
    int rc = 0;
    proc_table_read(&t);
    for (size_t i = 0; i < t.n && rc == 0; i++)
        if (t.entries[i].pid > 1 && t.entries[i].pid != getpid() &&
            has_variable(t.entries[i].pid, variable))
            rc = proc_tree_kill(t.entries[i].pid, KILL_WAIT_MS, e);
    proc_table_deinit(&t);
    free(variable);
    return rc;
}

/* ---- claim ---- */

/* Removes the node's directory, and the boot script's with the join token. */
static int remove_node(const char *dir, struct err *e)
{
    char *node = path_of(dir, "node"), *work = path_of(dir, "node.boot");
    int rc = fs_remove_tree(work, e);
    if (rc == 0)
        rc = fs_remove_tree(node, e);
    free(node);
    free(work);
    return rc;
}

static int prepare(const char *dir, const char *user_data, struct err *e)
{
    char *node = path_of(dir, "node"), *script = path_of(dir, "script");
    int rc = remove_node(dir, e);
    if (rc == 0)
        rc = fs_mkdirs(node, geteuid() == 0 ? 0711 : 0700, e);
    if (rc == 0)
        rc = fs_write_atomic(script, user_data, strlen(user_data), 0700, e);
    free(node);
    free(script);
    return rc;
}

static void fill_claim(struct claim *c, const struct host_request *q)
{
    random_hex(sizeof(c->id) / 2, c->id);
    STR_COPY(c->token, q->token);
    STR_COPY(c->cluster, q->cluster);
    c->since_ms = clock_wall(&clock_system).ms;
}

static int start_claim(const char *dir, const struct host_request *q, struct err *e)
{
    int rc = prepare(dir, q->user_data, e);
    return rc == 0 ? start_holder(dir, e) : rc;
}

/* Removes a claim that could not be started, so that an error means that nothing runs here. */
static int undo_claim(const char *dir, int rc)
{
    char *path = path_of(dir, "claim.json");
    if (kill_leftovers(dir, NULL) == 0)
        unlink(path);
    free(path);
    return rc;
}

/* Leaves a claim with another token unchanged; the reply shows it. */
static int claim(const char *dir, const struct host_request *q, int holder_lock, struct err *e)
{
    struct claim c = {0};
    int rc = read_claim(dir, "claim.json", &c, e);
    if (rc == ERR_NOT_FOUND) {
        fill_claim(&c, q);
        rc = write_claim(dir, &c, true, e);
    }
    if (rc != 0 || !str_eq(c.token, q->token) || !str_eq(c.cluster, q->cluster) || c.is_started)
        return rc;
    if (holder_of(holder_lock) == 0)
        rc = start_claim(dir, q, e);
    if (rc != 0)
        return undo_claim(dir, rc);
    c.is_started = true;
    return write_claim(dir, &c, false, e);
}

/* ---- release ---- */

static void on_alarm(int signum)
{
    (void)signum;
}

/* Waits until the lock is free. False on timeout. */
static bool wait_for_end(int holder_lock)
{
    struct sigaction sa = {.sa_handler = on_alarm}; /* no SA_RESTART, so that the wait ends */
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    sigaction(SIGALRM, &sa, NULL);
    alarm(END_WAIT_S);
    bool is_free = fcntl(holder_lock, F_SETLKW, &l) == 0;
    alarm(0);
    l.l_type = F_UNLCK;
    if (is_free)
        fcntl(holder_lock, F_SETLK, &l);
    return is_free;
}

static int end_processes(const char *dir, int holder_lock, struct err *e)
{
    pid_t holder = holder_of(holder_lock);
    if (holder > 1) {
        kill(holder, SIGTERM);
        if (!wait_for_end(holder_lock)) {
            int rc = proc_tree_kill(holder, KILL_WAIT_MS, e);
            if (rc != 0)
                return rc;
        }
    }
    return kill_leftovers(dir, e);
}

static int release(const char *dir, const struct host_request *q, int holder_lock, struct err *e)
{
    struct claim c = {0};
    int rc = read_claim(dir, "claim.json", &c, e);
    if (rc == ERR_NOT_FOUND || (rc == 0 && !str_eq(c.id, q->id))) {
        struct claim last = {0};
        if (read_claim(dir, "last.json", &last, e) == 0 && str_eq(last.id, q->id))
            return 0;
        return err_set(e, ERR_NOT_FOUND, "there is no claim %s on this host", q->id);
    }
    if (rc != 0)
        return rc;
    char *script = path_of(dir, "script");
    char *from = path_of(dir, "claim.json"), *to = path_of(dir, "last.json");
    rc = end_processes(dir, holder_lock, e);
    if (rc == 0)
        rc = remove_node(dir, e);
    if (rc == 0 && unlink(script) < 0 && errno != ENOENT)
        rc = err_errno(e, errno, "removing %s", script);
    if (rc == 0 && rename(from, to) < 0)
        rc = err_errno(e, errno, "releasing the claim %s", from);
    if (rc == 0)
        rc = fs_sync_dir(dir, e);
    free(script);
    free(from);
    free(to);
    return rc;
}

/* ---- one request ---- */

static int take_lock(const char *dir, struct err *e)
{
    char *path = path_of(dir, "lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        err_errno(e, errno, "opening %s", path);
    } else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        err_set(e, ERR_UNAVAILABLE, "another request is under way on this host");
        close(fd);
        fd = -1;
    }
    free(path);
    return fd;
}

static int act(const char *dir, const struct host_request *q, int holder_lock, struct err *e)
{
    if (q->what == HOST_LIST)
        return 0;
    int lock = take_lock(dir, e);
    if (lock < 0)
        return (int)e->kind;
    int rc =
        q->what == HOST_CLAIM ? claim(dir, q, holder_lock, e) : release(dir, q, holder_lock, e);
    close(lock);
    return rc;
}

static int show(const char *dir, int holder_lock, struct buf *out, struct err *e)
{
    struct claim c = {0}, last = {0};
    int rc = read_claim(dir, "claim.json", &c, e);
    if (rc != 0 && rc != ERR_NOT_FOUND)
        return rc;
    json_t *now = rc == 0 ? claim_json(&c, state_of(&c, holder_lock)) : json_null();
    json_t *before =
        read_claim(dir, "last.json", &last, e) == 0 ? claim_json(&last, "released") : json_null();
    add_line(out, json_pack("{s:i, s:o, s:o}", "host", 1, "claim", now, "last", before));
    return 0;
}

/* Serves the request, and writes the reply (of either form) to out. Blocks for at most about a
 * minute. Returns 0 or the error's kind. */
static int serve(const char *dir, const struct host_request *q, struct buf *out)
{
    struct err e = {0};
    int holder_lock = -1,
        /* jobs of other users must traverse it */
        rc = fs_mkdirs(dir, geteuid() == 0 ? 0711 : 0700, &e);
    if (rc == 0 && (holder_lock = open_holder_lock(dir, &e)) < 0)
        rc = (int)e.kind;
    if (rc == 0)
        rc = act(dir, q, holder_lock, &e);
    if (rc == 0)
        rc = show(dir, holder_lock, out, &e);
    if (rc != 0)
        add_line(out, json_pack("{s:i, s:s, s:o}", "host", 1, "error", err_kind_name(e.kind),
                          "text", json_text(e.text)));
    if (holder_lock >= 0)
        close(holder_lock);
    return rc;
}

/* ---- the program ---- */

static int read_request(struct host_request *q, struct err *e)
{
    struct buf text = {0};
    ssize_t n;
    do {
        n = read(0, buf_reserve(&text, 4096), 4096);
        buf_commit(&text, n > 0 ? (size_t)n : 0);
    } while (n > 0 && text.len <= HOST_REQUEST_MAX);
    int rc = n < 0 ? err_errno(e, errno, "reading the request")
                   : host_request_parse(buf_str(&text), text.len, q, e);
    buf_wipe(&text);
    return rc;
}

static int bad_usage(void)
{
    fputs("Usage: belay-agent host [--dir DIR]\n"
          "Serves one request of belayd's about this machine, on standard input.\n",
        stderr);
    return 2;
}

int host_main(int argc, char **argv)
{
    struct host_request q;
    struct buf out = {0};
    struct err e;
    const char *home = getenv("HOME");
    char *dir = geteuid() == 0 ? mem_strdup("/var/lib/belay-host")
                               : mem_printf("%s/.local/share/belay-host", home ? home : "");
    if (argc == 2 && str_eq(argv[0], "--dir")) {
        free(dir);
        dir = mem_strdup(argv[1]);
    } else if (argc != 0) {
        free(dir);
        return bad_usage();
    }
    umask(geteuid() == 0 ? 022 : 077);
    signal(SIGPIPE, SIG_IGN);
    int rc = dir[0] == '/' ? read_request(&q, &e)
                           : err_set(&e, ERR_CONFIG, "the directory \"%s\" is not absolute", dir);
    if (rc == 0) {
        rc = serve(dir, &q, &out);
        host_request_deinit(&q);
    } else {
        add_line(&out, json_pack("{s:i, s:s, s:o}", "host", 1, "error", err_kind_name(e.kind),
                           "text", json_text(e.text)));
    }
    if (fs_write_all(1, buf_str(&out), out.len, NULL) != 0)
        rc = ERR_IO;
    buf_deinit(&out);
    free(dir);
    return rc == 0 ? 0 : 1;
}
