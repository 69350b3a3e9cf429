/* SPDX-License-Identifier: Apache-2.0
 *
 * slurmrestd's API as bytes, on replies recorded from Slurm 22.05.8: one token is one pilot, what a
 * job's states mean, what its errors mean whatever the HTTP status, and the login and endpoint of a
 * pool.
 */
#include "base/b64.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/slurm/api.h"
#include "cloud/slurm/login.h"
#include "fake_http.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define SECRET "not-for-any-log"
#define SCRIPT "#!/bin/sh\n# " SECRET "\nexec srun true\n"

static const struct slurm_pilot pilot = {.partition = "all", .directory = "/tmp", .cpus = 4};

static struct cloud_launch launch_of(const char *token, const char *script)
{
    return (struct cloud_launch){.token = token, .cluster = "c1", .user_data = script};
}

/* ---- requests ---- */

static void a_submit_names_its_token_and_runs_once(void **state)
{
    struct slurm_pilot p = {.partition = "gpu",
        .account = "lab",
        .qos = "low",
        .gres = "gpu:a100:2",
        .constraint = "ib",
        .reservation = "night",
        .directory = "/tmp",
        .cpus = 8,
        .memory_mib = 32768,
        .time_limit_min = 240};
    struct cloud_launch l = launch_of("belay-c1-17", SCRIPT);
    struct buf out = {0};
    (void)state;
    assert_int_equal(slurm_build_submit(&l, &p, &out, NULL), 0);
    assert_string_equal(buf_str(&out),
        "{\"job\":{\"name\":\"belay-c1-17\",\"nodes\":1,\"tasks\":1,\"dependency\":\"singleton\","
        "\"requeue\":false,\"current_working_directory\":\"/tmp\",\"standard_output\":\"/dev/"
        "null\","
        "\"standard_error\":\"/dev/null\",\"environment\":{\"PATH\":"
        "\"/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin\"},\"partition\":\"gpu\","
        "\"account\":\"lab\",\"qos\":\"low\",\"gres\":\"gpu:a100:2\",\"constraints\":\"ib\","
        "\"reservation\":\"night\",\"cpus_per_task\":8,\"memory_per_node\":32768,"
        "\"time_limit\":240},\"script\":\"#!/bin/sh\\n# " SECRET "\\nexec srun true\\n\"}");
    buf_wipe(&out);
}

static void what_a_pool_does_not_say_is_left_to_slurm(void **state)
{
    struct cloud_launch l = launch_of("belay-c1-17", SCRIPT);
    struct slurm_pilot p = {.directory = "/tmp"};
    struct buf out = {0};
    static const char *const keys[] = {"partition", "account", "qos", "gres", "constraints",
        "reservation", "cpus_per_task", "memory_per_node", "time_limit"};
    (void)state;
    assert_int_equal(slurm_build_submit(&l, &p, &out, NULL), 0);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_null(strstr(buf_str(&out), keys[i]));
    buf_wipe(&out);
}

static void what_cannot_be_a_pilot_is_refused(void **state)
{
    static const char *const tokens[] = {"", "pilot-1", "belay-1", "belay--1", "belay-c1-",
        "belay-c1-x", "belay-c 1-1", "belay-c1-1;x",
        "belay-0123456789abcdef0123456789abcdef01234567-1234567", NULL};
    char *long_script = mem_alloc(SLURM_SCRIPT_MAX + 2);
    struct slurm_pilot wide = pilot;
    struct buf out = {0};
    struct err e;
    (void)state;
    for (size_t i = 0; tokens[i]; i++) {
        struct cloud_launch l = launch_of(tokens[i], SCRIPT);
        assert_int_equal(slurm_build_submit(&l, &pilot, &out, &e), ERR_INVALID);
    }
    struct cloud_launch l = launch_of("belay-c1-17", "exec srun true\n");
    assert_int_equal(slurm_build_submit(&l, &pilot, &out, &e), ERR_INVALID);
    memset(long_script, ' ', SLURM_SCRIPT_MAX + 1);
    memcpy(long_script, "#!", 2);
    l.user_data = long_script;
    assert_int_equal(slurm_build_submit(&l, &pilot, &out, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "4096 bytes"));
    l.user_data = SCRIPT;
    wide.cpus = SLURM_CPUS_MAX + 1;
    assert_int_equal(slurm_build_submit(&l, &wide, &out, &e), ERR_CONFIG);
    assert_null(strstr(e.text, SECRET));
    assert_int_equal(out.len, 0);
    free(long_script);
}

