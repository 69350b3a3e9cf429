/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's listings: instances, volumes, prices, spot requests and zones, with filters and pages.
 */
#include "base/mem.h"
#include "base/str.h"
#include "tests/emulator/world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count(const char *text, const char *word)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)); p++)
        n++;
    return n;
}

static int n_found(struct world *w, const char *query)
{
    struct ec2_reply reply;
    char *body = mem_printf("Action=DescribeInstances%s", query);
    world_call(w, body, &reply);
    if (reply.status != 200)
        fail_msg("%s: %s", body, buf_str(&reply.body));
    int n = count(buf_str(&reply.body), "<instanceId>");
    buf_deinit(&reply.body);
    free(body);
    return n;
}

static void expect_volumes(struct world *w, const char *query, int expected, const char *text)
{
    struct ec2_reply reply;
    char *body = mem_printf("Action=DescribeVolumes%s", query);
    world_call(w, body, &reply);
    int n = count(buf_str(&reply.body), "<size>");
    if (reply.status != 200 || n != expected || !strstr(buf_str(&reply.body), text))
        fail_msg("%s: %d of %d volumes, %s", body, n, expected, buf_str(&reply.body));
    buf_deinit(&reply.body);
    free(body);
}

#define AVAILABLE "&Filter.1.Name=status&Filter.1.Value.1=available"
#define IN_USE "&Filter.1.Name=status&Filter.1.Value.1=in-use"

static void a_volume_is_deleted_with_its_instance_unless_it_is_to_stay(void **state)
{
    struct world w;
    (void)state;
    world_init(&w);
    w.image_volume_gib = 200;
    world_start(&w);
    world_expect(&w,
        "Action=RunInstances&ImageId=ami-1&InstanceType=g5.xlarge&MinCount=1&MaxCount=1"
        "&BlockDeviceMapping.1.DeviceName=/dev/"
        "xvda&BlockDeviceMapping.1.Ebs.VolumeSize=30&BlockDeviceMapping.1.Ebs.VolumeType=gp2"
        "&BlockDeviceMapping.2.DeviceName=/dev/"
        "sdf&BlockDeviceMapping.2.Ebs.VolumeSize=50&BlockDeviceMapping.2.Ebs.DeleteOnTermination="
        "false"
        "&TagSpecification.1.ResourceType=volume&TagSpecification.1.Tag.1.Key=who&TagSpecification."
        "1.Tag.1.Value=we",
        200, "instanceId");
    world_advance(&w, 2000);
    expect_volumes(&w, IN_USE, 3, "<size>30</size>");
    expect_volumes(&w,
        "&Filter.1.Name=tag:who&Filter.1.Value.1=we&Filter.2.Name=volume-type&Filter.2.Value.1=gp2",
        1, "<deleteOnTermination>true<");
    expect_volumes(&w, AVAILABLE, 0, "<volumeSet></volumeSet>");
    region_terminate(&w.region, w.region.instances[0], w.now);
    expect_volumes(&w, IN_USE, 3, "attached"); /* shutting down */
    region_machine_gone(&w.region, w.region.instances[0], false, w.now, w.now);
    expect_volumes(&w, "", 2, "<size>200</size>");
    expect_volumes(
        &w, AVAILABLE "&Filter.2.Name=tag:who&Filter.2.Value.1=we", 2, "<size>50</size>");
    expect_volumes(&w, "&Filter.1.Name=tag:who&Filter.1.Value.1=you", 0, "<volumeSet></volumeSet>");
    char *one = mem_printf("&VolumeId.1=%s", w.region.volumes[1]->id);
    expect_volumes(&w, one, 1, "<size>50</size>");
    free(one);
    world_stop(&w);
}

