/* SPDX-License-Identifier: Apache-2.0
 *
 * Assumed roles, and the permissions of their sessions' policies.
 */
#include "emulator/ec2/sts_api.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/sts.h"
#include "tests/emulator/world.h"
#include <stdlib.h>
#include <string.h>

#define ROLE "arn:aws:iam::111122223333:role/belay-jobs"
#define USUAL                                                                                      \
    "Action=AssumeRole&Version=2011-06-15&RoleSessionName=ab&RoleArn=arn:aws:iam::111122223333:"   \
    "role/"
#define STATEMENT(body) "{\"Version\":\"2012-10-17\",\"Statement\":[{" body "}]}"
#define ALLOW(action, resource) "\"Effect\":\"Allow\",\"Action\":" action ",\"Resource\":" resource

struct bench {
    struct world w;
    struct keyring keys;
    struct sts_account account;
};

static const struct sts_session session = {.role_arn = ROLE,
    .name = "belay-7.2@lab",
    .bucket = "jobs",
    .prefix = "lab/x/jobs/7/",
    .life_s = 900};

static int setup(void **state)
{
    static const char *const roles[] = {"belay-jobs", NULL};
    struct bench *b = mem_alloc(sizeof(*b));
    world_init(&b->w);
    STR_COPY(b->w.options.account, "111122223333");
    world_start(&b->w);
    keyring_add(&b->keys, "AKID", "SECRET");
    b->account = (struct sts_account){.roles = roles, .min_session_s = 900, .keyring = &b->keys};
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    keyring_deinit(&b->keys);
    world_stop(&b->w);
    free(b);
    return 0;
}

/* Calls with the key of this number. */
static void call(
    struct bench *b, size_t key, const char *body, struct wall now, struct ec2_reply *reply)
{
    struct form form;
    struct err e;
    *reply = (struct ec2_reply){0};
    assert_int_equal(form_parse(body, strlen(body), &form, &e), 0);
    sts_api_call(&b->w.region, &b->account, &b->keys.keys[key], &form, now, reply);
    form_deinit(&form);
}

static void expect(struct bench *b, size_t key, const char *body, int status, const char *text)
{
    struct ec2_reply reply;
    call(b, key, body, b->w.now, &reply);
    if (reply.status != status || !strstr(buf_str(&reply.body), text))
        fail_msg("%s: %d %s", body, reply.status, buf_str(&reply.body));
    buf_deinit(&reply.body);
}

static void the_client_reads_the_session(void **state)
{
    struct bench *b = *state;
    struct buf body = {0};
    struct ec2_reply reply;
    struct aws_credentials c;
    struct err e;
    assert_int_equal(sts_build_assume_role(&session, &body, &e), 0);
    call(b, 0, buf_str(&body), (struct wall){START_MS}, &reply);
    assert_int_equal(sts_parse_assume_role(buf_str(&reply.body), reply.body.len, &c, &e), 0);
    assert_int_equal(c.expires.ms, START_MS + SECONDS_MS(900));
    const struct keyring_key *key = &b->keys.keys[1];
    assert_string_equal(c.access_key, key->access);
    assert_string_equal(c.session_token, key->token);
    const struct policy *p = &key->policy;
    assert_true(policy_allows(p, "s3:PutObject", "arn:aws:s3:::jobs/lab/x/jobs/7/chunks/1", NULL));
    assert_true(policy_allows(p, "s3:ListBucket", "arn:aws:s3:::jobs", "lab/x/jobs/7/manifests/"));
    assert_false(
        policy_allows(p, "s3:GetObject", "arn:aws:s3:::jobs/lab/x/jobs/70/chunks/1", NULL));
    assert_false(
        policy_allows(p, "s3:GetObject", "arn:aws:s3:::other/lab/x/jobs/7/chunks/1", NULL));
    assert_false(policy_allows(p, "s3:ListBucket", "arn:aws:s3:::jobs", "lab/x/jobs/"));
    assert_false(policy_allows(p, "s3:ListBucket", "arn:aws:s3:::jobs", NULL));
    assert_false(policy_allows(p, "s3:PutBucketPolicy", "arn:aws:s3:::jobs", NULL));
    buf_deinit(&reply.body);
    /* Its holder cannot make another one from it. */
    call(b, 1, buf_str(&body), (struct wall){START_MS}, &reply);
    assert_string_equal(reply.code, "AccessDenied");
    buf_deinit(&reply.body);
    buf_deinit(&body);
}

