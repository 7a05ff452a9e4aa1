import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../../setup/process/command.js';

/** @returns the only block of docs/scaling.md that begins with `firstLine`, so that the documented settings are the tested ones */
function documentedBlock(firstLine: string): string {
  const text = readFileSync(join(ROOT, 'docs/scaling.md'), 'utf8');
  const blocks = [...text.matchAll(/^```[a-z]*\n(.*?)^```$/gms)].map(([, block]) => block!);
  const found = blocks.filter((block) => block.startsWith(`${firstLine}\n`));
  if (found.length !== 1) {
    throw new Error(`docs/scaling.md needs one block that begins with "${firstLine}".`);
  }
  return found[0]!;
}

export interface NodePorts {
  readonly name: string;
  readonly port: number;
  readonly restPort: number;
}

/** @returns haproxy.cfg with the documented proxy, in front of these nodes */
export function haproxyConfig(port: number, nodes: readonly NodePorts[]): string {
  const lines = documentedBlock('listen postgres')
    .replace(/bind .*/, `bind 127.0.0.1:${port}`)
    .split('\n')
    .filter((line) => !/^ *server /.test(line) && line !== '');
  for (const { name, port, restPort } of nodes) {
    lines.push(`    server ${name} 127.0.0.1:${port} check port ${restPort}`);
  }
  return `${lines.join('\n')}\n`;
}

/** @returns the documented settings of PgBouncer, with others */
export function pgbouncerSettings(
  others: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  // With its own default of 15 seconds, PgBouncer refuses connections when the new primary is there.
  return { server_login_retry: '1', ...others };
}

/** What Patroni shares among the nodes, as documented. */
export interface SharedSettings {
  readonly postgresql: { readonly parameters: Readonly<Record<string, unknown>> };
}

export function documentedPatroniSettings(): SharedSettings {
  return parse(documentedBlock('ttl: 20')) as SharedSettings;
}

/** @returns the configuration of Patroni on one node, as JSON, which is YAML, too */
export function patroniConfig(
  node: NodePorts,
  shared: SharedSettings,
  etcdPort: number,
  folder: string,
  postgresPrograms: string,
): string {
  const rest = `127.0.0.1:${node.restPort}`;
  const address = `127.0.0.1:${node.port}`;
  return JSON.stringify({
    scope: 'plants',
    name: node.name,
    restapi: { listen: rest, connect_address: rest },
    // The second version of etcd's interface: with the third one, Patroni 3.0.2 loses acknowledged rows.
    etcd: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ...shared,
        postgresql: {
          ...shared.postgresql,
          pg_hba: [
            'local all all trust',
            'host all all 127.0.0.1/32 trust',
            'host replication all 127.0.0.1/32 trust',
          ],
        },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: `${folder}/${node.name}`,
      bin_dir: postgresPrograms,
      pgpass: `${folder}/${node.name}.pgpass`,
      authentication: {
        superuser: { username: 'postgres' },
        replication: { username: 'replicator' },
      },
      parameters: { unix_socket_directories: folder, shared_buffers: '64MB' },
    },
    watchdog: { mode: 'off' },
  });
}
