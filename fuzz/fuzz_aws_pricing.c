/* SPDX-License-Identifier: Apache-2.0
 *
 * The AWS price list's replies. The first byte selects the parser: '0' products, '1' one product's
 * text, as the only element of a list, '2' a page's token, as the next request repeats it; anything
 * else a refusal.
 */
#include "base/json.h"
#include "check.h"
#include "cloud/aws/pricing.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_products(const char *body, size_t n, struct err *e)
{
    struct cloud_prices l = {0};
    char page[PRICING_PAGE_TOKEN_MAX + 1];
    int rc = pricing_parse_products(body, n, "us-east-1", "g6.xlarge", &l, page, e);
    assert(l.n <= 1);
    if (l.n == 1)
        assert(!l.list[0].zone[0] && l.list[0].market == CLOUD_ON_DEMAND && l.list[0].uusd_h > 0 &&
               wall_is_set(l.list[0].since));
    assert(rc != 0 || strlen(page) <= PRICING_PAGE_TOKEN_MAX);
    cloud_prices_deinit(&l);
    return rc;
}

static int read_text(const char *body, size_t n, struct err *e)
{
    json_t *root = json_object(), *list = json_array();
    json_array_append_new(list, json_textn(body, n));
    json_object_set_new(root, "PriceList", list);
    char *text = json_dump_text(root);
    json_decref(root);
    int rc = read_products(text, strlen(text), e);
    free(text);
    return rc;
}

static int read_page(const char *body, size_t n, struct err *e)
{
    struct buf b = {0};
    json_t *root;
    char page[PRICING_PAGE_TOKEN_MAX + 1];
    size_t len = n < PRICING_PAGE_TOKEN_MAX ? n : PRICING_PAGE_TOKEN_MAX;
    memcpy(page, body, len);
    page[len] = '\0';
    pricing_build_get_products("us-east-1", "g6.xlarge", &b);
    pricing_add_page(page, &b);
    int rc = json_parse(buf_str(&b), b.len, b.len, &root, e);
    assert(rc == 0 && json_is_string(json_object_get(root, "NextToken")));
    json_decref(root);
    buf_deinit(&b);
    return 0;
}

static int read_refusal(const char *body, size_t n, struct err *e)
{
    int kind = pricing_parse_error(300 + (int)(n % 300), body, n, e);
    assert(kind != ERR_NONE);
    return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {
        read_products, read_text, read_page, read_refusal};
    if (size == 0)
        return 0;
    size_t which = data[0] >= '0' && data[0] < '3' ? (size_t)(data[0] - '0') : 3;
    struct err e = {0};
    int rc = readers[which]((const char *)data + 1, size - 1, &e);
    if (rc != 0)
        check_error(rc, &e);
    return 0;
}
