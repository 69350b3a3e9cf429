/* SPDX-License-Identifier: Apache-2.0
 *
 * One operation of a driver under way: a chain of HTTP requests, with pauses where the provider
 * wants to be polled.
 *
 *   cloud_call_start --> timer(0) --> step() --> cloud_call_send --> on_reply()
 *                                      ^  ^                           |  |  |
 *                                      |  +---- cloud_call_again -----+  |  v
 *                                      +------- cloud_call_pause --------+  cloud_call_finish
 *                                      +-------- cloud_call_pause ----------+
 *
 * The call owns what every driver would have to get right again: the caller's completion runs once
 * and from the loop, a driver that is destroyed tells its callers ERR_CANCELLED and leaves no
 * request behind that writes into freed memory, and a request that cannot be built is reported like
 * one that was refused. A provider embeds the struct as the first member of its own, which
 * mem_alloc made, and supplies the ops.
 */
#ifndef BELAY_CLOUD_CALL_H
#define BELAY_CLOUD_CALL_H

#include "base/list.h"
#include "base/buf.h"
#include "cloud/driver.h"

struct cloud_call;

/* The calls of one driver. Zeroed but for these three; http and timers borrowed. */
struct cloud_calls {
    const char *provider; /* for errors; static */
    struct http_client *http;
    struct timers *timers;
    struct list all; /* private */
};

struct cloud_call_ops {
    const char *name; /* of the operation, for errors: "RunInstances" */
    /* Goes on: gets credentials and sends the next request (cloud_call_send), or finishes. */
    void (*step)(struct cloud_call *c);
    /* A reply, of any status; borrowed. */
    void (*on_reply)(struct cloud_call *c, const struct http_reply *reply);
    /* Frees what the provider's struct holds (not the struct), waits for credentials included.
     * NULL: nothing. */
    void (*deinit)(struct cloud_call *c);
    /* There was no reply, but the HTTP client's error. NULL: the call ends with it. */
    void (*on_silence)(struct cloud_call *c, const struct err *e);
    /* that it needs, for the error when it is denied. NULL: the refusal says enough */
    const char *permission;
};

enum cloud_call_kind {
    CLOUD_CALL_LAUNCH,
    CLOUD_CALL_LIST,
    CLOUD_CALL_TERMINATE,
    CLOUD_CALL_PRICES,
    CLOUD_CALL_VOLUMES,
    CLOUD_CALL_CONSOLE
};

struct cloud_call {
    /* Results: the one of its kind is handed to the completion when the call finishes without
     * error. A listing is handed on without what is not of `cluster`. */
    struct cloud_instance instance;
    struct cloud_instances instances;
    struct cloud_prices prices;
    struct cloud_volumes volumes;
    struct buf console; /* as cloud_console_clean gives it */
    char region[CLOUD_NAME_MAX];
    char *cluster;      /* of a listing; owned. NULL, of volumes: all are wanted */
    struct err refused; /* kind not ERR_NONE: reported instead of the first step */
    /* What it is about: ids, types. Added with cloud_call_add_words; owned. */
    char **words;
    size_t n_words, next_word;
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
        cloud_console_fn console;
    } done;
    void *ctx;
    struct link link;
    struct timer timer;
    struct http_call *http;
};

/* Start c (zeroed but for what the provider has set) on its way; it frees itself after its
 * completion has run. */
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

void cloud_call_console(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, cloud_console_fn done, void *ctx);

/* Copies them. */
void cloud_call_add_words(struct cloud_call *c, const char *const *words, size_t n);
/* The next one; NULL: they are through. */
const char *cloud_call_word(const struct cloud_call *c);

/* Of a launch, before it finishes: this place gave nothing. */
void cloud_call_refused(struct cloud_call *c, const struct cloud_place *p, const struct err *e);

/* Exactly one of the four, once for each step and each reply or silence. After finish c is gone. */
void cloud_call_send(struct cloud_call *c, const struct http_request *r);
void cloud_call_again(struct cloud_call *c);                       /* step() now */
void cloud_call_pause(struct cloud_call *c, int64_t delay_ms);     /* step() later */
void cloud_call_finish(struct cloud_call *c, const struct err *e); /* NULL: success */

/* Every call ends with ERR_CANCELLED, inside. For the driver's destroy. */
void cloud_calls_cancel(struct cloud_calls *s);

#endif
