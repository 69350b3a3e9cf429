/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of jobs: pieces at offsets, and the single continuous log for readers, of which shown
 * parts never change.
 */
#include "tests/scheduler/logs_rig.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- pieces ---- */

static void pieces_join_and_a_repeated_one_changes_nothing(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    assert_int_equal(logs_rig_append(w, 1, 0, ""), 0); /* queries the size */
    assert_int_equal(logs_rig_append(w, 1, 0, "one "), 4);
    assert_int_equal(logs_rig_append(w, 1, 4, "two "), 8);
    assert_int_equal(logs_rig_append(w, 1, 0, "one "), 8);
    assert_int_equal(logs_rig_append(w, 1, 4, "two "), 8);
    assert_int_equal(logs_rig_append(w, 1, 6, "o three"), 13); /* half old, half new */
    logs_rig_check(w, "one two three", true);
}

static void a_gap_is_refused_by_telling_the_size(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    assert_int_equal(logs_rig_append(w, 1, 0, "abc"), 3);
    assert_int_equal(logs_rig_append(w, 1, 5, "xyz"), 3);
    assert_int_equal(logs_rig_append(w, 1, LOGS_OFFSET_MAX, "xyz"), 3);
    logs_rig_check(w, "abc", true);
}

static void output_of_other_attempts_and_jobs_is_apart(void **state)
{
    struct logs_rig *w = *state;
    struct err e;
    int64_t size, next;
    bool complete;
    struct buf out = {0};
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_rig_append(w, 1, 0, "mine");
    assert_int_equal(logs_append(&w->logs, w->reader, JOB + 1, 1, 0, 0, "theirs", 6, &size, &e), 0);
    logs_rig_check(w, "mine", true);
    assert_int_equal(logs_read(&w->logs, w->reader, &(struct logs_part){.job = JOB + 2}, 100, &out,
                         &next, &complete, &e),
        0);
    assert_true(out.len == 0 && next == 0 && complete);
}

/* This much output, then the line that marks the cut. */
static void check_cut(const char *text, const char *kept, const char *why)
{
    assert_int_equal(strncmp(text, kept, strlen(kept)), 0);
    const char *line = text + strlen(kept);
    assert_true(str_starts(line, "\n---- belay: output is not kept from here on: "));
    assert_non_null(strstr(line, why));
    const char *end = strstr(line, " ----\n");
    assert_non_null(end);
    assert_string_equal(end, " ----\n");
}

static void put_job(struct logs_rig *w, int64_t id, const char *user)
{
    struct db_batch b = {0};
    struct job_row *j = mem_alloc(sizeof(*j));
    struct err e;
    j->id = id;
    STR_COPY(j->user, user);
    b.changes.jobs = j;
    b.changes.n_jobs = 1;
    if (db_commit(w->db, &b, &e) != 0)
        fail_msg("%s", e.text);
    db_batch_deinit(&b);
}

static void on_cut(void *ctx, int64_t job, int64_t attempt, int32_t rank, const char *why)
{
    struct logs_rig *w = ctx;
    (void)job, (void)attempt, (void)rank;
    w->n_cuts++;
    STR_COPY(w->why, why);
}

static int64_t append_of(
    struct logs_rig *w, int64_t job, int64_t attempt, int64_t offset, const void *p, size_t n)
{
    int64_t size = -1;
    struct err e;
    if (logs_append(&w->logs, w->reader, job, attempt, 0, offset, p, n, &size, &e) != 0)
        fail_msg("%s", e.text);
    return size;
}

