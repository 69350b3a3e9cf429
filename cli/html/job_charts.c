/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/html/job_charts.h"

#include "base/minmax.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/html/page.h"
#include <stdio.h>

#define WIDTH 1000.0 /* units of a drawing, which has the width of its place */
#define HEIGHT 100.0
#define POINTS_MAX 200 /* of progress: the last ones */
#define SAMPLES 12     /* rows of a table over time */
#define GPUS_MAX 8     /* drawn */

struct axes {
    int64_t from_ms, to_ms;
    double top; /* the value at the upper edge */
};

static double x_of(const struct axes *a, int64_t at_ms)
{
    double x = WIDTH * (double)(at_ms - a->from_ms) / (double)(a->to_ms - a->from_ms);
    return x < 0 ? 0 : x > WIDTH ? WIDTH : x;
}

static double y_of(const struct axes *a, double value)
{
    double y = HEIGHT * (1 - value / a->top);
    return y < 0 ? 0 : y > HEIGHT ? HEIGHT : y;
}

static void begin_chart(struct buf *out, const char *title, const char *top, const char *bottom)
{
    buf_adds(out, "<figure class=\"chart\"><figcaption>");
    html_text(out, title);
    buf_adds(out, "</figcaption>\n<div class=\"chart-box\"><div class=\"chart-axis\"><span>");
    html_text(out, top);
    buf_adds(out, "</span><span>");
    html_text(out, bottom);
    buf_adds(out, "</span></div><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" "
                  "aria-hidden=\"true\">");
}

static void end_chart(const struct axes *a, struct buf *out)
{
    char from[CLI_LOCAL_MAX], to[CLI_LOCAL_MAX];
    buf_printf(out, "</svg></div>\n<p class=\"axis\"><span>%s</span><span>%s</span></p></figure>\n",
        cli_local((struct wall){a->from_ms}, true, from),
        cli_local((struct wall){a->to_ms}, true, to));
}

/* ---- progress ---- */

struct point {
    int64_t at_ms;
    double value;
    const char *what;
};

struct progress {
    struct point points[POINTS_MAX + 2];
    size_t n;
    double total;
    struct point now;                    /* the last of the points */
    int64_t finish_ms, done_ms, late_ms; /* 0: none, unknown */
};

static int64_t ms_of(const json_t *o, const char *key)
{
    struct wall at = cli_time(o, key);
    return wall_is_set(at) ? at.ms : 0;
}

static void add_point(struct progress *p, int64_t at_ms, double value, const char *what)
{
    if (at_ms > 0 && (p->n == 0 || at_ms >= p->points[p->n - 1].at_ms))
        p->points[p->n++] = (struct point){at_ms, value, what};
}

/* False if there is nothing to draw. */
static bool read_progress(const json_t *v, struct wall now, struct progress *p)
{
    const json_t *job = json_object_get(v, "job"), *expects = json_object_get(v, "expects"),
                 *saved = json_object_get(v, "checkpoints");
    const bool is_over = str_eq(cli_text(job, "state"), "ended");
    *p = (struct progress){.total = json_number_value(json_object_get(job, "progress_total"))};
    if (p->total <= 0 || ms_of(job, "started_at") == 0)
        return false;
    add_point(p, ms_of(job, "started_at"), 0, "started");
    size_t i = json_array_size(saved); /* the newest is the first */
    for (i = i > POINTS_MAX ? POINTS_MAX : i; i-- > 0;) {
        const json_t *c = json_array_get(saved, i), *at = json_object_get(c, "progress");
        if (json_is_number(at))
            add_point(p, ms_of(c, "saved_at"), json_number_value(at), "saved");
    }
    if (json_is_number(json_object_get(job, "progress")))
        add_point(p, is_over ? ms_of(job, "ended_at") : now.ms,
            json_number_value(json_object_get(job, "progress")), is_over ? "ended" : "now");
    p->now = p->points[p->n - 1];
    p->finish_ms =
        ms_of(job, json_is_string(json_object_get(job, "finish_by")) ? "finish_by" : "deadline_at");
    p->done_ms = is_over ? 0 : ms_of(expects, "done_at");
    p->late_ms = is_over ? 0 : ms_of(expects, "late_at");
    return p->n > 1 || p->done_ms > 0;
}

