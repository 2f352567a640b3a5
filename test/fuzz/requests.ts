/** Random requests to everything that an API serves: every kind, verb and subresource, and other paths. */
import { subresourcesOf } from '#engine/discovery/subresources.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { apiVersionOf, isRecord } from '#kube/meta.ts';
import { jsonBytes, noise, protobufBytes, yamlBytes } from '#test/fuzz/body-bytes.ts';
import { mutated, valueOf } from '#test/fuzz/from-schema.ts';
import { hugeValue, oddValue, ODD_TEXTS, put } from '#test/fuzz/odd-values.ts';
import { patchOf, PATCH_TYPES } from '#test/fuzz/patches.ts';
import { queryOf } from '#test/fuzz/queries.ts';
import { RICH_CRD } from '#test/fuzz/rich-kind.ts';
import { VALID_OBJECTS } from '#test/fuzz/valid-objects.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';

export interface FuzzRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly contentType: string;
  readonly accept: string;
  readonly body: Buffer;
}

export interface FuzzWorld {
  readonly resources: readonly Resource[];
  readonly random: SeededRandom;
  /** Returns the current object at a path, or undefined if there is none. */
  read(path: string): Promise<unknown>;
}

export const NAMESPACE = 'fuzz';

const METHODS = ['POST', 'POST', 'POST', 'PUT', 'PUT', 'PATCH', 'PATCH', 'PATCH', 'PATCH', 'GET', 'GET', 'DELETE'];
const ODD_METHODS = ['HEAD', 'OPTIONS', 'TRACE', 'odd', ''];
const NAMES = ['a', 'b', 'c'];
const ACCEPTS = [
  ...['application/yaml', '*/*', '', 'text/html'],
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/vnd.kubernetes.protobuf',
  'application/json;as=Odd;v=v9;g=x, */*;q=0.1;;;=',
];
const BODY_TYPES = [
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  '',
  'text/plain',
  'application/json; a=b',
];
const PATHS = [
  ...['/', '/api', '/apis', '/api/v1', '/apis/apps', '/apis/fuzz.local/v1', '/version', '/healthz', '/readyz/ping'],
  ...['/livez?verbose&exclude=x', '/metrics', '/openapi/v2', '/openapi/v3', '/openapi/v3/api/v1', '/openid/v1/jwks'],
  ...['/openapi/v3/apis/fuzz.local/v1?hash=X', '/.well-known/openid-configuration', '/api//v1', '/apis/%zz/x', '/odd'],
];

/** The probability that a request is sent to an object, not to the whole collection. */
const ITEM_PROBABILITY: Readonly<Record<string, number>> = { PUT: 0.98, PATCH: 0.98, GET: 0.4 };

export async function randomRequest(world: FuzzWorld): Promise<FuzzRequest> {
  const { random, resources } = world;
  const accept = random.chance(0.8) ? 'application/json' : random.pick(ACCEPTS);
  if (random.chance(0.03)) return pathRequest(random, accept);
  const resource = random.pick(resources);
  const method = methodFor(resource, random);
  const name = random.chance(0.96) ? random.pick(NAMES) : random.pick(ODD_TEXTS);
  const subresource = subresourceOf(resource, random);
  const onItem =
    method === 'POST' ? subresource !== '' || random.chance(0.03) : random.chance(ITEM_PROBABILITY[method] ?? 0.9);
  const collection = collectionPath(resource, random);
  const item = `${collection}/${encodeURIComponent(name.toWellFormed())}${subresource}`;
  const path = onItem ? item : collection;
  const kindOf = { resource, name, subresource };
  if (method === 'PATCH') return patchRequest(world, kindOf, path, accept);
  const contentType = random.chance(0.7) ? 'application/json' : random.pick(BODY_TYPES);
  const value =
    method === 'DELETE' ? deleteOptions(random) : method === 'GET' ? undefined : await objectFor(world, kindOf, path);
  const body = value === undefined ? Buffer.alloc(0) : bytesOf(value, contentType, random);
  return { method, url: path + queryOf(method, false, random), contentType, accept, body };
}

function methodFor({ isReview }: Resource, random: SeededRandom): string {
  if (random.chance(0.02)) return random.pick(ODD_METHODS);
  return isReview === true && random.chance(0.9) ? 'POST' : random.pick(METHODS);
}

/** Returns a request that creates an object like an ordinary client. */
export function plainCreate(resource: Resource, name: string, random: SeededRandom): FuzzRequest {
  const url = collectionPath(resource, random);
  const body = Buffer.from(JSON.stringify(validObject({ resource, name, subresource: '' }, random)));
  return { method: 'POST', url, contentType: 'application/json', accept: 'application/json', body };
}

interface KindOf {
  readonly resource: Resource;
  readonly name: string;
  /** Begins with a slash, or is empty. */
  readonly subresource: string;
}

function pathRequest(random: SeededRandom, accept: string): FuzzRequest {
  const method = random.chance(0.9) ? 'GET' : random.pick(METHODS);
  return { method, url: random.pick(PATHS), contentType: '', accept, body: Buffer.alloc(0) };
}

