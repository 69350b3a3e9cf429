/* SPDX-License-Identifier: Apache-2.0
 *
 * The first boot of an instance: a shell script (cloud-init or the provider's guest agent runs it)
 * that gets belay-agent from belayd unless the image has it (bundle.h), writes its configuration
 * and starts it; on a machine where that cannot be done in time, it powers off, or has itself
 * deleted where that is not the same (cloud/provider.h). Pure: the same arguments give the same
 * bytes, so a launch can be repeated under its token. Well below CLOUD_USER_DATA_MAX with a CA of
 * ours.
 */
#ifndef BELAY_SCHEDULER_USERDATA_H
#define BELAY_SCHEDULER_USERDATA_H

#include "base/err.h"
#include <stdint.h>

struct userdata {
    const char *server_url;
    const char *ca_pem;
    const char *token;          /* one-use; the text is a secret until the node has joined */
    const char *provider;       /* "aws" */
    const char *metadata;       /* NULL: the provider's real address */
    const char *metadata_guard; /* of the agent's configuration; NULL: its default */
    const char *endpoint; /* of its API, for a machine that deletes itself; NULL: the real one */
    int64_t boot_s;       /* it powers off if it has no agent by then */
    int64_t orphan_s;     /* how long the node goes on without belayd */
};

/* The caller frees. */
char *userdata_build(const struct userdata *u);

#endif
