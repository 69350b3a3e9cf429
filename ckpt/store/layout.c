/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in the store, and manifests by these names.
 */
#include "ckpt/store/marker.h"
#include "ckpt/store/fence.h"
#include "ckpt/store/layout.h"
#include "ckpt/sealed.h"
#include "ckpt/shrunk.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_DIGITS 10

int layout_check_job(const struct ckpt_job *j, struct err *e)
{
    if (!str_is_name(j->cluster, 64) || j->job < 1)
        return err_set(e, ERR_INVALID, "cluster '%.80s', job %" PRId64 ": not a name and a number",
            j->cluster, j->job);
    return 0;
}

struct layout_name layout_prefix(const struct ckpt_job *j, const char *what)
{
    struct layout_name name;

    snprintf(name.s, sizeof(name.s), "%s/jobs/%" PRId64 "/%s", j->cluster, j->job, what);
    return name;
}

static struct layout_name name_of(
    const struct ckpt_job *j, const char *dir, struct ckpt_id id, const char *end)
{
    char what[64];

    snprintf(what, sizeof(what), "%s/%010" PRId64 "-%010" PRId64 "%s", dir, id.attempt, id.sequence,
        end);
    return layout_prefix(j, what);
}

struct layout_name layout_manifest(const struct ckpt_job *j, struct ckpt_id id)
{
    return name_of(j, "manifests", id, ".json");
}

struct layout_name layout_removing(const struct ckpt_job *j, struct ckpt_id id)
{
    return name_of(j, "removing", id, ".json");
}

struct layout_name layout_pin(const struct ckpt_job *j, struct ckpt_id id)
{
    return name_of(j, "pins", id, "");
}

struct layout_name layout_deleted(const struct ckpt_job *j, struct ckpt_id id)
{
    return name_of(j, "deleted", id, "");
}

struct layout_name layout_fence(const struct ckpt_job *j, int64_t attempt)
{
    char what[64];

    snprintf(what, sizeof(what), "fences/%010" PRId64, attempt);
    return layout_prefix(j, what);
}

struct layout_name layout_chunk(
    const struct ckpt_job *j, const struct crypt_key *key, int64_t attempt, const char *sha256)
{
    char what[128], name[CRYPT_NAME_HEX + 1];

    if (key && *sha256) {
        crypt_name(key, sha256, name);
        sha256 = name;
    }
    snprintf(what, sizeof(what), "chunks/%010" PRId64 "/%s", attempt, sha256);
    return layout_prefix(j, what);
}

struct layout_name layout_chunk_seal(const struct ckpt_job *j, const struct layout_name *chunk)
{
    char what[128];

    snprintf(what, sizeof(what), "chunk/%s", strrchr(chunk->s, '/') + 1);
    return layout_prefix(j, what);
}

static struct layout_name manifest_seal(const struct ckpt_job *j, struct ckpt_id id)
{
    return name_of(j, "manifest", id, "");
}

static bool parse_number(const char *s, int64_t *ret)
{
    int64_t n = 0;

    for (int i = 0; i < NUMBER_DIGITS; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        n = 10 * n + (s[i] - '0');
    }
    *ret = n;
    return n >= 1;
}

bool layout_parse_attempt(const char *rest, char end, int64_t *ret_attempt)
{
    return parse_number(rest, ret_attempt) && rest[NUMBER_DIGITS] == end;
}

bool layout_parse_id(const char *rest, const char *end, struct ckpt_id *ret_id)
{
    struct ckpt_id id;

    if (!layout_parse_attempt(rest, '-', &id.attempt) ||
        !parse_number(rest + NUMBER_DIGITS + 1, &id.sequence) ||
        !str_eq(rest + 2 * NUMBER_DIGITS + 1, end))
        return false;
    *ret_id = id;
    return true;
}

int layout_compare_ids(struct ckpt_id a, struct ckpt_id b)
{
    if (a.attempt != b.attempt)
        return a.attempt < b.attempt ? -1 : 1;
    return a.sequence < b.sequence ? -1 : a.sequence > b.sequence;
}

struct id_list {
    size_t skip;     /* bytes of the prefix */
    const char *end; /* suffix of a name */
    struct layout_ids ids;
};

