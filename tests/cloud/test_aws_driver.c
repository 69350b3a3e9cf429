/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/aws.h"
#include "cloud/aws/sigv4.h"
#include "fake_http.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOON_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define ENDPOINT "http://127.0.0.1:4566/"

/* A driver with keys from the environment, and the outcome of its last call. */
struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct aws_options options;
    struct cloud_driver *driver;
    int completions;
    struct err e; /* ERR_NONE = success */
    struct cloud_instance instance;
    struct cloud_instance list[8];
    struct cloud_price prices[8];
    struct cloud_volume volumes[8];
    size_t n;
    char refused[256]; /* "ZONE TYPE KIND;" of each place, in order of the reports */
};

static void complete(struct rig *g, const struct err *e)
{
    g->completions++;
    g->e = e ? *e : (struct err){0};
}

static void on_launch(void *ctx, const struct err *e, const struct cloud_instance *i)
{
    struct rig *g = ctx;
    complete(g, e);
    if (!e)
        g->instance = *i;
}

static void on_list(void *ctx, const struct err *e, const struct cloud_instance *list, size_t n)
{
    struct rig *g = ctx;
    complete(g, e);
    assert_true(n <= 8);
    g->n = n;
    if (n > 0)
        memcpy(g->list, list, n * sizeof(*list));
}

static void on_done(void *ctx, const struct err *e)
{
    complete(ctx, e);
}

static void on_prices(void *ctx, const struct err *e, const struct cloud_price *list, size_t n)
{
    struct rig *g = ctx;
    complete(g, e);
    assert_true(n <= 8);
    g->n = n;
    if (n > 0)
        memcpy(g->prices, list, n * sizeof(*list));
}

static void on_volumes(void *ctx, const struct err *e, const struct cloud_volume *list, size_t n)
{
    struct rig *g = ctx;
    complete(g, e);
    assert_true(n <= 8);
    g->n = n;
    if (n > 0)
        memcpy(g->volumes, list, n * sizeof(*list));
}

static void clear_environment(void)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_EC2_METADATA_DISABLED"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    clear_environment();
    setenv("HOME", "/nonexistent", 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    g->options = (struct aws_options){.machine = {.image = "ami-0a1b"},
        .endpoint_url = ENDPOINT,
        .http = &g->http.client,
        .timers = &g->vt.timers};
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    if (g->driver)
        g->driver->ops->destroy(g->driver);
    while (vtimers_run_next(&g->vt))
        ;
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}

static void create(struct rig *g)
{
    struct err e;
    if (aws_driver_create(&g->options, &g->driver, &e) != 0)
        fail_msg("%s", e.text);
}

/* Runs until the pending call has completed: once, and never inside the call. */
static void finish(struct rig *g, int expected)
{
    assert_int_equal(g->completions, 0);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->completions, 1);
    g->completions = 0;
    if (g->e.kind != (enum err_kind)expected)
        fail_msg("expected %s, got %s: %s", err_kind_name(expected), err_kind_name(g->e.kind),
            g->e.text);
}

static void launch(struct rig *g, int expected)
{
    static const struct cloud_launch l = {
        .token = "belay-lab-17",
        .region = "us-east-1",
        .zone = "us-east-1b",
        .type = "g6.xlarge",
        .market = CLOUD_SPOT,
        .user_data = "#!/bin/sh\n",
        .cluster = "lab",
    };
    g->driver->ops->launch(g->driver, &l, on_launch, g);
    finish(g, expected);
}

