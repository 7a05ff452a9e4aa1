// Parts of an SVG document.

/** A shade that is visible on white and on black, because the chart has no background. */
const TEXT_COLOR = '#7a7a7a';

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

function escape(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
