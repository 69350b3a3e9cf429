/* SPDX-License-Identifier: Apache-2.0
 *
 * The complete program: real processes, real time, real bytes.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vformat.h"
#include "tests/emulator/rig.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A deadline is kept to 50 ms on an idle machine; build machines are busy, and sanitizers slow.
 * Never early. */

/* Three processes that do not end by themselves and report their pids: the script, a child in a
 * session of its own, and a daemon (forked twice, ignores SIGTERM). %s: the directory with the
 * fifo. */
static const char stubborn[] =
    "#!/bin/sh\n"
    "exec 3>%s/pids\n"
    "trap '' TERM\n"
    "setsid sh -c 'echo $$ >&3; exec 3>&-; exec sleep 1000' &\n"
    "(setsid sh -c 'echo $$ >&3; exec 3>&-; while :; do sleep 1000; done' &) \n"
    "echo $$ >&3\n"
    "exec 3>&-\n"
    "while :; do sleep 1000; done\n";

static int64_t field(struct rig *r, const char *id, const char *name)
{
    json_t *i = rig_instance(r, id);
    int64_t n = json_integer_value(json_object_get(i, name));
    json_decref(i);
    return n;
}

static void expect_text(struct rig *r, const char *id, const char *name, const char *expected)
{
    json_t *i = rig_instance(r, id);
    assert_string_equal(json_string_value(json_object_get(i, name)), expected);
    json_decref(i);
}

static void start_stubborn(struct rig *r, char id[RIG_ID_MAX], pid_t pids[3])
{
    rig_make_fifo(r, "pids");
    rig_launch(r, id, stubborn, r->dir);
    rig_read_pids(r, "pids", pids, 3);
    for (int i = 0; i < 3; i++)
        assert_true(rig_is_alive(pids[i]));
}

static void expect_gone(const pid_t pids[3])
{
    for (int i = 0; i < 3; i++)
        assert_false(rig_is_alive(pids[i]));
}

static void a_reclaim_kills_the_whole_tree_at_its_deadline(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX];
    pid_t pids[3];
    (void)state;
    rig_start(&r, "");
    start_stubborn(&r, id, pids);
    rig_event(&r, "{\"reclaim\":{\"instance\":\"random\",\"notice_s\":1}}");
    for (int i = 0; i < 3; i++)
        assert_true(rig_is_alive(pids[i]));
    rig_wait(&r, "terminated", id);
    expect_gone(pids);
    int64_t late_ms = field(&r, id, "gone_ms") - field(&r, id, "deadline_ms");
    print_message("killed %lld ms after the deadline\n", (long long)late_ms);
    assert_true(late_ms >= 0); /* the delay depends on the load of this machine */
    expect_text(&r, id, "reason", "Server.SpotInstanceTermination");
    assert_int_equal(rig_stop(&r), 0);
}

static void a_reclaim_without_notice_kills_at_once(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX];
    pid_t pids[3];
    (void)state;
    rig_start(&r, "");
    start_stubborn(&r, id, pids);
    rig_event(&r, "{\"reclaim\":{\"instance\":\"all\",\"without_notice\":true}}");
    rig_wait(&r, "terminated", id);
    expect_gone(pids);
    assert_int_equal(rig_stop(&r), 0);
}

