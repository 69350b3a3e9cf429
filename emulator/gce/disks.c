/* SPDX-License-Identifier: Apache-2.0
 *
 * Disks: those created by an insert, and the list of all disks.
 */
#include "base/str.h"
#include "emulator/gce/gce.h"
#include "emulator/volume.h"
#include <stdio.h>
#include <string.h>

#define BOOT_GIB 10
#define FIRST_ID 2000000000000000000LL /* more than 2^53 */

/* ---- insert ---- */

static const char *last_segment(const char *url)
{
    const char *slash = strrchr(url, '/');
    return slash ? slash + 1 : url;
}

static const char *text_of(const json_t *object, const char *key, const char *fallback)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && *text ? text : fallback;
}

static void add_labels(struct tags *tags, const json_t *labels)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)labels, key,
        value) if (json_is_string(value) && strlen(key) <= INSTANCE_TAG_KEY_MAX &&
                   tags->n < INSTANCE_TAGS_MAX) tags_set(tags, key, json_string_value(value));
}

int gce_add_disk(struct launch_spec *spec, const json_t *disk, struct err *e)
{
    const json_t *params = json_object_get(disk, "initializeParams");
    char name[CLOUD_NAME_MAX];
    if (!params || str_eq(text_of(disk, "type", ""), "SCRATCH") ||
        spec->n_disks == LAUNCH_DISKS_MAX)
        return 0; /* an existing disk, or a local one */
    struct disk_spec d = {
        .gib = BOOT_GIB, .stays = !json_is_true(json_object_get(disk, "autoDelete"))};
    if (spec->n_disks == 0)
        STR_COPY(name, spec->name);
    else
        snprintf(name, sizeof(name), "%.50s-%d", spec->name, (int)spec->n_disks);
    const char *size = text_of(params, "diskSizeGb", NULL);
    if (size && str_to_i64(size, 1, VOLUME_GIB_MAX, "diskSizeGb", &d.gib, e) != 0)
        return e->kind;
    if (!STR_COPY(d.name, text_of(params, "diskName", name)) ||
        !STR_COPY(d.type, last_segment(text_of(params, "diskType", "pd-standard"))))
        return err_set(e, ERR_INVALID, "the name of a disk, or of its type, is too long");
    add_labels(&d.tags, json_object_get(params, "labels"));
    spec->disks[spec->n_disks++] = d;
    return 0;
}

/* ---- list ---- */

static json_t *disk_json(const struct region *r, const struct volume *v, const char *name)
{
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string("compute#disk"));
    json_object_set_new(o, "id", json_sprintf("%lld", FIRST_ID + (long long)v->number));
    json_object_set_new(o, "name", json_text(name));
    json_object_set_new(o, "sizeGb", json_sprintf("%lld", (long long)v->spec.gib));
    json_object_set_new(o, "status", json_string("READY"));
    json_object_set_new(o, "zone", gce_zone_url(r, v->zone));
    json_object_set_new(o, "type",
        json_sprintf(
            GCE_URL "/projects/%s/zones/%s/diskTypes/%s", r->o->account, v->zone, v->spec.type));
    gce_time(o, "creationTimestamp", v->made_at);
    gce_time(o, "lastDetachTimestamp", v->detached_at);
    if (v->of)
        json_object_set_new(o, "users",
            json_pack("[o]", gce_instance_url(r, v->zone, v->of->reservation->spec.name)));
    if (v->spec.tags.n > 0)
        json_object_set_new(o, "labels", tags_json(&v->spec.tags));
    return o;
}

int gce_disks_aggregated(struct gce_call *c)
{
    struct gce_items items = {0};
    for (size_t k = 0; k < c->region->n_volumes; k++) {
        const struct volume *v = c->region->volumes[k];
        const char *name = v->spec.name[0] ? v->spec.name : v->id;
        gce_items_add(&items, v->zone, name, disk_json(c->region, v, name));
    }
    return gce_reply_aggregated(c, &items, "compute#diskAggregatedList", "disks");
}
