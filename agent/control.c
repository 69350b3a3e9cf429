/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/control.h"

#include "base/fs.h"
#include "base/fs_user.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX 4096
#define RESULTS_KEPT 8 /* the program may still be reading the last ones */
#define COMMITS_SEEN_MAX 1024
#define TEMP_NAME ".agent-new"

/* ---- files ---- */

static int write_temp(int dir, const char *text, struct err *e)
{
    unlinkat(dir, TEMP_NAME, 0);
    int fd = openat(dir, TEMP_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return err_errno(e, errno, "writing into the task's control directory");
    fchmod(fd, 0644);
    int rc = fs_write_all(fd, text, strlen(text), e);
    close(fd);
    return rc;
}

static int replace(int dir, const char *name, json_t *value, struct err *e)
{
    char *text = json_dump_text(value);
    int rc = write_temp(dir, text, e);
    if (!rc && renameat(dir, TEMP_NAME, dir, name) < 0)
        rc = err_errno(e, errno, "writing %s in the task's control directory", name);
    free(text);
    json_decref(value);
    return rc;
}

/* Only what is owner's: of what is wrong with a file the program is told, so it must not be another's,
 * by a hard link. */
static int read_small(
    int dir, const char *name, uid_t owner, char *text, size_t size, size_t *ret_n, struct err *e)
{
    struct stat st;
    int fd = fs_open_of(dir, name, owner);
    if (fd < 0 && (errno == ELOOP || errno == EINVAL || errno == EPERM))
        return err_set(e, ERR_INVALID, "%s is not a file of the job's user", name);
    if (fd < 0)
        return errno == ENOENT ? ERR_NOT_FOUND : err_errno(e, errno, "reading %s", name);
    int rc = 0;
    ssize_t n = 0;
    if (fstat(fd, &st) < 0 || st.st_size >= (off_t)size)
        rc = err_set(e, ERR_INVALID, "%s is not a file of at most %zu bytes", name, size - 1);
    else if ((n = read(fd, text, size - 1)) < 0)
        rc = err_errno(e, errno, "reading %s", name);
    close(fd);
    if (!rc)
        *ret_n = (size_t)n;
    return rc;
}

static int64_t number_after(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    char *end;
    if (strncmp(name, prefix, n) != 0 || name[n] < '1' || name[n] > '9' || strlen(name) > n + 18)
        return 0;
    long long value = strtoll(name + n, &end, 10);
    return *end ? 0 : value;
}

/* ---- what the agent writes ---- */

static json_t *number_or_null(int64_t n)
{
    return n == CONTROL_NONE ? json_null() : json_integer(n);
}

int control_request(int dir, int64_t id, const char *reason, int64_t deadline_ms, struct err *e)
{
    json_t *o = json_object();
    json_object_set_new(o, "id", json_integer(id));
    json_object_set_new(o, "reason", json_string(reason));
    json_object_set_new(o, "deadline_ms", number_or_null(deadline_ms));
    return replace(dir, "request", o, e);
}

void control_request_done(int dir)
{
    unlinkat(dir, "request", 0);
}

int control_notice(int dir, const char *kind, int64_t deadline_ms, int64_t now_ms, struct err *e)
{
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string(kind));
    json_object_set_new(o, "deadline_ms", number_or_null(deadline_ms));
    if (deadline_ms != CONTROL_NONE) {
        char iso[TIME_ISO_MAX];
        int64_t left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
        time_format_iso((struct wall){deadline_ms}, iso);
        json_object_set_new(o, "deadline", json_string(iso));
        json_object_set_new(o, "seconds_left", json_real((double)left_ms / 1000));
    }
    return replace(dir, "notice", o, e);
}

