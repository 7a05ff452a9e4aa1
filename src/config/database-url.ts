import { parse } from 'pg-connection-string';

const MUST_BE = 'must be an address such as postgres://user:password@host:5432/database';

const MUST_ESCAPE =
  'must have special characters in its user, password and parameters escaped: / as %2F, # as %23, ? as %3F, @ as %40, : as %3A, % as %25';

/**
 * What is wrong with the address of a database, without a part of it: every part may belong to a password.
 *
 * @returns undefined where pg can use the address
 */
export function problemOfDatabaseUrl(text: string): string | undefined {
  const [, authority, path = '', query = ''] =
    /^postgres(?:ql)?:\/\/([^/?#]*)([^?#]*)([^#]*)/i.exec(text) ?? [];
  if (authority === undefined) return MUST_BE;
  // The @ in front of the host comes first of these, unless one of them stands in the user or the password. pg
  // would take what follows it for host, database or parameters, which appear in messages.
  if (path.includes('@') || query.includes('@')) return MUST_ESCAPE;
  // Of two, one stands in the password, or in place of the colon before it.
  if (authority.split('@').length > 2) return MUST_ESCAPE;
  // pg drops what follows a #.
  if (text.includes('#') || !isEscaped(text)) return MUST_ESCAPE;
  try {
    // As pg reads it, files included: libpq's addresses, such as those with an empty host, are not all URLs.
    const { port } = parse(urlForPg(text));
    return isPort(port) ? undefined : MUST_BE;
  } catch (error) {
    const { code, path: file } = error as NodeJS.ErrnoException;
    return file === undefined
      ? MUST_BE
      : `names a file in sslrootcert, sslcert or sslkey that cannot be read (${code})`;
  }
}

/** The address in the form that makes pg do what it says, without a warning. */
export function urlForPg(text: string): string {
  // Where a space is left, pg escapes the escaped characters once more.
  const [address, query] = splitAt(text.replaceAll(' ', '%20'), '?');
  if (query === undefined) return address;
  const parameters = query.split('&');
  // pg treats the three alike, and warns at every start that it will not always do so.
  const isLibpq = parameters.includes('uselibpqcompat=true');
  const plain = parameters.map((parameter) =>
    isLibpq ? parameter : parameter.replace(/^sslmode=(prefer|require|verify-ca)$/, VERIFY_FULL),
  );
  return `${address}?${plain.join('&')}`;
}

const VERIFY_FULL = 'sslmode=verify-full';

function splitAt(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

/** Whether every % begins an escaped character, and all of them are UTF-8. */
function isEscaped(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function isPort(port: string | null | undefined): boolean {
  return !port || (/^\d{1,5}$/.test(port) && Number(port) <= 65535);
}
