/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs of jobs as text tables: a first line with the column names, then one job per line. Fields
 * are separated by ',', ';', '|' or tabs, whichever the first line uses. A field containing the
 * separator is put in double quotes, inside which a double quote is doubled (RFC 4180); lines do
 * not break.
 *
 * The column names of sacct are known too, so that `sacct -P --format ...` needs no conversion.
 * sacct counts CPUs and memory of all nodes together; a letter after the unit of memory (Slurm
 * before 21.08) means another count.
 */
#include "replay/joblog.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/config/egress.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_BYTES 65536
#define FIELDS_MAX 128
#define CPUS_MAX 1000000
#define GPUS_MAX 65536
#define MEMORY_MIB_MAX (INT64_C(1) << 40) /* as in str_to_mib */

enum column {
    COL_ID,
    COL_NAME,
    COL_USER,
    COL_TEAM,
    COL_POOL,
    COL_SUBMIT,
    COL_START,
    COL_END,
    COL_RUN,
    COL_CPUS,
    COL_ALL_CPUS,
    COL_GPUS,
    COL_TRES,
    COL_MEMORY,
    COL_REQ_MEMORY,
    COL_NODES,
    COL_LIMIT,
    COL_MARKET,
    COL_CHECKPOINT,
    COL_SAVE,
    COL_EVERY,
    COL_BYTES,
    COL_FINISH_BY,
    COL_WORK,
    COL_DEADLINE,
    COL_INPUT,
    COL_LOCATION,
    COL_STATE,
    COLUMNS
};

static const struct {
    const char *name;
    enum column column;
} known[] = {
    {"id", COL_ID},
    {"name", COL_NAME},
    {"user", COL_USER},
    {"team", COL_TEAM},
    {"pool", COL_POOL},
    {"submit", COL_SUBMIT},
    {"start", COL_START},
    {"end", COL_END},
    {"run", COL_RUN},
    {"cpus", COL_CPUS},
    {"gpus", COL_GPUS},
    {"memory", COL_MEMORY},
    {"nodes", COL_NODES},
    {"time_limit", COL_LIMIT},
    {"market", COL_MARKET},
    {"checkpoint", COL_CHECKPOINT},
    {"save", COL_SAVE},
    {"checkpoint_every", COL_EVERY},
    {"checkpoint_mib", COL_BYTES},
    {"finish_by", COL_FINISH_BY},
    {"work", COL_WORK},
    {"deadline", COL_DEADLINE},
    {"input", COL_INPUT},
    {"input_place", COL_LOCATION},
    /* sacct's */
    {"JobID", COL_ID},
    {"JobName", COL_NAME},
    {"Account", COL_TEAM},
    {"Elapsed", COL_RUN},
    {"AllocCPUS", COL_ALL_CPUS},
    {"ReqCPUS", COL_ALL_CPUS},
    {"NCPUS", COL_ALL_CPUS},
    {"ReqMem", COL_REQ_MEMORY},
    {"NNodes", COL_NODES},
    {"AllocNodes", COL_NODES},
    {"ReqNodes", COL_NODES},
    {"Timelimit", COL_LIMIT},
    {"AllocTRES", COL_TRES},
    {"ReqTRES", COL_TRES},
    {"State", COL_STATE},
};

struct table_reader {
    const char *file;
    int line;
    char separator;
    int at[COLUMNS]; /* index of the column in a line; -1 if absent */
    size_t n_columns;
    char *fields[FIELDS_MAX]; /* fields of the current line, of which they are parts */
    size_t n_fields;
    struct joblog *log;
    struct err *e;
};

static int fail(const struct table_reader *r, const char *column, const struct err *why)
{
    return err_set(r->e, ERR_INVALID, "%s:%d: %s: %s", r->file, r->line, column, why->text);
}

