/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/store_contract.h"
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include "base/str.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORE (((struct scratch *)*state)->job.store)
#define DO(op, ...) STORE->ops->op(STORE, __VA_ARGS__)

static void an_object_comes_back_as_it_was_made(void **state)
{
    struct buf out = {0};
    struct err e;
    int64_t size;

    OK(DO(create, "a/b/c.json", "hello\0there", 11, &e));
    OK(DO(read, "a/b/c.json", 11, &out, &e));
    assert_int_equal(out.len, 11);
    assert_memory_equal(out.data, "hello\0there", 11);
    OK(DO(stat, "a/b/c.json", &size, &e));
    assert_int_equal(size, 11);
    FAILS(ERR_INVALID, DO(read, "a/b/c.json", 10, &out, &e));
    FAILS(ERR_NOT_FOUND, DO(read, "a/b/d", 10, &out, &e));
    FAILS(ERR_NOT_FOUND, DO(stat, "x/y", &size, &e));
    FAILS(ERR_NOT_FOUND, DO(stat, "a/b", &size, &e));
    buf_deinit(&out);
}

static void a_name_is_created_once(void **state)
{
    struct buf out = {0};
    struct err e;

    OK(DO(create, "x/first", "1", 1, &e));
    FAILS(ERR_CONFLICT, DO(create, "x/first", "2", 1, &e));
    OK(DO(read, "x/first", 9, &out, &e));
    assert_string_equal(buf_str(&out), "1");
    buf_deinit(&out);
}

static int count(void *ctx, const char *name, int64_t size_bytes)
{
    (void)name;
    (void)size_bytes;
    ++*(int *)ctx;
    return 0;
}

static void what_is_put_is_there_when_it_is_flushed(void **state)
{
    struct scratch *s = *state;
    struct buf out = {0};
    char name[32], url[400];
    struct err e;
    int n = 0;

    OK(DO(flush, "put/", &e)); /* nothing was put */
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "put/%d", i);
        OK(DO(put, name, name, strlen(name), NULL, &e));
    }
    OK(DO(put, "put/49", "again", 5, NULL, &e)); /* not known yet: either is allowed */
    OK(DO(flush, "put/", &e));
    OK(DO(list, "put/", count, &n, &e));
    assert_int_equal(n, 50);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "put/%d", i);
        OK(DO(read, name, 100, &out, &e));
        assert_string_equal(buf_str(&out), name);
    }
    FAILS(ERR_CONFLICT, DO(put, "put/7", "x", 1, NULL, &e));
    OK(DO(put, "put/unflushed", "x", 1, NULL, &e));
    store_close(s->job.store);
    snprintf(url, sizeof(url), "file://%s", s->store);
    OK(store_open(url, NULL, &s->job.store, &e));
    n = 0;
    OK(DO(list, "put/", count, &n, &e));
    assert_int_equal(n, 50); /* and nothing else */
    buf_deinit(&out);
}

struct racer {
    struct store *store;
    pthread_barrier_t *barrier;
    int won;
};

static void *race(void *ctx)
{
    struct racer *r = ctx;
    struct err e;
    char name[32];

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "race/%d/x", i);
        pthread_barrier_wait(r->barrier);
        r->won += r->store->ops->create(r->store, name, "x", 1, &e) == 0;
    }
    return NULL;
}

static void of_many_creates_of_one_name_one_wins(void **state)
{
    struct racer racers[4] = {0};
    pthread_t threads[4];
    pthread_barrier_t barrier;
    int won = 0;

    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++) {
        racers[i] = (struct racer){.store = STORE, .barrier = &barrier};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        won += racers[i].won;
    }
    pthread_barrier_destroy(&barrier);
    assert_int_equal(won, 20);
}

static void a_list_is_in_byte_order_and_below_its_prefix(void **state)
{
    static const char *const names[] = {"b", "a/z", "a-b", "a/b/c", "a/b", "a.c", "B/x"};
    struct buf out = {0};
    struct err e;
    int n = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], "a/b") != 0)
            OK(DO(create, names[i], names[i], strlen(names[i]), &e));
    OK(DO(list, "", append_name, &out, &e));
    assert_string_equal(buf_str(&out), "B/x=3 a-b=3 a.c=3 a/b/c=5 a/z=3 b=1 ");
    buf_clear(&out);
    OK(DO(list, "a/", append_name, &out, &e));
    assert_string_equal(buf_str(&out), "a/b/c=5 a/z=3 ");
    buf_clear(&out);
    OK(DO(list, "none/", append_name, &out, &e));
    assert_string_equal(buf_str(&out), "");
    OK(DO(list, "", stop_at_once, &n, &e));
    assert_int_equal(n, 1);
    buf_deinit(&out);
}

