/* SPDX-License-Identifier: Apache-2.0
 *
 * A day on which far more is spent than usual is notified once for a subject, over restarts.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/ledger/anomalies.h"
#include "scheduler/core/model/settings.h"
#include <string.h>

#define SATURDAY_MS (20785 * DAY_MS) /* 2026-11-28 */

struct bed {
    struct lab l;
    struct queue_policy policy;
    struct smap joined;
    struct anomaly_row stored;
    int n_hooks, n_mails, n_history;
    char users[4 * CORE_NAME_MAX]; /* who is mailed */
    char text[CORE_TEXT_MAX];
};

static const struct notify_hook hooks[] = {
    {.name = "chat", .events = 1 << NOTIFY_SPEND}, {.name = "other", .events = 1 << NOTIFY_FAIL}};

static struct policy_user members[] = {
    {.name = "ann"}, {.name = "lea", .is_lead = true}, {.name = "leo", .is_lead = true}};
static struct policy_team teams[] = {{.name = "nlp", .shares = 1, .users = members, .n_users = 3}};

static void open_model(struct bed *b)
{
    b->policy = queue_policy_defaults;
    b->policy.teams = teams;
    b->policy.n_teams = 1;
    b->policy.joined = &b->joined;
    const struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 400 * DAY_MS,
        .policy = &b->policy,
        .tables = {.hooks = hooks, .n_hooks = 2, .anomalies = {.n_mails = 2, .to_users = true}}};
    b->l.m = model_create(&o);
    b->l.p = planner_create();
}

static void bed_init(struct bed *b)
{
    memset(b, 0, sizeof(*b));
    b->l.now = (struct stamp){.wall = {SATURDAY_MS + 3600000}, .mono = {5000}};
    open_model(b);
}

static void take(struct bed *b)
{
    b->n_hooks = b->n_mails = b->n_history = 0;
    b->users[0] = '\0';
    lab_take(&b->l);
    for (size_t k = 0; k < b->l.c.n_outbox; k++) {
        const struct outbox_row *r = &b->l.c.outbox[k];
        assert_int_equal(r->kind, NOTIFY_SPEND);
        assert_int_equal(r->job, CORE_ID_NONE);
        b->n_hooks += str_eq(r->target, "hook:chat");
        b->n_mails += str_starts(r->target, "mail:");
        if (str_eq(r->target, "mail")) {
            strcat(b->users, " ");
            strcat(b->users, r->user);
        }
    }
    for (size_t k = 0; k < b->l.c.n_history; k++)
        if (str_eq(b->l.c.history[k].kind, "spend-anomaly")) {
            b->n_history++;
            STR_COPY(b->text, b->l.c.history[k].text);
        }
    if (b->l.c.n_anomalies > 0)
        b->stored = b->l.c.anomalies[b->l.c.n_anomalies - 1];
}

static struct event anomaly(enum spend_of of, const char *subject, int64_t day_ms)
{
    struct event ev = {.type = EV_ANOMALY,
        .anomaly = {
            .of = of, .day = {day_ms}, .uusd = 400000000, .usual_uusd = 95000000, .weeks = 8}};
    STR_COPY(ev.anomaly.subject, subject);
    return ev;
}

static int try(struct bed *b, struct event ev)
{
    int64_t id;
    int rc = lab_try(&b->l, &ev, &id);
    take(b);
    return rc;
}

static void a_day_is_notified_once_over_restarts(void **state)
{
    struct bed b;
    struct err e;
    (void)state;
    bed_init(&b);
    assert_int_equal(try(&b, anomaly(SPEND_OF_USER, "ann", SATURDAY_MS)), 0);
    assert_int_equal(b.n_hooks, 1);
    assert_int_equal(b.n_mails, 2);
    assert_string_equal(b.users, " ann");
    assert_string_equal(b.text, "user ann spent $400.00 on Saturday 2026-11-28 UTC: usual is "
                                "$95.00 (the median of 8 Saturdays)");
    assert_int_equal(try(&b, anomaly(SPEND_OF_USER, "ann", SATURDAY_MS)), ERR_CONFLICT);
    lab_deinit(&b.l);
    open_model(&b);
    assert_int_equal(model_load_anomaly(b.l.m, &b.stored, &e), 0);
    assert_int_equal(model_load_anomaly(b.l.m, &b.stored, &e), ERR_CORRUPT);
    assert_true(core_anomaly_is_told(b.l.m, SPEND_OF_USER, "ann", (struct wall){SATURDAY_MS}));
    assert_int_equal(try(&b, anomaly(SPEND_OF_USER, "ann", SATURDAY_MS)), ERR_CONFLICT);
    assert_int_equal(try(&b, anomaly(SPEND_OF_USER, "ann", SATURDAY_MS - DAY_MS)), ERR_CONFLICT);
    assert_int_equal(b.n_hooks + b.n_mails + b.n_history, 0);
    b.l.now.wall.ms += DAY_MS;
    assert_int_equal(try(&b, anomaly(SPEND_OF_USER, "ann", SATURDAY_MS + DAY_MS)), 0);
    assert_int_equal(b.n_hooks, 1);
    lab_deinit(&b.l);
}

