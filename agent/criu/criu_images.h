/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads from criu's images what a restore creates by name, as root: open or mapped files without a
 * name ("ghosts"), hard links to files whose name was removed, and UNIX sockets with a name.
 *
 * Source: criu/files-reg.c, criu/sk-unix.c and images/ of criu 3.17.1 and 4.2. An image begins with
 * two numbers of four bytes, followed by messages of protocol buffers, each after its length in
 * four bytes, little-endian:
 *
 *     remap-fpath.img  {orig_id=1, remap_id=2, remap_type=3}: the file orig_id is a ghost or a link
 *     files.img        {type=1, id=2, reg=3 {name=6}, usk=16 {uflags=6, name=11, name_dir=14}}
 */
#ifndef BELAY_AGENT_CRIU_CRIU_IMAGES_H
#define BELAY_AGENT_CRIU_CRIU_IMAGES_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

#define CRIU_IMAGE_BYTES_MAX (64u << 20)
#define CRIU_CREATED_MAX 4096

struct criu_created {
    char *path; /* as in the images; the path of a socket may be relative */
    bool is_socket;
};

struct criu_created_list {
    struct criu_created *items;
    size_t n;
};

void criu_created_deinit(struct criu_created_list *l);

/* Reads the contents of both images; n == 0: criu treats it as absent. Pure. ERR_UNSUPPORTED: an
 * image is not understood, so it is unknown what would be created. */
int criu_images_parse(const char *files, size_t n_files, const char *remaps, size_t n_remaps,
    struct criu_created_list *ret_list, struct err *e);

/* The same for the images in dir. Blocks. */
int criu_images_read(const char *dir, struct criu_created_list *ret_list, struct err *e);

#endif
