/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the name that machines connect to leads to belayd, with the test's resolvers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "scheduler/config/own_name.h"
#include <netdb.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POOL                                                                                       \
    "pools: {burst: {provider: aws, region: us-east-1, zones: [us-east-1a], types: [m6i.xlarge], " \
    "image: ami-0123456789abcdef0, max_nodes: 4}}\n"
#define LONG_MS 120000

static struct config parse(const char *text)
{
    struct config c;
    struct err e;
    if (config_parse("f", text, strlen(text), "/tmp/x", &c, &e) != 0)
        fail_msg("%s", e.text);
    return c;
}

/* An answer, as from a hosts file. */
static int answer(const char *address, struct addrinfo **ret_list)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    return getaddrinfo(address, NULL, &hints, ret_list);
}

/* As from Debian's installer, a network name, both, and an unknown one. */
static int resolve(const char *host, struct addrinfo **ret_list)
{
    if (str_eq(host, "here"))
        return answer("127.0.1.1", ret_list);
    if (str_eq(host, "here6"))
        return answer("::1", ret_list);
    if (str_eq(host, "there"))
        return answer("192.0.2.1", ret_list);
    if (str_eq(host, "both")) {
        int rc = answer("127.0.1.1", ret_list);
        return rc ? rc : answer("2001:db8::1", &(*ret_list)->ai_next);
    }
    return EAI_NONAME;
}

static void check(const char *text, int kind, const char *words)
{
    struct config c = parse(text);
    struct own_name *n = own_name_create(&c, resolve);
    struct err e = {0};
    int rc = own_name_check(n, &c, LONG_MS, &e);
    if (rc != kind || !strstr(e.text, words))
        fail_msg("%s: %d %s", text, rc, e.text);
    own_name_destroy(n);
    config_deinit(&c);
}

static void a_name_that_is_loopback_here_leads_machines_to_themselves(void **state)
{
    (void)state;
    check("server: https://here:7443\n" POOL, ERR_CONFIG, "would dial here,");
    check("server: https://here6/\n" POOL, ERR_CONFIG, "pool burst");
    check("server: https://here\n" POOL, ERR_CONFIG, "set server:");
    check("server: https://both:7443\n" POOL, 0, "");
    check("server: https://there:7443\n" POOL, 0, "");
    check("server: https://nowhere:7443\n" POOL, ERR_NOT_FOUND, "nowhere, which is not known here");
    check("listen: \"here:7443\"\n" POOL, ERR_CONFIG, "would dial here,");
    check("listen: \"[::1]:7443\"\nserver: https://[2001:db8::7]:7443\n" POOL, ERR_NOT_FOUND,
        "would dial 2001:db8::7,");
    check("server: https://here:7443\n", 0, ""); /* no cloud */
}

static void an_unknown_server_is_reported_without_a_cloud_too(void **state)
{
    static const struct {
        const char *text;
        int kind;
    } all[] = {{"server: https://nowhere:17443\n", ERR_NOT_FOUND},
        {"server: https://there:17443\n", 0}, {"server: https://here:17443\n", 0},
        {"listen: \"nowhere:7443\"\n", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct config c = parse(all[i].text);
        struct own_name *n = own_name_create(&c, resolve);
        struct err e = {0};
        assert_int_equal(own_name_check_known(n, LONG_MS, &e), all[i].kind);
        if (all[i].kind != 0)
            assert_non_null(strstr(e.text, "server: agents and users dial nowhere, which is not"));
        own_name_destroy(n);
        config_deinit(&c);
    }
}

static char asked[256];

static int note(const char *host, struct addrinfo **ret_list)
{
    STR_COPY(asked, host);
    return answer("192.0.2.1", ret_list);
}

static void without_a_name_it_is_the_machines_own(void **state)
{
    static const char *const any[] = {"0.0.0.0:7443", "[::]:7443"};
    char own[256] = "";
    (void)state;
    gethostname(own, sizeof(own) - 1);
    for (size_t i = 0; i < 2; i++) {
        char text[1024];
        struct err e;
        snprintf(text, sizeof(text), "listen: \"%s\"\n" POOL, any[i]);
        struct config c = parse(text);
        struct own_name *n = own_name_create(&c, note);
        assert_int_equal(own_name_check(n, &c, LONG_MS, &e), 0);
        assert_string_equal(asked, own);
        own_name_destroy(n);
        config_deinit(&c);
    }
}

static sem_t may_go, has_gone;

/* Blocks until the test releases it. */
static int hang(const char *host, struct addrinfo **ret_list)
{
    (void)host;
    sem_wait(&may_go);
    int rc = answer("127.0.1.1", ret_list);
    sem_post(&has_gone);
    return rc;
}

static void a_resolver_that_hangs_is_waited_for_no_longer_than_allowed(void **state)
{
    struct config none = parse(""), c = parse("server: https://here:7443\n" POOL);
    struct err e;
    (void)state;
    sem_init(&may_go, 0, 0);
    sem_init(&has_gone, 0, 0);
    struct own_name *n = own_name_create(&c, hang);
    /* it does not wait for the answer */
    assert_int_equal(own_name_check(n, &none, LONG_MS, &e), 0);
    assert_int_equal(own_name_check(n, &c, 0, &e), ERR_TIMEOUT);
    assert_int_equal(own_name_check_known(n, 30, &e), ERR_TIMEOUT);
    assert_non_null(strstr(e.text, "server: agents and users dial here,"));
    assert_int_equal(own_name_check(n, &c, 30, &e), ERR_TIMEOUT);
    assert_non_null(strstr(e.text, "pool burst"));
    sem_post(&may_go);
    assert_int_equal(own_name_check(n, &c, LONG_MS, &e), ERR_CONFIG);
    assert_int_equal(own_name_check(n, &c, 0, &e), ERR_CONFIG); /* known from now on */
    own_name_destroy(n);
    sem_wait(&has_gone);
    n = own_name_create(&c, hang);
    own_name_destroy(n); /* while it hangs */
    sem_post(&may_go);
    sem_wait(&has_gone);
    assert_int_equal(own_name_check_peer("mail", hang, "mail: smtp", 30, &e), ERR_TIMEOUT);
    assert_non_null(strstr(e.text, "mail: smtp: this machine's resolver did not answer"));
    sem_post(&may_go);
    sem_wait(&has_gone);
    config_deinit(&none);
    config_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_is_loopback_here_leads_machines_to_themselves),
        cmocka_unit_test(an_unknown_server_is_reported_without_a_cloud_too),
        cmocka_unit_test(without_a_name_it_is_the_machines_own),
        cmocka_unit_test(a_resolver_that_hangs_is_waited_for_no_longer_than_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
