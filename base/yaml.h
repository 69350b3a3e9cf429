/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounded, strict YAML over libyaml: one UTF-8 document, no anchors, aliases, tags or merge keys;
 * keys are scalars, not empty and unique; limits on bytes, depth and nodes. It is parsed into a
 * tree whose nodes know their line. A reader walks the tree, refuses unknown keys, and names file,
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
    int line, column;         /* from 1; of the key if it has one */
    bool plain;               /* a scalar without quotes, not a block */
    char *key;                /* the key of a mapping's entry; else NULL */
    char *text;               /* a scalar's text */
    struct yaml_node **items; /* sequence items or mapping entries, in file order */
    size_t n_items;
};

/* Parses n bytes. file appears in error texts ("pools.yaml:12: ..."). *ret_root is freed with
 * yaml_node_free. An empty (or null) document is an empty mapping. ERR_INVALID. */
int yaml_parse(
    const char *file, const char *text, size_t n, struct yaml_node **ret_root, struct err *e);
void yaml_node_free(struct yaml_node *root);     /* root may be NULL */
bool yaml_is_null(const struct yaml_node *node); /* a plain scalar that is empty, ~ or null */

#define YAML_READER_KEYS_MAX 96

/* Works like json_reader: read all, check once; after the first error getters return fallbacks. A
 * scalar is read as the requested type, quoted or not ("8" is an integer, 07:00 a text); null
 * counts as absent. Results are borrowed from the tree. Keys are borrowed until finish, at most
 * YAML_READER_KEYS_MAX different ones per reader. A map that is not a mapping (NULL included) is
 * the first error.
 *
 * An unknown key is reported in preference to a missing one. So a caller asks for all keys of a
 * mapping, even after one was missing. */
struct yaml_reader {
    const char *file;
    const struct yaml_node *map;
    struct err *e;
    int rc;
    const char *seen[YAML_READER_KEYS_MAX];
    size_t n_seen;
    bool lacks; /* the error is that something is missing */
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
/* Records "file:line: key: text", unless there is an error already. node may be NULL (the map's own
 * line and key). */
void yaml_reader_fail(struct yaml_reader *r, const struct yaml_node *node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses unknown keys. An unknown key is reported rather than a missing one. */
int yaml_reader_finish(struct yaml_reader *r);
/* yaml_reader_finish for a mapping inside outer's: its error becomes outer's, unless outer has one.
 */
void yaml_reader_finish_in(struct yaml_reader *outer, struct yaml_reader *r);

#endif
