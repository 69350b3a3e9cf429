/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may do what: for every route, each role and each scope of a token that may call it; and for
 * every right, whose objects each role reaches. The expectations are written here a second time, so
 * that a change of a table of rights shows. test_roles.py makes the calls.
 */
#include "tests/scheduler/config_rig.h"

#include "base/str.h"
#include "scheduler/api/api_private.h"

/* The roles that may call a route at all: v(iewer) m(ember) l(ead) o(perator) a(dmin); "" for
 * routes that are not for users. The scopes that leave it to an administrator's token: r(ead-only)
 * c(i) p(ool) k (cron). */
static const struct {
    const char *method, *path, *roles, *scopes;
} expected[] = {
    {"POST", "/api/v1/jobs", "mloa", "cp"},
    {"GET", "/api/v1/jobs", "vmloa", "rcpk"},
    {"GET", "/api/v1/jobs/#", "vmloa", "rcpk"},
    {"GET", "/api/v1/jobs/#/why", "vmloa", "rcpk"},
    {"GET", "/api/v1/jobs/#/diagnose", "vmloa", "rcpk"},
    {"GET", "/api/v1/jobs/#/load", "vmloa", "rcpk"},
    {"GET", "/api/v1/jobs/#/events", "vmloa", "rcpk"},
    {"GET", "/api/v1/jobs/#/logs", "vmloa", "rcpk"},
    {"POST", "/api/v1/jobs/estimate", "mloa", "cp"},
    {"POST", "/api/v1/jobs/cancel", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/cancel", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/reclaim", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/requeue", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/update", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/hold", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/release", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/drill", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/compared", "mloa", "cp"},
    {"GET", "/api/v1/drills", "vmloa", "rcpk"},
    {"POST", "/api/v1/jobs/#/save", "mloa", "cp"},
    {"GET", "/api/v1/jobs/#/checkpoints", "vmloa", "rcpk"},
    {"POST", "/api/v1/jobs/#/checkpoints/pin", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/checkpoints/unpin", "mloa", "cp"},
    {"POST", "/api/v1/jobs/#/checkpoints/verify", "mloa", "cp"},
    {"GET", "/api/v1/jobs/#/checkpoints/verify", "vmloa", "rcpk"},
    {"POST", "/api/v1/jobs/#/exec", "mloa", "p"},
    {"GET", "/api/v1/channels/#/output", "mloa", "p"},
    {"POST", "/api/v1/channels/#/input", "mloa", "p"},
    {"POST", "/api/v1/channels/#/close", "mloa", "p"},
    {"POST", "/api/v1/workdirs", "mloa", "cp"},
    {"POST", "/api/v1/workdirs/pieces", "mloa", "cp"},
    {"POST", "/api/v1/crons", "mloa", ""},
    {"GET", "/api/v1/crons", "vmloa", "rcpk"},
    {"GET", "/api/v1/crons/plan", "vmloa", "rcpk"},
    {"GET", "/api/v1/crons/#", "vmloa", "rcpk"},
    {"POST", "/api/v1/crons/#", "mloa", ""},
    {"POST", "/api/v1/crons/#/pause", "mloa", ""},
    {"POST", "/api/v1/crons/#/resume", "mloa", ""},
    {"POST", "/api/v1/crons/#/remove", "mloa", ""},
    {"POST", "/api/v1/crons/#/run", "mloa", "k"},
    {"POST", "/api/v1/crons/#/dates", "mloa", "k"},
    {"GET", "/api/v1/crons/#/runs", "vmloa", "rcpk"},
    {"GET", "/api/v1/calendars", "vmloa", "rcpk"},
    {"POST", "/api/v1/calendars", "oa", "p"},
    {"POST", "/api/v1/calendars/remove", "oa", "p"},
    {"GET", "/api/v1/nodes", "vmloa", "rcpk"},
    {"GET", "/api/v1/shares", "vmloa", "rcpk"},
    {"GET", "/api/v1/users", "vmloa", "rcpk"},
    {"GET", "/api/v1/quotas", "vmloa", "rcpk"},
    {"GET", "/api/v1/budgets", "vmloa", "rcpk"},
    {"GET", "/api/v1/digest", "vmloa", "rcpk"},
    {"GET", "/api/v1/digest/subscription", "vmloa", "rcpk"},
    {"POST", "/api/v1/digest/subscription", "mloa", "cp"},
    {"GET", "/api/v1/racks", "vmloa", "rcpk"},
    {"GET", "/api/v1/summary", "vmloa", "rcpk"},
    {"POST", "/api/v1/nodes/#/drain", "oa", "p"},
    {"POST", "/api/v1/nodes/#/undrain", "oa", "p"},
    {"POST", "/api/v1/nodes/#/delete", "oa", "p"},
    {"GET", "/api/v1/reservations", "vmloa", "rcpk"},
    {"POST", "/api/v1/reservations", "oa", "p"},
    {"POST", "/api/v1/reservations/#/remove", "oa", "p"},
    {"GET", "/api/v1/instances", "vmloa", "rcpk"},
    {"GET", "/api/v1/pools", "vmloa", "rcpk"},
    {"POST", "/api/v1/pools", "a", ""},
    {"GET", "/api/v1/pools/detail", "vmloa", "rcpk"},
    {"GET", "/api/v1/offers", "vmloa", "rcpk"},
    {"GET", "/api/v1/offers/history", "vmloa", "rcpk"},
    {"POST", "/api/v1/audit", "a", ""},
    {"GET", "/api/v1/advice", "vmloa", "rcpk"},
    {"GET", "/api/v1/forgotten", "vmloa", "rcpk"},
    {"GET", "/api/v1/anomalies", "vmloa", "rcpk"},
    {"GET", "/api/v1/cost", "vmloa", "rcpk"},
    {"GET", "/api/v1/cost/jobs", "vmloa", "rcpk"},
    {"POST", "/api/v1/cost/report", "a", ""},
    {"GET", "/api/v1/use", "vmloa", "rcpk"},
    {"GET", "/api/v1/events", "vmloa", "rcpk"},
    {"GET", "/api/v1/stream", "vmloa", "rcpk"},
    {"POST", "/api/v1/tokens", "mloa", ""},
    {"GET", "/api/v1/tokens", "mloa", ""},
    {"POST", "/api/v1/tokens/#/revoke", "mloa", ""},
    {"GET", "/api/v1/secrets", "mloa", ""},
    {"POST", "/api/v1/secrets", "mloa", ""},
    {"POST", "/api/v1/secrets/grant", "mloa", ""},
    {"POST", "/api/v1/secrets/remove", "mloa", ""},
    {"GET", "/api/v1/admin/audit-log", "a", ""},
    {"GET", "/api/v1/admin/audit-log/verify", "a", ""},
    {"POST", "/api/v1/admin/reload", "a", ""},
    {"GET", "/api/v1/admin/account-quotas", "a", ""},
    {"GET", "/api/v1/admin/retention", "a", ""},
    {"POST", "/api/v1/admin/log-level", "a", ""},
    {"GET", "/api/v1/version", "vmloa", "rcpk"},
    {"GET", "/api/v1/openapi.json", "vmloa", "rcpk"},
    {"GET", "/api/v1/whoami", "vmloa", "rcpk"},
    {"POST", "/api/v1/logout", "vmloa", "rcpk"},
    {"POST", "/api/v1/console/link", "vmloa", "rcpk"},
    {"GET", "/login/methods", "", ""},
    {"POST", "/login/session", "", ""},
    {"POST", "/login/link", "", ""},
    {"POST", "/login/device", "", ""},
    {"POST", "/login/token", "", ""},
    {"POST", "/login/refresh", "", ""},
    {"GET", "/login", "", ""},
    {"GET", "/login/callback", "", ""},
    {"GET", "/login/done", "", ""},
    {"GET", "/", "", ""},
    {"GET", "/console/*", "", ""},
    {"GET", "/healthz", "", ""},
    {"GET", "/metrics", "vmloa", "rmcpk"},
    {"GET", "/agent/v1/bundle", "", ""},
    {"GET", "/agent/v1/bundle/sha256", "", ""},
    {"POST", "/agent/v1/join", "", ""},
    {"POST", "/agent/v1/renew", "", ""},
    {"POST", "/agent/v1/sync", "", ""},
    {"POST", "/agent/v1/output/#/#", "", ""},
    {"POST", "/agent/v1/workdir/#/#", "", ""},
    {"POST", "/agent/v1/workdir/#/#/pieces", "", ""},
    {"POST", "/agent/v1/channels/#/claim", "", ""},
    {"POST", "/agent/v1/channels/#/output", "", ""},
    {"POST", "/agent/v1/channels/#/input", "", ""},
};
#define N_EXPECTED (sizeof(expected) / sizeof(expected[0]))

static const char role_letters[] = "vmloa";

static const struct {
    char letter;
    const char *text;
} scopes[] = {
    {'r', "read-only"}, {'m', "metrics"}, {'c', "ci"}, {'p', "pool=base"}, {'k', "cron=7"}};

static const char file[] = "visibility: %s\n"
                           "users: {vic: viewer, ola: operator, ada: admin}\n"
                           "teams:\n"
                           "  red: {users: [ann, ben, lea, vic, ola], leads: [lea]}\n"
                           "  blue: {users: [cho]}\n"
                           "  open: {}\n";

static const char *const users[ROLES] = {"vic", "ben", "lea", "ola", "ada"};

static struct config config_with(const char *visibility)
{
    char text[512];
    snprintf(text, sizeof(text), file, visibility);
    return parse(text);
}

static struct caller narrowed(const struct config *c, const char *user, const char *scope)
{
    struct caller caller;
    struct scope s;
    struct err e;
    assert_int_equal(scope_parse(scope, &s, &e), 0);
    access_init(&caller, c, user, false);
    access_narrow(&caller, ROLE_ADMIN, &s);
    return caller;
}

static size_t find_expected(const char *method, const char *path)
{
    size_t i = 0;
    while (
        i < N_EXPECTED && (!str_eq(expected[i].method, method) || !str_eq(expected[i].path, path)))
        i++;
    return i;
}

static void every_route_is_for_the_roles_and_scopes_of_its_row(void **state)
{
    struct config c = config_with("team");
    const char *method, *path;
    enum right right;
    size_t n = 0;
    (void)state;
    for (; api_route(n, &method, &path, &right); n++) {
        size_t k = find_expected(method, path);
        if (k == N_EXPECTED) {
            fail_msg("%s %s has no row in this test: who may call it?", method, path);
            return;
        }
        if (!expected[k].roles[0]) {
            assert_int_equal(right, RIGHT_NONE);
            continue;
        }
        if (right == RIGHT_NONE || right == RIGHT_UNSET)
            fail_msg("%s %s asks for no right", method, path);
        for (int role = 0; role < ROLES; role++) {
            struct caller caller = narrowed(&c, users[role], "");
            assert_int_equal(caller.role, role);
            bool may = strchr(expected[k].roles, role_letters[role]) != NULL;
            if (access_may(&caller, right, NULL) != may)
                fail_msg("%s %s: %s %s", method, path, role_names[role], may ? "may not" : "may");
        }
        for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
            struct caller caller = narrowed(&c, "ada", scopes[i].text);
            /* ci gives a member's role */
            bool may = strchr(expected[k].scopes, scopes[i].letter) != NULL;
            if (access_may(&caller, right, NULL) != may)
                fail_msg(
                    "%s %s: scope %s %s", method, path, scopes[i].text, may ? "may not" : "may");
        }
    }
    assert_int_equal(n, N_EXPECTED);
    config_deinit(&c);
}