/* A server's check: everything is taken from the received request. */
static void assert_signed(struct rig *g, size_t i, const char *host, const char *timestamp)
{
    char *authorization = fake_http_header(&g->http, i, "Authorization");
    char *token = fake_http_header(&g->http, i, "X-Amz-Security-Token");
    char hash[SIGV4_HEX_MAX], expected[SIGV4_HEX_MAX];
    const struct buf *body = &g->http.requests[i].body;
    struct sigv4_claim claim;
    struct err e;
    sigv4_sha256_hex(buf_str(body), body->len, hash);
    assert_int_equal(sigv4_parse_authorization(authorization, &claim, &e), 0);
    assert_string_equal(claim.access_key, "AKIDEXAMPLE");
    assert_string_equal(
        claim.signed_headers, token ? "content-type;host;x-amz-date;x-amz-security-token"
                                    : "content-type;host;x-amz-date");
    struct sigv4_header headers[] = {
        {"content-type", "application/x-www-form-urlencoded; charset=utf-8"}, {"host", host},
        {"x-amz-date", timestamp}, {"x-amz-security-token", token}};
    struct sigv4_request r = {"POST", "/", headers, token ? 4 : 3, hash};
    struct sigv4_scope scope = {timestamp, "us-east-1", "ec2"};
    assert_int_equal(sigv4_signature(&r, &scope, SECRET, claim.signed_headers, expected, &e), 0);
    assert_string_equal(claim.signature, expected);
    free(authorization);
    free(token);
}

static void launch_is_one_signed_post(void **state)
{
    struct rig *g = *state;
    setenv("AWS_SESSION_TOKEN", "SESSION", 1);
    create(g);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_string_equal(g->instance.id, "i-0abc1234def567890");
    assert_int_equal(g->http.n_requests, 1);
    assert_string_equal(g->http.requests[0].method, "POST");
    assert_string_equal(g->http.requests[0].url, ENDPOINT);
    assert_true(str_starts(buf_str(&g->http.requests[0].body), "Action=RunInstances&"));
    assert_true(fake_http_sent(
        &g->http, 0, "Content-Type: application/x-www-form-urlencoded; charset=utf-8"));
    assert_true(fake_http_sent(&g->http, 0, "X-Amz-Date: 20260822T120000Z"));
    assert_true(fake_http_sent(&g->http, 0, "X-Amz-Security-Token: SESSION"));
    assert_signed(g, 0, "127.0.0.1:4566", "20260822T120000Z");
}

static void without_an_endpoint_the_region_names_it(void **state)
{
    struct rig *g = *state;
    g->options.endpoint_url = NULL;
    create(g);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_string_equal(g->http.requests[0].url, "https://ec2.us-east-1.amazonaws.com/");
    assert_signed(g, 0, "ec2.us-east-1.amazonaws.com", "20260822T120000Z");
}

static void regions_cannot_name_another_host(void **state)
{
    static const char *const wrong[] = {"", "us-east-1.example.com/", "a@b", "US-EAST-1", NULL};
    struct rig *g = *state;
    g->options.endpoint_url = NULL;
    create(g);
    for (size_t i = 0; wrong[i]; i++) {
        g->driver->ops->list(g->driver, wrong[i], "lab", on_list, g);
        finish(g, ERR_CONFIG);
    }
    g->driver->ops->list(g->driver, NULL, "lab", on_list, g);
    finish(g, ERR_CONFIG);
    assert_int_equal(g->http.n_requests, 0);
}

static void launches_that_cannot_be_sent_are_refused(void **state)
{
    struct rig *g = *state;
    struct cloud_launch l = {
        .token = "t", .region = "us-east-1", .zone = "z", .type = "t", .cluster = "lab"};
    g->options.machine.image = NULL;
    create(g);
    g->driver->ops->launch(g->driver, &l, on_launch, g);
    finish(g, ERR_CONFIG);
    assert_non_null(strstr(g->e.text, "the image is missing"));
    g->driver->ops->terminate(g->driver, "us-east-1", NULL, 0, on_done, g);
    finish(g, ERR_INVALID);
    assert_int_equal(g->http.n_requests, 0);
}

static void refusals_reach_the_caller_without_a_retry(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 500, "error.xml");
    launch(g, ERR_NO_CAPACITY);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    launch(g, ERR_TIMEOUT);
    fake_http_add_file(&g->http, 502, "error_page.html");
    launch(g, ERR_UNAVAILABLE);
    fake_http_add_file(&g->http, 200, "error_page.html");
    launch(g, ERR_INVALID);
    assert_non_null(strstr(g->e.text, "aws RunInstances, us-east-1"));
    assert_int_equal(g->http.n_requests, 4);
}

