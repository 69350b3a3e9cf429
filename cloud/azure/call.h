/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the azure driver's operations; private to the driver. A call moves from phase to phase.
 * A phase is one request, possibly repeated: page by page, or until an operation is over.
 */
#ifndef BELAY_CLOUD_AZURE_CALL_H
#define BELAY_CLOUD_AZURE_CALL_H

#include "cloud/azure/arm.h"
#include "cloud/azure/credentials.h"
#include "cloud/call.h"
#include "cloud/kept.h"
#include "cloud/quotas.h"

/* A part that a listing showed without its machine. */
struct unattached {
    char name[CLOUD_NAME_MAX];
    struct mono since;
};

struct azure_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct cloud_kept kept;
    struct azure_machine machine; /* its texts are in kept */
    char *endpoint_url, *login_url, *prices_url;
    struct azure_credential_source *credentials;
    struct unattached *unattached;
    size_t n_lonely;
};

enum azure_phase {
    PUT_NIC,
    WAIT_NIC,
    PUT_VM,
    WAIT_VM,
    DROP_VM, /* cleanup after a refused launch */
    DROP_NIC,
    DROP_DISK,
    LIST_TAGGED,
    LIST_VMS,
    LIST_POWER,
    LIST_DISKS,
    LIST_ALL_DISKS,
    LIST_DROP,   /* delete the deallocated machine named by the next word */
    CONSOLE,     /* get the log's URL */
    CONSOLE_LOG, /* read the log; the URL itself is the credential */
    END,         /* delete the resource named by the next word */
    END_NIC,
    END_DISK,
    PRICES,
    USAGES
};

struct azure_call {
    struct cloud_call base;
    struct azure_driver *d;
    enum azure_phase phase;
    struct oauth_wait wait;
    bool token_renewed;
    int pages;
    /* Of the next page, the operation or a console log; "" for the phase's own. Wiped at the end,
     * because a log's URL is a secret. */
    char url[ARM_URL_MAX + 1];
    bool by_location; /* the operation's HTTP status tells its state */
    /* launch */
    char *name;
    struct buf nic, vm; /* request bodies */
    struct mono began;
    struct err refusal;
    /* list */
    struct cloud_instances leftovers;
    struct cloud_quota_values usages;
};

/* ops for cloud_call_*: the step and the deinit of every operation. */
void azure_call_step(struct cloud_call *base);
void azure_call_deinit(struct cloud_call *base);

/* A malformed region is refused later, in the completion. */
struct azure_call *azure_call_new(
    struct cloud_driver *d, const char *region, enum azure_phase phase);
/* Copies 1 to max words; other numbers are refused in the completion. */
void azure_call_set_words(struct azure_call *c, const char *const *words, size_t n, size_t max);

/* Each reply calls exactly one of these, unless stated otherwise; the call may be freed afterwards.
 */

/* sends the request of that phase */
void azure_call_continue(struct azure_call *c, enum azure_phase phase);
void azure_call_fail(struct azure_call *c, enum err_kind kind, const char *text);
/* Reads the refusal in a reply. False: the call retries by itself with a new token. */
bool azure_call_read_refusal(struct azure_call *c, const struct http_reply *reply, struct err *e);
/* ends the call with the refusal */
void azure_call_on_refusal(struct azure_call *c, const struct http_reply *reply);
/* True if url names another page, which is then requested, or if the call has failed because the
 * page is not at `host`. */
bool azure_call_next_page(struct azure_call *c, const char *host);

bool azure_call_is_good(int status);

#endif
