/* SPDX-License-Identifier: Apache-2.0
 *
 * Microsoft.Compute/locations/usages: the cores of a subscription in the region. Without a limit of
 * the configuration a quota has one that no test reaches.
 */
#include "base/str.h"
#include "emulator/arm/arm.h"
#include "emulator/arm/parts.h"

#define UNLIMITED 100000

static void add(json_t *list, const char *name, const char *shown, int64_t limit, int64_t used)
{
    json_t *o = json_object(), *names = json_object();
    json_object_set_new(names, "value", json_string(name));
    json_object_set_new(names, "localizedValue", json_string(shown));
    json_object_set_new(o, "unit", json_string("Count"));
    json_object_set_new(o, "currentValue", json_integer(used));
    json_object_set_new(o, "limit", json_integer(limit));
    json_object_set_new(o, "name", names);
    json_array_append_new(list, o);
}

static int64_t cores_in_use(const struct arm_call *c, enum cloud_market market)
{
    int64_t n = 0;
    LIST_FOREACH (&c->arm->region->alive, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, alive);
        if (i->reservation->spec.market == market)
            n += arm_cores_of(i->pool->type);
    }
    return n;
}

int arm_list_usages(struct arm_call *c)
{
    int64_t spot = c->arm->account->spot_cores;
    json_t *list = json_array(), *o = json_object();
    if (!str_eq(c->segments[5], c->arm->region->o->name)) {
        json_decref(list);
        json_decref(o);
        return arm_fail(c, "NoRegisteredProviderFound",
            "No registered resource provider found for location '%.60s'.", c->segments[5]);
    }
    add(list, "cores", "Total Regional vCPUs", UNLIMITED, cores_in_use(c, CLOUD_ON_DEMAND));
    add(list, "lowPriorityCores", "Total Regional Low-priority vCPUs", spot > 0 ? spot : UNLIMITED,
        cores_in_use(c, CLOUD_SPOT));
    json_object_set_new(o, "value", list);
    c->reply->body = o;
    return 0;
}
