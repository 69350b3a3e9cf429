/* SPDX-License-Identifier: Apache-2.0 */
#include "money/plan.h"

#include "base/str.h"
#include "base/yaml.h"
#include "cloud/catalogue.h"
#include <stdio.h>
#include <string.h>

#define RENT_LAMBDA "lambda"

/* ---- figures ---- */

const char *plan_number(int64_t micro, char out[PLAN_NUMBER_MAX])
{
    snprintf(out, PLAN_NUMBER_MAX, "%s%lld.%06lld", micro < 0 ? "-" : "",
        (long long)(micro < 0 ? -micro : micro) / BREAKEVEN_MICRO,
        (long long)(micro < 0 ? -micro : micro) % BREAKEVEN_MICRO);
    for (size_t n = strlen(out); out[n - 1] == '0' || out[n - 1] == '.'; n--) {
        bool point = out[n - 1] == '.';
        out[n - 1] = 0;
        if (point)
            break;
    }
    return out;
}

static void set_default(struct figure *f, const struct figure_info *info)
{
    *f = (struct figure){.micro = info->fallback, .origin = FIGURE_DEFAULT};
    STR_COPY(f->source, info->source);
}

static void set_from(
    struct figure *f, int64_t micro, enum breakeven_origin origin, const char *source)
{
    *f = (struct figure){.micro = micro, .origin = origin};
    STR_COPY(f->source, source);
}

int plan_set(struct figure *f, const struct figure_info *info, const char *text, struct err *e)
{
    char shown[STR_SHOW_MAX], min[PLAN_NUMBER_MAX], max[PLAN_NUMBER_MAX];
    int64_t micro;
    struct err not_read;
    if (str_to_uusd(text, &micro, &not_read) != 0 || micro < info->min || micro > info->max ||
        (info->whole && micro % BREAKEVEN_MICRO != 0))
        return err_set(e, ERR_INVALID, "expected %s in %s .. %s%s%s, found %s",
            info->whole ? "a whole number" : "a number", plan_number(info->min, min),
            plan_number(info->max, max), info->unit[0] ? ", " : "", info->unit,
            str_show(text, shown));
    set_from(f, micro, FIGURE_GIVEN, "");
    return 0;
}

static const struct figure_info utilisation_info = {"utilisation_percent", "% of a GPU's hours",
    BREAKEVEN_MICRO, 100LL * BREAKEVEN_MICRO, 80LL * BREAKEVEN_MICRO,
    "assumed: --utilization measured asks belayd", false, 0, 0};

int plan_set_utilisation(struct breakeven_plan *p, const char *text, struct err *e)
{
    char number[PLAN_NUMBER_MAX], shown[STR_SHOW_MAX];
    size_t n = strlen(text);
    int64_t micro;
    struct err not_read;
    bool percent = n > 0 && text[n - 1] == '%';
    snprintf(number, sizeof number, "%.*s", (int)(n < sizeof number ? n - percent : 0), text);
    if (str_to_uusd(number, &micro, &not_read) != 0)
        micro = 0;
    if (!percent && micro <= BREAKEVEN_MICRO)
        micro *= 100;
    if (micro < utilisation_info.min || micro > utilisation_info.max)
        return err_set(e, ERR_INVALID, "expected 1%% to 100%%, or the word measured, found %s",
            str_show(text, shown));
    set_from(&p->utilisation, micro, FIGURE_GIVEN, "");
    return 0;
}

int plan_measured(
    struct breakeven_plan *p, int64_t micro_percent, const char *source, struct err *e)
{
    char number[PLAN_NUMBER_MAX];
    if (micro_percent < utilisation_info.min)
        return err_set(e, ERR_INVALID,
            "only %s %% was productive (%s): too little for a comparison; give a number",
            plan_number(micro_percent, number), source);
    set_from(&p->utilisation,
        micro_percent < utilisation_info.max ? micro_percent : utilisation_info.max,
        FIGURE_MEASURED, source);
    return 0;
}

