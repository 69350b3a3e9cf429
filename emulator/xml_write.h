/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing XML replies. Names are ours; values may be anything: they are escaped, and control
 * characters, which XML 1.0 does not allow, become '?'.
 */
#ifndef BELAY_EMULATOR_XML_WRITE_H
#define BELAY_EMULATOR_XML_WRITE_H

#include "base/buf.h"

void xmlw_open(struct buf *b, const char *name);
void xmlw_close(struct buf *b, const char *name);
/* value may be NULL: writes nothing */
void xmlw_leaf(struct buf *b, const char *name, const char *value);
void xmlw_printf(struct buf *b, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
