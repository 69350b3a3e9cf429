/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds images in criu's format (criu_images.h) for tests, field by field.
 */
#ifndef BELAY_TESTS_AGENT_CRIU_IMAGE_H
#define BELAY_TESTS_AGENT_CRIU_IMAGE_H

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_FILES 0x56303138u
#define IMAGE_REMAPS 0x59133954u
enum { IMAGE_LINKED, IMAGE_GHOST, IMAGE_PROCESS };

static inline void image_u32(struct buf *b, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        buf_addc(b, (char)(value >> (8 * i)));
}

static inline void image_begin(struct buf *b, uint32_t magic)
{
    image_u32(b, 0x54564319);
    image_u32(b, magic);
}

static inline void image_varint(struct buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_addc(b, (char)(value | 0x80));
    buf_addc(b, (char)value);
}

static inline void image_number(struct buf *b, unsigned field, uint64_t value)
{
    image_varint(b, field << 3);
    image_varint(b, value);
}

static inline void image_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
    image_varint(b, field << 3 | 2);
    image_varint(b, n);
    buf_add(b, p, n);
}

/* Empties message. */
static inline void image_message(struct buf *b, struct buf *message)
{
    image_u32(b, (uint32_t)message->len);
    buf_add(b, buf_str(message), message->len);
    buf_deinit(message);
}

static inline void image_remap(struct buf *b, uint32_t id, int type)
{
    struct buf m = {0};
    image_number(&m, 1, id);
    image_number(&m, 2, 1);
    image_number(&m, 3, (uint64_t)type);
    image_message(b, &m);
}

static inline void image_file(struct buf *b, uint32_t id, const char *path)
{
    struct buf m = {0}, reg = {0};
    image_number(&reg, 1, id);
    image_number(&reg, 3, 0);
    image_bytes(&reg, 5, "", 0);
    image_bytes(&reg, 6, path, strlen(path));
    image_number(&m, 1, 1);
    image_number(&m, 2, id);
    image_bytes(&m, 3, buf_str(&reg), reg.len);
    image_message(b, &m);
    buf_deinit(&reg);
}

/* dir may be NULL */
static inline void image_socket(
    struct buf *b, uint32_t id, unsigned flags, const char *dir, const void *name, size_t n)
{
    struct buf m = {0}, socket = {0};
    image_number(&socket, 1, id);
    image_number(&socket, 6, flags);
    image_bytes(&socket, 11, name, n);
    if (dir)
        image_bytes(&socket, 14, dir, strlen(dir));
    image_number(&m, 1, 5);
    image_number(&m, 2, id);
    image_bytes(&m, 16, buf_str(&socket), socket.len);
    image_message(b, &m);
    buf_deinit(&socket);
}

/* Empties b. */
static inline int image_write(struct buf *b, const char *dir, const char *name, struct err *e)
{
    char *path = mem_printf("%s/%s", dir, name);
    int rc = fs_write_atomic(path, buf_str(b), b->len, 0600, e);
    free(path);
    buf_deinit(b);
    return rc;
}

/* Both images, of one file that was open when its name was removed. */
static inline int image_write_ghost(const char *dir, const char *path, struct err *e)
{
    struct buf files = {0}, remaps = {0};
    image_begin(&files, IMAGE_FILES);
    image_file(&files, 7, path);
    image_begin(&remaps, IMAGE_REMAPS);
    image_remap(&remaps, 7, IMAGE_GHOST);
    int rc = image_write(&files, dir, "files.img", e);
    int rc2 = image_write(&remaps, dir, "remap-fpath.img", e);
    return rc ? rc : rc2;
}

#endif
