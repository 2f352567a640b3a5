/** The name under which a request owns fields: what it says, or else what its User-Agent calls itself. */

export const MAX_MANAGER_BYTES = 128;

const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

export function managerName(fieldManager: string, userAgent: string): string {
  return fieldManager || nameOfAgent(userAgent) || 'unknown';
}

let lastAgent = '';
let lastName = '';

function nameOfAgent(userAgent: string): string {
  // The same few clients ask again and again.
  if (userAgent !== lastAgent) {
    lastName = shortened(userAgent.split('/', 1)[0]!.replace(UNPRINTABLE, ''));
    lastAgent = userAgent;
  }
  return lastName;
}

function shortened(name: string): string {
  if (Buffer.byteLength(name) <= MAX_MANAGER_BYTES) return name;
  let kept = '';
  let bytes = 0;
  for (const character of name) {
    bytes += Buffer.byteLength(character);
    if (bytes > MAX_MANAGER_BYTES) break;
    kept += character;
  }
  return kept;
}

/** Characters of a name that nobody could read, each with its place in bytes as Go counts it. */
export function unprintable(name: string): { readonly character: string; readonly position: number }[] {
  return [...name.matchAll(UNPRINTABLE)].map(({ 0: character, index }) => ({
    character,
    position: Buffer.byteLength(name.slice(0, index)),
  }));
}
