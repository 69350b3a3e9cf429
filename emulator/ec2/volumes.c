/* SPDX-License-Identifier: Apache-2.0
 *
 * DescribeVolumes, and the disks of RunInstances. Every image has a root disk of 8 GiB. With
 * `image_volume_gib` in the configuration it has a second one, which is not deleted with its
 * instance: that is how AMIs leave volumes behind.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/ec2/ec2.h"
#include "emulator/volume.h"
#include "emulator/xml_write.h"
#include <stdlib.h>

#define IDS_MAX 500
#define PAGE_MIN 5
#define PAGE_MAX 500
#define ROOT_GIB 8
#define ROOT_DEVICE "/dev/xvda"
#define MAPPING "BlockDeviceMapping.%zu."

/* ---- RunInstances ---- */

static int read_type(struct ec2_call *c, size_t k, struct disk_spec *d)
{
    static const char *const types[] = {"gp3", "gp2", "io1", "io2", "st1", "sc1", "standard", NULL};
    const char *type = form_get(c->form, MAPPING "Ebs.VolumeType", k);
    for (size_t i = 0; type && types[i]; i++)
        if (str_eq(types[i], type)) {
            STR_COPY(d->type, type);
            return 0;
        }
    return type ? ec2_fail(c, "InvalidParameterValue",
                      "Value (%.40s) for parameter VolumeType is invalid.", type)
                : 0;
}

static int read_mapping(struct ec2_call *c, size_t k, struct disk_spec *d)
{
    char name[64];
    bool deleted = true;
    snprintf(name, sizeof(name), MAPPING "Ebs.VolumeSize", k);
    if (ec2_integer(c, name, 1, VOLUME_GIB_MAX, d->gib, &d->gib) < 0 || read_type(c, k, d) < 0)
        return -1;
    snprintf(name, sizeof(name), MAPPING "Ebs.DeleteOnTermination", k);
    if (ec2_boolean(c, name, true, &deleted) < 0)
        return -1;
    d->stays = !deleted;
    return 0;
}

static struct disk_spec *add_disk(struct launch_spec *s, int64_t gib, bool stays)
{
    struct disk_spec *d = &s->disks[s->n_disks++];
    *d = (struct disk_spec){.gib = gib, .stays = stays};
    STR_COPY(d->type, "gp3");
    return d;
}

int ec2_read_disks(struct ec2_call *c, struct launch_spec *s)
{
    const char *device;
    add_disk(s, ROOT_GIB, false);
    if (c->account->image_volume_gib > 0)
        add_disk(s, c->account->image_volume_gib, true);
    for (size_t k = 1; (device = form_get(c->form, MAPPING "DeviceName", k)); k++) {
        bool is_root = str_eq(device, ROOT_DEVICE);
        if (!is_root && s->n_disks == LAUNCH_DISKS_MAX)
            return ec2_fail(c, "InvalidBlockDeviceMapping",
                "This emulator has at most %d disks an instance.", LAUNCH_DISKS_MAX);
        if (read_mapping(c, k, is_root ? &s->disks[0] : add_disk(s, ROOT_GIB, false)) < 0)
            return -1;
    }
    /* other settings of a disk have no effect here */
    form_use_all(c->form, "BlockDeviceMapping");
    return 0;
}

/* ---- DescribeVolumes ---- */

struct selection {
    const char *ids[IDS_MAX];
    size_t n_ids;
    struct ec2_filters filters;
    struct ec2_page page;
};

static int read_ids(struct ec2_call *c, struct selection *s)
{
    const char *id;
    while ((id = form_get(c->form, "VolumeId.%zu", s->n_ids + 1))) {
        bool found = false;
        for (size_t k = 0; !found && k < c->region->n_volumes; k++)
            found = str_eq(c->region->volumes[k]->id, id);
        if (s->n_ids == IDS_MAX)
            return ec2_fail(
                c, "InvalidParameterValue", "At most %d volume ids can be given.", IDS_MAX);
        if (!found)
            return ec2_fail(c, "InvalidVolume.NotFound", "The volume '%.60s' does not exist.", id);
        s->ids[s->n_ids++] = id;
    }
    return 0;
}

