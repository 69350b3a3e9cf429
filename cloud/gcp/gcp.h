/* SPDX-License-Identifier: Apache-2.0
 *
 * The gcp driver: Compute Engine, API v1. Credentials: a service account's key file (the pool's,
 * else GOOGLE_APPLICATION_CREDENTIALS), else the service account of the instance that this process
 * runs on.
 *
 * An instance's name is its idempotency token, its id is ZONE/NAME. Compute Engine bills vCPUs, GiB
 * and GPUs and publishes no price of a machine type, so prices() returns nothing and the
 * catalogue's prices stay.
 */
#ifndef BELAY_CLOUD_GCP_GCP_H
#define BELAY_CLOUD_GCP_GCP_H

#include "cloud/provider.h"

/* Settings common to all launches of a pool. NULL: the project's default, or none. */
struct gcp_machine {
    const char *project;
    const char *image; /* projects/P/global/images/[family/]NAME, or the full URL */
    /* a name or a path; NULL: the subnet's if there is one, else "default" */
    const char *network;
    const char *subnet;          /* a name in the region, or a path */
    const char *service_account; /* e-mail address; NULL: the nodes have no permissions */
    const char *scopes;          /* scopes of its tokens, one per line; NULL for cloud-platform */
    const char *tags;            /* network tags, one per line */
    const char *disk_type;       /* NULL for pd-balanced */
    const char *address;         /* "public" (NULL) or "none" */
    /* seconds between the notice and the shutdown: "0" (NULL) or "120" */
    const char *early_notice;
    /* a duration after which Google deletes the instance; may be NULL */
    const char *max_run;
    int64_t disk_gib; /* 0 = the image's own size */
};

struct gcp_options {
    struct gcp_machine machine;
    /* NULL for https://compute.googleapis.com and https://cloudquotas.googleapis.com; http:// only
     * for a loopback host */
    const char *endpoint_url;
    const char *credentials_file; /* NULL for GOOGLE_APPLICATION_CREDENTIALS */
    const char *metadata_url;     /* NULL for http://169.254.169.254 */
    struct http_client *http;     /* borrowed until destroy, like timers */
    struct timers *timers;        /* their clock dates the assertions */
};

/* Copies what it needs; reads the environment here only. ERR_CONFIG: an endpoint with plain http to
 * another host, machine settings that Google would refuse. */
int gcp_driver_create(const struct gcp_options *o, struct cloud_driver **ret_driver, struct err *e);

extern const struct cloud_provider gcp_provider;

#endif