static int link_result(int dir, const char *prefix, int64_t k, json_t *value, struct err *e)
{
    char name[40];
    char *text = json_dump_text(value);
    snprintf(name, sizeof(name), "%s%lld", prefix, (long long)k);
    int rc = write_temp(dir, text, e);
    if (!rc && linkat(dir, TEMP_NAME, dir, name, 0) < 0 && errno != EEXIST)
        rc = err_errno(e, errno, "writing %s in the task's control directory", name);
    unlinkat(dir, TEMP_NAME, 0);
    free(text);
    json_decref(value);
    return rc;
}

static json_t *make_answer(const struct control_answer *a)
{
    json_t *o = json_object();
    json_object_set_new(o, "ok", json_boolean(!a->failed));
    if (a->failed) {
        json_object_set_new(o, "error", json_text(a->failed->text));
    } else {
        json_object_set_new(o, "attempt", json_integer(a->attempt));
        json_object_set_new(o, "sequence", json_integer(a->sequence));
    }
    return o;
}

void control_answer(int dir, int64_t k, const struct control_answer *a)
{
    struct err e;
    char name[40];
    json_t *o = make_answer(a);
    if (!a->failed)
        json_object_set_new(o, "stop", json_boolean(a->stop));
    if (!a->failed && a->accepted)
        json_object_set_new(o, "durable", json_false());
    if (link_result(dir, "result.", k, o, &e))
        log_warn("a program's commit could not be answered", log_err(&e));
    snprintf(name, sizeof(name), "commit.%lld", (long long)k);
    unlinkat(dir, name, 0);
}

void control_stored(int dir, int64_t first, int64_t last, const struct control_answer *a)
{
    struct err e;
    for (int64_t k = first > last - RESULTS_KEPT ? first : last - RESULTS_KEPT + 1; k <= last; k++)
        if (link_result(dir, "stored.", k, make_answer(a), &e))
            log_warn("a program could not be told that it is stored", log_err(&e));
}

/* ---- what the program writes ---- */

struct scan {
    int64_t commits[COMMITS_SEEN_MAX];
    size_t n_commits;
    int64_t newest_result;
};

static DIR *open_again(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !d)
        close(fd);
    return d;
}

static void scan_names(DIR *d, struct scan *s)
{
    for (struct dirent *entry; (entry = readdir(d));) {
        int64_t commit = number_after(entry->d_name, "commit.");
        int64_t result = number_after(entry->d_name, "result.");
        if (commit && s->n_commits < COMMITS_SEEN_MAX)
            s->commits[s->n_commits++] = commit;
        if (result > s->newest_result)
            s->newest_result = result;
    }
}

/* Numbers only grow, so the newest result must stay. */
static void clear_old_results(int dir, DIR *d, int64_t newest)
{
    rewinddir(d);
    for (struct dirent *entry; (entry = readdir(d));) {
        int64_t result = number_after(entry->d_name, "result.");
        if (!result)
            result = number_after(entry->d_name, "stored.");
        if (result && result <= newest - RESULTS_KEPT)
            unlinkat(dir, entry->d_name, 0);
    }
}

static bool has_answer(int dir, const char *prefix, int64_t k)
{
    char name[40];
    struct stat st;
    snprintf(name, sizeof(name), "%s%lld", prefix, (long long)k);
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool control_next_commit(int dir, int64_t *ret_k)
{
    struct scan s = {0};
    int64_t best = 0;
    DIR *d = open_again(dir);
    if (!d)
        return false;
    scan_names(d, &s);
    for (size_t i = 0; i < s.n_commits; i++) {
        int64_t k = s.commits[i];
        if (has_answer(dir, "result.", k)) { /* answered, or given up by the program */
            char name[40];
            snprintf(name, sizeof(name), "commit.%lld", (long long)k);
            unlinkat(dir, name, 0);
        } else if (!best || k < best) {
            best = k;
        }
    }
    if (s.newest_result > RESULTS_KEPT)
        clear_old_results(dir, d, s.newest_result);
    closedir(d);
    if (best)
        *ret_k = best;
    return best != 0;
}

static int64_t optional_number(struct json_reader *r, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!v || json_is_null(v))
        return CONTROL_NONE;
    return json_opt_i64(r, key, 0, INT64_MAX, CONTROL_NONE);
}

