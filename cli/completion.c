/* SPDX-License-Identifier: Apache-2.0
 *
 * belay completion bash|zsh|fish: a completion script, generated from the same tables as --help.
 */
#include "cli/verbs.h"

#include "base/str.h"
#include "cli/directives.h"
#include <stdio.h>

static int no_options(void *ctx, int val, const char *arg)
{
    (void)ctx, (void)val, (void)arg;
    return CLI_USAGE;
}

static void print_options(const struct verb *v)
{
    for (const struct poptOption *o = v->options; o && o->longName; o++)
        printf(" --%s", o->longName);
    for (size_t i = 0; v->job_flags && i < directives_count(); i++)
        printf(" --%s", directives_flag(i)->name);
    printf(" --json --help");
}

static void print_verbs(void)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        printf("%s%s", i ? " " : "", cli_verbs[i]->name);
}

static void print_bash(void)
{
    printf("# belay completion bash\n_belay()\n{\n    local words\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n  "
           "      words=\"");
    print_verbs();
    printf("\"\n    else\n        case \"${COMP_WORDS[1]}\" in\n");
    for (size_t i = 0; cli_verbs[i]; i++) {
        printf("        %s) words=\"", cli_verbs[i]->name);
        print_options(cli_verbs[i]);
        printf("\" ;;\n");
    }
    printf("        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
           "    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
           "complete -F _belay belay\n");
}

static void print_zsh(void)
{
    printf("#compdef belay\nautoload -U +X bashcompinit && bashcompinit\n");
    print_bash();
}

static void print_fish_quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++)
        printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar('\'');
}

static void print_fish_option(const char *verb, const char *name, char letter, bool takes, const char *help)
{
    printf("complete -c belay -n '__fish_seen_subcommand_from %s' -l %s", verb, name);
    if (letter)
        printf(" -s %c", letter);
    printf("%s -d ", takes ? " -r" : "");
    print_fish_quoted(help);
    putchar('\n');
}

static void print_fish(void)
{
    for (size_t i = 0; cli_verbs[i]; i++) {
        const struct verb *v = cli_verbs[i];
        printf("complete -c belay -n __fish_use_subcommand -a %s -d ", v->name);
        print_fish_quoted(v->summary);
        putchar('\n');
        for (const struct poptOption *o = v->options; o && o->longName; o++)
            print_fish_option(v->name, o->longName, o->shortName, o->argDescrip != NULL, o->descrip);
        for (size_t k = 0; v->job_flags && k < directives_count(); k++) {
            const struct directive_flag *f = directives_flag(k);
            print_fish_option(v->name, f->name, f->letter, f->value != NULL, f->help);
        }
    }
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(&verb_completion, argc, argv, false, no_options, NULL, &a);
    const char *shell = a.n_rest == 1 ? a.rest[0] : "";
    if (rc == 0 && str_eq(shell, "bash")) {
        print_bash();
    } else if (rc == 0 && str_eq(shell, "zsh")) {
        print_zsh();
    } else if (rc == 0 && str_eq(shell, "fish")) {
        print_fish();
    } else if (rc == 0) {
        cli_error("for which shell? belay completion bash|zsh|fish");
        rc = CLI_USAGE;
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_completion = {
    "completion", "bash|zsh|fish", "print a completion script for a shell", run, NULL, false};
