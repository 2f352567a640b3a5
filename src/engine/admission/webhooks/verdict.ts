/** Parses and checks the response of a webhook, as Kubernetes does. Pure; throws CallFailure for invalid responses. */
import { CallFailure } from '#engine/remote/webhooks/call-failure.ts';
import { isRecord } from '#kube/meta.ts';

export type AdmissionReviewVersion = 'v1' | 'v1beta1';

export interface WebhookVerdict {
  readonly allowed: boolean;
  /** The valid parts of a Status; its values are not checked yet. */
  readonly status: Readonly<Record<string, unknown>>;
  readonly warnings: readonly string[];
  readonly auditAnnotations: ReadonlyMap<string, string>;
  /** A JSON patch as text; '' = none. */
  readonly patch: string;
}

export interface ExpectedReview {
  readonly uid: string;
  readonly version: AdmissionReviewVersion;
  readonly mutating: boolean;
}

const GROUP = 'admission.k8s.io';

export function readVerdict(review: unknown, { uid, version, mutating }: ExpectedReview): WebhookVerdict {
  if (!isRecord(review)) throw new CallFailure(`couldn't get version/kind; json parse error: ${notAnObject(review)}`);
  const response = field(review, 'response', 'object', 'AdmissionReview');
  if (response === undefined) throw invalid('webhook response was absent');
  if (version === 'v1') assertIdentity(review, response, uid);
  const patch = field(response, 'patch', 'string') ?? '';
  const patchType = field(response, 'patchType', 'string');
  if (version === 'v1') assertPatchType(mutating, patch, patchType);
  return {
    allowed: field(response, 'allowed', 'boolean') ?? false,
    status: field(response, 'status', 'object') ?? {},
    warnings: warningsOf(response['warnings']),
    auditAnnotations: annotationsOf(field(response, 'auditAnnotations', 'object') ?? {}),
    patch: mutating ? decodeBase64(patch) : '',
  };
}

function assertIdentity(review: Record<string, unknown>, response: Record<string, unknown>, uid: string): void {
  const got = field(response, 'uid', 'string') ?? '';
  if (got !== uid) throw invalid(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(short(got))}`);
  const apiVersion = field(review, 'apiVersion', 'string', 'AdmissionReview') ?? '';
  const kind = field(review, 'kind', 'string', 'AdmissionReview') ?? '';
  if (apiVersion === `${GROUP}/v1` && kind === 'AdmissionReview') return;
  const shown = apiVersion === '' ? '/' : short(apiVersion);
  throw invalid(`expected webhook response of ${GROUP}/v1, Kind=AdmissionReview, got ${shown}, Kind=${short(kind)}`);
}

function assertPatchType(mutating: boolean, patch: string, patchType: string | undefined): void {
  if (!mutating) {
    if (patch !== '') throw invalid('validating webhook may not return response.patch');
    if (patchType !== undefined) throw invalid('validating webhook may not return response.patchType');
    return;
  }
  if (patch !== '' && patchType === undefined) {
    throw invalid('webhook returned response.patch but not response.patchType');
  }
  if (patchType === undefined) return;
  if (patch === '') throw invalid('webhook returned response.patchType but not response.patch');
  if (patchType === '') throw invalid('webhook returned invalid response.patchType of ""');
  if (patchType !== 'JSONPatch') throw new CallFailure(`unsupported patch type ${JSON.stringify(short(patchType))}`);
}

const invalid = (why: string) => new InvalidResponse(why);

/** An invalid response. Kubernetes reports it differently from a failed call. */
export class InvalidResponse extends CallFailure {
  override name = 'InvalidAnswer';
}

interface Kinds {
  string: string;
  boolean: boolean;
  object: Record<string, unknown>;
}

const GO_TYPE = { string: 'string', boolean: 'bool', object: 'v1.AdmissionResponse' } as const;

/** null counts as absent, as in Go. */
function field<K extends keyof Kinds>(
  from: Record<string, unknown>,
  name: string,
  kind: K,
  owner = 'AdmissionResponse',
): Kinds[K] | undefined {
  const value = from[name] ?? undefined;
  if (value === undefined) return undefined;
  if (kind === 'object' ? isRecord(value) : typeof value === kind) return value as Kinds[K];
  const path = owner === 'AdmissionReview' ? name : `response.${name}`;
  throw new CallFailure(
    `json: cannot unmarshal ${jsonKind(value)} into Go struct field ${owner}.${path} of type ${GO_TYPE[kind]}`,
  );
}

function warningsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function annotationsOf(value: Record<string, unknown>): Map<string, string> {
  const texts = Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return new Map(texts);
}

function decodeBase64(text: string): string {
  if (text === '') return '';
  if (!/^[A-Za-z0-9+/\r\n]*={0,2}$/.test(text)) throw new CallFailure('illegal base64 data at input byte 0');
  return Buffer.from(text, 'base64').toString('utf8');
}

const short = (text: string) => text.slice(0, 256);

const jsonKind = (value: unknown) =>
  Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;

function notAnObject(value: unknown): string {
  const into =
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';
  return `json: cannot unmarshal ${jsonKind(value)} into Go value of type ${into}`;
}
