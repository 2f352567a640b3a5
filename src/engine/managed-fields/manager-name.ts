/** The field manager of a request: the requested name, or else the name in its User-Agent. */

export const MAX_MANAGER_BYTES = 128;

const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

export function managerName(fieldManager: string, userAgent: string): string {
  return fieldManager || nameOfAgent(userAgent) || 'unknown';
}

let lastAgent = '';
let lastName = '';

function nameOfAgent(userAgent: string): string {
  // Cached, because few clients send most requests.
  if (userAgent !== lastAgent) {
    lastName = truncateName(userAgent.split('/', 1)[0]!.replace(UNPRINTABLE, ''));
    lastAgent = userAgent;
  }
  return lastName;
}

function truncateName(name: string): string {
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

/** Returns the unprintable characters of a name with their positions in bytes, as Go counts. */
export function findUnprintable(name: string): { readonly character: string; readonly position: number }[] {
  return [...name.matchAll(UNPRINTABLE)].map(({ 0: character, index }) => ({
    character,
    position: Buffer.byteLength(name.slice(0, index)),
  }));
}