static void listing_follows_all_pages_and_keeps_our_own(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "describe_instances_1.xml");
    fake_http_add_file(&g->http, 200, "describe_instances_2.xml");
    g->driver->ops->list(g->driver, "us-east-1", "lab", on_list, g);
    finish(g, 0);
    assert_int_equal(g->http.n_requests, 2);
    assert_true(str_ends(
        buf_str(&g->http.requests[1].body), "&NextToken=eyJ2IjoiMiIsImMiOiJhK2IvYz0ifQ%3D%3D"));
    assert_signed(g, 1, "127.0.0.1:4566", "20260822T120000Z");
    assert_int_equal(g->n, 3); /* the fourth belongs to "laboratory" */
    assert_string_equal(g->list[2].id, "i-0a03");
}

static void volumes_are_our_own_of_all_pages_or_all(void **state)
{
    struct rig *g = *state;
    create(g);
    for (int all = 0; all < 2; all++) {
        fake_http_add_file(&g->http, 200, "describe_volumes_1.xml");
        fake_http_add_file(&g->http, 200, "describe_volumes_2.xml");
        g->driver->ops->volumes(g->driver, "us-east-1", all ? NULL : "lab", on_volumes, g);
        finish(g, 0);
        assert_int_equal(g->http.n_requests, 2 * (all + 1));
        assert_true(
            str_ends(buf_str(&g->http.requests[2 * all + 1].body), "&NextToken=cGFnZTI%3D"));
        assert_int_equal(g->n, all ? 2 : 1);
        assert_string_equal(g->volumes[0].id, "vol-0a01");
    }
    fake_http_add_file(&g->http, 200, "describe_volumes_1.xml");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    g->driver->ops->volumes(g->driver, "us-east-1", "lab", on_volumes, g);
    finish(g, ERR_TIMEOUT);
    assert_int_equal(g->n, 0);
    g->driver->ops->volumes(g->driver, "../x", "lab", on_volumes, g);
    finish(g, ERR_CONFIG);
}

static void volumes_that_are_denied_name_the_permission(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 403,
        "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not "
        "authorized.</Message></Error></Errors></Response>");
    g->driver->ops->volumes(g->driver, "us-east-1", "lab", on_volumes, g);
    finish(g, ERR_DENIED);
    assert_string_equal(g->e.text,
        "aws DescribeVolumes, us-east-1: it needs the permission ec2:DescribeVolumes: EC2 refused: "
        "UnauthorizedOperation: You are not authorized.; to do: the policy in "
        "docs/how-to/clouds/aws.md "
        "lists what is needed");
}

static void half_a_listing_is_an_error(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "describe_instances_1.xml");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    g->driver->ops->list(g->driver, "us-east-1", "lab", on_list, g);
    finish(g, ERR_TIMEOUT);
    assert_int_equal(g->n, 0);
}

static void endless_pages_are_an_error(void **state)
{
    static const char body[] =
        "<DescribeInstancesResponse><reservationSet/><nextToken>again</nextToken>"
        "</DescribeInstancesResponse>";
    struct rig *g = *state;
    create(g);
    fake_http_route(&g->http, "POST", "/", 200, body);
    g->http.keep_none = true;
    g->driver->ops->list(g->driver, "us-east-1", "lab", on_list, g);
    finish(g, ERR_INVALID);
    assert_non_null(strstr(g->e.text, "pages"));
}

/* ---- fleets ---- */

#define TEMPLATE_MADE                                                                              \
    "<CreateLaunchTemplateResponse><launchTemplate/></CreateLaunchTemplateResponse>"
#define TEMPLATE_DELETED                                                                           \
    "<DeleteLaunchTemplateResponse><launchTemplate/></DeleteLaunchTemplateResponse>"
#define NO_TEMPLATES                                                                               \
    "<DescribeLaunchTemplatesResponse><launchTemplates/></DescribeLaunchTemplatesResponse>"
