/* SPDX-License-Identifier: Apache-2.0
 *
 * See programs.h.
 */
#include "cli/slurm/programs.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/slurm/layout.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"

struct lines {
    const char *p;
    int number;      /* of the last line read, from 1 */
    struct buf text; /* including lines joined by \ */
};

/* The next line that is neither a comment nor empty; false at the end. */
static bool next_line(struct lines *l)
{
    while (*l->p) {
        bool goes_on = true;
        buf_clear(&l->text);
        while (goes_on) {
            l->number++;
            size_t n = strcspn(l->p, "\n");
            goes_on = n > 0 && l->p[n - 1] == '\\' && l->p[n];
            buf_add(&l->text, l->p, n - goes_on);
            l->p += n + (l->p[n] == '\n');
        }
        buf_adds(&l->text, "");
        const char *first = buf_str(&l->text) + strspn(buf_str(&l->text), BLANKS);
        if (*first && *first != '#')
            return true;
    }
    return false;
}

static int bad_line(const struct lines *l, const char *expected, const char *found, struct err *e)
{
    char shown[STR_SHOW_MAX];
    return err_set(e, ERR_INVALID, "line %d: expected %s, found %s", l->number, expected,
        str_show(found, shown));
}

/* ---- tasks ---- */

static bool read_task(const char **p, int64_t *ret_task)
{
    size_t digits = strspn(*p, "0123456789");
    int64_t n = 0;
    if (digits == 0 || digits > 9)
        return false;
    for (size_t i = 0; i < digits; i++)
        n = n * 10 + (*p)[i] - '0';
    *p += digits;
    *ret_task = n;
    return n < LAYOUT_TASKS_MAX;
}

/* The next "3" or "4-6" of a list ended by a blank; false if malformed. */
static bool next_range(const char **p, int64_t *ret_from, int64_t *ret_to)
{
    *p += **p == ',';
    if (!read_task(p, ret_from))
        return false;
    *ret_to = *ret_from;
    if (**p == '-') {
        (*p)++;
        if (!read_task(p, ret_to))
            return false;
    }
    return *ret_from <= *ret_to && (!**p || strchr("," BLANKS, **p));
}

static bool is_end(const char *p)
{
    return !*p || strchr(BLANKS, *p);
}

/* *ret_rest: the text after the tasks. *ret_index: the task's index among them; -1 if it is not one
 * of them. */
static int find_task(
    const struct lines *l, int64_t task, int64_t *ret_index, const char **ret_rest, struct err *e)
{
    const char *start = buf_str(&l->text), *p = start += strspn(start, BLANKS);
    int64_t before = 0, from, to, index = -1;
    if (*p == '*' && is_end(p + 1)) {
        *ret_index = task;
        *ret_rest = p + 1;
        return 0;
    }
    do {
        if (!next_range(&p, &from, &to))
            return bad_line(l, "tasks, as 0,2-3 or *", start, e);
        if (index < 0 && task >= from && task <= to)
            index = before + task - from;
        before += to - from + 1;
    } while (!is_end(p));
    *ret_index = index;
    *ret_rest = p;
    return 0;
}

/* ---- words ---- */

static const char *add_value(const char *p, int64_t task, int64_t index, struct buf *out)
{
    if (p[0] != '%' || (p[1] != 't' && p[1] != 'o')) {
        buf_addc(out, *p);
        return p + 1;
    }
    buf_printf(out, "%lld", (long long)(p[1] == 't' ? task : index));
    return p + 2;
}

/* 1: the next word is in out; 0: at the end. ERR_INVALID */
static int next_word(const struct lines *l, const char **at, int64_t task, int64_t index,
    struct buf *out, struct err *e)
{
    const char *p = *at + strspn(*at, BLANKS);
    bool quoted = false;
    buf_clear(out);
    if (!*p)
        return 0;
    buf_adds(out, "");
    while (*p && (quoted || !is_end(p))) {
        if (*p == '\'') {
            quoted = !quoted;
            p++;
        } else if (quoted) {
            buf_addc(out, *p++);
        } else if (*p == '\\' && p[1]) {
            buf_addc(out, p[1]);
            p += 2;
        } else {
            p = add_value(p, task, index, out);
        }
    }
    if (quoted)
        return bad_line(l, "a closing '", *at, e);
    *at = p;
    return 1;
}

