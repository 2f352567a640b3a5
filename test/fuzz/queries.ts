/** Query parameters of the API, with valid and invalid values. */
import { ODD_TEXTS } from '#test/fuzz/odd-values.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';

const NUMBERS = ['0', '1', '2', '500', '-1', '9007199254740993', '1e3', '0x1', ' 1', '99999999999999999999'];
const FLAGS = ['true', 'false', '1', '0', 'True', 'yes', ''];

const LABEL_SELECTORS = [
  'a=b',
  'a==b,c!=d',
  'a in (b,c)',
  'a notin ()',
  '!a',
  'a',
  'a>1',
  'a<1e9',
  'a in (',
  ',',
  'a=,b',
  '((((',
  'example.com/a=b',
  '/a=b',
  'in in (in)',
  `${'a'.repeat(64)}=b`,
  'a='.repeat(50),
];

const FIELD_SELECTORS = [
  'metadata.name=a',
  'metadata.namespace!=fuzz',
  'spec.color=red,spec.size=3',
  'spec.nodeName=',
  'status.phase=Running',
  'involvedObject.name=a',
  'type=Opaque',
  'metadata.labels.a=b',
  'a\\,b=c\\=d',
  '=',
  '==',
  'metadata.name',
  '\\',
  'constructor=x',
];

/** Continue tokens in our own format, with valid and invalid content. */
const CONTINUES = [
  { v: 'meta.k8s.io/v1', rv: 1, start: 'a\u0000' },
  { v: 'meta.k8s.io/v1', rv: -1, start: 'fuzz/a\u0000' },
  { v: 'meta.k8s.io/v1', rv: 2 ** 60, start: '../x' },
  { v: 'meta.k8s.io/v2', rv: 1, start: '' },
  { v: 'meta.k8s.io/v1', rv: 'x', start: 7 },
  { v: 'meta.k8s.io/v1', rv: 0 },
  null,
  [],
  'text',
].map((token) => Buffer.from(JSON.stringify(token)).toString('base64url'));

const VALUES: Readonly<Record<string, readonly string[]>> = {
  dryRun: ['All', 'All', 'None', ''],
  fieldManager: ['fuzz', 'kubectl', 'other', 'a'.repeat(129), '\u0007', ''],
  fieldValidation: ['Strict', 'Warn', 'Ignore', 'Odd', ''],
  force: FLAGS,
  pretty: FLAGS,
  timeout: ['1s', '0', '-1h', '1x', '1h1m1s1ms'],
  timeoutSeconds: NUMBERS,
  limit: NUMBERS,
  continue: CONTINUES,
  resourceVersion: NUMBERS,
  resourceVersionMatch: ['Exact', 'NotOlderThan', 'Odd', ''],
  labelSelector: LABEL_SELECTORS,
  fieldSelector: FIELD_SELECTORS,
  watch: FLAGS,
  allowWatchBookmarks: FLAGS,
  sendInitialEvents: FLAGS,
  gracePeriodSeconds: NUMBERS,
  propagationPolicy: ['Foreground', 'Background', 'Orphan', 'Odd'],
  orphanDependents: FLAGS,
  includeObject: ['Object', 'Metadata', 'None', 'Odd'],
  container: ['web', ''],
  follow: FLAGS,
  tailLines: NUMBERS,
  sinceSeconds: NUMBERS,
  sinceTime: ['2026-01-01T00:00:00Z', 'odd'],
  limitBytes: NUMBERS,
};

const WRITING = ['dryRun', 'fieldManager', 'fieldValidation', 'force', 'pretty', 'timeout'];
const LISTING = [
  ...['limit', 'continue', 'resourceVersion', 'resourceVersionMatch', 'labelSelector', 'fieldSelector', 'pretty'],
  ...['watch', 'allowWatchBookmarks', 'sendInitialEvents', 'timeoutSeconds', 'includeObject', 'timeout'],
];
const DELETING = [
  'dryRun',
  'gracePeriodSeconds',
  'propagationPolicy',
  'orphanDependents',
  'labelSelector',
  'fieldSelector',
];
const LOGS = ['container', 'follow', 'tailLines', 'sinceSeconds', 'sinceTime', 'limitBytes'];

const USUAL: Readonly<Record<string, readonly string[]>> = {
  GET: [...LISTING, ...LOGS],
  POST: WRITING,
  PUT: WRITING,
  PATCH: WRITING,
  DELETE: DELETING,
};

export function queryOf(method: string, isApply: boolean, random: SeededRandom): string {
  const query = new URLSearchParams();
  // Without a field manager an apply is refused at once.
  if (isApply && random.chance(0.97)) query.set('fieldManager', random.pick(['fuzz', 'kubectl', 'other']));
  if (isApply && random.chance(0.6)) query.set('force', 'true');
  const names = USUAL[method] ?? WRITING;
  for (let count = random.chance(0.5) ? 0 : random.between(1, 3); count > 0; count--) {
    const name = random.pick(random.chance(0.95) ? names : Object.keys(VALUES));
    query.append(name, random.chance(0.9) ? random.pick(VALUES[name]!) : random.pick(ODD_TEXTS));
  }
  return query.size === 0 ? '' : `?${query.toString()}`;
}
