/* SPDX-License-Identifier: Apache-2.0
 *
 * AWS's Security Token Service, only AssumeRole: the session policy allows what the store of one
 * job needs, below one prefix of a bucket. Pure functions. MinIO and Ceph's radosgw accept the same
 * request.
 *
 * Source: AWS STS API reference, "AssumeRole"; IAM user guide, "Session policies".
 */
#ifndef BELAY_CLOUD_AWS_STS_H
#define BELAY_CLOUD_AWS_STS_H

#include "cloud/aws/credentials.h"

#define STS_POLICY_MAX 2048 /* characters: the service's limit */
#define STS_REPLY_MAX 65536
#define STS_ARN_MAX 2048
#define STS_LIFE_MIN_S 900
#define STS_LIFE_MAX_S (12 * 3600)

/* Borrowed. bucket and prefix are from a checked store URL, so they contain nothing that is special
 * in a policy. */
struct sts_session {
    const char *role_arn;
    const char *name;            /* for the account's audit log: [A-Za-z0-9_=,.@-], 2 .. 64 */
    const char *bucket, *prefix; /* "lab/belay/jobs/7/": ends in '/' */
    const char *kms_key;         /* ARN of the bucket's own key; may be NULL */
    int64_t life_s;
};

/* "arn:PARTITION:iam:...:role/NAME", of visible ASCII without quotes. ERR_INVALID. */
int sts_check_role(const char *arn, struct err *e);
/* "arn:PARTITION:kms:...:key/ID", likewise. */
int sts_check_kms_key(const char *arn, struct err *e);

/* Appends the JSON of the session policy. ERR_INVALID: longer than the service accepts. */
int sts_policy(const struct sts_session *s, struct buf *out, struct err *e);
/* Appends the request's body, application/x-www-form-urlencoded. ERR_INVALID as above. */
int sts_build_assume_role(const struct sts_session *s, struct buf *out, struct err *e);

/* Parses a reply with status 200. ERR_INVALID; never quotes the text. Wipe *ret_credentials. */
int sts_parse_assume_role(
    const char *body, size_t n, struct aws_credentials *ret_credentials, struct err *e);

enum sts_remedy {
    STS_REMEDY_CLOCK = 1,       /* correct our clock */
    STS_REMEDY_CREDENTIALS = 2, /* read them again */
};
/* Parses any other reply. ERR_DENIED, ERR_CONFIG, ERR_THROTTLED, ERR_UNAVAILABLE; *ret_remedies:
 * bits of enum sts_remedy. */
int sts_parse_error(int status, const char *body, size_t n, unsigned *ret_remedies, struct err *e);

#endif
