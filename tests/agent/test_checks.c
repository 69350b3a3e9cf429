/* SPDX-License-Identifier: Apache-2.0
 *
 * belay-agent --check: refuses, with the key, what a start would only log; creates nothing.
 */
#include "agent/checks.h"
#include "rights.h"

#include "agent/agent.h"
#include "agent/identity.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/ca.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* Its private key was not kept. */
#define CA                                                                                         \
    "ca: |\n"                                                                                      \
    "  -----BEGIN CERTIFICATE-----\n"                                                              \
    "  MIIBbTCCAROgAwIBAgIUB3dW4Qco3ussHBUiDt9TTahp2+cwCgYIKoZIzj0EAwIw\n"                         \
    "  DDEKMAgGA1UEAwwBYzAeFw0yNjExMjcwMzI0NTRaFw0zNjExMjQwMzI0NTRaMAwx\n"                         \
    "  CjAIBgNVBAMMAWMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARlhkZjKEWun2ga\n"                         \
    "  MCo7rNmB8noJfA+0U4HxR5Kjz9sPJPc15RJEZtEfAbt1WlShK5+c67yn+J6N8n4K\n"                         \
    "  40YB3lRbo1MwUTAdBgNVHQ4EFgQUe9vWTQy0Sm6Uuz6s/RCAJqzsamswHwYDVR0j\n"                         \
    "  BBgwFoAUe9vWTQy0Sm6Uuz6s/RCAJqzsamswDwYDVR0TAQH/BAUwAwEB/zAKBggq\n"                         \
    "  hkjOPQQDAgNIADBFAiBz8YgUfjR9PZf9CqZNC5gf7Ssa3fuTp2EyLUIhJ7oqCgIh\n"                         \
    "  AOFU7Ha4MFia879PtZhm7th0pvEtO9NATxIhjRNDEeMM\n"                                             \
    "  -----END CERTIFICATE-----\n"

static char dir[] = "/tmp/belay-agent-checks-XXXXXX";

/* Each %s in text is the test's directory. */
static struct config read_config(const char *text)
{
    struct config c;
    struct err e;
    struct buf whole = {0};
    for (const char *at; (at = strstr(text, "%s")); text = at + 2) {
        buf_add(&whole, text, (size_t)(at - text));
        buf_adds(&whole, dir);
    }
    buf_adds(&whole, text);
    if (config_parse("agent.yaml", buf_str(&whole), whole.len, &c, &e) != 0)
        fail_msg("%s", e.text);
    buf_deinit(&whole);
    return c;
}

static int check(const char *text, struct err *e)
{
    struct config c = read_config(text);
    *e = (struct err){0};
    int rc = agent_check_node(&c, e);
    config_deinit(&c);
    return rc;
}

/* A refused start ends at once; an accepted one runs until the alarm ends the test. */
static void a_start_is_refused(const char *text)
{
    struct config c = read_config(text);
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    alarm(30);
    assert_int_equal(agent_run(&loop, &c), 1);
    alarm(0);
    config_deinit(&c);
}

static void put(const char *name, mode_t mode)
{
    char *path = mem_printf("%s/%s", dir, name);
    struct err e;
    assert_int_equal(fs_write_atomic(path, "t\n", 2, mode, &e), 0);
    free(path);
}

#define SERVER "server: https://127.0.0.1:7443\n"
#define GOOD SERVER CA "dir: %s/node\ntoken: t\n"

static void a_valid_configuration_passes_and_nothing_is_created(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(check(GOOD, &e), 0);
    assert_int_equal(check("server: https://[::1]:7443/\n" CA "dir: %s/node\ntoken: t\n", &e), 0);
    assert_int_equal(check(GOOD "criu: no\n", &e), 0);
    assert_int_equal(check(GOOD "criu: /bin/sh\n", &e), 0);
    assert_int_equal(rmdir(dir), 0); /* it is empty */
    assert_int_equal(check(GOOD, &e), 0);
    assert_int_not_equal(access(dir, F_OK), 0);
    assert_int_equal(fs_mkdirs(dir, 0711, &e), 0);
}

