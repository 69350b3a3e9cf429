/* SPDX-License-Identifier: Apache-2.0
 *
 * What the aws driver's files share: the driver, and a call of it as a chain of stages.
 *
 *   stage: request --> credentials --> signed POST --- 200, last page --> next() sets up the next
 *             ^                           |   \                           stage, or finish
 *             |                           |    \--- 200, another page --+
 *             |                           |                             |
 *             +--- the driver's own remedy, each once a call -----------+
 *                  (clock wrong: the reply's Date; keys refused: read anew)
 *
 * A refusal ends the call, unless the stage excuses it: then it is as if the stage had ended well.
 * A stage that can be done without (forgo) never ends the call, whatever goes wrong in it, no
 * answer included.
 *
 * Each stage names its service, and with it the one host that its request, signed for that service,
 * goes to.
 */
#ifndef BELAY_CLOUD_AWS_DRIVER_PARTS_H
#define BELAY_CLOUD_AWS_DRIVER_PARTS_H

#include "base/prng.h"
#include "cloud/aws/credentials.h"
#include "cloud/aws/ec2.h"
#include "cloud/call.h"
#include "cloud/kept.h"

struct aws_driver;

/* A service of AWS: how it is asked. */
struct aws_service {
    const char *name;   /* that signatures are for: "ec2" */
    const char *region; /* the same; NULL: the call's */
    const char *content_type;
    const char *target; /* X-Amz-Target; NULL: none */
    int64_t timeout_ms;
    int pages_max;
    /* without the last '/'; free() */
    char *(*endpoint)(const struct aws_driver *d, const char *region);
    void (*add_page)(const char *page, struct buf *body);
    int (*parse_error)(
        int status, const char *body, size_t n, enum ec2_remedy *ret_remedy, struct err *e);
};

extern const struct aws_service aws_ec2;

/* A call that can be done without: when it may be made again. */
struct aws_favour {
    struct mono not_before; /* MONO_NONE: at any time */
    int failures;           /* in a row */
    bool was_denied;        /* in one of them */
};

struct aws_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct cloud_kept kept;
    struct aws_machine machine; /* its texts are kept */
    char *endpoint_url;         /* without the last '/'; NULL: by region */
    /* the same of the price list; NULL: AWS's own, if endpoint_url is NULL too */
    char *prices_url;
    const char *endpoint_ca_pem; /* kept */
    struct aws_credential_source *credentials;
    int64_t skew_ms; /* EC2's clock minus ours, learned from a refusal */
    /* when templates that were left behind were last looked for; MONO_NONE: never */
    struct mono tidied;
    struct aws_favour scores, list_prices;
    struct prng prng;              /* for pauses */
    struct aws_list_price *listed; /* prices.c's: what the price list has said */
    size_t n_listed;
    struct aws_leftover *leftovers; /* fleet.c's; owned */
    size_t n_leftovers;
};

struct aws_call {
    struct cloud_call base;
    struct aws_driver *d;
    struct buf request; /* form body of the stage's first page */
    struct aws_credentials_wait wait;
    /* Of the stage. */
    const struct aws_service *service;
    int (*parse)(struct aws_call *c, const char *body, size_t n, struct err *e);
    bool (*excuse)(struct aws_call *c, const struct err *e); /* goes on all the same? NULL: never */
    /* told what went wrong; NULL: it has to succeed */
    void (*forgo)(struct aws_call *c, const struct err *e);
    bool (*next)(struct aws_call *c); /* another stage? NULL: no */
    struct err outcome; /* of the call whose last stage ended well; kind ERR_NONE: success */
    bool clock_mended, credentials_renewed;
    int pages;
    char page[EC2_PAGE_TOKEN_MAX + 1];
    struct aws_fleet *fleet;   /* fleet.c's; owned */
    struct aws_prices *prices; /* prices.c's; owned */
};

struct aws_call *aws_call_new(struct aws_driver *d, const char *region);
void aws_call_clear_request(struct aws_call *c);
/* Of struct cloud_call_ops. */
void aws_call_step(struct cloud_call *base);
void aws_call_on_reply(struct cloud_call *base, const struct http_reply *reply);
void aws_call_deinit(struct cloud_call *base);
void aws_call_on_silence(struct cloud_call *base, const struct err *e);

/* ---- fleet.c ---- */
/* Could the machine be anywhere else? With a subnet, only what is in its zone. */
bool aws_fleet_wanted(const struct aws_driver *d, const struct cloud_launch *l);
void aws_fleet_launch(
    struct aws_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);
void aws_fleet_free(struct aws_call *c);
/* The last stage of a listing: launch templates that it shows not to be needed any more are
 * deleted, in calls of their own. */
bool aws_fleet_listed(struct aws_call *c);

/* ---- prices.c ---- */
void aws_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n_types, cloud_prices_fn done, void *ctx);
void aws_prices_free(struct aws_prices *p);

#endif
