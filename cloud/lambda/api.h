/* SPDX-License-Identifier: Apache-2.0
 *
 * Lambda's Cloud API as bytes: bodies of requests, and readers of replies. Pure.
 */
#ifndef BELAY_CLOUD_LAMBDA_API_H
#define BELAY_CLOUD_LAMBDA_API_H

#include "cloud/lambda/lambda.h"

#define LAMBDA_REPLY_MAX (4u << 20)
#define LAMBDA_KEY_MAX 256
#define LAMBDA_TYPES_MAX 1000

/* One of GET /instance-types, as seen from one region. */
struct lambda_type {
    char name[CLOUD_NAME_MAX];
    int64_t uusd_h;
    bool has_capacity; /* the region had some, a moment ago */
};

struct lambda_types {
    struct lambda_type *list; /* free() */
    size_t n;
};

/* Bodies of POST /instance-operations/launch and .../terminate. ERR_INVALID: user data that is too
 * long, a name that does not fit the API. */
int lambda_build_launch(
    const struct cloud_launch *l, const struct lambda_machine *m, struct buf *out, struct err *e);
int lambda_build_terminate(const char *const *ids, size_t n_ids, struct buf *out, struct err *e);

/* Replies with status 200; all ERR_INVALID when they are not what the API documents. */
int lambda_parse_launch(const char *body, size_t n, char ret_id[CLOUD_NAME_MAX], struct err *e);
/* Adds the instances of this region; a state that nobody here knows counts as running. */
int lambda_parse_instances(
    const char *body, size_t n, const char *region, struct cloud_instances *out, struct err *e);
/* ERR_UNAVAILABLE: the reply does not name one of them. */
int lambda_parse_terminate(
    const char *body, size_t n, const char *const *ids, size_t n_ids, struct err *e);
/* Types whose name is longer than ours may be are left out. */
int lambda_parse_types(
    const char *body, size_t n, const char *region, struct lambda_types *ret_types, struct err *e);

/* A reply with another status: fills e and returns its kind. */
int lambda_parse_error(int status, const char *body, size_t n, struct err *e);

/* The API key in the n bytes of a file, or of a variable: one word of visible ASCII, with blanks
 * around it. ERR_CONFIG; the text never shows what it read. */
int lambda_parse_key(const char *text, size_t n, char ret_key[LAMBDA_KEY_MAX + 1], struct err *e);

#endif
