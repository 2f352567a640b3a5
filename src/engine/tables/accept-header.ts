/** The Accept header as a list of wishes, best first. What each endpoint can give is its own business. */

export interface AcceptClause {
  readonly type: string;
  readonly subtype: string;
  /** 0 means that the client refuses this type. */
  readonly quality: number;
  /** Everything but `q`: as, g and v choose a representation in Kubernetes. */
  readonly params: ReadonlyMap<string, string>;
}

/** Longer lists are cut: no client of ours needs more, and the header is untrusted. */
const MAX_CLAUSES = 32;

export function parseAccept(header: string): AcceptClause[] {
  const clauses: AcceptClause[] = [];
  for (const part of header.split(',', MAX_CLAUSES)) {
    const clause = parseClause(part);
    if (clause !== undefined) clauses.push(clause);
  }
  return clauses.sort(byPreference);
}

/** `*` and `application/*` match too. */
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

/** By quality, then the more specific range; the order of the header decides between equals. */
function byPreference(a: AcceptClause, b: AcceptClause): number {
  return b.quality - a.quality || specificity(b) - specificity(a);
}

function specificity({ type, subtype }: AcceptClause): number {
  if (type === '*') return 0;
  return subtype === '*' ? 1 : 2;
}
