/* SPDX-License-Identifier: Apache-2.0
 *
 * User data: a script for any sh that writes a valid agent configuration, and is reproducible.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "cloud/driver.h"
#include "scheduler/userdata.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char ca[] =
    "-----BEGIN CERTIFICATE-----\nMIIB$(touch /tmp/x)`id`\n'\"\\END\n-----END CERTIFICATE-----\n";

static struct userdata example(void)
{
    return (struct userdata){.server_url = "https://belay.lab:7443",
        .ca_pem = ca,
        .token = "i17.0123456789abcdef",
        .provider = "aws",
        .metadata = "http://127.0.0.1:1338",
        .boot_s = 600,
        .orphan_s = 3600};
}

static void the_same_arguments_give_the_same_bytes(void **state)
{
    struct userdata u = example();
    (void)state;
    static const char *const providers[] = {"aws", "azure", "gcp", "none"};
    for (size_t i = 0; i < 4; i++) {
        u.provider = providers[i];
        char *text = userdata_build(&u);
        assert_true(strlen(text) < CLOUD_USER_DATA_MAX * 7 / 8); /* plus a CA of a few KiB */
        free(text);
    }
    char *a = userdata_build(&u), *b = userdata_build(&u);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

/* An agent of the right version: not downloaded. */
#define AGENT "#!/bin/sh\n[ \"$1\" = --version ] && echo belay-agent " BELAY_VERSION " && exit\n"

/* Runs `sh OPTION FILE` in dir with PATH = dir, so that "belay-agent" is the stub. */
static int run_sh(const char *dir, const char *option)
{
    char *command = mem_printf("cd %s && BELAY_NODE_DIR=%s/node PATH=%s:/usr/bin:/bin sh %s ./boot",
        dir, dir, dir, option);
    int status = system(command);
    free(command);
    return status;
}

static void write_file(const char *dir, const char *name, const char *text, mode_t mode)
{
    char *path = mem_printf("%s/%s", dir, name);
    struct err e;
    assert_int_equal(fs_write_atomic(path, text, strlen(text), mode, &e), 0);
    free(path);
}

static void check_configuration(const char *dir)
{
    char *path = mem_printf("%s/node/agent.yaml", dir);
    struct buf text = {0};
    struct yaml_node *root;
    struct yaml_reader r;
    struct stat st;
    struct err e = {0};
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600); /* it holds the token */
    assert_int_equal(fs_read(path, 65536, &text, &e), 0);
    assert_int_equal(yaml_parse(path, buf_str(&text), text.len, &root, &e), 0);
    yaml_reader_init(&r, path, root, &e);
    assert_string_equal(yaml_req_str(&r, "server", 100), "https://belay.lab:7443");
    assert_string_equal(yaml_req_str(&r, "token", 100), "i17.0123456789abcdef");
    assert_string_equal(yaml_req_str(&r, "provider", 100), "aws");
    assert_string_equal(yaml_req_str(&r, "metadata", 100), "http://127.0.0.1:1338");
    assert_string_equal(yaml_req_str(&r, "ca", 1000), ca);
    assert_int_equal(yaml_opt_duration_ms(&r, "orphan_timeout", 0), 3600000);
    char *power_off = mem_printf("sh '%s/node/power-off'", dir);
    assert_string_equal(yaml_req_str(&r, "power_off", 1000), power_off);
    free(power_off);
    if (yaml_reader_finish(&r) != 0)
        fail_msg("%s", e.text);
    yaml_node_free(root);
    buf_deinit(&text);
    free(path);
}

static void sh_reads_it_and_it_starts_the_agent_with_its_configuration(void **state)
{
    (void)state;
    char dir[] = "/tmp/belay-userdata-XXXXXX";
    struct userdata u = example();
    struct err e;
    assert_non_null(mkdtemp(dir));
    char *text = userdata_build(&u);
    write_file(dir, "boot", text, 0600);
    write_file(dir, "belay-agent", AGENT "echo \"$@\" >started\n", 0700);
    assert_int_equal(run_sh(dir, "-n"), 0);
    assert_int_equal(run_sh(dir, ""), 0);
    check_configuration(dir);
    char *path = mem_printf("%s/started", dir),
         *expected = mem_printf("--config %s/node/agent.yaml\n", dir);
    struct buf started = {0};
    assert_int_equal(fs_read(path, 1000, &started, &e), 0);
    assert_string_equal(buf_str(&started), expected);
    buf_deinit(&started);
    free(path);
    free(expected);
    free(text);
    assert_int_equal(fs_remove_tree(dir, &e), 0);
}

