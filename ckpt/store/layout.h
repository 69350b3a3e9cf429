/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of a job's objects in its store (the layout of ckpt.h), and functions that read and move
 * objects by these names.
 */
#ifndef BELAY_CKPT_STORE_LAYOUT_H
#define BELAY_CKPT_STORE_LAYOUT_H

#include "ckpt/ckpt.h"
#include "ckpt/manifest.h"
#include "ckpt/store/names.h"

struct layout_name {
    char s[STORE_NAME_MAX + 1];
};

/* "<cluster>/jobs/<job>/" followed by `what`. ERR_INVALID if cluster or job is no valid name. */
int layout_check_job(const struct ckpt_job *j, struct err *e);
struct layout_name layout_prefix(
    const struct ckpt_job *j, const char *what); /* what: "", "manifests/", ... */
struct layout_name layout_manifest(const struct ckpt_job *j, struct ckpt_id id);
struct layout_name layout_removing(
    const struct ckpt_job *j, struct ckpt_id id); /* name of a condemned one */
struct layout_name layout_pin(const struct ckpt_job *j, struct ckpt_id id);
struct layout_name layout_deleted(const struct ckpt_job *j, struct ckpt_id id);
struct layout_name layout_fence(const struct ckpt_job *j, int64_t attempt);
/* key is NULL if not encrypted. With sha256 "", the "directory" of the attempt's chunks. */
struct layout_name layout_chunk(
    const struct ckpt_job *j, const struct crypt_key *key, int64_t attempt, const char *sha256);
/* Size of the object of a chunk with this stored size. */
static inline int64_t layout_chunk_bytes(const struct crypt_key *key, int64_t stored)
{
    return stored + (key ? CRYPT_MORE : 0);
}

/* Parses the part of a full name after the prefix: an id "<10 digits>-<10 digits>" before `end`
 * (".json", or "" for a pin), or an attempt of 10 digits that ends where `end` says. False if it is
 * not exactly that. */
bool layout_parse_id(const char *rest, const char *end, struct ckpt_id *ret_id);
bool layout_parse_attempt(const char *rest, char end, int64_t *ret_attempt);

/* The highest number of 10 digits between prefix and `end`; 0 = none. Lists the prefix. */
int layout_find_latest(
    struct store *s, const char *prefix, char end, int64_t *ret_latest, struct err *e);

int layout_compare_ids(struct ckpt_id a, struct ckpt_id b); /* < 0, 0, > 0 */

/* Ids, newest first; zeroed is valid and empty. */
struct layout_ids {
    struct ckpt_id *v;
    size_t n, cap;
};

/* Lists the ids of manifests, of condemned ones, of damaged ones set aside, of those deleted by a
 * user before the job ended, and of pins. Call layout_ids_deinit also after an error. */
int layout_list_ids(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e);
int layout_list_removing(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e);
int layout_list_damaged(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e);
int layout_list_deleted(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e);
int layout_list_pins(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e);
bool layout_has_id(const struct layout_ids *ids, struct ckpt_id id);
void layout_ids_deinit(struct layout_ids *ids);

/* The text that a chunk of this object name is sealed with: its name without the attempt, because
 * chunks are linked from one attempt to the next. */
struct layout_name layout_chunk_seal(const struct ckpt_job *j, const struct layout_name *chunk);

/* Checks that the object has exactly this content. ERR_CORRUPT if it differs, which is reported
 * only if the number of bytes read is the store's. ERR_NOT_FOUND, ERR_UNAVAILABLE, ... */
int layout_expect_text(const struct ckpt_job *j, const char *name, const char *want, struct err *e);

/* Reads, decrypts and verifies one manifest, including its job and id. ERR_NOT_FOUND, ERR_CORRUPT,
 * ... ERR_UNSUPPORTED: of a later belay, or encrypted with a missing key. ret->key is one of
 * j->crypt's. */
int layout_read_manifest(
    const struct ckpt_job *j, struct ckpt_id id, struct manifest *ret, struct err *e);

/* As layout_read_manifest, of the chunks and packs only (manifest_parse_chunks). */
int layout_read_chunks(
    const struct ckpt_job *j, struct ckpt_id id, struct manifest *ret, struct err *e);

/* As layout_read_manifest, given the object's name and the text that it is sealed with. */
int layout_read_sealed(const struct ckpt_job *j, struct ckpt_id id, const struct layout_name *name,
    const struct layout_name *seal, struct manifest *ret, struct err *e);

/* The stored form of m (laid out), sealed if it has a key. */
int layout_seal_manifest(
    const struct manifest *m, const struct layout_name *seal, struct buf *out, struct err *e);

/* Commits m as the checkpoint m->id; everything it names must be durable. Checks the fence before
 * and after. */
int layout_commit(const struct ckpt_job *j, const struct manifest *m, struct err *e);

/* Reads a chunk of m's that is in no pack into w, decrypts and verifies it; *ret_p as chunk_unpack.
 * A missing one is ERR_CORRUPT too. */
int layout_read_chunk(const struct ckpt_job *j, const struct manifest *m,
    const struct manifest_chunk *c, struct chunk_work *w, const void **ret_p, struct err *e);

/* As layout_read_chunk, of a pack. Verifies n of its chunks (positions in m->chunks). */
int layout_read_pack(const struct ckpt_job *j, const struct manifest *m,
    const struct manifest_chunk *pack, const uint32_t *chunks, size_t n, struct chunk_work *w,
    const void **ret_p, struct err *e);

/* Moves a damaged object (a full name) to "damaged/", with a log line; a failure is only logged. */
void layout_set_aside(const struct ckpt_job *j, const char *name, const struct err *why);

/* Removes names from the store, in batches. */
int layout_remove(const struct ckpt_job *j, const struct names *l, struct err *e);

#endif
