/**
 * Builds the pods of a Job. As in Kubernetes, the name ends with five characters, but they are a hash of the Job's uid and
 * an attempt number: two decisions on the same state choose the same name, and the second create fails with
 * AlreadyExists.
 */
import { type EnginePod } from '#engine/controllers/kinds.ts';
import { isIndexed, type BatchJob, TRACKING_FINALIZER } from '#engine/controllers/job/kinds.ts';
import { INDEX_KEY } from '#engine/controllers/job/pod-state.ts';
import type { Stored } from '#kube/meta.ts';

/** Limits the name to the length of a label value. */
const MAX_BASE_LENGTH = 58;
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const INDEX_VARIABLE = 'JOB_COMPLETION_INDEX';

export interface NewPod {
  readonly name: string;
  /** Set with completionMode Indexed. */
  readonly index?: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Yields unused pod names, starting with the given attempt number. */
export function* freeNames(
  job: Stored<BatchJob>,
  index: number | undefined,
  firstAttempt: number,
  isTaken: (name: string) => boolean,
): Generator<string, never> {
  const base = nameBase(job, index);
  const yielded = new Set<string>();
  for (let attempt = firstAttempt; ; attempt++) {
    const name = base + hashSuffix(`${job.metadata.uid}/${index ?? ''}/${attempt}`);
    if (yielded.has(name) || isTaken(name)) continue;
    yielded.add(name);
    yield name;
  }
}

function nameBase({ metadata }: Stored<BatchJob>, index: number | undefined): string {
  if (index === undefined) return `${metadata.name}-`.slice(0, MAX_BASE_LENGTH);
  const end = `-${index}-`;
  return metadata.name.slice(0, MAX_BASE_LENGTH - end.length) + end;
}

/** FNV-1a with the finalizer of MurmurHash3, so that attempt numbers that differ in one digit give unrelated suffixes. */
function hashSuffix(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  let rest = (hash ^ (hash >>> 16)) >>> 0;
  let suffix = '';
  for (let i = 0; i < SUFFIX_LENGTH; i++) {
    suffix += ALPHABET[rest % ALPHABET.length];
    rest = Math.floor(rest / ALPHABET.length);
  }
  return suffix;
}

export function buildPod(job: Stored<BatchJob>, { name, index, annotations }: NewPod): EnginePod {
  const { template } = job.spec;
  const own = template.metadata ?? {};
  const indexEntry: Record<string, string> = index === undefined ? {} : { [INDEX_KEY]: String(index) };
  const finalizers = new Set([...(own.finalizers ?? []), TRACKING_FINALIZER]);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      generateName: nameBase(job, index),
      namespace: job.metadata.namespace,
      labels: { ...own.labels, ...indexEntry },
      annotations: { ...own.annotations, ...indexEntry, ...annotations },
      finalizers: [...finalizers],
      ownerReferences: [ownerReference(job)],
    },
    spec: buildPodSpec(job, index),
  };
}

export function ownerReference({ metadata: { name, uid } }: Stored<BatchJob>) {
  return { apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true, blockOwnerDeletion: true };
}

type Container = EnginePod['spec']['containers'][number];

function buildPodSpec({ metadata, spec }: Stored<BatchJob>, index: number | undefined): EnginePod['spec'] {
  const podSpec: EnginePod['spec'] = { containers: [], ...spec.template.spec };
  if (!isIndexed(spec) || index === undefined) return podSpec;
  return {
    ...podSpec,
    hostname: `${metadata.name}-${index}`,
    containers: podSpec.containers.map(withIndexVariable),
    ...(podSpec.initContainers === undefined ? {} : { initContainers: podSpec.initContainers.map(withIndexVariable) }),
  };
}

function withIndexVariable(container: Container): Container {
  const env = container.env ?? [];
  if (env.some(({ name }) => name === INDEX_VARIABLE)) return container;
  const fieldPath = `metadata.labels['${INDEX_KEY}']`;
  return { ...container, env: [...env, { name: INDEX_VARIABLE, valueFrom: { fieldRef: { fieldPath } } }] };
}
