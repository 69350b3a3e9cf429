/* SPDX-License-Identifier: Apache-2.0
 *
 * See page.h. The data of a page is in a script element and must not contain its end tag, so '<',
 * which only occurs in strings, is escaped.
 */
#include "cli/html/page.h"

#include "base/fs.h"
#include "base/mem.h"
#include "cli/cli.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* made when belay is built: styles.py, base/embed.py */
extern const char report_css[], report_mail_css[], report_js[], dygraph_js[], dygraph_css[];

/* ---- texts ---- */

void html_text(struct buf *out, const char *text)
{
    for (const char *s = text; *s; s++) {
        switch (*s) {
        case '<':
            buf_adds(out, "&lt;");
            break;
        case '>':
            buf_adds(out, "&gt;");
            break;
        case '&':
            buf_adds(out, "&amp;");
            break;
        case '"':
            buf_adds(out, "&quot;");
            break;
        default:
            buf_addc(out, *s);
        }
    }
}

static void add_format(struct buf *out, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0)));

static void add_format(struct buf *out, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    const size_t n = (size_t)vsnprintf(NULL, 0, fmt, args);
    char *text = mem_alloc(n + 1);
    vsnprintf(text, n + 1, fmt, again);
    va_end(again);
    html_text(out, text);
    free(text);
}

void html_printf(struct buf *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_format(out, fmt, args);
    va_end(args);
}

void html_p(struct buf *out, const char *class, const char *fmt, ...)
{
    va_list args;
    buf_printf(out, "<p class=\"%s\">", class);
    va_start(args, fmt);
    add_format(out, fmt, args);
    va_end(args);
    buf_adds(out, "</p>\n");
}

void html_card(struct buf *out, const char *title)
{
    buf_adds(out, "<section class=\"card\"><h2>");
    html_text(out, title);
    buf_adds(out, "</h2>\n");
}

void html_card_end(struct buf *out)
{
    buf_adds(out, "</section>\n");
}

/* ---- the page ---- */

static void add_data(const json_t *result, struct buf *out)
{
    char *text = json_dump_text(result);
    for (const char *s = text; *s; s++) {
        if (*s == '<')
            buf_adds(out, "\\u003c");
        else
            buf_addc(out, *s);
    }
    free(text);
}

