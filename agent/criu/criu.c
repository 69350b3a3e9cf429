/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/criu/criu.h"

#include "agent/criu/criu_gpu.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX 32768
#define LOG_TAIL_MAX 65536
#define MAJOR_MIN 3 /* oldest version that supports all options below */
#define MINOR_MIN 17
#define CUDA_MAJOR 4 /* the first with a plugin for CUDA */
#define WORDS_MAX 40

/* ---- criu's output ---- */

bool criu_parse_version(
    const char *text, int *ret_major, int *ret_minor, char *ret_text, size_t size)
{
    const char *v = strstr(text, "Version: ");
    int major, minor = 0;
    if (!v || sscanf(v, "Version: %6d.%6d", &major, &minor) < 1 || major < 0 || minor < 0)
        return false;
    v += strlen("Version: ");
    char *word = mem_strndup(v, strspn(v, "0123456789."));
    str_copy(ret_text, size, word);
    free(word);
    *ret_major = major;
    *ret_minor = minor;
    return true;
}

/* "(00.016463) Error (criu/util.c:642): text" -> text */
static const char *after_location(const char *line, size_t n)
{
    const char *error = memmem(line, n, "Error (", 7);
    const char *end = error ? memmem(error, n - (size_t)(error - line), "): ", 3) : NULL;
    return end ? end + 3 : NULL;
}

/* Whether the line is one that follows every failure, or only repeats an earlier one. */
static bool is_uninformative(const char *text, size_t n)
{
    static const char *const empty[] = {"exited, status=", "Dumping FAILED", "Restoring FAILED",
        "Pre-dumping FAILED", "Could not initialize kernel features detection",
        "Unable to open fd=", "Can't open file on ", "Can't open vma"};
    for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++)
        if (n >= strlen(empty[i]) && memcmp(text, empty[i], strlen(empty[i])) == 0)
            return true;
    return memmem(text, n, " exited, status=", 16) || memmem(text, n, " killed by signal ", 18);
}

void criu_last_error(const char *log, size_t n, char *ret_text, size_t size)
{
    const char *best = "", *last = "", *empty = "";
    size_t n_best = 0, n_last = 0, n_empty = 0;
    for (const char *p = log, *end = log + n; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((newline ? newline : end) - p);
        const char *text = after_location(p, len);
        size_t n_text = text ? len - (size_t)(text - p) : 0;
        if (text && is_uninformative(text, n_text))
            empty = text, n_empty = n_text;
        else if (text)
            best = text, n_best = n_text;
        if (len > 0)
            last = p, n_last = len;
        p += len + 1;
    }
    if (n_best == 0)
        best = n_empty ? empty : last, n_best = n_empty ? n_empty : n_last;
    char *copy = mem_strndup(best, n_best);
    str_sanitize(copy, strlen(copy));
    str_copy(ret_text, size, copy);
    free(copy);
}

/* ---- criu's command line ---- */

/* Options of dump and restore. The supervisor manages cgroups; TCP connections are closed; files
 * without a name and file locks are saved; connections to UNIX sockets of other processes are made
 * again. Without --link-remap: for an open file whose name was removed while another hard link to
 * it exists, criu would create a link as root in a directory of the user, and remove it when the
 * processes continue. Another node does not have such a link. */
static const char *const common[] = {"--manage-cgroups=ignore", "--tcp-close", "--file-locks",
    "--ext-unix-sk", "--ghost-limit", CRIU_GHOST_LIMIT, "-v3"};

/* criu's own time limit: a tenth (at least 1 s) shorter, so that criu ends before it is killed. */
static int64_t own_timeout_s(int64_t timeout_ms)
{
    int64_t margin = timeout_ms / 10 > 1000 ? timeout_ms / 10 : 1000;
    return timeout_ms - margin > 1000 ? (timeout_ms - margin) / 1000 : 1;
}

struct words {
    const char *argv[WORDS_MAX];
    size_t n;
    char text[48];
};

static void add(struct words *w, const char *word)
{
    w->argv[w->n++] = word;
}

static struct words *begin(const struct criu *c, const char *verb, const char *dir, const char *log)
{
    struct words *w = mem_alloc(sizeof(*w));
    add(w, c->path);
    add(w, verb);
    add(w, "-D");
    add(w, dir);
    add(w, "-o");
    add(w, log);
    for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
        add(w, common[i]);
    return w;
}

