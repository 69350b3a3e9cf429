/* SPDX-License-Identifier: Apache-2.0
 *
 * GetProducts: see pricing.h.
 */
#include "cloud/aws/pricing.h"

#include "base/json.h"
#include "base/str.h"
#include "cloud/aws/json_error.h"
#include <string.h>

#define SERVICE "the price list"

/* Attributes requested, apart from region and type. */
static const struct {
    const char *field, *value;
    bool is_filter; /* sent as a filter; the others are only checked here */
} wanted[] = {
    {"operatingSystem", "Linux", true},
    {"tenancy", "Shared", true},
    {"preInstalledSw", "NA", true},
    /* not all products have it */
    {"capacitystatus", "Used", true},
    {"marketoption", "OnDemand", false},
};
#define N_WANTED (sizeof(wanted) / sizeof(wanted[0]))

bool pricing_covers(const char *region)
{
    static const char *const others[] = {"cn-", "us-gov-", "us-iso", "eu-iso", "eusc-"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (str_starts(region, others[i]))
            return false;
    return true;
}

/* ---- the request ---- */

static void add_filter(json_t *filters, const char *field, const char *value)
{
    json_t *f = json_object();
    json_object_set_new(f, "Type", json_string("TERM_MATCH"));
    json_object_set_new(f, "Field", json_string(field));
    json_object_set_new(f, "Value", json_text(value));
    json_array_append_new(filters, f);
}

void pricing_build_get_products(const char *region, const char *type, struct buf *out)
{
    json_t *o = json_object(), *filters = json_array();
    add_filter(filters, "regionCode", region);
    add_filter(filters, "instanceType", type);
    for (size_t i = 0; i < N_WANTED; i++)
        if (wanted[i].is_filter)
            add_filter(filters, wanted[i].field, wanted[i].value);
    json_object_set_new(o, "ServiceCode", json_string("AmazonEC2"));
    json_object_set_new(o, "FormatVersion", json_string("aws_v1"));
    json_object_set_new(o, "Filters", filters);
    json_object_set_new(o, "MaxResults", json_integer(PRICING_PAGE_SIZE));
    json_add(out, o);
}

void pricing_add_page(const char *page, struct buf *body)
{
    char *token;
    json_t *text = json_text(page);
    token = json_dump_text(text);
    json_decref(text);
    buf_truncate(body, body->len - 1); /* without the closing brace */
    buf_printf(body, ",\"NextToken\":%s}", token);
    free(token);
}

/* ---- the reply ---- */

/* The text of one product. */
struct product {
    const char *region, *type;
    struct cloud_prices *list;
};

static bool has(const json_t *attributes, const char *field, const char *value, bool is_required)
{
    const json_t *v = json_object_get(attributes, field);
    return v ? str_eq(json_string_value(v), value) : !is_required;
}

static bool is_wanted(const struct product *p, const json_t *attributes)
{
    bool ok = has(attributes, "instanceType", p->type, true) &&
              has(attributes, "regionCode", p->region, true);
    for (size_t i = 0; i < N_WANTED && ok; i++)
        ok = has(attributes, wanted[i].field, wanted[i].value, wanted[i].is_filter);
    return ok;
}

/* The hourly price from the first unit on, in dollars; 0 if this is another kind of price. */
static int read_dimension(const json_t *v, int64_t *ret_uusd_h, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, v, "priceDimensions", e);
    const char *unit = json_req_str(&r, "unit", 64);
    const char *from = json_opt_str(&r, "beginRange", 64, "0");
    const json_t *price = json_req_object(&r, "pricePerUnit");
    int rc = json_reader_finish_lenient(&r);
    *ret_uusd_h = 0;
    if (rc != 0 || !str_eq(unit, "Hrs") || !str_eq(from, "0"))
        return rc;
    json_reader_init(&r, price, "pricePerUnit", e);
    /* China's prices are in its own currency */
    const char *usd = json_opt_str(&r, "USD", 64, NULL);
    rc = json_reader_finish_lenient(&r);
    if (rc == 0 && usd && str_to_uusd(usd, ret_uusd_h, e) != 0)
        rc = err_wrap(e, "pricePerUnit.USD");
    return rc;
}