/* For each right, what each role reaches: its own (o), jobs of the team that it leads (l), jobs of
 * a team that it is in (m), everybody's (e). Under visibility: owner. */
static void roles_reach_as_far_as_they_should(void **state)
{
    static const struct {
        enum right right;
        const char *reach[ROLES];
    } rows[] = {
        {RIGHT_READ_JOB, {"o", "o", "ol", "olme", "olme"}},
        {RIGHT_SUBMIT, {"", "o", "o", "o", "o"}},
        {RIGHT_CHANGE, {"", "o", "ol", "olme", "olme"}},
        {RIGHT_ENTER, {"", "o", "o", "o", "olme"}},
        {RIGHT_CRON_EDIT, {"", "o", "o", "o", "olme"}},
        {RIGHT_CRON, {"", "o", "ol", "olme", "olme"}},
        {RIGHT_CRON_RUN, {"", "o", "ol", "olme", "olme"}},
        {RIGHT_TOKENS, {"", "o", "o", "o", "olme"}},
    };
    struct config c = config_with("owner");
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int role = 0; role < ROLES; role++) {
            struct caller caller = narrowed(&c, users[role], "");
            const struct access_object own = {.user = users[role]},
                                       red = {.user = "ann", .team = "red"},
                                       blue = {.user = "cho", .team = "blue"},
                                       nobodys = {.user = NULL};
            const struct {
                char letter;
                const struct access_object *object;
            } objects[] = {
                {'o', &own}, {role == ROLE_LEAD ? 'l' : 'm', &red}, {'e', &blue}, {'e', &nobodys}};
            for (size_t k = 0; k < 4; k++) {
                bool may = strchr(rows[i].reach[role], objects[k].letter) != NULL;
                if (access_may(&caller, rows[i].right, objects[k].object) != may)
                    fail_msg("%s: a %s %s object %zu", right_names[rows[i].right], role_names[role],
                        may ? "does not reach" : "reaches", k);
            }
        }
    config_deinit(&c);
}

