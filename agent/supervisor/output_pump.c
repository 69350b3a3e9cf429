/* SPDX-License-Identifier: Apache-2.0
 *
 * The free space of the disk is read once for a grant of some bytes, not for each piece. Grants
 * are small if little space is free, and they expire, so that all supervisors together cannot write
 * more than is free.
 */
#include "agent/supervisor/output_pump.h"

#include "agent/disk.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRANT_MIN 4096
#define GRANT_MAX (1 << 20)
#define GRANT_SHARE 8
#define GRANT_MS 1000
#define PIECES_A_TURN 16
#define TURN_MS 4           /* pause after a turn; limits a stream to about 250 MB/s */
#define SMALL 4096          /* bytes; a smaller piece ends the turn */
#define STALLED_CHECK_MS 50 /* between checks of the free space while output is stalled */
#define CUT_CHECK_MS 1000   /* between checks of the free space while output is cut */
#define RELEASE_SHARE 4     /* releases when the task uses 1/4 of the spare space */
#define RELEASE_MIN 65536   /* bytes; the step in which space is released */
#define SHARE_MIN 65536     /* bytes; a task with less does not count for its user */
#define REST_MAX (4 << 20) /* bytes read at the end of a pipe that a surviving process keeps open */
#define CUT_NOTE                                                                                   \
    "\n---- belay: output is missing from here on: this node's disk has no space for it. The job " \
    "goes on ----\n"

int64_t output_space(int64_t spare, int64_t own, int64_t others)
{
    int64_t of_user = spare - own - others, of_task = spare / OUTPUT_OWN_SHARE - own;
    int64_t space = of_user > of_task ? of_user : of_task;
    if (spare <= 0 || space <= 0)
        return 0;
    space = min_i64(space / GRANT_SHARE, GRANT_MAX);
    return min_i64(space > GRANT_MIN ? space : GRANT_MIN, spare);
}

/* ---- the disk ---- */

static int64_t blocks_of(int fd, int64_t *ret_size)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        st = (struct stat){0};
    *ret_size = (int64_t)st.st_size;
    return (int64_t)st.st_blocks * 512;
}

/* Bytes on the disk, and those that the output writer still has to copy to output.log. */
static int64_t own_bytes(const struct output_pump *p)
{
    int64_t size, sum = blocks_of(p->log, &size);
    for (size_t i = 0; i < p->n; i++) {
        int64_t copied = output_writer_copied(p->writer, (int)i);
        if (p->streams[i].to == p->log)
            continue;
        sum += blocks_of(p->streams[i].to, &size);
        sum += copied < size ? size - copied : 0;
    }
    return sum;
}

static void release(int fd, int64_t *released, int64_t to)
{
    to -= to % RELEASE_MIN;
    if (to - *released < RELEASE_MIN)
        return;
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, *released, to - *released) == 0)
        *released = to;
}

/* Releases of the log what belayd has, and of all files only what the output writer has copied. */
static void release_all(struct output_pump *p)
{
    int64_t size, shipped = p->shipped;
    bool is_split = p->streams[0].to != p->log;
    blocks_of(p->log, &size);
    shipped = min_i64(shipped, size);
    if (!is_split)
        shipped = min_i64(shipped, output_writer_copied(p->writer, 0));
    release(p->log, &p->log_released, shipped);
    for (size_t i = 0; is_split && i < p->n; i++) {
        struct output_stream *s = &p->streams[i];
        blocks_of(s->to, &size);
        release(s->to, &s->released, min_i64(size, output_writer_copied(p->writer, (int)i)));
    }
}

/* Bytes free beyond the reserve; output that is left after the program's end (is_last) may use half
 * of the reserve. False if unknown. */
static bool read_spare(const struct output_pump *p, bool is_last, int64_t *ret_spare)
{
    struct disk_space d;
    if (!disk_read_fd(p->log, &d))
        return false;
    *ret_spare = d.free_bytes - fs_reserve(d.total_bytes) / (is_last ? 2 : 1);
    return true;
}