/* Filters with a single text as value. NULL for an unknown filter. */
static const char *filtered_text(const struct volume *v, const char *name)
{
    if (str_eq(name, "status"))
        return v->of ? "in-use" : "available";
    if (str_eq(name, "availability-zone"))
        return v->zone;
    if (str_eq(name, "volume-id"))
        return v->id;
    if (str_eq(name, "volume-type"))
        return v->spec.type;
    if (str_eq(name, "attachment.instance-id"))
        return v->of ? v->of->id : "";
    return NULL;
}

static int check_filters(struct ec2_call *c, const struct ec2_filters *fs)
{
    static const struct volume none;
    for (size_t k = 0; k < fs->n; k++)
        if (!str_starts(fs->list[k].name, "tag:") && !filtered_text(&none, fs->list[k].name))
            return ec2_fail(
                c, "InvalidParameterValue", "The filter '%.100s' is invalid", fs->list[k].name);
    return 0;
}

static bool is_selected(const struct selection *s, const struct volume *v)
{
    bool is = s->n_ids == 0;
    for (size_t k = 0; !is && k < s->n_ids; k++)
        is = str_eq(s->ids[k], v->id);
    for (size_t k = 0; is && k < s->filters.n; k++) {
        const struct ec2_filter *f = &s->filters.list[k];
        const char *text = str_starts(f->name, "tag:") ? tags_get(&v->spec.tags, f->name + 4)
                                                       : filtered_text(v, f->name);
        is = text && ec2_filter_matches(f, text);
    }
    return is && v->number > s->page.after;
}

static void attachment_xml(struct buf *b, const struct volume *v)
{
    xmlw_open(b, "attachmentSet");
    if (v->of) {
        xmlw_open(b, "item");
        xmlw_leaf(b, "volumeId", v->id);
        xmlw_leaf(b, "instanceId", v->of->id);
        xmlw_leaf(b, "status", "attached");
        ec2_iso(b, "attachTime", v->made_at);
        xmlw_leaf(b, "deleteOnTermination", v->spec.stays ? "false" : "true");
        xmlw_close(b, "item");
    }
    xmlw_close(b, "attachmentSet");
}

static void volume_xml(struct buf *b, const struct volume *v)
{
    xmlw_open(b, "item");
    xmlw_leaf(b, "volumeId", v->id);
    xmlw_printf(b, "size", "%lld", (long long)v->spec.gib);
    xmlw_leaf(b, "snapshotId", "");
    xmlw_leaf(b, "availabilityZone", v->zone);
    xmlw_leaf(b, "status", v->of ? "in-use" : "available");
    ec2_iso(b, "createTime", v->made_at);
    attachment_xml(b, v);
    ec2_tags_xml(b, &v->spec.tags);
    xmlw_leaf(b, "volumeType", v->spec.type);
    xmlw_leaf(b, "encrypted", "false");
    xmlw_leaf(b, "multiAttachEnabled", "false");
    xmlw_close(b, "item");
}

static void write_selected(struct ec2_call *c, const struct selection *s)
{
    struct buf *b = &c->reply->body;
    int64_t n = 0, last = 0;
    xmlw_open(b, "volumeSet");
    for (size_t k = 0; k < c->region->n_volumes; k++) {
        const struct volume *v = c->region->volumes[k];
        if (!is_selected(s, v))
            continue;
        if (n++ == s->page.max)
            break;
        volume_xml(b, v);
        last = v->number;
    }
    xmlw_close(b, "volumeSet");
    if (n > s->page.max)
        ec2_next_token(b, last);
}

int ec2_describe_volumes(struct ec2_call *c)
{
    struct selection *s = mem_alloc(sizeof(*s));
    int rc = read_ids(c, s);
    if (rc == 0)
        rc = ec2_read_filters(c, &s->filters);
    if (rc == 0)
        rc = check_filters(c, &s->filters);
    if (rc == 0)
        rc = ec2_read_page(c, PAGE_MIN, PAGE_MAX, &s->page);
    if (rc == 0 && s->n_ids > 0 && s->page.is_paged)
        rc = ec2_fail(c, "InvalidParameterCombination",
            "The parameter volumeSet cannot be used with the parameter maxResults");
    if (rc == 0)
        rc = ec2_params_end(c);
    if (rc == 0)
        write_selected(c, s);
    free(s->filters.list);
    free(s);
    return rc;
}
