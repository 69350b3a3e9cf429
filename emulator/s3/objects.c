/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/s3/objects.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

void s3_md5_hex(const void *p, size_t n, char out[33])
{
    unsigned char raw[EVP_MAX_MD_SIZE] = {0};
    size_t len;
    EVP_Q_digest(NULL, "MD5", NULL, p, n, raw, &len);
    str_hex(raw, 16, out);
}

void s3_sha256_base64(const void *p, size_t n, char out[S3_CHECKSUM_BYTES])
{
    unsigned char raw[EVP_MAX_MD_SIZE] = {0};
    size_t len;
    EVP_Q_digest(NULL, "SHA256", NULL, p, n, raw, &len);
    EVP_EncodeBlock((unsigned char *)out, raw, 32);
}

/* ---- Buckets and objects ---- */

static void object_free(struct s3_objects *o, struct s3_object *object)
{
    o->bytes -= object->data.len;
    buf_deinit(&object->data);
    free(object->key);
    free(object);
}

void s3_objects_deinit(struct s3_objects *o)
{
    for (struct link *l; (l = list_first(&o->uploads));)
        s3_upload_free(o, LIST_ENTRY(l, struct s3_upload, link));
    for (size_t k = 0; k < o->n_buckets; k++) {
        for (size_t i = 0; i < o->buckets[k].n; i++)
            object_free(o, o->buckets[k].objects[i]);
        free(o->buckets[k].objects);
    }
    o->n_buckets = 0;
}

void s3_objects_add_bucket(struct s3_objects *o, const char *name)
{
    struct s3_bucket *b = &o->buckets[o->n_buckets++];
    *b = (struct s3_bucket){0};
    STR_COPY(b->name, name);
}

struct s3_bucket *s3_objects_bucket(struct s3_objects *o, const char *name, size_t n)
{
    for (size_t k = 0; k < o->n_buckets; k++)
        if (strlen(o->buckets[k].name) == n && memcmp(o->buckets[k].name, name, n) == 0)
            return &o->buckets[k];
    return NULL;
}

size_t s3_bucket_after(const struct s3_bucket *b, const char *key, bool or_equal)
{
    size_t low = 0, high = b->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(b->objects[middle]->key, key);
        if (order < 0 || (order == 0 && !or_equal))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct s3_object *s3_bucket_find(const struct s3_bucket *b, const char *key)
{
    size_t i = s3_bucket_after(b, key, true);
    return i < b->n && str_eq(b->objects[i]->key, key) ? b->objects[i] : NULL;
}

struct s3_object *s3_bucket_put(
    struct s3_objects *o, struct s3_bucket *b, const char *key, struct buf *data, struct wall now)
{
    s3_bucket_remove(o, b, key);
    size_t i = s3_bucket_after(b, key, true);
    if (b->n == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 64;
        b->objects = mem_resize(b->objects, b->cap, sizeof(struct s3_object *));
    }
    memmove(b->objects + i + 1, b->objects + i, (b->n - i) * sizeof(struct s3_object *));
    struct s3_object *object = mem_alloc(sizeof(*object));
    *object = (struct s3_object){.key = mem_strdup(key), .data = *data, .modified = now};
    *data = (struct buf){0};
    s3_md5_hex(object->data.data, object->data.len, object->etag);
    b->objects[i] = object;
    b->n++;
    o->bytes += object->data.len;
    return object;
}

void s3_bucket_remove(struct s3_objects *o, struct s3_bucket *b, const char *key)
{
    size_t i = s3_bucket_after(b, key, true);
    if (i == b->n || !str_eq(b->objects[i]->key, key))
        return;
    object_free(o, b->objects[i]);
    b->n--;
    memmove(b->objects + i, b->objects + i + 1, (b->n - i) * sizeof(struct s3_object *));
}

/* ---- Uploads ---- */

struct s3_upload *s3_upload_new(struct s3_objects *o, struct s3_bucket *b, const char *key)
{
    struct s3_upload *u = mem_alloc(sizeof(*u));
    u->bucket = b;
    u->key = mem_strdup(key);
    random_hex(16, u->id);
    list_push_back(&o->uploads, &u->link);
    return u;
}

struct s3_upload *s3_upload_find(
    struct s3_objects *o, const struct s3_bucket *b, const char *key, const char *id)
{
    LIST_FOREACH (&o->uploads, l) {
        struct s3_upload *u = LIST_ENTRY(l, struct s3_upload, link);
        if (u->bucket == b && str_eq(u->key, key) && str_eq(u->id, id))
            return u;
    }
    return NULL;
}

struct s3_upload_part *s3_upload_put(
    struct s3_objects *o, struct s3_upload *u, size_t number, const void *p, size_t n)
{
    if (number > u->n_parts) {
        u->parts = mem_resize(u->parts, number, sizeof(*u->parts));
        memset(u->parts + u->n_parts, 0, (number - u->n_parts) * sizeof(*u->parts));
        u->n_parts = number;
    }
    struct s3_upload_part *part = &u->parts[number - 1];
    o->bytes -= part->data.len;
    buf_clear(&part->data);
    buf_add(&part->data, p, n);
    o->bytes += n;
    s3_md5_hex(p, n, part->etag);
    part->is_there = true;
    return part;
}

void s3_upload_free(struct s3_objects *o, struct s3_upload *u)
{
    for (size_t i = 0; i < u->n_parts; i++) {
        o->bytes -= u->parts[i].data.len;
        buf_deinit(&u->parts[i].data);
    }
    link_remove(&u->link);
    free(u->parts);
    free(u->key);
    free(u);
}
