/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of a plan: names, limits and defaults. A default names its source, or says that it is
 * assumed; a figure without a reasonable default is not counted, and reported as such.
 */
#include "money/breakeven.h"

/* clang-format off */
#define M(x) ((int64_t)((x) * 1000000.0 + 0.5))
#define SPOT RENT_BIT(RENT_SPOT)
#define RESERVED RENT_BIT(RENT_RESERVED)
#define HOURLY (RENT_BIT(RENT_ON_DEMAND) | SPOT)

const struct figure_info own_figures[OWN_FIGURES] = {
    [OWN_NODES] = {"nodes", "nodes", M(1), M(100000), M(1), "assumed", true, 0},
    [OWN_GPUS] = {"gpus_per_node", "GPUs", M(1), M(1024), M(8), "assumed", true, 0},
    [OWN_NODE_USD] = {"node_usd", "$ a node", 0, M(1e9), 0, "", false, 0},
    [OWN_YEARS] = {"depreciation_years", "years", M(1), M(10), M(3),
        "assumed: as long as the longest terms of reserved machines", false, 0},
    [OWN_RESALE] = {"resale_percent", "% of the price", 0, M(100), 0,
        "assumed: no resale value", false, 0},
    [OWN_SPARES] = {"spares_percent", "% of the hardware", 0, M(100), 0,
        FIGURE_NOT_COUNTED, false, 0},
    [OWN_MAINTENANCE] = {"maintenance_percent_per_year", "% of the hardware a year", 0, M(100), 0,
        FIGURE_NOT_COUNTED, false, 0},
    [OWN_REFRESH] = {"refresh_percent", "% of the first price", 0, M(200), M(100),
        "assumed: replaced at the same price after the depreciation", false, 0},
    [OWN_KW] = {"kw_per_gpu", "kW a GPU at work", 0, M(10), M(0.7),
        "assumed: rated power of an H100 SXM board (NVIDIA's data sheet): measure it at the"
        " socket", false, 0},
    [OWN_IDLE_KW] = {"idle_kw_per_gpu", "kW a GPU at rest", 0, M(10), 0,
        "assumed: as at work", false, 0},
    [OWN_PUE] = {"pue", "", M(1), M(5), M(1.56),
        "the mean of the Uptime Institute's Global Data Center Survey of 2024", false, 0},
    [OWN_KWH] = {"usd_per_kwh", "$ a kWh", 0, M(10), M(0.10),
        "assumed: between US industrial and commercial rates (EIA, Electric Power Monthly, 2024)",
        false, 0},
    [OWN_SPACE_NODE] = {"space_usd_per_node_month", "$ a node and month", 0, M(1e6), 0,
        FIGURE_NOT_COUNTED, false, 0},
    [OWN_SPACE_KW] = {"space_usd_per_kw_month", "$ a kW and month", 0, M(1e6), 0,
        FIGURE_NOT_COUNTED, false, 0},
    [OWN_NETWORK_HOUR] = {"network_usd_per_gpu_hour", "$ a productive GPU-hour", 0, M(1e4), 0,
        FIGURE_NOT_COUNTED, false, 0},
    [OWN_NETWORK_MONTH] = {"network_usd_per_month", "$ a month", 0, M(1e8), 0,
        FIGURE_NOT_COUNTED, false, 0},
    [OWN_STAFF] = {"staff", "people", 0, M(10000), 0, FIGURE_NOT_COUNTED, false, 0},
    [OWN_STAFF_USD] = {"staff_usd_per_year", "$ each a year", 0, M(1e7), M(250000),
        "assumed, including the employer's costs", false, 0, 1 + OWN_STAFF},
};

const struct figure_info rent_figures[RENT_FIGURES] = {
    [RENT_USD_HOUR] = {"usd_per_hour", "$ a machine and hour", 0, M(1e6), 0, "", false, 0},
    [RENT_GPUS] = {"gpus", "GPUs of a machine", M(1), M(1024), M(1),
        "assumed: the price is of one GPU", true, 0},
    [RENT_DISCOUNT] = {"discount_percent", "% off the price", 0, M(100), 0, "none", false, 0},
    [RENT_TERM] = {"term_months", "months", M(1), M(60), M(12), "assumed", true, RESERVED},
    [RENT_UPFRONT] = {"upfront_percent", "% paid at the beginning", 0, M(100), 0,
        "assumed: paid by the month", false, RESERVED},
    [RENT_INTERRUPTIONS] = {"interruptions_percent_per_hour", "% an hour", 0, M(100), M(2),
        "assumed: 2 % of the machines are reclaimed each hour", false, SPOT},
    [RENT_AT_RISK] = {"at_risk_minutes", "minutes of work", 0, M(1440), M(30),
        "assumed: half the time between two saves that are an hour apart", false, SPOT},
    [RENT_RESTART] = {"restart_minutes", "minutes", 0, M(1440), M(2.5),
        "assumed: 2 minutes to boot, half of one to restore, as belay simulate", false, SPOT},
    [RENT_SAVING] = {"saving_percent", "% of the time", 0, M(100), M(0.5),
        "assumed: 15 s of each hour, as belay simulate", false, SPOT},
    [RENT_WITHOUT_SPOT] = {"without_spot_percent", "% of the hours", 0, M(100), 0,
        "assumed: always available", false, SPOT},
    [RENT_ON_DEMAND_USD_HOUR] = {"on_demand_usd_per_hour", "$ a machine and hour", 0, M(1e6), 0,
        "none", false, SPOT, 1 + RENT_WITHOUT_SPOT},
    [RENT_IDLE] = {"idle_percent", "% besides the use", 0, M(100), 0,
        FIGURE_NOT_COUNTED, false, HOURLY},
    [RENT_EGRESS_GB] = {"egress_gb_per_day", "GB a day", 0, M(1e6), 0,
        FIGURE_NOT_COUNTED, false, 0},
    [RENT_EGRESS_USD] = {"egress_usd_per_gb", "$ a GB", 0, M(100), M(0.09),
        "assumed: AWS's price for the first 10 TB of a month", false, 0, 1 + RENT_EGRESS_GB},
    [RENT_STORAGE_GB] = {"storage_gb", "GB", 0, M(1e8), 0, FIGURE_NOT_COUNTED, false, 0},
    [RENT_STORAGE_USD] = {"storage_usd_per_gb_month", "$ a GB and month", 0, M(100), M(0.023),
        "assumed: AWS's price for the first 50 TB in S3", false, 0, 1 + RENT_STORAGE_GB},
    [RENT_STAFF] = {"staff", "people", 0, M(10000), 0, FIGURE_NOT_COUNTED, false, 0},
    [RENT_STAFF_USD] = {"staff_usd_per_year", "$ each a year", 0, M(1e7), M(250000),
        "assumed", false, 0, 1 + RENT_STAFF},
};
/* clang-format on */
