/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a plan for breakeven.h: from a file, from single figures and offers of the catalogue,
 * completed with defaults. docs/reference/breakeven.md describes the file.
 */
#ifndef BELAY_MONEY_PLAN_H
#define BELAY_MONEY_PLAN_H

#include "money/breakeven.h"

/* All defaults, nothing to compare with. */
void plan_init(struct breakeven_plan *ret_plan);

/* Reads a file's n bytes into a freshly initialised plan. ERR_INVALID names the line and what to
 * do. */
int plan_read(
    const char *file, const char *text, size_t n, struct breakeven_plan *p, struct err *e);

/* Sets one figure from a text such as "0.56", replacing its value. ERR_INVALID. */
int plan_set(struct figure *f, const struct figure_info *info, const char *text, struct err *e);

/* "80%", "80" or "0.8". */
int plan_set_utilisation(struct breakeven_plan *p, const char *text, struct err *e);

/* Sets a measured utilisation, in millionths of a percent; source names its origin. ERR_INVALID
 * below 1 %. */
int plan_measured(
    struct breakeven_plan *p, int64_t micro_percent, const char *source, struct err *e);

/* Adds machines of the catalogue, "azure/Standard_ND96isr_H100_v5": on-demand, spot if it knows a
 * price, and the machines of Lambda that have the same GPUs. ERR_INVALID, ERR_NOT_FOUND: with the
 * nearest. */
int plan_add_type(struct breakeven_plan *p, const char *type, struct err *e);

/* Adds GPUs with a price per hour: "5.25"; reserved ones with their term in months, "36=2.10".
 * ERR_INVALID. */
int plan_add_price(
    struct breakeven_plan *p, enum rent_market market, const char *usd_gpu_hour, struct err *e);

/* Sets the interruption rate of all compared spot machines; overrides the file. ERR_INVALID: there
 * are none. */
int plan_interruptions(
    struct breakeven_plan *p, const struct figure *percent_an_hour, struct err *e);

/* Computes derived figures, adds the usual what-ifs if none was given, and reports what is missing
 * (ERR_INVALID). */
int plan_complete(struct breakeven_plan *p, struct err *e);

/* Formats a figure: "0.56". */
#define PLAN_NUMBER_MAX 32
const char *plan_number(int64_t micro, char out[PLAN_NUMBER_MAX]);

#endif