static void all_attempts_of_a_job_share_what_is_kept_of_it(void **state)
{
    struct logs_rig *w = *state;
    put_job(w, JOB, "ann");
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_append(w, 1, 0, "0123456");
    logs_limit(
        &w->logs, &(struct log_limits){.job_bytes = 10}, on_cut); /* existing output counts */
    logs_rig_put(w, 2, ATTEMPT_RUNNING);
    assert_int_equal(logs_rig_append(w, 2, 0, "ab"), 2);
    assert_int_equal(logs_rig_append(w, 2, 2, "cd"), LOGS_OFFSET_MAX);
    assert_int_equal(logs_rig_append(w, 2, 2, "cd"), LOGS_OFFSET_MAX);
    assert_int_equal(logs_rig_append(w, 2, 0, ""), LOGS_OFFSET_MAX);
    assert_int_equal(w->n_cuts, 1);
    assert_non_null(strstr(w->why, "10 B"));
    struct piece p = logs_rig_read_at(w, 0, 2000);
    check_cut(strstr(p.text, "beginning ----\n") + 15, "abc", "output for a job (10 B)");
    assert_true(p.complete);
    logs_rig_put(w, 2, ATTEMPT_ENDED);
    logs_rig_put(w, 3, ATTEMPT_RUNNING);
    assert_int_equal(logs_rig_append(w, 3, 0, "x"), LOGS_OFFSET_MAX);
    assert_int_equal(w->n_cuts, 2);
    assert_int_equal(w->logs.stats.bytes, 10);
}

static void the_end_of_cut_output_is_not_awaited(void **state)
{
    struct logs_rig *w = *state;
    put_job(w, JOB, "ann");
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_limit(&w->logs, &(struct log_limits){.job_bytes = 3}, on_cut);
    logs_rig_append(w, 1, 0, "abcdef");
    logs_await(&w->logs, JOB, 1, 0, 1000);
    assert_false(logs_is_awaited(&w->logs, JOB, 1, 0));
    assert_true(logs_rig_read_at(w, 0, 2000).complete);
}

static void what_is_kept_of_a_user_within_a_day_is_shared_by_their_jobs(void **state)
{
    struct logs_rig *w = *state;
    put_job(w, 1, "ann");
    put_job(w, 2, "ann");
    put_job(w, 3, "bob");
    put_job(w, 4, "ann");
    logs_limit(&w->logs, &(struct log_limits){.job_bytes = 100, .user_day_bytes = 10}, on_cut);
    assert_int_equal(append_of(w, 1, 1, 0, "01234567", 8), 8);
    vtimers_advance(&w->vt, 5 * 3600000);
    assert_int_equal(append_of(w, 2, 1, 0, "01234567", 8), LOGS_OFFSET_MAX);
    assert_non_null(strstr(w->why, "within a day (10 B)"));
    assert_int_equal(append_of(w, 3, 1, 0, "01234567", 8), 8);
    assert_int_equal(append_of(w, 4, 1, 0, "x", 1), LOGS_OFFSET_MAX);
    vtimers_advance(&w->vt, 20 * 3600000); /* the eight bytes are a day old, the two are not */
    assert_int_equal(append_of(w, 1, 1, 8, "01234567", 8), 16);
    assert_int_equal(append_of(w, 2, 1, 8, "x", 1), LOGS_OFFSET_MAX); /* it stays cut */
    assert_int_equal(append_of(w, 4, 2, 0, "x", 1), LOGS_OFFSET_MAX);
    vtimers_advance(&w->vt, 30 * 3600000LL);
    assert_int_equal(append_of(w, 4, 3, 0, "0123456789", 10), 10);
}

static void holes_take_no_space(void **state)
{
    struct logs_rig *w = *state;
    struct stat st;
    char *path = mem_printf("%s/1/%d/1.log", w->dir, JOB);
    put_job(w, JOB, "ann");
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_limit(&w->logs, &(struct log_limits){.job_bytes = 10}, on_cut);
    logs_rig_append(w, 1, 0, "ab");
    assert_int_equal(append_of(w, JOB, 1, 2, NULL, 200 << 20), 2 + (200 << 20));
    assert_int_equal(append_of(w, JOB, 1, 2, NULL, 200 << 20), 2 + (200 << 20));
    assert_int_equal(logs_rig_append(w, 1, 2 + (200 << 20), "end"), 5 + (200 << 20));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5 + (200 << 20));
    assert_true(st.st_blocks * 512 < 1 << 20);
    assert_string_equal(logs_rig_read_at(w, -3, 2000).text, "end");
    assert_int_equal(
        append_of(w, JOB, 1, 5 + (200 << 20), NULL, LOGS_ATTEMPT_BYTES_MAX), LOGS_OFFSET_MAX);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < LOGS_ATTEMPT_BYTES_MAX + 1000);
    free(path);
}