/* ---- submits ---- */

static int64_t submitted(const char *file)
{
    char *text = fake_read_file(file);
    int64_t job = -1;
    assert_int_equal(slurm_parse_submit(text, strlen(text), &job, NULL), 0);
    free(text);
    return job;
}

static void an_accepted_job_exists_even_with_an_error(void **state)
{
    (void)state;
    assert_int_equal(submitted("slurm_submit.json"), 1);
    assert_int_equal(submitted("slurm_submit_waits.json"), 9); /* 2015: not available now */
}

/* ---- jobs ---- */

static void read_jobs(const char *file, const char *user, struct cloud_instances *l)
{
    struct err e;
    char *text = fake_read_file(file);
    if (slurm_parse_jobs(text, strlen(text), user, l, &e) != 0)
        fail_msg("%s", e.text);
    free(text);
}

static void a_job_in_its_grace_still_runs(void **state)
{
    struct cloud_instances l = {0};
    (void)state;
    read_jobs("slurm_jobs.json", "root", &l);
    assert_int_equal(l.n, 3); /* not the one with another name */
    assert_string_equal(l.list[0].id, "4@belay-c1-1");
    assert_string_equal(l.list[0].token, "belay-c1-1");
    assert_string_equal(l.list[0].cluster, "c1");
    assert_int_equal(l.list[0].state, CLOUD_RUNNING);
    assert_false(l.list[0].reclaimed); /* although preempt_time is set */
    assert_int_equal(l.list[0].launched_at.ms, SECONDS_MS(1795914226));
    assert_false(wall_is_set(l.list[0].ended_at)); /* end_time is the end of the grace */
    assert_int_equal(l.list[0].market, CLOUD_OWNED);
    assert_int_equal(l.list[0].vcpus, 1);
    cloud_instances_deinit(&l);
}

static void a_second_job_of_a_token_waits_for_the_first(void **state)
{
    struct cloud_instances l = {0};
    (void)state;
    read_jobs("slurm_jobs.json", "root", &l);
    assert_string_equal(l.list[1].id, "5@belay-c1-1");
    assert_int_equal(l.list[1].state, CLOUD_QUEUED);
    assert_string_equal(l.list[1].reason, "PENDING: Dependency");
    assert_false(wall_is_set(l.list[1].launched_at));
    cloud_instances_deinit(&l);
}

static void how_a_job_ended_says_who_ended_it(void **state)
{
    struct cloud_instances l = {0};
    (void)state;
    read_jobs("slurm_jobs_ended.json", "root", &l);
    assert_int_equal(l.n, 4);
    assert_int_equal(l.list[0].state, CLOUD_GONE); /* FAILED, but within its grace */
    assert_true(l.list[0].reclaimed);
    assert_string_equal(l.list[0].reason, "FAILED: NonZeroExitCode, preempted");
    assert_int_equal(l.list[0].ended_at.ms, SECONDS_MS(1795914180));
    assert_int_equal(l.list[1].state, CLOUD_GONE); /* cancelled while it waited */
    assert_false(l.list[1].reclaimed);
    assert_false(wall_is_set(l.list[1].launched_at)); /* it never ran */
    assert_int_equal(l.list[3].state, CLOUD_QUEUED);
    assert_false(wall_is_set(l.list[3].launched_at)); /* start_time is an estimate */
    cloud_instances_deinit(&l);
}

