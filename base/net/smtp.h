/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends one mail to one server with libcurl. Blocks: for worker threads.
 */
#ifndef BELAY_BASE_NET_SMTP_H
#define BELAY_BASE_NET_SMTP_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct smtp_mail {
    /* smtps://HOST[:PORT], or smtp:// with STARTTLS, which is optional only for a loopback server
     */
    const char *url;
    const char *user, *password; /* NULL if the server requires no authentication */
    const char *ca_file;         /* NULL for this machine's CA store */
    const char *from, *to;       /* bare addresses: no '<', '>' or blanks */
    const char *text;            /* a complete message with "\r\n" line ends */
    size_t len;
    int64_t timeout_ms;
};

/* ERR_INVALID: permanently refused (5xx for the recipient or the message). ERR_TIMEOUT,
 * ERR_UNAVAILABLE, ERR_DENIED (its certificate, or the password), ERR_IO. The texts contain no
 * secrets. */
int smtp_send(const struct smtp_mail *m, struct err *e);

#endif
