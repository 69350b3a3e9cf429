/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries of the market: DescribeSpotPriceHistory, DescribeSpotInstanceRequests,
 * DescribeAvailabilityZones.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/ec2/ec2.h"
#include "emulator/xml_write.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRODUCT "Linux/UNIX"
#define HISTORY_MS (90 * SECONDS_MS(86400))
#define PAGE_MAX 1000
#define NAMES_MAX 100

/* ---- DescribeSpotPriceHistory ---- */

struct price_query {
    const char *types[NAMES_MAX];
    size_t n_types;
    const char *zone;
    struct wall from, to;
    bool is_linux; /* the only product emulated */
    struct ec2_filters filters;
    struct ec2_page page;
};

static int read_time(
    struct ec2_call *c, const char *name, struct wall fallback, struct wall *ret_wall)
{
    const char *text = form_get(c->form, "%s", name);
    *ret_wall = fallback;
    if (text && time_parse_iso(text, ret_wall, NULL) < 0)
        return ec2_fail(c, "InvalidParameterValue",
            "Invalid value '%.60s' for %s: expecting ISO 8601 in UTC", text, name);
    return 0;
}

static int read_products(struct ec2_call *c, struct price_query *q)
{
    const char *product;
    q->is_linux = true;
    for (size_t k = 1; (product = form_get(c->form, "ProductDescription.%zu", k)); k++) {
        if (k > NAMES_MAX)
            return ec2_fail(c, "InvalidParameterValue", "Too many product descriptions.");
        q->is_linux = (k > 1 && q->is_linux) || str_starts(product, PRODUCT);
    }
    return 0;
}

static int check_price_filters(struct ec2_call *c, const struct price_query *q)
{
    for (size_t k = 0; k < q->filters.n; k++) {
        const char *name = q->filters.list[k].name;
        if (!str_eq(name, "availability-zone") && !str_eq(name, "instance-type") &&
            !str_eq(name, "product-description"))
            return ec2_fail(c, "InvalidParameterValue", "The filter '%.100s' is invalid", name);
    }
    return 0;
}

static int read_price_query(struct ec2_call *c, struct price_query *q)
{
    const char *type;
    while ((type = form_get(c->form, "InstanceType.%zu", q->n_types + 1))) {
        if (q->n_types == NAMES_MAX)
            return ec2_fail(
                c, "InvalidParameterValue", "At most %d instance types can be given.", NAMES_MAX);
        q->types[q->n_types++] = type;
    }
    q->zone = form_get(c->form, "AvailabilityZone");
    if (read_time(c, "StartTime", (struct wall){c->now.ms - HISTORY_MS}, &q->from) < 0 ||
        read_time(c, "EndTime", c->now, &q->to) < 0 || read_products(c, q) < 0 ||
        ec2_read_filters(c, &q->filters) < 0 || check_price_filters(c, q) < 0 ||
        ec2_read_page(c, 1, PAGE_MAX, &q->page) < 0)
        return -1;
    return ec2_params_end(c);
}

static bool wants_pool(const struct price_query *q, const struct market_pool *p)
{
    bool is_wanted = q->n_types == 0;
    for (size_t k = 0; !is_wanted && k < q->n_types; k++)
        is_wanted = str_eq(q->types[k], p->type);
    if (q->zone && !str_eq(q->zone, p->zone))
        is_wanted = false;
    for (size_t k = 0; is_wanted && k < q->filters.n; k++) {
        const struct ec2_filter *f = &q->filters.list[k];
        is_wanted = ec2_filter_matches(f, str_eq(f->name, "availability-zone") ? p->zone
                                          : str_eq(f->name, "instance-type")   ? p->type
                                                                               : PRODUCT);
    }
    return is_wanted && q->is_linux;
}

struct price_row {
    const struct market_pool *pool;
    struct market_price price;
    size_t order; /* keeps the sort stable */
};

