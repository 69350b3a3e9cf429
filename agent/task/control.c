/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/control.h"

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
#include <time.h>
#include <unistd.h>

#define FILE_BYTES_MAX 4096
#define RESULTS_KEPT 8 /* of each kind; the program may still be reading them */
#define TEMP_NAME "control-new"
#define DISCARD_BLOCKS_MAX 128 /* of 512 bytes; larger files are not freed on the loop */
#define DISCARD_COST 6         /* a removal counts as this many names of CONTROL_SCAN_MAX */
#define SETTLE_NAMES_MAX 4096  /* names read when cleaning up after an earlier agent */

void control_init(struct control *c)
{
    *c = (struct control){.fd = -1, .task_fd = -1};
}

void control_open(struct control *c, const char *task_dir)
{
    if (c->fd >= 0)
        return;
    c->task_fd = open(task_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (c->task_fd >= 0)
        c->fd = openat(c->task_fd, "control", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (c->fd < 0)
        control_close(c);
}

void control_close(struct control *c)
{
    if (c->scan)
        closedir(c->scan);
    if (c->task_fd >= 0)
        close(c->task_fd);
    if (c->fd >= 0)
        close(c->fd);
    control_init(c);
}

/* ---- removing files ---- */

static int move_out(struct control *c, int dir, const char *name, const char *as)
{
    if (renameat2(dir, name, c->task_fd, as, RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EINVAL ? renameat(dir, name, c->task_fd, as) : -1;
}

void control_discard(struct control *c, int dir, const char *name)
{
    struct stat st;
    struct timespec now;
    char as[64];
    clock_gettime(CLOCK_REALTIME, &now); /* makes the name differ from those of earlier agents */
    snprintf(as, sizeof(as), "discarded.%lld.%ld.%llu", (long long)now.tv_sec, now.tv_nsec,
        (unsigned long long)++c->discarded);
    if (c->task_fd < 0 || (move_out(c, dir, name, as) < 0 && errno == EXDEV))
        unlinkat(dir, name, 0);
    else if (fstatat(c->task_fd, as, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
             st.st_blocks <= DISCARD_BLOCKS_MAX)
        unlinkat(c->task_fd, as, 0);
}

/* ---- files ---- */

static int write_temp(const struct control *c, const char *text, struct err *e)
{
    unlinkat(c->task_fd, TEMP_NAME, 0);
    int fd =
        openat(c->task_fd, TEMP_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return err_errno(e, errno, "writing for the task's control directory");
    fchmod(fd, 0644);
    int rc = fs_write_all(fd, text, strlen(text), e);
    close(fd);
    return rc;
}

/* A rename over a large file would free its blocks here, on the loop, so the files are
 * exchanged. */
static int replace_name(struct control *c, const char *name)
{
    struct stat st;
    if (fstatat(c->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        renameat2(c->task_fd, TEMP_NAME, c->fd, name, RENAME_EXCHANGE) < 0)
        return renameat(c->task_fd, TEMP_NAME, c->fd, name);
    control_discard(c, c->task_fd, TEMP_NAME);
    return 0;
}

static int replace(struct control *c, const char *name, json_t *value, struct err *e)
{
    char *text = json_dump_text(value);
    int rc = write_temp(c, text, e);
    if (!rc && replace_name(c, name) < 0)
        rc = err_errno(e, errno, "writing %s in the task's control directory", name);
    free(text);
    json_decref(value);
    return rc;
}

/* Reads only files of `owner`: errors about a file's content reach the program, so it must not be
 * another user's file, hard-linked here. */
static int read_small(
    int dir, const char *name, uid_t owner, char *text, size_t size, size_t *ret_n, struct err *e)
{
    struct stat st;
    int fd = fs_open_of(dir, name, owner);
    if (fd < 0 && (errno == ELOOP || errno == EINVAL || errno == EPERM))
        return err_set(e, ERR_INVALID, "%s is not a file of the job's user", name);
    if (fd < 0)
        return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, "there is no %s", name)
                               : err_errno(e, errno, "reading %s", name);
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

int control_request(
    struct control *c, int64_t id, const char *reason, int64_t deadline_ms, struct err *e)
{
    json_t *o = json_object();
    json_object_set_new(o, "id", json_integer(id));
    json_object_set_new(o, "reason", json_string(reason));
    json_object_set_new(o, "deadline_ms", number_or_null(deadline_ms));
    return replace(c, "request", o, e);
}

void control_request_done(struct control *c)
{
    control_discard(c, c->fd, "request");
}

int control_notice(
    struct control *c, const char *kind, int64_t deadline_ms, int64_t now_ms, struct err *e)
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
    return replace(c, "notice", o, e);
}

static int link_result(
    struct control *c, const char *prefix, int64_t k, json_t *value, struct err *e)
{
    char name[40];
    char *text = json_dump_text(value);
    snprintf(name, sizeof(name), "%s%lld", prefix, (long long)k);
    int rc = write_temp(c, text, e);
    if (!rc && linkat(c->task_fd, TEMP_NAME, c->fd, name, 0) < 0 && errno != EEXIST)
        rc = err_errno(e, errno, "writing %s in the task's control directory", name);
    unlinkat(c->task_fd, TEMP_NAME, 0);
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

void control_answer(struct control *c, int64_t k, const struct control_answer *a)
{
    struct err e;
    char name[40];
    json_t *o = make_answer(a);
    if (!a->failed)
        json_object_set_new(o, "stop", json_boolean(a->stop));
    if (!a->failed && a->accepted)
        json_object_set_new(o, "durable", json_false());
    if (link_result(c, "result.", k, o, &e) && !c->is_warned) {
        c->is_warned = true; /* logged once per task */
        log_warn("a program's commit could not be answered", log_err(&e));
    }
    snprintf(name, sizeof(name), "commit.%lld", (long long)k);
    control_discard(c, c->fd, name);
}

void control_stored(struct control *c, int64_t first, int64_t last, const struct control_answer *a)
{
    struct err e;
    for (int64_t k = first > last - RESULTS_KEPT ? first : last - RESULTS_KEPT + 1; k <= last; k++)
        if (link_result(c, "stored.", k, make_answer(a), &e) && !c->is_warned) {
            c->is_warned = true;
            log_warn("the outcome of a commit could not be written", log_err(&e));
        }
}

/* ---- what the program writes ---- */

static DIR *open_again(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !d)
        close(fd);
    return d;
}

static bool has_answer(int dir, const char *prefix, int64_t k)
{
    char name[40];
    struct stat st;
    snprintf(name, sizeof(name), "%s%lld", prefix, (long long)k);
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void note_result(struct control *c, int64_t k)
{
    if (k > c->newest)
        c->newest = k;
    if (k && (!c->oldest || k < c->oldest))
        c->oldest = k;
}

static int64_t result_number(const char *name)
{
    int64_t k = number_after(name, "result.");
    return k ? k : number_after(name, "stored.");
}

/* note_name and clear_name return their cost in names of CONTROL_SCAN_MAX. */

static int note_name(struct control *c, const char *name)
{
    int64_t k = number_after(name, "commit.");
    if (!k) {
        note_result(c, number_after(name, "result."));
        return 1;
    }
    if (has_answer(c->fd, "result.", k)) { /* answered, or abandoned by the program */
        control_discard(c, c->fd, name);
        return DISCARD_COST;
    }
    if (!c->first || k < c->first)
        c->first = k;
    return 2;
}

/* Removes a result, unless it is among the newest: the program takes its next number from those. */
static int clear_name(struct control *c, const char *name)
{
    int64_t k = result_number(name);
    if (!k || k > c->newest - RESULTS_KEPT)
        return 1;
    control_discard(c, c->fd, name);
    return DISCARD_COST;
}

static bool begin_scan(struct control *c)
{
    c->first = c->newest = c->oldest = 0;
    c->is_clearing = false;
    c->scan = open_again(c->fd);
    return c->scan != NULL;
}

/* Reads names until *left is used up. False if there are more. */
static bool scan_part(struct control *c, int *left)
{
    while (*left > 0) {
        const struct dirent *entry = readdir(c->scan);
        if (!entry)
            return true;
        *left -= c->is_clearing ? clear_name(c, entry->d_name) : note_name(c, entry->d_name);
    }
    return false;
}

enum control_found control_next_commit(struct control *c, int64_t *ret_k)
{
    int left = CONTROL_SCAN_MAX;
    if (!c->scan && !begin_scan(c))
        return CONTROL_NOTHING;
    if (!scan_part(c, &left))
        return CONTROL_MORE;
    if (!c->is_clearing && c->oldest && c->oldest <= c->newest - RESULTS_KEPT) {
        c->is_clearing = true;
        rewinddir(c->scan);
        if (!scan_part(c, &left))
            return CONTROL_MORE;
    }
    closedir(c->scan);
    c->scan = NULL;
    if (c->first)
        *ret_k = c->first;
    return c->first ? CONTROL_COMMIT : CONTROL_NOTHING;
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

static int read_numbers(const struct control *c, const char *name, const char *first_key,
    struct control_numbers *ret_n, struct err *e)
{
    char text[FILE_BYTES_MAX];
    size_t n = 0;
    struct stat st;
    int rc = fstat(c->fd, &st) < 0 ? err_errno(e, errno, "reading the task's control directory")
                                   : read_small(c->fd, name, st.st_uid, text, sizeof(text), &n, e);
    if (!rc)
        rc = control_parse_numbers(text, n, first_key, ret_n, e);
    if (rc && rc != ERR_NOT_FOUND)
        err_wrap(e, "the program's %s", name);
    return rc;
}

int control_read_commit(
    const struct control *c, int64_t k, struct control_numbers *ret_n, struct err *e)
{
    char name[40];
    snprintf(name, sizeof(name), "commit.%lld", (long long)k);
    return read_numbers(c, name, "progress", ret_n, e);
}

int control_read_progress(const struct control *c, struct control_numbers *ret_n, struct err *e)
{
    return read_numbers(c, "progress", "done", ret_n, e);
}

int64_t control_read_waited(const struct control *c)
{
    struct control_numbers n;
    struct err e;
    return read_numbers(c, "waited", "ms", &n, &e) || n.done == CONTROL_NONE ? -1 : n.done;
}

/* ---- what an earlier agent left ---- */

/* The sequence in a result.K that an agent wrote for an accepted commit ("durable": false); 0 if it
 * is none. */
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

static int64_t newest_result(const struct control *c)
{
    int64_t newest = 0, k;
    DIR *d = open_again(c->fd);
    const struct dirent *entry;
    for (int i = 0; d && i < SETTLE_NAMES_MAX && (entry = readdir(d)); i++)
        if ((k = number_after(entry->d_name, "result.")) > newest)
            newest = k;
    if (d)
        closedir(d);
    return newest;
}

void control_settle(struct control *c, int64_t attempt, int64_t sequence)
{
    struct err lost;
    int64_t newest = newest_result(c);
    err_set(&lost, ERR_UNAVAILABLE,
        "the belay agent was restarted while this checkpoint was being stored");
    for (int64_t k = newest - RESULTS_KEPT + 1; k <= newest; k++) {
        int64_t accepted =
            k > 0 && !has_answer(c->fd, "stored.", k) ? accepted_sequence(c->fd, k) : 0;
        const struct control_answer a = {
            .failed = accepted > sequence ? &lost : NULL, .attempt = attempt, .sequence = sequence};
        if (accepted > 0)
            control_stored(c, k, k, &a);
    }
}
