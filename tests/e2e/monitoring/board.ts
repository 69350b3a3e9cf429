// SPDX-License-Identifier: Apache-2.0
// The board as Grafana's own types describe it: test_board.py appends the board's JSON.
import type { GraphFieldConfig, VizLegendOptions, VizTooltipOptions } from "@grafana/schema";
import type {
    Dashboard,
    FieldConfig,
    Panel as AnyPanel,
    RowPanel,
} from "@grafana/schema/dist/esm/raw/dashboard/x/dashboard_types.gen";
import type { Options as StatOptions } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";

// Members of enums as JSON has them; whatever Grafana has a default for may be absent.
type Plain<T> = T extends string
    ? `${T}`
    : T extends (infer U)[]
      ? Plain<U>[]
      : T extends object
        ? { [K in keyof T]: Plain<T[K]> }
        : T;
type Part<T> = T extends (infer U)[]
    ? Part<U>[]
    : T extends object
      ? { [K in keyof T]?: Part<T[K]> }
      : T;

interface Query {
    refId: string;
    expr: string;
    legendFormat?: string;
    instant?: boolean;
    datasource: { type: "prometheus"; uid: string };
}

type Panel<Type, Options, Custom> = Plain<
    Required<Pick<AnyPanel, "id" | "title" | "description" | "gridPos" | "datasource">>
> & {
    type: Type;
    targets: Query[];
    options?: Plain<Part<Options>>;
    fieldConfig: {
        defaults: Plain<Omit<FieldConfig, "custom">> & { custom?: Plain<Part<Custom>> };
        overrides: [];
    };
};

type Row = Plain<Required<Pick<RowPanel, "type" | "id" | "title" | "collapsed" | "gridPos">>> & {
    panels: [];
};

type Board = Plain<
    Omit<Dashboard, "panels" | "templating" | "annotations" | "links" | "timepicker">
> & {
    templating: { list: Plain<Part<NonNullable<Dashboard["templating"]>["list"]>> };
    panels: (
        | Panel<"stat", StatOptions, never>
        | Panel<
              "timeseries",
              { legend: VizLegendOptions; tooltip: VizTooltipOptions },
              GraphFieldConfig
          >
        | Row
    )[];
};

export const board: Board =