static void beyond_the_limit_the_rest_is_dropped_with_a_line_that_says_so(void **state)
{
    struct logs_rig *w = *state;
    char *path = mem_printf("%s/1/%d/1.log", w->dir, JOB);
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_rig_append(w, 1, 0, "x");
    assert_int_equal(truncate(path, LOGS_ATTEMPT_BYTES_MAX - 3), 0); /* sparse */
    assert_int_equal(logs_rig_append(w, 1, LOGS_ATTEMPT_BYTES_MAX - 3, "abcdef"), LOGS_OFFSET_MAX);
    assert_int_equal(logs_rig_append(w, 1, LOGS_ATTEMPT_BYTES_MAX + 3, "ghi"), LOGS_OFFSET_MAX);
    assert_int_equal(logs_rig_append(w, 1, LOGS_ATTEMPT_BYTES_MAX - 3, "ab"), LOGS_OFFSET_MAX);
    logs_await(&w->logs, JOB, 1, 0, LOGS_ATTEMPT_BYTES_MAX + 3);
    struct piece p = logs_rig_read_at(w, LOGS_ATTEMPT_BYTES_MAX - 3, 2000);
    check_cut(p.text, "abc", "an attempt (4 GiB)");
    assert_true(p.complete);
    free(path);
}

static void a_disk_error_is_reported(void **state)
{
    struct logs_rig *w = *state;
    struct err e = {0};
    int64_t size = -1;
    char *path = mem_printf("%s/1", w->dir);
    assert_int_equal(fs_write_atomic(path, "", 0, 0600, &e), 0); /* in the place of the directory */
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    assert_true(logs_append(&w->logs, w->reader, JOB, 1, 0, 0, "x", 1, &size, &e) < 0);
    assert_true(e.text[0] && size == -1);
    free(path);
}

/* ---- the continuous log ---- */

static void before_each_attempt_but_the_first_stands_one_line(void **state)
{
    struct logs_rig *w = *state;
    struct attempt_row second = logs_rig_row(2, ATTEMPT_ENDED),
                       third = logs_rig_row(3, ATTEMPT_ENDED),
                       fourth = logs_rig_row(4, ATTEMPT_ENDED);
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_append(w, 1, 0, "first\n");
    second.restored = (struct ckpt_ref){1, 3};
    second.restored_progress = 1200;
    logs_rig_put_row(w, second);
    logs_rig_append(w, 2, 0, "no newline at its end");
    third.started_at = WALL_NONE;
    STR_COPY(third.text, "its node was lost");
    logs_rig_put_row(w, third);
    fourth.restored = (struct ckpt_ref){2, 1};
    logs_rig_put_row(w, fourth);
    logs_rig_append(w, 4, 0, "\nfourth");
    logs_rig_put(w, 5, ATTEMPT_RUNNING);
    logs_rig_append(w, 5, 0, "fifth\n");
    logs_rig_check(w,
        "first\n"
        "---- belay: attempt 2 on node 12, resumed from checkpoint 1.3 (step 1200) ----\n"
        "no newline at its end\n"
        "---- belay: attempt 3 on node 13, not known to have started: its node was lost ----\n"
        "---- belay: attempt 4 on node 14, resumed from checkpoint 2.1 ----\n"
        "\nfourth\n"
        "---- belay: attempt 5 on node 15, from the beginning ----\n"
        "fifth\n",
        true);
}

static void pieces_of_any_size_from_any_offset_make_the_same_log(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_append(w, 1, 0, "first");
    logs_rig_put(w, 2, ATTEMPT_ENDED);
    logs_rig_put(w, 3, ATTEMPT_RUNNING);
    logs_rig_append(w, 3, 0, "third\n");
    struct piece whole = logs_rig_read_at(w, 0, 2000);
    int64_t length = (int64_t)strlen(whole.text);
    for (size_t max = 1; max < 20; max++) {
        struct buf all = {0};
        for (int64_t offset = 0; offset < length;) {
            struct piece p = logs_rig_read_at(w, offset, max);
            assert_int_equal(p.next, offset + (int64_t)strlen(p.text));
            assert_int_equal(p.complete, p.next == length);
            assert_true(p.next > offset);
            buf_adds(&all, p.text);
            offset = p.next;
        }
        assert_string_equal(buf_str(&all), whole.text);
        buf_deinit(&all);
    }
    for (int64_t back = 1; back <= length; back++)
        assert_string_equal(logs_rig_read_at(w, -back, 2000).text, whole.text + length - back);
    assert_string_equal(logs_rig_read_at(w, -length - 1, 2000).text, whole.text);
    assert_string_equal(logs_rig_read_at(w, -(1LL << 40), 2000).text, whole.text);
    struct piece beyond = logs_rig_read_at(w, length + 5, 2000);
    assert_string_equal(beyond.text, "");
    assert_int_equal(beyond.next, length + 5);
}

