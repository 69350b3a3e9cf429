/* SPDX-License-Identifier: Apache-2.0
 *
 * Notice readers: watch a node's metadata endpoint and say when the provider warns. Used by the
 * agent, which sees nothing else of a provider; how each is read is in cloud/PROVIDER/notice.h.
 *
 * Only a reply that parses as a notice is one. A time-out, a 5xx or garbage is neither "notice" nor
 * "all clear": it is counted, retried with backoff, and logged when it lasts.
 */
#ifndef BELAY_CLOUD_NOTICE_H
#define BELAY_CLOUD_NOTICE_H

#include "base/http.h"
#include "base/time.h"
#include "base/timers.h"

enum notice_kind { NOTICE_NONE, NOTICE_RECLAIM, NOTICE_REBALANCE, NOTICE_MAINTENANCE };

struct notice {
    enum notice_kind kind;
    char what[32];        /* the provider's word: "terminate", "Preempt"; "": it has none */
    struct wall deadline; /* when the node goes, by this machine's clock; WALL_NONE: a rebalance */
    struct mono deadline_mono; /* the same on the monotonic clock */
    struct wall seen;
    int64_t clock_ahead_ms; /* this machine's clock is so much ahead of the provider's */
};

/* What the metadata service says of the machine itself. */
struct notice_identity {
    char provider[16];
    char instance_id[64];
    char type[64];
    char zone[64];
    char region[64];
    char life_cycle[16]; /* "spot" "on-demand", "" unknown */
};

/* Each kind is reported once per event; a reclaim after a rebalance is reported; an end of a notice
 * never is.
 */
typedef void (*notice_fn)(void *ctx, const struct notice *n);
/* e NULL on success. */
typedef void (*notice_identity_fn)(
    void *ctx, const struct err *e, const struct notice_identity *id);

struct notice_reader; /* one per agent */

struct notice_reader_options {
    const char *base_url; /* of the metadata service; NULL: the real one */
    int64_t poll_ms;      /* 0: 1000, or the provider's own */
    struct http_client *http;
    struct timers *timers;
    notice_fn on_notice;
    void (*on_looked)(void *ctx); /* after notice_reader_look; NULL: not wanted */
    /* once, after the first identity read succeeded or 10 tries failed */
    notice_identity_fn on_identity;
    void *ctx;
};

/* The names that notice_reader_start knows, "none" first, NULL-terminated; static. */
extern const char *const notice_provider_names[];

/* The reader for one of these providers. Starts at once. One that announces nothing ("none",
 * "lambda", "static"), or a base_url that is none (logged): NULL. */
struct notice_reader *notice_reader_start(
    const char *provider, const struct notice_reader_options *o);
/* What had to be saved before the reclaim is committed: the node may go. A provider that takes an
 * approval gets it, and may then end the node before its deadline; others do nothing. Not before a
 * reclaim was told; a repeat does nothing. Does not block; may be called inside on_notice. NULL
 * fine. */
void notice_reader_acknowledge(struct notice_reader *r);
/* The metadata service is asked now; on_looked runs, not inside, when a reading that began after
 * this has succeeded, and after on_notice if it found one. NULL fine. */
void notice_reader_look(struct notice_reader *r);
/* How long this provider lets a machine that it switches off shut down; 0: not known. NULL fine. */
int64_t notice_reader_shutdown_ms(const struct notice_reader *r);
void notice_reader_stop(
    struct notice_reader *r); /* cancels what is under way; frees when it has ended. NULL fine */

const char *notice_kind_name(enum notice_kind k); /* "reclaim" "rebalance" "maintenance" "none" */

#endif
