/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches by fleet of the aws driver, and the launch templates that they need.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "aws_rig.h"
#include <stdio.h>
#include <string.h>

#define TEMPLATE_MADE                                                                              \
    "<CreateLaunchTemplateResponse><launchTemplate/></CreateLaunchTemplateResponse>"
#define TEMPLATE_DELETED                                                                           \
    "<DeleteLaunchTemplateResponse><launchTemplate/></DeleteLaunchTemplateResponse>"
#define NO_TEMPLATES                                                                               \
    "<DescribeLaunchTemplatesResponse><launchTemplates/></DescribeLaunchTemplatesResponse>"
#define EC2_ERROR(code)                                                                            \
    "<Response><Errors><Error><Code>" code                                                         \
    "</Code><Message>no</Message></Error></Errors></Response>"

static void launch_fleet(struct aws_rig *g, int expected)
{
    static const struct cloud_target others[] = {
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
        .refused = outcome_refused};
    g->got.refused[0] = '\0';
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
    aws_rig_finish(g, expected);
}

static bool asked(const struct aws_rig *g, size_t i, const char *text)
{
    return strstr(buf_str(&g->http.requests[i].body), text) != NULL;
}

static void a_fleet_may_give_another_machine_and_names_the_refusing_places(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add_file(&g->http, 200, "create_fleet_half.xml");
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    fake_http_add(&g->http, 200, NO_TEMPLATES);
    launch_fleet(g, 0);
    assert_string_equal(g->got.instance.id, "i-5678901234example0");
    assert_string_equal(g->got.instance.zone, "us-east-1c");
    assert_string_equal(g->got.instance.type, "g5.xlarge");
    assert_string_equal(g->got.instance.token, "belay-lab-17");
    assert_string_equal(g->got.instance.cluster, "lab");
    assert_int_equal(g->got.instance.market, CLOUD_SPOT);
    assert_int_equal(g->got.instance.state, CLOUD_PENDING);
    assert_string_equal(g->got.refused, "us-east-1b g6.xlarge no-capacity;us-east-1b g6e.xlarge "
                                        "quota;us-east-1c g6e.xlarge quota;");
    assert_int_equal(g->http.n_requests, 4);
    assert_true(asked(g, 0, "Action=CreateLaunchTemplate&"));
    assert_true(asked(
        g, 1, "Action=CreateFleet&Version=2016-11-15&Type=instant&ClientToken=belay-lab-17&"));
    assert_false(asked(g, 1, "UserData"));
    assert_true(asked(g, 2, "Action=DeleteLaunchTemplate&"));
    assert_true(asked(g, 3, "Action=DescribeLaunchTemplates&"));
    aws_rig_assert_signed(g, 1, "127.0.0.1:4566", "20260822T120000Z");
}

static void a_repeated_fleet_says_the_same(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
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
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add(&g->http, 200, none);
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    fake_http_add(&g->http, 200, NO_TEMPLATES);
    launch_fleet(g, ERR_CONFIG);
    assert_non_null(strstr(g->got.e.text, "InvalidFleetConfiguration: not in that zone"));
    /* Throttled or not, its token is used up. */
    assert_string_equal(g->got.refused, "us-east-1c g5.xlarge no-capacity;");
    fake_http_add(&g->http, 200, TEMPLATE_MADE);
    fake_http_add(&g->http, 200, silent);
    fake_http_add(&g->http, 200, TEMPLATE_DELETED);
    launch_fleet(g, ERR_NO_CAPACITY);
    assert_string_equal(g->got.refused, "");
}

static void a_refused_fleet_leaves_no_template(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
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
    struct aws_rig *g = *state;
    aws_rig_create(g);
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
static void list_fleets_instance(struct aws_rig *g, int status, const char *tidied)
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
    g->driver->ops->list(g->driver, "us-east-1", "lab", outcome_list, &g->got);
    aws_rig_finish(g, 0);
}

/* For a launch without an answer the instance is listed; deletions are repeated for a while. */
static void a_template_is_deleted_when_its_instance_is_listed(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
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
    struct aws_rig *g = *state;
    g->options.machine.subnet = "subnet-1";
    aws_rig_create(g);
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
    assert_string_equal(g->got.instance.zone, "us-east-1b");
    assert_string_equal(g->got.instance.type, "g6e.xlarge");
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, aws_rig_setup, aws_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(a_fleet_may_give_another_machine_and_names_the_refusing_places),
        RIG(a_repeated_fleet_says_the_same),
        RIG(a_fleet_that_gives_nothing_is_a_refusal_of_each_place),
        RIG(a_refused_fleet_leaves_no_template),
        RIG(templates_that_were_left_behind_are_deleted),
        RIG(a_template_is_deleted_when_its_instance_is_listed),
        RIG(with_a_subnet_a_fleet_stays_in_its_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
