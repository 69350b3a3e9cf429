/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation that does not fail: out of memory logs one line to stderr and aborts (see docs/architecture.md).
 * Lengths from outside are checked against a named limit before they come here.
 */
#ifndef BELAY_BASE_MEM_H
#define BELAY_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);                             /* zeroed; free with free() */
void *mem_array(size_t n, size_t size);                   /* zeroed; overflow of n * size aborts */
void *mem_resize(void *p, size_t n, size_t size);         /* realloc of an array; new part NOT zeroed */
char *mem_strdup(const char *s);                          /* NULL stays NULL */
char *mem_strndup(const char *s, size_t n);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *mem_dup(const void *p, size_t size);

/* Frees *p and sets it to NULL. */
void mem_free_string(char **p);

#endif
