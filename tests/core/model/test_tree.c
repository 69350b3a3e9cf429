/* SPDX-License-Identifier: Apache-2.0
 *
 * Trees with sums: after any insertion, removal or change each element has the minimum of its
 * subtree.
 */
#include "scheduler/core/model/tree.h"
#include "base/prng.h"
#include "tests/core/lab.h"

#define THINGS 300
#define TURNS 20000

struct thing {
    struct tree_link link;
    int64_t key, value, least;
};

static const struct thing *as_thing(const struct tree_link *l)
{
    return TREE_ENTRY(l, const struct thing, link);
}

static int compare(const void *key, const struct tree_link *l)
{
    return tree_order(*(const int64_t *)key, as_thing(l)->key);
}

static int64_t least_of(const struct thing *t)
{
    int64_t least = t->value;
    const struct tree_link *const below[] = {t->link.left, t->link.right};
    for (int k = 0; k < 2; k++)
        if (below[k] && as_thing(below[k])->least < least)
            least = as_thing(below[k])->least;
    return least;
}

static bool sum(struct tree_link *l)
{
    struct thing *t = TREE_ENTRY(l, struct thing, link);
    int64_t was = t->least;
    t->least = least_of(t);
    return t->least != was;
}

static void check(const struct tree *t, const struct thing *all)
{
    int64_t least = INT64_MAX;
    size_t n = 0;
    for (int k = 0; k < THINGS; k++) {
        if (!tree_has(&all[k].link))
            continue;
        n++;
        assert_int_equal(all[k].least, least_of(&all[k]));
        least = all[k].value < least ? all[k].value : least;
    }
    assert_int_equal(t->n, n);
    if (n > 0)
        assert_int_equal(as_thing(t->root)->least, least);
}

static void each_element_has_the_minimum_of_its_subtree(void **state)
{
    (void)state;
    static struct thing all[THINGS];
    struct tree t = {0};
    struct prng r;
    prng_init(&r, 1);
    for (int turn = 0; turn < TURNS; turn++) {
        struct thing *x = &all[prng_below(&r, THINGS)];
        int64_t value = (int64_t)prng_below(&r, 50);
        if (!tree_has(&x->link)) {
            /* value and sum are old: no function may rely on them */
            x->key = x - all;
            tree_add_summed(&t, &x->link, &x->key, compare, sum);
        } else if (prng_below(&r, 2)) {
            tree_remove_summed(&t, &x->link, sum);
        } else {
            x->value = value;
            tree_changed(&x->link, sum);
        }
        check(&t, all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_element_has_the_minimum_of_its_subtree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