void plan_init(struct breakeven_plan *ret_plan)
{
    *ret_plan = (struct breakeven_plan){.months = 36};
    set_default(&ret_plan->utilisation, &utilisation_info);
    for (int i = 0; i < OWN_FIGURES; i++)
        set_default(&ret_plan->own[i], &own_figures[i]);
}

/* ---- offers ---- */

static void init_rent(struct breakeven_rent *r, enum rent_market market)
{
    *r = (struct breakeven_rent){.market = market};
    for (int i = 0; i < RENT_FIGURES; i++)
        set_default(&r->f[i], &rent_figures[i]);
}

/* "aws/p5.48xlarge", with the machine's region if the catalogue has prices for only one. */
static int find_type(const char *text, struct catalogue_type *ret_type, struct err *e)
{
    static const char *const providers[] = {"aws", "azure", "gcp", "lambda", NULL};
    const char *slash = strchr(text, '/');
    char shown[STR_SHOW_MAX];
    for (int i = 0; slash && providers[i]; i++)
        if (strlen(providers[i]) == (size_t)(slash - text) && str_starts(text, providers[i]))
            return catalogue_find(providers[i], slash + 1, ret_type, e);
    return err_set(e, ERR_INVALID,
        "expected PROVIDER/TYPE of aws, azure, gcp or lambda, as aws/p5.48xlarge, found %s",
        str_show(text, shown));
}

/* Fills in from the catalogue the figures that the plan does not give. */
static void take_from_catalogue(struct breakeven_rent *r, const struct catalogue_type *t)
{
    bool spot = r->market == RENT_SPOT;
    int64_t uusd_h = spot ? t->spot_uusd_h : t->on_demand_uusd_h;
    if (r->f[RENT_USD_HOUR].origin == FIGURE_DEFAULT && uusd_h > 0)
        set_from(&r->f[RENT_USD_HOUR], uusd_h, FIGURE_CATALOGUE,
            catalogue_source(t->provider, t->type, spot));
    if (r->f[RENT_GPUS].origin == FIGURE_DEFAULT && t->gpus > 0)
        set_from(
            &r->f[RENT_GPUS], (int64_t)t->gpus * BREAKEVEN_MICRO, FIGURE_CATALOGUE, "of the type");
    if (spot && r->f[RENT_ON_DEMAND_USD_HOUR].origin == FIGURE_DEFAULT)
        set_from(&r->f[RENT_ON_DEMAND_USD_HOUR], t->on_demand_uusd_h, FIGURE_CATALOGUE,
            catalogue_source(t->provider, t->type, false));
    STR_COPY(r->gpu_model, t->gpu_model);
}

static void name_rent(struct breakeven_rent *r, const char *what)
{
    char term[32] = "";
    if (r->market == RENT_RESERVED)
        snprintf(
            term, sizeof term, ", %lld months", (long long)r->f[RENT_TERM].micro / BREAKEVEN_MICRO);
    snprintf(r->name, sizeof r->name, "%.32s%s%.12s%s", what, what[0] ? " " : "",
        rent_market_names[r->market], term);
}

static struct breakeven_rent *next_rent(struct breakeven_plan *p, struct err *e)
{
    if (p->n_rents < BREAKEVEN_RENTS_MAX)
        return &p->rents[p->n_rents++];
    err_set(e, ERR_INVALID, "at most %d ways to rent can be compared at once", BREAKEVEN_RENTS_MAX);
    return NULL;
}

static int add_found(struct breakeven_plan *p, enum rent_market market,
    const struct catalogue_type *t, struct err *e)
{
    char what[BREAKEVEN_NAME_MAX];
    struct breakeven_rent *r = next_rent(p, e);
    if (!r)
        return ERR_INVALID;
    init_rent(r, market);
    take_from_catalogue(r, t);
    snprintf(what, sizeof what, "%s/%s", t->provider, t->type);
    name_rent(r, what);
    return 0;
}

