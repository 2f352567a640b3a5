/** Validates paths, which must not leave their root. */
import { type FieldError, invalidValue } from '#kube/field-error.ts';

export function hasBackstep(path: string): boolean {
  return path.split('/').includes('..');
}

export function checkNoBackstep(field: string, path: string): FieldError[] {
  return hasBackstep(path) ? [invalidValue(field, path, "must not contain '..'")] : [];
}

/** Checks a path within a volume, which must not leave it. */
export function checkDescendingPath(field: string, path: string | undefined): FieldError[] {
  if (!path) return [];
  if (path.startsWith('/')) return [invalidValue(field, path, 'must be a relative path')];
  return checkNoBackstep(field, path);
}
