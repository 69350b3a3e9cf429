/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables. On a terminal one fits its width, in this order: names lose their middle, down to 20
 * characters; columns of TABLE_EXTRA are left out; names become shorter still; a sentence goes on
 * below; the last columns are left out. A line below the table names those that were. The first
 * column is shown in full. libsmartcols aligns and colours what is left.
 */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "cli/fold.h"
#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GAP 1       /* between columns */
#define COMFORT 20  /* of a name */
#define NARROWEST 8 /* of a name */
#define SENTENCE 24 /* the least for one */
#define CELL_MAX 512

struct column {
    char *title;
    unsigned form;
    bool is_state, is_hidden;
    int width; /* of its longest text, then what it gets */
};

struct table {
    struct column *columns;
    char **cells; /* row by row */
    size_t n_columns, n_rows, n_cells;
};

/* Set by --color (main.c) or by the user. */
static bool has_colours(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
    if (force && *force && !str_eq(force, "0"))
        return true;
    return !(no && *no) && out == stdout && isatty(STDOUT_FILENO);
}

static const char *colour_of(const char *state)
{
    static const struct {
        const char *state, *colour;
    } colours[] = {{"running", "green"}, {"up", "green"}, {"active", "green"},
        {"succeeded", "green"}, {"pending", "yellow"}, {"cancelling", "yellow"},
        {"draining", "yellow"}, {"noticed", "yellow"}, {"reclaimed", "yellow"},
        {"paused", "yellow"}, {"failed", "red"}, {"timeout", "red"}, {"node-lost", "red"},
        {"lost", "red"}, {"deadline", "red"}, {"over", "red"}};
    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
        if (str_eq(colours[i].state, state))
            return colours[i].colour;
    return NULL;
}

/* ---- filling ---- */

struct table *table_create(void)
{
    return mem_alloc(sizeof(struct table));
}

void table_column(struct table *t, const char *name, unsigned form)
{
    t->columns = mem_resize(t->columns, t->n_columns + 1, sizeof(*t->columns));
    t->columns[t->n_columns++] = (struct column){.title = mem_strdup(name),
        .form = form,
        .is_state = str_eq(name, "STATE") || str_eq(name, "END"),
        .width = (int)fold_width(name, strlen(name))};
}

void table_row(struct table *t)
{
    size_t n = ++t->n_rows * t->n_columns;
    t->cells = mem_resize(t->cells, n + 1, sizeof(*t->cells));
    t->n_cells = n - t->n_columns;
    for (size_t i = t->n_cells; i < n; i++)
        t->cells[i] = NULL;
}

void table_cell(struct table *t, const char *fmt, ...)
{
    char text[CELL_MAX];
    VFORMAT(text, fmt);
    struct column *c = &t->columns[t->n_cells % t->n_columns];
    int width = (int)fold_width(text, strlen(text));
    c->width = width > c->width ? width : c->width;
    t->cells[t->n_cells++] = mem_strdup(text);
}

void table_drop(struct table *t)
{
    for (size_t i = 0; i < t->n_columns; i++)
        free(t->columns[i].title);
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
        free(t->cells[i]);
    free(t->columns);
    free(t->cells);
    free(t);
}

/* ---- fitting ---- */

static int width_of(const struct table *t)
{
    int sum = -GAP;
    for (size_t i = 0; i < t->n_columns; i++)
        sum += t->columns[i].is_hidden ? 0 : t->columns[i].width + GAP;
    return sum;
}

/* Of these that may become narrower; NULL if there is none. */
static struct column *widest(struct table *t, unsigned form, int least)
{
    struct column *found = NULL;
    for (size_t i = 1; i < t->n_columns; i++) {
        struct column *c = &t->columns[i];
        int title = (int)fold_width(c->title, strlen(c->title)),
            min = least > title ? least : title;
        if (!c->is_hidden && (c->form & (TABLE_RIGHT | TABLE_SENTENCE)) == form && c->width > min &&
            (!found || c->width > found->width))
            found = c;
    }
    return found;
}

static void narrow(struct table *t, int columns, unsigned form, int least)
{
    struct column *c;
    while (width_of(t) > columns && (c = widest(t, form, least)))
        c->width--;
}

/* Leaves out columns from the right until the rest fits with names of this width. */
static void leave_out(struct table *t, int columns, unsigned form, int least)
{
    for (size_t i = t->n_columns; width_of(t) > columns && i-- > 1;) {
        struct column *c = &t->columns[i];
        if ((c->form & form) != form || c->is_hidden || (c->form & TABLE_SENTENCE))
            continue;
        c->is_hidden = true;
        narrow(t, columns, 0, least);
    }
}

