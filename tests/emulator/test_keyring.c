/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests are signed with the driver's own signer, then modified.
 */
#include "emulator/keyring.h"
#include "base/str.h"
#include "tests/emulator/world.h"
#include <stdio.h>
#include <string.h>

#define BODY "Action=DescribeInstances&Version=2016-11-15"

struct signed_call {
    struct buf authorization;
    char date[SIGV4_TIMESTAMP_MAX];
    struct http_header headers[5];
    size_t n_headers;
    const char *body;
};

/* As signed by a client at time `at`. token may be NULL. */
static void sign(struct signed_call *c, const char *access, const char *secret, const char *token,
    const char *region, const char *service, struct wall at)
{
    char hash[SIGV4_HEX_MAX];
    struct err e = {0};
    *c = (struct signed_call){.body = BODY};
    sigv4_timestamp(at, c->date);
    sigv4_sha256_hex(BODY, strlen(BODY), hash);
    c->headers[c->n_headers++] = (struct http_header){"Host", "127.0.0.1:4711"};
    c->headers[c->n_headers++] = (struct http_header){"X-Amz-Date", c->date};
    if (token)
        c->headers[c->n_headers++] = (struct http_header){"X-Amz-Security-Token", token};
    const struct sigv4_request r = {"POST", "/", c->headers, c->n_headers, hash};
    const struct sigv4_scope scope = {c->date, region, service};
    if (sigv4_authorization(&r, &scope, access, secret, &c->authorization, &e) < 0)
        fail_msg("%s", e.text);
    c->headers[c->n_headers++] = (struct http_header){"Authorization", buf_str(&c->authorization)};
}

static const char *check(const struct keyring *k, const struct signed_call *c, struct wall now)
{
    const struct keyring_request r = {
        "POST", "/", c->headers, c->n_headers, c->body, strlen(c->body)};
    struct err e;
    return keyring_check(k, &r, "us-east-1", now, &e);
}

static const struct wall noon = {START_MS};

/* Signs and checks at noon, with the key AKID/SECRET in the keyring. */
static void expect(const char *code, const char *access, const char *secret, const char *region,
    const char *service, int64_t clock_off_ms)
{
    struct keyring k = {0};
    struct signed_call c;
    keyring_add(&k, "AKID", "SECRET");
    sign(&c, access, secret, NULL, region, service, (struct wall){START_MS + clock_off_ms});
    const char *got = check(&k, &c, noon);
    if (!str_eq(got, code))
        fail_msg("expected %s, got %s", code ? code : "none", got ? got : "none");
    buf_deinit(&c.authorization);
    keyring_deinit(&k);
}

static void a_rightly_signed_request_passes(void **state)
{
    (void)state;
    expect(NULL, "AKID", "SECRET", "us-east-1", "ec2", 0);
    expect(NULL, "AKID", "SECRET", "us-east-1", "ec2", KEYRING_SKEW_MS - 1000);
    expect(NULL, "AKID", "SECRET", "us-east-1", "ec2", -KEYRING_SKEW_MS + 1000);
}

static void each_mistake_has_its_code(void **state)
{
    (void)state;
    expect("SignatureDoesNotMatch", "AKID", "WRONG", "us-east-1", "ec2", 0);
    expect("AuthFailure", "NOBODY", "SECRET", "us-east-1", "ec2", 0);
    expect("SignatureDoesNotMatch", "AKID", "SECRET", "us-west-2", "ec2", 0);
    expect("SignatureDoesNotMatch", "AKID", "SECRET", "us-east-1", "s3", 0);
    expect("RequestExpired", "AKID", "SECRET", "us-east-1", "ec2", KEYRING_SKEW_MS + 1000);
    expect("RequestExpired", "AKID", "SECRET", "us-east-1", "ec2", -KEYRING_SKEW_MS - 1000);
}

static void what_was_changed_after_signing_does_not_pass(void **state)
{
    struct keyring k = {0};
    struct signed_call c;
    (void)state;
    keyring_add(&k, "AKID", "SECRET");
    sign(&c, "AKID", "SECRET", NULL, "us-east-1", "ec2", noon);
    c.body = "Action=TerminateInstances&Version=2016-11-15";
    assert_string_equal(check(&k, &c, noon), "SignatureDoesNotMatch");
    c.body = BODY;
    c.headers[0].value = "elsewhere";
    assert_string_equal(check(&k, &c, noon), "SignatureDoesNotMatch");
    buf_deinit(&c.authorization);
    keyring_deinit(&k);
}