static int newest_first(const void *a, const void *b)
{
    const struct price_row *x = a, *y = b;
    if (x->price.since.ms != y->price.since.ms)
        return x->price.since.ms > y->price.since.ms ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* The changes within [from, to] and the one in force at from. */
static struct price_row *collect(
    const struct ec2_call *c, const struct price_query *q, size_t *ret_n)
{
    const struct market *m = &c->region->market;
    struct price_row *rows = NULL;
    size_t n = 0;
    for (size_t k = 0; k < m->n_pools; k++) {
        const struct market_pool *p = &m->pools[k];
        for (size_t h = 0; wants_pool(q, p) && h < p->n_history; h++) {
            bool is_over = h + 1 < p->n_history && p->history[h + 1].since.ms <= q->from.ms;
            if (is_over || p->history[h].since.ms > q->to.ms)
                continue;
            rows = mem_resize(rows, n + 1, sizeof(*rows));
            rows[n] = (struct price_row){.pool = p, .price = p->history[h], .order = n};
            n++;
        }
    }
    if (n > 0)
        qsort(rows, n, sizeof(*rows), newest_first);
    *ret_n = n;
    return rows;
}

static void price_xml(struct buf *b, const struct price_row *row)
{
    char id[32];
    ec2_zone_id(row->pool->zone, id, sizeof(id));
    xmlw_open(b, "item");
    xmlw_leaf(b, "instanceType", row->pool->type);
    xmlw_leaf(b, "productDescription", PRODUCT);
    xmlw_printf(b, "spotPrice", "%lld.%06lld", (long long)(row->price.uusd_h / 1000000),
        (long long)(row->price.uusd_h % 1000000));
    ec2_iso(b, "timestamp", row->price.since);
    xmlw_leaf(b, "availabilityZone", row->pool->zone);
    xmlw_leaf(b, "availabilityZoneId", id);
    xmlw_close(b, "item");
}

static void write_prices(struct ec2_call *c, const struct price_query *q)
{
    struct buf *b = &c->reply->body;
    size_t n;
    struct price_row *rows = collect(c, q, &n);
    size_t from = (uint64_t)q->page.after < n ? (size_t)q->page.after : n;
    size_t to = (size_t)q->page.max < n - from ? from + (size_t)q->page.max : n;
    xmlw_open(b, "spotPriceHistorySet");
    for (size_t k = from; k < to; k++)
        price_xml(b, &rows[k]);
    xmlw_close(b, "spotPriceHistorySet");
    if (to < n)
        ec2_next_token(b, (int64_t)to);
    else
        buf_adds(b, "<nextToken/>");
    free(rows);
}

int ec2_describe_spot_price_history(struct ec2_call *c)
{
    struct price_query q = {0};
    int rc = read_price_query(c, &q);
    if (rc == 0)
        write_prices(c, &q);
    free(q.filters.list);
    return rc;
}

/* ---- DescribeSpotInstanceRequests ---- */

struct request_status {
    const char *state, *code;
};

static struct request_status request_status(const struct instance *i)
{
    if (i->is_reclaimed)
        return (struct request_status){"closed",
            i->is_by_price ? "instance-terminated-by-price" : "instance-terminated-no-capacity"};
    if (instance_is_alive(i))
        return (struct request_status){"active", "fulfilled"};
    return (struct request_status){"closed", "instance-terminated-by-user"};
}

static void request_xml(struct buf *b, const struct instance *i)
{
    struct request_status s = request_status(i);
    xmlw_open(b, "item");
    xmlw_leaf(b, "spotInstanceRequestId", i->spot_request_id);
    xmlw_printf(b, "spotPrice", "%.6f", (double)i->pool->price_uusd_h[CLOUD_ON_DEMAND] / 1e6);
    buf_adds(b, "<type>one-time</type>");
    xmlw_leaf(b, "state", s.state);
    xmlw_open(b, "status");
    xmlw_leaf(b, "code", s.code);
    ec2_iso(b, "updateTime",
        wall_is_set(i->noticed_at) ? i->noticed_at
        : wall_is_set(i->ended_at) ? i->ended_at
                                   : i->launched_at);
    xmlw_leaf(b, "message", s.code);
    xmlw_close(b, "status");
    xmlw_leaf(b, "instanceId", i->id);
    ec2_iso(b, "createTime", i->launched_at);
    xmlw_leaf(b, "productDescription", PRODUCT);
    xmlw_leaf(b, "launchedAvailabilityZone", i->pool->zone);
    buf_adds(b, "<instanceInterruptionBehavior>terminate</instanceInterruptionBehavior>");
    xmlw_close(b, "item");
}

static struct instance *find_request(const struct region *r, const char *id)
{
    for (size_t k = 0; id[0] && k < r->n_instances; k++)
        if (str_eq(r->instances[k]->spot_request_id, id))
            return r->instances[k];
    return NULL;
}

int ec2_describe_spot_instance_requests(struct ec2_call *c)
{
    struct buf *b = &c->reply->body;
    const char *id;
    size_t n_ids = 0;
    xmlw_open(b, "spotInstanceRequestSet");
    for (; (id = form_get(c->form, "SpotInstanceRequestId.%zu", n_ids + 1)); n_ids++) {
        const struct instance *i = find_request(c->region, id);
        if (!i)
            return ec2_fail(c, "InvalidSpotInstanceRequestID.NotFound",
                "The spot instance request ID '%.60s' does not exist", id);
        request_xml(b, i);
    }
    for (size_t k = 0; n_ids == 0 && k < c->region->n_instances; k++)
        if (c->region->instances[k]->spot_request_id[0])
            request_xml(b, c->region->instances[k]);
    xmlw_close(b, "spotInstanceRequestSet");
    return ec2_params_end(c);
}

/* ---- DescribeAvailabilityZones ---- */

int ec2_describe_availability_zones(struct ec2_call *c)
{
    if (ec2_params_end(c) < 0)
        return -1;
    const struct market *m = &c->region->market;
    struct buf *b = &c->reply->body;
    xmlw_open(b, "availabilityZoneInfo");
    for (size_t k = 0; k < m->n_pools; k++) {
        char id[32];
        if (!market_is_first_of_zone(m, k))
            continue;
        ec2_zone_id(m->pools[k].zone, id, sizeof(id));
        xmlw_open(b, "item");
        xmlw_leaf(b, "zoneName", m->pools[k].zone);
        xmlw_leaf(b, "zoneId", id);
        buf_adds(b, "<zoneState>available</zoneState>");
        xmlw_leaf(b, "regionName", c->region->o->name);
        buf_adds(b, "<messageSet/><zoneType>availability-zone</zoneType>");
        xmlw_close(b, "item");
    }
    xmlw_close(b, "availabilityZoneInfo");
    return 0;
}