static int64_t find_space(struct output_pump *p, bool is_last)
{
    int64_t spare;
    if (!read_spare(p, is_last, &spare))
        return GRANT_MIN;
    int64_t own = own_bytes(p);
    if (own >= (spare > 0 ? spare / RELEASE_SHARE : 0)) {
        release_all(p);
        own = own_bytes(p);
        if (!read_spare(p, is_last, &spare))
            return GRANT_MIN;
    }
    output_shares_set(p->shares, p->user, own >= SHARE_MIN ? own : 0);
    return output_space(spare, own, output_shares_others(p->shares, p->user));
}

static int64_t granted(struct output_pump *p, bool is_last)
{
    if (p->grant > 0 && clock_system_ms() < p->grant_until)
        return p->grant;
    p->grant = find_space(p, is_last);
    p->grant_until = clock_system_ms() + GRANT_MS;
    return p->grant;
}

/* ---- a stream ---- */

/* Returns the bytes written, or given up after an error; 0 if the disk is full despite the
 * grant. */
static size_t write_some(struct output_pump *p, struct output_stream *s, size_t n)
{
    ssize_t done = write(s->to, s->piece + s->at, n);
    if (done < 0 && errno == EINTR)
        done = 0;
    if (done < 0 && errno != ENOSPC && errno != EDQUOT) { /* waiting cannot help */
        log_error("a task's output cannot be written", log_i("errno", errno));
        s->lost += (int64_t)n;
        s->at += n;
        return n;
    }
    if (done <= 0) {
        p->grant = 0;
        p->grant_until = clock_system_ms() + STALLED_CHECK_MS;
        return 0;
    }
    p->grant -= done;
    s->at += (size_t)done;
    return (size_t)done;
}

/* Notes are short and may use the reserve. */
static void note(const struct output_stream *s, const char *text, int n)
{
    if (write(s->to, text, (size_t)n) != n)
        log_debug("a note on missing output could not be written");
}

static void cut(struct output_pump *p)
{
    p->is_cut = true;
    log_warn("a task's output is cut: this node's disk has no space for it");
    for (size_t i = 0; i < p->n; i++)
        p->streams[i].lost = 0;
}

static void end_cut(struct output_pump *p)
{
    char text[128];
    p->is_cut = false;
    for (size_t i = 0; i < p->n; i++) {
        struct output_stream *s = &p->streams[i];
        int n = snprintf(text, sizeof(text),
            "---- belay: %lld bytes of output are missing here ----\n", (long long)s->lost);
        if (s->lost > 0)
            note(s, text, n);
        s->lost = 0;
    }
}

static void drop_piece(struct output_stream *s)
{
    if (s->at < s->n && s->lost == 0)
        note(s, CUT_NOTE, (int)sizeof(CUT_NOTE) - 1);
    s->lost += (int64_t)(s->n - s->at);
    s->at = s->n;
}

/* False if the stream has to wait for free space. */
static bool put(struct output_pump *p, struct output_stream *s, bool is_last)
{
    while (s->at < s->n && !p->is_cut) {
        int64_t space = granted(p, is_last);
        size_t n = s->n - s->at < (size_t)space ? s->n - s->at : (size_t)space;
        if (n == 0 || write_some(p, s, n) == 0)
            return false;
        p->stalled_since = 0;
    }
    if (p->is_cut)
        drop_piece(s);
    return true;
}

static void make_piece(const struct output_pump *p, struct output_stream *s)
{
    if (s->piece)
        return;
    /* not zeroed: the next fork would copy its pages */
    s->piece = mem_resize(NULL, p->mask ? mask_room(p->mask, OUTPUT_PIECE) : OUTPUT_PIECE, 1);
    s->masked = p->mask ? mask_stream_create(p->mask) : NULL;
}

/* False if there is nothing to read for now. */
static bool read_stream(const struct output_pump *p, struct output_stream *s)
{
    make_piece(p, s);
    ssize_t n = read(s->from, s->piece, OUTPUT_PIECE);
    s->at = 0;
    s->n = n > 0 ? (size_t)n : 0;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        close(s->from);
        s->from = -1;
    }
    if (s->masked)
        s->n = mask_turn(s->masked, s->piece, s->n, s->from < 0);
    return n > 0 || s->n > 0;
}