static void terminate_asks_first_and_kills_then(void **state)
{
    struct rig r;
    char polite[RIG_ID_MAX], id[RIG_ID_MAX], body[200], file[128];
    pid_t pids[3], pid[1];
    struct buf reply = {0};
    (void)state;
    rig_start(&r, "shutdown_ms: 500\n");
    rig_make_fifo(&r, "polite");
    rig_launch(&r, polite,
        "#!/bin/sh\ntrap 'echo bye >%s/bye; exit 0' TERM\necho $$ >%s/polite\nsleep 1000 &\nwait\n",
        r.dir, r.dir);
    rig_read_pids(&r, "polite", pid, 1);
    start_stubborn(&r, id, pids);
    snprintf(body, sizeof(body), "Action=TerminateInstances&InstanceId.1=%s&InstanceId.2=%s",
        polite, id);
    assert_int_equal(rig_call(&r, body, &reply), 200);
    rig_wait(&r, "terminated", polite);
    rig_path(&r, "bye", file, sizeof(file));
    assert_true(fs_exists(file));
    rig_wait(&r, "terminated", id);
    expect_gone(pids);
    assert_true(field(&r, id, "gone_ms") - field(&r, id, "ended_ms") >= 500);
    expect_text(&r, id, "reason", "Client.UserInitiatedShutdown");
    buf_deinit(&reply);
    assert_int_equal(rig_stop(&r), 0);
}

static void sigterm_leaves_nothing(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX], dir[200];
    pid_t pids[3];
    (void)state;
    rig_start(&r, "");
    start_stubborn(&r, id, pids);
    snprintf(dir, sizeof(dir), "%s/instances/%s", r.dir, id);
    assert_true(fs_exists(dir));
    kill(r.pid, SIGTERM);
    int status;
    assert_int_equal(waitpid(r.pid, &status, 0), r.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_gone(pids);
    assert_false(fs_exists(dir));
    r.pid = 0;
    rig_stop(&r);
}

static void a_killed_emulator_leaves_nothing(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX];
    pid_t pids[3];
    (void)state;
    /* As the next subreaper up, this process becomes the parent of the orphaned holder, so its end
     * can be awaited. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    rig_start(&r, "");
    start_stubborn(&r, id, pids);
    pid_t holder = (pid_t)field(&r, id, "pid");
    kill(r.pid, SIGKILL);
    assert_int_equal(waitpid(r.pid, NULL, 0), r.pid);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    expect_gone(pids);
    r.pid = 0;
    rig_stop(&r);
}

static void a_killed_holder_leaves_nothing(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX], other[RIG_ID_MAX];
    pid_t pids[3], survivor[1];
    (void)state;
    rig_start(&r, "");
    rig_make_fifo(&r, "survivor");
    rig_launch(&r, other, "#!/bin/sh\necho $$ >%s/survivor\nexec sleep 1000\n", r.dir);
    rig_read_pids(&r, "survivor", survivor, 1);
    start_stubborn(&r, id, pids);
    kill((pid_t)field(&r, id, "pid"), SIGKILL);
    rig_wait(&r, "terminated", id);
    expect_gone(pids);
    expect_text(&r, id, "reason", "Server.InternalError");
    assert_true(rig_is_alive(survivor[0]));
    expect_text(&r, other, "state", "running");
    assert_int_equal(rig_stop(&r), 0);
}

static void a_machine_whose_last_process_ends_has_powered_off(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX], body[200];
    struct buf reply = {0};
    (void)state;
    rig_start(&r, "");
    rig_launch(&r, id, "#!/bin/sh\necho so long\n(sleep 0.2 &)\nexit 0\n");
    rig_wait(&r, "power-off", id);
    rig_wait(&r, "terminated", id);
    /* the orphan was awaited */
    assert_true(field(&r, id, "gone_ms") - field(&r, id, "running_ms") >= 200);
    snprintf(body, sizeof(body), "Action=GetConsoleOutput&InstanceId=%s", id);
    assert_int_equal(rig_call(&r, body, &reply), 200);
    assert_non_null(strstr(buf_str(&reply), "<output>c28gbG9uZwo=</output>")); /* "so long\n" */
    buf_deinit(&reply);
    assert_int_equal(rig_stop(&r), 0);
}

static void user_data_that_is_no_script_is_not_run(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX], body[200];
    struct buf reply = {0};
    (void)state;
    rig_start(&r, "");
    rig_launch(&r, id, "#cloud-config\n");
    rig_wait(&r, "running", id);
    snprintf(body, sizeof(body), "Action=TerminateInstances&InstanceId.1=%s", id);
    assert_int_equal(rig_call(&r, body, &reply), 200);
    rig_wait(&r, "terminated", id);
    buf_deinit(&reply);
    assert_int_equal(rig_stop(&r), 0);
}

