/** Builds ConversionReviews and checks their responses, with Kubernetes' checks and messages. Pure. */
import { validateMetadata } from '#engine/registry/metadata.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { goType } from '#kube/go/go-text.ts';
import { deepClone, deepEqual } from '#kube/deep.ts';

type ConversionReviewVersion = 'v1' | 'v1beta1';

const GROUP = 'apiextensions.k8s.io';

/** Returns the first version of a definition that is supported. */
export function reviewVersionOf(versions: readonly string[]): ConversionReviewVersion | undefined {
  return versions.find((version) => version === 'v1' || version === 'v1beta1');
}

export interface ConversionRequest {
  readonly uid: string;
  readonly version: ConversionReviewVersion;
  readonly desiredApiVersion: string;
  readonly objects: readonly KubeObject[];
}

export function conversionReview({ uid, version, desiredApiVersion, objects }: ConversionRequest): unknown {
  return {
    kind: 'ConversionReview',
    apiVersion: `${GROUP}/${version}`,
    request: { uid, desiredAPIVersion: desiredApiVersion, objects },
  };
}

/** The response is invalid; the message follows `conversion webhook for <kind> `. */
export class InvalidConversion extends Error {
  override name = 'InvalidConversion';
}

/** Returns the converted objects, checked against the request. Throws InvalidConversion. */
export function convertedObjects(review: unknown, request: ConversionRequest): KubeObject[] {
  const found = objectsIn(review, request);
  const { objects } = request;
  if (found.length !== objects.length) {
    throw new InvalidConversion(`returned ${found.length} objects, expected ${objects.length}`);
  }
  return found.map((object, i) => checkObject(object, objects[i]!, i, request));
}

function objectsIn(review: unknown, { uid, version }: ConversionRequest): readonly unknown[] {
  const fail = (why: string): never => {
    throw new InvalidConversion(`failed: ${why}`);
  };
  const { apiVersion, kind, response } = isRecord(review) ? review : {};
  if (version === 'v1' && (apiVersion !== `${GROUP}/v1` || kind !== 'ConversionReview')) {
    const wanted = `${GROUP}/v1, Kind=ConversionReview`;
    fail(`expected webhook response of ${wanted}, got ${text(apiVersion)}, Kind=${text(kind)}`);
  }
  if (!isRecord(response)) return fail('no response provided');
  if (version === 'v1' && response['uid'] !== uid) {
    fail(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(text(response['uid']))}`);
  }
  const result = isRecord(response['result']) ? response['result'] : {};
  if (result['status'] !== 'Success') {
    fail(text(result['message']) || `response.result.status was '${text(result['status'])}', not 'Success'`);
  }
  const objects = response['convertedObjects'];
  return Array.isArray(objects) ? objects : [];
}

const text = (value: unknown) => (typeof value === 'string' ? value : '');

function checkObject(converted: unknown, original: KubeObject, index: number, request: ConversionRequest): KubeObject {
  const isList = request.objects.length > 1;
  const where = isList ? `converted object at index ${index}` : 'object at index 0';
  const fail = (why: string, what = where): never => {
    throw new InvalidConversion(`returned invalid ${what}: ${why}`);
  };
  if (!isRecord(converted)) return fail(`Object 'Kind' is missing in '${JSON.stringify(converted)}'`);
  const { desiredApiVersion: wanted } = request;
  if (converted['apiVersion'] !== wanted) {
    fail(`invalid groupVersion (expected ${wanted}, received ${text(converted['apiVersion'])})`);
  }
  if (converted['kind'] !== original.kind) {
    fail(`invalid kind (expected ${original.kind}, received ${text(converted['kind'])})`);
  }
  const { metadata } = converted;
  const whole = isList ? where : 'object';
  for (const [field, name] of SAME_FIELDS) {
    const before = text(original.metadata[field]);
    const after = text(isRecord(metadata) ? metadata[field] : undefined);
    if (before !== after) fail(`must have the same ${name}: ${before} != ${after}`, whole);
  }
  const what = isList ? `metadata in object at index ${index}` : 'metadata';
  if (metadata === undefined) fail('missing metadata in converted object', what);
  if (!isRecord(metadata)) return fail(`invalid metadata of type ${goType(metadata)} in converted object`, what);
  return { ...(converted as KubeObject), metadata: restoreMetadata(original, metadata, (why) => fail(why, what)) };
}

const SAME_FIELDS = [
  ['name', 'name'],
  ['namespace', 'namespace'],
  ['uid', 'UID'],
] as const;

/** Restores the metadata: a webhook may change only labels and annotations. */
function restoreMetadata(
  original: KubeObject,
  converted: Record<string, unknown>,
  fail: (why: string) => never,
): KubeObject['metadata'] {
  const metadata = deepClone(original.metadata);
  for (const field of ['labels', 'annotations'] as const) {
    const value = converted[field];
    delete metadata[field];
    if (value === undefined || value === null) continue;
    if (!isRecord(value)) return fail(`invalid metadata.${field} of type ${goType(value)} in converted object`);
    const wrong = Object.entries(value).find(([, item]) => typeof item !== 'string');
    if (wrong !== undefined) {
      const type = wrong[1] === null ? '<nil>' : goType(wrong[1]);
      fail(`metadata.${field}[${wrong[0]}] must be a string, but is ${type} in converted object`);
    }
    const texts = value as Record<string, string>;
    const errors = deepEqual(texts, original.metadata[field]) ? [] : validateTexts(field, texts);
    if (errors.length > 0) fail(errors.length === 1 ? errors[0]! : `[${errors.join(', ')}]`);
    if (Object.keys(texts).length > 0) metadata[field] = texts;
  }
  return metadata;
}

/** Kubernetes calls the annotations by another name here. */
function validateTexts(field: 'labels' | 'annotations', texts: Record<string, string>): string[] {
  const object = { metadata: { name: 'any', [field]: texts } } as unknown as KubeObject;
  const errors = validateMetadata(object, { namespaced: false, nameRule: 'path-segment' });
  return errors.map(({ message }) => `metadata.${field === 'labels' ? field : 'annotation'}: ${message}`);
}
