/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/scoped.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/sts.h"
#include "cloud/azure/sas.h"
#include "cloud/gcp/downscope.h"
#include "fake_http.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define NOON_MS 1787400000000
#define DATE "Date: Sat, 22 Aug 2026 12:00:00 GMT"
#define ROLE "arn:aws:iam::111122223333:role/belay-jobs"

/* AWS's reply. */
#define ASSUMED                                                                                    \
    "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n  "                 \
    "<AssumeRoleResult>\n"                                                                         \
    "    <AssumedRoleUser>\n      "                                                                \
    "<AssumedRoleId>AROA123EXAMPLE123:belay-7.2@lab</AssumedRoleId>\n"                             \
    "      <Arn>arn:aws:sts::111122223333:assumed-role/belay-jobs/belay-7.2@lab</Arn>\n"           \
    "    </AssumedRoleUser>\n    <Credentials>\n      "                                            \
    "<AccessKeyId>ASIAIOSFODNN7EXAMPLE</AccessKeyId>\n"                                            \
    "      <SecretAccessKey>wJalrXUtnFEMI/K7MDENG</SecretAccessKey>\n"                             \
    "      <SessionToken>AQoDYXdzEPT//////////wEXAMPLE==</SessionToken>\n"                         \
    "      <Expiration>2026-08-22T13:00:00Z</Expiration>\n    </Credentials>\n"                    \
    "    <PackedPolicySize>12</PackedPolicySize>\n  </AssumeRoleResult>\n  <ResponseMetadata>\n"   \
    "    <RequestId>c6104cbe-af31-11e0-8154-cbc7ccf896c7</RequestId>\n  </ResponseMetadata>\n"     \
    "</AssumeRoleResponse>\n"
#define REFUSED(code, message)                                                                     \
    "<ErrorResponse "                                                                              \
    "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>" code    \
    "</Code><Message>" message "</Message></Error><RequestId>1</RequestId></ErrorResponse>"

#define KEY(value)                                                                                 \
    "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><UserDelegationKey>"                    \
    "<SignedOid>11111111-2222-3333-4444-555555555555</SignedOid>"                                  \
    "<SignedTid>66666666-7777-8888-9999-000000000000</SignedTid>"                                  \
    "<SignedStart>2026-08-22T11:45:00Z</SignedStart><SignedExpiry>2026-08-22T13:00:00Z</"          \
    "SignedExpiry>"                                                                                \
    "<SignedService>b</SignedService><SignedVersion>2021-12-02</SignedVersion><Value>" value       \
    "</Value></UserDelegationKey>"
#define VALUE "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" /* 00 01 .. 1f */

static const struct sts_session session = {.role_arn = ROLE,
    .name = "belay-7.2@lab",
    .bucket = "lab-checkpoints",
    .prefix = "belay/lab/jobs/7/",
    .life_s = 3600};

/* ---- Amazon ---- */

static void policy_allows_what_the_store_does_below_the_prefix(void **state)
{
    struct sts_session s = session;
    struct buf text = {0};
    struct err e;
    (void)state;
    assert_int_equal(sts_policy(&s, &text, &e), 0);
    assert_string_equal(buf_str(&text),
        "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Action\":[\"s3:"
        "GetObject\","
        "\"s3:PutObject\",\"s3:DeleteObject\",\"s3:AbortMultipartUpload\"],\"Resource\":"
        "\"arn:aws:s3:::lab-checkpoints/belay/lab/jobs/7/"
        "*\"},{\"Effect\":\"Allow\",\"Action\":\"s3:ListBucket\","
        "\"Resource\":\"arn:aws:s3:::lab-checkpoints\",\"Condition\":{\"StringLike\":{\"s3:"
        "prefix\":\"belay/lab/jobs/7/*\"}}}]}");
    buf_clear(&text);
    s.role_arn = "arn:aws-cn:iam::111122223333:role/x";
    s.kms_key = "arn:aws-cn:kms:cn-north-1:111122223333:key/1-2";
    assert_int_equal(sts_policy(&s, &text, &e), 0);
    assert_non_null(strstr(buf_str(&text), "\"arn:aws-cn:s3:::lab-checkpoints\""));
    assert_non_null(strstr(buf_str(&text),
        ",{\"Effect\":\"Allow\",\"Action\":[\"kms:GenerateDataKey\",\"kms:Decrypt\"],\"Resource\":"
        "\"arn:aws-cn:kms:cn-north-1:111122223333:key/1-2\"}]}"));
    char *prefix = mem_alloc(STS_POLICY_MAX);
    memset(prefix, 'a', STS_POLICY_MAX - 1);
    s.prefix = prefix;
    buf_clear(&text);
    assert_int_equal(sts_policy(&s, &text, &e), ERR_INVALID);
    free(prefix);
    buf_deinit(&text);
}