int plan_add_type(struct breakeven_plan *p, const char *type, struct err *e)
{
    const char *const *names = catalogue_names(RENT_LAMBDA);
    struct catalogue_type t, other;
    int rc = find_type(type, &t, e);
    if (rc != 0)
        return rc;
    if (t.gpus == 0)
        return err_set(
            e, ERR_INVALID, "%s has no GPUs: what is compared here is the GPU-hour", t.type);
    rc = add_found(p, RENT_ON_DEMAND, &t, e);
    if (rc == 0 && t.spot_uusd_h > 0)
        rc = add_found(p, RENT_SPOT, &t, e);
    for (size_t i = 0; rc == 0 && names[i]; i++)
        if (!str_eq(t.provider, RENT_LAMBDA) &&
            catalogue_find(RENT_LAMBDA, names[i], &other, NULL) == 0 &&
            str_eq(other.gpu_model, t.gpu_model) && other.gpus == t.gpus &&
            other.gpu_memory_mib == t.gpu_memory_mib)
            rc = add_found(p, RENT_ON_DEMAND, &other, e);
    if (p->own[OWN_GPUS].origin == FIGURE_DEFAULT)
        set_from(&p->own[OWN_GPUS], (int64_t)t.gpus * BREAKEVEN_MICRO, FIGURE_CATALOGUE,
            "as the machine that it is compared with");
    return rc;
}

/* Reads the term of "36=2.10"; returns the price. */
static const char *read_term(struct breakeven_rent *r, const char *text, struct err *e)
{
    const char *equals = strchr(text, '=');
    char months[PLAN_NUMBER_MAX], shown[STR_SHOW_MAX];
    size_t n = equals ? (size_t)(equals - text) : 0;
    snprintf(months, sizeof months, "%.*s", (int)(n < sizeof months ? n : 0), text);
    if (n > 0 && plan_set(&r->f[RENT_TERM], &rent_figures[RENT_TERM], months, e) == 0)
        return equals + 1;
    err_set(e, ERR_INVALID,
        "expected MONTHS=USD, the term in months, 1 to 60, and dollars of a GPU-hour, as 36=2.10, "
        "found %s",
        str_show(text, shown));
    return NULL;
}

int plan_add_price(
    struct breakeven_plan *p, enum rent_market market, const char *usd_gpu_hour, struct err *e)
{
    char made[BREAKEVEN_NAME_MAX];
    struct breakeven_rent *r = next_rent(p, e);
    if (!r)
        return ERR_INVALID;
    init_rent(r, market);
    const char *price = market == RENT_RESERVED ? read_term(r, usd_gpu_hour, e) : usd_gpu_hour;
    if (!price || plan_set(&r->f[RENT_USD_HOUR], &rent_figures[RENT_USD_HOUR], price, e) != 0)
        return ERR_INVALID;
    name_rent(r, "");
    STR_COPY(made, r->name);
    snprintf(r->name, sizeof r->name, "%.40s at $%.24s", made, price);
    return 0;
}

int plan_interruptions(
    struct breakeven_plan *p, const struct figure *percent_an_hour, struct err *e)
{
    int rc = err_set(e, ERR_INVALID, "no spot machines to compare");
    for (size_t i = 0; i < p->n_rents; i++) {
        if (p->rents[i].market != RENT_SPOT)
            continue;
        p->rents[i].f[RENT_INTERRUPTIONS] = *percent_an_hour;
        rc = 0;
    }
    return rc;
}

/* ---- the file ---- */

static void read_figure(struct yaml_reader *r, const struct figure_info *info, struct figure *f)
{
    struct err e;
    const struct yaml_node *n = yaml_opt(r, info->key);
    if (n && n->type != YAML_SCALAR)
        yaml_reader_fail(r, n, "expected a number, found a list or a mapping");
    else if (n && r->rc == 0 && plan_set(f, info, n->text, &e) != 0)
        yaml_reader_fail(r, n, "%s", e.text);
}

static void read_name(struct yaml_reader *r, char name[BREAKEVEN_NAME_MAX], const char *fallback)
{
    str_copy(name, BREAKEVEN_NAME_MAX, yaml_opt_str(r, "name", BREAKEVEN_NAME_MAX - 1, fallback));
    str_sanitize(name, strlen(name));
}

static int64_t read_uusd(struct yaml_reader *r, const char *key)
{
    return yaml_opt_uusd(r, key, 0);
}

