/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/uv/http_turns.h"

enum { HOLDERS = 12 };

struct world {
    struct http_admission a;
    struct http_turns t;
    struct http_holder h[HOLDERS];
};

static void setup(struct world *w)
{
    *w = (struct world){0};
    for (int i = 0; i < HTTP_CLASSES; i++)
        w->a.classes[i].limits = (struct http_class_limits){.max_connections = 100};
}

static void enter(struct world *w, int i, enum http_class class, const char *name)
{
    struct http_holder *victim;
    assert_int_equal(http_admission_enter(&w->a, &w->h[i], class, name, &victim), HTTP_ADMITTED);
}

static void check_next(struct world *w, int i)
{
    assert_ptr_equal(http_turns_next(&w->t), i < 0 ? NULL : &w->h[i]);
}

static void teardown(struct world *w)
{
    check_next(w, -1);
    assert_int_equal(w->t.n, 0);
    for (int i = 0; i < HOLDERS; i++)
        http_admission_leave(&w->a, &w->h[i]);
    http_admission_deinit(&w->a);
}

static void parties_take_turns_each_in_order_of_arrival(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    for (int i = 0; i < 6; i++) {
        enter(&w, i, HTTP_USER, "greedy");
        http_turns_add(&w.t, &w.h[i], true);
    }
    for (int i = 6; i < 8; i++) {
        enter(&w, i, HTTP_USER, "other");
        http_turns_add(&w.t, &w.h[i], true);
        http_turns_add(&w.t, &w.h[i], true); /* already waiting */
    }
    assert_int_equal(w.t.n, 8);
    check_next(&w, 0);
    check_next(&w, 6);
    check_next(&w, 1);
    http_turns_add(&w.t, &w.h[1], false); /* again, behind those of its party that waited before */
    check_next(&w, 7);
    for (int i = 2; i < 6; i++)
        check_next(&w, i);
    check_next(&w, 1);
    teardown(&w);
}

static void classes_take_turns(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    for (int i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        enter(&w, i, HTTP_STRANGER, name);
        http_turns_add(&w.t, &w.h[i], true);
    }
    enter(&w, 4, HTTP_NODE, "node");
    http_turns_add(&w.t, &w.h[4], true);
    enter(&w, 5, HTTP_USER, "user");
    http_turns_add(&w.t, &w.h[5], true);
    check_next(&w, 0);
    check_next(&w, 5);
    check_next(&w, 4);
    for (int i = 1; i < 4; i++)
        check_next(&w, i);
    teardown(&w);
}

static void classes_share_the_time(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    for (int i = 0; i < 2; i++) {
        enter(&w, i, HTTP_USER, i ? "other" : "slow");
        http_turns_add(&w.t, &w.h[i], true);
    }
    for (int i = 2; i < HOLDERS; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        enter(&w, i, HTTP_NODE, name);
        http_turns_add(&w.t, &w.h[i], true);
    }
    check_next(&w, 0);
    http_turns_used(&w.t, 4500);
    for (int i = 2; i < 7; i++) {
        check_next(&w, i);
        http_turns_used(&w.t, 1000);
    }
    check_next(&w, 1);
    http_turns_used(&w.t, 1000);
    for (int i = 7; i < HOLDERS; i++) {
        check_next(&w, i);
        http_turns_used(&w.t, 10);
    }
    teardown(&w);
}

static void a_class_that_does_not_wait_saves_no_time(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    for (int i = 0; i < 4; i++) {
        enter(&w, i, HTTP_USER, i % 2 ? "ann" : "bob");
        http_turns_add(&w.t, &w.h[i], true);
    }
    check_next(&w, 0);
    http_turns_used(&w.t, 5000);
    for (int i = 4; i < 8; i++) {
        enter(&w, i, HTTP_NODE, i % 2 ? "n" : "m");
        http_turns_add(&w.t, &w.h[i], true);
    }
    check_next(&w, 4);
    http_turns_used(&w.t, 2000);
    check_next(&w, 1);
    http_turns_used(&w.t, 1000);
    check_next(&w, 2);
    http_turns_used(&w.t, 3000);
    check_next(&w, 5);
    http_turns_used(&w.t, 1000);
    check_next(&w, 6);
    http_turns_used(&w.t, 1000);
    check_next(&w, 3); /* both have used as much */
    check_next(&w, 7);
    teardown(&w);
}

static void of_strangers_at_an_address_the_newest_event_goes_first_then_the_oldest(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    for (int i = 0; i < 5; i++) {
        enter(&w, i, HTTP_STRANGER, "one address");
        http_turns_add(&w.t, &w.h[i], true);
    }
    check_next(&w, 4);
    http_turns_add(&w.t, &w.h[4], false); /* it has had a turn, so the others come first */
    check_next(&w, 0);
    check_next(&w, 3);
    check_next(&w, 1);
    check_next(&w, 2);
    check_next(&w, 4);
    teardown(&w);
}

/* Each turn brings a new event from the same address. */
static void a_flood_of_strangers_does_not_starve_an_older_one(void **state)
{
    (void)state;
    struct world w;
    struct http_holder *h;
    enum { OLDER = 4 };
    int n_turns = 0;
    setup(&w);
    for (int i = 0; i < HOLDERS; i++)
        enter(&w, i, HTTP_STRANGER, "one address");
    for (int i = 0; i < OLDER - 1; i++)
        http_turns_add(&w.t, &w.h[i], true);
    http_turns_add(&w.t, &w.h[OLDER - 1], false); /* one that has had a turn also waits */
    for (int i = OLDER; i < HOLDERS; i++)
        http_turns_add(&w.t, &w.h[i], true);
    for (int n_older = 0; n_older < OLDER; n_turns++) {
        assert_in_range(n_turns, 0, 2 * OLDER - 1);
        h = http_turns_next(&w.t);
        n_older += h < &w.h[OLDER];
        if (h >= &w.h[OLDER])
            http_turns_add(&w.t, h, true);
    }
    while (w.t.n > 0)
        http_turns_next(&w.t);
    teardown(&w);
}

static void a_removed_connection_gets_no_turn(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    for (int i = 0; i < 3; i++) {
        enter(&w, i, HTTP_USER, i < 2 ? "ann" : "bob");
        http_turns_add(&w.t, &w.h[i], true);
    }
    http_turns_remove(&w.t, &w.h[2]);
    http_turns_remove(&w.t, &w.h[2]);
    http_admission_leave(&w.a, &w.h[2]); /* the last of its party */
    http_turns_remove(&w.t, &w.h[0]);
    enter(&w, 0, HTTP_NODE, "moved");
    http_turns_add(&w.t, &w.h[0], true);
    assert_int_equal(w.t.n, 2);
    w.t.next = HTTP_NODE;
    check_next(&w, 0);
    check_next(&w, 1);
    teardown(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parties_take_turns_each_in_order_of_arrival),
        cmocka_unit_test(classes_take_turns),
        cmocka_unit_test(classes_share_the_time),
        cmocka_unit_test(a_class_that_does_not_wait_saves_no_time),
        cmocka_unit_test(of_strangers_at_an_address_the_newest_event_goes_first_then_the_oldest),
        cmocka_unit_test(a_flood_of_strangers_does_not_starve_an_older_one),
        cmocka_unit_test(a_removed_connection_gets_no_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
