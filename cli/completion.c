/* SPDX-License-Identifier: Apache-2.0
 *
 * belay completion bash|zsh|fish: prints a completion script generated from the tables behind
 * --help. Choices are read from them too: "any|spot|on-demand" are three words, "NAME" is none.
 */
#include "cli/verbs.h"

#include "base/str.h"
#include "cli/flags/updates.h"
#include "cli/slurm/slurm.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct option_shown {
    const char *name;
    char letter;       /* 0 = none */
    const char *takes; /* NULL if it takes no value */
    const char *help;
};

typedef void (*option_fn)(const struct verb *v, const struct option_shown *o);

static void each_option(const struct verb *v, option_fn fn)
{
    for (const struct poptOption *o = v->options; o && o->longName; o++)
        fn(v, &(struct option_shown){o->longName, o->shortName, o->argDescrip, o->descrip});
    for (const struct job_attribute *a = NULL; (a = cli_next_flag(v, a));)
        fn(v, &(struct option_shown){a->flag, a->letter, a->takes, a->help});
    if (v->lists)
        fn(v, &(struct option_shown){"output", 'o', CLI_OUTPUT_TAKES, CLI_OUTPUT_HELP});
    fn(v, &(struct option_shown){"json", 0, NULL, "print JSON"});
    fn(v, &(struct option_shown){"utc", 0, NULL, "times in UTC"});
    fn(v, &(struct option_shown){"color", 0, "auto|always|never", "colours in tables"});
    fn(v, &(struct option_shown){"help", 'h', NULL, "print the options"});
}