static void read_others(struct yaml_reader *r, struct breakeven_plan *p)
{
    const struct yaml_node *list = yaml_opt_seq(r, "other", BREAKEVEN_OTHERS_MAX);
    for (size_t i = 0; list && i < list->n_items && r->rc == 0; i++) {
        struct breakeven_other *o = &p->others[p->n_others++];
        struct yaml_reader item;
        yaml_reader_init(&item, r->file, list->items[i], r->e);
        read_name(&item, o->name, "");
        o->once_uusd = read_uusd(&item, "usd_once");
        o->month_uusd = read_uusd(&item, "usd_per_month");
        if (o->name[0] == 0 || (o->once_uusd == 0 && o->month_uusd == 0))
            yaml_reader_fail(&item, NULL, "expected a name, and usd_once, usd_per_month or both");
        yaml_reader_finish_in(r, &item);
    }
}

static void read_own(struct yaml_reader *top, struct breakeven_plan *p)
{
    const struct yaml_node *map = yaml_opt_map(top, "own");
    struct yaml_reader r;
    if (!map || top->rc)
        return;
    yaml_reader_init(&r, top->file, map, top->e);
    for (int i = 0; i < OWN_FIGURES; i++)
        read_figure(&r, &own_figures[i], &p->own[i]);
    read_others(&r, p);
    yaml_reader_finish_in(top, &r);
}

/* Reads the figures of the rent's market; a figure of another market is an error. */
static void read_rent_figures(struct yaml_reader *r, struct breakeven_rent *rent)
{
    for (int i = 0; i < RENT_FIGURES; i++) {
        const struct figure_info *info = &rent_figures[i];
        if (info->markets == 0 || (info->markets & RENT_BIT(rent->market)))
            read_figure(r, info, &rent->f[i]);
        else if (yaml_opt(r, info->key))
            yaml_reader_fail(r, yaml_opt(r, info->key), "does not apply to %s machines",
                rent_market_names[rent->market]);
    }
}

static void read_gpu_price(struct yaml_reader *r, struct breakeven_rent *rent)
{
    const struct yaml_node *n = yaml_opt(r, "usd_per_gpu_hour");
    struct figure price;
    struct err e;
    if (!n)
        return;
    if (rent->f[RENT_USD_HOUR].origin == FIGURE_GIVEN || rent->f[RENT_GPUS].origin == FIGURE_GIVEN)
        yaml_reader_fail(r, n,
            "is the price of one GPU: usd_per_hour and gpus are another way to say it, give one of "
            "them");
    else if (n->type != YAML_SCALAR)
        yaml_reader_fail(r, n, "expected a number, found a list or a mapping");
    else if (plan_set(&price, &rent_figures[RENT_USD_HOUR], n->text, &e) != 0)
        yaml_reader_fail(r, n, "%s", e.text);
    else
        rent->f[RENT_USD_HOUR] = price;
    if (r->rc == 0)
        set_from(&rent->f[RENT_GPUS], BREAKEVEN_MICRO, FIGURE_GIVEN, "");
}

static void read_type(struct yaml_reader *r, struct breakeven_rent *rent, const char **ret_what)
{
    const char *type = yaml_opt_str(r, "type", 2 * CATALOGUE_NAME_MAX, NULL),
               *region = yaml_opt_str(r, "region", CATALOGUE_NAME_MAX, NULL);
    struct catalogue_type t;
    struct err e;
    *ret_what = type ? type : "";
    if (region && !type)
        yaml_reader_fail(r, yaml_opt(r, "region"),
            "is of a type of the catalogue: give type too, or leave it out");
    bool priced = rent->f[RENT_USD_HOUR].origin == FIGURE_GIVEN;
    if (!type || r->rc || (priced && find_type(type, &t, NULL) != 0))
        return;
    if (find_type(type, &t, &e) != 0) {
        yaml_reader_fail(r, yaml_opt(r, "type"),
            "%s; with usd_per_hour and gpus it need not be in the catalogue", e.text);
        return;
    }
    const char *known = catalogue_region(t.provider, t.type);
    if (!priced && region && known[0] && !str_eq(region, known)) {
        yaml_reader_fail(r, yaml_opt(r, "region"),
            "the catalogue has prices of %s alone: give usd_per_hour", known);
        return;
    }
    if (t.gpus == 0)
        yaml_reader_fail(r, yaml_opt(r, "type"),
            "%s has no GPUs: what is compared here is the GPU-hour", t.type);
    else
        take_from_catalogue(rent, &t);
}

