/* SPDX-License-Identifier: Apache-2.0
 *
 * Holes of a sparse file are reported, not sent, because a job can make one of any length at once.
 * At most one piece is in flight. After log_shipper_finish the number of tries is limited:
 * otherwise a task whose output belayd never takes could not be removed.
 */
#include "agent/task/log_shipper.h"

#include "agent/disk.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define COALESCE_MS 200
#define HOLE_MIN_BYTES 65536
#define POLL_MS 5000
#define SIZE_AGE_MAX_MS 1000 /* maximum age of the size that log_shipper_output_bytes returns */
#define CALL_MS 30000
#define RETRY_BASE_MS 400
#define RETRY_CAP_MS 10000 /* a user may be following the output */
/* Asks belayd to sync its copy, so that output can be released here, when 1/ASK_SHARE of the free
 * space is not known to be durable, but between these bounds (bytes). */
#define ASK_SHARE 32
#define ASK_MIN (256 << 10)
#define ASK_MAX (64 << 20)
#define FINISH_FAILURES_MAX 100 /* about 12 minutes */

static void pump(struct log_shipper *s);

static int64_t read_size(struct log_shipper *s)
{
    struct stat st;
    if (!s->settled)
        s->size = stat(s->path, &st) == 0 ? (int64_t)st.st_size : 0;
    s->sized_ms = clock_mono(s->timers->clock).ms;
    return s->size;
}

void log_shipper_settle(struct log_shipper *s)
{
    if (!s->started)
        return;
    read_size(s);
    s->settled = true;
}

int64_t log_shipper_output_bytes(struct log_shipper *s)
{
    if (!s->started)
        return 0;
    bool is_old =
        s->sized_ms == 0 || clock_mono(s->timers->clock).ms - s->sized_ms >= SIZE_AGE_MAX_MS;
    return is_old ? read_size(s) : s->size;
}

int64_t log_shipper_durable(const struct log_shipper *s)
{
    return s->refused || s->is_cut ? INT64_MAX : s->durable;
}

bool log_shipper_is_complete(struct log_shipper *s)
{
    return s->refused || (s->known && read_size(s) <= s->offset);
}

static int parse_size(
    const struct http_reply *reply, int64_t *ret_size, bool *ret_durable, struct err *e)
{
    json_t *v = NULL;
    struct json_reader r;
    int rc = json_parse(buf_str(&reply->body), reply->body.len, 4096, &v, e);
    if (rc)
        return rc;
    json_reader_init(&r, v, "output", e);
    int64_t size = json_req_i64(&r, "size", 0, INT64_MAX);
    *ret_durable = json_opt_bool(&r, "durable", false);
    rc = json_reader_finish_lenient(&r);
    if (!rc)
        *ret_size = size;
    json_decref(v);
    return rc;
}

static void on_failure(struct log_shipper *s, const struct err *e)
{
    int64_t wait_ms = prng_backoff_ms(s->prng, s->failures++, RETRY_BASE_MS, RETRY_CAP_MS);
    log_debug(
        "output was not shipped", log_i("job", s->job), log_err(e), log_i("retry_in_ms", wait_ms));
    if (e->kind == ERR_NOT_FOUND || (s->finishing && s->failures >= FINISH_FAILURES_MAX)) {
        log_warn("giving up on shipping output", log_i("job", s->job), log_i("attempt", s->attempt),
            log_i("unshipped_bytes", read_size(s) - s->offset), log_err(e));
        s->refused = true;
        wait_ms = 0;
    }
    timer_start(s->timers, &s->retry, wait_ms);
}

static void on_reply(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct log_shipper *s = ctx;
    struct err e;
    int64_t size, hole = s->hole;
    bool durable;
    s->call = NULL;
    s->hole = 0;
    if (!s->started)
        return;
    int rc = peer_check(failed, reply, &e);
    if (!rc)
        rc = parse_size(reply, &size, &durable, &e);
    if (rc) {
        on_failure(s, &e);
        return;
    }
    s->no_holes = s->no_holes || (hole > 0 && size <= s->offset);
    s->known = true;
    s->is_cut = size >= WIRE_OUTPUT_CUT;
    s->offset = size;
    if (durable)
        s->durable = size;
    s->failures = 0;
    pump(s);
    s->moved(s->ctx);
}

/* Whether to ask for durability: a sync costs belayd time, and is of use only when space here is
 * needed. */
