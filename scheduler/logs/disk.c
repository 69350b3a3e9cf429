/* SPDX-License-Identifier: Apache-2.0
 *
 * See logs/disk.h. Invariants: at most one count is on a thread. The timer runs exactly while less
 * than three reserves were free at the last check.
 *
 * The disk is low from when less than two reserves are free (log_space_is_low); while it is, agents
 * keep output. That ends when two and a half reserves are free, or when there has been space for
 * the largest kept piece for LOG_DISK_SPACE_MS, in which agents try again. This hysteresis prevents
 * a second wait of wait_ms when free space varies a little around the limit.
 *
 * A count misses what is stored while it runs; the next one corrects that.
 */
#include "scheduler/logs/disk.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "db/db.h"
#include "scheduler/logs/quota.h"
#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define COUNT_PART 10 /* the pause after a count is at least this many times its duration */

struct log_count {
    struct log_disk *owner; /* NULL if it was destroyed meanwhile */
    char *dir, *db_path;
    atomic_int cancel;
    struct log_shares *shares;
    int rc;
    struct err e;
};

struct log_disk {
    uv_loop_t *loop;
    struct timers *timers;
    char *dir, *db_path, *wal_path; /* db_path and wal_path: NULL until log_disk_set */
    int64_t wait_ms;                /* how long output is kept by agents before it is cut */
    log_space_fn source;
    void *source_ctx;
    struct log_space space; /* at the last check */
    bool is_low, is_logged, has_space;
    struct mono low_since, space_since;
    int64_t kept;              /* bytes of the largest piece without space since low_since */
    struct log_shares *shares; /* NULL while unknown */
    struct log_count *count;   /* on the thread; may be NULL */
    struct mono count_began, count_after;
    struct timer check_timer;
};

/* ---- on the thread ---- */

