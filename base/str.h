/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings: fixed-size copies that say when they cut, strict numbers, and the small text jobs every room needs.
 */
#ifndef BELAY_BASE_STR_H
#define BELAY_BASE_STR_H

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

/* Copies src (NULL = "") into dst; false, and dst is the cut text, if it did not fit. size > 0. */
bool str_copy(char *dst, size_t size, const char *src);
#define STR_COPY(dst, src) str_copy((dst), sizeof(dst), (src))

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* The whole of text must be one decimal number in [min, max]: no blanks, no '+', no empty text. ERR_INVALID
 * names `what`, the text (cut) and the range. */
int str_to_i64(const char *text, int64_t min, int64_t max, const char *what, int64_t *ret_value, struct err *e);

/* "4G", "512M", "100K", "1T" (powers of 1024; bare number = MiB, as Slurm's --mem) to MiB, 1 .. 2^40. */
int str_to_mib(const char *text, int64_t *ret_mib, struct err *e);

/* "3.56" (at most 6 decimals kept, the rest rounded half up; no sign, no exponent) to micro-dollars,
 * 0 .. 10^15. ERR_INVALID. */
int str_to_uusd(const char *text, int64_t *ret_uusd, struct err *e);

/* Micro-dollars for people: "$12.34", "$0.0042". */
void str_format_usd(int64_t uusd, char *out, size_t size);

/* Bytes for people: "812 B", "1.2 MiB". */
void str_format_bytes(uint64_t bytes, char *out, size_t size);

/* The candidate nearest to word by Damerau-Levenshtein distance, if the distance is at most 1 + length / 3;
 * otherwise NULL. names is NULL-terminated. */
const char *str_nearest(const char *word, const char *const *names);

/* True for [A-Za-z0-9][A-Za-z0-9._-]* of 1 .. max bytes: the alphabet of names of pools, labels, jobs. */
bool str_is_name(const char *s, size_t max);

bool str_is_utf8(const char *p, size_t n);

/* Lower-case hex of n bytes; out has 2n + 1 bytes. */
void str_hex(const void *p, size_t n, char *out);
/* ERR_INVALID unless text is exactly 2n hex digits. */
int str_unhex(const char *text, void *out, size_t n, struct err *e);

/* RFC 3986: everything but A-Z a-z 0-9 - _ . ~ becomes %XX. */
void str_url_encode(struct buf *out, const char *s, size_t n);
/* Decodes %XX (and '+' as a blank when form is true). ERR_INVALID on a malformed escape or %00. */
int str_url_decode(struct buf *out, const char *s, size_t n, bool form, struct err *e);

/* One POSIX shell word for s: unchanged when safe, else in single quotes. */
void str_shell_quote(struct buf *out, const char *s);

/* Compares secrets of equal length without a timing difference; lengths may leak. */
bool str_secret_eq(const char *a, const char *b);

#endif
