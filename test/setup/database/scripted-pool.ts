import { afterEach, jest } from '@jest/globals';
import { DataSource } from 'typeorm';
import { useResources, type Resources } from '../jest/resources.js';
import { openScriptedPostgres, type Script, type ScriptedPostgres } from './scripted-postgres.js';

/** The time limit of a statement. */
export const TIMEOUT_MS = 1500;

/** A scripted server and pools of connections to it, for one test at a time. */
export class ScriptedPool {
  private readonly resources: Resources;
  private current: ScriptedPostgres | undefined;

  constructor() {
    // Before the resources are closed, which takes time: Jest calls these hooks in their order.
    afterEach(() => void jest.useRealTimers());
    this.resources = useResources();
  }

  get server(): ScriptedPostgres {
    return this.current!;
  }

  /** The names of the statements so far. */
  get names(): string[] {
    return this.server.statements.map(({ name }) => name);
  }

  /** The connections of the statements so far. */
  get serials(): number[] {
    return this.server.statements.map(({ connection }) => connection.serial);
  }

  /** Starts the server, and opens a pool. */
  async start(run?: Script['run'], poolSize = 1, login?: Script['login']): Promise<DataSource> {
    this.current = await openScriptedPostgres(this.resources, { run, login });
    return this.open(poolSize);
  }

  async open(poolSize = 1): Promise<DataSource> {
    const dataSource = await new DataSource({
      type: 'postgres',
      url: this.server.url,
      poolSize,
      installExtensions: false,
      // Connections that are idle need no timers.
      extra: { query_timeout: TIMEOUT_MS, idleTimeoutMillis: 0 },
    }).initialize();
    this.resources.defer(async () => {
      if (dataSource.isInitialized) await dataSource.destroy();
    });
    return dataSource;
  }
}