static void without_or_with_broken_authorization_it_is_refused(void **state)
{
    struct keyring k = {0};
    struct signed_call c;
    (void)state;
    keyring_add(&k, "AKID", "SECRET");
    sign(&c, "AKID", "SECRET", NULL, "us-east-1", "ec2", noon);
    c.headers[2].value = "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==";
    assert_string_equal(check(&k, &c, noon), "IncompleteSignature");
    c.n_headers = 2;
    assert_string_equal(check(&k, &c, noon), "MissingParameter");
    c.headers[2].value = buf_str(&c.authorization);
    c.n_headers = 3;
    c.headers[1].name = "X-Other";
    assert_string_equal(check(&k, &c, noon), "IncompleteSignature");
    buf_deinit(&c.authorization);
    keyring_deinit(&k);
}

static void role_keys_work_with_their_token_until_they_end(void **state)
{
    struct keyring k = {0};
    struct signed_call c;
    (void)state;
    const struct keyring_key key = *keyring_role(&k, "i-1", 3600000, noon);
    assert_true(str_starts(key.access, "ASIA"));
    sign(&c, key.access, key.secret, key.token, "us-east-1", "ec2", noon);
    assert_null(check(&k, &c, noon));
    buf_deinit(&c.authorization);
    sign(&c, key.access, key.secret, NULL, "us-east-1", "ec2", noon);
    assert_string_equal(check(&k, &c, noon), "AuthFailure");
    buf_deinit(&c.authorization);
    const struct wall later = {START_MS + 3600000};
    sign(&c, key.access, key.secret, key.token, "us-east-1", "ec2", later);
    assert_string_equal(check(&k, &c, later), "RequestExpired");
    buf_deinit(&c.authorization);
    keyring_deinit(&k);
}

static void role_keys_are_renewed_before_they_end(void **state)
{
    struct keyring k = {0};
    char first[KEYRING_ACCESS_MAX];
    (void)state;
    STR_COPY(first, keyring_role(&k, "i-1", 3600000, noon)->access);
    assert_string_equal(
        keyring_role(&k, "i-1", 3600000, (struct wall){START_MS + 1800000})->access, first);
    assert_string_not_equal(
        keyring_role(&k, "i-1", 3600000, (struct wall){START_MS + 2500000})->access, first);
    assert_string_not_equal(keyring_role(&k, "i-2", 3600000, noon)->access, first);
    keyring_deinit(&k);
}

static void the_price_list_has_codes_of_its_own(void **state)
{
    static const struct {
        const char *access, *secret, *region, *service;
        int64_t clock_off_ms;
        const char *code;
    } cases[] = {
        {"AKID", "SECRET", "us-east-1", "pricing", 0, NULL},
        {"AKID", "SECRET", "us-east-1", "ec2", 0, "InvalidSignatureException"},
        {"AKID", "SECRET", "eu-west-1", "pricing", 0, "InvalidSignatureException"},
        {"AKID", "WRONG", "us-east-1", "pricing", 0, "InvalidSignatureException"},
        {"NOBODY", "SECRET", "us-east-1", "pricing", 0, "UnrecognizedClientException"},
        {"AKID", "SECRET", "us-east-1", "pricing", KEYRING_SKEW_MS + 1000,
            "InvalidSignatureException"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct keyring k = {0};
        struct signed_call c;
        struct err e;
        keyring_add(&k, "AKID", "SECRET");
        sign(&c, cases[i].access, cases[i].secret, NULL, cases[i].region, cases[i].service,
            (struct wall){START_MS + cases[i].clock_off_ms});
        struct keyring_request r = {
            "POST", "/", c.headers, c.n_headers, c.body, strlen(c.body), "pricing", NULL};
        const char *got = keyring_check(&k, &r, "us-east-1", noon, &e);
        if (!str_eq(got, cases[i].code))
            fail_msg("%zu: got %s", i, got ? got : "none");
        r.n_headers = 1;
        assert_string_equal(
            keyring_check(&k, &r, "us-east-1", noon, &e), "MissingAuthenticationTokenException");
        buf_deinit(&c.authorization);
        keyring_deinit(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rightly_signed_request_passes),
        cmocka_unit_test(each_mistake_has_its_code),
        cmocka_unit_test(what_was_changed_after_signing_does_not_pass),
        cmocka_unit_test(without_or_with_broken_authorization_it_is_refused),
        cmocka_unit_test(role_keys_work_with_their_token_until_they_end),
        cmocka_unit_test(role_keys_are_renewed_before_they_end),
        cmocka_unit_test(the_price_list_has_codes_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