static void names_of_roles_and_keys_are_checked(void **state)
{
    static const char *const roles[] = {ROLE, "arn:aws-us-gov:iam::111122223333:role/team/belay",
        "arn:aws:iam:::role/belay", "arn:minio:iam:::role/dummy-internal", NULL};
    static const char *const wrong[] = {"", "belay-jobs", "arn:aws:iam::1:user/x",
        "arn:aws:s3:::bucket", "arn:aws:iam::1:role/", "arn:aws:iam::1:role/a b",
        "arn:aws:iam::1:role/a\"b", "arn:aws:iam::1:role/*", "arn:aws:kms:us-east-1:1:key/1",
        "arn:aws:iam", NULL};
    struct err e;
    (void)state;
    for (size_t i = 0; roles[i]; i++)
        assert_int_equal(sts_check_role(roles[i], &e), 0);
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(sts_check_role(wrong[i], &e), ERR_INVALID);
    assert_int_equal(sts_check_kms_key("arn:aws:kms:us-east-1:111122223333:key/1-2-3", &e), 0);
    assert_int_equal(
        sts_check_kms_key("arn:aws:kms:us-east-1:111122223333:alias/x", &e), ERR_INVALID);
    assert_int_equal(sts_check_kms_key(ROLE, &e), ERR_INVALID);
}

static void roles_replies_are_parsed(void **state)
{
    static const char *const wrong[] = {"", "<html><body>hello</body></html>",
        "<AssumeRoleResponse/>",
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>"
        "<SecretAccessKey>b</SecretAccessKey><SessionToken>c</SessionToken></Credentials></"
        "AssumeRoleResult></AssumeRoleResponse>",
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A B</AccessKeyId>"
        "<SecretAccessKey>b</SecretAccessKey><SessionToken>c</"
        "SessionToken><Expiration>2026-08-22T13:00:00Z"
        "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>"
        "<SecretAccessKey></SecretAccessKey><SessionToken>c</"
        "SessionToken><Expiration>2026-08-22T13:00:00Z"
        "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>"
        "<SecretAccessKey>b</SecretAccessKey><SessionToken>c</SessionToken><Expiration>tomorrow"
        "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
        NULL};
    struct aws_credentials c;
    struct err e;
    (void)state;
    assert_int_equal(sts_parse_assume_role(ASSUMED, strlen(ASSUMED), &c, &e), 0);
    assert_string_equal(c.access_key, "ASIAIOSFODNN7EXAMPLE");
    assert_string_equal(c.secret_key, "wJalrXUtnFEMI/K7MDENG");
    assert_string_equal(c.session_token, "AQoDYXdzEPT//////////wEXAMPLE==");
    assert_int_equal(c.expires.ms, NOON_MS + SECONDS_MS(3600));
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(sts_parse_assume_role(wrong[i], strlen(wrong[i]), &c, &e), ERR_INVALID);
    for (size_t n = 0; n < strlen(ASSUMED) - 1; n++) { /* truncated at every length */
        assert_int_equal(sts_parse_assume_role(ASSUMED, n, &c, &e), ERR_INVALID);
        assert_null(strstr(e.text, "wJal"));
    }
}

