/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/incarnation.h"

#include "agent/disk.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAST_MAX (INT64_C(1) << 52) /* a larger number was not written by an agent */

/* Returns 0 if there is no number, or a malformed one. */
static int64_t read_last(const char *path)
{
    struct buf text = {0};
    struct err ignored;
    int64_t last = 0;
    if (fs_read(path, 64, &text, &ignored) == 0 && text.len > 0)
        str_to_i64(text.data, 1, LAST_MAX, "incarnation", &last, &ignored);
    buf_deinit(&text);
    return last;
}

/* Overwrites the file in place, which takes no space. A crash in the middle loses nothing: the new
 * number is greater, so its first digits followed by the last digits of the old one are not less
 * than the old one. */
static bool write_over(const char *path, const char *text)
{
    struct err unused;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_written = fd >= 0 && fs_write_all(fd, text, strlen(text), &unused) == 0 &&
                      ftruncate(fd, (off_t)strlen(text)) == 0 && fdatasync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return is_written;
}

/* Also works on a full disk: without a number the agent cannot start, and its tasks are lost. */
static int write_number(const char *dir, const char *path, const char *text, struct err *e)
{
    int rc = fs_write_atomic(path, text, strlen(text), 0600, e);
    if (rc != ERR_NO_SPACE)
        return rc;
    if (write_over(path, text))
        return 0;
    /* the file system does not overwrite in place (copy-on-write), or there is no file yet */
    return disk_write_record(dir, path, text, strlen(text), e);
}

int incarnation_next(const char *dir, int64_t now_ms, int64_t *ret_incarnation, struct err *e)
{
    char *path = mem_printf("%s/incarnation", dir), text[32];
    int64_t last = read_last(path);
    int64_t next = now_ms > last ? now_ms : last + 1;
    snprintf(text, sizeof(text), "%lld", (long long)next);
    int rc = write_number(dir, path, text, e);
    if (!rc)
        *ret_incarnation = next;
    free(path);
    return rc;
}
