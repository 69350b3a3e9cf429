/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/store_contract.h"
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include "base/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DO(op, ...) s->ops->op(s, __VA_ARGS__)

void assert_object(struct store *s, const char *name, const char *text)
{
    struct buf out = {0};
    struct err e;
    int64_t size = -1;
    OK(s->ops->read(s, name, 1 << 20, &out, &e));
    assert_string_equal(buf_str(&out), text);
    OK(s->ops->stat(s, name, &size, &e));
    assert_int_equal(size, strlen(text));
    buf_deinit(&out);
}

int append_name(void *ctx, const char *name, int64_t size_bytes)
{
    struct buf *out = ctx;
    buf_printf(out, "%s=%d ", name, (int)size_bytes);
    return out->len > 1000;
}

int stop_at_once(void *ctx, const char *name, int64_t size_bytes)
{
    (void)name, (void)size_bytes;
    ++*(int *)ctx;
    return 1;
}

void contract_bytes_come_back(struct store *s)
{
    static const char bytes[] = "a\0b\xff\r\n";
    struct buf out = {0};
    struct err e;
    int64_t size;
    OK(DO(create, "one/a.b-c_d", bytes, sizeof(bytes), &e));
    OK(DO(read, "one/a.b-c_d", sizeof(bytes), &out, &e));
    assert_int_equal(out.len, sizeof(bytes));
    assert_memory_equal(out.data, bytes, sizeof(bytes));
    OK(DO(create, "empty", "", 0, &e));
    assert_object(s, "empty", "");
    FAILS(ERR_INVALID, DO(read, "one/a.b-c_d", sizeof(bytes) - 1, &out, &e));
    FAILS(ERR_NOT_FOUND, DO(read, "one/none", 9, &out, &e));
    FAILS(ERR_NOT_FOUND, DO(stat, "one/none", &size, &e));
    FAILS(ERR_INVALID, DO(create, "../x", "", 0, &e));
    buf_deinit(&out);
}

void contract_a_name_is_created_once(struct store *s)
{
    struct err e;
    OK(DO(create, "n", "first", 5, &e));
    FAILS(ERR_CONFLICT, DO(create, "n", "second", 6, &e));
    FAILS(ERR_CONFLICT, DO(create, "n", "first", 5, &e));
    assert_object(s, "n", "first");
}

void contract_a_list_is_ordered(struct store *s)
{
    static const char *const names[] = {"b", "a/z", "a-b", "a/b/c", "a.c", "B/x", "a/q", "a/y"};
    struct buf out = {0};
    struct err e;
    int n = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        OK(DO(create, names[i], names[i], strlen(names[i]), &e));
    OK(DO(list, "", append_name, &out, &e));
    assert_string_equal(buf_str(&out), "B/x=3 a-b=3 a.c=3 a/b/c=5 a/q=3 a/y=3 a/z=3 b=1 ");
    buf_clear(&out);
    OK(DO(list, "a/", append_name, &out, &e));
    assert_string_equal(buf_str(&out), "a/b/c=5 a/q=3 a/y=3 a/z=3 ");
    buf_clear(&out);
    OK(DO(list, "none/", append_name, &out, &e));
    assert_string_equal(buf_str(&out), "");
    OK(DO(list, "", stop_at_once, &n, &e));
    assert_int_equal(n, 1);
    buf_deinit(&out);
}

#define NAME_MAX_BYTES 32

static void name_of(int i, char out[NAME_MAX_BYTES])
{
    snprintf(out, NAME_MAX_BYTES, "many/%05d/object", i);
}

/* The i-th of them is the i-th of the list. */
static int count_in_order(void *ctx, const char *name, int64_t size_bytes)
{
    int *n = ctx;
    char expected[NAME_MAX_BYTES];
    name_of((*n)++, expected);
    assert_string_equal(name, expected);
    assert_int_equal(size_bytes, 1);
    return 0;
}

void contract_many_objects(struct store *s, int n)
{
    char(*texts)[NAME_MAX_BYTES] = mem_array((size_t)n + 1, sizeof(*texts));
    const char **names = mem_array((size_t)n + 1, sizeof(*names));
    struct err e;
    int found = 0;
    for (int i = 0; i < n; i++) {
        name_of(i, texts[i]);
        names[i] = texts[i];
        OK(DO(create, texts[i], "x", 1, &e));
    }
    names[n] = "many/never/was";
    OK(DO(list, "many/", count_in_order, &found, &e));
    assert_int_equal(found, n);
    for (int i = 0; i <= n; i += STORE_REMOVE_MAX)
        OK(DO(remove, names + i,
            n + 1 - i < STORE_REMOVE_MAX ? (size_t)(n + 1 - i) : STORE_REMOVE_MAX, &e));
    found = 0;
    OK(DO(list, "many/", count_in_order, &found, &e));
    assert_int_equal(found, 0);
    free(texts);
    free(names);
}

void contract_remove_rename_link(struct store *s, bool can_link)
{
    const char *const names[] = {"p/1", "p/2", "never/was"};
    struct buf out = {0};
    struct err e;
    OK(DO(create, "p/1", "x", 1, &e));
    OK(DO(create, "p/2", "x", 1, &e));
    OK(DO(remove, names, 3, &e));
    OK(DO(remove, names, 3, &e));
    OK(DO(list, "", append_name, &out, &e));
    assert_string_equal(buf_str(&out), "");
    OK(DO(create, "one", "x", 1, &e));
    if (can_link) {
        OK(DO(link, "one", "two/deep", &e));
        FAILS(ERR_CONFLICT, DO(link, "one", "two/deep", &e));
        FAILS(ERR_NOT_FOUND, DO(link, "none", "three", &e));
        assert_object(s, "two/deep", "x");
    } else {
        FAILS(ERR_UNSUPPORTED, DO(link, "one", "two/deep", &e));
    }
    OK(DO(rename, "one", "aside/x", &e));
    FAILS(ERR_NOT_FOUND, DO(rename, "one", "aside/x", &e));
    OK(DO(create, "one", "new", 3, &e));
    OK(DO(rename, "one", "aside/x", &e));
    assert_object(s, "aside/x", "new");
    if (can_link)
        assert_object(s, "two/deep", "x");
    buf_deinit(&out);
}

void contract_checkpoints(struct store *store, void (*arm)(void *ctx), void *ctx)
{
    struct scratch s;
    struct ckpt_stats stats;
    struct err e;
    scratch_init(&s);
    store_close(s.job.store);
    s.job.store = store;
    for (int64_t attempt = 1; attempt <= 2; attempt++) {
        if (arm)
            arm(ctx);
        OK(ckpt_fence(&s.job, attempt, &e));
        for (int64_t sequence = 1; sequence <= 2; sequence++) {
            make_tree(s.tree, 10 * attempt + sequence);
            save(&s, attempt, sequence);
        }
        OK(ckpt_clean(&s.job, attempt, (struct ckpt_keep){.newest = 1}, NULL, NULL, &e));
        assert_int_equal(restore(&s, attempt + 1).id.sequence, 2);
        assert_tree_is(s.out, 10 * attempt + 2);
    }
    FAILS(ERR_CONFLICT, ckpt_save(&s.job, (struct ckpt_id){1, 3}, s.tree, -1, NULL, &stats, &e));
    OK(fs_remove_tree(s.dir, &e));
}
