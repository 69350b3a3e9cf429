/* SPDX-License-Identifier: Apache-2.0
 *
 * `belay-agent host`: runs on a machine of a pool with `provider: static`, started by belayd over
 * ssh (the other side is cloud/static/protocol.h). One request on standard input, one reply on
 * standard output, both JSON:
 *
 *     {"host":1,"do":"list"}
 *     {"host":1,"do":"claim","token":"belay-lab-17","cluster":"lab","user_data":"#!/bin/sh\n..."}
 *     {"host":1,"do":"release","id":"5f0c..."}
 *
 *     {"host":1,"last":null,
 *      "claim":{"id":...,"token":...,"cluster":...,"state":"running","since_ms":...}}
 *     {"host":1,"error":"conflict","text":"..."}                           (with exit code 1)
 *
 * A host has at most one claim. All processes of a claim are descendants of one process, the
 * holder, which outlives the connection. In the directory:
 *
 *     claim.json   the claim: created whole, and only if there is none (of several requests one
 *                  wins)
 *     last.json    the claim that was released last
 *     lock         locked by a request that changes something; a second one gets ERR_UNAVAILABLE
 *     hold         locked by the holder as long as it lives; the lock says which process it is
 *     script, console, node/   the user data, what it prints, and BELAY_NODE_DIR; node.opt/ may
 *                              hold an agent that it fetched
 */
#ifndef BELAY_AGENT_HOST_H
#define BELAY_AGENT_HOST_H

#include "base/buf.h"
#include "base/err.h"

#define HOST_REQUEST_MAX (128u << 10)

struct host_request {
    enum { HOST_LIST, HOST_CLAIM, HOST_RELEASE } what;
    char token[65], cluster[64], id[17];
    char *user_data; /* holds a one-use secret */
};

/* Returns 0 or ERR_INVALID. Free ret_request with host_request_deinit. */
int host_request_parse(const char *text, size_t n, struct host_request *ret_request, struct err *e);
void host_request_deinit(struct host_request *r);

/* Runs `belay-agent host [--dir DIR]`. */
int host_main(int argc, char **argv);

#endif
