/** The signals that stop the service. A terminal that is closed sends SIGHUP. */
export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Ends a service that has opened nothing yet. */
export function endAtOnce(): void {
  process.exit(0);
}

// At SIGUSR1, Node would open its debugger, in which every program of this machine could read tokens and passwords. At
// SIGUSR2, the process would end at once.
for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => undefined);