static void volumes_exist_from_the_start_and_are_listed_page_by_page(void **state)
{
    struct region_volume volumes[7] = {
        {.zone = "us-east-1a", .spec = {.gib = 1, .type = "gp3"}, .age_ms = 86400000}};
    struct world w;
    (void)state;
    for (int k = 1; k < 7; k++)
        volumes[k] = volumes[0];
    world_init(&w);
    w.options.volumes = volumes;
    w.options.n_volumes = 7;
    world_start(&w);
    expect_volumes(
        &w, AVAILABLE "&MaxResults=5", 5, "<createTime>2026-08-21T12:00:00.000Z</createTime>");
    expect_volumes(
        &w, AVAILABLE "&MaxResults=5&NextToken=YWZ0ZXI6NQ%3D%3D", 2, "</volumeSet></Desc");
    w.page = 3;
    expect_volumes(&w, AVAILABLE "&MaxResults=500", 3, "<nextToken>YWZ0ZXI6Mw==<");
    world_expect(&w, "Action=DescribeVolumes&MaxResults=4", 400, "InvalidParameterValue");
    world_expect(&w, "Action=DescribeVolumes&Filter.1.Name=colour&Filter.1.Value.1=red", 400,
        "InvalidParameterValue");
    world_expect(&w, "Action=DescribeVolumes&VolumeId.1=vol-1", 400, "InvalidVolume.NotFound");
    world_expect(&w, "Action=DescribeVolumes&Colour=red", 400, "UnknownParameter");
    char *both =
        mem_printf("Action=DescribeVolumes&MaxResults=5&VolumeId.1=%s", w.region.volumes[0]->id);
    world_expect(&w, both, 400, "InvalidParameterCombination");
    free(both);
    world_expect(&w,
        "Action=RunInstances&ImageId=ami-1&InstanceType=g5.xlarge&MinCount=1&MaxCount=1&"
        "BlockDeviceMapping.1.DeviceName=/dev/sdf"
        "&BlockDeviceMapping.1.Ebs.VolumeType=gp9",
        400, "gp9");
    world_expect(&w,
        "Action=RunInstances&ImageId=ami-1&InstanceType=g5.xlarge&MinCount=1&MaxCount=1&"
        "BlockDeviceMapping.1.DeviceName=/dev/sdf"
        "&BlockDeviceMapping.1.Ebs.VolumeSize=0",
        400, "VolumeSize");
    world_stop(&w);
}

static void filters_select_instances(void **state)
{
    struct world w;
    char id[CLOUD_NAME_MAX], query[200];
    (void)state;
    world_begin(&w);
    world_run_instance(&w, RUN SPOT IN_A TAG "Key=team&TagSpecification.1.Tag.1.Value=nlp", id);
    world_run_instance(
        &w, RUN IN_A TAG "Key=team&TagSpecification.1.Tag.1.Value=vision&ClientToken=c1", id);
    world_advance(&w, 1000);
    world_run_instance(&w, RUN SPOT "&Placement.AvailabilityZone=us-east-1b", id);
#define F(name, value) "&Filter.1.Name=" name "&Filter.1.Value.1=" value
    assert_int_equal(n_found(&w, ""), 3);
    assert_int_equal(n_found(&w, F("tag:team", "nlp")), 1);
    assert_int_equal(n_found(&w, F("tag:team", "nlp") "&Filter.1.Value.2=vision"), 2);
    assert_int_equal(n_found(&w, F("tag:team", "*i*o?")), 1);
    assert_int_equal(n_found(&w, F("tag:team", "%5C*")), 0);
    assert_int_equal(n_found(&w, F("tag-key", "team")), 2);
    assert_int_equal(n_found(&w, F("instance-state-name", "pending")), 1);
    assert_int_equal(n_found(&w, F("instance-state-code", "16")), 2);
    assert_int_equal(n_found(&w, F("instance-lifecycle", "spot")), 2);
    assert_int_equal(n_found(&w, F("availability-zone", "us-east-1a")), 2);
    assert_int_equal(n_found(&w, F("client-token", "c1")), 1);
    assert_int_equal(
        n_found(&w, F("instance-lifecycle", "spot") "&Filter.2.Name=tag-key&Filter.2.Value.1=team"),
        1);
    assert_int_equal(n_found(&w, F("instance-id", "i-00000000000000000")), 0);
    snprintf(query, sizeof(query), F("instance-id", "%s"), id);
    assert_int_equal(n_found(&w, query), 1);
    snprintf(query, sizeof(query), "&InstanceId.1=%s", id);
    assert_int_equal(n_found(&w, query), 1);
    world_expect(&w, "Action=DescribeInstances" F("colour", "red"), 400, "InvalidParameterValue");
    world_expect(
        &w, "Action=DescribeInstances&Filter.1.Name=tag-key", 400, "InvalidParameterValue");
    world_stop(&w);
}