static int add_id(void *ctx, const char *name, int64_t size_bytes)
{
    struct id_list *l = ctx;
    struct ckpt_id id;

    (void)size_bytes;
    if (!layout_parse_id(name + l->skip, l->end, &id))
        return 0; /* left by a killed create */
    if (l->ids.n == l->ids.cap) {
        l->ids.cap = l->ids.cap ? 2 * l->ids.cap : 16;
        l->ids.v = mem_resize(l->ids.v, l->ids.cap, sizeof(l->ids.v[0]));
    }
    l->ids.v[l->ids.n++] = id;
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    return layout_compare_ids(*(const struct ckpt_id *)b, *(const struct ckpt_id *)a);
}

static int list_ids(const struct ckpt_job *j, const char *what, const char *end,
    struct layout_ids *ret_ids, struct err *e)
{
    struct layout_name prefix = layout_prefix(j, what);
    struct id_list l = {.skip = strlen(prefix.s), .end = end};
    int rc = j->store->ops->list(j->store, prefix.s, add_id, &l, e);

    if (l.ids.n)
        qsort(l.ids.v, l.ids.n, sizeof(l.ids.v[0]), newest_first);
    *ret_ids = l.ids;
    return rc ? err_wrap(e, "list the checkpoints of job %" PRId64, j->job) : 0;
}

int layout_list_ids(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e)
{
    return list_ids(j, "manifests/", ".json", ret_ids, e);
}

int layout_list_removing(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e)
{
    return list_ids(j, "removing/", ".json", ret_ids, e);
}

int layout_list_damaged(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e)
{
    return list_ids(j, "damaged/manifests/", ".json", ret_ids, e);
}

int layout_list_deleted(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e)
{
    return list_ids(j, "deleted/", "", ret_ids, e);
}

int layout_list_pins(const struct ckpt_job *j, struct layout_ids *ret_ids, struct err *e)
{
    return list_ids(j, "pins/", "", ret_ids, e);
}

bool layout_has_id(const struct layout_ids *ids, struct ckpt_id id)
{
    return ids->n && bsearch(&id, ids->v, ids->n, sizeof(ids->v[0]), newest_first) != NULL;
}

void layout_ids_deinit(struct layout_ids *ids)
{
    free(ids->v);
    *ids = (struct layout_ids){0};
}

struct latest {
    size_t skip;
    char end;
    int64_t attempt;
};

static int note_latest(void *ctx, const char *name, int64_t size_bytes)
{
    struct latest *l = ctx;
    int64_t attempt;

    (void)size_bytes;
    if (layout_parse_attempt(name + l->skip, l->end, &attempt) && attempt > l->attempt)
        l->attempt = attempt;
    return 0;
}

int layout_find_latest(
    struct store *s, const char *prefix, char end, int64_t *ret_latest, struct err *e)
{
    struct latest l = {.skip = strlen(prefix), .end = end};
    int rc = s->ops->list(s, prefix, note_latest, &l, e);

    if (!rc)
        *ret_latest = l.attempt;
    return rc;
}

/* Decrypts the manifest's text, and returns its key. */
static int open_manifest(const struct ckpt_job *j, const struct layout_name *seal, struct buf *text,
    const struct crypt_key **ret_key, struct err *e)
{
    *ret_key = NULL;
    if (sealed_is(text))
        return sealed_open(j->crypt, seal->s, text, ret_key, e);
    if (j->crypt && j->crypt->refuses_plain)
        return err_set(
            e, ERR_CORRUPT, "it is not encrypted, and this cluster accepts only encrypted ones");
    if (j->crypt && j->crypt->only_sealed)
        return err_set(e, ERR_CONFIG,
            "it is not encrypted, so anyone who can write to the store may have made it: it is not "
            "restored as root. It stays in the store; delete it (belay checkpoint delete) and "
            "release the job, or submit the job again");
    return 0;
}

int layout_seal_manifest(
    const struct manifest *m, const struct layout_name *seal, struct buf *out, struct err *e)
{
    int rc = manifest_encode(m, out, e);

    if (!rc)
        shrunk_close(out);
    if (!rc && m->key)
        sealed_close(m->key, seal->s, out);
    return rc;
}

