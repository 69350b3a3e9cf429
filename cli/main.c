/* SPDX-License-Identifier: Apache-2.0
 *
 * belay: finds the verb and runs it.
 */
#include "cli/cli.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/flags/directives.h"
#include "cli/slurm/slurm.h"
#include "cli/flags/updates.h"
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void usage(FILE *f)
{
    fprintf(f,
        "belay: batch jobs on the cheapest capacity, resumed elsewhere when it is reclaimed\n\n"
        "usage: belay VERB [OPTION...] [ARGUMENT...]\n\n");
    const char *group = "";
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (!str_eq(cli_verb_group(i), group))
            fprintf(f, "%s%s:\n", i ? "\n" : "", cli_verb_group(i));
        group = cli_verb_group(i);
        fprintf(f, "  %-11s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    }
    fprintf(f, "\nbelay help VERB shows a verb's options, with examples. A first job: belay up; "
               "belay submit train.sh; belay logs -f 1\n");
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        if (str_eq(cli_verbs[i]->name, name))
            return cli_verbs[i];
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[64];
    size_t n = 0;
    while (cli_verbs[n] && n < 63) {
        names[n] = cli_verbs[n]->name;
        n++;
    }
    names[n] = NULL;
    const char *near = str_nearest(name, names);
    if (near)
        cli_error("there is no verb \"%s\"; did you mean \"%s\"?", name, near);
    else
        cli_error("there is no verb \"%s\"; belay --help lists them", name);
    return CLI_USAGE;
}

/* ---- options ---- */

enum { VAL_JSON = 900, VAL_HELP, VAL_UTC, VAL_COLOR, VAL_OUTPUT };

/* The flags of jobs as a terminated popt table. The caller frees it. */
static struct poptOption *job_flag_table(const struct verb *v)
{
    size_t n = 0;
    struct poptOption *t = mem_array(job_attributes_count + 1, sizeof(*t));
    for (const struct job_attribute *a = NULL; (a = cli_next_flag(v, a));)
        t[n++] = (struct poptOption){.longName = a->flag,
            .shortName = a->letter,
            .argInfo = a->takes ? POPT_ARG_STRING : POPT_ARG_NONE,
            .val = CLI_JOB_FLAG + (int)(a - job_attributes),
            .descrip = a->help,
            .argDescrip = a->takes};
    return t;
}

/* The long option of the verb that is most like the name; NULL if none is. */
static const char *nearest_option(const struct verb *v, const char *name)
{
    size_t n = 3;
    for (const struct poptOption *o = v->options; o && o->longName; o++)
        n++;
    const char **names = mem_array(n + job_attributes_count + 1, sizeof(*names));
    names[0] = "json", names[1] = "help", n = 2;
    if (v->lists)
        names[n++] = "output";
    for (const struct poptOption *o = v->options; o && o->longName; o++)
        names[n++] = o->longName;
    for (const struct job_attribute *a = NULL; (a = cli_next_flag(v, a));)
        names[n++] = a->flag;
    names[n] = NULL;
    char *word = mem_strndup(name, strcspn(name, "="));
    const char *near = str_nearest(word, names);
    for (size_t i = 0; !near && strlen(word) > 2 && i < n; i++) /* --depend */
        if (str_starts(names[i], word))
            near = names[i];
    free(word);
    free(names);
    return near;
}

static void print_job_keys(void)
{
    struct updates_shown shown;
    puts("\nKeys, with values as for the flags of belay submit (KEY=none sets the default):");
    for (const struct job_attribute *a = NULL; (a = updates_next(a, &shown));) {
        char *word = mem_printf("%s=%s", a->key, shown.takes);
        printf("  %-27s %s\n", word, shown.help);
        free(word);
    }
}

static void print_examples(const struct verb *v)
{
    if (!v->examples)
        return;
    puts("\nExamples:");
    for (const char *line = v->examples; *line;) {
        size_t n = strcspn(line, "\n");
        printf("  %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* Reports an option that popt refused; suggests the verb's nearest one for an unknown name. */
static void option_error(const struct verb *v, poptContext pc, int val)
{
    const char *bad = poptBadOption(pc, 0), *near = NULL;
    if (val == POPT_ERROR_BADOPT && str_starts(bad, "--"))
        near = nearest_option(v, bad + 2);
    if (near)
        cli_error("%s: %s; did you mean --%s?", bad, poptStrerror(val), near);
    else
        cli_error("%s: %s (belay %s --help lists the options)", bad, poptStrerror(val), v->name);
}

/* The choice is passed on as the variables that other programs use. */
static int set_colours(const char *when)
{
    if (!str_eq(when, "auto") && !str_eq(when, "always") && !str_eq(when, "never")) {
        cli_error("--color: expected auto, always or never, found \"%s\"", when);
        return CLI_USAGE;
    }
    if (str_eq(when, "always"))
        setenv("CLICOLOR_FORCE", "1", 1);
    else
        unsetenv("CLICOLOR_FORCE");
    if (str_eq(when, "never"))
        setenv("NO_COLOR", "1", 1);
    return 0;
}

/* An option that stands where a value is expected: the value was forgotten. */
static int check_value(const struct verb *v, const char *arg)
{
    if (!arg || !str_starts(arg, "--") || !arg[2] || !str_eq(nearest_option(v, arg + 2), arg + 2))
        return 0;
    cli_error(
        "the option before %s needs a value (belay %s --help lists the options)", arg, v->name);
    return CLI_USAGE;
}

/* Reads all options; prints help if requested. */
static int read_options(
    const struct verb *v, poptContext pc, cli_option_fn on_option, void *ctx, struct cli_args *a)
{
    int val, rc = 0;
    while (rc == 0 && (val = poptGetNextOpt(pc)) > 0) {
        char *arg = poptGetOptArg(pc);
        if (val == VAL_JSON) {
            a->json = 1;
        } else if (val == VAL_OUTPUT && str_eq(arg, "json")) {
            a->json = 1;
        } else if (val == VAL_OUTPUT) {
            free(a->output);
            a->output = mem_strdup(arg);
        } else if (val == VAL_UTC) {
            setenv("TZ", "UTC0", 1);
            tzset();
        } else if (val == VAL_COLOR) {
            rc = set_colours(arg);
        } else if (val == VAL_HELP) {
            printf("belay %s: %s\n", v->name, v->summary);
            poptPrintHelp(pc, stdout, 0);
            if (v->job_keys)
                print_job_keys();
            print_examples(v);
            rc = -1;
        } else {
            rc = check_value(v, arg);
            rc = rc == 0 ? on_option(ctx, val, arg) : rc;
        }
        free(arg);
    }
    if (rc == 0 && val < -1) {
        option_error(v, pc, val);
        rc = CLI_USAGE;
    }
    return rc;
}

int cli_parse(const struct verb *v, int argc, const char **argv, bool posix,
    cli_option_fn on_option, void *ctx, struct cli_args *ret_args)
{
    static const struct poptOption none[] = {POPT_TABLEEND};
    static const struct poptOption output[] = {
        {"output", 'o', POPT_ARG_STRING, NULL, VAL_OUTPUT, CLI_OUTPUT_HELP, CLI_OUTPUT_TAKES},
        POPT_TABLEEND,
    };
    struct poptOption *job_flags = v->job_flags ? job_flag_table(v) : NULL;
    const struct poptOption table[] = {
        {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(v->options ? v->options : none), 0,
            v->options ? "Options:" : NULL, NULL},
        {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(job_flags ? job_flags : none), 0,
            job_flags ? "The job:" : NULL, NULL},
        {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(v->lists ? output : none), 0, NULL, NULL},
        {"json", 0, POPT_ARG_NONE, NULL, VAL_JSON, "print JSON", NULL},
        {"utc", 0, POPT_ARG_NONE, NULL, VAL_UTC, "times in UTC instead of this machine's zone",
            NULL},
        {"color", 0, POPT_ARG_STRING, NULL, VAL_COLOR,
            "colours in tables (default auto: on a terminal, unless NO_COLOR is set)",
            "auto|always|never"},
        {"help", 'h', POPT_ARG_NONE, NULL, VAL_HELP, "print this help and exit", NULL},
        POPT_TABLEEND,
    };
    char *name = mem_printf("belay %s", v->name);
    const char **words = mem_array((size_t)argc + 1, sizeof(*words));
    memcpy(words, argv, (size_t)argc * sizeof(*words));
    words[0] = name;
    *ret_args = (struct cli_args){0};
    ret_args->pc = poptGetContext(name, argc, words, table, posix ? POPT_CONTEXT_POSIXMEHARDER : 0);
    poptSetOtherOptionHelp(ret_args->pc, v->arguments);
    int rc = read_options(v, ret_args->pc, on_option, ctx, ret_args);
    ret_args->rest = poptGetArgs(ret_args->pc);
    while (ret_args->rest && ret_args->rest[ret_args->n_rest])
        ret_args->n_rest++;
    if (rc == 0 && str_eq(v->arguments, CLI_NO_WORDS) && ret_args->n_rest > 0) {
        cli_error("unexpected word \"%s\" (see belay %s --help)", ret_args->rest[0], v->name);
        rc = CLI_USAGE;
    }
    if (rc == 0 && (v->lists || v->folds) && !ret_args->json && !ret_args->output)
        fold_begin(&ret_args->fold);
    free(words);
    free(name);
    free(job_flags);
    return rc;
}

void cli_args_deinit(struct cli_args *a)
{
    fold_end(&a->fold);
    if (a->pc)
        poptFreeContext(a->pc);
    free(a->output);
    *a = (struct cli_args){0};
}

static int finish(int rc)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_error("the output could not be written: %s", strerror(errno));
        rc = rc == CLI_OK ? CLI_FAILED : rc;
    }
    return rc;
}

static int run_verb(const char *name, int argc, const char **argv)
{
    const struct verb *v = find_verb(name);
    return v ? v->run(argc, argv) : unknown_verb(name);
}

int main(int argc, char **argv)
{
    /* for character widths; texts are English, with decimal points */
    setlocale(LC_CTYPE, "");
    log_init("belay", LOG_WARN);
    const struct slurm_program *program = argc > 0 ? slurm_program_find(argv[0]) : NULL;
    const char *name = argc > 1 ? argv[1] : NULL;
    if (program)
        return finish(slurm_program_run(program, argc, argv));
    const char *of[] = {argv[0], "--help", NULL}; /* belay help VERB */
    if (name && str_eq(name, "help") && argc > 2)
        return finish(run_verb(argv[2], 2, of));
    if (!name || str_eq(name, "--help") || str_eq(name, "-h") || str_eq(name, "help")) {
        usage(name ? stdout : stderr);
        return name ? finish(CLI_OK) : CLI_USAGE;
    }
    if (str_eq(name, "--version") || str_eq(name, "-V"))
        name = "version";
    return finish(run_verb(name, argc - 1, (const char **)argv + 1));
}
