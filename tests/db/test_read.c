/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads for the API: filters, order, paging.
 */
#include "tests/db/read_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct collected {
    int64_t ids[100];
    int n, stop_after; /* 0: never */
    int answer;
};

static int collect(struct collected *s, int64_t id)
{
    s->ids[s->n++] = id;
    return s->stop_after && s->n == s->stop_after ? s->answer : 0;
}

static int collect_job(void *ctx, const struct job_row *row)
{
    assert_int_equal(row->queued_mono.ms, TIME_NONE_MS);
    return collect(ctx, row->id);
}

static int collect_attempt(void *ctx, const struct attempt_row *row)
{
    return collect(ctx, row->attempt);
}

static int collect_history(void *ctx, const struct history_row *row)
{
    return collect(ctx, row->id);
}

static int collect_checkpoint(void *ctx, const struct checkpoint_row *row)
{
    return collect(ctx, row->ref.attempt * 10 + row->ref.sequence);
}

static int collect_drill(void *ctx, const struct drill_row *row)
{
    return collect(ctx, row->job * 10 + row->number);
}

static int collect_ledger(void *ctx, const struct ledger_row *row)
{
    return collect(ctx, row->uusd);
}

static int collect_node(void *ctx, const struct node_row *row)
{
    return collect(ctx, row->id);
}

static int collect_instance(void *ctx, const struct instance_row *row)
{
    return collect(ctx, row->id);
}

static int collect_offer(void *ctx, const struct offer_row *row)
{
    assert_int_equal(row->avoid_until.ms, TIME_NONE_MS);
    return collect(ctx, row->id);
}

static int collect_token(void *ctx, const struct token_row *row)
{
    return collect(ctx, row->id);
}

