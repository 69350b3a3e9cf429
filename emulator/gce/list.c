/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists: selecting entries by the query, and showing them plain or by zone. Also the list of zones.
 */
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/gce/gce.h"
#include "emulator/gce/filter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESULTS_MAX 500

void gce_items_add(struct gce_items *items, const char *zone, const char *name, json_t *value)
{
    items->list = mem_resize(items->list, items->n + 1, sizeof(*items->list));
    struct gce_item *i = &items->list[items->n++];
    snprintf(i->key, sizeof(i->key), "%s/%s", zone, name);
    STR_COPY(i->zone, zone);
    i->value = value;
}

static void items_deinit(struct gce_items *items)
{
    for (size_t k = 0; k < items->n; k++)
        json_decref(items->list[k].value);
    free(items->list);
    *items = (struct gce_items){0};
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct gce_item *)a)->key, ((const struct gce_item *)b)->key);
}

struct page {
    int64_t max;
    const char *filter;
    struct buf after; /* the key of the last entry of the previous page */
};

static int read_page(struct gce_call *c, struct page *page)
{
    const char *max = form_get(&c->query, "maxResults"), *token = form_get(&c->query, "pageToken"),
               *order = form_get(&c->query, "orderBy");
    page->max = RESULTS_MAX;
    page->filter = form_get(&c->query, "filter");
    if (max && str_to_i64(max, 0, RESULTS_MAX, "maxResults", &page->max, NULL) < 0)
        return gce_fail(c, 400, "invalid",
            "Invalid value for field 'maxResults': '%.40s'. Must be between 0 and %d.", max,
            RESULTS_MAX);
    if (order && order[0] && !str_eq(order, "name"))
        return gce_fail(c, 400, "invalid",
            "Invalid value for field 'orderBy': '%.40s'. This emulator has name.", order);
    if (token && token[0] && b64_decode(&page->after, token, strlen(token), NULL) < 0)
        return gce_fail(c, 400, "invalid", "Invalid value for field 'pageToken': '%.100s'.", token);
    return gce_query_end(c);
}

/* Drops the entries outside the page; sets *ret_next if there are more. */
static int cut(struct gce_call *c, struct gce_items *items, json_t **ret_next)
{
    struct page page = {0};
    struct err e;
    size_t n = 0;
    bool is_more = false;
    int rc = read_page(c, &page);
    if (rc == 0 && items->n > 0)
        qsort(items->list, items->n, sizeof(*items->list), by_key);
    json_t *nothing = json_object();
    bool fits = true;
    if (rc == 0 && page.filter && page.filter[0] &&
        gce_filter_matches(page.filter, nothing, &fits, &e) < 0)
        rc = gce_fail(c, 400, "invalid", "%s", e.text);
    json_decref(nothing);
    for (size_t k = 0; rc == 0 && k < items->n; k++) {
        struct gce_item *i = &items->list[k];
        fits = page.after.len == 0 || strcmp(i->key, buf_str(&page.after)) > 0;
        if (fits && page.filter && page.filter[0])
            gce_filter_matches(page.filter, i->value, &fits, &e);
        if (fits && (int64_t)n < page.max) {
            struct gce_item kept = *i;
            items->list[k] = items->list[n];
            items->list[n++] = kept;
        } else {
            is_more = is_more || fits;
        }
    }
    if (rc == 0) {
        for (size_t k = n; k < items->n; k++)
            json_decref(items->list[k].value);
        items->n = n;
    }
    if (is_more && n > 0) {
        struct buf token = {0};
        b64_encode(&token, items->list[n - 1].key, strlen(items->list[n - 1].key));
        *ret_next = json_string(buf_str(&token));
        buf_deinit(&token);
    }
    buf_deinit(&page.after);
    return rc;
}

static json_t *list_head(struct gce_call *c, const char *kind)
{
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string(kind));
    json_object_set_new(o, "id", json_text(strstr(c->request->path, "projects/")));
    json_object_set_new(
        o, "selfLink", json_sprintf("https://www.googleapis.com%s", c->request->path));
    return o;
}

int gce_reply_list(struct gce_call *c, struct gce_items *items, const char *kind)
{
    json_t *next = NULL;
    int rc = cut(c, items, &next);
    if (rc == 0) {
        json_t *o = list_head(c, kind), *list = json_array();
        for (size_t k = 0; k < items->n; k++)
            json_array_append(list, items->list[k].value);
        if (items->n > 0)
            json_object_set(o, "items", list);
        json_decref(list);
        if (next)
            json_object_set(o, "nextPageToken", next);
        gce_reply_json(c, o);
    }
    json_decref(next);
    items_deinit(items);
    return rc;
}

static json_t *empty_scope(const char *zone)
{
    json_t *w = json_object(), *o = json_object();
    json_object_set_new(w, "code", json_string("NO_RESULTS_ON_PAGE"));
    json_object_set_new(w, "message",
        json_sprintf("There are no results for scope 'zones/%s' on this page.", zone));
    json_object_set_new(w, "data",
        json_pack("[{s:s, s:o}]", "key", "scope", "value", json_sprintf("zones/%s", zone)));
    json_object_set_new(o, "warning", w);
    return o;
}

int gce_reply_aggregated(
    struct gce_call *c, struct gce_items *items, const char *kind, const char *member)
{
    json_t *next = NULL;
    int rc = cut(c, items, &next);
    if (rc == 0) {
        json_t *o = list_head(c, kind), *scopes = json_object();
        char scope[CLOUD_NAME_MAX + 8];
        for (size_t k = 0; k < c->region->market.n_pools; k++) {
            const char *zone = c->region->market.pools[k].zone;
            snprintf(scope, sizeof(scope), "zones/%s", zone);
            if (!json_object_get(scopes, scope))
                json_object_set_new(scopes, scope, empty_scope(zone));
        }
        for (size_t k = 0; k < items->n; k++) {
            snprintf(scope, sizeof(scope), "zones/%s", items->list[k].zone);
            json_t *in_zone = json_object_get(scopes, scope);
            if (!json_object_get(in_zone, member)) {
                json_object_clear(in_zone);
                json_object_set_new(in_zone, member, json_array());
            }
            json_array_append(json_object_get(in_zone, member), items->list[k].value);
        }
        json_object_set_new(o, "items", scopes);
        if (next)
            json_object_set(o, "nextPageToken", next);
        gce_reply_json(c, o);
    }
    json_decref(next);
    items_deinit(items);
    return rc;
}

int gce_zones_list(struct gce_call *c)
{
    struct gce_items items = {0};
    for (size_t k = 0; k < c->region->market.n_pools; k++) {
        const char *zone = c->region->market.pools[k].zone;
        bool is_there = false;
        for (size_t i = 0; i < items.n && !is_there; i++)
            is_there = str_eq(items.list[i].zone, zone);
        if (is_there)
            continue;
        json_t *o = json_object();
        json_object_set_new(o, "kind", json_string("compute#zone"));
        json_object_set_new(o, "name", json_string(zone));
        json_object_set_new(o, "status", json_string("UP"));
        json_object_set_new(o, "region",
            json_sprintf(
                GCE_URL "/projects/%s/regions/%s", c->region->o->account, c->region->o->name));
        json_object_set_new(o, "selfLink", gce_zone_url(c->region, zone));
        gce_items_add(&items, zone, zone, o);
    }
    return gce_reply_list(c, &items, "compute#zoneList");
}
