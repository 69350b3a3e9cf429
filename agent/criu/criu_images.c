/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/criu/criu_images.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC_COMMON 0x54564319u
#define MAGIC_FILES 0x56303138u
#define MAGIC_REMAPS 0x59133954u

/* Types and field numbers of criu's messages (its remap-file-path.proto, fdinfo.proto,
 * regfile.proto and sk-unix.proto). */
enum { REMAP_LINKED, REMAP_GHOST, REMAP_PROCESS };
enum { FILE_TYPE = 1, FILE_ID = 2, FILE_REG = 3, FILE_SOCKET = 16 };
enum { REG_NAME = 6, SOCKET_FLAGS = 6, SOCKET_NAME = 11, SOCKET_DIR = 14 };
#define SOCKET_IS_EXTERNAL 1u /* another process has it: criu only connects to it */

void criu_created_deinit(struct criu_created_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].path);
    free(l->items);
    *l = (struct criu_created_list){0};
}

/* ---- messages ---- */

struct slice {
    const unsigned char *p;
    size_t n;
};

struct field {
    uint64_t number, value; /* value: of an integer field */
    struct slice bytes;     /* of a text or a message; p is NULL for an integer field */
};

static uint32_t u32_at(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static bool take(struct slice *s, size_t n, struct slice *ret)
{
    if (n > s->n)
        return false;
    *ret = (struct slice){.p = s->p, .n = n};
    s->p += n;
    s->n -= n;
    return true;
}

static bool take_number(struct slice *s, uint64_t *ret_value)
{
    struct slice byte;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (!take(s, 1, &byte))
            return false;
        value |= (uint64_t)(byte.p[0] & 0x7f) << shift;
        if (!(byte.p[0] & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take_field(struct slice *s, struct field *ret_field)
{
    uint64_t key, n;
    struct slice skipped;
    if (!take_number(s, &key))
        return false;
    *ret_field = (struct field){.number = key >> 3};
    switch (key & 7) {
    case 0:
        return take_number(s, &ret_field->value);
    case 1:
        return take(s, 8, &skipped);
    case 2:
        return take_number(s, &n) && n <= s->n && take(s, (size_t)n, &ret_field->bytes);
    case 5:
        return take(s, 4, &skipped);
    default:
        return false;
    }
}

/* ---- images ---- */

typedef bool message_fn(void *ctx, struct slice message);

/* False if the image is not understood. */
static bool each_message(const char *image, size_t n, uint32_t magic, message_fn *fn, void *ctx)
{
    struct slice s = {.p = (const unsigned char *)image, .n = n}, head, message;
    if (n == 0)
        return true;
    if (!take(&s, 8, &head) || u32_at(head.p) != MAGIC_COMMON || u32_at(head.p + 4) != magic)
        return false;
    while (s.n > 0)
        if (!take(&s, 4, &head) || !take(&s, u32_at(head.p), &message) || !fn(ctx, message))
            return false;
    return true;
}

struct reading {
    uint32_t *remapped; /* ids of files that criu creates */
    size_t n_remapped, n_found;
    struct criu_created_list list;
};

static bool on_remap(void *ctx, struct slice message)
{
    struct reading *r = ctx;
    uint64_t of = 0, type = REMAP_LINKED;
    struct field f;
    while (message.n > 0) {
        if (!take_field(&message, &f))
            return false;
        if (f.number == 1)
            of = f.value;
        if (f.number == 3)
            type = f.value;
    }
    if (type ==
        /* a file in /proc of a process that has ended: another process replaces it */
        REMAP_PROCESS)
        return true;
    if (type > REMAP_PROCESS || of == 0 || of > UINT32_MAX || r->n_remapped == CRIU_CREATED_MAX)
        return false;
    r->remapped = mem_resize(r->remapped, r->n_remapped + 1, sizeof(*r->remapped));
    r->remapped[r->n_remapped++] = (uint32_t)of;
    return true;
}

static bool add(struct reading *r, struct slice dir, struct slice name, bool is_socket)
{
    bool is_below = dir.n > 0 && (name.n == 0 || name.p[0] != '/');
    if (r->list.n == CRIU_CREATED_MAX)
        return false;
    char *path =
        mem_printf("%.*s%s%.*s", is_below ? (int)dir.n : 0, dir.n ? (const char *)dir.p : "",
            is_below ? "/" : "", (int)name.n, name.n ? (const char *)name.p : "");
    r->list.items = mem_resize(r->list.items, r->list.n + 1, sizeof(*r->list.items));
    r->list.items[r->list.n++] = (struct criu_created){.path = path, .is_socket = is_socket};
    return true;
}

static bool read_reg(struct reading *r, uint64_t id, struct slice reg)
{
    struct slice name = {0};
    struct field f;
    bool is_created = false;
    while (reg.n > 0) {
        if (!take_field(&reg, &f))
            return false;
        if (f.number == REG_NAME)
            name = f.bytes;
    }
    for (size_t i = 0; i < r->n_remapped; i++)
        is_created = is_created || r->remapped[i] == id;
    r->n_found += is_created;
    return !is_created || add(r, (struct slice){0}, name, false);
}

static bool read_socket(struct reading *r, struct slice socket)
{
    struct slice name = {0}, dir = {0};
    uint64_t flags = 0;
    struct field f;
    while (socket.n > 0) {
        if (!take_field(&socket, &f))
            return false;
        if (f.number == SOCKET_FLAGS)
            flags = f.value;
        else if (f.number == SOCKET_NAME)
            name = f.bytes;
        else if (f.number == SOCKET_DIR)
            dir = f.bytes;
    }
    if (name.n == 0 || name.p[0] == '\0' || flags & SOCKET_IS_EXTERNAL)
        return true; /* a socket without a name, or with an abstract one */
    return add(r, dir, name, true);
}

static bool on_file(void *ctx, struct slice message)
{
    struct reading *r = ctx;
    struct slice reg = {0}, socket = {0};
    struct field f;
    uint64_t id = 0;
    while (message.n > 0) {
        if (!take_field(&message, &f))
            return false;
        if (f.number == FILE_ID)
            id = f.value;
        /* refuses a repeated field, because parsers may merge the two or use either */
        if ((f.number == FILE_REG && reg.p) || (f.number == FILE_SOCKET && socket.p))
            return false;
        if (f.number == FILE_REG)
            reg = f.bytes;
        else if (f.number == FILE_SOCKET)
            socket = f.bytes;
    }
    return (!reg.p || read_reg(r, id, reg)) && (!socket.p || read_socket(r, socket));
}

int criu_images_parse(const char *files, size_t n_files, const char *remaps, size_t n_remaps,
    struct criu_created_list *ret_list, struct err *e)
{
    struct reading r = {0};
    int rc = 0;
    if (!each_message(remaps, n_remaps, MAGIC_REMAPS, on_remap, &r))
        rc = err_set(e, ERR_UNSUPPORTED, "remap-fpath.img of criu is not understood");
    else if (!each_message(files, n_files, MAGIC_FILES, on_file, &r))
        rc = err_set(e, ERR_UNSUPPORTED, "files.img of criu is not understood");
    else if (r.n_found < r.n_remapped)
        rc = err_set(e, ERR_UNSUPPORTED, "a file of remap-fpath.img is not in files.img");
    free(r.remapped);
    if (rc)
        criu_created_deinit(&r.list);
    else
        *ret_list = r.list;
    return rc;
}

static int read_image(const char *dir, const char *name, struct buf *out, struct err *e)
{
    char *path = mem_printf("%s/%s", dir, name);
    int rc = fs_exists(path) ? fs_read(path, CRIU_IMAGE_BYTES_MAX, out, e) : 0;
    free(path);
    return rc;
}

/* Refuses images in the form of older versions: if they exist, criu reads them too. */
static int check_none_of_old(const char *dir, struct err *e)
{
    static const char *const old[] = {"reg-files.img", "unixsk.img"};
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof(old) / sizeof(*old); i++) {
        char *path = mem_printf("%s/%s", dir, old[i]);
        if (fs_exists(path))
            rc = err_set(e, ERR_UNSUPPORTED, "%s is of a criu that is too old", old[i]);
        free(path);
    }
    return rc;
}

int criu_images_read(const char *dir, struct criu_created_list *ret_list, struct err *e)
{
    struct buf files = {0}, remaps = {0};
    int rc = check_none_of_old(dir, e);
    if (!rc)
        rc = read_image(dir, "files.img", &files, e);
    if (!rc)
        rc = read_image(dir, "remap-fpath.img", &remaps, e);
    if (!rc)
        rc = criu_images_parse(files.data, files.len, remaps.data, remaps.len, ret_list, e);
    buf_deinit(&files);
    buf_deinit(&remaps);
    return rc;
}
