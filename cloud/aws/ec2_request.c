/* SPDX-License-Identifier: Apache-2.0
 *
 * EC2 requests as form bodies: "Action=...&Version=2016-11-15&..." with lists numbered from 1. See
 * ec2.h.
 *
 * The same launch always gives the same bytes: a repeated ClientToken with other parameters is
 * refused.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/ec2.h"
#include "cloud/aws/sigv4.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION "2016-11-15"
/* rows per reply: a few hundred KiB, parsed on the loop without a noticeable delay */
#define PAGE_SIZE 500
#define DISK_GIB_MAX 65536 /* limit of a gp3 volume */
#define ROOT_DEVICE "/dev/xvda"

#define TAG_VALUE_MAX 256 /* limit of EC2 */

static void add_action(struct buf *out, const char *action)
{
    buf_printf(out, "Action=%s&Version=" API_VERSION, action);
}

static void add(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "&%s=", name);
    str_url_encode(out, value, strlen(value));
}

/* Prefix of the parameters that describe a machine, in a call and in a launch template. */
#define IN_CALL ""
#define IN_TEMPLATE "LaunchTemplateData."

static void add_in(struct buf *out, const char *where, const char *name, const char *value)
{
    char full[128];
    snprintf(full, sizeof(full), "%s%s", where, name);
    add(out, full, value);
}

static void add_optional(struct buf *out, const char *name, const char *value)
{
    if (value)
        add(out, name, value);
}

static void add_number(struct buf *out, const char *name, int64_t value)
{
    buf_printf(out, "&%s=%lld", name, (long long)value);
}

static void add_tags(struct buf *out, const char *where, int index, const char *resource,
    const struct cloud_launch *l)
{
    const char *const tags[][2] = {{EC2_TAG_CLUSTER, l->cluster}, {EC2_TAG_INSTANCE, l->token}};
    char name[64];
    snprintf(name, sizeof(name), "TagSpecification.%d.ResourceType", index);
    add_in(out, where, name, resource);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "TagSpecification.%d.Tag.%d.Key", index, i + 1);
        add_in(out, where, name, tags[i][0]);
        snprintf(name, sizeof(name), "TagSpecification.%d.Tag.%d.Value", index, i + 1);
        add_in(out, where, name, tags[i][1]);
    }
}

static void add_user_data(struct buf *out, const char *where, const char *user_data)
{
    size_t n = strlen(user_data);
    unsigned char *base64 = mem_alloc(4 * ((n + 2) / 3) + 1);
    EVP_EncodeBlock(base64, (const unsigned char *)user_data, (int)n);
    add_in(out, where, "UserData", (const char *)base64);
    OPENSSL_cleanse(base64, strlen((const char *)base64));
    free(base64);
}

static void add_market(struct buf *out, enum cloud_market market)
{
    if (market != CLOUD_SPOT)
        return;
    add(out, "InstanceMarketOptions.MarketType", "spot");
    add(out, "InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time");
    add(out, "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate");
}

static void add_disk(struct buf *out, const char *where, int64_t gib)
{
    char size[24];
    if (gib == 0)
        return;
    snprintf(size, sizeof(size), "%lld", (long long)gib);
    add_in(out, where, "BlockDeviceMapping.1.DeviceName", ROOT_DEVICE);
    add_in(out, where, "BlockDeviceMapping.1.Ebs.VolumeSize", size);
    add_in(out, where, "BlockDeviceMapping.1.Ebs.VolumeType", "gp3");
    add_in(out, where, "BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true");
}

static int require(const char *value, size_t max, const char *what, struct err *e)
{
    if (!value || !*value)
        return err_set(e, ERR_CONFIG, "the %s is missing", what);
    if (strlen(value) > max)
        return err_set(e, ERR_CONFIG, "the %s is longer than %zu bytes", what, max);
    return 0;
}

static int check_launch(const struct cloud_launch *l, const struct aws_machine *m, struct err *e)
{
    int rc = require(m->image, CLOUD_NAME_MAX - 1, "image", e);
    if (rc == 0)
        rc = require(l->type, CLOUD_NAME_MAX - 1, "instance type", e);
    if (rc == 0)
        rc = require(l->zone, CLOUD_NAME_MAX - 1, "zone", e);
    if (rc == 0)
        rc = require(l->token, CLOUD_TOKEN_MAX - 1, "idempotency token", e);
    if (rc == 0)
        rc = require(l->cluster, TAG_VALUE_MAX, "cluster", e);
    if (rc == 0 && l->user_data && strlen(l->user_data) > CLOUD_USER_DATA_MAX)
        rc = err_set(e, ERR_CONFIG, "user data of %zu bytes; EC2 accepts at most %d",
            strlen(l->user_data), CLOUD_USER_DATA_MAX);
    if (rc == 0 && (m->disk_gib < 0 || m->disk_gib > DISK_GIB_MAX))
        rc = err_set(e, ERR_CONFIG, "a disk of %lld GiB; a gp3 volume has 1 to %d",
            (long long)m->disk_gib, DISK_GIB_MAX);
    return rc;
}

