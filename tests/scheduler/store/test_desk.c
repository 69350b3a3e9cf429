/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of verifications: one user's do not displace another's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/uv/loop.h"
#include "base/vtimers.h"
#include "scheduler/store/ckpt_desk.h"
#include <stdio.h>

struct fixture {
    uv_loop_t loop;
    struct vtimers vt;
    struct ckpt_desk *desk;
};

static int set_up(void **state)
{
    static struct fixture f;
    vtimers_init(&f.vt, 0);
    if (uv_loop_init(&f.loop) != 0)
        return -1;
    f.desk = ckpt_desk_create(&(struct store_tasks_options){
        .loop = &f.loop, .timers = &f.vt.timers, .store = "/no/such/store", .cluster = "lab"});
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    ckpt_desk_destroy(f->desk);
    uv_loop_finish(&f->loop);
    vtimers_deinit(&f->vt);
    return 0;
}

/* Fails at once: there is no such store. */
static void verify(struct fixture *f, const char *user, int64_t sequence)
{
    struct err e;
    const struct ckpt_desk_of of = {
        .job = 7, .identity = "i", .user = user, .id = {.attempt = 1, .sequence = sequence}};
    if (ckpt_desk_verify(f->desk, &of, &e) != 0)
        fail_msg("%s", e.text);
    uv_run(&f->loop, UV_RUN_DEFAULT);
}

struct found {
    const char *user;
    int n;
    int64_t newest, oldest;
};

static void count(void *ctx, const struct verification_info *v)
{
    struct found *f = ctx;
    assert_int_equal(v->state, VERIFICATION_FAILED);
    if (!str_eq(v->by, f->user))
        return;
    f->newest = f->n++ == 0 ? v->id.sequence : f->newest;
    f->oldest = v->id.sequence;
}

static struct found results_of(const struct fixture *f, const char *user)
{
    struct found found = {.user = user};
    ckpt_desk_each(f->desk, 7, count, &found);
    return found;
}

static void one_user_displaces_only_own_results(void **state)
{
    struct fixture *f = *state;
    const int64_t n = CKPT_DESK_KEPT + 1;
    verify(f, "bob", 1);
    for (int64_t k = 1; k <= n; k++)
        verify(f, "ann", k);
    struct found ann = results_of(f, "ann");
    assert_int_equal(ann.n, CKPT_DESK_KEPT_PER_USER);
    assert_int_equal(ann.newest, n);
    assert_int_equal(ann.oldest, n - CKPT_DESK_KEPT_PER_USER + 1);
    assert_int_equal(results_of(f, "bob").n, 1);
}

static void results_of_many_users_are_bounded(void **state)
{
    struct fixture *f = *state;
    char user[16];
    int n = 0;
    for (int k = 0; k <= CKPT_DESK_KEPT; k++) {
        snprintf(user, sizeof user, "user%d", k);
        verify(f, user, 1);
    }
    for (int k = 0; k <= CKPT_DESK_KEPT; k++) {
        snprintf(user, sizeof user, "user%d", k);
        n += results_of(f, user).n;
    }
    assert_int_equal(n, CKPT_DESK_KEPT);
    assert_int_equal(results_of(f, "user0").n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_user_displaces_only_own_results, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_of_many_users_are_bounded, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
