/* SPDX-License-Identifier: Apache-2.0
 *
 * What pages about nodes and the newest events read.
 */
#include "tests/db/read_rig.h"

#include <string.h>

struct ids {
    int64_t ids[64];
    int n;
};

static int collect_event(void *ctx, const struct history_row *row)
{
    struct ids *l = ctx;
    l->ids[l->n++] = row->id;
    return 0;
}

static int collect_job(void *ctx, const struct job_row *row)
{
    struct ids *l = ctx;
    l->ids[l->n++] = row->id;
    return 0;
}

/* The ids as text: "3 5 next 2". */
static const char *recent(struct recent_filter f)
{
    static char text[512];
    struct ids l = {0};
    int64_t next = -1;
    size_t len = 0;
    f.kinds = f.kinds ? f.kinds : "";
    assert_int_equal(db_read_recent_history(r, &f, collect_event, &l, &next, &e), 0);
    for (int i = 0; i < l.n; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%d ", (int)l.ids[i]);
    snprintf(text + len, sizeof(text) - len, "next %d", (int)next);
    return text;
}

/* Events 1 to 10: even ones are of node 2, those that 3 divides of instance 3; 4 and 5 saves. */
static void add_events(void)
{
    struct db_batch b = {0};
    for (int64_t id = 1; id <= 10; id++) {
        struct history_row row = {.id = id};
        row.node = id % 2 ? 0 : 2;
        row.instance = id % 3 ? 0 : 3;
        STR_COPY(row.kind, id == 4 || id == 5 ? "saved" : "lost");
        batch_add(&b, TABLE_HISTORY, &row);
    }
    util_commit(d, &b);
}

static void the_newest_events_are_read_page_by_page(void **state)
{
    (void)state;
    assert_string_equal(recent((struct recent_filter){.limit = 4}), "next 0");
    add_events();
    assert_string_equal(recent((struct recent_filter){.limit = 4}), "7 8 9 10 next 7");
    assert_string_equal(recent((struct recent_filter){.limit = 4, .before = 7}), "3 4 5 6 next 3");
    assert_string_equal(recent((struct recent_filter){.limit = 4, .before = 3}), "1 2 next 0");
    assert_string_equal(recent((struct recent_filter){.limit = 4, .before = 1}), "next 0");
    assert_string_equal(recent((struct recent_filter){.limit = 2, .before = 99}), "9 10 next 9");
}

static void the_newest_events_are_filtered(void **state)
{
    (void)state;
    add_events();
    assert_string_equal(recent((struct recent_filter){.limit = 9, .node = 2}), "2 4 6 8 10 next 0");
    assert_string_equal(
        recent((struct recent_filter){.limit = 2, .node = 2, .before = 8}), "4 6 next 4");
    assert_string_equal(
        recent((struct recent_filter){.limit = 9, .node = 2, .instance = 3}), "6 next 0");
    assert_string_equal(
        recent((struct recent_filter){.limit = 9, .kinds = ",saved,joined,"}), "4 5 next 0");
    assert_string_equal(recent((struct recent_filter){.limit = 9, .kinds = ",save,"}), "next 0");
}

/* However few match, a page ends; the next one goes on where it ended. */
static void a_page_of_events_examines_a_limited_number(void **state)
{
    (void)state;
    struct db_batch b = {0};
    for (int64_t id = 1; id <= RECENT_EXAMINED_MAX + 5; id++)
        batch_add(&b, TABLE_HISTORY, &(struct history_row){.id = id, .node = id == 3 ? 7 : 1});
    util_commit(d, &b);
    assert_string_equal(recent((struct recent_filter){.limit = 9, .node = 7}), "next 6");
    assert_string_equal(
        recent((struct recent_filter){.limit = 9, .node = 7, .before = 6}), "3 next 0");
}

/* Job 1 runs on node 1 and job 2 on nodes 1 and 2; job 3 was on node 1 and now waits; job 4 ended
 * there. */
static void jobs_of_a_node_are_those_with_an_attempt_there(void **state)
{
    (void)state;
    static const enum job_state states[] = {
        JOB_PENDING, JOB_RUNNING, JOB_RUNNING, JOB_PENDING, JOB_ENDED};
    struct db_batch b = {0};
    for (int64_t id = 1; id <= 4; id++) {
        struct attempt_row a = {.job = id, .attempt = 1, .node = 1};
        a.state = id <= 2 ? ATTEMPT_RUNNING : ATTEMPT_ENDED;
        add_job(&b, id, "ada", states[id]);
        batch_add(&b, TABLE_ATTEMPTS, &a);
        a.rank = 1, a.node = 2;
        if (id == 2)
            batch_add(&b, TABLE_ATTEMPTS, &a);
    }
    util_commit(d, &b);
    static const struct {
        int64_t node;
        int32_t limit;
        const char *user;
        int n;
    } cases[] = {{1, 9, NULL, 2}, {1, 1, NULL, 1}, {2, 9, NULL, 1}, {3, 9, NULL, 0},
        {1, 9, "ada", 2}, {1, 9, "bob", 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job_filter f = {.states = JOBS_LIVE, .node = cases[i].node, .limit = cases[i].limit};
        struct ids l = {0};
        if (cases[i].user)
            f.users = (struct job_words){{cases[i].user}, 1};
        assert_int_equal(db_read_jobs(r, &f, collect_job, &l, NULL, &e), 0);
        assert_int_equal(l.n, cases[i].n);
        if (l.n)
            assert_int_equal(l.ids[0], 2); /* newest first */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_newest_events_are_read_page_by_page),
        TEST(the_newest_events_are_filtered),
        TEST(a_page_of_events_examines_a_limited_number),
        TEST(jobs_of_a_node_are_those_with_an_attempt_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
