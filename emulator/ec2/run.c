/* SPDX-License-Identifier: Apache-2.0
 *
 * RunInstances: from parameters to a launch_spec, with EC2's own refusals, and the reply.
 */
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/ec2/ec2.h"
#include "emulator/xml_write.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 1000
#define TAG_SPECIFICATIONS_MAX 10

/* Parameters of a call that are not part of the spec. */
struct launch_params {
    struct launch_spec spec;
    char named_zone[CLOUD_NAME_MAX];
    char fingerprint[65];
    int64_t min, max;
};

/* Accepted without effect. */
static const char *const ignored[] = {"AdditionalInfo", "CapacityReservationSpecification",
    "CpuOptions", "CreditSpecification", "DisableApiStop", "DisableApiTermination", "EbsOptimized",
    "EnclaveOptions", "HibernationOptions", "Ipv6Address", "Ipv6AddressCount", "KernelId",
    "LicenseSpecification", "MaintenanceOptions", "Monitoring", "NetworkInterface",
    "PrivateDnsNameOptions", "PrivateIpAddress", "RamdiskId", "SecurityGroup", "SecurityGroupId",
    "Placement.Affinity", "Placement.GroupName", "Placement.HostId", "Placement.PartitionNumber",
    "Placement.Tenancy", "MetadataOptions.HttpPutResponseHopLimit",
    "MetadataOptions.HttpProtocolIpv6", NULL};

/* Not supported, and not ignorable: they would change the meaning of the call. */
static const char *const unsupported[] = {
    "LaunchTemplate", "ElasticGpuSpecification", "ElasticInferenceAccelerator", NULL};

static int copy_param(struct ec2_call *c, const char *name, char *dst, size_t size)
{
    const char *value = form_get(c->form, "%s", name);
    if (value && !str_copy(dst, size, value))
        return ec2_fail(c, "InvalidParameterValue", "Value (%.100s) for parameter %s is too long.",
            value, name);
    return 0;
}

static int read_image(struct ec2_call *c, struct launch_spec *s)
{
    const char *image;
    if (ec2_required(c, "ImageId", &image) < 0 ||
        copy_param(c, "ImageId", s->image, sizeof(s->image)) < 0)
        return -1;
    if (!str_starts(image, "ami-"))
        return ec2_fail(
            c, "InvalidAMIID.Malformed", "Invalid id: \"%.100s\" (expecting \"ami-...\")", image);
    if (c->account->images && !str_is_one_of(image, c->account->images))
        return ec2_fail(
            c, "InvalidAMIID.NotFound", "The image id '[%.100s]' does not exist", image);
    return 0;
}

static int read_counts(struct ec2_call *c, struct launch_params *w)
{
    const char *dummy;
    if (ec2_required(c, "MinCount", &dummy) < 0 || ec2_required(c, "MaxCount", &dummy) < 0 ||
        ec2_integer(c, "MinCount", 1, COUNT_MAX, 1, &w->min) < 0 ||
        ec2_integer(c, "MaxCount", 1, COUNT_MAX, 1, &w->max) < 0)
        return -1;
    if (w->min > w->max)
        return ec2_fail(c, "InvalidParameterValue",
            "Value (%lld) for parameter maxCount is invalid. The maximum must not be smaller than "
            "the minimum (%lld).",
            (long long)w->max, (long long)w->min);
    return 0;
}

static int read_spot_options(struct ec2_call *c, struct launch_spec *s)
{
#define SPOT "InstanceMarketOptions.SpotOptions."
    const char *kind = form_get(c->form, SPOT "SpotInstanceType");
    const char *behavior = form_get(c->form, SPOT "InstanceInterruptionBehavior");
    const char *max = form_get(c->form, SPOT "MaxPrice");
    if (kind && !str_eq(kind, "one-time"))
        return ec2_fail(c, "InvalidParameterValue",
            "SpotInstanceType %.40s: this emulator has only one-time", kind);
    if (behavior && !str_eq(behavior, "terminate"))
        return ec2_fail(c, "InvalidParameterCombination",
            "InstanceInterruptionBehavior %.40s cannot be used with a one-time request", behavior);
    if (form_get(c->form, SPOT "ValidUntil"))
        return ec2_fail(
            c, "InvalidParameterCombination", "ValidUntil cannot be used with a one-time request");
    if (max && (str_to_uusd(max, &s->max_price_uusd_h, NULL) < 0 || s->max_price_uusd_h <= 1000))
        return ec2_fail(c, "InvalidParameterValue",
            "Invalid value '%.40s' for MaxPrice: it must be above 0.001", max);
    return 0;
#undef SPOT
}

