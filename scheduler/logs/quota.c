/* SPDX-License-Identifier: Apache-2.0
 *
 * See logs/quota.h. The counts of jobs are a cache, which is dropped when it is large and then
 * rebuilt.
 */
#include "scheduler/logs/quota.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define JOBS_MAX 4096
#define HOUR_MS 3600000LL
#define BLOCK_BYTES 512 /* unit of st_blocks */

struct of_user {
    char name[CORE_NAME_MAX];
    int64_t bytes[LOG_QUOTA_HOURS]; /* by hour since 1970, modulo LOG_QUOTA_HOURS */
    int64_t hour;                   /* the last counted hour since 1970 */
};

struct of_job {
    int64_t bytes;
    struct of_user *user; /* NULL if unknown: only the job's own bytes are counted */
};

struct log_quota {
    struct log_limits limits;
    struct map jobs;
    struct smap users;
};

struct log_quota *log_quota_create(const struct log_limits *limits)
{
    struct log_quota *q = mem_alloc(sizeof(*q));
    q->limits = *limits;
    return q;
}

static void drop_jobs(struct log_quota *q)
{
    size_t pos = 0;
    for (struct of_job *j; (j = map_next(&q->jobs, &pos, NULL));)
        free(j);
    map_deinit(&q->jobs);
}

void log_quota_destroy(struct log_quota *q)
{
    size_t pos = 0;
    if (!q)
        return;
    drop_jobs(q);
    for (struct of_user *u; (u = smap_next(&q->users, &pos, NULL));)
        free(u);
    smap_deinit(&q->users);
    free(q);
}

/* ---- jobs ---- */

static bool is_output(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && str_eq(name + n - 4, ".log");
}

int64_t log_quota_count(const char *path)
{
    DIR *dir = opendir(path);
    int64_t bytes = 0;
    for (struct dirent *d; dir && (d = readdir(dir));) {
        struct stat st;
        if (!is_output(d->d_name) || fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        int64_t stored = (int64_t)st.st_blocks * BLOCK_BYTES;
        bytes += stored < st.st_size ? stored : st.st_size;
    }
    if (dir)
        closedir(dir);
    return bytes;
}

static struct of_user *user_named(struct log_quota *q, const char *name)
{
    struct of_user *u = smap_get(&q->users, name);
    if (u)
        return u;
    u = mem_alloc(sizeof(*u));
    STR_COPY(u->name, name);
    smap_put(&q->users, name, u);
    return u;
}

static struct of_user *user_of(struct log_quota *q, struct db_reader *r, int64_t job)
{
    struct job_row *row = mem_alloc(sizeof(*row));
    struct err e;
    int rc = db_read_job(r, job, row, &e);
    struct of_user *u = rc == 0 ? user_named(q, row->user) : NULL;
    if (rc != 0 && rc != ERR_NOT_FOUND)
        log_warn("the user of a job cannot be read: its output is not counted", log_i("job", job),
            log_err(&e));
    free(row);
    return u;
}

static struct of_job *job_of(struct log_quota *q, struct db_reader *r, int64_t job, const char *dir)
{
    struct of_job *j = map_get(&q->jobs, job);
    if (j)
        return j;
    if (map_size(&q->jobs) >= JOBS_MAX)
        drop_jobs(q);
    j = mem_alloc(sizeof(*j));
    j->bytes = log_quota_count(dir);
    j->user = user_of(q, r, job);
    map_put(&q->jobs, job, j);
    return j;
}

/* ---- users ---- */

/* Clears hours that are a day old. After the clock was set back, output still counts in the latest
 * hour. */
static void advance(struct of_user *u, struct wall now)
{
    int64_t hour = now.ms / HOUR_MS;
    if (hour - u->hour >= LOG_QUOTA_HOURS)
        memset(u->bytes, 0, sizeof(u->bytes));
    else
        for (int64_t h = u->hour + 1; h <= hour; h++)
            u->bytes[h % LOG_QUOTA_HOURS] = 0;
    u->hour = hour > u->hour ? hour : u->hour;
}

static int64_t of_day(struct of_user *u, struct wall now)
{
    int64_t sum = 0;
    advance(u, now);
    for (int i = 0; i < LOG_QUOTA_HOURS; i++)
        sum += u->bytes[i];
    return sum;
}

int64_t log_quota_left(struct log_quota *q, struct db_reader *r, int64_t job, const char *dir,
    struct wall now, enum log_limit *ret_by)
{
    const struct of_job *j = job_of(q, r, job, dir);
    int64_t space = INT64_MAX;
    *ret_by = LOG_LIMIT_NONE;
    if (q->limits.job_bytes > 0) {
        space = q->limits.job_bytes - j->bytes;
        *ret_by = LOG_LIMIT_JOB;
    }
    if (q->limits.user_day_bytes > 0 && j->user) {
        int64_t left = q->limits.user_day_bytes - of_day(j->user, now);
        if (left < space) {
            space = left;
            *ret_by = LOG_LIMIT_USER;
        }
    }
    return space > 0 ? space : 0;
}

void log_quota_add(struct log_quota *q, int64_t job, int64_t n, struct wall now)
{
    struct of_job *j = map_get(&q->jobs, job);
    if (!j)
        return;
    j->bytes += n;
    if (j->user) {
        advance(j->user, now);
        j->user->bytes[j->user->hour % LOG_QUOTA_HOURS] += n;
    }
}

int64_t log_quota_user_left(struct log_quota *q, const char *user, struct wall now)
{
    int64_t most = q->limits.user_day_bytes;
    int64_t space = most > 0 ? most - of_day(user_named(q, user), now) : INT64_MAX;
    return space > 0 ? space : 0;
}

void log_quota_user_add(struct log_quota *q, const char *user, int64_t n, struct wall now)
{
    struct of_user *u = user_named(q, user);
    advance(u, now);
    u->bytes[u->hour % LOG_QUOTA_HOURS] += n;
}

int64_t log_quota_job_bytes(const struct log_quota *q, int64_t job)
{
    const struct of_job *j = map_get(&q->jobs, job);
    return j ? j->bytes : 0;
}

const char *log_quota_user(const struct log_quota *q, int64_t job)
{
    const struct of_job *j = map_get(&q->jobs, job);
    return j && j->user ? j->user->name : NULL;
}

void log_quota_set_limits(struct log_quota *q, const struct log_limits *limits)
{
    q->limits = *limits;
}

const struct log_limits *log_quota_limits(const struct log_quota *q)
{
    return &q->limits;
}