static void pages_hold_every_instance_once(void **state)
{
    struct world w;
    struct ec2_reply reply;
    int total = 0, n_pages = 0;
    char token[200] = "";
    (void)state;
    world_begin(&w);
    world_expect(&w,
        "Action=RunInstances&ImageId=ami-1&InstanceType=g5.xlarge&MinCount=17&MaxCount=17", 200,
        "instanceId");
    do {
        struct buf body = {0};
        buf_adds(&body, "Action=DescribeInstances&MaxResults=5&NextToken=");
        str_url_encode(&body, token, strlen(token));
        world_call(&w, buf_str(&body), &reply);
        int n = count(buf_str(&reply.body), "<instanceId>");
        assert_true(n <= 5);
        total += n;
        n_pages++;
        reply_text(&reply, "nextToken", token, sizeof(token));
        buf_deinit(&reply.body);
        buf_deinit(&body);
    } while (token[0]);
    assert_int_equal(total, 17);
    assert_int_equal(n_pages, 4);
    w.page = 2; /* as EC2 may */
    world_call(&w, "Action=DescribeInstances&MaxResults=5", &reply);
    assert_int_equal(count(buf_str(&reply.body), "<instanceId>"), 2);
    assert_non_null(strstr(buf_str(&reply.body), "<nextToken>"));
    buf_deinit(&reply.body);
    world_expect(&w, "Action=DescribeInstances&MaxResults=4", 400, "InvalidParameterValue");
    world_expect(&w, "Action=DescribeInstances&MaxResults=1001", 400, "InvalidParameterValue");
    world_expect(&w, "Action=DescribeInstances&NextToken=x", 400, "InvalidNextToken");
    world_expect(&w, "Action=DescribeInstances&NextToken=Zm9v", 400, "InvalidNextToken");
    char id_and_page[200];
    snprintf(id_and_page, sizeof(id_and_page),
        "Action=DescribeInstances&MaxResults=5&InstanceId.1=%s", w.region.instances[0]->id);
    world_expect(&w, id_and_page, 400, "InvalidParameterCombination");
    world_stop(&w);
}

static void a_new_instance_is_invisible_until_the_delay_is_over(void **state)
{
    struct world w;
    char id[CLOUD_NAME_MAX], query[200], terminate[200];
    (void)state;
    world_init(&w);
    w.options.consistency_delay_ms = 5000;
    world_start(&w);
    world_run_instance(&w, RUN SPOT, id);
    snprintf(query, sizeof(query), "Action=DescribeInstances&InstanceId.1=%s", id);
    snprintf(terminate, sizeof(terminate), "Action=TerminateInstances&InstanceId.1=%s", id);
    world_advance(&w, 4999);
    assert_int_equal(n_found(&w, ""), 0);
    world_expect(&w, query, 400, "InvalidInstanceID.NotFound");
    world_expect(&w, terminate, 400, "InvalidInstanceID.NotFound");
    world_advance(&w, 1);
    assert_int_equal(n_found(&w, ""), 1);
    world_expect(&w, query, 200, id);
    world_stop(&w);
}

static void terminated_instances_are_shown_for_an_hour(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_launch(&w, "us-east-1a");
    region_terminate(&w.region, i, w.now);
    world_advance(&w, 3599999);
    assert_int_equal(n_found(&w, ""), 1);
    world_advance(&w, 1);
    assert_int_equal(n_found(&w, ""), 0);
    world_stop(&w);
}