static bool reads(const struct config *c, const char *user, const char *owner, const char *team)
{
    struct caller caller = narrowed(c, user, "");
    const struct access_object object = {.user = owner, .team = team};
    return access_may(&caller, RIGHT_READ_JOB, &object);
}

static void visibility_says_who_reads_the_jobs_of_others(void **state)
{
    (void)state;
    struct config c = config_with("owner");
    assert_true(reads(&c, "ann", "ann", "red"));
    assert_false(reads(&c, "ben", "ann", "red"));
    assert_true(reads(&c, "lea", "ann", "red")); /* who may change it */
    config_deinit(&c);
    c = config_with("team");
    assert_true(reads(&c, "ben", "ann", "red"));
    assert_true(reads(&c, "vic", "ann", "red"));
    assert_false(reads(&c, "cho", "ann", "red"));
    assert_false(reads(&c, "red", "ann", "red"));  /* a user named as the team is none of it */
    assert_false(reads(&c, "ben", "ann", "open")); /* anyone may submit to it; nobody is of it */
    assert_false(reads(&c, "ben", "dee", "dee"));  /* without a team */
    config_deinit(&c);
    c = config_with("all");
    assert_true(reads(&c, "cho", "ann", "red"));
    struct caller caller = narrowed(&c, "cho", "");
    assert_false(access_may(&caller, RIGHT_CHANGE, &(struct access_object){.user = "ann"}));
    config_deinit(&c);
    c = parse("teams: {red: {users: [ann]}, rest: {}}\npriority: {default_team: rest}\n");
    assert_true(reads(&c, "dee", "eve", "rest"));
    assert_false(reads(&c, "ann", "eve", "rest"));
    config_deinit(&c);
}