static void assert_ids(const struct collected *s, int n, ...)
{
    va_list ap;
    va_start(ap, n);
    assert_int_equal(s->n, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(s->ids[i], va_arg(ap, int));
    va_end(ap);
}

/* Jobs 1 to 8: odd ones are ada's, even ones bob's; 1 to 4 have ended. */
static void add_jobs(void)
{
    struct db_batch b = {0};
    for (int64_t id = 1; id <= 8; id++)
        add_job(&b, id, id % 2 ? "ada" : "bob",
            id <= 4   ? JOB_ENDED
            : id == 5 ? JOB_RUNNING
                      : JOB_PENDING);
    util_commit(d, &b);
}

#define SEEN_JOBS(...)                                                                             \
    ({                                                                                             \
        struct job_filter f_ = {__VA_ARGS__};                                                      \
        memset(&s, 0, sizeof(s));                                                                  \
        assert_int_equal(db_read_jobs(r, &f_, collect_job, &s, NULL, &e), 0);                      \
        &s;                                                                                        \
    })

static void jobs_are_listed_newest_first_by_filter_and_page(void **state)
{
    (void)state;
    struct collected s;

    add_jobs();
    assert_ids(SEEN_JOBS(.limit = 100), 8, 8, 7, 6, 5, 4, 3, 2, 1);
    assert_ids(SEEN_JOBS(.limit = 3), 3, 8, 7, 6);
    assert_ids(SEEN_JOBS(.limit = 3, .before = 6), 3, 5, 4, 3);
    assert_ids(SEEN_JOBS(.limit = 3, .before = 3), 2, 2, 1);
    assert_ids(SEEN_JOBS(.limit = 3, .before = 1), 0);
    assert_ids(SEEN_JOBS(.limit = 100, .states = JOBS_LIVE), 4, 8, 7, 6, 5);
    assert_ids(SEEN_JOBS(.limit = 1, .states = JOBS_LIVE, .before = 7), 1, 6);
    assert_ids(SEEN_JOBS(.limit = 100, .users = {{"ada"}, 1}), 4, 7, 5, 3, 1);
    assert_ids(SEEN_JOBS(.limit = 2, .users = {{"bob"}, 1}, .before = 8), 2, 6, 4);
    assert_ids(SEEN_JOBS(.limit = 100, .users = {{"bob"}, 1}, .states = JOBS_LIVE), 2, 8, 6);
    assert_ids(SEEN_JOBS(.limit = 100, .users = {{"eve"}, 1}), 0);
    assert_ids(SEEN_JOBS(.limit = 100, .users = {{"' OR 1 --"}, 1}), 0);
}

/* Jobs 1 to 6: 1, 2 and 3 ended at 30, 10 and 20 s; 4 runs; 5 is a pending array, 6 a task of it. 4
 * is in pool gpu; 1, 2 and 6 are or were in base, 3 never began. */
static void add_varied_jobs(void)
{
    static const enum end_kind ends[] = {
        END_NONE, END_SUCCEEDED, END_FAILED, END_TIMEOUT, END_RECLAIMED};
    static const char *const names[] = {
        "", "train", "train-big", "eval", "a[b]c", "sweep", "sweep"};
    static const char *const labels[] = {NULL, "{\"exp\":\"3\",\"who\":\"x\"}", "{}",
        "{\"exp\":\"4\"}", "nonsense", "{\"exp\":\"3\"}"};
    static const int64_t ended_ms[] = {0, 30000, 10000, 20000};
    struct db_batch b = {0};
    for (int64_t id = 1; id <= 2; id++) {
        struct node_row node = {.id = id, .key_hash = {(char)('0' + id)}};
        STR_COPY(node.pool, id == 1 ? "gpu" : "base");
        batch_add(&b, TABLE_NODES, &node);
    }
    for (int64_t id = 1; id <= 6; id++) {
        struct job_row row = {.id = id,
            .state = id <= 3   ? JOB_ENDED
                     : id == 5 ? JOB_PENDING
                               : JOB_RUNNING,
            .end = id <= 4 ? ends[id] : END_NONE,
            .submitted_at = at_ms(id * 1000),
            .ended_at = id <= 3 ? at_ms(ended_ms[id]) : WALL_NONE,
            .array = id == 6 ? 5 : 0,
            .array_index = id == 6 ? 7 : 0};
        snprintf(row.user, sizeof(row.user), "%s", id % 2 ? "ada" : "bob");
        snprintf(row.spec.team, sizeof(row.spec.team), "%s", id <= 2 ? "red" : "");
        snprintf(row.spec.pool, sizeof(row.spec.pool), "%s",
            id == 3   ? "big,gpu"
            : id == 6 ? "gpu,base"
                      : "");
        row.attempts = id == 3 || id == 5 ? 0 : 2;
        struct attempt_row attempt = {.job = id, .attempt = row.attempts, .node = id == 4 ? 1 : 2},
                           before = {.job = id, .attempt = 1, .node = 1};
        if (row.attempts > 0) {
            batch_add(&b, TABLE_ATTEMPTS, &attempt);
            batch_add(&b, TABLE_ATTEMPTS, &before);
        }
        snprintf(row.spec.name, sizeof(row.spec.name), "%s", names[id]);
        batch_add(&b, TABLE_JOBS, &row);
        if (id <= 5 && labels[id])
            batch_add(&b, TABLE_SPECS,
                &(struct spec_change){.job = id, .labels_json = strdup(labels[id])});
    }
    util_commit(d, &b);
}

static void patch_document(int64_t job, const char *json)
{
    struct db_batch b = {0};
    b.changes.documents = calloc(1, sizeof(*b.changes.documents));
    b.changes.documents[0] = (struct document_change){.job = job, .patch_json = strdup(json)};
    b.changes.n_documents = 1;
    util_commit(d, &b);
}

static void assert_document(int64_t job, const char *want)
{
    char *got;
    assert_int_equal(db_read_document(r, job, &got, &e), 0);
    if (want)
        assert_string_equal(got, want);
    else
        assert_null(got);
    free(got);
}

static void options_that_are_only_stored_are_merged_and_a_task_has_those_of_its_array(void **state)
{
    (void)state;
    add_varied_jobs();
    assert_document(4, NULL);
    patch_document(5, "{\"a\":1}");
    assert_document(5, "{\"a\":1}");
    assert_document(6, "{\"a\":1}"); /* a task of 5 */
    patch_document(6, "{\"b\":\"x\"}");
    assert_document(6, "{\"a\":1,\"b\":\"x\"}");
    patch_document(5, "{\"a\":null}");
    assert_document(5, "{}");
    assert_document(6, "{\"a\":1,\"b\":\"x\"}");
    assert_document(4, NULL);
}

static int collect_restart(void *ctx, const struct restart_moments *m)
{
    struct restart_moments *all = ctx;
    all[m->attempt * 2 + m->rank] = *m;
    return 0;
}

static void restarts_have_the_times_of_their_machines(void **state)
{
    struct db_batch b = {0};
    struct restart_moments m[10] = {0};
    (void)state;

    batch_add(&b, TABLE_INSTANCES,
        &(struct instance_row){.id = 7,
            .token = "t7",
            .intended_at = {210},
            .launched_at = {220},
            .joined_at = {290},
            .start_ms = 15});
    batch_add(&b, TABLE_NODES, &(struct node_row){.id = 3, .instance = 7, .joined_at = {290}});
    batch_add(&b, TABLE_NODES, &(struct node_row){.id = 4, .joined_at = {1}});
    /* the third never started: the fourth restarts what the second was */
    for (int attempt = 1; attempt <= 4; attempt++)
        for (int rank = 0; rank < 2; rank++)
            batch_add(&b, TABLE_ATTEMPTS,
                &(struct attempt_row){.job = 1,
                    .attempt = attempt,
                    .rank = rank,
                    .node = attempt == 4 && rank == 0 ? 3 : 4,
                    .assigned_at = {attempt * 100 - 5},
                    .started_at = attempt == 3 ? WALL_NONE : at_ms(attempt * 100),
                    .ended_at = attempt == 4 ? WALL_NONE : at_ms(attempt * 100 + 50 + rank),
                    .restore_ms = 4,
                    .behind_ms = attempt == 2   ? 6
                                 : attempt == 4 ? 3
                                                : 0,
                    .warm_up_ms = attempt + rank});
    batch_add(&b, TABLE_LEDGER,
        &(struct ledger_row){.job = 1, .attempt = 2, .node = 4, .kind = LEDGER_LOST, .ms = 20});
    batch_add(&b, TABLE_LEDGER,
        &(struct ledger_row){.job = 1, .attempt = 2, .node = 4, .kind = LEDGER_USEFUL, .ms = 9});
    util_commit(d, &b);
    assert_int_equal(db_read_restarts(r, 1, collect_restart, m, &e), 0);
    assert_int_equal(m[2].attempt, 0); /* the first attempt is no restart */
    assert_int_equal(m[6].attempt, 0); /* the third has not started */
    assert_int_equal(m[4].stopped_at.ms, 151);
    assert_int_equal(m[4].lost_ms, 6);
    assert_int_equal(m[5].warm_up_ms, 3);
    assert_false(wall_is_set(m[4].intended_at));
    assert_int_equal(m[4].joined_at.ms, 1);
    assert_int_equal(m[8].stopped_at.ms, 251);
    assert_int_equal(m[8].intended_at.ms, 210);
    assert_int_equal(m[8].launched_at.ms, 220);
    assert_int_equal(m[8].joined_at.ms, 290);
    assert_int_equal(m[8].start_ms, 15);
    assert_int_equal(m[8].assigned_at.ms, 395);
    assert_int_equal(m[8].started_at.ms, 400);
    assert_int_equal(m[8].restore_ms, 4);
    assert_int_equal(m[8].lost_ms, 20 - 6 + 3);
    assert_false(wall_is_set(m[9].intended_at));
    assert_int_equal(db_read_restarts(r, 2, collect_restart, m, &e), 0);
}

static void filters_go_together(void **state)
{
    (void)state;
    struct collected s;

    add_varied_jobs();
    assert_ids(SEEN_JOBS(.limit = 9, .states = 1u << JOB_PENDING | 1u << JOB_ENDED), 4, 5, 3, 2, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .states = 1u << JOB_RUNNING), 2, 6, 4);
    assert_ids(SEEN_JOBS(.limit = 9, .ends = 1u << END_FAILED | 1u << END_RECLAIMED), 1, 2);
    assert_ids(
        SEEN_JOBS(.limit = 9, .states = 1u << JOB_PENDING, .ends = 1u << END_TIMEOUT), 2, 5, 3);
    assert_ids(SEEN_JOBS(.limit = 9, .users = {{"ada", "bob"}, 2}), 6, 6, 5, 4, 3, 2, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .users = {{"bob", "eve"}, 2}, .teams = {{"red"}, 1}), 1, 2);
    assert_ids(SEEN_JOBS(.limit = 9, .pools = {{"gpu"}, 1}), 3, 5, 4, 3);
    assert_ids(SEEN_JOBS(.limit = 9, .pools = {{"bas", "base"}, 2}), 4, 6, 5, 2, 1);
    char pool[CORE_NAME_MAX];
    assert_int_equal(db_read_pool_used(r, 6, 2, pool, &e), 0);
    assert_string_equal(pool, "base");
    assert_int_equal(db_read_pool_used(r, 6, 1, pool, &e), 0);
    assert_string_equal(pool, "gpu");
    assert_int_equal(db_read_pool_used(r, 3, 1, pool, &e), 0);
    assert_string_equal(pool, "");
    assert_ids(SEEN_JOBS(.limit = 9, .names = {{"train"}, 1}), 1, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .names = {{"train*", "*val"}, 2}), 3, 3, 2, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .names = {{"a[b]c"}, 1}), 1, 4);
    assert_ids(SEEN_JOBS(.limit = 9, .names = {{"eva?"}, 1}), 0);
    assert_ids(SEEN_JOBS(.limit = 9, .labels = {{"exp", "3"}}, .n_labels = 1), 3, 6, 5, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .labels = {{"exp", NULL}}, .n_labels = 1), 4, 6, 5, 3, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .labels = {{"exp", "3"}, {"who", "x"}}, .n_labels = 2), 1, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .since_ms = 20000), 5, 6, 5, 4, 3, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .until_ms = 3000), 3, 3, 2, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .since_ms = 20000, .until_ms = 3000), 2, 3, 1);
    assert_ids(SEEN_JOBS(.limit = 9, .array = 5, .index = -1), 1, 6);
    assert_ids(SEEN_JOBS(.limit = 9, .array = 5, .index = 7, .users = {{"ada"}, 1}), 0);
}

