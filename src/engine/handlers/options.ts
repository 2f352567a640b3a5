/** Parses and validates the query parameters of the verbs, with kube-apiserver's messages. */
import { badRequest, invalid } from '#kube/api-error.ts';
import {
  forbiddenField,
  invalidValue,
  requiredValue,
  tooLong,
  unsupportedValue,
  type FieldError,
} from '#kube/field-error.ts';
import { parseFieldSelector } from '#kube/selectors/field-selector.ts';
import { parseLabelSelector } from '#kube/selectors/label-selector.ts';
import { isRecord } from '#kube/meta.ts';
import { MAX_MANAGER_BYTES, findUnprintable } from '#engine/managed-fields/manager-name.ts';
import { isTrueParameter } from '#engine/request/route.ts';
import type { ListSelection } from '#engine/registry/stored-entries.ts';
import { deleteOptionsSchema } from '#engine/registry/kinds/meta/delete-options.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { decodeTypeError } from '#engine/registry/structural/decode-type-error.ts';

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export interface WriteRequestOptions {
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
  /** The manager of the written fields; '' = derived from the User-Agent. */
  readonly fieldManager: string;
  /** True if an apply takes over fields of other managers. */
  readonly force: boolean;
  /** CreateOptions and the like, as admission webhooks see them. */
  readonly sent: Readonly<Record<string, unknown>>;
}

export interface ListRequestOptions extends ListSelection {
  /** Undefined = the newest; 0 = any. */
  readonly resourceVersion: number | undefined;
  readonly exact: boolean;
  readonly limit: number;
  readonly continue: string;
}

export interface WatchRequestOptions extends ListSelection {
  readonly resourceVersion: number | undefined;
  readonly bookmarks: boolean;
  /** Undefined if not requested: then current objects are sent first if there is no resourceVersion. */
  readonly initialEvents: boolean | undefined;
  readonly timeoutSeconds: number | undefined;
}

export type PropagationPolicy = 'Orphan' | 'Background' | 'Foreground';

export interface DeleteRequestOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: PropagationPolicy | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  /** As admission webhooks see them. */
  readonly sent: Readonly<Record<string, unknown>>;
}

const EMPTY: readonly never[] = [];

const optionsKind = (kind: string) => ({ group: 'meta.k8s.io', kind });

function throwIfInvalid(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid(optionsKind(kind), '', errors);
}

type WriteKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions';

const sentOptions = (kind: string) => ({ kind, apiVersion: 'meta.k8s.io/v1' });

const plainWrite = (kind: WriteKind): WriteRequestOptions => ({
  dryRun: false,
  fieldValidation: 'Warn',
  fieldManager: '',
  force: false,
  sent: sentOptions(kind),
});

const DEFAULT_WRITE: Record<WriteKind, WriteRequestOptions> = {
  CreateOptions: plainWrite('CreateOptions'),
  UpdateOptions: plainWrite('UpdateOptions'),
  PatchOptions: plainWrite('PatchOptions'),
};

/** `apply`: whether it is an apply patch, which alone allows force and requires a manager. */
export function writeOptions(query: URLSearchParams, kind: WriteKind, apply = false): WriteRequestOptions {
  if (query.size === 0 && !apply) return DEFAULT_WRITE[kind];
  const errors: FieldError[] = [];
  const manager = query.get('fieldManager') ?? '';
  const force = kind === 'PatchOptions' ? query.get('force') : null;
  if (apply && manager === '') errors.push(requiredValue('fieldManager', 'is required for apply patch'));
  if (!apply && force !== null) errors.push(forbiddenField('force', 'may not be specified for non-apply patch'));
  checkManager(manager, errors);
  const dryRun = parseDryRun(query.getAll('dryRun'), errors);
  const fieldValidation = query.get('fieldValidation') ?? '';
  if (!['', 'Ignore', 'Warn', 'Strict'].includes(fieldValidation)) {
    errors.push(unsupportedValue('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']));
  }
  throwIfInvalid(kind, errors);
  const sent = {
    ...sentOptions(kind),
    ...(dryRun ? { dryRun: ['All'] } : {}),
    ...(manager === '' ? {} : { fieldManager: manager }),
    ...(force === null ? {} : { force: isTrueParameter(force) }),
    ...(fieldValidation === '' ? {} : { fieldValidation }),
  };
  return {
    dryRun,
    fieldValidation: fieldValidation === '' ? 'Warn' : (fieldValidation as FieldValidation),
    fieldManager: manager,
    force: isTrueParameter(force),
    sent,
  };
}