static int read_market(struct ec2_call *c, struct launch_spec *s)
{
    const char *type = form_get(c->form, "InstanceMarketOptions.MarketType");
    s->market = CLOUD_ON_DEMAND;
    if (!type && form_use_all(c->form, "InstanceMarketOptions"))
        return ec2_fail(c, "MissingParameter",
            "The request must contain the parameter InstanceMarketOptions.MarketType");
    if (!type)
        return 0;
    if (!str_eq(type, "spot"))
        return ec2_fail(c, "InvalidParameterValue",
            "Invalid value '%.40s' for MarketType: this emulator has spot", type);
    s->market = CLOUD_SPOT;
    return read_spot_options(c, s);
}

static int read_user_data(struct ec2_call *c, struct launch_spec *s)
{
    const char *text = form_get(c->form, "UserData");
    if (!text)
        return 0;
    if (b64_decode(&s->user_data, text, strlen(text), NULL) < 0)
        return ec2_fail(c, "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data");
    if (s->user_data.len > CLOUD_USER_DATA_MAX)
        return ec2_fail(
            c, "InvalidParameterValue", "User data is limited to %d bytes", CLOUD_USER_DATA_MAX);
    return 0;
}

static int read_profile(struct ec2_call *c, struct launch_spec *s)
{
    const char *name = form_get(c->form, "IamInstanceProfile.Name");
    const char *arn = form_get(c->form, "IamInstanceProfile.Arn");
    if (name && arn)
        return ec2_fail(c, "InvalidParameterCombination",
            "The parameter 'iamInstanceProfile.name' may not be used in combination with "
            "'iamInstanceProfile.arn'");
    if (arn)
        name = strrchr(arn, '/') ? strrchr(arn, '/') + 1 : arn;
    if (!name)
        return 0;
    bool is_known = !c->account->profiles || str_is_one_of(name, c->account->profiles);
    if (!is_known || !str_is_name(name, 128) || !STR_COPY(s->profile, name))
        return ec2_fail(c, "InvalidParameterValue",
            "Value (%.100s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance "
            "Profile name",
            name);
    return 0;
}

static int read_shutdown(struct ec2_call *c, struct launch_spec *s)
{
    const char *value = form_get(c->form, "InstanceInitiatedShutdownBehavior");
    if (value && !str_eq(value, "stop") && !str_eq(value, "terminate"))
        return ec2_fail(c, "InvalidParameterValue",
            "Value (%.40s) for parameter instanceInitiatedShutdownBehavior is invalid.", value);
    /* A one-time spot instance cannot be stopped. */
    s->powers_off_to_stop = !str_eq(value, "terminate") && s->market == CLOUD_ON_DEMAND;
    return 0;
}

static int read_one_of(
    struct ec2_call *c, const char *name, const char *yes, const char *no, bool *ret_yes)
{
    const char *value = form_get(c->form, "%s", name);
    if (value && !str_eq(value, yes) && !str_eq(value, no))
        return ec2_fail(
            c, "InvalidParameterValue", "Value (%.40s) for parameter %s is invalid.", value, name);
    if (value)
        *ret_yes = str_eq(value, yes);
    return 0;
}

static int read_metadata_options(struct ec2_call *c, struct launch_spec *s)
{
    s->metadata_needs_token = true;
    if (read_one_of(c, "MetadataOptions.HttpTokens", "required", "optional",
            &s->metadata_needs_token) < 0 ||
        read_one_of(c, "MetadataOptions.InstanceMetadataTags", "enabled", "disabled",
            &s->metadata_has_tags) < 0)
        return -1;
    return read_one_of(
        c, "MetadataOptions.HttpEndpoint", "disabled", "enabled", &s->is_metadata_off);
}

/* tags may be NULL: tags of a resource not emulated here. */
static int read_tag(struct ec2_call *c, size_t spec, size_t k, struct tags *tags)
{
    const char *key = form_get(c->form, "TagSpecification.%zu.Tag.%zu.Key", spec, k);
    const char *value = form_get(c->form, "TagSpecification.%zu.Tag.%zu.Value", spec, k);
    if (!key || !key[0] || strlen(key) > INSTANCE_TAG_KEY_MAX)
        return ec2_fail(c, "InvalidParameterValue",
            "Tag key '%.140s' is not valid. Tag keys must have 1 to %d characters", key ? key : "",
            INSTANCE_TAG_KEY_MAX);
    if (value && strlen(value) > INSTANCE_TAG_VALUE_MAX)
        return ec2_fail(c, "InvalidParameterValue",
            "Tag value exceeds the maximum length of %d characters", INSTANCE_TAG_VALUE_MAX);
    if (str_starts(key, "aws:"))
        return ec2_fail(c, "InvalidParameterValue",
            "Tag keys starting with 'aws:' are reserved for internal use");
    if (!tags)
        return 0;
    if (tags_get(tags, key))
        return ec2_fail(c, "InvalidParameterValue", "Duplicate tag key '%s' specified.", key);
    if (tags->n == INSTANCE_TAGS_MAX)
        return ec2_fail(
            c, "TagLimitExceeded", "A resource may have at most %d tags.", INSTANCE_TAGS_MAX);
    tags_set(tags, key, value ? value : "");
    return 0;
}

