/** Query parameters of the verbs, parsed and checked once, with kube-apiserver's wording for what is wrong. */
import { badRequest, invalid } from '#kube/api-error.ts';
import { forbiddenField, invalidValue, requiredValue, unsupportedValue, type FieldError } from '#kube/field-error.ts';
import { parseFieldSelector, type FieldRequirement } from '#kube/field-selector.ts';
import { parseLabelSelector, type LabelRequirement } from '#kube/label-selector.ts';
import { isRecord } from '#kube/meta.ts';

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
}

export interface Selection {
  readonly labels: readonly LabelRequirement[];
  readonly fields: readonly FieldRequirement[];
}

export interface ListOptions extends Selection {
  /** undefined = the newest; 0 = whatever is at hand. */
  readonly resourceVersion: number | undefined;
  readonly exact: boolean;
  readonly limit: number;
  readonly continue: string;
}

export interface WatchOptions extends Selection {
  readonly resourceVersion: number | undefined;
  readonly bookmarks: boolean;
  readonly initialEvents: boolean;
  readonly timeoutSeconds: number | undefined;
}

export type PropagationPolicy = 'Orphan' | 'Background' | 'Foreground';

export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: PropagationPolicy | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
}

const EMPTY: readonly never[] = [];

const optionsKind = (kind: string) => ({ group: 'meta.k8s.io', kind });

function refuse(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid(optionsKind(kind), '', errors);
}

const DEFAULT_WRITE: WriteOptions = { dryRun: false, fieldValidation: 'Warn' };

export function writeOptions(
  query: URLSearchParams,
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
): WriteOptions {
  if (query.size === 0) return DEFAULT_WRITE;
  const errors: FieldError[] = [];
  const dryRun = parseDryRun(query.getAll('dryRun'), errors);
  const fieldValidation = query.get('fieldValidation') ?? '';
  if (!['', 'Ignore', 'Warn', 'Strict'].includes(fieldValidation)) {
    errors.push(unsupportedValue('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']));
  }
  const manager = query.get('fieldManager') ?? '';
  if (manager.length > 128) errors.push(invalidValue('fieldManager', manager, 'may not be more than 128 bytes'));
  refuse(kind, errors);
  return { dryRun, fieldValidation: fieldValidation === '' ? 'Warn' : (fieldValidation as FieldValidation) };
}

function parseDryRun(values: readonly string[], errors: FieldError[]): boolean {
  const given = values.filter((value) => value !== '');
  if (given.length === 0) return false;
  if (given.every((value) => value === 'All')) return true;
  // Go prints the slice itself here, and clients show it.
  const shown = `[]string{${given.map((value) => JSON.stringify(value)).join(', ')}}`;
  errors.push({
    reason: 'FieldValueNotSupported',
    field: 'dryRun',
    message: `Unsupported value: ${shown}: supported values: "All"`,
  });
  return false;
}

export function selectionOf(query: URLSearchParams): Selection {
  const labels = query.get('labelSelector');
  const fields = query.get('fieldSelector');
  return {
    labels: labels ? parseLabelSelector(labels) : EMPTY,
    fields: fields ? parseFieldSelector(fields) : EMPTY,
  };
}

