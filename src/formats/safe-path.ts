/** Paths that files of others name: only below the place where the file itself lies. Pure. */

const MAX_PATH = 1024;
const MAX_PART = 255;

/** What is wrong with the path; undefined where it can be used. */
export function pathFault(path: string): string | undefined {
  if (path === '') return 'is empty';
  if (path.length > MAX_PATH) return `is longer than ${MAX_PATH} characters`;
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(path)) return 'has control characters';
  if (/^[A-Za-z][A-Za-z0-9+.-]*:/.test(path)) return 'is the address of something elsewhere';
  if (path.startsWith('/') || path.includes('\\')) return 'is no relative path';
  const parts = path.split('/');
  if (parts.includes('..')) return 'leads outside';
  if (parts.some((part) => part === '' || part === '.')) return 'is no plain path';
  return parts.some((part) => Buffer.byteLength(part) > MAX_PART) ? 'has a name that is too long' : undefined;
}
