/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/ec2.h"
#include "fake_http.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct cloud_launch spot_launch(void)
{
    return (struct cloud_launch){
        .token = "belay-lab-17",
        .region = "us-east-1",
        .zone = "us-east-1b",
        .type = "g6.xlarge",
        .market = CLOUD_SPOT,
        .user_data = "#!/bin/sh\n",
        .cluster = "lab",
    };
}

static struct aws_machine machine(void)
{
    return (struct aws_machine){
        .image = "ami-0a1b",
        .subnet = "subnet-0c",
        .security_group = "sg-0d",
        .iam_profile = "agent",
        .disk_gib = 100,
    };
}

static void spot_launch_says_all_that_matters(void **state)
{
    struct cloud_launch l = spot_launch();
    struct aws_machine m = machine();
    struct buf out = {0};
    struct err e;
    (void)state;
    assert_int_equal(ec2_build_run_instances(&l, &m, &out, &e), 0);
    assert_string_equal(buf_str(&out),
        "Action=RunInstances&Version=2016-11-15&ImageId=ami-0a1b&InstanceType=g6.xlarge&MinCount=1&"
        "MaxCount=1"
        "&ClientToken=belay-lab-17&Placement.AvailabilityZone=us-east-1b&SubnetId=subnet-0c&"
        "SecurityGroupId.1=sg-0d&IamInstanceProfile.Name=agent&UserData=IyEvYmluL3NoCg%3D%3D&"
        "InstanceInitiatedShutdownBehavior="
        "terminate"
        "&InstanceMarketOptions.MarketType=spot&InstanceMarketOptions.SpotOptions.SpotInstanceType="
        "one-time&InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=terminate"
        "&MetadataOptions.HttpEndpoint=enabled&MetadataOptions.HttpTokens=required"
        "&MetadataOptions.HttpPutResponseHopLimit=1"
        "&BlockDeviceMapping.1.DeviceName=%2Fdev%2Fxvda&BlockDeviceMapping.1.Ebs.VolumeSize=100"
        "&BlockDeviceMapping.1.Ebs.VolumeType=gp3&BlockDeviceMapping.1.Ebs.DeleteOnTermination=true"
        "&TagSpecification.1.ResourceType=instance"
        "&TagSpecification.1.Tag.1.Key=belay%3Acluster&TagSpecification.1.Tag.1.Value=lab"
        "&TagSpecification.1.Tag.2.Key=belay%3Ainstance&TagSpecification.1.Tag.2.Value=belay-lab-17"
        "&TagSpecification.2.ResourceType=volume"
        "&TagSpecification.2.Tag.1.Key=belay%3Acluster&TagSpecification.2.Tag.1.Value=lab"
        "&TagSpecification.2.Tag.2.Key=belay%3Ainstance&TagSpecification.2.Tag.2.Value=belay-lab-17"
        "&TagSpecification.3.ResourceType=spot-instances-request"
        "&TagSpecification.3.Tag.1.Key=belay%3Acluster&TagSpecification.3.Tag.1.Value=lab"
        "&TagSpecification.3.Tag.2.Key=belay%3Ainstance&TagSpecification.3.Tag.2.Value=belay-lab-"
        "17");
    buf_deinit(&out);
}

static void on_demand_launch_leaves_the_rest_to_the_account(void **state)
{
    struct cloud_launch l = spot_launch();
    struct aws_machine m = machine();
    struct buf out = {0};
    struct err e;
    (void)state;
    l.market = CLOUD_ON_DEMAND;
    l.user_data = NULL;
    m.subnet = m.security_group = m.iam_profile = NULL;
    m.disk_gib = 0;
    assert_int_equal(ec2_build_run_instances(&l, &m, &out, &e), 0);
    assert_null(strstr(buf_str(&out), "spot"));
    assert_null(strstr(buf_str(&out), "SubnetId"));
    assert_null(strstr(buf_str(&out), "SecurityGroup"));
    assert_null(strstr(buf_str(&out), "IamInstanceProfile"));
    assert_null(strstr(buf_str(&out), "UserData"));
    assert_null(strstr(buf_str(&out), "BlockDevice"));
    assert_non_null(strstr(buf_str(&out), "&InstanceInitiatedShutdownBehavior=terminate&"));
    buf_deinit(&out);
}

