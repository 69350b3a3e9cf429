/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/credentials.h"
#include "fake_http.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOON_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define TOKEN "/latest/api/token"
#define ROLE "/latest/meta-data/iam/security-credentials/"

/* The source under test, and its last answer. */
struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct aws_credential_options options;
    struct aws_credential_source *source;
    struct aws_credentials_wait wait;
    int answers;
    struct err e; /* ERR_NONE = success */
    struct aws_credentials got;
    char dir[64];
};

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *c)
{
    struct rig *g = ctx;
    g->answers++;
    g->e = e ? *e : (struct err){0};
    assert_true(e ? c == NULL : c != NULL);
    if (c)
        g->got = *c;
}

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    STR_COPY(g->dir, "/tmp/belay-test-XXXXXX");
    assert_non_null(mkdtemp(g->dir));
    g->options = (struct aws_credential_options){.http = &g->http.client,
        .timers = &g->vt.timers,
        .metadata_url = "http://127.0.0.1:1",
        .env.home = g->dir};
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    aws_credential_source_destroy(g->source);
    while (vtimers_run_next(&g->vt))
        ;
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    fs_remove_tree(g->dir, NULL);
    free(g);
    return 0;
}

static void create(struct rig *g)
{
    struct err e;
    if (aws_credential_source_create(&g->options, &g->source, &e) != 0)
        fail_msg("%s", e.text);
}

static void get(struct rig *g)
{
    int before = g->answers;
    aws_credentials_get(g->source, &g->wait, on_credentials, g);
    assert_int_equal(g->answers, before); /* never inside the call */
    while (g->answers == before)
        assert_true(vtimers_run_next(&g->vt));
    assert_int_equal(g->answers, before + 1);
}

static void write_file_of_mode(struct rig *g, const char *text, mode_t mode)
{
    char *dir = mem_printf("%s/.aws", g->dir), *path = mem_printf("%s/credentials", dir);
    assert_int_equal(fs_mkdirs(dir, 0700, NULL), 0);
    assert_int_equal(fs_write_atomic(path, text, strlen(text), mode, NULL), 0);
    free(dir);
    free(path);
}

static void write_file(struct rig *g, const char *text)
{
    write_file_of_mode(g, text, 0600);
}

static void serve_role(struct rig *g, const char *key, const char *expires)
{
    char *body = mem_printf(
        "{\"Code\":\"Success\",\"Type\":\"AWS-HMAC\",\"AccessKeyId\":\"%s\",\"SecretAccessKey\":"
        "\"role-secret\",\"Token\":\"role-token\",\"Expiration\":\"%s\",\"LastUpdated\":\"x\"}",
        key, expires);
    fake_http_route(&g->http, "PUT", TOKEN, 200, "AQAEtoken==");
    fake_http_route(&g->http, "GET", ROLE, 200, "agent-role");
    fake_http_route(&g->http, "GET", ROLE "agent-role", 200, body);
    free(body);
}

static void environment_comes_first(void **state)
{
    struct rig *g = *state;
    write_file(g, "[default]\naws_access_key_id=FILE\naws_secret_access_key=file-secret\n");
    g->options.env.access_key = "ENV";
    g->options.env.secret_key = "env-secret";
    g->options.env.session_token = "env-token";
    create(g);
    get(g);
    assert_int_equal(g->e.kind, ERR_NONE);
    assert_string_equal(g->got.access_key, "ENV");
    assert_string_equal(g->got.secret_key, "env-secret");
    assert_string_equal(g->got.session_token, "env-token");
    assert_false(aws_credentials_refused(g->source));
}

static void half_a_key_pair_is_refused(void **state)
{
    struct rig *g = *state;
    struct err e;
    g->options.env.access_key = "ENV";
    assert_int_equal(aws_credential_source_create(&g->options, &g->source, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "AWS_SECRET_ACCESS_KEY"));
}

static void shared_file_comes_second(void **state)
{
    struct rig *g = *state;
    write_file(g, "[default]\naws_access_key_id = FILE\naws_secret_access_key = file-secret\n");
    create(g);
    get(g);
    assert_string_equal(g->got.access_key, "FILE");
    assert_int_equal(g->http.n_requests, 0);
}

