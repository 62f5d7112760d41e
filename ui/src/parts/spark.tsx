/** Small charts as SVG paths. Each has a text beside it or a label: it is never the only form of its numbers. */

interface Props {
  values: readonly number[];
  label: string;
  width?: number;
  height?: number;
  kind?: "line" | "bars";
  tone?: "bad";
}

export function Spark({ values, label, width = 96, height = 20, kind = "line", tone }: Props) {
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length - (kind === "line" ? 1 : 0));
  const y = (value: number) => height - 1 - (value / most) * (height - 2);
  const path =
    kind === "line"
      ? values.map((value, index) => `${index ? "L" : "M"}${(index * step).toFixed(1)} ${y(value).toFixed(1)}`).join("")
      : values
          .map((value, index) =>
            value ? `M${(index * step).toFixed(1)} ${height}V${Math.min(y(value), height - 2).toFixed(1)}h${Math.max(1, step - 1).toFixed(1)}V${height}Z` : "",
          )
          .join("");
  return (
    <svg class="spark" data-kind={kind} data-tone={tone} viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
      <path d={path} />
    </svg>
  );
}