static void roles_refusals_say_what_to_do(void **state)
{
    static const char denied[] =
        REFUSED("AccessDenied", "User: arn:aws:iam::1:user/x is not authorized to perform: "
                                "sts:AssumeRole on resource: " ROLE);
    static const char mismatch[] = REFUSED("SignatureDoesNotMatch",
        "The canonical string should have been x-amz-security-token:S3CRET");
    static const char other[] = "<Error><Code>ExpiredToken</Code><Message>no</Message></Error>";
    unsigned remedies;
    struct err e;
    (void)state;
    assert_int_equal(sts_parse_error(403, denied, strlen(denied), &remedies, &e), ERR_DENIED);
    assert_non_null(strstr(e.text, "is not authorized to perform"));
    assert_int_equal(sts_parse_error(403, mismatch, strlen(mismatch), &remedies, &e), ERR_DENIED);
    assert_null(strstr(e.text, "S3CRET"));
    assert_int_equal(remedies, STS_REMEDY_CLOCK | STS_REMEDY_CREDENTIALS);
    assert_int_equal(sts_parse_error(400, other, strlen(other), &remedies, &e), ERR_DENIED);
    assert_int_equal(remedies, STS_REMEDY_CREDENTIALS);
    assert_int_equal(sts_parse_error(503, "", 0, &remedies, &e), ERR_UNAVAILABLE);
    assert_int_equal(sts_parse_error(429, "<html>", 6, &remedies, &e), ERR_THROTTLED);
    assert_int_equal(sts_parse_error(404, "{}", 2, &remedies, &e), ERR_CONFIG);
}

/* ---- Google ---- */

static char *field(const struct buf *form, const char *name)
{
    char *key = mem_printf("%s=", name);
    const char *at = strstr(buf_str(form), key);
    struct buf value = {0};
    assert_non_null(at);
    at += strlen(key);
    assert_int_equal(str_url_decode(&value, at, strcspn(at, "&"), true, NULL), 0);
    free(key);
    return buf_take(&value);
}

static void boundary_names_the_prefix_for_objects_and_for_lists(void **state)
{
    struct buf form = {0};
    struct err e;
    (void)state;
    assert_int_equal(gcp_downscope_build("lab", "belay/c/jobs/7/", "ya29.t/k+n", &form, &e), 0);
    char *token = field(&form, "subject_token"), *options = field(&form, "options");
    assert_string_equal(token, "ya29.t/k+n");
    assert_string_equal(options,
        "{\"accessBoundary\":{\"accessBoundaryRules\":[{\"availableResource\":"
        "\"//storage.googleapis.com/projects/_/buckets/lab\",\"availablePermissions\":"
        "[\"inRole:roles/storage.objectUser\"],\"availabilityCondition\":{\"expression\":"
        "\"resource.name.startsWith('projects/_/buckets/lab/objects/belay/c/jobs/7/') || "
        "api.getAttribute('storage.googleapis.com/objectListPrefix', "
        "'').startsWith('belay/c/jobs/7/')\"}}]}}");
    free(token);
    free(options);
    char *prefix = mem_alloc(GCP_BOUNDARY_MAX);
    memset(prefix, 'a', GCP_BOUNDARY_MAX - 1);
    assert_int_equal(gcp_downscope_build("lab", prefix, "t", &form, &e), ERR_INVALID);
    free(prefix);
    buf_deinit(&form);
}

static void exchanged_token_ends_with_the_one_it_was_made_of(void **state)
{
    static const char said[] =
        "{\"access_token\":\"d\",\"issued_token_type\":\"urn:ietf:params:oauth:token-type:"
        "access_token\",\"token_type\":\"Bearer\",\"expires_in\":3600}";
    static const char unsaid[] = "{\"access_token\":\"d\",\"token_type\":\"Bearer\"}";
    static const char refused[] =
        "{\"error\":\"invalid_grant\",\"error_description\":\"The access boundary is malformed\"}";
    struct oauth_token t;
    struct err e;
    (void)state;
    assert_int_equal(gcp_downscope_parse(200, said, strlen(said), 900, &t, &e), 0);
    assert_int_equal(t.expires_in_s, 900);
    assert_int_equal(gcp_downscope_parse(200, said, strlen(said), 7200, &t, &e), 0);
    assert_int_equal(t.expires_in_s, 3600);
    assert_int_equal(gcp_downscope_parse(200, unsaid, strlen(unsaid), 1800, &t, &e), 0);
    assert_int_equal(t.expires_in_s, 1800);
    assert_string_equal(t.text, "d");
    assert_int_equal(gcp_downscope_parse(400, refused, strlen(refused), 60, &t, &e), ERR_DENIED);
    assert_non_null(strstr(e.text, "access boundary is malformed"));
    assert_int_equal(gcp_downscope_parse(200, "{}", 2, 60, &t, &e), ERR_INVALID);
}

