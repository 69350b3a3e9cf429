/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation that aborts instead of failing. A size of 0 is served as 1, so that an empty
 * allocation still has a pointer that differs from failure and can be freed.
 */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Noreturn void mem_out_of_memory(void)
{
    /* not with log_error, which may need memory */
    static const char line[] = "error: out of memory, giving up\n";
    if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
        abort();
    abort();
}

static void *checked(void *p)
{
    if (!p)
        mem_out_of_memory();
    return p;
}

void *mem_alloc(size_t size)
{
    return checked(calloc(1, size ? size : 1));
}

void *mem_array(size_t n, size_t size)
{
    if (n == 0 || size == 0)
        return mem_alloc(0);
    return checked(calloc(n, size)); /* calloc checks the product */
}

void *mem_resize(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        mem_out_of_memory();
    return checked(realloc(p, bytes ? bytes : 1));
}

void *mem_pages(size_t size)
{
    const size_t page = 4096;
    if (size > SIZE_MAX - page)
        mem_out_of_memory();
    return checked(aligned_alloc(page, (size + page) / page * page));
}

void *mem_huge(size_t n)
{
    if (n > SIZE_MAX / MEM_HUGE)
        mem_out_of_memory();
    void *p = checked(aligned_alloc(MEM_HUGE, n * MEM_HUGE));
    /* best effort: without huge pages it only gets slower */
    (void)madvise(p, n * MEM_HUGE, MADV_HUGEPAGE);
    return p;
}

char *mem_strdup(const char *s)
{
    return s ? checked(strdup(s)) : NULL;
}

char *mem_strndup(const char *s, size_t n)
{
    return s ? checked(strndup(s, n)) : NULL;
}

char *mem_printf(const char *fmt, ...)
{
    char *text;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        mem_out_of_memory();
    return text;
}

void *mem_dup(const void *p, size_t size)
{
    void *copy = mem_alloc(size);
    if (size)
        memcpy(copy, p, size);
    return copy;
}

void mem_free_texts(char **texts)
{
    for (char **t = texts; t && *t; t++)
        free(*t);
    free(texts);
}

void mem_trim(void)
{
    malloc_trim(0);
}

void mem_return_large(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* setting it ends its adjustment */
}
