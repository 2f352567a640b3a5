/**
 * What a Job does first: every VM that carries the mark machineTypeRestartRequired is checked, whoever set it and wherever
 * it is. A mark whose instance is gone, or runs on its new type, is cleared; any other is kept. VMs of the Job's own plan
 * are left to the plan.
 */
import type { PlanEntry } from '#api/machine-types/plan.ts';
import { isMarked, judgeMark, type TypeMeanings } from '#api/machine-types/restart-mark.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { ApiError, isApiError, isUnfitPatch } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { liveLook } from '#runtime/live-look.ts';
import { persist } from '#transition/persist.ts';
import { markPatch } from '#transition/type-patch.ts';

export interface CheckParts {
  readonly client: Pick<Client, 'get' | 'list' | 'patch'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const AT_ONCE = 32;

/** `meanings` is asked for only where a VM is marked. A mark that cannot be written is logged and left as it is. */
export async function checkMarks(
  parts: CheckParts,
  planned: readonly Pick<PlanEntry, 'uid'>[],
  meanings: () => Promise<TypeMeanings>,
): Promise<void> {
  const { client, signal } = parts;
  const own = new Set(planned.map(({ uid }) => uid));
  const { items } = await persist(parts, 'list VMs', () => listAll(client, VIRTUAL_MACHINES, { signal }));
  const marked = items.filter((vm) => isMarked(vm) && !own.has(vm.metadata.uid));
  if (marked.length === 0) return;
  const known = await persist(parts, 'read what machine types mean', meanings);
  for (let at = 0; at < marked.length; at += AT_ONCE) {
    await Promise.all(marked.slice(at, at + AT_ONCE).map((vm) => checkMark(vm, known, parts)));
  }
}

async function checkMark(vm: Stored<VirtualMachine>, meanings: TypeMeanings, parts: CheckParts): Promise<void> {
  const { client, log, signal } = parts;
  const { namespace, name } = vm.metadata;
  const vmi = await persist(parts, 'read an instance', () =>
    liveLook(client)(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, { signal }),
  );
  const mark = judgeMark(vm, vmi, meanings);
  const isRight =
    mark.machineTypeRestartRequired === true &&
    mark.machineTypeRestartInstanceUID === vm.status?.machineTypeRestartInstanceUID;
  if (isRight) return;
  const patch = { type: 'json', body: markPatch(vm, mark) } as const;
  try {
    await persist(parts, 'write a mark', () =>
      client.patch(VIRTUAL_MACHINES, { namespace, name }, patch, { subresource: 'status', signal }),
    );
    log.info({ vm: `${namespace}/${name}`, ...mark }, 'the mark was checked');
  } catch (error) {
    // The VM has changed meanwhile: whoever changed it, or its controller, sees to the mark.
    if (isApiError(error, 'NotFound') || isUnfitPatch(error)) return;
    if (!(error instanceof ApiError)) throw error;
    log.warn({ vm: `${namespace}/${name}`, err: error }, 'Cannot correct the mark of a VM; it stays as it is');
  }
}
