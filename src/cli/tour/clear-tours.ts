/** Cleans up after the current tour and after killed ones. */
import { hostname } from 'node:os';
import { PROTECTION_LABEL } from '#api/delete-protection.ts';
import { JOBS } from '#api/machine-types/kinds.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { readJobs } from '#cli/machine-types/read-transitions.ts';
import { transitionNamespace } from '#cli/machine-types/transition-job.ts';
import { clearKilledTours } from '#cli/tour/own-plane.ts';
import { TourApi, type TourApiOptions } from '#cli/tour/tour-api.ts';
import { VM_NAME } from '#cli/tour/tour-vm.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';
import { objectPath } from '#client/resource-path.ts';
import type { Stored } from '#kube/meta.ts';
import { isAlive } from '#lib/owned-dir.ts';

export const NAMESPACE_PREFIX = 'selfsame-tour-';
/** On the namespace: whose it is, so that others know when that one is gone. */
const WALKER = 'selfsame.io/tour-process';
const CLEAR_MS = 120_000;

export const walkerMark = (): Readonly<Record<string, string>> => ({ [WALKER]: `${hostname()}/${process.pid}` });

/** A namespace with the VM of a tour in it, however far that came. */
export async function clearNamespace(options: Omit<TourApiOptions, 'signal'>): Promise<void> {
  // Not with the signal of the tour: it may have come already.
  const api = new TourApi({ ...options, signal: AbortSignal.timeout(CLEAR_MS) });
  const vm = await api.find(VIRTUAL_MACHINES, VM_NAME);
  if (vm !== undefined) {
    await api.patch(VIRTUAL_MACHINES, VM_NAME, { metadata: { labels: { [PROTECTION_LABEL]: null } } });
    await api.remove(VIRTUAL_MACHINES, VM_NAME);
    await api.until(VIRTUAL_MACHINES, VM_NAME, 'the VM to be deleted', (found) => found === undefined);
  }
  await removeTransitionJobs(api);
  await api.remove(NAMESPACES, api.namespace);
  await api.until(NAMESPACES, api.namespace, 'the namespace to be deleted', (found) => found === undefined);
}

/** Removes the Jobs in the system namespace that change machine types in the namespace of the tour. */
export async function removeTransitionJobs({ connection, namespace }: TourApi): Promise<void> {
  const jobs = await readJobs({ ...connection, namespace }, () => {});
  for (const { metadata } of jobs.filter((job) => transitionNamespace(job) === namespace)) {
    await connection.remove(objectPath(JOBS, { namespace: SYSTEM_NAMESPACE, name: metadata.name }), metadata.uid);
  }
}

/** What was left on this machine and, where there is one, on a plane that runs; one line for each thing that was removed. */
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

/** Those of tours on other machines are theirs. */
function isAbandoned({ metadata }: Stored): boolean {
  const [, host, pid] = /^(.+)\/(\d+)$/.exec(metadata.annotations?.[WALKER] ?? '') ?? [];
  return metadata.name.startsWith(NAMESPACE_PREFIX) && host === hostname() && !isAlive(Number(pid));
}