static void a_list_is_sorted_and_continues_after_a_job(void **state)
{
    (void)state;
    struct collected s = {0};
    struct job_filter by_end = {.sort = JOBS_BY_END, .limit = 1},
                      f = {.sort = JOBS_OLDEST, .limit = 2, .users = {{"ada"}, 1}};
    int64_t next = -1;

    add_varied_jobs();
    assert_ids(SEEN_JOBS(.limit = 9, .sort = JOBS_OLDEST, .before = 4), 2, 5, 6);
    assert_ids(SEEN_JOBS(.limit = 9, .sort = JOBS_BY_END), 3, 1, 3, 2);
    assert_ids(SEEN_JOBS(.limit = 9, .sort = JOBS_BY_END, .since_ms = 20000), 2, 1, 3);
    assert_ids(SEEN_JOBS(.limit = 9, .sort = JOBS_BY_END, .ends = 1u << END_FAILED), 1, 2);
    s = (struct collected){0};
    for (int i = 0; i < 4 && next != 0; i++) {
        assert_int_equal(db_read_jobs(r, &by_end, collect_job, &s, &next, &e), 0);
        by_end.before = next;
    }
    assert_ids(&s, 3, 1, 3, 2);
    assert_int_equal(next, 0);
    s = (struct collected){0};
    assert_int_equal(db_read_jobs(r, &f, collect_job, &s, &next, &e), 0);
    assert_ids(&s, 2, 1, 3);
    assert_int_equal(next, 3);
    by_end.before = 4;
    assert_int_equal(db_read_jobs(r, &by_end, collect_job, &s, &next, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "before"));
}

