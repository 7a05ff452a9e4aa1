import {
  GRID_COLOR,
  roundPixels as round,
  svgDocument,
  svgText as text,
  ticks,
} from '../test/setup/chart/svg.js';
import { LABELS, type ContenderName, type Summary } from './results.js';

const WIDTH = 880;
const MARGIN = 24;
const BAR_LEFT = 240;
const BAR_MAX = 340;
const BAR_HEIGHT = 22;
const BAR_STEP = 36;
const PLOT = { left: 90, width: 600, height: 260 } as const;

const OURS = '#2f9e5b';
const OTHERS = '#8a93a6';
const LINE_COLORS: Partial<Record<ContenderName, string>> = { ours: OURS, fastify: '#d9822b' };

/**
 * Draws bars of throughput, and lines of latency over the rate.
 *
 * @returns an SVG document
 */
export function drawChart(summaries: readonly Summary[], caption: string): string {
  const bars = drawBars(summaries.filter(({ part }) => part === 'speed'));
  const lines = drawLines(
    summaries.filter(({ part, isReached }) => part === 'rates' && isReached === true),
  );
  const panels: string[] = [];
  let top = MARGIN;
  for (const { body, height } of [bars, lines]) {
    if (height === 0) continue;
    panels.push(`<g transform="translate(0 ${top})">${body}</g>`);
    top += height + MARGIN;
  }
  panels.push(text(MARGIN, top, caption, 'font-size="12"'));
  const height = top + MARGIN;
  const title = 'Throughput and latency of the Plant Store and its peers';
  return svgDocument(WIDTH, height, title, panels.join('\n'));
}

interface Panel {
  readonly body: string;
  readonly height: number;
}

function drawBars(summaries: readonly Summary[]): Panel {
  if (summaries.length === 0) return { body: '', height: 0 };
  const highest = Math.max(...summaries.map(({ throughput }) => throughput));
  const body = [heading('Requests a second at full speed, and their latency')];
  summaries.forEach(({ contender, throughput, p50, p99 }, index) => {
    const y = 30 + index * BAR_STEP;
    const width = round((throughput / highest) * BAR_MAX);
    const middle = y + BAR_HEIGHT / 2 + 5;
    const latency =
      p50 === undefined || p99 === undefined
        ? ''
        : `, p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)} ms`;
    body.push(
      text(BAR_LEFT - 10, middle, LABELS[contender], 'text-anchor="end"'),
      `<rect x="${BAR_LEFT}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="3" fill="${contender === 'ours' ? OURS : OTHERS}"/>`,
      text(
        BAR_LEFT + width + 8,
        middle,
        `${Math.round(throughput).toLocaleString('en')}/s${latency}`,
      ),
    );
  });
  return { body: body.join('\n'), height: 30 + summaries.length * BAR_STEP };
}

function drawLines(summaries: readonly Summary[]): Panel {
  const points = summaries.flatMap(({ contender, rate, p50, p99 }) =>
    rate === undefined || p50 === undefined || p99 === undefined
      ? []
      : [{ contender, rate, p50, p99 }],
  );
  if (points.length === 0) return { body: '', height: 0 };
  const top = 40;
  const bottom = top + PLOT.height;
  const rates = ticks(0, Math.max(...points.map(({ rate }) => rate)));
  const maxRate = rates.at(-1)!;
  const lowest = stepBelow(Math.min(...points.map(({ p50 }) => p50)));
  const highest = stepAbove(Math.max(...points.map(({ p99 }) => p99)));
  const x = (rate: number) => round(PLOT.left + (rate / maxRate) * PLOT.width);
  const y = (value: number) =>
    round(bottom - (Math.log(value / lowest) / Math.log(highest / lowest)) * PLOT.height);

  const body = [heading('Latency at fixed rates, as far as they were reached')];
  for (const value of logTicks(lowest, highest)) {
    body.push(
      `<path d="M${PLOT.left} ${y(value)}h${PLOT.width}" stroke="${GRID_COLOR}"/>`,
      text(PLOT.left - 8, y(value) + 5, `${value} ms`, 'text-anchor="end"'),
    );
  }
  for (const rate of rates) {
    body.push(text(x(rate), bottom + 20, rate.toLocaleString('en'), 'text-anchor="middle"'));
  }
  body.push(
    text(PLOT.left + PLOT.width / 2, bottom + 42, 'requests a second', 'text-anchor="middle"'),
  );

  const labels: { y: number; text: string; color: string }[] = [];
  for (const [contender, group] of Map.groupBy(points, (point) => point.contender)) {
    const color = LINE_COLORS[contender] ?? OTHERS;
    for (const key of ['p50', 'p99'] as const) {
      const path = group.map((point) => `${x(point.rate)},${y(point[key])}`).join(' ');
      body.push(
        `<polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"${key === 'p99' ? ' stroke-dasharray="6 4"' : ''}/>`,
        ...group.map(
          (point) => `<circle cx="${x(point.rate)}" cy="${y(point[key])}" r="3" fill="${color}"/>`,
        ),
      );
      labels.push({ y: y(group.at(-1)![key]), text: `${key}, ${LABELS[contender]}`, color });
    }
  }
  body.push(
    ...spread(labels).map((label) =>
      text(PLOT.left + PLOT.width + 8, label.y + 5, label.text, `fill="${label.color}"`),
    ),
  );
  return { body: body.join('\n'), height: bottom + 50 };
}

/** Moves labels apart that would overlap. */
function spread<Label extends { y: number }>(labels: readonly Label[]): Label[] {
  let last = -Infinity;
  return labels
    .toSorted((a, b) => a.y - b.y)
    .map((label) => {
      last = Math.max(label.y, last + 17);
      return { ...label, y: last };
    });
}

/** @returns 1, 2 and 5 times the powers of ten from `low` to `high` */
export function logTicks(low: number, high: number): number[] {
  const values: number[] = [];
  for (let exponent = Math.floor(Math.log10(low)); 10 ** exponent <= high; exponent++) {
    for (const factor of [1, 2, 5]) {
      // Floating point does not hold powers of ten below one exactly, so divide by their inverse.
      const value = exponent < 0 ? factor / 10 ** -exponent : factor * 10 ** exponent;
      if (value >= low && value <= high) values.push(value);
    }
  }
  return values;
}

function stepBelow(value: number): number {
  return logTicks(value / 10, value).at(-1)!;
}

function stepAbove(value: number): number {
  return logTicks(value, value * 10)[0]!;
}

function heading(value: string): string {
  return text(MARGIN, 14, value, 'font-weight="600" font-size="16"');
}

function milliseconds(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toPrecision(2);
}
