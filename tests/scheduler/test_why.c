/* SPDX-License-Identifier: Apache-2.0
 *
 * What `belay why` adds to the reasons of the core: the texts of attempts that the model has
 * forgotten, each with what its user can do; and what of it others are not shown.
 */
#include "base/str.h"
#include "scheduler/api/api_private.h"
#include "tests/scheduler/lab.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct why_case {
    struct lab *lab;
    int64_t job, node;
    struct reason reasons[EXPLAIN_REASONS_MAX];
    size_t n;
};

/* A job that runs on the only node. */
static struct why_case begin(struct lab *lab)
{
    struct lab_reply r = {0};
    struct why_case a = {.lab = lab, .node = lab_join(lab, "n", 4)};
    lab_submit(lab, 1, &r);
    lab_tick(lab);
    assert_int_equal(r.n, 1);
    a.job = r.id;
    return a;
}

static const struct job_row *row(const struct why_case *a)
{
    return &model_job(a->lab->model, a->job)->row;
}

/* of a job that needs both nodes */
static int64_t submit_gang(struct lab *lab)
{
    struct job_row job = {.spec.name = "gang",
        .user = "ann",
        .spec.nodes = 2,
        .spec.nodes_min = 2,
        .spec.need = {.cpus = 1},
        .spec.method = CKPT_NONE,
        .spec.ckpt_every_ms = 60000,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 1};
    struct job_texts texts = {.script = "#!/bin/sh\ntrue\n",
        .args_json = "[]",
        .env_json = "{}",
        .cwd = "/",
        .labels_json = "{}"};
    struct lab_reply r = {0};
    lab_post(lab, (struct event){.type = EV_SUBMIT, .submit = {.job = &job, .texts = &texts}}, &r);
    lab_tick(lab);
    if (r.rc)
        fail_msg("%s", r.e.text);
    return r.id;
}

static void heartbeat(struct lab *lab, int64_t node)
{
    if (node != CORE_ID_NONE)
        lab_post(lab, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = node}, NULL);
}

/* Until its next attempt is placed; other: another node, or CORE_ID_NONE. */
static void await_start(const struct why_case *a, int64_t other)
{
    for (int k = 0; row(a)->state != JOB_RUNNING; k++) {
        assert_true(k < 100);
        heartbeat(a->lab, a->node);
        heartbeat(a->lab, other);
        lab_advance(a->lab, 10000);
    }
}

/* The job's attempt ends on the node, with this text of its agent. */
static void end_on(
    const struct why_case *a, int64_t node, enum end_kind kind, int32_t exit_code, const char *text)
{
    struct event ev = {.type = EV_ATTEMPT_ENDED,
        .ended = {.job = a->job,
            .attempt = row(a)->attempts,
            .node = node,
            .end = kind,
            .exit_code = exit_code}};
    STR_COPY(ev.ended.text, text);
    lab_post(a->lab, ev, NULL);
    lab_tick(a->lab);
}

static void end(const struct why_case *a, enum end_kind kind, int32_t exit_code, const char *text)
{
    await_start(a, CORE_ID_NONE);
    end_on(a, a->node, kind, exit_code, text);
}

static void explain(struct why_case *a)
{
    struct job_row r;
    struct err e;
    const struct api api = {.o = {.tick = a->lab->tick, .reader = a->lab->reader}};
    assert_int_equal(db_read_job(a->lab->reader, a->job, &r, &e), 0);
    a->n = api_explain(&api, a->lab->model, &r, a->reasons);
}

/* The only one with this code. */
static const char *text_of(const struct why_case *a, const char *code)
{
    const char *text = NULL;
    for (size_t i = 0; i < a->n; i++) {
        if (!str_eq(a->reasons[i].code, code))
            continue;
        assert_null(text);
        text = a->reasons[i].text;
    }
    return text ? text : "";
}

static void assert_has(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in: %s", words, text);
}