static void subjects_of_one_name_are_different(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    for (enum spend_of of = SPEND_OF_USER; of < SPEND_OFS; of++) {
        assert_int_equal(try(&b, anomaly(of, "nlp", SATURDAY_MS)), 0);
        assert_int_equal(b.n_hooks, 1);
    }
    assert_int_equal(try(&b, anomaly(SPEND_OF_POOL, "nlp2", SATURDAY_MS)), 0);
    lab_deinit(&b.l);
}

static void leads_are_mailed_about_their_team(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    assert_int_equal(try(&b, anomaly(SPEND_OF_TEAM, "nlp", SATURDAY_MS)), 0);
    assert_string_equal(b.users, " lea leo");
    assert_int_equal(try(&b, anomaly(SPEND_OF_TEAM, "nlp", SATURDAY_MS)), ERR_CONFLICT);
    assert_string_equal(b.users, "");
    assert_int_equal(try(&b, anomaly(SPEND_OF_POOL, "nlp", SATURDAY_MS)), 0);
    assert_string_equal(b.users, "");
    assert_int_equal(try(&b, anomaly(SPEND_OF_TEAM, "cv", SATURDAY_MS)), 0);
    assert_string_equal(b.users, "");
    lab_deinit(&b.l);
}

static void a_lead_by_sign_in_is_mailed_once(void **state)
{
    static const char *const users[] = {"lea", "eva", "bob"};
    struct bed b;
    (void)state;
    bed_init(&b);
    for (size_t k = 0; k < 3; k++)
        policy_join(&b.policy, users[k], k < 2 ? "nlp,nlp:lead" : "nlp");
    assert_int_equal(try(&b, anomaly(SPEND_OF_TEAM, "nlp", SATURDAY_MS)), 0);
    assert_string_equal(b.users, " lea leo eva");
    for (size_t k = 0; k < 3; k++)
        policy_join(&b.policy, users[k], "");
    lab_deinit(&b.l);
    smap_deinit(&b.joined);
}

static void a_reload_ends_the_mails_to_users(void **state)
{
    struct bed b;
    int64_t id;
    (void)state;
    bed_init(&b);
    const struct settings_tables tables = {
        .to = {.hooks = hooks, .n_hooks = 2, .anomalies = {.n_mails = 1}}};
    const struct model_settings to = {
        .lease_ms = 400 * DAY_MS, .policy = &b.policy, .tables = &tables};
    struct event ev = {.type = EV_SETTINGS, .settings = &to};
    assert_int_equal(lab_try(&b.l, &ev, &id), 0);
    take(&b);
    assert_int_equal(try(&b, anomaly(SPEND_OF_USER, "ann", SATURDAY_MS)), 0);
    assert_string_equal(b.users, "");
    assert_int_equal(b.n_mails, 1);
    lab_deinit(&b.l);
}

static void what_is_no_day_or_no_subject_is_refused(void **state)
{
    struct bed b;
    struct event weeks = anomaly(SPEND_OF_USER, "ann", SATURDAY_MS);
    (void)state;
    bed_init(&b);
    weeks.anomaly.weeks = 0;
    assert_int_equal(try(&b, weeks), ERR_INVALID);
    assert_int_equal(try(&b, anomaly(SPEND_OF_NONE, "ann", SATURDAY_MS)), ERR_INVALID);
    assert_int_equal(try(&b, anomaly(SPEND_OF_USER, "", SATURDAY_MS)), ERR_INVALID);
    assert_int_equal(try(&b, anomaly(SPEND_OF_USER, "ann", SATURDAY_MS + 1)), ERR_INVALID);
    assert_int_equal(try(&b, anomaly(SPEND_OF_USER, "ann", SATURDAY_MS + DAY_MS)), ERR_INVALID);
    assert_int_equal(
        try(&b, anomaly(SPEND_OF_USER, "ann", SATURDAY_MS - 4 * DAY_MS)), ERR_CONFLICT);
    assert_int_equal(b.n_hooks + b.n_mails + b.n_history, 0);
    lab_deinit(&b.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_day_is_notified_once_over_restarts),
        cmocka_unit_test(subjects_of_one_name_are_different),
        cmocka_unit_test(leads_are_mailed_about_their_team),
        cmocka_unit_test(a_lead_by_sign_in_is_mailed_once),
        cmocka_unit_test(a_reload_ends_the_mails_to_users),
        cmocka_unit_test(what_is_no_day_or_no_subject_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
