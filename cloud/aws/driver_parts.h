/* SPDX-License-Identifier: Apache-2.0
 *
 * What the aws driver's files share: the driver, and a call of it as a chain of stages.
 *
 *   stage: request --> credentials --> signed POST --- 200, last page --> next() sets up the next stage, or finish
 *             ^                           |    \--- 200, another page --+
 *             |                           |                             |
 *             +--- the driver's own remedy, each once a call -----------+
 *                  (clock wrong: the reply's Date; keys refused: read anew)
 *
 * A refusal ends the call, unless the stage excuses it: then it is as if the stage had ended well.
 */
#ifndef BELAY_CLOUD_AWS_DRIVER_PARTS_H
#define BELAY_CLOUD_AWS_DRIVER_PARTS_H

#include "cloud/aws/credentials.h"
#include "cloud/aws/ec2.h"
#include "cloud/call.h"

struct aws_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct aws_machine machine; /* its texts are owned */
    char *endpoint_url;         /* without the last '/'; NULL: by region */
    char *endpoint_ca_pem;
    struct aws_credential_source *credentials;
    int64_t skew_ms;          /* EC2's clock minus ours, learned from a refusal */
    struct mono tidied;       /* when templates that were left behind were last looked for; MONO_NONE: never */
};

struct aws_call {
    struct cloud_call base;
    struct aws_driver *d;
    struct buf request; /* form body of the stage's first page */
    struct aws_credentials_wait wait;
    /* Of the stage. */
    int (*parse)(struct aws_call *c, const char *body, size_t n, struct err *e);
    bool (*excuse)(struct aws_call *c, const struct err *e); /* goes on all the same? NULL: never */
    bool (*next)(struct aws_call *c);                        /* another stage? NULL: no */
    struct err outcome; /* of the call whose last stage ended well; kind ERR_NONE: success */
    bool clock_mended, credentials_renewed;
    int pages;
    char page[EC2_PAGE_TOKEN_MAX + 1];
    char **ids; /* to be terminated; names of templates to be deleted */
    size_t n_ids;
    struct aws_fleet *fleet; /* fleet.c's; owned */
};

struct aws_call *aws_call_new(struct aws_driver *d, const char *region);
void aws_call_add_id(struct aws_call *c, const char *id);
void aws_call_clear_request(struct aws_call *c);
/* The last three of struct cloud_call_ops. */
void aws_call_step(struct cloud_call *base);
void aws_call_on_reply(struct cloud_call *base, const struct http_reply *reply);
void aws_call_deinit(struct cloud_call *base);

/* ---- fleet.c ---- */
/* Could the machine be anywhere else? With a subnet, only what is in its zone. */
bool aws_fleet_wanted(const struct aws_driver *d, const struct cloud_launch *l);
void aws_fleet_launch(struct aws_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);
void aws_fleet_free(struct aws_fleet *f);

#endif
