/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/criu/criu_rights.h"

#include "agent/criu/criu.h"
#include "agent/task/record.h"
#include "base/str.h"
#include "base/uv/proc_table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* File systems internal to the kernel: they are not mounted, so their objects have no names. */
#define PIPES 0x50495045
#define SOCKETS 0x534f434b
#define ANONYMOUS 0x09041934
#define NAMESPACES 0x6e736673
#define PROCESSES 0x50494446
#define AIO_RINGS 0xa10a10a1

#define DELETED " (deleted)"

/* An open file, mapped file or directory of a process. */
struct open_file {
    pid_t pid;
    int fd;          /* number of the descriptor; -1: not a descriptor */
    int flags;       /* as for open(2) */
    bool is_dir;     /* a current or root directory */
    const char *how; /* text for the error */
    char path[PATH_MAX];
    struct stat st;
    int handle; /* O_PATH descriptor of this process */
};

/* ---- as the user ---- */

static int become(const struct job_user *u, struct err *e)
{
    if (setegid(u->gid) < 0 || seteuid(u->uid) < 0)
        return err_errno(e, errno, "becoming %s", u->name);
    return 0;
}

static int become_root(struct err *e)
{
    if (seteuid(0) < 0 || setegid(0) < 0)
        return err_errno(e, errno, "becoming root again");
    return 0;
}