/* Splits the line in place. */
static int split(struct table_reader *r, char *line)
{
    r->n_fields = 0;
    for (char *in = line;;) {
        if (r->n_fields == FIELDS_MAX)
            return err_set(
                r->e, ERR_INVALID, "%s:%d: more than %d columns", r->file, r->line, FIELDS_MAX);
        char *out = in;
        r->fields[r->n_fields++] = in;
        if (*in == '"') {
            for (in++; *in && (*in != '"' || in[1] == '"'); in++) {
                in += *in == '"';
                *out++ = *in;
            }
            if (*in != '"')
                return err_set(r->e, ERR_INVALID,
                    "%s:%d: column %zu begins with a double quote, but does not end with one",
                    r->file, r->line, r->n_fields);
            if (*++in && *in != r->separator)
                return err_set(r->e, ERR_INVALID,
                    "%s:%d: expected a separator after the double quote that ends column %zu",
                    r->file, r->line, r->n_fields);
        } else {
            in += strcspn(in, (char[]){r->separator, '\0'});
            out = in;
        }
        bool is_last = *in == '\0';
        *out = '\0';
        if (is_last)
            return 0;
        in++;
    }
}

/* "" if the column is absent or empty. */
static const char *field(const struct table_reader *r, enum column c)
{
    return r->at[c] >= 0 ? r->fields[r->at[c]] : "";
}

static const char *name_of(enum column c)
{
    size_t i = 0;
    while (known[i].column != c)
        i++;
    return known[i].name;
}

