/* SPDX-License-Identifier: Apache-2.0 */
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/emulator/gce_bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUDIENCE "https://oauth2.googleapis.com/token"
#define HEADER "{\"alg\":\"RS256\",\"typ\":\"JWT\"}"

static void add_part(struct buf *out, const void *p, size_t n)
{
    struct buf usual = {0};
    b64_encode(&usual, p, n);
    for (size_t k = 0; k < usual.len && usual.data[k] != '='; k++)
        buf_addc(out, usual.data[k] == '+' ? '-' : usual.data[k] == '/' ? '_' : usual.data[k]);
    buf_deinit(&usual);
}

/* The caller frees it. */
static char *sign(const struct gce_bench *b, const char *header, const char *claims)
{
    struct buf out = {0};
    unsigned char signature[512];
    size_t n = sizeof(signature);
    add_part(&out, header, strlen(header));
    buf_addc(&out, '.');
    add_part(&out, claims, strlen(claims));
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    assert_int_equal(
        EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, b->gce->auth.accounts[0].key), 1);
    assert_int_equal(
        EVP_DigestSign(ctx, signature, &n, (const unsigned char *)buf_str(&out), out.len), 1);
    EVP_MD_CTX_free(ctx);
    buf_addc(&out, '.');
    add_part(&out, signature, n);
    return buf_take(&out);
}

static char *claims(
    const char *iss, const char *scope, const char *aud, int64_t from_s, int64_t to_s)
{
    int64_t now_s = BENCH_START_MS / 1000;
    return mem_printf(
        "{\"iss\":\"%s\",\"sub\":\"%s\",\"scope\":\"%s\",\"aud\":\"%s\",\"iat\":%lld,\"exp\":%lld}",
        iss, iss, scope, aud, (long long)(now_s + from_s), (long long)(now_s + to_s));
}

static int exchange(struct gce_bench *b, const char *jwt)
{
    char *body = mem_printf(
        "grant_type=urn%%3Aietf%%3Aparams%%3Aoauth%%3Agrant-type%%3Ajwt-bearer&assertion=%s", jwt);
    int status = bench_call(b, "POST", "/token", body);
    free(body);
    return status;
}

static void a_signed_assertion_buys_a_token(void **state)
{
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    char *c = claims(BENCH_AGENT, BENCH_SCOPE, AUDIENCE, 0, 3600), *jwt = sign(&b, HEADER, c);
    assert_int_equal(exchange(&b, jwt), 200);
    STR_COPY(b.token, bench_text(&b, "access_token"));
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 200, "instanceList");
    bench_advance(&b, SECONDS_MS(3600));
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 401, "authError");
    free(jwt);
    free(c);
    bench_stop(&b);
}

static void a_wrong_assertion_buys_none(void **state)
{
    static const struct {
        const char *header, *iss, *aud;
        int64_t from_s, to_s;
        const char *expected;
    } bad[] = {
        {"{\"alg\":\"none\"}", BENCH_AGENT, AUDIENCE, 0, 3600, "RS256"},
        {"{\"alg\":\"HS256\"}", BENCH_AGENT, AUDIENCE, 0, 3600, "RS256"},
        {"{}", BENCH_AGENT, AUDIENCE, 0, 3600, "RS256"},
        {"{\"alg\":\"RS256\",\"kid\":\"another\"}", BENCH_AGENT, AUDIENCE, 0, 3600, "Signature"},
        {HEADER, "stranger@my-project.iam.gserviceaccount.com", AUDIENCE, 0, 3600,
            "account not found"},
        {HEADER, "viewer@my-project.iam.gserviceaccount.com", AUDIENCE, 0, 3600, "Signature"},
        {HEADER, BENCH_AGENT, "https://elsewhere.example/token", 0, 3600, "audience"},
        {HEADER, BENCH_AGENT, AUDIENCE, 0, 3601, "short-lived"},
        {HEADER, BENCH_AGENT, AUDIENCE, -3600, 0, "short-lived"},
        {HEADER, BENCH_AGENT, AUDIENCE, 400, 1000, "short-lived"},
        {HEADER, BENCH_AGENT, AUDIENCE, 100, 50, "short-lived"},
    };
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        char *c = claims(bad[k].iss, BENCH_SCOPE, bad[k].aud, bad[k].from_s, bad[k].to_s);
        char *jwt = sign(&b, bad[k].header, c);
        assert_int_equal(exchange(&b, jwt), 400);
        assert_string_equal(bench_text(&b, "error"), "invalid_grant");
        if (!strstr(bench_text(&b, "error_description"), bad[k].expected))
            fail_msg(
                "%zu: expected %s in %s", k, bad[k].expected, bench_text(&b, "error_description"));
        free(jwt);
        free(c);
    }
    bench_stop(&b);
}

