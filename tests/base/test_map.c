/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps, lists and state tables.
 */
#include "tests/base/tools.h"

#include "base/list.h"
#include "base/map.h"
#include "base/prng.h"
#include "base/sm.h"
#include <stdio.h>

/* ---- maps ---- */

#define KEYS 300

/* Compares random puts and removes with an array, everything from time to time. */
static void a_map_agrees_with_a_linear_search(void **state)
{
    struct map m = {0};
    char values[8], *known[KEYS] = {0};
    struct prng p;
    (void)state;
    prng_init(&p, 7);
    for (int i = 0; i < 60000; i++) {
        size_t k = prng_below(&p, KEYS);
        int64_t key = (int64_t)k * 4096 - 77; /* close together, also negative */
        if (prng_chance(&p, 0.5)) {
            known[k] = &values[prng_below(&p, 8)];
            map_put(&m, key, known[k]);
        } else {
            assert_ptr_equal(map_remove(&m, key), known[k]);
            known[k] = NULL;
        }
        assert_ptr_equal(map_get(&m, key), known[k]);
        if (i % 1000)
            continue;
        size_t n = 0, pos = 0;
        for (k = 0; k < KEYS; k++) {
            n += known[k] != NULL;
            assert_ptr_equal(map_get(&m, (int64_t)k * 4096 - 77), known[k]);
        }
        assert_int_equal(map_size(&m), n);
        for (void *v; (v = map_next(&m, &pos, &key)); n--)
            assert_ptr_equal(v, known[(key + 77) / 4096]);
        assert_int_equal(n, 0);
    }
    map_deinit(&m);
    assert_int_equal(map_size(&m), 0);
    assert_null(map_get(&m, 1));
    map_put(&m, INT64_MIN, values);
    assert_ptr_equal(map_get(&m, INT64_MIN), values);
    map_deinit(&m);
}

/* Large enough that the tables use huge pages; half of the entries are removed. */
static void a_large_map_works_like_a_small_one(void **state)
{
    enum { LARGE = 200000 };
    static char values[LARGE];
    struct map m = {0};
    struct smap s = {0};
    char key[32];
    (void)state;
    for (int i = 0; i < LARGE; i++) {
        snprintf(key, sizeof key, "key %d", i);
        map_put(&m, i, &values[i]);
        smap_put(&s, key, &values[i]);
    }
    for (int i = 0; i < LARGE; i += 2) {
        snprintf(key, sizeof key, "key %d", i);
        assert_ptr_equal(map_remove(&m, i), &values[i]);
        assert_ptr_equal(smap_remove(&s, key), &values[i]);
    }
    for (int i = 0; i < LARGE; i++) {
        snprintf(key, sizeof key, "key %d", i);
        assert_ptr_equal(map_get(&m, i), i % 2 ? &values[i] : NULL);
        assert_ptr_equal(smap_get(&s, key), i % 2 ? &values[i] : NULL);
    }
    map_deinit(&m);
    smap_deinit(&s);
}

static void keys_of_a_string_map_are_copied(void **state)
{
    struct smap m = {0};
    char key[16];
    int values[200];
    (void)state;
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        smap_put(&m, key, &values[i]);
    }
    smap_put(&m, "", &values[0]);
    smap_put(&m, "key-7", &values[8]); /* replaces */
    assert_int_equal(smap_size(&m), 201);
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        assert_ptr_equal(smap_get(&m, key), &values[i == 7 ? 8 : i]);
    }
    assert_ptr_equal(smap_remove(&m, "key-7"), &values[8]);
    assert_null(smap_remove(&m, "key-7"));
    assert_null(smap_get(&m, "key-200"));
    size_t pos = 0, n = 0;
    const char *found;
    for (void *v; (v = smap_next(&m, &pos, &found)); n++)
        assert_ptr_equal(smap_get(&m, found), v);
    assert_int_equal(n, 200);
    smap_deinit(&m);
    assert_null(smap_get(&m, "key-1"));
}

/* ---- lists ---- */

struct item {
    int n;
    struct link in_list;
};

static void assert_order(const struct list *l, const char *expected)
{
    char found[32] = "";
    LIST_FOREACH (l, it)
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%d",
            LIST_ENTRY(it, struct item, in_list)->n);
    assert_string_equal(found, expected);
}

static void lists_keep_their_order(void **state)
{
    struct list l = {0}, other = {0};
    struct item i[6];
    (void)state;
    for (int k = 0; k < 6; k++)
        i[k] = (struct item){.n = k};
    assert_true(list_is_empty(&l));
    assert_null(list_first(&l));
    assert_null(list_pop(&l));
    list_push_back(&l, &i[1].in_list);
    list_push_back(&l, &i[3].in_list);
    list_push_front(&l, &i[0].in_list);
    list_insert_before(&i[3].in_list, &i[2].in_list);
    list_push_front(&other, &i[4].in_list);
    assert_order(&l, "0123");
    assert_order(&other, "4");
    assert_true(link_is_in(&i[2].in_list));
    link_remove(&i[2].in_list);
    link_remove(&i[2].in_list);
    assert_false(link_is_in(&i[2].in_list));
    assert_order(&l, "013");
    assert_ptr_equal(list_pop(&l), &i[0].in_list);
    assert_ptr_equal(list_next(&l, &i[1].in_list), &i[3].in_list);
    assert_null(list_next(&l, &i[3].in_list));
    LIST_FOREACH (&l, it)
        link_remove(it); /* the body may remove the current element */
    assert_true(list_is_empty(&l));
    list_push_back(&l, &i[5].in_list);
    assert_order(&l, "5");
}

static void push_twice(void *arg)
{
    struct list l = {0};
    struct item *i = arg;
    list_push_back(&l, &i->in_list);
    list_push_back(&l, &i->in_list);
}

static void an_element_is_in_one_list_at_most(void **state)
{
    struct item i = {0};
    (void)state;
    assert_true(dies(push_twice, &i));
}

/* ---- state tables ---- */

enum { RED, GREEN, YELLOW };
static const char *const light_names[] = {"red", "green", "yellow", NULL};
static const struct sm_transition light_moves[] = {{RED, GREEN}, {GREEN, YELLOW}, {YELLOW, RED}};
static const struct sm light = {"light", light_names, light_moves, 3};

static void only_what_the_table_allows_happens(void **state)
{
    int colour = RED;
    (void)state;
    sm_move(&light, 1, &colour, GREEN);
    assert_int_equal(colour, GREEN);
    assert_true(sm_allowed(&light, GREEN, YELLOW));
    assert_false(sm_allowed(&light, GREEN, RED) || sm_allowed(&light, GREEN, GREEN));
    assert_string_equal(sm_name(&light, YELLOW), "yellow");
    assert_string_equal(sm_name(&light, 3), "?");
    assert_string_equal(sm_name(&light, -1), "?");
}

static void move_illegally(void *arg)
{
    int colour = RED;
    (void)arg;
    sm_move(&light, 1, &colour, YELLOW);
}

static void an_illegal_move_is_a_bug(void **state)
{
    (void)state;
    assert_true(dies(move_illegally, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_agrees_with_a_linear_search),
        cmocka_unit_test(keys_of_a_string_map_are_copied),
        cmocka_unit_test(a_large_map_works_like_a_small_one),
        cmocka_unit_test(lists_keep_their_order),
        cmocka_unit_test(an_element_is_in_one_list_at_most),
        cmocka_unit_test(only_what_the_table_allows_happens),
        cmocka_unit_test(an_illegal_move_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