/* ---- The view of user data ---- */

static void user_data_gets_few_variables_and_no_more(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX], path[128];
    struct buf text = {0};
    struct err e;
    int n = 0;
    (void)state;
    setenv("SECRET_OF_THE_TESTER", "1", 1);
    rig_start(&r, "agent_path: /opt/somewhere\n");
    rig_launch(&r, id,
        "#!/bin/sh\ncat /proc/$$/environ >%s/environ\nls -l /proc/$$/fd >%s/fds\npwd >%s/pwd\n",
        r.dir, r.dir, r.dir);
    rig_wait(&r, "terminated", id);
    rig_path(&r, "environ", path, sizeof(path));
    assert_int_equal(fs_read(path, 65536, &text, &e), 0);
    for (const char *s = buf_str(&text); s < buf_str(&text) + text.len; s += strlen(s) + 1, n++)
        if (!(str_starts(s, "PATH=") && strstr(s, "/sbin:/opt/somewhere:/usr/local/sbin:")) &&
            !str_starts(s, "HOME=") && !str_starts(s, "BELAY_NODE_DIR=") &&
            !str_starts(s, "BELAY_METADATA=http://127.0.0.1:") && !str_eq(s, "BELAY_NODE_GPUS=1") &&
            !str_eq(s, "BELAY_NODE_SYSTEM_USERS=root"))
            fail_msg("unexpected: %s", s);
    assert_int_equal(n, 6);
    rig_path(&r, "fds", path, sizeof(path));
    assert_int_equal(fs_read(path, 65536, &text, &e), 0);
    static const char *const not_ours[] = {"pipe:", "socket:", "anon_inode:", "cgroup", ".yaml"};
    for (size_t i = 0; i < sizeof(not_ours) / sizeof(not_ours[0]); i++)
        if (strstr(buf_str(&text), not_ours[i]))
            fail_msg("an open file came along: %s", buf_str(&text));
    rig_path(&r, "pwd", path, sizeof(path));
    assert_int_equal(fs_read(path, 65536, &text, &e), 0);
    assert_non_null(strstr(buf_str(&text), id));
    buf_deinit(&text);
    unsetenv("SECRET_OF_THE_TESTER");
    assert_int_equal(rig_stop(&r), 0);
}

/* Reads a path of the metadata service at host, with its own token. */
static int read_metadata(const char *host, const char *path, struct buf *ret_body)
{
    char header[256];
    if (rig_http(host, "PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 60\r\n",
            "", ret_body) != 200)
        return -1;
    snprintf(header, sizeof(header), "X-aws-ec2-metadata-token: %s\r\n", buf_str(ret_body));
    return rig_http(host, "GET", path, header, "", ret_body);
}

static void metadata_host(struct rig *r, const char *id, char out[64])
{
    json_t *i = rig_instance(r, id);
    snprintf(out, 64, "%s", json_string_value(json_object_get(i, "metadata")) + strlen("http://"));
    json_decref(i);
}