static void refused_keys_are_read_again(void **state)
{
    struct rig *g = *state;
    write_file(g, "[default]\naws_access_key_id = OLD\naws_secret_access_key = s\n");
    create(g);
    get(g);
    write_file(g, "[default]\naws_access_key_id = NEW\naws_secret_access_key = s\n");
    get(g);
    assert_string_equal(g->got.access_key, "OLD"); /* cached */
    assert_true(aws_credentials_refused(g->source));
    get(g);
    assert_string_equal(g->got.access_key, "NEW");
}

static void a_named_profile_must_exist(void **state)
{
    struct rig *g = *state;
    write_file(g, "[team-nlp]\naws_access_key_id = K\naws_secret_access_key = s\n");
    g->options.profile = "team-npl";
    create(g);
    get(g);
    assert_int_equal(g->e.kind, ERR_CONFIG);
    assert_non_null(strstr(g->e.text, "the nearest is [team-nlp]"));
}

/* And the role is not used instead. */
static void a_file_that_others_may_read_is_refused(void **state)
{
    struct rig *g = *state;
    write_file_of_mode(g, "[default]\naws_access_key_id = K\naws_secret_access_key = hush\n", 0644);
    create(g);
    get(g);
    assert_int_equal(g->e.kind, ERR_CONFIG);
    assert_non_null(strstr(g->e.text, "chmod 600"));
    assert_null(strstr(g->e.text, "hush"));
    assert_int_equal(g->http.n_requests, 0);
}

static void a_named_file_must_exist(void **state)
{
    struct rig *g = *state;
    g->options.credentials_file = "/nonexistent/credentials";
    create(g);
    get(g);
    assert_int_equal(g->e.kind, ERR_CONFIG);
    assert_non_null(strstr(g->e.text, "/nonexistent/credentials"));
}

static void role_comes_last(void **state)
{
    struct rig *g = *state;
    serve_role(g, "ROLE1", "2026-08-22T18:00:00Z");
    create(g);
    get(g);
    assert_int_equal(g->e.kind, ERR_NONE);
    assert_string_equal(g->got.access_key, "ROLE1");
    assert_string_equal(g->got.session_token, "role-token");
    assert_true(fake_http_sent(&g->http, 1, "X-aws-ec2-metadata-token: AQAEtoken=="));
    size_t asked = g->http.n_requests;
    get(g);
    assert_int_equal(g->http.n_requests, asked); /* cached */
}

static void role_is_renewed_before_its_end(void **state)
{
    struct rig *g = *state;
    serve_role(g, "ROLE1", "2026-08-22T18:00:00Z");
    create(g);
    get(g);
    serve_role(g, "ROLE2", "2026-08-23T00:00:00Z");
    vtimers_advance(&g->vt, SECONDS_MS(5 * 3600 + 44 * 60)); /* 17:44 */
    get(g);
    assert_string_equal(g->got.access_key, "ROLE1");
    vtimers_advance(&g->vt, SECONDS_MS(2 * 60)); /* 17:46 */
    get(g);
    assert_string_equal(g->got.access_key, "ROLE2");
}

static void old_keys_serve_while_the_renewal_fails(void **state)
{
    struct rig *g = *state;
    serve_role(g, "ROLE1", "2026-08-22T18:00:00Z");
    create(g);
    get(g);
    fake_http_route(&g->http, "GET", ROLE, 500, "");
    vtimers_advance(&g->vt, SECONDS_MS(5 * 3600 + 50 * 60)); /* 17:50 */
    size_t asked = g->http.n_requests;
    get(g);
    assert_string_equal(g->got.access_key, "ROLE1");
    assert_true(g->http.n_requests > asked);
    asked = g->http.n_requests;
    get(g);
    assert_int_equal(g->http.n_requests, asked); /* not again within the minute */
    vtimers_advance(&g->vt, SECONDS_MS(61));
    serve_role(g, "ROLE2", "2026-08-23T00:00:00Z");
    get(g);
    assert_string_equal(g->got.access_key, "ROLE2");
}

