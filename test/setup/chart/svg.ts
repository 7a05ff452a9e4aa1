/** Shades that are visible on white and on black, because charts have no background. */
const TEXT_COLOR = '#7a7a7a';
export const GRID_COLOR = '#8888884d';

/** @returns an SVG document whose fonts and colors fit the other charts */
export function svgDocument(width: number, height: number, title: string, body: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="system-ui, sans-serif" font-size="14" fill="${TEXT_COLOR}">
<title>${escape(title)}</title>
${body}
</svg>
`;
}

/** @returns an element whose left end is at `x` unless `attributes` say otherwise */
export function svgText(x: number, y: number, value: string, attributes = ''): string {
  return `<text x="${x}" y="${y}" ${attributes}>${escape(value)}</text>`;
}

/** @returns round values from `low` to at least `high`, about five of them */
export function ticks(low: number, high: number): number[] {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough)!;
  const count = Math.ceil((high - low) / step);
  return Array.from({ length: count + 1 }, (_, index) => low + index * step);
}

/** One digit after the point is enough for pixels. */
export function roundPixels(value: number): number {
  return Math.round(value * 10) / 10;
}

function escape(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
