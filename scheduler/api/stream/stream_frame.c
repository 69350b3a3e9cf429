/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/api/stream/stream_frame.h"

#include "base/mem.h"
#include "scheduler/api/stream/stream_query.h"
#include <stdlib.h>
#include <string.h>

#define REPLACED_MAX ((size_t)16 << 10) /* bytes of replaced texts that are kept */

struct stream_piece {
    size_t at, len;
    int64_t event;
};

void stream_frame_deinit(struct stream_frame *f)
{
    buf_deinit(&f->text);
    free(f->pieces);
    map_deinit(&f->things);
    *f = (struct stream_frame){0};
}

static struct stream_piece *add_piece(struct stream_frame *f)
{
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 16;
        f->pieces = mem_resize(f->pieces, f->cap, sizeof(*f->pieces));
    }
    f->pieces[f->n] = (struct stream_piece){0};
    return &f->pieces[f->n++];
}

static struct stream_piece *piece_of(struct stream_frame *f, int64_t thing)
{
    uintptr_t known = thing ? (uintptr_t)map_get(&f->things, thing) : 0;
    if (known)
        return &f->pieces[known - 1];
    struct stream_piece *p = add_piece(f);
    if (thing)
        map_put(&f->things, thing, (void *)(uintptr_t)f->n);
    return p;
}

/* Drops the texts that were replaced. */
static void compact(struct stream_frame *f)
{
    struct buf kept = {0};
    for (size_t i = 0; i < f->n; i++) {
        size_t at = kept.len;
        buf_add(&kept, f->text.data + f->pieces[i].at, f->pieces[i].len);
        f->pieces[i].at = at;
    }
    buf_deinit(&f->text);
    f->text = kept;
}

void stream_frame_add(struct stream_frame *f, const char *text, int64_t thing, int64_t event)
{
    struct stream_piece *p = piece_of(f, thing);
    size_t len = strlen(text);
    f->len += len - p->len;
    *p = (struct stream_piece){.at = f->text.len, .len = len, .event = event};
    buf_add(&f->text, text, len);
    if (f->text.len > f->len + REPLACED_MAX)
        compact(f);
}

void stream_frame_write(const struct stream_frame *f, int64_t epoch, struct buf *out)
{
    char id[STREAM_POSITION_MAX];
    for (size_t i = 0; i < f->n; i++)
        buf_add(out, f->text.data + f->pieces[i].at, f->pieces[i].len);
    if (f->last == 0 || (f->n > 0 && f->pieces[f->n - 1].event == f->last))
        return;
    stream_position_format((struct stream_position){.epoch = epoch, .event = f->last}, id);
    buf_printf(out, "id: %s\n\n", id);
}
