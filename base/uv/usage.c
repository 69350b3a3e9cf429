/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uv/usage.h"

#include "base/err.h"
#include "base/str.h"
#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX 4096
#define NUMBER_MAX (INT64_C(1) << 60) /* bytes, or microseconds */

/* False: it cannot be read. */
static bool read_small(const char *path, char out[FILE_MAX])
{
    int fd = *path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? -1 : read(fd, out, FILE_MAX - 1);
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* What a text begins with; -1: no number, or too great. */
static int64_t leading(const char *text, int64_t max)
{
    char digits[24] = "";
    int64_t v;
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n >= sizeof(digits) || (text[n] && text[n] != '\n'))
        return -1;
    memcpy(digits, text, n);
    return str_to_i64(digits, 0, max, "", &v, NULL) == 0 ? v : -1;
}

/* Of a line "KEY MICROSECONDS"; -1: there is none. */
static int64_t line_ms(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, n) == 0 && line[n] == ' ') {
            int64_t us = leading(line + n + 1, NUMBER_MAX);
            return us < 0 ? -1 : us / 1000;
        }
    return -1;
}

void usage_parse_cpu(const char *text, int64_t *ret_cpu_ms, int64_t *ret_user_ms)
{
    int64_t ns = leading(text, INT64_MAX);
    *ret_cpu_ms = ns < 0 ? line_ms(text, "usage_usec") : ns / 1000000;
    *ret_user_ms = *ret_cpu_ms < 0 ? -1 : line_ms(text, "user_usec");
}

void usage_read(const struct usage_files *f, struct usage *ret_usage)
{
    char text[FILE_MAX];
    read_small(f->cpu, text);
    usage_parse_cpu(text, &ret_usage->cpu_ms, &ret_usage->user_ms);
    ret_usage->memory_bytes = read_small(f->memory, text) ? leading(text, NUMBER_MAX) : -1;
    ret_usage->peak_bytes = read_small(f->peak, text) ? leading(text, NUMBER_MAX) : -1;
}
