/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of jobs (see logs.h). The continuous log is a view: the files of the attempts, with a seam
 * line before each but the first. A seam is shown only when its text is final (the attempt has
 * started or ended) and the output before it is closed.
 */
#include "scheduler/logs/logs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/logs/times.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOBS_A_DIR 1000
#define SEAM_MAX 512
#define TAIL_PIECE (256 << 10)

#define CUT_SUFFIX ".cut"
#define CUT_LINE                                                                                   \
    "\n---- belay: output is not kept from here on: %s. The job goes on. What follows is on its "  \
    "node alone: in output.log of the attempt's directory, while it runs and that disk has "       \
    "space, and in the file of --output ----\n"

/* Output that an agent will still ship for an ended attempt: `bytes` in all. In memory only: after
 * a restart none is awaited. */
struct awaited {
    struct link in_logs;
    struct logs *logs;
    int64_t job, attempt, bytes;
    int32_t rank;
    struct timer patience;
};

int logs_open(struct logs *l, const char *dir, uv_loop_t *loop, struct timers *timers,
    logs_over_fn over, void *ctx, struct err *e)
{
    *l = (struct logs){.timers = timers, .over = over, .ctx = ctx};
    if (!STR_COPY(l->dir, dir))
        return err_set(
            e, ERR_INVALID, "the path of the logs is longer than %zu bytes", sizeof(l->dir) - 1);
    int rc = fs_mkdirs(dir, 0700, e);
    if (rc == 0) {
        l->syncer = syncer_create(loop, timers, dir);
        l->quota = log_quota_create(&(struct log_limits){0});
        l->disk = log_disk_create(loop, timers, dir);
    }
    return rc;
}

void logs_share_disk(struct logs *l, const char *db_path, int64_t wait_ms)
{
    log_disk_set(l->disk, db_path, wait_ms);
}

void logs_limit(struct logs *l, const struct log_limits *limits, logs_cut_fn cut)
{
    log_quota_destroy(l->quota);
    l->quota = log_quota_create(limits);
    l->cut = cut;
}

void logs_set_limits(struct logs *l, const struct log_limits *limits)
{
    log_quota_set_limits(l->quota, limits);
}

/* ---- awaited output ---- */

static void awaited_free(struct awaited *a)
{
    timer_stop(a->logs->timers, &a->patience);
    link_remove(&a->in_logs);
    free(a);
}

void logs_close(struct logs *l)
{
    for (struct link *n; (n = list_first(&l->awaited));)
        awaited_free(LIST_ENTRY(n, struct awaited, in_logs));
    syncer_destroy(l->syncer);
    l->syncer = NULL;
    log_quota_destroy(l->quota);
    l->quota = NULL;
    log_disk_destroy(l->disk);
    l->disk = NULL;
}

/* Returns NULL if no output is awaited: it has arrived, or its time is over. */
static struct awaited *awaited_of(const struct logs *l, int64_t job, int64_t attempt, int32_t rank)
{
    LIST_FOREACH (&l->awaited, n) {
        struct awaited *a = LIST_ENTRY(n, struct awaited, in_logs);
        if (a->job == job && a->attempt == attempt && a->rank == rank)
            return a;
    }
    return NULL;
}

bool logs_is_awaited(const struct logs *l, int64_t job, int64_t attempt, int32_t rank)
{
    return awaited_of(l, job, attempt, rank) != NULL;
}

bool logs_is_open(const struct logs *l, const struct attempt_row *a, bool job_goes_on)
{
    int64_t now_ms = clock_wall(l->timers->clock).ms;
    return a->state != ATTEMPT_ENDED || job_goes_on ||
           logs_is_awaited(l, a->job, a->attempt, a->rank) ||
           (wall_is_set(a->ended_at) && now_ms < a->ended_at.ms + LOGS_LATE_MS);
}

/* Wakes the followers of the log: the output is given up, and the job has ended already, so nothing
 * else would wake them. */