/* Returns 0 if the user may open the same file in the same way, else errno. */
static int try_open(const struct open_file *h)
{
    char path[48];
    int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    if (!h->is_dir && h->flags & O_PATH)
        return 0;
    if (h->is_dir)
        flags |= O_PATH | O_DIRECTORY; /* "." can be opened only if the directory can be searched */
    else
        flags |= h->flags & (O_ACCMODE | O_APPEND | O_DIRECTORY);
    snprintf(path, sizeof(path), "/proc/self/fd/%d%s", h->handle, h->is_dir ? "/." : "");
    int fd = open(path, flags);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* Whether the user finds the same file under its name. */
static bool try_name(const struct open_file *h)
{
    struct stat st;
    int fd = h->path[0] == '/' ? open(h->path, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    bool is_same = fstat(fd, &st) == 0 && st.st_dev == h->st.st_dev && st.st_ino == h->st.st_ino;
    close(fd);
    return is_same;
}

/* Errors of a device, or of a named pipe without a reader, that come after the check of rights. */
static bool is_unrelated_error(mode_t mode, int why)
{
    return !S_ISREG(mode) && !S_ISDIR(mode) && (why == ENXIO || why == EBUSY);
}

static int compare(const struct criu_rights *r, const struct open_file *h, bool *ret_has_right,
    bool *ret_reaches, struct err *e)
{
    bool is_own = h->st.st_uid == r->user.uid;
    int rc = become(&r->user, e);
    if (rc)
        return rc;
    int why = try_open(h);
    bool is_found = try_name(h);
    rc = become_root(e);
    if (rc)
        return rc;
    *ret_has_right =
        why == 0 || (why == EACCES && is_own) || is_unrelated_error(h->st.st_mode, why);
    *ret_reaches = is_found || (str_ends(h->path, DELETED) && (h->st.st_nlink == 0 || is_own));
    return 0;
}

/* ---- what is not compared ---- */

static bool is_nameless(const struct statfs *fs)
{
    static const unsigned types[] = {PIPES, SOCKETS, ANONYMOUS, NAMESPACES, PROCESSES, AIO_RINGS};
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if ((unsigned)fs->f_type == types[i])
            return true;
    return false;
}

/* Whether the path is the scratch directory or below it, while only root can enter it. */
static bool begins_in_scratch(const struct criu_rights *r, const char *path)
{
    struct stat top;
    size_t n = r->scratch ? strlen(r->scratch) : 0;
    if (!r->scratch || strncmp(path, r->scratch, n) != 0 || (path[n] && path[n] != '/'))
        return false;
    return lstat(r->scratch, &top) == 0 && top.st_uid == 0 && (top.st_mode & 0077) == 0;
}

/* Whether the file is one in the scratch directory, where only the restore can have put it. */
static bool is_in_scratch(const struct criu_rights *r, const struct open_file *h)
{
    struct stat st;
    return begins_in_scratch(r, h->path) && lstat(h->path, &st) == 0 && st.st_dev == h->st.st_dev &&
           st.st_ino == h->st.st_ino;
}

/* Whether the address is that of a socket in the scratch directory, which the restore itself made.
 * The job chooses the name, so no link is followed. */
static bool is_socket_in_scratch(const struct criu_rights *r, const struct sockaddr_un *a)
{
    char path[sizeof(a->sun_path) + 1] = ""; /* the name in the address need not end with a NUL */
    struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    struct stat st;
    memcpy(path, a->sun_path, sizeof(a->sun_path));
    if (!begins_in_scratch(r, path) || strlen(path) <= strlen(r->scratch) + 1)
        return false;
    int top = open(r->scratch, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = top < 0
                 ? -1
                 : (int)syscall(SYS_openat2, top, path + strlen(r->scratch) + 1, &how, sizeof(how));
    bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
    if (fd >= 0)
        close(fd);
    if (top >= 0)
        close(top);
    return is;
}

/* Whether criu has the same open file description, not only the same file. */
static bool is_criu_own(const struct criu_rights *r, const struct open_file *h)
{
    char path[32];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%ld/fd", (long)r->criu);
    DIR *d = r->criu > 0 && h->fd >= 0 ? opendir(path) : NULL;
    for (struct dirent *entry; d && !found && (entry = readdir(d));)
        found = entry->d_name[0] != '.' &&
                syscall(SYS_kcmp, h->pid, r->criu, KCMP_FILE, (unsigned long)h->fd,
                    strtoul(entry->d_name, NULL, 10)) == 0;
    if (d)
        closedir(d);
    return found;
}

/* ---- one file ---- */

static int refuse(
    const struct criu_rights *r, const struct open_file *h, const char *why, struct err *e)
{
    return err_set(e, ERR_DENIED, "%s is %s in process %ld, and %s %s", h->path, h->how,
        (long)h->pid, r->user.name, why);
}

static int judge(const struct criu_rights *r, const struct open_file *h, struct err *e)
{
    bool has_right = false, reaches = false;
    int rc = compare(r, h, &has_right, &reaches, e);
    if (rc || (has_right && reaches) || is_in_scratch(r, h) || is_criu_own(r, h))
        return rc;
    return refuse(r, h, has_right ? "cannot reach it by its name" : "has no right to that", e);
}

static bool has_ended(pid_t pid)
{
    struct proc_entry now;
    if (proc_read_entry(pid, &now))
        return !proc_entry_is_alive(&now);
    /* a missing entry in /proc does not prove that it has ended */
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* Returns 0 if the process has ended. Otherwise the file is refused: the process is stopped, so
 * that its files should be readable. */
static int err_inspect(pid_t pid, int why, const char *path, struct err *e)
{
    return has_ended(pid) ? 0 : err_errno(e, why, "comparing rights: looking at %s", path);
}

static int check_socket(const struct criu_rights *r, const struct open_file *h, struct err *e);

/* link: the link in /proc to the file of h. */
static int check_link(
    const struct criu_rights *r, const char *link, struct open_file *h, struct err *e)
{
    struct statfs fs;
    ssize_t n = readlink(link, h->path, sizeof(h->path) - 1);
    if (n <= 0)
        return err_inspect(h->pid, errno, link, e);
    h->path[n] = '\0';
    h->handle = open(link, O_PATH | O_CLOEXEC);
    if (h->handle < 0)
        return err_inspect(h->pid, errno, link, e);
    int rc = 0;
    if (fstat(h->handle, &h->st) < 0 || fstatfs(h->handle, &fs) < 0)
        rc = err_errno(e, errno, "comparing rights: looking at %s", link);
    else if (!is_nameless(&fs))
        rc = judge(r, h, e);
    else if ((unsigned)fs.f_type == SOCKETS && h->fd >= 0)
        rc = check_socket(r, h, e);
    close(h->handle);
    return rc;
}

/* ---- sockets ---- */

/* *ret_flags: as for open(2). *ret_under_way: descriptors queued in a UNIX socket. -1 if the kernel
 * does not report them. */
static void read_fdinfo(pid_t pid, int fd, int *ret_flags, int *ret_under_way)
{
    char path[64], line[256];
    unsigned value;
    *ret_flags = *ret_under_way = -1;
    snprintf(path, sizeof(path), "/proc/%ld/fdinfo/%d", (long)pid, fd);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "flags: %o", &value) == 1)
            *ret_flags = (int)value;
        else if (sscanf(line, "scm_fds: %u", &value) == 1)
            *ret_under_way = (int)value;
    }
    if (f)
        fclose(f);
}

/* Whether the inode is that of a UNIX socket; also true if that is unknown. */
static bool is_unix_socket(pid_t pid, ino_t number)
{
    char path[48], line[512];
    unsigned long inode;
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%ld/net/unix", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return true;
    while (!found && fgets(line, sizeof(line), f))
        found = sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode) == 1 && inode == number;
    fclose(f);
    return found;
}

