/** What a pod that is bound to this node is to us. There are no containers here: only what this program brings runs. Pure. */
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
  /** Runs the guest of the instance of that name and uid. */
  | { readonly is: 'launcher'; readonly instance: string; readonly uid: string }
  /** Runs this program itself, as Jobs do. */
  | { readonly is: 'program' }
  /** Nothing that runs here. Pods of DaemonSets wait, for they would be made anew for ever. */
  | { readonly is: 'unsupported'; readonly image: string; readonly waits: boolean };

export function podRole(pod: Pod): PodRole {
  const { labels = {}, annotations = {} } = pod.metadata;
  const { containers } = pod.spec;
  const compute = containers.find(({ name }) => name === COMPUTE_CONTAINER);
  if (labels[APP_LABEL] === LAUNCHER_APP && compute !== undefined && isImage(compute.image, LAUNCHER_IMAGE)) {
    const [instance, uid] = [annotations[DOMAIN_ANNOTATION], labels[CREATED_BY_LABEL]];
    if (instance && uid) return { is: 'launcher', instance, uid };
  }
  const strange = containers.find(({ image }) => !isImage(image, PROGRAM_IMAGE));
  if (strange === undefined) return { is: 'program' };
  return { is: 'unsupported', image: strange.image, waits: ownedByDaemonSet(pod) };
}

/** With any tag or digest, also when the registry is spelled out as container runtimes do. */
function isImage(image: string, ours: string): boolean {
  const bare = image.replace(/^docker\.io\//, '');
  return bare === ours || bare.startsWith(`${ours}:`) || bare.startsWith(`${ours}@`);
}

function ownedByDaemonSet({ metadata }: Pod): boolean {
  return (metadata.ownerReferences ?? []).some(
    ({ kind, controller, apiVersion }) => kind === 'DaemonSet' && controller && apiVersion.startsWith('apps/'),
  );
}
