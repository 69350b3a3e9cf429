/* SPDX-License-Identifier: Apache-2.0
 *
 * libbelay. The protocol is a handful of small files in BELAY_CONTROL_DIR
 * (docs/reference/checkpoints.md); this file reads and writes them. An API without an init call
 * needs the few static variables below, which cache the last answers in this process.
 */
#define _POSIX_C_SOURCE 200809L

#include "belay.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ASK_EVERY_MS 20
#define PROGRESS_EVERY_MS 200
#define WAITED_EVERY_MS 1000
#define WAITED_MAX_S 1e9
#define POLL_MS 10
#define COMMIT_TIMEOUT_S 600 /* BELAY_COMMIT_TIMEOUT_S overrides it */
#define FILE_BYTES_MAX 4096  /* of any file of the protocol */
#define PATH_BYTES 4096
#define RANKS_MAX 10000 /* their directory names have four digits */
#define ACCEPTED_MAX 8  /* the agent keeps no more answers */

static long long asked_ms, reported_ms; /* time of the last one; 0 = never */
static int asked_answer, is_stopping;
static long long waited_reported_ms; /* time of the last report of waited_s; 0 = never */
static double waited_s;

/* Accepted commits in order, and the outcome of the last settled one. */
static struct {
    long long number, progress;
} accepted[ACCEPTED_MAX];
static size_t n_accepted;
static int has_durable, is_lost;
static long long durable_progress;
static char lost_why[512];

