import { readdir, readlink } from 'node:fs/promises';
import { untilNothingHeld } from '../time/until.js';

/** What this process holds open: descriptors, such as `12 socket:[345]`, and counts by kind, such as timers. */
export interface ProcessState {
  readonly descriptors: ReadonlySet<string>;
  readonly resources: ReadonlyMap<string, number>;
}

/**
 * Waits until this process holds no more than before.
 *
 * @throws Error that names what is still held
 */
export function untilReleased(before: ProcessState): Promise<void> {
  return untilNothingHeld(async () => {
    const { descriptors, resources } = await readProcessState();
    const opened = [...descriptors].filter((it) => !before.descriptors.has(it));
    const started = [...resources].filter(([kind, n]) => n > (before.resources.get(kind) ?? 0));
    return [
      ...opened.map((it) => `descriptor ${it}`),
      ...started.map(([kind, n]) => `${kind}: ${n}, before ${before.resources.get(kind) ?? 0}`),
    ];
  });
}

export async function readProcessState(): Promise<ProcessState> {
  const resources = new Map<string, number>();
  // Only what keeps the process alive: timers and sockets without a reference are not among these.
  for (const kind of process.getActiveResourcesInfo()) {
    resources.set(kind, (resources.get(kind) ?? 0) + 1);
  }
  return { descriptors: new Set(await openDescriptors()), resources };
}

/** @returns an empty list on a system without /proc */
async function openDescriptors(): Promise<string[]> {
  const numbers = await readdir('/proc/self/fd').catch(() => []);
  const links = await Promise.all(
    // The descriptor of the folder itself is closed by now.
    numbers.map((fd) =>
      readlink(`/proc/self/fd/${fd}`).then(
        (to) => `${fd} ${to}`,
        () => '',
      ),
    ),
  );
  // Node opens anonymous descriptors for its own threads when they need them.
  return links.filter((link) => link !== '' && !link.includes(' anon_inode:'));
}