/* ---- Azure ---- */

static void signature_is_the_documented_one(void **state)
{
    const struct sas_scope scope = {
        .account = "lab1", .container = "jobs", .expiry = {NOON_MS + SECONDS_MS(3600) + 250}};
    struct sas_key key;
    struct buf query = {0}, ask = {0};
    struct err e;
    (void)state;
    assert_int_equal(sas_parse_key(KEY(VALUE), strlen(KEY(VALUE)), &key, &e), 0);
    assert_int_equal(key.n, 32);
    sas_sign(&key, &scope, &query);
    assert_string_equal(buf_str(&query),
        "sv=2020-12-06&sr=c&sp=rcwdl&se=2026-08-22T13%3A00%3A00Z&spr=https"
        "&skoid=11111111-2222-3333-4444-555555555555&sktid=66666666-7777-8888-9999-000000000000"
        "&skt=2026-08-22T11%3A45%3A00Z&ske=2026-08-22T13%3A00%3A00Z&sks=b&skv=2021-12-02"
        "&sig=3OGE9KD2acloTf43uQL0eMAFR46r0LpB%2FeBMM9fLmuw%3D");
    sas_build_key_request((struct wall){NOON_MS - SECONDS_MS(900)}, scope.expiry, &ask);
    assert_string_equal(buf_str(&ask),
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><KeyInfo><Start>2026-08-22T11:45:00Z</Start>"
        "<Expiry>2026-08-22T13:00:00Z</Expiry></KeyInfo>");
    buf_deinit(&query);
    buf_deinit(&ask);
}

static void delegation_keys_are_parsed(void **state)
{
    static const char *const wrong[] = {"", "<UserDelegationKey/>", KEY(""), KEY("AAAA"),
        KEY("not base64!!"), KEY("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"), "<Other/>", NULL};
    static const char denied[] =
        "\xef\xbb\xbf<?xml version=\"1.0\"?><Error><Code>AuthorizationPermissionMismatch"
        "</Code><Message>This request is not authorized.\nRequestId:1</Message></Error>";
    struct sas_key key;
    struct err e;
    (void)state;
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(sas_parse_key(wrong[i], strlen(wrong[i]), &key, &e), ERR_INVALID);
    for (size_t n = 0; n < strlen(KEY(VALUE)); n++)
        assert_int_equal(sas_parse_key(KEY(VALUE), n, &key, &e), ERR_INVALID);
    assert_int_equal(sas_parse_error(403, NULL, denied, strlen(denied), &e), ERR_DENIED);
    assert_non_null(strstr(e.text, "Storage Blob Delegator"));
    assert_null(strstr(e.text, "RequestId"));
    assert_int_equal(sas_parse_error(503, "ServerBusy", "", 0, &e), ERR_THROTTLED);
    assert_int_equal(sas_parse_error(500, NULL, "<html>", 6, &e), ERR_UNAVAILABLE);
}

/* ---- Complete calls ---- */

struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct scoped *scoped;
};

struct outcome {
    int answers;
    struct err e;
    struct scoped_credentials c;
};

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "wJalr", 1);
    unsetenv("AWS_SESSION_TOKEN");
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    unsetenv("AZURE_CLIENT_SECRET");
    unsetenv("AZURE_CLIENT_ID");
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    scoped_destroy(g->scoped);
    while (vtimers_run_next(&g->vt))
        ;
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}

static void open_kind(struct rig *g, enum scoped_kind kind)
{
    const struct scoped_options o = {.kind = kind,
        .bucket = "jobs",
        .life_ms = SECONDS_MS(3600),
        .region = "eu-central-1",
        .role_arn = ROLE,
        .account = "lab1",
        .service_url = "https://lab1.blob.core.windows.net",
        .http = &g->http.client,
        .timers = &g->vt.timers};
    struct err e;
    assert_int_equal(scoped_create(&o, &g->scoped, &e), 0);
}