/* Adds all of a machine except its image, type, target and market. */
static void add_machine(
    struct buf *out, const char *where, const struct cloud_launch *l, const struct aws_machine *m)
{
    if (m->security_group)
        add_in(out, where, "SecurityGroupId.1", m->security_group);
    if (m->iam_profile)
        add_in(out, where,
            str_starts(m->iam_profile, "arn:") ? "IamInstanceProfile.Arn"
                                               : "IamInstanceProfile.Name",
            m->iam_profile);
    if (l->user_data)
        add_user_data(out, where, l->user_data);
    /* The default is stop, and a machine that powers itself off would still be billed for its disk.
     */
    add_in(out, where, "InstanceInitiatedShutdownBehavior", "terminate");
    /* The default would use up reservations made for other purposes. Spot instances never do. */
    if (l->market == CLOUD_ON_DEMAND)
        add_in(out, where, "CapacityReservationSpecification.CapacityReservationPreference",
            m->uses_reservations ? "open" : "none");
    if (!*where)
        add_market(out, l->market);
    add_in(out, where, "MetadataOptions.HttpEndpoint", "enabled");
    add_in(out, where, "MetadataOptions.HttpTokens", "required");
    add_in(out, where, "MetadataOptions.HttpPutResponseHopLimit", "1");
    add_disk(out, where, m->disk_gib);
    add_tags(out, where, 1, "instance", l);
    add_tags(out, where, 2, "volume", l);
    if (l->market == CLOUD_SPOT)
        add_tags(out, where, 3, "spot-instances-request", l);
}

int ec2_build_run_instances(
    const struct cloud_launch *l, const struct aws_machine *m, struct buf *out, struct err *e)
{
    int rc = check_launch(l, m, e);
    if (rc != 0)
        return rc;
    add_action(out, "RunInstances");
    add(out, "ImageId", m->image);
    add(out, "InstanceType", l->type);
    add_number(out, "MinCount", 1);
    add_number(out, "MaxCount", 1);
    add(out, "ClientToken", l->token);
    /* Also with a subnet, so that a subnet in another zone is refused instead of used. */
    add(out, "Placement.AvailabilityZone", l->zone);
    add_optional(out, "SubnetId", m->subnet);
    add_machine(out, IN_CALL, l, m);
    return 0;
}

/* ---- fleets ---- */

int ec2_build_create_template(const struct cloud_launch *l, const struct aws_machine *m,
    char name[EC2_TEMPLATE_NAME_MAX], struct buf *out, struct err *e)
{
    struct buf data = {0};
    char hash[SIGV4_HEX_MAX];
    int rc = check_launch(l, m, e);
    if (rc != 0)
        return rc;
    add_in(&data, IN_TEMPLATE, "ImageId", m->image);
    add_machine(&data, IN_TEMPLATE, l, m);
    sigv4_sha256_hex(buf_str(&data), data.len, hash);
    snprintf(name, EC2_TEMPLATE_NAME_MAX, EC2_TEMPLATE_PREFIX "%.32s", hash);
    add_action(out, "CreateLaunchTemplate");
    add(out, "LaunchTemplateName", name);
    buf_add(out, buf_str(&data), data.len);
    add(out, "TagSpecification.1.ResourceType", "launch-template");
    add(out, "TagSpecification.1.Tag.1.Key", EC2_TAG_CLUSTER);
    add(out, "TagSpecification.1.Tag.1.Value", l->cluster);
    OPENSSL_cleanse(data.data, data.len);
    buf_deinit(&data);
    return 0;
}

static void add_override(struct buf *out, size_t index, const struct cloud_target *p,
    const char *subnet, bool is_ordered)
{
    static const char prefix[] = "LaunchTemplateConfigs.1.Overrides.";
    char name[96];
    snprintf(name, sizeof(name), "%s%zu.InstanceType", prefix, index);
    add(out, name, p->type);
    snprintf(
        name, sizeof(name), "%s%zu.%s", prefix, index, subnet ? "SubnetId" : "AvailabilityZone");
    add(out, name, subnet ? subnet : p->zone);
    if (is_ordered) {
        snprintf(name, sizeof(name), "%s%zu.Priority", prefix, index);
        add_number(out, name, (int64_t)index - 1);
    }
}