#define EC2_ERROR(code)                                                                            \
    "<Response><Errors><Error><Code>" code                                                         \
    "</Code><Message>no</Message></Error></Errors></Response>"

static void on_refused(void *ctx, const struct cloud_place *p, const struct err *e)
{
    struct rig *g = ctx;
    size_t n = strlen(g->refused);
    assert_int_equal(g->completions, 0);
    snprintf(g->refused + n, sizeof(g->refused) - n, "%s %s %s;", p->zone, p->type,
        err_kind_name(e->kind));
}

static void launch_fleet(struct rig *g, int expected)
{
    static const struct cloud_place others[] = {
        {"us-east-1c", "g5.xlarge"}, {"us-east-1b", "g6e.xlarge"}, {"us-east-1c", "g6e.xlarge"}};
    const struct cloud_launch l = {.token = "belay-lab-17",
        .region = "us-east-1",
        .zone = "us-east-1b",
        .type = "g6.xlarge",
        .market = CLOUD_SPOT,
        .user_data = "#!/bin/sh\n",
        .cluster = "lab",
        .alternatives = others,
        .n_alternatives = 3,
        .refused = on_refused};
    g->refused[0] = '\0';
    g->driver->ops->launch(g->driver, &l, on_launch, g);
    finish(g, expected);
}

static bool asked(const struct rig *g, size_t i, const char *text)
{
    return strstr(buf_str(&g->http.requests[i].body), text) != NULL;
}

static void a_fleet_may_give_another_machine_and_says_who_refused(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add_file(&g->http, 200, "create_fleet_half.xml");
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    fake_http_add(&g->http, 200, NO_TEMPLATES);
    launch_fleet(g, 0);
    assert_string_equal(g->instance.id, "i-5678901234example0");
    assert_string_equal(g->instance.zone, "us-east-1c");
    assert_string_equal(g->instance.type, "g5.xlarge");
    assert_string_equal(g->instance.token, "belay-lab-17");
    assert_string_equal(g->instance.cluster, "lab");
    assert_int_equal(g->instance.market, CLOUD_SPOT);
    assert_int_equal(g->instance.state, CLOUD_PENDING);
    assert_string_equal(g->refused, "us-east-1b g6.xlarge no-capacity;us-east-1b g6e.xlarge "
                                    "quota;us-east-1c g6e.xlarge quota;");
    assert_int_equal(g->http.n_requests, 4);
    assert_true(asked(g, 0, "Action=CreateLaunchTemplate&"));
    assert_true(asked(
        g, 1, "Action=CreateFleet&Version=2016-11-15&Type=instant&ClientToken=belay-lab-17&"));
    assert_false(asked(g, 1, "UserData"));
    assert_true(asked(g, 2, "Action=DeleteLaunchTemplate&"));
    assert_true(asked(g, 3, "Action=DescribeLaunchTemplates&"));
    assert_signed(g, 1, "127.0.0.1:4566", "20260822T120000Z");
}

static void a_repeated_fleet_says_the_same(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    launch_fleet(g, ERR_TIMEOUT); /* the template stays: the outcome is unknown */
    fake_http_add(&g->http, 400, EC2_ERROR("InvalidLaunchTemplateName.AlreadyExistsException"));
    fake_http_add_file(&g->http, 200, "create_fleet_half.xml");
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    fake_http_add(&g->http, 200, NO_TEMPLATES);
    launch_fleet(g, 0);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(
            buf_str(&g->http.requests[i].body), buf_str(&g->http.requests[i + 2].body));
}

