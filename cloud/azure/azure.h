/* SPDX-License-Identifier: Apache-2.0
 *
 * The azure driver: virtual machines through Azure Resource Manager, prices from the Retail Prices
 * API. Credentials: a service principal's from the pool's file or the environment, else the managed
 * identity of this machine.
 */
#ifndef BELAY_CLOUD_AZURE_AZURE_H
#define BELAY_CLOUD_AZURE_AZURE_H

#include "cloud/provider.h"

#define AZURE_ENDPOINT "https://management.azure.com"
#define AZURE_LOGIN "https://login.microsoftonline.com"
#define AZURE_PRICES "https://prices.azure.com"

/* What all launches of a pool have in common. Those that may be NULL say so. */
struct azure_machine {
    const char *subscription;
    const char *resource_group; /* where all is made, and looked for */
    const char *subnet;         /* resource id, or VNET/SUBNET in the resource group */
    const char *image;          /* PUBLISHER:OFFER:SKU:VERSION, or the resource id of one */
    const char *ssh_key;        /* of the administrator: Azure makes no Linux machine without */
    const char *admin_user;     /* NULL: "belay" */
    /* resource id, or a name in the resource group; NULL: the subnet's */
    const char *security_group;
    const char *identity;  /* resource id of a user-assigned identity; NULL: none */
    const char *disk_type; /* NULL: Premium_LRS */
    int64_t disk_gib;      /* 0: the image's own */
};

struct azure_options {
    struct azure_machine machine;
    /* NULL: AZURE_ENDPOINT; http:// only for a loopback host, like the next two */
    const char *endpoint_url;
    const char *login_url;        /* gives the service principal its tokens; NULL: AZURE_LOGIN */
    const char *prices_url;       /* never sees a credential; NULL: AZURE_PRICES */
    const char *credentials_file; /* NULL: the environment's, else the managed identity */
    const char *metadata_url;     /* NULL: http://169.254.169.254 */
    struct http_client *http;     /* borrowed until destroy, like timers */
    struct timers *timers;
};

/* Copies what it needs; reads the environment's AZURE_* variables here and never again. ERR_CONFIG
 * (an endpoint that is none, a resource id that is none, half a service principal in the
 * environment). */
int azure_driver_create(
    const struct azure_options *o, struct cloud_driver **ret_driver, struct err *e);

extern const struct cloud_provider azure_provider;

#endif
