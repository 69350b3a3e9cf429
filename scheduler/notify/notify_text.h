/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses and URLs that users give for notices (submit --mail-user, --notify), and the texts that
 * are sent to them. Pure.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NOTIFY_TEXT_H
#define BELAY_SCHEDULER_NOTIFY_NOTIFY_TEXT_H

#include "base/buf.h"
#include "base/err.h"
#include "scheduler/core/model/types.h"

#define NOTIFY_ADDRESS_MAX 254
#define NOTIFY_URL_MAX 2048
#define NOTIFY_HOST_MAX 256

/* "ann" or "ann@example.com": letters, digits and . _ % + = ~ -, at most one @. Nothing that a
 * program could take for an option, or a header for its end. ERR_INVALID. */
int notify_check_address(const char *text, struct err *e);

/* http:// or https://, a host, no user and password; no blanks, quotes, backslashes and control
 * characters. ret_host (its brackets left out) may be NULL. ERR_INVALID, whose text shows the host
 * at most: a URL may be a secret. */
int notify_check_url(const char *url, char ret_host[NOTIFY_HOST_MAX], struct err *e);

/* What is told. */
struct notify_facts {
    const char *cluster_uid, *cluster;
    const struct outbox_row *row;
    const struct job_row *job; /* NULL: it is about a budget */
};

/* "0123abcd-42": the same for the same change, whoever is told and however often. */
void notify_id(const struct notify_facts *f, struct buf *out);

/* The body of a webhook, a JSON object (docs/reference/api.md). */
void notify_body(const struct notify_facts *f, struct buf *out);

/* A whole message, its lines ended by eol ("\n" or "\r\n"). Control characters become '?'; a
 * subject that is not ASCII is encoded (RFC 2047). from and to passed notify_check_address. */
void notify_mail(const struct notify_facts *f, const char *from, const char *to, const char *eol,
    struct buf *out);

/* What an administrator has sent, such as what a week cost. */
struct notify_report {
    const char *subject, *text, *html; /* html: NULL: none */
    struct wall at;
};

/* As notify_mail; text and html as two forms of the same. */
void notify_report_mail(const struct notify_report *r, const char *cluster_uid, const char *cluster,
    const char *from, const char *to, const char *eol, struct buf *out);
/* {"event": "report", "cluster", "cluster_uid", "at", "subject", "text"}; of text alone, which is
 * what chats show. */
void notify_report_body(
    const struct notify_report *r, const char *cluster_uid, const char *cluster, struct buf *out);

#endif