/* The stubbed sleep does not wait. */
static void an_agent_that_is_killed_is_started_again_and_one_that_ends_by_itself_is_not(
    void **state)
{
    (void)state;
    char dir[] = "/tmp/belay-userdata-XXXXXX";
    struct userdata u = example();
    struct buf runs = {0};
    struct err e;
    assert_non_null(mkdtemp(dir));
    char *text = userdata_build(&u), *path = mem_printf("%s/runs", dir);
    write_file(dir, "boot", text, 0600);
    write_file(dir, "sleep", "#!/bin/sh\n", 0700);
    write_file(dir, "belay-agent",
        AGENT "echo run >>runs\n"
              "case $(wc -l <runs) in 1) kill -9 $$ ;; 2) exit 1 ;; *) exit 3 ;; esac\n",
        0700);
    assert_int_equal(run_sh(dir, ""), 0);
    assert_int_equal(fs_read(path, 1000, &runs, &e), 0);
    assert_string_equal(buf_str(&runs), "run\nrun\nrun\n");
    buf_deinit(&runs);
    free(path);
    free(text);
    assert_int_equal(fs_remove_tree(dir, &e), 0);
}

/* Output and command lines are public. Files from here-documents are not. */
static void the_token_stands_in_files_only(void **state)
{
    struct userdata u = example();
    (void)state;
    char *text = userdata_build(&u);
    int n = 0;
    for (const char *at = text; (at = strstr(at, u.token)); at++)
        n++;
    assert_int_equal(n, 2); /* token='...', and the agent's configuration */
    n = 0;
    for (const char *at = text; (at = strstr(at, "$token")); at++, n++) {
        const char *line = at;
        while (line[-1] != '\n')
            line--;
        assert_true(
            strncmp(line, "Authorization: ", 15) == 0 || strncmp(line, "header = ", 9) == 0);
    }
    assert_int_equal(n, 3);
    assert_null(strstr(text, "export"));
    free(text);
}

static void a_certificate_without_an_end_of_line_gets_one(void **state)
{
    struct userdata u = example();
    (void)state;
    u.ca_pem = "-----END CERTIFICATE-----";
    char *text = userdata_build(&u);
    assert_non_null(strstr(text, "\n-----END CERTIFICATE-----\nEND\n"));
    free(text);
}

static void without_a_metadata_address_the_agent_takes_the_real_one(void **state)
{
    struct userdata u = example();
    (void)state;
    u.metadata = NULL;
    char *text = userdata_build(&u);
    assert_null(strstr(text, "\nmetadata: "));
    assert_null(strstr(text, "\nmetadata_guard: "));
    assert_null(strstr(text, "\nnotice_reserve: "));
    assert_null(strstr(text, "\nprolog: "));
    assert_null(strstr(text, "\nepilog: "));
    assert_null(strstr(text, "\nhook_timeout: "));
    assert_non_null(strstr(text, "metadata=''\n"));
    free(text);
    u.metadata_guard = "off";
    u.notice_reserve_s = 20;
    u.prolog = "/etc/belay/prolog";
    u.epilog = "/etc/belay/epilog";
    u.hook_timeout_s = 90;
    text = userdata_build(&u);
    assert_non_null(strstr(text, "\nprolog: \"/etc/belay/prolog\"\n"));
    assert_non_null(strstr(text, "\nepilog: \"/etc/belay/epilog\"\n"));
    assert_non_null(strstr(text, "\nhook_timeout: 90s\n"));
    assert_non_null(strstr(text, "\nnotice_reserve: 20s\n"));
    assert_non_null(strstr(text, "\nmetadata_guard: off\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_arguments_give_the_same_bytes),
        cmocka_unit_test(sh_reads_it_and_it_starts_the_agent_with_its_configuration),
        cmocka_unit_test(
            an_agent_that_is_killed_is_started_again_and_one_that_ends_by_itself_is_not),
        cmocka_unit_test(the_token_stands_in_files_only),
        cmocka_unit_test(a_certificate_without_an_end_of_line_gets_one),
        cmocka_unit_test(without_a_metadata_address_the_agent_takes_the_real_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
