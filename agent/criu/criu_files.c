/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/criu/criu_files.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/fs_user.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/proc_table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (1u << 20)
#define VERSION 2
#define OUTPUT_MAX UINT32_MAX /* a pipe's inode number has 32 bits */
#define COPY_DEPTH_MAX 128    /* deeper than the directories of any checkpoint */

void criu_files_deinit(struct criu_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->files[i].path);
        free(f->files[i].link);
    }
    free(f->files);
    *f = (struct criu_files){0};
}

/* ---- finding ---- */

struct search {
    struct criu_files found;
    uid_t uid;
    const char *cwd;
};

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    while (n > 0 && dir[n - 1] == '/')
        n--;
    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

static bool is_known(const struct criu_files *f, const char *path)
{
    for (size_t i = 0; i < f->n; i++)
        if (str_eq(f->files[i].path, path))
            return true;
    return false;
}

/* link: the link in /proc to the open file, which is that file even if its name now belongs to
 * another one. */
static int consider(struct search *s, const char *link, struct err *e)
{
    char path[PATH_MAX];
    struct stat open_one, named;
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return 0;
    path[n] = '\0';
    if (!is_below(path, s->cwd) || is_known(&s->found, path))
        return 0;
    if (stat(link, &open_one) < 0 || !S_ISREG(open_one.st_mode) || open_one.st_uid != s->uid)
        return 0;
    if (lstat(path, &named) < 0 || named.st_dev != open_one.st_dev ||
        named.st_ino != open_one.st_ino)
        return 0; /* removed or replaced: criu saves its content */
    if (s->found.n == CRIU_FILES_MAX)
        return err_set(e, ERR_INVALID, "more than %d files below %s are open for writing",
            CRIU_FILES_MAX, s->cwd);
    s->found.files = mem_resize(s->found.files, s->found.n + 1, sizeof(*s->found.files));
    s->found.files[s->found.n++] = (struct criu_file){
        .path = mem_strdup(path), .link = mem_strdup(link), .mode = open_one.st_mode & 0777};
    return 0;
}

static bool is_writable(pid_t pid, const char *fd)
{
    char path[64], line[128];
    unsigned flags = O_RDONLY;
    snprintf(path, sizeof(path), "/proc/%ld/fdinfo/%.20s", (long)pid, fd);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "flags: %o", &flags) == 1)
            break;
    if (f)
        fclose(f);
    return (flags & O_ACCMODE) != O_RDONLY;
}

static int search_open(struct search *s, pid_t pid, struct err *e)
{
    char path[64];
    int rc = 0;
    snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    DIR *d = opendir(path);
    for (struct dirent *entry; d && !rc && (entry = readdir(d));) {
        if (entry->d_name[0] == '.' || !is_writable(pid, entry->d_name))
            continue;
        snprintf(path, sizeof(path), "/proc/%ld/fd/%.20s", (long)pid, entry->d_name);
        rc = consider(s, path, e);
    }
    if (d)
        closedir(d);
    return rc;
}

static int search_mapped(struct search *s, pid_t pid, struct err *e)
{
    char path[64], line[PATH_MAX + 128], perms[5];
    unsigned long from, to;
    int rc = 0;
    snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
    FILE *f = fopen(path, "re");
    while (f && !rc && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx %4s", &from, &to, perms) != 3 || perms[1] != 'w' ||
            perms[3] != 's')
            continue;
        snprintf(path, sizeof(path), "/proc/%ld/map_files/%lx-%lx", (long)pid, from, to);
        rc = consider(s, path, e);
    }
    if (f)
        fclose(f);
    return rc;
}

int criu_files_find(
    pid_t root, uid_t uid, const char *cwd, struct criu_files *ret_files, struct err *e)
{
    struct search s = {.uid = uid, .cwd = cwd};
    struct proc_table t = {0};
    int rc = 0;
    proc_table_read(&t);
    proc_table_mark_below(&t, root);
    for (size_t i = 0; i < t.n && !rc; i++) {
        if (t.entries[i].pid != root && !t.entries[i].is_marked)
            continue;
        rc = search_open(&s, t.entries[i].pid, e);
        if (!rc)
            rc = search_mapped(&s, t.entries[i].pid, e);
    }
    proc_table_deinit(&t);
    if (rc)
        criu_files_deinit(&s.found);
    else
        *ret_files = s.found;
    return rc;
}

static void command_of(pid_t pid, char *out, size_t size)
{
    char path[64];
    struct buf text = {0};
    struct err ignored;
    snprintf(path, sizeof(path), "/proc/%ld/comm", (long)pid);
    if (fs_read(path, 64, &text, &ignored) == 0 && text.len > 0 && text.data[text.len - 1] == '\n')
        buf_truncate(&text, text.len - 1);
    str_copy(out, size, buf_str(&text));
    buf_deinit(&text);
}