static void on_patience_over(struct timer *t, void *ctx)
{
    struct awaited *a = ctx;
    struct logs *l = a->logs;
    int64_t job = a->job;
    (void)t;
    awaited_free(a);
    l->over(l->ctx, job);
}

static void note_arrival(struct logs *l, int64_t job, int64_t attempt, int32_t rank, int64_t size)
{
    struct awaited *a = awaited_of(l, job, attempt, rank);
    if (a && size >= a->bytes)
        awaited_free(a);
    else if (a)
        timer_start(l->timers, &a->patience, LOGS_AWAIT_MS);
}

/* The agent keeps output for lack of space, and will send it later. */
static void keep_waiting(struct logs *l, int64_t job, int64_t attempt, int32_t rank)
{
    struct awaited *a = awaited_of(l, job, attempt, rank);
    if (a)
        timer_start(l->timers, &a->patience, LOGS_AWAIT_KEPT_MS);
}

static char *path_of(const struct logs *l, int64_t job, int64_t attempt, int32_t rank)
{
    char which[16] = "";
    if (rank > 0)
        snprintf(which, sizeof(which), ".%d", (int)rank);
    return mem_printf("%s/%lld/%lld/%lld%s.log", l->dir, (long long)(job / JOBS_A_DIR),
        (long long)job, (long long)attempt, which);
}

static bool is_cut(const struct logs *l, int64_t job, int64_t attempt, int32_t rank)
{
    char *path = path_of(l, job, attempt, rank), *mark = mem_printf("%s" CUT_SUFFIX, path);
    bool is = access(mark, F_OK) == 0;
    free(mark);
    free(path);
    return is;
}

static int64_t size_of(const struct logs *l, int64_t job, int64_t attempt, int32_t rank)
{
    struct stat st;
    char *path = path_of(l, job, attempt, rank);
    int64_t size = stat(path, &st) == 0 ? st.st_size : 0;
    free(path);
    return size;
}

int64_t logs_stored(const struct logs *l, int64_t job, int64_t attempt, int32_t rank)
{
    return is_cut(l, job, attempt, rank) ? LOGS_OFFSET_MAX : size_of(l, job, attempt, rank);
}

void logs_await(struct logs *l, int64_t job, int64_t attempt, int32_t rank, int64_t bytes)
{
    if (size_of(l, job, attempt, rank) >= bytes || awaited_of(l, job, attempt, rank) ||
        is_cut(l, job, attempt, rank))
        return;
    struct awaited *a = mem_alloc(sizeof(*a));
    *a = (struct awaited){.logs = l, .job = job, .attempt = attempt, .rank = rank, .bytes = bytes};
    timer_init(&a->patience, on_patience_over, a);
    timer_start(l->timers, &a->patience, LOGS_AWAIT_MS);
    list_push_back(&l->awaited, &a->in_logs);
}

/* ---- writing ---- */

/* True if the text of the attempt's seam line is final. */
static bool is_settled(const struct attempt_row *a)
{
    return wall_is_set(a->started_at) || a->state == ATTEMPT_ENDED;
}

struct later_attempt {
    int64_t than;
    int32_t rank;
    bool settled;
};

static int find_later_attempt(void *ctx, const struct attempt_row *a)
{
    struct later_attempt *f = ctx;
    f->settled = a->attempt > f->than && a->rank == f->rank && is_settled(a);
    return f->settled;
}

/* *ret_closed: true if the seam of a later attempt is shown, so that output before it must not grow
 * any more. */
static int is_closed(struct logs *l, struct db_reader *r, int64_t job, int64_t attempt,
    int32_t rank, bool *ret_closed, struct err *e)
{
    struct later_attempt f = {.than = attempt, .rank = rank};
    int rc = db_read_attempts(r, job, find_later_attempt, &f, e);
    *ret_closed = f.settled && !awaited_of(l, job, attempt, rank);
    return rc;
}

