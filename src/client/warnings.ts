/** Warning headers (RFC 7234 5.5), which Kubernetes uses for requests that it accepts but advises against. */

const WARNING = /\b[0-9]{3} [^ ]+ "((?:[^"\\]|\\.)*)"/g;
const MAX_HEADER = 16 * 1024;

/** Returns the texts of `299 - "text"`. A header may contain several. */
export function parseWarnings(header: string | string[] | undefined): string[] {
  if (header === undefined) return [];
  const text = (Array.isArray(header) ? header.join(', ') : header).slice(0, MAX_HEADER);
  return Array.from(text.matchAll(WARNING), (match) => match[1]!.replace(/\\(.)/g, '$1'));
}