/* The tags of such a resource; NULL if it is not emulated. */
static struct tags *tags_of(struct launch_spec *s, const char *resource)
{
    if (str_eq(resource, "instance"))
        return &s->tags;
    return str_eq(resource, "volume") ? &s->disks[0].tags : NULL;
}

static int read_tags(struct ec2_call *c, struct launch_spec *s)
{
    static const char *const resources[] = {
        "instance", "volume", "network-interface", "spot-instances-request", "elastic-gpu", NULL};
    for (size_t i = 1; i <= TAG_SPECIFICATIONS_MAX; i++) {
        const char *resource = form_get(c->form, "TagSpecification.%zu.ResourceType", i);
        if (!resource)
            return 0;
        if (!str_is_one_of(resource, resources))
            return ec2_fail(c, "InvalidParameterValue",
                "'%.60s' is not a valid taggable resource type for this operation.", resource);
        for (size_t k = 1; form_get(c->form, "TagSpecification.%zu.Tag.%zu.Key", i, k) ||
                           form_get(c->form, "TagSpecification.%zu.Tag.%zu.Value", i, k);
             k++)
            if (read_tag(c, i, k, tags_of(s, resource)) < 0)
                return -1;
    }
    return 0;
}

/* All volumes of a call have the same tags. */
static void share_volume_tags(struct launch_spec *s)
{
    for (size_t k = 1; k < s->n_disks; k++)
        tags_set_all(&s->disks[k].tags, &s->disks[0].tags);
}

static int read_token(struct ec2_call *c, struct launch_spec *s)
{
    const char *token = form_get(c->form, "ClientToken");
    if (!token)
        return 0;
    for (const char *p = token; *p; p++)
        if (*p < 0x20 || *p > 0x7e)
            return ec2_fail(c, "InvalidParameterValue",
                "Invalid client token: only ASCII characters are allowed");
    if (!STR_COPY(s->token, token))
        return ec2_fail(
            c, "InvalidParameterValue", "Invalid client token: it is longer than 64 characters");
    return 0;
}

static const char *zone_of_id(struct ec2_call *c, const char *id)
{
    const struct market *m = &c->region->market;
    for (size_t i = 0; i < m->n_pools; i++) {
        char found[CLOUD_NAME_MAX];
        ec2_zone_id(m->pools[i].zone, found, sizeof(found));
        if (str_eq(found, id))
            return m->pools[i].zone;
    }
    return NULL;
}

static const char *zone_of_subnet(struct ec2_call *c, const char *subnet)
{
    for (size_t i = 0; i < c->account->n_subnets; i++)
        if (str_eq(c->account->subnets[i].id, subnet))
            return c->account->subnets[i].zone;
    return NULL;
}

static int read_zone(struct ec2_call *c, struct launch_params *w)
{
    const char *zone = form_get(c->form, "Placement.AvailabilityZone");
    const char *id = form_get(c->form, "Placement.AvailabilityZoneId");
    const char *subnet = form_get(c->form, "SubnetId");
    if (zone && id)
        return ec2_fail(c, "InvalidParameterCombination",
            "AvailabilityZone and AvailabilityZoneId cannot both be given");
    if ((zone && !market_has_zone(&c->region->market, zone)) || (id && !(zone = zone_of_id(c, id))))
        return ec2_fail(
            c, "InvalidParameterValue", "Invalid availability zone: [%.60s]", zone ? zone : id);
    if (subnet && !zone_of_subnet(c, subnet))
        return ec2_fail(
            c, "InvalidSubnetID.NotFound", "The subnet ID '%.60s' does not exist", subnet);
    if (subnet && zone && !str_eq(zone, zone_of_subnet(c, subnet)))
        return ec2_fail(c, "InvalidParameterValue",
            "The subnet %s is not in the Availability Zone %s", subnet, zone);
    STR_COPY(w->named_zone, zone ? zone : subnet ? zone_of_subnet(c, subnet) : "");
    STR_COPY(w->spec.zone, w->named_zone);
    STR_COPY(w->spec.subnet, subnet ? subnet : "");
    return 0;
}

static int read_type(struct ec2_call *c, struct launch_params *w)
{
    struct launch_spec *s = &w->spec;
    const char *type = form_get(c->form, "InstanceType");
    const struct market *m = &c->region->market;
    type = type ? type : "m1.small";
    if (!market_find(m, NULL, type, s->market))
        return ec2_fail(
            c, "InvalidParameterValue", "Invalid value '%.60s' for InstanceType.", type);
    if (s->zone[0] && !market_find(m, s->zone, type, s->market))
        return ec2_fail(c, "Unsupported",
            "Your requested instance type (%s) is not supported in your requested "
            "Availability Zone (%s). Please retry your request by not specifying an Availability "
            "Zone or choosing %s.",
            type, s->zone, market_find(m, NULL, type, s->market)->zone);
    STR_COPY(s->type, type);
    return 0;
}