static void a_scope_takes_away_and_gives_nothing(void **state)
{
    struct config c = config_with("team");
    const struct access_object base = {.user = "ann", .team = "red", .pool = "base", .job = 3},
                               spare = {.user = "ann", .team = "red", .pool = "spare", .job = 4},
                               of_7 = {.user = "ann", .team = "red", .job = 5, .cron = 7},
                               entry_8 = {.user = "ann", .cron = 8}, any = {.user = "ann"};
    (void)state;
    struct caller a = narrowed(&c, "ann", "pool=base");
    assert_true(access_may(&a, RIGHT_CHANGE, &base));
    assert_true(access_may(&a, RIGHT_SUBMIT, &base));
    assert_false(access_may(&a, RIGHT_CHANGE, &spare));
    assert_false(access_may(&a, RIGHT_SUBMIT, &spare));
    assert_false(access_may(&a, RIGHT_SUBMIT, &any));
    assert_true(access_may(&a, RIGHT_READ_JOB, &spare));
    assert_false(access_may(&a, RIGHT_OPERATE, &base)); /* a member's token */
    a = narrowed(&c, "ola", "pool=base");
    assert_true(access_may(&a, RIGHT_OPERATE, &(struct access_object){.pool = "base"}));
    assert_false(access_may(&a, RIGHT_OPERATE, &(struct access_object){.pool = "spare"}));
    a = narrowed(&c, "ann", "cron=7");
    assert_true(access_may(&a, RIGHT_CRON_RUN, &of_7));
    assert_true(access_may(&a, RIGHT_READ_JOB, &of_7));
    assert_false(access_may(&a, RIGHT_CRON_RUN, &entry_8));
    assert_false(access_may(&a, RIGHT_READ_JOB, &base));
    assert_false(access_may(&a, RIGHT_CRON_EDIT, &of_7));
    a = narrowed(&c, "lea", "ci");
    assert_true(access_may(&a, RIGHT_CHANGE, &(struct access_object){.user = "lea"}));
    assert_false(access_may(&a, RIGHT_CHANGE, &base));
    a = narrowed(&c, "ada", "read-only");
    assert_false(a.admin);
    assert_true(access_may(&a, RIGHT_READ_JOB, &base));
    assert_false(access_may(&a, RIGHT_CHANGE, &base));
    access_init(&a, &c, "ann", false);
    access_narrow(&a, ROLE_VIEWER, &(struct scope){.kind = SCOPE_NONE});
    assert_false(access_may(&a, RIGHT_CHANGE, &base));
    access_init(&a, &c, "vic", false);
    access_narrow(&a, ROLE_ADMIN, &(struct scope){.kind = SCOPE_NONE});
    assert_int_equal(a.role, ROLE_VIEWER);
    config_deinit(&c);
}