static int read_words(const struct lines *l, const char *rest, int64_t task, int64_t index,
    char *const *more, char ***ret_words, struct err *e)
{
    char **words = mem_array(1, sizeof(*words));
    struct buf word = {0};
    size_t n = 0;
    int rc;
    while ((rc = next_word(l, &rest, task, index, &word, e)) == 1) {
        words = mem_resize(words, n + 2, sizeof(*words));
        words[n++] = mem_strdup(buf_str(&word));
        words[n] = NULL;
    }
    buf_deinit(&word);
    if (rc == 0 && (n == 0 || !*words[0]))
        rc = bad_line(l, "a program after the tasks", buf_str(&l->text), e);
    for (; rc == 0 && *more; more++) {
        words = mem_resize(words, n + 2, sizeof(*words));
        words[n++] = mem_strdup(*more);
        words[n] = NULL;
    }
    if (rc == 0)
        *ret_words = words;
    else
        mem_free_texts(words);
    return rc;
}

int programs_words(
    const char *text, int64_t task, char *const *more, char ***ret_words, struct err *e)
{
    struct lines l = {.p = text};
    int64_t index = -1;
    const char *rest;
    int rc = 0;
    while (rc == 0 && index < 0 && next_line(&l))
        rc = find_task(&l, task, &index, &rest, e);
    if (rc == 0 && index < 0)
        rc = err_set(e, ERR_INVALID, "there is no program for task %lld", (long long)task);
    if (rc == 0)
        rc = read_words(&l, rest, task, index, more, ret_words, e);
    buf_deinit(&l.text);
    return rc;
}

/* ---- the file ---- */

/* Marks the tasks of the line as taken. *ret_all: the line is for all remaining tasks. */
static int take_tasks(
    const struct lines *l, int64_t tasks, bool *taken, bool *ret_all, struct err *e)
{
    const char *p = buf_str(&l->text) + strspn(buf_str(&l->text), BLANKS);
    int64_t from, to;
    *ret_all = *p == '*';
    while (!*ret_all && !is_end(p)) {
        next_range(&p, &from, &to); /* find_task has checked it */
        if (to >= tasks)
            return err_set(e, ERR_INVALID, "line %d: there is no task %lld: the step has %lld",
                l->number, (long long)to, (long long)tasks);
        for (int64_t i = from; i <= to; i++) {
            if (taken[i])
                return err_set(e, ERR_INVALID, "line %d: task %lld has a program already",
                    l->number, (long long)i);
            taken[i] = true;
        }
    }
    return 0;
}

static int check_line(
    const struct lines *l, int64_t tasks, bool *taken, bool *ret_all, struct err *e)
{
    char *const none[] = {NULL};
    char **words = NULL;
    const char *rest;
    int64_t index;
    int rc = find_task(l, 0, &index, &rest, e);
    if (rc == 0)
        rc = take_tasks(l, tasks, taken, ret_all, e);
    if (rc == 0)
        rc = read_words(l, rest, 0, 0, none, &words, e);
    mem_free_texts(words);
    return rc;
}

int programs_check(const char *text, int64_t tasks, struct err *e)
{
    bool *taken = mem_array((size_t)tasks, sizeof(*taken)), all = false;
    struct lines l = {.p = text};
    int rc = 0;
    while (rc == 0 && next_line(&l))
        rc = all ? err_set(e, ERR_INVALID,
                       "line %d: the line of *, for all remaining tasks, must be the last one",
                       l.number)
                 : check_line(&l, tasks, taken, &all, e);
    for (int64_t i = 0; rc == 0 && !all && i < tasks; i++)
        if (!taken[i])
            rc = err_set(e, ERR_INVALID, "there is no program for task %lld", (long long)i);
    buf_deinit(&l.text);
    free(taken);
    return rc;
}
