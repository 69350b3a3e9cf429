/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared code for readers of a provider's notices (cloud/PROVIDER/notice.c).
 *
 *   start --> timer(0) --> round() --> notice_reader_round_ended --+
 *                            ^                                     |
 *                            +--- timer: poll_ms, or a backoff ----+
 *
 * A provider embeds struct notice_reader as the first member of its own, allocated with mem_alloc.
 */
#ifndef BELAY_CLOUD_NOTICE_READER_H
#define BELAY_CLOUD_NOTICE_READER_H

#include "cloud/notice.h"

struct notice_provider {
    const char *name; /* "aws" */
    int64_t poll_ms;  /* default interval between rounds; 0 = 1000 */
    /* Sends no request. ERR_CONFIG for an invalid base_url. The options are borrowed for the call.
     */
    int (*create)(
        const struct notice_reader_options *o, struct notice_reader **ret_reader, struct err *e);
    /* Reads the metadata service once. Later it either calls notice_reader_round_ended or keeps
     * waiting for a change. */
    void (*round)(struct notice_reader *r);
    /* As notice_reader_acknowledge. NULL: the provider takes no approvals. */
    void (*acknowledge)(struct notice_reader *r);
    /* Ends a current round early that waits for a change. NULL: no round waits. */
    void (*hasten)(struct notice_reader *r);
    /* As notice_reader_shutdown_ms. NULL = unknown. */
    int64_t (*shutdown_ms)(const struct notice_reader *r);
    /* Cancels pending work and frees r. */
    void (*destroy)(struct notice_reader *r);
};

/* Private, except identity, which the provider fills before it is reported. */
struct notice_reader {
    const struct notice_provider *provider;
    struct timers *timers;
    int64_t poll_ms;
    notice_fn on_notice;
    notice_identity_fn on_identity;
    void *ctx;
    struct timer timer;
    int failures;                                     /* consecutive failed rounds */
    enum { POLL_NONE, POLL_WANTED, POLL_BEGUN } poll; /* POLL_WANTED: after the current round */
    void (*on_polled)(void *ctx);
    struct notice_identity identity;
    bool identity_reported;
    int identity_tries;
    bool calling, stopped; /* stopped inside a callback: freed after it */
};

/* These return false if the callback stopped the reader, which is then freed. */

bool notice_reader_report(struct notice_reader *r, const struct notice *n);
/* Reports r->identity. */
bool notice_reader_report_identity(struct notice_reader *r);
/* Counts a failed try at the identity; reports the tenth. No-op once reported. */
bool notice_reader_identity_failed(struct notice_reader *r, const struct err *e);

/* The provider's current time, by the Date header of the reply just read; date may be NULL. If the
 * two clocks agree, this machine's clock is used, because the header has whole seconds.
 * *ret_is_dated (may be NULL): true if a header gave the time, not only this machine's clock. */
struct wall notice_provider_now(
    const struct notice_reader *r, const char *date, bool *ret_is_dated);

/* Time left of a notice for the moment `at` (may be WALL_NONE) seen first now. provider_now and
 * is_dated: from notice_provider_now. is_new: the previous reading did not have it. least_ms: the
 * shortest notice that the provider promises. Result: 0 .. most_ms.
 *
 *   no Date, new              at least least_ms: only this machine's clock says less
 *   no Date, found at first   time left by this machine's clock; least_ms if the moment is past
 *   Date, new                 time left by the Date; least_ms if the moment is past
 *   Date, found at first      time left by the Date
 *
 * A Date that leaves less than least_ms is trusted, because all providers announce as best effort:
 * the machine goes at the announced moment, even if the notice was late. */
int64_t notice_left_ms(struct wall at, struct wall provider_now, bool is_dated, bool is_new,
    int64_t least_ms, int64_t most_ms);

/* Reads a time as providers write it: ISO 8601 or HTTP's format, in UTC or with an offset
 * ("+02:00", "-0700"). ERR_INVALID. */
int notice_parse_time(const char *text, struct wall *ret_wall, struct err *e);

/* Ends a round; the next one starts in poll_ms. With e (the round gave neither a notice nor an
 * all-clear) it starts after a backoff of at most 5 s, and the failure is logged when it persists.
 * A failed round before the identity is known also counts as a failed try at that. r may be freed
 * afterwards. */
void notice_reader_round_ended(struct notice_reader *r, const struct err *e);

#endif
