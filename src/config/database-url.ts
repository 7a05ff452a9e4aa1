import { isIPv6 } from 'node:net';
import { distance } from 'fastest-levenshtein';
import { parse } from 'pg-connection-string';
import { describeFileError } from './file-error.js';

const MUST_BE = 'must be an address such as postgres://user:password@host:5432/database';

const MUST_ESCAPE =
  'must have special characters in its user, password and parameters escaped: / as %2F, # as %23, ? as %3F, @ as %40, : as %3A, % as %25';

const MUST_MATCH = 'must have one port, or one for each host';

const PRIMARY = 'must have no target_session_attrs, or read-write: the service needs the primary';

/** The values of libpq's target_session_attrs that a primary fulfils. */
const PRIMARY_ATTRS: readonly unknown[] = [undefined, 'any', 'read-write', 'primary'];

/** The parameters without which a connection to the server may be open to others. */
const TLS_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'];

/** The modes that pg knows, and `allow`, which libpq knows. pg takes any other word for a wish for TLS. */
const SSL_MODES = [
  'disable',
  'allow',
  'prefer',
  'require',
  'verify-ca',
  'verify-full',
  'no-verify',
];

/** A parameter of libpq that differs from `sslcert` in two letters, and means something else. */
const SIMILAR_PARAMETER = 'sslcrl';

/** Two letters that are swapped count as two. */
const MISTYPED_LETTERS = 2;

/**
 * Checks the address of a database. The message repeats no part of the address, because every part may belong to a
 * password.
 *
 * @returns the problem; undefined if pg can use the address
 */
export function problemOfDatabaseUrl(text: string): string | undefined {
  const [, authority, path = '', query = ''] =
    /^postgres(?:ql)?:\/\/([^/?#]*)([^?#]*)([^#]*)/i.exec(text) ?? [];
  if (authority === undefined) return MUST_BE;
  // An @ after the first / or ? shows that this / or ? is an unescaped character of the user or the password. pg would
  // take the rest of the password for the host, the database or the parameters, which appear in messages.
  if (path.includes('@') || query.includes('@')) return MUST_ESCAPE;
  // With two @, one of them is an unescaped character of the password, or a mistyped colon.
  if (authority.split('@').length > 2) return MUST_ESCAPE;
  // pg ignores everything from a # on.
  if (text.includes('#')) return MUST_ESCAPE;
  const mistyped = mistypedTlsParameter(query);
  if (mistyped !== undefined) {
    return `has a parameter that is nearly ${mistyped}, and has no effect: write it as ${mistyped}`;
  }
  try {
    decodeURIComponent(text);
    // Parsed with pg's own parser. It accepts addresses that are not URLs, such as one with an empty host, and reads
    // the certificate files that the parameters name.
    const { host, port, ...parameters } = parse(urlForPg(text)) as ReturnType<typeof parse> & {
      target_session_attrs?: string;
      sslmode?: string;
    };
    if (!PRIMARY_ATTRS.includes(parameters.target_session_attrs)) return PRIMARY;
    const { sslmode } = parameters;
    if (sslmode !== undefined && !SSL_MODES.includes(sslmode)) {
      return `must have one of these values of sslmode: ${SSL_MODES.join(', ')}`;
    }
    const hosts = host?.split(',') ?? [];
    const ports = port ? port.split(',') : [];
    if (hosts.length > 1 && !hosts.every(isHost)) return MUST_BE;
    if (!ports.every((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65535)) return MUST_BE;
    return ports.length < 2 || ports.length === hosts.length ? undefined : MUST_MATCH;
  } catch (error) {
    if (error instanceof URIError) return MUST_ESCAPE;
    return (error as NodeJS.ErrnoException).syscall === undefined
      ? MUST_BE
      : `names a file in sslrootcert, sslcert or sslkey that cannot be read: ${describeFileError(error)}`;
  }
}

/** pg ignores unknown parameters: with `sslmod=verify-full`, the password would be sent without TLS, and nobody would notice. */
function mistypedTlsParameter(query: string): string | undefined {
  const names = [...new URLSearchParams(query).keys()].filter(
    (name) => !TLS_PARAMETERS.includes(name) && name !== SIMILAR_PARAMETER,
  );
  return TLS_PARAMETERS.find((parameter) =>
    names.some((name) => {
      const letters = name.toLowerCase().replaceAll(/[_-]/g, '');
      return distance(letters, parameter) <= MISTYPED_LETTERS;
    }),
  );
}

/** A colon belongs to an IPv6 address or a path; everywhere else, it would be the beginning of a port. */
function isHost(text: string): boolean {
  return text !== '' && (!text.includes(':') || text.startsWith('/') || isIPv6(text));
}

/** pg treats these modes like `verify-full`, and warns at every start that a later version will not. */
const SSL_MODE_ALIAS = /(?<=^[^?]*\?(?:.*&)?)sslmode=(?:prefer|require|verify-ca)(?=&|$)/gs;

/** @returns the address in the form that pg reads correctly and without a warning */
export function urlForPg(text: string): string {
  // With a space in the address, pg would escape the escaped characters a second time.
  const address = moveHosts(text.replaceAll(' ', '%20'));
  if (/^[^?]*\?(?:.*&)?uselibpqcompat=true(?:&|$)/s.test(address)) return address;
  return address.replace(SSL_MODE_ALIAS, 'sslmode=verify-full');
}

/** A list of hosts with ports is not a valid URL: it moves to the parameters, where pg's parser accepts any text. */
function moveHosts(address: string): string {
  return address.replace(
    /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*,[^/?#@]*)(?=[/?]|$)(\/[^?]*)?\??/i,
    (_, start: string, list: string, path = '/') => {
      const servers = list.split(',').map((server) => /^(.*?)(?::(\d*))?$/.exec(server)!);
      const hosts = servers.map(([, host]) => host!.replace(/^\[(.*)\]$/, '$1'));
      const ports = servers.map(([, , port]) => port || '5432');
      return `${start}${path}?host=${hosts.join(',')}&port=${ports.join(',')}&`;
    },
  );
}

/**
 * @param url in the form of `urlForPg`
 * @returns the address with this password, if it has none. Any character of the password may occur.
 */
export function withPassword(url: string, password: string | undefined): string {
  if (password === undefined || parse(url).password) return url;
  return `${url}${url.includes('?') ? '&' : '?'}password=${encodeURIComponent(password)}`;
}
