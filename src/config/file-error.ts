const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user has no permission',
  EDQUOT: 'the quota of this user is used up',
  EFBIG: 'the file would be too large',
  EISDIR: 'it is a folder',
  ENAMETOOLONG: 'the name is too long',
  ENOENT: 'there is no such file or folder',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a file in its path is not a folder',
  EPERM: 'this user has no permission',
  EPIPE: 'the program that reads it has ended',
  EROFS: 'the file system is read-only',
};

/** @returns why a file could not be read or written, for the person who named it */
export function describeFileError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return REASONS[code ?? ''] ?? code ?? message;
}
