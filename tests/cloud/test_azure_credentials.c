/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the driver has its credentials from, and when it renews them.
 */
#include "azure_rig.h"

#include "cloud/azure/credentials.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNAUTHORIZED "{\"error\":{\"code\":\"ExpiredAuthenticationToken\",\"message\":\"old\"}}"

static void a_refused_token_is_renewed_once(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    azure_rig_answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_done.json");
    azure_rig_launch(g, 0);
    assert_int_equal(fake_http_count(&g->http, "POST", TOKEN_PATH), 2);
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    azure_rig_launch(g, ERR_DENIED);
}

static void refused_principals_say_so(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_route(&g->http, "POST", TOKEN_PATH, 401,
        "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid client "
        "secret provided.\"}");
    azure_rig_launch(g, ERR_CONFIG); /* nothing was sent: it is refused for certain */
    assert_non_null(strstr(g->got.e.text, "AADSTS7000215"));
    assert_int_equal(fake_http_count(&g->http, "PUT", ""), 0);
}

static void a_machine_has_an_identity_of_its_own(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_clear_environment();
    setenv("AZURE_CLIENT_ID", "client-2", 1);
    g->options.metadata_url = "http://127.0.0.1:1338/";
    fake_http_route(&g->http, "GET", "&client_id=client-2", 200,
        "{\"access_token\":\"eyJ.T0.k\",\"expires_in\":\"86399\",\"expires_on\":\"1787486399\","
        "\"token_type\":\"Bearer\"}");
    azure_rig_create(g);
    fake_http_add(&g->http, 202, "");
    static const char *const ids[] = {"belay-lab-17"};
    azure_rig_terminate(g, ids, 1, 0);
    assert_string_equal(g->http.requests[0].url,
        "http://127.0.0.1:1338/metadata/identity/oauth2/token?api-version=2018-02-01&resource="
        "https%3A%2F%2Fmanagement.azure.com%2F&client_id=client-2");
    assert_true(fake_http_sent(&g->http, 0, "Metadata: true"));
    assert_true(fake_http_sent(&g->http, 1, "Authorization: Bearer eyJ.T0.k"));
}

static void a_machine_without_an_identity_has_no_credentials(void **state)
{
    static const struct {
        int status;
        enum err_kind kind;
    } cases[] = {{400, ERR_CONFIG}, {404, ERR_NO_CREDENTIALS}, {410, ERR_NO_CREDENTIALS},
        {429, ERR_THROTTLED}, {500, ERR_NO_CREDENTIALS}};
    struct azure_rig *g = *state;
    azure_rig_clear_environment();
    azure_rig_create(g);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_http_add(&g->http, cases[i].status,
            "{\"error\":\"invalid_request\",\"error_description\":\"Identity not found\"}");
        azure_rig_launch(g, cases[i].kind);
        assert_non_null(strstr(g->got.e.text, "managed identity"));
    }
}

static void write_file(struct azure_rig *g, const char *text)
{
    if (!g->file) {
        g->file = mem_strdup("/tmp/test_azure_XXXXXX");
        close(mkstemp(g->file));
    }
    int fd = open(g->file, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    g->options.credentials_file = g->file;
}

static void the_pools_file_goes_before_the_environment(void **state)
{
    static const char *const ids[] = {"belay-lab-17"};
    struct azure_rig *g = *state;
    write_file(g, "{\"appId\":\"client-9\",\"displayName\":\"x\",\"password\":\"p\",\"tenant\":"
                  "\"tenant-1\"}");
    azure_rig_create(g);
    fake_http_add(&g->http, 202, "");
    azure_rig_terminate(g, ids, 1, 0);
    assert_true(str_starts(buf_str(&g->http.requests[0].body),
        "grant_type=client_credentials&client_id=client-9&client_secret=p&"));
    /* Replaced while the driver lives: read when the old secret is refused. */
    write_file(g, "{\"clientId\":\"client-9\",\"clientSecret\":\"new\",\"tenantId\":\"tenant-1\"}");
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    fake_http_add(&g->http, 202, "");
    azure_rig_terminate(g, ids, 1, 0);
    assert_non_null(
        strstr(buf_str(&g->http.requests[g->http.n_requests - 2].body), "client_secret=new&"));
    unlink(g->file);
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    azure_rig_terminate(g, ids, 1, ERR_CONFIG);
    assert_non_null(strstr(g->got.e.text, g->file));
}

static void a_file_that_others_may_read_is_refused(void **state)
{
    static const char *const ids[] = {"belay-lab-17"};
    struct azure_rig *g = *state;
    write_file(g, "{\"appId\":\"client-9\",\"password\":\"hush\",\"tenant\":\"tenant-1\"}");
    assert_int_equal(chmod(g->file, 0604), 0);
    azure_rig_create(g);
    azure_rig_terminate(g, ids, 1, ERR_CONFIG);
    assert_non_null(strstr(g->got.e.text, "chmod 600"));
    assert_int_equal(g->http.n_requests, 0);
    unlink(g->file);
}

static void malformed_credentials_are_refused(void **state)
{
    static const char *const wrong[] = {"", "{", "[]", "null", "{}", "{\"tenant\":\"t\"}",
        "{\"tenant\":\"t\",\"appId\":\"a\"}", "{\"tenant\":\"t\",\"appId\":\"a\",\"password\":7}",
        "{\"tenant\":\"t\",\"appId\":\"a\",\"password\":\"\"}",
        "{\"tenant\":\"t/../u\",\"appId\":\"a\",\"password\":\"hush\"}",
        "{\"tenant\":\"..\",\"appId\":\"a\",\"password\":\"hush\"}",
        "{\"tenant\":\"t\",\"appId\":\"a&b\",\"password\":\"hush\"}",
        "{\"tenant\":\"t\",\"appId\":\"a\",\"password\":\"hush hush\"}",
        "{\"tenant\":\"t\",\"appId\":\"a\",\"password\":\"hush\\u0000x\"}",
        "{\"tenant\":\"t\",\"tenant\":\"t\",\"appId\":\"a\",\"password\":\"hush\"}", NULL};
    struct azure_principal p;
    (void)state;
    for (size_t i = 0; wrong[i]; i++) {
        struct err e = {0};
        if (azure_credentials_parse_file(wrong[i], strlen(wrong[i]), &p, &e) != ERR_CONFIG)
            fail_msg("taken: %s", wrong[i]);
        assert_true(e.text[0] != '\0');
        assert_null(strstr(e.text, "hush"));
    }
}

static void half_a_principal_in_the_environment_is_refused(void **state)
{
    struct azure_rig *g = *state;
    struct err e;
    unsetenv("AZURE_TENANT_ID");
    assert_int_equal(azure_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "AZURE_TENANT_ID is not set"));
    setenv("AZURE_TENANT_ID", "a/b", 1);
    assert_int_equal(azure_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
    assert_null(g->driver);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, azure_rig_setup, azure_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_refused_token_is_renewed_once),
        TEST(refused_principals_say_so),
        TEST(a_machine_has_an_identity_of_its_own),
        TEST(a_machine_without_an_identity_has_no_credentials),
        TEST(the_pools_file_goes_before_the_environment),
        TEST(a_file_that_others_may_read_is_refused),
        TEST(malformed_credentials_are_refused),
        TEST(half_a_principal_in_the_environment_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