int layout_commit(const struct ckpt_job *j, const struct manifest *m, struct err *e)
{
    struct layout_name name = layout_manifest(j, m->id), seal = manifest_seal(j, m->id);
    struct buf text = {0};
    int rc = layout_seal_manifest(m, &seal, &text, e);

    if (!rc && j->owner)
        rc = marker_check(j->store, j->cluster, j->owner, e);
    if (!rc)
        rc = fence_check(j, m->id.attempt, e);
    if (!rc)
        rc = j->store->ops->create(j->store, name.s, text.data, text.len, e);
    if (!rc)
        rc = fence_check(j, m->id.attempt, e);
    buf_deinit(&text);
    return rc;
}

/* ---- Damage, real and apparent ----
 *
 * A checkpoint is set aside for damage in the store, never for damage in transit: a reply cut short
 * by a proxy or a connection without TLS looks like a damaged object, and may do so several times
 * in a row. So an object that fails verification is read again. If the number of bytes received
 * differs from the store's size, it is retried a few more times, and then the store counts as
 * unavailable (ERR_UNAVAILABLE). */

#define READS 2      /* reads that must agree */
#define READS_MAX 5  /* reads in all while the size received differs from the stored one */
#define PAUSE_MS 100 /* before the third read; doubles with each further one */
#define NOTHING_CAME SIZE_MAX
#define TOO_MUCH_CAME (SIZE_MAX - 1)

/* One read, of at most max bytes, that may be damaged; *ret_came is the number received. */
typedef int (*read_fn)(void *ctx, size_t *ret_came, struct err *e);

/* Returns ERR_CORRUPT, and leaves the read's error in e, if the stored object itself is damaged.
 * Otherwise sets the error: damage in transit, or a failed stat. */
static int judge_damage(
    const struct ckpt_job *j, const char *name, size_t max, size_t came, struct err *e)
{
    struct err why = *e, stat_error;
    int64_t size;
    int rc = j->store->ops->stat(j->store, name, &size, &stat_error);

    bool is_so = !rc && (came == TOO_MUCH_CAME ? (uint64_t)size > max : (uint64_t)size == came);
    if (rc == ERR_NOT_FOUND || is_so)
        return ERR_CORRUPT;
    if (rc) {
        *e = stat_error;
        return rc;
    }
    if (came == NOTHING_CAME || came == TOO_MUCH_CAME)
        return err_set(e, ERR_UNAVAILABLE,
            "the store has %" PRId64 " bytes of it, but its reply to a read had others: %s", size,
            why.text);
    return err_set(e, ERR_UNAVAILABLE,
        "the store has %" PRId64 " bytes of it and %zu came: the reply was damaged in transit (%s)",
        size, came, why.text);
}

static int read_verified(
    const struct ckpt_job *j, const char *name, size_t max, read_fn read, void *ctx, struct err *e)
{
    int rc = ERR_CORRUPT, judged = ERR_CORRUPT;

    for (int reads = 1; rc == ERR_CORRUPT && reads <= READS_MAX; reads++) {
        size_t came = NOTHING_CAME;

        if (reads > READS)
            poll(NULL, 0, PAUSE_MS << (reads - READS - 1));
        rc = read(ctx, &came, e);
        if (rc != ERR_CORRUPT)
            return rc;
        judged = reads < READS ? ERR_CORRUPT : judge_damage(j, name, max, came, e);
        if (reads >= READS && judged == ERR_CORRUPT)
            return rc;
    }
    return judged;
}

struct text_read {
    const struct ckpt_job *job;
    const char *name, *want;
};

static int read_text(void *ctx, size_t *ret_came, struct err *e)
{
    struct text_read *r = ctx;
    struct buf text = {0};
    int rc = r->job->store->ops->read(r->job->store, r->name, strlen(r->want), &text, e);

    if (rc != ERR_NOT_FOUND)
        *ret_came = rc == ERR_INVALID ? TOO_MUCH_CAME : text.len;
    if (rc == ERR_INVALID || (!rc && !str_eq(buf_str(&text), r->want)))
        rc = err_set(e, ERR_CORRUPT, "%s does not have the expected content", r->name);
    buf_deinit(&text);
    return rc;
}

int layout_expect_text(const struct ckpt_job *j, const char *name, const char *want, struct err *e)
{
    struct text_read r = {.job = j, .name = name, .want = want};

    return read_verified(j, name, strlen(want), read_text, &r, e);
}

#define MANIFEST_OBJECT_MAX (CKPT_MANIFEST_BYTES_MAX + SEALED_MORE_MAX)