static void capacity_reservations_are_left_alone(void **state)
{
    struct cloud_launch l = spot_launch();
    struct aws_machine m = machine();
    struct buf out = {0};
    (void)state;
    assert_int_equal(ec2_build_run_instances(&l, &m, &out, NULL), 0);
    /* a spot instance cannot be in one */
    assert_null(strstr(buf_str(&out), "CapacityReservation"));
    l.market = CLOUD_ON_DEMAND;
    for (int k = 0; k < 2; k++) {
        m.uses_reservations = k == 1;
        buf_clear(&out);
        assert_int_equal(ec2_build_run_instances(&l, &m, &out, NULL), 0);
        assert_non_null(strstr(buf_str(&out),
            k == 0 ? "&CapacityReservationSpecification.CapacityReservationPreference=none&"
                   : "&CapacityReservationSpecification.CapacityReservationPreference=open&"));
    }
    buf_deinit(&out);
}

static void a_fleet_takes_its_machine_from_a_template_that_is_named_by_what_is_in_it(void **state)
{
    static const struct cloud_target targets[] = {
        {"us-east-1b", "g6.xlarge"}, {"us-east-1c", "g5.xlarge"}};
    struct cloud_launch l = spot_launch();
    struct aws_machine m = machine();
    struct buf out = {0}, again = {0};
    char name[EC2_TEMPLATE_NAME_MAX], other[EC2_TEMPLATE_NAME_MAX];
    struct err e;
    (void)state;
    m.subnet = NULL;
    assert_int_equal(ec2_build_create_template(&l, &m, name, &out, &e), 0);
    assert_int_equal(strlen(name), strlen("belay-") + 32);
    assert_non_null(strstr(buf_str(&out), "&LaunchTemplateData.ImageId="));
    assert_non_null(strstr(buf_str(&out), "&LaunchTemplateData.UserData="));
    assert_non_null(
        strstr(buf_str(&out), "&LaunchTemplateData.InstanceInitiatedShutdownBehavior=terminate&"));
    assert_non_null(
        strstr(buf_str(&out), "&LaunchTemplateData.TagSpecification.1.ResourceType=instance&"));
    assert_non_null(strstr(buf_str(&out), "&TagSpecification.1.ResourceType=launch-template&"));
    assert_null(strstr(buf_str(&out), "InstanceMarketOptions")); /* part of the fleet's request */
    assert_int_equal(ec2_build_create_template(&l, &m, other, &again, &e), 0);
    assert_string_equal(buf_str(&out), buf_str(&again));
    l.token = "belay-lab-18";
    buf_clear(&again);
    assert_int_equal(ec2_build_create_template(&l, &m, other, &again, &e), 0);
    assert_string_not_equal(name, other);
    buf_clear(&out);
    l.token = "belay-lab-17";
    assert_int_equal(ec2_build_create_fleet(&l, &m, "belay-1", targets, 2, &out, &e), 0);
    assert_string_equal(buf_str(&out),
        "Action=CreateFleet&Version=2016-11-15&Type=instant&ClientToken=belay-lab-17"
        "&TargetCapacitySpecification.TotalTargetCapacity=1"
        "&TargetCapacitySpecification.DefaultTargetCapacityType=spot"
        "&SpotOptions.AllocationStrategy=price-capacity-optimized"
        "&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=belay-1"
        "&LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=1"
        "&LaunchTemplateConfigs.1.Overrides.1.InstanceType=g6.xlarge"
        "&LaunchTemplateConfigs.1.Overrides.1.AvailabilityZone=us-east-1b"
        "&LaunchTemplateConfigs.1.Overrides.2.InstanceType=g5.xlarge"
        "&LaunchTemplateConfigs.1.Overrides.2.AvailabilityZone=us-east-1c");
    l.market = CLOUD_ON_DEMAND;
    buf_clear(&out);
    assert_int_equal(ec2_build_create_fleet(&l, &m, "belay-1", targets, 2, &out, &e), 0);
    assert_non_null(strstr(buf_str(&out), "&OnDemandOptions.AllocationStrategy=prioritized&"));
    assert_non_null(strstr(buf_str(&out), ".Overrides.2.Priority=1"));
    buf_deinit(&out);
    buf_deinit(&again);
}

static void fleets_that_are_malformed_are_refused(void **state)
{
    static const char *const wrong[] = {"<RunInstancesResponse/>", "<CreateFleetResponse>",
        "<CreateFleetResponse><errorSet><item/></errorSet></CreateFleetResponse>",
        "<CreateFleetResponse><fleetInstanceSet><item><instanceIds><item/></instanceIds></item>"
        "</fleetInstanceSet></CreateFleetResponse>",
        "<CreateFleetResponse><fleetInstanceSet><item><instanceIds><item>i-1</item><item>i-2</"
        "item></instanceIds></item></fleetInstanceSet></CreateFleetResponse>",
        "<CreateFleetResponse><fleetInstanceSet><item><instanceIds><item>i-1</item></instanceIds></"
        "item><item><instanceIds><item>i-2</item></instanceIds></item></fleetInstanceSet></"
        "CreateFleetResponse>"};
    struct ec2_fleet *f = mem_alloc(sizeof(*f));
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (ec2_parse_create_fleet(wrong[i], strlen(wrong[i]), f, &e) != ERR_INVALID)
            fail_msg("taken: %s", wrong[i]);
    assert_int_equal(f->n_errors, 0);
    assert_string_equal(f->instance.id, "");
    free(f);
}