static int open_for_append(
    const struct logs *l, int64_t job, int64_t attempt, int32_t rank, struct err *e)
{
    char *path = path_of(l, job, attempt, rank);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), rc = 0;
    if (fd < 0 && errno == ENOENT) {
        char *dir = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
        rc = fs_mkdirs(dir, 0700, e);
        if (rc == 0)
            fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        free(dir);
    }
    if (fd < 0 && rc == 0)
        rc = err_errno(e, errno, "cannot write the output of job %lld to %s", (long long)job, path);
    free(path);
    return fd >= 0 ? fd : rc;
}

static void written(struct logs *l, int64_t job, int64_t attempt, int32_t rank, bool is_new)
{
    char *path = path_of(l, job, attempt, rank);
    syncer_written(l->syncer, path, is_new);
    free(path);
}

/* Records when the output after `before->st_size` bytes arrived. */
static void note_time(const struct logs *l, int64_t job, int64_t attempt, int32_t rank, int fd,
    const struct stat *before)
{
    char *path = path_of(l, job, attempt, rank);
    log_times_note(path, fd, before, before->st_size, clock_wall(l->timers->clock));
    free(path);
}

bool logs_is_synced(const struct logs *l, int64_t job, int64_t attempt, int32_t rank)
{
    char *path = path_of(l, job, attempt, rank);
    bool is_synced = syncer_is_synced(l->syncer, path);
    free(path);
    return is_synced;
}

/* The new part of a piece, to be written to its file. */
struct piece {
    struct logs *l;
    int64_t job, attempt;
    int32_t rank;
    const char *p; /* NULL for a hole */
    int64_t n;
    int64_t kept;  /* the bytes of n that are stored; if fewer, the output is cut after them */
    char why[128]; /* the reason of the cut */
};

/* Keeps space for commits, so that a job whose output fills the disk can still be cancelled, and
 * for the output of other users. */
static int leave_reserve(struct piece *x, struct err *e)
{
    struct logs *l = x->l;
    if (!x->p || x->kept == 0)
        return 0;
    switch (log_disk_judge(l->disk, log_quota_user(l->quota, x->job),
        log_quota_job_bytes(l->quota, x->job), x->kept)) {
    case LOG_STORE:
        break;
    case LOG_KEEP:
        return err_set(e, ERR_NO_SPACE,
            "the disk of belayd's state directory is almost full: the agent keeps the output of "
            "job %lld for now",
            (long long)x->job);
    case LOG_CUT:
        x->kept = 0;
        snprintf(x->why, sizeof(x->why),
            "the disk of belayd's state directory is almost full, and the user stores more output "
            "than others");
    }
    return 0;
}

/* Computes how much of the piece may be stored after `size` bytes of the attempt's output. */
static int find_space(struct piece *x, struct db_reader *r, int64_t size, struct err *e)
{
    struct logs *l = x->l;
    const struct log_limits *limits = log_quota_limits(l->quota);
    enum log_limit by;
    char *dir = path_of(l, x->job, x->attempt, x->rank), limit[32];
    *strrchr(dir, '/') = '\0';
    int64_t space = log_quota_left(l->quota, r, x->job, dir, clock_wall(l->timers->clock), &by);
    free(dir);
    x->kept = x->n;
    if (x->p && space < x->kept) {
        x->kept = space;
        str_format_bytes(
            (uint64_t)(by == LOG_LIMIT_JOB ? limits->job_bytes : limits->user_day_bytes), limit,
            sizeof(limit));
        snprintf(x->why, sizeof(x->why), "%s (%s)",
            by == LOG_LIMIT_JOB
                ? "the job has reached the limit of stored output for a job"
                : "the user's jobs have reached the limit of stored output for a user within a day",
            limit);
    }
    if (LOGS_ATTEMPT_BYTES_MAX - size < x->kept) {
        x->kept = LOGS_ATTEMPT_BYTES_MAX - size;
        snprintf(x->why, sizeof(x->why),
            "this attempt has reached the limit of stored output for an attempt (4 GiB)");
    }
    return leave_reserve(x, e);
}

/* Ends the output with an explanation, and marks it as cut: in this order, so that output is never
 * cut without an explanation. */