static void a_fleet_that_gives_nothing_is_a_refusal_of_each_place(void **state)
{
    static const char none[] =
        "<CreateFleetResponse><fleetId>fleet-1</fleetId><errorSet>"
        "<item><launchTemplateAndOverrides><overrides><instanceType>g5.xlarge</instanceType>"
        "<availabilityZone>us-east-1c</availabilityZone></overrides></launchTemplateAndOverrides>"
        "<errorCode>RequestLimitExceeded</errorCode></item>"
        "<item><launchTemplateAndOverrides><overrides><instanceType>g6.xlarge</instanceType>"
        "<availabilityZone>us-east-1b</availabilityZone></overrides></launchTemplateAndOverrides>"
        "<errorCode>InvalidFleetConfiguration</errorCode><errorMessage>not in that "
        "zone</errorMessage></item>"
        "</errorSet><fleetInstanceSet/></CreateFleetResponse>";
    static const char silent[] =
        "<CreateFleetResponse><fleetId>fleet-1</fleetId></CreateFleetResponse>";
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add(&g->http, 200, none);
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    fake_http_add(&g->http, 200, NO_TEMPLATES);
    launch_fleet(g, ERR_CONFIG);
    assert_non_null(strstr(g->e.text, "InvalidFleetConfiguration: not in that zone"));
    /* Throttled or not, its token is used up. */
    assert_string_equal(g->refused, "us-east-1c g5.xlarge no-capacity;");
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add(&g->http, 200, silent);
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    launch_fleet(g, ERR_NO_CAPACITY);
    assert_string_equal(g->refused, "");
}

static void a_refused_fleet_leaves_no_template(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 403, EC2_ERROR("UnauthorizedOperation"));
    launch_fleet(g, ERR_DENIED);
    assert_int_equal(g->http.n_requests, 1);
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add(&g->http, 400, EC2_ERROR("IdempotentParameterMismatch"));
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    /* the request to look for others: it may be */
    fake_http_add(&g->http, 403, EC2_ERROR("UnauthorizedOperation"));
    launch_fleet(g, ERR_CONFLICT);
    assert_true(asked(g, 3, "Action=DeleteLaunchTemplate&"));
    /* A template created a moment ago is not visible everywhere yet: this is temporary. */
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add(&g->http, 400, EC2_ERROR("InvalidLaunchTemplateName.NotFoundException"));
    launch_fleet(g, ERR_UNAVAILABLE);
    assert_int_equal(g->http.n_requests, 7);
}

static void templates_that_were_left_behind_are_deleted(void **state)
{
    static const char old[] =
        "<DescribeLaunchTemplatesResponse><launchTemplates>"
        "<item><launchTemplateName>belay-old</"
        "launchTemplateName><createTime>2026-08-22T10:59:59Z</createTime></item>"
        "<item><launchTemplateName>belay-new</"
        "launchTemplateName><createTime>2026-08-22T11:59:00Z</createTime></item>"
        "<item><launchTemplateName>theirs</"
        "launchTemplateName><createTime>2020-08-22T11:59:00Z</createTime></item>"
        "</launchTemplates></DescribeLaunchTemplatesResponse>";
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add_file(&g->http, 200, "create_fleet_half.xml");
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    fake_http_add(&g->http, 200, old);
    fake_http_add(&g->http, 400, EC2_ERROR("InvalidLaunchTemplateName.NotFoundException"));
    launch_fleet(g, 0);
    assert_int_equal(g->http.n_requests, 5);
    assert_true(
        asked(g, 4, "Action=DeleteLaunchTemplate&Version=2016-11-15&LaunchTemplateName=belay-old"));
}

/* tidied: the reply to the resulting deletion; NULL if none may follow. */
static void list_fleets_instance(struct rig *g, int status, const char *tidied)
{
    fake_http_add(&g->http, 200,
        "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-1</"
        "instanceId><instanceState><code>16</code></instanceState><clientToken>belay-lab-17</"
        "clientToken><tagSet><item>"
        "<key>belay:cluster</key><value>lab</value></item></tagSet></item></instancesSet></item>"
        "</reservationSet></DescribeInstancesResponse>");
    if (tidied)
        fake_http_add(&g->http, status, tidied);
    if (status == 503) /* the first, after which the others are searched */
        fake_http_add(&g->http, 200, NO_TEMPLATES);
    g->driver->ops->list(g->driver, "us-east-1", "lab", on_list, g);
    finish(g, 0);
}

