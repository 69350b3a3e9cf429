/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of notifications. Pure.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NOTIFY_TEXT_H
#define BELAY_SCHEDULER_NOTIFY_NOTIFY_TEXT_H

#include "base/buf.h"
#include "scheduler/core/model/rows.h"
#include "scheduler/digest/digest.h"

/* The facts of a notification. */
struct notify_facts {
    const char *cluster_uid, *cluster;
    const struct outbox_row *row;
    const struct job_row *job;   /* NULL unless it is about a job */
    const struct cron_row *cron; /* NULL unless it is about a cron entry */
    const struct digest *digest; /* NULL unless it is a morning digest */
};

/* Writes "0123abcd-42": the same id for the same change, for all receivers and deliveries. */
void notify_id(const struct notify_facts *f, struct buf *out);

/* Writes the body of a webhook, a JSON object (docs/reference/api.md). */
void notify_body(const struct notify_facts *f, struct buf *out);

/* Writes in one line what has happened; control characters become '?'. */
void notify_title(const struct notify_facts *f, struct buf *out);
/* Writes the reason, if there is one, and which command has more. */
void notify_more(const struct notify_facts *f, struct buf *out);

/* Writes a whole message with lines ended by eol ("\n" or "\r\n"). Control characters become '?'; a
 * subject that is not ASCII is encoded (RFC 2047). from and to must have passed
 * notify_check_address. */
void notify_mail(const struct notify_facts *f, const char *from, const char *to, const char *eol,
    struct buf *out);

/* A report that an administrator sends, such as the cost of a week. */
struct notify_report {
    const char *subject, *text, *html; /* html may be NULL */
    struct wall at;
};

/* Like notify_mail; text and html are two forms of the same content. */
void notify_report_mail(const struct notify_report *r, const char *cluster_uid, const char *cluster,
    const char *from, const char *to, const char *eol, struct buf *out);
/* Writes {"event": "report", "cluster", "cluster_uid", "at", "subject", "text"}, only with the
 * text, which is what chat services show. */
void notify_report_body(
    const struct notify_report *r, const char *cluster_uid, const char *cluster, struct buf *out);

#endif