static void profile_may_be_an_arn(void **state)
{
    struct cloud_launch l = spot_launch();
    struct aws_machine m = machine();
    struct buf out = {0};
    (void)state;
    m.iam_profile = "arn:aws:iam::111122223333:instance-profile/agent";
    assert_int_equal(ec2_build_run_instances(&l, &m, &out, NULL), 0);
    assert_non_null(strstr(buf_str(&out),
        "&IamInstanceProfile.Arn=arn%3Aaws%3Aiam%3A%3A111122223333%3Ainstance-profile%2Fagent&"));
    buf_deinit(&out);
}

static void launches_that_cannot_be_sent_are_refused(void **state)
{
    struct cloud_launch l = spot_launch(), token = l, data = l;
    struct aws_machine m = machine(), none = m, disk = m;
    struct buf out = {0};
    struct err e;
    char *big = mem_alloc(CLOUD_USER_DATA_MAX + 2);
    (void)state;
    memset(big, 'x', CLOUD_USER_DATA_MAX + 1);
    none.image = NULL;
    token.token = "12345678901234567890123456789012345678901234567890123456789012345";
    data.user_data = big;
    disk.disk_gib = 65537;
    assert_int_equal(ec2_build_run_instances(&l, &none, &out, &e), ERR_CONFIG);
    assert_int_equal(ec2_build_run_instances(&token, &m, &out, &e), ERR_CONFIG);
    assert_int_equal(ec2_build_run_instances(&data, &m, &out, &e), ERR_CONFIG);
    assert_int_equal(ec2_build_run_instances(&l, &disk, &out, &e), ERR_CONFIG);
    assert_int_equal(out.len, 0);
    free(big);
}

static void list_requests_are_numbered_from_one(void **state)
{
    static const char *const types[] = {"g6.xlarge", "m6i.xlarge"}, *const ids[] = {"i-1", "i-2"};
    struct buf out = {0};
    struct wall noon;
    struct err e;
    (void)state;
    assert_int_equal(time_parse_iso("2026-08-22T12:00:00.5Z", &noon, &e), 0);
    ec2_build_describe_instances("lab", &out);
    ec2_add_page("a+b/c=", &out);
    assert_string_equal(buf_str(&out), "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name="
                                       "tag%3Abelay%3Acluster&Filter.1.Value.1=lab"
                                       "&MaxResults=500&NextToken=a%2Bb%2Fc%3D");
    buf_clear(&out);
    ec2_build_describe_instances(NULL, &out);
    assert_string_equal(
        buf_str(&out), "Action=DescribeInstances&Version=2016-11-15&MaxResults=500");
    buf_clear(&out);
    ec2_build_describe_volumes("lab", &out);
    assert_string_equal(buf_str(&out),
        "Action=DescribeVolumes&Version=2016-11-15&Filter.1.Name=status&Filter.1.Value.1=available"
        "&Filter.2.Name=tag%3Abelay%3Acluster&Filter.2.Value.1=lab&MaxResults=500");
    buf_clear(&out);
    ec2_build_describe_volumes(NULL, &out);
    assert_string_equal(buf_str(&out), "Action=DescribeVolumes&Version=2016-11-15&Filter.1.Name="
                                       "status&Filter.1.Value.1=available&MaxResults=500");
    buf_clear(&out);
    assert_int_equal(ec2_build_terminate_instances(ids, 2, &out, &e), 0);
    assert_string_equal(buf_str(&out),
        "Action=TerminateInstances&Version=2016-11-15&InstanceId.1=i-1&InstanceId.2=i-2");
    buf_clear(&out);
    assert_int_equal(ec2_build_spot_prices(types, 2, noon, &out, &e), 0);
    assert_string_equal(buf_str(&out),
        "Action=DescribeSpotPriceHistory&Version=2016-11-15&InstanceType.1=g6.xlarge&InstanceType."
        "2=m6i.xlarge"
        "&ProductDescription.1=Linux%2FUNIX&StartTime=2026-08-22T12%3A00%3A00Z&MaxResults=500");
    assert_int_equal(ec2_build_terminate_instances(ids, 0, &out, &e), ERR_INVALID);
    assert_int_equal(
        ec2_build_terminate_instances(ids, EC2_TERMINATE_MAX + 1, &out, &e), ERR_INVALID);
    assert_int_equal(ec2_build_spot_prices(types, EC2_TYPES_MAX + 1, noon, &out, &e), ERR_INVALID);
    buf_deinit(&out);
}

