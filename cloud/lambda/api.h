/* SPDX-License-Identifier: Apache-2.0
 *
 * Lambda's Cloud API as bytes: builds request bodies, parses replies. Pure.
 */
#ifndef BELAY_CLOUD_LAMBDA_API_H
#define BELAY_CLOUD_LAMBDA_API_H

#include "cloud/lambda/lambda.h"

#define LAMBDA_REPLY_MAX (4u << 20)
#define LAMBDA_KEY_MAX 256
#define LAMBDA_TYPES_MAX 1000

/* An entry of GET /instance-types, for one region. */
struct lambda_type {
    char name[CLOUD_NAME_MAX];
    int64_t uusd_h;
    bool has_capacity; /* capacity in the region at the time of the reply */
};

struct lambda_types {
    struct lambda_type *list; /* released with free() */
    size_t n;
};

/* Bodies of POST /instance-operations/launch and .../terminate. ERR_INVALID: user data too long, a
 * name that the API does not allow. */
int lambda_build_launch(
    const struct cloud_launch *l, const struct lambda_machine *m, struct buf *out, struct err *e);
int lambda_build_terminate(const char *const *ids, size_t n_ids, struct buf *out, struct err *e);

/* Parse replies with status 200; ERR_INVALID if they do not have the documented form. */
int lambda_parse_launch(const char *body, size_t n, char ret_id[CLOUD_NAME_MAX], struct err *e);
/* Adds the instances of this region; an unknown state counts as running. */
int lambda_parse_instances(
    const char *body, size_t n, const char *region, struct cloud_instances *out, struct err *e);
/* ERR_UNAVAILABLE: an id is missing from the reply. */
int lambda_parse_terminate(
    const char *body, size_t n, const char *const *ids, size_t n_ids, struct err *e);
/* Types with a name longer than ours may be are left out. */
int lambda_parse_types(
    const char *body, size_t n, const char *region, struct lambda_types *ret_types, struct err *e);

/* For any other status: fills e and returns its kind. */
int lambda_parse_error(int status, const char *body, size_t n, struct err *e);

/* The API key in the n bytes of a file or variable: one word of visible ASCII, surrounding blanks
 * allowed. ERR_CONFIG; the error never shows the input. */
int lambda_parse_key(const char *text, size_t n, char ret_key[LAMBDA_KEY_MAX + 1], struct err *e);

#endif
