/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's configuration: its defaults, all of its keys, every malformed form with the line.
 */
#include "agent/config.h"
#include "agent/supervisor/limits.h"

#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define CA "ca: \"-----BEGIN CERTIFICATE-----\"\n"
#define LEAST "server: https://b:7443/\n" CA

static struct config parse(const char *text)
{
    struct config c;
    struct err e = {0};
    if (config_parse("agent.yaml", text, strlen(text), &c, &e))
        fail_msg("%s", e.text);
    return c;
}

static void server_and_ca_are_enough(void **state)
{
    (void)state;
    struct config c = parse(LEAST);
    assert_string_equal(c.server, "https://b:7443");
    assert_string_equal(c.dir, "/var/lib/belay-agent");
    assert_string_equal(c.provider, "none");
    assert_false(config_is_elastic(&c));
    assert_string_equal(c.metadata, "http://169.254.169.254");
    assert_string_not_equal(c.name, "");
    assert_int_equal(c.cpus, 0);
    assert_int_equal(c.memory_mib, 0);
    assert_int_equal(c.orphan_timeout_ms, 3600000);
    assert_int_equal(c.shutdown_timeout_ms, 120000);
    assert_int_equal(c.notice_reserve_ms, 0);
    assert_int_equal(c.sigterm_notice_ms, 0);
    assert_int_equal(c.sample_ms, 5000);
    assert_int_equal(c.telemetry_ms, 60000);
    assert_null(c.power_off);
    assert_string_equal(c.system_users, "");
    assert_int_equal(c.metadata_guard, METADATA_OPEN); /* an owned machine */
    assert_int_equal(c.hiding, PROCESSES_HIDDEN_IN_TASKS);
    assert_false(c.no_new_privs);
    assert_true(c.private_ipc);
    assert_int_equal(c.task_pids, limits_pids_measure(""));
    char token[129];
    struct err e;
    assert_int_equal(config_token(&c, token, sizeof(token), &e), ERR_NOT_FOUND);
    config_deinit(&c);
}

static void everything_of_the_manual_is_read(void **state)
{
    (void)state;
    struct config c =
        parse(LEAST "token: abc\ndir: /data/agent/\nprovider: aws\nmetadata: http://127.0.0.1:80/\n"
                    "name: node7\ncpus: 8\nmemory: 16G\norphan_timeout: 2h\nshutdown_timeout: "
                    "80s\nsigterm_notice: 30s\npower_off: /sbin/x\n");
    assert_string_equal(c.token, "abc");
    assert_string_equal(c.dir, "/data/agent");
    assert_true(config_is_elastic(&c));
    assert_string_equal(c.metadata, "http://127.0.0.1:80");
    assert_string_equal(c.name, "node7");
    assert_int_equal(c.cpus, 8);
    assert_int_equal(c.memory_mib, 16384);
    assert_int_equal(c.orphan_timeout_ms, 7200000);
    assert_int_equal(c.shutdown_timeout_ms, 80000);
    assert_int_equal(c.sigterm_notice_ms, 30000);
    assert_string_equal(c.power_off, "/sbin/x");
    config_deinit(&c);
    if (geteuid() == 0) { /* launched by belay */
        c = parse(LEAST "provider: aws\n");
        assert_int_equal(c.metadata_guard, METADATA_GUARDED);
        assert_int_equal(c.hiding, PROCESSES_HIDDEN);
        config_deinit(&c);
    }
    setenv("BELAY_NODE_DIR", "/x", 1); /* emulated */
    c = parse(LEAST "provider: aws\n");
    unsetenv("BELAY_NODE_DIR");
    assert_int_equal(c.metadata_guard, METADATA_OPEN);
    config_deinit(&c);
    c = parse(LEAST "metadata_guard: required\nhide_processes: yes\nno_new_privs: "
                    "yes\nprivate_ipc: no\ntask_pids: 100\n");
    assert_int_equal(c.metadata_guard, METADATA_GUARD_REQUIRED);
    assert_true(c.no_new_privs && !c.private_ipc);
    assert_int_equal(c.hiding, PROCESSES_HIDDEN);
    assert_int_equal(c.task_pids, 100);
    config_deinit(&c);
    setenv("BELAY_NODE_SYSTEM_USERS", "ann, www-data", 1);
    c = parse(LEAST "system_users: [root]\n");
    unsetenv("BELAY_NODE_SYSTEM_USERS");
    assert_string_equal(c.system_users, ",root,ann,www-data,");
    config_deinit(&c);
    c = parse(LEAST "hide_processes: no\n");
    assert_int_equal(c.hiding, PROCESSES_SHOWN);
    config_deinit(&c);
    c = parse(LEAST "dir: /\n");
    assert_string_equal(c.dir, "/");
    config_deinit(&c);
}

