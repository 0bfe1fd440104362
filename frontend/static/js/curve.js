// Draws curves by epoch, of an accuracy or another figure: every seed a thin line, their mean a thick one with a band around it:
// the interval of an estimate, or else from the lowest to the highest seed. References
// (the paper's number) are dashed lines. Data comes from <script type="application/json" data-curve-for="ID">; when a live
// fragment brings new data the plot that stands is updated.
import uPlot from "../vendor/uPlot.esm.js";

const plots = new Map(); // element -> { plot, text }
const dark = matchMedia("(prefers-color-scheme: dark)");

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isShare = (data) => data.unit !== "number";
const written = (data, value) => {
  if (value == null) return "–";
  return isShare(data) ? `${(100 * value).toFixed(1)} %` : `${Number(value.toPrecision(3))}`;
};

const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

const average = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
const hasBand = (series) => series.length > 1 || series.some((one) => one.low);

/** Mean over the seeds and ends of the band at every x; null where none has a value. */
function summary(series, length) {
  const mean = [], low = [], high = [];
  for (let i = 0; i < length; i++) {
    const known = series.filter((one) => one.values[i] != null);
    const values = known.map((one) => one.values[i]);
    const isEstimated = known.some((one) => one.low);
    mean.push(average(values));
    low.push(isEstimated ? average(known.map((one) => one.low[i])) : values.length ? Math.min(...values) : null);
    high.push(isEstimated ? average(known.map((one) => one.high[i])) : values.length ? Math.max(...values) : null);
  }
  return { mean, low, high };
}

function columns({ x, series }) {
  const { mean, low, high } = summary(series, x.length);
  return [x, high, low, ...series.map((one) => one.values), mean];
}

/** Dashed horizontal lines with their names, drawn over the grid. */
function references(lines) {
  return (plot) => {
    const { ctx, bbox } = plot;
    const scale = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--ink");
    ctx.lineWidth = scale;
    ctx.font = `${12 * scale}px ${colour("--font")}`;
    ctx.textAlign = "right";
    ctx.lineJoin = "round";
    for (const line of lines) {
      const y = Math.round(plot.valToPos(line.value, "y", true)) + 0.5;
      if (y < bbox.top || y > bbox.top + bbox.height) continue;
      ctx.setLineDash([2 * scale, 3 * scale]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      const said = [`${line.name} ${(100 * line.value).toFixed(1)} %`, bbox.left + bbox.width, y - 5 * scale];
      ctx.setLineDash([]);
      ctx.strokeStyle = colour("--paper"); // around the words, so that a curve behind them does not cross them
      ctx.lineWidth = 4 * scale;
      ctx.strokeText(...said);
      ctx.strokeStyle = colour("--ink");
      ctx.lineWidth = scale;
      ctx.fillText(...said);
    }
    ctx.restore();
  };
}

/** From 0 to 100 % whatever the data is, so that pages can be compared; another figure from 0 to its highest. */
function range(data, low, high) {
  if (isShare(data)) return [0, 1];
  const top = high ?? 1, bottom = Math.min(0, low ?? 0);
  return [bottom, top > bottom ? top + (top - bottom) * 0.05 : bottom + 1];
}

function options(data, element) {
  const box = element.querySelector("[data-plot]");
  const axis = {
    stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
    font: `12px ${colour("--font")}`,
  };
  const title = { labelSize: 18, labelFont: axis.font, labelGap: 0 };
  const accent = colour("--accent");
  const many = data.series.length > 1;
  const hidden = { stroke: "transparent", points: { show: false } };
  const lines = data.lines ?? [];
  const alone = (plot, index) => plot.data[index].filter((value) => value != null).length < 2;
  return {
    width: box.clientWidth, height: box.clientHeight, padding: [8, 12, data.x.length ? 0 : 8, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    legend: { show: false },
    scales: { x: { time: false, range: (_, low, high) => [data.x_min ?? low ?? 1, Math.max(high ?? 1, data.x_max ?? 0, 2)] }, y: { range: (_, low, high) => range(data, low, high) } },
    axes: [
      { ...axis, ...title, label: capital(data.x_name), grid: { show: false }, size: 28, incrs: [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000] },
      isShare(data)
        ? { ...axis, ...title, label: data.y_title ?? "Share", size: 48, values: (_, ticks) => ticks.map((tick) => `${Math.round(100 * tick)} %`), incrs: [0.1, 0.2, 0.25, 0.5] }
        : { ...axis, ...title, label: capital(data.y_name), size: 64, values: (_, ticks) => ticks.map((tick) => written(data, tick)) },
    ],
    series: [
      {}, hidden, hidden,
      ...data.series.map(() => ({
        stroke: many ? colour("--strong-line") : "transparent", width: 1, points: { show: false },
      })),
      { stroke: accent, width: 2.5, points: { show: alone, size: 6, fill: accent } },
    ],
    bands: [{ series: [1, 2], fill: hasBand(data.series) ? `color-mix(in srgb, ${accent} 16%, transparent)` : "transparent" }],
    hooks: {
      draw: [references(lines)],
      setCursor: [(plot) => legend(element, data, plot.cursor.idx)],
    },
  };
}

/** One line of words under the plot: where the pointer is, else the last point. */
function legend(element, data, index) {
  const words = element.querySelector("[data-legend]");
  if (!data.x.length) {
    words.textContent = data.over ? "No epoch ended, so there is no figure." : "The first figure comes with the first epoch.";
    return;
  }
  const at = index ?? data.x.length - 1;
  const { mean, low, high } = summary(data.series, data.x.length);
  const ends = hasBand(data.series) && mean[at] != null ? ` (${written(data, low[at]).replace(" %", "")} to ${written(data, high[at])})` : "";
  words.textContent = `${data.x_name} ${data.x[at]}, ${data.y_name}: ${written(data, mean[at])}${ends}`;
}

function draw(element, text) {
  const known = plots.get(element);
  if (known?.text === text && known.plot.root.isConnected) return;
  const data = JSON.parse(text);
  const shape = JSON.stringify([data.series.map((one) => [one.name, !!one.low]), data.lines, data.x.length > 0]);
  if (known?.shape === shape && known.plot.root.isConnected) {
    known.data.x = data.x;
    known.data.series = data.series;
    known.plot.setData(columns(data));
    plots.set(element, { ...known, text });
  } else {
    known?.plot.destroy();
    const plot = new uPlot(options(data, element), columns(data), element.querySelector("[data-plot]"));
    plots.set(element, { plot, text, shape, data });
    resized.observe(element);
  }
  legend(element, data, null);
}

function drawAll() {
  for (const script of document.querySelectorAll("[data-curve-for]")) {
    const element = document.getElementById(script.dataset.curveFor);
    if (element) draw(element, script.textContent);
  }
}

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const plot = plots.get(target)?.plot;
    const box = target.querySelector("[data-plot]");
    if (plot && box.clientWidth) plot.setSize({ width: box.clientWidth, height: box.clientHeight });
  }
});

drawAll();
document.addEventListener("htmx:afterSettle", drawAll);
document.addEventListener("live:redrawn", drawAll);
dark.addEventListener("change", () => {
  for (const { plot } of plots.values()) plot.destroy();
  plots.clear();
  drawAll();
});
