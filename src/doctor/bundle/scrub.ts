/**
 * Takes what must not leave the machine out of what a support bundle shows: content of Secrets and ConfigMaps, user data
 * of cloud-init, passwords, tokens, private keys. By the names of fields, and by what such values look like. Pure.
 */

export const REMOVED = '(removed)';

/** Fields whose whole value goes, wherever they stand. */
const SECRET_FIELDS =
  /^(?:data|stringData|binaryData|userData|userDataBase64|networkData|networkDataBase64|kernelArgs|arguments|token|accessToken|refreshToken|password|passphrase|secret|apiKey|clientSecret|clientKey|privateKey|credentials)$/i;
/** Metadata that repeats what the object was, secrets included, or that nobody reads in a bundle. */
const NOISE = new Set(['managedFields', 'kubectl.kubernetes.io/last-applied-configuration']);

const MAX_DEPTH = 60;

/** The same object, safe to show. */
export function scrubObject(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return scrubText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) return REMOVED;
  if (Array.isArray(value)) return value.map((item) => scrubObject(item, depth + 1));
  const isVariable = 'name' in value && 'value' in value && typeof value.value === 'string';
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !NOISE.has(name))
      .map(([name, item]: [string, unknown]) => {
        const goes = (SECRET_FIELDS.test(name) && item !== null) || (isVariable && name === 'value');
        return [name, goes ? REMOVED : scrubObject(item, depth + 1)];
      }),
  );
}

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, REMOVED],
  // Tokens of service accounts, and whatever else is a JSON web token.
  [/\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*/g, REMOVED],
  [/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${REMOVED}`],
  [
    /\b([\w-]*(?:password|passwd|secret|token|api[_-]?key))(["']?\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s,;&"']+)/gi,
    `$1$2${REMOVED}`,
  ],
  // What a kernel is told may be anything.
  [/(-append )(?:'[^']*'|\S+)/g, `$1${REMOVED}`],
];

export function scrubText(text: string): string {
  return PATTERNS.reduce((result, [pattern, instead]) => result.replace(pattern, instead), text);
}
