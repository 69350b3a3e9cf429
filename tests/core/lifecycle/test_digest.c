/* SPDX-License-Identifier: Apache-2.0
 *
 * The morning digest in virtual time: one for each morning, over restarts, downtime and changes of
 * the clocks; and subscriptions.
 */
#include "tests/core/lab.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/lifecycle/digest.h"
#include <string.h>

#define HOUR_MS 3600000LL
/* Central Europe 2026: 2026-03-29T01:00Z forward, 2026-10-25T01:00Z back */
#define SPRING_MS 1774746000000
#define AUTUMN_MS 1792890000000

static struct zone_span spans[] = {{.from_s = INT64_MIN, .offset_s = 3600},
    {.from_s = SPRING_MS / 1000, .offset_s = 7200}, {.from_s = AUTUMN_MS / 1000, .offset_s = 3600}};
static const struct time_zone zone = {.name = "Europe/Berlin", .n = 3, .spans = spans};

struct bed {
    struct lab l;
    struct digest_options options;
    struct digest_row stored[4]; /* the last row of each user; [0] is the cluster's */
    int n_digests, n_mails, n_users, n_urls;
    struct wall from, to;
};

static void open_model(struct bed *b)
{
    const struct model_options o = {
        .cluster_uid = "0123456789abcdef", .lease_ms = 400 * DAY_MS, .tables.digest = &b->options};
    b->l.m = model_create(&o);
    b->l.p = planner_create();
}

static void bed_init(struct bed *b, int minute, int64_t now_ms)
{
    memset(b, 0, sizeof(*b));
    b->options = (struct digest_options){.at_minute = minute, .zone = &zone, .n_mails = 2};
    b->l.now = (struct stamp){.wall = {now_ms}, .mono = {5000}};
    open_model(b);
}

static void keep(struct bed *b, const struct digest_row *r)
{
    b->stored[!r->user[0] ? 0 : str_eq(r->user, "ann") ? 1 : 2] = *r;
}

static void take(struct bed *b)
{
    lab_plan(&b->l);
    lab_take(&b->l);
    for (size_t k = 0; k < b->l.c.n_digests; k++)
        keep(b, &b->l.c.digests[k]);
    for (size_t k = 0; k < b->l.c.n_outbox; k++) {
        const struct outbox_row *r = &b->l.c.outbox[k];
        assert_int_equal(r->kind, NOTIFY_DIGEST);
        assert_int_equal(r->job, CORE_ID_NONE);
        b->n_digests += str_eq(r->target, "mail:0");
        b->n_mails += str_starts(r->target, "mail:");
        b->n_users += str_eq(r->target, "mail");
        b->n_urls += str_eq(r->target, "url:0");
        b->from = r->digest_from;
        b->to = r->digest_to;
    }
}

static void pass(struct bed *b, int64_t ms)
{
    for (; ms > 0; ms -= HOUR_MS / 4) {
        lab_wait(&b->l, ms < HOUR_MS / 4 ? ms : HOUR_MS / 4);
        take(b);
    }
}

/* kill -9, and a start from what was stored */
static void restart(struct bed *b)
{
    struct err e;
    lab_deinit(&b->l);
    open_model(b);
    for (size_t k = 0; k < 3; k++)
        if (b->stored[k].told_until.ms || b->stored[k].user[0])
            assert_int_equal(model_load_digest(b->l.m, &b->stored[k], &e), 0);
}

static void each_morning_has_one_digest_over_restarts(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, 7 * 60 + 30, SPRING_MS + DAY_MS); /* 03:00 by the clocks */
    take(&b);
    assert_int_equal(b.n_digests, 0); /* it only begins */
    pass(&b, 4 * HOUR_MS);
    assert_int_equal(b.n_digests, 0);
    pass(&b, HOUR_MS);
    assert_int_equal(b.n_digests, 1);
    assert_int_equal(b.n_mails, 2);
    assert_int_equal(b.to.ms, SPRING_MS + DAY_MS + 9 * HOUR_MS / 2);
    restart(&b);
    pass(&b, HOUR_MS);
    assert_int_equal(b.n_digests, 1);
    for (int day = 2; day <= 4; day++) {
        pass(&b, DAY_MS);
        restart(&b);
        assert_int_equal(b.n_digests, day);
        assert_int_equal(b.to.ms - b.from.ms, DAY_MS);
    }
    lab_deinit(&b.l);
}

static void downtime_has_one_digest_for_all_of_it(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, 450, SPRING_MS + DAY_MS);
    take(&b);
    pass(&b, 6 * HOUR_MS);
    assert_int_equal(b.n_digests, 1);
    struct wall told = b.to;
    lab_wait(&b.l, 3 * DAY_MS);
    restart(&b);
    take(&b);
    assert_int_equal(b.n_digests, 2);
    assert_int_equal(b.from.ms, told.ms);
    assert_int_equal(b.to.ms, told.ms + 3 * DAY_MS);
    lab_wait(&b.l, 30 * DAY_MS);
    restart(&b);
    take(&b);
    assert_int_equal(b.n_digests, 3);
    assert_int_equal(b.to.ms - b.from.ms, DIGEST_PERIOD_MAX_MS);
    lab_deinit(&b.l);
}

