/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/logs/old_output.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/log.h"
#include "base/str.h"
#include "db/prune.h"
#include "scheduler/logs/quota.h"
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Output that is left after the ages. */
struct known_output {
    int64_t job;
    struct wall ended_at; /* WALL_NONE: of a live job, or of none */
    int64_t disk_bytes, store_bytes;
};

enum fate { STAYS, IS_MOVED, IS_REMOVED };

void old_output_crypt(
    const struct master *master, bool encrypts, int64_t job, struct ckpt_crypt *ret_crypt)
{
    *ret_crypt = (struct ckpt_crypt){0};
    if (!master)
        return;
    master_job_crypt(master, job, ret_crypt);
    ret_crypt->encrypts = encrypts;
}

/* Whether files came or went a while ago: not brought back from the store just now. */
static bool is_untouched(const struct old_output *o, const char *dir)
{
    struct stat st;
    return stat(dir, &st) == 0 &&
           (int64_t)st.st_mtim.tv_sec * 1000 + OLD_OUTPUT_STAYS_MS < o->now.ms;
}

/* Output of a job without a row is only removed if the retention deleted the job: after an older
 * copy of the database was restored it may be all that is left of it. */
static int decide(struct old_output *o, struct job_row *row, int64_t job, const char *dir,
    enum fate *ret_fate, struct err *e)
{
    struct wall at;
    int64_t age_ms;
    bool was_deleted = false;
    row->id = CORE_ID_NONE;
    int rc = db_read_job(o->reader, job, row, e);
    *ret_fate = STAYS;
    if (rc == ERR_NOT_FOUND) {
        rc = prune_read_deleted(o->reader, job, &was_deleted, &at, &age_ms, e);
        *ret_fate = was_deleted ? IS_REMOVED : STAYS;
        return rc;
    }
    if (rc != 0 || row->state != JOB_ENDED || !wall_is_set(row->ended_at))
        return rc;
    age_ms = o->now.ms - row->ended_at.ms;
    if (o->keep_ms > 0 && age_ms > o->keep_ms)
        *ret_fate = IS_REMOVED;
    else if (o->disk_ms > 0 && age_ms > o->disk_ms && is_untouched(o, dir))
        *ret_fate = IS_MOVED;
    return 0;
}

static int carry_out(
    struct old_output *o, int64_t job, const char *dir, enum fate fate, struct err *e)
{
    struct ckpt_crypt crypt;
    struct archive a = {.store = o->store,
        .cluster = o->cluster,
        .job = job,
        .crypt = &crypt,
        .dir = dir,
        .cancel = o->cancel};
    bool is_away = archive_has(dir);
    int rc = 0;
    if (fate == STAYS || (!o->store && (is_away || fate == IS_MOVED)))
        return 0;
    old_output_crypt(o->master, o->encrypts, job, &crypt);
    if (fate == IS_MOVED) {
        bool moved = false;
        rc = archive_put(&a, &moved, e);
        o->moved += rc == 0 && moved;
    } else {
        if (o->store)
            rc = archive_remove(&a, e); /* also what was brought back */
        if (rc == 0)
            rc = fs_remove_tree(dir, e);
        o->removed += rc == 0;
    }
    crypt_wipe(&crypt);
    return rc;
}

/* Counts what is left of the job's output. row is of it, unless the database has no such job. */
static void note(struct old_output *o, const struct job_row *row, int64_t job, const char *dir)
{
    struct known_output k = {.job = job, .ended_at = WALL_NONE, .disk_bytes = log_quota_count(dir)};
    struct err e;
    bool is_known = row->id == job, is_live = is_known && row->state != JOB_ENDED;
    if (archive_stored(dir, &k.store_bytes, &e) != 0)
        log_warn("the size of old output in the store is unknown", log_i("job", job), log_err(&e));
    if (k.disk_bytes == 0 && k.store_bytes == 0)
        return;
    if (is_known && !is_live)
        k.ended_at = row->ended_at;
    o->use.disk_bytes += k.disk_bytes;
    o->use.disk_jobs += k.disk_bytes > 0;
    o->use.store_bytes += k.store_bytes;
    o->use.store_jobs += k.store_bytes > 0;
    o->use.live_bytes += is_live ? k.disk_bytes : 0;
    if ((o->n_known & (o->n_known - 1)) == 0)
        o->known = mem_resize(o->known, o->n_known ? 2 * o->n_known : 1, sizeof(*o->known));
    o->known[o->n_known++] = k;
}