static void the_notice_stands_at_the_metadata_service(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX], host[64], expected[100], iso[TIME_ISO_MAX];
    struct buf body = {0};
    (void)state;
    rig_start(&r, "");
    rig_launch(&r, id, "#!/bin/sh\nexec sleep 1000\n");
    rig_wait(&r, "running", id);
    metadata_host(&r, id, host);
    assert_int_equal(rig_http(host, "GET", "/latest/meta-data/instance-id", "", "", &body), 401);
    assert_int_equal(read_metadata(host, "/latest/meta-data/instance-id", &body), 200);
    assert_string_equal(buf_str(&body), id);
    assert_int_equal(read_metadata(host, "/latest/meta-data/spot/instance-action", &body), 404);
    rig_event(&r, "{\"reclaim\":{\"instance\":\"all\",\"notice_s\":100}}");
    assert_int_equal(read_metadata(host, "/latest/meta-data/spot/instance-action", &body), 200);
    time_format_iso((struct wall){field(&r, id, "deadline_ms")}, iso);
    snprintf(expected, sizeof(expected), "{\"action\":\"terminate\",\"time\":\"%s\"}", iso);
    assert_string_equal(buf_str(&body), expected);
    rig_event(&r, "{\"refuse\":{\"action\":\"metadata\",\"code\":\"503\"}}");
    assert_int_equal(rig_http(host, "GET", "/latest/", "", "", &body), 503);
    assert_int_equal(rig_http(host, "GET", "/latest/", "", "", &body), 401);
    buf_deinit(&body);
    assert_int_equal(rig_stop(&r), 0);
}

/* ---- Faults ---- */

#define RUN                                                                                        \
    "Action=RunInstances&ImageId=ami-1&InstanceType=g6.xlarge&MinCount=1&MaxCount=1"               \
    "&InstanceMarketOptions.MarketType=spot&ClientToken="

static int64_t n_launches(struct rig *r)
{
    json_t *state = rig_state(r);
    int64_t n = json_integer_value(json_object_get(json_object_get(state, "counts"), "launches"));
    json_decref(state);
    return n;
}

static void lost_replies_have_had_their_effect(void **state)
{
    static const struct {
        const char *how;
        int status;
    } kinds[] = {{"close", 0}, {"garbage", 200}, {"error", 500}};
    struct rig r;
    struct buf body = {0};
    (void)state;
    rig_start(&r, "");
    for (int i = 0; i < 3; i++) {
        char event[100], call[300];
        snprintf(event, sizeof(event),
            "{\"drop_reply\":{\"action\":\"RunInstances\",\"how\":\"%s\"}}", kinds[i].how);
        snprintf(call, sizeof(call), RUN "t%d", i);
        rig_event(&r, event);
        assert_int_equal(rig_call(&r, call, &body), kinds[i].status);
        assert_null(strstr(buf_str(&body), "<instanceId>"));
        assert_int_equal(n_launches(&r), i + 1);
        rig_event(&r,
            "{\"refuse\":{\"action\":\"RunInstances\",\"code\":\"InsufficientInstanceCapacity\"}}");
        assert_int_equal(rig_call(&r, call, &body), 200); /* already created */
        assert_non_null(strstr(buf_str(&body), "<instanceId>"));
        assert_int_equal(n_launches(&r), i + 1);
        assert_int_equal(rig_call(&r, RUN "another", &body), 500);
    }
    buf_deinit(&body);
    assert_int_equal(rig_stop(&r), 0);
}

static void refusals_throttles_and_slow_answers_come_as_ordered(void **state)
{
    struct rig r;
    struct buf body = {0};
    (void)state;
    rig_start(&r, "");
    rig_event(&r,
        "[{\"throttle\":{\"action\":\"*\"}},{\"refuse\":{\"action\":\"RunInstances\",\"code\":"
        "\"MaxSpotInstanceCountExceeded\"}},{\"slow\":{\"action\":\"DescribeInstances\",\"ms\":300}"
        "}]");
    assert_int_equal(rig_call(&r, RUN "a", &body), 400);
    assert_non_null(strstr(buf_str(&body), "MaxSpotInstanceCountExceeded"));
    assert_int_equal(rig_call(&r, RUN "a", &body), 503);
    assert_non_null(strstr(buf_str(&body), "RequestLimitExceeded"));
    assert_int_equal(n_launches(&r), 0);
    int64_t before_ms = clock_mono(&clock_system).ms;
    assert_int_equal(rig_call(&r, "Action=DescribeInstances", &body), 200);
    assert_true(clock_mono(&clock_system).ms - before_ms >= 300);
    assert_int_equal(rig_call(&r, RUN "a", &body), 200);
    buf_deinit(&body);
    assert_int_equal(rig_stop(&r), 0);
}