static int cut(const struct piece *x, int fd, struct err *e)
{
    struct logs *l = x->l;
    char *path = path_of(l, x->job, x->attempt, x->rank), *mark = mem_printf("%s" CUT_SUFFIX, path);
    char *line = mem_printf(CUT_LINE, x->why);
    int rc = fs_write_all(fd, line, strlen(line), e);
    int made = rc == 0 ? open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (rc == 0 && made < 0)
        rc = err_errno(e, errno, "cannot write %s", mark);
    if (rc == 0) {
        close(made);
        syncer_written(l->syncer, mark, true);
        l->stats.cuts++;
        if (l->cut)
            l->cut(l->ctx, x->job, x->attempt, x->rank, x->why);
    }
    free(line);
    free(mark);
    free(path);
    return rc;
}

static void count_stored(const struct piece *x)
{
    struct logs *l = x->l;
    log_disk_stored(
        l->disk, log_quota_user(l->quota, x->job), log_quota_job_bytes(l->quota, x->job), x->kept);
    log_quota_add(l->quota, x->job, x->kept, clock_wall(l->timers->clock));
    l->stats.bytes += x->kept;
}

/* Writes the piece after `size` bytes. *ret_size is set on success. */
static int write_piece(struct piece *x, int fd, int64_t size, int64_t *ret_size, struct err *e)
{
    int rc = 0;
    if ((!x->p && ftruncate(fd, size + x->kept) != 0) || lseek(fd, 0, SEEK_END) < 0)
        return err_errno(e, errno, "cannot write the output of job %lld", (long long)x->job);
    if (x->p) {
        rc = fs_write_all(fd, x->p, (size_t)x->kept, e);
        if (rc == 0)
            count_stored(x);
    }
    if (rc == 0 && x->kept < x->n)
        rc = cut(x, fd, e);
    if (rc == 0)
        *ret_size = x->kept < x->n ? LOGS_OFFSET_MAX : size + x->n;
    return rc;
}

int logs_append(struct logs *l, struct db_reader *r, int64_t job, int64_t attempt, int32_t rank,
    int64_t offset, const void *p, size_t n, int64_t *ret_size, struct err *e)
{
    int64_t end = offset + (int64_t)n;
    struct stat st;
    bool closed;
    int rc = is_closed(l, r, job, attempt, rank, &closed, e);
    int fd = rc == 0 ? open_for_append(l, job, attempt, rank, e) : rc;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) != 0) {
        rc = err_errno(e, errno, "cannot examine the output of job %lld", (long long)job);
    } else if (closed) {
        *ret_size = end > st.st_size ? end : st.st_size;
    } else if (st.st_size > LOGS_ATTEMPT_BYTES_MAX || is_cut(l, job, attempt, rank)) {
        *ret_size = LOGS_OFFSET_MAX;
    } else if (offset > st.st_size || end <= st.st_size) {
        *ret_size = st.st_size; /* a gap or a repetition */
    } else {
        int64_t known = st.st_size - offset;
        struct piece x = {.l = l,
            .job = job,
            .attempt = attempt,
            .rank = rank,
            .p = p ? (const char *)p + known : NULL,
            .n = (int64_t)n - known};
        rc = find_space(&x, r, st.st_size, e);
        if (rc == 0) {
            rc = write_piece(&x, fd, st.st_size, ret_size, e);
            written(l, job, attempt, rank, st.st_size == 0);
            note_time(l, job, attempt, rank, fd, &st);
        }
    }
    if (rc == 0)
        note_arrival(l, job, attempt, rank, *ret_size);
    else if (rc == ERR_NO_SPACE)
        keep_waiting(l, job, attempt, rank);
    close(fd);
    return rc;
}

/* ---- the continuous view ---- */

