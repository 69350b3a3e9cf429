/* SPDX-License-Identifier: Apache-2.0
 *
 * The API as a function. Where this project's driver has a builder and a parser, they are used.
 */
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/ec2.h"
#include "tests/emulator/world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- With the driver's own bytes ---- */

static const struct cloud_launch wish = {.token = "job17-try3",
    .region = "us-east-1",
    .zone = "us-east-1a",
    .type = TYPE,
    .market = CLOUD_SPOT,
    .user_data = "#!/bin/sh\nexec belay-agent\n",
    .cluster = "lab & co"};
static const struct aws_machine machine = {
    .image = "ami-1", .iam_profile = "agent", .disk_gib = 30};

static void call_built(struct world *w, struct buf *form, struct ec2_reply *reply)
{
    char *end = strstr(buf_str(form), "&Version=2016-11-15");
    if (!end)
        fail_msg("no version in: %s", buf_str(form));
    /* world_call adds the version at the end */
    memmove(
        end, end + strlen("&Version=2016-11-15"), strlen(end) - strlen("&Version=2016-11-15") + 1);
    world_call(w, buf_str(form), reply);
    if (reply->status != 200)
        fail_msg("%s: %s", buf_str(form), buf_str(&reply->body));
    buf_deinit(form);
}

static void the_driver_launches_and_finds_its_instance(void **state)
{
    struct world w;
    struct buf form = {0};
    struct ec2_reply reply;
    struct cloud_instance i;
    struct cloud_instances list = {0};
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct err e = {0};
    (void)state;
    world_begin(&w);
    assert_int_equal(ec2_build_run_instances(&wish, &machine, &form, &e), 0);
    call_built(&w, &form, &reply);
    if (ec2_parse_run_instances(buf_str(&reply.body), reply.body.len, &i, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(i.state, CLOUD_PENDING);
    assert_string_equal(i.zone, "us-east-1a");
    assert_int_equal(i.market, CLOUD_SPOT);
    assert_string_equal(i.token, "job17-try3");
    buf_deinit(&reply.body);
    const struct launch_spec *s = &w.region.reservations[0]->spec;
    assert_string_equal(buf_str(&s->user_data), wish.user_data);
    assert_false(s->powers_off_to_stop);

    world_advance(&w, 5000);
    ec2_build_describe_instances("lab & co", &form);
    call_built(&w, &form, &reply);
    if (ec2_parse_describe_instances(buf_str(&reply.body), reply.body.len, &list, page, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.list[0].id, i.id);
    assert_string_equal(list.list[0].cluster, "lab & co");
    assert_int_equal(list.list[0].state, CLOUD_RUNNING);
    assert_int_equal(list.list[0].launched_at.ms, START_MS);
    buf_deinit(&reply.body);
    cloud_instances_deinit(&list);
    world_stop(&w);
}

static void the_driver_terminates_and_sees_why(void **state)
{
    struct world w;
    struct buf form = {0};
    struct ec2_reply reply;
    struct cloud_instances list = {0};
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct err e = {0};
    (void)state;
    world_begin(&w);
    struct instance *mine = world_run(&w, "us-east-1a"), *theirs = world_run(&w, "us-east-1a");
    tags_set(&mine->tags, EC2_TAG_CLUSTER, "lab");
    tags_set(&theirs->tags, EC2_TAG_CLUSTER, "lab");
    const char *ids[] = {mine->id};
    assert_int_equal(ec2_build_terminate_instances(ids, 1, &form, &e), 0);
    call_built(&w, &form, &reply);
    if (ec2_parse_terminate_instances(buf_str(&reply.body), reply.body.len, ids, 1, &e) < 0)
        fail_msg("%s", e.text);
    buf_deinit(&reply.body);
    world_event(&w, "{\"reclaim\":{\"instance\":\"all\",\"without_notice\":true}}");
    region_machine_gone(&w.region, theirs, false, w.now, w.now);
    ec2_build_describe_instances("lab", &form);
    call_built(&w, &form, &reply);
    if (ec2_parse_describe_instances(buf_str(&reply.body), reply.body.len, &list, page, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.list[0].state, CLOUD_STOPPING);
    assert_false(list.list[0].reclaimed);
    assert_int_equal(list.list[1].state, CLOUD_GONE);
    assert_true(list.list[1].reclaimed);
    buf_deinit(&reply.body);
    cloud_instances_deinit(&list);
    world_stop(&w);
}

static void the_driver_reads_the_prices_in_force(void **state)
{
    static const char *const types[] = {TYPE};
    struct world w;
    struct buf form = {0};
    struct ec2_reply reply;
    struct cloud_prices prices = {0};
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct err e = {0};
    (void)state;
    world_begin(&w);
    world_advance(&w, 60000);
    world_event(&w,
        "{\"price\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"usd_per_hour\":\"0.41\"}}");
    world_advance(&w, 60000);
    assert_int_equal(ec2_build_spot_prices(types, 1, w.now, &form, &e), 0);
    call_built(&w, &form, &reply);
    if (ec2_parse_spot_prices(buf_str(&reply.body), reply.body.len, &prices, NULL, page, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(prices.n, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            prices.list[i].uusd_h, str_eq(prices.list[i].zone, "us-east-1a") ? 410000 : 360000);
    assert_string_equal(page, "");
    buf_deinit(&reply.body);
    cloud_prices_deinit(&prices);
    world_stop(&w);
}

static void read_scores(
    struct world *w, const char *const *types, size_t n_types, struct ec2_scores *ret_scores)
{
    struct buf form = {0};
    struct ec2_reply reply;
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct err e = {0};
    *ret_scores = (struct ec2_scores){0};
    assert_int_equal(ec2_build_placement_scores(types, n_types, "us-east-1", &form, &e), 0);
    call_built(w, &form, &reply);
    if (ec2_parse_placement_scores(buf_str(&reply.body), reply.body.len, ret_scores, page, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(page, "");
    buf_deinit(&reply.body);
}

/* us-east-1a has capacity for 2 and, of g5.xlarge, unlimited; us-east-1b for 2. */
static void the_driver_reads_scores_that_follow_the_market(void **state)
{
    static const char *const types[] = {TYPE, "g5.xlarge", "g4dn.xlarge"};
    struct world w;
    struct ec2_scores s;
    (void)state;
    world_begin(&w);
    read_scores(&w, types, 3, &s);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.list[0].zone_id, "use1-az1");
    assert_int_equal(s.list[0].score, 10);
    assert_string_equal(s.list[1].zone_id, "use1-az2");
    assert_int_equal(s.list[1].score, 7); /* two of three */
    read_scores(&w, types, 2, &s);
    assert_int_equal(s.list[0].score, 3);
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1b\",\"type\":\"" TYPE "\",\"n\":0}}");
    read_scores(&w, types, 3, &s);
    assert_int_equal(s.list[1].score, 1);
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1a\",\"type\":\"g5.xlarge\",\"n\":0}}");
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1b\",\"type\":\"" TYPE "\",\"n\":100}}");
    read_scores(&w, types, 3, &s);
    assert_string_equal(s.list[0].zone_id, "use1-az2"); /* best first */
    world_stop(&w);
}

static void scores_are_requested_in_the_form_of_ec2(void **state)
{
#define SCORES                                                                                     \
    "Action=GetSpotPlacementScores&InstanceType.1=" TYPE "&InstanceType.2=a&InstanceType.3=b"
    static const struct {
        const char *body;
        int status;
        const char *text;
    } cases[] = {
        {SCORES "&TargetCapacity=1", 200,
            "<item><region>us-east-1</region><score>10</score></item>"},
        {SCORES "&TargetCapacity=1&RegionName.1=eu-west-1&RegionName.2=us-east-1", 200,
            "<score>10</score>"},
        {SCORES "&TargetCapacity=1&RegionName.1=eu-west-1", 200,
            "<spotPlacementScoreSet></spotPlacementScoreSet>"},
        {SCORES "&TargetCapacity=2000000000&MaxResults=10", 200, "<score>1</score>"},
        {SCORES, 400, "MissingParameter"},
        {"Action=GetSpotPlacementScores&TargetCapacity=1", 400, "MissingParameter"},
        {SCORES "&TargetCapacity=0", 400, "InvalidParameterValue"},
        {SCORES "&TargetCapacity=2000000001", 400, "InvalidParameterValue"},
        {SCORES "&TargetCapacity=1&TargetCapacityUnitType=vcpu", 400, "units"},
        {SCORES "&TargetCapacity=1&SingleAvailabilityZone=yes", 400, "InvalidParameterValue"},
        {SCORES "&TargetCapacity=1&MaxResults=9", 400, "InvalidParameterValue"},
        {SCORES "&TargetCapacity=1&NextToken=x", 400, "InvalidNextToken"},
        {SCORES "&TargetCapacity=1&DryRun=true", 412, "DryRunOperation"},
        {SCORES "&TargetCapacity=1&InstanceRequirementsWithMetadata.ArchitectureType.1=arm64", 400,
            "UnknownParameter"},
    };
    struct world w;
    (void)state;
    world_begin(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        world_expect(&w, cases[i].body, cases[i].status, cases[i].text);
    struct buf many = {0};
    buf_adds(&many, SCORES "&TargetCapacity=1");
    for (int i = 1; i <= 11; i++)
        buf_printf(&many, "&RegionName.%d=r%d", i, i);
    world_expect(&w, buf_str(&many), 400, "Regions");
    buf_deinit(&many);
    world_stop(&w);
}

static void the_driver_knows_our_refusals(void **state)
{
    static const struct {
        const char *code;
        enum err_kind kind;
    } codes[] = {{"InsufficientInstanceCapacity", ERR_NO_CAPACITY},
        {"RequestLimitExceeded", ERR_THROTTLED}, {"MaxSpotInstanceCountExceeded", ERR_QUOTA},
        {"AuthFailure", ERR_DENIED}, {"InvalidInstanceID.NotFound", ERR_NOT_FOUND},
        {"InternalError", ERR_UNAVAILABLE}, {"IdempotentParameterMismatch", ERR_CONFLICT},
        {"InvalidAMIID.NotFound", ERR_CONFIG}};
    struct world w;
    (void)state;
    world_begin(&w);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct ec2_reply reply = {0};
        enum ec2_remedy remedy;
        struct err e;
        ec2_api_error(&w.region, codes[i].code, NULL, &reply);
        if (ec2_parse_error(reply.status, buf_str(&reply.body), reply.body.len, &remedy, &e) !=
            (int)codes[i].kind)
            fail_msg("%s: %s", codes[i].code, e.text);
        buf_deinit(&reply.body);
    }
    world_stop(&w);
}

/* ---- RunInstances ---- */

static void a_token_launches_once(void **state)
{
    struct world w;
    char first[CLOUD_NAME_MAX], again[CLOUD_NAME_MAX];
    (void)state;
    world_begin(&w);
    world_run_instance(&w, RUN SPOT "&ClientToken=t1", first);
    world_advance(&w, 2000);
    world_run_instance(&w, RUN SPOT "&ClientToken=t1", again);
    assert_string_equal(first, again);
    struct instance *i = region_find(&w.region, first);
    region_terminate(&w.region, i, w.now);
    region_machine_gone(&w.region, i, false, w.now, w.now);
    world_expect(&w, RUN SPOT "&ClientToken=t1", 200, "<name>terminated</name>");
    assert_int_equal(w.region.counts.launches, 1);
    assert_int_equal(w.region.counts.replays, 2);
    assert_int_equal(w.region.counts.launch_calls, 3);
    world_expect(&w, RUN "&ClientToken=t1", 400, "IdempotentParameterMismatch");
    world_stop(&w);
}

static void a_token_belongs_to_the_named_zone(void **state)
{
    struct world w;
    char a[CLOUD_NAME_MAX], b[CLOUD_NAME_MAX], subnet[CLOUD_NAME_MAX];
    (void)state;
    world_begin(&w);
    world_run_instance(&w, RUN SPOT "&ClientToken=t1" IN_A, a);
    world_run_instance(&w, RUN SPOT "&ClientToken=t1&Placement.AvailabilityZone=us-east-1b", b);
    assert_string_not_equal(a, b);
    world_expect(
        &w, RUN SPOT "&ClientToken=t1&SubnetId=subnet-a", 400, "IdempotentParameterMismatch");
    world_run_instance(
        &w, RUN SPOT "&ClientToken=t2&Placement.AvailabilityZoneId=use1-az1", subnet);
    assert_string_equal(region_find(&w.region, subnet)->pool->zone, "us-east-1a");
    world_stop(&w);
}

static void a_refused_launch_leaves_its_token_free(void **state)
{
    struct world w;
    char id[CLOUD_NAME_MAX];
    (void)state;
    world_begin(&w);
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"n\":0}}");
    world_expect(&w, RUN SPOT IN_A "&ClientToken=t1", 500, "InsufficientInstanceCapacity");
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"n\":1}}");
    world_run_instance(&w, RUN SPOT IN_A "&ClientToken=t1", id);
    world_stop(&w);
}

static void between_minimum_and_maximum_as_many_as_have_capacity(void **state)
{
#define MANY "Action=RunInstances&ImageId=ami-1&InstanceType=g6.xlarge" SPOT IN_A
    struct world w;
    (void)state;
    world_begin(&w);
    world_expect(&w, MANY "&MinCount=3&MaxCount=5", 500, "InsufficientInstanceCapacity");
    assert_int_equal(w.region.n_instances, 0);
    world_expect(&w, MANY "&MinCount=1&MaxCount=5", 200, "<amiLaunchIndex>1</amiLaunchIndex>");
    assert_int_equal(w.region.n_instances, 2);
    world_stop(&w);
}

static void the_account_has_a_quota(void **state)
{
#define G5 "Action=RunInstances&ImageId=ami-1&InstanceType=g5.xlarge" SPOT
    struct world w;
    (void)state;
    world_begin(&w);
    world_expect(&w, G5 "&MinCount=999&MaxCount=999", 200, "instanceId");
    world_expect(&w, G5 "&MinCount=2&MaxCount=2", 400, "MaxSpotInstanceCountExceeded");
    world_expect(&w, G5 "&MinCount=1&MaxCount=1", 200, "instanceId");
    world_stop(&w);
}

static void spot_is_marked_and_on_demand_is_not(void **state)
{
    struct world w;
    struct ec2_reply reply;
    (void)state;
    world_begin(&w);
    world_expect(&w, RUN SPOT, 200, "<instanceLifecycle>spot</instanceLifecycle>");
    world_call(&w, RUN, &reply);
    assert_null(strstr(buf_str(&reply.body), "instanceLifecycle"));
    assert_null(strstr(buf_str(&reply.body), "spotInstanceRequestId"));
    buf_deinit(&reply.body);
    world_stop(&w);
}

static void wrong_launches_get_ec2s_own_refusals(void **state)
{
    static const struct {
        const char *body;
        int status;
        const char *code;
    } bad[] = {
        {"Action=RunInstances&InstanceType=g6.xlarge&MinCount=1&MaxCount=1", 400,
            "MissingParameter"},
        {"Action=RunInstances&ImageId=ami-1&InstanceType=g6.xlarge&MaxCount=1", 400,
            "MissingParameter"},
        {"Action=RunInstances&ImageId=ami-1&InstanceType=g6.xlarge&MinCount=2&MaxCount=1", 400,
            "InvalidParameterValue"},
        {"Action=RunInstances&ImageId=ami-1&InstanceType=g6.xlarge&MinCount=x&MaxCount=1", 400,
            "InvalidParameterValue"},
        {"Action=RunInstances&ImageId=ami-9&InstanceType=g6.xlarge&MinCount=1&MaxCount=1", 400,
            "InvalidAMIID.NotFound"},
        {"Action=RunInstances&ImageId=img&InstanceType=g6.xlarge&MinCount=1&MaxCount=1", 400,
            "InvalidAMIID.Malformed"},
        {"Action=RunInstances&ImageId=ami-1&InstanceType=m1.tiny&MinCount=1&MaxCount=1", 400,
            "InvalidParameterValue"},
        {"Action=RunInstances&ImageId=ami-1&InstanceType=g5.xlarge&MinCount=1&MaxCount=1"
         "&Placement.AvailabilityZone=us-east-1b",
            400, "Unsupported"},
        {RUN "&Placement.AvailabilityZone=us-east-1z", 400, "InvalidParameterValue"},
        {RUN "&SubnetId=subnet-z", 400, "InvalidSubnetID.NotFound"},
        {RUN "&SubnetId=subnet-a&Placement.AvailabilityZone=us-east-1b", 400,
            "InvalidParameterValue"},
        {RUN "&InstanceMarketOptions.MarketType=capacity-block", 400, "InvalidParameterValue"},
        {RUN "&InstanceMarketOptions.SpotOptions.MaxPrice=1", 400, "MissingParameter"},
        {RUN SPOT "&InstanceMarketOptions.SpotOptions.MaxPrice=0.1", 400, "SpotMaxPriceTooLow"},
        {RUN SPOT "&InstanceMarketOptions.SpotOptions.MaxPrice=0.001", 400,
            "InvalidParameterValue"},
        {RUN SPOT "&InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent", 400,
            "InvalidParameterValue"},
        {RUN SPOT "&InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=stop", 400,
            "InvalidParameterCombination"},
        {RUN "&UserData=%21", 400, "InvalidUserData.Malformed"},
        {RUN "&IamInstanceProfile.Name=nobody", 400, "InvalidParameterValue"},
        {RUN "&IamInstanceProfile.Name=agent&IamInstanceProfile.Arn=x", 400,
            "InvalidParameterCombination"},
        {RUN "&InstanceInitiatedShutdownBehavior=explode", 400, "InvalidParameterValue"},
        {RUN "&MetadataOptions.HttpTokens=maybe", 400, "InvalidParameterValue"},
        {RUN "&TagSpecification.1.ResourceType=castle&TagSpecification.1.Tag.1.Key=a", 400,
            "InvalidParameterValue"},
        {RUN TAG "Key=aws:x", 400, "InvalidParameterValue"},
        {RUN TAG "Value=1", 400, "InvalidParameterValue"},
        {RUN "&ClientToken=12345678901234567890123456789012345678901234567890123456789012345", 400,
            "InvalidParameterValue"},
        {RUN "&ClientToken=%C3%A4", 400, "InvalidParameterValue"},
        {RUN "&LaunchTemplate.LaunchTemplateId=lt-1", 400, "UnsupportedOperation"},
        {RUN "&Colour=red", 400, "UnknownParameter"},
        {RUN "&DryRun=true", 412, "DryRunOperation"},
        {RUN "&DryRun=perhaps", 400, "InvalidParameterValue"},
        {"Action=BuyCompany", 400, "InvalidAction"},
        {"x=1", 400, "MissingAction"},
    };
    struct world w;
    (void)state;
    world_begin(&w);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        world_expect(&w, bad[i].body, bad[i].status, bad[i].code);
    assert_int_equal(w.region.n_instances, 0);
    world_stop(&w);
}

static void user_data_is_limited_before_encoding(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    for (int over = 0; over < 2; over++) {
        struct buf raw = {0}, coded = {0}, body = {0};
        for (int i = 0; i < CLOUD_USER_DATA_MAX + over; i++)
            buf_addc(&raw, 'x');
        b64_encode(&coded, buf_str(&raw), raw.len);
        buf_adds(&body, RUN "&UserData=");
        str_url_encode(&body, buf_str(&coded), coded.len);
        world_expect(&w, buf_str(&body), over ? 400 : 200, over ? "16384" : "instanceId");
        buf_deinit(&raw);
        buf_deinit(&coded);
        buf_deinit(&body);
    }
    world_stop(&w);
}

/* ---- TerminateInstances and CreateTags ---- */

static void a_list_with_a_bad_id_terminates_nothing(void **state)
{
    struct world w;
    char body[200];
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    snprintf(body, sizeof(body),
        "Action=TerminateInstances&InstanceId.1=%s&InstanceId.2=i-00000000000000000", i->id);
    world_expect(&w, body, 400, "InvalidInstanceID.NotFound");
    snprintf(body, sizeof(body), "Action=TerminateInstances&InstanceId.1=%s&InstanceId.2=x", i->id);
    world_expect(&w, body, 400, "InvalidInstanceID.Malformed");
    assert_int_equal(i->state, INSTANCE_RUNNING);
    world_expect(&w, "Action=TerminateInstances", 400, "MissingParameter");
    snprintf(body, sizeof(body), "Action=TerminateInstances&InstanceId.1=%s", i->id);
    world_expect(&w, body, 200,
        "<currentState><code>32</code><name>shutting-down</name></currentState>"
        "<previousState><code>16</code><name>running</name></previousState>");
    world_expect(&w, body, 200, "<previousState><code>32</code>"); /* repeated */
    world_stop(&w);
}

static void tags_can_be_added_later(void **state)
{
    struct world w;
    char body[200];
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    snprintf(body, sizeof(body),
        "Action=CreateTags&ResourceId.1=%s&Tag.1.Key=a&Tag.1.Value=%%3C%%26%%3E", i->id);
    world_expect(&w, body, 200, "<return>true</return>");
    assert_string_equal(tags_get(&i->tags, "a"), "<&>");
    world_expect(&w, "Action=DescribeInstances", 200, "<value>&lt;&amp;&gt;</value>");
    world_expect(&w, "Action=CreateTags&Tag.1.Key=a", 400, "MissingParameter");
    world_expect(&w, "Action=CreateTags&ResourceId.1=i-0&Tag.1.Key=a", 400, "InvalidID");
    world_stop(&w);
}

/* ---- fleets ---- */

static void the_driver_launches_by_fleet_and_reads_partial_failures(void **state)
{
    static const struct cloud_target targets[] = {
        {"us-east-1a", TYPE}, {"us-east-1b", TYPE}, {"us-east-1a", "g5.xlarge"}};
    struct world w;
    struct buf form = {0};
    struct ec2_reply reply;
    struct ec2_fleet *f = mem_alloc(sizeof(*f));
    char name[EC2_TEMPLATE_NAME_MAX];
    struct err e = {0};
    (void)state;
    world_begin(&w);
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE
                    "\",\"market\":\"spot\",\"n\":0}}");
    for (int k = 0; k < 2; k++) { /* the second call has the same token: the same answer */
        if (k == 0) {
            assert_int_equal(ec2_build_create_template(&wish, &machine, name, &form, &e), 0);
            call_built(&w, &form, &reply);
            assert_int_equal(ec2_parse_done(buf_str(&reply.body), reply.body.len,
                                 "CreateLaunchTemplateResponse", &e),
                0);
            buf_deinit(&reply.body);
        }
        assert_int_equal(ec2_build_create_fleet(&wish, &machine, name, targets, 3, &form, &e), 0);
        call_built(&w, &form, &reply);
        if (ec2_parse_create_fleet(buf_str(&reply.body), reply.body.len, f, &e) < 0)
            fail_msg("%s", e.text);
        buf_deinit(&reply.body);
        assert_int_equal(w.region.n_instances, 1);
        const struct instance *i = w.region.instances[0];
        assert_string_equal(f->instance.id, i->id);
        assert_string_equal(f->instance.zone, i->pool->zone);
        assert_string_equal(f->instance.type, i->pool->type);
        assert_string_equal(tags_get(&i->tags, EC2_TAG_INSTANCE), wish.token);
        assert_string_equal(buf_str(&i->reservation->spec.user_data), wish.user_data);
        assert_int_equal(i->reservation->spec.market, CLOUD_SPOT);
        assert_int_equal(f->n_errors, 1);
        assert_string_equal(f->errors[0].zone, "us-east-1a");
        assert_string_equal(f->errors[0].type, TYPE);
        assert_int_equal(f->errors[0].e.kind, ERR_NO_CAPACITY);
    }
    struct ec2_names names;
    ec2_build_describe_templates(wish.cluster, &form);
    call_built(&w, &form, &reply);
    assert_int_equal(ec2_parse_launch_templates(buf_str(&reply.body), reply.body.len,
                         (struct wall){START_MS + 1}, &names, &e),
        0);
    assert_int_equal(names.n, 1);
    assert_string_equal(names.list[0], name);
    buf_deinit(&reply.body);
    ec2_build_delete_template(name, &form);
    call_built(&w, &form, &reply);
    buf_deinit(&reply.body);
    assert_int_equal(w.store.n_templates, 0);
    free(f);
    world_stop(&w);
}

#define TEMPLATE                                                                                   \
    "Action=CreateLaunchTemplate&LaunchTemplateName=one&LaunchTemplateData.ImageId=ami-1"
#define TAGGED                                                                                     \
    "Action=CreateLaunchTemplate&LaunchTemplateName=two&LaunchTemplateData.ImageId=ami-1"          \
    "&TagSpecification.1.ResourceType=launch-template&TagSpecification.1.Tag.1.Key="
#define FLEET                                                                                      \
    "Action=CreateFleet&Type=instant&TargetCapacitySpecification.TotalTargetCapacity=3"            \
    "&TargetCapacitySpecification.DefaultTargetCapacityType=spot"                                  \
    "&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=one"
#define OVERRIDE "&LaunchTemplateConfigs.1.Overrides."

static void a_fleet_takes_a_place_with_capacity(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    world_expect(&w, TEMPLATE, 200, "<latestVersionNumber>1</latestVersionNumber>");
    json_t *shown = ec2_store_state(&w.store);
    assert_int_equal(json_array_size(shown), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(shown, 0), "name")), "one");
    json_decref(shown);
    world_expect(&w, TAGGED "a&TagSpecification.1.Tag.1.Value=b", 200, "<key>a</key>");
    /* Two of the three are available in one zone. */
    world_expect(&w,
        FLEET OVERRIDE "1.InstanceType=" TYPE OVERRIDE
                       "1.AvailabilityZone=us-east-1a&ClientToken=t",
        200, "<errorCode>InsufficientInstanceCapacity</errorCode>");
    assert_int_equal(w.region.n_instances, 2);
    world_expect(&w,
        FLEET OVERRIDE "1.InstanceType=" TYPE OVERRIDE
                       "1.AvailabilityZone=us-east-1b&ClientToken=t",
        400, "IdempotentParameterMismatch");
    world_expect(&w, FLEET OVERRIDE "1.InstanceType=no.such", 200,
        "<errorCode>InvalidParameterValue</errorCode>");
    assert_int_equal(w.region.n_instances, 2);
    world_stop(&w);
}

