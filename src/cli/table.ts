/**
 * @param align where the columns after the first have their text, such as `end` for numbers
 * @returns a line for each row, with columns as wide as their longest cell
 */
export function tableOf(
  rows: readonly (readonly string[])[],
  align: 'start' | 'end' = 'start',
): string {
  const widths = rows[0]!.map((_, column) =>
    // Math.max(...) of a long list would overflow the stack.
    rows.reduce((width, row) => Math.max(width, row[column]!.length), 0),
  );
  const padded = (cell: string, column: number) =>
    column > 0 && align === 'end' ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!);
  return rows.map((row) => row.map(padded).join('  ').trimEnd()).join('\n');
}