/* The next lower-case word between blanks, brackets and bars at or after *text; NULL at the end. */
static const char *next_choice(const char **text, int *ret_len)
{
    while (*text && **text) {
        const char *word = *text;
        size_t len = strcspn(word, " []|");
        *text = word + len + (word[len] != '\0');
        *ret_len = (int)len;
        if (len > 0 && strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-") >= len)
            return word;
    }
    return NULL;
}

static bool has_choices(const char *text)
{
    int len;
    return next_choice(&text, &len) != NULL;
}

static void print_choices(const char *text)
{
    const char *word, *before = "";
    int len;
    for (; (word = next_choice(&text, &len)); before = " ")
        printf("%s%.*s", before, len, word);
}

/* The command that lists what a word of this description may be; NULL if none does. */
static const char *lister_of(const char *takes)
{
    static const struct {
        const char *word, *command;
    } listers[] = {{"JOB", "belay list -n 1000 -o name"}, {"NODE", "belay nodes -o name"},
        {"POOL", "belay pools -o name"}, {"RESERVATION", "belay reservation -o name"},
        {"CALENDAR", "belay calendar -o name"}};
    for (size_t i = 0; takes && i < sizeof(listers) / sizeof(listers[0]); i++) {
        const char *at = strstr(takes, listers[i].word);
        if (at && !isupper((unsigned char)at[strlen(listers[i].word)]))
            return listers[i].command;
    }
    return NULL;
}

static bool takes_file(const struct option_shown *o)
{
    return str_eq(o->takes, "FILE") || str_eq(o->takes, "DIR");
}

/* Each key as "KEY=" and with `end`, if the verb takes keys. */
static void print_keys(const struct verb *v, const char *before, const char *end)
{
    struct updates_shown shown;
    for (const struct job_attribute *a = NULL; v->job_keys && (a = updates_next(a, &shown));)
        printf("%s%s%s", before, a->key, end);
}

/* ---- bash ---- */

static void print_bash_values(const struct verb *v, const struct option_shown *o)
{
    const char *lister = lister_of(o->takes);
    if (lister)
        printf("    \"%s --%s\") words=$(%s 2>/dev/null) ;;\n", v->name, o->name, lister);
    if (lister || !has_choices(o->takes))
        return;
    printf("    \"%s --%s\") words=\"", v->name, o->name);
    print_choices(o->takes);
    printf("\" ;;\n");
}

static void print_bash_option(const struct verb *v, const struct option_shown *o)
{
    (void)v;
    printf(" --%s", o->name);
}

static void print_bash_key_values(const struct verb *v)
{
    struct updates_shown shown;
    for (const struct job_attribute *a = NULL; v->job_keys && (a = updates_next(a, &shown));)
        if (has_choices(shown.takes)) {
            printf("    \"%s %s\") words=\"", v->name, a->key);
            print_choices(shown.takes);
            printf("%s\" ;;\n", a->reset ? " none" : "");
        }
}

static void print_bash_verb(const struct verb *v)
{
    printf("    %s)\n        options=\"", v->name);
    each_option(v, print_bash_option);
    printf("\"\n        arguments=\"");
    print_choices(v->arguments);
    print_keys(v, " ", "=");
    printf("\"\n");
    if (lister_of(v->arguments))
        printf("        lister=\"%s\"\n", lister_of(v->arguments));
    printf("        ;;\n");
}

static void print_bash(void)
{
    printf("# bash completion of belay, made by: belay completion bash\n"
           "_belay()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local verb=${COMP_WORDS[1]} verbs=\"");
    for (size_t i = 0; cli_verbs[i]; i++)
        printf("%s%s", i ? " " : "", cli_verbs[i]->name);
    printf("\" options=\"\" arguments=\"\" words=\"\" lister=\"\"\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"$verbs --help --version\" -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    # --name=value comes as three words.\n"
           "    if [ \"$cur\" = = ]; then\n"
           "        cur=\"\"\n"
           "    elif [ \"$prev\" = = ]; then\n"
           "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    fi\n"
           "    case \"$verb\" in\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        print_bash_verb(cli_verbs[i]);
    printf("    esac\n"
           "    case \"$cur\" in\n"
           "    -*) words=$options ;;\n"
           "    *) words=\"$arguments $($lister 2>/dev/null)\" ;;\n"
           "    esac\n"
           "    case \"$verb $prev\" in\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        each_option(cli_verbs[i], print_bash_values);
    for (size_t i = 0; cli_verbs[i]; i++)
        print_bash_key_values(cli_verbs[i]);
    printf("    esac\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "    # The value follows without a blank. Outside of a completion, compopt fails.\n"
           "    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null || :\n"
           "}\n"
           "complete -o bashdefault -o default -F _belay belay\n");
    slurm_completion_bash();
}

/* ---- zsh ---- */

/* Escapes a text inside '...': a bracket or colon would end the help of an option of _arguments. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\''");
        else
            printf(strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
    }
}

static void print_zsh_value(const struct option_shown *o)
{
    if (lister_of(o->takes)) {
        printf(":($(%s 2>/dev/null))", lister_of(o->takes));
    } else if (has_choices(o->takes)) {
        printf(":(");
        print_choices(o->takes);
        putchar(')');
    } else {
        printf(takes_file(o) ? ":_files" : ": ");
    }
}

static void print_zsh_option(const struct verb *v, const struct option_shown *o)
{
    (void)v;
    const char *plus = o->takes ? "+" : "", *equals = o->takes ? "=" : "";
    printf(" \\\n            '*'");
    if (o->letter)
        printf("{-%c%s,--%s%s}'[", o->letter, plus, o->name, equals);
    else
        printf("'--%s%s[", o->name, equals);
    print_zsh_text(o->help);
    putchar(']');
    if (o->takes) {
        putchar(':');
        print_zsh_text(o->takes);
        print_zsh_value(o);
    }
    putchar('\'');
}

static void print_zsh_verb(const struct verb *v)
{
    printf("    %s)\n        _arguments", v->name);
    each_option(v, print_zsh_option);
    if (has_choices(v->arguments)) {
        printf(" \\\n            '1:what:(");
        print_choices(v->arguments);
        printf(")'");
    }
    if (v->job_keys) {
        printf(" \\\n            '1:job: ' \\\n            '*:change:compadd -S = --");
        print_keys(v, " ", "");
        printf("'\n        ;;\n");
        return;
    }
    if (lister_of(v->arguments))
        printf(" \\\n            '*:argument:($(%s 2>/dev/null))'\n        ;;\n",
            lister_of(v->arguments));
    else
        printf(" \\\n            '*:argument:_files'\n        ;;\n");
}

static void print_zsh(void)
{
    printf("#compdef belay");
    slurm_completion_names();
    printf("\n# zsh completion of belay, made by: belay completion zsh\n");
    slurm_completion_zsh();
    printf("_belay()\n{\n"
           "    if [ \"$service\" != belay ]; then\n"
           "        _belay_slurm\n"
           "        return\n"
           "    fi\n"
           "    local -a verbs=(\n");
    for (size_t i = 0; cli_verbs[i]; i++) {
        printf("        '%s:", cli_verbs[i]->name);
        print_zsh_text(cli_verbs[i]->summary);
        printf("'\n");
    }
    printf("    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe verb verbs\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $words[1] in\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        print_zsh_verb(cli_verbs[i]);
    printf("    esac\n"
           "}\n"
           "# Read from the fpath, this file is the function; sourced, it only defines it.\n"
           "if [ \"$funcstack[1]\" = _belay ]; then\n"
           "    _belay \"$@\"\n"
           "else\n"
           "    compdef _belay belay");
    slurm_completion_names();
    printf("\nfi\n");
}

/* ---- fish ---- */

static void print_fish_quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++)
        printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar('\'');
}

static void print_fish_option(const struct verb *v, const struct option_shown *o)
{
    printf("complete -c belay -n '__belay_verb %s' -l %s", v->name, o->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    if (o->takes)
        printf(takes_file(o) ? " -r" : " -x");
    if (lister_of(o->takes)) {
        printf(" -a '(%s 2>/dev/null)'", lister_of(o->takes));
    } else if (has_choices(o->takes)) {
        printf(" -a '");
        print_choices(o->takes);
        putchar('\'');
    }
    printf(" -d ");
    print_fish_quoted(o->help);
    putchar('\n');
}

static void print_fish_verb(const struct verb *v)
{
    printf("complete -c belay -n '__belay_verb' -f -a %s -d ", v->name);
    print_fish_quoted(v->summary);
    putchar('\n');
    each_option(v, print_fish_option);
    if (v->job_keys) {
        printf("complete -c belay -n '__belay_verb %s' -f -a '", v->name);
        print_keys(v, "", "= ");
        printf("'\n");
    }
    if (lister_of(v->arguments))
        printf("complete -c belay -n '__belay_verb %s' -f -a '(%s 2>/dev/null)'\n", v->name,
            lister_of(v->arguments));
    if (!has_choices(v->arguments))
        return;
    printf("complete -c belay -n '__belay_verb %s' -f -a '", v->name);
    print_choices(v->arguments);
    printf("'\n");
}

static void print_fish(void)
{
    printf("# fish completion of belay, made by: belay completion fish\n"
           "function __belay_verb -d 'whether the verb is this one; without arguments: whether "
           "there is none yet'\n"
           "    set -l words (commandline -opc)\n"
           "    test \"$words[2]\" = \"$argv[1]\"\n"
           "end\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        print_fish_verb(cli_verbs[i]);
    slurm_completion_fish();
}

/* ---- the verb ---- */

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(&verb_completion, argc, argv, false, NULL, NULL, &a);
    const char *shell = a.n_rest == 1 ? a.rest[0] : "";
    if (rc == 0 && str_eq(shell, "bash")) {
        print_bash();
    } else if (rc == 0 && str_eq(shell, "zsh")) {
        print_zsh();
    } else if (rc == 0 && str_eq(shell, "fish")) {
        print_fish();
    } else if (rc == 0) {
        cli_error("expected a shell: belay completion bash|zsh|fish");
        rc = CLI_USAGE;
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_completion = {"completion", "bash|zsh|fish",
    "print a completion script for a shell", run, NULL, false,
    .examples = "belay completion bash > ~/.local/share/bash-completion/completions/belay\n"};