static void check_rent(struct yaml_reader *r, const struct breakeven_rent *rent)
{
    const struct figure *f = rent->f;
    if (f[RENT_USD_HOUR].micro == 0)
        yaml_reader_fail(r, NULL, "what does it cost? %s",
            rent->market == RENT_SPOT
                ? "The catalogue has no spot price of it: give usd_per_hour"
                : "Give usd_per_hour and gpus, usd_per_gpu_hour, or a type that the catalogue has");
    else if (rent->market == RENT_RESERVED && f[RENT_USD_HOUR].origin == FIGURE_CATALOGUE &&
             f[RENT_DISCOUNT].origin == FIGURE_DEFAULT)
        yaml_reader_fail(r, NULL,
            "the catalogue has no prices of reserved machines: give usd_per_hour, or "
            "discount_percent off the on-demand price");
    else if (f[RENT_WITHOUT_SPOT].micro > 0 && f[RENT_ON_DEMAND_USD_HOUR].micro == 0)
        yaml_reader_fail(
            r, NULL, "without_spot_percent needs on_demand_usd_per_hour, which is paid then");
}

static void read_rents(struct yaml_reader *top, struct breakeven_plan *p)
{
    const struct yaml_node *list = yaml_opt_seq(top, "rent", BREAKEVEN_RENTS_MAX);
    for (size_t i = 0; list && i < list->n_items && top->rc == 0; i++) {
        struct breakeven_rent *rent = &p->rents[p->n_rents++];
        struct yaml_reader r;
        const char *what = "";
        yaml_reader_init(&r, top->file, list->items[i], top->e);
        init_rent(
            rent, (enum rent_market)yaml_opt_enum(&r, "market", rent_market_names, RENT_ON_DEMAND));
        read_rent_figures(&r, rent);
        read_gpu_price(&r, rent);
        read_type(&r, rent, &what);
        check_rent(&r, rent);
        name_rent(rent, what);
        char made[BREAKEVEN_NAME_MAX];
        STR_COPY(made, rent->name);
        read_name(&r, rent->name, made);
        yaml_reader_finish_in(top, &r);
    }
}

/* A number that may be negative; 0 if missing. */
static double read_number(struct yaml_reader *r, const char *key, double min, double max)
{
    const struct yaml_node *n = yaml_opt(r, key);
    int64_t micro = 0;
    struct err e;
    char shown[STR_SHOW_MAX];
    if (!n)
        return 0;
    bool minus = n->type == YAML_SCALAR && n->text[0] == '-';
    if (n->type == YAML_SCALAR && str_to_uusd(n->text + minus, &micro, &e) == 0) {
        double v = (minus ? -1.0 : 1.0) * (double)micro / BREAKEVEN_MICRO;
        if (v >= min && v <= max)
            return v;
    }
    yaml_reader_fail(r, n, "expected a number in %g .. %g, found %s", min, max,
        n->type == YAML_SCALAR ? str_show(n->text, shown) : "a list or a mapping");
    return 0;
}

