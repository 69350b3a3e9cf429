/* SPDX-License-Identifier: Apache-2.0
 *
 * The head of the audit log outside of the database, STATE/audit.head: two lines "SEQ HASH MAC",
 * written in turns, so that one is whole whatever is killed. The MAC's key comes from the key of
 * the certificate authority. Without it nobody can make a head that fits a shortened log.
 *
 * A head is written after its commit and not flushed: after a loss of power it may be behind the
 * database, never ahead.
 */
#ifndef BELAY_SCHEDULER_AUDIT_HEAD_H
#define BELAY_SCHEDULER_AUDIT_HEAD_H

#include "db/audit_log.h"

struct audit_head_file;

/* Opens or creates the file of the state directory, after its ca.key was made. */
int audit_head_open(const char *state, struct audit_head_file **ret_file, struct err *e);
void audit_head_close(struct audit_head_file *f); /* f may be NULL */

/* The newest head with a correct MAC; seq 0 if there is none. */
void audit_head_get(const struct audit_head_file *f, struct audit_head *ret_head);
/* Nothing is written any more: the log does not have the head's row, and the file is the evidence.
 * A file without a correct head is frozen when it is opened. */
void audit_head_freeze(struct audit_head_file *f);
/* Writes a head that is after the one of before; others are left out. A failure is logged. */
void audit_head_put(struct audit_head_file *f, const struct audit_head *head);

/* Reads the file of a state directory that may be in use. ERR_NOT_FOUND: there is none. */
int audit_head_read(const char *state, struct audit_head *ret_head, struct err *e);

#endif