int criu_files_check_tree(pid_t root, struct err *e)
{
    struct proc_table t = {0};
    pid_t stray = 0, self = getpid();
    proc_table_read(&t);
    proc_table_mark_below(&t, root);
    for (size_t i = 0; i < t.n; i++) {
        const struct proc_entry *p = &t.entries[i];
        if (p->pid != 1 && p->pid != self && p->pid != root && !p->is_marked &&
            proc_entry_is_alive(p) && p->ppid != 0)
            stray = p->pid;
    }
    proc_table_deinit(&t);
    if (stray == 0)
        return 0;
    char command[64], shown[STR_SHOW_MAX];
    command_of(stray, command, sizeof(command));
    return err_set(e, ERR_UNSUPPORTED,
        "process %ld (%s) has left the job's tree of processes, as daemons do: CRIU cannot save it "
        "with the rest",
        (long)stray, str_show(command, shown));
}

/* ---- copying ---- */

static int copy_bytes(int from, int to, const char *name, struct err *e)
{
    char *piece = NULL;
    int rc = 0;
    ssize_t n;
    while ((n = copy_file_range(from, NULL, to, NULL, 1u << 30, 0)) > 0)
        continue;
    if (n < 0) { /* not supported between these two files: read and write the rest */
        piece = mem_alloc(COPY_BYTES);
        while (!rc && (n = read(from, piece, COPY_BYTES)) > 0)
            rc = fs_write_all(to, piece, (size_t)n, e);
    }
    if (!rc && n < 0)
        rc = err_errno(e, errno, "copying %s", name);
    free(piece);
    return rc;
}

/* Creates a regular file, or empties an existing one. flags: for open(2), such as O_EXCL. */
static int open_target(const char *to, int flags, int *ret_fd, struct err *e)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | flags, 0600),
        rc = 0;
    struct stat st;
    if (fd < 0)
        return err_errno(e, errno, "writing %s", to);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        rc = err_set(e, ERR_CONFLICT, "%s is not a regular file here", to);
    else if (ftruncate(fd, 0) < 0)
        rc = err_errno(e, errno, "cutting %s", to);
    if (rc)
        close(fd);
    else
        *ret_fd = fd;
    return rc;
}

/* Copies in to out, sets the mode, and closes out. */
static int fill_target(int in, int out, const char *to, mode_t mode, struct err *e)
{
    int rc = copy_bytes(in, out, to, e);
    if (!rc && fchmod(out, mode & 0777) < 0)
        rc = err_errno(e, errno, "setting the mode of %s", to);
    if (close(out) < 0 && !rc)
        rc = err_errno(e, errno, "writing %s", to);
    return rc;
}

/* from is a link in /proc to an open file. */
static int copy_file(const char *from, const char *to, mode_t mode, struct err *e)
{
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK), out;
    if (in < 0)
        return err_errno(e, errno, "reading %s", from);
    int rc = open_target(to, O_EXCL, &out, e);
    if (!rc)
        rc = fill_target(in, out, to, mode, e);
    close(in);
    return rc;
}

/* Copies a tree that the job's user can change during the copy into one that only root can reach:
 * by descriptors (base/fs_user.h). */
struct copying {
    uid_t uid;
    int depth;
    struct err *e;
};

static int copy_directory(struct copying *c, int from, int to, const char *path);

static int copy_link(const struct copying *c, int from, int to, const char *name, const char *path)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
    if (n < 0)
        return err_errno(c->e, errno, "reading %s", path);
    target[n] = '\0';
    if (symlinkat(target, to, name) < 0)
        return err_errno(c->e, errno, "making a copy of %s", path);
    return 0;
}

static int copy_regular(
    const struct copying *c, int from, int to, const char *name, const char *path)
{
    struct stat st;
    int in = fs_open_of(from, name, c->uid), out = -1, rc = 0;
    if (in < 0 && errno == EPERM)
        return err_set(c->e, ERR_UNSUPPORTED,
            "%s is not uid %u's: only the job's user's own files are saved; remove it, or let the "
            "job copy it",
            path, (unsigned)c->uid);
    if (in < 0 || fstat(in, &st) < 0)
        rc = err_errno(c->e, errno, "reading %s", path);
    if (!rc)
        out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (!rc && out < 0)
        rc = err_errno(c->e, errno, "making a copy of %s", path);
    if (!rc) {
        const struct timespec times[2] = {st.st_atim, st.st_mtim};
        rc = fill_target(in, out, path, st.st_mode, c->e);
        utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
    }
    if (in >= 0)
        close(in);
    return rc;
}

