/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials of jobs for the store: when and for which jobs they are created, and failures. The
 * token service is scripted.
 */
#include "tests/scheduler/lab.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/store/grants.h"
#include "tests/cloud/fake_http.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIFE_S 3600
#define REFUSED(code, message)                                                                     \
    "<ErrorResponse><Error><Code>" code "</Code><Message>" message                                 \
    "</Message></Error></ErrorResponse>"
#define STORE "s3://jobs/lab?endpoint=https://s3.lab.example"

struct fixture {
    struct lab *lab;
    struct fake_http http;
    struct prng prng;
    struct grants_options o;
    struct grants *grants;
    int64_t job, node, changes;
};

static void on_changed(void *ctx, int64_t node)
{
    struct fixture *f = ctx;
    assert_int_equal(node, f->node);
    f->changes++;
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    struct err e;
    if (lab_setup(state) != 0)
        return -1;
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "wJalr", 1);
    f->lab = *state;
    fake_http_init(&f->http, &f->lab->vt.timers);
    prng_init(&f->prng, 7);
    f->o = (struct grants_options){.credentials = {.store = STORE,
                                       .role_arn = "arn:aws:iam::111122223333:role/belay-jobs",
                                       .sts_url = "https://sts.lab.example"},
        .cluster = "lab",
        .tick = f->lab->tick,
        .timers = &f->lab->vt.timers,
        .prng = &f->prng,
        .http = &f->http.client,
        .changed = on_changed,
        .ctx = f};
    assert_int_equal(grants_create(&f->o, &f->grants, &e), 0);
    f->node = lab_join(f->lab, "n1", 64);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    *state = f->lab;
    grants_destroy(f->grants);
    lab_advance(f->lab, 10);
    fake_http_deinit(&f->http);
    free(f);
    return lab_teardown(state);
}

/* A job with checkpoints and a live attempt. */
static int64_t submit(struct fixture *f, enum ckpt_method method)
{
    static const struct job_texts texts = {
        .script = "#!/bin/sh\n", .args_json = "[]", .env_json = "{}", .cwd = "/"};
    const struct job_row row = {.spec.name = "j",
        .user = "u",
        .spec.need = {.cpus = 1},
        .spec.nodes = 1,
        .spec.method = method,
        .spec.ckpt_every_ms = method == CKPT_NONE ? 0 : 60000,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 3};
    struct lab_reply r = {0};
    lab_post(
        f->lab, (struct event){.type = EV_SUBMIT, .submit = {.job = &row, .texts = &texts}}, &r);
    lab_tick(f->lab);
    if (r.rc != 0)
        fail_msg("%s", r.e.text);
    assert_non_null(job_attempt(model_job(f->lab->model, r.id)));
    return r.id;
}

/* The next response of the token service. */
static void answer(struct fixture *f, const char *key)
{
    char end[TIME_ISO_MAX], *body;
    struct wall now = clock_wall(&f->lab->vt.clock);
    time_format_iso((struct wall){(now.ms / 1000 + LIFE_S) * 1000}, end);
    body = mem_printf(
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>%s</AccessKeyId>"
        "<SecretAccessKey>s3cret</SecretAccessKey><SessionToken>t0ken</SessionToken><Expiration>%s"
        "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
        key, end);
    fake_http_add(&f->http, 200, body);
    free(body);
}

/* Advances the time with heartbeats of the node. */
static void pass(struct fixture *f, int64_t ms)
{
    for (int64_t step; ms > 0; ms -= step) {
        step = ms < LAB_SYNC_MS ? ms : LAB_SYNC_MS;
        lab_post(
            f->lab, (struct event){.type = EV_HEARTBEAT, .heartbeat = {.node = f->node}}, NULL);
        lab_advance(f->lab, step);
    }
}

static bool give_or_say(struct fixture *f, int64_t job, struct wire_secrets *s, struct err *ret_why)
{
    *s = (struct wire_secrets){0};
    *ret_why = (struct err){0};
    return grants_give(f->grants, job, 1, s, ret_why);
}