static int copy_of(const struct open_file *h, struct err *e)
{
    int process = (int)syscall(SYS_pidfd_open, h->pid, 0);
    int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, h->fd, 0), why = errno;
    if (process >= 0)
        close(process);
    return fd < 0 ? err_errno(e, why, "comparing rights: looking at %s", h->path) : fd;
}

/* criu connects only datagram sockets to sockets outside of the job; the others need no check. */
static bool has_named_peer(int fd, struct sockaddr_un *ret_peer, socklen_t *ret_len)
{
    int type = 0;
    socklen_t n = sizeof(type);
    *ret_peer = (struct sockaddr_un){0};
    *ret_len = sizeof(*ret_peer);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_DGRAM &&
           getpeername(fd, (struct sockaddr *)ret_peer, ret_len) == 0 &&
           ret_peer->sun_family == AF_UNIX && *ret_len > offsetof(struct sockaddr_un, sun_path) &&
           ret_peer->sun_path[0] != '\0';
}

/* connect() checks the rights to the name before anything else that could be wrong with the
 * peer. */
static bool may_connect(const struct sockaddr_un *peer, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), why = 0;
    if (fd < 0)
        return false;
    if (connect(fd, (const struct sockaddr *)peer, len) < 0)
        why = errno;
    close(fd);
    return why == 0 || why == ECONNREFUSED || why == ENOENT || why == EPERM || why == EPROTOTYPE;
}

static int check_peer(const struct criu_rights *r, const struct open_file *h, int fd, struct err *e)
{
    struct sockaddr_un peer;
    socklen_t len;
    if (!has_named_peer(fd, &peer, &len) || is_socket_in_scratch(r, &peer))
        return 0;
    int rc = become(&r->user, e);
    if (rc)
        return rc;
    bool may = peer.sun_path[0] == '/' && may_connect(&peer, len);
    rc = become_root(e);
    if (rc || may)
        return rc;
    return err_set(e, ERR_DENIED, "the socket %.*s is connected to from process %ld, and %s %s",
        (int)(len - offsetof(struct sockaddr_un, sun_path)), peer.sun_path, (long)h->pid,
        r->user.name, "has no right to that");
}

static int check_socket(const struct criu_rights *r, const struct open_file *h, struct err *e)
{
    int flags, under_way;
    if (!is_unix_socket(h->pid, h->st.st_ino))
        return 0;
    read_fdinfo(h->pid, h->fd, &flags, &under_way);
    if (under_way != 0)
        return err_set(e, ERR_DENIED, "%s in process %ld %s", h->path, (long)h->pid,
            under_way > 0 ? "has descriptors in transit, which cannot be checked"
                          : "may have descriptors in transit: checking that needs Linux 5.6");
    int fd = copy_of(h, e);
    if (fd < 0)
        return fd;
    int rc = check_peer(r, h, fd, e);
    close(fd);
    return rc;
}

/* ---- one process ---- */

static const char *how_open(int flags)
{
    switch (flags & (O_PATH | O_ACCMODE)) {
    case O_RDONLY:
        return "open for reading";
    case O_WRONLY:
        return "open for writing";
    case O_RDWR:
        return "open for reading and writing";
    default:
        return "open";
    }
}

static int check_proc_link(const struct criu_rights *r, pid_t pid, const char *name, struct err *e)
{
    char link[48];
    bool is_program = str_eq(name, "exe");
    struct open_file h = {.pid = pid,
        .fd = -1,
        .flags = O_RDONLY,
        .is_dir = !is_program,
        .how = is_program ? "the program" : "a directory"};
    snprintf(link, sizeof(link), "/proc/%ld/%s", (long)pid, name);
    return check_link(r, link, &h, e);
}

static int check_descriptor(const struct criu_rights *r, pid_t pid, int fd, struct err *e)
{
    char link[48];
    int flags, under_way;
    read_fdinfo(pid, fd, &flags, &under_way);
    snprintf(link, sizeof(link), "/proc/%ld/fd/%d", (long)pid, fd);
    if (flags < 0)
        return err_inspect(pid, ENODATA, link, e);
    struct open_file h = {.pid = pid, .fd = fd, .flags = flags, .how = how_open(flags)};
    return check_link(r, link, &h, e);
}

static int check_descriptors(const struct criu_rights *r, pid_t pid, struct err *e)
{
    char path[32];
    int rc = 0;
    snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    DIR *d = opendir(path);
    if (!d)
        return err_inspect(pid, errno, path, e);
    errno = 0;
    for (struct dirent *entry; !rc && (entry = readdir(d)); errno = 0)
        if (entry->d_name[0] != '.')
            rc = check_descriptor(r, pid, (int)strtol(entry->d_name, NULL, 10), e);
    if (!rc && errno)
        rc = err_inspect(pid, errno, path, e);
    closedir(d);
    return rc;
}

