/* SPDX-License-Identifier: Apache-2.0
 *
 * The AWS Price List Query API (JSON 1.1, GetProducts of the service AmazonEC2), without any I/O:
 * requests as JSON bodies, replies parsed from bytes. On-demand prices only; spot prices come from
 * EC2 (ec2.h).
 *
 * A reply is a list of texts, each a JSON document about one product. Products that were not asked
 * for (another operating system, dedicated hosts, unused reservations at price 0, capacity blocks)
 * are also filtered here, because the service's filters have changed before. A text that does not
 * parse is ERR_INVALID for the whole reply.
 */
#ifndef BELAY_CLOUD_AWS_PRICING_H
#define BELAY_CLOUD_AWS_PRICING_H

#include "base/buf.h"
#include "cloud/driver.h"

#define PRICING_HOST "https://api.pricing.us-east-1.amazonaws.com"
#define PRICING_REGION                                                                             \
    "us-east-1" /* of the host, whatever region is asked about; used in signatures */
#define PRICING_TARGET "AWSPriceListService.GetProducts"
#define PRICING_CONTENT_TYPE "application/x-amz-json-1.1"

#define PRICING_REPLY_MAX (16 * 1024 * 1024)
/* bytes of one text, which includes the terms of all reservations */
#define PRICING_PRODUCT_MAX (1024 * 1024)
#define PRICING_PAGE_SIZE 100
#define PRICING_PAGE_TOKEN_MAX 4096

/* Whether that host covers the region and accepts its accounts' keys: not China, GovCloud and the
 * other partitions, which have their own hosts. */
bool pricing_covers(const char *region);

/* Appends the request for the first page of a type's on-demand Linux price in a region to out. */
void pricing_build_get_products(const char *region, const char *type, struct buf *out);
/* Changes the body of the first page to request the page named by a reply's token. */
void pricing_add_page(const char *page, struct buf *body);

/* Adds the price to list, if there is one: one row for all zones. page (PRICING_PAGE_TOKEN_MAX + 1
 * bytes) receives the next page's token, "" after the last. */
int pricing_parse_products(const char *body, size_t n, const char *region, const char *type,
    struct cloud_prices *list, char *page, struct err *e);

/* For any status except 200: fills e, with the kind from the code, and returns it. A body that is
 * not an error of the service is judged by the status. */
int pricing_parse_error(int status, const char *body, size_t n, struct err *e);

#endif
