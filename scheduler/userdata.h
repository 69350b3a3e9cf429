/* SPDX-License-Identifier: Apache-2.0
 *
 * The user data of an instance's first boot: a shell script (run by cloud-init or the provider's
 * guest agent) that gets belay-agent from belayd unless the image has it (bundle.h), writes its
 * configuration and starts it. If that fails in time, the machine powers off, or has itself deleted
 * where powering off does not end the billing (cloud/provider.h). Pure: the same arguments give the
 * same bytes, so a launch can be repeated under its token. Well below CLOUD_USER_DATA_MAX with our
 * CA.
 */
#ifndef BELAY_SCHEDULER_USERDATA_H
#define BELAY_SCHEDULER_USERDATA_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct new_account;

struct userdata {
    const char *server_url;
    const char *ca_pem;
    const char *token;           /* one-use; the text is a secret until the node has joined */
    const char *provider;        /* "aws" */
    const char *metadata;        /* NULL for the provider's real address */
    const char *metadata_guard;  /* for the agent's configuration; NULL for its default */
    int64_t notice_reserve_s;    /* the same; 0 for its default */
    const char *prolog, *epilog; /* the same; NULL for none */
    int64_t hook_timeout_s;      /* the same; 0 for its default */
    const struct new_account *accounts; /* to be created */
    size_t n_accounts;
    const char *endpoint; /* of its API, for a machine that deletes itself; NULL for the real one */
    int64_t boot_s;       /* it powers off if it has no agent after this time */
    int64_t orphan_s;     /* how long the node continues without belayd */
};

/* The caller frees. */
char *userdata_build(const struct userdata *u);

#endif
