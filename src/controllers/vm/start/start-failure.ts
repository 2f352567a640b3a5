/**
 * Counts the consecutive failed starts of a VM and decides when it may try again. Only instances that never ran count:
 * a VM whose guest ran and crashed is started again at once, as in KubeVirt. Pure.
 */
import { createHash } from 'node:crypto';
import type { RunStrategy, VmStatus } from '#api/virtual-machine/schema.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { timestamp } from '#lib/clock.ts';
import { runStrategyOf } from '#api/virtual-machine/kind.ts';

const INTERVAL_SECONDS = 10;
const MAX_SECONDS = 300;
/** The delay is extended by up to this share, so that VMs that fail together do not start together. */
const SPREAD = 0.5;

/** The strategies under which a VM starts by itself. */
const COUNTED: ReadonlySet<RunStrategy | undefined> = new Set<RunStrategy>(['Always', 'RerunOnFailure', 'Once']);

export function startFailureOf({ vm, vmi, now }: VmWorld): VmStatus['startFailure'] {
  const known = vm.status?.startFailure;
  if (!COUNTED.has(runStrategyOf(vm)) || hasRun(vmi)) return undefined;
  if (vmi === undefined || !isFinal(vmi) || known?.lastFailedVMIUID === vmi.metadata.uid) return known;
  const consecutiveFailCount = (known?.consecutiveFailCount ?? 0) + 1;
  const delaySeconds = backoffSeconds(consecutiveFailCount, vmi.metadata.uid);
  const retryAfterTimestamp = timestamp(now + delaySeconds * 1000);
  const { reason, message } = vmi.status ?? {};
  const why = { ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
  return { consecutiveFailCount, lastFailedVMIUID: vmi.metadata.uid, retryAfterTimestamp, ...why };
}

export function backoffLeftMs({ vm, now }: Pick<VmWorld, 'vm' | 'now'>): number {
  const retryAfter = vm.status?.startFailure?.retryAfterTimestamp;
  return retryAfter === undefined ? 0 : Math.max(0, Date.parse(retryAfter) - now);
}

/** Returns the delay before the next start. The extension depends on the uid, so that decisions are repeatable. */
export function backoffSeconds(failures: number, uid: string): number {
  const seconds = INTERVAL_SECONDS * failures ** 2;
  const share = createHash('sha256').update(uid).digest().readUInt32BE() / 2 ** 32;
  return Math.min(MAX_SECONDS, seconds + Math.floor(seconds * SPREAD * share));
}

function hasRun(vmi: VirtualMachineInstance | undefined): boolean {
  const { phase, phaseTransitionTimestamps = [] } = vmi?.status ?? {};
  return phase === 'Running' || phaseTransitionTimestamps.some((transition) => transition.phase === 'Running');
}
