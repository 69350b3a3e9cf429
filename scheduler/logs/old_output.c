/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/logs/old_output.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/prune.h"
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int look_at_job(
    struct old_output *o, struct job_row *row, int64_t job, const char *dir, struct err *e)
{
    enum fate fate;
    if (o->cancel && atomic_load(o->cancel))
        return err_set(e, ERR_CANCELLED, "the look at old output was cancelled");
    int rc = decide(o, row, job, dir, &fate, e);
    return rc != 0 ? rc : carry_out(o, job, dir, fate, e);
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

int old_output_look(struct old_output *o, struct err *e)
{
    struct job_row *row = mem_alloc(sizeof(*row));
    int rc = each_number(o, row, o->dir, look_at_group, e);
    free(row);
    return rc;
}
