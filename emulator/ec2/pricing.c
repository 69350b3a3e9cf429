/* SPDX-License-Identifier: Apache-2.0
 *
 * GetProducts, from the market. Prices apply to the whole region, so a type has the on-demand price
 * of its first pool. The other products that AWS lists for the same machine are included for
 * clients to filter out: Windows, dedicated hosts, databases, reservations that are free when used,
 * capacity blocks.
 */
#include "emulator/ec2/pricing.h"
#include "base/b64.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "cloud/catalogue.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET "AWSPriceListService." EC2_PRICING_ACTION
#define SERVICE "AmazonEC2"
#define FILTERS_MAX 50
#define PAGE_MAX 100
#define PAGE_PREFIX "after:"
#define TEXT_MAX 1024
/* AWS's codes of "on demand" and "hourly", the same in all price lists. */
#define TERM "JRTCKXETXF"
#define RATE "6YS6EN2CT7"

static const struct variant {
    const char *system, *tenancy, *software, *capacity, *market, *operation;
    double factor; /* multiplies the price */
} variants[] = {
    {"Linux", "Dedicated", "NA", "Used", "OnDemand", "RunInstances", 2},
    {"Windows", "Shared", "NA", "Used", "OnDemand", "RunInstances:0002", 1.9},
    {"Linux", "Shared", "SQL Std", "Used", "OnDemand", "RunInstances:0004", 3},
    {"Linux", "Shared", "NA", "AllocatedCapacityReservation", "OnDemand", "RunInstances", 0},
    {"Linux", "Shared", "NA", "UnusedCapacityReservation", "OnDemand", "RunInstances", 1},
    {"Linux", "Shared", "NA", "Used", "CapacityBlock", "RunInstances:CB", 0.4},
    {"Linux", "Shared", "NA", "Used", "OnDemand", "RunInstances", 1},
};
#define N_VARIANTS (sizeof(variants) / sizeof(variants[0]))

/* ---- errors ---- */

/* Usual messages, and EC2's code for the same error, for faults queued for all actions. */
static const struct {
    const char *code, *ec2, *text;
} usual[] = {
    {"MissingAuthenticationTokenException", NULL, "Missing Authentication Token"},
    {"InvalidSignatureException", "SignatureDoesNotMatch",
        "The request signature we calculated does not match the signature you provided. Check your "
        "AWS Secret Access Key and "
        "signing method."},
    {"UnrecognizedClientException", "AuthFailure",
        "The security token included in the request is invalid."},
    {"ExpiredTokenException", NULL, "The security token included in the request is expired"},
    {"AccessDeniedException", "UnauthorizedOperation",
        "User is not authorized to perform: pricing:GetProducts because no identity-based policy "
        "allows it"},
    {"ThrottlingException", "RequestLimitExceeded", "Rate exceeded"},
    {"InternalErrorException", "InternalError",
        "An error on the server occurred during the processing of your request."},
};

void ec2_pricing_error(
    struct region *r, const char *code, const char *text, struct ec2_reply *reply)
{
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (!str_eq(code, usual[i].code) && !str_eq(code, usual[i].ec2))
            continue;
        code = usual[i].code;
        text = text ? text : usual[i].text;
        break;
    }
    text = text ? text : code;
    if (!reply->request_id[0])
        ec2_make_request_id(r, reply->request_id);
    reply->status = str_eq(code, "InternalErrorException") ? 500 : 400;
    STR_COPY(reply->code, code);
    STR_COPY(reply->message, text);
    json_t *o = json_object();
    json_object_set_new(o, "__type", json_text(code));
    json_object_set_new(o, "Message", json_text(text));
    buf_clear(&reply->body);
    json_add(&reply->body, o);
}

struct call {
    struct region *region;
    struct ec2_reply *reply;
};

static int fail(struct call *c, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct call *c, const char *code, const char *fmt, ...)
{
    char text[512];
    VFORMAT(text, fmt);
    ec2_pricing_error(c->region, code, text, c->reply);
    return -1;
}

/* ---- products ---- */

static void set(json_t *o, const char *key, const char *value)
{
    json_object_set_new(o, key, json_text(value));
}

/* 16 letters and digits, stable for the same product. */
static void make_sku(const char *type, size_t variant, char out[17])
{
    static const char letters[] = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
    uint64_t h = hash_bytes(HASH_INIT + variant, type, strlen(type));
    for (int i = 0; i < 16; i++, h = h * HASH_PRIME + 1)
        out[i] = letters[(h >> 33) % (sizeof(letters) - 1)];
    out[16] = '\0';
}

