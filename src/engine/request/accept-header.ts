/** Parses the Accept header to a list of clauses, best first. Each endpoint decides what it supports. */

export interface AcceptClause {
  readonly type: string;
  readonly subtype: string;
  /** 0 = the client refuses this type. */
  readonly quality: number;
  /** All parameters except `q`: Kubernetes uses as, g and v to choose a representation. */
  readonly params: ReadonlyMap<string, string>;
}

/** Longer lists are truncated: no client needs more, and the header is untrusted. */
const MAX_CLAUSES = 32;

export function parseAccept(header: string): AcceptClause[] {
  const clauses: AcceptClause[] = [];
  for (const part of header.split(',', MAX_CLAUSES)) {
    const clause = parseClause(part);
    if (clause !== undefined) clauses.push(clause);
  }
  return clauses.sort(byPreference);
}

/** Reports whether the clause accepts the type: by name, or as `*` or `application/*`. */
export function accepts({ type, subtype, quality }: AcceptClause, wantedSubtype: string): boolean {
  if (quality === 0) return false;
  if (type === '*') return subtype === '*';
  return type === 'application' && (subtype === '*' || subtype === wantedSubtype);
}

function parseClause(text: string): AcceptClause | undefined {
  const [range = '', ...rest] = text.split(';');
  const [type = '', subtype, ...more] = range.split('/').map((word) => word.trim().toLowerCase());
  if (type === '' || more.length > 0 || (subtype === undefined && type !== '*')) return undefined;
  const params = new Map<string, string>();
  let quality = 1;
  for (const param of rest) {
    const equals = param.indexOf('=');
    if (equals < 0) continue;
    const key = param.slice(0, equals).trim().toLowerCase();
    const value = param.slice(equals + 1).trim();
    if (key === 'q') quality = parseQuality(value);
    else params.set(key, value);
  }
  return { type, subtype: subtype ?? '*', quality, params };
}

function parseQuality(text: string): number {
  const value = Number(text);
  return text !== '' && value >= 0 && value <= 1 ? value : 0;
}

/** Compares by quality, then by specificity; equal clauses keep the order of the header. */
function byPreference(a: AcceptClause, b: AcceptClause): number {
  return b.quality - a.quality || specificity(b) - specificity(a);
}

function specificity({ type, subtype }: AcceptClause): number {
  if (type === '*') return 0;
  return subtype === '*' ? 1 : 2;
}