/* However rare the matches are, a page ends, and the next one continues there. */
static void a_page_looks_at_no_more_than_so_many(void **state)
{
    (void)state;
    enum { N = JOBS_EXAMINED_MAX * 2 + 10 };
    struct db_batch b = {0};
    struct collected s = {0};
    static const enum job_sort sorts[] = {JOBS_NEWEST, JOBS_OLDEST, JOBS_BY_END};

    for (int64_t id = 1; id <= N; id++) {
        struct job_row row = {.id = id, .state = JOB_ENDED, .ended_at = at_ms(1000 + id / 3)};
        STR_COPY(row.spec.team, id == 1 || id == N / 2 || id == N ? "red" : "blue");
        batch_add(&b, TABLE_JOBS, &row);
    }
    util_commit(d, &b);
    for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
        struct job_filter f = {.sort = sorts[i], .teams = {{"red"}, 1}, .limit = 10};
        int64_t next = -1;
        int pages = 0;
        s = (struct collected){0};
        for (; next != 0; pages++) {
            assert_int_equal(db_read_jobs(r, &f, collect_job, &s, &next, &e), 0);
            f.before = next;
        }
        assert_int_equal(pages, 3);
        if (sorts[i] == JOBS_OLDEST)
            assert_ids(&s, 3, 1, N / 2, N);
        else
            assert_ids(&s, 3, N, N / 2, 1);
    }
}

/* However many newer jobs wait. */
static void running_jobs_are_on_the_first_page(void **state)
{
    (void)state;
    enum { N = JOBS_EXAMINED_MAX * 2 };
    struct db_batch b = {0};
    struct collected s;
    int64_t next = -1;
    for (int64_t id = 1; id <= N; id++) {
        bool runs = id == 3 || id == 5 || id == 6 || id == N - 1;
        struct job_row row = {.id = id, .state = runs ? JOB_RUNNING : JOB_PENDING};
        struct attempt_row attempt = {.job = id, .attempt = 1, .node = 1};
        STR_COPY(row.user, id == 5 ? "bob" : "ada");
        row.state = id == 6 ? JOB_CANCELLING : row.state;
        batch_add(&b, TABLE_JOBS, &row);
        if (runs)
            batch_add(&b, TABLE_ATTEMPTS, &attempt);
    }
    util_commit(d, &b);
    assert_ids(SEEN_JOBS(.limit = 9, .states = 1u << JOB_RUNNING), 3, N - 1, 5, 3);
    assert_ids(SEEN_JOBS(.limit = 9, .states = 1u << JOB_RUNNING | 1u << JOB_CANCELLING), 4, N - 1,
        6, 5, 3);
    assert_ids(SEEN_JOBS(.limit = 2, .states = 1u << JOB_RUNNING, .before = N - 1), 2, 5, 3);
    assert_ids(SEEN_JOBS(.limit = 9, .states = 1u << JOB_RUNNING, .users = {{"bob"}, 1}), 1, 5);
    assert_ids(
        SEEN_JOBS(.limit = 9, .states = 1u << JOB_RUNNING, .sort = JOBS_OLDEST), 3, 3, 5, N - 1);
    struct job_filter f = {.limit = 9, .states = 1u << JOB_RUNNING};
    s = (struct collected){0};
    assert_int_equal(db_read_jobs(r, &f, collect_job, &s, &next, &e), 0);
    assert_int_equal(next, 0);
}

static void a_limit_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct collected s = {0};
    int32_t limits[] = {INT32_MIN, -1, 0, 1001, INT32_MAX};

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct job_filter f = {.limit = limits[i]};
        assert_int_equal(db_read_jobs(r, &f, collect_job, &s, NULL, &e), ERR_INVALID);
        assert_int_equal(db_read_history(r, 0, 0, limits[i], collect_history, &s, &e), ERR_INVALID);
        assert_int_equal(
            db_read_last_history(r, 1, limits[i], collect_history, &s, &e), ERR_INVALID);
    }
    assert_int_equal(s.n, 0);
}

struct used {
    char pool[CORE_NAME_MAX];
    struct buf all;
};

static int collect_pool(void *ctx, const struct job_row *row)
{
    struct used *u = ctx;
    buf_printf(&u->all, "%lld:%s ", (long long)row->id, u->pool);
    return 0;
}

static void a_list_tells_the_pool_of_each_newest_attempt(void **state)
{
    (void)state;
    struct used u = {0};
    struct job_filter f = {.limit = 6, .index = -1, .states = UINT32_MAX, .pool_used = u.pool};
    add_varied_jobs();
    assert_int_equal(db_read_jobs(r, &f, collect_pool, &u, NULL, &e), 0);
    assert_string_equal(buf_str(&u.all), "6:base 5: 4:gpu 3: 2:base 1:base ");
    buf_deinit(&u.all);
}

