/* SPDX-License-Identifier: Apache-2.0
 *
 * For those who read a provider's notices (cloud/PROVIDER/notice.c): what all of them would have to
 * get right again.
 *
 *   start --> timer(0) --> round() --> notice_reader_round_ended --+
 *                            ^                                     |
 *                            +--- timer: poll_ms, or a backoff ----+
 *
 * A provider embeds struct notice_reader as the first member of its own, which mem_alloc made.
 */
#ifndef BELAY_CLOUD_NOTICE_READER_H
#define BELAY_CLOUD_NOTICE_READER_H

#include "cloud/notice.h"

struct notice_provider {
    const char *name; /* "aws" */
    int64_t poll_ms;  /* between two rounds, unless the options say it; 0: 1000 */
    /* Without a request: ERR_CONFIG for a base_url that is none. The options are borrowed for the
     * call. */
    int (*create)(
        const struct notice_reader_options *o, struct notice_reader **ret_reader, struct err *e);
    /* Looks once at what there is; ends, later, with notice_reader_round_ended or by waiting for
     * ever for a change. */
    void (*round)(struct notice_reader *r);
    /* As notice_reader_acknowledge. NULL: the provider does not want to know. */
    void (*acknowledge)(struct notice_reader *r);
    /* The round under way is to end soon: it may be waiting for a change. NULL: none waits. */
    void (*hasten)(struct notice_reader *r);
    /* As notice_reader_shutdown_ms. NULL: not known. */
    int64_t (*shutdown_ms)(const struct notice_reader *r);
    /* Cancels what is under way and frees r. */
    void (*destroy)(struct notice_reader *r);
};

/* All but identity, which the provider fills before it is told, is private. */
struct notice_reader {
    const struct notice_provider *provider;
    struct timers *timers;
    int64_t poll_ms;
    notice_fn on_notice;
    notice_identity_fn on_identity;
    void *ctx;
    struct timer timer;
    int failures;                                     /* rounds in a row that failed */
    enum { LOOK_NONE, LOOK_WANTED, LOOK_BEGUN } look; /* wanted: after the round under way */
    void (*on_looked)(void *ctx);
    struct notice_identity identity;
    bool identity_told;
    int identity_tries;
    bool calling, stopped; /* stopped inside a callback: freed after it */
};

/* Each of these is false when the reader is gone: stopped inside the callback. */

bool notice_reader_tell(struct notice_reader *r, const struct notice *n);
/* The identity that r holds. */
bool notice_reader_tell_identity(struct notice_reader *r);
/* One more try at the identity came to nothing; the tenth is told. Nothing once it has been
 * told. */
bool notice_reader_identity_failed(struct notice_reader *r, const struct err *e);

/* What time it is for the provider, by the Date header of the reply that was just read; NULL: none.
 * Where the two agree, by this machine's clock, for the header has whole seconds. *ret_is_dated
 * (may be NULL): a header said so, and not this machine's clock alone. */
struct wall notice_provider_now(
    const struct notice_reader *r, const char *date, bool *ret_is_dated);

/* What is left of a notice that names the moment `at` (may be WALL_NONE) and is seen first now.
 * provider_now and is_dated: from notice_provider_now. is_new: the look before did not find it.
 * least_ms: the shortest that the provider announces. Result: 0 .. most_ms.
 *
 *   no Date, new              at least least_ms: only this machine's clock says less
 *   no Date, found at first   what is left by this machine's clock; least_ms if the moment is past
 *   Date, new                 what is left by the Date; least_ms if the moment is past
 *   Date, found at first      what is left by the Date
 *
 * A Date that says less than least_ms is believed, for all providers announce as best effort: the
 * machine goes when they say, also if they say so late. */
int64_t notice_left_ms(struct wall at, struct wall provider_now, bool is_dated, bool is_new,
    int64_t least_ms, int64_t most_ms);

/* Reads a moment as providers write it: ISO 8601 or HTTP's form, in UTC or with an offset
 * ("+02:00", "-0700"). ERR_INVALID. */
int notice_parse_time(const char *text, struct wall *ret_wall, struct err *e);

/* Another round in poll_ms. e: neither a notice nor the all clear came of this one; then later, by
 * a backoff of at most 5 s, and logged when it lasts. A round that fails before the identity is
 * known is a try at that, too. r may be gone afterwards. */
void notice_reader_round_ended(struct notice_reader *r, const struct err *e);

#endif