/* For a launch without an answer the instance is listed; deletions are repeated for a while. */
static void a_template_is_deleted_when_its_instance_is_listed(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    launch_fleet(g, ERR_TIMEOUT);
    list_fleets_instance(g, 503, EC2_ERROR("Unavailable"));
    assert_int_equal(g->http.n_requests, 5);
    assert_true(asked(g, 3, "Action=DeleteLaunchTemplate&"));
    list_fleets_instance(g, 0, NULL); /* not at once */
    assert_int_equal(g->http.n_requests, 6);
    vtimers_advance(&g->vt, SECONDS_MS(1));
    list_fleets_instance(g, 200, TEMPLATE_DELETED);
    vtimers_advance(&g->vt, SECONDS_MS(600));
    assert_int_equal(g->http.n_requests, 8);
    assert_string_equal(buf_str(&g->http.requests[3].body), buf_str(&g->http.requests[7].body));
    list_fleets_instance(g, 0, NULL);
    assert_int_equal(g->http.n_requests, 9);
}

/* A subnet is in one zone: places in other zones are impossible. */
static void with_a_subnet_a_fleet_stays_in_its_zone(void **state)
{
    struct rig *g = *state;
    g->options.machine.subnet = "subnet-1";
    create(g);
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add(&g->http, 200,
        "<CreateFleetResponse><fleetInstanceSet><item><instanceIds><item>i-1</item></instanceIds>"
        "<instanceType>g6e.xlarge</instanceType></item></fleetInstanceSet></CreateFleetResponse>");
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    fake_http_add(&g->http, 200, NO_TEMPLATES);
    launch_fleet(g, 0);
    assert_false(asked(g, 1, "us-east-1c"));
    assert_false(asked(g, 1, "Overrides.3"));
    assert_true(asked(g, 1,
        "Overrides.2.InstanceType=g6e.xlarge&LaunchTemplateConfigs.1.Overrides.2.SubnetId=subnet-"
        "1"));
    assert_string_equal(g->instance.zone, "us-east-1b");
    assert_string_equal(g->instance.type, "g6e.xlarge");
}

static void termination_is_confirmed(void **state)
{
    static const char *const ids[] = {"i-0a01", "i-0a02"};
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "terminate_instances.xml");
    g->driver->ops->terminate(g->driver, "us-east-1", ids, 2, on_done, g);
    finish(g, 0);
    fake_http_add(&g->http, 400,
        "<Response><Errors><Error><Code>InvalidInstanceID.NotFound</Code><Message>no</Message></"
        "Error></Errors></Response>");
    g->driver->ops->terminate(g->driver, "us-east-1", ids, 2, on_done, g);
    finish(g, ERR_NOT_FOUND);
}

static void prices_are_the_newest_of_all_pages(void **state)
{
    static const char *const types[] = {"g6.xlarge"};
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "spot_prices_1.xml");
    fake_http_add_file(&g->http, 200, "spot_prices_2.xml");
    g->driver->ops->prices(g->driver, "us-east-1", types, 1, on_prices, g);
    finish(g, 0);
    assert_int_equal(g->n, 2);
    assert_int_equal(g->prices[0].uusd_h, 421500);
    assert_int_equal(g->prices[1].uusd_h, 385700);
}

#define EXPIRED                                                                                    \
    "<Response><Errors><Error><Code>RequestExpired</Code><Message>old</Message></Error></"         \
    "Errors></Response>"
#define AUTH_FAILURE                                                                               \
    "<Response><Errors><Error><Code>AuthFailure</Code><Message>no</Message></Error></Errors></"    \
    "Response>"

static void wrong_clock_is_mended_once_and_for_all(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 400, EXPIRED);
    fake_http_with(&g->http, "Date: Sat, 22 Aug 2026 13:00:00 GMT");
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_true(fake_http_sent(&g->http, 0, "X-Amz-Date: 20260822T120000Z"));
    assert_true(fake_http_sent(&g->http, 1, "X-Amz-Date: 20260822T130000Z"));
    assert_signed(g, 1, "127.0.0.1:4566", "20260822T130000Z");
    launch(g, 0);
    assert_true(fake_http_sent(&g->http, 2, "X-Amz-Date: 20260822T130000Z"));
    /* The same launch, byte for byte, because its token is bound to these parameters. */
    assert_string_equal(buf_str(&g->http.requests[0].body), buf_str(&g->http.requests[1].body));
}