static void launched_instance_is_read(void **state)
{
    char *body = fake_read_file("run_instances.xml"), at[TIME_ISO_MAX];
    struct cloud_instance i;
    struct err e;
    (void)state;
    assert_int_equal(ec2_parse_run_instances(body, strlen(body), &i, &e), 0);
    assert_string_equal(i.id, "i-0abc1234def567890");
    assert_string_equal(i.token, "belay-lab-17");
    assert_string_equal(i.cluster, "lab");
    assert_string_equal(i.zone, "us-east-1b");
    assert_string_equal(i.type, "g6.xlarge");
    assert_int_equal(i.market, CLOUD_SPOT);
    assert_int_equal(i.state, CLOUD_PENDING);
    assert_false(i.reclaimed);
    time_format_iso(i.launched_at, at);
    assert_string_equal(at, "2026-08-22T12:00:03Z");
    free(body);
}

static void listing_is_read_page_by_page(void **state)
{
    char *one = fake_read_file("describe_instances_1.xml"),
         *two = fake_read_file("describe_instances_2.xml");
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct cloud_instances l = {0};
    struct err e;
    (void)state;
    assert_int_equal(ec2_parse_describe_instances(one, strlen(one), &l, page, &e), 0);
    assert_string_equal(page, "eyJ2IjoiMiIsImMiOiJhK2IvYz0ifQ==");
    assert_int_equal(ec2_parse_describe_instances(two, strlen(two), &l, page, &e), 0);
    assert_string_equal(page, "");
    assert_int_equal(l.n, 4);
    assert_int_equal(l.list[0].state, CLOUD_RUNNING);
    assert_string_equal(l.list[0].token, "belay-lab-1");
    assert_int_equal(l.list[1].state, CLOUD_GONE);
    assert_true(l.list[1].reclaimed);
    assert_string_equal(
        l.list[1].reason, "Server.SpotInstanceTermination: Spot instance termination");
    assert_int_equal(l.list[2].state, CLOUD_RUNNING); /* 272: the high byte is opaque */
    assert_int_equal(l.list[2].market, CLOUD_ON_DEMAND);
    assert_false(wall_is_set(l.list[1].ended_at)); /* EC2 gives no time for a reclaim */
    assert_false(wall_is_set(l.list[2].ended_at));
    assert_int_equal(l.list[3].ended_at.ms, 1787400150000);
    assert_int_equal(l.list[3].state, CLOUD_STOPPING); /* stopped: still exists */
    assert_false(l.list[3].reclaimed);
    assert_string_equal(l.list[3].token, "");
    assert_false(wall_is_set(l.list[3].launched_at));
    cloud_instances_deinit(&l);
    free(one);
    free(two);
}

static void volumes_are_read_page_by_page_without_those_in_use(void **state)
{
    char *one = fake_read_file("describe_volumes_1.xml"),
         *two = fake_read_file("describe_volumes_2.xml");
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct cloud_volumes l = {0};
    struct err e;
    (void)state;
    assert_int_equal(ec2_parse_describe_volumes(one, strlen(one), &l, page, &e), 0);
    assert_string_equal(page, "cGFnZTI=");
    assert_int_equal(l.n, 1); /* one is attached, one is being deleted */
    assert_string_equal(l.list[0].id, "vol-0a01");
    assert_string_equal(l.list[0].name, "someone's & more");
    assert_string_equal(l.list[0].cluster, "lab");
    assert_string_equal(l.list[0].token, "belay-lab-1");
    assert_string_equal(l.list[0].zone, "us-east-1a");
    assert_string_equal(l.list[0].type, "gp3");
    assert_int_equal(l.list[0].gib, 200);
    assert_int_equal(l.list[0].since.ms, 1787400003000);
    assert_int_equal(ec2_parse_describe_volumes(two, strlen(two), &l, page, &e), 0);
    assert_string_equal(page, "");
    assert_int_equal(l.n, 2);
    assert_string_equal(l.list[1].id, "vol-0a04");
    assert_string_equal(l.list[1].name, "");
    assert_string_equal(l.list[1].cluster, "");
    assert_false(wall_is_set(l.list[1].since));
    cloud_volumes_deinit(&l);
    free(one);
    free(two);
}

