/** What a conversion webhook is asked, and what it may answer: Kubernetes' checks and words. Pure. */
import { validateMetadata } from '#engine/registry/metadata.ts';
import { isRecord, type KubeObject, parseApiVersion } from '#kube/meta.ts';
import { goType } from '#kube/go-text.ts';
import { deepClone, deepEqual } from '#kube/deep.ts';

export type ReviewVersion = 'v1' | 'v1beta1';

const GROUP = 'apiextensions.k8s.io';

/** The first of those that a definition names and that we know. */
export function reviewVersionOf(versions: readonly string[]): ReviewVersion | undefined {
  return versions.find((version) => version === 'v1' || version === 'v1beta1');
}

export interface Question {
  readonly uid: string;
  readonly version: ReviewVersion;
  readonly desiredApiVersion: string;
  readonly objects: readonly KubeObject[];
}

export function conversionReview({ uid, version, desiredApiVersion, objects }: Question): unknown {
  return {
    kind: 'ConversionReview',
    apiVersion: `${GROUP}/${version}`,
    request: { uid, desiredAPIVersion: desiredApiVersion, objects },
  };
}

/** The answer is not one; the message comes behind `conversion webhook for <kind> `. */
export class InvalidConversion extends Error {
  override name = 'InvalidConversion';
}

/** The converted objects, checked against those that were asked for. Throws InvalidConversion. */
export function convertedObjects(answer: unknown, question: Question): KubeObject[] {
  const found = objectsIn(answer, question);
  const { objects } = question;
  if (found.length !== objects.length) {
    throw new InvalidConversion(`returned ${found.length} objects, expected ${objects.length}`);
  }
  return found.map((object, i) => checked(object, objects[i]!, i, question));
}

function objectsIn(answer: unknown, { uid, version }: Question): readonly unknown[] {
  const fail = (why: string): never => {
    throw new InvalidConversion(`failed: ${why}`);
  };
  const { apiVersion, kind, response } = isRecord(answer) ? answer : {};
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

function checked(converted: unknown, original: KubeObject, index: number, question: Question): KubeObject {
  const isList = question.objects.length > 1;
  const where = isList ? `converted object at index ${index}` : 'object at index 0';
  const fail = (why: string, what = where): never => {
    throw new InvalidConversion(`returned invalid ${what}: ${why}`);
  };
  if (!isRecord(converted)) return fail(`Object 'Kind' is missing in '${JSON.stringify(converted)}'`);
  const { desiredApiVersion: wanted } = question;
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
  return { ...(converted as KubeObject), metadata: restored(original, metadata, (why) => fail(why, what)) };
}

const SAME_FIELDS = [
  ['name', 'name'],
  ['namespace', 'namespace'],
  ['uid', 'UID'],
] as const;

/** A webhook may change labels and annotations, and nothing else of the metadata. */
function restored(
  original: KubeObject,
  answered: Record<string, unknown>,
  fail: (why: string) => never,
): KubeObject['metadata'] {
  const metadata = deepClone(original.metadata);
  for (const field of ['labels', 'annotations'] as const) {
    const value = answered[field];
    delete metadata[field];
    if (value === undefined || value === null) continue;
    if (!isRecord(value)) return fail(`invalid metadata.${field} of type ${goType(value)} in converted object`);
    const wrong = Object.entries(value).find(([, item]) => typeof item !== 'string');
    if (wrong !== undefined) {
      const type = wrong[1] === null ? '<nil>' : goType(wrong[1]);
      fail(`metadata.${field}[${wrong[0]}] must be a string, but is ${type} in converted object`);
    }
    const texts = value as Record<string, string>;
    const faults = deepEqual(texts, original.metadata[field]) ? [] : textFaults(field, texts);
    if (faults.length > 0) fail(faults.length === 1 ? faults[0]! : `[${faults.join(', ')}]`);
    if (Object.keys(texts).length > 0) metadata[field] = texts;
  }
  return metadata;
}

/** Kubernetes calls the annotations by another name here. */
function textFaults(field: 'labels' | 'annotations', texts: Record<string, string>): string[] {
  const object = { metadata: { name: 'any', [field]: texts } } as unknown as KubeObject;
  const faults = validateMetadata(object, { namespaced: false, nameRule: 'path-segment' });
  return faults.map(({ message }) => `metadata.${field === 'labels' ? field : 'annotation'}: ${message}`);
}

/** `golden.local/v1, Kind=Gadget`. */
export function kindText({ apiVersion, kind }: KubeObject): string {
  const { group, version } = parseApiVersion(apiVersion);
  return `${group}/${version}, Kind=${kind}`;
}
