/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the aws driver's files: the driver, and its calls, each a chain of stages.
 *
 *   stage: request --> credentials --> signed POST --- 200, last page --> next() sets up the next
 *             ^                           |   \                           stage, or finish
 *             |                           |    \--- 200, another page --+
 *             |                           |                             |
 *             +--- the driver's own remedy, each once a call -----------+
 *                  (clock wrong: the reply's Date; keys refused: read again)
 *
 * A refusal ends the call, unless the stage's excuse() accepts it: then the stage counts as
 * successful. An optional stage (with forgo) never ends the call, whatever fails in it, including a
 * missing reply.
 *
 * Each stage names its service, and thereby the one host that its request, signed for that service,
 * is sent to.
 */
#ifndef BELAY_CLOUD_AWS_DRIVER_PARTS_H
#define BELAY_CLOUD_AWS_DRIVER_PARTS_H

#include "base/prng.h"
#include "cloud/aws/credentials.h"
#include "cloud/aws/ec2.h"
#include "cloud/call.h"
#include "cloud/kept.h"

struct aws_driver;

/* A service of AWS and its protocol. */
struct aws_service {
    const char *name;   /* name in signatures: "ec2" */
    const char *region; /* region in signatures; NULL for the call's */
    const char *content_type;
    const char *target; /* X-Amz-Target; may be NULL */
    int64_t timeout_ms;
    int pages_max;
    /* without the last '/'; free() */
    char *(*endpoint)(const struct aws_driver *d, const char *region);
    void (*add_page)(const char *page, struct buf *body);
    int (*parse_error)(
        int status, const char *body, size_t n, enum ec2_remedy *ret_remedy, struct err *e);
};

extern const struct aws_service aws_ec2;

/* Rate limit for an optional call. */
struct aws_favour {
    struct mono not_before; /* MONO_NONE = any time */
    int failures;           /* consecutive */
    bool was_denied;        /* one of these failures was a denial */
};

struct aws_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct cloud_kept kept;
    struct aws_machine machine; /* its texts are in kept */
    char *endpoint_url;         /* without the last '/'; NULL to derive it from the region */
    /* the same for the price list; NULL for AWS's own, if endpoint_url is NULL too */
    char *prices_url;
    /* the same for Service Quotas */
    char *quotas_url;
    const char *endpoint_ca_pem; /* in kept */
    struct aws_credential_source *credentials;
    int64_t skew_ms; /* EC2's clock minus ours, learned from a refused request */
    /* last search for orphaned launch templates; MONO_NONE if never */
    struct mono tidied;
    struct aws_favour scores, list_prices;
    struct prng prng;              /* for pauses */
    struct aws_list_price *listed; /* prices.c: cached list prices */
    size_t n_listed;
    struct aws_leftover *leftovers; /* fleet.c: launch templates to delete; owned */
    size_t n_leftovers;
};

struct aws_call {
    struct cloud_call base;
    struct aws_driver *d;
    struct buf request; /* form body of the stage's first page */
    struct aws_credentials_wait wait;
    /* Of the current stage. */
    const struct aws_service *service;
    int (*parse)(struct aws_call *c, const char *body, size_t n, struct err *e);
    /* whether to go on after this error; NULL = never */
    bool (*excuse)(struct aws_call *c, const struct err *e);
    /* called with the error of an optional stage; NULL if the stage must succeed */
    void (*forgo)(struct aws_call *c, const struct err *e);
    /* sets up another stage and returns true; NULL if this is the last */
    bool (*next)(struct aws_call *c);
    struct err outcome; /* outcome of a call whose last stage succeeded; ERR_NONE = success */
    bool clock_mended, credentials_renewed;
    int pages;
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct aws_fleet *fleet;   /* fleet.c; owned */
    struct aws_prices *prices; /* prices.c; owned */
    int64_t used_vcpus;        /* quotas.c: of the current quota; -1 = unknown */
};

struct aws_call *aws_call_new(struct aws_driver *d, const char *region);
void aws_call_clear_request(struct aws_call *c);
/* Members of struct cloud_call_ops. */
void aws_call_step(struct cloud_call *base);
void aws_call_on_reply(struct cloud_call *base, const struct http_reply *reply);
void aws_call_deinit(struct cloud_call *base);
void aws_call_on_silence(struct cloud_call *base, const struct err *e);

/* ---- fleet.c ---- */
/* Whether the launch has alternative places: with a subnet, only those in the subnet's zone. */
bool aws_fleet_wanted(const struct aws_driver *d, const struct cloud_launch *l);
void aws_fleet_launch(
    struct aws_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);
void aws_fleet_free(struct aws_call *c);
/* The last stage of a listing: deletes launch templates that the listing shows to be unneeded, in
 * separate calls. */
bool aws_fleet_listed(struct aws_call *c);

/* ---- prices.c ---- */
void aws_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n_types, cloud_prices_fn done, void *ctx);
void aws_prices_free(struct aws_prices *p);

/* ---- quotas.c ---- */
void aws_quotas(struct cloud_driver *d, const char *region, const struct cloud_machine *machines,
    size_t n_machines, cloud_quotas_fn done, void *ctx);

#endif