static void termination_must_be_confirmed_for_each(void **state)
{
    static const char *const ids[] = {"i-0a02", "i-0a01"}, *const more[] = {"i-0a01", "i-0a09"};
    char *body = fake_read_file("terminate_instances.xml");
    struct err e;
    (void)state;
    assert_int_equal(ec2_parse_terminate_instances(body, strlen(body), ids, 2, &e), 0);
    assert_int_equal(ec2_parse_terminate_instances(body, strlen(body), more, 2, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "i-0a09"));
    free(body);
}

static void newest_price_of_each_zone_counts(void **state)
{
    char *one = fake_read_file("spot_prices_1.xml"), *two = fake_read_file("spot_prices_2.xml");
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct cloud_prices l = {0};
    struct err e;
    (void)state;
    assert_int_equal(ec2_parse_spot_prices(one, strlen(one), &l, NULL, page, &e), 0);
    assert_string_equal(page, "more");
    assert_int_equal(l.n, 1);
    assert_int_equal(l.list[0].uusd_h, 410000);
    assert_int_equal(ec2_parse_spot_prices(two, strlen(two), &l, NULL, page, &e), 0);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.list[0].zone, "us-east-1a");
    assert_int_equal(l.list[0].uusd_h, 421500);
    assert_string_equal(l.list[1].zone, "us-east-1b");
    assert_int_equal(l.list[1].uusd_h, 385700);
    cloud_prices_deinit(&l);
    free(one);
    free(two);
}

/* Every parser, on the same bytes. */
static void assert_all_refuse(const char *body, size_t n, const char *expected)
{
    static const char *const ids[] = {"i-1"};
    struct cloud_instance i;
    struct cloud_instances instances = {0};
    struct cloud_prices prices = {0};
    struct cloud_volumes volumes = {0};
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct err e;
    assert_int_equal(ec2_parse_run_instances(body, n, &i, &e), ERR_INVALID);
    assert_int_equal(ec2_parse_describe_volumes(body, n, &volumes, page, &e), ERR_INVALID);
    assert_int_equal(ec2_parse_terminate_instances(body, n, ids, 1, &e), ERR_INVALID);
    assert_int_equal(ec2_parse_spot_prices(body, n, &prices, NULL, page, &e), ERR_INVALID);
    assert_int_equal(ec2_parse_describe_instances(body, n, &instances, page, &e), ERR_INVALID);
    if (!strstr(e.text, expected))
        fail_msg("expected \"%s\" in \"%s\"", expected, e.text);
    cloud_instances_deinit(&instances);
    cloud_prices_deinit(&prices);
    cloud_volumes_deinit(&volumes);
}

static void what_is_no_reply_is_refused(void **state)
{
    char *html = fake_read_file("error_page.html"), *error = fake_read_file("error.xml");
    (void)state;
    assert_all_refuse("", 0, "nothing");
    assert_all_refuse("garbage", 7, "line 1");
    assert_all_refuse(html, strlen(html), "HTML page");
    assert_all_refuse("<html></html>", 13, "found <html>");
    assert_all_refuse("<!DOCTYPE html><html><br></html>", 32, "HTML page");
    assert_all_refuse(error, strlen(error), "found <Response>");
    assert_all_refuse("<a>\xff</a>", 8, "expected XML");
    assert_all_refuse("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", 40, "document type");
    free(html);
    free(error);
}

static void truncated_replies_are_refused(void **state)
{
    char *body = fake_read_file("describe_instances_1.xml"), page[EC2_PAGE_TOKEN_MAX + 1];
    struct err e;
    (void)state;
    /* Up to, and without, the '>' of the last end tag. */
    for (size_t n = 0; n < strlen(body) - 1; n++) {
        struct cloud_instances l = {0};
        assert_int_equal(ec2_parse_describe_instances(body, n, &l, page, &e), ERR_INVALID);
        cloud_instances_deinit(&l);
    }
    free(body);
}

#define ONE(item)                                                                                  \
    "<DescribeInstancesResponse><reservationSet><item><instancesSet><item>" item                   \
    "</item></instancesSet></item></reservationSet></DescribeInstancesResponse>"
#define RUNNING "<instanceState><code>16</code></instanceState>"

