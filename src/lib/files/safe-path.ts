/** Checks paths in imported files: they must stay below the directory of the file. Pure. */

const MAX_PATH = 1024;
const MAX_PART = 255;

/** Returns what is wrong with the path, as the rest of a sentence, or undefined if it is safe. */
export function checkPath(path: string): string | undefined {
  if (path === '') return 'is empty';
  if (path.length > MAX_PATH) return `is longer than ${MAX_PATH} characters`;
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(path)) return 'has control characters';
  if (/^[A-Za-z][A-Za-z0-9+.-]*:/.test(path)) return 'is a URL';
  if (path.startsWith('/') || path.includes('\\')) return 'is not a relative path';
  const parts = path.split('/');
  if (parts.includes('..')) return 'leads outside';
  if (parts.some((part) => part === '' || part === '.')) return 'has empty or "." parts';
  return parts.some((part) => Buffer.byteLength(part) > MAX_PART) ? 'has a name that is too long' : undefined;
}