static void draw_progress(const struct progress *p, struct buf *out)
{
    const struct axes a = {p->points[0].at_ms,
        max_i64(max_i64(p->now.at_ms, p->finish_ms), max_i64(p->done_ms, p->late_ms)) + 1,
        p->total};
    char top[32];
    snprintf(top, sizeof top, "%.10g", p->total);
    begin_chart(out, "Progress", top, "0");
    if (p->done_ms > 0 && p->late_ms > p->done_ms)
        buf_printf(out, "<polygon class=\"chart-band\" points=\"%.1f,%.1f %.1f,0 %.1f,0\"/>",
            x_of(&a, p->now.at_ms), y_of(&a, p->now.value), x_of(&a, p->done_ms),
            x_of(&a, p->late_ms));
    if (p->done_ms > 0)
        buf_printf(out, "<path class=\"chart-line chart-dashed\" d=\"M%.1f %.1fL%.1f 0\"/>",
            x_of(&a, p->now.at_ms), y_of(&a, p->now.value), x_of(&a, p->done_ms));
    buf_adds(out, "<path class=\"chart-line\" d=\"");
    for (size_t i = 0; i < p->n; i++)
        buf_printf(out, "%c%.1f %.1f", i == 0 ? 'M' : 'L', x_of(&a, p->points[i].at_ms),
            y_of(&a, p->points[i].value));
    buf_adds(out, "\"/>");
    if (p->finish_ms > 0)
        buf_printf(out, "<path class=\"chart-limit\" d=\"M%.1f 0V100\"/>", x_of(&a, p->finish_ms));
    end_chart(&a, out);
}

/* " The deadline is T, 5m after the expected end." */
static void say_deadline(const struct progress *p, bool is_over, struct buf *out)
{
    char at[CLI_LOCAL_MAX], span[32];
    const int64_t end_ms = is_over ? p->now.at_ms : p->done_ms;
    buf_printf(out, " The deadline is %s", cli_local((struct wall){p->finish_ms}, true, at));
    if (end_ms > 0) {
        const bool is_late = end_ms > p->finish_ms;
        const int64_t off_ms = is_late ? end_ms - p->finish_ms : p->finish_ms - end_ms;
        buf_printf(out, ", %s %s the %send", cli_duration(off_ms, span, sizeof span),
            is_late ? "before" : "after", is_over ? "" : "expected ");
    }
    buf_addc(out, '.');
}

static void say_progress(const json_t *v, const struct progress *p, struct buf *out)
{
    char at[CLI_LOCAL_MAX];
    const bool is_over = str_eq(p->now.what, "ended");
    const char *why = cli_string(json_object_get(json_object_get(v, "expects"), "why"));
    struct buf said = {0};
    buf_printf(&said, "%.10g of %.10g (%.0f %%)%s.", p->now.value, p->total,
        100 * p->now.value / p->total, is_over ? " when it ended" : "");
    if (p->done_ms > 0)
        buf_printf(
            &said, " The end is expected at %s", cli_local((struct wall){p->done_ms}, true, at));
    if (p->done_ms > 0 && p->late_ms > p->done_ms)
        buf_printf(&said, ", and in 95 of 100 cases before %s",
            cli_local((struct wall){p->late_ms}, true, at));
    buf_adds(&said, p->done_ms > 0 ? "." : "");
    if (p->finish_ms > 0)
        say_deadline(p, is_over, &said);
    html_p(out, "", "%s", buf_str(&said));
    buf_deinit(&said);
    if (!is_over && why && *why)
        html_p(out, "hint", "%s", why);
}

static void add_milestone(
    struct html_table *t, int64_t at_ms, const char *what, double value, const struct progress *p)
{
    char at[CLI_LOCAL_MAX];
    if (at_ms == 0)
        return;
    html_row(t, false);
    html_cell(t, "%s", cli_local((struct wall){at_ms}, true, at));
    html_cell(t, "%s", what);
    if (value < 0) {
        html_cell(t, "-");
        html_cell(t, "-");
        return;
    }
    html_cell(t, "%.10g", value);
    html_cell_part(t, value, p->total);
}

