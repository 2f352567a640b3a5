/** Matches machine types with the glob of a transition. */
import { matchesGlob, parseGlob } from '#api/validation/glob.ts';

/** Matches the whole type or its dashed form. A malformed glob matches nothing. */
export function matchesMachineType(glob: string, type: string): boolean {
  const parsed = parseGlob(glob);
  if (parsed === undefined || type === '') return false;
  if (matchesGlob(parsed, type)) return true;
  const dashed = dashedForm(type);
  return dashed !== undefined && matchesGlob(parsed, dashed);
}

/**
 * Returns `pc-q35-rhel-8.2.0` for `pc-q35-rhel8.2.0`; users write both. Undefined if no word precedes the version.
 * Names such as q35 are not versions: they have no dot.
 */
function dashedForm(type: string): string | undefined {
  const last = type.lastIndexOf('-') + 1;
  const parts = /^([A-Za-z]+)([0-9]+\..*)$/.exec(type.slice(last));
  return parts === null ? undefined : `${type.slice(0, last)}${parts[1]}-${parts[2]}`;
}