static void what_is_no_assertion_is_refused(void **state)
{
    static const char *const bad[] = {"", "x", "a.b", "a.b.c", "e30.e30.e30", "e30.e30.",
        ".e30.e30", "e30..e30", "e30.e30.e30.e30", "W10.W10.e30", "e30=.e30.e30",
        "bnVsbA.bnVsbA.e30"};
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
        assert_int_equal(exchange(&b, bad[k]), 400);
    bench_expect(&b, "POST", "/token", "assertion=x", 400, "grant_type");
    bench_expect(
        &b, "POST", "/token", "grant_type=password&assertion=x", 400, "unsupported_grant_type");
    bench_expect(&b, "POST", "/token", "%zz", 400, "invalid_request");
    bench_expect(&b, "GET", "/token", "", 400, "POST");
    /* A modified signature. */
    char *c = claims(BENCH_AGENT, BENCH_SCOPE, AUDIENCE, 0, 3600), *jwt = sign(&b, HEADER, c);
    char *last = strrchr(jwt, '.') + 1;
    *last = *last == 'A' ? 'B' : 'A';
    assert_int_equal(exchange(&b, jwt), 400);
    free(jwt);
    free(c);
    bench_stop(&b);
}

static void a_self_signed_token_is_good_for_what_it_says(void **state)
{
    static const struct {
        const char *scope, *aud;
        int status;
    } cases[] = {{BENCH_SCOPE, "", 200}, {"https://www.googleapis.com/auth/compute email", "", 200},
        {"", "https://compute.googleapis.com/", 200}, {"", "https://storage.googleapis.com/", 403},
        {"email", "", 403}};
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char *c = claims(BENCH_AGENT, cases[k].scope, cases[k].aud, 0, 3600),
             *jwt = sign(&b, HEADER, c);
        struct gce_caller caller;
        struct err e;
        assert_int_equal(gce_auth_check_bearer(&b.gce->auth, jwt, b.now, b.now, &caller, &e), 0);
        assert_int_equal(caller.has_scope, cases[k].status == 200);
        free(jwt);
        free(c);
    }
    bench_stop(&b);
}

static void rights_are_checked(void **state)
{
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    bench_token(&b, "viewer@my-project.iam.gserviceaccount.com", true, b.token);
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 200, "instanceList");
    bench_expect(
        &b, "POST", BENCH_ZONE "instances", bench_body("a", ""), 403, "compute.instances.insert");
    bench_token(&b, "nobody@my-project.iam.gserviceaccount.com", true, b.token);
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 403, "forbidden");
    bench_token(&b, BENCH_AGENT, false, b.token);
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 403, "insufficientPermissions");
    STR_COPY(b.token, "ya29.c.made-up");
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 401, "authError");
    b.token[0] = '\0';
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 401, "Login Required");
    assert_int_equal(b.region.n_instances, 0);
    bench_stop(&b);
}

static void tokens_are_bounded_and_an_instance_keeps_its_own(void **state)
{
    struct gce_bench b;
    char first[GCE_TOKEN_MAX];
    (void)state;
    bench_start(&b, 1000);
    const struct gce_caller caller = {.account = &b.gce->auth.accounts[0], .has_scope = true};
    STR_COPY(first, gce_auth_issue(&b.gce->auth, &caller, "1", SECONDS_MS(100), b.now)->text);
    assert_string_equal(
        gce_auth_issue(&b.gce->auth, &caller, "1", SECONDS_MS(100), b.now)->text, first);
    bench_advance(&b, SECONDS_MS(95));
    assert_string_not_equal(
        gce_auth_issue(&b.gce->auth, &caller, "1", SECONDS_MS(100), b.now)->text, first);
    bench_advance(&b, SECONDS_MS(4000));
    gce_auth_issue(&b.gce->auth, &caller, "", SECONDS_MS(100), b.now);
    assert_int_equal(b.gce->auth.n_tokens, 1); /* the others had expired */
    bench_stop(&b);
}

static void public_keys_are_looked_at(void **state)
{
    struct gce_account account = {0};
    struct err e;
    static const char weak[] = "-----BEGIN PUBLIC KEY-----\n"
                               "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEoBUyo8CQAFPeYPvv78ylh5MwFZjT\n"
                               "CLQeb042TjiMJxG+9DLFmRSMlBQ9T/RsLLc+PmpB1+7yPAR+oR5gZn3kJQ==\n"
                               "-----END PUBLIC KEY-----\n";
    (void)state;
    assert_int_equal(gce_auth_read_key(&account, "no key", 6, &e), ERR_INVALID);
    assert_int_equal(gce_auth_read_key(&account, weak, strlen(weak), &e), ERR_INVALID);
    EVP_PKEY_free(account.key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signed_assertion_buys_a_token),
        cmocka_unit_test(a_wrong_assertion_buys_none),
        cmocka_unit_test(what_is_no_assertion_is_refused),
        cmocka_unit_test(a_self_signed_token_is_good_for_what_it_says),
        cmocka_unit_test(rights_are_checked),
        cmocka_unit_test(tokens_are_bounded_and_an_instance_keeps_its_own),
        cmocka_unit_test(public_keys_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