static void removing_leaves_no_empty_directories_and_can_be_repeated(void **state)
{
    const char *const names[] = {"p/q/1", "p/q/2", "p/r/3", "never/was"};
    struct scratch *s = *state;
    struct err e;

    for (int i = 0; i < 3; i++)
        OK(DO(create, names[i], "x", 1, &e));
    OK(DO(remove, names, 2, &e));
    assert_false(fs_exists(path_in(s->store, "p/q")));
    assert_true(fs_exists(path_in(s->store, "p/r/3")));
    OK(DO(remove, names, 4, &e));
    assert_false(fs_exists(path_in(s->store, "p")));
    assert_true(fs_exists(s->store));
    OK(DO(create, "p/q/1", "y", 1, &e));
}

static void an_object_can_be_moved_and_linked(void **state)
{
    struct scratch *s = *state;
    struct buf out = {0};
    struct err e;

    OK(DO(create, "one/x", "x", 1, &e));
    OK(DO(link, "one/x", "two/deep/x", &e));
    FAILS(ERR_CONFLICT, DO(link, "one/x", "two/deep/x", &e));
    FAILS(ERR_NOT_FOUND, DO(link, "one/none", "two/y", &e));
    OK(DO(rename, "one/x", "aside/x", &e));
    assert_false(fs_exists(path_in(s->store, "one")));
    FAILS(ERR_NOT_FOUND, DO(rename, "one/x", "aside/x", &e));
    OK(DO(create, "one/x", "new", 3, &e));
    OK(DO(rename, "one/x", "aside/x", &e));
    OK(DO(read, "aside/x", 9, &out, &e));
    assert_string_equal(buf_str(&out), "new");
    OK(DO(read, "two/deep/x", 9, &out, &e));
    assert_string_equal(buf_str(&out), "x");
    buf_deinit(&out);
}

static void names_that_could_leave_the_store_are_refused(void **state)
{
    static const char *const bad[] = {"", "/", "/etc/passwd", "a//b", "a/", "../x", "a/../../x",
        ".hidden", "a/.b", "a b", "a\\b", "ä", "a\nb"};
    struct err e;
    char longest[STORE_NAME_MAX + 2];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(store_name_is_valid(bad[i]));
        FAILS(ERR_INVALID, DO(create, bad[i], "x", 1, &e));
    }
    memset(longest, 'a', sizeof(longest));
    longest[STORE_NAME_MAX + 1] = '\0';
    assert_false(store_name_is_valid(longest));
    longest[STORE_NAME_MAX] = '\0';
    assert_true(store_name_is_valid(longest));
}

static void a_url_that_is_not_supported_is_refused_with_what_is(void **state)
{
    static const char *const bad[] = {"", "/srv/belay", "s4://bucket/x", "file:", "file://",
        "file://host/x", "file:///", "file:///a%zz", "file:///a%00b", "http://x"};
    struct scratch *scratch = *state;
    struct store *s;
    struct err e;
    char url[400];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        FAILS(ERR_INVALID, store_open(bad[i], NULL, &s, &e));
    FAILS(ERR_INVALID, store_open("s4://bucket/x", NULL, &s, &e));
    assert_non_null(strstr(e.text, "file:///"));
    snprintf(url, sizeof(url), "file://%s/with%%20blank//", scratch->dir);
    OK(store_open(url, NULL, &s, &e));
    assert_true(fs_exists(path_in(scratch->dir, "with blank")));
    store_close(s);
    write_text(scratch->dir, "file", "x");
    snprintf(url, sizeof(url), "file://%s/file/below", scratch->dir);
    assert_int_not_equal(store_open(url, NULL, &s, &e), 0);
    assert_true(e.of_store);
}

