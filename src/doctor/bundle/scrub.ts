/**
 * Removes confidential data from a support bundle: content of Secrets and ConfigMaps, cloud-init user data, passwords,
 * tokens and private keys. Recognizes them by field name and by pattern. Pure.
 */

export const REMOVED = '(removed)';

/** Fields whose value is removed wherever they occur. */
const SECRET_FIELDS =
  /^(?:data|stringData|binaryData|userData|userDataBase64|networkData|networkDataBase64|kernelArgs|arguments|token|accessToken|refreshToken|password|passphrase|secret|apiKey|clientSecret|clientKey|privateKey|credentials)$/i;
/** Metadata that repeats the object, including secrets, or is of no use in a bundle. */
const NOISE = new Set(['managedFields', 'kubectl.kubernetes.io/last-applied-configuration']);

const MAX_DEPTH = 60;

/** Returns the object without confidential values. */
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
        const isSecret = (SECRET_FIELDS.test(name) && item !== null) || (isVariable && name === 'value');
        return [name, isSecret ? REMOVED : scrubObject(item, depth + 1)];
      }),
  );
}

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, REMOVED],
  // Service account tokens and other JSON web tokens.
  [/\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*/g, REMOVED],
  [/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${REMOVED}`],
  [
    /\b([\w-]*(?:password|passwd|secret|token|api[_-]?key))(["']?\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s,;&"']+)/gi,
    `$1$2${REMOVED}`,
  ],
  // A kernel command line may contain anything.
  [/(-append )(?:'[^']*'|\S+)/g, `$1${REMOVED}`],
];

export function scrubText(text: string): string {
  return PATTERNS.reduce((result, [pattern, instead]) => result.replace(pattern, instead), text);
}
