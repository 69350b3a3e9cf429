/* SPDX-License-Identifier: Apache-2.0
 *
 * The Retail Prices API, from the market. Prices apply to a whole location, so a size has those of
 * its first pool. The other meters that Azure lists under the same size are included for clients to
 * filter out: Windows, Low Priority, reservations.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/filter.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "Standard_"

struct meter {
    const char *suffix, *product, *kind, *term;
    enum cloud_market market;
    double factor; /* multiplies the market's price */
};

static const struct meter meters[] = {
    {"", "", "Consumption", NULL, CLOUD_ON_DEMAND, 1},
    {" Spot", "", "Consumption", NULL, CLOUD_SPOT, 1},
    {" Low Priority", "", "Consumption", NULL, CLOUD_ON_DEMAND, 0.2},
    {"", " Windows", "Consumption", NULL, CLOUD_ON_DEMAND, 1.9},
    {" Spot", " Windows", "Consumption", NULL, CLOUD_SPOT, 1.9},
    {"", "", "Reservation", "1 Year", CLOUD_ON_DEMAND, 5000},
};

static const char *const filter_names[] = {"armRegionName", "armSkuName", "serviceName",
    "serviceFamily", "priceType", "meterName", "skuName", "productName", "location", "currencyCode",
    NULL};

/* "Standard_D8s_v5" becomes "D8s v5". */
static void short_name(const char *type, char *out, size_t size)
{
    str_copy(out, size, str_starts(type, PREFIX) ? type + strlen(PREFIX) : type);
    for (char *p = out; *p; p++)
        if (*p == '_')
            *p = ' ';
}

static void set(json_t *o, const char *key, const char *value)
{
    json_object_set_new(o, key, json_text(value));
}

static json_t *make_item(const struct region *r, const struct market_pool *p, const struct meter *m)
{
    char size[CLOUD_NAME_MAX], text[2 * CLOUD_NAME_MAX], iso[TIME_ISO_MAX];
    json_t *o = json_object();
    double price = (double)p->price_uusd_h[m->market] / 1e6 * m->factor;
    bool is_spot = m->market == CLOUD_SPOT && p->n_history > 0;
    short_name(p->type, size, sizeof(size));
    set(o, "currencyCode", "USD");
    json_object_set_new(o, "tierMinimumUnits", json_real(0));
    json_object_set_new(o, "retailPrice", json_real(price));
    json_object_set_new(o, "unitPrice", json_real(price));
    set(o, "armRegionName", r->o->name);
    set(o, "location", r->o->name);
    time_format_iso(is_spot ? p->history[p->n_history - 1].since : r->start, iso);
    set(o, "effectiveStartDate", iso);
    snprintf(text, sizeof(text), "%s%s", size, m->suffix);
    set(o, "meterName", text);
    set(o, "skuName", text);
    snprintf(text, sizeof(text), "Virtual Machines %s Series%s", size, m->product);
    set(o, "productName", text);
    set(o, "serviceName", "Virtual Machines");
    set(o, "serviceFamily", "Compute");
    set(o, "unitOfMeasure", "1 Hour");
    set(o, "type", m->kind);
    json_object_set_new(o, "isPrimaryMeterRegion", json_true());
    set(o, "armSkuName", p->type);
    if (m->term)
        set(o, "reservationTerm", m->term);
    return o;
}

static bool passes(const struct arm_filter *f, const json_t *item)
{
    for (size_t i = 0; i < f->n; i++) {
        const char *name = filter_names[f->terms[i].field];
        name = str_eq(name, "priceType") ? "type" : name;
        if (!arm_filter_passes(&f->terms[i], json_string_value(json_object_get(item, name))))
            return false;
    }
    return true;
}

static json_t *make_items(const struct region *r, const struct arm_filter *f)
{
    const struct market *m = &r->market;
    json_t *list = json_array();
    for (size_t i = 0; i < m->n_pools; i++) {
        if (!market_is_first_of_type(m, i))
            continue;
        for (size_t k = 0; k < sizeof(meters) / sizeof(meters[0]); k++) {
            json_t *item = make_item(r, &m->pools[i], &meters[k]);
            if (passes(f, item))
                json_array_append(list, item);
            json_decref(item);
        }
    }
    return list;
}

static int fail_odata(struct arm_call *c, const char *why)
{
    return arm_fail(c, "BadRequest", "Invalid OData parameters supplied: %s", why);
}

int arm_list_prices(struct arm_call *c)
{
    const char *filter = form_get(&c->form, "$filter"), *skip_text = form_get(&c->form, "$skip");
    const char *version = form_get(&c->form, "api-version");
    size_t page = (size_t)c->arm->account->page;
    struct arm_filter f;
    struct err e;
    int64_t skip = 0;
    if (version && !str_eq(version, "2023-01-01-preview") && !str_eq(version, "2021-10-01-preview"))
        return fail_odata(c, "api-version: there are 2021-10-01-preview and 2023-01-01-preview");
    if (arm_filter_parse(filter, filter_names, &f, &e) < 0 ||
        (skip_text && str_to_i64(skip_text, 0, INT32_MAX, "$skip", &skip, &e) < 0))
        return fail_odata(c, e.text);
    json_t *all = make_items(c->arm->region, &f), *items = json_array(), *o = json_object();
    for (size_t i = (size_t)skip; i < json_array_size(all) && json_array_size(items) < page; i++)
        json_array_append(items, json_array_get(all, i));
    set(o, "BillingCurrency", "USD");
    set(o, "CustomerEntityId", "Default");
    set(o, "CustomerEntityType", "Retail");
    json_object_set_new(o, "Count", json_integer((json_int_t)json_array_size(items)));
    json_object_set_new(o, "Items", items);
    json_t *next = json_null();
    if (json_array_size(all) > (size_t)skip + page) {
        struct buf url = {0};
        buf_printf(&url, "%s%s?", c->q->base, c->q->path);
        if (version)
            buf_printf(&url, "api-version=%s&", version);
        buf_adds(&url, "$filter=");
        str_url_encode(&url, filter ? filter : "", filter ? strlen(filter) : 0);
        buf_printf(&url, "&$skip=%zu", (size_t)skip + page);
        next = json_text(buf_str(&url));
        buf_deinit(&url);
    }
    json_object_set_new(o, "NextPageLink", next);
    json_decref(all);
    c->reply->body = o;
    return 0;
}
