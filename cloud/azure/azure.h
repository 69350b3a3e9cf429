/* SPDX-License-Identifier: Apache-2.0
 *
 * The azure driver: virtual machines through Azure Resource Manager, prices from the Retail Prices
 * API. Credentials: a service principal from the pool's file or the environment, else the managed
 * identity of this machine.
 */
#ifndef BELAY_CLOUD_AZURE_AZURE_H
#define BELAY_CLOUD_AZURE_AZURE_H

#include "cloud/provider.h"

#define AZURE_ENDPOINT "https://management.azure.com"
#define AZURE_LOGIN "https://login.microsoftonline.com"
#define AZURE_PRICES "https://prices.azure.com"

/* Settings common to all launches of a pool. Required unless stated. */
struct azure_machine {
    const char *subscription;
    const char *resource_group; /* everything is created and listed in it */
    const char *subnet;         /* resource id, or VNET/SUBNET in the resource group */
    const char *image;          /* PUBLISHER:OFFER:SKU:VERSION, or a resource id */
    /* of the administrator: Azure creates no Linux machine without one */
    const char *ssh_key;
    const char *admin_user; /* NULL for "belay" */
    /* resource id, or a name in the resource group; NULL for the subnet's */
    const char *security_group;
    const char *identity;  /* resource id of a user-assigned identity; may be NULL */
    const char *disk_type; /* NULL for Premium_LRS */
    int64_t disk_gib;      /* 0 = the image's own size */
};

struct azure_options {
    struct azure_machine machine;
    /* NULL for AZURE_ENDPOINT; http:// only for a loopback host, like the next two */
    const char *endpoint_url;
    const char *login_url;        /* issues the service principal's tokens; NULL for AZURE_LOGIN */
    const char *prices_url;       /* never receives a credential; NULL for AZURE_PRICES */
    const char *credentials_file; /* NULL for the environment's, else the managed identity */
    const char *metadata_url;     /* NULL for http://169.254.169.254 */
    struct http_client *http;     /* borrowed until destroy, like timers */
    struct timers *timers;
};

/* Copies what it needs; reads the environment's AZURE_* variables here only. ERR_CONFIG (a
 * malformed endpoint or resource id, half a service principal in the environment). */
int azure_driver_create(
    const struct azure_options *o, struct cloud_driver **ret_driver, struct err *e);

extern const struct cloud_provider azure_provider;

#endif