struct sealed_read {
    const struct ckpt_job *job;
    struct ckpt_id id;
    const struct layout_name *name, *seal;
    int (*parse)(const char *text, size_t n, struct manifest *ret, struct err *e);
    struct manifest m;
};

static int read_sealed(void *ctx, size_t *ret_came, struct err *e)
{
    struct sealed_read *r = ctx;
    const struct ckpt_job *j = r->job;
    struct buf text = {0};
    struct manifest m = {0};
    const struct crypt_key *key;
    int rc = j->store->ops->read(j->store, r->name->s, MANIFEST_OBJECT_MAX, &text, e);

    if (rc != ERR_NOT_FOUND)
        *ret_came = rc == ERR_INVALID ? TOO_MUCH_CAME : text.len;
    if (rc == ERR_INVALID)
        rc = err_set(
            e, ERR_CORRUPT, "the manifest is larger than %u bytes", CKPT_MANIFEST_BYTES_MAX);
    if (!rc)
        rc = open_manifest(j, r->seal, &text, &key, e);
    if (!rc && shrunk_is(&text))
        rc = shrunk_open(&text, e);
    if (!rc)
        rc = r->parse(buf_str(&text), text.len, &m, e);
    m.key = rc ? NULL : key;
    if (!rc &&
        (m.job != j->job || !str_eq(m.cluster, j->cluster) || layout_compare_ids(m.id, r->id)))
        rc = err_set(e, ERR_CORRUPT,
            "the manifest is that of checkpoint %" PRId64 ".%" PRId64 " of job %" PRId64
            " of cluster %.64s",
            m.id.attempt, m.id.sequence, m.job, m.cluster);
    buf_deinit(&text);
    if (rc)
        manifest_deinit(&m);
    else
        r->m = m;
    return rc;
}

static int read_one(struct sealed_read *r, struct manifest *ret, struct err *e)
{
    int rc = read_verified(r->job, r->name->s, MANIFEST_OBJECT_MAX, read_sealed, r, e);

    if (rc == ERR_NOT_FOUND) /* the error has the store's path, which is for administrators only */
        return err_set(e, rc, "checkpoint %" PRId64 ".%" PRId64 " is not in the store",
            r->id.attempt, r->id.sequence);
    if (rc)
        return err_wrap(e, "checkpoint %" PRId64 ".%" PRId64, r->id.attempt, r->id.sequence);
    *ret = r->m;
    return 0;
}

int layout_read_sealed(const struct ckpt_job *j, struct ckpt_id id, const struct layout_name *name,
    const struct layout_name *seal, struct manifest *ret, struct err *e)
{
    struct sealed_read r = {
        .job = j, .id = id, .name = name, .seal = seal, .parse = manifest_parse};

    return read_one(&r, ret, e);
}

int layout_read_manifest(
    const struct ckpt_job *j, struct ckpt_id id, struct manifest *ret, struct err *e)
{
    struct layout_name name = layout_manifest(j, id), seal = manifest_seal(j, id);

    return layout_read_sealed(j, id, &name, &seal, ret, e);
}

int layout_read_chunks(
    const struct ckpt_job *j, struct ckpt_id id, struct manifest *ret, struct err *e)
{
    struct layout_name name = layout_manifest(j, id), seal = manifest_seal(j, id);
    struct sealed_read r = {
        .job = j, .id = id, .name = &name, .seal = &seal, .parse = manifest_parse_chunks};

    return read_one(&r, ret, e);
}

static int open_chunk(const struct ckpt_job *j, const struct crypt_key *key,
    const struct layout_name *name, struct buf *object, struct err *e)
{
    struct layout_name what = layout_chunk_seal(j, name);
    size_t n;
    int rc = crypt_open(key, what.s, object->data, object->len, &n, e);

    if (rc)
        return rc;
    buf_truncate(object, n);
    return 0;
}

struct chunk_read {
    const struct ckpt_job *job;
    const struct manifest *m;
    const struct manifest_chunk *c;
    struct layout_name name;
    const uint32_t *chunks; /* of a pack, to be verified; else NULL */
    size_t n_chunks;
    struct chunk_work *work;
    const void *p; /* the content */
};

