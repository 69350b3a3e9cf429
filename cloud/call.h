/* SPDX-License-Identifier: Apache-2.0
 *
 * One operation of a driver in progress: a chain of HTTP requests, with pauses where the provider
 * must be polled.
 *
 *   start, see below --> timer(0) --> step() --> cloud_call_send --> on_reply()
 *                                      ^  ^                           |  |  |
 *                                      |  +----- cloud_call_step -----+  |  v
 *                                      +------- cloud_call_pause --------+  cloud_call_finish
 *                                      +-------- cloud_call_pause ----------+
 *
 * The call implements what every driver needs: the caller's completion runs exactly once and from
 * the loop; destroying a driver completes its calls with ERR_CANCELLED and leaves no request that
 * writes into freed memory; a request that cannot be built is reported like a refused one. A
 * provider embeds the struct as the first member of its own, allocated with mem_alloc, and supplies
 * the ops.
 */
#ifndef BELAY_CLOUD_CALL_H
#define BELAY_CLOUD_CALL_H

#include "base/list.h"
#include "base/buf.h"
#include "cloud/driver.h"

struct cloud_call;

/* The calls of one driver. Zeroed except for the first three members; http and timers are borrowed.
 */
struct cloud_calls {
    const char *provider; /* for errors; static */
    struct http_client *http;
    struct timers *timers;
    struct list all; /* private */
};

struct cloud_call_ops {
    const char *name; /* the operation, for errors: "RunInstances" */
    /* Gets credentials and sends the next request (cloud_call_send), or finishes. */
    void (*step)(struct cloud_call *c);
    /* Handles a reply of any status; borrowed. */
    void (*on_reply)(struct cloud_call *c, const struct http_reply *reply);
    /* Frees the contents of the provider's struct (not the struct) and cancels waits for
     * credentials. May be NULL. */
    void (*deinit)(struct cloud_call *c);
    /* Handles the HTTP client's error when there was no reply. NULL: the call ends with that error.
     */
    void (*on_silence)(struct cloud_call *c, const struct err *e);
    /* the permission it needs, added to a denial; NULL if the provider's text names it */
    const char *permission;
};

enum cloud_call_kind {
    CLOUD_CALL_LAUNCH,
    CLOUD_CALL_LIST,
    CLOUD_CALL_TERMINATE,
    CLOUD_CALL_PRICES,
    CLOUD_CALL_VOLUMES,
    CLOUD_CALL_QUOTAS,
    CLOUD_CALL_CONSOLE,
    CLOUD_CALL_CREDENTIALS
};

struct cloud_call {
    /* Results: the one of the call's kind is passed to the completion when the call succeeds. A
     * listing is filtered to `cluster` first. */
    struct cloud_instance instance;
    struct cloud_instances instances;
    struct cloud_prices prices;
    struct cloud_volumes volumes;
    struct cloud_quotas quotas;
    struct buf console; /* as cleaned by cloud_console_clean */
    char region[CLOUD_NAME_MAX];
    char *cluster;      /* of a listing; owned. NULL: all of the account */
    struct err refused; /* if its kind is not ERR_NONE, it is reported instead of the first step */
    /* Ids or types the call is about. Added with cloud_call_add_words; owned. */
    char **words;
    size_t n_words, next_word;
    /* the kinds that quotas are requested for; owned, as are their types */
    struct cloud_machine *machines;
    size_t n_machines;
    struct cloud_calls *owner;
    /* private */
    const struct cloud_call_ops *ops;
    enum cloud_call_kind kind;
    cloud_refused_fn on_refused;
    union {
        cloud_launch_fn launch;
        cloud_list_fn list;
        cloud_done_fn terminate;
        cloud_prices_fn prices;
        cloud_volumes_fn volumes;
        cloud_quotas_fn quotas;
        cloud_console_fn console;
        cloud_done_fn credentials;
    } done;
    void *ctx;
    struct link link;
    struct timer timer;
    struct http_call *http;
    bool has_sent; /* a request to the provider */
};

/* Start c (zeroed except for what the provider has set). It frees itself after its completion has
 * run. */
void cloud_call_launch(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const struct cloud_launch *l, cloud_launch_fn done,
    void *ctx);
void cloud_call_list(struct cloud_calls *s, struct cloud_call *c, const struct cloud_call_ops *ops,
    const char *region, const char *cluster, cloud_list_fn done, void *ctx);
void cloud_call_terminate(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, cloud_done_fn done, void *ctx);
void cloud_call_prices(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, cloud_prices_fn done, void *ctx);
void cloud_call_volumes(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, const char *cluster,
    cloud_volumes_fn done, void *ctx);

/* Copies the machines; at most CLOUD_MACHINES_MAX, others are refused in the completion. */
void cloud_call_quotas(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, const struct cloud_machine *machines,
    size_t n_machines, cloud_quotas_fn done, void *ctx);
void cloud_call_console(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, cloud_console_fn done, void *ctx);
void cloud_call_credentials(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, cloud_done_fn done, void *ctx);

/* Copies the words. */
void cloud_call_add_words(struct cloud_call *c, const char *const *words, size_t n);
/* The next word; NULL at the end. */
const char *cloud_call_word(const struct cloud_call *c);

/* For a launch, before it finishes: reports a place that gave no instance. */
void cloud_call_refused(struct cloud_call *c, const struct cloud_target *p, const struct err *e);

/* Each step and each reply or error must call exactly one of these four. After finish c is freed.
 */
void cloud_call_send(struct cloud_call *c, const struct http_request *r);
void cloud_call_step(struct cloud_call *c);                        /* calls step() now */
void cloud_call_pause(struct cloud_call *c, int64_t delay_ms);     /* calls step() after delay_ms */
void cloud_call_finish(struct cloud_call *c, const struct err *e); /* e is NULL on success */

/* Finishes a call that got no credentials, for the reason e. A launch that has sent nothing ends
 * with a definite kind, since it made no machine: ERR_CONFIG if e needs an operator (the
 * configuration, a denial, no such role), else ERR_NO_CREDENTIALS. Throttled and cancelled calls
 * keep their kind, as do launches that have sent a request. */
void cloud_call_no_credentials(struct cloud_call *c, const struct err *e);

/* Ends every call with ERR_CANCELLED, inside the function. For the driver's destroy. */
void cloud_calls_cancel(struct cloud_calls *s);

#endif
