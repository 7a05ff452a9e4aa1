/**
 * @param database of a Postgres on this machine
 * @param userFile the users that may connect, without a password
 * @param settings those that are not the defaults of PgBouncer, besides
 * @returns pgbouncer.ini for transaction mode
 */
export function pgbouncerConfig(
  port: number,
  database: { readonly name: string; readonly port: number },
  userFile: string,
  settings: Readonly<Record<string, string>>,
): string {
  return `[databases]
${database.name} = host=127.0.0.1 port=${database.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${userFile}
pool_mode = transaction
${Object.entries(settings)
  .map(([name, value]) => `${name} = ${value}\n`)
  .join('')}`;
}
