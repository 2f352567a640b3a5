/** The environment variables of a pod's program: plain values, and fields of the pod (the downward API). Pure. */
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

export interface ProgramVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath?: string }; readonly [source: string]: unknown };
}

const KEYED_FIELD = /^metadata\.(labels|annotations)\['([^']{1,317})'\]$/;

const SIMPLE_FIELDS: ReadonlyMap<string, (pod: Stored<Pod>) => string | undefined> = new Map([
  ['metadata.name', ({ metadata }) => metadata.name],
  ['metadata.namespace', ({ metadata }) => metadata.namespace],
  ['metadata.uid', ({ metadata }) => metadata.uid],
  ['spec.nodeName', ({ spec }) => spec.nodeName],
  ['spec.serviceAccountName', ({ spec }) => spec.serviceAccountName],
]);

/** The supported fields, for messages. */
export const SUPPORTED_FIELDS = [...SIMPLE_FIELDS.keys(), "metadata.labels['KEY']", "metadata.annotations['KEY']"].join(
  ', ',
);

/** Reports whether the node can compute the value of a variable. */
export function hasSupportedSource({ valueFrom }: ProgramVariable): boolean {
  if (valueFrom === undefined) return true;
  const path = valueFrom.fieldRef?.fieldPath ?? '';
  return SIMPLE_FIELDS.has(path) || KEYED_FIELD.test(path);
}

/** Returns the variables of the first container. A field that the pod does not have is empty, as in the kubelet. */
export function programVariables(pod: Stored<Pod>): Record<string, string> {
  const env: readonly ProgramVariable[] = pod.spec.containers[0]?.env ?? [];
  return Object.fromEntries(env.map((variable) => [variable.name, valueOf(variable, pod)]));
}

function valueOf({ value = '', valueFrom }: ProgramVariable, pod: Stored<Pod>): string {
  const path = valueFrom?.fieldRef?.fieldPath;
  if (path === undefined) return value;
  const [, part, key = ''] = KEYED_FIELD.exec(path) ?? [];
  if (part === undefined) return SIMPLE_FIELDS.get(path)?.(pod) ?? '';
  const values = (part === 'labels' ? pod.metadata.labels : pod.metadata.annotations) ?? {};
  return Object.hasOwn(values, key) ? (values[key] ?? '') : '';
}
