/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of jobs (see logs.h). The continuous log is a view: seam line, file, seam line, file. A seam is
 * shown only when its text can no longer change: once the attempt has started or ended.
 */
#include "scheduler/logs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOBS_A_DIR 1000
#define SEAM_MAX 512

int logs_open(struct logs *l, const char *dir, struct err *e)
{
    if (!STR_COPY(l->dir, dir))
        return err_set(e, ERR_INVALID, "the path of the logs is longer than %zu bytes", sizeof(l->dir) - 1);
    return fs_mkdirs(dir, 0700, e);
}

static char *path_of(const struct logs *l, int64_t job, int64_t attempt)
{
    return mem_printf(
        "%s/%lld/%lld/%lld.log", l->dir, (long long)(job / JOBS_A_DIR), (long long)job, (long long)attempt);
}

static int open_for_append(const struct logs *l, int64_t job, int64_t attempt, struct err *e)
{
    char *path = path_of(l, job, attempt);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ENOENT) {
        char *dir = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
        if (fs_mkdirs(dir, 0700, e) == 0)
            fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        free(dir);
    }
    if (fd < 0)
        err_errno(e, errno, "cannot write the output of job %lld to %s", (long long)job, path);
    free(path);
    return fd;
}

int logs_append(struct logs *l, int64_t job, int64_t attempt, int64_t offset, const void *p, size_t n,
    int64_t *ret_size, struct err *e)
{
    struct stat st;
    int rc = 0;
    int fd = open_for_append(l, job, attempt, e);
    if (fd < 0)
        return e ? (int)e->kind : ERR_IO;
    if (fstat(fd, &st) != 0) {
        rc = err_errno(e, errno, "cannot look at the output of job %lld", (long long)job);
        goto out;
    }
    int64_t end = offset + (int64_t)n;
    if (offset > st.st_size || end <= st.st_size || st.st_size >= LOGS_ATTEMPT_BYTES_MAX) {
        /* A gap, a repetition, or more than we keep: the agent is told where we are (in the last case: at its
         * end). */
        *ret_size = st.st_size >= LOGS_ATTEMPT_BYTES_MAX && end > st.st_size ? end : st.st_size;
        goto out;
    }
    if (lseek(fd, offset, SEEK_SET) < 0)
        rc = err_errno(e, errno, "cannot write the output of job %lld", (long long)job);
    else
        rc = fs_write_all(fd, p, n, e);
    if (rc == 0)
        *ret_size = end;
out:
    close(fd);
    return rc;
}

/* ---- the continuous view ---- */

struct view {
    struct logs *l;
    struct db_reader *reader;
    int64_t start; /* of the piece being looked at */
    int64_t from;  /* what the caller wants */
    size_t max;
    struct buf *out; /* NULL: only measure */
    int rc;
    struct err *e;
};

static void seam_text(const struct view *v, const struct attempt_row *a, char out[SEAM_MAX])
{
    char where[64];
    (void)v;
    snprintf(where, sizeof(where), "node %lld", (long long)a->node);
    if (!wall_is_set(a->started_at))
        snprintf(out, SEAM_MAX, "---- belay: attempt %lld on %s did not start: %s ----\n",
            (long long)a->attempt, where, a->text);
    else if (a->restored.attempt == 0)
        snprintf(out, SEAM_MAX, "---- belay: attempt %lld on %s, from the beginning ----\n",
            (long long)a->attempt, where);
    else if (a->restored_progress == PROGRESS_NONE)
        snprintf(out, SEAM_MAX, "---- belay: attempt %lld on %s, resumed from checkpoint %lld.%lld ----\n",
            (long long)a->attempt, where, (long long)a->restored.attempt, (long long)a->restored.sequence);
    else
        snprintf(out, SEAM_MAX,
            "---- belay: attempt %lld on %s, resumed from checkpoint %lld.%lld (step %lld) ----\n",
            (long long)a->attempt, where, (long long)a->restored.attempt, (long long)a->restored.sequence,
            (long long)a->restored_progress);
}

static bool wants(const struct view *v, int64_t length)
{
    return v->out && v->start + length > v->from && v->out->len < v->max;
}

static void add_seam(struct view *v, const struct attempt_row *a)
{
    char text[SEAM_MAX];
    seam_text(v, a, text);
    int64_t length = (int64_t)strlen(text);
    if (wants(v, length)) {
        int64_t skip = v->from > v->start ? v->from - v->start : 0;
        buf_add(v->out, text + skip, (size_t)(length - skip));
        v->from = v->start + length;
    }
    v->start += length;
}

static void add_file(struct view *v, const struct attempt_row *a)
{
    struct stat st;
    char *path = path_of(v->l, a->job, a->attempt);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0)
        return; /* no output (yet) */
    int64_t length = fstat(fd, &st) == 0 ? st.st_size : 0;
    if (wants(v, length)) {
        int64_t skip = v->from - v->start;
        size_t room = v->max - v->out->len;
        size_t n = (size_t)(length - skip) < room ? (size_t)(length - skip) : room;
        char *piece = mem_alloc(n + 1);
        ssize_t got = pread(fd, piece, n, skip);
        if (got < 0)
            v->rc = err_errno(v->e, errno, "cannot read the output of job %lld", (long long)a->job);
        else
            buf_add(v->out, piece, (size_t)got);
        v->from += got > 0 ? got : 0;
        free(piece);
    }
    v->start += length;
    close(fd);
}

static int add_attempt(void *ctx, const struct attempt_row *a)
{
    struct view *v = ctx;
    if (a->state == ATTEMPT_ASSIGNED)
        return 1; /* its seam is not settled */
    if (a->attempt > 1)
        add_seam(v, a);
    add_file(v, a);
    return v->rc != 0;
}

int logs_read(struct logs *l, struct db_reader *r, int64_t job, int64_t offset, size_t max, struct buf *out,
    int64_t *ret_next, bool *ret_at_end, struct err *e)
{
    struct view v = {.l = l, .reader = r, .max = max, .from = offset, .e = e};
    if (offset < 0) {
        struct view measure = {.l = l, .reader = r, .e = e};
        int rc = db_read_attempts(r, job, add_attempt, &measure, e);
        if (rc != 0)
            return rc;
        v.from = measure.start + offset > 0 ? measure.start + offset : 0;
    }
    v.out = out;
    int rc = db_read_attempts(r, job, add_attempt, &v, e);
    if (rc == 0)
        rc = v.rc;
    if (rc == 0) {
        *ret_next = v.from;
        *ret_at_end = v.from >= v.start;
    }
    return rc;
}
