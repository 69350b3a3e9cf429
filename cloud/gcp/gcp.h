/* SPDX-License-Identifier: Apache-2.0
 *
 * The gcp driver: Compute Engine, API v1. Credentials: a service account's key file (the pool's,
 * else GOOGLE_APPLICATION_CREDENTIALS), else the service account of the instance that this runs on.
 *
 * An instance's name is its idempotency token, its id is ZONE/NAME. Compute Engine sells by the
 * vCPU, the GiB and the GPU; it tells no price of a machine type, so prices() says nothing and the
 * catalogue's stay.
 */
#ifndef BELAY_CLOUD_GCP_GCP_H
#define BELAY_CLOUD_GCP_GCP_H

#include "cloud/provider.h"

/* What all launches of a pool have in common. NULL: the project's default, or none. */
struct gcp_machine {
    const char *project;
    const char *image; /* projects/P/global/images/[family/]NAME, or its whole URL */
    /* a name or a path; NULL with a subnet: the subnet's; else "default" */
    const char *network;
    const char *subnet;          /* a name in the region, or a path */
    const char *service_account; /* e-mail address; NULL: the nodes have no rights */
    const char *scopes;          /* of its tokens, a line each; NULL: cloud-platform */
    const char *tags;            /* network tags, a line each */
    const char *disk_type;       /* NULL: pd-balanced */
    const char *address;         /* "public" (NULL) or "none" */
    /* seconds between the notice and the shutdown: "0" (NULL) or "120" */
    const char *early_notice;
    /* a duration, after which Google deletes the instance; NULL: none */
    const char *max_run;
    int64_t disk_gib; /* 0: the image's own */
};

struct gcp_options {
    struct gcp_machine machine;
    /* NULL: https://compute.googleapis.com; http:// only for a loopback host */
    const char *endpoint_url;
    const char *credentials_file; /* NULL: GOOGLE_APPLICATION_CREDENTIALS */
    const char *metadata_url;     /* NULL: http://169.254.169.254 */
    struct http_client *http;     /* borrowed until destroy, like timers */
    struct timers *timers;        /* their clock dates the assertions */
};

/* Copies what it needs; reads the environment here and never again. ERR_CONFIG: an endpoint that is
 * plain http to another host, a machine that cannot be asked for. */
int gcp_driver_create(const struct gcp_options *o, struct cloud_driver **ret_driver, struct err *e);

extern const struct cloud_provider gcp_provider;

#endif