static void on_credentials(void *ctx, const struct err *e, const struct scoped_credentials *c)
{
    struct outcome *o = ctx;
    o->answers++;
    o->e = e ? *e : (struct err){0};
    o->c = c ? *c : (struct scoped_credentials){0};
}

static struct outcome get(struct rig *g)
{
    struct outcome o = {0};
    scoped_get(g->scoped, "belay/lab/jobs/7/", "belay-7.2@lab", on_credentials, &o);
    assert_int_equal(o.answers, 0);
    vtimers_advance(&g->vt, 50);
    assert_int_equal(o.answers, 1);
    return o;
}

static void role_is_assumed_with_a_signed_request(void **state)
{
    struct rig *g = *state;
    open_kind(g, SCOPED_AWS);
    fake_http_add(&g->http, 200, ASSUMED);
    fake_http_with(&g->http, DATE);
    struct outcome o = get(g);
    assert_int_equal(o.e.kind, 0);
    assert_string_equal(o.c.access_key, "ASIAIOSFODNN7EXAMPLE");
    assert_in_range(o.c.left_ms, SECONDS_MS(3599), SECONDS_MS(3600));
    const struct fake_request *r = &g->http.requests[0];
    assert_string_equal(r->url, "https://sts.eu-central-1.amazonaws.com/");
    assert_true(str_starts(
        buf_str(&r->body), "Action=AssumeRole&Version=2011-06-15&DurationSeconds=3600&Policy="));
    char *name = field(&r->body, "RoleSessionName"), *role = field(&r->body, "RoleArn");
    assert_string_equal(name, "belay-7.2@lab");
    assert_string_equal(role, ROLE);
    char *authorization = fake_http_header(&g->http, 0, "Authorization");
    assert_non_null(strstr(authorization, "/20260822/eu-central-1/sts/aws4_request"));
    free(name);
    free(role);
    free(authorization);
}

/* By the service's clock, which is right. */
static void clock_that_is_off_is_made_up_for(void **state)
{
    struct rig *g = *state;
    open_kind(g, SCOPED_AWS);
    vtimers_set_wall(&g->vt, NOON_MS - SECONDS_MS(3600));
    fake_http_add(&g->http, 403, REFUSED("SignatureDoesNotMatch", "Signature expired"));
    fake_http_with(&g->http, DATE);
    assert_int_equal(get(g).e.kind, ERR_DENIED);
    fake_http_add(&g->http, 200, ASSUMED);
    fake_http_with(&g->http, DATE);
    struct outcome o = get(g);
    assert_in_range(o.c.left_ms, SECONDS_MS(3599), SECONDS_MS(3600));
    char *date = fake_http_header(&g->http, 1, "X-Amz-Date");
    assert_true(str_starts(date, "20260822T1200"));
    free(date);
}

static void credentials_that_have_ended_are_an_error(void **state)
{
    struct rig *g = *state;
    open_kind(g, SCOPED_AWS);
    fake_http_add(&g->http, 200, ASSUMED);
    fake_http_with(&g->http, "Date: Sat, 22 Aug 2026 13:00:01 GMT");
    assert_int_equal(get(g).e.kind, ERR_INVALID);
}

static void token_is_exchanged(void **state)
{
    struct rig *g = *state;
    open_kind(g, SCOPED_GOOGLE);
    fake_http_add(
        &g->http, 200, "{\"access_token\":\"own\",\"expires_in\":1800,\"token_type\":\"Bearer\"}");
    fake_http_with(&g->http, "Metadata-Flavor: Google");
    fake_http_add(&g->http, 200, "{\"access_token\":\"narrow\",\"token_type\":\"Bearer\"}");
    struct outcome o = get(g);
    assert_int_equal(o.e.kind, 0);
    assert_string_equal(o.c.token, "narrow");
    assert_in_range(o.c.left_ms, SECONDS_MS(1790), SECONDS_MS(1800));
    assert_string_equal(g->http.requests[1].url, "https://sts.googleapis.com/v1/token");
    char *subject = field(&g->http.requests[1].body, "subject_token");
    assert_string_equal(subject, "own");
    free(subject);
    /* half an hour is too little: a newer token is requested */
    vtimers_advance(&g->vt, SECONDS_MS(60));
    fake_http_add(
        &g->http, 200, "{\"access_token\":\"own2\",\"expires_in\":3599,\"token_type\":\"Bearer\"}");
    fake_http_with(&g->http, "Metadata-Flavor: Google");
    fake_http_add(&g->http, 401, "{\"error\":\"invalid_grant\"}");
    assert_int_equal(get(g).e.kind, ERR_DENIED);
    assert_int_equal(g->http.n_requests, 4);
}