int control_parse_numbers(
    const char *text, size_t n, const char *first_key, struct control_numbers *ret_n, struct err *e)
{
    json_t *v = NULL;
    int rc = json_parse(text, n, FILE_BYTES_MAX, &v, e);
    if (rc)
        return rc;
    struct json_reader r;
    struct control_numbers found;
    json_reader_init(&r, v, "", e);
    found.done = optional_number(&r, v, first_key);
    found.total = optional_number(&r, v, "total");
    found.may_go_on = !json_opt_bool(&r, "wait", true);
    rc = json_reader_finish_lenient(&r);
    if (!rc)
        *ret_n = found;
    json_decref(v);
    return rc;
}

static int read_numbers(
    int dir, const char *name, const char *first_key, struct control_numbers *ret_n, struct err *e)
{
    char text[FILE_BYTES_MAX];
    size_t n = 0;
    struct stat st;
    int rc = fstat(dir, &st) < 0 ? err_errno(e, errno, "looking at the task's control directory")
                                 : read_small(dir, name, st.st_uid, text, sizeof(text), &n, e);
    if (!rc)
        rc = control_parse_numbers(text, n, first_key, ret_n, e);
    if (rc && rc != ERR_NOT_FOUND)
        err_wrap(e, "the program's %s", name);
    return rc;
}

int control_read_commit(int dir, int64_t k, struct control_numbers *ret_n, struct err *e)
{
    char name[40];
    snprintf(name, sizeof(name), "commit.%lld", (long long)k);
    return read_numbers(dir, name, "progress", ret_n, e);
}

int control_read_progress(int dir, struct control_numbers *ret_n, struct err *e)
{
    return read_numbers(dir, "progress", "done", ret_n, e);
}

int64_t control_read_waited(int dir)
{
    struct control_numbers n;
    struct err e;
    return read_numbers(dir, "waited", "ms", &n, &e) || n.done == CONTROL_NONE ? -1 : n.done;
}

/* ---- what an agent before has left ---- */

/* The sequence of a result.K that says "accepted", which an agent wrote; else 0. */
static int64_t accepted_sequence(int dir, int64_t k)
{
    char name[40], text[FILE_BYTES_MAX];
    struct json_reader r;
    struct err e;
    json_t *v = NULL;
    size_t n = 0;
    snprintf(name, sizeof(name), "result.%lld", (long long)k);
    if (read_small(dir, name, geteuid(), text, sizeof(text), &n, &e) ||
        json_parse(text, n, sizeof(text), &v, &e))
        return 0;
    json_reader_init(&r, v, "", &e);
    bool accepted = json_opt_bool(&r, "ok", false) && !json_opt_bool(&r, "durable", true);
    int64_t sequence = json_opt_i64(&r, "sequence", 0, INT64_MAX, 0);
    int rc = json_reader_finish_lenient(&r);
    json_decref(v);
    return !rc && accepted ? sequence : 0;
}

void control_settle(int dir, int64_t attempt, int64_t sequence)
{
    struct err lost;
    struct scan s = {0};
    DIR *d = open_again(dir);
    if (!d)
        return;
    scan_names(d, &s);
    closedir(d);
    err_set(&lost, ERR_UNAVAILABLE, "the belay agent was restarted while this checkpoint was being stored");
    for (int64_t k = s.newest_result - RESULTS_KEPT + 1; k <= s.newest_result; k++) {
        int64_t accepted = k > 0 && !has_answer(dir, "stored.", k) ? accepted_sequence(dir, k) : 0;
        const struct control_answer a = {
            .failed = accepted > sequence ? &lost : NULL, .attempt = attempt, .sequence = sequence};
        if (accepted > 0)
            control_stored(dir, k, k, &a);
    }
}