static void a_callback_can_end_the_walk_well_or_with_an_error(void **state)
{
    (void)state;
    struct collected s = {.stop_after = 2, .answer = 1};
    struct job_filter f = {.limit = 100};

    add_jobs();
    assert_int_equal(db_read_jobs(r, &f, collect_job, &s, NULL, &e), 0);
    assert_ids(&s, 2, 8, 7);
    s = (struct collected){.stop_after = 1, .answer = ERR_CANCELLED};
    assert_int_equal(db_read_jobs(r, &f, collect_job, &s, NULL, &e), ERR_CANCELLED);
    assert_ids(&s, 1, 8);
    for (sqlite3_stmt *left = sqlite3_next_stmt(d->sql, NULL); left;
         left = sqlite3_next_stmt(d->sql, left))
        assert_false(sqlite3_stmt_busy(left));
}

static void what_does_not_exist_is_not_found(void **state)
{
    (void)state;
    struct job_row job;
    struct spec_change spec;
    struct token_row token;

    assert_int_equal(db_read_job(r, 12345, &job, &e), ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "12345"));
    assert_int_equal(db_read_spec(r, 12345, &spec, &e), ERR_NOT_FOUND);
    assert_int_equal(db_read_token_by_hash(r, "ff", &token, &e), ERR_NOT_FOUND);
    assert_int_equal(db_read_token(r, 12345, &token, &e), ERR_NOT_FOUND);
}

static void a_job_and_its_texts_come_back(void **state)
{
    (void)state;
    struct db_batch b = {0};
    struct job_row job;
    struct spec_change spec = {.job = 3,
                           .script = strdup("#!/bin/sh\ntrue\n"),
                           .env_json = strdup("{}")},
                       got;

    add_job(&b, 3, "ada", JOB_PENDING);
    batch_add(&b, TABLE_SPECS, &spec);
    util_commit(d, &b);
    assert_int_equal(db_read_job(r, 3, &job, &e), 0);
    assert_string_equal(job.user, "ada");
    assert_int_equal(db_read_spec(r, 3, &got, &e), 0);
    assert_string_equal(got.script, "#!/bin/sh\ntrue\n");
    assert_string_equal(got.env_json, "{}");
    assert_null(got.cwd);
    spec_change_deinit(&got);
    assert_null(got.script);
}

static void the_parts_of_a_job_come_in_their_order(void **state)
{
    (void)state;
    struct db_batch b = {0};
    struct collected s = {0};

    for (int i = 3; i >= 1; i--) {
        for (int64_t job = 1; job <= 2; job++) {
            batch_add(&b, TABLE_ATTEMPTS, &(struct attempt_row){.job = job, .attempt = i});
            batch_add(&b, TABLE_CHECKPOINTS, &(struct checkpoint_row){.job = job, .ref = {i, 1}});
            batch_add(&b, TABLE_CHECKPOINTS, &(struct checkpoint_row){.job = job, .ref = {i, 2}});
            batch_add(&b, TABLE_HISTORY, &(struct history_row){.id = i * 10 + job, .job = job});
            batch_add(&b, TABLE_LEDGER, &(struct ledger_row){.job = job, .uusd = i * 100 + job});
        }
    }
    util_commit(d, &b);
    assert_int_equal(db_read_attempts(r, 2, collect_attempt, &s, &e), 0);
    assert_ids(&s, 3, 1, 2, 3);
    s = (struct collected){0};
    assert_int_equal(db_read_checkpoints(r, 1, collect_checkpoint, &s, &e), 0);
    assert_ids(&s, 6, 32, 31, 22, 21, 12, 11);
    s = (struct collected){0};
    assert_int_equal(db_read_history(r, 2, 12, 10, collect_history, &s, &e), 0);
    assert_ids(&s, 2, 22, 32);
    s = (struct collected){0};
    assert_int_equal(db_read_history(r, 0, 12, 3, collect_history, &s, &e), 0);
    assert_ids(&s, 3, 21, 22, 31);
    s = (struct collected){0};
    assert_int_equal(db_read_last_history(r, 2, 2, collect_history, &s, &e), 0);
    assert_ids(&s, 2, 22, 32);
    s = (struct collected){0};
    assert_int_equal(db_read_last_history(r, 2, 1000, collect_history, &s, &e), 0);
    assert_ids(&s, 3, 12, 22, 32);
    s = (struct collected){0};
    assert_int_equal(db_read_ledger(r, 1, collect_ledger, &s, &e), 0);
    assert_ids(&s, 3, 301, 201, 101); /* in order of insertion */
    s = (struct collected){0};
    assert_int_equal(db_read_ledger(r, 0, collect_ledger, &s, &e), 0);
    assert_int_equal(s.n, 6);
}

static void the_last_save_of_an_attempt_failed_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *kinds[6];
        int64_t found; /* which of them, from 1; 0 = none */
    } cases[] = {
        {{"started", "saved", "save-failed", "save-failed", "enter"}, 4},
        {{"save-failed", "started", "save-failed"}, 3},
        {{"started", "save-failed", "saved", "enter"}, 0},
        {{"save-failed", "started"}, 0},
        {{"restored", "save-failed"}, 0},
        {{"submitted"}, 0},
    };
    struct db_batch b = {0};
    struct history_row h;

    for (int64_t c = 0; c < 6; c++) {
        struct attempt_row attempt = {.job = 7 + c, .attempt = 2, .started_at = WALL_NONE};
        for (int64_t i = 0; cases[c].kinds[i]; i++) {
            struct history_row row = {.id = 100 * c + i + 1, .job = 7 + c, .attempt = 2};
            STR_COPY(row.kind, cases[c].kinds[i]);
            batch_add(&b, TABLE_HISTORY, &row);
            if (str_eq(row.kind, "started"))
                attempt.started_at = (struct wall){.ms = 1000};
        }
        batch_add(&b, TABLE_ATTEMPTS, &attempt);
    }
    util_commit(d, &b);
    for (int64_t c = 0; c < 6; c++) {
        int rc = db_read_failed_save(r, 7 + c, 2, &h, &e);
        assert_int_equal(rc, cases[c].found ? 0 : ERR_NOT_FOUND);
        assert_true(rc != 0 || h.id == 100 * c + cases[c].found);
        assert_int_equal(db_read_failed_save(r, 7 + c, 1, &h, &e), ERR_NOT_FOUND);
        assert_int_equal(db_read_failed_save(r, 7 + c, 3, &h, &e), ERR_NOT_FOUND);
    }
}