static long long clock_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static const char *from_env(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* NULL outside belay, or if the path is too long for our file names. */
static const char *control_dir(void)
{
    const char *dir = from_env("BELAY_CONTROL_DIR");

    return dir && strlen(dir) < PATH_BYTES - 64 ? dir : NULL;
}

/* The path of a file of the protocol, or NULL outside belay. */
static const char *control_path(char out[PATH_BYTES], const char *name)
{
    const char *dir = control_dir();

    if (!dir)
        return NULL;
    snprintf(out, PATH_BYTES, "%s/%s", dir, name);
    return out;
}

/* ---- reading: one flat JSON object ---- */

static int read_file(const char *path, char text[FILE_BYTES_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = read(fd, text, FILE_BYTES_MAX - 1);
    close(fd);
    if (n < 0)
        return -1;
    text[n] = '\0';
    return 0;
}

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* p is at the opening quote; returns the byte after the closing one, or NULL. */
static const char *skip_string(const char *p)
{
    for (p++; *p && *p != '"'; p++) {
        if (*p == '\\' && !*++p)
            return NULL;
    }
    return *p ? p + 1 : NULL;
}

/* Returns the byte after the value at p, or NULL. */
static const char *skip_value(const char *p)
{
    int depth = 0;

    do {
        p = skip_blanks(p);
        if (*p == '"') {
            p = skip_string(p);
            if (!p)
                return NULL;
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            depth--;
            p++;
        } else if (depth && (*p == ',' || *p == ':')) {
            p++;
        } else {
            size_t n = strcspn(p, ",:{}[]\" \t\r\n");

            if (n == 0)
                return NULL;
            p += n;
        }
    } while (depth > 0);
    return depth == 0 ? p : NULL;
}

/* Returns the start of a top-level key's value, or NULL. */
static const char *find_value(const char *text, const char *key)
{
    const char *p = skip_blanks(text);
    size_t key_len = strlen(key);

    if (*p != '{')
        return NULL;
    do {
        const char *name = skip_blanks(p + 1), *end, *value;

        end = *name == '"' ? skip_string(name) : NULL;
        if (!end)
            return NULL;
        value = skip_blanks(end);
        if (*value != ':')
            return NULL;
        value = skip_blanks(value + 1);
        if ((size_t)(end - name) == key_len + 2 && memcmp(name + 1, key, key_len) == 0)
            return value;
        p = skip_value(value);
        if (!p)
            return NULL;
        p = skip_blanks(p);
    } while (*p == ',');
    return NULL;
}

static int find_number(const char *text, const char *key, double *ret)
{
    const char *p = find_value(text, key);
    char *end;
    double d;

    if (!p)
        return -1;
    d = strtod(p, &end);
    if (end == p || !isfinite(d))
        return -1;
    *ret = d;
    return 0;
}

/* Copies a string value, cut to size; simple escapes become their character, \uXXXX a '?'. */
static int find_string(const char *text, const char *key, char *out, size_t size)
{
    const char *p = find_value(text, key);
    size_t n = 0;

    if (!p || *p != '"' || !skip_string(p))
        return -1;
    for (p++; *p != '"' && n + 1 < size; p++) {
        char c = *p;

        if (c == '\\') {
            c = *++p;
            if (c == 'n' || c == 't' || c == 'r' || c == 'b' || c == 'f') {
                c = ' ';
            } else if (c == 'u') {
                for (int i = 0; i < 4 && p[1] != '"'; i++)
                    p++;
                c = '?';
            }
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return 0;
}

static int is_true(const char *text, const char *key)
{
    const char *p = find_value(text, key);

    return p && strncmp(p, "true", 4) == 0;
}

/* ---- writing ---- */

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t n = strlen(text);
    int ok, saved;

    if (fd < 0)
        return -1;
    ok = write(fd, text, n) == (ssize_t)n;
    saved = errno;
    if (close(fd) || !ok) {
        unlink(path);
        errno = ok ? errno : saved;
        return -1;
    }
    return 0;
}

static const char *number_text(long long n, char out[32])
{
    if (n < 0)
        return "null";
    snprintf(out, 32, "%lld", n);
    return out;
}

/* Writes text to path atomically. replace 0: fails with errno EEXIST if path exists (link(2)
 * decides). */
static int publish(const char *dir, const char *path, const char *text, int replace)
{
    char temp[PATH_BYTES + 32];
    int failed, saved;

    snprintf(temp, sizeof(temp), "%s/.belay-%ld", dir, (long)getpid());
    if (write_file(temp, text))
        return -1;
    failed = replace ? rename(temp, path) : link(temp, path);
    if (failed || !replace) {
        saved = errno;
        unlink(temp);
        errno = saved;
    }
    return failed;
}

/* ---- the API ---- */

int belay_restored(void)
{
    const char *value = from_env("BELAY_RESTORED");

    return value && strcmp(value, "1") == 0 && belay_checkpoint_dir();
}

const char *belay_checkpoint_dir(void)
{
    return from_env("BELAY_CHECKPOINT_DIR");
}

/* Returns fallback if the variable is not set or not in 0 .. RANKS_MAX - 1. */
static int number_from_env(const char *name, int fallback)
{
    const char *text = from_env(name);
    char *end;
    long n = text ? strtol(text, &end, 10) : -1;

    return n >= 0 && n < RANKS_MAX && *end == '\0' ? (int)n : fallback;
}

int belay_restored_ranks(void)
{
    return belay_restored() ? number_from_env("BELAY_RESTORED_RANKS", 1) : 0;
}

const char *belay_restored_dir(int rank, char *path, size_t size)
{
    const char *everyone = from_env("BELAY_RESTORED_DIR");
    struct stat st;
    int n;

    if (!belay_restored() || rank < 0 || rank >= RANKS_MAX)
        return NULL;
    if (!everyone && rank != number_from_env("BELAY_NODE_RANK", 0))
        return NULL;
    n = everyone ? snprintf(path, size, "%s/rank-%04d", everyone, rank)
                 : snprintf(path, size, "%s", belay_checkpoint_dir());
    return n >= 0 && (size_t)n < size && stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? path : NULL;
}

int belay_should_checkpoint(void)
{
    char path[PATH_BYTES];
    long long now = clock_ms(CLOCK_MONOTONIC);

    if (asked_ms && now - asked_ms < ASK_EVERY_MS)
        return asked_answer;
    asked_ms = now;
    asked_answer = control_path(path, "request") && access(path, F_OK) == 0;
    return asked_answer;
}

double belay_seconds_left(void)
{
    char path[PATH_BYTES], text[FILE_BYTES_MAX];
    const char *notice = from_env("BELAY_NOTICE_FILE");
    double now = (double)clock_ms(CLOCK_REALTIME), left = INFINITY, value;

    if (notice && !read_file(notice, text) && !find_number(text, "deadline_ms", &value))
        left = value - now;
    if (control_path(path, "request") && !read_file(path, text) &&
        !find_number(text, "deadline_ms", &value) && value - now < left)
        left = value - now;
    return left < 0 ? 0 : left / 1000;
}

/* 1 if the pending request is for a save before a stop. */
static int asked_to_stop(void)
{
    char path[PATH_BYTES], text[FILE_BYTES_MAX], reason[32];

    return control_path(path, "request") && !read_file(path, text) &&
           !find_string(text, "reason", reason, sizeof(reason)) &&
           (strcmp(reason, "notice") == 0 || strcmp(reason, "evict") == 0);
}

static long long number_after(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    long long value;
    char *end;

    if (strncmp(name, prefix, n) != 0 || name[n] < '1' || name[n] > '9')
        return 0;
    errno = 0;
    value = strtoll(name + n, &end, 10);
    return *end || errno ? 0 : value;
}

/* One more than the greatest number in use, or -1 and errno. */
static long long next_number(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    long long greatest = 0;

    if (!d)
        return -1;
    while ((entry = readdir(d))) {
        long long commit = number_after(entry->d_name, "commit.");
        long long result = number_after(entry->d_name, "result.");

        if (commit > greatest)
            greatest = commit;
        if (result > greatest)
            greatest = result;
    }
    closedir(d);
    return greatest + 1;
}

/* Returns the number of the new commit, or -1 and errno. Two processes of one job never share a
 * number. */
static long long create_commit(const char *dir, const char *text)
{
    char path[PATH_BYTES];

    for (;;) {
        long long number = next_number(dir);

        if (number < 0)
            return -1;
        snprintf(path, sizeof(path), "%s/commit.%lld", dir, number);
        if (publish(dir, path, text, 0) == 0)
            return number;
        if (errno != EEXIST)
            return -1;
    }
}

static long long commit_timeout_ms(void)
{
    const char *text = from_env("BELAY_COMMIT_TIMEOUT_S");
    long long seconds = text ? atoll(text) : 0;

    return 1000 * (seconds > 0 && seconds < 86400 ? seconds : COMMIT_TIMEOUT_S);
}

static const struct timespec poll_pause = {.tv_nsec = POLL_MS * 1000000L};

/* Waits for the agent's answer to a commit. On timeout we write the answer ourselves, unless the
 * agent was first, so that the agent does not later save a directory that we have begun to
 * change. */
static int wait_result(const char *dir, long long number, char text[FILE_BYTES_MAX])
{
    static const char late[] =
        "{\"ok\":false,\"error\":\"the belay agent did not answer in time\"}\n";
    long long end = clock_ms(CLOCK_MONOTONIC) + commit_timeout_ms();
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "%s/result.%lld", dir, number);
    while (read_file(path, text)) {
        if (errno != ENOENT)
            return -1;
        if (clock_ms(CLOCK_MONOTONIC) < end)
            nanosleep(&poll_pause, NULL);
        else if (publish(dir, path, late, 0) && errno != EEXIST)
            return -1;
    }
    return 0;
}

static int fail(char *error, size_t size, const char *text)
{
    if (error && size)
        snprintf(error, size, "%s", text);
    return -1;
}

/* ---- commits that are accepted ---- */

static void forget_first(void)
{
    memmove(accepted, accepted + 1, --n_accepted * sizeof(accepted[0]));
}

static void remember(long long number, long long progress)
{
    if (n_accepted == ACCEPTED_MAX)
        forget_first();
    accepted[n_accepted].number = number;
    accepted[n_accepted++].progress = progress;
}

static void note_durable(long long progress)
{
    has_durable = 1;
    is_lost = 0;
    durable_progress = progress;
}

/* Reads the outcomes of accepted commits, oldest first, up to one that has none yet. */
static void settle(void)
{
    char path[PATH_BYTES], name[40], text[FILE_BYTES_MAX];

    while (n_accepted > 0) {
        snprintf(name, sizeof(name), "stored.%lld", accepted[0].number);
        if (!control_path(path, name) || read_file(path, text))
            break;
        if (is_true(text, "ok")) {
            note_durable(accepted[0].progress);
        } else {
            is_lost = 1;
            if (find_string(text, "error", lost_why, sizeof(lost_why)))
                snprintf(lost_why, sizeof(lost_why), "the belay agent's answer is malformed");
        }
        forget_first();
    }
}

static int commit(long long progress, long long total, int wait, char *error, size_t error_size)
{
    const char *dir = control_dir();
    char text[FILE_BYTES_MAX], why[FILE_BYTES_MAX], done_text[32], total_text[32];
    long long number;
    int stop = asked_to_stop();

    if (!dir)
        return 0;
    settle();
    snprintf(text, sizeof(text), "{\"progress\":%s,\"total\":%s%s}\n",
        number_text(progress, done_text), number_text(total, total_text),
        wait ? "" : ",\"wait\":false");
    number = create_commit(dir, text);
    if (number < 0 || wait_result(dir, number, text)) {
        snprintf(why, sizeof(why), "cannot commit through %.2048s: %s", dir, strerror(errno));
        return fail(error, error_size, why);
    }
    asked_ms = 0; /* ask again at once */
    if (!is_true(text, "ok"))
        return fail(error, error_size,
            find_string(text, "error", why, sizeof(why)) ? "the belay agent's answer is malformed"
                                                         : why);
    is_stopping = find_value(text, "stop") ? is_true(text, "stop") : stop;
    if (find_value(text, "durable") && !is_true(text, "durable")) {
        remember(number, progress);
    } else {
        n_accepted = 0; /* superseded by this commit, which is durable */
        note_durable(progress);
    }
    return 0;
}

int belay_commit(long long progress, long long total, char *error, size_t error_size)
{
    return commit(progress, total, 0, error, error_size);
}

int belay_commit_wait(long long progress, long long total, char *error, size_t error_size)
{
    return commit(progress, total, 1, error, error_size);
}

int belay_last_durable(long long *progress)
{
    settle();
    if (has_durable && progress)
        *progress = durable_progress;
    return has_durable;
}

int belay_wait(char *error, size_t error_size)
{
    long long end = clock_ms(CLOCK_MONOTONIC) + commit_timeout_ms();

    settle();
    while (n_accepted > 0 && clock_ms(CLOCK_MONOTONIC) < end) {
        nanosleep(&poll_pause, NULL);
        settle();
    }
    if (n_accepted > 0)
        return fail(error, error_size, "it is not durable yet");
    return is_lost ? fail(error, error_size, lost_why) : 0;
}

int belay_progress(long long done, long long total)
{
    char path[PATH_BYTES], text[128], done_text[32], total_text[32];
    long long now = clock_ms(CLOCK_MONOTONIC);

    if (!control_path(path, "progress"))
        return 0;
    if (reported_ms && now - reported_ms < PROGRESS_EVERY_MS && done != total)
        return 0;
    snprintf(text, sizeof(text), "{\"done\":%s,\"total\":%s}\n",
        number_text(done < 0 ? 0 : done, done_text), number_text(total, total_text));
    if (publish(control_dir(), path, text, 1))
        return -1;
    reported_ms = now;
    return 0;
}

int belay_waited(double seconds)
{
    char path[PATH_BYTES], text[64], number[32];
    long long now = clock_ms(CLOCK_MONOTONIC);

    if (!control_path(path, "waited") || !(seconds > 0) || seconds > WAITED_MAX_S)
        return 0;
    waited_s += seconds;
    if (waited_reported_ms && now - waited_reported_ms < WAITED_EVERY_MS)
        return 0;
    snprintf(
        text, sizeof(text), "{\"ms\":%s}\n", number_text((long long)(waited_s * 1000), number));
    if (publish(control_dir(), path, text, 1))
        return -1;
    waited_reported_ms = now;
    return 0;
}

int belay_stopping(void)
{
    return is_stopping;
}