/* ---- by time, by lines, by attempt ---- */

static int read_part(struct logs_rig *w, const struct logs_part *part, struct piece *p)
{
    struct buf out = {0};
    struct err e;
    *p = (struct piece){0};
    int rc =
        logs_read(&w->logs, w->reader, part, sizeof(p->text) - 1, &out, &p->next, &p->complete, &e);
    if (rc == 0)
        STR_COPY(p->text, buf_str(&out));
    buf_deinit(&out);
    return rc;
}

static void check_part(struct logs_rig *w, struct logs_part part, const char *expected)
{
    struct piece p;
    part.job = JOB;
    assert_int_equal(read_part(w, &part, &p), 0);
    assert_string_equal(p.text, expected);
}

#define AT(s)                                                                                      \
    (struct logs_part)                                                                             \
    {                                                                                              \
        .since = {(s)*1000LL }                                                                     \
    }

static void output_is_found_by_when_it_came(void **state)
{
    struct logs_rig *w = *state;
    int64_t size = 0;
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    vtimers_set_wall(&w->vt, 100 * 1000 + 300);
    logs_rig_append(w, 1, 0, "a\n");
    check_part(w, AT(100), "a\n");
    check_part(w, AT(101), "");
    vtimers_set_wall(&w->vt, 100 * 1000 + 900); /* the same second */
    logs_rig_append(w, 1, 2, "b\n");
    vtimers_set_wall(&w->vt, 90 * 1000); /* the clock was set back */
    logs_rig_append(w, 1, 4, "c\n");
    check_part(w, AT(95), "a\nb\nc\n");
    vtimers_set_wall(&w->vt, 200 * 1000);
    logs_rig_append(w, 1, 4, "c\nd\n"); /* half of it repeats */
    for (int s = 1; s <= 50; s++) {
        char line[16];
        vtimers_set_wall(&w->vt, (200 + s * 10) * 1000LL);
        snprintf(line, sizeof(line), "%d\n", s);
        size = logs_rig_append(w, 1, s == 1 ? 8 : size, line);
    }
    struct piece all = logs_rig_read_at(w, 0, 2000);
    check_part(w, AT(50), all.text);
    check_part(w, AT(100), all.text);
    check_part(w, AT(101), strstr(all.text, "d\n"));
    check_part(w, AT(200), strstr(all.text, "d\n"));
    /* to the second */
    check_part(w, (struct logs_part){.since = {200 * 1000 + 999}}, strstr(all.text, "d\n"));
    check_part(w, AT(201), strstr(all.text, "1\n"));
    check_part(w, AT(695), "50\n");
    check_part(w, AT(700), "50\n");
    check_part(w, AT(701), "");
    check_part(w, (struct logs_part){.since = {650 * 1000}, .tail = 2}, "49\n50\n");
    check_part(w, (struct logs_part){.since = {695 * 1000}, .tail = 10}, "50\n");
    /* The seam of the next attempt appears when it has started. */
    struct attempt_row second = logs_rig_row(2, ATTEMPT_RUNNING);
    second.started_at = (struct wall){800 * 1000};
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_put_row(w, second);
    vtimers_set_wall(&w->vt, 900 * 1000);
    logs_rig_append(w, 2, 0, "next\n");
    check_part(w, AT(701), "---- belay: attempt 2 on node 12, from the beginning ----\nnext\n");
    check_part(w, AT(801), "next\n");
    check_part(w, AT(901), "");
}

/* Output from before there was an index, an index truncated by a crash, and records of output that
 * a crash has removed. */