static void the_ends_of_an_arrays_tasks_are_read(void **state)
{
    (void)state;
    struct db_batch b = {0};
    struct array_ends ends;
    const struct array_row array = {.job = 1, .tasks = "0-2,7", .left = "7"};
    static const enum end_kind as[] = {END_SUCCEEDED, END_FAILED, END_NONE};

    add_job(&b, 1, "ada", JOB_PENDING);
    batch_add(&b, TABLE_ARRAYS, &array);
    for (int32_t i = 0; i < 3; i++)
        batch_add(&b, TABLE_JOBS,
            &(struct job_row){.id = 2 + i,
                .state = as[i] == END_NONE ? JOB_RUNNING : JOB_ENDED,
                .end = as[i],
                .array = 1,
                .array_index = i});
    util_commit(d, &b);
    assert_int_equal(db_read_array_ends(r, 1, &ends, &e), 0);
    assert_int_equal(ranges_count(&ends.all), 4);
    assert_int_equal(bits_next(&ends.succeeded, 0), 0);
    assert_int_equal(bits_next(&ends.succeeded, 1), ends.succeeded.n);
    bits_deinit(&ends.succeeded);
    assert_int_equal(db_read_array_ends(r, 2, &ends, &e), ERR_NOT_FOUND);
}

static void drills_are_listed_and_the_newest_that_says_something_counts(void **state)
{
    (void)state;
    static const struct {
        int64_t job, number;
        enum drill_state how;
        const char *key;
    } rows[] = {{1, 1, DRILL_PASSED, "a"}, {1, 2, DRILL_INTERRUPTED, "a"},
        {2, 1, DRILL_FAILED, "b"}, {3, 1, DRILL_PASSED, "b"}, {4, 1, DRILL_PASSED, "c"},
        {4, 2, DRILL_FAILED, "c"}, {5, 1, DRILL_RESUMED, "d"}, {6, 1, DRILL_PASSED, ""}};
    struct db_batch b = {0};
    struct collected s = {0};
    struct drill_row got;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drill_row row = {.job = rows[i].job,
            .number = rows[i].number,
            .state = rows[i].how,
            .asked_at = at_ms((int64_t)i),
            .killed_at = WALL_NONE,
            .resumed_at = WALL_NONE,
            .ended_at = at_ms((int64_t)i + 100)};
        STR_COPY(row.script_key, rows[i].key);
        snprintf(row.user, sizeof(row.user), "%s", rows[i].job == 4 ? "ada" : "bob");
        batch_add(&b, TABLE_DRILLS, &row);
    }
    util_commit(d, &b);
    assert_int_equal(db_read_job_drills(r, 4, collect_drill, &s, &e), 0);
    assert_ids(&s, 2, 41, 42);
    s = (struct collected){0};
    assert_int_equal(db_read_drills(r, NULL, 3, collect_drill, &s, &e), 0);
    assert_ids(&s, 3, 61, 51, 42);
    s = (struct collected){0};
    assert_int_equal(db_read_drills(r, "ada", 9, collect_drill, &s, &e), 0);
    assert_ids(&s, 2, 42, 41);
    assert_int_equal(db_read_drills(r, NULL, 0, collect_drill, &s, &e), ERR_INVALID);
    assert_int_equal(db_read_certificate(r, "a", &got, &e), 0);
    assert_int_equal(got.number, 1);
    assert_int_equal(db_read_certificate(r, "b", &got, &e), 0);
    assert_int_equal(got.state, DRILL_PASSED);
    assert_int_equal(db_read_certificate(r, "c", &got, &e), 0);
    assert_int_equal(got.state, DRILL_FAILED);
    assert_int_equal(db_read_certificate(r, "d", &got, &e), ERR_NOT_FOUND);
    assert_int_equal(db_read_certificate(r, "", &got, &e), ERR_NOT_FOUND);
}

