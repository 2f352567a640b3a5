/**
 * A pod as a Job makes it. Its name ends in five characters as everywhere in Kubernetes, but they are drawn from the
 * Job's uid and the number of its turn: who decides twice on the same state names the same pod, and the second create
 * finds it there.
 */
import { type Pod } from '#engine/controllers/kinds.ts';
import { isIndexed, type Job, TRACKING_FINALIZER } from '#engine/controllers/job/kinds.ts';
import { INDEX_KEY } from '#engine/controllers/job/pod-state.ts';
import type { Stored } from '#kube/meta.ts';

/** So that the whole fits into a label. */
const BASE_MAX = 58;
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const INDEX_VARIABLE = 'JOB_COMPLETION_INDEX';

export interface NewPod {
  readonly name: string;
  /** With completionMode Indexed. */
  readonly index?: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Free names, beginning with that turn. */
export function* freeNames(
  job: Stored<Job>,
  index: number | undefined,
  firstTurn: number,
  isTaken: (name: string) => boolean,
): Generator<string, never> {
  const base = nameBase(job, index);
  const given = new Set<string>();
  for (let turn = firstTurn; ; turn++) {
    const name = base + suffixOf(`${job.metadata.uid}/${index ?? ''}/${turn}`);
    if (given.has(name) || isTaken(name)) continue;
    given.add(name);
    yield name;
  }
}

function nameBase({ metadata }: Stored<Job>, index: number | undefined): string {
  if (index === undefined) return `${metadata.name}-`.slice(0, BASE_MAX);
  const end = `-${index}-`;
  return metadata.name.slice(0, BASE_MAX - end.length) + end;
}

/** FNV-1a, with the last mix of MurmurHash3, so that turns that differ in a digit share nothing. */
function suffixOf(text: string): string {
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

export function buildPod(job: Stored<Job>, { name, index, annotations }: NewPod): Pod {
  const { template } = job.spec;
  const own = template.metadata ?? {};
  const ofIndex: Record<string, string> = index === undefined ? {} : { [INDEX_KEY]: String(index) };
  const finalizers = new Set([...(own.finalizers ?? []), TRACKING_FINALIZER]);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      generateName: nameBase(job, index),
      namespace: job.metadata.namespace,
      labels: { ...own.labels, ...ofIndex },
      annotations: { ...own.annotations, ...ofIndex, ...annotations },
      finalizers: [...finalizers],
      ownerReferences: [ownerReference(job)],
    },
    spec: podSpecFor(job, index),
  };
}

export function ownerReference({ metadata: { name, uid } }: Stored<Job>) {
  return { apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true, blockOwnerDeletion: true };
}

type Container = Pod['spec']['containers'][number];

function podSpecFor({ metadata, spec }: Stored<Job>, index: number | undefined): Pod['spec'] {
  const made: Pod['spec'] = { containers: [], ...spec.template.spec };
  if (!isIndexed(spec) || index === undefined) return made;
  return {
    ...made,
    hostname: `${metadata.name}-${index}`,
    containers: made.containers.map(withIndexVariable),
    ...(made.initContainers === undefined ? {} : { initContainers: made.initContainers.map(withIndexVariable) }),
  };
}

function withIndexVariable(container: Container): Container {
  const env = container.env ?? [];
  if (env.some(({ name }) => name === INDEX_VARIABLE)) return container;
  const fieldPath = `metadata.labels['${INDEX_KEY}']`;
  return { ...container, env: [...env, { name: INDEX_VARIABLE, valueFrom: { fieldRef: { fieldPath } } }] };
}