static void rows_of_the_wrong_shape_are_refused(void **state)
{
    static const char *const bodies[] = {
        "<DescribeInstancesResponse/>",
        ONE(RUNNING),
        ONE("<instanceId>i-1</instanceId>"),
        ONE("<instanceId>i-1</instanceId><instanceState>16</instanceState>"),
        ONE("<instanceId>i-1</instanceId><instanceState><code>running</code></instanceState>"),
        ONE("<instanceId>i-1</instanceId><instanceState><code>-16</code></instanceState>"),
        ONE("<instanceId>i-1</instanceId><instanceState><code>17</code></instanceState>"),
        ONE("<instanceId><a>i-1</a></instanceId>" RUNNING),
        ONE("<instanceId>i-1</instanceId><launchTime>yesterday</launchTime>" RUNNING),
        ONE("<instanceId>"
            "i-1111111111111111111111111111111111111111111111111111111111111111111111111111111111</"
            "instanceId>" RUNNING),
        NULL,
    };
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct err e;
    (void)state;
    for (size_t i = 0; bodies[i]; i++) {
        struct cloud_instances l = {0};
        assert_int_equal(
            ec2_parse_describe_instances(bodies[i], strlen(bodies[i]), &l, page, &e), ERR_INVALID);
        cloud_instances_deinit(&l);
    }
}

#define VOLUME(item)                                                                               \
    "<DescribeVolumesResponse><volumeSet><item>" item                                              \
    "</item></volumeSet></DescribeVolumesResponse>"
#define FREE "<volumeId>vol-1</volumeId><status>available</status>"

static void volumes_of_the_wrong_shape_are_refused(void **state)
{
    static const char *const bodies[] = {
        "<DescribeVolumesResponse/>",
        VOLUME(FREE),
        VOLUME("<volumeId>vol-1</volumeId><size>1</size>"),
        VOLUME("<status>available</status><size>1</size>"),
        VOLUME(FREE "<size/>"),
        VOLUME(FREE "<size>large</size>"),
        VOLUME(FREE "<size>-1</size>"),
        VOLUME(FREE "<size>1048577</size>"),
        VOLUME(FREE "<size>1</size><createTime>yesterday</createTime>"),
        VOLUME(FREE "<size>1</size><volumeType><a/></volumeType>"),
        VOLUME(
            FREE "<size>1</"
                 "size><volumeType>"
                 "1111111111111111111111111111111111111111111111111111111111111111</volumeType>"),
        VOLUME(FREE "<size>1</size><tagSet><item><key>belay:cluster</key>"
                    "<value>1111111111111111111111111111111111111111111111111111111111111111</"
                    "value></item></tagSet>"),
        NULL,
    };
    static const char good[] = VOLUME(FREE "<size>1</size>"),
                      none[] = "<DescribeVolumesResponse><volumeSet/></DescribeVolumesResponse>";
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct cloud_volumes l = {0};
    struct err e;
    (void)state;
    for (size_t i = 0; bodies[i]; i++)
        assert_int_equal(
            ec2_parse_describe_volumes(bodies[i], strlen(bodies[i]), &l, page, &e), ERR_INVALID);
    assert_int_equal(l.n, 0);
    assert_int_equal(ec2_parse_describe_volumes(none, strlen(none), &l, page, &e), 0);
    for (int i = 0; i < CLOUD_VOLUMES_MAX; i++)
        assert_int_equal(ec2_parse_describe_volumes(good, strlen(good), &l, page, &e), 0);
    assert_int_equal(ec2_parse_describe_volumes(good, strlen(good), &l, page, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "more than 10000 volumes"));
    cloud_volumes_deinit(&l);
}

#define TERMINATED(reason)                                                                         \
    ONE("<instanceId>i-1</instanceId><instanceState><code>48</code></instanceState>" reason)

static struct wall end_of(const char *body)
{
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct cloud_instances l = {0};
    struct err e;
    assert_int_equal(ec2_parse_describe_instances(body, strlen(body), &l, page, &e), 0);
    struct wall at = l.list[0].ended_at;
    cloud_instances_deinit(&l);
    return at;
}

static void the_time_of_an_end_is_read_from_the_words(void **state)
{
    (void)state;
    assert_int_equal(
        end_of(TERMINATED("<reason>User initiated (2026-08-22 12:02:30 GMT)</reason>")).ms,
        1787400150000);
    assert_int_equal(
        end_of(TERMINATED("<reason>A (new) reason (2026-08-22 12:02:30 GMT)</reason>")).ms,
        1787400150000);
    assert_int_equal(end_of(TERMINATED("<reason>(1970-01-01 00:00:00 GMT)</reason>")).ms, 0);
}