/* Ends starts for lack of space until the job is held. */
static void hold_for_space(struct why_case *a, const char *text)
{
    for (int k = 1; k <= JOB_NO_SPACE_MAX; k++) {
        char of_this[CORE_TEXT_MAX];
        snprintf(of_this, sizeof(of_this), "start %d: %s", k, text);
        assert_int_equal(row(a)->hold, HOLD_NONE);
        end(a, END_CAPACITY, 0, text[0] ? of_this : "");
    }
    assert_int_equal(row(a)->hold, HOLD_USER);
}

static void a_job_held_for_space_has_the_last_text_and_the_cure(void **state)
{
    struct why_case a = begin(*state);
    hold_for_space(&a, "its workdir needs 9 GiB, of 2 GiB free");
    explain(&a);
    assert_string_equal(text_of(&a, "no-room"),
        "it is held: no node could start it: start 5: its workdir needs 9 GiB, of 2 GiB free; "
        "fix that or ask for less, then belay release 1");
}

/* The texts say what was tried at the start, and why it failed. */
static void a_long_text_leaves_space_for_the_cure(void **state)
{
    char text[240];
    struct why_case a = begin(*state);
    memset(text, 'x', sizeof(text));
    snprintf(text + sizeof(text) - 17, 17, " of 2 GiB, full.");
    hold_for_space(&a, text);
    explain(&a);
    assert_has(text_of(&a, "no-room"), "no node could start it: start 5: xxx");
    assert_has(
        text_of(&a, "no-room"), " of 2 GiB, full.; fix that or ask for less, then belay release 1");
}

static void without_a_text_the_core_says_where_to_look(void **state)
{
    struct why_case a = begin(*state);
    hold_for_space(&a, "");
    explain(&a);
    assert_string_equal(text_of(&a, "no-room"),
        "it is held: no node could start it, 5 times in a row (belay show 1 says why); fix that or "
        "ask for less, then belay release 1");
}

static void add_elastic(struct lab *lab)
{
    struct pool_row pool = {.name = "burst",
        .elastic = true,
        .provider = "sim",
        .region = "r1",
        .max_nodes = 1,
        .boot_timeout_ms = 600000,
        .refusal_backoff_ms = 10000};
    struct offer_row offer = {.pool = "burst",
        .zone = "z",
        .type = "m5",
        .market = MARKET_ON_DEMAND,
        .total = {.cpus = 4, .memory_mib = 1024},
        .price_uusd_h = 1,
        .on_demand_uusd_h = 1,
        .avoid_until = MONO_NONE};
    lab_post(lab, (struct event){.type = EV_POOL, .pool = &pool}, NULL);
    lab_post(lab, (struct event){.type = EV_OFFER, .offer = &offer}, NULL);
    lab_tick(lab);
}

static void a_job_that_avoids_a_node_has_the_text_of_that_node(void **state)
{
    struct why_case a = begin(*state);
    add_elastic(a.lab); /* another node may come */
    end(&a, END_CAPACITY, 0, "9 GiB, of 2 GiB free");
    explain(&a);
    assert_string_equal(text_of(&a, "no-room-away"),
        "for up to 10 minutes it waits for another node than that of attempt 1, which could not "
        "start it: 9 GiB, of 2 GiB free");
}

/* The other ranks end because of the rank without space, and are stored after it. */
static void the_text_is_that_of_the_rank_without_space(void **state)
{
    struct lab *lab = *state;
    struct why_case a = {.lab = lab, .node = lab_join(lab, "n", 1)};
    int64_t other = lab_join(lab, "n2", 1);
    a.job = submit_gang(lab);
    for (int k = 1; k <= JOB_NO_SPACE_MAX; k++) {
        await_start(&a, other);
        end_on(&a, a.node, END_CAPACITY, 0, "9 GiB, of 2 GiB free");
        end_on(&a, other, END_CANCELLED, 0, "stopped with its gang");
    }
    assert_int_equal(row(&a)->hold, HOLD_USER);
    explain(&a);
    assert_has(text_of(&a, "no-room"), "could start it: 9 GiB, of 2 GiB free; fix that");
}

static void a_job_held_for_its_store_has_the_text_and_the_cure(void **state)
{
    struct why_case a = begin(*state);
    end(&a, END_STORE, 0, "s3://jobs: 403 AccessDenied");
    explain(&a);
    assert_string_equal(text_of(&a, "store"),
        "it is held: s3://jobs: 403 AccessDenied; when that is fixed: belay release 1");
}

