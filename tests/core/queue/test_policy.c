/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is in which team: the list of all memberships says what is said of each user alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "scheduler/core/queue/policy.h"
#include <stdlib.h>

static const char *const users[] = {"ann", "ben", "cho", "dee", "eve", "fay"};
#define N_USERS (sizeof(users) / sizeof(users[0]))

/* ann and cho are listed, the latter in two teams; ben joins two, one as its lead; cho joins a team
 * that lists her, as its lead; dee joins one that is not configured any more; eve and fay none. */
static void set_up(struct queue_policy *o, struct policy_team teams[3], struct smap *joined)
{
    static struct policy_user red[] = {{.name = "cho"}, {.name = "ann", .is_lead = true}};
    static struct policy_user blue[] = {{.name = "cho"}};
    *o = queue_policy_defaults;
    teams[0] = (struct policy_team){.name = "red", .users = red, .n_users = 2};
    teams[1] = (struct policy_team){.name = "blue", .users = blue, .n_users = 1};
    teams[2] = (struct policy_team){.name = "rest"};
    o->teams = teams;
    o->n_teams = 3;
    STR_COPY(o->default_team, "rest");
    *joined = (struct smap){0};
    o->joined = joined;
    policy_join(o, "ben", "blue,red,red:lead");
    policy_join(o, "cho", "blue,blue:lead");
    policy_join(o, "dee", "gone,gone:lead");
}

static void all_memberships_are_those_of_each_user(void **state)
{
    struct queue_policy o;
    struct policy_team teams[3];
    struct smap joined;
    struct policy_membership *all;
    size_t k = 0;
    (void)state;
    set_up(&o, teams, &joined);
    size_t n = policy_memberships(&o, &all);
    for (size_t u = 0; u < N_USERS; u++) {
        size_t own = 0;
        for (size_t t = 0; t < 2; t++) {
            if (!policy_is_member(&o, teams[t].name, users[u]))
                continue;
            assert_true(k < n);
            assert_string_equal(all[k].user, users[u]);
            assert_int_equal(all[k].team, t);
            assert_int_equal(all[k].leads, policy_is_lead(&o, teams[t].name, users[u]));
            k++, own++;
        }
        assert_int_equal(policy_is_member(&o, "rest", users[u]), own == 0);
    }
    assert_int_equal(k, n);
    assert_int_equal(n, 5);
    free(all);
    for (size_t u = 0; u < N_USERS; u++)
        policy_join(&o, users[u], "");
    smap_deinit(&joined);
}

static void without_teams_there_are_none(void **state)
{
    struct policy_membership *all;
    (void)state;
    assert_int_equal(policy_memberships(&queue_policy_defaults, &all), 0);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_memberships_are_those_of_each_user),
        cmocka_unit_test(without_teams_there_are_none),
    };
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
