/**
 * A namespace and two custom kinds for scenarios of server-side apply, and field owners in a readable form for tables.
 */
import { parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import { describePaths } from '#kube/field-sets/describe-paths.ts';
import type { LocalServices } from '#engine/remote/local-services.ts';
import type { Clock } from '#lib/clock.ts';
import { startTestApi, type TestResponse, type CallOptions, type Loose, type TestApi } from '#test/support/test-api.ts';

export interface ApplyScene extends TestApi {
  /** Applies a configuration (an object, or YAML) as a field manager. */
  apply(manager: string, url: string, config: Loose, query?: string): Promise<TestResponse>;
  /** Like `apply`, but throws if the request fails. */
  applyOk(manager: string, url: string, config: Loose, query?: string): Promise<Loose>;
  merge(manager: string, url: string, body: Loose): Promise<Loose>;
}

export const CONFIG_MAP = '/api/v1/namespaces/ns/configmaps/a';
export const GADGETS = '/apis/golden.local/v1/namespaces/ns/gadgets';
export const GADGET = `${GADGETS}/a`;
export const GADGET_V2 = '/apis/golden.local/v2/namespaces/ns/gadgets/a';

export const configMap = (data: Loose, metadata: Loose = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', ...metadata },
  ...(data === undefined ? {} : { data }),
});

export const gadget = (spec: Loose, more: Loose = {}, version = 'v1') => ({
  apiVersion: `golden.local/${version}`,
  kind: 'Gadget',
  metadata: { name: 'a' },
  ...(spec === undefined ? {} : { spec }),
  ...more,
});

const text = { type: 'string' };
const part = { type: 'object', required: ['name'], properties: { name: text, value: text, more: text } };

const gadgetSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        color: text,
        size: { type: 'integer' },
        mode: { type: 'string', default: 'auto' },
        replicas: { type: 'integer' },
        atomic: { type: 'array', items: text },
        set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        parts: { type: 'array', items: part, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
        options: { type: 'object', additionalProperties: text },
        whole: { type: 'object', additionalProperties: text, 'x-kubernetes-map-type': 'atomic' },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
    status: { type: 'object', properties: { phase: text, replicas: { type: 'integer' } } },
  },
};

const version = (name: string, storage: boolean) => ({
  name,
  served: true,
  storage,
  schema: { openAPIV3Schema: gadgetSchema },
  subresources: {
    status: {},
    scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
  },
});

export const gadgets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gadgets.golden.local' },
  spec: {
    group: 'golden.local',
    scope: 'Namespaced',
    names: { kind: 'Gadget', plural: 'gadgets' },
    versions: [version('v1', true), version('v2', false)],
  },
};

export async function startApplyScene(options: { clock?: Clock; services?: LocalServices } = {}): Promise<ApplyScene> {
  const api = await startTestApi(options);
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ns' } };
  await api.ok('POST', '/api/v1/namespaces', { body: namespace });
  await api.ok('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: gadgets });
  await api.settle();
  const patch = (url: string, body: unknown, contentType: string): [string, string, CallOptions] => [
    'PATCH',
    url,
    { body, contentType },
  ];
  const applying = (manager: string, url: string, config: Loose, query = '') =>
    patch(`${url}?fieldManager=${manager}${query === '' ? '' : `&${query}`}`, config, 'application/apply-patch+yaml');
  return {
    ...api,
    apply: (...response) => api.call(...applying(...response)),
    applyOk: (...args) => api.ok(...applying(...args)),
    merge: (manager, url, body) =>
      api.ok(...patch(`${url}?fieldManager=${manager}`, body, 'application/merge-patch+json')),
  };
}

/** Returns the paths that each manager owns, by manager and operation: `alice Apply`. */
export function owners(object: Loose): Record<string, string[]> {
  const entries = (object.metadata.managedFields ?? []) as Loose[];
  return Object.fromEntries(
    entries.map(({ manager, operation, subresource, fieldsV1 }) => [
      [manager, operation, subresource].filter(Boolean).join(' '),
      describePaths(parseFieldsV1(fieldsV1)),
    ]),
  );
}