/* Sets r->p and verifies the chunks there. id: of the pack, for errors. */
static int open_pack(struct chunk_read *r, const char *id, struct err *e)
{
    const struct manifest_chunk *pack = r->c;
    char hash[CHUNK_HEX_SIZE];
    int rc = chunk_expand(r->work, (size_t)pack->size, id, &r->p, e);

    for (size_t i = 0; !rc && i < r->n_chunks; i++) {
        const struct manifest_chunk *c = &r->m->chunks[r->chunks[i]];

        chunk_hash_with(r->work, (const char *)r->p + c->at, (size_t)c->size, hash);
        if (!str_eq(hash, c->sha256))
            rc = err_set(e, ERR_CORRUPT,
                "%" PRId64 " bytes at %" PRIu32 " of pack %s are not what its manifest says",
                c->size, c->at, id);
    }
    return rc;
}

static int read_chunk(void *ctx, size_t *ret_came, struct err *e)
{
    struct chunk_read *r = ctx;
    const struct ckpt_job *j = r->job;
    const struct crypt_key *key = r->m->key;
    const struct manifest_chunk *c = r->c;
    struct chunk_work *w = r->work;
    /* for errors, which must not contain the hash of encrypted content */
    const char *id = strrchr(r->name.s, '/') + 1;
    size_t n = (size_t)layout_chunk_bytes(key, c->stored);
    int rc = j->store->ops->read(j->store, r->name.s, n, &w->object, e);

    if (rc == ERR_NOT_FOUND)
        return err_set(e, ERR_CORRUPT, "chunk %s is missing", id);
    *ret_came = rc == ERR_INVALID ? TOO_MUCH_CAME : w->object.len;
    if (rc == ERR_INVALID || (!rc && w->object.len != n))
        return err_set(
            e, ERR_CORRUPT, "chunk %s does not have the %zu bytes it was stored with", id, n);
    if (!rc && key && open_chunk(j, key, &r->name, &w->object, e))
        return err_wrap(e, "chunk %s", id);
    if (rc)
        return rc;
    if (r->chunks)
        return open_pack(r, id, e);
    rc = chunk_unpack(w, (size_t)c->size, c->sha256, &r->p, e);
    if (rc && key)
        rc = err_set(e, ERR_CORRUPT, "chunk %s: its content does not match its manifest", id);
    return rc;
}

static int read_object(struct chunk_read *r, const void **ret_p, struct err *e)
{
    const struct manifest *m = r->m;
    size_t bytes = (size_t)layout_chunk_bytes(m->key, r->c->stored);
    int rc;

    r->name = layout_chunk(r->job, m->key, m->id.attempt, r->c->sha256);
    rc = read_verified(r->job, r->name.s, bytes, read_chunk, r, e);
    if (!rc)
        *ret_p = r->p;
    return rc;
}

int layout_read_chunk(const struct ckpt_job *j, const struct manifest *m,
    const struct manifest_chunk *c, struct chunk_work *w, const void **ret_p, struct err *e)
{
    return read_object(&(struct chunk_read){.job = j, .m = m, .c = c, .work = w}, ret_p, e);
}

int layout_read_pack(const struct ckpt_job *j, const struct manifest *m,
    const struct manifest_chunk *pack, const uint32_t *chunks, size_t n, struct chunk_work *w,
    const void **ret_p, struct err *e)
{
    struct chunk_read r = {.job = j, .m = m, .c = pack, .chunks = chunks, .n_chunks = n, .work = w};

    return read_object(&r, ret_p, e);
}

void layout_set_aside(const struct ckpt_job *j, const char *name, const struct err *why)
{
    struct layout_name prefix = layout_prefix(j, "");
    struct layout_name to = layout_prefix(j, "damaged/");
    size_t n = strlen(to.s);
    struct err e;

    snprintf(to.s + n, sizeof(to.s) - n, "%s", name + strlen(prefix.s));
    log_warn("damaged checkpoint data set aside", log_i("job", j->job), log_s("object", name),
        log_err(why));
    if (j->store->ops->rename(j->store, name, to.s, &e) && e.kind != ERR_NOT_FOUND)
        log_warn(
            "damaged checkpoint data could not be set aside", log_s("object", name), log_err(&e));
}

int layout_remove(const struct ckpt_job *j, const struct names *l, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < l->n; i += STORE_REMOVE_MAX) {
        size_t n = l->n - i < STORE_REMOVE_MAX ? l->n - i : STORE_REMOVE_MAX;

        rc = j->store->ops->remove(j->store, (const char *const *)l->v + i, n, e);
    }
    return rc;
}