const GO_DURATION = /^[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/;

/** Clients may say how long they wait; every answer of ours is quicker, but nonsense is told as such. */
export function assertTimeout(query: URLSearchParams): void {
  const timeout = query.size === 0 ? null : query.get('timeout');
  if (timeout === null || timeout === '' || timeout === '0' || GO_DURATION.test(timeout)) return;
  throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(timeout)}`);
}

export function isWatch(query: URLSearchParams): boolean {
  return query.size > 0 && isTrue(query.get('watch'));
}

function isTrue(value: string | null): boolean {
  return value === 'true' || value === '1';
}

export function listOptions(query: URLSearchParams): ListOptions {
  const match = query.get('resourceVersionMatch') ?? '';
  const version = query.get('resourceVersion') ?? '';
  const token = query.get('continue') ?? '';
  const errors: FieldError[] = [];
  if (match !== '') {
    if (version === '') {
      const why = 'resourceVersionMatch is forbidden unless resourceVersion is provided';
      errors.push(forbiddenField('resourceVersionMatch', why));
    } else if (token !== '') {
      errors.push(
        forbiddenField('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'),
      );
    } else if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(unsupportedValue('resourceVersionMatch', match, ['Exact', 'NotOlderThan', '']));
    } else if (match === 'Exact' && version === '0') {
      const why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"';
      errors.push(forbiddenField('resourceVersionMatch', why));
    }
  }
  if (isTrue(query.get('sendInitialEvents'))) {
    errors.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  refuse('ListOptions', errors);
  const limit = integer(query, 'limit') ?? 0;
  return {
    ...selectionOf(query),
    resourceVersion: version === '' ? undefined : revision(version),
    // A limited list at a version is a consistent page of that very version.
    exact: match === 'Exact' || (match === '' && version !== '' && version !== '0' && limit > 0),
    limit: Math.max(0, limit),
    continue: token,
  };
}

export function watchOptions(query: URLSearchParams): WatchOptions {
  const errors: FieldError[] = [];
  const initial = query.get('sendInitialEvents');
  const match = query.get('resourceVersionMatch') ?? '';
  if (initial !== null && match !== 'NotOlderThan') {
    const why = 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
    errors.push(
      match === '' ? requiredOrForbidden(why) : unsupportedValue('resourceVersionMatch', match, ['NotOlderThan']),
    );
  } else if (initial === null && match !== '') {
    const why = 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided';
    errors.push(forbiddenField('resourceVersionMatch', why));
  }
  refuse('ListOptions', errors);
  const version = query.get('resourceVersion') ?? '';
  const timeoutSeconds = integer(query, 'timeoutSeconds');
  return {
    ...selectionOf(query),
    resourceVersion: version === '' ? undefined : revision(version),
    bookmarks: isTrue(query.get('allowWatchBookmarks')),
    initialEvents: isTrue(initial),
    timeoutSeconds: timeoutSeconds !== undefined && timeoutSeconds > 0 ? timeoutSeconds : undefined,
  };
}

function requiredOrForbidden(why: string): FieldError {
  return forbiddenField('resourceVersionMatch', why);
}

export function revision(text: string): number {
  const value = Number(text);
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(value)) {
    throw badRequest(`resourceVersion: Invalid value: ${JSON.stringify(text)}: must be a whole number`);
  }
  return value;
}

function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const value = Number(text);
  if (!/^-?[0-9]+$/.test(text) || !Number.isSafeInteger(value)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  }
  return value;
}

const POLICIES: readonly string[] = ['Foreground', 'Background', 'Orphan'];

/** Options of a delete come in the body, or in the query where there is no body. */
export function deleteOptions(query: URLSearchParams, body: unknown): DeleteOptions {
  const given = isRecord(body) ? body : fromQuery(query);
  const errors: FieldError[] = [];
  const dryRun = parseDryRun(stringList(given['dryRun']).concat(isRecord(body) ? query.getAll('dryRun') : []), errors);
  let policy = given['propagationPolicy'];
  if (policy !== undefined && policy !== null && !POLICIES.includes(policy as string)) {
    errors.push(unsupportedValue('propagationPolicy', policy, [...POLICIES, 'nil']));
  }
  const orphan = given['orphanDependents'];
  if (typeof orphan === 'boolean') {
    if (policy !== undefined) {
      errors.push(
        invalidValue('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'),
      );
    }
    policy = orphan ? 'Orphan' : 'Background';
  }
  const grace = given['gracePeriodSeconds'];
  if (grace !== undefined && grace !== null && !(typeof grace === 'number' && Number.isSafeInteger(grace))) {
    errors.push(invalidValue('gracePeriodSeconds', grace, 'must be a whole number'));
  }
  const preconditions = isRecord(given['preconditions']) ? given['preconditions'] : {};
  refuse('DeleteOptions', errors);
  return {
    dryRun,
    gracePeriodSeconds: typeof grace === 'number' ? Math.max(0, grace) : undefined,
    propagationPolicy: (policy ?? undefined) as PropagationPolicy | undefined,
    uid: stringOrUndefined(preconditions['uid']),
    resourceVersion: stringOrUndefined(preconditions['resourceVersion']),
  };
}

function fromQuery(query: URLSearchParams): Record<string, unknown> {
  const grace = integer(query, 'gracePeriodSeconds');
  const orphan = query.get('orphanDependents');
  return {
    dryRun: query.getAll('dryRun'),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    orphanDependents: orphan === null ? undefined : isTrue(orphan),
    gracePeriodSeconds: grace,
  };
}

function stringList(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function stringOrUndefined(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The resource version that a conditional update lacks; kept here because its value prints as Go's 0x0. */
export function missingResourceVersion(): FieldError {
  return {
    ...requiredValue('metadata.resourceVersion'),
    reason: 'FieldValueInvalid',
    message: 'Invalid value: 0x0: must be specified for an update',
  };
}
