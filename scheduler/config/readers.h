/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of single values that several sections of the configuration have.
 */
#ifndef BELAY_SCHEDULER_CONFIG_READERS_H
#define BELAY_SCHEDULER_CONFIG_READERS_H

#include "base/yaml.h"
#include "base/zone.h"

/* A copy of the text, or NULL; free it. */
char *config_opt_text(struct yaml_reader *r, const char *key, size_t max);
/* A duration of at least min_ms. */
int64_t config_opt_time(
    struct yaml_reader *r, const char *key, int64_t min_ms, int64_t fallback_ms);
/* A duration of least_ms to most_ms. */
int64_t config_opt_time_in(
    struct yaml_reader *r, const char *key, int64_t least_ms, int64_t most_ms, int64_t usual_ms);
/* The map of that key, of at most max entries; NULL if there is none, or after an error. */
const struct yaml_node *config_opt_entries(struct yaml_reader *root, const char *key, int max);
/* Refuses a key that is no name of at most max bytes. what: "a budget". False after an error. */
bool config_is_named(
    struct yaml_reader *r, const struct yaml_node *node, const char *what, int max);
/* The time zone of the key tz, UTC if absent; returns its node, or NULL. */
const struct yaml_node *config_opt_zone(struct yaml_reader *r, char ret_zone[ZONE_NAME_MAX]);
/* True for text that can be used unchanged in other programs' configuration and in certificates. */
bool config_is_plain(const char *s);
/* A URL that begins with scheme ("https://") or, unless it is NULL, other_scheme. Borrowed from the
 * file; fallback if absent. */
const char *config_opt_url(struct yaml_reader *r, const char *key, size_t max, const char *scheme,
    const char *other_scheme, const char *fallback);
/* Copies value or, if it is NULL, before + state_dir + after into dst; refuses a default that is
 * too long. */
void config_copy_path(struct yaml_reader *r, const char *key, const char *value, const char *before,
    const char *state_dir, const char *after, char *dst, size_t size);

/* "true" or "false", which is also what it is without the key. */
bool config_opt_truth(struct yaml_reader *r, const char *key, bool otherwise);

/* A size such as "4G", in bytes; "none" is 0 = unlimited. */
int64_t config_opt_bytes(struct yaml_reader *r, const char *key, const char *fallback);

#endif