static int look_at_job(
    struct old_output *o, struct job_row *row, int64_t job, const char *dir, struct err *e)
{
    enum fate fate;
    if (o->cancel && atomic_load(o->cancel))
        return err_set(e, ERR_CANCELLED, "the look at old output was cancelled");
    int rc = decide(o, row, job, dir, &fate, e);
    if (rc == 0)
        rc = carry_out(o, job, dir, fate, e);
    if (rc == 0)
        note(o, row, job, dir);
    return rc;
}

typedef int (*number_fn)(
    struct old_output *o, struct job_row *row, int64_t number, const char *dir, struct err *e);

/* Calls fn for each directory in `at` whose name is a number, until fn fails. */
static int each_number(
    struct old_output *o, struct job_row *row, const char *at, number_fn fn, struct err *e)
{
    DIR *d = opendir(at);
    int rc = 0;
    for (struct dirent *entry; rc == 0 && d && (entry = readdir(d));) {
        struct err ignored;
        int64_t number;
        if (str_to_i64(entry->d_name, 0, INT64_MAX, "directory", &number, &ignored) != 0)
            continue;
        char *path = mem_printf("%s/%s", at, entry->d_name);
        rc = fn(o, row, number, path, e);
        free(path);
    }
    if (d)
        closedir(d);
    return rc;
}

static int look_at_group(
    struct old_output *o, struct job_row *row, int64_t group, const char *dir, struct err *e)
{
    (void)group;
    int rc = each_number(o, row, dir, look_at_job, e);
    rmdir(dir); /* if it is empty now */
    return rc;
}

/* ---- sizes ---- */

static int by_end(const void *a, const void *b)
{
    const struct known_output *x = a, *y = b;
    int by_time = (x->ended_at.ms > y->ended_at.ms) - (x->ended_at.ms < y->ended_at.ms);
    return by_time ? by_time : (x->job > y->job) - (x->job < y->job);
}

static int go(struct old_output *o, struct known_output *k, enum fate fate, struct err *e)
{
    struct output_use *u = &o->use;
    char *dir = mem_printf("%s/%lld/%lld", o->dir, (long long)(k->job / 1000), (long long)k->job);
    int64_t disk_before = k->disk_bytes, store_before = k->store_bytes;
    int rc = o->cancel && atomic_load(o->cancel)
                 ? err_set(e, ERR_CANCELLED, "the look at old output was cancelled")
             : fate == IS_MOVED && !is_untouched(o, dir) ? 0 /* somebody reads it */
                                                         : carry_out(o, k->job, dir, fate, e);
    k->disk_bytes = log_quota_count(dir);
    if (rc == 0)
        rc = archive_stored(dir, &k->store_bytes, e);
    u->disk_bytes += k->disk_bytes - disk_before;
    u->store_bytes += k->store_bytes - store_before;
    u->disk_jobs += (k->disk_bytes > 0) - (disk_before > 0);
    u->store_jobs += (k->store_bytes > 0) - (store_before > 0);
    free(dir);
    return rc;
}

/* Lets the oldest go until no more than `most` bytes are in use; 0 = unlimited. */
static int keep_size(
    struct old_output *o, enum fate fate, int64_t most, const int64_t *in_use, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && most > 0 && *in_use > most && i < o->n_known; i++) {
        struct known_output *k = &o->known[i];
        int64_t bytes = fate == IS_MOVED ? k->disk_bytes : k->store_bytes;
        if (wall_is_set(k->ended_at) && bytes > 0)
            rc = go(o, k, fate, e);
    }
    return rc;
}

/* Only output of jobs that have ended goes. */
static int keep_sizes(struct old_output *o, struct err *e)
{
    struct output_use *u = &o->use;
    int rc = 0;
    if (o->n_known > 0)
        qsort(o->known, o->n_known, sizeof(*o->known), by_end);
    if (o->store)
        rc = keep_size(o, IS_MOVED, o->disk_bytes, &u->disk_bytes, e);
    if (rc == 0 && o->store)
        rc = keep_size(o, IS_REMOVED, o->store_bytes, &u->store_bytes, e);
    for (size_t i = o->n_known; i-- > 0;) {
        const struct known_output *k = &o->known[i];
        if (wall_is_set(k->ended_at) && k->disk_bytes > 0)
            u->next_on_disk = k->job;
        if (wall_is_set(k->ended_at) && k->store_bytes > 0)
            u->next_in_store = k->job;
    }
    return rc;
}

int old_output_look(struct old_output *o, struct err *e)
{
    struct job_row *row = mem_alloc(sizeof(*row));
    o->use = (struct output_use){0};
    int rc = each_number(o, row, o->dir, look_at_group, e);
    if (rc == 0)
        rc = keep_sizes(o, e);
    free(o->known);
    o->known = NULL;
    o->n_known = 0;
    free(row);
    return rc;
}