static void waiting_calls_share_one_fetch(void **state)
{
    struct rig *g = *state;
    struct aws_credentials_wait second, third;
    serve_role(g, "ROLE1", "2026-08-22T18:00:00Z");
    create(g);
    aws_credentials_get(g->source, &g->wait, on_credentials, g);
    aws_credentials_get(g->source, &second, on_credentials, g);
    aws_credentials_get(g->source, &third, on_credentials, g);
    aws_credentials_cancel(&second);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->answers, 2);
    assert_int_equal(fake_http_count(&g->http, "GET", ROLE "agent-role"), 1);
}

static void no_credentials_says_where_it_looked(void **state)
{
    struct rig *g = *state;
    fake_http_route(&g->http, "PUT", TOKEN, 200, "AQAEtoken==");
    fake_http_route(&g->http, "GET", ROLE, 404, "");
    create(g);
    get(g);
    assert_int_equal(g->e.kind, ERR_CONFIG);
    assert_non_null(strstr(g->e.text, "/.aws/credentials"));
    assert_non_null(strstr(g->e.text, "no role"));
}

static void metadata_is_not_asked_when_disabled(void **state)
{
    struct rig *g = *state;
    g->options.env.metadata_disabled = true;
    create(g);
    get(g);
    assert_int_equal(g->e.kind, ERR_CONFIG);
    assert_int_equal(g->http.n_requests, 0);
}

static void metadata_failures_keep_their_kind(void **state)
{
    struct rig *g = *state;
    fake_http_route(&g->http, "PUT", TOKEN, 0, "");
    create(g);
    get(g);
    assert_int_equal(g->e.kind, ERR_TIMEOUT);
    assert_non_null(strstr(g->e.text, "hop limit"));
    fake_http_route(&g->http, "PUT", TOKEN, 403, "");
    get(g);
    assert_int_equal(g->e.kind, ERR_DENIED);
    fake_http_route(&g->http, "PUT", TOKEN, 200, "two words");
    get(g);
    assert_int_equal(g->e.kind, ERR_INVALID);
    fake_http_route(&g->http, "PUT", TOKEN, 200, "AQAEtoken==");
    fake_http_route(&g->http, "GET", ROLE, 200, "../../api");
    get(g);
    assert_int_equal(g->e.kind, ERR_INVALID);
    assert_non_null(strstr(g->e.text, "not a role name"));
}

static void destroy_drops_a_fetch_under_way(void **state)
{
    struct rig *g = *state;
    g->http.silent = true;
    create(g);
    aws_credentials_get(g->source, &g->wait, on_credentials, g);
    assert_true(vtimers_run_next(&g->vt));
    assert_int_equal(g->http.n_requests, 1);
    aws_credential_source_destroy(g->source);
    g->source = NULL;
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->answers, 0);
    assert_int_equal(g->http.n_cancelled, 1);
}

static int parse_file(
    const char *text, const char *profile, struct aws_credentials *c, struct err *e)
{
    return aws_credentials_parse_file(text, strlen(text), profile, c, e);
}

static void file_is_read_by_profile(void **state)
{
    static const char text[] = "# mine\r\n"
                               "[default]\r\n"
                               "aws_access_key_id = A\r\n"
                               "aws_secret_access_key = a+/=\r\n"
                               "s3 =\r\n"
                               "  endpoint_url = x\r\n"
                               "\r\n"
                               "[ nlp ]\n"
                               "; theirs\n"
                               "region=us-east-1\n"
                               "aws_access_key_id=B\n"
                               "aws_secret_access_key=b\n"
                               "aws_session_token=t==\n";
    struct aws_credentials c;
    struct err e;
    (void)state;
    assert_int_equal(parse_file(text, "default", &c, &e), 0);
    assert_string_equal(c.access_key, "A");
    assert_string_equal(c.secret_key, "a+/=");
    assert_string_equal(c.session_token, "");
    assert_false(wall_is_set(c.expires));
    assert_int_equal(parse_file(text, "nlp", &c, &e), 0);
    assert_string_equal(c.access_key, "B");
    assert_string_equal(c.session_token, "t==");
}

