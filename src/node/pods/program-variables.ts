/** The variables of a pod of ours: values, and what the pod says about itself (the downward API). Pure. */
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

export interface ProgramVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath?: string }; readonly [source: string]: unknown };
}

const NOTE = /^metadata\.(labels|annotations)\['([^']{1,317})'\]$/;

const PLAIN: ReadonlyMap<string, (pod: Stored<Pod>) => string | undefined> = new Map([
  ['metadata.name', ({ metadata }) => metadata.name],
  ['metadata.namespace', ({ metadata }) => metadata.namespace],
  ['metadata.uid', ({ metadata }) => metadata.uid],
  ['spec.nodeName', ({ spec }) => spec.nodeName],
  ['spec.serviceAccountName', ({ spec }) => spec.serviceAccountName],
]);

/** For people. */
export const FIELDS = [...PLAIN.keys(), "metadata.labels['KEY']", "metadata.annotations['KEY']"].join(', ');

export function hasKnownSource({ valueFrom }: ProgramVariable): boolean {
  if (valueFrom === undefined) return true;
  const path = valueFrom.fieldRef?.fieldPath ?? '';
  return PLAIN.has(path) || NOTE.test(path);
}

/** What the pod does not have is empty, as with a kubelet. */
export function programVariables(pod: Stored<Pod>): Record<string, string> {
  const env: readonly ProgramVariable[] = pod.spec.containers[0]?.env ?? [];
  return Object.fromEntries(env.map((variable) => [variable.name, valueOf(variable, pod)]));
}

function valueOf({ value = '', valueFrom }: ProgramVariable, pod: Stored<Pod>): string {
  const path = valueFrom?.fieldRef?.fieldPath;
  if (path === undefined) return value;
  const [, part, key = ''] = NOTE.exec(path) ?? [];
  if (part === undefined) return PLAIN.get(path)?.(pod) ?? '';
  const notes = (part === 'labels' ? pod.metadata.labels : pod.metadata.annotations) ?? {};
  return Object.hasOwn(notes, key) ? (notes[key] ?? '') : '';
}
