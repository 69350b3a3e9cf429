/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/kernel_text.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define NUMBER_MAX (INT64_C(1) << 58)
#define DIGITS_MAX 20

/* The number at the start of a text, whatever follows; -1 = none, or too large. */
int64_t kernel_number(const char *p)
{
    char digits[DIGITS_MAX];
    int64_t v;
    size_t n = strspn(p, "0123456789");
    if (n == 0 || n >= sizeof(digits))
        return -1;
    memcpy(digits, p, n);
    digits[n] = '\0';
    return str_to_i64(digits, 0, NUMBER_MAX, "", &v, NULL) == 0 ? v : -1;
}

static const char *next_line(const char *p)
{
    p += strcspn(p, "\n");
    return p + (*p == '\n');
}

/* The text after the first n words of the line; NULL if it has no more words. */
static const char *skip_words(const char *p, int n)
{
    for (; p && n > 0; n--) {
        p += strcspn(p, " \n");
        p = *p == ' ' ? p + strspn(p, " ") : NULL;
    }
    return p;
}

static int64_t word(const char *p, int n)
{
    p = skip_words(p, n);
    return p ? kernel_number(p) : -1;
}

bool kernel_stat(const char *text, struct kernel_stat *ret_stat)
{
    const char *after = strrchr(text, ')'); /* the last ')', because the program chooses its name */
    if (!after || after[1] != ' ' || !after[2] || after[3] != ' ')
        return false;
    const char *p = after + 2; /* field 3 of proc(5) */
    int64_t user = word(p, 14 - 3), kernel = word(p, 15 - 3), blocked = word(p, 42 - 3);
    struct kernel_stat s = {.state = *p,
        .faults = word(p, 12 - 3),
        .threads = word(p, 20 - 3),
        .start_ticks = word(p, 22 - 3),
        .pages = word(p, 24 - 3),
        .cpu_ticks = user + kernel,
        .blocked_ticks = blocked > 0 ? blocked : 0};
    if (user < 0 || kernel < 0 || s.faults < 0 || s.threads < 0 || s.start_ticks < 0 || s.pages < 0)
        return false;
    *ret_stat = s;
    return true;
}

int64_t kernel_value(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; *line; line = next_line(line))
        if (strncmp(line, key, n) == 0 && (line[n] == ' ' || line[n] == '\t'))
            return kernel_number(line + n + strspn(line + n, " \t"));
    return -1;
}

/* N of "KEY=N" in the line; -1 = none. */
static int64_t pair(const char *line, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = line; p; p = skip_words(p, 1))
        if (strncmp(p, key, n) == 0 && p[n] == '=')
            return kernel_number(p + n + 1);
    return -1;
}

int64_t kernel_pressure_ms(const char *text)
{
    for (const char *line = text; *line; line = next_line(line))
        if (str_starts(line, "some ")) {
            int64_t us = pair(line, "total");
            return us < 0 ? -1 : us / 1000;
        }
    return -1;
}

bool kernel_io(const char *text, int64_t *ret_read_bytes, int64_t *ret_write_bytes)
{
    int64_t in = 0, out = 0;
    bool found = false;
    for (const char *line = text; *line; line = next_line(line)) {
        int64_t r = pair(line, "rbytes"), w = pair(line, "wbytes");
        if (r < 0 || w < 0 || in > NUMBER_MAX || out > NUMBER_MAX)
            continue;
        in += r;
        out += w;
        found = true;
    }
    if (found) {
        *ret_read_bytes = in;
        *ret_write_bytes = out;
    }
    return found;
}

bool kernel_cpu(const char *text, int64_t *ret_busy_ticks, int64_t *ret_iowait_ticks)
{
    int64_t busy = 0, v;
    if (!str_starts(text, "cpu "))
        return false;
    for (int i = 1; i <= 7; i++) { /* user nice system idle iowait irq softirq */
        if ((v = word(text, i)) < 0)
            return false;
        if (i == 5)
            *ret_iowait_ticks = v;
        else if (i != 4)
            busy += v;
    }
    *ret_busy_ticks = busy;
    return true;
}

bool kernel_net_next(const char **at, struct kernel_net *ret_net)
{
    while (**at) {
        const char *line = *at + strspn(*at, " ");
        *at = next_line(*at);
        size_t n = strcspn(line, ":\n");
        if (line[n] != ':' || n == 0 || n >= KERNEL_NAME_MAX)
            continue;
        const char *numbers = line + n + 1 + strspn(line + n + 1, " ");
        struct kernel_net net = {.in_bytes = kernel_number(numbers), .out_bytes = word(numbers, 8)};
        memcpy(net.name, line, n);
        if (net.in_bytes < 0 || net.out_bytes < 0)
            continue;
        *ret_net = net;
        return true;
    }
    return false;
}
