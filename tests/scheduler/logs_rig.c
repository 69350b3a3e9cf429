/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/logs_rig.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include <stdlib.h>
#include <string.h>

static void on_over(void *ctx, int64_t job)
{
    struct logs_rig *w = ctx;
    assert_int_equal(job, JOB);
    w->n_over++;
}

int logs_rig_setup(void **state)
{
    struct logs_rig *w = mem_alloc(sizeof(*w));
    struct err e;
    strcpy(w->dir, "/tmp/belay-logs-XXXXXX");
    *state = w;
    vtimers_init(&w->vt, 0);
    if (uv_loop_init(&w->loop) != 0 || !mkdtemp(w->dir) || db_open(":memory:", &w->db, &e) != 0 ||
        db_reader_of(w->db, &w->reader, &e) != 0 ||
        logs_open(&w->logs, w->dir, &w->loop, &w->vt.timers, on_over, w, &e) != 0)
        return -1;
    return 0;
}

int logs_rig_teardown(void **state)
{
    struct logs_rig *w = *state;
    struct err e;
    logs_close(&w->logs);
    uv_loop_finish(&w->loop);
    db_reader_close(w->reader);
    db_close(w->db);
    vtimers_deinit(&w->vt);
    int rc = fs_remove_tree(w->dir, &e);
    free(w);
    return rc;
}

struct attempt_row logs_rig_row(int64_t attempt, enum attempt_state state)
{
    return (struct attempt_row){.job = JOB,
        .attempt = attempt,
        .node = attempt + 10,
        .state = state,
        .assigned_at = {1000},
        .started_at = state == ATTEMPT_ASSIGNED ? WALL_NONE : (struct wall){2000},
        .ended_at = state == ATTEMPT_ENDED ? (struct wall){3000} : WALL_NONE,
        .end = state == ATTEMPT_ENDED ? END_FAILED : END_NONE,
        .restored_progress = PROGRESS_NONE};
}

void logs_rig_put_row(struct logs_rig *w, struct attempt_row a)
{
    struct db_batch b = {0};
    struct err e;
    b.changes.attempts = mem_dup(&a, sizeof(a));
    b.changes.n_attempts = 1;
    if (db_commit(w->db, &b, &e) != 0)
        fail_msg("%s", e.text);
    db_batch_deinit(&b);
}

void logs_rig_put(struct logs_rig *w, int64_t attempt, enum attempt_state state)
{
    logs_rig_put_row(w, logs_rig_row(attempt, state));
}

int64_t logs_rig_append(struct logs_rig *w, int64_t attempt, int64_t offset, const char *text)
{
    int64_t size = -1;
    struct err e;
    if (logs_append(&w->logs, w->reader, JOB, attempt, 0, offset, text, strlen(text), &size, &e) !=
        0)
        fail_msg("%s", e.text);
    return size;
}

struct piece logs_rig_read_at(struct logs_rig *w, int64_t offset, size_t max)
{
    struct piece p = {0};
    struct buf out = {0};
    struct err e;
    if (logs_read(&w->logs, w->reader, &(struct logs_part){.job = JOB, .offset = offset}, max, &out,
            &p.next, &p.complete, &e) != 0)
        fail_msg("%s", e.text);
    assert_true(out.len <= max && STR_COPY(p.text, buf_str(&out)));
    buf_deinit(&out);
    return p;
}

void logs_rig_check(struct logs_rig *w, const char *expected, bool complete)
{
    struct piece p = logs_rig_read_at(w, 0, 2000);
    assert_string_equal(p.text, expected);
    assert_int_equal(p.next, strlen(expected));
    assert_int_equal(p.complete, complete);
}