static void every_state_of_a_job_has_a_meaning(void **state)
{
    static const struct {
        const char *name;
        enum cloud_state state;
        bool reclaimed;
    } cases[] = {
        {"PENDING", CLOUD_QUEUED, false},
        {"CONFIGURING", CLOUD_PENDING, false},
        {"RUNNING", CLOUD_RUNNING, false},
        {"SUSPENDED", CLOUD_RUNNING, false},
        {"NEVER_HEARD_OF", CLOUD_RUNNING, false},
        {"COMPLETING", CLOUD_STOPPING, false},
        {"COMPLETED", CLOUD_GONE, false},
        {"CANCELLED", CLOUD_GONE, false},
        {"FAILED", CLOUD_GONE, false},
        {"TIMEOUT", CLOUD_GONE, true},
        {"PREEMPTED", CLOUD_GONE, true},
        {"NODE_FAIL", CLOUD_GONE, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cloud_instances l = {0};
        char *text = mem_printf("{\"jobs\":[{\"job_id\":7,\"name\":\"belay-c1-1\",\"user_name\":"
                                "\"ann\",\"job_state\":\"%s\",\"state_reason\":\"None\"}]}",
            cases[i].name);
        assert_int_equal(slurm_parse_jobs(text, strlen(text), "ann", &l, NULL), 0);
        assert_int_equal(l.list[0].state, cases[i].state);
        assert_int_equal(l.list[0].reclaimed, cases[i].reclaimed);
        cloud_instances_deinit(&l);
        free(text);
    }
}

static void jobs_of_others_are_not_ours_whatever_their_names(void **state)
{
    static const char odd[] =
        "{\"jobs\":[7,null,{},{\"name\":7,\"user_name\":\"ann\"},"
        "{\"name\":\"belay-c1-1\",\"user_name\":\"bob\",\"job_id\":\"x\"},"
        "{\"name\":\"belay-backup\",\"user_name\":\"ann\",\"job_id\":\"x\"}]}";
    struct cloud_instances l = {0};
    (void)state;
    read_jobs("slurm_jobs.json", "ann", &l);
    assert_int_equal(l.n, 0);
    assert_int_equal(slurm_parse_jobs(odd, strlen(odd), "ann", &l, NULL), 0);
    assert_int_equal(l.n, 0);
}

/* ---- ids ---- */

static void an_id_has_number_and_token(void **state)
{
    static const char *const wrong[] = {"", "7", "@belay-c1-1", "7@", "7@x", "0@belay-c1-1",
        "-1@belay-c1-1", "4294967296@belay-c1-1", "7/../8@belay-c1-1", "7@belay-c1-1?signal=0",
        "7@belay-c1-1@2", NULL};
    char id[CLOUD_NAME_MAX], token[CLOUD_TOKEN_MAX];
    int64_t job;
    (void)state;
    slurm_format_id(UINT32_MAX, "belay-0123456789abcdef-9223372036854775807", id);
    assert_int_equal(slurm_split_id(id, &job, token, NULL), 0);
    assert_int_equal(job, UINT32_MAX);
    assert_string_equal(token, "belay-0123456789abcdef-9223372036854775807");
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(slurm_split_id(wrong[i], &job, token, NULL), ERR_INVALID);
}

/* ---- refusals ---- */

static void errors_go_by_their_number_not_by_the_status(void **state)
{
    static const struct {
        int status;
        const char *file;
        int kind;
        const char *text;
    } cases[] = {
        {500, "slurm_unknown_job.json", ERR_NOT_FOUND, "Invalid job id specified"},
        {500, "slurm_cancel_unknown.json", ERR_NOT_FOUND, "2017"},
        {500, "slurm_bad_partition.json", ERR_CONFIG, "check the pool's partition"},
        {400, "slurm_bad_gres.json", ERR_CONFIG, "check the pool's gres"},
        {500, "slurm_expired.json", ERR_UNAVAILABLE, "renew the login"},
        {500, "slurm_down.json", ERR_UNAVAILABLE, "1800"},
        {404, "slurm_missing_version.txt", ERR_UNSUPPORTED, "openapi/v0.0.38"},
        {401, "slurm_no_login.txt", ERR_DENIED, "check the login"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e;
        char *text = fake_read_file(cases[i].file);
        assert_int_equal(slurm_parse_error(cases[i].status, text, strlen(text), &e), cases[i].kind);
        if (!strstr(e.text, cases[i].text))
            fail_msg("expected \"%s\" in: %s", cases[i].text, e.text);
        free(text);
    }
}

static void what_is_not_from_slurm_is_never_no_capacity(void **state)
{
    static const struct {
        int status;
        const char *body;
        int kind;
    } cases[] = {
        {502, "<html>bad gateway</html>", ERR_UNAVAILABLE},
        {500, "", ERR_UNAVAILABLE},
        {500, "{\"errors\":[]}", ERR_UNAVAILABLE},
        {500, "{\"errors\":[{\"error_code\":12345,\"error\":\"new\"}]}", ERR_UNAVAILABLE},
        {429, "slow down", ERR_THROTTLED},
        {403, "{}", ERR_DENIED},
        {301, "moved", ERR_CONFIG},
        {500, "{\"errors\":[{\"error_code\":2015,\"error\":\"not now\"}]}", ERR_NO_CAPACITY},
        {500, "{\"errors\":[{\"error_code\":2050,\"error\":\"limit\"}]}", ERR_QUOTA},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(
            slurm_parse_error(cases[i].status, cases[i].body, strlen(cases[i].body), NULL),
            cases[i].kind);
}

static void a_cancel_succeeds_only_without_errors(void **state)
{
    static const char denied[] = "{\"errors\":[{\"error_number\":2002,\"error\":\"no\"}]}";
    struct err e;
    char *text = fake_read_file("slurm_cancel.json");
    (void)state;
    assert_int_equal(slurm_parse_cancel(text, strlen(text), &e), 0);
    assert_int_equal(slurm_parse_cancel(denied, strlen(denied), &e), ERR_DENIED);
    assert_int_equal(slurm_parse_cancel("", 0, &e), ERR_INVALID);
    free(text);
}

static void a_slurmrestd_without_our_version_is_named(void **state)
{
    static const char newer[] = "{\"paths\":{\"/slurm/v0.0.40/job/submit\":{},"
                                "\"/slurm/v0.0.41/job/submit\":{},\"/slurm/v0.0.38/ping\":{}}}";
    struct err e;
    char *text = fake_read_file("slurm_openapi.json");
    (void)state;
    assert_int_equal(slurm_parse_versions(text, strlen(text), &e), 0);
    assert_int_equal(slurm_parse_versions(newer, strlen(newer), &e), ERR_UNSUPPORTED);
    assert_non_null(strstr(e.text, "it has v0.0.40, v0.0.41"));
    assert_int_equal(slurm_parse_versions("{}", 2, &e), ERR_UNSUPPORTED);
    assert_int_equal(slurm_parse_versions("Unable", 6, &e), ERR_INVALID);
    free(text);
}

static void malformed_replies_are_errors(void **state)
{
    static const char *const wrong[] = {"", "{", "[]", "null", "{}", "{\"jobs\":{}}",
        "{\"jobs\":[{\"name\":\"belay-c1-1\",\"user_name\":\"root\"}]}",
        "{\"jobs\":[{\"name\":\"belay-c1-1\",\"user_name\":\"root\",\"job_id\":0,"
        "\"job_state\":\"RUNNING\"}]}",
        "{\"jobs\":[{\"name\":\"belay-c1-1\",\"user_name\":\"root\",\"job_id\":7,"
        "\"job_state\":[\"RUNNING\"]}]}",
        "{\"jobs\":[{\"name\":\"belay-c1-1\",\"user_name\":\"root\",\"job_id\":7,"
        "\"job_state\":\"RUNNING\",\"start_time\":-1}]}",
        "{\"job_id\":-1}", "{\"job_id\":\"7\"}", NULL};
    (void)state;
    for (size_t i = 0; wrong[i]; i++) {
        struct cloud_instances l = {0};
        int64_t job;
        struct err e;
        assert_int_equal(slurm_parse_jobs(wrong[i], strlen(wrong[i]), "root", &l, &e), ERR_INVALID);
        assert_int_equal(slurm_parse_submit(wrong[i], strlen(wrong[i]), &job, &e), ERR_INVALID);
        cloud_instances_deinit(&l);
    }
}

/* ---- the login ---- */

static char *token_with(const char *claims)
{
    struct buf text = {0};
    b64_url_encode(&text, claims, strlen(claims));
    char *token = mem_printf("eyJhbGciOiJIUzI1NiJ9.%s.%s", buf_str(&text), "c2lnbmF0dXJl");
    buf_deinit(&text);
    return token;
}

static int login_of(const char *form, const char *claims, struct slurm_login *x, struct err *e)
{
    char *token = token_with(claims);
    char *text = mem_printf("%s%s\n", form, token);
    int rc = slurm_parse_login(text, strlen(text), x, e);
    if (rc != 0) {
        assert_int_equal(rc, ERR_CONFIG);
        assert_null(strstr(e->text, token));
    }
    free(text);
    free(token);
    return rc;
}

static void a_login_is_what_scontrol_prints(void **state)
{
    static const char claims[] = "{\"exp\":1795917092,\"iat\":1795913492,\"sun\":\"ann\"}";
    struct slurm_login x;
    struct err e;
    (void)state;
    assert_int_equal(login_of("SLURM_JWT=", claims, &x, &e), 0);
    assert_string_equal(x.user, "ann");
    assert_int_equal(x.expires_at.ms, SECONDS_MS(1795917092));
    assert_int_equal(slurm_check_login(&x, (struct wall){SECONDS_MS(1795917091)}, &e), 0);
    assert_int_equal(
        slurm_check_login(&x, (struct wall){SECONDS_MS(1795917092)}, &e), ERR_NO_CREDENTIALS);
    assert_non_null(strstr(e.text, "scontrol token username=ann"));
    assert_int_equal(login_of("# of the pool\n\nSLURM_USER=bob\r\nSLURM_JWT=", "{}", &x, &e), 0);
    assert_string_equal(x.user, "bob");
    assert_false(wall_is_set(x.expires_at));
    assert_int_equal(slurm_check_login(&x, (struct wall){SECONDS_MS(1795917092)}, &e), 0);
}

static void other_logins_are_refused_without_showing_them(void **state)
{
    static const char *const wrong[] = {"", "\n", "SLURM_JWT=", "SLURM_JWT=a.b",
        "SLURM_JWT=a.b.c.d", "SLURM_JWT=a.b.c", "SLURM_JWT=a b.c.d", "a.b.c", "SLURM_USER=ann",
        "SLURM_USER=a b\n", "SLURM_USER=ann\nSLURM_USER=bob\nSLURM_JWT=a.b.c",
        "SLURM_USER=ann\nSLURM_JWT=a.b.c\nx=1", NULL};
    struct slurm_login x;
    struct err e;
    (void)state;
    for (size_t i = 0; wrong[i]; i++) {
        assert_int_equal(slurm_parse_login(wrong[i], strlen(wrong[i]), &x, &e), ERR_CONFIG);
        assert_non_null(strstr(e.text, "scontrol token"));
    }
    assert_int_equal(slurm_parse_login("SLURM_JWT=a.b\0.c", 16, &x, &e), ERR_CONFIG);
    assert_int_equal(login_of("SLURM_JWT=", "{\"sun\":\"a b\"}", &x, &e), ERR_CONFIG);
    assert_int_equal(login_of("SLURM_JWT=", "{\"sun\":\"a\\r\\nX: y\"}", &x, &e), ERR_CONFIG);
}

/* ---- the endpoint ---- */

static void a_token_goes_only_where_nobody_else_reads_it(void **state)
{
    static const char *const wrong[] = {"http://slurm.example.org:6820", "slurm:6820",
        "unix:", "unix:run/x", "unix:/a\nb", "https://a@b", "https://h/slurm", NULL};
    struct slurm_endpoint x;
    char long_path[HTTP_UNIX_PATH_MAX + 16];
    (void)state;
    assert_int_equal(slurm_parse_endpoint("https://slurm.example.org:6820/", &x, NULL), 0);
    assert_string_equal(x.url, "https://slurm.example.org:6820");
    assert_string_equal(x.unix_socket, "");
    free(x.url);
    assert_int_equal(slurm_parse_endpoint("http://127.0.0.1:6820", &x, NULL), 0);
    free(x.url);
    assert_int_equal(slurm_parse_endpoint("unix:/run/slurmrestd.socket", &x, NULL), 0);
    assert_string_equal(x.unix_socket, "/run/slurmrestd.socket");
    assert_string_equal(x.url, "http://localhost");
    free(x.url);
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(slurm_parse_endpoint(wrong[i], &x, NULL), ERR_CONFIG);
    memset(long_path, 'x', sizeof(long_path) - 1);
    memcpy(long_path, "unix:/", 6);
    long_path[sizeof(long_path) - 1] = '\0';
    assert_int_equal(slurm_parse_endpoint(long_path, &x, NULL), ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submit_names_its_token_and_runs_once),
        cmocka_unit_test(what_a_pool_does_not_say_is_left_to_slurm),
        cmocka_unit_test(what_cannot_be_a_pilot_is_refused),
        cmocka_unit_test(an_accepted_job_exists_even_with_an_error),
        cmocka_unit_test(a_job_in_its_grace_still_runs),
        cmocka_unit_test(a_second_job_of_a_token_waits_for_the_first),
        cmocka_unit_test(how_a_job_ended_says_who_ended_it),
        cmocka_unit_test(every_state_of_a_job_has_a_meaning),
        cmocka_unit_test(jobs_of_others_are_not_ours_whatever_their_names),
        cmocka_unit_test(an_id_has_number_and_token),
        cmocka_unit_test(errors_go_by_their_number_not_by_the_status),
        cmocka_unit_test(what_is_not_from_slurm_is_never_no_capacity),
        cmocka_unit_test(a_cancel_succeeds_only_without_errors),
        cmocka_unit_test(a_slurmrestd_without_our_version_is_named),
        cmocka_unit_test(malformed_replies_are_errors),
        cmocka_unit_test(a_login_is_what_scontrol_prints),
        cmocka_unit_test(other_logins_are_refused_without_showing_them),
        cmocka_unit_test(a_token_goes_only_where_nobody_else_reads_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