static bool wants_durable(const struct log_shipper *s)
{
    struct disk_space d;
    int64_t most = ASK_MAX;
    if (disk_read(s->path, &d))
        most = min_i64(most, d.free_bytes / ASK_SHARE);
    return s->offset - s->durable >= (most > ASK_MIN ? most : ASK_MIN);
}

static void post(struct log_shipper *s, const void *p, size_t n)
{
    char path[128];
    int k = snprintf(path, sizeof(path), "/agent/v1/output/%lld/%lld?offset=%lld",
        (long long)s->job, (long long)s->attempt, (long long)s->offset);
    if (s->hole > 0)
        k += snprintf(path + k, sizeof(path) - (size_t)k, "&hole=%lld", (long long)s->hole);
    if (wants_durable(s))
        snprintf(path + k, sizeof(path) - (size_t)k, "&durable=1");
    s->call = peer_post(s->peer, path, p, n, CALL_MS, on_reply, s);
}

/* Returns the bytes read, or -1 with errno set. */
static ssize_t read_output(const struct log_shipper *s, int64_t offset, char *piece, size_t max)
{
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : pread(fd, piece, max, offset);
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return n;
}

/* Length of the hole that begins where belayd's copy ends; 0 = none worth reporting. */
static int64_t find_hole(const struct log_shipper *s)
{
    int fd = s->no_holes ? -1 : open(s->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    off_t data = lseek(fd, (off_t)s->offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        data = (off_t)s->size; /* the hole reaches to the end */
    close(fd);
    return data - s->offset >= HOLE_MIN_BYTES ? data - s->offset : 0;
}

static void post_piece(struct log_shipper *s)
{
    s->hole = find_hole(s);
    if (s->hole > 0) {
        post(s, "", 0);
        return;
    }
    char *piece = mem_alloc(WIRE_OUTPUT_MAX);
    ssize_t n = read_output(s, s->offset, piece, WIRE_OUTPUT_MAX);
    struct err e;
    if (n > 0) {
        post(s, piece, (size_t)n);
    } else {
        err_errno(&e, n < 0 ? errno : EIO, "reading %s", s->path);
        on_failure(s, &e);
    }
    free(piece);
}

char *log_shipper_rest(struct log_shipper *s, size_t max, int64_t *ret_offset, size_t *ret_n)
{
    if (!s->started || log_shipper_is_complete(s))
        return NULL;
    int64_t last = s->size > (int64_t)max ? s->size - (int64_t)max : 0;
    int64_t offset = s->known ? s->offset : last;
    char *rest = mem_alloc(max);
    ssize_t n = read_output(s, offset, rest, max);
    if (n <= 0) {
        free(rest);
        return NULL;
    }
    *ret_offset = offset;
    *ret_n = (size_t)n;
    return rest;
}

static void pump(struct log_shipper *s)
{
    if (!s->started || s->call || timer_is_running(&s->retry))
        return;
    bool complete = log_shipper_is_complete(s);
    if (complete && s->finishing) {
        s->finishing = false;
        s->flushed(s->ctx);
    } else if (complete || !identity_is_joined(s->peer->id)) {
        return;
    } else if (!s->known) {
        post(s, "", 0); /* asks how much belayd has */
    } else {
        post_piece(s);
    }
}

static void on_retry(struct timer *timer, void *ctx)
{
    (void)timer;
    pump(ctx);
}

static void on_change(void *ctx)
{
    pump(ctx);
}

void log_shipper_start(struct log_shipper *s, bool is_new)
{
    s->started = true;
    s->known = is_new;
    s->sized_ms = is_new ? clock_mono(s->timers->clock).ms : 0; /* a new task has no output yet */
    timer_init(&s->retry, on_retry, s);
    s->watch = watch_start(s->watches, s->path, COALESCE_MS, POLL_MS, on_change, s);
    timer_start(s->timers, &s->retry, 0);
}

void log_shipper_kick(struct log_shipper *s)
{
    pump(s);
}

void log_shipper_finish(struct log_shipper *s)
{
    s->finishing = true;
    s->failures = 0;
    if (s->started && !s->call)
        timer_start(s->timers, &s->retry, 0);
}

void log_shipper_stop(struct log_shipper *s)
{
    if (!s->started)
        return;
    s->started = false;
    watch_stop(s->watch);
    s->watch = NULL;
    timer_stop(s->timers, &s->retry);
    http_cancel(s->peer->http, s->call);
}

bool log_shipper_is_idle(const struct log_shipper *s)
{
    return s->call == NULL;
}