static void each_mistake_has_its_code(void **state)
{
    struct bench *b = *state;
    expect(b, 0, "Action=AssumeRole&Version=2016-11-15", 400, "InvalidAction");
    expect(b, 0, "Action=GetCallerIdentity&Version=2011-06-15", 400, "InvalidAction");
    expect(b, 0, "Action=AssumeRole&Version=2011-06-15", 400, "roleArn");
    expect(b, 0, USUAL "other", 403, "AccessDenied");
    expect(b, 0, USUAL "belay-jobs&DurationSeconds=899", 400, "durationSeconds");
    expect(b, 0, USUAL "belay-jobs&DurationSeconds=43201", 400, "durationSeconds");
    expect(b, 0, USUAL "belay-jobs&Policy=%7B%7D", 400, "MalformedPolicyDocument");
    expect(b, 0, USUAL "belay-jobs&SourceIdentity=x", 400, "SourceIdentity");
    expect(b, 0, "Action=AssumeRole&Version=2011-06-15&RoleSessionName=a%20b&RoleArn=" ROLE, 400,
        "roleSessionName");
    expect(b, 0, USUAL "belay-jobs", 200, "<Credentials>");
    assert_int_equal(b->keys.n, 2);
    expect(b, 1, USUAL "belay-jobs&DurationSeconds=7200", 400, "role chaining");
}

static void sessions_that_have_ended_are_forgotten_in_time(void **state)
{
    struct bench *b = *state;
    struct ec2_reply reply;
    for (int i = 0; i < 5; i++) {
        call(b, 0, USUAL "belay-jobs", (struct wall){START_MS + i * SECONDS_MS(3600)}, &reply);
        assert_int_equal(reply.status, 200);
        buf_deinit(&reply.body);
    }
    /* the user's, the valid one, and the one just expired */
    assert_in_range(b->keys.n, 3, 4);
    assert_string_equal(b->keys.keys[0].access, "AKID");
}

static int parse(const char *text, struct policy *p)
{
    struct err e;
    *p = (struct policy){0};
    return policy_parse(text, strlen(text), p, &e);
}

static void policies_are_read_strictly(void **state)
{
    static const char *const wrong[] = {"", "{}", "[]", "{\"Version\":\"2012-10-17\"}",
        "{\"Version\":\"2012-10-17\",\"Statement\":[]}",
        "{\"Version\":\"2020-01-01\",\"Statement\":[{" ALLOW("\"*\"", "\"*\"") "}]}",
        STATEMENT("\"Effect\":\"Maybe\",\"Action\":\"*\",\"Resource\":\"*\""),
        STATEMENT("\"Effect\":\"Allow\",\"NotAction\":\"*\",\"Resource\":\"*\""),
        STATEMENT("\"Effect\":\"Allow\",\"Action\":\"*\""), STATEMENT(ALLOW("[]", "\"*\"")),
        STATEMENT(ALLOW("[7]", "\"*\"")),
        STATEMENT(ALLOW(
            "\"*\"", "\"*\"") ",\"Condition\":{\"DateLessThan\":{\"aws:CurrentTime\":\"x\"}}"),
        STATEMENT(
            ALLOW("\"*\"", "\"*\"") ",\"Condition\":{\"StringLike\":{\"s3:delimiter\":\"x\"}}"),
        STATEMENT(ALLOW("\"*\"", "\"*\"") ",\"Condition\":[]"), NULL};
    struct policy p;
    (void)state;
    for (size_t i = 0; wrong[i]; i++)
        if (parse(wrong[i], &p) != ERR_INVALID)
            fail_msg("%s", wrong[i]);
}

static void wildcards_lists_and_denials_count(void **state)
{
    struct policy p;
    (void)state;
    assert_int_equal(
        parse("{\"Version\":\"2012-10-17\",\"Statement\":[{" ALLOW("[\"s3:Get*\",\"s3:?utObject\"]",
                  "\"arn:aws:s3:::b/*/x\"") "},"
                                            "{\"Effect\":\"Deny\",\"Action\":\"*\",\"Resource\":\"*"
                                            "secret*\"}]}",
            &p),
        0);
    assert_true(policy_allows(&p, "s3:GetObject", "arn:aws:s3:::b/a/b/x", NULL));
    assert_true(policy_allows(&p, "s3:PutObject", "arn:aws:s3:::b//x", NULL));
    assert_false(policy_allows(&p, "s3:PutObject", "arn:aws:s3:::b/x", NULL));
    assert_false(policy_allows(&p, "s3:OutputObject", "arn:aws:s3:::b/a/x", NULL));
    assert_false(policy_allows(&p, "s3:GetObject", "arn:aws:s3:::b/secret/x", NULL));
    policy_deinit(&p);
    assert_int_equal(
        parse(
            STATEMENT(ALLOW("\"s3:ListBucket\"",
                "\"*\"") ",\"Condition\":{\"StringEqualsIfExists\":{\"s3:prefix\":[\"a/\",\"\"]}}"),
            &p),
        0);
    assert_true(policy_allows(&p, "s3:ListBucket", "x", NULL));
    assert_true(policy_allows(&p, "s3:ListBucket", "x", "a/"));
    assert_false(policy_allows(&p, "s3:ListBucket", "x", "a/b"));
    policy_deinit(&p);
}

int main(void)
{
#define BENCH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        BENCH(the_client_reads_the_session),
        BENCH(each_mistake_has_its_code),
        BENCH(sessions_that_have_ended_are_forgotten_in_time),
        cmocka_unit_test(policies_are_read_strictly),
        cmocka_unit_test(wildcards_lists_and_denials_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