struct view {
    struct logs *l;
    int32_t rank;
    int64_t start; /* position of the current piece in the log */
    int64_t from;  /* the next byte that the caller wants */
    size_t max;
    struct buf *out;   /* NULL to measure only */
    int64_t attempt;   /* only this attempt; 0 = all */
    struct wall since; /* find the position where output of this time begins */
    int64_t since_at;  /* that position; -1 = not found yet */
    bool mid_line;     /* the last piece did not end with a newline */
    bool awaited;
    bool met, ended; /* of a single attempt: it exists, it has ended */
    int rc;
    struct err *e;
};

/* Returns how many bytes of the next piece, `length` bytes long, to output, from *ret_skip on. */
static size_t take(struct view *v, int64_t length, int64_t *ret_skip)
{
    int64_t skip = v->from > v->start ? v->from - v->start : 0;
    int64_t space = v->out ? (int64_t)(v->max - v->out->len) : 0;
    int64_t left = length > skip ? length - skip : 0;
    int64_t n = left < space ? left : space;
    v->start += length;
    v->from += n;
    *ret_skip = skip;
    return (size_t)n;
}

static void seam_text(const struct attempt_row *a, char out[SEAM_MAX])
{
    char how[SEAM_MAX - 100];
    long long attempt = a->attempt, node = a->node;
    if (!wall_is_set(a->started_at))
        snprintf(how, sizeof(how), "not known to have started: %s", a->text);
    else if (a->restored.attempt == 0)
        snprintf(how, sizeof(how), "from the beginning");
    else if (a->restored_progress == PROGRESS_NONE)
        snprintf(how, sizeof(how), "resumed from checkpoint %lld.%lld",
            (long long)a->restored.attempt, (long long)a->restored.sequence);
    else
        snprintf(how, sizeof(how), "resumed from checkpoint %lld.%lld (step %lld)",
            (long long)a->restored.attempt, (long long)a->restored.sequence,
            (long long)a->restored_progress);
    snprintf(out, SEAM_MAX, "---- belay: attempt %lld on node %lld, %s ----\n", attempt, node, how);
}

static void add_seam(struct view *v, const struct attempt_row *a)
{
    char text[1 + SEAM_MAX] = "\n"; /* the seam begins on a new line */
    char *line = text + v->mid_line;
    int64_t skip;
    if (v->since_at < 0 && wall_is_set(a->started_at) && a->started_at.ms >= v->since.ms)
        v->since_at = v->start;
    seam_text(a, line);
    size_t n = take(v, (int64_t)strlen(text), &skip);
    if (n > 0)
        buf_add(v->out, text + skip, n);
    v->mid_line = false;
}

static int read_piece(struct view *v, int fd, int64_t job, size_t n, int64_t skip)
{
    ssize_t got = pread(fd, buf_reserve(v->out, n), n, skip);
    if (got < 0)
        return err_errno(v->e, errno, "cannot read the output of job %lld", (long long)job);
    buf_commit(v->out, (size_t)got);
    v->from -= (int64_t)n - got; /* only if the file was truncated */
    return 0;
}

static void add_file(struct view *v, const struct attempt_row *a)
{
    struct stat st = {0};
    char *path = path_of(v->l, a->job, a->attempt, a->rank), last = '\n';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int64_t skip, since_at;
    int64_t length = fd >= 0 && fstat(fd, &st) == 0 ? st.st_size : 0;
    if (v->since_at < 0 && length > 0 && (since_at = log_times_find(path, &st, v->since)) < length)
        v->since_at = v->start + since_at;
    free(path);
    if (fd < 0)
        return; /* no output (yet) */
    size_t n = take(v, length, &skip);
    if (n > 0)
        v->rc = read_piece(v, fd, a->job, n, skip);
    if (length > 0 && pread(fd, &last, 1, length - 1) == 1)
        v->mid_line = last != '\n';
    close(fd);
}