function checkManager(manager: string, errors: FieldError[]): void {
  if (Buffer.byteLength(manager) > MAX_MANAGER_BYTES) errors.push(tooLong('fieldManager', MAX_MANAGER_BYTES));
  for (const { character, position } of findUnprintable(manager)) {
    const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    errors.push(invalidValue('fieldManager', manager, `invalid character U+${code} (at position ${position})`));
  }
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

function selectionOf(query: URLSearchParams): ListSelection {
  const labels = query.get('labelSelector');
  const fields = query.get('fieldSelector');
  return {
    labels: labels ? parseLabelSelector(labels) : EMPTY,
    fields: fields ? parseFields(fields) : EMPTY,
  };
}

const GO_DURATION = /^[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+$/;

/** Clients may send a timeout. All responses are faster, but an invalid one is rejected. */
export function assertTimeout(query: URLSearchParams): void {
  const timeout = query.size === 0 ? null : query.get('timeout');
  if (timeout === null || timeout === '' || timeout === '0' || GO_DURATION.test(timeout)) return;
  throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(timeout)}`);
}

export function listOptions(query: URLSearchParams): ListRequestOptions {
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
  if (isTrueParameter(query.get('sendInitialEvents'))) {
    errors.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  throwIfInvalid('ListOptions', errors);
  const limit = integer(query, 'limit') ?? 0;
  return {
    ...selectionOf(query),
    resourceVersion: version === '' ? undefined : revision(version),
    // A limited list at a version is a page of exactly that version.
    exact: match === 'Exact' || (match === '' && version !== '' && version !== '0' && limit > 0),
    limit: Math.max(0, limit),
    continue: token,
  };
}

export function watchOptions(query: URLSearchParams): WatchRequestOptions {
  const errors: FieldError[] = [];
  const initial = query.get('sendInitialEvents');
  const match = query.get('resourceVersionMatch') ?? '';
  if (initial !== null && match !== 'NotOlderThan') {
    const why = 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
    errors.push(
      match === ''
        ? forbiddenField('resourceVersionMatch', why)
        : unsupportedValue('resourceVersionMatch', match, ['NotOlderThan']),
    );
  } else if (initial === null && match !== '') {
    const why = 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided';
    errors.push(forbiddenField('resourceVersionMatch', why));
  }
  throwIfInvalid('ListOptions', errors);
  const version = query.get('resourceVersion') ?? '';
  const timeoutSeconds = integer(query, 'timeoutSeconds');
  return {
    ...selectionOf(query),
    resourceVersion: version === '' ? undefined : revision(version),
    bookmarks: isTrueParameter(query.get('allowWatchBookmarks')),
    initialEvents: initial === null ? undefined : isTrueParameter(initial),
    timeoutSeconds: timeoutSeconds !== undefined && timeoutSeconds > 0 ? timeoutSeconds : undefined,
  };
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

/** Options of a delete are in the body, or in the query if there is no body. Invalid options delete nothing. */
export function deleteOptions(query: URLSearchParams, body: unknown): DeleteRequestOptions {
  const given = body === undefined ? fromQuery(query) : asDeleteOptions(body);
  const errors: FieldError[] = [];
  const dryRun = parseDryRun([...(given.dryRun ?? []), ...(body === undefined ? [] : query.getAll('dryRun'))], errors);
  let policy = given.propagationPolicy ?? undefined;
  if (policy !== undefined && !POLICIES.includes(policy)) {
    errors.push(unsupportedValue('propagationPolicy', policy, [...POLICIES, 'nil']));
  }
  const orphan = given.orphanDependents ?? undefined;
  if (orphan !== undefined) {
    if (policy !== undefined) {
      const why = 'orphanDependents and deletionPropagation cannot be both set';
      errors.push(invalidValue('propagationPolicy', policy, why));
    }
    policy = orphan ? 'Orphan' : 'Background';
  }
  throwIfInvalid('DeleteOptions', errors);
  return {
    dryRun,
    gracePeriodSeconds: given.gracePeriodSeconds ?? undefined,
    propagationPolicy: policy as PropagationPolicy | undefined,
    uid: given.preconditions?.uid ?? undefined,
    resourceVersion: given.preconditions?.resourceVersion ?? undefined,
    sent: { ...given, ...sentOptions('DeleteOptions'), ...(dryRun ? { dryRun: ['All'] } : { dryRun: undefined }) },
  };
}

/** meta.k8s.io DeleteOptions as sent; null counts as absent. */
interface SentDeleteOptions {
  dryRun?: string[] | null;
  propagationPolicy?: string | null;
  orphanDependents?: boolean | null;
  gracePeriodSeconds?: number | null;
  preconditions?: { uid?: string | null; resourceVersion?: string | null } | null;
}

const compiledDeleteOptions = compileSchema(deleteOptionsSchema, { root: false });

function asDeleteOptions(body: unknown): SentDeleteOptions {
  const why = isRecord(body)
    ? decodeTypeError(body, compiledDeleteOptions)
    : 'json: cannot unmarshal it into an object';
  if (why !== undefined) throw badRequest(`DeleteOptions cannot be read: ${why}`);
  const options = body as SentDeleteOptions & { kind?: string };
  if (options.kind !== undefined && options.kind !== 'DeleteOptions') {
    throw badRequest(
      `decoded object cannot be converted to DeleteOptions: its kind is ${JSON.stringify(options.kind)}`,
    );
  }
  return options;
}

function fromQuery(query: URLSearchParams): SentDeleteOptions {
  const grace = integer(query, 'gracePeriodSeconds');
  const orphan = query.get('orphanDependents');
  return {
    dryRun: query.getAll('dryRun'),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    orphanDependents: orphan === null ? undefined : isTrueParameter(orphan),
    gracePeriodSeconds: grace,
  };
}

/** Returns the error for a missing resourceVersion of a conditional update; its value prints as Go's 0x0. */
export function missingResourceVersion(): FieldError {
  return {
    ...requiredValue('metadata.resourceVersion'),
    reason: 'FieldValueInvalid',
    message: 'Invalid value: 0x0: must be specified for an update',
  };
}

/** A kind has a handful of fields that can be selected; each term is compared with every object and event. */
const MAX_FIELD_TERMS = 256;

function parseFields(text: string): ListSelection['fields'] {
  const fields = parseFieldSelector(text);
  if (fields.length <= MAX_FIELD_TERMS) return fields;
  throw badRequest(`the field selector has ${fields.length} terms: the limit is ${MAX_FIELD_TERMS}`);
}
