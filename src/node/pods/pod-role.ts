/** Classifies the pods of this node. The node has no container runtime: only guests and this program can run. Pure. */
import {
  APP_LABEL,
  COMPUTE_CONTAINER,
  CREATED_BY_LABEL,
  DOMAIN_ANNOTATION,
  LAUNCHER_APP,
  LAUNCHER_IMAGE,
  PROGRAM_IMAGE,
} from '#api/names.ts';
import type { Pod } from '#kube/core-kinds.ts';

export type PodRole =
  /** Runs the guest of the instance with that name and uid. */
  | { readonly is: 'launcher'; readonly instance: string; readonly uid: string }
  /** Runs this program itself, as Jobs do. */
  | { readonly is: 'program' }
  /** Cannot run here. Pods of DaemonSets wait instead of failing, because failed ones would be recreated forever. */
  | { readonly is: 'unsupported'; readonly image: string; readonly waits: boolean };

export function podRole(pod: Pod): PodRole {
  const { labels = {}, annotations = {} } = pod.metadata;
  const { containers } = pod.spec;
  const compute = containers.find(({ name }) => name === COMPUTE_CONTAINER);
  if (labels[APP_LABEL] === LAUNCHER_APP && compute !== undefined && isImage(compute.image, LAUNCHER_IMAGE)) {
    const [instance, uid] = [annotations[DOMAIN_ANNOTATION], labels[CREATED_BY_LABEL]];
    if (instance && uid) return { is: 'launcher', instance, uid };
  }
  const unsupported = containers.find(({ image }) => !isImage(image, PROGRAM_IMAGE));
  if (unsupported === undefined) return { is: 'program' };
  return { is: 'unsupported', image: unsupported.image, waits: ownedByDaemonSet(pod) };
}

/** Compares images, ignoring tag, digest and the default registry. */
function isImage(image: string, expected: string): boolean {
  const bare = image.replace(/^docker\.io\//, '');
  return bare === expected || bare.startsWith(`${expected}:`) || bare.startsWith(`${expected}@`);
}

function ownedByDaemonSet({ metadata }: Pod): boolean {
  return (metadata.ownerReferences ?? []).some(
    ({ kind, controller, apiVersion }) => kind === 'DaemonSet' && controller && apiVersion.startsWith('apps/'),
  );
}