/* line: a line of /proc/PID/maps. A shared mapping of a file opened for writing can become
 * writable. */
static int check_mapping(const struct criu_rights *r, pid_t pid, const char *line, struct err *e)
{
    char link[80], perms[5];
    unsigned long from, to, inode;
    struct stat st;
    if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &from, &to, perms, &inode) != 4)
        return err_set(e, ERR_IO, "comparing rights: /proc/%ld/maps cannot be read", (long)pid);
    if (inode == 0)
        return 0;
    snprintf(link, sizeof(link), "/proc/%ld/map_files/%lx-%lx", (long)pid, from, to);
    if (lstat(link, &st) < 0)
        return err_inspect(pid, errno, link, e);
    bool writes = perms[3] == 's' && (st.st_mode & S_IWUSR);
    struct open_file h = {.pid = pid,
        .fd = -1,
        .flags = writes ? O_RDWR : O_RDONLY,
        .how = writes ? "mapped for reading and writing" : "mapped"};
    return check_link(r, link, &h, e);
}

static int check_mappings(const struct criu_rights *r, pid_t pid, struct err *e)
{
    char path[32], *line = NULL;
    size_t size = 0;
    int rc = 0;
    snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return err_inspect(pid, errno, path, e);
    while (!rc && getline(&line, &size, f) > 0)
        rc = check_mapping(r, pid, line, e);
    if (!rc && ferror(f))
        rc = err_inspect(pid, EIO, path, e);
    free(line);
    fclose(f);
    return rc;
}

int criu_rights_check(const struct criu_rights *r, pid_t pid, struct err *e)
{
    static const char *const links[] = {"exe", "cwd", "root"};
    if (initgroups(r->user.name, r->user.gid) < 0)
        return err_errno(e, errno, "becoming %s", r->user.name);
    int rc = check_descriptors(r, pid, e);
    if (!rc)
        rc = check_mappings(r, pid, e);
    for (size_t i = 0; !rc && i < sizeof(links) / sizeof(*links); i++)
        rc = check_proc_link(r, pid, links[i], e);
    return rc;
}

/* ---- our own program ---- */

/* Whether the process is this one or an ancestor: a shell, criu, the sandbox's first process. */
static bool is_ancestor(const struct proc_table *t, pid_t pid)
{
    pid_t at = getpid();
    for (size_t steps = 0; at > 1 && steps <= t->n; steps++) {
        pid_t parent = 0;
        for (size_t i = 0; i < t->n; i++)
            if (t->entries[i].pid == at)
                parent = t->entries[i].ppid;
        if (at == pid)
            return true;
        at = parent;
    }
    return pid == 1;
}

static bool shows_us(const struct proc_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->entries[i].pid == getpid())
            return true;
    return false;
}

/* Iterates over the names in /proc, because the table lacks processes whose entry could not be
 * read. */
static int check_all_but(const struct proc_table *t, const struct criu_rights *r, struct err *e)
{
    DIR *d = shows_us(t) ? opendir("/proc") : NULL;
    int rc = 0;
    if (!d)
        return err_set(e, ERR_IO, "comparing rights: /proc does not show the processes");
    errno = 0;
    for (struct dirent *entry; !rc && (entry = readdir(d)); errno = 0) {
        int64_t pid;
        if (str_to_i64(entry->d_name, 1, INT32_MAX, "", &pid, NULL) == 0 &&
            !is_ancestor(t, (pid_t)pid))
            rc = criu_rights_check(r, (pid_t)pid, e);
    }
    if (!rc && errno)
        rc = err_errno(e, errno, "comparing rights: reading /proc");
    closedir(d);
    return rc;
}

int criu_rights_check_all(const struct criu_rights *r, struct err *e)
{
    struct proc_table t = {0};
    proc_table_read(&t);
    int rc = check_all_but(&t, r, e);
    proc_table_deinit(&t);
    return rc;
}

int criu_rights_main(void)
{
    struct criu_rights r = {.scratch = CRIU_SANDBOX "/scratch", .criu = getppid()};
    struct wire_desired spec;
    struct err e;
    int rc = record_read_spec(CRIU_SANDBOX "/spec.json", &spec, &e);
    if (!rc) {
        rc = user_resolve(spec.attempts[0].user, &r.user, &e);
        wire_desired_deinit(&spec);
    }
    if (!rc && r.user.is_other)
        rc = criu_rights_check_all(&r, &e);
    if (!rc)
        rc = record_put(CRIU_SANDBOX "/" CRIU_RIGHTS_MARK, "", 0, 0600, &e);
    if (rc)
        fprintf(stderr, "Error (belay): %s\n", e.text);
    return rc ? 1 : 0;
}