static void delegation_key_signs_the_container(void **state)
{
    struct rig *g = *state;
    open_kind(g, SCOPED_AZURE);
    fake_http_add(&g->http, 200,
        "{\"access_token\":\"own\",\"expires_in\":\"86400\",\"token_type\":\"Bearer\"}");
    fake_http_add(&g->http, 200, KEY(VALUE));
    fake_http_with(&g->http, DATE);
    struct outcome o = get(g);
    assert_int_equal(o.e.kind, 0);
    assert_true(str_starts(o.c.token, "sv=2020-12-06&sr=c&sp=rcwdl&se=2026-08-22T13%3A00%3A00Z&"));
    assert_in_range(o.c.left_ms, SECONDS_MS(3599), SECONDS_MS(3600));
    assert_string_equal(g->http.requests[1].url,
        "https://lab1.blob.core.windows.net/?restype=service&comp=userdelegationkey");
    assert_true(fake_http_sent(&g->http, 1, "Authorization: Bearer own"));
    assert_true(fake_http_sent(&g->http, 1, "x-ms-version: " SAS_API_VERSION));
}

static void dropped_calls_complete_nothing(void **state)
{
    struct rig *g = *state;
    struct outcome o = {0}, p = {0};
    open_kind(g, SCOPED_AWS);
    g->http.silent = true;
    struct scoped_call *c = scoped_get(g->scoped, "a/", "belay-1.1@lab", on_credentials, &o);
    scoped_cancel(c); /* before any request */
    c = scoped_get(g->scoped, "a/", "belay-1.1@lab", on_credentials, &o);
    scoped_get(g->scoped, "b/", "belay-2.1@lab", on_credentials, &p);
    vtimers_advance(&g->vt, 10);
    assert_int_equal(g->http.n_requests, 2);
    scoped_cancel(c);
    scoped_destroy(g->scoped);
    g->scoped = NULL;
    vtimers_advance(&g->vt, 10);
    assert_int_equal(o.answers + p.answers, 0);
    assert_int_equal(g->http.n_cancelled, 2);
}

static void credentials_go_to_no_plain_address(void **state)
{
    struct rig *g = *state;
    struct scoped_options o = {.kind = SCOPED_AWS,
        .bucket = "jobs",
        .region = "us-east-1",
        .role_arn = ROLE,
        .sts_url = "http://sts.lab.example",
        .http = &g->http.client,
        .timers = &g->vt.timers};
    struct err e;
    assert_int_equal(scoped_create(&o, &g->scoped, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "store_sts"));
    o.sts_url = "http://127.0.0.1:9000";
    assert_int_equal(scoped_create(&o, &g->scoped, &e), 0);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_allows_what_the_store_does_below_the_prefix),
        cmocka_unit_test(names_of_roles_and_keys_are_checked),
        cmocka_unit_test(roles_replies_are_parsed),
        cmocka_unit_test(roles_refusals_say_what_to_do),
        cmocka_unit_test(boundary_names_the_prefix_for_objects_and_for_lists),
        cmocka_unit_test(exchanged_token_ends_with_the_one_it_was_made_of),
        cmocka_unit_test(signature_is_the_documented_one),
        cmocka_unit_test(delegation_keys_are_parsed),
        RIG(role_is_assumed_with_a_signed_request),
        RIG(clock_that_is_off_is_made_up_for),
        RIG(credentials_that_have_ended_are_an_error),
        RIG(token_is_exchanged),
        RIG(delegation_key_signs_the_container),
        RIG(dropped_calls_complete_nothing),
        RIG(credentials_go_to_no_plain_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