static void malformed_scopes_are_refused(void **state)
{
    static const char *const texts[] = {"readonly", "READ-ONLY", "pool=", "pool=a b", "pool=../x",
        "pool", "cron=", "cron=0", "cron=-1", "cron=x", "cron=99999999999999999999", "ci ", "all",
        "pool=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct scope s = {.kind = SCOPE_CI};
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (scope_parse(texts[i], &s, &e) != ERR_INVALID)
            fail_msg("%s", texts[i]);
        assert_non_null(strstr(e.text, str_starts(texts[i], "cron=") ? "cron entry" : "expected"));
    }
    assert_int_equal(s.kind, SCOPE_CI); /* untouched */
}

static void refusals_name_the_owner_and_the_way_out(void **state)
{
    struct config c = config_with("team");
    struct caller a = narrowed(&c, "cho", "");
    const struct access_object red = {.user = "ann", .team = "red"};
    struct err e;
    (void)state;
    assert_int_equal(access_refuse(&a, RIGHT_READ_JOB, &red, "job 42", &e), ERR_DENIED);
    assert_string_equal(e.text, "job 42 is ann's, and not shown to cho (visibility: team in "
                                "belayd's configuration): ask ann or an administrator");
    access_refuse(&a, RIGHT_CHANGE, &red, "job 42", &e);
    assert_string_equal(e.text, "job 42 is ann's: only they, a lead of its team, an operator or an "
                                "administrator can do this");
    access_refuse(&a, RIGHT_OPERATE, NULL, NULL, &e);
    assert_string_equal(e.text, "this needs the role operator, and cho is member: ask an "
                                "administrator, who gives roles in users: of belayd's "
                                "configuration");
    access_refuse(&a, RIGHT_UNSET, NULL, NULL, &e);
    assert_non_null(strstr(e.text, "bug"));
    a = narrowed(&c, "ann", "read-only");
    access_refuse(&a, RIGHT_CHANGE, &red, "job 42", &e);
    assert_string_equal(e.text, "the token is read-only: use a token without this scope");
    config_deinit(&c);
}