static int read_term(const struct product *p, const json_t *term, struct err *e)
{
    struct json_reader r;
    struct cloud_price row = {.market = CLOUD_ON_DEMAND, .since = WALL_NONE};
    const char *key;
    json_t *v;
    json_reader_init(&r, term, "terms.OnDemand", e);
    const char *since = json_req_str(&r, "effectiveDate", TIME_ISO_MAX);
    /* jansson's loop macro takes no const */
    json_t *dimensions = (json_t *)json_req_object(&r, "priceDimensions");
    int rc = json_reader_finish_lenient(&r);
    if (rc == 0 && time_parse_iso(since, &row.since, e) != 0)
        rc = err_wrap(e, "terms.OnDemand.effectiveDate");
    STR_COPY(row.type, p->type);
    if (rc != 0)
        return rc;
    json_object_foreach(dimensions, key, v)
    {
        rc = read_dimension(v, &row.uusd_h, e);
        if (rc == 0 && row.uusd_h > 0)
            rc = cloud_prices_keep(p->list, &row, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int read_product(const struct product *p, const json_t *root, struct err *e)
{
    struct json_reader r;
    const char *key;
    json_t *term;
    json_reader_init(&r, root, "", e);
    const json_t *product = json_req_object(&r, "product");
    json_t *terms = (json_t *)json_opt_object(&r, "terms");
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0)
        return rc;
    json_reader_init(&r, product, "product", e);
    const json_t *attributes = json_req_object(&r, "attributes");
    rc = json_reader_finish_lenient(&r);
    if (rc != 0 || !terms || !is_wanted(p, attributes))
        return rc;
    json_reader_init(&r, terms, "terms", e);
    json_t *on_demand = (json_t *)json_opt_object(&r, "OnDemand");
    rc = json_reader_finish_lenient(&r);
    if (rc != 0 || !on_demand)
        return rc;
    json_object_foreach(on_demand, key, term) if ((rc = read_term(p, term, e)) != 0) return rc;
    return 0;
}

static int read_text(const struct product *p, const json_t *text, struct err *e)
{
    json_t *root;
    if (!json_is_string(text))
        return err_set(e, ERR_INVALID, "expected a text with a JSON document");
    int rc = json_parse(
        json_string_value(text), json_string_length(text), PRICING_PRODUCT_MAX, &root, e);
    if (rc != 0)
        return rc;
    rc = read_product(p, root, e);
    json_decref(root);
    return rc;
}

int pricing_parse_products(const char *body, size_t n, const char *region, const char *type,
    struct cloud_prices *list, char *page, struct err *e)
{
    const struct product p = {.region = region, .type = type, .list = list};
    struct json_reader r;
    json_t *root;
    int rc = json_parse(body, n, PRICING_REPLY_MAX, &root, e);
    if (rc != 0)
        return err_wrap(e, SERVICE "'s reply");
    json_reader_init(&r, root, "", e);
    const json_t *texts = json_req_array(&r, "PriceList", PRICING_PAGE_SIZE);
    json_opt_strcpy(&r, "NextToken", page, PRICING_PAGE_TOKEN_MAX + 1, "");
    rc = json_reader_finish_lenient(&r);
    for (size_t i = 0; rc == 0 && i < json_array_size(texts); i++) {
        rc = read_text(&p, json_array_get(texts, i), e);
        if (rc != 0)
            err_wrap(e, "PriceList[%zu]", i);
    }
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, SERVICE "'s reply");
}

/* ---- refusals ---- */

static const struct refusal refusals[] = {
    {"AccessDenied*", ERR_DENIED, "allow pricing:GetProducts (docs/how-to/clouds/aws.md)"},
    {"UnrecognizedClient*", ERR_DENIED},
    {"InvalidSignature*", ERR_DENIED},
    {"IncompleteSignature*", ERR_DENIED},
    {"MissingAuthenticationToken*", ERR_DENIED},
    {"ExpiredToken*", ERR_DENIED},
    {"OptInRequired*", ERR_DENIED},

    {"Throttling*", ERR_THROTTLED},
    {"RequestLimitExceeded*", ERR_THROTTLED},
    {"TooManyRequests*", ERR_THROTTLED},

    {"Internal*", ERR_UNAVAILABLE},
    {"ServiceUnavailable*", ERR_UNAVAILABLE},
    {"ExpiredNextToken*", ERR_UNAVAILABLE}, /* the next try starts with the first page */
    {NULL},
};

int pricing_parse_error(int status, const char *body, size_t n, struct err *e)
{
    return aws_json_error(SERVICE, refusals, status, body, n, e);
}
