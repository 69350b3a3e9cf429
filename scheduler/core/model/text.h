/* SPDX-License-Identifier: Apache-2.0
 *
 * Formatting into fixed arrays.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_TEXT_H
#define BELAY_SCHEDULER_CORE_MODEL_TEXT_H

#include <stdarg.h>
#include <stddef.h>

void text_format(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void text_vformat(char *out, size_t size, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

#endif