static void an_index_that_is_damaged_shows_too_much_rather_than_too_little(void **state)
{
    struct logs_rig *w = *state;
    struct buf at = {0};
    struct err e;
    char *path = mem_printf("%s/%d/%d/1.log.at", w->dir, JOB / 1000, JOB),
         *log = mem_strndup(path, strlen(path) - 3);
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    for (int s = 0; s < 5; s++) {
        vtimers_set_wall(&w->vt, (100 + s) * 1000LL);
        logs_rig_append(w, 1, s * 2, (const char *[]){"a\n", "b\n", "c\n", "d\n", "e\n"}[s]);
    }
    check_part(w, AT(103), "d\ne\n");
    assert_int_equal(fs_read(path, 1000, &at, &e), 0);
    assert_int_equal(at.len, 5 * 16);
    assert_int_equal(truncate(path, 4 * 16 + 7), 0); /* in the middle of a record */
    check_part(w, AT(103), "d\ne\n");
    check_part(w, AT(104), "");
    const struct timespec then[2] = {{.tv_sec = 104}, {.tv_sec = 104}};
    assert_int_equal(truncate(log, 3), 0);
    assert_int_equal(utimensat(AT_FDCWD, log, then, 0), 0);
    vtimers_set_wall(&w->vt, 200 * 1000);
    assert_int_equal(logs_rig_append(w, 1, 4, "c\n"), 3); /* creates a gap */
    assert_int_equal(logs_rig_append(w, 1, 3, "\nc\n"), 6);
    check_part(w, AT(150), "\nc\n");
    check_part(w, AT(101), "b\nc\n");
    assert_int_equal(unlink(path), 0);
    check_part(w, AT(150), "a\nb\nc\n");
    check_part(w, AT(201), "");
    buf_deinit(&at);
    free(log);
    free(path);
}

static void the_last_lines_are_found_from_the_end(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_append(w, 1, 0, "one\ntwo\n\nfour\nno newline");
    check_part(w, (struct logs_part){.tail = 1}, "no newline");
    check_part(w, (struct logs_part){.tail = 2}, "four\nno newline");
    check_part(w, (struct logs_part){.tail = 3}, "\nfour\nno newline");
    check_part(w, (struct logs_part){.tail = 5}, "one\ntwo\n\nfour\nno newline");
    check_part(w, (struct logs_part){.tail = LOGS_TAIL_MAX}, "one\ntwo\n\nfour\nno newline");
    check_part(w, (struct logs_part){.tail = 5, .offset = 9}, "four\nno newline");
    check_part(w, (struct logs_part){.tail = 5, .offset = -4}, "line");
    logs_rig_put(w, 2, ATTEMPT_ENDED);
    logs_rig_append(w, 2, 0, "second\n");
    check_part(w, (struct logs_part){.tail = 3},
        "no newline\n---- belay: attempt 2 on node 12, from the beginning ----\nsecond\n");
    /* Spans many of the pieces that are read. */
    static char line[4096];
    memset(line, 'x', sizeof(line) - 2);
    line[sizeof(line) - 2] = '\n';
    logs_rig_put(w, 3, ATTEMPT_ENDED);
    for (int i = 0; i < 300; i++)
        logs_rig_append(w, 3, i * 4095LL, line);
    logs_rig_append(w, 3, 300 * 4095LL, "end\n");
    struct logs_part part = {.job = JOB, .tail = 200};
    struct piece p;
    assert_int_equal(read_part(w, &part, &p), 0);
    struct logs_part whole = {.job = JOB, .offset = -(199 * 4095LL + 4)};
    struct piece q;
    assert_int_equal(read_part(w, &whole, &q), 0);
    assert_int_equal(p.next, q.next);
}