static void check_refuses_what_a_start_only_logs_and_names_its_key(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {SERVER "ca: \"-----BEGIN CERTIFICATE-----\"\ndir: %s/node\ntoken: t\n",
            "ca: its text is not a certificate: copy the cluster's ca.pem"},
        {SERVER CA "dir: /proc/x/y\ntoken: t\n", "dir: /proc/x/y cannot be made"},
        {SERVER CA "dir: %s/plain/x\ntoken: t\n", "/plain cannot be used by user "},
        {SERVER CA "dir: %s/odd\ntoken: t\n", "/odd/tasks/.belay-trial-"},
        {SERVER CA "dir: %s/node\n", "belay token create --join"},
        {SERVER CA "dir: %s/node\ntoken_file: %s/none\n", "token_file: "},
        {SERVER CA "dir: %s/node\ntoken_file: %s/open\n", "chmod 600"},
        {SERVER CA "dir: %s/node\ntoken: hello world\n", "token: this is not a join token"},
        {SERVER CA "dir: %s/node\ntoken: b.12\n", "token: this is not a join token"},
        {GOOD "system_users: [root, nosuchuser]\n",
            "system_users: this machine has no user nosuchuser"},
        {GOOD "criu: %s/plain\n", "/plain cannot be executed by user "},
        {"server: https://nosuch.host.invalid:17443\n" CA "dir: %s/node\ntoken: t\n",
            "server: nosuch.host.invalid is not known here"},
    };
    char *odd = mem_printf("%s/odd", dir);
    struct err e;
    (void)state;
    put("plain", 0600);
    put("open", 0644);
    assert_int_equal(fs_mkdirs(odd, 0711, &e), 0);
    put("odd/tasks", 0600); /* where a directory would be created */
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (check(bad[i].text, &e) == 0)
            fail_msg("taken: %s", bad[i].text);
        if (!strstr(e.text, bad[i].says))
            fail_msg("\"%s\" is not in \"%s\"", bad[i].says, e.text);
    }
    assert_int_equal(fs_remove_tree(odd, &e), 0);
    free(odd);
}

/* The jobs of a root agent belong to other users, who must be able to pass. */
static void a_dir_that_other_users_cannot_reach_is_refused(void **state)
{
    char *closed = mem_printf("%s/closed", dir), *below = mem_printf("%s/closed/x", dir),
         *tasks = mem_printf("%s/closed/x/tasks", dir);
    struct err e;
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(fs_mkdirs(tasks, 0711, &e), 0);
    assert_int_equal(chmod(closed, 0711), 0);
    assert_int_equal(check(SERVER CA "dir: %s/closed/x\ntoken: t\n", &e), 0);
    assert_int_equal(chmod(below, 0700), 0); /* belongs to the agent: its start changes the mode */
    assert_int_equal(check(SERVER CA "dir: %s/closed/x\ntoken: t\n", &e), 0);
    assert_int_equal(chmod(closed, 0700), 0);
    assert_int_equal(check(SERVER CA "dir: %s/closed/x\ntoken: t\n", &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "/closed: chmod o+x it, or choose another dir"));
    assert_int_equal(check(SERVER CA "dir: %s/closed/y/z\ntoken: t\n", &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "/closed: chmod o+x it, or choose another dir"));
    assert_int_equal(check(SERVER CA "dir: %s/closed/x\nsystem_users: [root]\ntoken: t\n", &e), 0);
    assert_int_equal(rmdir(tasks) | rmdir(below) | rmdir(closed), 0); /* nothing was left */
    free(closed);
    free(below);
    free(tasks);
}

static void a_dir_where_nothing_can_be_executed_is_refused(void **state)
{
    char *mnt = mem_printf("%s/noexec", dir);
    struct err e;
    (void)state;
    if (!enter_own_mounts())
        skip();
    assert_int_equal(fs_mkdirs(mnt, 0711, &e), 0);
    assert_int_equal(mount("none", mnt, "tmpfs", MS_NOEXEC, "mode=711"), 0);
    assert_int_not_equal(check(SERVER CA "dir: %s/noexec/node\ntoken: t\n", &e), 0);
    assert_non_null(strstr(e.text, "dir: jobs cannot be executed in "));
    assert_non_null(strstr(e.text, "mounted noexec: mount it with exec, or choose another dir"));
    assert_int_equal(
        check(SERVER CA "dir: %s/noexec/node\nsystem_users: [root]\ntoken: t\n", &e), ERR_CONFIG);
    a_start_is_refused(SERVER CA "dir: %s/noexec/node\ntoken: t\n");
    assert_int_equal(mount("none", mnt, NULL, MS_REMOUNT, "mode=711"), 0);
    assert_int_equal(check(SERVER CA "dir: %s/noexec/node\ntoken: t\n", &e), 0);
    assert_int_equal(umount(mnt) | rmdir(mnt), 0);
    free(mnt);
}

static struct wall then(void *ctx)
{
    return *(struct wall *)ctx;
}

/* Creates a key, and a certificate of a new cluster that was issued at `at` for an hour. Returns
 * the CA's text as YAML. */