static void fit(struct table *t, int columns)
{
    narrow(t, columns, TABLE_SENTENCE, SENTENCE);
    narrow(t, columns, 0, COMFORT);
    leave_out(t, columns, TABLE_EXTRA, COMFORT);
    narrow(t, columns, 0, NARROWEST);
    leave_out(t, columns, 0, NARROWEST);
    /* what was left out may have made room */
    for (size_t i = t->n_columns; i-- > 0;)
        if (!t->columns[i].is_hidden && (t->columns[i].form & TABLE_SENTENCE)) {
            int more = columns - width_of(t), all = 0;
            for (size_t k = i; k < t->n_rows * t->n_columns; k += t->n_columns) {
                int n = t->cells[k] ? (int)fold_width(t->cells[k], strlen(t->cells[k])) : 0;
                all = n > all ? n : all;
            }
            if (more > 0 && all > t->columns[i].width)
                t->columns[i].width +=
                    more < all - t->columns[i].width ? more : all - t->columns[i].width;
        }
}

/* ---- printing ---- */

/* The part of *text that fits; moves *text behind it. The caller frees it. */
static char *take_line(const struct column *c, const char **text)
{
    if (!*text || !**text)
        return mem_strdup("");
    const char *from = *text;
    size_t all = strlen(from);
    bool fits = (int)fold_width(from, all) <= c->width;
    if (fits || !(c->form & TABLE_SENTENCE)) {
        *text = from + all;
        return fits || (c->form & TABLE_RIGHT) ? mem_strdup(from) : fold_shorten(from, c->width);
    }
    size_t n = fold_part(from, (size_t)c->width);
    *text = from + n + strspn(from + n, " ");
    return mem_strndup(from, n);
}

static void print_row(
    struct libscols_table *s, const struct table *t, size_t row, const char **left, bool colours)
{
    bool more = true;
    for (size_t i = 0; i < t->n_columns; i++)
        left[i] = t->cells[row * t->n_columns + i];
    for (bool is_first = true; more; is_first = false) {
        struct libscols_line *line = scols_table_new_line(s, NULL);
        size_t k = 0;
        if (!line)
            abort();
        more = false;
        for (size_t i = 0; i < t->n_columns; i++) {
            const struct column *c = &t->columns[i];
            if (c->is_hidden)
                continue;
            const char *state = is_first && c->is_state && colours && left[i] ? left[i] : NULL;
            const char *colour = state ? colour_of(state) : NULL;
            char *text = take_line(c, &left[i]);
            scols_line_set_data(line, k, text);
            if (colour)
                scols_cell_set_color(scols_line_get_cell(line, k), colour);
            more |= left[i] && *left[i];
            free(text);
            k++;
        }
    }
}

static void print_left_out(const struct table *t, int columns, FILE *out)
{
    struct buf names = {0};
    for (size_t i = 0; i < t->n_columns; i++)
        if (t->columns[i].is_hidden)
            buf_printf(&names, "%s %s", names.len ? "," : "", t->columns[i].title);
    if (names.len) {
        char *text = mem_printf("not shown, for want of width:%s", buf_str(&names));
        fold_line(text, strlen(text), columns, out);
        free(text);
    }
    buf_deinit(&names);
}

void table_print_in(struct table *t, FILE *out, int columns)
{
    const bool colours = has_colours(out);
    struct libscols_table *s = scols_new_table();
    const char **left = mem_array(t->n_columns + 1, sizeof(*left));
    if (!s)
        abort();
    if (columns > 0)
        fit(t, columns);
    for (size_t i = 0; i < t->n_columns; i++)
        if (!t->columns[i].is_hidden && !scols_table_new_column(s, t->columns[i].title, 0,
                                            t->columns[i].form & TABLE_RIGHT ? SCOLS_FL_RIGHT : 0))
            abort();
    for (size_t row = 0; row < t->n_rows; row++)
        print_row(s, t, row, left, colours);
    scols_table_set_termforce(s, SCOLS_TERMFORCE_NEVER); /* it fits already */
    scols_table_enable_colors(s, colours);
    scols_table_set_stream(s, out);
    scols_print_table(s);
    scols_unref_table(s);
    if (t->n_rows > 0)
        print_left_out(t, columns, out);
    free(left);
    table_drop(t);
}

void table_print_to(struct table *t, FILE *out)
{
    table_print_in(t, out, out == stdout ? fold_columns() : 0);
}

void table_print(struct table *t)
{
    table_print_to(t, stdout);
}