static void clock_is_mended_only_once_a_call(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 400, EXPIRED);
    fake_http_with(&g->http, "Date: Sat, 22 Aug 2026 13:00:00 GMT");
    fake_http_add(&g->http, 400, EXPIRED);
    fake_http_with(&g->http, "Date: Sat, 22 Aug 2026 13:00:00 GMT");
    launch(g, ERR_DENIED);
    fake_http_add(&g->http, 400, EXPIRED); /* without a date there is nothing to go by */
    launch(g, ERR_DENIED);
    assert_int_equal(g->http.n_requests, 3);
}

static void refused_keys_of_the_environment_are_final(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    launch(g, ERR_DENIED);
    assert_int_equal(g->http.n_requests, 1);
}

static void refused_keys_of_a_role_are_renewed_once(void **state)
{
    struct rig *g = *state;
    clear_environment();
    g->options.metadata_url = "http://127.0.0.1:1338";
    fake_http_route(&g->http, "PUT", "/latest/api/token", 200, "AQAE==");
    fake_http_route(&g->http, "GET", "/security-credentials/", 200, "agent");
    fake_http_route(&g->http, "GET", "/security-credentials/agent", 200,
        "{\"Code\":\"Success\",\"AccessKeyId\":\"AKIDEXAMPLE\",\"SecretAccessKey\":\"" SECRET
        "\",\"Token\":\"T\",\"Expiration\":\"2026-08-22T18:00:00Z\"}");
    create(g);
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_int_equal(fake_http_count(&g->http, "GET", "/security-credentials/agent"), 2);
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    launch(g, ERR_DENIED);
}

static void missing_credentials_fail_the_call(void **state)
{
    struct rig *g = *state;
    clear_environment();
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    create(g);
    launch(g, ERR_CONFIG);
    assert_int_equal(g->http.n_requests, 0);
}

static void without_credentials_a_launch_is_refused_for_certain(void **state)
{
    struct rig *g = *state;
    clear_environment();
    g->options.metadata_url = "http://127.0.0.1:1338";
    create(g);
    fake_http_route(&g->http, "PUT", "/latest/api/token", 0, ""); /* no answer */
    launch(g, ERR_CONFIG);
    assert_non_null(strstr(
        g->e.text, "no credentials, so nothing was sent: AWS credentials: not in the environment"));
    assert_int_equal(fake_http_count(&g->http, "POST", "/"), 0);
    g->driver->ops->list(g->driver, "us-east-1", "lab", on_list, g);
    finish(g, ERR_TIMEOUT);
    g->driver->ops->credentials(g->driver, "us-east-1", on_done, g);
    finish(g, ERR_TIMEOUT);
    assert_int_equal(fake_http_count(&g->http, "POST", "/"), 0);
}

static void credentials_lost_after_a_request_leave_the_launch_undecided(void **state)
{
    struct rig *g = *state;
    clear_environment();
    g->options.metadata_url = "http://127.0.0.1:1338";
    create(g);
    fake_http_route(&g->http, "PUT", "/latest/api/token", 200, "AQAE==");
    fake_http_add(&g->http, 200, "agent");
    fake_http_add(&g->http, 200,
        "{\"Code\":\"Success\",\"AccessKeyId\":\"AKIDEXAMPLE\",\"SecretAccessKey\":\"" SECRET
        "\",\"Token\":\"T\",\"Expiration\":\"2026-08-22T18:00:00Z\"}");
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    fake_http_add_error(&g->http, ERR_TIMEOUT); /* of the renewal */
    launch(g, ERR_TIMEOUT);
}