static void add_hook(struct words *w)
{
    add(w, "--action-script");
    add(w, CRIU_SANDBOX "/hook");
}

const char **criu_dump_argv(
    const struct criu *c, enum criu_step step, bool parent, int64_t timeout_ms)
{
    bool is_pre = step == CRIU_PRE_DUMP;
    struct words *w = begin(c, is_pre ? "pre-dump" : "dump",
        is_pre ? CRIU_IMAGES "/pre" : CRIU_IMAGES "/dump", CRIU_SANDBOX "/dump.log");
    if (!is_pre)
        add_hook(w);
    add(w, "-t");
    add(w, "1000");
    snprintf(w->text, sizeof(w->text), "%lld", (long long)own_timeout_s(timeout_ms));
    add(w, "--timeout");
    add(w, w->text);
    if (is_pre || parent)
        add(w, "--track-mem");
    if (!is_pre && parent) {
        add(w, "--prev-images-dir");
        add(w, "../pre");
    }
    if (!is_pre)
        add(w, step == CRIU_DUMP_STOPPED ? "--leave-stopped" : "--leave-running");
    return w->argv;
}

const char **criu_restore_argv(const struct criu *c, int64_t output)
{
    struct words *w = begin(c, "restore", CRIU_IMAGES "/dump", CRIU_SANDBOX "/restore.log");
    add_hook(w);
    snprintf(w->text, sizeof(w->text), "fd[%d]:pipe:[%lld]", CRIU_OUTPUT_FD, (long long)output);
    add(w, "--inherit-fd");
    add(w, w->text);
    add(w, "-d"); /* criu ends, and the processes become children of the sandbox's first process */
    return w->argv;
}

_Static_assert(CRIU_ROOT_PID == 1000, "as criu_dump_argv says");

/* ---- running it ---- */

