/* SPDX-License-Identifier: Apache-2.0
 *
 * The AWS Price List Query API (JSON 1.1, GetProducts of the service AmazonEC2), without any I/O:
 * requests as JSON bodies, replies read from bytes. It tells on-demand prices only; spot prices are
 * EC2's own to tell (ec2.h).
 *
 * A reply is a list of texts, each of them a JSON document about one product. What was not asked
 * for is left out (another operating system, dedicated hosts, unused reservations at no price,
 * capacity blocks): the filters are the service's, and what passes them has changed before. A text
 * that does not parse is ERR_INVALID for the whole reply.
 */
#ifndef BELAY_CLOUD_AWS_PRICING_H
#define BELAY_CLOUD_AWS_PRICING_H

#include "base/buf.h"
#include "cloud/driver.h"

#define PRICING_HOST "https://api.pricing.us-east-1.amazonaws.com"
#define PRICING_REGION                                                                             \
    "us-east-1" /* where that host is, whatever region is asked about: signatures are for it */
#define PRICING_TARGET "AWSPriceListService.GetProducts"
#define PRICING_CONTENT_TYPE "application/x-amz-json-1.1"

#define PRICING_REPLY_MAX (16 * 1024 * 1024)
/* bytes of one text: the terms of all reservations are in it */
#define PRICING_PRODUCT_MAX (1024 * 1024)
#define PRICING_PAGE_SIZE 100
#define PRICING_PAGE_TOKEN_MAX 4096

/* True if the host above knows the region and takes the keys of its accounts: not in China,
 * GovCloud and the other partitions, which have their own. */
bool pricing_covers(const char *region);

/* The first page of what a type costs in a region on demand, with Linux: appended to out. */
void pricing_build_get_products(const char *region, const char *type, struct buf *out);
/* Asks for the page that a reply's token names: changes the body of the first page. */
void pricing_add_page(const char *page, struct buf *body);

/* Adds the price to list, if there is one: a row of all zones. page, of PRICING_PAGE_TOKEN_MAX + 1
 * bytes, gets the next page's token, "" after the last. */
int pricing_parse_products(const char *body, size_t n, const char *region, const char *type,
    struct cloud_prices *list, char *page, struct err *e);

/* Of any status but 200: fills e, its kind by the code, and returns it. A body that is no error of
 * the service's is judged by the status. */
int pricing_parse_error(int status, const char *body, size_t n, struct err *e);

#endif
