/* SPDX-License-Identifier: Apache-2.0
 *
 * Logging: one line per event, `key=value` pairs after a short message, to stderr or (when
 * JOURNAL_STREAM names stderr) with a "<N>" syslog prefix that journald understands.
 *
 *     log_info("instance launched", log_s("instance", id), log_i("took_ms", ms));
 *
 * writes "2026-08-22T12:02:00.417Z belayd info: instance launched instance=i-0abc took_ms=412".
 *
 * Secrets are never logged: a caller logs names and ids, never tokens, keys or bodies. Values with
 * blanks, quotes or control characters are quoted and escaped (\" \\ \n \xNN), so that outside text
 * cannot forge a line or a field; a NULL value is "-", an empty one "\"\"". A value is cut at
 * LOG_VALUE_MAX bytes (before escaping) and a line at LOG_LINE_MAX including its newline. The level
 * and the sink are the only mutable globals besides main's.
 */
#ifndef BELAY_BASE_LOG_H
#define BELAY_BASE_LOG_H

#include "base/err.h"
#include <stdint.h>

#define LOG_VALUE_MAX 512
#define LOG_LINE_MAX 4096

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *key;
    enum { LOG_FIELD_STR, LOG_FIELD_INT } type;
    const char *str; /* borrowed for the call */
    int64_t num;
};

#define log_s(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_STR, .str = (v)})
#define log_i(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_INT, .num = (int64_t)(v)})
#define log_err(e) log_s("error", (e)->text)

/* Called with each finished line instead of writing it to stderr; for tests and the simulator. The
 * line starts with the level: no time, no program name, no newline. Runs on the logging thread,
 * without a lock. */
typedef void (*log_sink_fn)(void *ctx, enum log_level level, const char *line);

void log_init(const char *program, enum log_level level); /* program is borrowed forever */
void log_set_level(enum log_level level);
void log_set_sink(log_sink_fn sink, void *ctx); /* NULL restores stderr */
/* "debug" "info" "warn" "error"; anything else is ERR_INVALID. */
int log_level_from_name(const char *name, enum log_level *ret_level);

/* fields ends with an entry whose key is NULL; the macros below add it. Thread-safe (one write(2)
 * per line). */
void log_write(enum log_level level, const char *message, const struct log_field *fields);

#define log_at(level, message, ...)                                                                \
    log_write(                                                                                     \
        (level), (message), (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)

#endif
