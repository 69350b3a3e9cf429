/* SPDX-License-Identifier: Apache-2.0
 *
 * HTML reports, each self-contained in one file that loads nothing. They look like the web console:
 * the style sheet is made of its tokens.css and of report.css, when belay is built. All figures and
 * tables are written here, so a page is complete without a script; scripts only draw plots.
 *
 * Every text is escaped by the function that adds it.
 */
#ifndef BELAY_CLI_HTML_PAGE_H
#define BELAY_CLI_HTML_PAGE_H

#include "base/buf.h"
#include "base/json.h"
#include "base/time.h"
#include <stdbool.h>

enum page_form {
    PAGE_FILE, /* light and dark, with plots if it has data */
    PAGE_MAIL  /* plain colours, no script: for programs that show mail */
};

/* Begins a page: head, title and one sentence about what it is about. */
void page_begin(struct buf *out, enum page_form form, const char *title, const char *lede);

/* Ends it with where it comes from: this version of belay, the time, and the command if it is not
 * NULL. script draws the plots of `data`, which it finds as `shown`, with the functions of
 * report.js; both may be NULL. */
void page_end(
    struct buf *out, struct wall now, const char *command, const json_t *data, const char *script);

/* The command line of a verb, quoted for a shell where necessary. The caller frees it. */
char *page_command(int argc, const char **argv);

/* Writes the page to a file. Frees its memory. Returns an enum cli_exit, after a report. */
int page_save(struct buf *page, const char *file);

void html_text(struct buf *out, const char *text);
void html_printf(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A paragraph. class: "", "hint" or "notice". */
void html_p(struct buf *out, const char *class, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

void html_card(struct buf *out, const char *title);
void html_card_end(struct buf *out);

/* ---- tables ---- */

#define HTML_COLUMNS_MAX 24

/* The first cell of a row is its heading. On a narrow screen each row becomes a list. */
struct html_table {
    struct buf *out;
    const char *names[HTML_COLUMNS_MAX];
    unsigned words; /* bit i: column i has words; the others have numbers, aligned right */
    size_t n, at;   /* at: the next cell of the row */
    bool in_row;
};

/* names are borrowed until the end and end with NULL; those beyond HTML_COLUMNS_MAX are left out.
 */
void html_table(struct html_table *t, struct buf *out, const char *caption,
    const char *const *names, unsigned words);
void html_row(struct html_table *t, bool is_sum);
void html_cell(struct html_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void html_cell_usd(struct html_table *t, int64_t uusd);
void html_cell_ms(struct html_table *t, int64_t ms);
void html_cell_int(struct html_table *t, int64_t n);
void html_cell_part(struct html_table *t, double part, double whole); /* "-" if whole is 0 */
/* A bar as long as this part of the column, 0 .. 1, in the colour of series 1 .. 6. */
void html_cell_bar(struct html_table *t, double part, int series);
void html_table_end(struct html_table *t);

/* ---- figures ---- */

void html_facts(struct buf *out);
void html_fact(struct buf *out, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void html_facts_end(struct buf *out);

void html_stats(struct buf *out);
void html_stat(struct buf *out, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void html_stats_end(struct buf *out);

/* A plot that the script draws (plot() of report.js, by its id), with a sentence that says the
 * same. Between the two calls may stand a table of its figures, which opens on request. */
void html_plot(struct buf *out, const char *id, const char *title, const char *sentence);
void html_plot_end(struct buf *out);

#endif
