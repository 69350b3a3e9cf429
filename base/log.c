/* SPDX-License-Identifier: Apache-2.0
 *
 * A line is built in a stack buffer and written with one write(2), so threads need no lock to keep
 * lines whole. The lock only keeps a sink and its context together.
 */
#include "base/log.h"

#include "base/str.h"
#include "base/time.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    atomic_int level;
    atomic_bool journal;
    _Atomic(const char *) program;
    pthread_mutex_t lock; /* guards sink and sink_ctx */
    log_sink_fn sink;
    void *sink_ctx;
} state = {.level = LOG_INFO, .program = "belay", .lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    const char *name;
    int syslog; /* RFC 5424 severity */
} levels[] = {[LOG_DEBUG] = {"debug", 7},
    [LOG_INFO] = {"info", 6},
    [LOG_WARN] = {"warn", 4},
    [LOG_ERROR] = {"error", 3}};

/* $JOURNAL_STREAM is "device:inode" of the stream connected to the journal: systemd.exec(5). */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_init(const char *program, enum log_level level)
{
    state.program = program;
    state.level = (int)level;
    state.journal = stderr_is_journal();
}

void log_set_level(enum log_level level)
{
    state.level = (int)level;
}

void log_set_sink(log_sink_fn sink, void *ctx)
{
    pthread_mutex_lock(&state.lock);
    state.sink = sink;
    state.sink_ctx = ctx;
    pthread_mutex_unlock(&state.lock);
}

int log_level_from_name(const char *name, enum log_level *ret_level)
{
    for (int i = LOG_DEBUG; i <= LOG_ERROR; i++)
        if (str_eq(levels[i].name, name)) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    return ERR_INVALID;
}

struct line {
    /* one byte more than is written: str_cut reads the first byte left out */
    char text[LOG_LINE_MAX + 1];
    size_t len;
};

static void line_add(struct line *l, const char *p, size_t n)
{
    size_t space = sizeof(l->text) - l->len;
    if (n > space)
        n = space;
    memcpy(l->text + l->len, p, n);
    l->len += n;
}

static void line_adds(struct line *l, const char *s)
{
    line_add(l, s, strlen(s));
}

/* Adds the n bytes at s, with everything escaped that could end the line, move the cursor or is not
 * UTF-8. */
static void line_add_escaped(struct line *l, const char *s, size_t n, bool quoted)
{
    while (n > 0) {
        unsigned char c = (unsigned char)*s;
        size_t len = str_utf8_len(s, n);
        bool c1_control = c == 0xC2 && len == 2 && (unsigned char)s[1] < 0xA0;
        if (quoted && (c == '"' || c == '\\')) {
            line_add(l, (const char[]){'\\', (char)c}, 2);
        } else if (c == '\n') {
            line_adds(l, "\\n");
        } else if (c < 0x20 || c == 0x7F || len == 0 || c1_control) {
            char hex[5];
            snprintf(hex, sizeof(hex), "\\x%02x", c);
            line_adds(l, hex);
            len = 1;
        } else {
            line_add(l, s, len);
        }
        s += len;
        n -= len;
    }
}

static bool needs_quotes(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7F || strchr("\"\\=", s[i]))
            return true;
    return n == 0;
}

static void line_add_value(struct line *l, const char *s)
{
    if (!s) {
        line_adds(l, "-");
        return;
    }
    size_t n = strnlen(s, LOG_VALUE_MAX + 1);
    n = str_cut(s, n, LOG_VALUE_MAX);
    bool quoted = needs_quotes(s, n);
    if (quoted)
        line_adds(l, "\"");
    line_add_escaped(l, s, n, quoted);
    if (quoted)
        line_adds(l, "\"");
}

static void line_add_fields(struct line *l, const struct log_field *fields)
{
    for (const struct log_field *f = fields; f->key; f++) {
        line_adds(l, " ");
        line_adds(l, f->key);
        line_adds(l, "=");
        if (f->type == LOG_FIELD_STR) {
            line_add_value(l, f->str);
        } else {
            char number[24];
            snprintf(number, sizeof(number), "%lld", (long long)f->num);
            line_adds(l, number);
        }
    }
}

/* The journal records the time and the program itself. */
static void line_add_stderr_prefix(struct line *l, enum log_level level)
{
    if (state.journal) {
        char prefix[8];
        snprintf(prefix, sizeof(prefix), "<%d>", levels[level].syslog);
        line_adds(l, prefix);
    } else {
        char now[TIME_ISO_MAX];
        time_format_iso(clock_wall(&clock_system), now);
        line_adds(l, now);
        line_adds(l, " ");
        line_adds(l, state.program);
        line_adds(l, " ");
    }
}

void log_write(enum log_level level, const char *message, const struct log_field *fields)
{
    if ((int)level < state.level)
        return;
    pthread_mutex_lock(&state.lock);
    log_sink_fn sink = state.sink;
    void *ctx = state.sink_ctx;
    pthread_mutex_unlock(&state.lock);

    struct line l;
    l.len = 0;
    if (!sink)
        line_add_stderr_prefix(&l, level);
    line_adds(&l, levels[level].name);
    line_adds(&l, ": ");
    line_add_escaped(&l, message, strlen(message), false);
    line_add_fields(&l, fields);
    l.len = str_cut(l.text, l.len, LOG_LINE_MAX - 1);
    l.text[l.len] = sink ? 0 : '\n';
    if (sink)
        sink(ctx, level, l.text);
    else if (write(STDERR_FILENO, l.text, l.len + 1) < 0)
        return; /* a failed write cannot be reported anywhere */
}
