/* SPDX-License-Identifier: Apache-2.0
 *
 * Encryption of a backup's entries: each is a message of CMS (RFC 5083, AES-256-GCM) in DER, for
 * the owner of a certificate's key or for who knows a passphrase. `openssl cms -decrypt -inform
 * DER` reads them without belay.
 */
#ifndef BELAY_BACKUP_SEAL_H
#define BELAY_BACKUP_SEAL_H

#include "base/buf.h"
#include <stdbool.h>

#define SEAL_SUFFIX ".cms"
#define SEAL_PASSPHRASE_MIN 12
#define SEAL_PASSPHRASE_MAX 1024
#define SEAL_FILE_MAX (64 << 10)

/* At most one of them; all NULL: nothing is encrypted. Paths of files; a passphrase's file has it
 * in its first line. */
struct seal_options {
    const char *passphrase_file;
    const char *certificate_file; /* PEM; only to encrypt */
    const char *key_file;         /* PEM, not encrypted; only to decrypt */
};

struct seal;
/* Reads the files. *ret_seal is NULL if there are none. ERR_DENIED: a secret's file that others may
 * read. */
int seal_open(const struct seal_options *o, struct seal **ret_seal, struct err *e);
void seal_close(struct seal *s); /* s may be NULL */

int seal_encrypt(const struct seal *s, const void *p, size_t n, struct buf *out, struct err *e);
/* ERR_DENIED: encrypted with another passphrase or for another key, or damaged. */
int seal_decrypt(const struct seal *s, const void *p, size_t n, struct buf *out, struct err *e);

#endif