static json_t *make_attributes(const struct region *r, const char *type, const struct variant *v)
{
    char text[CLOUD_NAME_MAX + 32];
    struct catalogue_type known;
    json_t *o = json_object();
    set(o, "servicecode", SERVICE);
    set(o, "servicename", "Amazon Elastic Compute Cloud");
    set(o, "location", r->o->name);
    set(o, "locationType", "AWS Region");
    set(o, "regionCode", r->o->name);
    set(o, "availabilityzone", "NA");
    set(o, "instanceType", type);
    if (catalogue_find("aws", type, &known, NULL) == 0) {
        snprintf(text, sizeof(text), "%lld", (long long)known.vcpus);
        set(o, "vcpu", text);
        snprintf(text, sizeof(text), "%lld GiB", (long long)known.memory_mib / 1024);
        set(o, "memory", text);
    }
    set(o, "operatingSystem", v->system);
    set(o, "licenseModel", "No License required");
    set(o, "tenancy", v->tenancy);
    set(o, "preInstalledSw", v->software);
    set(o, "capacitystatus", v->capacity);
    set(o, "marketoption", v->market);
    set(o, "operation", v->operation);
    snprintf(text, sizeof(text), "%s:%s",
        str_eq(v->tenancy, "Dedicated")  ? "DedicatedUsage"
        : str_starts(v->capacity, "All") ? "Reservation"
        : str_starts(v->capacity, "Un")  ? "UnusedBox"
                                         : "BoxUsage",
        type);
    set(o, "usagetype", text);
    return o;
}

static json_t *make_terms(const struct region *r, const char *sku, const char *type, int64_t uusd_h)
{
    char price[48], text[160], iso[TIME_ISO_MAX], term_key[40], rate_key[60];
    json_t *unit = json_object(), *rate = json_object(), *rates = json_object(),
           *term = json_object(), *terms = json_object(), *o = json_object();
    snprintf(price, sizeof(price), "%lld.%06lld0000", (long long)(uusd_h / 1000000),
        (long long)(uusd_h % 1000000));
    snprintf(term_key, sizeof(term_key), "%s." TERM, sku);
    snprintf(rate_key, sizeof(rate_key), "%s." RATE, term_key);
    snprintf(text, sizeof(text), "$%s per On Demand %s Instance Hour", price, type);
    time_format_iso((struct wall){r->start.ms / 1000 * 1000}, iso);
    set(unit, "USD", price);
    set(rate, "unit", "Hrs");
    set(rate, "beginRange", "0");
    set(rate, "endRange", "Inf");
    set(rate, "description", text);
    set(rate, "rateCode", rate_key);
    json_object_set_new(rate, "appliesTo", json_array());
    json_object_set_new(rate, "pricePerUnit", unit);
    json_object_set_new(rates, rate_key, rate);
    json_object_set_new(term, "priceDimensions", rates);
    set(term, "sku", sku);
    set(term, "effectiveDate", iso);
    set(term, "offerTermCode", TERM);
    json_object_set_new(term, "termAttributes", json_object());
    json_object_set_new(terms, term_key, term);
    json_object_set_new(o, "OnDemand", terms);
    return o;
}

static json_t *make_product(const struct region *r, const struct market_pool *p, size_t variant)
{
    const struct variant *v = &variants[variant];
    char sku[17];
    make_sku(p->type, variant, sku);
    json_t *product = json_object(), *o = json_object();
    set(product, "productFamily", "Compute Instance");
    json_object_set_new(product, "attributes", make_attributes(r, p->type, v));
    set(product, "sku", sku);
    json_object_set_new(o, "product", product);
    set(o, "serviceCode", SERVICE);
    json_object_set_new(o, "terms",
        make_terms(
            r, sku, p->type, (int64_t)((double)p->price_uusd_h[CLOUD_ON_DEMAND] * v->factor)));
    set(o, "version", "1");
    return o;
}

/* ---- filters ---- */

struct filter {
    const char *field, *value;
};

struct query {
    struct filter filters[FILTERS_MAX];
    size_t n_filters;
    int64_t after, max;
};

static const char *field_of(const json_t *item, const char *field)
{
    const json_t *product = json_object_get(item, "product");
    if (str_eq(field, "ServiceCode") || str_eq(field, "serviceCode"))
        return SERVICE;
    if (str_eq(field, "sku") || str_eq(field, "productFamily"))
        return json_string_value(json_object_get(product, field));
    return json_string_value(json_object_get(json_object_get(product, "attributes"), field));
}

static bool passes(const struct query *q, const json_t *item)
{
    for (size_t i = 0; i < q->n_filters; i++) {
        const char *value = field_of(item, q->filters[i].field);
        if (!value || !str_eq(value, q->filters[i].value))
            return false;
    }
    return true;
}

/* The matching products, as texts. */
static json_t *make_list(const struct region *r, const struct query *q)
{
    const struct market *m = &r->market;
    json_t *list = json_array();
    for (size_t i = 0; i < m->n_pools; i++) {
        if (!market_is_first_of_type(m, i))
            continue;
        for (size_t k = 0; k < N_VARIANTS; k++) {
            json_t *item = make_product(r, &m->pools[i], k);
            if (passes(q, item)) {
                char *text = json_dump_text(item);
                json_array_append_new(list, json_text(text));
                free(text);
            }
            json_decref(item);
        }
    }
    return list;
}

