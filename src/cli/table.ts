/** @returns a line for each row, with columns as wide as their longest cell */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) =>
    // Math.max(...) of a long list would overflow the stack.
    rows.reduce((width, row) => Math.max(width, row[column]!.length), 0),
  );
  const padded = (cell: string, column: number) => cell.padEnd(widths[column]!);
  return rows.map((row) => row.map(padded).join('  ').trimEnd()).join('\n');
}
