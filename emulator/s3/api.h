/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulated calls of S3. Pure except for the content of the buckets: a checked request in, a
 * reply out.
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
    bool has_conditions; /* false: conditional writes are answered with 501 */
    /* The x-amz-server-side-encryption required of a new object; NULL for any. */
    const char *encryption;
    size_t quota_bytes; /* of all objects */
    int64_t page;       /* maximum keys on a page of a list; 1 .. S3_PAGE_MAX */
};

struct s3_call {
    struct s3_account *account;
    const struct front_request *request;
    struct faults *faults;
    struct wall now;
    const struct policy *policy; /* of the caller's session; NULL: everything is allowed */
    struct s3_bucket *bucket;    /* NULL if none is named */
    char key[S3_KEY_BYTES + 1];  /* "" for the bucket itself */
    struct form query;
    struct front_reply *reply;
};

/* Finds the call: sets c->bucket, c->key, c->query and the action's name in the reply. False if
 * refused; the reply has the reason. The caller deinits the query in either case. c's account,
 * request, faults, now, policy and reply must be set. */
bool s3_api_route(struct s3_call *c);
/* Whether the caller may make the call; if not, the reply has the refusal. */
bool s3_api_may(struct s3_call *c);
void s3_api_run(struct s3_call *c); /* runs the call found by s3_api_route */

/* Makes the reply this error, with the code's status and, if text is NULL, its usual message. */
void s3_api_error(
    const char *code, const char *text, const char *region, struct front_reply *reply);

#endif