static void wrong_templates_and_fleets_get_ec2s_own_refusals(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    world_expect(&w, FLEET, 400, "InvalidLaunchTemplateName.NotFoundException");
    world_expect(&w, TEMPLATE, 200, "<launchTemplateName>one</launchTemplateName>");
    world_expect(&w, TEMPLATE, 400, "InvalidLaunchTemplateName.AlreadyExistsException");
    world_expect(&w, "Action=CreateLaunchTemplate&LaunchTemplateName=two", 400, "MissingParameter");
    world_expect(&w,
        "Action=CreateLaunchTemplate&LaunchTemplateName=a%20b&LaunchTemplateData.ImageId=ami-1",
        400, "InvalidLaunchTemplateName.MalformedException");
    world_expect(&w, TAGGED "aws:x", 400, "InvalidParameterValue");
    world_expect(&w, TAGGED "&TagSpecification.1.Tag.1.Value=x", 400, "InvalidParameterValue");
    world_expect(&w, "Action=CreateFleet&TargetCapacitySpecification.TotalTargetCapacity=1", 400,
        "UnsupportedOperation");
    world_expect(&w, FLEET "&SpotOptions.AllocationStrategy=best", 400, "InvalidParameterValue");
    world_expect(&w, FLEET "&SpotOptions.MinTargetCapacity=2", 400, "UnknownParameter");
    world_expect(&w, "Action=DeleteLaunchTemplate&LaunchTemplateName=none", 400,
        "InvalidLaunchTemplateName.NotFoundException");
    world_expect(&w, "Action=DeleteLaunchTemplate", 400, "MissingParameter");
    world_expect(&w, "Action=DescribeLaunchTemplates&Filter.1.Name=tag:x&Filter.1.Value.1=y", 200,
        "<launchTemplates></launchTemplates>");
    assert_int_equal(w.region.n_instances, 0);
    world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_launches_and_finds_its_instance),
        cmocka_unit_test(the_driver_terminates_and_sees_why),
        cmocka_unit_test(the_driver_reads_the_prices_in_force),
        cmocka_unit_test(the_driver_reads_scores_that_follow_the_market),
        cmocka_unit_test(scores_are_requested_in_the_form_of_ec2),
        cmocka_unit_test(the_driver_knows_our_refusals),
        cmocka_unit_test(a_token_launches_once),
        cmocka_unit_test(a_token_belongs_to_the_named_zone),
        cmocka_unit_test(a_refused_launch_leaves_its_token_free),
        cmocka_unit_test(between_minimum_and_maximum_as_many_as_have_capacity),
        cmocka_unit_test(the_account_has_a_quota),
        cmocka_unit_test(spot_is_marked_and_on_demand_is_not),
        cmocka_unit_test(wrong_launches_get_ec2s_own_refusals),
        cmocka_unit_test(user_data_is_limited_before_encoding),
        cmocka_unit_test(a_list_with_a_bad_id_terminates_nothing),
        cmocka_unit_test(tags_can_be_added_later),
        cmocka_unit_test(wrong_templates_and_fleets_get_ec2s_own_refusals),
        cmocka_unit_test(a_fleet_takes_a_place_with_capacity),
        cmocka_unit_test(the_driver_launches_by_fleet_and_reads_partial_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
