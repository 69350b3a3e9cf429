/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of Azure's login service, and who is refused.
 */
#include "base/mem.h"
#include "tests/emulator/arm_world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN "/" TENANT "/oauth2/v2.0/token"
#define SCOPE "&scope=https%3A%2F%2Fmanagement.azure.com%2F.default"
#define GOOD "grant_type=client_credentials&client_id=belay&client_secret=s3cret" SCOPE

static void a_secret_gives_a_token_that_ends(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    arm_expect(&w, "POST", TOKEN, "", GOOD, 200, "\"expires_in\":3600");
    free(w.authorization);
    w.authorization = mem_printf("Bearer %s", arm_reply_str(&w, "access_token"));
    arm_expect(&w, "GET", VMS, VERSION, NULL, 200, "value");
    w.now.ms += 3600000;
    arm_expect(&w, "GET", VMS, VERSION, NULL, 401, "ExpiredAuthenticationToken");
    assert_non_null(arm_reply_header(&w, "WWW-Authenticate"));
    arm_world_stop(&w);
}

static void a_wrong_grant_is_refused(void **state)
{
    static const struct {
        const char *path, *form, *text;
        int status;
    } cases[] = {
        {TOKEN, "", "AADSTS900144", 400},
        {TOKEN, "grant_type=client_credentials&client_id=belay&client_secret=x" SCOPE,
            "AADSTS7000215", 401},
        {TOKEN, "grant_type=client_credentials&client_id=belay" SCOPE, "AADSTS7000218", 401},
        {TOKEN, "grant_type=client_credentials&client_id=other&client_secret=s3cret" SCOPE,
            "AADSTS700016", 400},
        {TOKEN, "grant_type=password&client_id=belay&client_secret=s3cret" SCOPE, "AADSTS70003",
            400},
        {TOKEN, "grant_type=client_credentials&client_id=belay&client_secret=s3cret&scope=x",
            "AADSTS1002012", 400},
        {TOKEN, GOOD "&scope=again", "given twice", 400},
        {"/other/oauth2/v2.0/token", GOOD, "AADSTS90002", 400},
    };
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        arm_expect(&w, "POST", cases[i].path, "", cases[i].form, cases[i].status, cases[i].text);
    arm_expect(&w, "GET", TOKEN, "", NULL, 405, "MethodNotAllowed");
    arm_world_stop(&w);
}

static void expect_refused(struct arm_world *w, const char *authorization, const char *code)
{
    char *kept = w->authorization;
    w->authorization = (char *)authorization;
    arm_expect(w, "GET", VMS, VERSION, NULL, 401, code);
    w->authorization = kept;
}

static void a_token_that_is_not_ours_is_refused(void **state)
{
    struct arm_world w;
    struct buf token = {0};
    (void)state;
    arm_world_start(&w);
    expect_refused(&w, NULL, "AuthenticationFailed");
    expect_refused(&w, "Basic eA==", "AuthenticationFailedInvalidHeader");
    expect_refused(&w, "Bearer x", "InvalidAuthenticationToken");
    expect_refused(&w, "Bearer a.b.c", "InvalidAuthenticationToken");
    expect_refused(&w, "Bearer ..", "InvalidAuthenticationToken");
    buf_adds(&token, "Bearer ");
    arm_auth_token(&w.auth, "belay", "https://storage.azure.com/", 1000, w.now, &token);
    expect_refused(&w, buf_str(&token), "InvalidAuthenticationTokenAudience");
    /* One letter of the payload changed. */
    char *changed = mem_strdup(w.authorization), *payload = strchr(changed, '.') + 3;
    *payload = *payload == 'x' ? 'y' : 'x';
    expect_refused(&w, changed, "InvalidAuthenticationToken");
    /* From another emulator. */
    w.auth.key[0]++;
    expect_refused(&w, w.authorization, "InvalidAuthenticationToken");
    free(changed);
    buf_deinit(&token);
    arm_world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_gives_a_token_that_ends),
        cmocka_unit_test(a_wrong_grant_is_refused),
        cmocka_unit_test(a_token_that_is_not_ours_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