static void stall(struct output_pump *p)
{
    if (p->stalled_since == 0)
        p->stalled_since = clock_system_ms();
    p->resume_at = clock_system_ms() + STALLED_CHECK_MS;
    if (clock_system_ms() - p->stalled_since < p->stall_ms)
        return;
    cut(p);
    p->stalled_since = 0;
    p->grant_until = clock_system_ms() + CUT_CHECK_MS;
}

/* Checks the free space again after CUT_CHECK_MS, and ends the cut if there is enough. */
static void check_space(struct output_pump *p)
{
    if (!p->is_cut || clock_system_ms() < p->grant_until)
        return;
    p->grant = find_space(p, false);
    p->grant_until = clock_system_ms() + CUT_CHECK_MS;
    if (p->grant >= OUTPUT_PIECE) /* enough that it is not cut again at once */
        end_cut(p);
}

static void pump_stream(struct output_pump *p, struct output_stream *s)
{
    for (int i = 0; i < PIECES_A_TURN; i++) {
        if (s->at == s->n && (s->from < 0 || !read_stream(p, s)))
            return;
        if (!put(p, s, false)) {
            stall(p);
            return;
        }
        if (s->n < SMALL)
            break; /* lets more output arrive before the next read */
    }
    p->resume_at = clock_system_ms() + TURN_MS;
}

/* ---- all of them ---- */

static int make_pipe(struct output_stream *s, uid_t owner, gid_t group, int *ret_end, struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, errno, "making a pipe");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (fchown(ends[1], owner, group) < 0)
        log_debug("a task cannot open its output by name");
    s->from = ends[0];
    *ret_end = ends[1];
    return 0;
}

int output_pump_open(struct output_pump *p, const int *files, size_t n, uid_t owner, gid_t group,
    int *ret_ends, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < OUTPUT_STREAMS; i++)
        p->streams[i].from = -1;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        p->streams[i].to = files[i];
        rc = make_pipe(&p->streams[i], owner, group, &ret_ends[i], e);
        p->n += rc == 0;
    }
    return rc;
}

int output_pump_poll(const struct output_pump *p, struct pollfd *fds)
{
    int64_t now = clock_system_ms(), left = p->resume_at - now;
    bool waits = false;
    for (size_t i = 0; i < OUTPUT_STREAMS; i++) {
        const struct output_stream *s = &p->streams[i];
        bool is_open = i < p->n && s->from >= 0;
        waits = waits || (i < p->n && s->at < s->n) || (is_open && left > 0);
        fds[i] = (struct pollfd){
            .fd = is_open && left <= 0 && s->at == s->n ? s->from : -1, .events = POLLIN};
    }
    return !waits ? -1 : left > 0 ? (int)left : 0;
}

void output_pump_turn(struct output_pump *p, const struct pollfd *fds)
{
    if (clock_system_ms() < p->resume_at)
        return;
    check_space(p);
    for (size_t i = 0; i < p->n; i++)
        if (fds[i].revents || p->streams[i].at < p->streams[i].n)
            pump_stream(p, &p->streams[i]);
}

void output_pump_shipped(struct output_pump *p, int64_t bytes)
{
    if (bytes <= p->shipped)
        return;
    p->shipped = bytes;
    p->grant = 0; /* the next write checks the space again, and releases some */
    if (p->stalled_since > 0)
        p->resume_at = 0;
}

static void finish_stream(struct output_pump *p, struct output_stream *s)
{
    int64_t left = REST_MAX;
    do {
        left -= (int64_t)(s->n - s->at);
        if (!put(p, s, true))
            drop_piece(s);
    } while (s->from >= 0 && left > 0 && read_stream(p, s));
    if (s->from >= 0 && s->masked) { /* what it holds back: no more of it will come */
        s->at = 0;
        s->n = mask_turn(s->masked, s->piece, 0, true);
        if (!put(p, s, true))
            drop_piece(s);
    }
    if (s->from >= 0)
        close(s->from);
    mask_stream_destroy(s->masked);
    free(s->piece);
    *s = (struct output_stream){.from = -1, .to = s->to, .lost = s->lost};
}

void output_pump_finish(struct output_pump *p)
{
    p->grant = 0;
    for (size_t i = 0; i < p->n; i++)
        finish_stream(p, &p->streams[i]);
    end_cut(p);
    if (p->n > 0)
        output_shares_set(p->shares, p->user, 0);
    p->n = 0;
}
