/* SPDX-License-Identifier: Apache-2.0
 *
 * Local processes (see local.h).
 */
#include "cli/local.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 20
#define FILE_MAX 65536

static json_t *read_json(const char *path)
{
    struct buf text = {0};
    json_t *v = NULL;
    if (fs_read(path, FILE_MAX, &text, NULL) == 0)
        json_parse(buf_str(&text), text.len, FILE_MAX, &v, NULL);
    buf_deinit(&text);
    return v;
}

char *local_socket(const char *home)
{
    char *path = mem_printf("%s/belayd.json", home);
    json_t *v = read_json(path);
    const char *socket = cli_text(v, "socket");
    char *found = socket[0] == '/' ? mem_strdup(socket) : mem_printf("%s/belayd.sock", home);
    json_decref(v);
    free(path);
    return found;
}

int local_use(const char *home, struct err *e)
{
    const char *server = getenv("BELAY_SERVER");
    if (server && server[0])
        return err_set(e, ERR_CONFIG,
            "BELAY_SERVER is set, but this verb works with this machine's own belayd: unset "
            "BELAY_SERVER");
    char *socket = local_socket(home);
    setenv("BELAY_HOME", home, 1);
    setenv("BELAY_SOCKET", socket, 1);
    free(socket);
    return 0;
}

int64_t local_node(const char *home)
{
    char *path = mem_printf("%s/agent/node.json", home);
    json_t *v = read_json(path);
    int64_t node = cli_int(v, "node", 0);
    json_decref(v);
    free(path);
    return node;
}

char *local_program(const char *name)
{
    /* Installed: next to us or in sbin, which may not be on the PATH. Build tree: in a neighbouring
     * folder. */
    static const char *const paths[] = {
        "%s/%s", "%s/../sbin/%s", "%s/../scheduler/%s", "%s/../agent/%s", "%s/../emulator/%s"};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char *path = mem_printf(paths[i], self, name);
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    return mem_strdup(name);
}

static bool is_named(pid_t pid, const char *program)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    FILE *f = fopen(path, "re");
    char text[PATH_MAX] = "";
    if (f) {
        size_t n = fread(text, 1, sizeof(text) - 1, f);
        text[n] = '\0'; /* the first word ends at its NUL */
        fclose(f);
    }
    const char *slash = strrchr(text, '/');
    return str_eq(slash ? slash + 1 : text, program);
}

/* A supervisor keeps the file locked as long as it lives. */
static bool is_supervised(const char *tasks, const char *name)
{
    char *path = mem_printf("%s/%s/supervisor.pid", tasks, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    free(path);
    return is_locked;
}

bool local_has_tasks(const char *home)
{
    char *tasks = mem_printf("%s/agent/tasks", home);
    DIR *dir = opendir(tasks);
    const struct dirent *entry;
    bool found = false;
    while (dir && !found && (entry = readdir(dir)))
        found = isdigit((unsigned char)entry->d_name[0]) && is_supervised(tasks, entry->d_name);
    if (dir)
        closedir(dir);
    free(tasks);
    return found;
}

pid_t local_pid(const char *file, const char *program)
{
    json_t *v = read_json(file);
    int64_t pid = cli_int(v, "pid", 0);
    json_decref(v);
    return pid > 1 && kill((pid_t)pid, 0) == 0 && is_named((pid_t)pid, program) ? (pid_t)pid : 0;
}

int local_spawn(const char *const *argv, const char *log, pid_t *ret_pid, struct err *e)
{
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int failed = errno;
    pid_t pid = fd < 0 || null < 0 ? -1 : fork();
    if (pid == 0) {
        setsid();
        dup2(null, STDIN_FILENO);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execvp(argv[0], (char *const *)argv);
        dprintf(STDERR_FILENO, "cannot start %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    if (pid < 0)
        failed = fd < 0 || null < 0 ? failed : errno;
    if (fd >= 0)
        close(fd);
    if (null >= 0)
        close(null);
    if (pid < 0)
        return err_errno(e, failed, "cannot start %s with its output in %s", argv[0], log);
    *ret_pid = pid;
    return 0;
}

int local_stop_begin(pid_t pid, int *ret_fd, struct err *e)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && errno != ESRCH)
        return err_errno(e, errno, "cannot watch process %d", (int)pid);
    if (fd >= 0)
        kill(pid, SIGTERM);
    *ret_fd = fd;
    return 0;
}

int local_stop_wait(pid_t pid, int fd, int64_t timeout_ms, struct err *e)
{
    if (fd < 0)
        return 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, (int)timeout_ms);
    close(fd);
    return n > 0 ? 0
                 : err_set(e, ERR_TIMEOUT, "process %d did not end within %lld s", (int)pid,
                       (long long)timeout_ms / 1000);
}

int local_wait(pid_t pid, int64_t timeout_ms, bool (*ready)(void *ctx), void *ctx, struct err *e)
{
    int64_t end = clock_mono(&clock_system).ms + timeout_ms;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rc = fd < 0 ? err_set(e, ERR_IO, "it ended at once") : 0;
    while (rc == 0 && !ready(ctx)) {
        if (poll(&p, 1, POLL_MS) > 0)
            rc = err_set(e, ERR_IO, "it ended at once");
        else if (clock_mono(&clock_system).ms >= end)
            rc = err_set(
                e, ERR_TIMEOUT, "it was not ready within %lld s", (long long)timeout_ms / 1000);
    }
    if (fd >= 0)
        close(fd);
    return rc;
}