function collectionPath({ group, version, plural, namespaced }: Resource, random: SeededRandom): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const scoped = random.chance(0.97) ? namespaced : !namespaced;
  const namespace = random.chance(0.98) ? NAMESPACE : encodeURIComponent(random.pick(ODD_TEXTS).toWellFormed());
  return scoped ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`;
}

function subresourceOf(resource: Resource, random: SeededRandom): string {
  if (random.chance(0.03))
    return random.pick(['/odd', '/status', '/scale', '/status/deeper', '/__proto__', '/finalize']);
  const own = subresourcesOf(resource);
  return own.length > 0 && random.chance(0.3) ? `/${random.pick(own).name}` : '';
}

async function patchRequest(world: FuzzWorld, kindOf: KindOf, path: string, accept: string): Promise<FuzzRequest> {
  const { random } = world;
  const type = random.pick(PATCH_TYPES);
  const current = (await world.read(path)) ?? validObject(kindOf, random);
  const value = patchOf(type, current, random, () => valueOf(kindOf.resource.schema, random));
  const contentType = random.chance(0.98) ? type : random.pick(BODY_TYPES);
  const isApply = type === 'application/apply-patch+yaml';
  const written = isApply && random.chance(0.5) ? 'application/yaml' : 'application/json';
  const body = bytesOf(random.chance(0.99) ? value : hugeValue(random), written, random);
  return { method: 'PATCH', url: path + queryOf('PATCH', isApply, random), contentType, accept, body };
}

function deleteOptions(random: SeededRandom): unknown {
  if (random.chance(0.6)) return undefined;
  if (random.chance(0.2)) return oddValue(random);
  return {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    ...(random.chance(0.5) ? { gracePeriodSeconds: random.pick<unknown>([0, 1, -1, '1', 2 ** 60, 0.5]) } : {}),
    ...(random.chance(0.5)
      ? { propagationPolicy: random.pick<unknown>(['Orphan', 'Foreground', 'Odd', null, 1]) }
      : {}),
    ...(random.chance(0.2)
      ? { preconditions: random.pick<unknown>([{ uid: 'x' }, { resourceVersion: 1 }, null]) }
      : {}),
    ...(random.chance(0.2) ? { dryRun: random.pick<unknown>([['All'], 'All', [1], []]) } : {}),
  };
}

async function objectFor(world: FuzzWorld, kindOf: KindOf, path: string): Promise<unknown> {
  const { random } = world;
  if (random.chance(0.03)) return oddValue(random);
  const base = (random.chance(0.6) ? await world.read(path) : undefined) ?? validObject(kindOf, random);
  if (random.chance(0.2)) return base;
  const replacement = () => {
    if (random.chance(0.01)) return hugeValue(random);
    return random.chance(0.4) ? oddValue(random, 2) : valueOf(kindOf.resource.schema, random, 3);
  };
  return mutated(base, random, replacement);
}

function validObject({ resource, name, subresource }: KindOf, random: SeededRandom): Record<string, unknown> {
  if (subresource === '/scale') {
    return {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name },
      spec: { replicas: random.between(0, 9) },
    };
  }
  if (subresource === '/eviction') return { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } };
  if (subresource === '/binding') {
    return { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: 'a' } };
  }
  if (subresource === '/token') {
    const spec = { audiences: ['a'], expirationSeconds: 600 };
    return { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: {}, spec };
  }
  const known = random.chance(0.85) ? VALID_OBJECTS[resource.plural] : undefined;
  const generated = known ?? valueOf(resource.schema, random);
  const fields = isRecord(generated) ? structuredClone(generated) : {};
  const made: Record<string, unknown> = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  const { metadata: _, ...rest } =
    resource.plural === 'customresourcedefinitions' ? definitionFor(name, random) : fields;
  for (const [key, value] of Object.entries(rest)) put(made, key, value);
  made['metadata'] = metadataFor(resource, name, random);
  return made;
}

function definitionFor(name: string, random: SeededRandom): Record<string, unknown> {
  const { spec } = structuredClone(RICH_CRD) as { spec: Record<string, unknown> };
  const names = { plural: name, singular: name, kind: `K${name}`, listKind: `K${name}List` };
  return { spec: { ...spec, group: 'made.local', names, conversion: random.pick([undefined, { strategy: 'None' }]) } };
}

function metadataFor({ plural, namespaced }: Resource, name: string, random: SeededRandom): Record<string, unknown> {
  const shown =
    plural === 'customresourcedefinitions' ? `${name}.made.local` : plural === 'apiservices' ? 'v1.other.local' : name;
  return {
    ...(random.chance(0.95) ? { name: shown } : { generateName: 'made-' }),
    ...(namespaced && random.chance(0.5) ? { namespace: NAMESPACE } : {}),
    ...(random.chance(0.4) ? { labels: { a: 'b' }, annotations: { 'example.com/a': 'x' } } : {}),
    ...(random.chance(0.05) ? { finalizers: ['example.com/hold'] } : {}),
    ...(random.chance(0.05)
      ? { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'u', controller: true }] }
      : {}),
  };
}

function bytesOf(value: unknown, contentType: string, random: SeededRandom): Buffer {
  if (random.chance(0.01)) return noise(random);
  if (contentType.includes('protobuf')) return random.chance(0.9) ? protobufBytes(random) : noise(random);
  return contentType === 'application/yaml' ? yamlBytes(value, random) : jsonBytes(value, random);
}