static void one_attempt_is_read_alone(void **state)
{
    struct logs_rig *w = *state;
    struct piece p;
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_append(w, 1, 0, "first\n");
    logs_rig_put(w, 2, ATTEMPT_RUNNING);
    logs_rig_append(w, 2, 0, "second\n");
    check_part(w, (struct logs_part){.attempt = 1}, "first\n");
    check_part(w, (struct logs_part){.attempt = 2, .offset = 3}, "ond\n");
    check_part(w, (struct logs_part){.attempt = 2, .offset = -3}, "nd\n");
    assert_int_equal(read_part(w, &(struct logs_part){.job = JOB, .attempt = 1}, &p), 0);
    assert_true(p.complete);
    assert_int_equal(read_part(w, &(struct logs_part){.job = JOB, .attempt = 2}, &p), 0);
    assert_false(p.complete); /* more follows */
    logs_rig_put(w, 2, ATTEMPT_ENDED);
    assert_int_equal(read_part(w, &(struct logs_part){.job = JOB, .attempt = 2}, &p), 0);
    assert_true(p.complete);
    assert_int_equal(
        read_part(w, &(struct logs_part){.job = JOB, .attempt = 3}, &p), ERR_NOT_FOUND);
    assert_int_equal(
        read_part(w, &(struct logs_part){.job = JOB, .attempt = 1, .rank = 1}, &p), ERR_NOT_FOUND);
}

static void a_seam_waits_until_what_it_says_is_decided(void **state)
{
    struct logs_rig *w = *state;
    struct attempt_row second = logs_rig_row(2, ATTEMPT_STOPPING);
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_append(w, 1, 0, "first\n");
    logs_rig_put(w, 2, ATTEMPT_ASSIGNED);
    logs_rig_append(w, 2, 0, "early\n");
    logs_rig_check(w, "first\n", true);
    second.started_at = WALL_NONE; /* its stop was requested before its start was reported */
    logs_rig_put_row(w, second);
    logs_rig_check(w, "first\n", true);
    logs_rig_put(w, 2, ATTEMPT_RUNNING);
    logs_rig_check(
        w, "first\n---- belay: attempt 2 on node 12, from the beginning ----\nearly\n", true);
}

static void output_of_a_first_attempt_shows_before_its_start_is_reported(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_ASSIGNED);
    logs_rig_append(w, 1, 0, "early\n");
    logs_rig_check(w, "early\n", true);
}

/* A node that returns long after its attempt was given up. */
static void late_output_never_changes_what_was_shown(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_append(w, 1, 0, "first\n");
    logs_rig_put(w, 2, ATTEMPT_ASSIGNED);
    assert_int_equal(logs_rig_append(w, 1, 6, "late\n"), 11); /* later output is not shown yet */
    logs_rig_put(w, 2, ATTEMPT_RUNNING);
    logs_rig_append(w, 2, 0, "second\n");
    struct piece before = logs_rig_read_at(w, 0, 2000);
    /* accepted so that the agent can delete it */
    assert_int_equal(logs_rig_append(w, 1, 11, "too late\n"), 20);
    assert_int_equal(logs_rig_append(w, 1, 0, ""), 11);
    logs_rig_check(w, before.text, true);
}

static void the_last_attempts_output_is_taken_however_late(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_put(w, 2, ATTEMPT_ENDED);
    logs_rig_append(w, 2, 0, "second\n");
    vtimers_advance(&w->vt, 3600000);
    assert_int_equal(logs_rig_append(w, 2, 7, "late\n"), 12);
    assert_string_equal(logs_rig_read_at(w, -5, 2000).text, "late\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, logs_rig_setup, logs_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pieces_join_and_a_repeated_one_changes_nothing),
        TEST(a_gap_is_refused_by_telling_the_size),
        TEST(output_of_other_attempts_and_jobs_is_apart),
        TEST(beyond_the_limit_the_rest_is_dropped_with_a_line_that_says_so),
        TEST(all_attempts_of_a_job_share_what_is_kept_of_it),
        TEST(the_end_of_cut_output_is_not_awaited),
        TEST(what_is_kept_of_a_user_within_a_day_is_shared_by_their_jobs),
        TEST(holes_take_no_space),
        TEST(a_disk_error_is_reported),
        TEST(before_each_attempt_but_the_first_stands_one_line),
        TEST(pieces_of_any_size_from_any_offset_make_the_same_log),
        TEST(output_is_found_by_when_it_came),
        TEST(an_index_that_is_damaged_shows_too_much_rather_than_too_little),
        TEST(the_last_lines_are_found_from_the_end),
        TEST(one_attempt_is_read_alone),
        TEST(a_seam_waits_until_what_it_says_is_decided),
        TEST(output_of_a_first_attempt_shows_before_its_start_is_reported),
        TEST(late_output_never_changes_what_was_shown),
        TEST(the_last_attempts_output_is_taken_however_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
