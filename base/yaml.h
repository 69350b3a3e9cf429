/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounded, strict YAML over libyaml: one UTF-8 document, no anchors, aliases, tags or merge keys;
 * keys are scalars, not empty and unique; limits on bytes, depth and nodes. It is read into a tree
 * whose nodes know their line, and walked with a reader that refuses unknown keys and names file,
 * line, what was expected and the nearest valid name.
 */
#ifndef BELAY_BASE_YAML_H
#define BELAY_BASE_YAML_H

#include "base/buf.h"
#include <stdint.h>

#define YAML_BYTES_MAX (1u << 20)
#define YAML_DEPTH_MAX 16
#define YAML_NODES_MAX 20000

enum yaml_type { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_type type;
    int line, column;         /* from 1; of the key, if there is one */
    bool plain;               /* scalar without quotes and not a block */
    char *key;                /* in a mapping: the entry's key; else NULL */
    char *text;               /* scalar: its text */
    struct yaml_node **items; /* sequence items or mapping entries, in file order */
    size_t n_items;
};

/* Parses n bytes. file is used in error texts ("pools.yaml:12: ..."). *ret_root is freed with
 * yaml_node_free. An empty (or null) document is an empty mapping. ERR_INVALID. */
int yaml_parse(
    const char *file, const char *text, size_t n, struct yaml_node **ret_root, struct err *e);
void yaml_node_free(struct yaml_node *root);     /* NULL is fine */
bool yaml_is_null(const struct yaml_node *node); /* a plain scalar that is empty, ~ or null */

#define YAML_READER_KEYS_MAX 96

/* Same manner as json_reader: read all, check once; after the first error getters return fallbacks.
 * A scalar is read as the type that is asked for, in quotes or not ("8" is an integer, 07:00 a
 * text); null is absent. What getters return is borrowed from the tree. Keys are borrowed until
 * finish, at most YAML_READER_KEYS_MAX different ones a reader. map that is not a mapping (NULL
 * included) is the first error.
 *
 * What is missing is told only where no key is unknown. So whoever reads a mapping asks for all of
 * its keys, whether or not anything was missing before. */
struct yaml_reader {
    const char *file;
    const struct yaml_node *map;
    struct err *e;
    int rc;
    const char *seen[YAML_READER_KEYS_MAX];
    size_t n_seen;
    bool lacks; /* it failed since something is missing */
};

void yaml_reader_init(
    struct yaml_reader *r, const char *file, const struct yaml_node *map, struct err *e);
/* any type; NULL if absent */
const struct yaml_node *yaml_opt(struct yaml_reader *r, const char *key);
const struct yaml_node *yaml_opt_map(struct yaml_reader *r, const char *key);
const struct yaml_node *yaml_opt_seq(struct yaml_reader *r, const char *key, size_t max_items);
const char *yaml_req_str(struct yaml_reader *r, const char *key, size_t max_len);
const char *yaml_opt_str(
    struct yaml_reader *r, const char *key, size_t max_len, const char *fallback);
int64_t yaml_opt_i64(
    struct yaml_reader *r, const char *key, int64_t min, int64_t max, int64_t fallback);
int64_t yaml_opt_duration_ms(struct yaml_reader *r, const char *key, int64_t fallback_ms);
int64_t yaml_opt_uusd(struct yaml_reader *r, const char *key, int64_t fallback_uusd);
int yaml_opt_enum(struct yaml_reader *r, const char *key, const char *const *names, int fallback);
/* Notes "file:line: key: text", unless there is an error already. node may be NULL (the map's own
 * line and key). */
void yaml_reader_fail(struct yaml_reader *r, const struct yaml_node *node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses unknown keys. One is named rather than what is missing. */
int yaml_reader_finish(struct yaml_reader *r);
/* As yaml_reader_finish, of a mapping within outer's: outer has its error, unless it has one. */
void yaml_reader_finish_in(struct yaml_reader *outer, struct yaml_reader *r);

#endif
