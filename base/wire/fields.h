/* SPDX-License-Identifier: Apache-2.0
 *
 * A message as a table of fields: one description drives encoding, decoding and freeing.
 *
 * Optional fields with their absent value (0, "", false, NULL, an empty array; WIRE_NONE where the
 * table says so) are not sent, nor are embedded structs that contain only such fields. So a round
 * trip is exact and messages stay small. Unknown keys are tolerated. No copy of a message's texts
 * stays in freed memory, except the caller's own.
 */
#ifndef BELAY_BASE_WIRE_FIELDS_H
#define BELAY_BASE_WIRE_FIELDS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/wire/wire.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_field_type {
    WIRE_FIELD_END, /* closes a table */
    WIRE_FIELD_I64,
    WIRE_FIELD_I32,
    WIRE_FIELD_BOOL,
    WIRE_FIELD_ENUM, /* an enum, sent by name; unknown names are refused */
    /* an enum, sent by name; names[0] is "", its absent value. An unknown name of at most `max`
     * bytes is read as the index of the names' NULL; that value is not sent */
    WIRE_FIELD_WORD,
    WIRE_FIELD_CHOICE,  /* the same, but 0 is its absent value, and an unknown name is read as 0 */
    WIRE_FIELD_TEXT,    /* char[size], cut to fit when sent */
    WIRE_FIELD_STRING,  /* char *, at most `max` bytes; NULL if absent */
    WIRE_FIELD_STRINGS, /* char ** and a count; at most max_items of at most `max` bytes each */
    WIRE_FIELD_STRUCT,  /* embedded */
    WIRE_FIELD_STRUCTS, /* a pointer and a count */
    /* struct job_spec, embedded without an object of its own: stands for one field for each option
     * that agents get (job/attributes.h), under the key in its row */
    WIRE_FIELD_OPTIONS
};

enum wire_text_check {
    WIRE_CHECK_NONE,
    WIRE_CHECK_ENV_NAME,
    WIRE_CHECK_ABSOLUTE_PATH,
    WIRE_CHECK_HEX
};

#define WIRE_WORD_MAX 15 /* bytes; longer words are refused */
#define WIRE_WORD_SHORT_MAX 7

struct wire_table;

struct wire_field {
    enum wire_field_type type;
    const char *key;
    bool required;
    size_t offset;
    size_t count_offset; /* STRINGS, STRUCTS: offset of the size_t */
    size_t max_items;
    size_t size;              /* TEXT: of the array, including its NUL */
    int64_t min, max;         /* I64, I32: range; WORD, CHOICE, STRING, STRINGS: max bytes */
    int64_t absent;           /* I64: value when absent */
    const char *const *names; /* ENUM, WORD, CHOICE; NULL-terminated */
    enum wire_text_check check;
    bool secret; /* STRING, STRINGS: wiped before it is freed */
    const struct wire_table *sub;
};

struct wire_table {
    size_t size; /* of the struct */
    const struct wire_field *fields;
};

/* Entries of a table, for member m of struct s. A range lo .. hi includes both ends. */
#define WIRE_AT(s, m) .key = #m, .offset = offsetof(struct s, m)
#define WIRE_SIZE(s, m) sizeof(((struct s *)0)->m)

/* clang-format splits initialisers in macros over lines. */
/* clang-format off */
#define WIRE_END {WIRE_FIELD_END}
#define WIRE_I64_REQ(s, m, lo, hi) \
    {WIRE_FIELD_I64, WIRE_AT(s, m), .required = true, .min = (lo), .max = (hi)}
#define WIRE_I64_OPT(s, m, lo, hi) /* absent: 0 */ \
    {WIRE_FIELD_I64, WIRE_AT(s, m), .min = (lo), .max = (hi)}
#define WIRE_I64_OR_NONE(s, m, lo, hi) /* absent: WIRE_NONE */ \
    {WIRE_FIELD_I64, WIRE_AT(s, m), .min = (lo), .max = (hi), .absent = WIRE_NONE}
