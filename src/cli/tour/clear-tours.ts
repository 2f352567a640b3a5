/** Cleans up after the current tour and after killed ones. */
import { hostname } from 'node:os';
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { TRANSITION_JOBS } from '#api/machine-types/kinds.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { listTransitionJobs } from '#cli/machine-types/read-transitions.ts';
import { transitionNamespace } from '#cli/machine-types/transition-job.ts';
import { clearKilledTours } from '#cli/tour/own-plane.ts';
import { TourApi, type TourApiOptions } from '#cli/tour/tour-api.ts';
import { VM_NAME } from '#cli/tour/tour-vm.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import { objectPath } from '#client/resource-path.ts';
import type { Stored } from '#kube/meta.ts';
import { isAlive } from '#lib/files/owned-dir.ts';

export const NAMESPACE_PREFIX = 'selfsame-tour-';
/** The annotation of the namespace with the process of the tour, so that abandoned namespaces can be found. */
const TOUR_PROCESS_ANNOTATION = 'selfsame.io/tour-process';
const CLEAR_MS = 120_000;

export const tourProcessAnnotations = (): Readonly<Record<string, string>> => ({
  [TOUR_PROCESS_ANNOTATION]: `${hostname()}/${process.pid}`,
});

/** Deletes the namespace of a tour and its VM, if it exists. */
export async function clearNamespace(options: Omit<TourApiOptions, 'signal'>): Promise<void> {
  // The signal of the tour may be aborted already, so it is not used here.
  const api = new TourApi({ ...options, signal: AbortSignal.timeout(CLEAR_MS) });
  const vm = await api.find(VIRTUAL_MACHINES, VM_NAME);
  if (vm !== undefined) {
    await api.patch(VIRTUAL_MACHINES, VM_NAME, { metadata: { labels: { [PROTECTION_LABEL]: null } } });
    await api.remove(VIRTUAL_MACHINES, VM_NAME);
    await api.waitUntil(VIRTUAL_MACHINES, VM_NAME, 'the VM to be deleted', (found) => found === undefined);
  }
  await removeTransitionJobs(api);
  await api.remove(NAMESPACES, api.namespace);
  await api.waitUntil(NAMESPACES, api.namespace, 'the namespace to be deleted', (found) => found === undefined);
}

/** Removes the Jobs in the system namespace that change machine types in the namespace of the tour. */
export async function removeTransitionJobs({ connection, namespace }: TourApi): Promise<void> {
  const jobs = await listTransitionJobs({ ...connection, namespace }, () => {});
  for (const { metadata } of jobs.filter((job) => transitionNamespace(job) === namespace)) {
    await connection.remove(
      objectPath(TRANSITION_JOBS, { namespace: SYSTEM_NAMESPACE, name: metadata.name }),
      metadata.uid,
    );
  }
}

/** Removes what killed tours left on this machine and on the given plane. Returns a line for each removed item. */
export async function clearTours(plane?: Omit<TourApiOptions, 'signal' | 'namespace'>): Promise<readonly string[]> {
  const lines = (await clearKilledTours()).map((dir) => `removed ${dir}, and stopped its processes`);
  if (plane === undefined) return lines;
  const api = new TourApi({ ...plane, namespace: '', signal: AbortSignal.timeout(CLEAR_MS) });
  for (const namespace of (await api.list(NAMESPACES)).filter(isAbandoned)) {
    const { name } = namespace.metadata;
    await clearNamespace({ ...plane, namespace: name });
    lines.push(`removed namespace ${name} and its VM`);
  }
  return lines;
}

/** Reports whether the tour of a namespace was killed. Namespaces of tours on other machines are ignored. */
function isAbandoned({ metadata }: Stored): boolean {
  const [, host, pid] = /^(.+)\/(\d+)$/.exec(metadata.annotations?.[TOUR_PROCESS_ANNOTATION] ?? '') ?? [];
  return metadata.name.startsWith(NAMESPACE_PREFIX) && host === hostname() && !isAlive(Number(pid));
}
