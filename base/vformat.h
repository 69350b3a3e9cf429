/* SPDX-License-Identifier: Apache-2.0
 *
 * In a function whose last parameters are "fmt, ...": formats them into the array dst, cut where it
 * is full.
 */
#ifndef BELAY_BASE_VFORMAT_H
#define BELAY_BASE_VFORMAT_H

#include <stdarg.h>
#include <stdio.h>

#define VFORMAT(dst, fmt)                                                                          \
    do {                                                                                           \
        va_list args_;                                                                             \
        va_start(args_, fmt);                                                                      \
        vsnprintf((dst), sizeof(dst), (fmt), args_);                                               \
        va_end(args_);                                                                             \
    } while (0)

#endif