static int count_job(
    struct log_count *c, struct db_reader *r, struct job_row *row, int64_t job, const char *dir)
{
    int64_t bytes = log_quota_count(dir);
    int rc = bytes > 0 ? db_read_job(r, job, row, &c->e) : 0;
    if (rc == 0 && bytes > 0)
        log_shares_add(c->shares, row->user, bytes, 1);
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

/* Calls fn for each directory in `at` whose name is a number, until fn fails. */
static int each_number(struct log_count *c, struct db_reader *r, struct job_row *row,
    const char *at,
    int (*fn)(struct log_count *, struct db_reader *, struct job_row *, int64_t, const char *))
{
    DIR *dir = opendir(at);
    int rc = 0;
    for (struct dirent *d; rc == 0 && dir && (d = readdir(dir));) {
        struct err ignored;
        int64_t number;
        if (str_to_i64(d->d_name, 0, INT64_MAX, "directory", &number, &ignored) != 0)
            continue;
        char *path = mem_printf("%s/%s", at, d->d_name);
        rc = atomic_load(&c->cancel) ? err_set(&c->e, ERR_CANCELLED, "belayd ends")
                                     : fn(c, r, row, number, path);
        free(path);
    }
    if (dir)
        closedir(dir);
    return rc;
}

static int count_group(
    struct log_count *c, struct db_reader *r, struct job_row *row, int64_t group, const char *at)
{
    (void)group;
    return each_number(c, r, row, at, count_job);
}

static void on_thread(void *ctx)
{
    struct log_count *c = ctx;
    struct db_reader *r = NULL;
    struct job_row *row = mem_alloc(sizeof(*row));
    c->rc = db_reader_open(c->db_path, &r, &c->e);
    if (c->rc == 0)
        c->rc = each_number(c, r, row, c->dir, count_group);
    db_reader_close(r);
    free(row);
}

/* ---- on the loop ---- */

static void count_free(struct log_count *c)
{
    log_shares_destroy(c->shares);
    free(c->dir);
    free(c->db_path);
    free(c);
}

/* Logs once that the disk is low, as soon as the users' shares are known. */
static void notify_over(struct log_disk *d)
{
    int64_t most;
    if (!d->is_low || d->is_logged || !d->shares)
        return;
    const char *user = log_shares_most(d->shares, &most);
    d->is_logged = true;
    log_warn(
        "the disk of the state directory is almost full: agents keep output of the users who "
        "store most, and later it is cut. Free some space: enlarge the disk, or move output of "
        "ended jobs out of the directory of logs",
        log_s("dir", d->dir), log_i("free_bytes", d->space.free),
        log_i("disk_bytes", d->space.total), log_i("output_bytes", log_shares_total(d->shares)),
        log_s("most_by", user ? user : "-"), log_i("most_bytes", most),
        log_i("cut_after_ms", d->wait_ms));
}

static void on_count(void *ctx)
{
    struct log_count *c = ctx;
    struct log_disk *d = c->owner;
    if (!d) {
        count_free(c);
        return;
    }
    int64_t now_ms = clock_mono(d->timers->clock).ms;
    int64_t pause_ms = (now_ms - d->count_began.ms) * COUNT_PART;
    d->count = NULL;
    d->count_after.ms = now_ms + (pause_ms > LOG_DISK_COUNT_MS ? pause_ms : LOG_DISK_COUNT_MS);
    if (c->rc != 0) {
        log_warn(
            "the output of jobs cannot be counted by user", log_s("dir", d->dir), log_err(&c->e));
    } else {
        log_shares_destroy(d->shares);
        d->shares = c->shares;
        c->shares = NULL;
    }
    count_free(c);
    notify_over(d);
}

static void start_count(struct log_disk *d)
{
    struct mono now = clock_mono(d->timers->clock);
    if (d->count || !d->db_path || now.ms < d->count_after.ms)
        return;
    d->count = mem_alloc(sizeof(*d->count));
    d->count->owner = d;
    d->count->dir = mem_strdup(d->dir);
    d->count->db_path = mem_strdup(d->db_path);
    d->count->shares = log_shares_create();
    d->count_began = now;
    uv_run_work(d->loop, on_thread, on_count, d->count);
}

/* True if the disk is no longer low: no agent keeps output for lack of space. */
static bool is_over(struct log_disk *d, const struct log_space *after)
{
    struct mono now = clock_mono(d->timers->clock);
    int64_t reserve = log_space_reserve(&d->space);
    bool had_space = d->has_space;
    d->has_space = after->free >= 2 * reserve && d->space.free - d->kept >= 2 * reserve;
    if (d->has_space && !had_space)
        d->space_since = now;
    return after->free >= 2 * reserve + reserve / 2 ||
           (d->has_space && now.ms - d->space_since.ms >= LOG_DISK_SPACE_MS);
}

/* Updates the state of the disk, on which n more bytes are to be stored. */
static void update_state(struct log_disk *d, int64_t n)
{
    if (!d->source(d->source_ctx, &d->space))
        d->space = (struct log_space){.total = INT64_MAX / 2, .free = INT64_MAX / 2};
    struct log_space after = {.total = d->space.total, .free = d->space.free - n};
    int64_t reserve = log_space_reserve(&d->space);
    if (!d->is_low && log_space_is_low(&after)) {
        d->is_low = true;
        d->is_logged = d->has_space = false;
        d->kept = 0;
        d->low_since = clock_mono(d->timers->clock);
        notify_over(d);
    } else if (d->is_low && is_over(d, &after)) {
        d->is_low = false;
        if (d->is_logged)
            log_info("the disk of the state directory has space for output again",
                log_s("dir", d->dir), log_i("free_bytes", d->space.free));
    }
    if (d->is_low && log_space_is_low(&after) && n > d->kept)
        d->kept = n;
    if (after.free < 3 * reserve) {
        start_count(d);
        if (!timer_is_running(&d->check_timer))
            timer_start(d->timers, &d->check_timer, LOG_DISK_CHECK_MS);
    } else if (!d->count) { /* without further counts, the shares would become outdated */
        log_shares_destroy(d->shares);
        d->shares = NULL;
        d->count_after.ms = 0;
    }
}

static void on_check(struct timer *t, void *ctx)
{
    (void)t;
    update_state(ctx, 0);
}

static bool check_disk(void *ctx, struct log_space *ret_space)
{
    struct statvfs v;
    if (statvfs(ctx, &v) != 0)
        return false;
    *ret_space = (struct log_space){
        .total = (int64_t)(v.f_blocks * v.f_frsize), .free = (int64_t)(v.f_bavail * v.f_frsize)};
    return true;
}

struct log_disk *log_disk_create(uv_loop_t *loop, struct timers *timers, const char *dir)
{
    struct log_disk *d = mem_alloc(sizeof(*d));
    *d = (struct log_disk){
        .loop = loop, .timers = timers, .dir = mem_strdup(dir), .source = check_disk};
    d->source_ctx = d->dir;
    timer_init(&d->check_timer, on_check, d);
    return d;
}

void log_disk_destroy(struct log_disk *d)
{
    if (!d)
        return;
    timer_stop(d->timers, &d->check_timer);
    if (d->count) {
        d->count->owner = NULL;
        atomic_store(&d->count->cancel, 1);
    }
    log_shares_destroy(d->shares);
    free(d->dir);
    free(d->db_path);
    free(d->wal_path);
    free(d);
}

void log_disk_set(struct log_disk *d, const char *db_path, int64_t wait_ms)
{
    free(d->db_path);
    free(d->wal_path);
    d->db_path = mem_strdup(db_path);
    d->wal_path = mem_printf("%s-wal", db_path);
    d->wait_ms = wait_ms;
}

void log_disk_set_source(struct log_disk *d, log_space_fn fn, void *ctx)
{
    d->source = fn;
    d->source_ctx = ctx;
}

enum log_verdict log_disk_judge(struct log_disk *d, const char *user, int64_t job_bytes, int64_t n)
{
    update_state(d, n);
    int64_t low_ms = clock_mono(d->timers->clock).ms - d->low_since.ms;
    return log_shares_judge(user ? d->shares : NULL, &d->space,
        &(struct log_request){.user = user,
            .job_bytes = job_bytes,
            .n = n,
            .has_waited = d->is_low && low_ms >= d->wait_ms});
}

void log_disk_stored(struct log_disk *d, const char *user, int64_t job_bytes, int64_t n)
{
    if (user && d->shares)
        log_shares_add(d->shares, user, n, job_bytes > 0 ? 0 : 1);
}

bool log_disk_is_low(const struct log_disk *d)
{
    return d->is_low;
}

/* Returns the bytes of the write-ahead log: the database may still grow by as much when they are
 * copied into it. */
static int64_t wal_bytes(const struct log_disk *d)
{
    struct stat st;
    return d->wal_path && stat(d->wal_path, &st) == 0 ? st.st_size : 0;
}

bool log_disk_has_space(struct log_disk *d, int64_t n)
{
    struct log_space space;
    return !d->source(d->source_ctx, &space) ||
           space.free - wal_bytes(d) - n >= log_space_reserve(&space) / 2;
}
