/* SPDX-License-Identifier: Apache-2.0
 *
 * See watch.h. A screen is written over the one before, line by line and in one piece, so that it
 * does not flicker.
 */
#include "cli/top/watch.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/top/screen.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HOME "\033[H"
#define END_OF_LINE "\033[K\r\n"
#define REST_OF_SCREEN "\033[J"

struct watch {
    int64_t every_s;
    watch_fn print;
    void *ctx;
    char *text; /* the last answer */
    size_t n;
    char problem[256]; /* why there is no newer one; "" if there is no reason */
};

/* What the function prints, in memory; the answer before stays if it fails. */
static int read_answer(struct watch *w, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    FILE *was = stdout, *kept = open_memstream(&text, &n);
    if (!kept)
        return err_set(e, ERR_INTERNAL, "out of memory");
    stdout = kept;
    int rc = w->print(w->ctx, e);
    stdout = was;
    fclose(kept);
    w->problem[0] = '\0';
    if (rc == 0) {
        free(w->text);
        w->text = text;
        w->n = n;
        return 0;
    }
    free(text);
    if (rc != ERR_UNAVAILABLE && rc != ERR_IO && rc != ERR_TIMEOUT)
        return rc;
    STR_COPY(w->problem, e->text); /* belayd may be restarting */
    return 0;
}

static const char *now(char mem[16])
{
    time_t t = time(NULL);
    struct tm tm;
    strftime(mem, 16, "%H:%M:%S", localtime_r(&t, &tm));
    return mem;
}

static void add_line(struct buf *out, const char *text, size_t n, int columns)
{
    size_t bytes = fold_width(text, n) > (size_t)columns ? (size_t)columns : n;
    buf_add(out, text, bytes);
    buf_adds(out, END_OF_LINE);
}

static void draw(const struct watch *w)
{
    struct buf out = {0};
    char clock[16], line[320];
    int rows, columns, row = 1;
    const char *at = w->text, *end = w->text + w->n;
    screen_size(&rows, &columns);
    buf_adds(&out, HOME);
    snprintf(line, sizeof(line), "%s, every %lld s, q quits%s%s", now(clock), (long long)w->every_s,
        w->problem[0] ? ": " : "", w->problem);
    add_line(&out, line, strlen(line), columns);
    for (; at < end && row < rows - 2; row++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = stop ? (size_t)(stop - at) : (size_t)(end - at);
        add_line(&out, at, n, columns);
        at += n + 1;
    }
    if (at < end)
        buf_adds(&out, "more below: a higher terminal or --limit");
    buf_adds(&out, REST_OF_SCREEN);
    fwrite(out.data, 1, out.len, stdout);
    fflush(stdout);
    buf_deinit(&out);
}

/* Until the next refresh. Returns whether to go on. */
static bool wait_for_key(struct watch *w, struct screen *s)
{
    int64_t until = clock_mono(&clock_system).ms + w->every_s * 1000, left;
    while ((left = until - clock_mono(&clock_system).ms) > 0) {
        int key = screen_key(s, left);
        if (key == 'q' || key == KEY_END)
            return false;
        if (key == ' ')
            return true;
        draw(w);
    }
    return true;
}

static int on_terminal(struct watch *w, struct err *e)
{
    struct screen s;
    bool goes_on = true;
    int rc = screen_open(&s, e);
    while (rc == 0 && goes_on) {
        rc = read_answer(w, e);
        if (rc == 0) {
            draw(w);
            goes_on = wait_for_key(w, &s);
        }
    }
    screen_close(&s);
    return rc;
}

static int one_by_one(struct watch *w, struct err *e)
{
    char clock[16];
    int rc = 0;
    while (rc == 0 && !ferror(stdout)) {
        rc = read_answer(w, e);
        if (rc == 0 && w->problem[0])
            cli_warn("%s", w->problem);
        else if (rc == 0)
            printf("%s\n%s\n", now(clock), w->n ? w->text : "");
        fflush(stdout);
        if (rc == 0)
            poll(NULL, 0, (int)(w->every_s * 1000));
    }
    return rc;
}

int watch_answers(int64_t every_s, watch_fn print, void *ctx, struct err *e)
{
    struct watch w = {.every_s = every_s, .print = print, .ctx = ctx};
    int rc = read_answer(&w, e); /* what is wrong with the command line, on the usual screen */
    if (rc == 0 && w.problem[0])
        rc = err_set(e, ERR_UNAVAILABLE, "%s", w.problem);
    if (rc == 0)
        rc = isatty(STDOUT_FILENO) ? on_terminal(&w, e) : one_by_one(&w, e);
    free(w.text);
    return rc;
}