void job_charts_progress(const json_t *v, struct wall now, struct buf *out)
{
    struct progress p;
    struct html_table t;
    if (!read_progress(v, now, &p))
        return;
    html_card(out, "Progress against the deadline");
    say_progress(v, &p, out);
    draw_progress(&p, out);
    buf_adds(out, "<ul class=\"keys\"><li><span class=\"key part-1\"></span>progress</li>");
    if (p.done_ms > 0)
        buf_adds(out, "<li><span class=\"key chart-band\"></span>expected, up to 95 of 100</li>");
    if (p.finish_ms > 0)
        buf_adds(out, "<li><span class=\"key part-reclaim\"></span>deadline</li>");
    buf_adds(out, "</ul>\n");
    html_table(&t, out, "Progress over time, and as expected",
        (const char *const[]){"When", "What", "Progress", "Part", NULL}, 1u | 2u);
    const size_t step = (p.n + SAMPLES - 1) / SAMPLES;
    for (size_t i = 0; i < p.n; i++)
        if (i % step == 0 || i == p.n - 1)
            add_milestone(&t, p.points[i].at_ms, p.points[i].what, p.points[i].value, &p);
    add_milestone(&t, p.done_ms, "expected end, median", p.total, &p);
    add_milestone(&t, p.late_ms, "expected end, 95 of 100", p.total, &p);
    add_milestone(&t, p.finish_ms, "deadline", -1, &p);
    html_table_end(&t);
    html_card_end(out);
}

/* ---- what it used ---- */

enum unit { IN_CPUS, IN_BYTES, IN_PERCENT };

/* A line over time. */
struct line {
    char name[64];
    const json_t *at, *values; /* arrays of the same length */
    int64_t span_ms;           /* how long a position lasts */
    enum unit unit;
};

static const char *show_value(enum unit unit, double value, char mem[32])
{
    if (unit == IN_BYTES)
        str_format_bytes((uint64_t)value, mem, 32);
    else if (unit == IN_CPUS)
        snprintf(mem, 32, "%.2f", value / 1000);
    else
        snprintf(mem, 32, "%.0f %%", value);
    return mem;
}

static size_t length_of(const struct line *l)
{
    const size_t n = json_array_size(l->at), values = json_array_size(l->values);
    return n < values ? n : values;
}

static int64_t at_of(const struct line *l, size_t i)
{
    return json_integer_value(json_array_get(l->at, i));
}

static double value_of(const struct line *l, size_t i)
{
    const double v = json_number_value(json_array_get(l->values, i));
    return v > 0 ? v : 0;
}

/* Negative where nothing was measured. */
static double value_at(const struct line *l, int64_t at_ms)
{
    for (size_t i = length_of(l); i-- > 0;)
        if (at_of(l, i) <= at_ms)
            return at_ms - at_of(l, i) <= 2 * l->span_ms ? value_of(l, i) : -1;
    return -1;
}

static double most_of(const struct line *l)
{
    double most = 0;
    for (size_t i = 0; i < length_of(l); i++)
        most = value_of(l, i) > most ? value_of(l, i) : most;
    return most;
}

static void draw_line(const struct line *l, int64_t from_ms, int64_t to_ms, struct buf *out)
{
    char top[32], bottom[32];
    const double most = most_of(l), least = l->unit == IN_BYTES ? 1 : 100; /* 0.1 CPUs, 100 % */
    const struct axes a = {from_ms, to_ms, most > least ? most : least};
    begin_chart(out, l->name, show_value(l->unit, a.top, top), show_value(l->unit, 0, bottom));
    buf_adds(out, "<path class=\"chart-line\" d=\"");
    for (size_t i = 0; i < length_of(l); i++) {
        const bool is_gap = i == 0 || at_of(l, i) - at_of(l, i - 1) > l->span_ms * 3 / 2;
        buf_printf(out, "%c%.1f %.1f", is_gap ? 'M' : 'L', x_of(&a, at_of(l, i)),
            y_of(&a, value_of(l, i)));
    }
    buf_adds(out, "\"/>");
    end_chart(&a, out);
}

/* Lines of the processors, the memory, and then the GPUs. */
struct lines {
    struct line list[2 + 2 * GPUS_MAX];
    size_t n;
};

/* of: load itself, or one of its GPUs, which the name is followed by. */
static void add_line(struct lines *s, const json_t *load, const json_t *of, const char *key,
    enum unit unit, const char *name)
{
    struct line l = {.at = json_object_get(of, "at_ms"),
        .values = json_object_get(of, key),
        .span_ms = cli_int(load, "span_ms", 0),
        .unit = unit};
    if (length_of(&l) == 0)
        return;
    if (of == load)
        snprintf(l.name, sizeof l.name, "%s", name);
    else
        snprintf(l.name, sizeof l.name, "%s of GPU %lld", name, (long long)cli_int(of, "index", 0));
    s->list[s->n++] = l;
}