static void a_user_gets_the_burst_and_then_the_rate(void **state)
{
    struct rates r = {.per_second = 10, .burst = 3};
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(rates_take(&r, "ann", (struct mono){1000}), 0);
    assert_int_equal(rates_take(&r, "ann", (struct mono){1000}), 100);
    assert_int_equal(rates_take(&r, "ben", (struct mono){1000}), 0);
    assert_int_equal(rates_take(&r, "ann", (struct mono){1060}), 40);
    assert_int_equal(rates_take(&r, "ann", (struct mono){1100}), 0);
    assert_int_equal(rates_take(&r, "ann", (struct mono){1100}), 100);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rates_take(&r, "ann", (struct mono){INT64_C(1) << 50}), 0);
    assert_int_equal(rates_take(&r, "ann", (struct mono){INT64_C(1) << 50}), 100);
    rates_deinit(&r);
    r = (struct rates){.per_second = 0, .burst = 1};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(rates_take(&r, "ann", (struct mono){1}), 0);
    rates_deinit(&r);
}

static void full_buckets_are_dropped_when_there_are_many(void **state)
{
    struct rates r = {.per_second = 1, .burst = 2};
    char name[32];
    (void)state;
    assert_int_equal(rates_take(&r, "ann", (struct mono){100000}), 0);
    for (int i = 0; i < 3 * RATES_USERS_MAX; i++) {
        snprintf(name, sizeof(name), "u%d", i);
        assert_int_equal(rates_take(&r, name, (struct mono){100000 + i}), 0);
    }
    assert_true(smap_size(&r.users) <= 2 * RATES_USERS_MAX);
    rates_deinit(&r);
}

/* The role of a group is never less than that of the configuration; a token still limits it. */
static void a_sign_in_raises_a_role_and_never_lowers_it(void **state)
{
    struct config c = config_with("team");
    struct caller ann;
    (void)state;
    access_init(&ann, &c, "ann", false);
    access_raise(&ann, ROLE_OPERATOR);
    assert_true(access_may(&ann, RIGHT_OPERATE, NULL));
    assert_false(access_may(&ann, RIGHT_ADMIN, NULL) || ann.admin);
    access_raise(&ann, ROLE_VIEWER);
    assert_int_equal(ann.role, ROLE_OPERATOR);
    access_raise(&ann, ROLE_ADMIN);
    assert_true(ann.admin);
    access_narrow(&ann, ROLE_ADMIN, &(struct scope){.kind = SCOPE_READ_ONLY});
    assert_false(ann.admin || access_may(&ann, RIGHT_SUBMIT, NULL));
    config_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_for_the_roles_and_scopes_of_its_row),
        cmocka_unit_test(a_sign_in_raises_a_role_and_never_lowers_it),
        cmocka_unit_test(roles_reach_as_far_as_they_should),
        cmocka_unit_test(visibility_says_who_reads_the_jobs_of_others),
        cmocka_unit_test(a_scope_takes_away_and_gives_nothing),
        cmocka_unit_test(malformed_scopes_are_refused),
        cmocka_unit_test(refusals_name_the_owner_and_the_way_out),
        cmocka_unit_test(a_user_gets_the_burst_and_then_the_rate),
        cmocka_unit_test(full_buckets_are_dropped_when_there_are_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
