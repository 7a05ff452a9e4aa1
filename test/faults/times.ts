/**
 * @param times of acknowledgments, ascending
 * @returns the longest time without an acknowledgment from `from` to `to`, in seconds
 */
export function longestGap(times: readonly number[], from: number, to: number): number {
  let last = from;
  let longest = 0;
  for (const time of [...times.filter((time) => time > from && time < to), to]) {
    longest = Math.max(longest, time - last);
    last = time;
  }
  return longest;
}

/** @returns minutes and seconds */
export function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
