/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operations of the azure driver share; nobody else includes this. A call goes from phase
 * to phase, and a phase is one request, or one that is repeated: page by page, or until an
 * operation is over.
 */
#ifndef BELAY_CLOUD_AZURE_CALL_H
#define BELAY_CLOUD_AZURE_CALL_H

#include "cloud/azure/arm.h"
#include "cloud/azure/credentials.h"
#include "cloud/call.h"
#include "cloud/kept.h"

/* A part that a listing showed without its machine. */
struct lonely {
    char name[CLOUD_NAME_MAX];
    struct mono since;
};

struct azure_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct cloud_kept kept;
    struct azure_machine machine; /* its texts are kept */
    char *endpoint_url, *login_url, *prices_url;
    struct azure_credential_source *credentials;
    struct lonely *lonely;
    size_t n_lonely;
};

enum azure_phase {
    PUT_NIC,
    WAIT_NIC,
    PUT_VM,
    WAIT_VM,
    DROP_VM, /* what a refused launch has left */
    DROP_NIC,
    DROP_DISK,
    LIST_TAGGED,
    LIST_VMS,
    LIST_POWER,
    LIST_DISKS,
    LIST_ALL_DISKS,
    LIST_DROP,   /* the deallocated machine that the next word names */
    CONSOLE,     /* where the log is */
    CONSOLE_LOG, /* at a URL that is its own credential */
    END,         /* the resource that the next word names */
    END_NIC,
    END_DISK,
    PRICES
};

struct azure_call {
    struct cloud_call base;
    struct azure_driver *d;
    enum azure_phase phase;
    struct oauth_wait wait;
    bool token_renewed;
    int pages;
    /* Of the next page, of the operation, of a console's log; "": the phase's own. Wiped in the
     * end: the log's is a secret. */
    char url[ARM_URL_MAX + 1];
    bool by_location; /* the operation tells by its HTTP status */
    /* launch */
    char *name;
    struct buf nic, vm; /* bodies */
    struct mono began;
    struct err refusal;
    /* list */
    struct cloud_instances leftovers;
};

/* ops for cloud_call_*: the step and the deinit of every operation. */
void azure_call_step(struct cloud_call *base);
void azure_call_deinit(struct cloud_call *base);

/* A region that is none is refused later, in its completion. */
struct azure_call *azure_call_new(
    struct cloud_driver *d, const char *region, enum azure_phase phase);
/* Copies 1 to max words; others are refused in the completion. */
void azure_call_set_words(struct azure_call *c, const char *const *words, size_t n, size_t max);

/* Of these, exactly one for each reply, unless one says otherwise; the call may be gone
 * afterwards. */

void azure_call_go_on(struct azure_call *c, enum azure_phase phase); /* to the URL of that phase */
void azure_call_fail(struct azure_call *c, enum err_kind kind, const char *text);
/* The refusal in a reply. False: the call has found its own remedy, a new token, and goes on. */
bool azure_call_read_refusal(struct azure_call *c, const struct http_reply *reply, struct err *e);
/* which ends the call */
void azure_call_on_refusal(struct azure_call *c, const struct http_reply *reply);
/* True if url names another page, which is on its way, or the call has failed: it is not at
 * `host`. */
bool azure_call_next_page(struct azure_call *c, const char *host);

bool azure_call_is_good(int status);

/* launch.c, list.c: as in struct cloud_driver_ops. */
void azure_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);
void azure_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx);

#endif