/* in is the directory at path; name is the name of its copy. */
static int copy_opened(struct copying *c, int in, int to, const char *name, const char *path)
{
    struct stat st;
    int out = -1, rc = fstat(in, &st) < 0 ? err_errno(c->e, errno, "reading %s", path) : 0;
    if (!rc && st.st_uid != c->uid)
        rc = err_set(c->e, ERR_UNSUPPORTED,
            "the directory %s is not uid %u's: only the job's user's own files are saved", path,
            (unsigned)c->uid);
    if (!rc && mkdirat(to, name, 0700) < 0)
        rc = err_errno(c->e, errno, "making a copy of %s", path);
    if (!rc && (out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        rc = err_errno(c->e, errno, "entering the copy of %s", path);
    rc = rc ? rc : copy_directory(c, in, out, path);
    if (!rc && fchmod(out, st.st_mode & 0777) < 0)
        rc = err_errno(c->e, errno, "setting the mode of the copy of %s", path);
    if (out >= 0)
        close(out);
    return rc;
}

static int copy_below(struct copying *c, int from, int to, const char *name, const char *path)
{
    int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (in < 0)
        return err_errno(c->e, errno, "entering %s", path);
    int rc = copy_opened(c, in, to, name, path);
    close(in);
    return rc;
}

static int copy_entry(struct copying *c, int from, int to, const char *name, const char *path)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(c->e, errno, "reading %s", path);
    if (S_ISDIR(st.st_mode))
        return copy_below(c, from, to, name, path);
    if (S_ISLNK(st.st_mode))
        return copy_link(c, from, to, name, path);
    if (S_ISSOCK(st.st_mode))
        return 0; /* criu binds it again; without a process it is useless */
    if (!S_ISREG(st.st_mode))
        return err_set(c->e, ERR_UNSUPPORTED, "%s is no file that can be saved", path);
    return copy_regular(c, from, to, name, path);
}

static int copy_all(struct copying *c, DIR *d, int to, const char *path)
{
    for (int rc = 0;;) {
        errno = 0;
        const struct dirent *entry = readdir(d);
        if (!entry)
            return errno ? err_errno(c->e, errno, "reading %s", path) : 0;
        if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        char *below = mem_printf("%s/%s", path, entry->d_name);
        rc = copy_entry(c, dirfd(d), to, entry->d_name, below);
        free(below);
        if (rc)
            return rc;
    }
}

static int copy_directory(struct copying *c, int from, int to, const char *path)
{
    int own = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = own < 0 ? NULL : fdopendir(own);
    if (!d && own >= 0)
        close(own);
    if (!d)
        return err_errno(c->e, errno, "reading %s", path);
    int rc = c->depth++ < COPY_DEPTH_MAX
                 ? copy_all(c, d, to, path)
                 : err_set(c->e, ERR_UNSUPPORTED, "%s is over %d directories deep", path,
                       COPY_DEPTH_MAX);
    c->depth--;
    closedir(d);
    return rc;
}

/* from is in a directory that only root can write to. */
static int copy_tree(uid_t uid, const char *from, const char *to, const char *name, struct err *e)
{
    struct copying c = {.uid = uid, .e = e};
    int in = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int out = open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = in < 0 || out < 0 ? err_errno(e, errno, "copying %s to %s", from, to) : 0;
    rc = rc ? rc : copy_opened(&c, in, out, name, from);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return rc;
}

/* ---- saving ---- */

static int write_list(const struct criu_files *f, const char *dir, struct err *e)
{
    json_t *root = json_object(), *list = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(list, json_pack("{s:o,s:i,s:I}", "path", json_text(f->files[i].path),
                                        "mode", (int)f->files[i].mode, "number", (json_int_t)i));
    json_object_set_new(root, "version", json_integer(VERSION));
    json_object_set_new(root, "output", json_integer(f->output));
    json_object_set_new(root, "files", list);
    char *text = json_dump_text(root), *path = mem_printf("%s/files.json", dir);
    int rc = strlen(text) > CRIU_FILES_BYTES_MAX
                 ? err_set(e, ERR_INVALID, "the names of the open files are too long together")
                 : fs_create_atomic(path, text, strlen(text), 0600, e);
    free(path);
    free(text);
    json_decref(root);
    return rc;
}

int criu_files_save(
    const struct criu_files *f, uid_t uid, const char *scratch, const char *dir, struct err *e)
{
    char *files = mem_printf("%s/files", dir);
    int rc = fs_mkdirs(files, 0700, e);
    for (size_t i = 0; i < f->n && !rc; i++) {
        char *to = mem_printf("%s/%zu", files, i);
        if (!str_is_utf8(f->files[i].path, strlen(f->files[i].path)))
            rc = err_set(e, ERR_UNSUPPORTED,
                "an open file below the working directory has a name that is not UTF-8");
        else
            rc = copy_file(f->files[i].link, to, 0600, e);
        free(to);
    }
    if (!rc)
        rc = copy_tree(uid, scratch, dir, "scratch", e);
    if (!rc)
        rc = write_list(f, dir, e);
    free(files);
    return rc;
}

/* ---- restoring ---- */

static int parse_file(const json_t *item, size_t i, struct criu_file *ret_file, struct err *e)
{
    struct json_reader r;
    char at[32];
    snprintf(at, sizeof(at), "files[%zu]", i);
    json_reader_init(&r, item, at, e);
    const char *path = json_req_str(&r, "path", PATH_MAX - 1);
    ret_file->mode = (mode_t)json_req_i64(&r, "mode", 0, 07777);
    json_req_i64(&r, "number", (int64_t)i, (int64_t)i);
    if (r.rc == 0 && path[0] != '/')
        json_reader_fail(&r, "path", "expected an absolute path");
    int rc = json_reader_finish_lenient(&r);
    if (!rc)
        ret_file->path = mem_strdup(path);
    return rc;
}

int criu_files_parse(const char *text, size_t n, struct criu_files *ret_files, struct err *e)
{
    struct criu_files f = {0};
    struct json_reader r;
    json_t *root = NULL;
    size_t i;
    json_t *item;
    int rc = json_parse(text, n, CRIU_FILES_BYTES_MAX, &root, e);
    if (rc)
        return rc;
    json_reader_init(&r, root, "", e);
    bool is_old = json_req_i64(&r, "version", 1, VERSION) < VERSION;
    f.output = is_old ? 0 : json_req_i64(&r, "output", 1, OUTPUT_MAX);
    const json_t *list = json_req_array(&r, "files", CRIU_FILES_MAX);
    rc = json_reader_finish_lenient(&r);
    if (!rc && is_old)
        rc = err_set(e, ERR_UNSUPPORTED,
            "it was made by an earlier version of belay, whose jobs wrote output.log themselves");
    if (!rc)
        f.files = mem_array(json_array_size(list) + 1, sizeof(*f.files));
    json_array_foreach(list, i, item)
    {
        if (!rc)
            rc = parse_file(item, i, &f.files[f.n], e);
        f.n += !rc;
    }
    json_decref(root);
    if (rc)
        criu_files_deinit(&f);
    else
        *ret_files = f;
    return rc;
}

static int make_parent(const char *path, struct err *e)
{
    char *dir = mem_strdup(path);
    *strrchr(dir, '/') = '\0';
    int rc = *dir ? fs_mkdirs(dir, 0755, e) : 0;
    free(dir);
    return rc;
}

/* Sets the effective ids to the user's; u NULL: back to root's. */
static int switch_user(const struct job_user *u, struct err *e)
{
    int bad = u ? setegid(u->gid) || seteuid(u->uid) : seteuid(0) || setegid(0);
    return bad ? err_errno(e, errno, "becoming %s", u ? u->name : "root") : 0;
}

static int restore_file(
    const char *from, const struct criu_file *f, const struct job_user *u, struct err *e)
{
    struct err ignored;
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out;
    if (in < 0)
        return err_errno(e, errno, "reading %s", from);
    int rc = u->is_other ? switch_user(u, e) : 0;
    if (!rc)
        rc = make_parent(f->path, e);
    if (!rc)
        rc = open_target(f->path, 0, &out, e);
    if (!rc)
        rc = fill_target(in, out, f->path, f->mode, e);
    if (u->is_other && switch_user(NULL, rc ? &ignored : e))
        rc = rc ? rc : e->kind;
    close(in);
    return rc;
}

static int read_list(const char *dir, struct criu_files *ret_files, struct err *e)
{
    struct buf text = {0};
    char *list = mem_printf("%s/files.json", dir);
    int rc = fs_read(list, CRIU_FILES_BYTES_MAX, &text, e);
    if (!rc)
        rc = criu_files_parse(buf_str(&text), text.len, ret_files, e);
    buf_deinit(&text);
    free(list);
    return rc;
}

int criu_files_restore(const char *dir, const struct job_user *u, struct err *e)
{
    struct criu_files f = {0};
    int rc = u->is_other && initgroups(u->name, u->gid) < 0
                 ? err_errno(e, errno, "becoming %s", u->name)
                 : 0;
    if (!rc)
        rc = read_list(dir, &f, e);
    for (size_t i = 0; i < f.n && !rc; i++) {
        char *from = mem_printf("%s/files/%zu", dir, i);
        rc = restore_file(from, &f.files[i], u, e);
        free(from);
    }
    criu_files_deinit(&f);
    return rc;
}

int criu_files_read_output(const char *dir, int64_t *ret_output, struct err *e)
{
    struct criu_files f = {0};
    int rc = read_list(dir, &f, e);
    if (!rc)
        *ret_output = f.output;
    criu_files_deinit(&f);
    return rc;
}
