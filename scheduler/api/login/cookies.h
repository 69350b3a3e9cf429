/* SPDX-License-Identifier: Apache-2.0
 *
 * The header Cookie of a request (RFC 6265, 4.2).
 */
#ifndef BELAY_SCHEDULER_API_LOGIN_COOKIES_H
#define BELAY_SCHEDULER_API_LOGIN_COOKIES_H

#include <stdbool.h>
#include <stddef.h>

/* Copies the value of the first cookie with this name. header may be NULL. False: there is none, or
 * it is empty or does not fit; then out is untouched. */
bool cookie_find(const char *header, const char *name, char *out, size_t size);

#endif