static void mistakes_are_named_with_file_and_line(void **state)
{
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"", "\"server\" is missing"},
        {"server: https://b\n", "\"ca\" is missing"},
        {"foo: 1\n", "agent.yaml:1: unknown key \"foo\""},
        {"metadata: m\ndir: d\nname: n\nprovider: aws\ncpus: 1\nmemory: 1G\ngpu_model: a100\n"
         "gpu_memory: 1G\ngpus: 1\ntelemetry: {}\nfeatures: []\nsystem_users: []\n"
         "metadata_guard: off\nno_new_privs: no\nprivate_ipc: no\ntask_pids: 99\n"
         "hide_processes: no\nresources: {}\norphan_timeout: 1s\nshutdown_timeout: 1s\n"
         "power_off: p\ncriu: no\nca: c\ntoken: t\ntoken_file: f\n",
            "\"server\" is missing"},
        {"server: http://b\n" CA,
            "agent.yaml:1: server: expected https://HOST:PORT, found \"http://b\""},
        {"server: https:///\n" CA, "agent.yaml:1: server: expected https://"},
        {"server: \"b\\e[2J\"\n" CA, "found \"b?[2J\""},
        {"server: https://b\nca: x\n", "agent.yaml:2: ca: expected the text of a PEM certificate"},
        {LEAST "token: a\ntoken_file: /b\n", "agent.yaml:4: token_file: token is given too"},
        {LEAST "dir: here\n", "agent.yaml:3: dir: expected an absolute path, found \"here\""},
        {LEAST "dir: \"a\\nb\"\n", "found \"a?b\""},
        {LEAST "name: \"\"\n", "agent.yaml:3: name: must not be empty"},
        {LEAST "name: ../../etc\n", "agent.yaml:3: name: \"../../etc\" is not a node's name"},
        {LEAST "name: \"a\\nb\"\n", "\"a?b\" is not a node's name: expected at most 63 letters"},
        {LEAST "name: n[1-3]\n", "agent.yaml:3: name: \"n[1-3]\" is not"},
        {LEAST "name: a,b\n", "agent.yaml:3: name: \"a,b\" is not"},
        {LEAST "name: -x\n", "agent.yaml:3: name: \"-x\" is not"},
        {LEAST "features: [a b]\n", "agent.yaml:3: features: expected a word"},
        {LEAST "features: [[a]]\n", "agent.yaml:3: features: expected words"},
        {LEAST "resources: {a: 99999999999999999999}\n", "agent.yaml:3: a: resources: "},
        {LEAST "cpus: 0\n", "agent.yaml:3: cpus:"},
        {LEAST "metadata_guard: maybe\n", "agent.yaml:3: metadata_guard:"},
        {LEAST "hide_processes: 1\n", "agent.yaml:3: hide_processes:"},
        {LEAST "task_pids: 1\n", "agent.yaml:3: task_pids:"},
        {LEAST "system_users: root\n", "agent.yaml:3: system_users:"},
        {LEAST "memory: 4X\n", "agent.yaml:3: memory:"},
        {LEAST "provider: awz\n", "agent.yaml:3: provider:"},
        {LEAST "telemetry: {look: 1ms}\n", "agent.yaml:3: telemetry: expected look from 50ms"},
        {LEAST "telemetry: {look: 50s, every: 5s}\n",
            "agent.yaml:3: telemetry: expected look from"},
        {LEAST "telemetry: {evry: 5s}\n", "every"},
        {LEAST "orphan_timeout: soon\n", "agent.yaml:3: orphan_timeout:"},
        {LEAST "prolog: check.sh\n", "agent.yaml:3: prolog: expected an absolute path"},
        {LEAST "epilog: check.sh\n", "agent.yaml:3: epilog: expected an absolute path"},
        {LEAST "hook_timeout: 2h\n", "agent.yaml:3: hook_timeout: expected 1s to 1h"},
        {LEAST "notice_reserve: 0s\n", "agent.yaml:3: notice_reserve: expected at least 1s"},
        {LEAST "sigterm_notice: 0s\n", "agent.yaml:3: sigterm_notice: expected 1s to 1h"},
        {LEAST "sigterm_notice: 2h\n", "agent.yaml:3: sigterm_notice: expected 1s to 1h"},
        {LEAST "shutdown_timeout: 2h\n", "agent.yaml:3: shutdown_timeout: expected 1s to 1h"},
        {LEAST "sever: x\n", "did you mean \"server\"?"},
        {LEAST "name: [a]\n", "a list"},
        {"- a\n", "agent.yaml:1"},
        {"server: {\n", "agent.yaml:"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct config c;
        struct err e = {0};
        int rc = config_parse("agent.yaml", bad[i].text, strlen(bad[i].text), &c, &e);
        if (rc != ERR_INVALID || (int)e.kind != rc)
            fail_msg("taken, or refused as %d: %s", rc, bad[i].text);
        if (!strstr(e.text, bad[i].expected))
            fail_msg("\"%s\" is not in \"%s\", for\n%s", bad[i].expected, e.text, bad[i].text);
    }
}

static void a_file_that_others_may_read_is_refused(void **state)
{
    char path[] = "/tmp/belay-agent-config-XXXXXX";
    struct config c;
    struct err e;
    (void)state;
    int fd = mkstemp(path);
    assert_int_equal(write(fd, LEAST, strlen(LEAST)), strlen(LEAST));
    assert_int_equal(fchmod(fd, 0640), 0);
    assert_int_equal(config_read(path, &c, &e), ERR_DENIED);
    assert_non_null(strstr(e.text, "chmod 600"));
    assert_int_equal(fchmod(fd, 0600), 0);
    assert_int_equal(config_read(path, &c, &e), 0);
    config_deinit(&c);
    close(fd);
    unlink(path);
    assert_int_equal(config_read(path, &c, &e), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_and_ca_are_enough),
        cmocka_unit_test(everything_of_the_manual_is_read),
        cmocka_unit_test(mistakes_are_named_with_file_and_line),
        cmocka_unit_test(a_file_that_others_may_read_is_refused),
    };
    unsetenv("BELAY_NODE_DIR");
    unsetenv("BELAY_METADATA");
    unsetenv("BELAY_NODE_GPUS");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