#define WIRE_BOOL_OPT(s, m) {WIRE_FIELD_BOOL, WIRE_AT(s, m)}
#define WIRE_ENUM_REQ(s, m, n) {WIRE_FIELD_ENUM, WIRE_AT(s, m), .required = true, .names = (n)}
#define WIRE_WORD_OPT(s, m, n) {WIRE_FIELD_WORD, WIRE_AT(s, m), .names = (n), .max = WIRE_WORD_MAX}
#define WIRE_WORD_SHORT(s, m, n) /* for sets limited to this length in older versions */ \
    {WIRE_FIELD_WORD, WIRE_AT(s, m), .names = (n), .max = WIRE_WORD_SHORT_MAX}
#define WIRE_TEXT_REQ(s, m) \
    {WIRE_FIELD_TEXT, WIRE_AT(s, m), .required = true, .size = WIRE_SIZE(s, m)}
#define WIRE_TEXT_OPT(s, m) {WIRE_FIELD_TEXT, WIRE_AT(s, m), .size = WIRE_SIZE(s, m)}
#define WIRE_TEXT_CHECKED(s, m, c) \
    {WIRE_FIELD_TEXT, WIRE_AT(s, m), .size = WIRE_SIZE(s, m), .check = (c)}
#define WIRE_STRING_REQ(s, m, bytes, c) \
    {WIRE_FIELD_STRING, WIRE_AT(s, m), .required = true, .max = (bytes), .check = (c)}
#define WIRE_STRING_OPT(s, m, bytes) {WIRE_FIELD_STRING, WIRE_AT(s, m), .max = (bytes)}
#define WIRE_STRING_SECRET(s, m, bytes) \
    {WIRE_FIELD_STRING, WIRE_AT(s, m), .max = (bytes), .secret = true}
#define WIRE_STRINGS_SECRET(s, m, items, bytes) \
    {WIRE_FIELD_STRINGS, WIRE_AT(s, m), .count_offset = offsetof(struct s, n_##m), \
     .max_items = (items), .max = (bytes), .secret = true}
#define WIRE_STRINGS(s, m, items, bytes) \
    {WIRE_FIELD_STRINGS, WIRE_AT(s, m), .count_offset = offsetof(struct s, n_##m), \
     .max_items = (items), .max = (bytes)}
#define WIRE_STRUCT(s, m, table) {WIRE_FIELD_STRUCT, WIRE_AT(s, m), .sub = (table)}
#define WIRE_OPTIONS(s, m) {WIRE_FIELD_OPTIONS, WIRE_AT(s, m)}
#define WIRE_STRUCTS(s, m, table, items) \
    {WIRE_FIELD_STRUCTS, WIRE_AT(s, m), .count_offset = offsetof(struct s, n_##m), \
     .max_items = (items), .sub = (table)}
/* clang-format on */

/* Iterates over the fields of a table, with those that WIRE_FIELD_OPTIONS stands for. */
struct wire_walk {
    const struct wire_field *next;
    size_t row;               /* in job_attributes */
    struct wire_field option; /* that of the previous row */
};
/* The next field, valid until the next call; NULL: there are no more. */
const struct wire_field *wire_walk_next(struct wire_walk *w);

/* The table of struct wire_attempt_status, for records that embed one. */
extern const struct wire_table wire_attempt_status_table;

/* Appends the JSON object of *m to out. A number outside its table's range is a bug of the caller.
 */
void wire_table_encode(const struct wire_table *t, const void *m, struct buf *out);

/* ERR_INVALID with the path of the error; *ret_m is then unchanged. */
int wire_table_decode(
    const struct wire_table *t, const char *p, size_t n, size_t max, void *ret_m, struct err *e);

/* Whether a text satisfies its field's check. */
bool wire_text_is_right(const struct wire_field *f, const char *s);

/* Frees what decode allocated and zeroes *m. */
void wire_table_deinit(const struct wire_table *t, void *m);

#endif
