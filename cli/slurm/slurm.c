/* SPDX-License-Identifier: Apache-2.0
 *
 * Output formats, and code shared by the programs with Slurm's names (see slurm.h).
 */
#include "cli/slurm/slurm.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/slurm/slurm_programs.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHOWN(text) str_show((text), (char[STR_SHOW_MAX]){0})

/* ---- reading formats ---- */

static const struct slurm_field *field_of_letter(const struct slurm_field *fields, char letter)
{
    for (; fields->name; fields++)
        if (letter && fields->letter == letter)
            return fields;
    return NULL;
}

/* The full name, or, if abbreviations are allowed, a unique beginning. */
static const struct slurm_field *field_of_name(
    const struct slurm_field *fields, const char *name, size_t n, bool beginnings)
{
    const struct slurm_field *found = NULL;
    for (; n > 0 && fields->name; fields++) {
        if (strncasecmp(fields->name, name, n) != 0)
            continue;
        if (!fields->name[n])
            return fields;
        if (beginnings && !found)
            found = fields;
    }
    return found;
}

static struct slurm_piece *add_piece(struct slurm_format *f, struct err *e)
{
    if (f->n == SLURM_FIELDS_MAX) {
        err_set(e, ERR_INVALID, "a format has at most %d fields", SLURM_FIELDS_MAX);
        return NULL;
    }
    return &f->pieces[f->n++];
}

static int check_length(const char *text, struct slurm_format *f, struct err *e)
{
    memset(f, 0, sizeof(*f));
    if (strlen(text) >= SLURM_FORMAT_MAX)
        return err_set(e, ERR_INVALID, "a format is at most %d bytes", SLURM_FORMAT_MAX - 1);
    return 0;
}

/* Digits at *p. False if more than SLURM_WIDTH_MAX. */
static bool read_width(const char **p, int *ret_width)
{
    int n = 0;
    while (isdigit((unsigned char)**p)) {
        n = n * 10 + (*(*p)++ - '0');
        if (n > SLURM_WIDTH_MAX)
            return false;
    }
    *ret_width = n;
    return true;
}

static int refuse_width(const char *text, struct err *e)
{
    return err_set(
        e, ERR_INVALID, "a field is at most %d wide: found %s", SLURM_WIDTH_MAX, SHOWN(text));
}

int slurm_format_letters(
    const char *text, const struct slurm_field *fields, struct slurm_format *f, struct err *e)
{
    struct buf before = {0};
    int rc = check_length(text, f, e);
    const char *p = text;
    while (rc == 0 && *p) {
        if (*p != '%' || p[1] == '%') {
            buf_addc(&before, *p);
            p += *p == '%' ? 2 : 1;
            continue;
        }
        struct slurm_piece piece = {0};
        const char *start = p++;
        while (*p == '.' || *p == '-' || *p == '#')
            piece.right = *p++ == '.' || piece.right;
        if (!read_width(&p, &piece.width)) {
            rc = refuse_width(start, e);
            break;
        }
        piece.field = field_of_letter(fields, *p);
        if (!piece.field) {
            rc = err_set(e, ERR_INVALID, "Invalid job format specification: %s", SHOWN(start));
            break;
        }
        p++;
        struct slurm_piece *added = add_piece(f, e);
        rc = added ? 0 : e->kind;
        if (added) {
            piece.before = before.len ? buf_take(&before) : NULL;
            *added = piece;
        }
    }
    if (rc == 0 && before.len) {
        struct slurm_piece *added = add_piece(f, e);
        rc = added ? 0 : e->kind;
        if (added)
            added->before = buf_take(&before);
    }
    buf_deinit(&before);
    return rc;
}

int slurm_format_names(
    const char *text, const struct slurm_field *fields, struct slurm_format *f, struct err *e)
{
    struct buf item = {0};
    int rc = check_length(text, f, e);
    while (rc == 0 && slurm_next_item(&text, &item)) {
        struct slurm_piece piece = {.width = 20};
        const char *word = buf_str(&item), *p = word + strcspn(word, ":");
        piece.field = field_of_name(fields, word, (size_t)(p - word), false);
        if (!piece.field) {
            rc = err_set(e, ERR_INVALID, "Invalid job format specification: %s", SHOWN(word));
            break;
        }
        if (*p == ':') {
            int width;
            piece.right = *++p == '.';
            p += piece.right;
            bool has_width = isdigit((unsigned char)*p);
            if (!read_width(&p, &width)) {
                rc = refuse_width(word, e);
                break;
            }
            piece.width = has_width ? width : *p ? 0 : 20;
            piece.after = *p ? mem_strdup(p) : NULL;
        }
        struct slurm_piece *added = add_piece(f, e);
        rc = added ? 0 : e->kind;
        if (added)
            *added = piece;
        else
            free(piece.after);
    }
    buf_deinit(&item);
    if (rc == 0 && f->n == 0)
        rc = err_set(e, ERR_INVALID, "a format needs a field");
    return rc;
}

