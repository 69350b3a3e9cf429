/* SPDX-License-Identifier: Apache-2.0
 *
 * One mail to one server, by libcurl. Blocks: for threads.
 */
#ifndef BELAY_BASE_NET_SMTP_H
#define BELAY_BASE_NET_SMTP_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct smtp_mail {
    /* smtps://HOST[:PORT], or smtp:// with STARTTLS, which only a loopback server may lack */
    const char *url;
    const char *user, *password; /* NULL: it asks for none */
    const char *ca_file;         /* NULL: this machine's own authorities */
    const char *from, *to;       /* addresses, without '<' and '>' and blanks */
    const char *text;            /* a whole message, with "\r\n" */
    size_t len;
    int64_t timeout_ms;
};

/* ERR_INVALID: the server refuses it for good (5xx to the recipient or the message). ERR_TIMEOUT,
 * ERR_UNAVAILABLE, ERR_DENIED (its certificate, or the password), ERR_IO. The texts have no
 * secrets. */
int smtp_send(const struct smtp_mail *m, struct err *e);

#endif