/* inherited: becomes CRIU_OUTPUT_FD; -1 = none */
static void child(const char *const *argv, int output, int inherited)
{
    static const char *const env[] = {"PATH=" CRIU_PATH, "LANG=C", "HOME=/", NULL};
    sigset_t none;
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    int null = open("/dev/null", O_RDONLY);
    /* at 10 or above, where the dup2 below do not close it */
    int high = inherited < 0 ? -1 : fcntl(inherited, F_DUPFD_CLOEXEC, 10);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        _exit(126);
    if (inherited >= 0 && dup2(high, CRIU_OUTPUT_FD) < 0)
        _exit(126);
    close_range(inherited < 0 ? 3 : CRIU_OUTPUT_FD + 1, ~0U, 0);
    execve(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    dprintf(2, "cannot execute %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

struct capture {
    char head[OUTPUT_MAX], tail[OUTPUT_MAX];
    size_t n_head, n_tail;
};

static void keep(struct capture *c, const char *p, size_t n)
{
    size_t space = sizeof(c->head) - 1 - c->n_head, k = n < space ? n : space;
    memcpy(c->head + c->n_head, p, k);
    c->n_head += k;
    if (n >= sizeof(c->tail)) {
        p += n - sizeof(c->tail);
        n = sizeof(c->tail);
    }
    size_t drop = c->n_tail + n > sizeof(c->tail) ? c->n_tail + n - sizeof(c->tail) : 0;
    memmove(c->tail, c->tail + drop, c->n_tail - drop);
    memcpy(c->tail + c->n_tail - drop, p, n);
    c->n_tail += n - drop;
}

/* Waits for the end of the program. Processes that it started may continue and keep the pipe open.
 * False if the deadline passed. */
static bool await_program(
    pid_t pid, int pidfd, int output, int64_t deadline_ms, struct capture *c, int *ret_status)
{
    char text[4096];
    struct pollfd p[2] = {{.fd = output, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    for (;;) {
        int64_t left = deadline_ms - clock_system_ms();
        if (left <= 0)
            return false;
        if (poll(p, 2, left > 1000 ? 1000 : (int)left) < 0 && errno != EINTR)
            return false;
        ssize_t n = p[0].revents ? read(output, text, sizeof(text)) : -1;
        if (n > 0)
            keep(c, text, (size_t)n);
        else if (n == 0 || (n < 0 && p[0].revents && errno != EAGAIN && errno != EINTR))
            p[0].fd = -1;
        if (n <= 0 && waitpid(pid, ret_status, WNOHANG) == pid)
            return true;
    }
}

/* Finds an error of belay's own helper program, which has more information than criu's report of
 * its exit code. */
static bool find_own_error(const char *text, size_t n, char *out, size_t size)
{
    static const char mark[] = "Error (belay): ";
    const char *p = memmem(text, n, mark, strlen(mark));
    const char *end = p ? memchr(p, '\n', (size_t)(text + n - p)) : NULL;
    if (!p)
        return false;
    criu_last_error(p, (size_t)((end ? end : text + n) - p), out, size);
    return true;
}

static void find_error(const char *log, const struct capture *c, char *out, size_t size)
{
    if (find_own_error(c->tail, c->n_tail, out, size))
        return;
    char *text = mem_alloc(LOG_TAIL_MAX);
    int fd = log ? open(log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = 0;
    if (end > 0)
        n = pread(fd, text, LOG_TAIL_MAX, end > LOG_TAIL_MAX ? end - LOG_TAIL_MAX : 0);
    if (fd >= 0)
        close(fd);
    if (!find_own_error(text, n > 0 ? (size_t)n : 0, out, size)) /* an error of the action script */
        criu_last_error(text, n > 0 ? (size_t)n : 0, out, size);
    if (!*out)
        criu_last_error(c->tail, c->n_tail, out, size);
    free(text);
}

static int result_of(
    int status, const char *what, const char *log, const struct capture *c, struct err *e)
{
    char why[200];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    find_error(log, c, why, sizeof(why));
    if (WIFSIGNALED(status))
        return err_set(e, ERR_IO, "%s was killed by signal %d%s%s", what, WTERMSIG(status),
            *why ? ": " : "", why);
    return err_set(e, WEXITSTATUS(status) == CRIU_EXIT_DAMAGED ? ERR_CORRUPT : ERR_IO,
        "%s failed with exit code %d: %s", what, WEXITSTATUS(status),
        *why ? why : "it did not say why");
}

static int call(const char *const *argv, int inherited, const char *what, const char *log,
    int64_t timeout_ms, char *ret_output, size_t size, struct err *e)
{
    int out[2], status = 0, rc;
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_errno(e, errno, "making a pipe");
    pid_t pid = fork();
    if (pid == 0)
        child(argv, out[1], inherited);
    close(out[1]);
    if (pid < 0) {
        rc = err_errno(e, errno, "starting %s", what);
        close(out[0]);
        return rc;
    }
    setpgid(pid, pid);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct capture *c = mem_alloc(sizeof(*c));
    if (await_program(pid, pidfd, out[0], clock_system_ms() + timeout_ms, c, &status)) {
        rc = result_of(status, what, log, c, e);
    } else {
        char took[32];
        time_format_duration(timeout_ms, took, sizeof(took));
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        rc = err_set(e, ERR_TIMEOUT, "%s did not end within %s and was killed", what, took);
    }
    if (ret_output)
        str_copy(ret_output, size, c->head);
    free(c);
    close(out[0]);
    if (pidfd >= 0)
        close(pidfd);
    return rc;
}

int criu_call(const char *const *argv, const char *what, const char *log, int64_t timeout_ms,
    char *ret_output, size_t size, struct err *e)
{
    return call(argv, -1, what, log, timeout_ms, ret_output, size, e);
}

int criu_call_restore(
    const char *const *argv, int output, const char *log, int64_t timeout_ms, struct err *e)
{
    return call(argv, output, "criu restore", log, timeout_ms, NULL, 0, e);
}

/* ---- support on this node ---- */

static bool find_in(const char *path, const char *name, char *out, size_t size)
{
    char *names = mem_strdup(path), *rest = names;
    bool found = false;
    for (char *dir; !found && (dir = strsep(&rest, ":"));) {
        char *file = mem_printf("%s/%s", dir, name);
        found = *dir == '/' && access(file, X_OK) == 0 && str_copy(out, size, file);
        free(file);
    }
    free(names);
    return found;
}

bool criu_find_program(const char *name, char *out, size_t size)
{
    const char *path = getenv("PATH");
    return (path && find_in(path, name, out, size)) || find_in(CRIU_PATH, name, out, size);
}

static bool check(const struct criu *c, const char *feature, struct err *e)
{
    const char *const argv[] = {c->path, "check", feature ? "--feature" : NULL, feature, NULL};
    return criu_call(argv, "criu check", NULL, CRIU_PROBE_MS, NULL, 0, e) == 0;
}

static bool has_cuda_plugin(void)
{
    static const char *const plugins[] = {"/usr/lib/criu/cuda_plugin.so",
        "/usr/lib64/criu/cuda_plugin.so", "/usr/local/lib/criu/cuda_plugin.so",
        "/usr/lib/x86_64-linux-gnu/criu/cuda_plugin.so"};
    for (size_t i = 0; i < sizeof(plugins) / sizeof(*plugins); i++)
        if (access(plugins[i], R_OK) == 0)
            return true;
    return false;
}

/* The reason why programs with GPUs cannot be checkpointed; NULL if none is known before the trial
 * (criu_trial.h). */
static const char *lacks_for_gpus(struct criu *c, int major)
{
    struct criu_gpu gpus;
    struct err e;
    char elsewhere[256];
    if (!find_in(CRIU_PATH, "cuda-checkpoint", c->cuda_checkpoint, sizeof(c->cuda_checkpoint)))
        return criu_find_program("cuda-checkpoint", elsewhere, sizeof(elsewhere))
                   ? "cuda-checkpoint is not in " CRIU_PATH ", where criu looks for it"
                   : "cuda-checkpoint is not installed";
    if (major < CUDA_MAJOR)
        return "GPUs need criu 4 or newer";
    if (!has_cuda_plugin())
        return "its CUDA plugin is not installed";
    return criu_gpu_query("", &gpus, &e) ? "nvidia-smi lists no GPU" : criu_gpu_lacks(&gpus);
}

static int probe(const char *path, struct criu *c, struct err *e)
{
    char said[256], version[32];
    int major, minor;
    if (str_eq(path, "no"))
        return err_set(e, ERR_UNSUPPORTED, "the agent's configuration says criu: no");
    if (*path ? !str_copy(c->path, sizeof(c->path), path) || access(path, X_OK) < 0
              : !criu_find_program("criu", c->path, sizeof(c->path)))
        return err_set(e, ERR_UNSUPPORTED, "%s",
            *path ? "the criu of the agent's configuration cannot be executed"
                  : "criu is not installed");
    if (geteuid() != 0)
        return err_set(e, ERR_UNSUPPORTED, "the agent does not run as root");
    const char *const argv[] = {c->path, "--version", NULL};
    int rc = criu_call(argv, "criu --version", NULL, CRIU_PROBE_MS, said, sizeof(said), e);
    if (rc)
        return rc;
    if (!criu_parse_version(said, &major, &minor, version, sizeof(version)))
        return err_set(e, ERR_UNSUPPORTED, "criu --version does not say which version it is");
    if (major < MAJOR_MIN || (major == MAJOR_MIN && minor < MINOR_MIN))
        return err_set(e, ERR_UNSUPPORTED, "criu %s is too old: 3.17 or later", version);
    if (!check(c, NULL, e))
        return err_wrap(e, "criu %s", version);
    if (access("/proc/sys/kernel/ns_last_pid", W_OK) < 0)
        return err_set(e, ERR_UNSUPPORTED, "the kernel has no CONFIG_CHECKPOINT_RESTORE");
    struct err ignored;
    c->tracks = check(c, "mem_dirty_track", &ignored);
    const char *lacks = lacks_for_gpus(c, major);
    c->can = lacks ? WIRE_CRIU_CPU : WIRE_CRIU_GPU;
    snprintf(c->text, sizeof(c->text), "%s%s%s%s", version,
        lacks ? "; not for programs with GPUs (" : "", lacks ? lacks : "", lacks ? ")" : "");
    return 0;
}

void criu_probe(const char *path, struct criu *ret_criu)
{
    struct err e;
    *ret_criu = (struct criu){0};
    if (probe(path, ret_criu, &e)) {
        ret_criu->can = WIRE_CRIU_NO;
        STR_COPY(ret_criu->text, e.text);
    }
}