static int read_params(struct ec2_call *c, struct launch_params *w)
{
    static const char *const not_in_fingerprint[] = {"ClientToken", "DryRun", NULL};
    for (size_t i = 0; unsupported[i]; i++)
        if (form_use_all(c->form, unsupported[i]))
            return ec2_fail(c, "UnsupportedOperation", "This emulator has no %s.", unsupported[i]);
    for (size_t i = 0; ignored[i]; i++)
        form_use_all(c->form, ignored[i]);
    form_fingerprint(c->form, not_in_fingerprint, w->fingerprint);
    struct launch_spec *s = &w->spec;
    if (read_image(c, s) < 0 || read_counts(c, w) < 0 || read_market(c, s) < 0 ||
        read_user_data(c, s) < 0 || read_profile(c, s) < 0 || read_shutdown(c, s) < 0 ||
        read_metadata_options(c, s) < 0 || ec2_read_disks(c, s) < 0 || read_tags(c, s) < 0 ||
        read_token(c, s) < 0 || read_zone(c, w) < 0 || read_type(c, w) < 0 ||
        copy_param(c, "KeyName", s->key_name, sizeof(s->key_name)) < 0)
        return -1;
    share_volume_tags(s);
    return ec2_params_end(c);
}

static void write_reservation(struct ec2_call *c, const struct reservation *v)
{
    struct buf *b = &c->reply->body;
    const char *account = c->region->o->account;
    xmlw_leaf(b, "reservationId", v->id);
    xmlw_leaf(b, "ownerId", account);
    buf_adds(b, "<groupSet/><instancesSet>");
    for (size_t i = 0; i < v->n_instances; i++)
        ec2_instance_xml(b, v->instances[i], account);
    xmlw_close(b, "instancesSet");
}

static int refuse(struct ec2_call *c, const struct launch_params *w, const struct err *e)
{
    bool is_spot = w->spec.market == CLOUD_SPOT;
    if (e->kind == ERR_QUOTA)
        return ec2_fail(
            c, is_spot ? "MaxSpotInstanceCountExceeded" : "InstanceLimitExceeded", "%s", e->text);
    if (is_spot)
        return ec2_fail(c, "InsufficientInstanceCapacity",
            "There is no Spot capacity available that matches your request.");
    return ec2_fail(c, "InsufficientInstanceCapacity",
        "We currently do not have sufficient %s capacity in the Availability Zone you requested "
        "(%s). Our system will be working on provisioning additional capacity.",
        w->spec.type, w->spec.zone[0] ? w->spec.zone : "any");
}

static int launch(struct ec2_call *c, struct launch_params *w, struct reservation **ret_reservation)
{
    const struct market_pool *p = market_find(
        &c->region->market, w->spec.zone[0] ? w->spec.zone : NULL, w->spec.type, w->spec.market);
    int64_t price = p->price_uusd_h[CLOUD_SPOT], max = w->spec.max_price_uusd_h;
    if (w->spec.market == CLOUD_SPOT && max > 0 && max < price)
        return ec2_fail(c, "SpotMaxPriceTooLow",
            "Your Spot request price of %.6f is lower than the minimum required "
            "Spot request fulfillment price of %.6f.",
            (double)max / 1e6, (double)price / 1e6);
    struct err e;
    int rc = region_launch(c->region, &w->spec, w->named_zone, w->fingerprint, w->min, w->max,
        c->now, ret_reservation, &e);
    return rc < 0 ? refuse(c, w, &e) : 0;
}

int ec2_launch(struct ec2_call *c, struct reservation **ret_reservation)
{
    struct launch_params w = {0};
    c->region->counts.launch_calls++;
    int rc = read_params(c, &w);
    if (rc < 0)
        goto out;
    struct reservation *v = region_find_token(c->region, w.spec.token, w.named_zone);
    if (v && !str_eq(v->fingerprint, w.fingerprint)) {
        rc = ec2_fail(c, "IdempotentParameterMismatch",
            "Arguments on this idempotent request are inconsistent with arguments used in previous "
            "request(s).");
        goto out;
    }
    if (v)
        c->region->counts.replays++;
    else
        rc = launch(c, &w, &v);
    if (rc == 0)
        *ret_reservation = v;
out:
    launch_spec_deinit(&w.spec);
    return rc;
}

int ec2_run_instances(struct ec2_call *c)
{
    struct reservation *v;
    int rc = ec2_launch(c, &v);
    if (rc == 0)
        write_reservation(c, v);
    return rc;
}