static void nodes_and_instances_can_be_the_live_ones_only(void **state)
{
    (void)state;
    struct db_batch b = {0};
    struct collected s = {0};

    for (int i = 1; i <= 3; i++) {
        batch_add(
            &b, TABLE_NODES, &(struct node_row){.id = i, .state = i == 2 ? NODE_GONE : NODE_LOST});
        batch_add(&b, TABLE_INSTANCES,
            &(struct instance_row){.id = i, .state = i == 1 ? INSTANCE_GONE : INSTANCE_ENDING});
    }
    util_commit(d, &b);
    assert_int_equal(db_read_nodes(r, true, collect_node, &s, &e), 0);
    assert_ids(&s, 2, 1, 3);
    s = (struct collected){0};
    assert_int_equal(db_read_nodes(r, false, collect_node, &s, &e), 0);
    assert_ids(&s, 3, 1, 2, 3);
    s = (struct collected){0};
    assert_int_equal(db_read_instances(r, true, collect_instance, &s, &e), 0);
    assert_ids(&s, 2, 2, 3);
    s = (struct collected){0};
    assert_int_equal(db_read_instances(r, false, collect_instance, &s, &e), 0);
    assert_ids(&s, 3, 1, 2, 3);
    s = (struct collected){0};
    assert_int_equal(db_read_newest_nodes(r, INT64_MAX, 2, collect_node, &s, &e), 0);
    assert_ids(&s, 2, 3, 2);
    s = (struct collected){0};
    assert_int_equal(db_read_newest_instances(r, 3, 9, collect_instance, &s, &e), 0);
    assert_ids(&s, 2, 2, 1);
}

static int collect_sum(void *ctx, const struct ledger_sum *sum)
{
    struct ledger_sum *all = ctx;
    all[sum->instance] = *sum;
    return 0;
}

static int collect_gap(void *ctx, const struct ledger_gap *gap)
{
    struct ledger_gap *last = ctx;
    assert_int_equal(last->job, 0);
    *last = *gap;
    return 0;
}

