import { GRID_COLOR, roundPixels, svgDocument, svgText, ticks } from '../setup/chart/svg.js';
import type { Category, Report } from './report.js';
import { clock } from './times.js';

const WIDTH = 880;
const PLOT = { left: 60, width: 800, height: 90 } as const;
const TOP = 124;
const PANEL_STEP = 138;

/** Seconds between two labels of the time. */
const TIME_STEPS = [10, 30, 60, 300, 600, Infinity] as const;

/** From the bottom to the top of a stack. */
const CATEGORIES: readonly { category: Category; label: string; color: string }[] = [
  { category: 'expected', label: 'as without faults', color: '#2f9e5b' },
  {
    category: 'unavailable',
    label: '503, a lost connection, or failed in the plain client',
    color: '#d9822b',
  },
  { category: 'other', label: 'anything else', color: '#c92a2a' },
];

/**
 * Draws the requests of every second by their outcome, below the moments of the faults.
 *
 * @returns an SVG document
 */
export function drawChart({ faults, targets, duration, environment }: Report): string {
  const x = (second: number) => roundPixels(PLOT.left + (second / duration) * PLOT.width);
  const bottom = TOP + targets.length * PANEL_STEP - (PANEL_STEP - PLOT.height);
  const body = [
    svgText(24, 24, 'Requests a second, by outcome', 'font-weight="600" font-size="16"'),
  ];
  let left = 24;
  for (const { label, color } of CATEGORIES) {
    body.push(
      `<rect x="${left}" y="36" width="12" height="12" fill="${color}"/>`,
      svgText(left + 18, 47, label, 'font-size="12"'),
    );
    left += 40 + label.length * 6;
  }

  targets.forEach(({ label, seconds }, index) => {
    const base = TOP + index * PANEL_STEP + PLOT.height;
    body.push(svgText(PLOT.left, base - PLOT.height - 12, label, 'font-weight="600"'));
    const totals = seconds.expected.map((_, second) =>
      CATEGORIES.reduce((sum, { category }) => sum + seconds[category][second]!, 0),
    );
    const values = ticks(0, Math.max(1, ...totals));
    const y = (count: number) => roundPixels(base - (count / values.at(-1)!) * PLOT.height);
    for (const value of [0, values.at(-1)!]) {
      body.push(
        `<path d="M${PLOT.left} ${y(value)}h${PLOT.width}" stroke="${GRID_COLOR}"/>`,
        svgText(PLOT.left - 8, y(value) + 5, String(value), 'text-anchor="end" font-size="12"'),
      );
    }
    // The widest stack first: each one covers the part that belongs to the outcomes below.
    for (let height = CATEGORIES.length; height > 0; height--) {
      const stacked = CATEGORIES.slice(0, height);
      if (seconds[stacked.at(-1)!.category].every((count) => count === 0)) continue;
      const steps = totals.map((_, second) => {
        const count = stacked.reduce((sum, { category }) => sum + seconds[category][second]!, 0);
        return `V${y(count)}H${x(Math.min(second + 1, duration))}`;
      });
      body.push(
        `<path d="M${PLOT.left} ${base}${steps.join('')}V${base}Z" fill="${stacked.at(-1)!.color}"/>`,
      );
    }
  });

  faults.forEach(({ at, kind }, index) => {
    // Two rows, because the names of neighbors may be wider than the time between them.
    const top = 72 + (index % 2) * 16;
    body.push(
      `<path d="M${x(at)} ${top + 4}V${bottom}" stroke="#7a7a7a" stroke-dasharray="3 3"/>`,
      svgText(x(at), top, kind, 'text-anchor="middle" font-size="11"'),
    );
  });
  const step = TIME_STEPS.find((seconds) => duration / seconds <= 12)!;
  for (let second = 0; second <= duration; second += step) {
    body.push(
      svgText(x(second), bottom + 20, clock(second), 'text-anchor="middle" font-size="12"'),
    );
  }
  const { patroni, postgres, cores, commit } = environment;
  const versions = [patroni, postgres].filter((version) => version !== undefined);
  const footer = [...versions, `${cores} cores`, `commit ${commit}`].join(', ');
  body.push(svgText(24, bottom + 46, footer, 'font-size="12"'));
  const title = 'Requests a second while the service and its database fail';
  return svgDocument(WIDTH, bottom + 60, title, body.join('\n'));
}