static void find_lines(const json_t *load, struct lines *s)
{
    const json_t *gpus = json_object_get(load, "gpus");
    s->n = 0;
    add_line(s, load, load, "cpu_milli", IN_CPUS, "CPUs used");
    add_line(s, load, load, "memory_bytes", IN_BYTES, "Memory");
    for (size_t i = 0; i < json_array_size(gpus) && i < GPUS_MAX; i++) {
        const json_t *g = json_array_get(gpus, i);
        add_line(s, load, g, "busy_percent", IN_PERCENT, "Use");
        add_line(s, load, g, "memory_bytes", IN_BYTES, "Memory");
    }
}

static void add_sums(const struct lines *s, struct buf *out)
{
    struct html_table t;
    char text[32];
    html_table(&t, out, "What it used, over all its measured time",
        (const char *const[]){"Of what", "Mean", "Most", "Last", NULL}, 1);
    for (size_t i = 0; i < s->n; i++) {
        const struct line *l = &s->list[i];
        const size_t length = length_of(l);
        double sum = 0;
        for (size_t k = 0; k < length; k++)
            sum += value_of(l, k);
        html_row(&t, false);
        html_cell(&t, "%s", l->name);
        html_cell(&t, "%s", show_value(l->unit, sum / (double)length, text));
        html_cell(&t, "%s", show_value(l->unit, most_of(l), text));
        html_cell(&t, "%s", show_value(l->unit, value_of(l, length - 1), text));
    }
    html_table_end(&t);
}

/* The processors, the memory, and the first of the GPUs. */
static void add_samples(const struct lines *s, int64_t from_ms, int64_t to_ms, struct buf *out)
{
    const char *names[6] = {"When"};
    struct html_table t;
    for (size_t i = 0; i < s->n && i < 4; i++)
        names[i + 1] = s->list[i].name;
    buf_adds(out, "<details><summary>The figures over time</summary>\n");
    html_table(&t, out, "What it used at times", names, 1);
    for (int64_t k = 0; k <= SAMPLES; k++) {
        char at[CLI_LOCAL_MAX], text[32];
        const int64_t at_ms = from_ms + (to_ms - from_ms) * k / SAMPLES;
        html_row(&t, false);
        html_cell(&t, "%s", cli_local((struct wall){at_ms}, true, at));
        for (size_t i = 0; names[i + 1]; i++) {
            const double v = value_at(&s->list[i], at_ms);
            html_cell(&t, "%s", v < 0 ? "-" : show_value(s->list[i].unit, v, text));
        }
    }
    html_table_end(&t);
    buf_adds(out, "</details>\n");
}

void job_charts_load(const json_t *job, const json_t *load, struct buf *out)
{
    const size_t gpus = json_array_size(json_object_get(load, "gpus"));
    char from[CLI_LOCAL_MAX], to[CLI_LOCAL_MAX];
    struct lines s;
    find_lines(load, &s);
    html_card(out, "What it used");
    if (s.n == 0) {
        html_p(out, "hint",
            load ? "Nothing was measured: that begins after its first minute."
                 : "Its measurements could not be read.");
        html_card_end(out);
        return;
    }
    const struct line *first = &s.list[0];
    const int64_t from_ms = at_of(first, 0),
                  to_ms = at_of(first, length_of(first) - 1) + first->span_ms + 1;
    html_p(out, "hint", "From %s to %s%s.", cli_local((struct wall){from_ms}, true, from),
        cli_local((struct wall){to_ms}, true, to),
        cli_int(job, "nodes", 1) > 1 ? ", on its first node (rank 0) alone" : "");
    buf_adds(out, "<div class=\"charts\">\n");
    for (size_t i = 0; i < s.n; i++)
        draw_line(&s.list[i], from_ms, to_ms, out);
    buf_adds(out, "</div>\n");
    add_sums(&s, out);
    add_samples(&s, from_ms, to_ms, out);
    if (gpus > GPUS_MAX)
        html_p(out, "hint", "The first %d of %zu GPUs.", GPUS_MAX, gpus);
    html_card_end(out);
}