/* Another process has removed it: it must not count as durable. */
static void what_was_put_and_is_gone_is_not_flushed(void **state)
{
    struct scratch *s = *state;
    struct store *store = s->job.store;
    char names[2][600];
    struct err e;

    OK(store_put(store, "d/x", "x", 1, NULL, &e));
    OK(store_put(store, "d/y", "y", 1, NULL, &e));
    assert_int_equal(find_objects(s, "d/x.", names, 2), 1);
    assert_int_equal(unlink(path_in(s->store, names[0])), 0);
    FAILS(ERR_NOT_FOUND, store_flush(store, "d/", &e));
    OK(store_flush(store, "nothing/", &e));
}

/* Errors are never marked as this machine's. */
static void errors_are_marked_as_the_stores(void **state)
{
    struct scratch *scratch = *state;
    struct store *s = scratch->job.store;
    struct buf out = {0};
    const char *const names[] = {"../x"};
    int64_t size;
    struct err e;

    OK(s->ops->create(s, "a", "x", 1, &e));
    FAILS(ERR_CONFLICT, s->ops->create(s, "a", "x", 1, &e));
    assert_true(e.of_store);
    FAILS(ERR_INVALID, store_put(s, "../x", "x", 1, NULL, &e));
    assert_true(e.of_store);
    FAILS(ERR_NOT_FOUND, s->ops->read(s, "b", 1, &out, &e));
    assert_true(e.of_store);
    FAILS(ERR_NOT_FOUND, s->ops->stat(s, "b", &size, &e));
    assert_true(e.of_store);
    FAILS(ERR_INVALID, s->ops->remove(s, names, 1, &e));
    assert_true(e.of_store);
    FAILS(ERR_NOT_FOUND, s->ops->rename(s, "b", "c", &e));
    assert_true(e.of_store);
    FAILS(ERR_NOT_FOUND, s->ops->link(s, "b", "c", &e));
    assert_true(e.of_store);
    buf_deinit(&out);
}

static int has_owner(void *ctx, const char *name, int64_t size_bytes)
{
    struct scratch *s = ctx;
    struct stat st;
    char path[600], *slash;

    (void)size_bytes;
    snprintf(path, sizeof(path), "%s/%s", s->store, name);
    while (strlen(path) > strlen(s->store)) { /* the object, and the directories above it */
        assert_int_equal(lstat(path, &st), 0);
        assert_int_equal(st.st_uid, 1);
        assert_int_equal(st.st_gid, 2);
        slash = strrchr(path, '/');
        *slash = '\0';
    }
    return 0;
}

static void what_root_creates_belongs_to_the_owner_of_the_store(void **state)
{
    struct scratch *s = *state;
    char url[400];
    struct err e;
    int n = 0;

    if (geteuid() != 0)
        skip();
    store_close(s->job.store);
    assert_int_equal(chown(s->store, 1, 2), 0);
    snprintf(url, sizeof(url), "file://%s", s->store);
    OK(store_open(url, NULL, &s->job.store, &e));
    OK(DO(create, "lab/jobs/1/fence", "x", 1, &e));
    OK(DO(put, "lab/jobs/1/chunks/a", "x", 1, NULL, &e));
    OK(DO(flush, "lab/jobs/1/chunks/", &e));
    OK(DO(link, "lab/jobs/1/chunks/a", "lab/jobs/2/chunks/a", &e));
    OK(DO(rename, "lab/jobs/1/fence", "lab/old/1/fence", &e));
    OK(DO(list, "", count, &n, &e));
    assert_int_equal(n, 3);
    OK(DO(list, "", has_owner, s, &e));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_object_comes_back_as_it_was_made),
        TEST(a_name_is_created_once),
        TEST(what_is_put_is_there_when_it_is_flushed),
        TEST(of_many_creates_of_one_name_one_wins),
        TEST(a_list_is_in_byte_order_and_below_its_prefix),
        TEST(removing_leaves_no_empty_directories_and_can_be_repeated),
        TEST(an_object_can_be_moved_and_linked),
        TEST(names_that_could_leave_the_store_are_refused),
        TEST(a_url_that_is_not_supported_is_refused_with_what_is),
        TEST(what_was_put_and_is_gone_is_not_flushed),
        TEST(errors_are_marked_as_the_stores),
        TEST(what_root_creates_belongs_to_the_owner_of_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
