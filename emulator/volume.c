/* SPDX-License-Identifier: Apache-2.0
 *
 * See volume.h. Ids come from a separate generator, so that an extra volume changes no instance id.
 */
#include "emulator/volume.h"

#include "base/mem.h"
#include "base/str.h"
#include "emulator/region.h"
#include <stdlib.h>

static struct volume *add(struct region *r, const char *zone, struct wall made_at)
{
    struct volume *v = mem_alloc(sizeof(*v));
    *v = (struct volume){
        .number = ++r->n_volumes_ever, .made_at = made_at, .detached_at = WALL_NONE};
    snprintf(v->id, sizeof(v->id), "vol-0%016llx", (unsigned long long)prng_u64(&r->volume_ids));
    STR_COPY(v->zone, zone);
    r->volumes = mem_resize(r->volumes, r->n_volumes + 1, sizeof(struct volume *));
    r->volumes[r->n_volumes++] = v;
    return v;
}

static void destroy(struct volume *v)
{
    tags_deinit(&v->spec.tags);
    free(v);
}

void region_make_volumes(struct region *r, const struct instance *i)
{
    const struct launch_spec *s = &i->reservation->spec;
    for (size_t k = 0; k < s->n_disks && r->n_volumes < REGION_VOLUMES_MAX; k++) {
        struct volume *v = add(r, i->pool->zone, i->launched_at);
        v->spec = s->disks[k];
        v->spec.tags = (struct tags){0};
        tags_set_all(&v->spec.tags, &s->disks[k].tags);
        v->of = i;
    }
}

void region_add_volume(
    struct region *r, struct disk_spec *spec, const char *zone, struct wall made_at)
{
    struct volume *v = add(r, zone, made_at);
    v->spec = *spec;
    *spec = (struct disk_spec){0};
}

void region_free_volumes(struct region *r, const struct instance *i, struct wall at)
{
    size_t n = 0;
    for (size_t k = 0; k < r->n_volumes; k++) {
        struct volume *v = r->volumes[k];
        if (v->of == i && !v->spec.stays) {
            destroy(v);
            continue;
        }
        if (v->of == i) {
            v->of = NULL;
            v->detached_at = at;
        }
        r->volumes[n++] = v;
    }
    r->n_volumes = n;
}

void region_volumes_deinit(struct region *r)
{
    for (size_t k = 0; k < r->n_volumes; k++)
        destroy(r->volumes[k]);
    free(r->volumes);
}