/* Whether the text is empty, or sacct's word for a missing value. */
static bool is_nothing(const char *text)
{
    static const char *const words[] = {
        "", "Unknown", "None", "N/A", "UNLIMITED", "Partition_Limit", "INVALID"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

static int read_time(const struct table_reader *r, enum column c, struct wall *ret_at)
{
    struct err why;
    const char *text = field(r, c);
    *ret_at = WALL_NONE;
    if (is_nothing(text) || joblog_time(text, ret_at, &why) == 0)
        return 0;
    return fail(r, name_of(c), &why);
}

/* A time, or "+8h" from the submit on. */
static int read_until(
    const struct table_reader *r, enum column c, struct wall submit, struct wall *ret_at)
{
    struct err why;
    int64_t in_ms;
    char shown[STR_SHOW_MAX];
    const char *text = field(r, c);
    if (text[0] != '+' && !is_nothing(text) && joblog_time(text, ret_at, &why) != 0) {
        err_set(&why, ERR_INVALID,
            "expected a time such as 2026-08-01T00:00:00Z, seconds since 1970, or +8h from its "
            "submit, found %s",
            str_show(text, shown));
        return fail(r, name_of(c), &why);
    }
    if (text[0] != '+')
        return read_time(r, c, ret_at);
    if (time_parse_duration(text + 1, true, &in_ms, &why) != 0)
        return fail(r, name_of(c), &why);
    ret_at->ms = submit.ms + in_ms;
    return 0;
}

/* "3600", "90m", "01:30:00", "1-02:00:00". */
static int read_duration(const struct table_reader *r, enum column c, int64_t *ret_ms)
{
    struct err why;
    const char *text = field(r, c);
    if (is_nothing(text))
        return 0;
    if (time_parse_duration(text, text[0] != '-' && strpbrk(text, ":-"), ret_ms, &why) == 0)
        return 0;
    return fail(r, name_of(c), &why);
}

static int read_count(
    const struct table_reader *r, enum column c, int64_t min, int64_t max, int64_t *ret_n)
{
    struct err why;
    const char *text = field(r, c);
    if (is_nothing(text) || str_to_i64(text, min, max, "count", ret_n, &why) == 0)
        return 0;
    return fail(r, name_of(c), &why);
}

static int read_memory(const struct table_reader *r, struct log_job *j)
{
    struct err why;
    const char *text = field(r, COL_MEMORY);
    if (is_nothing(text) || str_eq(text, "0") || str_to_mib(text, &j->need.memory_mib, &why) == 0)
        return 0;
    return fail(r, name_of(COL_MEMORY), &why);
}

/* "7.50G": sacct's form of a fraction of a unit. */
static int read_part_mib(const char *text, int64_t *ret_mib, struct err *e)
{
    char number[32] = "", unit[32];
    int64_t millionths, mib;
    size_t n = strspn(text, "0123456789.");
    if (!strchr(text, '.') || n >= sizeof number)
        return str_to_mib(text, ret_mib, e);
    memcpy(number, text, n);
    /* 1024 of the next smaller unit, because 1K is less than a MiB */
    snprintf(unit, sizeof unit, "1024%.16s", text + n);
    if (str_to_uusd(number, &millionths, NULL) != 0 || str_to_mib(unit, &mib, NULL) != 0 ||
        millionths == 0)
        return str_to_mib(text, ret_mib, e);
    *ret_mib = (int64_t)ceil((double)millionths / 1e6 * (double)mib / 1024);
    return *ret_mib <= MEMORY_MIB_MAX ? 0 : str_to_mib(text, ret_mib, e);
}

/* sacct's ReqMem: "16G" is for all nodes together, "16Gn" for each node, "4Gc" for each CPU. */
static int read_req_memory(const struct table_reader *r, struct log_job *j)
{
    struct err why;
    char text[64];
    const char *asked = field(r, COL_REQ_MEMORY);
    size_t n = strlen(asked);
    if (is_nothing(asked) || strtod(asked, NULL) == 0)
        return 0;
    char of = n > 1 && n < sizeof text && (asked[n - 1] == 'n' || asked[n - 1] == 'c')
                  ? asked[n - 1]
                  : '\0';
    STR_COPY(text, asked);
    if (of)
        text[n - 1] = '\0';
    int64_t mib = 0;
    if (read_part_mib(text, &mib, &why) != 0)
        return fail(r, name_of(COL_REQ_MEMORY), &why);
    j->need.memory_mib = of == 'c'   ? mib * j->need.cpus
                         : of == 'n' ? mib
                                     : (mib + j->nodes - 1) / j->nodes;
    return 0;
}

static int read_word(
    const struct table_reader *r, enum column c, const char *const *words, int fallback, int *ret_i)
{
    struct buf list = {0};
    char shown[STR_SHOW_MAX];
    const char *text = field(r, c);
    *ret_i = fallback;
    if (!text[0])
        return 0;
    for (int i = 0; words[i]; i++) {
        if (strcasecmp(words[i], text) == 0) {
            *ret_i = i;
            return 0;
        }
    }
    str_list_names(&list, text, words);
    int rc = err_set(r->e, ERR_INVALID, "%s:%d: %s: expected %s, found %s", r->file, r->line,
        name_of(c), buf_str(&list), str_show(text, shown));
    buf_deinit(&list);
    return rc;
}

/* Reads from "billing=8,cpu=8,gres/gpu=2,mem=64G,node=1". */
static int64_t gpus_of_tres(const char *text)
{
    const char *at = strstr(text, "gres/gpu=");
    int64_t n = at ? strtoll(at + strlen("gres/gpu="), NULL, 10) : 0;
    return n > 0 && n <= GPUS_MAX ? n : 0;
}

static int read_size(const struct table_reader *r, struct log_job *j)
{
    int64_t nodes = 1, cpus = 1, gpus = 0, of_all = 0;
    int rc = read_count(r, COL_NODES, 0, JOB_NODES_MAX, &nodes);
    nodes = nodes > 0 ? nodes : 1;
    if (rc == 0)
        rc = read_count(r, COL_CPUS, 1, CPUS_MAX, &cpus);
    if (rc == 0)
        rc = read_count(r, COL_ALL_CPUS, 0, CPUS_MAX, &of_all);
    if (rc == 0)
        rc = read_count(r, COL_GPUS, 0, GPUS_MAX, &gpus);
    if (of_all > 0)
        cpus = (of_all + nodes - 1) / nodes;
    if (gpus == 0)
        gpus = (gpus_of_tres(field(r, COL_TRES)) + nodes - 1) / nodes;
    j->nodes = (int32_t)nodes;
    j->need.cpus = (int32_t)cpus;
    j->need.gpus = (int32_t)gpus;
    if (rc == 0)
        rc = read_memory(r, j);
    return rc == 0 ? read_req_memory(r, j) : rc;
}

static int read_every(const struct table_reader *r, struct log_job *j)
{
    struct err why;
    int rc = str_eq(field(r, COL_EVERY), "auto") ? 0 : read_duration(r, COL_EVERY, &j->every_ms);
    if (rc != 0 || j->every_ms == 0 || j->every_ms >= JOBLOG_EVERY_MIN_MS)
        return rc;
    err_set(&why, ERR_INVALID, "expected auto, or at least 1s");
    return fail(r, name_of(COL_EVERY), &why);
}

static int read_checkpoints(const struct table_reader *r, struct log_job *j)
{
    static const char *const answers[] = {"no", "yes", "none", "signal", "coop", "criu", NULL};
    int64_t mib = 0;
    int can, rc = read_word(r, COL_CHECKPOINT, answers, -1, &can);
    if (rc == 0)
        rc = read_duration(r, COL_SAVE, &j->save_ms);
    if (rc == 0)
        rc = read_every(r, j);
    if (rc == 0)
        rc = read_count(r, COL_BYTES, 0, 1 << 30, &mib);
    if (mib > 0)
        j->ckpt_bytes = mib << 20;
    if (can == 0 || can == 2)
        j->save_ms = 0;
    else if (can > 0 && j->save_ms == 0)
        j->save_ms = JOBLOG_UNKNOWN;
    return rc;
}

static int read_input(const struct table_reader *r, struct log_job *j)
{
    struct input in = {0};
    struct err why;
    int64_t mib;
    const char *size = field(r, COL_INPUT), *location = field(r, COL_LOCATION);
    if (is_nothing(size) || str_eq(size, "0"))
        return 0;
    if (str_to_mib(size, &mib, &why) != 0)
        return fail(r, name_of(COL_INPUT), &why);
    if (location[0] && config_read_input_location(location, &in, &why) != 0)
        return fail(r, name_of(COL_LOCATION), &why);
    in.bytes = mib << 20;
    joblog_set_input(r->log, j, &in);
    return 0;
}

static const char *text_of(const struct table_reader *r, enum column c)
{
    const char *text = field(r, c);
    return joblog_text(r->log, text, strlen(text));
}

/* Reads the times of a job. Its run time is stated, or the time from start to end. *ret_ran: it is
 * more than 0. */
static int read_times(const struct table_reader *r, struct log_job *j, bool *ret_ran)
{
    struct wall start, end, deadline;
    char shown[STR_SHOW_MAX];
    int rc = read_time(r, COL_SUBMIT, &j->submit);
    if (rc == 0)
        rc = read_time(r, COL_START, &start);
    if (rc == 0)
        rc = read_time(r, COL_END, &end);
    if (rc == 0)
        rc = read_until(r, COL_FINISH_BY, j->submit, &j->finish_by);
    if (rc == 0)
        rc = read_until(r, COL_DEADLINE, j->submit, &deadline);
    if (rc == 0)
        rc = read_duration(r, COL_RUN, &j->work_ms);
    if (rc == 0)
        rc = read_duration(r, COL_LIMIT, &j->time_limit_ms);
    if (rc == 0)
        rc = read_duration(r, COL_WORK, &j->declared_ms);
    if (rc != 0)
        return rc;
    j->ends_late = wall_is_set(deadline);
    j->finish_by = j->ends_late ? deadline : j->finish_by;
    if (!wall_is_set(j->submit))
        return err_set(r->e, ERR_INVALID, "%s:%d: submit: expected a time, found %s", r->file,
            r->line, str_show(field(r, COL_SUBMIT), shown));
    if (r->at[COL_RUN] < 0 && wall_is_set(start) && wall_is_set(end))
        j->work_ms = end.ms - start.ms;
    if (j->work_ms > JOBLOG_RUN_MAX_MS)
        return err_set(
            r->e, ERR_INVALID, "%s:%d: run: a job may run for at most 366 days", r->file, r->line);
    *ret_ran = j->work_ms > 0;
    return 0;
}

static int read_job(struct table_reader *r)
{
    bool ran = false;
    int wish;
    const char *id = field(r, COL_ID);
    if (r->at[COL_STATE] >= 0 && strchr(id, '.'))
        return 0; /* a step in the output of sacct, not a job */
    struct log_job *j = joblog_add(r->log);
    if (!j)
        return err_set(
            r->e, ERR_INVALID, "%s:%d: more than %d jobs", r->file, r->line, JOBLOG_JOBS_MAX);
    int rc = read_times(r, j, &ran);
    if (rc == 0)
        rc = read_size(r, j);
    if (rc == 0)
        rc = read_word(r, COL_MARKET, market_wish_names, WISH_ANY, &wish);
    if (rc == 0)
        rc = read_checkpoints(r, j);
    if (rc == 0)
        rc = read_input(r, j);
    if (rc != 0)
        return rc;
    j->wish = (enum market_wish)wish;
    j->name = text_of(r, COL_NAME);
    j->user = text_of(r, COL_USER);
    j->team = text_of(r, COL_TEAM);
    j->pool = text_of(r, COL_POOL);
    if (!ran) {
        r->log->n--;
        r->log->n_never_ran++;
    }
    return 0;
}

/* The separator: the first one outside quotes; ',' if there is none. */
static char find_separator(const char *line)
{
    for (bool quoted = false; *line; line++) {
        if (*line == '"')
            quoted = !quoted;
        else if (!quoted && strchr("|,;\t", *line))
            return *line;
    }
    return ',';
}

static void note_ignored(struct table_reader *r, const char *name)
{
    char *all = r->log->ignored;
    size_t n = strlen(all);
    char shown[STR_SHOW_MAX];
    if (!name[0]) /* after the separator that ends each line of `sacct -p` */
        return;
    if (n + STR_SHOW_MAX + 4 < sizeof r->log->ignored) {
        str_show(name, shown);
        memcpy(all + n, n ? ", " : "", n ? 3 : 1);
        str_copy(all + strlen(all), sizeof r->log->ignored - strlen(all), shown);
    }
}

static int read_header(struct table_reader *r, char *line)
{
    r->separator = find_separator(line);
    int rc = split(r, line);
    if (rc != 0)
        return rc;
    r->n_columns = r->n_fields;
    for (size_t c = 0; c < COLUMNS; c++)
        r->at[c] = -1;
    for (size_t i = 0; i < r->n_fields; i++) {
        size_t k = 0;
        while (k < sizeof known / sizeof known[0] && strcasecmp(known[k].name, r->fields[i]) != 0)
            k++;
        if (k == sizeof known / sizeof known[0])
            note_ignored(r, r->fields[i]);
        else if (r->at[known[k].column] >= 0)
            return err_set(r->e, ERR_INVALID,
                "%s:%d: two columns with the same meaning: \"%s\" and \"%s\"", r->file, r->line,
                r->fields[r->at[known[k].column]], r->fields[i]);
        else
            r->at[known[k].column] = (int)i;
    }
    if (r->at[COL_SUBMIT] < 0)
        return err_set(r->e, ERR_INVALID,
            "%s:%d: a log of jobs begins with a line that names its columns, one of which is "
            "\"submit\"",
            r->file, r->line);
    if (r->at[COL_RUN] < 0 && (r->at[COL_START] < 0 || r->at[COL_END] < 0))
        return err_set(r->e, ERR_INVALID,
            "%s:%d: there is no column \"run\" (how long a job ran), nor \"start\" and \"end\"",
            r->file, r->line);
    return 0;
}

static int read_line(struct table_reader *r, char *line)
{
    if (r->n_columns == 0)
        return read_header(r, line);
    int rc = split(r, line);
    if (rc == 0 && r->n_fields != r->n_columns)
        rc = err_set(r->e, ERR_INVALID,
            "%s:%d: expected %zu columns, as in the first line, found %zu", r->file, r->line,
            r->n_columns, r->n_fields);
    return rc == 0 ? read_job(r) : rc;
}

int joblog_read_csv(const char *file, const char *text, size_t n, struct joblog *l, struct err *e)
{
    struct table_reader r = {.file = file, .log = l, .e = e};
    char *line = mem_alloc(LINE_MAX_BYTES);
    int rc = 0;
    for (const char *end = text + n; rc == 0 && text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((newline ? newline : end) - text);
        const char *from = text;
        r.line++;
        text += len + 1;
        while (len > 0 && from[len - 1] == '\r')
            len--;
        if (len == 0 || (from[0] == '#' && r.n_columns == 0))
            continue;
        if (len >= LINE_MAX_BYTES || memchr(from, '\0', len)) {
            rc = err_set(e, ERR_INVALID, "%s:%d: expected a line of text of at most %d bytes", file,
                r.line, LINE_MAX_BYTES - 1);
            break;
        }
        memcpy(line, from, len);
        line[len] = '\0';
        rc = read_line(&r, line);
    }
    if (rc == 0 && r.n_columns == 0)
        rc = err_set(e, ERR_INVALID,
            "%s: the file is empty; a log of jobs begins with a line that names its columns", file);
    free(line);
    return rc;
}