static bool give(struct fixture *f, int64_t job, struct wire_secrets *s)
{
    struct err why;
    return give_or_say(f, job, s, &why);
}

static int64_t number(struct fixture *f, int64_t job, const char *key)
{
    struct wire_secrets s;
    assert_true(give(f, job, &s));
    assert_string_equal(s.store_access_key, key);
    assert_string_equal(s.store_secret_key, "s3cret");
    assert_string_equal(s.store_token, "t0ken");
    assert_in_range(s.store_left_ms, 1, SECONDS_MS(LIFE_S));
    int64_t version = s.version;
    wire_secrets_wipe(&s);
    return version;
}

struct counting {
    const char *kind;
    int n;
    char *last;
};

static int count_row(void *ctx, const struct history_row *h)
{
    struct counting *c = ctx;
    if (str_eq(h->kind, c->kind)) {
        c->n++;
        str_copy(c->last, CORE_TEXT_MAX, h->text);
    }
    return 0;
}

static int histories(struct fixture *f, const char *kind, char last[CORE_TEXT_MAX])
{
    struct counting c = {.kind = kind, .last = last};
    struct err e;
    assert_int_equal(db_read_history(f->lab->reader, 0, 0, 1000, count_row, &c, &e), 0);
    return c.n;
}

static void an_attempt_gets_its_own_once_they_are_there(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets s;
    int64_t job = submit(f, CKPT_COOP);
    answer(f, "ASIA1");
    assert_false(give(f, job, &s)); /* requested */
    assert_false(give(f, job, &s));
    lab_advance(f->lab, 10);
    assert_int_equal(f->changes, 1);
    assert_int_equal(f->http.n_requests, 1);
    int64_t first = number(f, job, "ASIA1");
    assert_int_equal(number(f, job, "ASIA1"), first);
    assert_int_equal(f->http.n_requests, 1);
    const char *body = buf_str(&f->http.requests[0].body);
    assert_non_null(strstr(body, "RoleSessionName=belay-1.1%40lab"));
    assert_non_null(strstr(body, "%3Ajobs%2Flab%2Flab%2Fjobs%2F1%2F%2A"));
    struct grants_stats stats;
    grants_get_stats(f->grants, &stats);
    assert_true(stats.made == 1 && stats.failures == 0 && stats.valid == 1);
}

static void a_job_that_saves_nothing_needs_none(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets s;
    int64_t job = submit(f, CKPT_NONE);
    assert_true(give(f, job, &s));
    assert_int_equal(s.version, 0);
    assert_null(s.store_token);
    lab_advance(f->lab, 10);
    assert_int_equal(f->http.n_requests, 0);
}

static void they_are_renewed_at_half_of_their_life(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets s;
    int64_t job = submit(f, CKPT_COOP);
    answer(f, "ASIA1");
    give(f, job, &s);
    lab_advance(f->lab, 10);
    int64_t first = number(f, job, "ASIA1");
    pass(f, SECONDS_MS(LIFE_S) * 4 / 10 - SECONDS_MS(10));
    assert_int_equal(f->http.n_requests, 1);
    answer(f, "ASIA2");
    pass(f, SECONDS_MS(LIFE_S) / 10 + SECONDS_MS(20));
    assert_int_equal(f->http.n_requests, 2);
    assert_int_equal(f->changes, 2);
    assert_true(number(f, job, "ASIA2") != first);
}