void page_begin(struct buf *out, enum page_form form, const char *title, const char *lede)
{
    buf_adds(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<title>");
    html_text(out, title);
    buf_adds(out, "</title>\n<style>\n");
    if (form == PAGE_FILE)
        buf_adds(out, dygraph_css);
    buf_adds(out, form == PAGE_MAIL ? report_mail_css : report_css);
    buf_adds(out, "</style>\n</head>\n<body>\n<main>\n<h1>");
    html_text(out, title);
    buf_adds(out, "</h1>\n");
    html_p(out, "lede", "%s", lede);
}

void page_end(
    struct buf *out, struct wall now, const char *command, const json_t *data, const char *script)
{
    char iso[TIME_ISO_MAX];
    time_format_iso(now, iso);
    buf_adds(out, "<footer class=\"hint\"><p>");
    html_printf(out, "Made by belay %s on %.10s at %.5s UTC", BELAY_VERSION, iso, iso + 11);
    if (command) {
        buf_adds(out, ", with</p>\n<pre>");
        html_text(out, command);
        buf_adds(out, "</pre></footer>\n</main>\n");
    } else {
        buf_adds(out, ".</p></footer>\n</main>\n");
    }
    if (data) {
        buf_adds(out, "<script>");
        buf_adds(out, dygraph_js);
        buf_adds(out, "</script>\n<script type=\"application/json\" id=\"data\">");
        add_data(data, out);
        buf_adds(out, "</script>\n<script>\n");
        buf_adds(out, report_js);
        buf_adds(out, script);
        buf_adds(out, "</script>\n");
    }
    buf_adds(out, "</body>\n</html>\n");
}

static void add_word(struct buf *out, const char *word)
{
    bool is_plain = *word != '\0';
    for (const char *s = word; *s; s++)
        is_plain = is_plain && (isalnum((unsigned char)*s) || strchr("-_=,./:+%@", *s));
    if (is_plain) {
        buf_adds(out, word);
        return;
    }
    buf_addc(out, '\'');
    for (const char *s = word; *s; s++) {
        if (*s == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *s);
    }
    buf_addc(out, '\'');
}

char *page_command(int argc, const char **argv)
{
    struct buf out = {0};
    buf_adds(&out, "belay");
    for (int i = 0; i < argc; i++) {
        buf_addc(&out, ' ');
        add_word(&out, argv[i]);
    }
    return buf_take(&out);
}

int page_save(struct buf *page, const char *file)
{
    struct err e;
    int rc = fs_write_atomic(file, buf_str(page), page->len, 0644, &e);
    buf_deinit(page);
    if (rc != 0)
        cli_error("%s", e.text);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

/* ---- tables ---- */

static const char *class_of(const struct html_table *t, size_t column)
{
    return column >= 8 * sizeof t->words || t->words & 1u << column ? "words" : "number";
}

/* A heading may be the path of a file, which is broken after a slash. */
static void add_heading(struct buf *out, const char *text)
{
    for (const char *slash; (slash = strchr(text, '/')); text = slash + 1) {
        html_printf(out, "%.*s", (int)(slash + 1 - text), text);
        buf_adds(out, "<wbr>");
    }
    html_text(out, text);
}

void html_table(struct html_table *t, struct buf *out, const char *caption,
    const char *const *names, unsigned words)
{
    *t = (struct html_table){.out = out, .words = words};
    while (t->n < HTML_COLUMNS_MAX && names[t->n]) {
        t->names[t->n] = names[t->n];
        t->n++;
    }
    buf_printf(out, "<div class=\"table-box\"><table class=\"table%s\"><caption>",
        t->n > 8 ? " many" : "");
    html_text(out, caption);
    buf_adds(out, "</caption>\n<thead><tr>");
    for (size_t i = 0; i < t->n; i++) {
        const char *tag = *t->names[i] ? "th" : "td"; /* a heading must have a text */
        buf_printf(
            out, "<%s class=\"%s\"%s>", tag, class_of(t, i), *t->names[i] ? " scope=\"col\"" : "");
        add_heading(out, t->names[i]);
        buf_printf(out, "</%s>", tag);
    }
    buf_adds(out, "</tr></thead>\n<tbody>\n");
}

static void end_row(struct html_table *t)
{
    if (t->in_row)
        buf_adds(t->out, "</tr>\n");
    t->in_row = false;
}

void html_row(struct html_table *t, bool is_sum)
{
    end_row(t);
    buf_adds(t->out, is_sum ? "<tr class=\"sum\">" : "<tr>");
    t->in_row = true;
    t->at = 0;
}

/* Begins a cell; returns its tag. */
static const char *begin_cell(struct html_table *t)
{
    const size_t i = t->at++;
    const char *tag = i == 0 ? "th" : "td";
    buf_printf(t->out, "<%s class=\"%s\"%s data-name=\"", tag, class_of(t, i),
        i == 0 ? " scope=\"row\"" : "");
    html_text(t->out, i < t->n ? t->names[i] : "");
    buf_adds(t->out, "\">");
    return tag;
}

void html_cell(struct html_table *t, const char *fmt, ...)
{
    va_list args;
    const char *tag = begin_cell(t);
    va_start(args, fmt);
    add_format(t->out, fmt, args);
    va_end(args);
    buf_printf(t->out, "</%s>", tag);
}

void html_cell_usd(struct html_table *t, int64_t uusd)
{
    char text[32];
    html_cell(t, "%s", cli_usd(uusd, text, sizeof text));
}

void html_cell_ms(struct html_table *t, int64_t ms)
{
    char text[32];
    html_cell(t, "%s", cli_duration(ms, text, sizeof text));
}

void html_cell_int(struct html_table *t, int64_t n)
{
    html_cell(t, "%lld", (long long)n);
}

void html_cell_part(struct html_table *t, double part, double whole)
{
    if (whole > 0)
        html_cell(t, "%.1f %%", 100 * part / whole);
    else
        html_cell(t, "-");
}

void html_cell_bar(struct html_table *t, double part, int series)
{
    const char *tag = begin_cell(t);
    buf_printf(t->out,
        "<div class=\"bar-box\"><div class=\"bar part-%d\" "
        "style=\"width:%.1f%%\"></div></div></%s>",
        series,
        100 * (part < 0      ? 0
                  : part > 1 ? 1
                             : part),
        tag);
}

void html_table_end(struct html_table *t)
{
    end_row(t);
    buf_adds(t->out, "</tbody></table></div>\n");
}

/* ---- figures ---- */

void html_facts(struct buf *out)
{
    buf_adds(out, "<dl class=\"facts\">\n");
}

void html_fact(struct buf *out, const char *name, const char *fmt, ...)
{
    va_list args;
    buf_adds(out, "<div><dt>");
    html_text(out, name);
    buf_adds(out, "</dt><dd>");
    va_start(args, fmt);
    add_format(out, fmt, args);
    va_end(args);
    buf_adds(out, "</dd></div>\n");
}

void html_facts_end(struct buf *out)
{
    buf_adds(out, "</dl>\n");
}

void html_stats(struct buf *out)
{
    buf_adds(out, "<dl class=\"stats\">\n");
}

void html_stat(struct buf *out, const char *name, const char *fmt, ...)
{
    va_list args;
    buf_adds(out, "<div class=\"stat\"><dt>");
    html_text(out, name);
    buf_adds(out, "</dt><dd>");
    va_start(args, fmt);
    add_format(out, fmt, args);
    va_end(args);
    buf_adds(out, "</dd></div>\n");
}

void html_stats_end(struct buf *out)
{
    buf_adds(out, "</dl>\n");
}

void html_plot(struct buf *out, const char *id, const char *title, const char *sentence)
{
    buf_adds(out, "<figure><figcaption>");
    buf_adds(out, "<h3>");
    html_text(out, title);
    buf_adds(out, "</h3>\n");
    html_p(out, "hint", "%s", sentence);
    buf_printf(out,
        "</figcaption>\n<div class=\"plot-place\" id=\"plot-%s\"></div>\n"
        "<details><summary>The figures of this plot</summary>\n",
        id);
}

void html_plot_end(struct buf *out)
{
    buf_adds(out, "</details></figure>\n");
}