/* 02:30 does not exist on that day: it is the moment of the change. */
static void clocks_put_forward_over_it_give_one_digest(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, 150, SPRING_MS - 2 * HOUR_MS);
    take(&b);
    pass(&b, 2 * HOUR_MS);
    assert_int_equal(b.n_digests, 1);
    assert_int_equal(b.to.ms, SPRING_MS);
    pass(&b, 20 * HOUR_MS);
    assert_int_equal(b.n_digests, 1);
    pass(&b, 4 * HOUR_MS);
    assert_int_equal(b.n_digests, 2);
    lab_deinit(&b.l);
}

/* 02:30 comes twice. */
static void clocks_put_back_over_it_give_one_digest(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, 150, AUTUMN_MS - 2 * HOUR_MS);
    take(&b);
    pass(&b, 3 * HOUR_MS / 2);
    assert_int_equal(b.n_digests, 1);
    assert_int_equal(b.to.ms, AUTUMN_MS - HOUR_MS / 2);
    restart(&b);
    pass(&b, 20 * HOUR_MS);
    assert_int_equal(b.n_digests, 1);
    pass(&b, 5 * HOUR_MS);
    assert_int_equal(b.n_digests, 2);
    assert_int_equal(b.to.ms - b.from.ms, 25 * HOUR_MS);
    lab_deinit(&b.l);
}

static void set(struct bed *b, const char *user, const char *mail)
{
    struct digest_row to = {.told_until = WALL_NONE};
    STR_COPY(to.user, user);
    STR_COPY(to.mail, mail);
    lab_apply(
        &b->l, (struct event){.type = EV_DIGEST_SET, .digest_set = {.to = &to, .mail = true}});
    take(b);
}

static void set_url(struct bed *b, const char *user, const char *url)
{
    struct digest_row to = {.told_until = WALL_NONE, .format = NOTIFY_SLACK};
    STR_COPY(to.user, user);
    STR_COPY(to.url, url);
    lab_apply(&b->l, (struct event){.type = EV_DIGEST_SET, .digest_set = {.to = &to, .url = true}});
    take(b);
}

static void users_subscribe_and_end_that(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, 450, SPRING_MS + DAY_MS);
    take(&b);
    set(&b, "ann", "ann@lab");
    set(&b, "bob", "bob@lab");
    set(&b, "bob", "bob@home");
    set(&b, "ann", "");
    set(&b, "ann", "");
    restart(&b);
    assert_null(core_digest_mail(b.l.m, "ann"));
    assert_string_equal(core_digest_mail(b.l.m, "bob"), "bob@home");
    pass(&b, 6 * HOUR_MS);
    assert_int_equal(b.n_digests, 1);
    assert_int_equal(b.n_users, 1);
    lab_deinit(&b.l);
}

static void an_address_and_a_url_are_two_targets(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, 450, SPRING_MS + DAY_MS);
    take(&b);
    set(&b, "ann", "ann@lab");
    set_url(&b, "ann", "sealed:chat:1");
    set_url(&b, "bob", "sealed:chat:2");
    restart(&b);
    assert_string_equal(core_digest_of(b.l.m, "ann")->url, "sealed:chat:1");
    assert_int_equal(core_digest_of(b.l.m, "ann")->format, NOTIFY_SLACK);
    assert_null(core_digest_mail(b.l.m, "bob"));
    pass(&b, 6 * HOUR_MS);
    assert_int_equal(b.n_users, 1);
    assert_int_equal(b.n_urls, 2);
    set(&b, "ann", "");
    assert_string_equal(core_digest_of(b.l.m, "ann")->url, "sealed:chat:1");
    set_url(&b, "ann", "");
    set_url(&b, "bob", "");
    assert_null(core_digest_of(b.l.m, "ann"));
    restart(&b);
    assert_null(core_digest_of(b.l.m, "bob"));
    lab_deinit(&b.l);
}

static void without_a_schedule_nothing_is_due(void **state)
{
    const struct model_options o = {.cluster_uid = "0123456789abcdef", .lease_ms = 30000};
    struct event ev = {.type = EV_DIGEST, .now = {.wall = {SPRING_MS}, .mono = {5000}}};
    struct model *m = model_create(&o);
    struct outcome out;
    struct err e;
    (void)state;
    assert_false(mono_is_set(digest_next_due(m, ev.now, &ev)));
    ev.now = (struct stamp){.wall = {SPRING_MS}, .mono = {5000}};
    assert_int_equal(core_apply(m, &ev, &out, &e), ERR_CONFLICT);
    model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_morning_has_one_digest_over_restarts),
        cmocka_unit_test(downtime_has_one_digest_for_all_of_it),
        cmocka_unit_test(clocks_put_forward_over_it_give_one_digest),
        cmocka_unit_test(clocks_put_back_over_it_give_one_digest),
        cmocka_unit_test(users_subscribe_and_end_that),
        cmocka_unit_test(an_address_and_a_url_are_two_targets),
        cmocka_unit_test(without_a_schedule_nothing_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
