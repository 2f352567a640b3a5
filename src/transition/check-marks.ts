/**
 * Checks the mark machineTypeRestartRequired of every VM in the cluster, at the start of a Job. A mark is cleared if
 * its instance is gone or runs on the new type; otherwise it is kept. VMs of the Job's own plan are skipped.
 */
import type { PlanEntry } from '#api/machine-types/plan.ts';
import { isRestartMarked, decideRestartMark, type TypeMeanings } from '#api/machine-types/restart-mark.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { listAll } from '#client/paged-list.ts';
import { ApiError, isApiError, isInapplicablePatch } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { createLiveReader } from '#runtime/live-reader.ts';
import { withRetries } from '#transition/with-retries.ts';
import { buildMarkPatch } from '#transition/type-patch.ts';

interface CheckParts {
  readonly client: Pick<Client, 'get' | 'list' | 'patch'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const BATCH_SIZE = 32;

/** Calls `meanings` only if a VM is marked. Logs a mark that cannot be written and leaves it as it is. */
export async function checkMarks(
  parts: CheckParts,
  planned: readonly Pick<PlanEntry, 'uid'>[],
  meanings: () => Promise<TypeMeanings>,
): Promise<void> {
  const { client, signal } = parts;
  const own = new Set(planned.map(({ uid }) => uid));
  const { items } = await withRetries(parts, 'list VMs', () => listAll(client, VIRTUAL_MACHINES, { signal }));
  const marked = items.filter((vm) => isRestartMarked(vm) && !own.has(vm.metadata.uid));
  if (marked.length === 0) return;
  const typeMeanings = await withRetries(parts, 'read the meaning of machine types', meanings);
  for (let at = 0; at < marked.length; at += BATCH_SIZE) {
    await Promise.all(marked.slice(at, at + BATCH_SIZE).map((vm) => checkMark(vm, typeMeanings, parts)));
  }
}

async function checkMark(vm: Stored<VirtualMachine>, meanings: TypeMeanings, parts: CheckParts): Promise<void> {
  const { client, log, signal } = parts;
  const { namespace, name } = vm.metadata;
  const vmi = await withRetries(parts, 'read an instance', () =>
    createLiveReader(client)(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, { signal }),
  );
  const mark = decideRestartMark(vm, vmi, meanings);
  const isCorrect =
    mark.machineTypeRestartRequired === true &&
    mark.machineTypeRestartInstanceUID === vm.status?.machineTypeRestartInstanceUID;
  if (isCorrect) return;
  const patch = { type: 'json', body: buildMarkPatch(vm, mark) } as const;
  try {
    await withRetries(parts, 'write a mark', () =>
      client.patch(VIRTUAL_MACHINES, { namespace, name }, patch, { subresource: 'status', signal }),
    );
    log.info({ vm: `${namespace}/${name}`, ...mark }, 'corrected the mark of a VM');
  } catch (error) {
    // The VM has changed meanwhile; its controller corrects the mark.
    if (isApiError(error, 'NotFound') || isInapplicablePatch(error)) return;
    if (!(error instanceof ApiError)) throw error;
    log.warn({ vm: `${namespace}/${name}`, err: error }, 'Cannot correct the mark of a VM; it stays as it is');
  }
}