/* They are texts for people: an unparsable one is not an error of the row. */
static void words_without_a_time_leave_the_end_unknown(void **state)
{
    static const char *const bodies[] = {
        TERMINATED(""),
        TERMINATED("<reason/>"),
        TERMINATED("<reason>Server.SpotInstanceTermination</reason>"),
        TERMINATED("<reason>User initiated (</reason>"),
        TERMINATED("<reason>User initiated ( GMT)</reason>"),
        TERMINATED("<reason>User initiated (2026-08-22 12:02:30)</reason>"),
        TERMINATED("<reason>User initiated (2026-08-22 12:02:30 CET)</reason>"),
        TERMINATED("<reason>User initiated (2026-08-22T12:02:30 GMT)</reason>"),
        TERMINATED("<reason>User initiated (2026-08-22 12:02 GMT)</reason>"),
        TERMINATED("<reason>User initiated (2026-02-30 12:02:30 GMT)</reason>"),
        TERMINATED("<reason>User initiated (2026-08-22 24:02:30 GMT)</reason>"),
        TERMINATED("<reason>User initiated (1969-08-22 12:02:30 GMT)</reason>"),
        TERMINATED("<reason>User initiated (2026-08-22 12:02:30.123 GMT)</reason>"),
        TERMINATED("<reason>User initiated (2026-08-22 12:02:30 GMT) again</reason>"),
        TERMINATED("<reason>User initiated (\xc3\xbc\xc3\xbc-08-22 12:02:30 GMT)</reason>"),
        TERMINATED("<reason><a>(2026-08-22 12:02:30 GMT)</a></reason>"),
        ONE("<instanceId>i-1</instanceId>" RUNNING
            "<reason>User initiated (2026-08-22 12:02:30 GMT)</reason>"),
        NULL,
    };
    (void)state;
    for (size_t i = 0; bodies[i]; i++)
        if (wall_is_set(end_of(bodies[i])))
            fail_msg("a time in %s", bodies[i]);
}

static void empty_listing_is_a_listing(void **state)
{
    static const char body[] =
        "<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>";
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct cloud_instances l = {0};
    (void)state;
    assert_int_equal(ec2_parse_describe_instances(body, strlen(body), &l, page, NULL), 0);
    assert_int_equal(l.n, 0);
}

static const struct {
    int status;
    const char *code;
    enum err_kind kind;
    enum ec2_remedy remedy;
} refusals[] = {
    {500, "InsufficientInstanceCapacity", ERR_NO_CAPACITY, EC2_REMEDY_NONE},
    {400, "UnfulfillableCapacity", ERR_NO_CAPACITY, EC2_REMEDY_NONE},
    {400, "SpotMaxPriceTooLow", ERR_NO_CAPACITY, EC2_REMEDY_NONE},
    {400, "MaxSpotInstanceCountExceeded", ERR_QUOTA, EC2_REMEDY_NONE},
    {400, "VcpuLimitExceeded", ERR_QUOTA, EC2_REMEDY_NONE},
    {503, "RequestLimitExceeded", ERR_THROTTLED, EC2_REMEDY_NONE},
    {400, "Throttling", ERR_THROTTLED, EC2_REMEDY_NONE},
    {400, "ThrottlingException", ERR_THROTTLED, EC2_REMEDY_NONE},
    {500, "InternalError", ERR_UNAVAILABLE, EC2_REMEDY_NONE},
    {503, "Unavailable", ERR_UNAVAILABLE, EC2_REMEDY_NONE},
    {400, "InvalidInstanceID.NotFound", ERR_NOT_FOUND, EC2_REMEDY_NONE},
    {400, "InvalidInstanceID.Malformed", ERR_INVALID, EC2_REMEDY_NONE},
    {400, "InvalidAMIID.NotFound", ERR_CONFIG, EC2_REMEDY_NONE},
    {400, "InvalidSubnetID.NotFound", ERR_CONFIG, EC2_REMEDY_NONE},
    {400, "InvalidParameterCombination", ERR_CONFIG, EC2_REMEDY_NONE},
    {400, "Unsupported", ERR_CONFIG, EC2_REMEDY_NONE},
    {400, "IdempotentParameterMismatch", ERR_CONFLICT, EC2_REMEDY_NONE},
    {403, "UnauthorizedOperation", ERR_DENIED, EC2_REMEDY_NONE},
    {400, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", ERR_DENIED, EC2_REMEDY_NONE},
    {401, "AuthFailure", ERR_DENIED, EC2_REMEDY_CREDENTIALS},
    {400, "ExpiredToken", ERR_DENIED, EC2_REMEDY_CREDENTIALS},
    {400, "RequestExpired", ERR_DENIED, EC2_REMEDY_CLOCK},
    {400, "SomethingNew", ERR_CONFIG, EC2_REMEDY_NONE},
    {500, "SomethingNew", ERR_UNAVAILABLE, EC2_REMEDY_NONE},
};

static void refusals_are_distinguished_by_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        char *body = mem_printf(
            "<Response><Errors><Error><Code>%s</Code><Message>Words.</Message></Error></Errors>"
            "<RequestID>1</RequestID></Response>",
            refusals[i].code);
        enum ec2_remedy remedy;
        struct err e;
        assert_int_equal(
            ec2_parse_error(refusals[i].status, body, strlen(body), &remedy, &e), refusals[i].kind);
        assert_int_equal(e.kind, refusals[i].kind);
        assert_int_equal(remedy, refusals[i].remedy);
        assert_non_null(strstr(e.text, refusals[i].code));
        free(body);
    }
}