/* ---- the request ---- */

static int read_filter(struct call *c, const json_t *v, struct filter *ret_filter)
{
    struct json_reader r;
    struct err e;
    json_reader_init(&r, v, "Filters", &e);
    const char *type = json_req_str(&r, "Type", TEXT_MAX);
    ret_filter->field = json_req_str(&r, "Field", TEXT_MAX);
    ret_filter->value = json_req_str(&r, "Value", TEXT_MAX);
    if (json_reader_finish(&r) < 0)
        return fail(c, "InvalidParameterException", "%s", e.text);
    if (!str_eq(type, "TERM_MATCH") && !str_eq(type, "EQUALS"))
        return fail(c, "InvalidParameterException",
            "Filter type %.60s: this emulator has TERM_MATCH and EQUALS", type);
    return 0;
}

static int read_token(struct call *c, const char *token, int64_t *ret_after)
{
    struct buf text = {0};
    *ret_after = 0;
    if (!token || !token[0])
        return 0;
    int rc = b64_decode(&text, token, strlen(token), NULL);
    const char *s = buf_str(&text);
    if (rc == 0)
        rc = str_starts(s, PAGE_PREFIX)
                 ? str_to_i64(s + strlen(PAGE_PREFIX), 0, INT32_MAX, "token", ret_after, NULL)
                 : -1;
    buf_deinit(&text);
    return rc == 0 ? 0
                   : fail(c, "InvalidNextTokenException",
                         "The pagination token is invalid. Try again without one.");
}

static int read_query(struct call *c, const json_t *root, struct query *q)
{
    struct json_reader r;
    struct err e;
    json_reader_init(&r, root, "", &e);
    const char *service = json_req_str(&r, "ServiceCode", TEXT_MAX);
    const char *version = json_opt_str(&r, "FormatVersion", TEXT_MAX, "aws_v1");
    const char *token = json_opt_str(&r, "NextToken", TEXT_MAX, NULL);
    const json_t *filters = json_opt_array(&r, "Filters", FILTERS_MAX);
    q->max = json_opt_i64(&r, "MaxResults", 1, PAGE_MAX, PAGE_MAX);
    if (json_reader_finish(&r) < 0)
        return fail(c, "InvalidParameterException", "%s", e.text);
    if (!str_eq(service, SERVICE) || !str_eq(version, "aws_v1"))
        return fail(c, "InvalidParameterException",
            "There are prices of " SERVICE ", in the format aws_v1");
    for (; q->n_filters < json_array_size(filters); q->n_filters++)
        if (read_filter(c, json_array_get(filters, q->n_filters), &q->filters[q->n_filters]) < 0)
            return -1;
    return read_token(c, token, &q->after);
}

static void answer(struct call *c, const struct query *q)
{
    json_t *all = make_list(c->region, q), *page = json_array(), *o = json_object();
    size_t n = json_array_size(all), from = (size_t)q->after < n ? (size_t)q->after : n;
    size_t to = (size_t)q->max < n - from ? from + (size_t)q->max : n;
    for (size_t i = from; i < to; i++)
        json_array_append(page, json_array_get(all, i));
    set(o, "FormatVersion", "aws_v1");
    if (to < n) {
        struct buf token = {0};
        char text[40];
        int len = snprintf(text, sizeof(text), PAGE_PREFIX "%zu", to);
        b64_encode(&token, text, (size_t)len);
        set(o, "NextToken", buf_str(&token));
        buf_deinit(&token);
    }
    json_object_set_new(o, "PriceList", page);
    json_decref(all);
    json_add(&c->reply->body, o);
}

void ec2_pricing_call(
    struct region *r, const struct ec2_pricing_request *q, struct ec2_reply *reply)
{
    struct call c = {.region = r, .reply = reply};
    struct query query = {0};
    struct err e;
    json_t *root;
    *reply = (struct ec2_reply){.status = 200};
    ec2_make_request_id(r, reply->request_id);
    if (!str_eq(q->target, TARGET)) {
        fail(&c, "UnknownOperationException", "This emulator has " TARGET);
    } else if (!str_eq(q->content_type, EC2_PRICING_CONTENT_TYPE)) {
        fail(&c, "UnknownOperationException", "The content type is not " EC2_PRICING_CONTENT_TYPE);
    } else if (json_parse(q->body, q->body_len, q->body_len, &root, &e) < 0) {
        fail(&c, "SerializationException", "%s", e.text);
    } else {
        if (read_query(&c, root, &query) == 0)
            answer(&c, &query);
        json_decref(root);
    }
}
