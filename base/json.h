/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounded, strict JSON over jansson. For input from outside: a byte limit, a depth limit, duplicate
 * keys refused, UTF-8 required, no NUL in strings, one value and nothing after it. Errors carry the
 * line, and the column where the parser knows it; they never quote the input, which may contain a
 * secret.
 *
 * A struct json_reader reads the members of one object and keeps the FIRST error with its path
 * ("spec.cpus: expected an integer in 1 .. 4096, found \"four\""), so that callers read all fields
 * and check once:
 *
 *     struct json_reader r;
 *     json_reader_init(&r, object, "spec", e);
 *     spec->cpus = json_opt_i64(&r, "cpus", 1, 4096, 1);
 *     return json_reader_finish(&r);
 *
 * json_reader_finish also refuses unknown keys, and suggests the nearest known one.
 */
#ifndef BELAY_BASE_JSON_H
#define BELAY_BASE_JSON_H

#include "base/buf.h"
#include <jansson.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 32

/* Parses exactly n bytes, at most max. *ret_value is the caller's (json_decref). ERR_INVALID. */
int json_parse(const char *text, size_t n, size_t max, json_t **ret_value, struct err *e);

/* At least the number of values in the text, and exact for valid JSON without empty arrays and
 * objects, which count twice. Parsing takes time and memory by the number of values: up to 50 times
 * what as many bytes of one text take. */
size_t json_count_values(const char *text, size_t n);

/* Compact text of v, keys in insertion order, NUL-terminated, to be freed by the caller. Aborts on
 * values that cannot be dumped (a bug: outside text goes through json_text). */
char *json_dump_text(const json_t *v);

/* Appends v as compact text to out and takes over the reference to v. json_add_secret is for values
 * that contain a secret: it leaves no other copy of them, provided that the caller's reference to v
 * and its parts was the only one. */
void json_add(struct buf *out, json_t *v);
void json_add_secret(struct buf *out, json_t *v);

/* json_decref for a value that contains a secret: overwrites every text in v first, so the caller's
 * must be the only reference to v and its parts. v may be NULL. */
void json_wipe(json_t *v);

/* A JSON string of any bytes: each NUL, and each byte that is not part of valid UTF-8, becomes
 * U+FFFD, so that belay can read every text it writes. NULL gives JSON null. New reference, never
 * NULL. */
json_t *json_text(const char *s);
json_t *json_textn(const char *s, size_t n);

#define JSON_READER_KEYS_MAX 64

struct json_reader {
    const json_t *object;
    const char *path; /* borrowed; "" for the top */
    struct err *e;    /* first error; may be NULL */
    int rc;           /* 0 or the first error's kind */
    const char *seen[JSON_READER_KEYS_MAX];
    size_t n_seen;
};

/* A value that is not an object (NULL included) is the first error. */
void json_reader_init(struct json_reader *r, const json_t *value, const char *path, struct err *e);

/* Getters return the fallback (or 0, NULL, false) and record the error when the value is missing
 * but required, of another type, or out of range; null counts as missing. After the first error
 * they all return fallbacks. Strings are borrowed from the object, checked to be at most max_len
 * bytes and free of NUL. Keys are borrowed until finish, at most JSON_READER_KEYS_MAX calls per
 * reader. Numbers are integers: 4.0 is refused. */
int64_t json_req_i64(struct json_reader *r, const char *key, int64_t min, int64_t max);
int64_t json_opt_i64(
    struct json_reader *r, const char *key, int64_t min, int64_t max, int64_t fallback);
bool json_req_bool(struct json_reader *r, const char *key);
bool json_opt_bool(struct json_reader *r, const char *key, bool fallback);
const char *json_req_str(struct json_reader *r, const char *key, size_t max_len);
const char *json_opt_str(
    struct json_reader *r, const char *key, size_t max_len, const char *fallback);
/* Copies into a fixed buffer; the limit is size - 1 bytes. An absent optional copies fallback; an
 * error copies "" or fallback. */
void json_req_strcpy(struct json_reader *r, const char *key, char *dst, size_t size);
void json_opt_strcpy(
    struct json_reader *r, const char *key, char *dst, size_t size, const char *fallback);
/* The value must be one of the NULL-terminated names; returns its index. The error lists them and
 * the nearest. */
int json_req_enum(struct json_reader *r, const char *key, const char *const *names);
int json_opt_enum(struct json_reader *r, const char *key, const char *const *names, int fallback);
const json_t *json_req_array(struct json_reader *r, const char *key, size_t max_items);
/* NULL if absent */
const json_t *json_opt_array(struct json_reader *r, const char *key, size_t max_items);
const json_t *json_req_object(struct json_reader *r, const char *key);
const json_t *json_opt_object(struct json_reader *r, const char *key); /* NULL if absent */

/* Records an error found by the caller at key (NULL for the object itself), unless there is one
 * already. */
void json_reader_fail(struct json_reader *r, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Tolerates keys that no getter read (for replies of third-party services). */
int json_reader_finish_lenient(struct json_reader *r);
/* Refuses keys that no getter read. Returns 0 or the first error's kind. */
int json_reader_finish(struct json_reader *r);

#endif