static void the_machine_boots_while_the_launch_call_waits(void **state)
{
    struct rig r;
    struct buf body = {0};
    (void)state;
    rig_start(&r, "launch_delay_ms: 400\n");
    int64_t before_ms = clock_mono(&clock_system).ms;
    assert_int_equal(rig_call(&r, RUN "a", &body), 200);
    assert_true(clock_mono(&clock_system).ms - before_ms >= 400);
    assert_int_equal(n_launches(&r), 1);
    json_t *s = rig_state(&r);
    const json_t *i = json_array_get(json_object_get(s, "instances"), 0);
    int64_t launched_ms = json_integer_value(json_object_get(i, "launched_ms"));
    assert_int_equal(json_integer_value(json_object_get(i, "running_ms")) - launched_ms, 50);
    assert_true(json_integer_value(json_object_get(s, "now_ms")) - launched_ms >= 400);
    json_decref(s);
    buf_deinit(&body);
    assert_int_equal(rig_stop(&r), 0);
}

static void user_data_runs_after_the_start_delay(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX];
    pid_t pid[1];
    (void)state;
    rig_start(&r, "start_delay_ms: 400\n");
    rig_make_fifo(&r, "pids");
    rig_launch(&r, id, "#!/bin/sh\necho $$ >%s/pids\nexec sleep 1000\n", r.dir);
    rig_read_pids(&r, "pids", pid, 1);
    json_t *s = rig_state(&r);
    assert_true(
        json_integer_value(json_object_get(s, "now_ms")) - field(&r, id, "running_ms") >= 400);
    json_decref(s);
    assert_int_equal(rig_stop(&r), 0);
}

static void broken_requests_get_clear_refusals(void **state)
{
    struct rig r;
    struct buf body = {0}, large = {0};
    (void)state;
    rig_start(&r, "");
    assert_int_equal(rig_http(r.ec2, "POST", "/", "", "Action=DescribeInstances", &body), 400);
    assert_non_null(strstr(buf_str(&body), "AWSAccessKeyId"));
    assert_int_equal(rig_http(r.ec2, "DELETE", "/", "", "", &body), 400);
    assert_int_equal(rig_call(&r, "Action=DescribeInstances&x=%zz", &body), 400);
    assert_non_null(strstr(buf_str(&body), "MalformedQueryString"));
    assert_int_equal(rig_http(r.control, "GET", "/nowhere", "", "", &body), 404);
    assert_int_equal(rig_http(r.control, "GET", "/events?after=x", "", "", &body), 400);
    assert_int_equal(rig_http(r.control, "POST", "/events", "", "<html>", &body), 400);
    for (int i = 0; i < 20000; i++)
        buf_adds(&large, "0123456789abcdef");
    assert_int_equal(rig_http(r.ec2, "POST", "/", "", buf_str(&large), &body), 413);
    buf_deinit(&large);
    buf_deinit(&body);
    assert_int_equal(rig_stop(&r), 0);
}

/* ---- The price list ---- */

#define LIST                                                                                       \
    "{\"ServiceCode\":\"AmazonEC2\",\"Filters\":[{\"Type\":\"TERM_MATCH\",\"Field\":"              \
    "\"instanceType\",\"Value\":\"g6."                                                             \
    "xlarge\"},{\"Type\":\"TERM_MATCH\",\"Field\":\"marketoption\",\"Value\":\"OnDemand\"}]}"

