import { distance } from 'fastest-levenshtein';
import { parse } from 'pg-connection-string';
import { describeFileError } from './file-error.js';

const MUST_BE = 'must be an address such as postgres://user:password@host:5432/database';

const MUST_ESCAPE =
  'must have special characters in its user, password and parameters escaped: / as %2F, # as %23, ? as %3F, @ as %40, : as %3A, % as %25';

const ONE_HOST =
  'must name one host. It must lead to the primary: the server itself, or HAProxy, PgBouncer or another endpoint in front of several';

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

/** Parameters of libpq that differ from `sslcert` in two letters, and mean something else. */
const SIMILAR_PARAMETERS = ['sslcrl'];

/** Two letters that are swapped count as two. */
const MISTYPED_LETTERS = 2;

/**
 * Checks the address of a database. The message repeats no part of the address, because every part may belong to a
 * password.
 *
 * @returns the problem; undefined if pg can use the address
 */
export function problemOfDatabaseUrl(text: string): string | undefined {
  if (/^(["']).*\1$/s.test(text))
    return 'has quotes around it, which would be a part of it: leave them out';
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
  const parameters = new URLSearchParams(query);
  // pg takes the last one, and the checks below see the first.
  if (new Set(parameters.keys()).size < parameters.size) return 'must have each parameter once';
  const problem = problemOfParameters(parameters);
  if (problem !== undefined) return problem;
  try {
    decodeURIComponent(text);
    // Parsed with pg's own parser. It accepts addresses that are not URLs, such as one with an empty host, and reads
    // the certificate files that the parameters name.
    const { host, port } = parse(urlForPg(text));
    if (host?.includes(',') || port?.includes(',')) return ONE_HOST;
    return !port || (/^\d{1,5}$/.test(port) && Number(port) <= 65535) ? undefined : MUST_BE;
  } catch (error) {
    if (error instanceof URIError) return MUST_ESCAPE;
    if ((error as NodeJS.ErrnoException).syscall !== undefined) {
      return `names a file in sslrootcert, sslcert or sslkey that cannot be read: ${describeFileError(error)}`;
    }
    // With uselibpqcompat=true.
    if (parameters.get('sslmode') === 'verify-ca' && !parameters.has('sslrootcert')) {
      return 'must have sslrootcert=FILE for sslmode=verify-ca, with the certificate of the authority';
    }
    return authority.replace(/^.*@/, '').includes(',') ? ONE_HOST : MUST_BE;
  }
}

function problemOfParameters(parameters: URLSearchParams): string | undefined {
  const mistyped = mistypedTlsParameter(parameters);
  if (mistyped !== undefined) {
    return `has a parameter that is nearly ${mistyped}, and has no effect: write it as ${mistyped}`;
  }
  for (const [name, value] of parameters) {
    const problem = problemOfParameter(name, value);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemOfParameter(name: string, value: string): string | undefined {
  switch (name.toLowerCase().replaceAll(/[_-]/g, '')) {
    case 'ssl':
      // pg understands `true` and `1`, and 0 for none; it fails at the first connection with any other text.
      return name === 'ssl' && ['true', '1', '0'].includes(value)
        ? undefined
        : 'must have sslmode instead of ssl: sslmode=verify-full for TLS, sslmode=disable for none';
    case 'sslmode':
      return SSL_MODES.includes(value)
        ? undefined
        : `must have one of these values of sslmode: ${SSL_MODES.join(', ')}`;
    // Other programs ask for TLS with these. Ignored, they would let the password be sent without it.
    case 'usessl':
    case 'requiressl':
    case 'sslaccept':
    case 'tls':
    case 'encrypt':
    case 'gssencmode':
      return `has the parameter ${name}, which has no effect: write sslmode=verify-full for TLS`;
    // Other programs name the schema with these. Ignored, they would let plants be stored in another one.
    case 'schema':
    case 'currentschema':
    case 'searchpath':
      return `has the parameter ${name}, which has no effect: write ?options=-c%20search_path%3DNAME`;
    default:
      return undefined;
  }
}

/** pg ignores unknown parameters: with `sslmod=verify-full`, the password would be sent without TLS, and nobody would notice. */
function mistypedTlsParameter(parameters: URLSearchParams): string | undefined {
  const names = [...parameters.keys()].filter(
    (name) => !TLS_PARAMETERS.includes(name) && !SIMILAR_PARAMETERS.includes(name),
  );
  return TLS_PARAMETERS.find((parameter) =>
    names.some((name) => {
      const letters = name.toLowerCase().replaceAll(/[_-]/g, '');
      return distance(letters, parameter) <= MISTYPED_LETTERS;
    }),
  );
}

/** pg treats these modes like `verify-full`, and warns at every start that a later version will not. */
const SSL_MODE_ALIAS = /(?<=^[^?]*\?(?:.*&)?)sslmode=(?:prefer|require|verify-ca)(?=&|$)/gs;

/** libpq's word for the authorities that the system trusts. pg would look for a file of this name. */
const SYSTEM_AUTHORITIES = /(?<=^[^?]*\?(?:.*&)?)sslrootcert=system(?=&|$)/gs;

/** @returns the address in the form that pg reads correctly and without a warning */
function urlForPg(text: string): string {
  // With a space in the address, pg would escape the escaped characters a second time.
  const address = text.replaceAll(' ', '%20').replace(SYSTEM_AUTHORITIES, 'sslmode=verify-full');
  if (/^[^?]*\?(?:.*&)?uselibpqcompat=true(?:&|$)/s.test(address)) return address;
  return address.replace(SSL_MODE_ALIAS, 'sslmode=verify-full');
}

/** @returns the problem of a parameter that is in a variable of its own, such as `PGSSLMODE`; undefined if there is none */
export function problemOfVariable(parameter: string, value: string): string | undefined {
  return problemOfDatabaseUrl(withParameter('postgres:///', parameter, value));
}

/** Variables from which libpq and pg read what an address lacks. */
interface Variables {
  readonly PGPASSWORD?: string | undefined;
  readonly PGSSLMODE?: string | undefined;
  readonly PGSSLROOTCERT?: string | undefined;
}

/** @returns the address for pg, with what it lacks. Any character of the password may occur. */
export function completeUrl(
  text: string,
  { PGPASSWORD: password, PGSSLMODE: mode, PGSSLROOTCERT: rootCert }: Variables,
): string {
  const parameters = new URLSearchParams(/\?(.*)/s.exec(text)?.[1]);
  const ownMode = parameters.get('sslmode') ?? parameters.get('ssl');
  let url = text;
  if (ownMode === null && mode !== undefined) url = withParameter(url, 'sslmode', mode);
  // pg would take the file for a wish for TLS.
  const isOff = ['disable', '0'].includes(ownMode ?? mode ?? '');
  if (rootCert !== undefined && !parameters.has('sslrootcert') && !isOff) {
    url = withParameter(url, 'sslrootcert', rootCert);
  }
  url = urlForPg(url);
  return password === undefined || parse(url).password
    ? url
    : withParameter(url, 'password', password);
}

function withParameter(url: string, name: string, value: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${name}=${encodeURIComponent(value)}`;
}
