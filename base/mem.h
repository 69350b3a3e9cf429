/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation that does not fail: out of memory writes one line to stderr and aborts (see
 * docs/architecture.md). Lengths from outside are checked against a named limit before they get
 * here. Nothing here returns NULL unless stated, and everything returned is freed with free().
 */
#ifndef BELAY_BASE_MEM_H
#define BELAY_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);           /* zeroed */
void *mem_array(size_t n, size_t size); /* zeroed; overflow of n * size aborts */
/* realloc of an array; the new part is NOT zeroed */
void *mem_resize(void *p, size_t n, size_t size);
/* NOT zeroed; aligned to 4096 bytes, as O_DIRECT requires */
void *mem_pages(size_t size);
#define MEM_HUGE ((size_t)2 << 20)
/* n * MEM_HUGE bytes for random access, aligned to MEM_HUGE and backed by huge pages where the
 * system has them, which saves TLB misses. NOT zeroed. */
void *mem_huge(size_t n);
char *mem_strdup(const char *s);            /* NULL stays NULL */
char *mem_strndup(const char *s, size_t n); /* at most n bytes of s; NULL stays NULL */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *mem_dup(const void *p, size_t size);
void mem_free_texts(char **texts); /* a NULL-terminated array and what is in it; may be NULL */

/* What all of the above do when memory runs out; for libraries that report it by returning NULL. */
_Noreturn void mem_out_of_memory(void);

/* Returns free memory to the kernel, also from the middle of the heap. Takes time by the number of
 * free blocks: usually less than a millisecond. */
void mem_trim(void);

/* For a process that lives long and needs much memory now and then: from now on, blocks of a
 * megabyte and more are returned to the kernel as soon as they are freed. glibc would otherwise
 * keep those of sizes that were freed before, in the heap of each thread. */
void mem_return_large(void);

#endif