static void environment_is_read_at_creation_only(void **state)
{
    struct rig *g = *state;
    create(g);
    setenv("AWS_ACCESS_KEY_ID", "LATER", 1);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_signed(g, 0, "127.0.0.1:4566", "20260822T120000Z");
}

static void endpoints_must_be_https_or_this_machine(void **state)
{
    static const char *const wrong[] = {"", "ec2.amazonaws.com", "http://ec2.amazonaws.com/",
        "http://127.evil.com/", "http://10.0.0.1/", "https://", "https://h/path", "https://user@h/",
        "https://h?x", "ftp://h/", "http://127.0.0.1@h/", NULL};
    static const char *const fine[] = {"https://ec2.example.com", "https://ec2.example.com:8443/",
        "http://127.0.0.1:1/", "http://localhost:4566", "http://[::1]:4566/", NULL};
    struct rig *g = *state;
    struct err e;
    for (size_t i = 0; wrong[i]; i++) {
        g->options.endpoint_url = wrong[i];
        assert_int_equal(aws_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
        assert_null(g->driver);
    }
    for (size_t i = 0; fine[i]; i++) {
        g->options.endpoint_url = fine[i];
        create(g);
        g->driver->ops->destroy(g->driver);
        g->driver = NULL;
    }
}

static void default_port_is_not_in_the_signed_host(void **state)
{
    struct rig *g = *state;
    g->options.endpoint_url = "https://ec2.example.com:443/";
    create(g);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_signed(g, 0, "ec2.example.com", "20260822T120000Z");
}

static void destroy_completes_what_is_under_way(void **state)
{
    static const char *const types[] = {"g6.xlarge"};
    struct rig *g = *state;
    create(g);
    g->http.silent = true;
    g->driver->ops->prices(g->driver, "us-east-1", types, 1, on_prices, g);
    while (g->http.n_requests == 0)
        assert_true(vtimers_run_next(&g->vt));
    g->driver->ops->list(g->driver, "us-east-1", "lab", on_list, g); /* not begun yet */
    assert_int_equal(g->completions, 0);
    g->driver->ops->destroy(g->driver);
    g->driver = NULL;
    assert_int_equal(g->completions, 2);
    assert_int_equal(g->e.kind, ERR_CANCELLED);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->completions, 2);
    assert_int_equal(g->http.n_cancelled, 1);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(launch_is_one_signed_post),
        RIG(without_an_endpoint_the_region_names_it),
        RIG(regions_cannot_name_another_host),
        RIG(launches_that_cannot_be_sent_are_refused),
        RIG(refusals_reach_the_caller_without_a_retry),
        RIG(listing_follows_all_pages_and_keeps_our_own),
        RIG(volumes_are_our_own_of_all_pages_or_all),
        RIG(volumes_that_are_denied_name_the_permission),
        RIG(half_a_listing_is_an_error),
        RIG(endless_pages_are_an_error),
        RIG(termination_is_confirmed),
        RIG(a_fleet_may_give_another_machine_and_says_who_refused),
        RIG(a_repeated_fleet_says_the_same),
        RIG(a_fleet_that_gives_nothing_is_a_refusal_of_each_place),
        RIG(a_refused_fleet_leaves_no_template),
        RIG(templates_that_were_left_behind_are_deleted),
        RIG(a_template_is_deleted_when_its_instance_is_listed),
        RIG(with_a_subnet_a_fleet_stays_in_its_zone),
        RIG(prices_are_the_newest_of_all_pages),
        RIG(wrong_clock_is_mended_once_and_for_all),
        RIG(clock_is_mended_only_once_a_call),
        RIG(refused_keys_of_the_environment_are_final),
        RIG(refused_keys_of_a_role_are_renewed_once),
        RIG(missing_credentials_fail_the_call),
        RIG(without_credentials_a_launch_is_refused_for_certain),
        RIG(credentials_lost_after_a_request_leave_the_launch_undecided),
        RIG(environment_is_read_at_creation_only),
        RIG(endpoints_must_be_https_or_this_machine),
        RIG(default_port_is_not_in_the_signed_host),
        RIG(destroy_completes_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
