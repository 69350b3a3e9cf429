/* SPDX-License-Identifier: Apache-2.0
 *
 * Notice readers: watch a node's metadata service and report the provider's warnings. Used by the
 * agent, which uses nothing else of a provider; each provider's protocol is in
 * cloud/PROVIDER/notice.h.
 *
 * Only a reply that parses as a notice is one. A timeout, a 5xx or malformed data is neither a
 * notice nor an all-clear: it is counted, retried with backoff, and logged when it persists.
 */
#ifndef BELAY_CLOUD_NOTICE_H
#define BELAY_CLOUD_NOTICE_H

#include "base/http.h"
#include "base/time.h"
#include "base/timers.h"

enum notice_kind { NOTICE_NONE, NOTICE_RECLAIM, NOTICE_REBALANCE, NOTICE_MAINTENANCE };

struct notice {
    enum notice_kind kind;
    char what[32]; /* the provider's word: "terminate", "Preempt"; "" if none */
    /* when the node goes, by this machine's clock; WALL_NONE for a rebalance */
    struct wall deadline;
    struct mono deadline_mono; /* the deadline on the monotonic clock */
    struct wall seen;
    int64_t clock_ahead_ms; /* how far this machine's clock is ahead of the provider's */
};

/* The machine's identity according to the metadata service. */
struct notice_identity {
    char provider[16];
    char instance_id[64];
    char type[64];
    char zone[64];
    char region[64];
    char life_cycle[16]; /* "spot", "on-demand", "" if unknown */
};

/* Runs once per event and kind. A reclaim after a rebalance is reported; the withdrawal of a notice
 * is not. */
typedef void (*notice_fn)(void *ctx, const struct notice *n);
/* e is NULL on success. */
typedef void (*notice_identity_fn)(
    void *ctx, const struct err *e, const struct notice_identity *id);

struct notice_reader; /* one per agent */

struct notice_reader_options {
    const char *base_url; /* of the metadata service; NULL for the real one */
    int64_t poll_ms;      /* 0 = 1000, or the provider's own interval */
    struct http_client *http;
    struct timers *timers;
    notice_fn on_notice;
    void (*on_polled)(void *ctx); /* runs after notice_reader_poll; may be NULL */
    /* runs once, after the first successful read of the identity or after 10 failed tries */
    notice_identity_fn on_identity;
    void *ctx;
};

/* The names accepted by notice_reader_start, "none" first, NULL-terminated; static. */
extern const char *const notice_provider_names[];

/* Creates and starts the reader of one of these providers. NULL for a provider without notices
 * ("none", "lambda", "static"), and, logged, for an invalid base_url. */
struct notice_reader *notice_reader_start(
    const char *provider, const struct notice_reader_options *o);
/* Tells the provider that the node may go: everything that had to be saved before the reclaim is
 * committed. A provider that takes approvals may then end the node before its deadline; for others
 * this is a no-op, as are calls before a reclaim and repeats. Does not block; may be called inside
 * on_notice. r may be NULL. */
void notice_reader_acknowledge(struct notice_reader *r);
/* Polls the metadata service now. on_polled runs (not inside) after a reading that began after this
 * call has succeeded, and after on_notice if it found a notice. r may be NULL. */
void notice_reader_poll(struct notice_reader *r);
/* How long the provider lets a machine shut down after switching it off; 0 = unknown. r may be
 * NULL. */
int64_t notice_reader_shutdown_ms(const struct notice_reader *r);
void notice_reader_stop(
    struct notice_reader *r); /* cancels pending work; freed once that has ended. r may be NULL */

const char *notice_kind_name(enum notice_kind k); /* "reclaim" "rebalance" "maintenance" "none" */

#endif