static void the_price_list_has_its_own_signatures_and_faults(void **state)
{
    struct rig r;
    struct buf body = {0};
    (void)state;
    rig_start(&r, "");
    assert_int_equal(rig_list_call(&r, LIST, &body), 200);
    assert_non_null(strstr(buf_str(&body), "PriceList"));
    assert_int_equal(rig_http(r.ec2, "POST", "/",
                         "X-Amz-Target: AWSPriceListService.GetProducts\r\n", LIST, &body),
        400);
    assert_non_null(strstr(buf_str(&body), "MissingAuthenticationTokenException"));
    assert_int_equal(rig_http(r.ec2, "GET", "/x",
                         "X-Amz-Target: AWSPriceListService.GetProducts\r\n", "", &body),
        400);
    assert_non_null(strstr(buf_str(&body), "UnknownOperationException"));
    rig_event(&r, "{\"refuse\":{\"action\":\"GetProducts\",\"code\":\"AccessDeniedException\"}}");
    assert_int_equal(rig_list_call(&r, LIST, &body), 400);
    assert_non_null(strstr(buf_str(&body), "not authorized to perform: pricing:GetProducts"));
    rig_event(&r, "{\"throttle\":{\"action\":\"GetProducts\"}}");
    assert_int_equal(rig_list_call(&r, LIST, &body), 400);
    assert_non_null(strstr(buf_str(&body), "ThrottlingException"));
    rig_event(&r, "{\"drop_reply\":{\"action\":\"GetProducts\",\"how\":\"error\"}}");
    assert_int_equal(rig_list_call(&r, LIST, &body), 500);
    assert_non_null(strstr(buf_str(&body), "InternalErrorException"));
    rig_event(&r,
        "{\"refuse\":{\"action\":\"GetSpotPlacementScores\",\"code\":\"UnauthorizedOperation\"}}");
    assert_int_equal(
        rig_call(
            &r, "Action=GetSpotPlacementScores&InstanceType.1=g6.xlarge&TargetCapacity=1", &body),
        403);
    assert_int_equal(
        rig_call(
            &r, "Action=GetSpotPlacementScores&InstanceType.1=g6.xlarge&TargetCapacity=1", &body),
        200);
    buf_deinit(&body);
    assert_int_equal(rig_stop(&r), 0);
}

/* ---- The market in real time ---- */

static void a_trace_takes_instances_back(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX], trace[64] = "/tmp/belay-trace.XXXXXX", more[300];
    static const char text[] = "{\"metadata\":{\"gap_seconds\":100},\"data\":[1,0]}";
    struct err e;
    (void)state;
    int fd = mkstemp(trace);
    assert_int_equal(fs_write_all(fd, text, strlen(text), &e), 0);
    close(fd);
    snprintf(more, sizeof(more),
        "  - {zone: us-east-1c, type: g5.xlarge, spot: {trace: %s, speed: 50}}\nnotice_s: 0\n",
        trace);
    rig_start(&r, more);
    struct buf body = {0};
    assert_int_equal(
        rig_call(&r,
            "Action=RunInstances&ImageId=ami-1&InstanceType=g5.xlarge&MinCount=1&MaxCount=1"
            "&InstanceMarketOptions.MarketType=spot",
            &body),
        200);
    snprintf(id, sizeof(id), "%.19s", strstr(buf_str(&body), "<instanceId>") + 12);
    rig_wait(&r, "notice", id); /* at 2 s */
    rig_wait(&r, "terminated", id);
    expect_text(&r, id, "reason", "Server.SpotInstanceTermination");
    buf_deinit(&body);
    unlink(trace);
    assert_int_equal(rig_stop(&r), 0);
}

/* ---- The stock AWS command line ---- */

static const char *find_aws(void)
{
    if (access("/usr/bin/aws", X_OK) == 0)
        return "/usr/bin/aws";
    return system("command -v aws >/dev/null 2>&1") == 0 ? "aws" : NULL;
}

