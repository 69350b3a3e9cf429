/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings: fixed-size copies that report truncation, strict numbers, and small text helpers for all
 * rooms.
 */
#ifndef BELAY_BASE_STR_H
#define BELAY_BASE_STR_H

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

/* Copies src (NULL = "") into dst. Returns false if it did not fit; dst is then src cut as by
 * str_cut. size > 0. */
bool str_copy(char *dst, size_t size, const char *src);
#define STR_COPY(dst, src) str_copy((dst), sizeof(dst), (src))

/* The greatest length <= max at which the n bytes of s can be cut without splitting a UTF-8
 * sequence; n if n <= max. Reads s[max], so s must have all n bytes. Text that is not UTF-8 is cut
 * at max or up to 3 bytes before. */
size_t str_cut(const char *s, size_t n, size_t max);

/* As str_copy, but a text that does not fit loses its middle: "..." marks the cut. For errors that
 * are copied to a smaller buffer: the start says what was tried, the end why it failed. Never
 * splits a UTF-8 sequence. size >= STR_SHORTEN_MIN. */
#define STR_SHORTEN_MIN 16
void str_shorten(char *dst, size_t size, const char *src);
#define STR_SHORTEN(dst, src) str_shorten((dst), sizeof(dst), (src))

#define STR_SHOW_MAX 64

/* Whether s could make a terminal display something else: control characters, text direction marks,
 * bytes that are not UTF-8. */
bool str_has_control(const char *s);
/* In place: replaces everything that str_has_control detects by '?'. */
void str_sanitize(char *s, size_t n);

/* Outside text for an error message: in double quotes, sanitized, at most 48 bytes and then "...".
 * NULL is shown as: nothing. Returns out. */
const char *str_show(const char *text, char out[STR_SHOW_MAX]);

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
bool str_is_one_of(const char *s, const char *const *list); /* list ends with NULL */

/* All of text must be one decimal number in [min, max]: no blanks, no '+', no empty text.
 * ERR_INVALID names `what`, the text (as str_show) and the range. */
int str_to_i64(const char *text, int64_t min, int64_t max, const char *what, int64_t *ret_value,
    struct err *e);

/* Converts "4G", "512M", "100K" or "1T" to MiB, 1 .. 2^40. Units are powers of 1024 and may be
 * lower case; a bare number is MiB, as in Slurm's --mem; kibibytes are rounded up. ERR_INVALID. */
int str_to_mib(const char *text, int64_t *ret_mib, struct err *e);

/* "3.56" (at most 6 decimals kept, the rest rounded half up; no sign, no exponent, a digit on both
 * sides of a point) to micro-dollars, 0 .. 10^15. ERR_INVALID. */
int str_to_uusd(const char *text, int64_t *ret_uusd, struct err *e);

/* Micro-dollars for people, rounded half away from 0: "$12.34" in cents from one dollar up; below
 * that up to four decimals, at least two ("$0.50", "$0.0042"); below $0.0001 six ("$0.000012").
 * Negative: "-$3.00". */
void str_format_usd(int64_t uusd, char *out, size_t size);

/* Bytes for people: "812 B", "1.2 MiB": one decimal, rounded half up, units B to EiB. */
void str_format_bytes(uint64_t bytes, char *out, size_t size);

/* The candidate nearest to word (the first of equals), or NULL if none is near. Distance is optimal
 * string alignment (adjacent letters may be swapped, no letter is edited twice), at most 1 + length
 * of word / 3. A name with dashes that contains word as a part ("name" in "job-name") has distance
 * 1. Nothing is near a word longer than STR_NEAREST_MAX. names is NULL-terminated. */
#define STR_NEAREST_MAX 64
const char *str_nearest(const char *word, const char *const *names);

/* Adds "one of a, b, c (nearest: b)" for an error about word; NULL omits the nearest. */
void str_list_names(struct buf *out, const char *word, const char *const *names);

/* True for [A-Za-z0-9][A-Za-z0-9._-]* of 1 .. max bytes: names of pools, labels, jobs. */
bool str_is_name(const char *s, size_t max);

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. NUL is a character. */
bool str_is_utf8(const char *p, size_t n);
/* Length of the UTF-8 character at p in bytes, 1 .. 4; 0 if the n bytes do not start with a
 * complete one. */
size_t str_utf8_len(const char *p, size_t n);

/* Lower-case hex of n bytes; out has 2n + 1 bytes. */
void str_hex(const void *p, size_t n, char *out);
/* Decodes lower-case hex into exactly n bytes. Returns false, with part of out written, if hex is
 * not 2n such digits. */
bool str_unhex(const char *hex, void *out, size_t n);

/* Adds s to out with the escapes of RFC 3986: everything but A-Z a-z 0-9 - _ . ~ becomes %XX. */
void str_url_encode(struct buf *out, const char *s, size_t n);
/* Decodes %XX (and '+' as a blank when form is true). ERR_INVALID, with out unchanged, on a
 * malformed escape, %00 or a NUL byte. */
int str_url_decode(struct buf *out, const char *s, size_t n, bool form, struct err *e);

/* Adds s as one POSIX shell word: unchanged if safe anywhere in a command, else in single quotes.
 */
void str_shell_quote(struct buf *out, const char *s);

/* Compares secrets of equal length without a timing difference; lengths may leak. */
bool str_secret_eq(const char *a, const char *b);

#endif