static void price_history_has_the_changes_and_what_was_in_force(void **state)
{
    struct world w;
    struct ec2_reply reply;
    (void)state;
    world_begin(&w);
#define HISTORY                                                                                    \
    "Action=DescribeSpotPriceHistory&InstanceType.1=" TYPE "&AvailabilityZone=us-east-1a"
#define PRICE(usd)                                                                                 \
    "{\"price\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"usd_per_hour\":\"" usd "\"}}"
    world_advance(&w, 60000);
    world_event(&w, PRICE("0.4"));
    world_advance(&w, 60000);
    world_event(&w, PRICE("0.5"));
    world_advance(&w, 60000);
    world_call(&w, HISTORY, &reply);
    const char *text = buf_str(&reply.body);
    assert_int_equal(count(text, "<item>"), 3);
    assert_true(strstr(text, "0.500000") < strstr(text, "0.400000")); /* newest first */
    assert_true(strstr(text, "0.400000") < strstr(text, "0.360000"));
    buf_deinit(&reply.body);
    world_call(&w, HISTORY "&StartTime=2026-08-22T12:01:30Z&EndTime=2026-08-22T12:01:40Z", &reply);
    assert_int_equal(count(buf_str(&reply.body), "<item>"), 1);
    assert_non_null(strstr(buf_str(&reply.body),
        "<spotPrice>0.400000</spotPrice><timestamp>2026-08-22T12:01:00.000Z"));
    buf_deinit(&reply.body);
    world_call(&w, "Action=DescribeSpotPriceHistory&ProductDescription.1=Windows", &reply);
    assert_int_equal(count(buf_str(&reply.body), "<item>"), 0);
    buf_deinit(&reply.body);
    world_expect(&w, HISTORY "&StartTime=yesterday", 400, "InvalidParameterValue");
    world_stop(&w);
}

static void price_history_comes_in_pages(void **state)
{
    struct world w;
    struct ec2_reply reply;
    char token[100], body[300];
    (void)state;
    world_begin(&w);
    world_call(&w, "Action=DescribeSpotPriceHistory&MaxResults=2", &reply);
    assert_int_equal(count(buf_str(&reply.body), "<item>"), 2);
    reply_text(&reply, "nextToken", token, sizeof(token));
    buf_deinit(&reply.body);
    snprintf(body, sizeof(body), "Action=DescribeSpotPriceHistory&MaxResults=2&NextToken=%.*s%s",
        (int)strcspn(token, "="), token,
        strstr(token, "==")  ? "%3D%3D"
        : strchr(token, '=') ? "%3D"
                             : "");
    world_call(&w, body, &reply);
    assert_int_equal(count(buf_str(&reply.body), "<item>"), 1);
    reply_text(&reply, "nextToken", token, sizeof(token));
    assert_string_equal(token, "");
    buf_deinit(&reply.body);
    world_stop(&w);
}

static void spot_requests_turn_before_their_instances(void **state)
{
    struct world w;
    char body[200];
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    snprintf(body, sizeof(body), "Action=DescribeSpotInstanceRequests&SpotInstanceRequestId.1=%s",
        i->spot_request_id);
    world_expect(&w, body, 200, "<state>active</state>");
    world_event(&w, "{\"reclaim\":{\"instance\":\"all\"}}");
    world_expect(&w, body, 200, "instance-terminated-no-capacity");
    assert_int_equal(i->state, INSTANCE_RUNNING);
    world_expect(&w, "Action=DescribeSpotInstanceRequests&SpotInstanceRequestId.1=sir-x", 400,
        "InvalidSpotInstanceRequestID.NotFound");
    world_stop(&w);
}

static void zones_and_status_are_listed(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    world_run(&w, "us-east-1a");
    world_expect(&w, "Action=DescribeAvailabilityZones", 200, "<zoneId>use1-az2</zoneId>");
    world_expect(&w, "Action=DescribeInstanceStatus", 200, "<status>ok</status>");
    world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_select_instances),
        cmocka_unit_test(a_volume_is_deleted_with_its_instance_unless_it_is_to_stay),
        cmocka_unit_test(volumes_exist_from_the_start_and_are_listed_page_by_page),
        cmocka_unit_test(pages_hold_every_instance_once),
        cmocka_unit_test(a_new_instance_is_invisible_until_the_delay_is_over),
        cmocka_unit_test(terminated_instances_are_shown_for_an_hour),
        cmocka_unit_test(price_history_has_the_changes_and_what_was_in_force),
        cmocka_unit_test(price_history_comes_in_pages),
        cmocka_unit_test(spot_requests_turn_before_their_instances),
        cmocka_unit_test(zones_and_status_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