int ec2_build_create_fleet(const struct cloud_launch *l, const struct aws_machine *m,
    const char *template, const struct cloud_target *targets, size_t n_targets, struct buf *out,
    struct err *e)
{
    bool is_spot = l->market == CLOUD_SPOT;
    int rc = check_launch(l, m, e);
    for (size_t i = 0; i < n_targets && rc == 0; i++) {
        rc = require(targets[i].type, CLOUD_NAME_MAX - 1, "instance type", e);
        if (rc == 0)
            rc = require(targets[i].zone, CLOUD_NAME_MAX - 1, "zone", e);
    }
    if (rc != 0)
        return rc;
    add_action(out, "CreateFleet");
    add(out, "Type", "instant"); /* the default would keep replacing instances that end */
    add(out, "ClientToken", l->token);
    add_number(out, "TargetCapacitySpecification.TotalTargetCapacity", 1);
    add(out, "TargetCapacitySpecification.DefaultTargetCapacityType",
        is_spot ? "spot" : "on-demand");
    if (is_spot)
        add(out, "SpotOptions.AllocationStrategy", "price-capacity-optimized");
    else
        add(out, "OnDemandOptions.AllocationStrategy", "prioritized");
    add(out, "LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName", template);
    add(out, "LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version", "1");
    for (size_t i = 0; i < n_targets; i++)
        add_override(out, i + 1, &targets[i], m->subnet, !is_spot);
    return 0;
}

void ec2_build_delete_template(const char *name, struct buf *out)
{
    add_action(out, "DeleteLaunchTemplate");
    add(out, "LaunchTemplateName", name);
}

void ec2_build_describe_templates(const char *cluster, struct buf *out)
{
    add_action(out, "DescribeLaunchTemplates");
    add(out, "Filter.1.Name", "tag:" EC2_TAG_CLUSTER);
    add(out, "Filter.1.Value.1", cluster);
    add_number(out, "MaxResults", 200);
}

/* ---- the rest ---- */

void ec2_build_describe_instances(const char *cluster, struct buf *out)
{
    add_action(out, "DescribeInstances");
    if (cluster) {
        add(out, "Filter.1.Name", "tag:" EC2_TAG_CLUSTER);
        add(out, "Filter.1.Value.1", cluster);
    }
    add_number(out, "MaxResults", PAGE_SIZE);
}

void ec2_build_describe_volumes(const char *cluster, struct buf *out)
{
    add_action(out, "DescribeVolumes");
    add(out, "Filter.1.Name", "status");
    add(out, "Filter.1.Value.1", "available");
    if (cluster) {
        add(out, "Filter.2.Name", "tag:" EC2_TAG_CLUSTER);
        add(out, "Filter.2.Value.1", cluster);
    }
    add_number(out, "MaxResults", PAGE_SIZE);
}

static void add_list(struct buf *out, const char *name, const char *const *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char numbered[64];
        snprintf(numbered, sizeof(numbered), "%s.%zu", name, i + 1);
        add(out, numbered, values[i]);
    }
}

void ec2_build_get_console_output(const char *id, struct buf *out)
{
    add_action(out, "GetConsoleOutput");
    add(out, "InstanceId", id);
}

int ec2_build_terminate_instances(
    const char *const *ids, size_t n_ids, struct buf *out, struct err *e)
{
    if (n_ids == 0 || n_ids > EC2_TERMINATE_MAX)
        return err_set(
            e, ERR_INVALID, "terminate %zu instances: 1 to %d at a time", n_ids, EC2_TERMINATE_MAX);
    add_action(out, "TerminateInstances");
    add_list(out, "InstanceId", ids, n_ids);
    return 0;
}

int ec2_build_spot_prices(
    const char *const *types, size_t n_types, struct wall at, struct buf *out, struct err *e)
{
    char start[TIME_ISO_MAX];
    if (n_types == 0 || n_types > EC2_TYPES_MAX)
        return err_set(
            e, ERR_INVALID, "spot prices of %zu types: 1 to %d at a time", n_types, EC2_TYPES_MAX);
    time_format_iso((struct wall){at.ms / 1000 * 1000}, start);
    add_action(out, "DescribeSpotPriceHistory");
    add_list(out, "InstanceType", types, n_types);
    add(out, "ProductDescription.1", "Linux/UNIX");
    /* the history lists changes; starting now returns the prices in force */
    add(out, "StartTime", start);
    add_number(out, "MaxResults", PAGE_SIZE);
    return 0;
}

int ec2_build_placement_scores(
    const char *const *types, size_t n_types, const char *region, struct buf *out, struct err *e)
{
    if (n_types == 0 || n_types > EC2_TYPES_MAX)
        return err_set(
            e, ERR_INVALID, "scores of %zu types: 1 to %d at a time", n_types, EC2_TYPES_MAX);
    add_action(out, "GetSpotPlacementScores");
    add_list(out, "InstanceType", types, n_types);
    add_number(out, "TargetCapacity", 1); /* as launches do */
    add(out, "TargetCapacityUnitType", "units");
    add(out, "SingleAvailabilityZone", "true");
    add(out, "RegionName.1", region);
    return 0;
}

void ec2_add_page(const char *page, struct buf *out)
{
    add(out, "NextToken", page);
}
