/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of S3 that are played here. Pure but for what is in the buckets: a checked request in,
 * a reply out.
 */
#ifndef BELAY_EMULATOR_S3_API_H
#define BELAY_EMULATOR_S3_API_H

#include "emulator/form.h"
#include "emulator/front.h"
#include "emulator/policy.h"
#include "emulator/s3/objects.h"

#define S3_CONTENT_TYPE "application/xml"
#define S3_BODY_MAX ((size_t)96 << 20)
#define S3_PAGE_MAX 1000

struct s3_account {
    struct s3_objects objects;
    const char *region;
    bool has_conditions; /* false: conditional writes are answered 501 */
    /* The x-amz-server-side-encryption that a new object must have; NULL: any. */
    const char *encryption;
    size_t quota_bytes; /* of everything */
    int64_t page;       /* keys on a page of a list, at most; 1 .. S3_PAGE_MAX */
};

struct s3_call {
    struct s3_account *account;
    const struct front_request *request;
    struct faults *faults;
    struct wall now;
    const struct policy *policy; /* of the caller's session; NULL: it may everything */
    struct s3_bucket *bucket;    /* NULL: none is named */
    char key[S3_KEY_BYTES + 1];  /* "": the bucket itself */
    struct form query;
    struct front_reply *reply;
};

/* Finds the call: c->bucket, c->key, c->query and the action's name in the reply. False: refused,
 * the reply says why. The query is to be deinit'ed in either case. c's account, request, faults,
 * now, policy and reply are set. */
bool s3_api_route(struct s3_call *c);
/* Whether the caller may do what was found; false: the reply says that it may not. */
bool s3_api_may(struct s3_call *c);
void s3_api_run(struct s3_call *c); /* what was found */

/* Makes the reply this error, with the status that the code has and, without text, its usual
 * words. */
void s3_api_error(
    const char *code, const char *text, const char *region, struct front_reply *reply);

#endif