static void a_cure_in_the_text_is_not_said_twice(void **state)
{
    struct why_case a = begin(*state);
    end(&a, END_STORE, 0,
        "no checkpoint 1.4 is there; belay release --from-scratch 1 begins again");
    explain(&a);
    assert_string_equal(text_of(&a, "store"),
        "it is held: no checkpoint 1.4 is there; belay release --from-scratch 1 begins again");
}

static void without_a_text_of_the_store_the_core_says_where_to_look(void **state)
{
    struct why_case a = begin(*state);
    end(&a, END_STORE, 0, "");
    explain(&a);
    assert_string_equal(text_of(&a, "store"),
        "it is held: attempt 1 could not use the store of its checkpoints (belay show 1 says why); "
        "after that is fixed, belay release 1 lets it continue");
}

/* The core's line says when the next try is, the agent's line why. */
static void a_job_that_waits_for_its_store_has_both_lines(void **state)
{
    struct why_case a = begin(*state);
    end(&a, END_STORE_AWAY, 0, "s3://jobs: 403 ExpiredToken");
    explain(&a);
    assert_true(a.n >= 2);
    assert_string_equal(a.reasons[0].code, "store-away");
    assert_has(a.reasons[0].text, "retried in 5");
    assert_string_equal(a.reasons[a.n - 1].code, "store-away");
    assert_string_equal(a.reasons[a.n - 1].text, "s3://jobs: 403 ExpiredToken");
}

static void a_store_that_refuses_is_named(void **state)
{
    struct why_case a = begin(*state);
    struct event ev = {.type = EV_STORE_REFUSED,
        .store_refused = {.job = a.job, .attempt = 1, .node = a.node, .tries = 2}};
    STR_COPY(ev.store_refused.text, "/data/secret: permission denied");
    lab_post(a.lab, ev, NULL);
    lab_tick(a.lab);
    explain(&a);
    assert_has(text_of(&a, "store-refused"), "/data/secret: permission denied");
}

static void what_ended_says_how_and_where_its_output_is(void **state)
{
    struct why_case a = begin(*state);
    end(&a, END_FAILED, 3, "exit code 3 after 5 s");
    explain(&a);
    assert_int_equal(a.n, 2);
    assert_string_equal(text_of(&a, "ended"), "the job has ended: failed, exit code 3 after 5 s");
    assert_string_equal(text_of(&a, "output"), "its output: belay logs 1");
}

static void an_exit_code_that_the_text_lacks_is_added(void **state)
{
    struct why_case a = begin(*state);
    end(&a, END_FAILED, 127, "its interpreter is not there");
    explain(&a);
    assert_string_equal(text_of(&a, "ended"),
        "the job has ended: failed, exit code 127, its interpreter is not there");
}

static void without_a_moment_of_the_model_only_the_full_disk_is_known(void **state)
{
    struct why_case a = begin(*state);
    const struct api api = {.o = {.tick = a.lab->tick, .reader = a.lab->reader}};
    assert_int_equal(api_explain(&api, NULL, row(&a), a.reasons), 1);
    assert_string_equal(a.reasons[0].code, "disk-full");
    assert_has(a.reasons[0].text, "is full: nothing new is decided");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lab_setup, lab_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_held_for_space_has_the_last_text_and_the_cure),
        TEST(a_long_text_leaves_space_for_the_cure),
        TEST(without_a_text_the_core_says_where_to_look),
        TEST(a_job_that_avoids_a_node_has_the_text_of_that_node),
        TEST(the_text_is_that_of_the_rank_without_space),
        TEST(a_job_held_for_its_store_has_the_text_and_the_cure),
        TEST(a_cure_in_the_text_is_not_said_twice),
        TEST(without_a_text_of_the_store_the_core_says_where_to_look),
        TEST(a_job_that_waits_for_its_store_has_both_lines),
        TEST(a_store_that_refuses_is_named),
        TEST(what_ended_says_how_and_where_its_output_is),
        TEST(an_exit_code_that_the_text_lacks_is_added),
        TEST(without_a_moment_of_the_model_only_the_full_disk_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