static void read_what_ifs(struct yaml_reader *top, struct breakeven_plan *p)
{
    const struct yaml_node *list = yaml_opt_seq(top, "what_if", BREAKEVEN_WHAT_IFS_MAX);
    p->what_ifs_given = list != NULL;
    for (size_t i = 0; list && i < list->n_items && top->rc == 0; i++) {
        struct breakeven_what_if *w = &p->what_ifs[p->n_what_ifs++];
        struct yaml_reader r;
        yaml_reader_init(&r, top->file, list->items[i], top->e);
        read_name(&r, w->name, "");
        w->utilisation_points = read_number(&r, "utilisation_points", -100, 100);
        w->spot_times = read_number(&r, "spot_price_times", 0.01, 100);
        w->power_times = read_number(&r, "power_price_times", 0.01, 100);
        w->better_times = read_number(&r, "better_times", 1, 100);
        w->better_after = (int)yaml_opt_i64(&r, "after_months", 0, BREAKEVEN_MONTHS, 0);
        if (w->name[0] == 0)
            yaml_reader_fail(&r, NULL, "\"name\" is missing");
        if (w->better_after > 0 && w->better_times == 0)
            yaml_reader_fail(&r, NULL, "after_months is of better_times: give both");
        if (w->utilisation_points == 0 && w->spot_times == 0 && w->power_times == 0 &&
            w->better_times == 0)
            yaml_reader_fail(&r, NULL,
                "what is different? utilisation_points, spot_price_times, power_price_times, or "
                "better_times and after_months");
        yaml_reader_finish_in(top, &r);
    }
}

int plan_read(const char *file, const char *text, size_t n, struct breakeven_plan *p, struct err *e)
{
    struct yaml_node *root;
    struct yaml_reader r;
    int rc = yaml_parse(file, text, n, &root, e);
    if (rc != 0)
        return rc;
    yaml_reader_init(&r, file, root, e);
    read_figure(&r, &utilisation_info, &p->utilisation);
    p->months = (int)yaml_opt_i64(&r, "months", 1, BREAKEVEN_MONTHS, p->months);
    read_own(&r, p);
    read_rents(&r, p);
    read_what_ifs(&r, p);
    rc = yaml_reader_finish(&r);
    yaml_node_free(root);
    return rc;
}

/* ---- derived figures ---- */

/* From NVIDIA's data sheets, for the boards that clouds use: SXM where there are two forms. */
static const struct {
    const char *model;
    int64_t watts;
} boards[] = {{"V100", 300}, {"A100", 400}, {"H100", 700}, {"H100 PCIe", 350}, {"H200", 700},
    {"B200", 1000}, {"T4", 70}, {"L4", 72}, {"A10", 150}, {"L40S", 350}, {"RTX A6000", 300}};

static void choose_power(struct breakeven_plan *p)
{
    char source[BREAKEVEN_SOURCE_MAX];
    struct figure *kw = &p->own[OWN_KW], *idle = &p->own[OWN_IDLE_KW];
    for (size_t i = 0; kw->origin == FIGURE_DEFAULT && i < sizeof boards / sizeof boards[0]; i++) {
        if (!str_eq(p->rents[0].gpu_model, boards[i].model))
            continue;
        snprintf(source, sizeof source,
            "assumed: rated power of the board, %s (NVIDIA's data sheet), without the rest of its "
            "node: measure it at the socket",
            boards[i].model);
        set_from(kw, boards[i].watts * (BREAKEVEN_MICRO / 1000), FIGURE_DEFAULT, source);
        break;
    }
    if (idle->origin == FIGURE_DEFAULT)
        idle->micro = kw->micro;
}

static void add_usual(struct breakeven_plan *p)
{
    static const struct breakeven_what_if usual[] = {
        {.name = "utilisation falls by 10 points", .utilisation_points = -10},
        {.name = "a generation 3 times better after 18 months",
            .better_times = 3,
            .better_after = 18},
        {.name = "spot prices double", .spot_times = 2},
    };
    p->n_what_ifs = sizeof usual / sizeof usual[0];
    memcpy(p->what_ifs, usual, sizeof usual);
}

int plan_complete(struct breakeven_plan *p, struct err *e)
{
    if (p->own[OWN_NODE_USD].micro == 0)
        return err_set(e, ERR_INVALID,
            "what does a node cost? own: {node_usd: 425000} in the file, or --node-usd 425000");
    if (p->n_rents == 0)
        return err_set(e, ERR_INVALID,
            "what is it compared with? rent: in the file, --type PROVIDER/TYPE for a machine of "
            "the catalogue, or --price for dollars of a GPU-hour");
    choose_power(p);
    if (!p->what_ifs_given)
        add_usual(p);
    return 0;
}