static int add_attempt(void *ctx, const struct attempt_row *a)
{
    struct view *v = ctx;
    if (a->rank != v->rank || (v->attempt > 0 && a->attempt != v->attempt))
        return 0;
    v->met = true;
    v->ended = a->state == ATTEMPT_ENDED;
    if (v->attempt == 0 && a->attempt > 1 && !is_settled(a))
        return 1;
    if (v->attempt == 0 && a->attempt > 1)
        add_seam(v, a);
    add_file(v, a);
    v->awaited = awaited_of(v->l, a->job, a->attempt, a->rank) != NULL;
    return v->rc != 0 || v->awaited || v->attempt > 0;
}

/* Traverses the log; afterwards v->start is its length. */
static int walk_log(struct view *v, struct db_reader *r, int64_t job)
{
    int rc = db_read_attempts(r, job, add_attempt, v, v->e);
    return rc != 0 ? rc : v->rc;
}

/* Searches backwards for the position *ret_at after which there are part->tail lines, through at
 * most LOGS_TAIL_BYTES_MAX bytes. */
static int find_tail(struct logs *l, struct db_reader *r, const struct logs_part *part,
    int64_t size, int64_t *ret_at, struct err *e)
{
    struct buf piece = {0};
    int64_t at = size, lines = 0,
            floor = size > LOGS_TAIL_BYTES_MAX ? size - LOGS_TAIL_BYTES_MAX : 0;
    int rc = 0;
    while (rc == 0 && at > floor) {
        int64_t from = at - floor > TAIL_PIECE ? at - TAIL_PIECE : floor;
        struct view v = {.l = l,
            .rank = part->rank,
            .attempt = part->attempt,
            .from = from,
            .max = (size_t)(at - from),
            .out = &piece,
            .e = e};
        buf_clear(&piece);
        rc = walk_log(&v, r, part->job);
        for (size_t i = piece.len; rc == 0 && i-- > 0;) {
            /* no line begins after the last newline */
            bool is_last = from + (int64_t)i == size - 1;
            if (piece.data[i] != '\n' || is_last || ++lines < part->tail)
                continue;
            *ret_at = from + (int64_t)i + 1;
            goto out;
        }
        at = from;
    }
    *ret_at = floor;
out:
    buf_deinit(&piece);
    return rc;
}

/* Computes the position where the part begins. A negative offset counts from the end of the log;
 * of offset, since and tail, the latest position counts. */
static int find_start(struct logs *l, struct db_reader *r, const struct logs_part *part,
    int64_t *ret_at, struct err *e)
{
    bool has_since = wall_is_set(part->since) && part->since.ms > 0;
    struct view measure = {.l = l,
        .rank = part->rank,
        .attempt = part->attempt,
        .since = part->since,
        .since_at = has_since ? -1 : 0,
        .e = e};
    int64_t at = part->offset, tail_at = 0;
    if (at >= 0 && !has_since && part->tail == 0) {
        *ret_at = at;
        return 0;
    }
    int rc = walk_log(&measure, r, part->job);
    if (rc == 0 && part->tail > 0)
        rc = find_tail(l, r, part, measure.start, &tail_at, e);
    if (at < 0)
        at = measure.start + at > 0 ? measure.start + at : 0;
    int64_t since_at = measure.since_at < 0 ? measure.start : measure.since_at;
    at = at > since_at ? at : since_at;
    *ret_at = at > tail_at ? at : tail_at;
    return rc;
}

int logs_read(struct logs *l, struct db_reader *r, const struct logs_part *part, size_t max,
    struct buf *out, int64_t *ret_next, bool *ret_complete, struct err *e)
{
    struct view v = {
        .l = l, .rank = part->rank, .attempt = part->attempt, .max = max, .out = out, .e = e};
    int rc = find_start(l, r, part, &v.from, e);
    if (rc == 0)
        rc = walk_log(&v, r, part->job);
    if (rc == 0 && part->attempt > 0 && !v.met)
        rc = err_set(e, ERR_NOT_FOUND, "job %lld has had no attempt %lld", (long long)part->job,
            (long long)part->attempt);
    if (rc == 0) {
        *ret_next = v.from;
        *ret_complete = v.from >= v.start && !v.awaited && (part->attempt == 0 || v.ended);
    }
    return rc;
}