static void the_ledger_is_summed_by_instance_and_its_gaps_are_found(void **state)
{
    (void)state;
    struct db_batch b = {0};
    struct ledger_sum sums[4] = {0};
    struct ledger_gap gap = {0};
    const struct ledger_row rows[] = {
        {.job = 1,
            .attempt = 1,
            .instance = 2,
            .kind = LEDGER_SAVE,
            .from = {10},
            .to = {30},
            .ms = 5,
            .node_ms = 2,
            .uusd = 3},
        {.job = 1,
            .attempt = 1,
            .instance = 2,
            .kind = LEDGER_USEFUL,
            .from = {10},
            .to = {30},
            .ms = 15,
            .node_ms = 6,
            .uusd = 4},
        {.instance = 2,
            .kind = LEDGER_BOOT,
            .from = {0},
            .to = {10},
            .ms = 10,
            .node_ms = 10,
            .uusd = 100},
        {.instance = 2,
            .kind = LEDGER_IDLE,
            .from = {10},
            .to = {50},
            .ms = 20,
            .node_ms = 20,
            .uusd = 1000},
        {.job = 1, .attempt = 2, .kind = LEDGER_LOST, .from = {30}, .to = {39}, .ms = 8, .uusd = 9},
        {.job = 1,
            .attempt = 3,
            .kind = LEDGER_LOST,
            .from = {50},
            .to = {40},
            .ms = 0,
            .uusd = 1}, /* the clock was set back */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        batch_add(&b, TABLE_LEDGER, &rows[i]);
    util_commit(d, &b);
    assert_int_equal(db_read_ledger_sums(r, collect_sum, sums, &e), 0);
    assert_int_equal(sums[2].uusd, 1107);
    assert_int_equal(sums[2].attempts_uusd, 7);
    assert_int_equal(sums[2].ms, 38);
    assert_int_equal(sums[0].instance + sums[1].instance + sums[3].instance, 0);
    assert_int_equal(db_read_ledger_gaps(r, collect_gap, &gap, &e), 0);
    assert_int_equal(gap.job, 1);
    assert_int_equal(gap.attempt, 2);
    assert_int_equal(gap.ms, 8);
    assert_int_equal(gap.span_ms, 9);
}

static void offers_and_tokens_are_listed_in_order(void **state)
{
    (void)state;
    struct db_batch b = {0};
    struct collected s = {0};
    struct token_row token;

    batch_add(&b, TABLE_OFFERS, &(struct offer_row){.id = 2});
    batch_add(&b, TABLE_OFFERS, &(struct offer_row){.id = 1});
    batch_add(
        &b, TABLE_TOKENS, &(struct token_row){.hash = "b", .join = true, .used_at = WALL_NONE});
    batch_add(&b, TABLE_TOKENS, &(struct token_row){.hash = "a", .user = "ada", .used_at = {5}});
    util_commit(d, &b);
    assert_int_equal(db_read_offers(r, collect_offer, &s, &e), 0);
    assert_ids(&s, 2, 1, 2);
    s = (struct collected){0};
    assert_int_equal(db_read_tokens(r, collect_token, &s, &e), 0);
    assert_ids(&s, 2, 1, 2);
    assert_int_equal(db_read_token_by_hash(r, "b", &token, &e), 0);
    assert_true(token.join);
    assert_false(wall_is_set(token.used_at));
    assert_int_equal(db_read_token_by_hash(r, "a", &token, &e), 0);
    assert_string_equal(token.user, "ada");
    assert_int_equal(token.used_at.ms, 5);
    assert_int_equal(db_read_token(r, 1, &token, &e), 0);
    assert_string_equal(token.hash, "b");
}

static int keep_text(unsigned type, void *ctx, void *stmt, void *text)
{
    (void)type;
    (void)stmt;
    struct buf *last = ctx;
    buf_clear(last);
    buf_adds(last, text);
    return 0;
}

/* The last statement must use only this index: one step in its plan, so no sort. */
static void assert_plan(const struct buf *statement, const char *index)
{
    struct buf text = {0};
    sqlite3_stmt *s;

    buf_printf(&text, "EXPLAIN QUERY PLAN %s", buf_str(statement));
    assert_int_equal(sqlite3_prepare_v2(d->sql, buf_str(&text), -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    if (!strstr((const char *)sqlite3_column_text(s, 3), index))
        fail_msg("%s: %s", buf_str(statement), (const char *)sqlite3_column_text(s, 3));
    if (sqlite3_step(s) != SQLITE_DONE)
        fail_msg("%s: %s", buf_str(statement), (const char *)sqlite3_column_text(s, 3));
    sqlite3_finalize(s);
    buf_deinit(&text);
}

static void lists_read_no_more_than_they_show(void **state)
{
    (void)state;
    struct buf last = {0};
    struct collected s = {0};
    struct token_row token;

    sqlite3_trace_v2(d->sql, SQLITE_TRACE_STMT, keep_text, &last);
    SEEN_JOBS(.limit = 9, .before = 5);
    assert_plan(&last, "INTEGER PRIMARY KEY");
    SEEN_JOBS(.limit = 9, .states = JOBS_LIVE);
    assert_plan(&last, "jobs_live");
    SEEN_JOBS(.limit = 9, .users = {{"ada"}, 1});
    assert_plan(&last, "jobs_user");
    SEEN_JOBS(.limit = 9, .users = {{"ada"}, 1}, .states = JOBS_LIVE);
    assert_plan(&last, "jobs_user_live");
    SEEN_JOBS(.limit = 9, .sort = JOBS_OLDEST);
    assert_plan(&last, "SCAN jobs");
    SEEN_JOBS(.limit = 9, .sort = JOBS_BY_END);
    assert_plan(&last, "jobs_ended");
    SEEN_JOBS(.limit = 9, .sort = JOBS_BY_END, .since_ms = 9);
    assert_plan(&last, "jobs_ended");
    SEEN_JOBS(.limit = 9, .sort = JOBS_BY_END, .users = {{"ada"}, 1}, .ends = 1u << END_FAILED);
    assert_plan(&last, "jobs_ended");
    SEEN_JOBS(.limit = 9, .users = {{"ada", "bob"}, 2}, .since_ms = 9);
    assert_plan(&last, "INTEGER PRIMARY KEY");
    SEEN_JOBS(.limit = 9, .users = {{"ada"}, 1}, .states = 1u << JOB_PENDING, .names = {{"x*"}, 1});
    assert_plan(&last, "jobs_user_live");
    assert_int_equal(db_read_history(r, 2, 1, 10, collect_history, &s, &e), 0);
    assert_plan(&last, "history_job");
    assert_int_equal(db_read_checkpoints(r, 2, collect_checkpoint, &s, &e), 0);
    assert_plan(&last, "PRIMARY KEY");
    assert_int_equal(db_read_ledger(r, 2, collect_ledger, &s, &e), 0);
    assert_plan(&last, "ledger_job");
    assert_int_equal(db_read_nodes(r, true, collect_node, &s, &e), 0);
    assert_plan(&last, "nodes_live");
    assert_int_equal(db_read_instances(r, true, collect_instance, &s, &e), 0);
    assert_plan(&last, "instances_live");
    assert_int_equal(db_read_token_by_hash(r, "aa", &token, &e), ERR_NOT_FOUND);
    assert_plan(&last, "tokens_1");
    struct drill_row drill;
    assert_int_equal(db_read_certificate(r, "aa", &drill, &e), ERR_NOT_FOUND);
    assert_plan(&last, "drills_key");
    assert_int_equal(db_read_drills(r, NULL, 9, collect_drill, &s, &e), 0);
    assert_plan(&last, "drills_asked");
    assert_int_equal(db_read_job_drills(r, 2, collect_drill, &s, &e), 0);
    assert_plan(&last, "PRIMARY KEY");
    sqlite3_trace_v2(d->sql, 0, NULL, NULL);
    buf_deinit(&last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(jobs_are_listed_newest_first_by_filter_and_page),
        TEST(options_that_are_only_stored_are_merged_and_a_task_has_those_of_its_array),
        TEST(filters_go_together),
        TEST(restarts_have_the_times_of_their_machines),
        TEST(a_list_is_sorted_and_continues_after_a_job),
        TEST(a_page_looks_at_no_more_than_so_many),
        TEST(running_jobs_are_on_the_first_page),
        TEST(a_limit_that_cannot_be_is_refused),
        TEST(a_list_tells_the_pool_of_each_newest_attempt),
        TEST(a_callback_can_end_the_walk_well_or_with_an_error),
        TEST(what_does_not_exist_is_not_found),
        TEST(a_job_and_its_texts_come_back),
        TEST(the_parts_of_a_job_come_in_their_order),
        TEST(the_last_save_of_an_attempt_failed_or_not),
        TEST(the_ends_of_an_arrays_tasks_are_read),
        TEST(drills_are_listed_and_the_newest_that_says_something_counts),
        TEST(nodes_and_instances_can_be_the_live_ones_only),
        TEST(offers_and_tokens_are_listed_in_order),
        TEST(the_ledger_is_summed_by_instance_and_its_gaps_are_found),
        TEST(lists_read_no_more_than_they_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
