/* SPDX-License-Identifier: Apache-2.0
 *
 * sbatch [OPTION...] [SCRIPT [ARG...]]: belay submit with Slurm's words, defaults and exit codes.
 * Differences: the environment is passed along, output is written to slurm-%j.out, warnings come
 * before the number.
 */
#include "cli/slurm/slurm_programs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/flags/directives.h"
#include "cli/flags/foreign.h"
#include "cli/slurm/slurm.h"
#include "cli/submission.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* above all letters */
enum {
    VAL_HELP = 300,
    VAL_VERSION,
    VAL_WRAP,
    VAL_WAIT,
    VAL_QUIET,
    VAL_FOREIGN = 1000,
    VAL_FLAG = 2000
};

struct sbatch {
    struct submission s;
    char *wrap; /* NULL to submit a script */
};

/* argument: as in getopt_long(3) */
static void add_option(
    struct option *o, struct buf *letters, const char *name, char letter, int argument, int val)
{
    *o = (struct option){.name = name, .has_arg = argument, .val = val};
    if (letter)
        buf_printf(letters, "%c%s", letter,
            argument == no_argument         ? ""
            : argument == optional_argument ? "::"
                                            : ":");
}

static bool is_own(const char *name)
{
    return str_eq(name, "wait") || str_eq(name, "wrap") || str_eq(name, "quiet");
}

static const struct job_attribute *next_flag(const struct job_attribute *a)
{
    do
        a = directives_next(a);
    while (a && (a->masks & JOB_NOT_SLURM));
    return a;
}

/* Every flag of a job, and those that are refused or ignored (flags/foreign.h). The caller frees
 * both. */
static struct option *build_options(struct buf *letters)
{
    size_t n = 0, n_foreign = 0;
    while (foreign_flags[n_foreign].name)
        n_foreign++;
    struct option *o = mem_array(job_attributes_count + n_foreign + 16, sizeof(*o));
    buf_adds(letters, "+hVQW");
    for (const struct job_attribute *a = NULL; (a = next_flag(a));) {
        int argument = !a->takes ? no_argument : a->bare ? optional_argument : required_argument;
        add_option(
            &o[n++], letters, a->flag, a->letter, argument, VAL_FLAG + (int)(a - job_attributes));
    }
    for (size_t i = 0; i < n_foreign; i++) {
        const struct foreign *f = &foreign_flags[i];
        int argument = !f->value            ? no_argument
                       : f->value[0] == '?' ? optional_argument
                                            : required_argument;
        if (!is_own(f->name))
            add_option(&o[n++], letters, f->name, f->letter, argument, VAL_FOREIGN + (int)i);
    }
    o[n++] = (struct option){"help", no_argument, NULL, VAL_HELP};
    o[n++] = (struct option){"usage", no_argument, NULL, VAL_HELP};
    o[n++] = (struct option){"version", no_argument, NULL, VAL_VERSION};
    o[n++] = (struct option){"wrap", required_argument, NULL, VAL_WRAP};
    o[n++] = (struct option){"wait", no_argument, NULL, VAL_WAIT};
    o[n++] = (struct option){"quiet", no_argument, NULL, VAL_QUIET};
    return o;
}

/* The option that a letter belongs to; values above all letters are unchanged. */
static int val_of(int c)
{
    if (c > 255)
        return c;
    for (const struct job_attribute *a = NULL; (a = next_flag(a));)
        if (a->letter == c)
            return VAL_FLAG + (int)(a - job_attributes);
    for (int i = 0; foreign_flags[i].name; i++)
        if (foreign_flags[i].letter == c && !is_own(foreign_flags[i].name))
            return VAL_FOREIGN + i;
    return c == 'h'   ? VAL_HELP
           : c == 'V' ? VAL_VERSION
           : c == 'Q' ? VAL_QUIET
           : c == 'W' ? VAL_WAIT
                      : 0;
}

static void help(void)
{
    puts("Usage: sbatch [OPTION...] SCRIPT [ARG...] | --wrap=COMMAND\n\nSubmits a job script to "
         "belay.\n");
    for (const struct job_attribute *a = NULL; (a = next_flag(a));) {
        char *name =
            mem_printf("%c%c%c --%s%s%s", a->letter ? '-' : ' ', a->letter ? a->letter : ' ',
                a->letter ? ',' : ' ', a->flag, a->takes ? "=" : "", a->takes ? a->takes : "");
        printf("  %-34s %s\n", name, a->help);
        free(name);
    }
    puts("  -W, --wait                         wait for the job's end and return its exit code\n"
         "      --wrap=COMMAND                 submit this shell command instead of a script\n"
         "  -Q, --quiet                        do not print the job's number\n"
         "  -V, --version                      print the version");
}

static void add(struct sbatch *u, int val)
{
    if (val == VAL_WRAP) {
        free(u->wrap);
        u->wrap = mem_strdup(optarg);
    } else if (val == VAL_WAIT) {
        u->s.wait = true;
    } else if (val == VAL_QUIET) {
        u->s.quiet = true;
    } else {
        submission_add_named(&u->s,
            val >= VAL_FLAG ? job_attributes[val - VAL_FLAG].flag
                            : foreign_flags[val - VAL_FOREIGN].name,
            optarg);
    }
}

/* Returns -1 to submit; else the exit code. */
static int read_options(int argc, char **argv, struct sbatch *u)
{
    struct buf letters = {0};
    struct option *options = build_options(&letters);
    int c, rc = -1;
    optind = 0;
    while (rc < 0 && (c = getopt_long(argc, argv, buf_str(&letters), options, NULL)) != -1) {
        int val = val_of(c);
        if (val == VAL_VERSION)
            puts(SLURM_VERSION);
        else if (val == VAL_HELP)
            help();
        else if (val == 0)
            fputs("Try \"sbatch --help\" for more information\n", stderr);
        else
            add(u, val);
        rc = val == 0 ? CLI_FAILED : val == VAL_VERSION || val == VAL_HELP ? CLI_OK : -1;
    }
    free(options);
    buf_deinit(&letters);
    return rc;
}

int sbatch_main(int argc, char **argv)
{
    struct sbatch u = {0};
    submission_init(&u.s);
    u.s.slurm = "sbatch";
    u.s.default_output = "slurm-%j.out";
    int code = read_options(argc, argv, &u);
    bool submits = code < 0;
    if (code < 0)
        code = submission_load(
            &u.s, "sbatch", u.wrap, (const char **)(uintptr_t)(argv + optind), argc - optind);
    if (code == 0 && submits)
        code = submission_send(&u.s);
    submission_deinit(&u.s);
    free(u.wrap);
    return code;
}
