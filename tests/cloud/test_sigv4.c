/* SPDX-License-Identifier: Apache-2.0
 *
 * Expected values: two independent signers, and the published test suite of Signature Version 4.
 */
#include "base/str.h"
#include "cloud/aws/sigv4.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define EC2_BODY "Action=DescribeInstances&Version=2016-11-15"

static const struct http_header ec2_headers[] = {
    {"Content-Type", "application/x-www-form-urlencoded"},
    {"Host", "ec2.us-east-1.amazonaws.com"},
    {"X-Amz-Date", "20260822T120000Z"},
    {"X-Amz-Security-Token", "SESSION"},
};
static const struct sigv4_scope ec2_scope = {"20260822T120000Z", "us-east-1", "ec2"};

static struct sigv4_request ec2_request(char hash[SIGV4_HEX_MAX])
{
    sigv4_sha256_hex(EC2_BODY, strlen(EC2_BODY), hash);
    return (struct sigv4_request){"POST", "/", ec2_headers, 4, hash};
}

static void reference_vector_is_reproduced(void **state)
{
    char hash[SIGV4_HEX_MAX], canonical[SIGV4_HEX_MAX];
    struct sigv4_request r = ec2_request(hash);
    struct buf authorization = {0};
    struct err e;
    (void)state;
    assert_string_equal(hash, "6171eb09865e32b0602af0f7957e26573a51f53caaedff02ff88883cb0275885");
    assert_int_equal(sigv4_canonical_hash(&r, "ec2",
                         "content-type;host;x-amz-date;x-amz-security-token", canonical, &e),
        0);
    assert_string_equal(
        canonical, "022b113f8fed477ca9f8905ef37006bd566cfdd81a285d92eda94e98ca9bb8f9");
    assert_int_equal(
        sigv4_authorization(&r, &ec2_scope, "AKIDEXAMPLE", SECRET, &authorization, &e), 0);
    assert_string_equal(buf_str(&authorization),
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260822/us-east-1/ec2/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "
        "Signature=583c9dd26b8a4c5841e5c1e77d744b9da6c2f2f973a193579fc4e091a58c0f59");
    buf_deinit(&authorization);
}

struct vector {
    const char *target, *timestamp, *service, *signed_headers, *signature;
    struct http_header headers[3];
    size_t n_headers;
};

static const struct vector vectors[] = {
    {"/", "20150830T123600Z", "service", "host;x-amz-date",
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        {{"Host", "example.amazonaws.com"}, {"X-Amz-Date", "20150830T123600Z"}}, 2},
    {"/?Param2=value2&Param1=value1", "20150830T123600Z", "service", "host;x-amz-date",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        {{"Host", "example.amazonaws.com"}, {"X-Amz-Date", "20150830T123600Z"}}, 2},
    /* Paths normalised and encoded twice; names sorted by code point, "a" before "a-b"; blanks in a
     * header.
     */
    {"/a%20b/../c%2Fd/x?b=2&a=z%2Fy&a=b%20c&a-b=1&aB=&ac", "20260822T120000Z", "svc",
        "host;x-amz-date;x-note",
        "73255c9fa327e74e0f7a943b70ebf8fe2b409da07d18edcf1c5d463133947cb1",
        {{"Host", "svc.us-east-1.amazonaws.com"}, {"X-Amz-Date", "20260822T120000Z"},
            {"X-Note", "  two   blanks "}},
        3},
    /* S3: encoded once, not normalised. */
    {"/bkt/a%20b/../c%2Bd//x?list-type=2&prefix=ckpt%2F", "20260822T120000Z", "s3",
        "host;x-amz-content-sha256;x-amz-date",
        "e9757080086fb73851edc4ac678c751dace320876859953eb2ac5f2f8b66b46d",
        {{"host", "s3.us-east-1.amazonaws.com"}, {"x-amz-content-sha256", EMPTY_SHA256},
            {"x-amz-date", "20260822T120000Z"}},
        3},
};

static void other_signers_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const struct vector *v = &vectors[i];
        struct sigv4_request r = {"GET", v->target, v->headers, v->n_headers, EMPTY_SHA256};
        struct sigv4_scope scope = {v->timestamp, "us-east-1", v->service};
        char signature[SIGV4_HEX_MAX];
        struct err e;
        assert_int_equal(sigv4_signature(&r, &scope, SECRET, v->signed_headers, signature, &e), 0);
        assert_string_equal(signature, v->signature);
    }
}

