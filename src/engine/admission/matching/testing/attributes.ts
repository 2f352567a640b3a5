/** Admission attributes for tests: a valid request with overrides. */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { configMaps } from '#engine/registry/kinds/core/config-map.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface RecordedNotes {
  readonly warnings: string[];
  readonly annotations: Map<string, string>;
}

/** Defaults to the creation of a ConfigMap. */
export function anAdmission(
  overrides: Partial<AdmissionAttributes> = {},
): AdmissionAttributes & { noted: RecordedNotes } {
  const resource: Resource = overrides.resource ?? configMaps;
  const noted: RecordedNotes = { warnings: [], annotations: new Map() };
  const operation = overrides.operation ?? 'CREATE';
  return {
    operation,
    resource,
    kind: resource,
    subresource: '',
    namespace: resource.namespaced ? 'golden' : '',
    name: 'thing',
    object: operation === 'DELETE' ? undefined : anObject(resource),
    oldObject: operation === 'CREATE' ? undefined : anObject(resource),
    user: { name: 'alice', groups: ['system:authenticated'] },
    dryRun: false,
    options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    notes: {
      warn: (message) => void noted.warnings.push(message),
      annotate: (key, value) => void noted.annotations.set(key, value),
    },
    signal: new AbortController().signal,
    reshape: () => {},
    ...overrides,
    noted,
  };
}

export function anObject(resource: Resource, labels?: Record<string, string>): KubeObject {
  const apiVersion = resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
  const metadata = {
    name: 'thing',
    ...(resource.namespaced ? { namespace: 'golden' } : {}),
    ...(labels === undefined ? {} : { labels }),
  };
  return { apiVersion, kind: resource.kind, metadata };
}