/* Runs it; *ret_json is its output (NULL if none), freed by the caller. Returns its exit code. */
static int aws(struct rig *r, json_t **ret_json, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int aws(struct rig *r, json_t **ret_json, const char *fmt, ...)
{
    char arguments[1024], text[65536];
    struct err e;
    VFORMAT(arguments, fmt);
    char *command = mem_printf("env -i PATH=\"$PATH\" HOME=%s AWS_ACCESS_KEY_ID=" RIG_ACCESS_KEY
                               " AWS_SECRET_ACCESS_KEY=" RIG_SECRET_KEY
                               " AWS_DEFAULT_REGION=us-east-1 AWS_PAGER= AWS_MAX_ATTEMPTS=1 "
                               "%s --output json --endpoint-url http://%s %s 2>%s/aws.err",
        r->dir, find_aws(), r->ec2, arguments, r->dir);
    FILE *f = popen(command, "re");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text), f);
    int status = pclose(f);
    free(command);
    *ret_json = NULL;
    if (n > 0 && json_parse(text, n, sizeof(text), ret_json, &e) < 0)
        fail_msg("aws %s printed: %.*s", arguments, (int)n, text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static json_t *aws_ok(struct rig *r, const char *arguments)
{
    json_t *v;
    if (aws(r, &v, "%s", arguments) != 0)
        fail_msg("aws %s failed; see %s/aws.err", arguments, r->dir);
    return v;
}

static const char *first_state(const json_t *described)
{
    const json_t *reservation = json_array_get(json_object_get(described, "Reservations"), 0);
    const json_t *instance = json_array_get(json_object_get(reservation, "Instances"), 0);
    return json_string_value(json_object_get(json_object_get(instance, "State"), "Name"));
}

static void the_stock_command_line_works(void **state)
{
    struct rig r;
    char id[RIG_ID_MAX], arguments[500], script[128];
    struct err e;
    (void)state;
    if (!find_aws()) {
        print_message("SKIP: the AWS command line is not installed\n");
        return;
    }
    rig_start(&r, "");
    rig_path(&r, "boot.sh", script, sizeof(script));
    assert_int_equal(fs_write_atomic(script, "#!/bin/sh\nexec sleep 1000\n", 26, 0600, &e), 0);
    snprintf(arguments, sizeof(arguments),
        "ec2 run-instances --image-id ami-1 --instance-type g6.xlarge --user-data file://%s "
        "--client-token t1 --instance-market-options MarketType=spot --tag-specifications "
        "'ResourceType=instance,Tags=[{Key=belay:cluster,Value=a b}]'",
        script);
    json_t *v = aws_ok(&r, arguments);
    STR_COPY(id, json_string_value(json_object_get(
                     json_array_get(json_object_get(v, "Instances"), 0), "InstanceId")));
    json_decref(v);
    rig_wait(&r, "running", id);
    v = aws_ok(&r, "ec2 describe-instances --filters 'Name=tag:belay:cluster,Values=a b' "
                   "Name=instance-state-name,Values=running");
    assert_string_equal(first_state(v), "running");
    json_decref(v);
    v = aws_ok(&r, "ec2 describe-spot-price-history --instance-types g6.xlarge --start-time "
                   "2020-01-01 --max-items 1");
    assert_int_equal(json_array_size(json_object_get(v, "SpotPriceHistory")), 1);
    json_decref(v);
    v = aws_ok(&r, "ec2 get-spot-placement-scores --instance-types g6.xlarge g5.xlarge g4dn.xlarge "
                   "--target-capacity 1 --single-availability-zone --region-names us-east-1");
    const json_t *score = json_array_get(json_object_get(v, "SpotPlacementScores"), 0);
    assert_string_equal(
        json_string_value(json_object_get(score, "AvailabilityZoneId")), "use1-az1");
    assert_int_equal(json_integer_value(json_object_get(score, "Score")), 10);
    json_decref(v);
    v = aws_ok(&r, "pricing get-products --service-code AmazonEC2 --filters "
                   "Type=TERM_MATCH,Field=instanceType,Value=g6.xlarge "
                   "Type=TERM_MATCH,Field=operatingSystem,Value=Windows "
                   "--max-items 10");
    assert_int_equal(json_array_size(json_object_get(v, "PriceList")), 1);
    json_decref(v);
    assert_int_equal(aws(&r, &v, "pricing get-products --service-code AmazonS3"), 254);
    snprintf(arguments, sizeof(arguments), "ec2 terminate-instances --instance-ids %s", id);
    json_decref(aws_ok(&r, arguments));
    rig_wait(&r, "terminated", id);
    assert_int_equal(aws(&r, &v, "ec2 describe-instances --instance-ids i-00000000000000000"), 254);
    assert_int_equal(
        aws(&r, &v, "ec2 run-instances --image-id ami-1 --instance-type g6.xlarge --dry-run"), 254);
    assert_int_equal(rig_stop(&r), 0);
}

/* ---- At the real address ---- */

enum { NOT_ALLOWED = 77 };

static int set_address(const char *name, const char *address)
{
    struct ifreq ifr = {0};
    struct sockaddr_in a = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
    inet_pton(AF_INET, address, &a.sin_addr);
    memcpy(&ifr.ifr_addr, &a, sizeof(a));
    int rc = ioctl(fd, SIOCSIFADDR, &ifr);
    ifr.ifr_flags = IFF_UP | IFF_RUNNING;
    if (rc == 0)
        rc = ioctl(fd, SIOCSIFFLAGS, &ifr);
    close(fd);
    return rc;
}

/* In a child with its own network namespace. */
static int serve_at_the_real_address(void)
{
    struct rig r;
    char id[RIG_ID_MAX];
    struct buf body = {0};
    int flags = getuid() == 0 ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER;
    if (unshare(flags) < 0 || set_address("lo", "127.0.0.1") < 0 ||
        set_address("lo:1", "169.254.169.254") < 0)
        return NOT_ALLOWED;
    rig_start(&r, "metadata: {host: 169.254.169.254, port: 80}\n");
    rig_launch(&r, id,
        "#!/bin/sh\n[ \"$BELAY_METADATA\" = http://169.254.169.254 ] || exit 1\nexec sleep 1000\n");
    rig_wait(&r, "running", id);
    bool is_right =
        read_metadata("169.254.169.254", "/latest/meta-data/instance-id", &body) == 200 &&
        str_eq(buf_str(&body), id);
    buf_deinit(&body);
    return rig_stop(&r) == 0 && is_right ? 0 : 1;
}

static void metadata_can_stand_at_the_real_address(void **state)
{
    int status;
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(serve_at_the_real_address());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_ALLOWED) {
        print_message("SKIP: no network namespaces here\n");
        return;
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reclaim_kills_the_whole_tree_at_its_deadline),
        cmocka_unit_test(a_reclaim_without_notice_kills_at_once),
        cmocka_unit_test(terminate_asks_first_and_kills_then),
        cmocka_unit_test(sigterm_leaves_nothing),
        cmocka_unit_test(a_killed_emulator_leaves_nothing),
        cmocka_unit_test(a_killed_holder_leaves_nothing),
        cmocka_unit_test(a_machine_whose_last_process_ends_has_powered_off),
        cmocka_unit_test(user_data_that_is_no_script_is_not_run),
        cmocka_unit_test(user_data_gets_few_variables_and_no_more),
        cmocka_unit_test(the_notice_stands_at_the_metadata_service),
        cmocka_unit_test(lost_replies_have_had_their_effect),
        cmocka_unit_test(refusals_throttles_and_slow_answers_come_as_ordered),
        cmocka_unit_test(the_machine_boots_while_the_launch_call_waits),
        cmocka_unit_test(user_data_runs_after_the_start_delay),
        cmocka_unit_test(broken_requests_get_clear_refusals),
        cmocka_unit_test(the_price_list_has_its_own_signatures_and_faults),
        cmocka_unit_test(a_trace_takes_instances_back),
        cmocka_unit_test(the_stock_command_line_works),
        cmocka_unit_test(metadata_can_stand_at_the_real_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