static void a_failure_is_reported_once_and_retried_while_the_old_credentials_are_valid(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets s;
    char text[CORE_TEXT_MAX];
    int64_t job = submit(f, CKPT_COOP);
    answer(f, "ASIA1");
    give(f, job, &s);
    lab_advance(f->lab, 10);
    f->http.keep_none = true;
    fake_http_route(&f->http, "POST", "/", 503, "");
    pass(f, SECONDS_MS(LIFE_S) / 2);
    pass(f, SECONDS_MS(600));
    assert_int_equal(histories(f, "no-credentials", text), 1);
    assert_non_null(strstr(text, "its current ones are valid for "));
    number(f, job, "ASIA1");
    struct grants_stats stats;
    grants_get_stats(f->grants, &stats);
    assert_in_range(stats.failures, 10, 40); /* with growing delays, at most a minute */
    pass(f, SECONDS_MS(LIFE_S) / 2);
    assert_int_equal(histories(f, "no-credentials", text), 2);
    assert_non_null(strstr(text, "old ones have expired"));
    assert_false(give(f, job, &s)); /* expired credentials are not delivered */
    free(f->http.routes[--f->http.n_routes].answer.body);
    answer(f, "ASIA2");
    pass(f, SECONDS_MS(61));
    number(f, job, "ASIA2");
    assert_non_null(job_attempt(model_job(f->lab->model, job))); /* no attempt was ended */
}

/* Waiting agents are answered at a first reason and at a different one; a request id in the text is
 * not a difference. */
static void the_first_that_cannot_be_made_have_a_reason(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets s;
    struct err why;
    char text[ERR_TEXT_MAX];
    int64_t job = submit(f, CKPT_COOP);
    fake_http_add(&f->http, 403, REFUSED("AccessDenied", "1"));
    fake_http_add(&f->http, 403, REFUSED("AccessDenied", "2"));
    fake_http_add(&f->http, 503, "");
    assert_false(give_or_say(f, job, &s, &why));
    assert_int_equal(why.kind, ERR_NONE); /* requested */
    lab_advance(f->lab, 10);
    assert_int_equal(f->changes, 1);
    assert_false(give_or_say(f, job, &s, &why));
    assert_int_equal(why.kind, ERR_DENIED);
    assert_non_null(strstr(why.text, "needs sts:AssumeRole on store_role"));
    STR_COPY(text, why.text);
    pass(f, SECONDS_MS(1));
    assert_int_equal(f->http.n_requests, 2);
    assert_int_equal(f->changes, 1);
    assert_false(give_or_say(f, job, &s, &why));
    assert_string_equal(why.text, text);
    answer(f, "ASIA1");
    pass(f, SECONDS_MS(2));
    assert_int_equal(f->http.n_requests, 3);
    assert_int_equal(f->changes, 2);
    assert_false(give_or_say(f, job, &s, &why));
    assert_int_equal(why.kind, ERR_UNAVAILABLE);
    pass(f, SECONDS_MS(6));
    assert_int_equal(f->changes, 3);
    number(f, job, "ASIA1");
}

static void none_are_made_for_what_has_ended(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets s;
    int64_t one = submit(f, CKPT_COOP), two = submit(f, CKPT_COOP);
    answer(f, "ASIA1");
    answer(f, "ASIA2");
    give(f, one, &s);
    lab_advance(f->lab, 10);
    number(f, one, "ASIA1");
    f->http.silent = true;
    give(f, two, &s); /* in progress */
    lab_advance(f->lab, 10);
    for (int64_t job = one; job <= two; job++)
        lab_post(f->lab,
            (struct event){.type = EV_ATTEMPT_ENDED,
                .ended = {.job = job, .attempt = 1, .node = f->node, .end = END_SUCCEEDED}},
            NULL);
    lab_tick(f->lab);
    struct db_batch batch = {0};
    struct attempt_row rows[] = {{.job = one, .attempt = 1}, {.job = two, .attempt = 1}};
    batch.changes.attempts = rows;
    batch.changes.n_attempts = 2;
    grants_committed(f->grants, &batch);
    lab_advance(f->lab, SECONDS_MS(LIFE_S));
    assert_int_equal(f->http.n_requests, 2);
    assert_int_equal(f->http.n_cancelled, 1);
    struct grants_stats stats;
    grants_get_stats(f->grants, &stats);
    assert_int_equal(stats.valid, 0);
    assert_true(give(f, one, &s)); /* there is nothing to hold */
    assert_null(s.store_token);
}

