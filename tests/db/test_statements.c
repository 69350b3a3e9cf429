/* SPDX-License-Identifier: Apache-2.0 */
#include "util.h"

#include "db/query.h"
#include <stdio.h>
#include <string.h>

#define ONE_TWO "SELECT 1 WHERE ?1 IS NULL OR ?1 = 1 UNION ALL SELECT 2"

struct fixture {
    sqlite3 *sql;
    struct statements statements;
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    *state = &f;
    if (sqlite3_open(":memory:", &f.sql) != SQLITE_OK)
        return -1;
    f.statements.sql = f.sql;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    statements_deinit(&f->statements);
    return sqlite3_close(f->sql) == SQLITE_OK ? 0 : -1; /* else one was lost */
}

static sqlite3_stmt *take(struct fixture *f, const char *text)
{
    sqlite3_stmt *s = NULL;
    assert_int_equal(statements_take(&f->statements, text, &s), SQLITE_OK);
    return s;
}

static int there_are(const struct fixture *f)
{
    int n = 0;
    for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(f->sql, s));)
        n++;
    return n;
}

static void a_text_is_parsed_once(void **state)
{
    struct fixture *f = *state;
    sqlite3_stmt *first = take(f, ONE_TWO);
    statements_give(&f->statements, first);
    sqlite3_stmt *other = take(f, "SELECT 3");
    assert_ptr_equal(take(f, ONE_TWO), first);
    assert_int_equal(there_are(f), 2);
    statements_give(&f->statements, other);
    statements_give(&f->statements, first);
}

static void a_statement_in_use_is_not_given_twice(void **state)
{
    struct fixture *f = *state;
    sqlite3_stmt *first = take(f, ONE_TWO), *second = take(f, ONE_TWO);
    assert_ptr_not_equal(first, second);
    assert_int_equal(sqlite3_step(first), SQLITE_ROW);
    assert_int_equal(sqlite3_step(second), SQLITE_ROW);
    assert_int_equal(sqlite3_step(first), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(first, 0), 2);
    assert_int_equal(sqlite3_column_int(second, 0), 1);
    statements_give(&f->statements, second);
    statements_give(&f->statements, first);
}

static void a_statement_is_given_without_bound_values(void **state)
{
    struct fixture *f = *state;
    sqlite3_stmt *s = take(f, ONE_TWO);
    sqlite3_bind_int(s, 1, 7);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(s, 0), 2);
    statements_give(&f->statements, s); /* finished early */
    assert_ptr_equal(take(f, ONE_TWO), s);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(s, 0), 1);
    statements_give(&f->statements, s);
}

static void the_longest_unused_goes(void **state)
{
    struct fixture *f = *state;
    char text[40];
    for (int i = 0; i < STATEMENTS_MAX + 5; i++) {
        snprintf(text, sizeof(text), "SELECT %d", i);
        statements_give(&f->statements, take(f, text));
        /* prepared repeatedly */
        statements_give(&f->statements, take(f, "SELECT 0"));
    }
    assert_int_equal(there_are(f), STATEMENTS_MAX);
    statements_give(&f->statements, take(f, "SELECT 0"));
    for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(f->sql, s));)
        assert_string_not_equal(sqlite3_sql(s), "SELECT 1");
}

static void what_cannot_be_parsed_is_not_kept(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct query q;
    for (int i = 0; i < 2; i++) {
        query_init_text(&q, &f->statements, "SELECT what FROM nowhere", &e);
        query_i64(&q, 1, 1);
        assert_false(query_step(&q));
        assert_int_not_equal(query_finish(&q), 0);
        assert_non_null(strstr(e.text, "nowhere"));
    }
    assert_int_equal(there_are(f), 0);
}

/* Prepared once, at the first of the uses; a schema change in between is handled. */
static void a_query_is_kept_over_others(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct query q;
    assert_int_equal(sql_exec(f->sql, "CREATE TABLE t (a); INSERT INTO t VALUES (5)", &e), 0);
    for (int i = 0; i < 3; i++) {
        query_init_text(&q, &f->statements, "SELECT * FROM t", &e);
        assert_true(query_step(&q));
        assert_int_equal(sqlite3_column_int(q.stmt, 0), 5);
        assert_int_equal(sqlite3_column_count(q.stmt), 1 + (i == 2));
        assert_int_equal(query_finish(&q), 0);
        assert_int_equal(there_are(f), 1);
        if (i == 1)
            assert_int_equal(sql_exec(f->sql, "ALTER TABLE t ADD COLUMN b", &e), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_is_parsed_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_statement_in_use_is_not_given_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(a_statement_is_given_without_bound_values, setup, teardown),
        cmocka_unit_test_setup_teardown(the_longest_unused_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_parsed_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_query_is_kept_over_others, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