int slurm_format_sacct(
    const char *text, const struct slurm_field *fields, struct slurm_format *f, struct err *e)
{
    struct buf item = {0};
    int rc = check_length(text, f, e);
    while (rc == 0 && slurm_next_item(&text, &item)) {
        const char *word = buf_str(&item), *p = word + strcspn(word, "%");
        struct slurm_piece piece = {
            .field = field_of_name(fields, word, (size_t)(p - word), true), .marks_cuts = true};
        if (!piece.field) {
            rc = err_set(e, ERR_INVALID, "Invalid field requested: %s", SHOWN(word));
            break;
        }
        piece.width = abs(piece.field->width);
        piece.right = piece.field->width > 0;
        if (*p == '%') {
            int width;
            piece.right = *++p != '-';
            p += !piece.right;
            if (!isdigit((unsigned char)*p) || !read_width(&p, &width) || *p || width == 0) {
                rc = err_set(e, ERR_INVALID, "expected a width in 1 .. %d after %% in %s",
                    SLURM_WIDTH_MAX, SHOWN(word));
                break;
            }
            piece.width = width;
        }
        struct slurm_piece *added = add_piece(f, e);
        rc = added ? 0 : e->kind;
        if (added) {
            piece.after = mem_strdup(" ");
            *added = piece;
        }
    }
    buf_deinit(&item);
    if (rc == 0 && f->n == 0)
        rc = err_set(e, ERR_INVALID, "a format needs a field");
    return rc;
}

void slurm_format_deinit(struct slurm_format *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->pieces[i].before);
        free(f->pieces[i].after);
    }
    f->n = 0;
}

/* ---- writing them ---- */

/* Terminal columns, approximated by characters. */
static size_t count_chars(const char *s, size_t n)
{
    size_t chars = 0;
    for (size_t i = 0; i < n; i++)
        chars += ((unsigned char)s[i] & 0xC0) != 0x80;
    return chars;
}

static void add_cell(struct buf *out, const struct slurm_piece *p, const char *text)
{
    size_t n = strlen(text), width = (size_t)p->width, chars = count_chars(text, n);
    if (width > 0 && chars > width) {
        size_t keep = p->marks_cuts ? width - 1 : width, at = 0;
        for (chars = 0; at < n && chars <= keep; at++)
            chars += ((unsigned char)text[at] & 0xC0) != 0x80;
        buf_add(out, text, chars > keep ? at - 1 : at);
        if (p->marks_cuts)
            buf_addc(out, '+');
        return;
    }
    size_t pad = width > chars ? width - chars : 0;
    for (size_t i = 0; p->right && i < pad; i++)
        buf_addc(out, ' ');
    buf_adds(out, text);
    for (size_t i = 0; !p->right && i < pad; i++)
        buf_addc(out, ' ');
}

void slurm_field_text(
    const struct slurm_field *f, slurm_value_fn value, const void *row, struct buf *out)
{
    if (f->fixed)
        buf_adds(out, f->fixed);
    else
        value(row, f->what, out);
}

static void get_text(
    const struct slurm_piece *p, slurm_value_fn value, const void *row, struct buf *text)
{
    buf_clear(text);
    buf_adds(text, "");
    if (row && p->field)
        slurm_field_text(p->field, value, row, text);
    else if (p->field)
        buf_adds(text, p->field->title);
}

void slurm_format_line(
    const struct slurm_format *f, slurm_value_fn value, const void *row, struct buf *out)
{
    struct buf text = {0};
    for (size_t i = 0; i < f->n; i++) {
        const struct slurm_piece *p = &f->pieces[i];
        buf_adds(out, p->before ? p->before : "");
        if (p->field) {
            get_text(p, value, row, &text);
            add_cell(out, p, buf_str(&text));
        }
        buf_adds(out, p->after ? p->after : "");
    }
    buf_addc(out, '\n');
    buf_deinit(&text);
}

void slurm_format_plain(const struct slurm_format *f, const char *delimiter, bool trailing,
    slurm_value_fn value, const void *row, struct buf *out)
{
    struct buf text = {0};
    for (size_t i = 0; i < f->n; i++) {
        get_text(&f->pieces[i], value, row, &text);
        buf_adds(out, buf_str(&text));
        if (trailing || i + 1 < f->n)
            buf_adds(out, delimiter);
    }
    buf_addc(out, '\n');
    buf_deinit(&text);
}

/* ---- programs ---- */

const struct slurm_program slurm_programs[] = {
    {"sbatch", sbatch_main, NULL},
    {"squeue", squeue_main, &squeue_options},
    {"scancel", scancel_main, &scancel_options},
    {"sinfo", sinfo_main, &sinfo_options},
    {"sacct", sacct_main, &sacct_options},
    {"scontrol", scontrol_main, &scontrol_options},
    {"srun", srun_main, &srun_options},
    {"salloc", salloc_main, NULL},
    {"sstat", sstat_main, &sstat_options},
    {"sshare", sshare_main, &sshare_options},
    {"seff", seff_main, &seff_options},
    {NULL, NULL, NULL},
};

const struct slurm_program *slurm_program_find(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (const struct slurm_program *p = slurm_programs; p->name; p++)
        if (str_eq(p->name, name))
            return p;
    return NULL;
}

static void print_message(const char *program, const char *kind, const char *fmt, va_list args)
{
    fprintf(stderr, "%s: %s: ", program, kind);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

void slurm_error(const char *program, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(program, "error", fmt, args);
    va_end(args);
}

void slurm_warn(const char *program, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_message(program, "warning", fmt, args);
    va_end(args);
}