static void the_key_of_the_stores_url_may_be_used(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets s;
    struct err e;
    grants_destroy(f->grants);
    f->o.credentials.store = STORE "&sse=kms&kms_key=arn:aws:kms:us-east-1:111122223333:key/1-2";
    assert_int_equal(grants_create(&f->o, &f->grants, &e), 0);
    answer(f, "ASIA1");
    give(f, submit(f, CKPT_COOP), &s);
    lab_advance(f->lab, 10);
    assert_non_null(strstr(buf_str(&f->http.requests[0].body), "key%2F1-2"));
}

static void many_do_not_ask_all_at_once(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets s;
    int64_t jobs[40];
    f->http.silent = true;
    for (int i = 0; i < 40; i++) {
        jobs[i] = submit(f, CKPT_COOP);
        give(f, jobs[i], &s);
    }
    lab_advance(f->lab, 1000);
    assert_int_equal(f->http.n_requests, 16);
}

static void settings_are_compared_with_the_store(void **state)
{
    static const struct {
        const char *store, *role, *sts, *kms;
        int64_t life_s;
        const char *wrong; /* in the error; NULL: valid */
    } cases[] = {
        {"s3://jobs", "arn:aws:iam::1:role/x", NULL, NULL, 900, NULL},
        {"s3://jobs", "arn:aws:iam::1:role/x", NULL, "arn:aws:kms:us-east-1:1:key/2", 0, NULL},
        {"s3://jobs", NULL, NULL, NULL, 0, "store_role"},
        {"s3://jobs", "belay", NULL, NULL, 0, "store_role"},
        {"s3://jobs", "arn:aws:iam::1:role/x", NULL, NULL, 899, "store_lifetime"},
        {"s3://jobs", "arn:aws:iam::1:role/x", NULL, NULL, 43201, "store_lifetime"},
        {"s3://jobs", "arn:aws:iam::1:role/x", "http://10.0.0.1", NULL, 0, "store_sts"},
        {"s3://jobs", "arn:aws:iam::1:role/x", "https://s3.lab.example:9000", NULL, 60, NULL},
        {"s3://jobs", "arn:aws:iam::1:role/x", NULL, "alias/x", 0, "store_kms_key"},
        {"gs://jobs", NULL, NULL, NULL, 0, NULL},
        {"gs://jobs", NULL, NULL, NULL, 900, "store_lifetime"},
        {"gs://jobs", "arn:aws:iam::1:role/x", NULL, NULL, 0, "store_role"},
        {"az://lab1/jobs", NULL, NULL, NULL, 3600, NULL},
        {"az://lab1/jobs", NULL, NULL, NULL, 8 * 86400, "store_lifetime"},
        {"az://lab1/jobs", NULL, "https://sts.lab.example", NULL, 0, "store_sts"},
        {"file:///srv/belay", NULL, NULL, NULL, 0, "directory"},
    };
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job_credentials o = {.store = cases[i].store,
            .role_arn = cases[i].role,
            .sts_url = cases[i].sts,
            .kms_key = cases[i].kms,
            .life_ms = SECONDS_MS(cases[i].life_s)};
        int rc = job_credentials_check(&o, &e);
        if (cases[i].wrong ? rc != ERR_INVALID || !strstr(e.text, cases[i].wrong) : rc != 0)
            fail_msg("case %zu: %d %s", i, rc, rc ? e.text : "");
    }
}

#define FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE(an_attempt_gets_its_own_once_they_are_there),
        FIXTURE(a_job_that_saves_nothing_needs_none),
        FIXTURE(they_are_renewed_at_half_of_their_life),
        FIXTURE(a_failure_is_reported_once_and_retried_while_the_old_credentials_are_valid),
        FIXTURE(the_first_that_cannot_be_made_have_a_reason),
        FIXTURE(none_are_made_for_what_has_ended),
        FIXTURE(the_key_of_the_stores_url_may_be_used),
        FIXTURE(many_do_not_ask_all_at_once),
        cmocka_unit_test(settings_are_compared_with_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
