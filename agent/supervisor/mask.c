/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/mask.h"

#include "base/fs.h"
#include "base/mem.h"
#include "job/secret_ref.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (MASK_VALUES_MAX * (SECRET_BYTES_MAX + sizeof(uint32_t)))

struct value {
    char *bytes;
    uint32_t *borders; /* [i]: length of the longest proper border of the first i + 1 bytes */
    size_t n;
};

struct mask {
    struct value values[MASK_VALUES_MAX];
    size_t n, longest;
};

struct mask_stream {
    const struct mask *mask;
    size_t matched[MASK_VALUES_MAX]; /* how many bytes of each value precede the next byte */
    char *held;                      /* the last `n` bytes, which were not returned yet */
    bool *covered;                   /* for each of them: part of a value */
    size_t n, capacity;
    bool in_value; /* the last returned byte was part of a value */
};

struct mask *mask_create(void)
{
    return mem_alloc(sizeof(struct mask));
}

void mask_destroy(struct mask *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++) {
        explicit_bzero(m->values[i].bytes, m->values[i].n);
        free(m->values[i].bytes);
        free(m->values[i].borders);
    }
    free(m);
}

void mask_add(struct mask *m, const void *value, size_t n)
{
    const char *bytes = value;
    while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r'))
        n--;
    if (m->n == MASK_VALUES_MAX || n < MASK_MIN)
        return;
    struct value *v = &m->values[m->n++];
    v->n = n;
    v->bytes = mem_dup(bytes, n);
    v->borders = mem_array(n, sizeof(*v->borders));
    for (size_t i = 1, k = 0; i < n; i++) {
        while (k > 0 && v->bytes[i] != v->bytes[k])
            k = v->borders[k - 1];
        k += v->bytes[i] == v->bytes[k];
        v->borders[i] = (uint32_t)k;
    }
    m->longest = n > m->longest ? n : m->longest;
}

struct mask_stream *mask_stream_create(const struct mask *m)
{
    struct mask_stream *s = mem_alloc(sizeof(*s));
    s->mask = m;
    return s;
}

void mask_stream_destroy(struct mask_stream *s)
{
    if (!s)
        return;
    if (s->held)
        explicit_bzero(s->held, s->capacity);
    free(s->held);
    free(s->covered);
    free(s);
}

size_t mask_room(const struct mask *m, size_t n)
{
    return m->longest + n + sizeof(MASK_TEXT);
}

static void grow(struct mask_stream *s, size_t n)
{
    if (n <= s->capacity)
        return;
    char *held = mem_alloc(n);
    if (s->n > 0)
        memcpy(held, s->held, s->n);
    if (s->held)
        explicit_bzero(s->held, s->capacity);
    free(s->held);
    s->held = held;
    s->covered = mem_resize(s->covered, n, sizeof(*s->covered));
    s->capacity = n;
}

/* Covers where the value occurs in the bytes from `from` on; those before were seen earlier. */
static void find(struct mask_stream *s, size_t which, size_t from)
{
    const struct value *v = &s->mask->values[which];
    size_t k = s->matched[which], done = 0; /* all before done is covered by this value */
    for (size_t i = from; i < s->n; i++) {
        if (k == 0) { /* most bytes are skipped by this */
            const char *next = memchr(s->held + i, v->bytes[0], s->n - i);
            if (!next)
                break;
            i = (size_t)(next - s->held);
        }
        while (k > 0 && s->held[i] != v->bytes[k])
            k = v->borders[k - 1];
        k += s->held[i] == v->bytes[k];
        if (k < v->n)
            continue;
        size_t begin = i + 1 - v->n > done ? i + 1 - v->n : done;
        memset(s->covered + begin, true, i + 1 - begin);
        done = i + 1;
        k = v->borders[k - 1];
    }
    s->matched[which] = k;
}

/* Copies the first n held bytes to p, with each run of covered ones as MASK_TEXT. */
static size_t put(struct mask_stream *s, char *p, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        if (!s->covered[i]) {
            p[out++] = s->held[i];
        } else if (!s->in_value) {
            memcpy(p + out, MASK_TEXT, strlen(MASK_TEXT));
            out += strlen(MASK_TEXT);
        }
        s->in_value = s->covered[i];
    }
    return out;
}

size_t mask_turn(struct mask_stream *s, char *p, size_t n, bool is_last)
{
    size_t from = s->n, pending = 0;
    grow(s, s->n + n);
    if (n > 0) {
        memcpy(s->held + s->n, p, n);
        memset(s->covered + s->n, false, n * sizeof(*s->covered));
    }
    s->n += n;
    for (size_t i = 0; i < s->mask->n; i++) {
        find(s, i, from);
        pending = s->matched[i] > pending ? s->matched[i] : pending;
    }
    if (is_last)
        pending = 0;
    size_t ready = s->n - pending, out = put(s, p, ready);
    if (pending > 0 && ready > 0) {
        memmove(s->held, s->held + ready, pending);
        memmove(s->covered, s->covered + ready, pending * sizeof(*s->covered));
    }
    s->n = pending;
    return out;
}

size_t mask_release(struct mask_stream *s, char *p)
{
    size_t out = put(s, p, s->n);
    s->n = 0;
    memset(s->matched, 0, sizeof(s->matched));
    return out;
}

/* ---- for another process ---- */

int mask_save(const struct mask *m)
{
    int fd = memfd_create("belay-mask", MFD_CLOEXEC);
    struct err unused; /* errno tells */
    bool ok = fd >= 0;
    for (size_t i = 0; ok && i < m->n; i++) {
        uint32_t n = (uint32_t)m->values[i].n;
        ok = fs_write_all(fd, &n, sizeof(n), &unused) == 0 &&
             fs_write_all(fd, m->values[i].bytes, n, &unused) == 0;
    }
    if (fd >= 0 && !ok) {
        int saved = errno;
        close(fd);
        errno = saved;
        fd = -1;
    }
    return fd;
}

static struct mask *parse(const char *p, size_t n)
{
    struct mask *m = mask_create();
    uint32_t size = 0;
    while (n > 0) {
        bool fits = n >= sizeof(size) && m->n < MASK_VALUES_MAX;
        if (fits)
            memcpy(&size, p, sizeof(size));
        if (!fits || size < MASK_MIN || size > n - sizeof(size)) {
            mask_destroy(m);
            return NULL;
        }
        mask_add(m, p + sizeof(size), size);
        p += sizeof(size) + size;
        n -= sizeof(size) + size;
    }
    return m;
}

struct mask *mask_load(int fd)
{
    struct stat st;
    struct mask *m = NULL;
    if (fstat(fd, &st) < 0 || st.st_size < 0 || (size_t)st.st_size > FILE_MAX)
        return NULL;
    size_t n = (size_t)st.st_size, at = 0;
    char *p = mem_alloc(n + 1);
    while (at < n) {
        ssize_t took = pread(fd, p + at, n - at, (off_t)at);
        if (took > 0)
            at += (size_t)took;
        else if (took == 0 || errno != EINTR)
            break;
    }
    if (at == n)
        m = parse(p, n);
    explicit_bzero(p, n);
    free(p);
    return m;
}