static void what_is_signed_can_be_checked(void **state)
{
    char hash[SIGV4_HEX_MAX], again[SIGV4_HEX_MAX];
    struct sigv4_request r = ec2_request(hash);
    struct buf authorization = {0};
    struct sigv4_claim claim;
    struct err e;
    (void)state;
    assert_int_equal(
        sigv4_authorization(&r, &ec2_scope, "AKIDEXAMPLE", SECRET, &authorization, &e), 0);
    assert_int_equal(sigv4_parse_authorization(buf_str(&authorization), &claim, &e), 0);
    assert_string_equal(claim.access_key, "AKIDEXAMPLE");
    assert_string_equal(claim.date, "20260822");
    assert_string_equal(claim.region, "us-east-1");
    assert_string_equal(claim.service, "ec2");
    assert_int_equal(sigv4_signature(&r, &ec2_scope, SECRET, claim.signed_headers, again, &e), 0);
    assert_string_equal(again, claim.signature);
    assert_int_equal(
        sigv4_signature(&r, &ec2_scope, "another", claim.signed_headers, again, &e), 0);
    assert_string_not_equal(again, claim.signature);
    buf_deinit(&authorization);
}

static void a_header_that_is_signed_must_be_there(void **state)
{
    char hash[SIGV4_HEX_MAX], out[SIGV4_HEX_MAX];
    struct sigv4_request r = ec2_request(hash);
    struct err e;
    (void)state;
    assert_int_equal(sigv4_canonical_hash(&r, "ec2", "host;x-other", out, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "x-other"));
}

static void repeated_headers_are_one_value(void **state)
{
    static const struct http_header twice[] = {{"H", "a"}, {"h", " b  c "}},
                                    once[] = {{"h", "a,b c"}};
    struct sigv4_request r2 = {"GET", "/", twice, 2, EMPTY_SHA256},
                         r1 = {"GET", "/", once, 1, EMPTY_SHA256};
    char h1[SIGV4_HEX_MAX], h2[SIGV4_HEX_MAX];
    (void)state;
    assert_int_equal(sigv4_canonical_hash(&r1, "ec2", "h", h1, NULL), 0);
    assert_int_equal(sigv4_canonical_hash(&r2, "ec2", "h", h2, NULL), 0);
    assert_string_equal(h1, h2);
}

static void malformed_requests_are_refused(void **state)
{
    static const char *const targets[] = {"", "no-slash", "/?a=%zz", "/?a=%2", "/?%00=1", NULL};
    char hash[SIGV4_HEX_MAX], out[SIGV4_HEX_MAX];
    struct sigv4_request r = ec2_request(hash);
    struct sigv4_scope scope = ec2_scope;
    struct err e;
    (void)state;
    for (size_t i = 0; targets[i]; i++) {
        r.target = targets[i];
        assert_int_equal(sigv4_canonical_hash(&r, "ec2", "host", out, &e), ERR_INVALID);
    }
    r.target = "/%zz";
    assert_int_equal(sigv4_canonical_hash(&r, "s3", "host", out, &e), ERR_INVALID);
    r.target = "/";
    scope.timestamp = "2026-08-22T12:00Z";
    assert_int_equal(sigv4_signature(&r, &scope, SECRET, "host", out, &e), ERR_INVALID);
}

static void malformed_authorization_is_refused(void **state)
{
    static const char *const values[] = {
        "",
        "Basic dTpw",
        "AWS4-HMAC-SHA256 ",
        "AWS4-HMAC-SHA256 Credential=AK/20260822/us-east-1/ec2/aws4_request, Signature=ab",
        "AWS4-HMAC-SHA256 Credential=AK/20260822/us-east-1/ec2, SignedHeaders=host, Signature=ab",
        "AWS4-HMAC-SHA256 Credential=AK/20260822//ec2/aws4_request, SignedHeaders=host, "
        "Signature=ab",
        "AWS4-HMAC-SHA256 Credential=AK/202608221/r/ec2/aws4_request, SignedHeaders=host, "
        "Signature=ab",
        "AWS4-HMAC-SHA256 Credential=AK/20260822/r/ec2/aws4_request, SignedHeaders=host, "
        "Signature=ab, More=1",
        NULL,
    };
    struct sigv4_claim claim;
    struct err e;
    (void)state;
    for (size_t i = 0; values[i]; i++)
        assert_int_equal(sigv4_parse_authorization(values[i], &claim, &e), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_vector_is_reproduced),
        cmocka_unit_test(other_signers_agree),
        cmocka_unit_test(what_is_signed_can_be_checked),
        cmocka_unit_test(a_header_that_is_signed_must_be_there),
        cmocka_unit_test(repeated_headers_are_one_value),
        cmocka_unit_test(malformed_requests_are_refused),
        cmocka_unit_test(malformed_authorization_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