static void other_error_documents_are_read_too(void **state)
{
    static const char body[] =
        "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidClientTokenId</Code>"
        "<Message>The security token is invalid</Message></Error></ErrorResponse>";
    enum ec2_remedy remedy;
    struct err e;
    (void)state;
    assert_int_equal(ec2_parse_error(403, body, strlen(body), &remedy, &e), ERR_DENIED);
    assert_non_null(strstr(e.text, "The security token is invalid"));
}

static void errors_without_a_code_go_by_the_status(void **state)
{
    char *html = fake_read_file("error_page.html");
    enum ec2_remedy remedy;
    struct err e;
    (void)state;
    assert_int_equal(ec2_parse_error(502, html, strlen(html), &remedy, &e), ERR_UNAVAILABLE);
    assert_string_equal(
        e.text, "EC2 answered HTTP 502 with an HTML page (a proxy or load balancer in between?)");
    assert_int_equal(ec2_parse_error(503, "", 0, &remedy, &e), ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "an empty body"));
    assert_int_equal(ec2_parse_error(429, "slow down", 9, &remedy, &e), ERR_THROTTLED);
    assert_int_equal(
        ec2_parse_error(403, "<Response><Errors/></Response>", 30, &remedy, &e), ERR_DENIED);
    assert_int_equal(ec2_parse_error(302, "", 0, &remedy, &e), ERR_INVALID);
    free(html);
}

static void refusals_do_not_repeat_what_is_secret_or_noise(void **state)
{
    static const char mismatch[] =
        "<Response><Errors><Error><Code>SignatureDoesNotMatch</Code><Message>The "
        "Canonical String should have been "
        "x-amz-security-token:SESSION</Message></Error></Errors></Response>";
    static const char denied[] =
        "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not "
        "authorized. Encoded authorization failure message: "
        "AAAABBBB</Message></Error></Errors></Response>";
    enum ec2_remedy remedy;
    struct err e;
    (void)state;
    assert_int_equal(ec2_parse_error(403, mismatch, strlen(mismatch), &remedy, &e), ERR_DENIED);
    assert_null(strstr(e.text, "SESSION"));
    assert_int_equal(ec2_parse_error(403, denied, strlen(denied), &remedy, &e), ERR_DENIED);
    assert_non_null(strstr(e.text, "You are not authorized."));
    assert_null(strstr(e.text, "AAAABBBB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spot_launch_says_all_that_matters),
        cmocka_unit_test(on_demand_launch_leaves_the_rest_to_the_account),
        cmocka_unit_test(profile_may_be_an_arn),
        cmocka_unit_test(capacity_reservations_are_left_alone),
        cmocka_unit_test(a_fleet_takes_its_machine_from_a_template_that_is_named_by_what_is_in_it),
        cmocka_unit_test(fleets_that_are_malformed_are_refused),
        cmocka_unit_test(launches_that_cannot_be_sent_are_refused),
        cmocka_unit_test(list_requests_are_numbered_from_one),
        cmocka_unit_test(launched_instance_is_read),
        cmocka_unit_test(listing_is_read_page_by_page),
        cmocka_unit_test(volumes_are_read_page_by_page_without_those_in_use),
        cmocka_unit_test(volumes_of_the_wrong_shape_are_refused),
        cmocka_unit_test(termination_must_be_confirmed_for_each),
        cmocka_unit_test(newest_price_of_each_zone_counts),
        cmocka_unit_test(what_is_no_reply_is_refused),
        cmocka_unit_test(truncated_replies_are_refused),
        cmocka_unit_test(rows_of_the_wrong_shape_are_refused),
        cmocka_unit_test(the_time_of_an_end_is_read_from_the_words),
        cmocka_unit_test(words_without_a_time_leave_the_end_unknown),
        cmocka_unit_test(empty_listing_is_a_listing),
        cmocka_unit_test(refusals_are_distinguished_by_code),
        cmocka_unit_test(other_error_documents_are_read_too),
        cmocka_unit_test(errors_without_a_code_go_by_the_status),
        cmocka_unit_test(refusals_do_not_repeat_what_is_secret_or_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
