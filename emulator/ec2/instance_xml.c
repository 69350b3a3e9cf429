/* SPDX-License-Identifier: Apache-2.0
 *
 * One instance as EC2 shows it.
 */
#include "base/str.h"
#include "cloud/catalogue.h"
#include "emulator/ec2/ec2.h"
#include "emulator/xml_write.h"
#include <string.h>

void ec2_state_xml(struct buf *b, const char *name, int state)
{
    xmlw_open(b, name);
    xmlw_printf(b, "code", "%d", instance_state_code(state));
    xmlw_leaf(b, "name", instance_state_name(state));
    xmlw_close(b, name);
}

static void reason_xml(struct buf *b, const struct instance *i)
{
    if (!i->reason_code[0]) {
        buf_adds(b, "<reason/>");
        return;
    }
    char iso[TIME_ISO_MAX];
    time_format_iso((struct wall){i->ended_at.ms / 1000 * 1000}, iso);
    const char *colon = strstr(i->reason, ": ");
    iso[strcspn(iso, "Z")] = '\0';
    iso[strcspn(iso, "T")] = ' ';
    xmlw_printf(b, "reason", "%s (%s GMT)",
        str_eq(i->reason_code, "Client.UserInitiatedShutdown") ? "User initiated"
        : colon                                                ? colon + 2
                                                               : i->reason,
        iso);
    xmlw_open(b, "stateReason");
    xmlw_leaf(b, "code", i->reason_code);
    xmlw_leaf(b, "message", i->reason);
    xmlw_close(b, "stateReason");
}

static void placement_xml(struct buf *b, const struct instance *i)
{
    xmlw_open(b, "placement");
    xmlw_leaf(b, "availabilityZone", i->pool->zone);
    buf_adds(b, "<groupName/><tenancy>default</tenancy>");
    xmlw_close(b, "placement");
}

static void metadata_options_xml(struct buf *b, const struct launch_spec *s)
{
    buf_adds(b, "<metadataOptions><state>applied</state>");
    xmlw_leaf(b, "httpTokens", s->metadata_needs_token ? "required" : "optional");
    buf_adds(b, "<httpPutResponseHopLimit>1</httpPutResponseHopLimit>");
    xmlw_leaf(b, "httpEndpoint", s->is_metadata_off ? "disabled" : "enabled");
    xmlw_leaf(b, "instanceMetadataTags", s->metadata_has_tags ? "enabled" : "disabled");
    buf_adds(b, "</metadataOptions>");
}

static void network_xml(struct buf *b, const struct instance *i)
{
    const struct launch_spec *s = &i->reservation->spec;
    if (i->state == INSTANCE_TERMINATED) /* EC2 no longer returns its addresses */
        return;
    xmlw_leaf(b, "privateIpAddress", i->private_ip);
    if (s->subnet[0])
        xmlw_leaf(b, "subnetId", s->subnet);
}

static void profile_xml(struct buf *b, const struct instance *i, const char *account_id)
{
    const char *profile = i->reservation->spec.profile;
    if (!profile[0])
        return;
    xmlw_open(b, "iamInstanceProfile");
    xmlw_printf(b, "arn", "arn:aws:iam::%s:instance-profile/%s", account_id, profile);
    xmlw_close(b, "iamInstanceProfile");
}

/* Nothing for a type that the catalogue does not know. */
static void cpu_xml(struct buf *b, const char *type)
{
    struct catalogue_type t;
    if (catalogue_find("aws", type, &t, NULL) != 0)
        return;
    int threads = t.vcpus % 2 == 0 ? 2 : 1;
    xmlw_open(b, "cpuOptions");
    xmlw_printf(b, "coreCount", "%d", t.vcpus / threads);
    xmlw_printf(b, "threadsPerCore", "%d", threads);
    xmlw_close(b, "cpuOptions");
}

void ec2_instance_xml(struct buf *b, const struct instance *i, const char *account_id)
{
    const struct launch_spec *s = &i->reservation->spec;
    bool is_spot = s->market == CLOUD_SPOT;
    xmlw_open(b, "item");
    xmlw_leaf(b, "instanceId", i->id);
    xmlw_leaf(b, "imageId", s->image);
    ec2_state_xml(b, "instanceState", i->state);
    buf_adds(b, "<privateDnsName/><dnsName/>");
    reason_xml(b, i);
    if (s->key_name[0])
        xmlw_leaf(b, "keyName", s->key_name);
    xmlw_printf(b, "amiLaunchIndex", "%d", i->launch_index);
    buf_adds(b, "<productCodes/>");
    xmlw_leaf(b, "instanceType", i->pool->type);
    ec2_iso(b, "launchTime", i->launched_at);
    placement_xml(b, i);
    buf_adds(b, "<monitoring><state>disabled</state></monitoring>");
    network_xml(b, i);
    buf_adds(b, "<architecture>x86_64</architecture><rootDeviceType>ebs</rootDeviceType>"
                "<rootDeviceName>/dev/xvda</rootDeviceName><blockDeviceMapping/>"
                "<virtualizationType>hvm</virtualizationType>");
    xmlw_leaf(b, "instanceLifecycle", is_spot ? "spot" : NULL);
    xmlw_leaf(b, "spotInstanceRequestId", is_spot ? i->spot_request_id : NULL);
    xmlw_leaf(b, "clientToken", s->token);
    ec2_tags_xml(b, &i->tags);
    buf_adds(b, "<groupSet/><hypervisor>xen</hypervisor><networkInterfaceSet/>");
    profile_xml(b, i, account_id);
    cpu_xml(b, i->pool->type);
    buf_adds(b, "<ebsOptimized>false</ebsOptimized>");
    metadata_options_xml(b, s);
    xmlw_close(b, "item");
}