static char *join(const char *node, const char *ca_dir, struct wall at)
{
    struct clock clock = {.wall = then, .mono = clock_system.mono, .ctx = &at};
    struct wire_joined m = {.node = 1, .name = "n1", .cluster = "lab", .store = "file:///s"};
    struct buf yaml = {0};
    struct identity id;
    struct ca *ca;
    char csr[4096], *cert;
    struct err e;
    assert_int_equal(fs_mkdirs(node, 0711, &e), 0);
    assert_int_equal(fs_mkdirs(ca_dir, 0700, &e), 0);
    assert_int_equal(ca_open(ca_dir, "lab", &clock, &ca, &e), 0);
    assert_int_equal(identity_open(node, &id, &e), 0);
    assert_int_equal(identity_csr(&id, "n1", csr, sizeof(csr), &e), 0);
    assert_int_equal(ca_issue_node(ca, csr, "node-1", SECONDS_MS(3600), &cert, &e), 0);
    STR_COPY(m.cert_pem, cert);
    STR_COPY(m.ca_pem, ca_pem(ca));
    assert_int_equal(identity_accept(&id, &m, MONO_NONE, &e), 0);
    buf_adds(&yaml, SERVER "dir: %s/joined\nca: |\n");
    for (const char *p = ca_pem(ca); *p; p += strcspn(p, "\n") + 1)
        buf_printf(&yaml, "  %.*s\n", (int)strcspn(p, "\n"), p);
    free(cert);
    identity_deinit(&id);
    ca_close(ca);
    return buf_take(&yaml);
}

static void refused(const char *text, const char *says, const char *also)
{
    struct err e;
    assert_int_not_equal(check(text, &e), 0);
    if (!strstr(e.text, says) || !strstr(e.text, also))
        fail_msg("\"%s\" or \"%s\" is not in \"%s\"", says, also, e.text);
}

static void a_node_needs_no_token_while_its_certificate_is_good(void **state)
{
    static const char need[] = "belay token create --join";
    const struct wall now = clock_wall(&clock_system), past = {now.ms - SECONDS_MS(7200)};
    char *node = mem_printf("%s/joined", dir), *ca_dir = mem_printf("%s/ca", dir),
         *json = mem_printf("%s/joined/node.json", dir),
         *key = mem_printf("%s/joined/key.pem", dir);
    char *text = join(node, ca_dir, now), *more;
    struct err e;
    (void)state;
    assert_int_equal(check(text, &e), 0);
    more = mem_printf("%stoken_file: %%s/none\n", text);
    assert_int_equal(check(more, &e), 0);
    free(more);
    refused(SERVER CA "dir: %s/joined\n", "its certificate is not of the cluster of ca", need);
    assert_int_equal(check(SERVER CA "dir: %s/joined\ntoken: j.1\n", &e), 0); /* it joins again */
    free(text);
    text = join(node, ca_dir, past);
    refused(text, "its certificate expired at 20", need);
    assert_int_equal(fs_write_atomic(json, "", 0, 0600, &e), 0);
    refused(text, "/joined/node.json: ", need);
    assert_int_equal(fs_write_atomic(key, "", 0, 0600, &e), 0);
    more = mem_printf("%stoken: j.1\n", text);
    /* nor does an agent start */
    refused(more, "/joined/key.pem is not a private key: delete it", need);
    free(more);
    free(text);
    free(node);
    free(ca_dir);
    free(json);
    free(key);
}

static void note(void *ctx, enum log_level level, const char *line)
{
    if (level == LOG_WARN)
        buf_adds(ctx, line);
}

static void settings_that_may_be_intended_are_only_logged(void **state)
{
    struct buf said = {0};
    struct err e;
    (void)state;
    log_set_sink(note, &said);
    assert_int_equal(check(GOOD, &e), 0);
    assert_int_equal(said.len, 0);
    assert_int_equal(check("server: https://127.0.0.1\n" CA "dir: %s/node\ntoken: t\n", &e), 0);
    assert_int_equal(check(GOOD "memory: 900T\n", &e), 0);
    log_set_sink(NULL, NULL);
    assert_non_null(strstr(buf_str(&said), "server has no port: 443 is used"));
    assert_non_null(strstr(buf_str(&said), "more memory is offered than the machine has"));
    buf_deinit(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_configuration_passes_and_nothing_is_created),
        cmocka_unit_test(check_refuses_what_a_start_only_logs_and_names_its_key),
        cmocka_unit_test(a_dir_that_other_users_cannot_reach_is_refused),
        cmocka_unit_test(a_dir_where_nothing_can_be_executed_is_refused),
        cmocka_unit_test(a_node_needs_no_token_while_its_certificate_is_good),
        cmocka_unit_test(settings_that_may_be_intended_are_only_logged),
    };
    struct err e;
    unsetenv("BELAY_NODE_DIR");
    if (!mkdtemp(dir) || chmod(dir, 0711) != 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return fs_remove_tree(dir, &e) != 0 ? 1 : failed;
}