static void file_mistakes_are_named_by_line_without_secrets(void **state)
{
    static const struct {
        const char *text, *expected;
        enum err_kind kind;
    } cases[] = {
        {"", "no profile [default]", ERR_NOT_FOUND},
        {"[default\n", "line 1", ERR_CONFIG},
        {"[default]\naws_access_key_id A\n", "line 2", ERR_CONFIG},
        {"[default]\naws_access_key_id = A\n", "needs aws_access_key_id and aws_secret_access_key",
            ERR_CONFIG},
        {"[default]\nrole_arn = arn:x\n", "needs", ERR_CONFIG},
        {"[default]\naws_secret_access_key = SECRET two\n",
            "line 2: aws_secret_access_key contains a blank", ERR_CONFIG},
        {"[default]\naws_secret_access_key = SECRET\x01\n", "line 2", ERR_CONFIG},
    };
    struct aws_credentials c;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse_file(cases[i].text, "default", &c, &e), cases[i].kind);
        if (!strstr(e.text, cases[i].expected) || strstr(e.text, "SECRET "))
            fail_msg("expected \"%s\" in \"%s\"", cases[i].expected, e.text);
    }
}

static void file_limits_hold(void **state)
{
    struct buf text = {0};
    struct aws_credentials c;
    struct err e;
    (void)state;
    buf_adds(&text, "[default]\naws_secret_access_key = ");
    for (int i = 0; i < 300; i++)
        buf_addc(&text, 's');
    assert_int_equal(parse_file(buf_str(&text), "default", &c, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "longer than 256 bytes"));
    for (int i = 0; i < 20000; i++)
        buf_addc(&text, 's');
    assert_int_equal(parse_file(buf_str(&text), "default", &c, &e), ERR_CONFIG);
    assert_null(strstr(e.text, "sss"));
    buf_deinit(&text);
}

static void role_replies_of_the_wrong_shape_are_refused(void **state)
{
    static const char *const bodies[] = {
        "",
        "<html>",
        "[]",
        "{\"Code\":\"Success\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":123456,\"Token\":\"t\",\"Expiration\":\"2026-"
        "08-22T18:00:00Z\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\",\"Token\":\"t\",\"Expiration\":\"soon\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\\n\",\"Token\":\"t\",\"Expiration\":\"2026-"
        "08-22T18:00:00Z\"}",
        "{\"AccessKeyId\":\"\",\"SecretAccessKey\":\"s\",\"Token\":\"t\",\"Expiration\":\"2026-08-"
        "22T18:00:00Z\"}",
        NULL,
    };
    struct aws_credentials c;
    struct err e;
    (void)state;
    for (size_t i = 0; bodies[i]; i++) {
        assert_int_equal(
            aws_credentials_parse_role(bodies[i], strlen(bodies[i]), &c, &e), ERR_INVALID);
        assert_null(strstr(e.text, "123456"));
    }
    static const char failed[] = "{\"Code\":\"AssumeRoleUnauthorizedAccess\"}";
    assert_int_equal(aws_credentials_parse_role(failed, strlen(failed), &c, &e), ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "AssumeRoleUnauthorizedAccess"));
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(environment_comes_first),
        RIG(half_a_key_pair_is_refused),
        RIG(shared_file_comes_second),
        RIG(refused_keys_are_read_again),
        RIG(a_named_profile_must_exist),
        RIG(a_file_that_others_may_read_is_refused),
        RIG(a_named_file_must_exist),
        RIG(role_comes_last),
        RIG(role_is_renewed_before_its_end),
        RIG(old_keys_serve_while_the_renewal_fails),
        RIG(waiting_calls_share_one_fetch),
        RIG(no_credentials_says_where_it_looked),
        RIG(metadata_is_not_asked_when_disabled),
        RIG(metadata_failures_keep_their_kind),
        RIG(destroy_drops_a_fetch_under_way),
        cmocka_unit_test(file_is_read_by_profile),
        cmocka_unit_test(file_mistakes_are_named_by_line_without_secrets),
        cmocka_unit_test(file_limits_hold),
        cmocka_unit_test(role_replies_of_the_wrong_shape_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
