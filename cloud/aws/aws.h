/* SPDX-License-Identifier: Apache-2.0
 *
 * The aws driver: EC2 Query API, version 2016-11-15. Credentials are looked up in the usual order:
 * environment, shared file (~/.aws/credentials, profile), instance role through IMDSv2; temporary
 * ones are renewed before they expire.
 */
#ifndef BELAY_CLOUD_AWS_AWS_H
#define BELAY_CLOUD_AWS_AWS_H

#include "cloud/provider.h"

/* Settings common to all launches of a pool. NULL: the account's default, or none. */
struct aws_machine {
    const char *image;
    const char *subnet;
    const char *security_group;
    const char *iam_profile; /* name or ARN */
    int64_t disk_gib;        /* 0 = the image's own size */
    /* on-demand launches may use the account's open capacity reservations */
    bool uses_reservations;
};

struct aws_options {
    struct aws_machine machine;
    /* NULL for https://ec2.REGION.amazonaws.com/; http:// only for a loopback host */
    const char *endpoint_url;
    /* of the price list, as endpoint_url; NULL for AWS's own, or none if endpoint_url is set */
    const char *prices_url;
    /* of Service Quotas, in the same way */
    const char *quotas_url;
    const char *credentials_file; /* NULL for AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials */
    const char *profile;          /* NULL for AWS_PROFILE or "default" */
    const char *metadata_url;     /* for role credentials; NULL for http://169.254.169.254 */
    const char *endpoint_ca_pem;  /* CA to trust for these URLs; NULL for the system's */
    struct http_client *http;     /* borrowed until destroy, like timers */
    struct timers *timers;        /* their clock dates the signatures */
};

/* Copies what it needs; reads the environment's AWS_* variables here only. ERR_CONFIG (an endpoint
 * with plain http to another host, half a key pair in the environment). */
int aws_driver_create(const struct aws_options *o, struct cloud_driver **ret_driver, struct err *e);

extern const struct cloud_provider aws_provider;

#endif
